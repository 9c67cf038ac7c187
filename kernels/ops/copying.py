"""Copies: clone, contiguous, _to_copy, copy_, fill_, detach; values for Python.

Note [Memory formats]
A copy lies in memory as its source does: a dense source keeps its strides, any other keeps the order of its
dimensions. `contiguous_format` and `channels_last` ask for an order instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any, TypeGuard

import numpy as np

from redispatch import kernels
from redispatch.dispatch import (
    ARGUMENT_TYPES,
    LAZY_BITS,
    STATE,
    TensorBase,
    call,
    dataclass,
    fallthrough_kernel,
    impl,
    ops,
    place_of,
    run,
    shared,
    wants_gradient,
    within,
)
from redispatch.dispatch.autograd import ONES_LIKE, ZEROS
from redispatch.dispatch.autograd.forward_ad import BELOW_FORWARD_AD
from redispatch.dispatch.layers import autocast
from redispatch.dispatch.layers.ad_inplace_or_view import ADINPLACEORVIEW, BELOW_ADINPLACEORVIEW, bump_version
from redispatch.dispatch.layers.autograd import BELOW_AUTOGRAD, any_wants_gradient
from redispatch.dispatch.layers.lazy_bit import CONJUGATE, NEGATIVE, ZERO_TENSOR
from redispatch.dispatch.layers.python import call_showing_type
from redispatch.dispatch.specialiser.annotations import inline, leaf
from redispatch.dispatch.tensor import (
    CPU,
    KINDS,
    Size,
    StorageBase,
    Tensor,
    UntypedStorage,
    as_numpy,
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    device_keyset,
    dtype,
    dtypes,
    empty,
    empty_from,
    lay_out,
    memory_format,
    metadata_of,
    no_memory,
    output_spec,
    overridable_property,
    pinned_copy,
    preserve_format,
    promote_types,
    show_same,
    storage_elements,
    strided,
    view_over,
)
from redispatch.dispatch.tensor.functional import is_functional
from redispatch.dispatch.tensor.metadata import VersionOfDetached
from redispatch.dispatch.tensor.operand import DTYPES as COMPUTED

from ..declare.declare import Operator, no_formula
from ..declare.numbers import LARGEST, storable
from ..declare.operator import composite, kernel, leaf_kernel
from ..declare.plan import NearPlan, Run
from ..declare.pointwise import shares_memory
from ..declare.public import public
from ..declare.structured import apart, check_no_internal_overlap, resize
from .creation import new, ones_like_op, preserved_strides, strides_for, zeros_like_op, zeros_op
from .geometry import give_view, unchanged

NO_DATA = "Cannot copy out of meta tensor; no data!"


def outside_graph(op: Operator) -> None:
    """Has the result of `op` show the memory of its argument, and count writes with it, but be no view for autograd."""

    def tracking(overload: Any, keyset: int, stack: list[Any]) -> Tensor:
        with within(STATE.get().excluding(ADINPLACEORVIEW)):
            result = run(overload, keyset & BELOW_ADINPLACEORVIEW, stack)
        result._counter = stack[0]._counter
        return result

    impl(op.functional, "ADInplaceOrView", tracking, convention="boxed", place=place_of(outside_graph))
    op.not_differentiable()


# --- how a copy lies in memory ----------------------------------------------------------------------------------------


def like_channels_last(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether the strides say "channels last", which for a single channel is a matter of convention.

    Source: PyTorch's `is_channels_last_strides_2d`; a user sees the answer in the strides of results.
    """
    if len(shape) not in (4, 5) or stride[1] == 0 or 0 in shape:
        return False
    least = 0
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        if stride[dim] < least or (dim == 0 and least == stride[1]):
            return False
        least = stride[dim] * max(shape[dim], 1)
    return True


def suggested_format(x: Tensor) -> memory_format:
    """The memory format that a tensor seems to be in."""
    if like_channels_last(x._shape, x._stride):
        return channels_last if len(x._shape) == 4 else channels_last_3d
    return contiguous_format


def copy_strides(x: Tensor, wanted: memory_format | None) -> tuple[int, ...] | None:
    """The strides of a copy of `x`; None for row by row. Note [Memory formats]."""
    return preserved_strides(x) if wanted is None or wanted is preserve_format else strides_for(x._shape, wanted)


