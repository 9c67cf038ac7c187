"""Tensors laid out anew: turned, in blocks along a diagonal, as all pairs and combinations; parts that are no views.

Read next: shape.py, views.py.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Size, Tensor, as_numpy, dtypes, empty, result_type, view_over, wrap_dim
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator
from ..declare.overridable import overridable_function
from ..declare.public import public
from .copying import clone_op, composite_view, move
from .geometry import Geometry, split_lengths, strided_window
from .scattering import split_gradient
from .shape import flip_op, meshgrid_op, stack_op
from .views import slice_op, split_by_sizes, split_evenly, tensor_split_indices_op, tensor_split_sections_op

# --- turned, and in blocks --------------------------------------------------------------------------------------------

rot90_op = Operator("rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor", out="out")


@rot90_op.explicit
def rot90_kernel(self: Any, k: int, dims: Sequence[int]) -> Tensor:
    """A quarter turn, `k` times, from the first towards the second of two dimensions."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.dim() < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.dim()}")
    first, second = dims
    if first == second or abs(first - second) == self.dim():
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {first} and dim1 = {second}")
    first, second = wrap_dim(first, self.dim()), wrap_dim(second, self.dim())
    turns = k % 4
    if turns == 0:
        return clone_op.functional(self)
    if turns == 2:
        return flip_op.functional(self, [first, second])
    return flip_op.functional(self, [second if turns == 1 else first]).transpose(first, second).clone()


rot90_op.derivative(self=lambda grad, k, dims: grad.rot90(-k, dims))
rot90_op.forward("linear")
copy_into_out(rot90_op)
rot90 = public(rot90_op)

block_diag_op = Operator("block_diag(Tensor[] tensors) -> Tensor", out="out")


def shape_of_block(position: int, x: Tensor) -> tuple[int, int]:
    if len(x._shape) > 2:
        raise RuntimeError(
            f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {position} has {len(x._shape)} "
            "dimensions"
        )
    rows, columns = (1, 1, *x._shape)[-2:]
    return rows, columns


@block_diag_op.explicit
def block_diag_kernel(tensors: Sequence[Tensor]) -> Tensor:
    """Zeros, with the matrices one behind the other along the diagonal; a vector is a row."""
    shapes = [shape_of_block(position, x) for position, x in enumerate(tensors)]
    if not tensors:
        return empty(Size((1, 0)), dtypes.float32)
    height, width = (sum(sizes) for sizes in zip(*shapes, strict=True))
    made = empty(Size((height, width)), result_type(*tensors), tensors[0]._device)
    made.zero_()
    row = column = 0
    for x, (rows, columns) in zip(tensors, shapes, strict=True):
        block = Geometry((rows, columns), made._stride, row * width + column).of(made)
        move(block, ops.aten.view.default(ops.aten.contiguous.default(x), [rows, columns]))
        row, column = row + rows, column + columns
    return made


def block_diag_backward(grad: Any, tensors_shape: Sequence[Size]) -> list[Any]:
    gradients, row, column = [], 0, 0
    for shape in tensors_shape:
        rows, columns = (1, 1, *shape)[-2:]
        block = grad.narrow(0, row, rows).narrow(1, column, columns)
        gradients.append(block.reshape(shape))
        row, column = row + rows, column + columns
    return gradients


block_diag_op.kernel("Undefined")(block_diag_kernel)
block_diag_op.derivative(tensors=block_diag_backward)
block_diag_op.forward("linear")
copy_into_out(block_diag_op)


@overridable_function
def block_diag(*tensors: Any) -> Tensor:
    """A matrix with the given ones along its diagonal: block_diag(a, b, ...)."""
    return block_diag_op.functional(list(tensors))


# --- all choices ------------------------------------------------------------------------------------------------------

cartesian_prod_op = Operator("cartesian_prod(Tensor[] tensors) -> Tensor")
combinations_op = Operator("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor")


@cartesian_prod_op.implicit
def cartesian_prod_composite(tensors: Sequence[Any]) -> Any:
    """All ways to take one element of each vector, a row for each."""
    for x in tensors:
        if x.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack_op.functional([grid.flatten() for grid in meshgrid_op.functional(list(tensors))], 1)


cartesian_prod_op.kernel("Undefined")(lambda tensors: meshgrid_op.functional(tensors))  # which says what is wrong


@overridable_function
def cartesian_prod(*tensors: Any) -> Tensor:
    """All ways to take one element of each vector, a row for each: cartesian_prod(a, b, ...)."""
    return cartesian_prod_op.functional(list(tensors))


@combinations_op.implicit
def combinations_composite(self: Any, r: int, with_replacement: bool) -> Any:
    """All ways to take `r` elements of a vector, in the vector's order, a row for each."""
    if self.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(self.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return self.new_empty([0])
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = np.array(list(choose(range(self.numel()), r)), np.int64).reshape(-1, r)
    places = empty(Size(chosen.shape), dtypes.int64)
    as_numpy(places)[...] = chosen
    return self.take(places.to(self.device))


combinations = public(combinations_op)

# --- parts ------------------------------------------------------------------------------------------------------------


def splitting(name: str, least: int, axis_of: Any) -> Any:
    """`hsplit` and its kin: `tensor_split` along one dimension, into equal parts or at indices."""
    parts = "Tensor(a -> *) self, {}) -> Tensor(a)[]"
    equal = composite_view(Operator(f"{name}.int({parts.format('int sections')}"))
    at = composite_view(Operator(f"{name}.array({parts.format('int[] indices')}"))

    def axis(self: Any) -> int:
        if self.dim() < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {self.dim()} "
                "dimensions!"
            )
        return axis_of(self)

    def into_sections(self: Any, sections: int) -> Any:
        along = axis(self)
        if sections == 0 or self.shape[along] % sections:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {along}, but the size of the dimension "
                f"{self.shape[along]} is not divisible by the split_size {sections}!"
            )
        return tensor_split_sections_op.functional(self, sections, along)

    def at_indices(self: Any, indices: Sequence[int]) -> Any:
        return tensor_split_indices_op.functional(self, indices, axis(self))

    equal.implicit(into_sections)
    at.implicit(at_indices)
    return public(equal, at)


