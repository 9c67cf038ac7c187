"""The largest and smallest elements: max, min, amax, amin, argmax, argmin, aminmax.

NaN is larger and smaller than all. Of equal elements `max.dim` names one and gives it the whole gradient, while `max`
and `amax` share it among all that are equal. There is no largest of no elements. Read next: moments.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch import kernels
from redispatch.dispatch.specialiser.annotations import inline, leaf
from redispatch.dispatch.tensor import Size, Tensor, dtypes, empty, empty_from, metadata_of, output_spec, wrap_dim
from redispatch.kernels import Reduction
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator
from ..declare.plan import PLANS, Plan, Run
from ..declare.planned import Planned
from ..declare.public import public
from ..declare.structured import Meta, check_out_dtype, resize_out
from .arithmetic import maximum, minimum
from .reductions import REDUCTION, reduced_dims, reduced_shape, with_kept_dims

# --- checks ----------------------------------------------------------------------------------------------------------


def check_not_empty(name: str, self: Tensor, dim: int | None) -> None:
    """Raises where an extreme over `dim`, or over everything, would be one of nothing."""
    if dim is None:
        if not self._shape.numel():
            raise RuntimeError(no_dim(name))
        return
    dim = wrap_dim(dim, len(self._shape))
    if self._shape and self._shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def no_dim(name: str) -> str:
    return (
        f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
        "'dim' argument."
    )


def check_ordered(kernel_name: str, self: Tensor) -> None:
    """Raises NotImplementedError for complex numbers, which have no order."""
    if self._dtype.is_complex:
        raise NotImplementedError(f"\"{kernel_name}\" not implemented for '{self._dtype.tensor_name}'")


# --- derivatives -----------------------------------------------------------------------------------------------------


def shared(grad: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of an extreme value, shared equally by all elements that are equal to it."""
    grad, result = (with_kept_dims(t, self.shape, dim, keepdim) for t in (grad, result))
    mask = (self == result) | ((self != self) & (result != result))
    return mask * (grad / mask.sum(dim, True))


def selected(grad: Any, indices: Any, shape: Any, dim: int, keepdim: bool) -> Any:
    """The gradient of elements that were selected along `dim`: it goes to where they stood."""
    if not shape:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(shape).scatter(dim, indices, grad)


def chosen(dim: int, keepdim: int | None = None) -> Any:
    """The tangent of elements that were selected, which is theirs. `dim` and `keepdim`: the places of the arguments."""

    def tangent(arguments: list[Any], tangents: list[Any], result: Any) -> list[Any]:
        moving, places = tangents[0], result[1]
        if not moving.shape:
            return [moving, None]
        if keepdim is None or arguments[keepdim]:
            return [moving.gather(arguments[dim], places), None]
        return [moving.gather(arguments[dim], places.unsqueeze(arguments[dim])).squeeze(arguments[dim]), None]

    return tangent


# --- amax, amin ------------------------------------------------------------------------------------------------------

amax_op = Planned("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", out="out", tags=REDUCTION)
amin_op = Planned("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", out="out", tags=REDUCTION)


def extreme_meta(name: str, self: Tensor, dim: Any, keepdim: bool) -> Meta:
    check_ordered("max_values_cpu" if name == "amax" else "min_values_cpu", self)
    dims = reduced_dims(dim, len(self._shape))
    if not self._shape.numel():
        if not dim:
            raise RuntimeError(no_dim(name))
        for d in dims:
            check_not_empty(name, self, d)
    return Meta(reduced_shape(self._shape, dims, keepdim), self._dtype, self._device)


@amax_op.meta
def amax_meta(self: Tensor, dim: Any, keepdim: bool) -> Meta:
    return extreme_meta("amax", self, dim, keepdim)


@amin_op.meta
def amin_meta(self: Tensor, dim: Any, keepdim: bool) -> Meta:
    return extreme_meta("amin", self, dim, keepdim)


@amax_op.loop
def amax_loop(out: Tensor, self: Tensor, dim: Any, keepdim: bool) -> Run:
    return extreme_loop(kernels.AMAX, out, self, dim)


@amin_op.loop
def amin_loop(out: Tensor, self: Tensor, dim: Any, keepdim: bool) -> Run:
    return extreme_loop(kernels.AMIN, out, self, dim)


def extreme_loop(reduction: Reduction, out: Tensor, self: Tensor, dim: Any) -> Run:
    if out._dtype is not self._dtype:
        raise RuntimeError(
            f"Expected the dtype for input and out to match, but got {self._dtype.tensor_name} for input's dtype and "
            f"{out._dtype.tensor_name} for out's dtype."
        )
    return reduction.ready(out._operand, self._operand, reduced_dims(dim, len(self._shape)))


amax_op.derivative(self=shared)
amin_op.derivative(self=shared)
amax = public(amax_op)
amin = public(amin_op)

# --- max, min --------------------------------------------------------------------------------------------------------

max_op = Planned("max(Tensor self) -> Tensor", out="unary_out", tags=REDUCTION)
min_op = Planned("min(Tensor self) -> Tensor", out="unary_out", tags=REDUCTION)


