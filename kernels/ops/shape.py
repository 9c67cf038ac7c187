"""Joining with copies: cat, stack, repeat; tensors made to one shape.

The data is moved by strided copies: every result is filled view by view, so that no loop of its own is needed.
Read next: rearrange.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.specialiser.annotations import frozen
from redispatch.dispatch.tensor import (
    Size,
    Tensor,
    can_cast,
    channels_last,
    channels_last_3d,
    channels_last_strides,
    contiguous_format,
    empty,
    result_type,
    wrap_dim,
)

from ..declare.declare import alias
from ..declare.operator import composite, kernel, leaf_kernel, planned
from ..declare.overridable import overridable_function
from ..declare.plan import Run
from ..declare.planned import Planned
from ..declare.public import public
from ..declare.structured import Meta, common_device, not_implemented, overlapping
from .copying import clone_op, suggested_format
from .views import expand_op, reshaped, unsqueeze_op, view_op

# --- cat and stack ----------------------------------------------------------------------------------------------------


@frozen
class Cat(Planned):
    def run_out(self, *args: Any) -> Tensor:
        tensors, _, out = args
        if tensors and not can_cast(result_type(*tensors), out._dtype):
            raise TypeError(
                f"torch.cat(): input types can't be cast to the desired output type {out._dtype.tensor_name}"
            )
        for x in tensors:
            if x is out or x._storage is out._storage and kernels.overlap(x._operand, out._operand) != "no":
                raise overlapping()
        return super().run_out(*args)


def is_skipped(x: Tensor) -> bool:
    """`cat` leaves out a tensor of shape (0,), whatever the shape of the others: for old programs' sake."""
    return tuple(x._shape) == (0,)


def cat_meta(tensors: Sequence[Tensor], dim: int) -> Meta:
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for position, x in enumerate(tensors):
        if not x._shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
    kept = [(position, x) for position, x in enumerate(tensors) if not is_skipped(x)]
    element = result_type(*tensors)
    on = common_device(*tensors)
    if not kept:
        wrap_dim(dim, 1)
        return Meta((0,), element, on)
    first = kept[0][1]._shape
    axis = wrap_dim(dim, len(first))
    for position, x in kept:
        if len(x._shape) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(x._shape)}")
        for d, (expected, size) in enumerate(zip(first, x._shape, strict=True)):
            if d != axis and expected != size:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size {expected} but got size "
                    f"{size} for tensor number {position} in the list."
                )
    shape = (*first[:axis], sum(x._shape[axis] for _, x in kept), *first[axis + 1 :])
    formats = {suggested_format(x) for _, x in kept}
    last = formats in ({channels_last}, {channels_last_3d})
    return Meta(shape, element, on, channels_last_strides(shape) if last else None)


def cat_backward(
    grad: Tensor, tensors_shape: Sequence[Size], tensors_dtype: Sequence[Any], dim: int, needs: Sequence[bool]
) -> list[Tensor | None]:
    axis, start, gradients = dim % max(len(grad._shape), 1), 0, []
    for shape in tensors_shape:
        if tuple(shape) == (0,):
            gradients.append(grad.new_zeros([0]))
            continue
        gradients.append(grad.narrow(axis, start, shape[axis]))
        start += shape[axis]
    return gradients


cat = planned(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    kind=Cat,
    out="out",
    derivative=cat_backward,
    forward="linear",
    autocast={"cpu": "promote"},
    core=True,
    doc="Returns the tensors one behind the other along a dimension.",
)(cat_meta)


@cat.op.loop
def cat_loop(out: Tensor, tensors: Sequence[Tensor], dim: int) -> Run:
    return kernels.ready_cat(out._operand, [x._operand for x in tensors], wrap_dim(dim, len(out._shape)))


cat_op = cat.op
cat_op.kernel("Undefined")(cat_meta)  # no tensors, no backend: the check says what is wrong
concat, concatenate = (
    public(alias("concat", cat_op)),
    public(alias("concatenate", cat_op)),
)