def move(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """Fills `target`, new and of the source's shape, with the source's values."""
    if target._device.type == "meta":
        return target
    if source._device.type == "meta":
        raise NotImplementedError(NO_DATA)
    if target._device.type == source._device.type == "cpu":
        if metadata_of(source).bits & ZERO_TENSOR:
            kernels.fill(target._operand, 0)
        else:
            kernels.copy(target._operand, source._operand, **conj_neg_flags(target, source))
        return target
    with within(STATE.get().excluding(ADINPLACEORVIEW)):  # the tensor is new: this is no write
        return copy_inplace_op.functional(target, source, non_blocking)


REMEMBERED = 4096  # plans for copies and fills of each kind; then they start afresh

COPIES: dict[Any, NearPlan] = {}  # (metadata, dtype, device, memory format) -> how a tensor is copied


@inline
def copied(
    x: Tensor, dtype: dtype | None, device: device | None, format: memory_format | None, non_blocking: bool = False
) -> Tensor:
    """A copy with memory of its own, of another dtype or on another device where these are given."""
    plan = copy_plan(x, dtype, device, format)
    if plan.run is not None and x._array is not None:
        return copy_by(plan, x)
    if plan.near is not None:
        return copy_near(plan, x)
    return move_by(plan, x, non_blocking)  # from or to another device


@leaf
@inline
def copy_near(plan: NearPlan, x: Any) -> Tensor:
    result = empty_from(plan.outputs[0])
    plan.near(result, x)
    return result


@leaf
@inline
def copy_plan(x: Tensor, dtype: dtype | None, device: device | None, format: memory_format | None) -> NearPlan:
    key = (x._interned or metadata_of(x), dtype, device, format)
    plan = COPIES.get(key)
    if plan is None:
        plan = new_copy(key, x)
    return plan


@leaf
@inline
def copy_by(plan: NearPlan, x: Any) -> Tensor:
    result = empty_from(plan.outputs[0])
    plan.run(result._array, 0, x._array, x._offset)
    return result


def move_by(plan: NearPlan, x: Tensor, non_blocking: bool = False) -> Tensor:
    metadata: Any = plan.outputs[0]
    if metadata.device.type in ("cpu", "meta"):
        target = empty_from(metadata)
        if non_blocking and x._device.type in KINDS:  # nothing waits only if the device writes by itself
            found = pinned_copy(target)
            target = target if found is None else found
        return move(target, x, non_blocking)
    kind = KINDS.get(metadata.device.type)
    if kind is not None and kind.take is not None:
        near = output_spec(metadata.shape, metadata.dtype, CPU, metadata.stride)
        return kind.take(move(empty_from(near), x))
    made = new(metadata.shape, metadata.dtype, metadata.device, None, metadata.stride)  # as its backend makes tensors
    return move(made, x, non_blocking)


def new_copy(key: Any, x: Tensor) -> NearPlan:
    """The plan for a copy that is made for the first time."""
    _, dtype, device, format = key
    made = output_spec(x._shape, dtype or x._dtype, device or x._device, copy_strides(x, format))
    near = copier(x._device) if x._device is made.device and not metadata_of(x).bits else None
    plan = NearPlan((made,), ready_to_copy(empty_from(made), x), near)
    if x._array is not None or made.device is not CPU:  # else it is a wrapper, which only looks like others
        if len(COPIES) >= REMEMBERED:
            COPIES.clear()
        COPIES[key] = plan
    return plan


def copier(on: device) -> Any:
    """Returns `f(target, source)`, which copies on a user's device, broadcast and converted; None if there is none."""
    kind = KINDS.get(on.type)
    return None if kind is None else kind.copy


def ready_to_copy(target: Tensor, source: Tensor) -> Any:
    """Returns what copies such a tensor into such another one; None where they are not both in the CPU's memory."""
    if target._array is None or source._array is None:
        return None
    return kernels.ready_copy(target._operand, source._operand, **conj_neg_flags(target, source))


def conj_neg_flags(target: Tensor, source: Tensor) -> dict[str, bool]:
    """Returns the options of kernels.copy with which both tensors show the same."""
    bits = metadata_of(target).bits ^ metadata_of(source).bits
    return {"conj": bits & CONJUGATE != 0, "neg": bits & NEGATIVE != 0}


# --- numbers to be stored ---------------------------------------------------------------------------------------------

# --- copies -----------------------------------------------------------------------------------------------------------

clone_op = Operator("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", tags=("pointwise",), core=True)


@clone_op.explicit
@inline
def clone_kernel(self: Tensor, format: memory_format | None) -> Tensor:
    return copied(self, None, None, format)


clone_op.understands("Conjugate", "Negative", "ZeroTensor")
clone_op.derivative(self=lambda grad: grad)
clone_op.forward("linear")
clone = public(clone_op, doc="Returns a copy of the tensor, through which gradients flow.")


@composite("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)", function=False)
@inline
def contiguous(self: Tensor, format: Any) -> Tensor:
    """Returns the tensor itself where its elements are contiguous in this memory format, otherwise a copy."""
    if format is contiguous_format:
        if kernels.is_contiguous(self._shape, self._stride):
            return self
        return call(clone_op.functional, [self, contiguous_format])
    return contiguous_slow(self, format)


def contiguous_slow(self: Tensor, format: Any) -> Tensor:
    """Returns the tensor contiguous in another memory format."""
    format = contiguous_format if format == 0 else format
    if format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    if self.is_contiguous(memory_format=format):
        return self
    return clone_op.functional(self, memory_format=format)


@kernel(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    core=True,
    batching="pointwise",
    forward="linear",
)
@inline
def to_copy_op(
    self: Tensor, dtype: Any, layout: Any, device: Any, pin_memory: Any, non_blocking: bool, format: Any
) -> Tensor:
    return copied(self, dtype, device, format, non_blocking)


def to_copy_backward(grad: Tensor, self_dtype: dtype, self_device: device) -> Tensor:
    if grad._dtype is self_dtype and grad._device == self_device:
        return grad
    return to_copy_op.functional(grad, dtype=self_dtype, layout=strided, device=self_device)


to_copy_op.derivative(self=to_copy_backward)


@inline
def cast(tensor: Any, dtype: Any) -> Any:
    """`tensor` in another dtype, for autocast: no `__torch_function__` or function mode sees it."""
    if dtype is None:
        return tensor
    return call(to_copy_op.functional, [tensor, dtype, None, None, None, False, None])


autocast.CAST.fill(cast)
autocast.FLOAT32.fill(dtypes.float32)
autocast.WIDER.fill(promote_types)

copy_inplace_op = Operator(
    "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    numbers=True,
    tags=("inplace",),
    batching="pointwise",
)


@copy_inplace_op.kernel("CPU", "Meta")
@inline
def copy_inplace_kernel(self: Tensor, src: Any, non_blocking: bool) -> Tensor:
    if is_tensor(src) and not shares_memory(src, self):
        key = (self._interned or metadata_of(self), src._interned or metadata_of(src))
        run = WRITES.get(key)
        if run is None:
            run = new_write(key, self, src)
        if self._array is not None and src._array is not None:
            run(self._array, self._offset, src._array, src._offset)
            return self
    return copy_inplace_slow(self, src)


@inline
def is_tensor(value: Any) -> TypeGuard[Tensor]:
    return isinstance(value, TensorBase)


WRITES: dict[Any, Run] = {}  # what copies one tensor into another, by their metadata


def new_write(key: Any, target: Tensor, source: Tensor) -> Run:
    """Decides how such a tensor is copied into such another. RuntimeError where that does not broadcast to this."""
    check_no_internal_overlap(target)
    check_broadcasts_to(target, source)
    run = ready_to_copy(target, source)
    if len(WRITES) >= REMEMBERED:
        WRITES.clear()
    WRITES[key] = run
    return run


def copy_inplace_slow(self: Tensor, src: Any) -> Tensor:
    """Copies from a number, from memory that the tensors may share, on the meta device or without memory."""
    if src is self:
        return self
    check_no_internal_overlap(self)
    if not isinstance(src, Tensor):
        return fill_scalar_kernel(self, in_memory(src, self))
    check_broadcasts_to(self, src)
    if self._device.type == "meta":
        return self
    if src._device.type == "meta":
        raise NotImplementedError(NO_DATA)
    if metadata_of(src).bits & ZERO_TENSOR:
        return zero_kernel(self)
    flags = conj_neg_flags(self, src)
    kernels.copy(self._operand, apart(src, self, elementwise=True)._operand, **flags)
    return self


def in_memory(number: Any, target: Tensor) -> Any:
    """The number that is to lie in memory where `target` is to show `number`."""
    bits = metadata_of(target).bits
    number = number.conjugate() if bits & CONJUGATE else number
    return -number if bits & NEGATIVE else number


def check_broadcasts_to(target: Tensor, *sources: Tensor) -> None:
    """RuntimeError unless the sources broadcast to exactly the target's shape."""
    if all(source._shape == target._shape for source in sources):
        return
    shape = kernels.broadcast_shapes(target._shape, *(source._shape for source in sources))
    if shape != tuple(target._shape):
        raise RuntimeError(f"output with shape {list(target._shape)} doesn't match the broadcast shape {list(shape)}")


copy_from_op = Operator("_copy_from(Tensor self, Tensor dst, bool non_blocking=False) -> Tensor")
copy_from_op.not_differentiable()


@copy_inplace_op.explicit
def copy_between_devices(self: Tensor, src: Any, non_blocking: bool) -> Tensor:
    """`copy_` on a backend without a kernel for it: `_copy_from`, which the backend has for copies from and to the CPU.

    The backend copies memory, from a source of the target's shape; what lazy bits say is done to it here.
    """
    if src is self:
        return self
    if not isinstance(src, Tensor):
        return fill_inplace_scalar_op.functional(self, src)
    check_broadcasts_to(self, src)
    if metadata_of(src).bits & ZERO_TENSOR:
        return zero_inplace_op.functional(self)
    if src._device is self._device and stays_there(self, src):
        check_no_internal_overlap(self)
        if self._shape.numel():
            copier(self._device)(self, src)
        return self
    memory = memory_of(self)
    source = memory_of(src if src._shape == self._shape else src.expand(self._shape))
    copy_from_op.functional(source, memory, non_blocking)
    flags = conj_neg_flags(self, src)
    if flags["conj"]:
        memory.conj_physical_()
    if flags["neg"]:
        memory.neg_()
    return self


def stays_there(self: Tensor, src: Tensor) -> bool:
    """Whether a device copies by itself from memory to other memory of its own, as it lies."""
    store, other = self._store, src._store
    if store is None or other is None or store is other or store.block is None or other.block is None:
        return False
    return not (metadata_of(self).bits or metadata_of(src).bits) and copier(self._device) is not None


def memory_of(x: Tensor) -> Tensor:
    """The tensor without its lazy bits: what lies in memory."""
    if not metadata_of(x).bits:
        return x
    bare = view_over(x, x._shape, x._stride, x._offset)
    bare._keyset = device_keyset(x._device.type, x._counter is None, x._dtype.bits)
    return bare


copy_inplace_op.understands("Conjugate", "Negative", "ZeroTensor")
copy_inplace_op.derivative(self=lambda grad: zeros_of(grad), src=lambda grad: grad, node="CopyBackwards")
copy_inplace_op.forward("linear")
copy_ = public(copy_inplace_op, function=False, doc="Writes the elements of `src`, which broadcasts, over the tensor.")

copy_op = Operator("copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", core=True)


@copy_op.explicit
def copy_kernel(self: Tensor, src: Tensor, non_blocking: bool) -> Tensor:
    """`src` in the shape, dtype and strides of `self`: what is left of `copy_` where nothing may be written.

    Between the elements of a `self` with gaps lies what lay there before.
    """
    made = output_spec(self._shape, self._dtype, self._device, self._stride)
    if made.elements <= self._shape.numel():  # dense, or with elements that coincide
        dense = new(self._shape, self._dtype, self._device, None, copy_strides(self, None))
        return copy_inplace_op.functional(dense, src)
    whole = copied(view_over(self, (made.elements,), (1,), self._offset), None, None, contiguous_format)
    return copy_inplace_op.functional(view_over(whole, self._shape, self._stride, 0), src)


copy_op.derivative(self=lambda grad: zeros_of(grad), src=lambda grad: grad)
copy_op.forward("linear")


def zeros_of(grad: Tensor) -> Tensor:
    """The gradient of what was overwritten."""
    return zeros_like_op.functional(grad)


# --- the same memory --------------------------------------------------------------------------------------------------

alias_op = Operator("alias(Tensor(a) self) -> Tensor(a)", core=True, batching="pointwise")


give_view(alias_op, unchanged, "alias_kernel")
alias_op.derivative(self=lambda grad: grad)
alias = public(alias_op, function=False, doc="Returns a view of the whole tensor.")

detach_op = Operator("detach(Tensor(a) self) -> Tensor(a)", batching="pointwise")


give_view(detach_op, unchanged, "detach_kernel")
outside_graph(detach_op)
detach = public(detach_op, doc="Returns a view of the tensor through which no gradient flows.")


@kernel(
    "detach_(Tensor(a!) self) -> Tensor(a!)",
    tags=("inplace", "inplace_view"),
    batching="pointwise",
)
def detach_(self: Tensor) -> Tensor:
    """Detaches the tensor from the graph that made it, in place."""
    return self


detach_inplace_op = detach_.op


def detach_inplace_autograd(op: Any, keyset: int, stack: list[Any]) -> Tensor:
    """At Autograd: takes the tensor out of the graph. RuntimeError for a view, which its base would bring back."""
    tensor = stack[0]
    if tensor._view is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
            "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
            "detach_() cannot be called on these gradients. To fix this error, please refer to the "
            "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
        )
    if tensor._autograd is not None:  # no memory is touched: nobody below is asked, and the version stays
        if tensor._autograd.grad_fn is not None and tensor._counter is not None:
            tensor._counter = VersionOfDetached(tensor._counter)
        tensor._autograd.grad_fn, tensor._autograd.output_nr = None, 0
        tensor._autograd.requires_grad = False
    return tensor


