"""Further distributions: Cauchy, log-normal and geometric numbers in place; Poisson, binomial, categorical and gamma
draws.

Each number is made of one uniform number u of float64, or of one normal one. Counts are drawn by inversion from the
mode outwards (Kemp, Efficient generation of logarithmically distributed pseudo-random variables, 1981, calls it
chop-down): u less the probability of the mode, then of its neighbours by turns, until it is below 0. That takes about
as many steps as the standard deviation, and needs one logarithm of a probability only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import CPU, Tensor, as_numpy, contiguous_format, dtypes, empty
from redispatch.kernels import Elementwise, broadcast_shapes

from ..declare.operator import SEEDED, leaf_kernel
from ..declare.out_forms import by, filled
from ..declare.structured import c_name, not_implemented
from .creation import like
from .draws import (
    GENERATOR,
    exponential_numbers,
    fill_by,
    filling,
    no_gradient,
    sampling,
    standard_normal,
    unit_interval,
)
from .generators import Generator, drawn, twister_of
from .random import check_floating

# --- in place --------------------------------------------------------------------------------------------------------


def cauchy_number(u, median, sigma):
    return median + sigma * kernels.tan(math.pi * (u - 0.5))


def log_normal_number(normal, mean, std):
    return kernels.exp(mean + std * normal)


def failures(u, log_of_rest):
    """Returns the number of trials until the first success: the least k with 1 - (1 - p)^k above u."""
    return np.floor(kernels.log1p(-u) / log_of_rest) + 1


CAUCHY = Elementwise("cauchy", cauchy_number)
LOG_NORMAL = Elementwise("log_normal", log_normal_number)
GEOMETRIC = Elementwise("geometric", failures)


@filling(
    f"cauchy_(Tensor(a!) self, float median=0, float sigma=1, {GENERATOR}) -> Tensor(a!)",
    unit_interval,
    refuses="whole complex",
)
def cauchy_(self: Tensor, median: float, sigma: float) -> Any:
    """Fills the tensor with random numbers of a Cauchy distribution."""
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if not self._dtype.is_floating_point:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {c_name(self._dtype)}"
        )
    return CAUCHY, median, sigma


@filling(
    f"log_normal_(Tensor(a!) self, float mean=1, float std=2, {GENERATOR}) -> Tensor(a!)",
    standard_normal,
    refuses="whole complex",
)
def log_normal_(self: Tensor, mean: float, std: float) -> Any:
    """Fills the tensor with random numbers whose logarithms are normally distributed."""
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    check_floating("log_normal_cpu", self._dtype)
    return LOG_NORMAL, mean, std


@filling(f"geometric_(Tensor(a!) self, float p, {GENERATOR}) -> Tensor(a!)", unit_interval, refuses="bool complex")
def geometric_(self: Tensor, p: float) -> Any:
    """Fills the tensor with random numbers of a geometric distribution: trials up to the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if self._dtype is dtypes.bool or self._dtype.is_complex:
        raise not_implemented("geometric_cpu", self._dtype)
    return GEOMETRIC, math.log1p(-p)


cauchy_op, log_normal_op, geometric_op = cauchy_.op, log_normal_.op, geometric_.op

# --- counts ----------------------------------------------------------------------------------------------------------


def poisson_count(u, rate):
    """P(k + 1) = P(k) rate / (k + 1)"""
    mode = np.floor(rate)
    if not 0 < rate < math.inf:
        return mode
    above = below = kernels.exp(mode * kernels.log(rate) - rate - kernels.lgamma(mode + 1))
    high = low = mode
    left = u - above
    while left >= 0 and above + below > 1e-20:  # what rounding leaves of u goes to the last
        high += 1
        above *= rate / high
        left -= above
        if left >= 0 and low > 0:
            below *= low / rate
            low -= 1
            left -= below
            if left < 0:
                return low
        elif left >= 0:
            below *= 0
    return high


def binomial_count(u, trials, p):
    """P(k + 1) = P(k) (n - k) / (k + 1) p / (1 - p)"""
    n = np.floor(trials)
    if not (n > 0 and 0 < p < 1):
        return n if p >= 1 and n > 0 else (n * 0 if n == n and p == p else n + p)
    odds = p / (1 - p)
    mode = np.floor((n + 1) * p)
    ways = kernels.lgamma(n + 1) - kernels.lgamma(mode + 1) - kernels.lgamma(n - mode + 1)
    above = below = kernels.exp(ways + mode * kernels.log(p) + (n - mode) * kernels.log1p(-p))
    high = low = mode
    left = u - above
    while left >= 0 and above + below > 1e-20:
        above *= (n - high) / (high + 1) * odds
        high += 1
        left -= above
        if left >= 0 and low > 0:
            below *= low / (n - low + 1) / odds
            low -= 1
            left -= below
            if left < 0:
                return low
        elif left >= 0:
            below *= 0
    return high if high < n else n


POISSON = Elementwise("poisson", poisson_count, cost=256)
BINOMIAL = Elementwise("binomial", binomial_count, cost=256)


