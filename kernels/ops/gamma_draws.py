"""_standard_gamma: gamma numbers, and how each would have moved with its shape parameter.

A draw is a function of the parameter a and of what was drawn at random; the random part stands still when the draw is
differentiated. As F(x; a), the probability of less than x, is then a constant, dx/da = -(dF/da) / (dF/dx) (Figurnov,
Mohamed, Mnih, Implicit reparameterization gradients, 2018).

Read next: frontend/distributions/gamma.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, empty
from redispatch.kernels import Elementwise, broadcast_shapes
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator
from ..declare.public import public
from ..declare.structured import not_implemented
from .creation import like
from .random import Generator, drawn, seeded

standard_gamma_op = seeded(
    "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", out="out", refuses="whole halves complex"
)


def check_precise(kernel_name: str, dtype: Any) -> None:
    if dtype not in (dtypes.float32, dtypes.float64):
        raise not_implemented(kernel_name, dtype)


@standard_gamma_op.kernel("CPU", "Meta")
def standard_gamma_kernel(self: Tensor, generator: Any) -> Tensor:
    """Returns random numbers of gamma distributions with these concentrations and the rate 1."""
    check_precise("gamma_cpu", self._dtype)
    result = like(self, None, None, False, None)
    if result._device.type != "meta":
        as_numpy(result)[...] = gamma_numbers(as_numpy(self).astype(np.float64), generator)
    return result


def gamma_numbers(a: np.ndarray, generator: Generator | None) -> np.ndarray:
    """A gamma number for each shape parameter in `a`; nan for one below 0.

    A normal number x becomes d (1 + c x)³, which is taken with the right probability and else drawn again: 1 in 20 at
    most. For a < 1 the number for a + 1 is multiplied by u^(1 / a).
    Source: Marsaglia, Tsang, A simple method for generating gamma variables, 2000.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        d = np.where(a < 1, a + 1, a) - 1 / 3
        found = np.where(a > 0, np.inf, np.where(a == 0, 0.0, np.nan))
        left = np.flatnonzero((a > 0) & (a < np.inf))
        while left.size:
            center = d.flat[left]
            x = draw(left.size, kernels.normal, generator)
            u = draw(left.size, kernels.uniform, generator)
            v = (1 + x / np.sqrt(9 * center)) ** 3
            taken = (v > 0) & (np.log1p(-u) < 0.5 * x * x + center * (1 - v + np.log(v)))
            found.flat[left[taken]] = (center * v)[taken]
            left = left[~taken]
        small = (a > 0) & (a < 1)
        found[small] *= (1 - draw(int(small.sum()), kernels.uniform, generator)) ** (1 / a[small])
    return found


def draw(count: int, fill: Any, generator: Generator | None) -> np.ndarray:
    """`count` float64 numbers of a kernel that fills with random ones."""
    numbers = empty((count,), dtypes.float64)
    fill(numbers._operand, *drawn(generator, count))
    return as_numpy(numbers)


standard_gamma_grad_op = Operator(
    "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    out="out",
    refuses="whole halves complex",
    batching="pointwise",
)


def slope_of_draw(a, x):
    """dx/da = -(dF/da) / f(x); F = f x / a (1 + Σ x^k / ((a + 1) ... (a + k))) or, beyond a + 1, 1 minus a fraction.

    The sum and Lentz's fraction are differentiated term by term, so that the density f cancels: nothing overflows.
    Source: Moore, Derivatives of the incomplete gamma integral (AS 187), 1982.
    """
    if not (x > 0 and a > 0):
        return x * 0
    if x <= a + 1:
        term, slope, k = x / x, x * 0, a
        total, total_slope = term, slope
        while term > 1e-17 * total:
            k += 1
            slope = (slope - term / k) * (x / k)
            term *= x / k
            total += term
            total_slope += slope
        return -(x / a) * ((kernels.log(x) - kernels.digamma(a + 1)) * total + total_slope)
    # h = 1 / (b0 - 1 (1 - a) / (b1 - 2 (2 - a) / (b2 - ...))), with b_i = x + 1 - a + 2 i
    b = x + 1 - a
    c, c_slope, d = 1e300 + b * 0, b * 0, 1 / b
    d_slope = d * d
    h, h_slope, i = d, d_slope, b * 0
    change, change_slope = 2 + b * 0, 1 + b * 0
    while abs(change - 1) + abs(change_slope) > 1e-15 and i < 1e6:
        i += 1
        an, an_slope = -i * (i - a), i
        b += 2
        below, below_slope = an * d + b, an_slope * d + an * d_slope - 1
        above, above_slope = b + an / c, -1 + (an_slope - an * c_slope / c) / c
        d = 1 / below
        d_slope = -below_slope * d * d
        c, c_slope = above, above_slope
        change, change_slope = c * d, c_slope * d + c * d_slope
        h_slope = h_slope * change + h * change_slope
        h *= change
    return x * ((kernels.log(x) - kernels.digamma(a)) * h + h_slope)


SLOPE_OF_DRAW = Elementwise("slope_of_draw", slope_of_draw, cost=512)


@standard_gamma_grad_op.kernel("CPU", "Meta")
def standard_gamma_grad_kernel(self: Tensor, output: Tensor) -> Tensor:
    """Returns the slope of gamma-distributed numbers by their concentration."""
    check_precise("_standard_gamma_grad_cpu", self._dtype)
    if output._dtype is not self._dtype:
        raise RuntimeError(f"Found dtype {output._dtype.tensor_name} but expected {self._dtype.tensor_name}")
    result = empty(broadcast_shapes(self._shape, output._shape), self._dtype, self._device)
    if result._device.type != "meta":
        SLOPE_OF_DRAW.run(result._operand, self._operand, output._operand, dtype="float64")
    return result


def no_second_derivative(grad: Any) -> Any:
    raise RuntimeError("the derivative for '_standard_gamma_grad' is not implemented.")


_standard_gamma_grad = public(standard_gamma_grad_op, method=False)
standard_gamma_grad_op.derivative(self=no_second_derivative, output=no_second_derivative)
standard_gamma_op.derivative(self=lambda grad, self, result: grad * _standard_gamma_grad(self, result))
copy_into_out(standard_gamma_op, standard_gamma_grad_op)
_standard_gamma = public(standard_gamma_op, method=False)
