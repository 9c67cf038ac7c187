"""Factories: tensors made of a shape and a rule for their values.

Each has one kernel for all devices (`explicit`): it asks for empty memory and fills it. So a backend that registers
`empty.memory_format`, `empty_strided` and `fill_` has them all, and the meta device allocates and fills nothing.

The dispatcher finds a factory's backend by its `device` argument (dispatch/layers/backend_select.py).
Read next: from_data.py, for tensors made of Python data and numpy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ARGUMENT_TYPES, STATE, dataclass, impl, within
from redispatch.dispatch.layers.ad_inplace_or_view import ADINPLACEORVIEW
from redispatch.dispatch.specialiser.annotations import frozen, inline, leaf
from redispatch.dispatch.symbolic import holds
from redispatch.dispatch.tensor import (
    CPU,
    KINDS,
    Size,
    Tensor,
    channels_last,
    channels_last_3d,
    channels_last_strides,
    contiguous_format,
    device,
    dtype,
    dtypes,
    empty_from,
    get_default_dtype,
    indexed,
    lay_out,
    metadata_of,
    number_dtype,
    output_spec,
    pinned,
    preserve_format,
    view_over,
)
from redispatch.dispatch.tensor import empty as allocate
from redispatch.kernels import Operand, contiguous_strides, is_dense, output_strides

from ..declare.declare import Operator
from ..declare.numbers import storable
from ..declare.operator import EXPLICIT, LAZY, kernel, leaf_kernel
from ..declare.out_forms import by
from ..declare.plan import NearPlan
from ..declare.public import public
from ..declare.structured import Meta, resize_out
from .rare_dtypes import check_factory

FACTORY = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
LONG = FACTORY.replace("dtype=None", "dtype=long")
LIKE = f"Tensor self, *, {FACTORY}, MemoryFormat? memory_format=None"
_RANK = {channels_last: 4, channels_last_3d: 5}

# --- memory ----------------------------------------------------------------------------------------------------------


@leaf_kernel(
    f"empty.memory_format(SymInt[] size, *, {FACTORY}, MemoryFormat? memory_format=None) -> Tensor",
    derivative=False,
    out="out",
    name="empty",
    out_by=by(lambda size, memory_format, out: shaped(out, size)),
    core=True,
    face=True,
)
@inline
def empty(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Tensor:
    """Returns a tensor of the given size whose elements are whatever stood in memory."""
    made = allocate(size, dtype or get_default_dtype(), device or CPU, strides_for(size, memory_format))
    return pinned(made, pin_memory) if pin_memory else made


@leaf_kernel(f"empty_strided(SymInt[] size, SymInt[] stride, *, {FACTORY}) -> Tensor", derivative=False, core=True)
def empty_strided(size: Any, stride: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    """Returns a tensor of the given size and strides whose elements are whatever stood in memory."""
    made = allocate(size, dtype or get_default_dtype(), device or CPU, checked_strides(size, stride))
    return pinned(made, pin_memory) if pin_memory else made


empty_op, empty_strided_op = empty.op, empty_strided.op


def checked_strides(size: Any, stride: Any) -> tuple[int, ...]:
    """The strides, as a tuple. RuntimeError where they are not as many as the sizes, or one is negative."""
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    if any(step < 0 for step in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    return tuple(stride)


def check_pinning(pin_memory: bool | None) -> None:
    """Raises RuntimeError where a device's memory is to be pinned: only the CPU's can be."""
    if pin_memory:
        raise RuntimeError("Only dense CPU tensors can be pinned")


@inline
def strides_for(shape: Any, memory_format: Any) -> tuple[int, ...] | None:
    """The strides of a new tensor of this format; None for row by row."""
    if memory_format is None or memory_format is contiguous_format:
        return None
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by empty operator; call it on a tensor: empty_like")
    if len(shape) != _RANK[memory_format]:
        raise RuntimeError(f"required rank {_RANK[memory_format]} tensor to use {memory_format.name} format")
    return channels_last_strides(tuple(shape))


def new(
    shape: Any, dtype: dtype | None, device: device | None, pin_memory: bool | None = False, strides: Any = None
) -> Tensor:
    """Memory for a factory's result: allocated here on CPU and meta, by the backend's own operators elsewhere."""
    device, dtype = device or CPU, dtype or get_default_dtype()
    if device.type in ("cpu", "meta"):
        return pinned(allocate(shape, dtype, device, strides), pin_memory)
    kind = KINDS.get(device.type)
    if kind is not None and kind.copy is not None and not pin_memory:
        return allocate(shape, dtype, indexed(device), strides)
    if strides is None:
        return empty_op.functional(list(shape), dtype=dtype, device=device, pin_memory=pin_memory)
    return empty_strided_op.functional(list(shape), list(strides), dtype=dtype, device=device, pin_memory=pin_memory)


def filled(result: Tensor, value: Any) -> Tensor:
    """`result`, with the value in every place; the values of a meta tensor stay unspoken."""
    if result._array is not None:
        kernels.fill(result._operand, value)
    elif result._device.type != "meta":
        with within(STATE.get().excluding(ADINPLACEORVIEW)):  # the tensor is new: this is no write
            result.fill_(value)
    return result


# Note [Constants are planned]
# A tensor of one value is memory and a loop that fills it, remembered by all that decides them. What is not remembered,
# because it is made for the first time or for a device that does not fill by itself, goes the long way.


CONSTANTS: dict[Any, NearPlan] = {}  # by shape, dtype and device; or by metadata, dtype, device and memory format
REMEMBERED = 4096  # then they start afresh


@leaf
@inline
def planned(size: Any, dtype: Any, device: Any, pin_memory: Any) -> NearPlan | None:
    return None if pin_memory else CONSTANTS.get((tuple(size), dtype or get_default_dtype(), device))


@leaf
@inline
def planned_like(self: Tensor, dtype: Any, device: Any, pin_memory: Any, format: Any) -> NearPlan | None:
    return None if pin_memory else CONSTANTS.get((self._interned or metadata_of(self), dtype, device, format))


@leaf
@inline
def filled_by(plan: NearPlan, value: Any) -> Tensor:
    """A new tensor with the value in every place."""
    result = empty_from(plan.outputs[0])
    if plan.run is None:
        plan.near(result, value)
    else:
        plan.run(result._array, 0, value)
    return result


def filled_first(size: Any, value: Any, dtype: Any, device: Any, pin_memory: Any) -> Tensor:
    """Makes the tensor the long way; how it was made is remembered."""
    dtype = dtype or get_default_dtype()
    result = filled(new(size, dtype, device, pin_memory), value)
    return remembered((tuple(size), dtype, device), result, value)


def filled_first_like(self: Tensor, value: Any, dtype: Any, device: Any, pin_memory: Any, format: Any) -> Tensor:
    result = filled(like(self, dtype, device, pin_memory, format), value)
    return remembered((metadata_of(self), dtype, device, format), result, value)


def remembered(key: Any, made: Tensor, value: Any) -> Tensor:
    """`made`, after it is entered how such a tensor is made."""
    kind, asked = KINDS.get(made._device.type), key[2]
    near = None if kind is None or made._dtype.is_complex else kind.fill
    if near is not None and asked is not None and asked.index is None and kind is not None and kind.count > 1:
        return made  # which device it is depends on which one is current
    run = kernels.ready_fill(made._operand, value) if made._device is CPU and made._array is not None else None
    if run is not None or near is not None:
        if len(CONSTANTS) >= REMEMBERED:
            CONSTANTS.clear()
        metadata = output_spec(made._shape, made._dtype, made._device, made._stride)
        CONSTANTS[key] = NearPlan((metadata,), run, near)
    return made


@cache
def name_of(kind: np.dtype) -> str:
    """A numpy dtype's name, which numpy puts together anew each time, in 3 us."""
    return kind.name