def stack_meta(tensors: Sequence[Tensor], dim: int) -> Meta:
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = tensors[0]._shape
    axis = wrap_dim(dim, len(shape) + 1)
    for position, x in enumerate(tensors):
        if x._shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and {list(x._shape)} at "
                f"entry {position}"
            )
    return Meta((*shape[:axis], len(tensors), *shape[axis:]), result_type(*tensors), common_device(*tensors))


stack = planned(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    out="out",
    derivative=lambda grad, dim: [grad.select(dim, k) for k in range(grad.shape[dim])],
    forward="linear",
    autocast={"cpu": "promote"},
    doc="Returns the tensors side by side along a new dimension.",
)(stack_meta)


@stack.op.loop
def stack_loop(out: Tensor, tensors: Sequence[Tensor], dim: int) -> Run:
    axis = wrap_dim(dim, len(out._shape))
    slices = [x._operand for x in tensors]
    parts = [
        x._replace(shape=(*x.shape[:axis], 1, *x.shape[axis:]), strides=(*x.strides[:axis], 1, *x.strides[axis:]))
        for x in slices
    ]
    return kernels.ready_cat(out._operand, parts, axis)


stack_op = stack.op
stack_op.kernel("Undefined")(stack_meta)


def joining(name: str, prepare: Callable[[Any], Any], axis: Callable[[Any], int], doc: str) -> Any:
    """`name(tensors)`: cat along one dimension of tensors brought to enough dimensions."""

    def to_cat(tensors: Sequence[Tensor]) -> tuple[list[Tensor], int]:
        if not tensors:
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        prepared = [prepare(x) for x in tensors]
        return prepared, axis(prepared[0])

    def joined(tensors: Sequence[Tensor]) -> Tensor:
        return cat_op.functional(*to_cat(tensors))

    def into_out(tensors: Sequence[Tensor], out: Tensor) -> Tensor:
        return ops.aten.cat.out(*to_cat(tensors), out=out)

    joined.__name__ = f"{name}_composite"
    made = composite(f"{name}(Tensor[] tensors) -> Tensor", out="out", out_by=None, doc=doc)(joined)
    made.op.composite(made.op.out)(into_out)
    return made


def to_1d(x: Tensor) -> Tensor:
    return x if x._shape else reshaped(x, [1])


def to_2d(x: Tensor) -> Tensor:
    if not x._shape:
        return reshaped(x, [1, 1])
    return unsqueeze_op.functional(x, 0) if len(x._shape) == 1 else x


def to_3d(x: Tensor) -> Tensor:
    if not x._shape:
        return reshaped(x, [1, 1, 1])
    if len(x._shape) == 1:
        return unsqueeze_op.functional(unsqueeze_op.functional(x, 0), -1)
    return unsqueeze_op.functional(x, -1) if len(x._shape) == 2 else x


def to_column(x: Tensor) -> Tensor:
    return x if len(x._shape) > 1 else reshaped(x, [x.numel(), 1])


hstack = joining(
    "hstack",
    to_1d,
    lambda first: 0 if len(first._shape) == 1 else 1,
    "Returns the tensors side by side: along the second dimension, or the only one.",
)
vstack = joining(
    "vstack",
    to_2d,
    lambda first: 0,
    "Returns the tensors one below the other, along the first dimension; vectors as rows.",
)
row_stack = joining("row_stack", to_2d, lambda first: 0, "Returns the tensors one below the other, as `vstack` does.")
dstack = joining(
    "dstack", to_3d, lambda first: 2, "Returns the tensors one behind the other, along the third dimension."
)
column_stack = joining(
    "column_stack", to_column, lambda first: 1, "Returns the tensors side by side, vectors as columns."
)


