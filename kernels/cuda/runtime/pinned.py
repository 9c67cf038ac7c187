"""Pinned memory for CUDA: cached like the devices' own, since to pin a page takes longer than to copy it.

What a tensor gives back may still be read or written by copies that streams have not done yet; it is handed out again
when these have. Size classes are powers of two.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Pinned
from redispatch.kernels.cuda import Driver

SMALLEST = 512


class PinnedBlock(Pinned):
    """Pinned memory of a storage's."""

    def __init__(self, cache: PinnedCache, whole: np.ndarray, nbytes: int) -> None:
        self.cache, self.whole, self.array = cache, whole, whole[:nbytes]
        self.used: set[tuple[int, int]] = set()  # (device, stream)

    def used_on(self, device: int, stream: int) -> None:
        self.used.add((device, stream))

    def __del__(self) -> None:
        self.cache.keep(self.whole, self.used)


class PinnedCache:
    """The pinned memory of a driver."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.lock = threading.RLock()
        self.free: dict[int, list[np.ndarray]] = {}
        self.waiting: list[tuple[list[Any], np.ndarray]] = []

    def allocate(self, nbytes: int) -> PinnedBlock:
        """Memory of so many bytes, of undefined value. OutOfMemoryError where there is no more."""
        room = max(SMALLEST, 1 << (nbytes - 1).bit_length() if nbytes else 0)
        with self.lock:
            self._take_back()
            cached = self.free.get(room)
            whole = cached.pop() if cached else self.driver.allocate_pinned(room)
        return PinnedBlock(self, whole, nbytes)

    def keep(self, whole: np.ndarray, used: set[tuple[int, int]]) -> None:
        """Keeps memory for the next one, once the streams that use it have gone on."""
        events = []
        for device, stream in used:
            if self.driver.captured(stream):  # who replays the graph has to keep what it reads
                continue
            event = self.driver.create_event(device, False)
            self.driver.record(event, stream)
            events.append(event)
        with self.lock:
            self.waiting.append((events, whole))

    def _take_back(self) -> None:
        still = []
        for events, whole in self.waiting:
            if all(map(self.driver.done, events)):
                self.free.setdefault(len(whole), []).append(whole)
            else:
                still.append((events, whole))
        self.waiting = still

    def empty(self) -> None:
        """Gives what nobody holds back to the driver."""
        with self.lock:
            self._take_back()
            for blocks in self.free.values():
                while blocks:
                    self.driver.free_pinned(blocks.pop())