impl(
    detach_inplace_op.functional,
    "Autograd",
    detach_inplace_autograd,
    convention="boxed",
    place=place_of(detach_inplace_autograd),
)


def detach_inplace_forward(op: Any, keyset: int, stack: list[Any]) -> Tensor:
    """At ForwardAD: takes away the tangent, too."""
    result = run(op, keyset & BELOW_FORWARD_AD, stack)
    result._tangent = None
    return result


impl(
    detach_inplace_op.functional,
    "ForwardAD",
    detach_inplace_forward,
    convention="boxed",
    place=place_of(detach_inplace_forward),
)


# The result is the argument, so it has the argument's history.
@kernel(
    "lift_fresh(Tensor(a) self) -> Tensor(a)",
    face=False,
    batching="pointwise",
    understands=("Autograd", "ADInplaceOrView"),
)
def lift_fresh_op(self: Tensor) -> Tensor:
    """The tensor itself: a mark, for modes, at the place where a tensor made of Python's values enters."""
    return self


@kernel(
    "lift_fresh_copy(Tensor self) -> Tensor",
    tags=("view_copy",),
    batching="pointwise",
    derivative=lambda grad: grad,
    node="LiftFreshBackward0_copy",
    forward="linear",
    face=False,
)
def lift_fresh_copy_op(self: Tensor) -> Tensor:
    return clone_kernel(self, None)


