"""What the library asks of a GPU, and which GPU it asks: a card, the simulator, or nobody.

    REDISPATCH_CUDA=sim     the simulator (simulated.py), on any machine
    REDISPATCH_CUDA=null    a driver that notes launches and allocations, and runs nothing
    unset                   the machine's cards (card.py), where there are any

A `Driver` has memory by address, streams and events by number, and kernels that it makes of a `Source`. Everything
above (templates, allocator, tensors) is the same for all three. Read next: `launch.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import util
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .compiler import INSTALL, Source, capability_of, cubin

Dim = tuple[int, int, int]
Start = Callable[[tuple[int | float, ...], int], None]  # (arguments, stream)
CAPACITY = 1 << 28  # bytes of a device that is none


class OutOfDeviceMemory(MemoryError):
    """A device has not as many bytes as were asked for."""


class Driver:
    """The interface, and what is the same wherever work is done by the time that a call returns."""

    name = ""
    title = ""  # of a device
    target = "sm_80"  # what kernels are compiled for
    capability = (8, 0)
    count = 1

    def allocate(self, device: int, nbytes: int) -> int:
        """An address. OutOfDeviceMemory where there is too little."""
        raise NotImplementedError

    def free(self, device: int, address: int) -> None:
        """Takes back what `allocate` gave."""
        raise NotImplementedError

    def hand_out(self, address: int, nbytes: int) -> None:
        """Told when so many bytes of an allocation begin to be somebody's: what lies there is of undefined value."""

    def read(self, address: int, nbytes: int, stream: int = 0) -> np.ndarray:
        """A copy of bytes in the host's memory, after what the stream has to do before."""
        raise NotImplementedError

    def write(self, address: int, data: np.ndarray, stream: int = 0) -> None:
        """Copies a flat array of uint8 to the device."""
        raise NotImplementedError

    def copy(self, to: int, source: int, nbytes: int, stream: int = 0) -> None:
        """Copies bytes within the devices' memory."""
        raise NotImplementedError

    def load(self, source: Source) -> Any:
        """A kernel, ready to be launched: compiled, where it must be."""
        raise NotImplementedError

    def launch(self, kernel: Any, grid: Dim, block: Dim, arguments: Sequence[int | float], stream: int = 0) -> None:
        """Runs a kernel, or has a stream run it. Arguments are addresses, integers and float64 numbers."""
        raise NotImplementedError

    def prepared(self, kernel: Any, grid: Dim, block: Dim) -> Start:
        """`launch` of that kernel with that grid, for callers that keep it: `start(arguments, stream)`."""

        def start(arguments: tuple[int | float, ...], stream: int) -> None:
            self.launch(kernel, grid, block, arguments, stream)

        return start

    def memory_info(self, device: int) -> tuple[int, int]:
        """(free bytes, all bytes)"""
        raise NotImplementedError

    # Streams and events: numbers, 0 being the default stream. Work that is done when it returns needs no order. ----

    def create_stream(self, device: int, priority: int = 0) -> int:
        self._streams = getattr(self, "_streams", 0) + 1
        return self._streams

    def synchronize(self, device: int, stream: int | None = None) -> None:
        """Waits for a stream, or for all of a device."""

    def create_event(self, device: int, timing: bool) -> list[float]:
        return []

    def record(self, event: Any, stream: int) -> None:
        event[:] = [time.perf_counter()]

    def wait(self, stream: int, event: Any) -> None:
        """Has a stream wait for an event."""

    def done(self, event: Any) -> bool:
        """Whether what was before the event is done."""
        return True

    def wait_for(self, event: Any) -> None:
        """Waits until it is."""

    def elapsed(self, start: Any, end: Any) -> float:
        """Milliseconds between two events that were recorded."""
        return 1000 * (end[0] - start[0])


class Launched(NamedTuple):
    """A launch that a null driver was asked for."""

    name: str
    grid: Dim
    block: Dim
    arguments: tuple[int | float, ...]
    stream: int


