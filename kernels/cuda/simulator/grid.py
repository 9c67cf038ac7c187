"""The state of a grid of blocks: its lanes' registers, their place in the program, the memory of blocks and lanes.

A register is an array with one element a lane, over all blocks of a grid, or as many as fit into a chunk.
Read next: `steps.py`, what one instruction does to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .memory import LOCAL, SHARED, WINDOW, Arena, OwnMemory, Races
from .parser import Kernel

Dim = tuple[int, int, int]
Lanes = Any  # an array of lanes' numbers, or EVERY
EVERY = slice(None)
WARP = 32


class KernelFault(RuntimeError):
    """A kernel's mistake. Fields: `kernel`, `line` (of its PTX), `block` and `thread` (x, y, z), `address`."""

    def __init__(
        self, message: str, kernel: str, line: int, block: Dim, thread: Dim, address: int | None, instruction: str
    ) -> None:
        self.kernel, self.line, self.block, self.thread, self.address = kernel, line, block, thread, address
        self.instruction = instruction
        super().__init__(
            f"CUDA simulator: {message}\n"
            f"  kernel  {kernel}\n  line    {line} of its PTX: {instruction}\n"
            f"  lane    thread {thread} of block {block}"
        )


class Grid:
    """Some blocks of a launch: the state of their lanes."""

    def __init__(
        self, kernel: Kernel, arena: Arena, addresses: dict[str, int], grid: Dim, block: Dim, first: int, blocks: int
    ):
        self.kernel, self.arena, self.addresses = kernel, arena, addresses
        self.threads = block[0] * block[1] * block[2]
        self.count = blocks * self.threads
        lane = np.arange(self.count)
        thread, number = lane % self.threads, lane // self.threads + first
        self.block_of, self.warp_of = lane // self.threads, (thread // WARP).astype(np.int32)
        self.lane_in_warp, self.first_of_warp = thread % WARP, lane - thread % WARP
        self.special = self._special_registers(thread, number, grid, block)
        self.registers: dict[str, np.ndarray] = {}
        self.epochs = np.zeros(blocks, np.int32)
        self.shared = OwnMemory(blocks, kernel.shared, SHARED, "shared")
        self.local = OwnMemory(self.count if kernel.local else 0, kernel.local, LOCAL, "local")
        self.races = Races(blocks * self.shared.room)
        self.active = lane  # the lanes that run the current instruction
        self.every = lane
        self.at = np.zeros(self.count, np.int64)  # the stretch that a lane runs next
        self.waiting = np.zeros(self.count, bool)

    def _special_registers(self, thread: Any, number: Any, grid: Dim, block: Dim) -> dict[str, Any]:
        def unsigned(value: Any) -> Any:
            return np.asarray(value).astype(np.uint32)

        found = {"%laneid": unsigned(self.lane_in_warp), "%warpid": unsigned(self.warp_of)}
        for name, index, sizes in (("tid", thread, block), ("ctaid", number, grid)):
            found[f"%{name}.x"] = unsigned(index % sizes[0])
            found[f"%{name}.y"] = unsigned(index // sizes[0] % sizes[1])
            found[f"%{name}.z"] = unsigned(index // (sizes[0] * sizes[1]))
            for axis, size in zip("xyz", sizes, strict=True):
                found[f"%n{name}.{axis}"] = unsigned(size)
        return found

    def place(self, lane: int) -> tuple[Dim, Dim]:
        """(block, thread) of a lane."""
        x, y = ([int(self.special[f"%{name}.{axis}"][lane]) for axis in "xyz"] for name in ("ctaid", "tid"))
        return (x[0], x[1], x[2]), (y[0], y[1], y[2])

    # Memory, by what an address lies in --------------------------------------------------------------------------

    def load(self, lanes: Lanes, addresses: np.ndarray, size: int, count: int) -> list[np.ndarray]:
        own, owners, is_shared = self.own_memory(addresses, lanes)
        if own is None:
            return self.arena.load(addresses, size, count)
        places = own.places(addresses, owners, size, count, "read")
        if is_shared:
            self.races.read(places, size * count, self.warp_of[lanes], self.epochs[owners])
        return own.load(places, size, count)

    def store(self, lanes: Lanes, addresses: np.ndarray, size: int, values: list[np.ndarray]) -> None:
        own, owners, is_shared = self.own_memory(addresses, lanes)
        if own is None:
            self.arena.store(addresses, size, values)
            return
        places = own.places(addresses, owners, size, len(values), "write")
        if is_shared:
            self.races.write(places, size * len(values), self.warp_of[lanes], self.epochs[owners])
        own.store(places, size, values)

    def own_memory(self, addresses: np.ndarray, lanes: Lanes) -> tuple[OwnMemory | None, Any, bool]:
        """The block's or the lane's memory, where the first address lies in one, with the owners; else None."""
        first = int(addresses[0]) if len(addresses) else 0
        if SHARED <= first < SHARED + WINDOW:
            return self.shared, self.block_of[lanes], True
        if LOCAL <= first < LOCAL + WINDOW:
            return self.local, self.every[lanes], False
        return None, None, False