def _get_data(self: Tensor) -> Tensor:
    """Returns the same memory outside the graph; unlike `detach()`, it counts its writes for itself."""
    result = call_showing_type(detach_op.functional, self)
    if result._counter is not None:
        result._counter = [0]
    return result


def _set_data(self: Tensor, value: Any) -> None:
    """Has the tensor show other memory, and with it another shape and dtype; its history and version stay."""
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if (value._device.type == "meta") != (self._device.type == "meta"):
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
        )
    record = self._autograd
    if record is not None and record.requires_grad and not (value._dtype.is_floating_point or value._dtype.is_complex):
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
    if record is not None and (self._dtype, self._device) != (value._dtype, value._device):
        record.accumulator = None  # it expects gradients of the former dtype
    if self._device != value._device:
        self._keyset = shared((self._keyset & ~empty((0,), self._dtype, self._device)._keyset) | value._keyset)
    if (self._keyset ^ value._keyset) & LAZY_BITS:
        self._keyset = shared((self._keyset & ~LAZY_BITS) | (value._keyset & LAZY_BITS))
    show_same(self, value)
    wrapper: Any = self
    if is_functional(wrapper) and is_functional(value):
        wrapper._steps, wrapper._value, wrapper._generation = value._steps, value._value, value._generation


Tensor.data = overridable_property(_get_data, _set_data)  # type: ignore[attr-defined]  # attached here

