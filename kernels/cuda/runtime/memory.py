"""The caching allocator: blocks of the devices' memory that are handed out again and again.

Asking a driver for memory waits for the device; so what a storage gives back is kept, for the next one of its size
class on the same stream. Within a stream work goes in order, so that a new tensor may lie where an old one is still
being read by kernels before it. Memory that was used on other streams, too (`record_stream`), waits until these have
come as far as they were when it was given back.

Size classes: multiples of 512 bytes up to 1 MiB, multiples of 2 MiB beyond. Segments, which are what the driver gave,
are not split; so the simulator sees where each tensor's memory ends.

Where the driver has no memory left, all segments that nobody holds go back to it, and it is asked again; what raises
then says how much is held, and how.

Note [Pools]
What is free on a stream is a `Pool`. Each stream has one of its own, which all programs share; while work is recorded
as a graph, another one takes its place (`private`), because a graph that is replayed writes to the addresses that it
was recorded with: these may be nobody else's. Read next: graphs.py.

Note [Counting without a lock]
Every tensor passes here when it is made and when it goes, perhaps in the middle of the making of another one. A lock
would take a fifth of that time. None is needed where the interpreter's own is held from end to end: taking an address
from a list, putting one there, and adding to a number, in the course of which nothing is called.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from redispatch.dispatch import OutOfMemoryError
from redispatch.dispatch.tensor import Allocator, UntypedStorage, device, indexed
from redispatch.kernels.cuda import NONE_CHOSEN, STREAMS, Driver, Memory, OutOfDeviceMemory, current_stream

from .memory_stats import Statistics, in_units

_new = object.__new__
SMALL, LARGE, LIMIT = 512, 2 << 20, 1 << 20


class Shelf:
    """The segments of a pool that have so many bytes: `free` are the addresses of those that nobody holds, the latest
    last."""

    __slots__ = ("pool", "room", "free", "statistics", "told", "stream", "taken", "returned")

    def __init__(self, pool: Pool, room: int) -> None:
        self.pool, self.room, self.statistics, self.stream = pool, room, pool.statistics, pool.stream
        self.told = pool.told and room > 0
        self.free: list[int] = []
        self.taken = self.returned = 0  # how often
        self.statistics.shelves.append(self)

    def tell(self, address: int, nbytes: int) -> None:
        """Tells the driver that memory changes hands, and in which stream's turn: that of graphs in the turn of whoever
        replays them."""
        pool = self.pool
        pool.driver.hand_out(address, nbytes, self.stream if pool.owner is None else current_stream(pool.device))


class Pool:
    """The segments of a stream. `owner` is the graphs' memory that it is part of, None where it is everybody's."""

    __slots__ = ("allocator", "driver", "told", "device", "stream", "statistics", "owner", "shelves")

    def __init__(self, allocator: CachingAllocator, index: int, stream: int, owner: Any = None) -> None:
        self.allocator, self.driver, self.told = allocator, allocator.driver, allocator.told
        self.device, self.stream, self.owner = index, stream, owner
        self.statistics = allocator.of(index)
        self.shelves: dict[int, Shelf] = {}  # by room

    def shelf(self, room: int) -> Shelf:
        """The shelf for so many bytes."""
        found = self.shelves.get(room)
        if found is None:
            found = self.shelves[room] = Shelf(self, room)
        return found


class Block(Memory):
    """Memory of a storage's, which goes back to its shelf when nobody holds it. `nbytes` were asked for."""

    __slots__ = ("shelf", "used_by")

    address: int
    nbytes: int
    shelf: Shelf
    used_by: set[int] | None  # other streams

    @property
    def pool(self) -> Pool:
        return self.shelf.pool

    @property
    def stream(self) -> int:
        return self.shelf.stream

    @property
    def device(self) -> int:  # type: ignore[override]  # another signature than the base class, as PyTorch's
        return self.shelf.pool.device

    @property
    def driver(self) -> Driver:  # type: ignore[override]  # another signature than the base class, as PyTorch's
        return self.shelf.pool.driver

    def __del__(self) -> None:
        shelf = self.shelf
        known = shelf.statistics  # Note [Counting without a lock]
        known.held -= shelf.room
        known.freed_requested += self.nbytes
        shelf.returned += 1
        if self.used_by:
            shelf.pool.allocator.keep_later(self)
            return
        if shelf.told:
            shelf.tell(self.address, 0)
        shelf.free.append(self.address)


@dataclass(slots=True)
class Segment:
    """Memory from the driver, and the pool to which it goes back when it is free."""

    address: int
    room: int
    pool: Pool


