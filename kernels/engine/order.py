"""Which of two elements is larger, for every dtype: NaN beats all, as PyTorch has it.

A comparison with a NaN test in each step would keep a loop over floats scalar; theirs is a primitive that LLVM knows.
Read next: `kernels/cpu/reduce.py`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES

from .primitives import maximum, minimum


class Order(NamedTuple):
    """The facts on a dtype for a search for the largest element, or the smallest."""

    pick: Callable  # the better of two; of equal ones either
    beats: Callable  # whether the first of two is the better one: not when they are equal, or both NaN
    worst: np.generic  # an element that beats none


def larger(acc, x):
    return x if x > acc else acc


def smaller(acc, x):
    return x if x < acc else acc


def is_above(x, best):
    return x > best or (x != x and best == best)


def is_below(x, best):
    return x < best or (x != x and best == best)


def order(dtype: str, largest: bool) -> Order:
    """The order of loaded elements of `dtype`. There is none of complex numbers."""
    info = DTYPES[DTYPES[dtype].compute]
    beats = is_above if largest else is_below
    if info.kind == "float":
        return Order(maximum if largest else minimum, beats, info.storage.type(-np.inf if largest else np.inf))
    pick = larger if largest else smaller
    if info.kind == "bool":
        return Order(pick, beats, np.bool_(not largest))
    limits = np.iinfo(info.storage)
    return Order(pick, beats, info.storage.type(limits.min if largest else limits.max))
