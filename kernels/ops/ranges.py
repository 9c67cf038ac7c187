"""Ranges: numbers at equal steps, between two ends or on a logarithmic scale; places of triangles; memory in any order.

Read creation.py first, for how factories are declared.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from redispatch import kernels
from redispatch.dispatch import FunctionSchema, Memo
from redispatch.dispatch.specialiser.annotations import frozen, inline, leaf, pure
from redispatch.dispatch.symbolic import Number, SymInt
from redispatch.dispatch.tensor import (
    CPU,
    KINDS,
    Tensor,
    cannot_allocate,
    depends_on_default,
    dtype,
    dtypes,
    empty_from,
    get_default_dtype,
    output_spec,
    remember,
)

from ..declare.declare import Function, Operator
from ..declare.operator import kernel
from ..declare.out_forms import by, filled
from ..declare.overridable import factory_function
from ..declare.plan import Deciding, Plan
from ..declare.public import public
from ..declare.structured import Meta, c_name, not_implemented, resize_out
from .creation import FACTORY, LONG, Rule, as_integer_dtype, factory, new, written

# --- few numbers, asked for again ------------------------------------------------------------------------------------

FEW, RANGES = 1024, 256  # how many numbers are kept, and of how many ranges: at most 4 MB of an operator


@pure
def number_fact(value: Any) -> Any:
    """Tells a number from others that are equal to it. A symbol is not asked for its value."""
    kind = type(value)
    return (kind, str(value)) if kind is complex or (kind is float and not value) else (kind, value)


@frozen
class Range(Deciding):
    """The kernel of a factory of numbers that follow from its arguments, around one that goes the long way.

    To find out how takes ten times as long as to write few numbers. So these are kept, and copied when they are asked
    for again.
    """

    def __init__(self, op: Operator, long_way: Callable[..., Tensor]) -> None:
        self.op, self.long_way, self.plans = op.functional, long_way, Memo(RANGES)
        self.pinned = op.names.index("pin_memory")
        depends_on_default(self)

    @cached_property
    def schema(self) -> FunctionSchema:  # type: ignore[override]  # read when it is needed: imports parse none
        return self.op.schema

    @inline
    def run(self, *args: Any) -> Tensor:
        """A new tensor with these numbers."""
        facts = tuple(number_fact(value) for value in args)
        plan = self.plans.get(facts)
        if plan is None:
            return self.first(facts, args)
        return copied(plan)

    def first(self, facts: Any, args: tuple[Any, ...]) -> Tensor:
        """Makes the tensor the long way; its numbers are remembered."""
        default, result = get_default_dtype(), self.long_way(*args)
        if type(result) is not Tensor or result._device is not CPU or result._array is None or args[self.pinned]:
            return result
        if result._array.size <= FEW and not any(isinstance(value, Number) for value in args):
            spec = output_spec(result._shape, result._dtype, result._device, result._stride)
            remember(self, facts, Plan((spec,), result._array.copy()), default)
        return result


@leaf
@inline
def copied(plan: Plan) -> Tensor:
    """A new tensor that holds what is kept."""
    result = empty_from(plan.outputs[0])
    memory: Any = result._array
    memory[:] = plan.run
    return result


def kept(op: Operator, long_way: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The kernel around `long_way` that keeps few numbers."""
    return Range(op, long_way).run


# --- at steps --------------------------------------------------------------------------------------------------------


def arange_rule(dtype: Any, start: Any, end: Any, step: Any = 1) -> Rule:
    if dtype is None:
        whole = all(isinstance(number, int | SymInt) for number in (start, end, step))
        dtype = dtypes.int64 if whole else get_default_dtype()
    return (arange_size(start, end, step, dtype),), dtype, lambda result: arange_filled(result, start, step)


