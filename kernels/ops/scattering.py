"""Putting elements back where a view took them from: `select_scatter`, `select_backward` and their kin.

For each view that leaves elements out there are two operators. `*_scatter(self, src, ...)` is a copy of `self` in which
the view shows `src`: what writing through a view means where nothing may be written. `*_backward(grad, sizes, ...)` is
the same in a tensor of zeros: the view's derivative. The derivative of both is the view itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Size, Tensor, empty

from ..declare.declare import Operator
from ..declare.public import public
from .copying import copy_strides, move
from .geometry import Geometry, diagonal_of, selected, sliced, strided_window

View = Callable[..., Geometry]


def zeros(shape: Sequence[int], like: Tensor) -> Tensor:
    """Zeros of the dtype and on the device of `like`."""
    fresh = empty(Size(shape), like._dtype, like._device)
    if fresh._device.type == "cpu":
        kernels.fill(fresh._operand, 0)
    elif fresh._device.type != "meta":
        ops.aten.zero_.default(fresh)
    return fresh


# --- src in a copy of self --------------------------------------------------------------------------------------------


def scatter_operator(name: str, arguments: str, view: View, tags: tuple[str, ...] = ()) -> Operator:
    """`<name>_scatter`: a copy of `self` in which the view by these arguments shows `src`."""
    schema = f"{name}_scatter(Tensor self, Tensor src, {arguments}) -> Tensor"
    op = Operator(schema, tags=tags, batching="dims", core=name in ("select", "slice"))

    def kernel(self: Tensor, src: Tensor, *where: Any) -> Tensor:
        made = move(empty(self._shape, self._dtype, self._device, copy_strides(self, None)), self)
        target = view(made, *where).of(made)
        if target._shape != src._shape:
            raise RuntimeError(
                f"expected src to have a size equal to the slice of self. src size = {list(src._shape)}, slice size = "
                f"{list(target._shape)}"
            )
        move(target, src)
        return made

    kernel.__name__ = f"{name}_scatter_kernel"
    op.explicit(kernel)
    return op


select_scatter_op = scatter_operator("select", "int dim, SymInt index", selected)
select_scatter_op.derivative(
    self=lambda grad, src_shape, dim, index: select_scatter_op.functional(grad, grad.new_zeros(src_shape), dim, index),
    src=lambda grad, dim, index: grad.select(dim, index),
)
select_scatter_op.forward("linear")
slice_scatter_op = scatter_operator(
    "slice", "int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1", sliced, tags=("view_copy",)
)
slice_scatter_op.derivative(
    self=lambda grad, src_shape, dim, start, end, step: slice_scatter_op.functional(
        grad, grad.new_zeros(src_shape), dim, start, end, step
    ),
    src=lambda grad, dim, start, end, step: ops.aten.slice.Tensor(grad, dim, start, end, step),
)
slice_scatter_op.forward("linear")
diagonal_scatter_op = scatter_operator("diagonal", "int offset=0, int dim1=0, int dim2=1", diagonal_of)
diagonal_scatter_op.derivative(
    self=lambda grad, src_shape, offset, dim1, dim2: diagonal_scatter_op.functional(
        grad, grad.new_zeros(src_shape), offset, dim1, dim2
    ),
    src=lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2),
)
diagonal_scatter_op.forward("linear")
as_strided_scatter_op = scatter_operator(
    "as_strided", "SymInt[] size, SymInt[] stride, SymInt? storage_offset=None", strided_window
)
as_strided_scatter_op.derivative(
    self=lambda grad, src_shape, size, stride, storage_offset: as_strided_scatter_op.functional(
        grad.contiguous(), grad.new_zeros(src_shape), size, stride, storage_offset
    ),
    src=lambda grad, size, stride, storage_offset: grad.contiguous().as_strided(size, stride, storage_offset),
)
as_strided_scatter_op.forward("linear")
select_scatter = public(
    select_scatter_op, doc="Returns a copy of `self` in which the elements at `index` of `dim` are those of `src`."
)
slice_scatter = public(
    slice_scatter_op, doc="Returns a copy of `self` in which the elements of a slice of `dim` are those of `src`."
)
diagonal_scatter = public(
    diagonal_scatter_op, doc="Returns a copy of `self` in which the elements of a diagonal are those of `src`."
)
as_strided_scatter = public(
    as_strided_scatter_op, doc="Returns a copy of `self` with `src` written where such strides reach."
)

# --- a gradient in a tensor of zeros ----------------------------------------------------------------------------------


def backward_operator(name: str, arguments: str, view: View) -> Operator:
    """`<name>_backward`: zeros of `input_sizes` in which the view by these arguments shows `grad_output`."""
    schema = f"{name}_backward(Tensor grad_output, SymInt[] input_sizes, {arguments}) -> Tensor"
    op = Operator(schema, batching="dims")

    def kernel(grad_output: Tensor, input_sizes: Sequence[int], *where: Any) -> Tensor:
        made = zeros(input_sizes, grad_output)
        move(view(made, *where).of(made), grad_output)
        return made

    kernel.__name__ = f"{name}_backward_kernel"
    op.explicit(kernel)
    return op


select_backward_op = backward_operator("select", "int dim, SymInt index", selected)
select_backward_op.derivative(
    grad_output=lambda grad, dim, index: grad.select(dim, index), node="SelectBackwardBackward0"
)
select_backward_op.forward("linear")
slice_backward_op = backward_operator("slice", "int dim, SymInt start, SymInt end, SymInt step", sliced)
slice_backward_op.derivative(
    grad_output=lambda grad, dim, start, end, step: ops.aten.slice.Tensor(grad, dim, start, end, step),
    node="SliceBackwardBackward0",
)
slice_backward_op.forward("linear")
diagonal_backward_op = backward_operator("diagonal", "int offset, int dim1, int dim2", diagonal_of)
diagonal_backward_op.derivative(
    grad_output=lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2), node="DiagonalBackwardBackward0"
)
diagonal_backward_op.forward("linear")

unfold_backward_op = Operator(
    "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor", batching="dims"
)


@unfold_backward_op.explicit
def unfold_backward_kernel(grad_in: Tensor, input_sizes: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    """Windows may overlap, so their gradients add up: window element by window element, each a slice of the input."""
    made = zeros(input_sizes or (1,), grad_in)
    windows: Any = grad_in if input_sizes else grad_in.unsqueeze(0)
    axis = dim % max(len(input_sizes), 1)
    count = windows._shape[axis]
    for place in range(size if count else 0):
        target = sliced(made, axis, place, place + (count - 1) * step + 1, step).of(made)
        target.add_(windows.select(-1, place))
    return made if input_sizes else made.squeeze(0)


unfold_backward_op.derivative(
    grad_in=lambda grad, dim, size, step: grad.unfold(dim, size, step), node="UnfoldBackwardBackward0"
)
unfold_backward_op.forward("linear")


def as_strided_gradient(
    grad: Any,
    self_shape: tuple[int, ...],
    self_stride: tuple[int, ...],
    self_offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None,
) -> Tensor:
    """The gradient of `as_strided`: added up in a flat stand-in for the storage, then read as the input was.

    Where several elements of the input are one place in memory, each gets an equal share of that place's gradient.
    """
    from_ = self_offset if storage_offset is None else storage_offset
    base = min(from_, self_offset)
    length = max(last_place(self_shape, self_stride, self_offset), last_place(size, stride, from_)) + 1 - base
    places = ops.aten.arange.default(length, device=grad.device)
    read = places.as_strided(size, stride, from_ - base).reshape(-1)
    flat = grad.new_zeros([length]).index_add(0, read, grad.reshape(-1))
    if kernels.has_internal_overlap(tuple(self_shape), tuple(self_stride)):
        shown = places.as_strided(self_shape, self_stride, self_offset - base).reshape(-1)
        shares = grad.new_zeros([length]).index_add(0, shown, grad.new_ones([shown.numel()]))
        flat = flat / shares.clamp(min=1)
    return flat.as_strided(self_shape, self_stride, self_offset - base)


def last_place(shape: Sequence[int], stride: Sequence[int], offset: int) -> int:
    """The highest position in the storage that a tensor shows; one less than its offset if it is empty."""
    if 0 in shape:
        return offset - 1
    return offset + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


# --- the gradients of parts, joined -----------------------------------------------------------------------------------


def split_gradient(grads: Sequence[Any], self_shape: Sequence[int], lengths: Sequence[int], dim: int) -> Tensor:
    """The gradients of consecutive parts along `dim`, side by side; zeros for parts without one."""
    known = next(grad for grad in grads if grad is not None)
    axis = dim % len(self_shape)
    pieces = [
        known.new_zeros([*self_shape[:axis], length, *self_shape[axis + 1 :]]) if grad is None else grad
        for grad, length in zip(grads, lengths, strict=True)
    ]
    return ops.aten.cat.default(pieces, axis)


def unbind_gradient(grads: Sequence[Any], dim: int) -> Tensor:
    """The gradients of slices, stacked again; zeros for those without one."""
    known = next(grad for grad in grads if grad is not None)
    return ops.aten.stack.default([known.new_zeros(known.shape) if grad is None else grad for grad in grads], dim)