def at_least(name: str, prepare: Callable[[Any], Any]) -> Any:
    """`name(x)` and `name(x, y, ...)`: tensors with at least so many dimensions."""
    one = composite(f"{name}(Tensor self) -> Tensor", face=False)(prepare)
    several = composite(f"{name}.Sequence(Tensor[] tensors) -> Tensor[]")(lambda tensors: [prepare(x) for x in tensors])

    def function(*tensors: Any) -> Any:
        if len(tensors) == 1:
            if isinstance(tensors[0], Tensor):
                return one.functional(tensors[0])
            tensors = tuple(tensors[0])
        return tuple(several.functional(list(tensors)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Returns views of the tensors that have at least {name[-2]} dimensions.\n\n    {one.text}\n    {several.text}"
    )
    return overridable_function(function)


atleast_1d = at_least("atleast_1d", to_1d)
atleast_2d = at_least("atleast_2d", to_2d)
atleast_3d = at_least("atleast_3d", to_3d)

# --- repeat -----------------------------------------------------------------------------------------------------------


def repeat_backward(grad: Any, self_shape: Sequence[int], repeats: Sequence[int]) -> Tensor:
    """The sum over all copies: the gradient seen as (n0, size0, n1, size1, ...), summed over the n."""
    if 0 in repeats:
        return grad.new_zeros(self_shape)
    if not repeats:
        return grad
    lead = len(repeats) - len(self_shape)
    shape = (*(1,) * lead, *self_shape)
    split = grad.reshape(list(itertools.chain(*zip(repeats, shape, strict=True))))
    return split.sum(list(range(0, 2 * len(shape), 2))).reshape(self_shape)


@leaf_kernel(
    "repeat(Tensor self, SymInt[] repeats) -> Tensor",
    derivative=repeat_backward,
    forward="linear",
    function=False,
    core=True,
)
def repeat(self: Tensor, repeats: Sequence[int]) -> Tensor:
    """Returns copies of the tensor side by side, `repeats[d]` along dimension d."""
    lead = len(repeats) - len(self._shape)
    if lead < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = (*(1,) * lead, *self._shape)
    result = empty(Size(size * n for size, n in zip(shape, repeats, strict=True)), self._dtype, self._device)
    if result._device.type != "meta":
        # seen as (n0, size0, n1, size1, ...), the result is the tensor broadcast over all n
        steps = [(0, 0)] * lead + [(0, step) for step in self._stride]
        target, source = result._operand, self._operand
        sizes = tuple(itertools.chain(*zip(repeats, shape, strict=True)))
        strides = tuple(
            itertools.chain(*((size * step, step) for size, step in zip(shape, target.strides, strict=True)))
        )
        kernels.copy(
            target._replace(shape=sizes, strides=strides),
            source._replace(shape=sizes, strides=tuple(itertools.chain(*steps))),
        )
    return result


repeat_op = repeat.op


@composite("tile(Tensor self, SymInt[] dims) -> Tensor")
def tile(self: Tensor, dims: Sequence[int]) -> Tensor:
    """Returns copies of the tensor laid side by side, as `repeat` does, with missing counts taken as 1."""
    return repeat_op.functional(self, [1] * (len(self._shape) - len(dims)) + list(dims))


@composite(
    "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
)
def repeated_each_op(self: Tensor, repeats: int, dim: int | None, output_size: int | None) -> Tensor:
    """Every entry along `dim` (of the flattened tensor where None) `repeats` times in a row."""
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    x = view_op.functional(self.contiguous(), [self.numel()]) if dim is None else to_1d(self)
    axis = wrap_dim(dim or 0, len(x._shape))
    wide = expand_op.functional(
        unsqueeze_op.functional(x, axis + 1), [*x._shape[: axis + 1], repeats, *x._shape[axis + 1 :]]
    )
    dense = clone_op.functional(wide, memory_format=contiguous_format)
    return view_op.functional(dense, [*x._shape[:axis], x._shape[axis] * repeats, *x._shape[axis + 1 :]])


def check_repeats(repeats: Tensor) -> None:
    if repeats._dtype.name not in ("int32", "int64"):
        raise not_implemented("repeat_interleave_cpu", repeats._dtype)
    if len(repeats._shape) != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")


def check_total(least: int, total: int, output_size: int | None) -> None:
    """RuntimeError unless no repeat is negative, and the indices are as many as was said."""
    if least < 0:
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and output_size != total:
        raise RuntimeError("allocated size does not match required size")


@kernel(
    "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
    "CPU",
    tags=("dynamic_output_shape",),
    derivative=False,
    refuses="bool uint8 int8 int16 floating complex",
)
def repeating_indices_op(repeats: Tensor, output_size: int | None) -> Tensor:
    """Returns the indices that repeat by: 0 repeats[0] times, 1 repeats[1] times, ..."""
    check_repeats(repeats)
    counts = kernels.as_ndarray(repeats._operand)
    total = sum(counts.tolist())  # in Python's integers: a sum that wraps around would have numpy write anywhere
    check_total(counts.min(initial=0), total, output_size)
    result = empty((total,), repeats._dtype, repeats._device)
    kernels.as_ndarray(result._operand)[:] = np.repeat(np.arange(len(counts)), counts)
    return result


@composite(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
)
def repeated_by_op(self: Any, repeats: Any, dim: int | None, output_size: int | None) -> Tensor:
    """Returns each element, or each entry along `dim`, as often in a row as `repeats` says."""
    x = self.flatten() if dim is None else self
    axis = wrap_dim(dim or 0, len(x._shape))
    size = x._shape[axis] if x._shape else 1
    if not repeats._shape or repeats._shape == (1,):
        repeats = repeats.reshape(1).expand(size)
    elif len(repeats._shape) != 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    elif repeats._shape[0] != size:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats._shape[0]} and "
            f"input.size({axis}) = {size}"
        )
    return x.index_select(axis, repeating_indices_op.functional(repeats, output_size=output_size))


