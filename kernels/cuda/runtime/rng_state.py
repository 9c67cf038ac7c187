"""A generator's numbers while a graph is recorded, and when it is replayed.

A launch that is recorded runs again and again; what it is told then is what it was told when it was recorded, which
cannot be seed and offset. They lie in the device's memory, at an address that belongs to the graph: `CapturedSeed`.
Random kernels in a graph are told that address, and by how much the offset goes on; the offset's highest bit says so
(`seed_from`). What the recording draws is counted; a replay takes as many numbers from the generator as that, and has a
launch write down where they begin, so that replays which wait for their turn do not see those of later ones. So replays
draw what the program would draw without a graph. Read next: graphs.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.engine.primitives import FROM_MEMORY, offset_from, seed_from

from .. import STREAMS, current_stream
from ..templates import Written
from .memory import Block
from .operands import address_of, allocator

int64, uint64 = np.int64, np.uint64


def seeds(seed_out, offset_out, seed, offset):
    """Writes both, as they are told or from where they lie in memory."""
    seed_out[0] = int64(seed_from(uint64(seed), uint64(offset)))
    offset_out[0] = int64(offset_from(uint64(seed), uint64(offset)))


WRITING = Written(seeds, ("seed_out", "offset_out")).launch("int64", ("int64",) * 2, 1, 1)


def signed(number: int) -> int:
    """The 64 bits of a number as int64 has them."""
    return number - (1 << 64) if number >> 63 else number


class CapturedSeed:
    """The place of one generator's seed and offset for a graph's kernels, and the number of blocks that they use."""

    def __init__(self, generator: Any) -> None:
        self.generator, self.used = generator, 0
        self.block: Block | None = None  # as long as nothing was drawn

    def take(self, count: int) -> tuple[int, int]:
        """In the place of seed and offset, for so many blocks."""
        if self.block is None:
            self.block = beside_graphs(self.generator.device)
        before = self.used
        self.used += count
        return self.block.address, FROM_MEMORY | before

    def begin(self, stream: int) -> None:
        """Before a replay: takes its numbers from the generator, and has the stream write down where they are."""
        if self.block is not None:
            at = self.block.address
            seed, offset = self.generator.take(self.used)
            self.block.used_by = {*(self.block.used_by or ()), stream}
            start((at, at + 8), seed, offset, stream)


def beside_graphs(on: Any) -> Block:
    """Memory for seed and offset, of the default stream's: what else a graph has may be another graph's, too."""
    index = on.index or 0
    token = STREAMS.set({**STREAMS.get(), index: -index})
    try:
        return allocator().allocate(16, on)
    finally:
        STREAMS.reset(token)


def start(outs: tuple[int, int], seed: int, offset: int, stream: int) -> None:
    driver = allocator().driver
    driver.launch(WRITING.kernel.on(driver), WRITING.grid, WRITING.block, (*outs, signed(seed), signed(offset)), stream)


def write_seed(to_seed: Tensor, to_offset: Tensor, seed: int, offset: int) -> None:
    """Puts what `drawn` gave into two tensors on a device."""
    outs = address_of(to_seed), address_of(to_offset)
    start(outs, seed, offset, current_stream(to_seed._device.index or 0))
