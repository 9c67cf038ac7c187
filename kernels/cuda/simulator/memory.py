"""The simulated GPU's memory: the device's, that which a block's lanes share, and each lane's own.

The device's is one arena, and beside each of its bytes a shadow byte that says what may be done with it:

    OUTSIDE    belongs to no allocation: reading and writing are errors
    FREED      did belong to one
    FRESH      was never written: reading is an error
    WRITTEN

Between allocations lie gaps, so that what runs over the end of one does not land in the next. An address is that of
the arena plus an offset, and looks like one of a GPU; it never is one of this process, which no kernel can harm.

Note [Races]
Lanes of one warp go in step here, those of different warps do not on a GPU. So two warps of a block may not touch the
same byte of shared memory between two barriers, if one of them writes: it would depend on which comes first. Each byte
remembers the warp that last wrote it and the one that last read it, and the number of barriers that the block had
passed then, its *epoch*. An access in the same epoch by another warp is a race: a barrier is missing. Atomic accesses
race with all but each other. Read next: `arithmetic.py`.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass

import numpy as np

OUTSIDE, FREED, FRESH, WRITTEN = 0, 1, 2, 3
STATE = {OUTSIDE: "out of bounds", FREED: "after it was freed", FRESH: "of memory that was never written"}

BASE = 0x7F0000000000
GAP = 512  # bytes between allocations, and their alignment
SHARED, LOCAL, WINDOW = 0x1000000, 0x2000000, 0x1000000  # where a block's and a lane's own memory begin, and their size

UNSIGNED: dict[int, np.dtype] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}


class Fault(Exception):
    """A wrong access: what, and by which of the lanes that took part (an index into the given addresses)."""

    def __init__(self, message: str, which: int) -> None:
        self.which = which
        super().__init__(message)


@dataclass(slots=True)
class Allocation:
    """A stretch of the arena that was asked for. `name` is what errors call it."""

    address: int
    nbytes: int
    name: str
    live: bool = True


class Arena:
    """Global memory. `capacity` bytes; the operating system gives pages only where something is written."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        room = -(-capacity // GAP) * GAP * 2 + GAP
        self.bytes = np.zeros(room, np.uint8)
        self.shadow = np.zeros(room, np.uint8)
        self.typed = {size: self.bytes.view(kind) for size, kind in UNSIGNED.items()}
        self.top, self.used = GAP, 0
        self.strict = True  # whether lanes may not read what was never written
        self.allocations: dict[int, Allocation] = {}
        self._addresses: list[int] = []
        self._free: dict[int, list[int]] = {}  # by room: addresses to be used again, the oldest first

    def allocate(self, nbytes: int, name: str = "") -> int:
        """An address of so many bytes. MemoryError where there is no room."""
        room = -(-max(nbytes, 1) // GAP) * GAP
        if self.used + room > self.capacity:
            raise MemoryError(f"{nbytes} bytes asked for, {self.capacity - self.used} of {self.capacity} are free")
        waiting = self._free.get(room)
        if self.top + room + GAP <= len(self.bytes):  # a new place as long as there is any: the old ones stay freed
            address = BASE + self.top
            self.top += room + GAP
            bisect.insort(self._addresses, address)
        elif waiting:
            address = waiting.pop(0)
        else:
            raise MemoryError(f"{nbytes} bytes asked for, but the memory is in pieces")
        self.used += room
        self.allocations[address] = Allocation(address, nbytes, name or f"an allocation of {nbytes} bytes")
        self.mark(address, nbytes)
        return address

    def mark(self, address: int, nbytes: int, state: int = FRESH) -> None:
        """Says that the first bytes of an allocation are in use, as if just allocated, and the others are not."""
        start = address - BASE
        whole = self.allocations[address]
        self.shadow[start : start + -(-max(whole.nbytes, 1) // GAP) * GAP] = OUTSIDE
        self.shadow[start : start + nbytes] = state

    def free(self, address: int) -> None:
        """Takes an allocation back. RuntimeError for what is none."""
        known = self.allocations.get(address)
        if known is None or not known.live:
            raise RuntimeError(f"{address:#x} was freed, but it is no live allocation")
        known.live = False
        room = -(-max(known.nbytes, 1) // GAP) * GAP
        self.shadow[address - BASE : address - BASE + known.nbytes] = FREED
        self.used -= room
        self._free.setdefault(room, []).append(address)

    def read(self, address: int, nbytes: int) -> np.ndarray:
        """A copy of bytes, for the host, which may read what was never written."""
        return self.bytes[self._checked(address, nbytes)].copy()

    def write(self, address: int, data: np.ndarray) -> None:
        where = self._checked(address, len(data))
        self.bytes[where], self.shadow[where] = data, WRITTEN

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        where = self._checked(address, nbytes)
        self.bytes[where], self.shadow[where] = byte, WRITTEN

    def move(self, to: int, source: int, nbytes: int) -> None:
        """Copies bytes within the memory; what was never written stays so."""
        a, b = self._checked(to, nbytes), self._checked(source, nbytes)
        self.bytes[a], self.shadow[a] = self.bytes[b].copy(), self.shadow[b].copy()

    def _checked(self, address: int, nbytes: int) -> slice:
        start = address - BASE
        if nbytes and (start < 0 or start + nbytes > len(self.shadow) or self.shadow[start : start + nbytes].min() < 2):
            raise RuntimeError(f"a copy of {nbytes} bytes at {address:#x} goes out of bounds: {self.describe(address)}")
        return slice(start, start + nbytes)

    # What lanes do ----------------------------------------------------------------------------------------------

    def load(self, addresses: np.ndarray, size: int, count: int) -> list[np.ndarray]:
        """`count` values of `size` bytes from each address, as unsigned integers."""
        first = self._places(addresses, size, count, "read")
        for k in range(count):
            where = first + k
            states = self.shadow[where * size] if size == 1 else self.shadow.view(UNSIGNED[size])[where]
            self._check_written(states, size, addresses, k)
        return [self.typed[size][first + k] for k in range(count)]

    def store(self, addresses: np.ndarray, size: int, values: list[np.ndarray]) -> None:
        first = self._places(addresses, size, len(values), "write")
        written = self.shadow.view(UNSIGNED[size])
        for k, value in enumerate(values):
            self.typed[size][first + k] = value
            written[first + k] = ALL_WRITTEN[size]

    def _places(self, addresses: np.ndarray, size: int, count: int, verb: str) -> np.ndarray:
        """The values' places in the typed arena; a fault for an address that is misaligned or outside."""
        whole = size * count
        misaligned = addresses % np.uint64(whole) != 0
        if misaligned.any():
            which = int(misaligned.argmax())
            raise Fault(f"a misaligned {verb} of {whole} bytes, which must lie at a multiple of {whole}", which)
        offsets = (addresses - np.uint64(BASE)).astype(np.int64)
        outside = (offsets < 0) | (offsets > len(self.bytes) - whole)
        if not outside.any():
            states = self.shadow[offsets]
            for k in range(size, whole, size):
                np.minimum(states, self.shadow[offsets + k], out=states)
            if size > 1:
                np.minimum(states, self.shadow[offsets + (whole - 1)], out=states)
            outside = states < FRESH
            if not outside.any():
                return offsets // size
        which = int(outside.argmax())
        state = STATE[OUTSIDE]
        if 0 <= offsets[which] < len(self.shadow) and self.shadow[offsets[which]] == FREED:
            state = STATE[FREED]
        raise Fault(f"a {verb} of {whole} bytes {state}", which)

    def _check_written(self, states: np.ndarray, size: int, addresses: np.ndarray, k: int) -> None:
        fresh = states != ALL_WRITTEN[size]
        if self.strict and fresh.any():
            raise Fault(f"a read of {size} bytes {STATE[FRESH]}", int(fresh.argmax()))

    def describe(self, address: int) -> str:
        """Names the allocation that an address belongs to, or lies next to."""
        at = bisect.bisect_right(self._addresses, address) - 1
        if at < 0:
            return (
                f"{address:#x} lies in front of all allocations"
                if address >= 4096
                else f"{address:#x} is a null pointer"
            )
        near = self.allocations[self._addresses[at]]
        past = address - near.address
        ended = "" if near.live else ", which was freed"
        where = f"byte {past} of" if past < near.nbytes else f"{past - near.nbytes} bytes behind the end of"
        return f"{address:#x} is {where} {near.name} at {near.address:#x}{ended}"


ALL_WRITTEN = {size: UNSIGNED[size].type(int.from_bytes(bytes([WRITTEN]) * size, "little")) for size in UNSIGNED}


NOBODY, SEVERAL = -1, -2


class OwnMemory:
    """One stretch of `nbytes` for each owner (a block, or a lane), `base` being what addresses count from."""

    def __init__(self, owners: int, nbytes: int, base: int, what: str) -> None:
        self.nbytes, self.base, self.what = nbytes, base, what
        self.room = -(-max(nbytes, 8) // 16) * 16
        self.bytes = np.zeros(owners * self.room, np.uint8)
        self.written = np.zeros(owners * self.room, bool)
        self.typed = {size: self.bytes.view(kind) for size, kind in UNSIGNED.items()}

    def places(self, addresses: np.ndarray, owners: np.ndarray, size: int, count: int, verb: str) -> np.ndarray:
        """The offsets of the first bytes; a fault for what is misaligned or outside."""
        whole = size * count
        offsets = (addresses - np.uint64(self.base)).astype(np.int64)
        wrong = offsets % whole != 0
        if wrong.any():
            raise Fault(f"a misaligned {verb} of {whole} bytes in {self.what} memory", int(wrong.argmax()))
        wrong = (offsets < 0) | (offsets + whole > self.nbytes)
        if wrong.any():
            which = int(wrong.argmax())
            raise Fault(
                f"a {verb} of {whole} bytes out of bounds of {self.what} memory: at byte {offsets[which]} of "
                f"{self.nbytes}",
                which,
            )
        return owners * self.room + offsets

    def load(self, places: np.ndarray, size: int, count: int) -> list[np.ndarray]:
        fresh = ~self.written[places]
        for k in range(1, size * count):
            fresh |= ~self.written[places + k]
        if fresh.any():
            raise Fault(f"a read of {self.what} memory that was never written", int(fresh.argmax()))
        first = places // size
        return [self.typed[size][first + k] for k in range(count)]

    def store(self, places: np.ndarray, size: int, values: list[np.ndarray]) -> None:
        first = places // size
        for k, value in enumerate(values):
            self.typed[size][first + k] = value
        for k in range(size * len(values)):
            self.written[places + k] = True


class Races:
    """The thread that touched each byte of the blocks' shared memory last, and in which epoch."""

    def __init__(self, nbytes: int) -> None:
        self.writer, self.reader = np.full(nbytes, NOBODY, np.int32), np.full(nbytes, NOBODY, np.int32)
        self.write_epoch, self.read_epoch = np.full(nbytes, -1, np.int32), np.full(nbytes, -1, np.int32)
        self.changer, self.change_epoch = np.full(nbytes, NOBODY, np.int32), np.full(nbytes, -1, np.int32)

    def read(self, places: np.ndarray, nbytes: int, warps: np.ndarray, epochs: np.ndarray) -> None:
        for k in range(nbytes):
            at = places + k
            self._refuse(
                (self.write_epoch[at] == epochs) & (self.writer[at] != warps), "reads what", "wrote", at, warps
            )
            self._refuse_changed("reads what", at, warps, epochs)
            mixed = (self.read_epoch[at] == epochs) & (self.reader[at] != warps)
            self.reader[at] = np.where(mixed, SEVERAL, warps)
            self.read_epoch[at] = epochs
            self.reader[at[self.reader[at] != np.where(mixed, SEVERAL, warps)]] = SEVERAL  # two warps at once

    def write(self, places: np.ndarray, nbytes: int, warps: np.ndarray, epochs: np.ndarray) -> None:
        for k in range(nbytes):
            at = places + k
            self._refuse(
                (self.write_epoch[at] == epochs) & (self.writer[at] != warps), "writes what", "wrote", at, warps
            )
            self._refuse((self.read_epoch[at] == epochs) & (self.reader[at] != warps), "writes what", "read", at, warps)
            self._refuse_changed("writes what", at, warps, epochs)
            self.writer[at], self.write_epoch[at] = warps, epochs
            self._refuse(self.writer[at] != warps, "writes what", "wrote", at, warps)

    def change(self, places: np.ndarray, nbytes: int, warps: np.ndarray, epochs: np.ndarray) -> None:
        """An atomic access of one lane."""
        for k in range(nbytes):
            at = places + k
            for who, epoch, did in ((self.writer, self.write_epoch, "wrote"), (self.reader, self.read_epoch, "read")):
                self._refuse((epoch[at] == epochs) & (who[at] != warps), "changes what", did, at, warps)
            mixed = (self.change_epoch[at] == epochs) & (self.changer[at] != warps)
            self.changer[at], self.change_epoch[at] = np.where(mixed, SEVERAL, warps), epochs

    def _refuse_changed(self, does: str, at: np.ndarray, warps: np.ndarray, epochs: np.ndarray) -> None:
        self._refuse((self.change_epoch[at] == epochs) & (self.changer[at] != warps), does, "changed", at, warps)

    def _refuse(self, wrong: np.ndarray, does: str, did: str, at: np.ndarray, warps: np.ndarray) -> None:
        if wrong.any():
            which = int(wrong.argmax())
            raise Fault(
                f"a race in shared memory: warp {warps[which]} {does} another warp {did}, and no barrier lies between",
                which,
            )