@max_op.meta
def max_meta(self: Tensor) -> Meta:
    check_ordered("max_all", self)
    check_not_empty("max", self, None)
    return Meta((), self._dtype, self._device)


@min_op.meta
def min_meta(self: Tensor) -> Meta:
    check_ordered("min_all", self)
    check_not_empty("min", self, None)
    return Meta((), self._dtype, self._device)


@max_op.loop
def max_loop(out: Tensor, self: Tensor) -> Run:
    return extreme_loop(kernels.AMAX, out, self, None)


@min_op.loop
def min_loop(out: Tensor, self: Tensor) -> Run:
    return extreme_loop(kernels.AMIN, out, self, None)


max_op.derivative(self=lambda grad, self, result: shared(grad, self, result, None, False), node="MaxBackward1")
min_op.derivative(self=lambda grad, self, result: shared(grad, self, result, None, False), node="MinBackward1")

max_dim_op = Operator(
    "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", tags=REDUCTION
)
min_dim_op = Operator(
    "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", tags=REDUCTION
)
max_dim_out_op = Operator(
    "max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) "
    "-> (Tensor(a!) values, Tensor(b!) indices)",
    tags=REDUCTION,
)
min_dim_out_op = Operator(
    "min.dim_min(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) min, Tensor(b!) min_indices) "
    "-> (Tensor(a!) values, Tensor(b!) indices)",
    tags=REDUCTION,
)


INDEXED: dict[Any, Plan] = {}  # by operator, looks, dim and keepdim: how values and their positions are found


