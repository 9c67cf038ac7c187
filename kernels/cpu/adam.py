"""One step of Adam: a parameter and its running means, in one pass over the memory.

Arrays are dense and in the same order. frontend/optim/adam.py has the formula. Read next: `random.py`.
"""

import math

import numpy as np

from ..engine.elementwise import Elementwise
from ..engine.template import Template, load_x, store_x

uint64 = np.uint64


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
        x, grad = load_x(p[uint64(p_at + i)]), load_x(g[uint64(g_at + i)])
        mean, square = load_x(m[uint64(m_at + i)]), load_x(v[uint64(v_at + i)])
        x, mean, square = moments(x, grad, mean, square, decoupled, sign, decay, new1, keep2, new2)
        m[uint64(m_at + i)] = store_x(mean)
        v[uint64(v_at + i)] = store_x(square)
        if amsgrad:
            square = max(load_x(top[uint64(top_at + i)]), square)
            top[uint64(top_at + i)] = store_x(square)
        p[uint64(p_at + i)] = store_x(moved(x, mean, square, size, root, eps))


ADAM = Elementwise("adam", adam_element, outputs=3)
AMSGRAD = Elementwise("amsgrad", amsgrad_element, outputs=4)


ADAM_LOOP = Template(adam_loop, "x sign decay new1 keep2 new2 size root eps", "x[] p g m v top")
