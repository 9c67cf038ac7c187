"""A generator's numbers while a graph is recorded, and when it is replayed.

`CapturedSeed` stands for the seed that a recording cannot know: two numbers in the device's memory, which belong to the
graph. What the recording draws is counted; a replay takes as many from the generator as then is, and writes down where
they begin. So replays draw what the program would draw without a graph. Read next: graphs.py.
"""

from __future__ import annotations

from typing import Any

from redispatch.kernels.cuda import current_stream
from redispatch.kernels.cuda.seeds import writing
from redispatch.tensor import Tensor

from .memory import Block
from .operands import address_of, allocator

WRITING = writing()


def signed(number: int) -> int:
    """The 64 bits of a number as int64 has them."""
    return number - (1 << 64) if number >> 63 else number


class CapturedSeed:
    """Where a graph's kernels find the seed and the offset of one generator, and how many blocks they use."""

    def __init__(self, generator: Any, device: Any) -> None:
        self.generator, self.device, self.used = generator, device, 0
        self.block: Block = allocator().allocate(16, device)

    def take(self, count: int) -> tuple[CapturedSeed, int]:
        """In the place of (seed, offset): this, and by how much the offset goes on."""
        before = self.used
        self.used += count
        return self, before

    def begin(self, stream: int) -> None:
        """Before a replay: takes its numbers from the generator, and has the stream write down where they are."""
        if self.used:
            seed, offset = self.generator.take(self.used)
            at = self.block.address
            start((at, at + 8, at, signed(seed), signed(offset), 0), stream)


def start(arguments: tuple[int, ...], stream: int) -> None:
    driver = allocator().driver
    driver.launch(WRITING.kernel.on(driver), WRITING.grid, WRITING.block, arguments, stream)


def write_seed(to_seed: Tensor, to_offset: Tensor, seed: Any, offset: int) -> None:
    """Puts what `drawn` gave into two tensors on a device."""
    outs = address_of(to_seed), address_of(to_offset)
    stream = current_stream(to_seed._device.index or 0)
    if isinstance(seed, CapturedSeed):
        start((*outs, seed.block.address, 0, offset, 1), stream)
    else:
        start((*outs, outs[0], signed(seed), signed(offset), 0), stream)
