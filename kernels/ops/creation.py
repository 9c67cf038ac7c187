"""Factories: tensors made of a shape and a rule for their values.

Each has one kernel for all devices (`explicit`): it asks for empty memory and fills it. So a backend that registers
`empty.memory_format`, `empty_strided` and `fill_` has them all, and the meta device allocates and fills nothing.

The dispatcher finds a factory's backend by its `device` argument (dispatch/layers/backend_select.py).
Read next: from_data.py, for tensors made of Python data and numpy arrays.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from redispatch import kernels
from redispatch.dispatch import STATE, within
from redispatch.dispatch.layers.ad_inplace_or_view import ADINPLACEORVIEW
from redispatch.dispatch.specialiser.annotations import inline, leaf
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
from ..declare.plan import NearPlan
from ..declare.public import public
from ..declare.structured import Meta, not_implemented, resize_out

FACTORY = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
LIKE = f"Tensor self, *, {FACTORY}, MemoryFormat? memory_format=None"
_RANK = {channels_last: 4, channels_last_3d: 5}

# --- memory ----------------------------------------------------------------------------------------------------------

empty_op = Operator(
    f"empty.memory_format(SymInt[] size, *, {FACTORY}, MemoryFormat? memory_format=None) -> Tensor", core=True
)


@empty_op.kernel("CPU", "Meta")
@inline
def empty_kernel(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Tensor:
    """Returns a tensor of the given size whose elements are whatever stood in memory."""
    made = allocate(size, dtype or get_default_dtype(), device or CPU, strides_for(size, memory_format))
    return pinned(made, pin_memory) if pin_memory else made


empty_op.not_differentiable()

empty_out_op = Operator("empty.out(SymInt[] size, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)")


@empty_out_op.explicit
def empty_out_kernel(size: Any, memory_format: Any, out: Tensor) -> Tensor:
    return shaped(out, size)


empty_op.out = empty_out_op.functional
empty = public(empty_op, name="empty")

empty_strided_op = Operator(f"empty_strided(SymInt[] size, SymInt[] stride, *, {FACTORY}) -> Tensor", core=True)


@empty_strided_op.kernel("CPU", "Meta")
def empty_strided_kernel(size: Any, stride: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    """Returns a tensor of the given size and strides whose elements are whatever stood in memory."""
    made = allocate(size, dtype or get_default_dtype(), device or CPU, checked_strides(size, stride))
    return pinned(made, pin_memory) if pin_memory else made


def checked_strides(size: Any, stride: Any) -> tuple[int, ...]:
    """The strides, as a tuple. RuntimeError where they are not as many as the sizes, or one is negative."""
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    if any(step < 0 for step in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    return tuple(stride)


empty_strided_op.not_differentiable()
empty_strided = public(empty_strided_op)


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
    """The same the long way; how it was made is remembered."""
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
        if length < 0:
            raise RuntimeError(f"{name}: Dimension size must be non-negative.")


# --- one value everywhere --------------------------------------------------------------------------------------------

zeros_op = Operator(f"zeros(SymInt[] size, *, {FACTORY}) -> Tensor")
zeros_out_op = Operator("zeros.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")


@zeros_op.explicit
@inline
def zeros_kernel(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    plan = planned(size, dtype, device, pin_memory)
    if plan is None:
        check_sizes("zeros", size)
        return filled_first(size, 0, dtype, device, pin_memory)
    return filled_by(plan, 0)


@zeros_out_op.explicit
def zeros_out_kernel(size: Any, out: Tensor) -> Tensor:
    return filled(shaped(out, size), 0)


zeros_op.not_differentiable()
zeros_op.out = zeros_out_op.functional
zeros = public(zeros_op, doc="Returns a tensor of the given size that is filled with zeros.")

ones_op = Operator(f"ones(SymInt[] size, *, {FACTORY}) -> Tensor")
ones_out_op = Operator("ones.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")


@ones_op.explicit
@inline
def ones_kernel(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    plan = planned(size, dtype, device, pin_memory)
    if plan is None:
        return filled_first(size, 1, dtype, device, pin_memory)
    return filled_by(plan, 1)


@ones_out_op.explicit
def ones_out_kernel(size: Any, out: Tensor) -> Tensor:
    return filled(shaped(out, size), 1)


ones_op.not_differentiable()
ones_op.out = ones_out_op.functional
ones = public(ones_op, doc="Returns a tensor of the given size that is filled with ones.")

full_op = Operator(f"full(SymInt[] size, Scalar fill_value, *, {FACTORY}) -> Tensor", core=True)
full_out_op = Operator("full.out(SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)")


@full_op.explicit
@inline
def full_kernel(size: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    dtype = dtype or number_dtype(fill_value)
    value = storable(fill_value, dtype)
    plan = planned(size, dtype, device, pin_memory)
    if plan is None:
        return filled_first(size, value, dtype, device, pin_memory)
    return filled_by(plan, value)


@full_out_op.explicit
def full_out_kernel(size: Any, fill_value: Any, out: Tensor) -> Tensor:
    return filled(shaped(out, size), storable(fill_value, out._dtype))


full_op.not_differentiable()
full_op.out = full_out_op.functional
full = public(full_op, doc="Returns a tensor of the given size that is filled with `fill_value`.")

scalar_tensor_op = Operator(f"scalar_tensor(Scalar s, *, {FACTORY}) -> Tensor", core=True)


@scalar_tensor_op.explicit
def scalar_tensor_kernel(s: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    dtype = dtype or get_default_dtype()
    return filled(new((), dtype, device, pin_memory), storable(s, dtype))


scalar_tensor_op.not_differentiable()
scalar_tensor = public(scalar_tensor_op, doc="Returns a tensor without dimensions that holds the number `s`.")


def integer_range(dtype: dtype) -> tuple[int, int]:
    """The least and the largest value of an integer dtype."""
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


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


empty_like_op = Operator(f"empty_like({LIKE}) -> Tensor", batching="pointwise")
zeros_like_op = Operator(f"zeros_like({LIKE}) -> Tensor", batching="pointwise")
ones_like_op = Operator(f"ones_like({LIKE}) -> Tensor", batching="pointwise")
full_like_op = Operator(
    f"full_like({LIKE.replace('*', 'Scalar fill_value, *')}) -> Tensor", core=True, batching="pointwise"
)


@empty_like_op.explicit
def empty_like_kernel(self: Tensor, dtype: Any, layout: Any, device: Any, pin_memory: Any, format: Any) -> Tensor:
    """Returns a tensor like `self` in shape, dtype and device whose elements are whatever stood in memory."""
    return like(self, dtype, device, pin_memory, format)


@zeros_like_op.explicit
@inline
def zeros_like_kernel(self: Tensor, dtype: Any, layout: Any, device: Any, pin_memory: Any, format: Any) -> Tensor:
    plan = planned_like(self, dtype, device, pin_memory, format)
    if plan is None:
        return filled_first_like(self, 0, dtype, device, pin_memory, format)
    return filled_by(plan, 0)


@ones_like_op.explicit
@inline
def ones_like_kernel(self: Tensor, dtype: Any, layout: Any, device: Any, pin_memory: Any, format: Any) -> Tensor:
    plan = planned_like(self, dtype, device, pin_memory, format)
    if plan is None:
        return filled_first_like(self, 1, dtype, device, pin_memory, format)
    return filled_by(plan, 1)


@full_like_op.explicit
def full_like_kernel(
    self: Tensor, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, format: Any
) -> Tensor:
    """Returns a tensor like `self` in shape, dtype and device that is filled with `fill_value`."""
    fill_value = storable(fill_value, dtype or self._dtype)
    return filled(like(self, dtype, device, pin_memory, format), fill_value)


empty_like_op.understands("Conjugate", "Negative", "ZeroTensor")
full_like_op.understands("Conjugate", "Negative", "ZeroTensor")
for _op in (empty_like_op, zeros_like_op, ones_like_op, full_like_op):
    _op.not_differentiable()

empty_like = public(empty_like_op, method=False)
zeros_like = public(zeros_like_op, method=False, doc="Returns zeros like `self` in shape, dtype and device.")
ones_like = public(ones_like_op, method=False, doc="Returns ones like `self` in shape, dtype and device.")
full_like = public(full_like_op, method=False)

# --- of another shape, with another tensor's dtype and device --------------------------------------------------------

new_empty_op = Operator(f"new_empty(Tensor self, SymInt[] size, *, {FACTORY}) -> Tensor", batching="dims")
new_zeros_op = Operator(
    f"new_zeros(Tensor self, SymInt[] size, *, {FACTORY}) -> Tensor",
    batching="dims",
    doc="Returns zeros of the given size with the dtype and device of `self`.",
)
new_ones_op = Operator(
    f"new_ones(Tensor self, SymInt[] size, *, {FACTORY}) -> Tensor",
    batching="dims",
    doc="Returns ones of the given size with the dtype and device of `self`.",
)
new_full_op = Operator(
    f"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, {FACTORY}) -> Tensor", batching="dims"
)
new_empty_strided_op = Operator(
    f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, {FACTORY}) -> Tensor"
)


@new_empty_op.explicit
def new_empty_kernel(self: Tensor, size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    """Returns a tensor of the given size with the dtype and device of `self`, its elements whatever stood in memory."""
    return new(size, dtype or self._dtype, device or self._device, pin_memory)


@new_zeros_op.explicit
@inline
def new_zeros_kernel(self: Tensor, size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    plan = planned(size, dtype or self._dtype, device or self._device, pin_memory)
    if plan is None:
        return filled_first(size, 0, dtype or self._dtype, device or self._device, pin_memory)
    return filled_by(plan, 0)


@new_ones_op.explicit
@inline
def new_ones_kernel(self: Tensor, size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    plan = planned(size, dtype or self._dtype, device or self._device, pin_memory)
    if plan is None:
        return filled_first(size, 1, dtype or self._dtype, device or self._device, pin_memory)
    return filled_by(plan, 1)


@new_full_op.explicit
def new_full_kernel(
    self: Tensor, size: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> Tensor:
    """Returns a tensor of the given size with the dtype and device of `self` that is filled with `fill_value`."""
    fill_value = storable(fill_value, dtype or self._dtype)
    return filled(new(size, dtype or self._dtype, device or self._device, pin_memory), fill_value)


@new_empty_strided_op.explicit
def new_empty_strided_kernel(
    self: Tensor, size: Any, stride: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> Tensor:
    """Returns a tensor with the dtype and device of `self`, of the given size and strides, not initialized."""
    return new(size, dtype or self._dtype, device or self._device, pin_memory, checked_strides(size, stride))


for _op in (new_empty_op, new_zeros_op, new_ones_op, new_full_op, new_empty_strided_op):
    _op.not_differentiable()
    public(_op, function=False)

# --- rows of numbers -------------------------------------------------------------------------------------------------

arange_op = Operator(f"arange(Scalar end, *, {FACTORY}) -> Tensor")
arange_start_op = Operator(f"arange.start(Scalar start, Scalar end, *, {FACTORY}) -> Tensor")
arange_start_step_op = Operator(
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, *, {FACTORY}) -> Tensor",
    refuses="bool complex",
    core=True,
)
arange_out_op = Operator("arange.out(Scalar end, *, Tensor(a!) out) -> Tensor(a!)")
arange_start_out_op = Operator(
    "arange.start_out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)"
)


@arange_start_step_op.explicit
def arange_kernel(start: Any, end: Any, step: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    if dtype is None:
        whole = all(isinstance(number, int) for number in (start, end, step))
        dtype = dtypes.int64 if whole else get_default_dtype()
    return arange_filled(new((arange_size(start, end, step, dtype),), dtype, device, pin_memory), start, step)


@arange_start_op.explicit
def arange_start_kernel(start: Any, end: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return arange_kernel(start, end, 1, dtype, layout, device, pin_memory)


@arange_op.explicit
def arange_end_kernel(end: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    """Returns the numbers from `start` up to `end`, without it, a `step` apart."""
    return arange_kernel(0, end, 1, dtype, layout, device, pin_memory)


@arange_start_out_op.explicit
def arange_out_kernel(start: Any, end: Any, step: Any, out: Tensor) -> Tensor:
    return arange_filled(shaped(out, [arange_size(start, end, step, out._dtype)]), start, step)


@arange_out_op.explicit
def arange_end_out_kernel(end: Any, out: Tensor) -> Tensor:
    return arange_out_kernel(0, end, 1, out)


def arange_size(start: Any, end: Any, step: Any, dtype: dtype) -> int:
    """How many numbers there are from `start` up to `end`, exclusive."""
    if dtype is dtypes.bool or dtype.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dtype.tensor_name}'")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype.category == dtypes.INTEGER:  # its numbers are those of the truncated arguments
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise RuntimeError("step must be nonzero")
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        return max(0, -((start - end) // step))
    return max(0, math.ceil((end - start) / step))


def arange_filled(result: Tensor, start: Any, step: Any) -> Tensor:
    """`result`, with start, start + step, ..."""
    if result._array is not None:
        kernels.arange(result._operand, start, step)
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


for _op in (arange_op, arange_start_op, arange_start_step_op):
    _op.not_differentiable()
arange_op.out = arange_out_op.functional
arange_start_step_op.out = arange_start_out_op.functional
arange = public(arange_op, arange_start_op, arange_start_step_op)

linspace_op = Operator(f"linspace(Scalar start, Scalar end, int steps, *, {FACTORY}) -> Tensor", refuses="bool")
linspace_out_op = Operator("linspace.out(Scalar start, Scalar end, int steps, *, Tensor(a!) out) -> Tensor(a!)")


@linspace_op.explicit
def linspace_kernel(start: Any, end: Any, steps: int, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    if dtype is None:
        is_complex = isinstance(start, complex) or isinstance(end, complex)
        dtype = get_default_dtype().to_complex() if is_complex else get_default_dtype()
    check_steps(steps, dtype)
    return spaced(new((steps,), dtype, device, pin_memory), linear(start, end, steps, dtype))


@linspace_out_op.explicit
def linspace_out_kernel(start: Any, end: Any, steps: int, out: Tensor) -> Tensor:
    check_steps(steps, out._dtype)
    return spaced(shaped(out, [steps]), linear(start, end, steps, out._dtype))


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
    if steps == 1:
        return Spacing(compute, start, 0, end, 1, 1)
    step = (compute(end) - compute(start)) / compute(max(steps - 1, 1))
    return Spacing(compute, start, step, end, steps, steps // 2)


linspace_op.not_differentiable()
linspace_op.out = linspace_out_op.functional

# --- eye -------------------------------------------------------------------------------------------------------------

eye_op = Operator(f"eye(SymInt n, *, {FACTORY}) -> Tensor")
eye_m_op = Operator(f"eye.m(SymInt n, SymInt m, *, {FACTORY}) -> Tensor")
eye_out_op = Operator("eye.out(SymInt n, *, Tensor(a!) out) -> Tensor(a!)")
eye_m_out_op = Operator("eye.m_out(SymInt n, SymInt m, *, Tensor(a!) out) -> Tensor(a!)")


@eye_m_op.explicit
def eye_m_kernel(n: int, m: int, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    check_eye(n, m)
    return eye_filled(new((n, m), dtype, device, pin_memory))


@eye_op.explicit
def eye_kernel(n: int, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return eye_m_kernel(n, n, dtype, layout, device, pin_memory)


@eye_m_out_op.explicit
def eye_m_out_kernel(n: int, m: int, out: Tensor) -> Tensor:
    check_eye(n, m)
    return eye_filled(shaped(out, [n, m]))


@eye_out_op.explicit
def eye_out_kernel(n: int, out: Tensor) -> Tensor:
    return eye_m_out_kernel(n, n, out)


def check_eye(n: int, m: int) -> None:
    for name, size in (("n", n), ("m", m)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")


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


for _op in (eye_op, eye_m_op):
    _op.not_differentiable()
eye_op.out = eye_out_op.functional
eye_m_op.out = eye_m_out_op.functional
eye = public(eye_op, eye_m_op, doc="Returns a matrix with ones on its diagonal and zeros elsewhere.")
