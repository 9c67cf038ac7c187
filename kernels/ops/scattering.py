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
from redispatch.dispatch.schema.text import SchemaText
from redispatch.dispatch.tensor import Size, Tensor, empty

from ..declare.declare import Operator, taking
from ..declare.operator import kernel
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


# --- of a view: src in a copy of self, a gradient in a tensor of zeros ------------------------------------------------


def scatter_operator(
    name: str,
    arguments: str,
    geometry: View,
    shown: Callable[..., Any],
    dense: bool = False,
    **facts: Any,
) -> Any:
    """`<name>_scatter`: a copy of `self` in which the view by these arguments shows `src`.

    shown: the view by these arguments. dense: whether it is to be of a gradient that lies row by row.
    """

    def function(self: Tensor, src: Tensor, *where: Any) -> Tensor:
        made = move(empty(self._shape, self._dtype, self._device, copy_strides(self, None)), self)
        target = geometry(made, *where).of(made)
        if target._shape != src._shape:
            raise RuntimeError(
                f"expected src to have a size equal to the slice of self. src size = {list(src._shape)}, slice size = "
                f"{list(target._shape)}"
            )
        move(target, src)
        return made

    def of_self(grad: Any, src_shape: Any, *where: Any) -> Tensor:
        return made.op.functional(grad.contiguous() if dense else grad, grad.new_zeros(src_shape), *where)

    def of_src(grad: Any, *where: Any) -> Tensor:
        return shown(grad.contiguous() if dense else grad, *where)

    function.__name__ = f"{name}_scatter_kernel"
    schema = f"{name}_scatter(Tensor self, Tensor src, {arguments}) -> Tensor"
    where = SchemaText(f"({arguments}) -> ()").names
    derivative = {"self": taking("grad", "src_shape", *where)(of_self), "src": taking("grad", *where)(of_src)}
    made = kernel(schema, batching="dims", derivative=derivative, forward="linear", **facts)(function)
    return made


def backward_operator(name: str, arguments: str, geometry: View, shown: Callable[..., Any]) -> Operator:
    """`<name>_backward`: zeros of `input_sizes` in which the view by these arguments shows `grad_output`."""

    def function(grad_output: Tensor, input_sizes: Sequence[int], *where: Any) -> Tensor:
        made = zeros(input_sizes, grad_output)
        move(geometry(made, *where).of(made), grad_output)
        return made

    function.__name__ = f"{name}_backward_kernel"
    schema = f"{name}_backward(Tensor grad_output, SymInt[] input_sizes, {arguments}) -> Tensor"
    derivative = taking("grad", *SchemaText(f"({arguments}) -> ()").names)(shown)
    return kernel(schema, batching="dims", derivative=derivative, forward="linear", face=False)(function)


def slice_of(grad: Any, *where: Any) -> Tensor:
    return ops.aten.slice.Tensor(grad, *where)


STRIDES = "SymInt[] size, SymInt[] stride, SymInt? storage_offset=None"
STEPS = "int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1"
select_scatter = scatter_operator(
    "select",
    "int dim, SymInt index",
    selected,
    lambda x, *where: x.select(*where),
    core=True,
    doc="Returns a copy of `self` in which the elements at `index` of `dim` are those of `src`.",
)
slice_scatter = scatter_operator(
    "slice",
    STEPS,
    sliced,
    slice_of,
    tags=("view_copy",),
    core=True,
    out="out",
    doc="Returns a copy of `self` in which the elements of a slice of `dim` are those of `src`.",
)
diagonal_scatter = scatter_operator(
    "diagonal",
    "int offset=0, int dim1=0, int dim2=1",
    diagonal_of,
    lambda x, *where: x.diagonal(*where),
    doc="Returns a copy of `self` in which the elements of a diagonal are those of `src`.",
)
as_strided_scatter = scatter_operator(
    "as_strided",
    STRIDES,
    strided_window,
    lambda x, *where: x.as_strided(*where),
    dense=True,
    doc="Returns a copy of `self` with `src` written where such strides reach.",
)
select_scatter_op, slice_scatter_op = select_scatter.op, slice_scatter.op
diagonal_scatter_op, as_strided_scatter_op = diagonal_scatter.op, as_strided_scatter.op
select_backward_op = backward_operator("select", "int dim, SymInt index", selected, lambda x, *where: x.select(*where))
slice_backward_op = backward_operator("slice", "int dim, SymInt start, SymInt end, SymInt step", sliced, slice_of)
diagonal_backward_op = backward_operator(
    "diagonal", "int offset, int dim1, int dim2", diagonal_of, lambda x, *where: x.diagonal(*where)
)


@kernel(
    "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
    derivative=lambda grad, dim, size, step: grad.unfold(dim, size, step),
    forward="linear",
    face=False,
    batching="dims",
)
def unfold_backward_op(grad_in: Tensor, input_sizes: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    """Windows may overlap, so their gradients add up: window element by window element, each a slice of the input."""
    made = zeros(input_sizes or (1,), grad_in)
    windows: Any = grad_in if input_sizes else grad_in.unsqueeze(0)
    axis = dim % max(len(input_sizes), 1)
    count = windows._shape[axis]
    for place in range(size if count else 0):
        target = sliced(made, axis, place, place + (count - 1) * step + 1, step).of(made)
        target.add_(windows.select(-1, place))
    return made if input_sizes else made.squeeze(0)


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


def split_gradient(grads: Sequence[Any], self_shape: Sequence[int], split_sizes: Sequence[int], dim: int) -> Tensor:
    """The gradients of consecutive parts along `dim`, side by side; zeros for parts without one."""
    known = next(grad for grad in grads if grad is not None)
    axis = dim % len(self_shape)
    pieces = [
        known.new_zeros([*self_shape[:axis], length, *self_shape[axis + 1 :]]) if grad is None else grad
        for grad, length in zip(grads, split_sizes, strict=True)
    ]
    return ops.aten.cat.default(pieces, axis)


def unbind_gradient(grads: Sequence[Any], dim: int) -> Tensor:
    """The gradients of slices, stacked again; zeros for those without one."""
    known = next(grad for grad in grads if grad is not None)
    return ops.aten.stack.default([known.new_zeros(known.shape) if grad is None else grad for grad in grads], dim)