# --- filling ----------------------------------------------------------------------------------------------------------

fill_inplace_scalar_op = Operator(
    "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)", tags=("inplace",), batching="pointwise"
)
fill_inplace_tensor_op = Operator("fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)", tags=("inplace",))


@dataclass(frozen=True, slots=True, eq=False)
class FillPlan:
    """A plan that fills tensors which look alike; numbers of `kind` in a range need no conversion."""

    run: Run
    kind: type
    low: Any
    high: Any
    zero: Any


FILLS: dict[Any, FillPlan] = {}  # by metadata


@fill_inplace_scalar_op.kernel("CPU", "Meta")
@inline
def fill_scalar_kernel(self: Tensor, value: Any) -> Tensor:
    plan = FILLS.get(self._interned or metadata_of(self)) or new_fill(self)
    if type(value) is not plan.kind or not plan.low <= value <= plan.high:
        value = storable(value, self._dtype)
    fill_with(plan, self, value)
    return self


@inline
def fill_with(plan: FillPlan, target: Tensor, value: Any) -> None:
    """Writes a number that is as the plan wants it. Nothing is written on the meta device."""
    if target._array is not None:
        plan.run(target._array, target._offset, value)
    elif target._device.type == "cpu":
        raise no_memory(target)


def new_fill(x: Tensor) -> FillPlan:
    """The plan for tensors that look like `x`. It is remembered if there is memory to fill."""
    to = x._dtype
    zero = (False, 0, 0.0, 0j)[to.category]
    kind: type = type(zero)
    low, high = 0.0, 0.0
    if to.category == dtypes.INTEGER:
        low, high = int(np.iinfo(to.numpy).min), int(np.iinfo(to.numpy).max)
    elif to.category == dtypes.COMPLEX:
        kind = NoneType  # every number is converted
    else:
        high = 1 if zero is False else LARGEST.get(to.name, float("inf"))
        low = -high
    if x._array is None:
        return FillPlan(nothing, kind, low, high, zero)
    plan = FillPlan(kernels.ready_fill(x._operand, zero), kind, low, high, zero)
    if len(FILLS) >= REMEMBERED:
        FILLS.clear()
    FILLS[metadata_of(x)] = plan
    return plan


