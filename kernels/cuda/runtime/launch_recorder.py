"""Records a kernel's launches once per metadata of its arguments, so that later calls replay them.

A kernel on a device checks arguments, chooses, allocates, launches. What it launches follows from the metadata of its
arguments, so it need decide only once. To find out, it runs on a *tape*: a stream where nothing happens, with tensors
that have the arguments' metadata and no memory. What is asked of that stream is the plan: launches, told some addresses
of arguments, of results, and of memory for a while.

Note [Addresses that stand for others]
On a tape, tensors lie at addresses from a range of numbers that means nothing else. So what a launch is told is an
address, of which tensor and how far behind its beginning, or a number that is the same each time. The same is done with
the seeds that random numbers are drawn by. To be sure, a kernel is recorded twice, with other addresses: where it made
anything else of them than a sum, the tapes differ, and there is no plan.

Note [What has no plan]
A kernel that reads from the device, or sends to it, is refused by the tape's stream, as by one that is captured in a
graph. One that warns says so (`do_not_cache`). Such a kernel runs at each call. Tables that follow from the arguments'
metadata are sent once, past the tape (`constant`), and kept with the plan.

Read next: launch_plan.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from redispatch.dispatch import shared
from redispatch.dispatch.tensor import OutputSpec, Tensor, UntypedStorage, device, metadata_of, output_spec, tensor_over
from redispatch.kernels import last_element
from redispatch.kernels.cuda import STREAMS, TAPES, Start

from .memory import Block, CachingAllocator, Pool, Shelf
from .memory_stats import Statistics

FAR, SPAN, MOST = 0x7FF9 << 48, 1 << 36, 1 << 10  # where nothing lies; bytes for each tensor; tensors of a tape
OTHER = FAR + 2 * SPAN * MOST  # of the second tape
NUMBERS = itertools.count(1 << 40)  # of streams that are tapes
AT_WORK: ContextVar[Tape | None] = ContextVar("tape", default=None)
new = object.__new__


class Refused(Exception):
    """There is no plan: the kernel is to be run each time."""


class Pieces:
    """Stands where a shelf has its free segments: the memory of a tape."""

    def __init__(self, tape: Tape, room: int) -> None:
        self.tape, self.room = tape, room

    def pop(self) -> int:
        return self.tape.placed(self.room)

    def append(self, address: int) -> None:
        self.tape.places[self.tape.number_of(address)].until = len(self.tape.launched)


class Shelves(dict[int, Shelf]):
    """Has a shelf for any size, of which there is always one more."""

    def __init__(self, pool: TapePool) -> None:
        super().__init__()
        self.pool = pool

    def __missing__(self, room: int) -> Shelf:
        return self.pool.shelf(room)


class TapePool(Pool):
    """The source of memory on a tape."""

    __slots__ = ("tape",)

    def __init__(self, tape: Tape, allocator: CachingAllocator, index: int) -> None:
        self.allocator, self.driver, self.told = allocator, allocator.driver, False
        self.device, self.stream, self.owner = index, tape.number, None
        self.statistics, self.shelves, self.tape = Statistics(), Shelves(self), tape

    def shelf(self, room: int) -> Shelf:
        found = Shelf(self, room)
        free: Any = Pieces(self.tape, room)
        found.free = free
        return found


@dataclass(slots=True)
class Place:
    """A piece of memory of `size` bytes.

    low: the last bits of its address. asked: bytes that had been asked for before it was made. since, until: how many
    launches there were when it came, and when it was given back; None where it was not.
    """

    size: int
    low: int
    asked: int
    since: int
    until: int | None = None


class Told(NamedTuple):
    """An argument of a launch: so many bytes behind the beginning of a place, or, where that is None, a number."""

    place: int | None
    number: Any


@dataclass(eq=False)
class Tape:
    """One run of a kernel on nothing. Places are numbered in the order in which they come; drawn seeds are places."""

    allocator: CachingAllocator
    device: device
    base: int
    number: int = field(default_factory=lambda: next(NUMBERS))
    places: list[Place] = field(default_factory=list)
    launched: list[tuple[Start, tuple[Any, ...]]] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    former: Tape | None = None  # on which the same kernel ran before: what was made once for it serves here, too
    drawn: list[tuple[Any, int, int]] = field(default_factory=list)  # (generator, blocks, number of the place)

    def __post_init__(self) -> None:
        self.index = self.device.index or 0
        self.pool = TapePool(self, self.allocator, self.index)

    def placed(self, size: int, low: int = 0) -> int:
        """The address of a new place."""
        if size >= SPAN // 2 or len(self.places) >= MOST:
            raise Refused
        self.places.append(Place(size, low, self.pool.statistics.requested, len(self.launched)))
        return self.base + (len(self.places) - 1) * SPAN + SPAN // 2 + low

    def number_of(self, address: int) -> int:
        return (address - self.base) // SPAN

    def size_of(self, k: int) -> int:
        """The number of bytes that were asked for, of memory that was made."""
        behind = self.places[k + 1].asked if k + 1 < len(self.places) else self.pool.statistics.requested
        return behind - self.places[k].asked

    def stand_in(self, x: Tensor, low: int) -> Tensor:
        """A tensor that looks like another one, and lies nowhere, at an address with these last bits."""
        metadata = metadata_of(x)
        size = (last_element(x._shape, x._stride, 0) + 1) * x._dtype.itemsize
        block = new(Block)
        block.address, block.nbytes, block.used_by = self.placed(size, low), size, None
        block.shelf = self.pool.shelf(0)
        storage = UntypedStorage.without_data(size, self.device)
        storage.block = block
        made = tensor_over(storage, None, x._shape, x._stride, 0, x._dtype, x._device)
        made._keyset, made._interned = shared(made._keyset | metadata.bits), metadata
        return made

    def spec_of(self, result: Any) -> OutputSpec:
        """Returns the spec that a result was made from; it must have all of its memory, and no other."""
        block: Any = result._storage.block
        made = output_spec(result._shape, result._dtype, result._device, tuple(result._stride))
        k = self.number_of(block.address) if type(block) is Block and block.pool is self.pool else -1
        if not (0 <= k < len(self.places)) or result._offset or self.size_of(k) != made.nbytes:
            raise Refused
        if metadata_of(result) is not made.metadata:
            raise Refused
        return made

    @contextmanager
    def running(self) -> Iterator[None]:
        """The stream is the current one of the device, and gives its memory."""
        TAPES[self.number] = self.launched
        self.allocator.pools[self.index, self.number] = self.pool
        self.outside = STREAMS.get()
        tokens = STREAMS.set({**self.outside, self.index: self.number}), AT_WORK.set(self)
        try:
            yield
        finally:
            STREAMS.reset(tokens[0])
            AT_WORK.reset(tokens[1])
            del self.allocator.pools[self.index, self.number], TAPES[self.number]

    def told(self, number: Any) -> Told:
        """Reads a number as an argument of a launch."""
        if type(number) is int and self.base <= number < self.base + len(self.places) * SPAN:
            k = self.number_of(number)
            behind = number - (self.base + k * SPAN + SPAN // 2 + self.places[k].low)
            if 0 <= behind <= self.places[k].size:
                return Told(k, behind)
            raise Refused
        return Told(None, number)

    def steps(self) -> list[tuple[Start, list[Told]]]:
        return [(start, [self.told(one) for one in arguments]) for start, arguments in self.launched]


def refuse() -> None:
    """Says that a kernel does more than launch: there is no plan for what it does."""
    if AT_WORK.get() is not None:
        raise Refused


def constant(make: Callable[[], Any]) -> Any:
    """Makes, past the tape, what a kernel sends to a device for all calls with such metadata, and keeps it."""
    tape = AT_WORK.get()
    if tape is None:
        return make()
    if tape.former is not None:
        if len(tape.kept) >= len(tape.former.kept):
            raise Refused
        made = tape.former.kept[len(tape.kept)]
    else:
        tokens = STREAMS.set(tape.outside), AT_WORK.set(None)
        try:
            made = make()
        finally:
            STREAMS.reset(tokens[0])
            AT_WORK.reset(tokens[1])
    tape.kept.append(made)
    return made


def keep(made: Any) -> None:
    """Has what a plan needs live as long as a plan that is made of it."""
    tape = AT_WORK.get()
    if tape is not None:
        tape.kept.append(made)


def taken(generator: Any, count: int) -> tuple[int, int] | None:
    """Returns the stand-ins of seed and offset of so many numbers on a tape; None where there is no tape."""
    tape = AT_WORK.get()
    if tape is None:
        return None
    tape.drawn.append((generator, count, len(tape.places)))
    return tape.placed(0), tape.placed(count)  # an offset plus some of the numbers is one of the plan, too
