"""The memory that a block's lanes share, and the memory of each lane; who read and wrote it since the last barrier.

Lanes of one warp go in step here, those of different warps do not on a GPU. So two warps of a block may not touch the
same byte of shared memory between two barriers, if one of them writes: it would depend on which comes first. Each byte
remembers the warp that last wrote it and the one that last read it, and the number of barriers that the block had
passed then, its *epoch*. An access in the same epoch by another warp is a race: a barrier is missing. Atomic accesses
race with all but each other.
Read next: `arithmetic.py`.
"""

from __future__ import annotations

import numpy as np

from .memory import UNSIGNED, Fault

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
    """Who touched each byte of the blocks' shared memory last, and in which epoch."""

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