@dataclass(slots=True)
class Waiting:
    """Free memory that other streams may still use, until these events have come."""

    events: list[Any]
    segment: Segment


def size_class(nbytes: int) -> int:
    """The number of bytes that are asked of the driver for so many."""
    step = SMALL if nbytes <= LIMIT else LARGE
    return -(-max(nbytes, 1) // step) * step


@dataclass(eq=False)
class PrivatePools:
    """The memory of graphs that are never replayed at once: a pool for each stream. It lasts as long as its users."""

    allocator: CachingAllocator
    users: int = 0
    pools: dict[tuple[int, int], Pool] = field(default_factory=dict)

    def of(self, index: int, stream: int) -> Pool:
        found = self.pools.get((index, stream))
        if found is None:
            found = self.pools[index, stream] = Pool(self.allocator, index, stream, self)
        return found


class CachingAllocator(Allocator):
    """The allocator of all devices of a driver."""

    returning = True

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.lock = threading.RLock()  # a storage may go while another one is made, in the same thread
        self.pools: dict[tuple[int, int], Pool] = {}  # by device and stream: from where memory comes
        self.shared: dict[tuple[int, int], Pool] = {}  # those among them, or behind them, that are everybody's
        self.usual: dict[int, Pool] = {}  # those of the devices' default streams
        self.segments: dict[int, Segment] = {}  # by address
        self.waiting: list[Waiting] = []
        self.deferred: list[tuple[Segment, set[int]]] = []  # the same, where no events can be recorded yet
        self.private: dict[Any, PrivatePools] = {}
        self.recording = 0  # graphs
        self.statistics: dict[int, Statistics] = {}
        self.limits: dict[int, int] = {}  # bytes that may be asked of the driver, by device
        self.told = type(driver).hand_out is not Driver.hand_out  # whether the driver wants to know who has what

    def of(self, index: int) -> Statistics:
        """The statistics of a device."""
        return self.statistics.setdefault(index, Statistics())

    # What storages ask --------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int, device: device, pool: Pool | None = None) -> Block:
        """A block of a pool, by default the current stream's on that device. OutOfMemoryError where memory ends."""
        if pool is None:
            index = device.index
            if index is None:
                index = indexed(device).index or 0
            streams = STREAMS.get()
            if streams is NONE_CHOSEN:  # which is nearly always so; no graph is recorded there
                pool = self.usual.get(index) or self._new_pool(index, -index)
            else:
                stream = streams.get(index, -index)
                pool = self.pools.get((index, stream)) or self._new_pool(index, stream)
        if self.waiting:
            self._take_back()
        room = nbytes + 511 & -512 if nbytes <= LIMIT else size_class(nbytes)
        try:
            shelf = pool.shelves[room]
            address = shelf.free.pop()
        except (KeyError, IndexError):
            shelf = pool.shelf(room)
            address = self._segment(pool, room, nbytes) if room else 0
        block = _new(Block)
        block.address, block.nbytes, block.shelf, block.used_by = address, nbytes, shelf, None
        shelf.taken += 1
        known = shelf.statistics  # Note [Counting without a lock]
        known.requested += nbytes
        known.held = held = known.held + room
        if held > known.peak_allocated:
            known.peak_allocated = held
        if shelf.told:
            shelf.tell(address, nbytes)
        return block

    def maker(self, on: device) -> Callable[[int], UntypedStorage]:
        """Returns the maker of storages on a device: `allocate` written out, since each tensor passes here."""
        index = on.index or 0
        shelves = (self.usual.get(index) or self._new_pool(index, -index)).shelves
        chosen, storage_of = STREAMS.get, UntypedStorage.on_device

        def make(nbytes: int) -> UntypedStorage:
            if chosen() is not NONE_CHOSEN or self.waiting or self.told:
                return storage_of(nbytes, on, self)
            room = nbytes + 511 & -512 if nbytes <= LIMIT else size_class(nbytes)
            try:
                shelf = shelves[room]
                address = shelf.free.pop()
            except (KeyError, IndexError):
                return storage_of(nbytes, on, self)
            block, storage = _new(Block), _new(UntypedStorage)
            block.address, block.nbytes, block.shelf, block.used_by = address, nbytes, shelf, None
            shelf.taken += 1
            known = shelf.statistics  # Note [Counting without a lock]
            known.requested += nbytes
            known.held = held = known.held + room
            if held > known.peak_allocated:
                known.peak_allocated = held
            storage._array = storage._retyped = storage._owner = None
            storage._nbytes, storage.device, storage.resizable, storage.block = nbytes, on, True, block
            return storage

        return make

    def read(self, block: Block, nbytes: int) -> np.ndarray:
        if not nbytes:
            return np.empty(0, np.uint8)
        return self.driver.read(block.address, nbytes, current_stream(block.device))

    def write(self, block: Block, data: np.ndarray) -> None:
        if len(data):
            self.driver.write(block.address, data, current_stream(block.device))

    def address(self, block: Block) -> int:
        return block.address

    # The cache ----------------------------------------------------------------------------------------------------

    def _new_pool(self, index: int, stream: int) -> Pool:
        with self.lock:
            pool = self.shared.setdefault((index, stream), Pool(self, index, stream))
            if stream == -index:
                self.usual[index] = pool
            return self.pools.setdefault((index, stream), pool)

    def _segment(self, pool: Pool, room: int, nbytes: int) -> int:
        """The address of memory that is new from the driver."""
        with self.lock:
            address = self._from_driver(pool.device, room, nbytes)
            self.segments[address] = Segment(address, room, pool)
            pool.statistics.reserve(room)
        return address

    def keep_later(self, block: Block) -> None:
        """Keeps memory that nobody holds, once the streams that used it have gone on."""
        with self.lock:
            streams = block.used_by or set()
            block.pool.statistics.waiting += block.shelf.room
            self._watch(self.segments[block.address], streams)

    def _watch(self, segment: Segment, streams: set[int]) -> None:
        if self.recording:  # whether an event has come cannot be asked then
            self.deferred.append((segment, streams))
            return
        events = []
        for stream in streams:
            event = self.driver.create_event(segment.pool.device, False)
            self.driver.record(event, stream)
            events.append(event)
        self.waiting.append(Waiting(events, segment))

    def _take_back(self) -> None:
        """Keeps the memory whose events have come."""
        if self.recording:
            return
        with self.lock:
            still = []
            for one in self.waiting:
                if all(map(self.driver.done, one.events)):
                    shelf = one.segment.pool.shelf(one.segment.room)
                    if shelf.told:
                        shelf.tell(one.segment.address, 0)
                    shelf.free.append(one.segment.address)
                    one.segment.pool.statistics.waiting -= one.segment.room
                else:
                    still.append(one)
            self.waiting = still

    def _from_driver(self, index: int, room: int, nbytes: int) -> int:
        try:
            return self._within_limit(index, room)
        except OutOfDeviceMemory:
            self.of(index).retries += 1
            if not self.recording:  # to wait, and to give memory back, would end the recording
                self.empty_cache(index)
        try:
            return self._within_limit(index, room)
        except OutOfDeviceMemory:
            self.of(index).ooms += 1
            raise OutOfMemoryError(self._explained(index, nbytes)) from None

    def _within_limit(self, index: int, room: int) -> int:
        limit = self.limits.get(index)
        if limit is not None and self.of(index).reserved_now + room > limit:
            raise OutOfDeviceMemory(f"{limit} bytes are allowed")
        return self.driver.allocate(index, room)

    def _explained(self, index: int, nbytes: int) -> str:
        free, total = self.driver.memory_info(index)
        known = self.of(index)
        allowed = f" {in_units(self.limits[index])} allowed;" if index in self.limits else ""
        segments = self.snapshot(index)
        rooms = sorted((one["allocated_size"] for one in segments if one["allocated_size"]), reverse=True)
        largest = f" (the largest {', '.join(map(in_units, rooms[:3]))})" if rooms else ""
        graphs = sum(one["total_size"] for one in segments if one["private"] and not one["active_size"])
        cached = known.reserved_now - known.allocated_now - graphs
        left = [f"{in_units(graphs)} belong to graphs"] if graphs else []
        left.append(
            f"{in_units(cached)} are in the cache, which is not emptied while a graph is recorded"
            if cached
            else "nothing is left in the cache"
        )
        return (
            f"CUDA out of memory. Tried to allocate {in_units(nbytes)}. GPU {index} has a total capacity of "
            f"{in_units(total)} of which {in_units(free)} is free.{allowed} {known.tensors} tensors "
            f"hold {in_units(known.allocated_now)}{largest}; {'; '.join(left)}. Delete what is not needed any longer "
            "(what backward will read is kept), or compute in smaller pieces"
        )

    def empty_cache(self, index: int | None = None) -> None:
        """Gives what no tensor and no graph holds back to the driver: of one device, or of all."""
        with self.lock:
            for one in self.waiting:
                for event in one.events:
                    self.driver.wait_for(event)
            self._take_back()
            for pool in self.shared.values():
                if index is None or pool.device == index:
                    self._release(pool)

    def _release(self, pool: Pool) -> None:
        for room, shelf in pool.shelves.items():
            while room and shelf.free:
                address = shelf.free.pop()
                self.driver.free(pool.device, address)
                del self.segments[address]
                pool.statistics.reserve(-room)

    # Memory of graphs: Note [Pools] -------------------------------------------------------------------------------

    def join(self, handle: Any) -> PrivatePools:
        """The graphs' memory of that name, with one user more."""
        with self.lock:
            found = self.private.setdefault(handle, PrivatePools(self))
            found.users += 1
        return found

    def leave(self, handle: Any) -> None:
        """One user less. Memory without users is everybody's; what lies in it follows when it goes."""
        with self.lock:
            known = self.private[handle]
            known.users -= 1
            if not known.users:
                del self.private[handle]
                self._give_up(known)

    def redirect(self, index: int, stream: int, private: PrivatePools) -> None:
        """Has what is made on a stream lie in that memory from here on."""
        with self.lock:
            self._new_pool(index, stream)  # which takes over what the graphs leave
            self.pools[index, stream] = private.of(index, stream)

    def restore(self, private: PrivatePools) -> None:
        """Has it lie in everybody's again, on all streams that went there."""
        with self.lock:
            for where in private.pools:
                self.pools[where] = self.shared[where]

    def follow(self, index: int, stream: int, other: int) -> None:
        """Has what is made on a stream lie where it lies on another one, which it has joined in a recording."""
        owner = self.pools[index, other].owner if (index, other) in self.pools else None
        if owner is not None:
            self.redirect(index, stream, owner)

    def settle(self) -> None:
        """Keeps what went while a graph was recorded, and other streams had used."""
        with self.lock:
            deferred, self.deferred = self.deferred, []
            for segment, streams in deferred:
                self._watch(segment, streams)

    def _give_up(self, private: PrivatePools) -> None:
        for where, pool in private.pools.items():
            common = self.shared[where]
            for room, shelf in pool.shelves.items():
                free = common.shelf(room).free
                free.extend(shelf.free)
                shelf.free = free  # where its blocks, which are still held, will go
            pool.owner = None
            for segment in self.segments.values():
                if segment.pool is pool:
                    segment.pool = common

    def held(self, private: PrivatePools) -> frozenset[int]:
        """The addresses of graphs' memory that somebody holds."""
        with self.lock:
            free = {one for pool in private.pools.values() for shelf in pool.shelves.values() for one in shelf.free}
            return frozenset(
                one.address for one in self.segments.values() if one.pool.owner is private and one.address not in free
            )

    def claim(self, private: PrivatePools, address: int, nbytes: int) -> Block:
        """A block at an address of graphs' memory that nobody holds: what a replay leaves there has an owner again.

        Errors: RuntimeError where it is held, or is none of theirs.
        """
        with self.lock:
            segment = self.segments.get(address)
            if segment is None or segment.pool.owner is not private:
                raise RuntimeError(f"{address:#x} is no memory of these graphs")
            pool, room = segment.pool, segment.room
            free = pool.shelf(room).free
            if address not in free:
                raise RuntimeError(f"{address:#x}, {nbytes} bytes of graphs' memory, is held already")
            free.remove(address)
            free.append(address)  # the next one to be handed out
            return self.allocate(nbytes, device("cuda", pool.device), pool)

    # What is there ------------------------------------------------------------------------------------------------

    def snapshot(self, index: int | None = None) -> list[dict[str, Any]]:
        """A record for each segment: PyTorch's `memory_snapshot`, of which a block here is always a whole segment."""
        with self.lock:
            free = {one for segment in self.segments.values() for one in segment.pool.shelf(segment.room).free}
            waiting = {one.segment.address for one in self.waiting}
            found = []
            for segment in sorted(self.segments.values(), key=lambda one: one.address):
                if index is not None and segment.pool.device != index:
                    continue
                state = "inactive" if segment.address in free else "active_allocated"
                if segment.address in waiting:
                    state = "active_awaiting_free"
                held = segment.room if state == "active_allocated" else 0
                found.append(
                    {
                        "device": segment.pool.device,
                        "address": segment.address,
                        "total_size": segment.room,
                        "allocated_size": held,
                        "active_size": 0 if state == "inactive" else segment.room,
                        "stream": segment.pool.stream,
                        "segment_type": "small" if segment.room <= LIMIT else "large",
                        "private": segment.pool.owner is not None,
                        "blocks": [{"address": segment.address, "size": segment.room, "state": state}],
                    }
                )
        return found
