"""Seed and offset of random numbers, where kernels read them from a device's memory.

A launch that is recorded runs again and again; what it is told then is what it was told when it was recorded. So random
kernels in a graph are not told seed and offset, but an address where they lie, and by how much the offset goes on; the
offset's highest bit says so (`seed_from`). Before each replay they are written there, by a launch, so that replays
which wait for their turn do not see those of later ones. Read next: `runtime/rng_state.py`.
"""

from __future__ import annotations

import numpy as np

from ..engine.primitives import offset_from, seed_from
from .launch import Launch
from .templates import Written

int64, uint64 = np.int64, np.uint64


def seeds(seed_out, offset_out, seed, offset):
    """Writes both, as they are told or from where they lie in memory."""
    seed_out[0] = int64(seed_from(uint64(seed), uint64(offset)))
    offset_out[0] = int64(offset_from(uint64(seed), uint64(offset)))


WRITTEN = Written(seeds, ("seed_out", "offset_out"))


def writing() -> Launch:
    """Told the addresses of two int64, then seed and offset."""
    return Launch(WRITTEN.kernel("int64", ("int64",) * 2), (1, 1, 1), (1, 1, 1))
