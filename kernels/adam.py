"""One step of Adam: a parameter and its running means, in one pass over the memory.

Arrays are dense and in the same order. optim/adam.py has the formula. Read next: `random.py`.
"""

import math
from functools import cache

import numpy as np

from .compile import Entry, Kernel
from .convert import array_type, load, real_type, store

uint64 = np.uint64


def load_one(x):
    return x


def store_one(x):
    return x


def adam_loop(
    lo, hi, decoupled, amsgrad, sign, decay, new1, keep2, new2, size, root, eps,
    p, p_at, g, g_at, m, m_at, v, v_at, top, top_at,
):  # fmt: skip
    """m += new1 (g - m), v = keep2 v + new2 g², p -= size m / (sqrt(v) / root + eps), elements lo <= i < hi.

    sign:  -1 to go uphill
    decay: what p is multiplied by, if `decoupled`; else the share of p that is added to g
    top:   the largest v so far, which counts in its place if `amsgrad`
    """
    for i in range(lo, hi):
        x = load_one(p[uint64(p_at + i)])
        grad = sign * load_one(g[uint64(g_at + i)])
        if decoupled:
            x = x * decay
        else:
            grad = grad + decay * x
        mean = load_one(m[uint64(m_at + i)])
        mean = mean + new1 * (grad - mean)
        square = keep2 * load_one(v[uint64(v_at + i)]) + new2 * grad * grad
        m[uint64(m_at + i)] = store_one(mean)
        v[uint64(v_at + i)] = store_one(square)
        if amsgrad:
            square = max(load_one(top[uint64(top_at + i)]), square)
            top[uint64(top_at + i)] = store_one(square)
        p[uint64(p_at + i)] = store_one(x - size * mean / (math.sqrt(square) / root + eps))


@cache
def adam(dtype: str) -> Entry:
    """`f(lo, hi, decoupled, amsgrad, sign, decay, new1, keep2, new2, size, root, eps, p, p_at, g, g_at, m, m_at, v,
    v_at, top, top_at)`, for tensors of this dtype."""
    real, array = real_type(dtype), array_type(dtype)
    assert real is not None
    kernel = Kernel(adam_loop, given={"load_one": load(dtype), "store_one": store(dtype)}, real=real)
    return kernel.entry("int64", "int64", "int64", "int64", *[real] * 8, *(array, "int64") * 5)
