"""The driver that does nothing: it notes what it is asked to do.

For counting launches and allocations, for measuring what a call costs the host, and, as a `CompilingDriver`, for
compiling kernels without a GPU. Read next: `simulated_driver.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from .compiler import Source, capability_of, cubin
from .driver import CAPACITY, TAPES, Dim, OutOfDeviceMemory, Start, written_down
from .recording import Recorded, Recording


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
