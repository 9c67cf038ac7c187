"""An operator of our own, in four registrations: what it computes, its metadata, its derivative, its cost.

`swish(x) = x * sigmoid(x)` is a smooth relative of relu. A decorator makes an operator of a Python function, here one
around a numba loop; from then on it is an operator like any other: modes see it, subclasses pass through it, autocast
casts for it, autograd differentiates it.

Source: P. Ramachandran, B. Zoph and Q. V. Le, "Searching for Activation Functions", 2017; tests/demo compares it with
its definition and its derivative with differences.
Read next: model.py.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

import redispatch as rd
from redispatch.library import custom_op
from redispatch.modes.flop_counter import register_flop_formula


@numba.njit(nogil=True)
def swish_loop(x: np.ndarray, out: np.ndarray) -> None:
    """out[i] = x[i] / (1 + exp(-x[i])), over flat arrays: one pass where the definition would take three."""
    for i in range(x.size):
        out[i] = x[i] / (1 + math.exp(-x[i]))


@custom_op("demo::swish", mutates_args=())
def swish(x: rd.Tensor) -> rd.Tensor:
    """x * sigmoid(x), elementwise.

    Shapes: any; the result is contiguous, with the shape of `x`. Dtypes: float32, float64.
    """
    flat = np.ascontiguousarray(x.detach().numpy()).reshape(-1)
    out = np.empty_like(flat)
    swish_loop(flat, out)
    return rd.from_numpy(out.reshape(x.shape))


@swish.register_fake
def swish_fake(x: rd.Tensor) -> rd.Tensor:
    """What the result looks like, for tensors without data."""
    return rd.empty(x.shape, dtype=x.dtype, device=x.device)


@swish.register_kernel("cuda")
def swish_on_cuda(x: rd.Tensor) -> rd.Tensor:
    """The definition: a numba loop does not run on a GPU."""
    return x * x.sigmoid()


def keep_input(ctx: Any, inputs: tuple[rd.Tensor], output: rd.Tensor) -> None:
    (x,) = inputs
    ctx.save_for_backward(x)


def swish_backward(ctx: Any, grad_output: rd.Tensor) -> rd.Tensor:
    """With s = sigmoid(x): swish' = s + x·s·(1 - s). Written in operators, so that it can be differentiated again."""
    (x,) = ctx.saved_tensors
    s = x.sigmoid()
    return grad_output * (s + x * s * (1 - s))


swish.register_autograd(swish_backward, setup_context=keep_input)
swish.register_autocast("cpu", rd.float32)  # the numba loop knows no bfloat16


@register_flop_formula(rd.ops.demo.swish)
def swish_flops(x_shape: tuple[int, ...], **kwargs: Any) -> int:
    """For each element: a sign, exp, an addition and a division."""
    return 4 * math.prod(x_shape)
