"""The drivers whose GPU is the simulator: it runs the very PTX that a card's machine code is made of.

A `SimulatedDriver` does what a stream is asked to do at once. A card works while the program goes on, and the order of
its streams' work is not said, but for the events that they wait for; a program that forgot to wait is right nearly
always. On a `LateDriver` (`REDISPATCH_CUDA=late`) it is wrong whenever it could be: each stream rests until its
work is needed, so that what it should have written is not there yet, which the simulator tells as a read of what was
never written. Read null_driver.py before.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .compiler import Source, ptx
from .driver import CAPACITY, TAPES, Dim, OutOfDeviceMemory, Start, written_down
from .null_driver import Mark, Recorded, Recording
from .simulator import Device, Loaded


class SimulatedDriver(Recording):
    """One device of `memory` bytes; by default of REDISPATCH_CUDA_MEMORY, or 256 MiB."""

    name = "sim"
    title = "simulator"

    def __init__(self, memory: int | None = None) -> None:
        super().__init__()
        self.memory = memory or int(os.environ.get("REDISPATCH_CUDA_MEMORY", CAPACITY))
        self.device = Device(self.memory)

    def allocate(self, device: int, nbytes: int) -> int:
        try:
            return self.device.allocate(nbytes)
        except MemoryError as problem:
            raise OutOfDeviceMemory(str(problem)) from None

    def free(self, device: int, address: int) -> None:
        self.device.free(address)

    def hand_out(self, address: int, nbytes: int, stream: int = 0) -> None:
        self.mark(address, nbytes)
        self.noted(stream, lambda: self.mark(address, nbytes))  # in a graph tensors have the same memory in turn

    def mark(self, address: int, nbytes: int) -> None:
        """From here on so many bytes of an allocation may be used, and none of them was written."""
        arena = self.device.arena
        arena.mark(address, nbytes)
        name = f"a tensor's memory of {nbytes} bytes" if nbytes else "memory that its tensor has given back"
        arena.allocations[address].name = name

    def bytes_at(self, address: int, nbytes: int) -> np.ndarray:
        return self.device.read(address, nbytes)

    def put_bytes(self, address: int, data: np.ndarray) -> None:
        self.device.write(address, data)

    def move_bytes(self, to: int, source: int, nbytes: int) -> None:
        self.device.arena.move(to, source, nbytes)

    def load(self, source: Source) -> tuple[Loaded, str]:
        return self.device.load(ptx(source, self.target)), source.name

    def prepared(self, kernel: Any, grid: Dim, block: Dim) -> Start:
        module, name = kernel
        parameters = module.program(name).kernel.parameters
        strict = not name.startswith("copy_")  # memory may be copied before all of it was written

        def start(arguments: tuple[int | float, ...], stream: int) -> None:
            check_kinds(name, parameters, arguments)
            if not (TAPES and written_down(start, arguments, stream)):
                self.do(stream, lambda: self.device.launch(module, name, grid, block, arguments, strict))

        return start

    def memory_info(self, device: int) -> tuple[int, int]:
        return self.memory - self.device.arena.used, self.memory


def check_kinds(name: str, parameters: Sequence[tuple[str, str]], arguments: Sequence[int | float]) -> None:
    """TypeError where a parameter is a float64 and its argument an integer, or the other way round. A card is given the
    bits of an argument, 64 of them, and does not convert."""
    for (_, kind), value in zip(parameters, arguments, strict=True):
        if type(value) is not (float if kind == "f64" else int):
            raise TypeError(f"{name}: {value!r} is a {type(value).__name__}, and the kernel takes a {kind}")


# --- as late as a card may be -----------------------------------------------------------------------------------------

Step = Callable[[], object]


class Turn:
    """One recording of an event, which may be recorded again before the stream has come to the first."""

    def __init__(self, stream: int) -> None:
        self.stream, self.over = stream, False


class LateMark(Mark):
    """An event. `turn`: what it stands for since it was recorded last; None until then."""

    turn: Turn | None = None


class LateDriver(SimulatedDriver):
    """One device, each of whose streams has a queue of steps."""

    name = "late"
    title = "late simulator"

    def __init__(self, memory: int | None = None) -> None:
        super().__init__(memory)
        self.queues: dict[int, deque[Step]] = defaultdict(deque)
        self.lock = threading.RLock()

    def do(self, stream: int, step: Step) -> None:
        """Puts it behind what the stream has to do."""
        if not self.noted(stream, step):
            self.queues[stream].append(step)

    def finish(self, stream: int | None = None) -> None:
        """Has a stream do its work, or all of them. Errors: those of kernels, whose step is not done again."""
        with self.lock:
            for queue in list(self.queues.values()) if stream is None else [self.queues[stream]]:
                while queue:
                    queue.popleft()()

    def reach(self, turn: Turn | None) -> None:
        """Has a stream do its work up to an event."""
        with self.lock:
            while turn is not None and not turn.over:
                self.queues[turn.stream].popleft()()

    # What has a turn in a stream --------------------------------------------------------------------------------------

    def hand_out(self, address: int, nbytes: int, stream: int = 0) -> None:
        if stream in self.captures:
            super().hand_out(address, nbytes, stream)
        else:
            self.queues[stream].append(lambda: self.mark(address, nbytes))

    def replay(self, graph: Recorded, stream: int) -> None:
        self.do(stream, lambda: super(LateDriver, self).replay(graph, stream))

    def record(self, event: Any, stream: int) -> None:
        super().record(event, stream)
        if stream in self.captures:
            return
        event.turn = turn = Turn(stream)

        def over() -> None:
            turn.over, event.time = True, time.perf_counter()

        self.queues[stream].append(over)

    def wait(self, stream: int, event: Any) -> None:
        super().wait(stream, event)
        if event.graph is None:
            turn = event.turn
            self.queues[stream].append(lambda: self.reach(turn))

    # What waits -------------------------------------------------------------------------------------------------------

    def wait_free(self, what: str, stream: int | None = None) -> None:
        super().wait_free(what, stream)
        self.finish(stream)

    def free(self, device: int, address: int) -> None:
        self.finish()  # as CUDA does
        super().free(device, address)

    def create_event(self, device: int, timing: bool) -> LateMark:
        return LateMark()

    def done(self, event: Any) -> bool:
        super().wait_for(event)
        return event.turn is None or event.turn.over

    def wait_for(self, event: Any) -> None:
        super().wait_for(event)
        self.reach(event.turn)

    def elapsed(self, start: Any, end: Any) -> float:
        self.wait_for(start)
        return super().elapsed(start, end)
