"""Facts on operators for the layer Functionalize: the inverses of views, and who changes how tensors lie.

A view's inverse puts the values that the view shall show back into its base, by operators that write nothing: what
`transpose` turned is turned back, what `select` left out is kept by `select_scatter`. A view operator that is not in
this list is strided memory, and goes by `as_strided_scatter`.

Read next: functional_forms.py, for the operators that write; dispatch/transforms/functionalize.py.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

from redispatch.dispatch import OpOverload, call, place_of
from redispatch.dispatch.layers.ad_inplace_or_view import base_position
from redispatch.dispatch.layers.functionalize import (
    FUNCTIONALIZATION,
    INVERSES,
    META,
    WRAP,
    WRAP_VIEW,
    WRITE,
    below_functionalize,
    compute,
    current_level,
    is_wrapper,
    op_for_views,
    wraps_new_tensors,
)
from redispatch.dispatch.tensor import Size, Tensor, contiguous_format, dtype, output_spec, strided
from redispatch.dispatch.tensor.functional import AS_BEFORE, FunctionalStorage, Step, functional, functional_view
from redispatch.kernels import contiguous_strides, has_internal_overlap, infer_view_strides

from ..declare.declare import Operator
from ..declare.structured import check_can_cast, warn_of_resizing
from . import copying, views
from .creation import empty_op, strides_for
from .functional_forms import resize_op
from .geometry import split_lengths
from .scattering import as_strided_scatter_op, diagonal_scatter_op, select_scatter_op, slice_scatter_op

WRAP.fill(functional)

# --- Views and their inverses -----------------------------------------------------------------------------------------


def view_of_wrapper(base: Any, value: Any, like: Tensor, op: OpOverload, stack: list[Any], index: int | None) -> Any:
    """A wrapper that shows `value`, which the operator on these arguments has given, and shares the memory of
    `base`."""
    repeats = has_internal_overlap(like._shape, like._stride)
    steps = (*base._steps, step_of(op, stack, index, repeats))
    return functional_view(base._store, steps, value, like, base._level)


def step_of(op: OpOverload, stack: list[Any], index: int | None, repeats: bool) -> Step:
    """A call of a view operator as a function of its base, and the way back."""
    position = base_position(op.schema)
    others = [None if at == position else value for at, value in enumerate(stack)]
    rest = others[:position] + others[position + 1 :]
    inverse, form = INVERSES.get(op), op_for_views(op)  # the form of the region in which the view was taken

    def arguments(base: Any) -> list[Any]:
        return [base if at == position else value for at, value in enumerate(others)]

    def shown(base: Any) -> Any:
        found = call(form, arguments(base))
        return found if index is None else found[index]

    def put_back(base: Any, value: Any) -> Any:
        if inverse is not None:
            return inverse(base, value, *rest) if index is None else inverse(base, value, index, *rest)
        lying = op.entry(META).kernel.boxed(op, META, arguments(base))
        part = lying if index is None else lying[index]
        if part._dtype is not base._dtype:
            raise NotImplementedError(
                f"{op} was written through, and has no inverse; INVERSES.add({op}, ...) gives it one"
            )
        return put_strided(base, value, part._shape, part._stride, part._offset - base._offset)

    return Step(shown, put_back, repeats)


WRAP_VIEW.fill(view_of_wrapper)


def inverse(*operators: Operator) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters the decorated function as the inverse of these views."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for op in operators:
            INVERSES.add(op.functional, function, place_of(function))
        return function

    return enter


def through(op: Operator, *args: Any) -> Any:
    """A view of a value, or a copy where nothing is to share memory."""
    return op_for_views(op.functional)(*args)


def reshaped(value: Any, shape: Any) -> Any:
    """A value in another shape: a view if it can be one."""
    if infer_view_strides(tuple(value._shape), value._stride, tuple(shape)) is None:
        value = copying.clone_op.functional(value, memory_format=contiguous_format)
    return through(views.view_op, value, list(shape))


@inverse(views.view_op, views.reshape_alias_op)
def view_inverse(base: Any, value: Any, size: Any, stride: Any = None) -> Any:
    return reshaped(value, base._shape)


@inverse(copying.alias_op, copying.detach_op, copying.lift_fresh_op)
def same(base: Any, value: Any) -> Any:
    return value


@inverse(views.permute_op)
def permute_inverse(base: Any, value: Any, dims: Any) -> Any:
    back = sorted(range(len(dims)), key=lambda position: dims[position] % len(dims))
    return through(views.permute_op, value, back)


@inverse(views.transpose_op)
def transpose_inverse(base: Any, value: Any, dim0: int, dim1: int) -> Any:
    return through(views.transpose_op, value, dim0, dim1)


@inverse(views.t_op)
def t_inverse(base: Any, value: Any) -> Any:
    return through(views.t_op, value)


@inverse(views.unsqueeze_op)
def unsqueeze_inverse(base: Any, value: Any, dim: int) -> Any:
    return through(views.squeeze_dim_op, value, dim)


@inverse(views.squeeze_op, views.squeeze_dim_op, views.squeeze_dims_op)
def squeeze_inverse(base: Any, value: Any, dims: Any = None) -> Any:
    ndim = len(base._shape)
    asked = range(ndim) if dims is None else [dims] if isinstance(dims, int) else dims
    gone = {dim % ndim for dim in asked} if ndim else set()
    for dim in sorted(gone):
        if base._shape[dim] == 1:
            value = through(views.unsqueeze_op, value, dim)
    return value


@inverse(views.expand_op)
def expand_inverse(base: Any, value: Any, size: Any, implicit: bool) -> Any:
    """Elements that share one place show the same value: any of them will do. See `steps_to_write`."""
    if 0 in value._shape:
        return base
    for _ in range(len(value._shape) - len(base._shape)):
        value = through(views.select_op, value, 0, 0)
    for dim, size in enumerate(base._shape):
        if value._shape[dim] != size:
            value = through(views.slice_op, value, dim, 0, 1)
    return value


@inverse(views.select_op)
def select_inverse(base: Any, value: Any, dim: int, index: int) -> Any:
    return select_scatter_op.functional(base, value, dim, index)


@inverse(views.slice_op)
def slice_inverse(base: Any, value: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    return slice_scatter_op.functional(base, value, dim, start, end, step)


@inverse(views.diagonal_op)
def diagonal_inverse(base: Any, value: Any, offset: int, dim1: int, dim2: int) -> Any:
    return diagonal_scatter_op.functional(base, value, offset, dim1, dim2)


@inverse(views.split_op)
def split_inverse(base: Any, value: Any, index: int, split_size: int, dim: int) -> Any:
    return split_with_sizes_inverse(base, value, index, split_lengths(base._shape[dim], split_size), dim)


@inverse(views.split_with_sizes_op)
def split_with_sizes_inverse(base: Any, value: Any, index: int, split_sizes: Any, dim: int) -> Any:
    end = list(accumulate(split_sizes))[index]
    return slice_scatter_op.functional(base, value, dim, end - split_sizes[index], end)


@inverse(views.unbind_op)
def unbind_inverse(base: Any, value: Any, index: int, dim: int) -> Any:
    return select_scatter_op.functional(base, value, dim, index)


@inverse(views.view_dtype_op)
def view_dtype_inverse(base: Any, value: Any, to: dtype) -> Any:
    return through(views.view_dtype_op, dense(value), base._dtype)


def dense(value: Any) -> Any:
    """A value whose elements lie side by side along the last dimension."""
    if not value._shape or value._stride[-1] == 1 or value._shape[-1] == 1:
        return value
    return copying.clone_op.functional(value, memory_format=contiguous_format)


# --- Strided memory ---------------------------------------------------------------------------------------------------


def put_strided(base: Any, value: Any, shape: Any, stride: Any, start: int) -> Any:
    """`base` where the places by these strides, from element `start` of it on, have the elements of `value`."""
    span = extent(base)
    if span == base._shape.numel():
        return as_strided_scatter_op.functional(base, value, shape, stride, start)
    whole = through(views.as_strided_op, base, (span,), (1,), base._offset)
    whole = as_strided_scatter_op.functional(whole, value, shape, stride, start)
    return through(views.as_strided_op, whole, base._shape, base._stride, whole._offset)


def extent(value: Any) -> int:
    """Returns the number of elements between the first and the last one of a tensor, gaps included."""
    return output_spec(value._shape, value._dtype, value._device, value._stride).elements


def as_strided_view(op: OpOverload, stack: list[Any]) -> Any:
    """`as_strided` of a wrapper: of the whole memory that it shows a part of, however it came to show that."""
    base, *_ = stack
    if not is_wrapper(base):
        return compute(op, stack)
    storage: FunctionalStorage = base._store
    like = op.entry(META).kernel.boxed(op, META, stack)
    step = strided_step(like, storage)
    with below_functionalize():
        return functional_view(storage, (step,), step.shown(storage.current()), like, base._level)


def strided_step(like: Tensor, storage: FunctionalStorage) -> Step:
    """The step from a whole memory to the places of a tensor that lies in it."""
    shape, stride, start = like._shape, like._stride, like._offset - storage.offset

    def shown(whole: Any) -> Any:
        return through(views.as_strided_op, whole, shape, stride, whole._offset + start)

    return Step(shown, lambda whole, part: put_strided(whole, part, shape, stride, start))


def as_strided_inplace(op: OpOverload, stack: list[Any]) -> Any:
    if not is_wrapper(stack[0]):
        return compute(op, stack)
    return shown_by(stack[0], as_strided_view(views.as_strided_op.functional, stack))


def shown_by(wrapper: Any, other: Any) -> Any:
    """The wrapper, made to show what another one shows, in the same memory."""
    with below_functionalize():
        wrapper.show(other._store, other._steps, other.current(), other)
    return wrapper


def as_before(former: Any, value: Any) -> Any:
    """A value in the strides of the one that it takes the place of. Note [Wrappers lie as their tensors would]."""
    if lies_alike(former, value) or has_internal_overlap(former._shape, former._stride):
        return value
    return copying.copy_op.functional(former, value)


def lies_alike(a: Any, b: Any) -> bool:
    return all(size == 1 or i == j for size, i, j in zip(a._shape, a._stride, b._stride, strict=True)) or 0 in a._shape


AS_BEFORE.fill(as_before)

# --- Writes -----------------------------------------------------------------------------------------------------------


def enter(target: Any, value: Any, op: OpOverload) -> None:
    """Has a wrapper show the value that an operator has worked out for it, if it may."""
    if not is_wrapper(target):
        raise RuntimeError(
            f"{op}: mutating a non-functional tensor along with functional ones is not allowed. Please ensure that all "
            "of your inputs are wrapped inside of a functionalize() call."
        )
    if has_internal_overlap(target._shape, target._stride):
        raise RuntimeError(
            "Functionalization encountered a tensor being mutated that has internal overlap when mutating an output "
            f"from an op ({op}). The program has several elements in one place; clone() it before it is written"
        )
    check_can_cast(value._dtype, target._dtype)
    if target._store.frozen:
        raise RuntimeError("cannot mutate tensors with frozen storage")
    if op.schema.is_out and not target._steps and value._shape != target._shape and target._shape.numel() == 0:
        shown_by(target, functional(value, target._level))  # nothing is left of what it was
        return
    if value._shape != target._shape:
        if not op.schema.is_out:
            raise RuntimeError(
                f"output with shape {list(target._shape)} doesn't match the broadcast shape {list(value._shape)}"
            )
        if target._shape.numel():
            warn_of_resizing(target._shape, value._shape)
        resize_wrapper(target, value._shape, value._stride)
    with below_functionalize():
        if value._dtype is not target._dtype:
            value = copying.to_copy_op.functional(value, dtype=target._dtype, layout=strided)
        target._store.enter(value, steps_to_write(target))
        target.current()  # at once, as PyTorch: a program that is traced has this write before what follows it


def steps_to_write(target: Any) -> Any:
    """The steps to a wrapper. Where one of them repeats places, and so has no inverse once a later step leaves some of
    the repetitions out, it is one step to the same places, if these are of the memory's own dtype."""
    whole = target._store.value
    if any(step.repeats for step in target._steps) and whole._dtype is target._dtype:
        return (strided_step(target, target._store),)
    return target._steps


