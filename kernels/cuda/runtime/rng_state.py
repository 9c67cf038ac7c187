"""A generator's numbers while a graph is recorded, and when it is replayed.

A recording cannot know seed and offset. They lie in the device's memory, at an address that belongs to the graph:
`CapturedSeed`. What the recording draws is counted; a replay takes as many numbers from the generator as that, and
writes down where they begin. So replays draw what the program would draw without a graph. Read next: graphs.py.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.cuda import STREAMS, current_stream
from redispatch.kernels.cuda.rng_state import writing
from redispatch.kernels.engine.primitives import FROM_MEMORY

from .memory import Block
from .operands import address_of, allocator

WRITING = writing()


def signed(number: int) -> int:
    """The 64 bits of a number as int64 has them."""
    return number - (1 << 64) if number >> 63 else number


class CapturedSeed:
    """Where a graph's kernels find the seed and the offset of one generator, and how many blocks they use."""

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