def written(result: Tensor, values: Any) -> Tensor:
    """`result`, with the values of a numpy array, converted to its dtype. The array has the result's shape."""
    if result._device.type == "meta":
        return result
    dense = np.ascontiguousarray(values)
    name = name_of(dense.dtype)
    flat = dense.reshape(-1).view(kernels.DTYPES[name].storage)
    source = Operand(flat, name, tuple(result._shape), contiguous_strides(result._shape))
    if result._array is not None:
        kernels.copy(result._operand, source)
        return result
    staged = allocate(result._shape, result._dtype, CPU)
    kernels.copy(staged._operand, source)
    return result.copy_(staged)


def shaped(out: Tensor, size: Any) -> Tensor:
    """`out`, resized to `size`."""
    check_sizes("empty", size)
    resize_out(out, Meta(tuple(size), out._dtype, out._device))
    return out


def check_sizes(name: str, size: Any) -> None:
    """Raises RuntimeError for a negative size."""
    for length in size:
        if length < 0 if type(length) is int else not holds(length >= 0):
            raise RuntimeError(f"{name}: Dimension size must be non-negative.")


# --- like another tensor ---------------------------------------------------------------------------------------------


def like(self: Tensor, dtype: Any, device: Any, pin_memory: Any, memory_format: Any) -> Tensor:
    """Memory that looks like `self` but for what is given; the order of dimensions is kept unless a format is named."""
    if memory_format is None or memory_format is preserve_format:
        strides: tuple[int, ...] | None = preserved_strides(self)
    else:
        strides = strides_for(self._shape, memory_format)
    return new(self._shape, dtype or self._dtype, device or self._device, pin_memory, strides)


