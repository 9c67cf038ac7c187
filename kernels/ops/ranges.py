"""Ranges: on a logarithmic scale, between tensors, with the end included; places of triangles; memory in any order.

Read creation.py first, for how factories are written and for arange and linspace.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, dtype, dtypes, get_default_dtype
from redispatch.kernels.declare.out_forms import filled

from ..declare.declare import Function, Operator
from ..declare.overridable import factory_function
from ..declare.public import public
from ..declare.structured import Meta, not_implemented, resize_out
from .creation import (
    FACTORY,
    arange_filled,
    arange_size,
    check_steps,
    linear,
    linspace_kernel,
    linspace_op,
    linspace_out_kernel,
    new,
    shaped,
    written,
)
from .random import as_integer_dtype

# --- logspace, range -------------------------------------------------------------------------------------------------

STEPS = "int steps, float base=10."
logspace_op = Operator(f"logspace(Scalar start, Scalar end, {STEPS}, *, {FACTORY}) -> Tensor", refuses="bool")
logspace_out_op = Operator(f"logspace.out(Scalar start, Scalar end, {STEPS}, *, Tensor(a!) out) -> Tensor(a!)")


@logspace_op.explicit
def logspace_kernel(
    start: Any, end: Any, steps: int, base: float, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> Tensor:
    if dtype is None:
        is_complex = isinstance(start, complex) or isinstance(end, complex)
        dtype = get_default_dtype().to_complex() if is_complex else get_default_dtype()
    check_logspace(steps, dtype)
    return written(new((steps,), dtype, device, pin_memory), logspace_values(start, end, steps, base, dtype))


@logspace_out_op.explicit
def logspace_out_kernel(start: Any, end: Any, steps: int, base: float, out: Tensor) -> Tensor:
    check_logspace(steps, out._dtype)
    return written(shaped(out, [steps]), logspace_values(start, end, steps, base, out._dtype))


def check_logspace(steps: int, dtype: dtype) -> None:
    if dtype is dtypes.bool:
        raise not_implemented("logspace_cpu", dtype)
    check_steps(steps, dtype)


def logspace_values(start: Any, end: Any, steps: int, base: float, dtype: dtype) -> np.ndarray:
    """Powers of the base, whose exponents are evenly spaced."""
    wide = dtypes.complex128 if dtype.is_complex else dtypes.float64
    return np.power(wide.numpy.type(base), linear(start, end, steps, wide).values())


logspace_op.not_differentiable()
logspace_op.out = logspace_out_op.functional


def ends_in_tensors(name: str, steps: str, kernel: Function, into_out: Function) -> list[Operator]:
    """The overloads of which one end or both are tensors without dimensions. The kernels are those for numbers."""
    declared = []
    for start, end in (("Tensor", "Tensor"), ("Tensor", "Scalar"), ("Scalar", "Tensor")):
        op = Operator(f"{name}.{start}_{end}({start} start, {end} end, {steps}, *, {FACTORY}) -> Tensor")
        out_op = Operator(
            f"{name}.{start}_{end}_out({start} start, {end} end, {steps}, *, Tensor(a!) out) -> Tensor(a!)"
        )
        op.explicit(between_numbers(name, kernel))
        out_op.explicit(between_numbers(name, into_out))
        op.not_differentiable()
        op.out = out_op.functional
        declared.append(op)
    return declared


def between_numbers(name: str, kernel: Function) -> Function:
    """The kernel, which takes numbers, for tensors."""

    def number(which: str, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if value._shape:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {which} with {len(value._shape)} "
                "dimension(s)."
            )
        return value.item()

    def between(start: Any, end: Any, *rest: Any) -> Tensor:
        return kernel(number("start", start), number("end", end), *rest)

    return between


# Those of tensors first: a tensor without dimensions is taken for a number, too, and would lose its class.
logspace = public(
    *ends_in_tensors("logspace", STEPS, logspace_kernel, logspace_out_kernel),
    logspace_op,
    doc="Returns `steps` powers of `base`, with exponents from `start` to `end` at equal distances.",
)
linspace = public(
    *ends_in_tensors("linspace", "int steps", linspace_kernel, linspace_out_kernel),
    linspace_op,
    doc="Returns `steps` numbers from `start` to `end` at equal distances.",
)

range_op = Operator(f"range(Scalar start, Scalar end, *, {FACTORY}) -> Tensor", refuses="bool complex")
range_step_op = Operator(f"range.step(Scalar start, Scalar end, Scalar step=1, *, {FACTORY}) -> Tensor")
range_out_op = Operator("range.out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)")
range_plain_out_op = Operator("range.out_(Scalar start, Scalar end, *, Tensor(a!) out) -> Tensor(a!)")


@range_step_op.explicit
def range_kernel(start: Any, end: Any, step: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    """Returns the numbers from `start` to `end`, with it, a `step` apart."""
    dtype = dtype or get_default_dtype()
    return arange_filled(new((range_size(start, end, step, dtype),), dtype, device, pin_memory), start, step)


@range_op.explicit
def range_plain_kernel(start: Any, end: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return range_kernel(start, end, 1, dtype, layout, device, pin_memory)


@range_out_op.explicit
def range_out_kernel(start: Any, end: Any, step: Any, out: Tensor) -> Tensor:
    return arange_filled(shaped(out, [range_size(start, end, step, out._dtype)]), start, step)


@range_plain_out_op.explicit
def range_plain_out_kernel(start: Any, end: Any, out: Tensor) -> Tensor:
    return range_out_kernel(start, end, 1, out)


def range_size(start: Any, end: Any, step: Any, dtype: dtype) -> int:
    """How many numbers there are from `start` up to `end`, which is one of them."""
    if dtype is dtypes.bool or dtype.is_complex:
        raise not_implemented("range_cpu", dtype)
    arange_size(start, end, step, dtypes.float64)  # for its errors
    if dtype.category == dtypes.INTEGER:
        start, end, step = int(start), int(end), int(step)
    return math.floor((end - start) / step) + 1


range_op.not_differentiable()
range_step_op.not_differentiable()
range_op.out, range_step_op.out = range_plain_out_op.functional, range_out_op.functional
range_of_numbers = public(range_step_op, range_op, name="range")


@factory_function
def range(*args: Any, **kwargs: Any) -> Tensor:
    """Numbers from start to end, the end included. Deprecated, since Python's own leaves it out: use arange."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=3,
    )
    return range_of_numbers(*args, **kwargs)