WRITE.fill(enter)

# --- Operators that change what a tensor is a window of ---------------------------------------------------------------


def rule(op: Operator) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters the decorated function as what an operator means where it is functionalized."""

    def enter_rule(function: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONALIZATION.add(op.functional, function, place_of(function))
        return function

    return enter_rule


rule(views.as_strided_op)(as_strided_view)
rule(views.as_strided_inplace_op)(as_strided_inplace)


@rule(copying.resize_inplace_op)
def resize_rule(op: OpOverload, stack: list[Any]) -> Any:
    target, size, format = stack
    if not is_wrapper(target):
        return compute(op, stack)
    shape = Size(size)
    return resize_wrapper(target, shape, strides_for(shape, format) or contiguous_strides(tuple(shape)), format)


@rule(copying.resize_as_op)
def resize_as_rule(op: OpOverload, stack: list[Any]) -> Any:
    target, template, format = stack
    kept = copying.suggested_format(template) if format is not None and format.name == "preserve_format" else format
    return resize_rule(copying.resize_inplace_op.functional, [target, list(template._shape), kept])


def resize_wrapper(target: Any, shape: Size, stride: tuple[int, ...], format: Any = None) -> Any:
    """The wrapper in another shape: a view of its memory if that is large enough, or else memory of its own.

    Errors: RuntimeError where a view would need more memory than its base has.
    """
    if format is None and shape == target._shape:
        return target
    needed = target._offset + output_spec(shape, target._dtype, target._device, stride).elements
    if needed * target._dtype.itemsize <= target._store.nbytes():
        return as_strided_inplace(views.as_strided_inplace_op.functional, [target, list(shape), list(stride), None])
    if target._steps:
        raise RuntimeError(
            "Attempted to resize a view tensor to a larger size. This is not allowed in the functionalization pass"
        )
    with below_functionalize():
        value = resize_op.functional(target.current(), list(shape), memory_format=format)
    made = functional(value, target._level)
    made._store.replaces(target._store)
    return shown_by(target, made)


@rule(copying.set_tensor_op)
def set_rule(op: OpOverload, stack: list[Any]) -> Any:
    target, source = stack
    if not is_wrapper(target):
        if is_wrapper(source):
            raise RuntimeError("set_: a tensor that is not functional cannot show the memory of one that is")
        return compute(op, stack)
    if source._dtype is not target._dtype:
        raise RuntimeError(
            f"Could not set tensor of type {source._dtype.tensor_name} to a tensor of type {target._dtype.tensor_name}"
        )
    return shown_by(target, source if is_wrapper(source) else functional(source, current_level()))


@rule(copying.set_storage_op)
def set_storage_rule(op: OpOverload, stack: list[Any]) -> Any:
    target, source, offset, size, stride = stack
    if not is_wrapper(target):
        return compute(op, stack)
    if not isinstance(source, FunctionalStorage):
        with below_functionalize():
            value = call(op, [empty_op.functional([0], dtype=target._dtype, device=target._device), *stack[1:]])
        return shown_by(target, functional(value, target._level))
    if source.value._dtype is not target._dtype:
        raise NotImplementedError(f"set_: the storage holds {source.value._dtype}, the tensor {target._dtype}")
    whole = functional_view(source, (), source.value, source.value, target._level)
    steps = list(stride) or list(contiguous_strides(tuple(size)))
    return shown_by(target, as_strided_view(views.as_strided_op.functional, [whole, list(size), steps, offset]))


@rule(copying.lift_fresh_op)
def lift_rule(op: OpOverload, stack: list[Any]) -> Any:
    """A tensor made of numbers enters the program."""
    (tensor,) = stack
    if is_wrapper(tensor):
        return tensor
    with below_functionalize():
        value = call(op, stack)
    return functional(value, current_level()) if wraps_new_tensors() else value