def arange_size(start: Any, end: Any, step: Any, dtype: dtype) -> int:
    """Returns the count of numbers from `start` up to `end`, exclusive."""
    if dtype is dtypes.bool or dtype.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dtype.tensor_name}'")
    if step == 0 or step != step:
        raise RuntimeError("step must be nonzero")
    if not all(isinstance(number, Number) or math.isfinite(number) for number in (start, end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is dtypes.int64:  # narrower integers are counted in float64, and truncated when they are stored
        start, end, step = map(math.trunc, (start, end, step))
        if step == 0:
            raise ValueError("step must be nonzero")
    if all(isinstance(number, int | SymInt) for number in (start, end, step)):
        return max(0, -((start - end) // step))
    return max(0, math.ceil((end - start) / step))


def arange_filled(result: Tensor, start: Any, step: Any) -> Tensor:
    """`result`, with start, start + step, ..."""
    if result._array is not None:
        kernels.arange(result._operand, start, step)
        return result
    if result._device.type == "meta":
        return result
    count = result._shape.numel()
    kind: Any = np.float64 if result._dtype.is_floating_point else np.int64
    return spaced(result, Spacing(kind, start, step, 0, count, count))


class Spacing(NamedTuple):
    """`size` numbers: start + i step at place i < rising, and behind as far from the end as the place is.

    compute: numpy's type, in which each product and each sum is rounded.
    """

    compute: Any
    start: Any
    step: Any
    end: Any
    size: int
    rising: int

    def values(self) -> np.ndarray:
        kind = self.compute
        near = kind(self.start) + kind(self.step) * np.arange(self.rising).astype(kind)
        far = kind(self.end) - kind(self.step) * np.arange(self.size - 1 - self.rising, -1, -1).astype(kind)
        return np.concatenate([near, far])


def spaced(result: Tensor, how: Spacing) -> Tensor:
    """`result`, with such numbers. A device that has a way to do so makes them itself; to others they are copied."""
    kind = KINDS.get(result._device.type)
    if kind is None or kind.spaced is None or how.compute not in (np.int64, np.float32, np.float64):
        return written(result, how.values())
    numbers = [how.compute(number) for number in (how.start, how.step, how.end)]
    kind.spaced(result, np.dtype(how.compute).name, *numbers, how.rising)
    return result


arange_op = factory(lambda dtype, end: arange_rule(dtype, 0, end), "arange(Scalar end)", out="out", around=kept)
arange_start_op = factory(arange_rule, "arange.start(Scalar start, Scalar end)", around=kept)
arange_step_op = factory(
    arange_rule,
    "arange.start_step(Scalar start, Scalar end, Scalar step=1)",
    out="start_out",
    around=kept,
    refuses="bool complex",
    core=True,
)
arange = public(
    arange_op,
    arange_start_op,
    arange_step_op,
    doc="Returns the numbers from `start` up to `end`, without it, a `step` apart.",
)


def range_rule(dtype: Any, start: Any, end: Any, step: Any = 1) -> Rule:
    dtype = dtype or get_default_dtype()
    return (range_size(start, end, step, dtype),), dtype, lambda result: arange_filled(result, start, step)


def range_size(start: Any, end: Any, step: Any, dtype: dtype) -> int:
    """Returns the count of numbers from `start` up to `end`, which is one of them."""
    if dtype is dtypes.bool or dtype.is_complex:
        raise not_implemented("range_cpu", dtype)
    arange_size(start, end, step, dtypes.float64)  # for its errors
    if dtype.category == dtypes.INTEGER:
        start, end, step = map(math.trunc, (start, end, step))
    return math.floor((end - start) / step) + 1


range_op = factory(range_rule, "range(Scalar start, Scalar end)", out="out_", refuses="bool complex")
range_step_op = factory(range_rule, "range.step(Scalar start, Scalar end, Scalar step=1)", out="out")
range_of_numbers = public(
    range_step_op, range_op, name="range", doc="Returns the numbers from `start` to `end`, with it, a `step` apart."
)


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


# --- between ends ----------------------------------------------------------------------------------------------------


def dtype_between(start: Any, end: Any) -> dtype:
    is_complex = isinstance(start, complex) or isinstance(end, complex)
    return get_default_dtype().to_complex() if is_complex else get_default_dtype()


def linspace_rule(dtype: Any, start: Any, end: Any, steps: int) -> Rule:
    dtype = dtype or dtype_between(start, end)
    check_steps(steps, dtype)
    return (steps,), dtype, lambda result: spaced(result, linear(start, end, steps, dtype))


def logspace_rule(dtype: Any, start: Any, end: Any, steps: int, base: float) -> Rule:
    dtype = dtype or dtype_between(start, end)
    if dtype is dtypes.bool:
        raise not_implemented("logspace_cpu", dtype)
    check_steps(steps, dtype)
    return (steps,), dtype, lambda result: written(result, logspace_values(start, end, steps, base, dtype))


def check_steps(steps: int, dtype: dtype) -> None:
    if dtype is dtypes.bool:
        raise not_implemented("linspace_cpu", dtype)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")


def linear(start: Any, end: Any, steps: int, dtype: dtype) -> Spacing:
    """Evenly spaced values, both ends included. Each half counts from its own end, so that both are met exactly."""
    compute: Any = {"float64": np.float64, "complex64": np.complex64, "complex128": np.complex128}.get(
        dtype.name, np.float32
    )
    if dtype.category == dtypes.INTEGER:
        compute = np.float64
    if not dtype.is_complex and complex in (type(start), type(end)):
        inferred = c_name(get_default_dtype().to_complex())
        raise RuntimeError(
            f"torch.linspace(): inferred dtype {inferred} can't be safely cast to passed dtype {dtype.tensor_name}"
        )
    if steps == 1:
        return Spacing(compute, start, 0, end, 1, 1)
    step = (compute(end) - compute(start)) / compute(max(steps - 1, 1))
    return Spacing(compute, start, step, end, steps, steps // 2)


def logspace_values(start: Any, end: Any, steps: int, base: float, dtype: dtype) -> np.ndarray:
    """Powers of the base, whose exponents are evenly spaced."""
    wide = dtypes.complex128 if dtype.is_complex else dtypes.float64
    return np.power(wide.numpy.type(base), linear(start, end, steps, wide).values())


def between_ends(name: str, steps: str, rule: Function, doc: str) -> Any:
    """The factory, and its overloads of which one end or both are tensors without dimensions.

    Those of tensors come first: a tensor without dimensions is taken for a number, too, and would lose its class.
    """

    def of_tensors(dtype: Any, start: Any, end: Any, *rest: Any) -> Rule:
        return rule(dtype, number("start", start), number("end", end), *rest)

    def number(which: str, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if value._shape:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {which} with {len(value._shape)} "
                "dimension(s)."
            )
        return value.item()

    plain = factory(rule, f"{name}(Scalar start, Scalar end, {steps})", out="out", around=kept, refuses="bool")
    kinds = (("Tensor", "Tensor"), ("Tensor", "Scalar"), ("Scalar", "Tensor"))
    tensors = [
        factory(of_tensors, f"{name}.{a}_{b}({a} start, {b} end, {steps})", out=f"{a}_{b}_out") for a, b in kinds
    ]
    return public(*tensors, plain, doc=doc)


linspace = between_ends(
    "linspace",
    "int steps",
    linspace_rule,
    "Returns `steps` numbers from `start` to `end` at equal distances.",
)
logspace = between_ends(
    "logspace",
    "int steps, float base=10.",
    logspace_rule,
    "Returns `steps` powers of `base`, with exponents from `start` to `end` at equal distances.",
)

# --- triangles -------------------------------------------------------------------------------------------------------


def places_of_triangle(name: str, indices: Function, where: str) -> Any:
    """`tril_indices` or `triu_indices`: rows and columns of the places of a triangle, row by row, as a matrix of two
    rows."""

    def places(row: int, col: int, offset: int, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
        for which, size in (("row", row), ("col", col)):
            if size < 0:
                raise RuntimeError(f"{which} must be non-negative, got{size}")
        dtype = as_integer_dtype(dtype)
        if dtype.name not in ("int16", "int32", "int64"):
            raise not_implemented(name, dtype)
        try:
            found = np.stack(indices(row, max(-row, min(offset, col)), col))
        except (MemoryError, ValueError):  # of more elements than numpy can count
            raise cannot_allocate(2 * row * col * dtype.itemsize) from None
        return written(new(found.shape, dtype, device, pin_memory), found)

    def into_out(row: int, col: int, offset: int, out: Tensor) -> Tensor:
        return filled(out, places(row, col, offset, None, None, out._device, None))

    schema = f"{name}(int row, int col, int offset=0, *, {LONG}) -> Tensor"
    doc = f"Returns the row and column of each element on and {where} a diagonal."
    return kernel(schema, derivative=False, out="out", out_by=by(into_out), doc=doc)(places)


tril_indices = places_of_triangle("tril_indices", np.tril_indices, "below")
triu_indices = places_of_triangle("triu_indices", np.triu_indices, "above")

# --- memory in a chosen order ----------------------------------------------------------------------------------------


def empty_permuted_out(size: Any, physical_layout: Any, out: Tensor) -> Tensor:
    resize_out(out, Meta(tuple(size), out._dtype, out._device, permuted_strides(size, physical_layout)))
    return out


@kernel(
    f"empty_permuted(SymInt[] size, int[] physical_layout, *, {FACTORY}) -> Tensor",
    derivative=False,
    out="out",
    out_by=by(empty_permuted_out),
)
def empty_permuted(size: Any, physical_layout: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    """Returns a tensor whose dimensions lie in memory in the given order, its elements whatever stood there."""
    return new(size, dtype, device, pin_memory, permuted_strides(size, physical_layout))


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
                f"{index}).  NB: negative dims not currently supported."
            )
    if len(set(order)) < len(order):
        raise RuntimeError("Duplicate dim not allowed")
    strides, step = [0] * len(size), 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(size[dim], 1)
    return tuple(strides)
