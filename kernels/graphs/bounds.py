"""Whether indices are within an array: a loop that says which one is not, for a routine that then ends."""

from __future__ import annotations

import numpy as np

from redispatch.dispatch.tensor.geometry import coalesce
from redispatch.dispatch.tensor.operand import Operand

from ..engine.elementwise import offset_of
from ..engine.template import Template

uint64, int64 = np.uint64, np.int64


def bounds_loop(lo, hi, sizes, steps, index, index_at, size, number, status):
    """status = (number, index) for the last of the indices lo <= i < hi that is none of an array of this size."""
    for i in range(lo, hi):
        value = int64(index[uint64(index_at + offset_of(i, len(sizes), sizes, steps, 0))])
        if value < 0 or value >= size:
            status[uint64(0)] = number
            status[uint64(1)] = value


BOUNDS = Template(bounds_loop, "int64[] sizes steps status", "index[] index")


def indices_of(positions: Operand) -> Operand:
    """The indices, each once: without dimensions along which they are repeated."""
    kept = [d for d, (n, step) in enumerate(zip(positions.shape, positions.strides, strict=True)) if n > 1 and step]
    sizes, (steps,) = coalesce([positions.shape[d] for d in kept], [[positions.strides[d] for d in kept]])
    return positions._replace(shape=tuple(sizes), strides=tuple(steps))
