"""Seed and offset of random numbers, where kernels read them from a device's memory.

A launch that is recorded runs again and again; what it is told then is what it was told when it was recorded. So random
kernels in a graph are not told seed and offset, but an address where they lie, and by how much the offset goes on.
Before each replay they are written there, by a launch, so that replays which wait for their turn do not see those of
later ones. Read next: `../../backends/cuda/seeds.py`.
"""

from __future__ import annotations

from .launch import Launch
from .written import Written


def seeds(seed_out, offset_out, state, seed, offset, from_memory):
    """Writes both: as they are given, or those of the two numbers at `state`, the offset moved on."""
    if from_memory == 1:
        seed_out[0] = state[0]
        offset_out[0] = state[1] + offset
    else:
        seed_out[0] = seed
        offset_out[0] = offset


WRITTEN = Written(seeds, ("seed_out", "offset_out", "state"))


def writing() -> Launch:
    """Told the addresses of two int64 and of a state, then seed, offset, and whether these are to be read."""
    return Launch(WRITTEN.kernel("int64", ("int64",) * 3), (1, 1, 1), (1, 1, 1))