hsplit = splitting("hsplit", 1, lambda self: 0 if self.dim() == 1 else 1)
vsplit = splitting("vsplit", 2, lambda self: 0)
dsplit = splitting("dsplit", 3, lambda self: 2)

unsafe_split_op = Operator("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]")
unsafe_split_sizes_op = Operator("unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]")
unsafe_chunk_op = Operator("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")


@unsafe_split_op.explicit
def unsafe_split_kernel(self: Tensor, split_size: int, dim: int) -> list[Tensor]:
    """The parts as tensors that share the memory and that nobody knows to be views: they may be written in place only
    where the whole is not used any more."""
    return [unknown_view(self, part) for part in split_evenly(self, split_size, dim)]


@unsafe_split_sizes_op.explicit
def unsafe_split_sizes_kernel(self: Tensor, split_sizes: Sequence[int], dim: int) -> list[Tensor]:
    return [unknown_view(self, part) for part in split_by_sizes(self, split_sizes, dim)]


def unknown_view(self: Tensor, part: Geometry) -> Tensor:
    return view_over(self, part.shape, part.stride, part.offset)


unsafe_split_op.derivative(
    self=lambda grads, self_shape, split_size, dim: split_gradient(
        grads, self_shape, split_lengths(self_shape[dim], split_size), dim
    )
)
unsafe_split_op.forward("linear")
unsafe_split_sizes_op.derivative(
    self=lambda grads, self_shape, split_sizes, dim: split_gradient(grads, self_shape, split_sizes, dim)
)
unsafe_split_sizes_op.forward("linear")


@unsafe_chunk_op.implicit
def unsafe_chunk_composite(self: Any, chunks: int, dim: int) -> Any:
    """`chunk`, in such parts."""
    if not self.dim():
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = self.shape[wrap_dim(dim, self.dim())]
    each = -(-size // chunks)
    if each == 0 and size == 0:
        return unsafe_split_sizes_op.functional(self, [0] * chunks, dim)
    return unsafe_split_op.functional(self, each, dim)


unsafe_split = public(unsafe_split_op)
unsafe_split_with_sizes = public(unsafe_split_sizes_op)
unsafe_chunk = public(unsafe_chunk_op)

slice_inverse_op = Operator(
    "slice_inverse(Tensor(a) self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) "
    "-> Tensor(a)"
)


@slice_inverse_op.explicit
def slice_inverse_kernel(self: Tensor, src: Tensor, dim: int, start: int | None, end: int | None, step: int) -> Tensor:
    """What `self` is a slice of, if `src` looks like that: the memory of `self`, in the shape of `src`."""
    return strided_window(self, src._shape, src._stride, src._offset).of(self)


slice_inverse_op.derivative(
    self=lambda grad, dim, start, end, step: slice_op.functional(grad, dim, start, end, step), src=lambda grad: None
)
slice_inverse_op.forward("linear")
slice_inverse = public(slice_inverse_op)

# --- where elements are -----------------------------------------------------------------------------------------------

fill_diagonal_op = Operator("fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)")


@fill_diagonal_op.implicit
def fill_diagonal_composite(self: Any, fill_value: Any, wrap: bool) -> Any:
    """Writes the elements whose indices are all the same; with `wrap`, a tall matrix has several diagonals."""
    if self.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    height, width = self.shape[:2]
    if self.dim() > 2 and any(size != height for size in self.shape):
        raise RuntimeError("all dimensions of input must be of equal length")
    down, across = self.stride()[0], sum(self.stride())
    tall = wrap and self.dim() == 2
    for row in range(0, height if tall else 1, width + 1):
        count = min(height - row, width)
        self.as_strided([count], [across], self.storage_offset() + row * down).fill_(fill_value)
    return self


fill_diagonal_ = public(fill_diagonal_op, function=False)

# --- shapes -----------------------------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to. RuntimeError where they do not.

    >>> import redispatch as rd
    >>> rd.broadcast_shapes((3, 1), (1, 4))
    torch.Size([3, 4])
    """
    found: list[int] = []
    for position, given in enumerate(shapes):
        if not isinstance(given, int | tuple | list):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {given}")
        shape = (given,) if isinstance(given, int) else tuple(given)
        found = [1] * (len(shape) - len(found)) + found
        for d in range(-1, -1 - len(shape), -1):
            if shape[d] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if shape[d] != 1 and shape[d] != found[d]:
                if found[d] != 1:
                    raise RuntimeError(
                        f"Attempting to broadcast a dimension of length {shape[d]} at {d}! Mismatching argument at "
                        f"index {position} had {shape}; but expected shape should be broadcastable to {found}"
                    )
                found[d] = shape[d]
    return Size(found)


@overridable_function
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates, a tensor for each dimension, of elements that are numbered row by row."""
    if not isinstance(indices, Tensor) or indices._dtype.category != 1:
        kind = indices._dtype if isinstance(indices, Tensor) else type(indices).__name__
        raise TypeError(f"expected 'indices' to be integer dtype, but got {kind}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    steps = list(itertools.accumulate(reversed(sizes[1:]), operator.mul, initial=1))[::-1] if sizes else []
    return tuple(
        ops.aten.remainder.Scalar(ops.aten.div.Scalar_mode(indices, step, rounding_mode="floor"), size)
        for step, size in zip(steps, sizes, strict=True)
    )
