"""One step of Adam: a parameter and its running means, in one pass over the memory.

Arrays are dense and in the same order. frontend/optim/adam.py has the formula. Read next: `random.py`.
"""

import math
from functools import cache

import numpy as np

from ..engine.compile import Entry, Kernel
from ..engine.convert import array_type, load, real_type, store
from ..engine.elementwise import Elementwise

uint64 = np.uint64


def load_one(x):
    return x


def store_one(x):
    return x


def moments(x, grad, mean, square, decoupled, sign, decay, new1, keep2, new2):
    """The parameter, decayed if that is `decoupled`, and the two running means."""
    grad = sign * grad
    if decoupled:
        x = x * decay
    else:
        grad = grad + decay * x
    return x, mean + new1 * (grad - mean), keep2 * square + new2 * grad * grad


def moved(x, mean, square, size, root, eps):
    """The parameter after the step."""
    return x - size * mean / (math.sqrt(square) / root + eps)


def adam_element(x, grad, mean, square, decoupled, sign, decay, new1, keep2, new2, size, root, eps):
    """(p, m, v): the loop below for machines that have one thread for each element."""
    x, mean, square = moments(x, grad, mean, square, decoupled, sign, decay, new1, keep2, new2)
    return moved(x, mean, square, size, root, eps), mean, square


def amsgrad_element(x, grad, mean, square, top, decoupled, sign, decay, new1, keep2, new2, size, root, eps):
    """(p, m, v, top)"""
    x, mean, square = moments(x, grad, mean, square, decoupled, sign, decay, new1, keep2, new2)
    top = max(top, square)
    return moved(x, mean, top, size, root, eps), mean, square, top


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
        x, grad = load_one(p[uint64(p_at + i)]), load_one(g[uint64(g_at + i)])
        mean, square = load_one(m[uint64(m_at + i)]), load_one(v[uint64(v_at + i)])
        x, mean, square = moments(x, grad, mean, square, decoupled, sign, decay, new1, keep2, new2)
        m[uint64(m_at + i)] = store_one(mean)
        v[uint64(v_at + i)] = store_one(square)
        if amsgrad:
            square = max(load_one(top[uint64(top_at + i)]), square)
            top[uint64(top_at + i)] = store_one(square)
        p[uint64(p_at + i)] = store_one(moved(x, mean, square, size, root, eps))


ADAM = Elementwise("adam", adam_element, outputs=3)
AMSGRAD = Elementwise("amsgrad", amsgrad_element, outputs=4)


@cache
def adam(dtype: str) -> Entry:
    """`f(lo, hi, decoupled, amsgrad, sign, decay, new1, keep2, new2, size, root, eps, p, p_at, g, g_at, m, m_at, v,
    v_at, top, top_at)`, for tensors of this dtype."""
    real, array = real_type(dtype), array_type(dtype)
    assert real is not None
    kernel = Kernel(adam_loop, given={"load_one": load(dtype), "store_one": store(dtype)}, real=real)
    return kernel.entry("int64", "int64", "int64", "int64", *[real] * 8, *(array, "int64") * 5)