repeat_interleave = public(
    repeating_indices_op,
    repeated_by_op,
    repeated_each_op,
    method=False,
    doc="Returns each element, or each entry along `dim`, as often in a row as `repeats` says.",
)
public(repeated_by_op, repeated_each_op, function=False)

# --- to one shape -----------------------------------------------------------------------------------------------------


@composite("broadcast_tensors(Tensor[] tensors) -> Tensor[]", face=False)
def broadcast_tensors_op(tensors: Sequence[Tensor]) -> list[Tensor]:
    shape = kernels.broadcast_shapes(*(x._shape for x in tensors))
    return [x if tuple(x._shape) == shape else expand_op.functional(x, shape) for x in tensors]


@overridable_function
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Views of all tensors in the one shape that they broadcast to."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    return tuple(broadcast_tensors_op.functional(list(given)))


def grid_ij(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The coordinates of a grid: result d has the values of tensor d along dimension d and repeats along the others."""
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for x in tensors:
        if len(x._shape) > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {x}")
        if x._dtype is not tensors[0]._dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if x._device != tensors[0]._device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    shape = [x.numel() for x in tensors]
    grids = []
    for d, x in enumerate(tensors):
        column = [1] * len(shape)
        column[d] = -1
        grids.append(expand_op.functional(view_op.functional(x, column), shape))
    return grids


meshgrid_op = composite("meshgrid(Tensor[] tensors) -> Tensor[]", face=False)(grid_ij)


@composite("meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]")
def meshgrid_indexing_op(tensors: Sequence[Tensor], indexing: str) -> list[Tensor]:
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if indexing == "ij" or len(tensors) < 2:
        return grid_ij(tensors)
    second, first, *rest = grid_ij([tensors[1], tensors[0], *tensors[2:]])
    return [first, second, *rest]


@overridable_function
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Returns the coordinates of the grid that 1-d tensors span; `indexing="xy"` swaps the first two dimensions."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    if indexing is None:
        return tuple(meshgrid_op.functional(list(given)))
    return tuple(meshgrid_indexing_op.functional(list(given), indexing=indexing))