def nothing(*args: Any) -> None:
    """Does what is to be done where there is no memory."""


@fill_inplace_tensor_op.kernel("CPU", "Meta")
def fill_tensor_kernel(self: Tensor, value: Tensor) -> Tensor:
    if value._shape:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {len(value._shape)} dimensions."
        )
    if self._device.type == "meta":
        return self
    if value._device.type == "meta":
        raise NotImplementedError(NO_DATA)
    check_no_internal_overlap(self)
    value = apart(value, self, elementwise=False)
    kernels.copy(self._operand, value._operand)
    return self


@kernel(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor",
    core=True,
    batching="pointwise",
    derivative=zeros_of,
    node="FillBackward0",
)
def fill_scalar_op(self: Tensor, value: Any) -> Tensor:
    empty_from = new(self._shape, self._dtype, self._device, None, copy_strides(self, None))
    return fill_inplace_scalar_op.functional(empty_from, value)


@kernel(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    derivative={"self": zeros_of, "value": lambda grad: grad.sum()},
    node="FillBackward1",
    forward="linear",
)
def fill_tensor_op(self: Tensor, value: Tensor) -> Tensor:
    """Returns a tensor like `self` that is filled with `value`."""
    empty_from = new(self._shape, self._dtype, self._device, None, copy_strides(self, None))
    return fill_inplace_tensor_op.functional(empty_from, value)


fill_inplace_scalar_op.derivative(self=zeros_of, node="FillBackward2")
fill_inplace_tensor_op.derivative(self=zeros_of, value=lambda grad: grad.sum(), node="FillBackward3")
fill_inplace_tensor_op.forward("linear")
fill_ = public(fill_inplace_tensor_op, fill_inplace_scalar_op, doc="Fills the tensor with `value`.")
fill = public(fill_tensor_op, fill_scalar_op, method=False)

zero_inplace_op = Operator("zero_(Tensor(a!) self) -> Tensor(a!)", tags=("inplace",), batching="pointwise")


@zero_inplace_op.kernel("CPU", "Meta")
@inline
def zero_kernel(self: Tensor) -> Tensor:
    plan = FILLS.get(self._interned or metadata_of(self)) or new_fill(self)
    fill_with(plan, self, plan.zero)
    return self


zero_inplace_op.derivative(self=zeros_of, node="ZeroBackward0")
zero_inplace_op.forward("linear")
zero_ = public(zero_inplace_op, doc="Fills the tensor with zeros.")


def updated(x: Any, operation: str, *arguments: Any) -> Any:
    """Returns `x.operation(*arguments)`: in the memory of `x`, unless all examples of a transform may share that."""
    return getattr(x, operation if STATE.get().levels else f"{operation}_")(*arguments)


def first_gradient(tensor: Tensor) -> Tensor:
    """Ones. A mode or a subclass sees them asked for in the words of PyTorch's C++; otherwise these would only cost."""
    if type(tensor) is Tensor and not STATE.get().modes:
        return ones_like_op.functional(tensor)
    return ones_like_op.functional(tensor, pin_memory=False, memory_format=preserve_format)


ONES_LIKE.fill(first_gradient)
ZEROS.fill(lambda shape, dtype, device: zeros_op.functional(shape, dtype=dtype, device=device))

# --- values for Python ------------------------------------------------------------------------------------------------


@kernel(
    "_local_scalar_dense(Tensor self) -> Scalar", "CPU", tags=("data_dependent_output",), core=True, derivative=False
)
def local_scalar_dense_op(self: Tensor) -> Any:
    if self._array is None:
        raise no_memory(self)
    if self._shape and self._shape.numel() != 1:
        raise RuntimeError(f"a Tensor with {self._shape.numel()} elements cannot be converted to Scalar")
    element = self._dtype
    if element.name not in COMPUTED:
        return element.numpy  # which says that there is none
    if (element.is_floating_point and element.itemsize <= 2) or (element.is_complex and element.itemsize == 4):
        value = as_numpy(self).reshape(())[()]
        return complex(value) if element.is_complex else float(value)
    return self._array[self._offset].item()


@local_scalar_dense_op.kernel("Meta")
def local_scalar_dense_meta(self: Tensor) -> Any:
    raise RuntimeError("Tensor.item() cannot be called on meta tensors")


@composite(
    "item(Tensor self) -> Scalar",
    tags=("data_dependent_output",),
    function=False,
)
@inline
def item(self: Tensor) -> Any:
    """Returns the only element of the tensor as a Python number."""
    if self._shape and self._shape.numel() != 1:
        raise RuntimeError(f"a Tensor with {self._shape.numel()} elements cannot be converted to Scalar")
    return call(local_scalar_dense_op.functional, [self])


