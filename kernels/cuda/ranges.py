"""Evenly spaced numbers on a GPU: a thread for each. Read next: `runtime/ranges.py`."""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like number, compute, store_out are put there by `Written`.

from __future__ import annotations

import numpy as np

from .compiler import CUDA as cuda
from .intrinsics import product
from .templates import THREADS, Written

int64 = np.int64


def spaced_numbers(out, n, rising, start, step, end):
    """Number i is start + i step, and from number `rising` on it is counted from the end, so that both are met."""
    i = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if i < n:
        if i < rising:
            out[i] = store_out(number(start) + times(compute(i), number(step)))
        else:
            out[i] = store_out(number(end) - times(compute(n - 1 - i), number(step)))


def product_of_integers(x, y):
    return x * y


# A sum that is fused with its product has other last bits than the CPU's.
TIMES = {"float32": product, "float64": product, "int64": product_of_integers}
SPACED = Written(spaced_numbers, ("out",))
