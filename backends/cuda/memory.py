"""The caching allocator: blocks of the devices' memory that are handed out again and again.

Asking a driver for memory waits for the device; so a block that a storage gives back is kept, for the next one of its
size class on the same stream. Within a stream work goes in order, so that a new tensor may lie where an old one is
still being read by kernels before it. A block that was used on other streams, too (`record_stream`), waits until these
have come as far as they were when it was given back.

Size classes: multiples of 512 bytes up to 1 MiB, multiples of 2 MiB beyond. Blocks are not split; so each is an
allocation of the driver's, and the simulator sees where it ends.

Where the driver has no memory left, all blocks that nobody holds go back to it, and it is asked again; what raises then
says how much is held, and how.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from redispatch.dispatch import OutOfMemoryError
from redispatch.kernels.cuda import Driver, Memory, OutOfDeviceMemory, current_stream
from redispatch.tensor import Allocator, device, indexed

SMALL, LARGE, LIMIT = 512, 2 << 20, 1 << 20


@dataclass(slots=True, eq=False)
class Block(Memory):
    """Memory of a storage's. `nbytes` were asked for, `room` are there."""

    room: int = 0
    stream: int = 0
    used_by: set[int] = field(default_factory=set)  # other streams


def size_class(nbytes: int) -> int:
    """How many bytes are asked of the driver for so many."""
    step = SMALL if nbytes <= LIMIT else LARGE
    return -(-max(nbytes, 1) // step) * step


@dataclass
class Statistics:
    """What `memory_stats` tells of a device: bytes and blocks, now and at most."""

    now: Counter[str] = field(default_factory=Counter)
    peak: Counter[str] = field(default_factory=Counter)
    total: Counter[str] = field(default_factory=Counter)  # ever allocated

    def add(self, what: str, amount: int) -> None:
        now = self.now[what] + amount
        self.now[what] = now
        if amount > 0:
            self.total[what] += amount
            if now > self.peak[what]:
                self.peak[what] = now


class CachingAllocator(Allocator):
    """The allocator of all devices of a driver."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.lock = threading.RLock()  # a storage may go while another one is made, in the same thread
        self.free_blocks: dict[tuple[int, int, int], list[Block]] = {}  # by device, stream, room
        self.waiting: list[tuple[list[Any], Block]] = []  # blocks that other streams may still use: (events, block)
        self.statistics: dict[int, Statistics] = {}

    def of(self, index: int) -> Statistics:
        """The statistics of a device."""
        found = self.statistics.get(index)
        if found is None:
            found = self.statistics[index] = Statistics()
        return found

    # What storages ask --------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int, device: device) -> Block:
        """A block on the current stream. OutOfMemoryError where there is too little."""
        index = indexed(device).index or 0
        if not nbytes:
            return Block(0, 0, index, self.driver)
        stream, room = current_stream(index), size_class(nbytes)
        with self.lock:
            self._take_back()
            cached = self.free_blocks.get((index, stream, room))
            if cached:
                block = cached.pop()
            else:
                block = Block(self._from_driver(index, room, nbytes), nbytes, index, self.driver, room, stream)
                self.of(index).add("reserved_bytes", room)
                self.of(index).add("segment", 1)
            block.nbytes = nbytes
            self.driver.hand_out(block.address, nbytes)
            statistics = self.of(index)
            statistics.add("allocated_bytes", room)
            statistics.add("requested_bytes", nbytes)
            statistics.add("allocation", 1)
        return block

    def free(self, block: Block) -> None:
        """Keeps a block for the next one who asks for such; once other streams that used it have gone on."""
        if not block.room:
            return
        with self.lock:
            statistics = self.of(block.device)
            statistics.add("allocated_bytes", -block.room)
            statistics.add("requested_bytes", -block.nbytes)
            statistics.add("allocation", -1)
            self.driver.hand_out(block.address, 0)
            if block.used_by:
                events = []
                for stream in block.used_by:
                    event = self.driver.create_event(block.device, False)
                    self.driver.record(event, stream)
                    events.append(event)
                block.used_by.clear()
                self.waiting.append((events, block))
            else:
                self._keep(block)

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

    def _keep(self, block: Block) -> None:
        self.free_blocks.setdefault((block.device, block.stream, block.room), []).append(block)

    def _take_back(self) -> None:
        """Keeps the blocks whose events have come."""
        still = []
        for events, block in self.waiting:
            if all(map(self.driver.done, events)):
                self._keep(block)
            else:
                still.append((events, block))
        self.waiting = still

    def _from_driver(self, index: int, room: int, nbytes: int) -> int:
        try:
            return self.driver.allocate(index, room)
        except OutOfDeviceMemory:
            self.of(index).total["alloc_retries"] += 1
            self.empty_cache(index)
        try:
            return self.driver.allocate(index, room)
        except OutOfDeviceMemory:
            self.of(index).total["ooms"] += 1
            raise OutOfMemoryError(self._explained(index, nbytes)) from None

    def _explained(self, index: int, nbytes: int) -> str:
        free, total = self.driver.memory_info(index)
        now = self.of(index).now
        return (
            f"CUDA out of memory. Tried to allocate {in_units(nbytes)}. GPU {index} has a total capacity of "
            f"{in_units(total)} of which {in_units(free)} is free. {now['allocation']} tensors hold "
            f"{in_units(now['allocated_bytes'])}; nothing is left in the cache. Delete what is not needed any longer "
            "(graphs keep what backward will read), or compute in smaller pieces"
        )

    def empty_cache(self, index: int | None = None) -> None:
        """Gives the blocks that no tensor holds back to the driver: of one device, or of all."""
        with self.lock:
            for events, _ in self.waiting:
                for event in events:
                    self.driver.wait_for(event)
            self._take_back()
            for (where, _, room), blocks in self.free_blocks.items():
                if index is None or where == index:
                    while blocks:
                        self.driver.free(where, blocks.pop().address)
                        self.of(where).add("reserved_bytes", -room)
                        self.of(where).add("segment", -1)

    def reset_peak(self, index: int) -> None:
        """Has the peaks be what there is now."""
        self.of(index).peak = Counter(self.of(index).now)

    def stats(self, index: int) -> dict[str, int]:
        """The statistics under the names of PyTorch's `memory_stats`."""
        known, found = self.of(index), {}
        for what in ("allocated_bytes", "reserved_bytes", "requested_bytes", "allocation", "segment"):
            freed = known.total[what] - known.now[what]
            numbers = {
                "current": known.now[what],
                "peak": known.peak[what],
                "allocated": known.total[what],
                "freed": freed,
            }
            found.update({f"{what}.all.{name}": number for name, number in numbers.items()})
        return {**found, "num_alloc_retries": known.total["alloc_retries"], "num_ooms": known.total["ooms"]}


def in_units(nbytes: int) -> str:
    """Bytes as PyTorch's messages have them."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} bytes"