item_op = item.op


def check_value(name: str, value: Tensor) -> None:
    """RuntimeError for a value that is written at several places, and is not a single number."""
    if value._shape:
        raise RuntimeError(
            f"{name} only supports a 0-dimensional value tensor, but got tensor with {len(value._shape)} dimension(s)."
        )


def number_in(name: str, value: Tensor, where: Tensor) -> Any:
    """The number in such a tensor; 0 if `where` is on the meta device, and nothing is written."""
    check_value(name, value)
    return 0 if where._device.type == "meta" else local_scalar_dense_op.functional(value)


def as_scalar(value: Tensor) -> Any:
    """The number that a tensor without dimensions stands for where a schema wants a Scalar. TypeError for any other."""
    if value._shape or value._requires_grad():
        raise TypeError(f"Cannot cast {value} to number")
    return item_op.functional(value)


ARGUMENT_TYPES["Scalar"] = as_scalar


@composite("is_nonzero(Tensor self) -> bool")
def is_nonzero(self: Tensor) -> bool:
    """Returns whether the only element of the tensor is not zero."""
    elements = self._shape.numel()
    if elements != 1:
        which = "no values" if elements == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {which} is ambiguous")
    return bool(item_op.functional(self))


@leaf_kernel(
    "_test_functorch_fallback(Tensor self, Tensor other) -> Tensor",
    out="out",
    derivative={"self": no_formula("_test_functorch_fallback"), "other": no_formula("_test_functorch_fallback")},
    method=False,
    face=True,
)
def _test_functorch_fallback(self, other):
    """Returns a copy of the first tensor. It has no batching rule, so that vmap calls it once for each example."""
    return copied(self, None, None, preserve_format)


_test_functorch_fallback.op.forward("linear")


equal_op = Operator("equal(Tensor self, Tensor other) -> bool", tags=("data_dependent_output", "pointwise"))


@equal_op.kernel("CPU")
def equal_kernel(self: Tensor, other: Tensor) -> bool:
    return self._shape == other._shape and bool((as_numpy(self) == as_numpy(other)).all())


equal_op.not_differentiable()
equal = public(equal_op, doc="Returns whether both tensors have the same shape and the same elements.")

_CLOSE = "(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)"


