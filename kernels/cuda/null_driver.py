"""Drivers that do work at once record graphs alike; and the one of them that does nothing: it notes what it is asked.

While a stream is captured, what it is asked to do is noted instead. A card's driver does the same for real
(cuda_driver.py), by NVIDIA's own graphs. What follows from capturing is common to all: nothing runs until the graph is
replayed, with the addresses that were given then; nothing may wait for a stream that is captured, or ask whether its
work is done. A stream that waits for an event of a captured one is captured with it, and must be waited for by it
before the end.

A `NullDriver` is for counting launches and allocations, for measuring what a call costs the host, and, as a
`CompilingDriver`, for compiling kernels without a GPU. Read next: `simulated_driver.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .compiler import Source, capability_of, cubin
from .driver import CAPACITY, TAPES, Dim, Driver, OutOfDeviceMemory, Start, not_permitted, written_down


class Recorded:
    """The work of streams while they were captured: `steps`, in order."""

    def __init__(self, origin: int) -> None:
        self.origin = origin
        self.steps: list[Callable[[], object]] = []
        self.joined: set[int] = set()  # streams that the origin has not waited for yet


class Mark:
    """An event: when it was passed, or, where the stream was captured, in which graph."""

    def __init__(self) -> None:
        self.time: float | None = None
        self.graph: Recorded | None = None
        self.stream = 0


class Recording(Driver):
    """A driver whose work is done when a call returns, and whose memory `bytes_at`, `put_bytes` and `move_bytes` know.
    Subclasses ask `noted` before they do any work, or have it done by `do`."""

    def __init__(self) -> None:
        self.captures: dict[int, Recorded] = {}  # by stream

    def noted(self, stream: int, step: Callable[[], object]) -> bool:
        """Whether the stream is captured; the step then is a part of its graph."""
        graph = self.captures.get(stream)
        if graph is None:
            if stream in TAPES:
                raise not_permitted("to copy memory as it is")
            return False
        graph.steps.append(step)
        return True

    def do(self, stream: int, step: Callable[[], object]) -> None:
        """Does it, or notes it."""
        if not self.noted(stream, step):
            step()

    # Copies ---------------------------------------------------------------------------------------------------------

    def bytes_at(self, address: int, nbytes: int) -> np.ndarray:
        """A copy of bytes."""
        return np.zeros(nbytes, np.uint8)

    def put_bytes(self, address: int, data: np.ndarray) -> None:
        """Writes bytes."""

    def move_bytes(self, to: int, source: int, nbytes: int) -> None:
        """Copies bytes within the memory."""

    def read(self, address: int, nbytes: int, stream: int = 0) -> np.ndarray:
        self.wait_free("read memory of the device", stream)
        return self.bytes_at(address, nbytes)

    def write(self, address: int, data: np.ndarray, stream: int = 0) -> None:
        self.wait_free("send memory that is not pinned", stream)
        self.put_bytes(address, data)

    def allocate_pinned(self, nbytes: int) -> np.ndarray:
        return np.empty(nbytes, np.uint8)

    def free_pinned(self, array: np.ndarray) -> None:
        """It goes by itself."""

    def send(self, address: int, data: np.ndarray, stream: int) -> None:
        self.do(stream, lambda: self.put_bytes(address, data))

    def fetch(self, data: np.ndarray, address: int, stream: int) -> None:
        self.do(stream, lambda: data.__setitem__(slice(None), self.bytes_at(address, len(data))))

    def copy(self, to: int, source: int, nbytes: int, stream: int = 0) -> None:
        self.do(stream, lambda: self.move_bytes(to, source, nbytes))

    # Captures -------------------------------------------------------------------------------------------------------

    def begin_capture(self, stream: int, mode: str = "global") -> None:
        if stream in self.captures:
            raise RuntimeError(f"stream {stream} is being captured already")
        self.captures[stream] = Recorded(stream)

    def end_capture(self, stream: int) -> Recorded:
        graph = self.captures.get(stream)
        if graph is None or graph.origin != stream:
            raise RuntimeError(f"no capture began on stream {stream}: CUDA error: cudaErrorStreamCaptureWrongThread")
        self.captures = {number: one for number, one in self.captures.items() if one is not graph}
        if graph.joined:
            raise RuntimeError(
                f"streams {sorted(graph.joined)} were forked from the captured one, which has to wait for them before "
                "the end: CUDA error: cudaErrorStreamCaptureUnjoined"
            )
        return graph

    def captured(self, stream: int) -> bool:
        return stream in self.captures or stream in TAPES

    def steps(self, graph: Recorded) -> int:
        return len(graph.steps)

    def replay(self, graph: Recorded, stream: int) -> None:
        for step in graph.steps:
            step()

    # What waits, or orders streams ----------------------------------------------------------------------------------

    def check_free(self, what: str, stream: int | None = None) -> None:
        """RuntimeError while this stream, or any, is captured."""
        if stream in TAPES or self.captures and (stream is None or stream in self.captures):
            raise not_permitted(what)

    def wait_free(self, what: str, stream: int | None = None) -> None:
        """Waits for a stream, or for all. RuntimeError while it is captured."""
        self.check_free(what, stream)

    def synchronize(self, device: int, stream: int | None = None) -> None:
        self.wait_free("synchronize", stream)

    def create_event(self, device: int, timing: bool) -> Mark:
        return Mark()

    def record(self, event: Mark, stream: int) -> None:
        event.time, event.graph, event.stream = time.perf_counter(), self.captures.get(stream), stream

    def wait(self, stream: int, event: Mark) -> None:
        graph = event.graph
        if graph is None or graph not in self.captures.values():
            return
        if stream == graph.origin:
            graph.joined.discard(event.stream)
        elif stream not in self.captures:
            self.captures[stream] = graph
            graph.joined.add(stream)

    def done(self, event: Mark) -> bool:
        self.wait_for(event)
        return True

    def wait_for(self, event: Mark) -> None:
        if event.graph is not None and event.graph in self.captures.values():
            raise not_permitted("to ask an event that was recorded in it")

    def elapsed(self, start: Mark, end: Mark) -> float:
        self.wait_for(end)
        return 1000 * ((end.time or 0) - (start.time or 0))


# --- the null device --------------------------------------------------------------------------------------------------


class Launched(NamedTuple):
    """A launch that a null driver was asked for."""

    name: str
    grid: Dim
    block: Dim
    arguments: tuple[int | float, ...]
    stream: int


class NullDriver(Recording):
    """Memory has addresses and no bytes; reading it gives zeros.

    launched: the launches, those of replayed graphs included. allocated: bytes by address.
    """

    name = "null"
    title = "null device"
    computes = False

    def __init__(self, capacity: int = CAPACITY, count: int = 1) -> None:
        super().__init__()
        self.launched: list[Launched] = []
        self.allocated: dict[int, int] = {}
        self.capacity, self.count = capacity, count
        self.used, self.next = 0, 0x10000
        self.replayed = 0  # graphs

    def allocate(self, device: int, nbytes: int) -> int:
        if self.used + nbytes > self.capacity:
            raise OutOfDeviceMemory(nbytes)
        self.used += nbytes
        address, self.next = self.next, self.next + (nbytes + 511 & ~511) + 512
        self.allocated[address] = nbytes
        return address

    def free(self, device: int, address: int) -> None:
        self.used -= self.allocated.pop(address)

    def load(self, source: Source) -> str:
        return source.name

    def prepared(self, kernel: str, grid: Dim, block: Dim) -> Start:
        note, new = self.launched.append, tuple.__new__

        def start(arguments: tuple[int | float, ...], stream: int) -> None:
            if TAPES and written_down(start, arguments, stream):
                return
            one = new(Launched, (kernel, grid, block, arguments, stream))
            if not (self.captures and self.noted(stream, lambda: note(one))):
                note(one)

        return start

    def replay(self, graph: Recorded, stream: int) -> None:
        super().replay(graph, stream)
        self.replayed += 1

    def memory_info(self, device: int) -> tuple[int, int]:
        return self.capacity - self.used, self.capacity


class CompilingDriver(NullDriver):
    """A null driver that compiles what it is to launch, down to machine code: a cache is filled without a GPU."""

    name = "compiling"

    def __init__(self, target: str) -> None:
        super().__init__(capacity=1 << 40)  # of bytes that there are not: whatever a program makes has room
        self.target = target
        self.capability = capability_of(target)

    def load(self, source: Source) -> str:
        cubin(source, self.target)
        return source.name