@leaf
@inline
def with_indices(name: str, self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Values and their positions along `dim`."""
    key = (name, self._interned or metadata_of(self), dim, keepdim)
    plan = INDEXED.get(key) or new_indexed(key, self)
    values, indices = empty_from(plan.outputs[0]), empty_from(plan.outputs[1])
    if self._array is not None:
        plan.run(values._array, 0, indices._array, 0, self._array, self._offset)
    elif self._device.type != "meta":
        find_extremes(name, self, dim, values, indices)
    return values, indices


ELSEWHERE: dict[str, Callable[[str, Tensor, int, Tensor, Tensor], None]] = {}  # by device: what fills both results


def find_extremes(name: str, self: Tensor, dim: int, values: Tensor, indices: Tensor) -> None:
    """Fills the results off the CPU, where no plan is remembered."""
    if self._device.type in ELSEWHERE:
        ELSEWHERE[self._device.type](name, self, dim, values, indices)
        return
    dims = reduced_dims(dim, len(self._shape))
    kernels.extreme_with_indices(values._operand, indices._operand, self._operand, dims, largest=name == "max")


def new_indexed(key: Any, self: Tensor) -> Plan:
    name, _, dim, keepdim = key
    shape = Size(checked_shape(name, self, dim, keepdim))
    values, indices = output_spec(shape, self._dtype, self._device), output_spec(shape, dtypes.int64, self._device)
    if self._array is None:
        return Plan((values, indices), nothing)
    dims = reduced_dims(dim, len(self._shape))
    outs = empty_from(values)._operand, empty_from(indices)._operand
    plan = Plan((values, indices), kernels.ready_extreme(*outs, self._operand, dims, largest=name == "max"))
    if len(INDEXED) >= PLANS:
        INDEXED.clear()
    INDEXED[key] = plan
    return plan


def nothing(*args: Any) -> None:
    """What is to be done on the meta device."""


def with_indices_out(
    name: str, self: Tensor, dim: int, keepdim: bool, values: Tensor, indices: Tensor
) -> tuple[Tensor, Tensor]:
    shape = checked_shape(name, self, dim, keepdim)
    check_out_dtype(values, self._dtype)
    check_out_dtype(indices, dtypes.int64)
    resize_out(values, Meta(shape, self._dtype, self._device))
    resize_out(indices, Meta(shape, dtypes.int64, self._device))
    if indices._device.type != "meta":
        find_extremes(name, self, dim, values, indices)
    return values, indices


def checked_shape(name: str, self: Tensor, dim: int, keepdim: bool) -> tuple[int, ...]:
    if self._dtype.is_complex:
        raise RuntimeError(f"{name}(): does not support complex input")
    check_not_empty(name, self, dim)
    return reduced_shape(self._shape, reduced_dims(dim, len(self._shape)), keepdim)


@max_dim_op.kernel("CPU", "Meta")
@inline
def max_dim_kernel(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    return with_indices("max", self, dim, keepdim)


@min_dim_op.kernel("CPU", "Meta")
@inline
def min_dim_kernel(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    return with_indices("min", self, dim, keepdim)


@max_dim_out_op.kernel("CPU", "Meta")
def max_dim_out_kernel(self: Tensor, dim: int, keepdim: bool, max: Tensor, max_values: Tensor) -> Any:
    return with_indices_out("max", self, dim, keepdim, max, max_values)


@min_dim_out_op.kernel("CPU", "Meta")
def min_dim_out_kernel(self: Tensor, dim: int, keepdim: bool, min: Tensor, min_indices: Tensor) -> Any:
    return with_indices_out("min", self, dim, keepdim, min, min_indices)


for _op in (max_dim_op, min_dim_op):
    _op.derivative(
        self=lambda grad, result1, self_shape, dim, keepdim: selected(grad, result1, self_shape, dim, keepdim),
        nondifferentiable=(1,),
    )
    _op.forward(chosen(dim=1, keepdim=2))
max_dim_op.out = max_dim_out_op.functional
min_dim_op.out = min_dim_out_op.functional

max_other_op = Operator("max.other(Tensor self, Tensor other) -> Tensor", tags=("pointwise",))
min_other_op = Operator("min.other(Tensor self, Tensor other) -> Tensor", tags=("pointwise",))
max_out_op = Operator("max.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", tags=("pointwise",))
min_out_op = Operator("min.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", tags=("pointwise",))


@max_other_op.implicit
def max_other_composite(self: Any, other: Any) -> Any:
    return self.maximum(other)


@min_other_op.implicit
def min_other_composite(self: Any, other: Any) -> Any:
    return self.minimum(other)


@max_out_op.implicit
def max_out_composite(self: Any, other: Any, out: Any) -> Any:
    return maximum.op.out(self, other, out=out)


@min_out_op.implicit
def min_out_composite(self: Any, other: Any, out: Any) -> Any:
    return minimum.op.out(self, other, out=out)


max_other_op.out = max_out_op.functional
min_other_op.out = min_out_op.functional

max = public(max_op, max_other_op, max_dim_op)  # a 0-d integer tensor is an operand rather than a dimension
min = public(min_op, min_other_op, min_dim_op)

# --- argmax, argmin --------------------------------------------------------------------------------------------------

argmax_op = Planned("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", out="out", tags=REDUCTION)
argmin_op = Planned("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", out="out", tags=REDUCTION)


def position_meta(name: str, self: Tensor, dim: int | None, keepdim: bool) -> Meta:
    if self._dtype.is_complex or self._dtype is dtypes.bool:
        kind = "complex" if self._dtype.is_complex else "bool"
        raise RuntimeError(f"{name}(): does not support {kind} input")
    if dim is None and not self._shape.numel():
        raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
    check_not_empty(name, self, dim)
    return Meta(reduced_shape(self._shape, reduced_dims(dim, len(self._shape)), keepdim), dtypes.int64, self._device)


@argmax_op.meta
def argmax_meta(self: Tensor, dim: int | None, keepdim: bool) -> Meta:
    return position_meta("argmax", self, dim, keepdim)


@argmin_op.meta
def argmin_meta(self: Tensor, dim: int | None, keepdim: bool) -> Meta:
    return position_meta("argmin", self, dim, keepdim)


@argmax_op.loop
def argmax_loop(out: Tensor, self: Tensor, dim: int | None, keepdim: bool) -> Run:
    return position_loop(out, self, dim, largest=True)


@argmin_op.loop
def argmin_loop(out: Tensor, self: Tensor, dim: int | None, keepdim: bool) -> Run:
    return position_loop(out, self, dim, largest=False)


def position_loop(out: Tensor, self: Tensor, dim: int | None, largest: bool) -> Run:
    check_out_dtype(out, dtypes.int64)
    dims = reduced_dims(dim, len(self._shape))
    return kernels.ready_extreme(None, out._operand, self._operand, dims, largest=largest)


argmax_op.not_differentiable()
argmin_op.not_differentiable()
argmax = public(argmax_op)
argmin = public(argmin_op)

# --- aminmax ---------------------------------------------------------------------------------------------------------

aminmax_op = Operator(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", out="out", tags=REDUCTION
)


@aminmax_op.kernel("CPU", "Meta")
def aminmax_kernel(self: Tensor, dim: int | None, keepdim: bool) -> tuple[Tensor, Tensor]:
    check_ordered("aminmax_cpu", self)
    dims = reduced_dims(dim, len(self._shape))
    if dim is None and not self._shape.numel():
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    if dim is not None and self._shape and not self._shape[dims[0]]:
        raise IndexError(f"aminmax: Expected reduction dim {dims[0]} to have non-zero size.")
    shape = reduced_shape(self._shape, dims, keepdim)
    smallest, largest = (empty(shape, self._dtype, self._device) for _ in range(2))
    if self._device.type != "meta":
        kernels.AMIN.run(smallest._operand, self._operand, dims)
        kernels.AMAX.run(largest._operand, self._operand, dims)
    return smallest, largest


def aminmax_backward(grads: Any, self: Any, result0: Any, result1: Any, dim: int | None, keepdim: bool) -> Any:
    parts = [
        shared(grad, self, result, dim, keepdim)
        for grad, result in zip(grads, (result0, result1), strict=True)
        if grad is not None
    ]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


aminmax_op.derivative(self=aminmax_backward)
copy_into_out(aminmax_op)
aminmax = public(aminmax_op)