@dataclass(eq=False)
class NullDriver(Driver):
    """Notes what it is asked to do, and does nothing: memory has addresses and no bytes, reading it gives zeros.

    For counting launches and allocations, and for measuring what a launch costs the host.
    """

    name = "null"
    title = "null device"
    launched: list[Launched] = field(default_factory=list)
    allocated: dict[int, int] = field(default_factory=dict)
    capacity: int = CAPACITY
    used: int = 0
    _next: int = 0x10000

    def allocate(self, device: int, nbytes: int) -> int:
        if self.used + nbytes > self.capacity:
            raise OutOfDeviceMemory(nbytes)
        self.used += nbytes
        address, self._next = self._next, self._next + (nbytes + 511 & ~511) + 512
        self.allocated[address] = nbytes
        return address

    def free(self, device: int, address: int) -> None:
        self.used -= self.allocated.pop(address)

    def read(self, address: int, nbytes: int, stream: int = 0) -> np.ndarray:
        return np.zeros(nbytes, np.uint8)

    def write(self, address: int, data: np.ndarray, stream: int = 0) -> None:
        """Nothing is written."""

    def copy(self, to: int, source: int, nbytes: int, stream: int = 0) -> None:
        """Nothing is copied."""

    def load(self, source: Source) -> str:
        return source.name

    def launch(self, kernel: str, grid: Dim, block: Dim, arguments: Sequence[int | float], stream: int = 0) -> None:
        self.prepared(kernel, grid, block)(tuple(arguments), stream)

    def prepared(self, kernel: str, grid: Dim, block: Dim) -> Start:
        note, new = self.launched.append, tuple.__new__

        def start(arguments: tuple[int | float, ...], stream: int) -> None:
            note(new(Launched, (kernel, grid, block, arguments, stream)))

        return start

    def memory_info(self, device: int) -> tuple[int, int]:
        return self.capacity - self.used, self.capacity


class CompilingDriver(NullDriver):
    """A null driver that compiles what it is to launch, down to machine code: a cache is filled without a GPU."""

    name = "compiling"

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = target
        self.capability = capability_of(target)

    def load(self, source: Source) -> str:
        cubin(source, self.target)
        return source.name


_chosen: Driver | None = None
_asked = False


def driver() -> Driver | None:
    """The driver of this process, found when it is first asked for; None where there is no GPU."""
    global _chosen, _asked
    if not _asked:
        _chosen, _asked = found(), True
    return _chosen


def use(chosen: Driver | None) -> tuple[Driver | None, bool]:
    """Makes this driver the process's; returns what `restore` takes."""
    global _chosen, _asked
    former = _chosen, _asked
    _chosen, _asked = chosen, True
    return former


def restore(former: tuple[Driver | None, bool]) -> None:
    """Makes the driver the process's that was it before `use`."""
    global _chosen, _asked
    _chosen, _asked = former


def wanted() -> str:
    """What REDISPATCH_CUDA says. ValueError where it is none of the words that it may be."""
    word = os.environ.get("REDISPATCH_CUDA", "")
    if word not in ("", "sim", "null"):
        raise ValueError(f"REDISPATCH_CUDA is {word!r}; it may be sim, null, or unset for the machine's own GPUs")
    return word


def found() -> Driver | None:
    word = wanted()
    if word == "null":
        return NullDriver()
    if word == "sim":
        from .simulated import SimulatedDriver  # here, because an import of the library needs no simulator

        return SimulatedDriver()
    if util.find_spec("cuda") is None or util.find_spec("cuda.core") is None:
        return None
    from .card import cards  # here, because few machines have it

    return cards()


def why_not() -> str:
    """What to say where there is no device."""
    return (
        f"there is no CUDA device. On a machine with an NVIDIA GPU, {INSTALL}; REDISPATCH_CUDA=sim in the environment "
        "gives a simulated one anywhere"
    )


# --- the stream on which work goes, by device -------------------------------------------------------------------------

STREAMS: ContextVar[Mapping[int, int]] = ContextVar("CUDA streams", default=MappingProxyType({}))


def current_stream(device: int) -> int:
    """The number of the stream on which this thread or task works on a device; 0 for the default one."""
    return STREAMS.get().get(device, 0)


def set_current_stream(device: int, stream: int) -> None:
    STREAMS.set({**STREAMS.get(), device: stream})