def check_rates(rates: Tensor) -> None:
    """RuntimeError for a negative one or NaN; on a device that is asked of it, and waited for."""
    here = rates._array is not None
    if not ((as_numpy(rates) >= 0).all() if here else ops.aten.ge.Scalar(rates, 0).all().item()):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")


@sampling(
    "poisson(Tensor self, Generator? generator=None) -> Tensor",
    lambda result, self: kernels.counts(result._operand, self._operand),
    out="out",
    derivative=no_gradient,
    method=False,
    refuses="whole complex",
)
def poisson(self: Tensor, generator: Any) -> Tensor:
    """Returns random numbers of Poisson distributions with these rates."""
    check_floating("poisson_cpu", self._dtype)
    result = like(self, None, None, False, contiguous_format)
    if result._device.type != "meta":
        check_rates(self)
    return fill_by(result, generator, POISSON, unit_interval, self)


def no_slope(message: str) -> Callable[[Any], Any]:
    """Returns a derivative that PyTorch does not have either."""

    def refuse(grad: Any) -> Any:
        raise RuntimeError(message)

    return refuse


def without_slope(op: str, *names: str) -> dict[str, Any]:
    """Returns the facts of an operator that has no derivative for these arguments."""
    refuse = no_slope(f"derivative for aten::{op} is not implemented")
    return {"derivative": dict.fromkeys(names, refuse), "node": "NotImplemented"}


@leaf_kernel(
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    out="out",
    **without_slope("binomial", "count", "prob"),
    method=False,
    tags=SEEDED,
    refuses="halves",
)
def binomial(count: Tensor, prob: Tensor, generator: Any) -> Tensor:
    """Returns random numbers of successes in `count` trials of probability `prob`."""
    for name, x in (("count", count), ("prob", prob)):
        if not x._dtype.is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {x._dtype.tensor_name}")
    check_same_dtype(count, prob)
    if count._dtype.itemsize == 2:
        raise not_implemented("binomial_cpu", count._dtype)
    result = empty(broadcast_shapes(count._shape, prob._shape), count._dtype, count._device)
    return fill_by(result, generator, BINOMIAL, unit_interval, count, prob)


def check_same_dtype(x: Tensor, other: Tensor) -> None:
    if other._dtype is not x._dtype:
        raise RuntimeError(f"Found dtype {other._dtype.tensor_name} but expected {x._dtype.tensor_name}")


# --- categories ------------------------------------------------------------------------------------------------------

MOST_CATEGORIES = 2**24


def quotient(x, y):
    return x / y


QUOTIENT = Elementwise("quotient", quotient)


def multinomial_into(self: Tensor, num_samples: int, replacement: bool, generator: Any, out: Tensor) -> Tensor:
    if out._dtype is not dtypes.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out._dtype.tensor_name}")
    return filled(out, multinomial.op.functional(self, num_samples, replacement, generator=generator))


