"""Variances, norms and log-sum-exp: reductions that look at their elements through a function first.

Squares and powers add up in float64, so that neither rounding nor overflow of float32 shows in the result.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import call
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.tensor import Tensor, as_numpy, dtype, dtypes, get_default_dtype
from redispatch.kernels import Elementwise, Operand
from redispatch.kernels import exp as exp_
from redispatch.kernels import log as log_
from redispatch.kernels.cpu.reduce import Recipe, Reduction

from ..declare.declare import Operator, added
from ..declare.numbers import storable
from ..declare.operator import CUDA_FP32, CUDA_SET_DTYPE, composite, planned, structured
from ..declare.plan import Run
from ..declare.planned import Planned, PlannedSeveral
from ..declare.public import public
from ..declare.structured import Meta, check_out_dtype
from .reductions import (
    COUNT,
    REDUCTION,
    add_to,
    as_counted,
    converted,
    count_of,
    reduced_dims,
    reduced_in,
    reduced_shape,
    unreduced,
    with_kept_dims,
)

float64 = np.float64


def scratch(shape: Sequence[int], dtype: dtype = dtypes.float64) -> Operand:
    """Memory for intermediate results."""
    count, name = math.prod(shape), dtype.name
    return Operand(kernels.memory(count, name), name, tuple(shape), kernels.contiguous_strides(tuple(shape)))


# --- var, std --------------------------------------------------------------------------------------------------------

CORRECTION = "int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False"


def var_meta(self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Meta:
    if self._dtype.category < dtypes.FLOATING:
        raise RuntimeError("std and var only support floating point and complex dtypes")
    dims = reduced_dims(dim, len(self._shape))
    return Meta(reduced_shape(self._shape, dims, keepdim), self._dtype.to_real(), self._device)


def squared_difference(x, mean):
    return (x - mean) * (x - mean)


def squared_distance(x, mean):
    difference = x - mean
    return difference.real * difference.real + difference.imag * difference.imag


def quotient(x, divisor):
    return x / divisor


def root_of_quotient(x, divisor):
    return math.sqrt(x / divisor)


SQUARED_DIFFERENCE = Elementwise("squared_difference", {"float": squared_difference, "complex": squared_distance})
QUOTIENT = Elementwise("quotient", quotient)
ROOT_OF_QUOTIENT = Elementwise("root_of_quotient", root_of_quotient)


def ready_var(name: str, finish: Elementwise, out: Tensor, self: Tensor, dim: Any, correction: Any) -> Run:
    """The mean first, then the squares of the differences from it: one pass with sums of squares would cancel."""
    dims = reduced_dims(dim, len(self._shape))
    freedom = count_of(self._shape, dims) - (1 if correction is None else storable(correction, dtypes.float64))
    divisor, kept, x = float(max(freedom, 0)), reduced_shape(self._shape, dims, True), self._operand
    wide = dtypes.complex128 if self._dtype.is_complex else dtypes.float64
    mean, squares, total = scratch(kept, wide), scratch(self._shape), scratch(kept)
    form_mean = kernels.MEAN.ready(mean, x, dims)
    form_squares = SQUARED_DIFFERENCE.loop((squares,), (x, mean), wide.name).run
    add_up = kernels.SUM.ready(total, squares, dims)
    total = total._replace(shape=tuple(out._shape), strides=kernels.contiguous_strides(out._shape))
    divide = finish.loop((out._operand,), (total, divisor), "float64").run
    few, many = math.prod(kept), self._shape.numel()

    def run(to: np.ndarray, to_at: int, x: np.ndarray, x_at: int) -> None:
        if freedom <= 0:
            warn_of_freedom(name)
        mean, squares = kernels.memory(few, wide.name), kernels.memory(many, "float64")
        total = kernels.memory(few, "float64")
        form_mean(mean, 0, x, x_at)
        form_squares(squares, 0, x, x_at, mean, 0)
        add_up(total, 0, squares, 0)
        divide(to, to_at, total, 0, divisor)

    return run


def warn_of_freedom(name: str) -> None:
    kernels.do_not_cache()
    warnings.warn(
        f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
        "(input numel divided by output numel).",
        UserWarning,
        stacklevel=2,
    )


def var_backward(grad: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """d/dx_i of sum((x - mean)²) / freedom: the part through the mean vanishes, since the differences add up to 0."""
    dims = reduced_dims(dim, self.dim())
    freedom = count_of(self.shape, dims) - (1 if correction is None else correction)
    grad = with_kept_dims(grad, self.shape, dim, keepdim)
    if freedom <= 0:
        return grad * (self - self.mean(dims, True)) * math.inf
    return grad * (self - self.mean(dims, True)) * (2 / freedom)


def std_backward(grad: Any, self: Any, result: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    through_root = (grad / (result * 2)).masked_fill(result == 0, 0)
    return var_backward(through_root, self, dim, correction, keepdim)


def mean_backward(grad: Any, self: Any, dim: Any, keepdim: bool) -> Any:
    count = self.numel() / max(grad.numel(), 1)
    return unreduced(grad, self.shape, dim, keepdim) / max(count, 1)


def var_mean_backward(grads: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    spread, mean = grads
    return added(
        None if spread is None else var_backward(spread, self, dim, correction, keepdim),
        None if mean is None else mean_backward(mean, self, dim, keepdim),
    )


def std_mean_backward(grads: Any, self: Any, result0: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    spread, mean = grads
    return added(
        None if spread is None else std_backward(spread, self, result0, dim, correction, keepdim),
        None if mean is None else mean_backward(mean, self, dim, keepdim),
    )


def unbiased_forms(name: str, corrected: Operator, returns: str, method: bool, doc: str) -> Any:
    """The function `name` of `corrected` and its older overloads, in which `unbiased` means a correction by 1."""

    @composite(f"{name}(Tensor self, bool unbiased=True) -> {returns}", tags=REDUCTION, face=False)
    @inline
    def of_all(self, unbiased):
        return call(corrected.functional, [self, None, int(unbiased), False])

    @composite(
        f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> {returns}",
        out=corrected.out and "out",
        out_by=None,
        tags=REDUCTION,
        core=name == "var",
        face=False,
    )
    @inline
    def of_dims(self, dim, unbiased, keepdim):
        return call(corrected.functional, [self, dim, int(unbiased), keepdim])

    into = corrected.out
    if into is not None:

        @of_dims.composite(of_dims.out)
        def into_out(self, dim, unbiased, keepdim, out):
            return into(self, dim, correction=int(unbiased), keepdim=keepdim, out=out)

    return public(of_dims, corrected, of_all, method=method, doc=doc)


def spread(name: str, finish: Elementwise, derivative: Any, doc: str) -> Any:
    """The function `var` or `std`."""

    def loop(out: Tensor, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Run:
        return ready_var(name, finish, out, self, dim, correction)

    schema = f"{name}.correction(Tensor self, {CORRECTION}) -> Tensor"
    op = Planned(
        schema, out="correction_out", tags=REDUCTION, derivative=derivative, refuses="whole", core=name == "var"
    )
    op.meta(var_meta)
    op.loop(loop)
    return unbiased_forms(name, op, "Tensor", method=True, doc=doc)


def spread_and_mean(name: str, finish: Elementwise, derivative: Any, doc: str) -> Any:
    """The function `var_mean` or `std_mean`: in one call what `var` and `mean` give."""

    def metas(self: Tensor, dim: Any, correction: Any, keepdim: bool) -> tuple[Meta, Meta]:
        if self._dtype.category < dtypes.FLOATING:
            raise RuntimeError(f"{name} only support floating point and complex dtypes")
        spread = var_meta(self, dim, correction, keepdim)
        return spread, spread._replace(dtype=self._dtype)

    def loop(outs: tuple[Tensor, Tensor], self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Run:
        form_spread = ready_var(name, finish, outs[0], self, dim, correction)
        form_mean = reduced_in(self._dtype, kernels.MEAN, outs[1], self, reduced_dims(dim, len(self._shape)))

        def run(spread: Any, spread_at: int, mean: Any, mean_at: int, x: Any, x_at: int) -> None:
            form_spread(spread, spread_at, x, x_at)
            form_mean(mean, mean_at, x, x_at)

        return run

    schema = f"{name}.correction(Tensor self, {CORRECTION}) -> (Tensor, Tensor)"
    op = PlannedSeveral(schema, tags=REDUCTION, derivative=derivative, for_complex=True, refuses="whole")
    op.meta(metas)
    op.loop(loop)
    return unbiased_forms(name, op, "(Tensor, Tensor)", method=False, doc=doc)


var = spread(
    "var",
    QUOTIENT,
    var_backward,
    "Returns the variance of all elements, or of those along `dim`; `correction` is taken from their number.",
)
std = spread(
    "std",
    ROOT_OF_QUOTIENT,
    std_backward,
    "Returns the standard deviation of all elements, or of those along `dim`; `correction` is taken from their number.",
)
var_mean = spread_and_mean(
    "var_mean",
    QUOTIENT,
    var_mean_backward,
    "Returns the variance and the mean of all elements, or of those along `dim`.",
)
std_mean = spread_and_mean(
    "std_mean",
    ROOT_OF_QUOTIENT,
    std_mean_backward,
    "Returns the standard deviation and the mean of all elements, or of those along `dim`.",
)

# --- norms -----------------------------------------------------------------------------------------------------------


@planned(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    out="out",
    out_dtype=check_out_dtype,
    tags=REDUCTION,
    autocast=CUDA_SET_DTYPE,
    refuses="whole",
)
def linalg_vector_norm(self, ord, dim, keepdim, dtype):
    """Returns the norm of order `ord` of all elements, or of those along `dim`."""
    own = self._dtype
    if isinstance(ord, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    if own.category < dtypes.FLOATING:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {own.tensor_name}"
        )
    if dtype is not None and dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            f"linalg.vector_norm: dtype should be floating point or complex, but got {dtype.tensor_name}"
        )
    if dtype is not None and dtype.is_complex != own.is_complex:
        kind = "complex" if own.is_complex else "real"
        raise RuntimeError(f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got {dtype.tensor_name}")
    if dtype is not None and dtype.itemsize < own.itemsize:
        raise RuntimeError(
            f"linalg.vector_norm: the dtype of the input ({own.tensor_name}) should be convertible without narrowing "
            f"to the specified dtype ({dtype.tensor_name})"
        )
    dims = reduced_dims(dim, len(self._shape))
    if (ord < 0 or ord == math.inf) and not self._shape.numel():
        check_has_identity(self, ord, dim, dims)
    return Meta(reduced_shape(self._shape, dims, keepdim), (dtype or own).to_real(), self._device)


def check_has_identity(self: Tensor, ord: Any, dim: Any, dims: tuple[int, ...]) -> None:
    """Raises RuntimeError for an extreme of nothing."""
    if not dim:
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord:g} norm on an empty tensor because the operation does not "
            "have an identity"
        )
    for d in dims:
        if not self._shape[d]:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {ord:g} norm on the dimension {d}because this dimension is "
                "empty and the operation does not have an identity"
            )


def squared(x):
    return float64(x) * float64(x)


def squared_modulus(x):
    return float64(x.real) * float64(x.real) + float64(x.imag) * float64(x.imag)


def magnitude(x):
    return abs(float64(x))


def modulus(x):
    return float64(np.abs(x))


def root(acc, total):
    return math.sqrt(acc)


def absolute(x):
    return np.abs(x)


def power_of_magnitude(x, p):
    return abs(x) ** p


def power_of_modulus(x, p):
    return np.abs(x) ** p.real


def power(x, p):
    return x**p


def norm(name: str, of_real: Any, of_complex: Any, finish: Any) -> Reduction:
    """Returns the reduction that adds up sizes or squares of the elements."""

    def recipe(dtype: str) -> Recipe:
        return Recipe(of_complex if dtype.startswith("complex") else of_real, np.float64(0), add_to, finish)

    return Reduction(name, recipe)


NORM_1 = norm("norm_1", magnitude, modulus, as_counted)
NORM_2 = norm("norm_2", squared, squared_modulus, root)
ABSOLUTE = Elementwise("absolute", absolute)
POWER_OF_MAGNITUDE = Elementwise("power_of_magnitude", {"float": power_of_magnitude, "complex": power_of_modulus})
POWER = Elementwise("power", power)


@linalg_vector_norm.op.loop
def vector_norm_loop(out, self, ord, dim, keepdim, dtype):
    dims = reduced_dims(dim, len(self._shape))
    if ord in (0, 1, 2):
        return {0: COUNT, 1: NORM_1, 2: NORM_2}[ord].ready(out._operand, self._operand, dims)
    to_metadata: tuple[Any, Any, Any] = out._operand[1:4]
    metadata: tuple[Any, Any, Any] = self._operand[1:4]  # dtype, shape, strides; the memory is not to be kept

    def run(to: np.ndarray, to_at: int, x: np.ndarray, x_at: int) -> None:
        run_norm(Operand(to, *to_metadata, to_at), Operand(x, *metadata, x_at), ord, dims)

    return run


def run_norm(out: Operand, x: Operand, ord: Any, dims: tuple[int, ...]) -> None:
    """The norms that take several passes."""
    wide = "complex128" if x.dtype.startswith("complex") else "float64"
    if math.isinf(ord):
        sizes, largest = scratch(x.shape), scratch(out.shape)
        ABSOLUTE.run(sizes, x, dtype=wide)
        (kernels.AMAX if ord > 0 else kernels.AMIN).run(largest, sizes, dims)
        kernels.copy(out, largest)
    else:
        powers, total = scratch(x.shape), scratch(out.shape)
        POWER_OF_MAGNITUDE.run(powers, x, float(ord), dtype=wide)
        kernels.SUM.run(total, powers, dims)
        POWER.run(out, total, 1 / float(ord), dtype="float64")


@linalg_vector_norm.op.gradient("self")
def vector_norm_backward(grad, self, result, ord, dim, keepdim):
    """d/dx of (sum |x|^p)^(1/p) = sign(x) |x|^(p-1) / norm^(p-1); 0 where the norm is 0, the subgradient."""
    norm = with_kept_dims(result, self.shape, dim, keepdim)
    grad = with_kept_dims(grad, self.shape, dim, keepdim)
    if ord == 0:
        return None
    if ord == 1:
        return self.sgn() * grad
    if ord == 2:
        return self * (grad / norm.masked_fill(norm == 0, 1)).masked_fill(norm == 0, 0)
    if math.isinf(ord):
        magnitudes = self.abs()
        mask = (magnitudes == norm) | ((magnitudes != magnitudes) & (norm != norm))
        return self.sgn() * (grad / mask.sum(dim, True)) * mask
    if ord < 1:
        own = (self.sgn() * self.abs() ** (ord - 1)).masked_fill(self == 0, 0)
        return own * (grad * norm ** (1 - ord))
    own = self * self.abs() ** (ord - 2) if ord > 2 else self.sgn() * self.abs() ** (ord - 1)
    return own * (grad / norm.masked_fill(norm == 0, 1) ** (ord - 1)).masked_fill(norm == 0, 0)


# --- logsumexp -------------------------------------------------------------------------------------------------------


@structured(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", out="out", tags=REDUCTION, autocast=CUDA_FP32
)
def logsumexp(self, dim, keepdim):
    """Returns log(sum of exp(x)) along `dim`, without overflow."""
    kind = self._dtype if self._dtype.category > dtypes.INTEGER else get_default_dtype()
    dims = reduced_dims(dim, len(self._shape))
    return Meta(reduced_shape(self._shape, dims, keepdim), kind, self._device)


def shifted_exp(x, top):
    return exp_(x - top)


def shifted_log(total, top):
    return log_(total) + top


SHIFTED_EXP = Elementwise("shifted_exp", shifted_exp)
SHIFTED_LOG = Elementwise("shifted_log", shifted_log)


@logsumexp.op.body
def logsumexp_body(out, self, dim, keepdim):
    """Relative to the largest element, so that exp cannot overflow."""
    dims = reduced_dims(dim, len(self._shape))
    if self._dtype.is_complex:
        as_numpy(out)[...] = complex_logsumexp(as_numpy(self), dims, keepdim)
        return
    wide = dtypes.float64
    x = converted(self, wide)
    kept = reduced_shape(self._shape, dims, True)
    top, total, terms = scratch(kept), scratch(kept), scratch(self._shape)
    if count_of(self._shape, dims):
        kernels.AMAX.run(top, x._operand, dims)
        top.array[np.isinf(top.array)] = 0  # inf - inf is no number
    else:
        kernels.fill(top, 0)
    SHIFTED_EXP.run(terms, x._operand, top, dtype="float64")
    kernels.SUM.run(total, terms, dims)
    strides = kernels.contiguous_strides(out._shape)
    total, top = (x._replace(shape=tuple(out._shape), strides=strides) for x in (total, top))
    SHIFTED_LOG.run(out._operand, total, top, dtype="float64")


def complex_logsumexp(x: np.ndarray, dims: tuple[int, ...], keepdim: bool) -> np.ndarray:
    """Returns log(sum of exp(x)) of complex numbers, relative to the largest real part."""
    top = x.real.max(axis=dims, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        found = np.log(np.exp(x - top).sum(axis=dims, keepdims=True)) + top
    return found if keepdim else found.squeeze(axis=dims)


@logsumexp.op.gradient("self")
def logsumexp_backward(grad, self, result, dim, keepdim):
    grad, result = (with_kept_dims(t, self.shape, dim, keepdim) for t in (grad, result))
    return grad * (self - result).exp()