@composite(f"isclose{_CLOSE} -> Tensor")
def isclose(self: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    """Returns whether pairs of elements are equal, or |self - other| <= atol + rtol |other|, and finite."""
    if self._dtype is not other._dtype:
        raise RuntimeError(f"{self._dtype.tensor_name} did not match {other._dtype.tensor_name}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    x: Any = self
    y: Any = other
    close = x == y
    if equal_nan and (x.is_floating_point() or x.is_complex()):
        close = close | ((x != x) & (y != y))
    if rtol == 0 and atol == 0:
        return close
    if not (x.is_floating_point() or x.is_complex()):
        y = y.to(dtypes.get_default_dtype())  # so that the difference has a sign
        x = x.to(y.dtype) if x.dtype is dtypes.bool else x  # it cannot be subtracted
    allowed = ops.aten.add.Scalar(ops.aten.mul.Scalar(y, rtol).abs(), atol)
    error = (x - y).abs()
    near = (error.abs() != float("inf")) * (error == error)
    near &= error <= allowed
    close |= near
    return close


isclose_op = isclose.op


@kernel(
    f"allclose{_CLOSE} -> bool",
    tags=("data_dependent_output",),
    derivative=False,
)
def allclose(self: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> bool:
    """Returns whether all pairs of elements are close, as `isclose` says."""
    return bool(isclose_op.functional(self, other, rtol, atol, equal_nan).all())


# --- other memory for the same tensor ---------------------------------------------------------------------------------

resize_inplace_op = Operator(
    "resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    tags=("inplace", "inplace_view"),
    core=True,
    batching="view",
)


@resize_inplace_op.kernel("CPU", "Meta")
def resize_kernel(self: Tensor, size: Any, format: Any) -> Tensor:
    """Gives the tensor another size, in place: its storage grows where it is too small."""
    shape = Size(size)
    if format is None and shape == self._shape:
        return self  # it keeps its strides, and so its values; nothing is written
    bump_version(self)
    strides = strides_for(shape, format)
    storage_elements(shape, strides or kernels.contiguous_strides(tuple(shape)), self._dtype)  # sizes that are none
    resize(self, shape, strides)
    return self


def resize_autograd(op: Any, keyset: int, stack: list[Any]) -> Tensor:
    """At Autograd: RuntimeError for a tensor that requires grad, whose node would not know the new shape."""
    if any_wants_gradient(op.schema, stack):
        raise RuntimeError("cannot resize variables that require grad")
    return run(op, keyset & BELOW_AUTOGRAD, stack)


impl(resize_inplace_op.functional, "Autograd", resize_autograd, convention="boxed", place=place_of(resize_autograd))
impl(
    resize_inplace_op.functional, "ADInplaceOrView", fallthrough_kernel, convention="positional", place=place_of(resize)
)
resize_ = public(resize_inplace_op, function=False)


@kernel(
    "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    tags=("inplace", "inplace_view"),
)
def resize_as_(self: Tensor, the_template: Tensor, format: Any) -> Tensor:
    """Gives the tensor the size of `the_template`, in place."""
    kept = suggested_format(the_template) if format is preserve_format else format
    return resize_inplace_op.functional(self, the_template._shape, memory_format=kept)


resize_as_op = resize_as_.op


def resize_as_autograd(op: Any, keyset: int, stack: list[Any]) -> Tensor:
    """At Autograd: as `resize_`; of the template, whose shape alone counts, no gradient is wanted."""
    if wants_gradient(stack[0]):
        raise RuntimeError("cannot resize variables that require grad")
    return run(op, keyset & BELOW_AUTOGRAD, stack)


impl(resize_as_op.functional, "Autograd", resize_as_autograd, convention="boxed", place=place_of(resize_as_autograd))
impl(resize_as_op.functional, "ADInplaceOrView", fallthrough_kernel, convention="positional", place=place_of(resize))

set_tensor_op = Operator(
    "set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)", tags=("inplace", "inplace_view")
)
set_slice_op = Operator(
    "set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, SymInt[] size, "
    "SymInt[] stride=[]) -> Tensor(a!)",
    tags=("inplace", "inplace_view"),
)
set_whole_op = Operator(
    "set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)", tags=("inplace", "inplace_view")
)
set_nothing_op = Operator("set_(Tensor(a!) self) -> Tensor(a!)", tags=("inplace", "inplace_view"))
set_storage_op = Operator(
    "set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, SymInt storage_offset, SymInt[] size, "
    "SymInt[] stride=[]) -> Tensor(a!)",
    tags=("inplace", "inplace_view"),
    batching="view",
)


@set_tensor_op.kernel("CPU", "Meta")
def set_tensor_kernel(self: Tensor, source: Tensor) -> Tensor:
    """Makes the tensor show the memory of `source`, in place. For the graph it is another leaf from then on."""
    if self._autograd is not None:
        self._autograd.accumulator = None
    if source._dtype is not self._dtype:
        raise RuntimeError(
            f"Could not set tensor of type {source._dtype.tensor_name} to a tensor of type {self._dtype.tensor_name}"
        )
    if source._device != self._device:
        raise RuntimeError(f"Could not set a tensor on {source._device} to a tensor on {self._device}")
    show_same(self, source)
    return self


@set_storage_op.kernel("CPU", "Meta")
def set_storage_kernel(self: Tensor, source: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    if source.device != self._device:
        raise RuntimeError(f"Could not set a storage on {source.device} to a tensor on {self._device}")
    shape = Size(size)
    strides = tuple(stride) or kernels.contiguous_strides(tuple(shape))
    kernels.check_view(shape, strides, storage_offset, source.nbytes() // self._dtype.itemsize)
    self._storage, self._array = source, source.typed(self._dtype)
    lay_out(self, shape, strides, storage_offset)
    return self


@set_whole_op.kernel("CompositeImplicitAutograd")
def set_whole_kernel(self: Tensor, source: Any) -> Tensor:
    return set_storage_op.functional(self, source, 0, [source.nbytes() // self._dtype.itemsize])


@set_nothing_op.kernel("CompositeImplicitAutograd")
def set_nothing_kernel(self: Tensor) -> Tensor:
    return set_storage_op.functional(self, UntypedStorage(0, self._device), 0, [0])


@set_slice_op.kernel("CompositeImplicitAutograd")
def set_slice_kernel(self: Tensor, source: Tensor, storage_offset: int, size: Any, stride: Any) -> Tensor:
    if source._dtype is not self._dtype:
        raise RuntimeError(
            f"Could not set tensor of type {source._dtype.tensor_name} to a tensor of type {self._dtype.tensor_name}"
        )
    return set_storage_op.functional(self, source._storage, storage_offset, size, stride)


def as_storage(value: Any) -> Any:
    """TypeError for what is no storage."""
    if isinstance(value, StorageBase):
        return value
    raise TypeError(f"Unable to cast {value} to Storage")


ARGUMENT_TYPES["Storage"] = as_storage
set_ = public(set_storage_op, set_whole_op, set_slice_op, set_tensor_op, set_nothing_op, function=False)