# --- triangles -------------------------------------------------------------------------------------------------------

TRIANGLE = f"int row, int col, int offset=0, *, {FACTORY.replace('dtype=None', 'dtype=long')}"
INTO = "int row, int col, int offset=0, *, Tensor(a!) out"
tril_indices_op = Operator(f"tril_indices({TRIANGLE}) -> Tensor")
triu_indices_op = Operator(f"triu_indices({TRIANGLE}) -> Tensor")
tril_indices_out_op = Operator(f"tril_indices.out({INTO}) -> Tensor(a!)")
triu_indices_out_op = Operator(f"triu_indices.out({INTO}) -> Tensor(a!)")


@tril_indices_op.explicit
def tril_indices_kernel(
    row: int, col: int, offset: int, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> Tensor:
    return triangle("tril_indices", np.tril_indices, row, col, offset, dtype, device, pin_memory)


@triu_indices_op.explicit
def triu_indices_kernel(
    row: int, col: int, offset: int, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> Tensor:
    return triangle("triu_indices", np.triu_indices, row, col, offset, dtype, device, pin_memory)


@tril_indices_out_op.explicit
def tril_indices_out(row: int, col: int, offset: int, out: Tensor) -> Tensor:
    return filled(out, tril_indices_kernel(row, col, offset, None, None, out._device, None))


@triu_indices_out_op.explicit
def triu_indices_out(row: int, col: int, offset: int, out: Tensor) -> Tensor:
    return filled(out, triu_indices_kernel(row, col, offset, None, None, out._device, None))


def triangle(
    name: str, indices: Function, row: int, col: int, offset: int, dtype: Any, device: Any, pin_memory: Any
) -> Tensor:
    """Rows and columns of the places of a triangle, row by row: two rows of a matrix."""
    for which, size in (("row", row), ("col", col)):
        if size < 0:
            raise RuntimeError(f"{which} must be non-negative, got{size}")
    dtype = as_integer_dtype(dtype)
    if dtype.name not in ("int16", "int32", "int64"):
        raise not_implemented(name, dtype)
    places = np.stack(indices(row, offset, col))
    return written(new(places.shape, dtype, device, pin_memory), places)


for _op in (tril_indices_op, triu_indices_op):
    _op.not_differentiable()
tril_indices_op.out, triu_indices_op.out = tril_indices_out_op.functional, triu_indices_out_op.functional
tril_indices = public(tril_indices_op, doc="Returns the row and column of each element on and below a diagonal.")
triu_indices = public(triu_indices_op, doc="Returns the row and column of each element on and above a diagonal.")

# --- memory in a chosen order ----------------------------------------------------------------------------------------

empty_permuted_op = Operator(f"empty_permuted(SymInt[] size, int[] physical_layout, *, {FACTORY}) -> Tensor")
empty_permuted_out_op = Operator(
    "empty_permuted.out(SymInt[] size, int[] physical_layout, *, Tensor(a!) out) -> Tensor(a!)"
)


@empty_permuted_op.explicit
def empty_permuted_kernel(
    size: Any, physical_layout: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> Tensor:
    """Returns a tensor whose dimensions lie in memory in the given order, its elements whatever stood there."""
    return new(size, dtype, device, pin_memory, permuted_strides(size, physical_layout))


@empty_permuted_out_op.explicit
def empty_permuted_out(size: Any, physical_layout: Any, out: Tensor) -> Tensor:
    resize_out(out, Meta(tuple(size), out._dtype, out._device, permuted_strides(size, physical_layout)))
    return out


def permuted_strides(size: Any, order: Any) -> tuple[int, ...]:
    """The strides of dense memory whose dimensions lie in this order, the outermost first."""
    if len(size) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    for index, dim in enumerate(order):
        if not 0 <= dim < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {dim} at index "
                f"{index}).  NB: negative dims not currently supported; file an issue if you want it."
            )
    if len(set(order)) < len(order):
        raise RuntimeError("Duplicate dim not allowed")
    strides, step = [0] * len(size), 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(size[dim], 1)
    return tuple(strides)


empty_permuted_op.not_differentiable()
empty_permuted_op.out = empty_permuted_out_op.functional
empty_permuted = public(empty_permuted_op)