@sampling(
    f"multinomial(Tensor self, SymInt num_samples, bool replacement=False, {GENERATOR}) -> Tensor",
    lambda result, self, count, replacement: kernels.places(result._operand, self._operand, replacement and count > 1),
    out="out",
    out_by=by(multinomial_into),
    derivative=False,
    refuses="whole complex",
)
def multinomial(self: Tensor, num_samples: int, replacement: bool, generator: Any) -> Tensor:
    """Returns places of the last dimension, drawn in proportion to the weights there.

    Without replacement a place comes before another one where its weight over an exponential number is larger. So is a
    single place drawn, as in PyTorch; several with replacement by uniform numbers among the sums of the weights.
    """
    check_multinomial(self, num_samples, replacement)
    result = empty((*self._shape[:-1], num_samples), dtypes.int64, self._device)
    if result._device.type == "meta" or not result._shape.numel():
        return result
    weights: Any = as_numpy(self).astype(np.float64 if self._dtype is dtypes.float64 else np.float32)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        if not replacement or num_samples == 1:
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
        why = "= infinity or NaN" if (weights >= 0).all() and not np.isnan(weights).any() else "< 0"
        raise RuntimeError(f"invalid multinomial distribution (encountering probability entry {why})")
    totals = weights.cumsum(-1, dtype=weights.dtype)
    if not totals.shape[-1] or not (totals[..., -1] > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    places = as_numpy(result)
    if replacement and num_samples > 1:
        units = as_numpy(unit_interval(result, generator))
        for row, total, unit in zip(np.atleast_2d(places), np.atleast_2d(totals), np.atleast_2d(units), strict=True):
            row[:] = np.searchsorted(total[:-1] / total[-1], unit)
    else:
        keys = exponential_numbers(self, generator)
        QUOTIENT.run(keys._operand, self._operand, keys._operand, dtype=self._dtype.name)
        places[...] = np.argsort(-as_numpy(keys), -1, kind="stable")[..., :num_samples]
    return result


def check_multinomial(self: Tensor, num_samples: int, replacement: bool) -> None:
    if not self._dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {self._dtype.tensor_name}")
    if len(self._shape) not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > self._shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if self._shape[-1] > MOST_CATEGORIES:
        raise RuntimeError("number of categories cannot exceed 2^24")


# --- gamma numbers ---------------------------------------------------------------------------------------------------

# Note [How a draw moves with its parameter]
# A draw is a function of the parameter a and of what was drawn at random; the random part stands still when the draw is
# differentiated. As F(x; a), the probability of less than x, is then a constant, dx/da = -(dF/da) / (dF/dx) (Figurnov,
# Mohamed, Mnih, Implicit reparameterization gradients, 2018).


def check_precise(kernel_name: str, dtype: Any) -> None:
    if dtype not in (dtypes.float32, dtypes.float64):
        raise not_implemented(kernel_name, dtype)


def gamma_slope(grad: Any, self: Any, result: Any) -> Any:
    """Note [How a draw moves with its parameter]."""
    return grad * _standard_gamma_grad(self, result)


@leaf_kernel(
    "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
    out="out",
    derivative=gamma_slope,
    method=False,
    tags=SEEDED,
    refuses="whole halves complex",
    face=True,
)
def _standard_gamma(self: Tensor, generator: Any) -> Tensor:
    """Returns random numbers of gamma distributions with these concentrations and the rate 1."""
    check_precise("gamma_cpu", self._dtype)
    result = like(self, None, None, False, contiguous_format)
    if result._device.type != "meta":
        single = self._dtype is dtypes.float32
        numbers = gamma_numbers(as_numpy(self).astype(np.float64), generator, single)
        as_numpy(result)[...] = np.maximum(numbers, np.finfo(self._dtype.numpy).tiny)
    return result


@leaf_kernel(
    "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
    out="out",
    **without_slope("_sample_dirichlet", "self"),
    method=False,
    tags=SEEDED,
    refuses="whole halves complex",
    face=True,
)
def _sample_dirichlet(self: Tensor, generator: Any) -> Tensor:
    """Returns random shares, which add up to 1 along the last dimension: Dirichlet's with these concentrations."""
    check_precise("dirichlet", self._dtype)
    result = like(self, None, None, False, contiguous_format)
    if result._device.type != "meta" and result._shape.numel():
        numbers = gamma_numbers(as_numpy(self).astype(np.float64), generator)
        shares = numbers.reshape(-1, numbers.shape[-1] if numbers.ndim else 1)
        as_numpy(result)[...] = (shares / totals(shares.T)[:, None]).reshape(numbers.shape)
    return result


def totals(columns: np.ndarray) -> np.ndarray:
    """Returns the sum of each column, added in the order in which PyTorch's CPU adds the float64 of a row.

    It adds vectors of four numbers, to four sums by turns; and the four numbers of their total to those left over.
    """
    length, count = columns.shape
    vectors = columns[: length // 4 * 4].reshape(-1, 4, count)
    whole = len(vectors) // 4 * 4
    sums = by_sixteens(vectors[:whole].reshape(-1, 4, 4, count))
    for rest in vectors[whole:]:
        sums[0] += rest
    lanes = in_turn(sums)
    return in_turn(np.concatenate([columns[length // 4 * 4 :], lanes]))


def in_turn(rows: np.ndarray) -> np.ndarray:
    """Returns the sum over the first dimension, one after the other: numpy may add by pairs."""
    total = np.zeros(rows.shape[1:])
    for row in rows:
        total += row
    return total


def by_sixteens(rows: np.ndarray) -> np.ndarray:
    """Returns the sum over the first dimension, by sixteens, their sums by sixteens, and so once more."""
    sums = []
    for _ in range(3):
        whole = len(rows) // 16 * 16
        sums.append(in_turn(rows[whole:]))
        rows = in_turn(rows[:whole].reshape(-1, 16, *rows.shape[1:]).swapaxes(0, 1))
    return in_turn(np.stack([*sums, in_turn(rows)]))


def gamma_numbers(a: np.ndarray, generator: Generator | None, single: bool = False) -> np.ndarray:
    """A gamma number for each shape parameter in `a`; nan for one below 0.

    A normal number x becomes d (1 + c x)³, which is taken with the right probability and else drawn again: 1 in 20 at
    most. For a < 1 the number for a + 1 is multiplied by u^(1 / a).
    Source: Marsaglia, Tsang, A simple method for generating gamma variables, 2000.
    """
    twister = twister_of(generator, CPU)
    if twister is not None:
        numbers = empty(a.shape, dtypes.float64)
        twister.fill("gamma", numbers._operand, a.reshape(-1), single)
        return as_numpy(numbers)
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
NO_BEND = no_slope("the derivative for '_standard_gamma_grad' is not implemented.")


@leaf_kernel(
    "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    out="out",
    derivative={"self": NO_BEND, "output": NO_BEND},
    method=False,
    batching="pointwise",
    refuses="whole halves complex",
    face=True,
)
def _standard_gamma_grad(self: Tensor, output: Tensor) -> Tensor:
    """Returns the slope of gamma-distributed numbers by their concentration."""
    check_precise("_standard_gamma_grad_cpu", self._dtype)
    check_same_dtype(self, output)
    result = empty(broadcast_shapes(self._shape, output._shape), self._dtype, self._device)
    if result._device.type != "meta":
        SLOPE_OF_DRAW.run(result._operand, self._operand, output._operand, dtype="float64")
    return result