def preserved_strides(self: Tensor) -> tuple[int, ...]:
    """The strides of a dense tensor whose dimensions lie in the order of those of `self`."""
    if is_dense(self._shape, self._stride):
        return self._stride
    return output_strides(self._shape, ((self._shape, self._stride),))


@kernel(f"empty_like({LIKE}) -> Tensor", derivative=False, understands=LAZY, method=False, batching="pointwise")
def empty_like(self: Tensor, dtype: Any, layout: Any, device: Any, pin_memory: Any, format: Any) -> Tensor:
    """Returns a tensor like `self` in shape, dtype and device whose elements are whatever stood in memory."""
    return like(self, dtype, device, pin_memory, format)


@kernel(
    f"new_empty(Tensor self, SymInt[] size, *, {FACTORY}) -> Tensor", derivative=False, function=False, batching="dims"
)
def new_empty(self: Tensor, size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    """Returns a tensor of the given size with the dtype and device of `self`, its elements whatever stood in memory."""
    return new(size, dtype or self._dtype, device or self._device, pin_memory)


@kernel(
    f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, {FACTORY}) -> Tensor",
    derivative=False,
    face=False,
)
def new_empty_strided_op(
    self: Tensor, size: Any, stride: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> Tensor:
    """Returns a tensor with the dtype and device of `self`, of the given size and strides, not initialized."""
    return new(size, dtype or self._dtype, device or self._device, pin_memory, checked_strides(size, stride))


public(new_empty_strided_op, function=False)

empty_like_op = empty_like.op

# --- one value everywhere --------------------------------------------------------------------------------------------


@frozen
@dataclass(eq=False)  # what equals another object would be no constant of code that is kept on disk
class Constant:
    """A name and the value that it stands for; `check` is asked of sizes that are new. As one object, of which the
    specialiser takes the fields for constants: a number of a closure it would not."""

    name: str
    value: int
    check: Callable[[str, Any], None] | None = None


def constant(of: Constant) -> tuple[Any, Any]:
    """`zeros` and `zeros_like`, and with them `new_zeros`, for 0."""
    name = of.name

    @inline
    def plain_kernel(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
        plan = planned(size, dtype, device, pin_memory)
        if plan is None:
            if of.check is not None:
                of.check(of.name, size)
            return filled_first(size, of.value, dtype, device, pin_memory)
        return filled_by(plan, of.value)

    @inline
    def like_kernel(self: Tensor, dtype: Any, layout: Any, device: Any, pin_memory: Any, format: Any) -> Tensor:
        plan = planned_like(self, dtype, device, pin_memory, format)
        if plan is None:
            return filled_first_like(self, of.value, dtype, device, pin_memory, format)
        return filled_by(plan, of.value)

    @inline
    def new_kernel(self: Tensor, size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
        plan = planned(size, dtype or self._dtype, device or self._device, pin_memory)
        if plan is None:
            return filled_first(size, of.value, dtype or self._dtype, device or self._device, pin_memory)
        return filled_by(plan, of.value)

    plain_kernel.__name__, like_kernel.__name__, new_kernel.__name__ = (
        f"{name}_kernel",
        f"{name}_like_kernel",
        f"new_{name}",
    )

    def into_out(size: Any, out: Tensor) -> Tensor:
        return filled(shaped(out, size), of.value)

    kernel(
        f"new_{name}(Tensor self, SymInt[] size, *, {FACTORY}) -> Tensor",
        function=False,
        derivative=False,
        batching="dims",
        doc=f"Returns {name} of the given size with the dtype and device of `self`.",
    )(new_kernel)
    plain = kernel(
        f"{name}(SymInt[] size, *, {FACTORY}) -> Tensor",
        out="out",
        out_by=by(into_out),
        derivative=False,
        doc=f"Returns a tensor of the given size that is filled with {name}.",
    )(plain_kernel)
    return plain, kernel(
        f"{name}_like({LIKE}) -> Tensor",
        method=False,
        derivative=False,
        batching="pointwise",
        doc=f"Returns {name} like `self` in shape, dtype and device.",
    )(like_kernel)


zeros, zeros_like = constant(Constant("zeros", 0, check_sizes))
ones, ones_like = constant(Constant("ones", 1))
zeros_op, zeros_like_op, ones_op, ones_like_op = zeros.op, zeros_like.op, ones.op, ones_like.op


def integer_range(dtype: dtype) -> tuple[int, int]:
    """The least and the largest value of an integer dtype."""
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


def as_integer_dtype(dtype: Any) -> dtype:
    """The dtype of integers: int64 where none is given. A default comes as the schema has it."""
    return dtypes.int64 if dtype is None else ARGUMENT_TYPES["ScalarType"](dtype)


# --- factories of a rule ---------------------------------------------------------------------------------------------


# What a factory makes of its arguments: a result of this shape and dtype, and what fills it and returns it.
Rule = tuple[Any, Any, Callable[[Tensor], Tensor]]


def factory(
    rule: Callable[..., Rule],
    schema: str,
    options: str = FACTORY,
    around: Callable[[Operator, Callable[..., Tensor]], Callable[..., Tensor]] | None = None,
    **facts: Any,
) -> Operator:
    """Declares a factory by what it makes: `rule(dtype, ...)`, which gets its arguments in their order.

    schema: without the options of all factories and the result. With a `Tensor self` in front, the result has its dtype
        and its device unless others are given; and its shape, if there is no `size`, which the rule gets behind the
        arguments.
    around: makes the kernel of the operator and of the function that makes its results.
    An out= form fills its own tensor, whose dtype the rule gets.
    """
    of_tensor = "(Tensor self" in schema
    alike = of_tensor and "] size" not in schema
    options = f"{options}, MemoryFormat? memory_format=None" if alike else options
    star = "" if "*" in schema else "*, "
    op = Operator(f"{schema[:-1]}, {star}{options}) -> Tensor", derivative=False, **facts)
    count = len(op.names) - (5 if alike else 4) - of_tensor
    on, pinned = count + 2, count + 3  # dtype, layout, device, pin_memory, memory_format

    def made(*args: Any) -> Tensor:
        shape, dtype, fill = rule(args[count], *args[:count])
        check_factory(op.base_name, dtype, args[on])
        return fill(new(shape, dtype, args[on], args[pinned]))

    def made_of(self: Tensor, *args: Any) -> Tensor:
        shape, dtype, fill = rule(args[count] or self._dtype, *args[:count])
        return fill(new(shape, dtype, args[on] or self._device, args[pinned]))

    def made_like(self: Tensor, *args: Any) -> Tensor:
        _, dtype, fill = rule(args[count] or self._dtype, *args[:count], self._shape)
        check_factory(op.base_name, dtype, args[on] or self._device)
        return fill(like(self, dtype, args[on], args[pinned], args[-1]))

    def into_out(*args: Any) -> Tensor:
        *given, target = args
        shape, _, fill = rule(target._dtype, *given)
        return fill(shaped(target, shape))

    functional = made_like if alike else made_of if of_tensor else made
    if around is not None:
        functional = around(op, functional)
    for form, function in ((op.functional, functional), (op.out, into_out)):
        if form is not None:
            impl(form, EXPLICIT, function, convention="positional", place=op.place, name=rule.__name__)
    return op


def unwritten(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function whose fresh result was never written, for all that anybody can see."""

    def fresh(*args: Any) -> Tensor:
        result = function(*args)
        if result._counter is not None:
            result._counter[0] = 0
        return result

    return fresh


@kernel(
    "_new_zeros_with_same_feature_meta(Tensor self, Tensor other, *, int self_num_batch_dims=0) -> Tensor",
    derivative=False,
)
@leaf
def new_zeros_with_same_feature_meta_op(self: Tensor, other: Tensor, self_num_batch_dims: int) -> Tensor:
    """Returns zeros that lie in memory as `other` does in its own, once for each place of the first dimensions of
    `self`: so that any view of `other` is one of theirs."""
    batch = self._shape[:self_num_batch_dims]
    step = other._storage.nbytes() // other._dtype.itemsize
    strides: list[int] = []
    for size in reversed(batch):
        strides.insert(0, step)
        step *= size
    result = filled(new((step,), other._dtype, other._device, None), 0)
    lay_out(result, Size((*batch, *other._shape)), (*strides, *other._stride), other._offset)
    return result


# --- one value, and the identity -------------------------------------------------------------------------------------


def full_into(size: Any, fill_value: Any, out: Tensor) -> Tensor:
    return filled(shaped(out, size), storable(fill_value, out._dtype))


@kernel(
    f"full(SymInt[] size, Scalar fill_value, *, {FACTORY}) -> Tensor",
    derivative=False,
    out="out",
    out_by=by(full_into),
    core=True,
)
@inline
def full(size: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    """Returns a tensor of the given size that is filled with `fill_value`."""
    dtype = dtype or number_dtype(fill_value)
    value = storable(fill_value, dtype)
    plan = planned(size, dtype, device, pin_memory)
    if plan is None:
        return filled_first(size, value, dtype, device, pin_memory)
    return filled_by(plan, value)


full_op = full.op


@kernel(
    f"full_like({LIKE.replace('*', 'Scalar fill_value, *')}) -> Tensor",
    method=False,
    derivative=False,
    core=True,
    batching="pointwise",
    understands=LAZY,
)
def full_like(
    self: Tensor, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, format: Any
) -> Tensor:
    """Returns a tensor like `self` in shape, dtype and device that is filled with `fill_value`."""
    value = storable(fill_value, dtype or self._dtype)
    return filled(like(self, dtype, device, pin_memory, format), value)


full_like_op = full_like.op


def full_rule(dtype: Any, size: Any, fill_value: Any) -> Rule:
    value = storable(fill_value, dtype or get_default_dtype())
    return size, dtype, lambda result: filled(result, value)


public(
    factory(full_rule, "new_full(Tensor self, SymInt[] size, Scalar fill_value)", batching="dims"),
    function=False,
    doc="Returns a tensor of the given size with the dtype and device of `self` that is filled with `fill_value`.",
)
scalar_tensor_op = factory(lambda dtype, s: full_rule(dtype, (), s), "scalar_tensor(Scalar s)", core=True)
scalar_tensor = public(scalar_tensor_op, doc="Returns a tensor without dimensions that holds the number `s`.")


def eye_rule(dtype: Any, n: int, m: int | None = None) -> Rule:
    for name, size in (("n", n), ("m", m)):
        if size is not None and size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    m = n if m is None else m
    if n * m >= 2**63:
        raise RuntimeError("numel: integer multiplication overflow")
    return (n, m), dtype, eye_filled


def eye_filled(result: Tensor) -> Tensor:
    """`result`, with 1 on the diagonal and 0 elsewhere."""
    if result._device.type == "meta":
        return result
    diagonal = view_over(result, Size((min(result._shape),)), (sum(result._stride),), result._offset)
    if result._array is None:
        result.zero_()
        diagonal.fill_(1)
    else:
        kernels.fill(result._operand, 0)
        kernels.fill(diagonal._operand, 1)
    return result


eye = public(
    factory(eye_rule, "eye(SymInt n)", out="out"),
    factory(eye_rule, "eye.m(SymInt n, SymInt m)", out="m_out"),
    doc="Returns a matrix with ones on its diagonal and zeros elsewhere.",
)
