"""Further distributions: Cauchy, log-normal and geometric numbers in place; Poisson, binomial and categorical draws.

Each number is made of one uniform number u of float64, or of one normal one. Counts are drawn by inversion from the
mode outwards (Kemp, Efficient generation of logarithmically distributed pseudo-random variables, 1981, calls it
chop-down): u less the probability of the mode, then of its neighbours by turns, until it is below 0. That takes about
as many steps as the standard deviation, and needs one logarithm of a probability only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, empty
from redispatch.kernels import Elementwise, broadcast_shapes
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.public import public
from ..declare.structured import c_name, check_no_internal_overlap, not_implemented
from .creation import like
from .random import GENERATOR, check_floating, drawn, no_gradient, seeded, unit_interval

# --- in place --------------------------------------------------------------------------------------------------------

cauchy_op = seeded(
    f"cauchy_(Tensor(a!) self, float median=0, float sigma=1, {GENERATOR}) -> Tensor(a!)", refuses="whole complex"
)
log_normal_op = seeded(
    f"log_normal_(Tensor(a!) self, float mean=1, float std=2, {GENERATOR}) -> Tensor(a!)", refuses="whole complex"
)
geometric_op = seeded(f"geometric_(Tensor(a!) self, float p, {GENERATOR}) -> Tensor(a!)", refuses="bool complex")


def cauchy_number(u, median, sigma):
    return median + sigma * kernels.tan(math.pi * (u - 0.5))


def log_normal_number(normal, mean, std):
    return kernels.exp(mean + std * normal)


def failures(u, log_of_rest):
    """How many trials until the first success: the least k with 1 - (1 - p)^k above u."""
    return np.floor(kernels.log1p(-u) / log_of_rest) + 1


CAUCHY = Elementwise("cauchy", cauchy_number)
LOG_NORMAL = Elementwise("log_normal", log_normal_number)
GEOMETRIC = Elementwise("geometric", failures)


@cauchy_op.kernel("CPU", "Meta")
def cauchy_kernel(self: Tensor, median: float, sigma: float, generator: Any) -> Tensor:
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if not self._dtype.is_floating_point:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {c_type(self)}"
        )
    check_no_internal_overlap(self)
    if self._device.type != "meta":
        CAUCHY.run(self._operand, unit_interval(self, generator)._operand, median, sigma, dtype="float64")
    return self


def c_type(self: Tensor) -> str:
    """How C++ calls the dtype."""
    return {"int64": "long int", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}.get(
        self._dtype.name, c_name(self._dtype)
    )


@log_normal_op.kernel("CPU", "Meta")
def log_normal_kernel(self: Tensor, mean: float, std: float, generator: Any) -> Tensor:
    """Fills the tensor with random numbers whose logarithms are normally distributed."""
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    check_floating("log_normal_cpu", self._dtype)
    check_no_internal_overlap(self)
    if self._device.type != "meta":
        normal = empty(self._shape, dtypes.float64, self._device)
        kernels.normal(normal._operand, *drawn(generator, self._shape.numel(), self._device))
        LOG_NORMAL.run(self._operand, normal._operand, mean, std, dtype="float64")
    return self


@geometric_op.kernel("CPU", "Meta")
def geometric_kernel(self: Tensor, p: float, generator: Any) -> Tensor:
    """Fills the tensor with random numbers of a geometric distribution: trials up to the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if self._dtype is dtypes.bool or self._dtype.is_complex:
        raise not_implemented("geometric_cpu", self._dtype)
    check_no_internal_overlap(self)
    if self._device.type != "meta":
        GEOMETRIC.run(self._operand, unit_interval(self, generator)._operand, math.log1p(-p), dtype="float64")
    return self


cauchy_op.derivative(self=no_gradient)
log_normal_op.derivative(self=no_gradient)
geometric_op.derivative(self=no_gradient)
public(cauchy_op, function=False, doc="Fills the tensor with random numbers of a Cauchy distribution.")
public(log_normal_op, function=False)
public(geometric_op, function=False)

# --- counts ----------------------------------------------------------------------------------------------------------

poisson_op = seeded("poisson(Tensor self, Generator? generator=None) -> Tensor", out="out", refuses="whole complex")
binomial_op = seeded(
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", out="out", refuses="halves"
)


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


@poisson_op.kernel("CPU", "Meta")
def poisson_kernel(self: Tensor, generator: Any) -> Tensor:
    check_floating("poisson_cpu", self._dtype)
    result = like(self, None, None, False, None)
    if result._device.type != "meta":
        check_rates(self)
        units = unit_interval(self, generator)
        POISSON.run(result._operand, units._operand, self._operand, dtype="float64")
    return result


@binomial_op.kernel("CPU", "Meta")
def binomial_kernel(count: Tensor, prob: Tensor, generator: Any) -> Tensor:
    """Returns random numbers of successes in `count` trials of probability `prob`."""
    for name, x in (("count", count), ("prob", prob)):
        if not x._dtype.is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {x._dtype.tensor_name}")
    if prob._dtype is not count._dtype:
        raise RuntimeError(f"Found dtype {prob._dtype.tensor_name} but expected {count._dtype.tensor_name}")
    if count._dtype.itemsize == 2:
        raise not_implemented("binomial_cpu", count._dtype)
    result = empty(broadcast_shapes(count._shape, prob._shape), count._dtype, count._device)
    if result._device.type != "meta":
        units = unit_interval(result, generator)
        BINOMIAL.run(result._operand, units._operand, count._operand, prob._operand, dtype="float64")
    return result


def no_derivative_of_binomial(grad: Any) -> Any:
    raise RuntimeError("derivative for aten::binomial is not implemented")


poisson_op.derivative(self=no_gradient)
binomial_op.derivative(count=no_derivative_of_binomial, prob=no_derivative_of_binomial)
copy_into_out(poisson_op)
copy_into_out(binomial_op)
poisson = public(poisson_op, method=False, doc="Returns random numbers of Poisson distributions with these rates.")
binomial = public(binomial_op, method=False)

# --- categories ------------------------------------------------------------------------------------------------------

multinomial_op = seeded(
    f"multinomial(Tensor self, SymInt num_samples, bool replacement=False, {GENERATOR}) -> Tensor",
    out="out",
    refuses="whole complex",
)
MOST_CATEGORIES = 2**24


@multinomial_op.kernel("CPU", "Meta")
def multinomial_kernel(self: Tensor, num_samples: int, replacement: bool, generator: Any) -> Tensor:
    """Places of the last dimension, each with a probability in proportion to its weight.

    Without replacement a place comes before another one where its weight over an exponential number is larger.
    """
    check_multinomial(self, num_samples, replacement)
    result = empty((*self._shape[:-1], num_samples), dtypes.int64, self._device)
    if result._device.type == "meta" or not result._shape.numel():
        return result
    weights = as_numpy(self).astype(np.float64)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    totals = weights.cumsum(-1)
    if not (totals[..., -1] > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    units = as_numpy(unit_interval(result if replacement else self, generator))
    places = as_numpy(result)
    if replacement:
        for row, total, unit in zip(np.atleast_2d(places), np.atleast_2d(totals), np.atleast_2d(units), strict=True):
            row[:] = np.searchsorted(total, unit * total[-1], side="right")
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            keys = np.where(weights > 0, weights / -np.log1p(-units), 0)
        places[...] = np.argsort(-keys, -1, kind="stable")[..., :num_samples]
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


multinomial_op.not_differentiable()
copy_into_out(multinomial_op)
multinomial = public(
    multinomial_op, doc="Returns places of the last dimension, drawn in proportion to the weights there."
)
