"""Tensors laid out anew, in memory of their own: turned, rolled, triangles and diagonals of matrices, blocks; pixels
and channels that change places, all pairs and combinations; and parts that are no views.

Read next: shape.py, views.py.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.autograd import pulled_back
from redispatch.dispatch.symbolic import SymInt
from redispatch.dispatch.tensor import Size, Tensor, as_numpy, dtypes, empty, result_type, view_over, wrap_dim

from ..declare.operator import composite, kernel, leaf_kernel, structured
from ..declare.out_forms import cast_into_out, copy_into_out
from ..declare.overridable import overridable_function
from ..declare.structured import Meta, check_out_dtype
from .copying import clone_op, move
from .creation import preserved_strides
from .from_data import tensor
from .geometry import Geometry, diagonal_of, permuted, strided_window, viewed
from .padding import constant_pad_nd
from .resampling import shaped_like
from .scattering import split_gradient, zeros
from .shape import meshgrid_op, stack_op
from .view_copies import diagonal_copy_op
from .views import (
    chunked,
    slice_op,
    split_by_sizes,
    split_evenly,
    split_evenly_back,
    tensor_split,
    tensor_split_indices_op,
)

# --- another order of entries -----------------------------------------------------------------------------------------


def flip_meta(self: Tensor, dims: Sequence[int]) -> Meta:
    wrapped = [wrap_dim(dim, len(self._shape)) for dim in dims]
    for dim in wrapped:
        if wrapped.count(dim) > 1:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    return Meta(self._shape, self._dtype, self._device, preserved_strides(self))


flip: Any = structured(
    "flip(Tensor self, int[] dims) -> Tensor",
    derivative=lambda grad, dims: flip.op.functional(grad, dims),
    forward="linear",
    core=True,
    doc="Returns the tensor with the order of elements reversed along `dims`.",
)(flip_meta)


@flip.op.body
def flip_body(out: Tensor, self: Tensor, dims: Sequence[int]) -> None:
    # numpy walks backwards where an operand cannot: its strides may be negative
    backwards = {dim % max(len(self._shape), 1) for dim in dims}
    index = tuple(slice(None, None, -1) if dim in backwards else slice(None) for dim in range(len(self._shape)))
    kernels.as_ndarray(out._operand)[...] = kernels.as_ndarray(self._operand)[index]


@composite("fliplr(Tensor self) -> Tensor")
def fliplr(self: Tensor) -> Tensor:
    """Returns the tensor with the order of columns reversed."""
    if len(self._shape) < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip.op.functional(self, [1])


@composite("flipud(Tensor self) -> Tensor")
def flipud(self: Tensor) -> Tensor:
    """Returns the tensor with the order of rows reversed."""
    if not self._shape:
        raise RuntimeError("Input must be >= 1-d.")
    return flip.op.functional(self, [0])


def roll_meta(self: Tensor, shifts: Sequence[int], dims: Sequence[int]) -> Meta:
    if len(shifts) == 0:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims) and not (len(shifts) == 1 and not dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if dims and not self._shape:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    for dim in dims:
        wrap_dim(dim, len(self._shape))
    return Meta(self._shape, self._dtype, self._device)


roll: Any = structured(
    "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
    derivative=lambda grad, shifts, dims: roll.op.functional(grad.contiguous(), [-shift for shift in shifts], dims),
    forward="linear",
    doc="Returns the elements moved along `dims`; what leaves at one end comes back at the other.",
)(roll_meta)


@roll.op.body
def roll_body(out: Tensor, self: Tensor, shifts: Sequence[int], dims: Sequence[int]) -> None:
    """Moves elements; what leaves at the end comes in at the start. Without dims, those of the flattened tensor."""
    source = kernels.as_ndarray(self._operand)
    if not dims:
        rolled = np.roll(source, shifts[0])
    else:
        rolled = np.roll(source, tuple(shifts), tuple(dim % max(len(self._shape), 1) for dim in dims))
    kernels.as_ndarray(out._operand)[...] = rolled


roll_op = roll.op


@kernel(
    "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
    out="out",
    derivative=lambda grad, k, dims: grad.rot90(-k, dims),
    forward="linear",
)
def rot90(self: Any, k: int, dims: Sequence[int]) -> Tensor:
    """Returns the tensor turned by 90 degrees `k` times, from the first towards the second of two dimensions."""
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
        return flip.op.functional(self, [first, second])
    return flip.op.functional(self, [second if turns == 1 else first]).transpose(first, second).clone()


# --- triangles and diagonals ------------------------------------------------------------------------------------------


def triangle(name: str, keep: Callable[[Any, Any, int], Any], zeros: str) -> Any:
    """`tril` and `triu`: the matrices with zeros where `keep(row, column, diagonal)` is false."""

    def meta(self: Tensor, diagonal: int) -> Meta:
        if len(self._shape) < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return Meta(self._shape, self._dtype, self._device)

    def body(out: Tensor, self: Tensor, diagonal: int) -> None:
        rows, columns = self._shape[-2:]
        kept = keep(np.arange(rows)[:, None], np.arange(columns), diagonal)
        source = kernels.as_ndarray(self._operand)
        kernels.as_ndarray(out._operand)[...] = np.where(kept, source, np.zeros((), source.dtype))

    def gradient(grad: Any, diagonal: int) -> Tensor:
        return made.op.functional(grad, diagonal)

    facts: dict[str, Any] = {"inplace": True, "out": "out", "derivative": gradient, "forward": "linear"}
    facts |= {
        "out_dtype": check_out_dtype,
        "batching": "leading",
        "doc": f"Returns the matrices with zeros {zeros} a diagonal.",
    }
    made = structured(f"{name}(Tensor self, SymInt diagonal=0) -> Tensor", body=body, **facts)(meta)
    return made


tril = triangle("tril", lambda row, column, diagonal: column - row <= diagonal, "above")
triu = triangle("triu", lambda row, column, diagonal: column - row >= diagonal, "below")


@kernel(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    derivative=lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2),
    forward="linear",
    batching="dims",
)
def diag_embed(self: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """Returns zeros with the last dimension of `self` on a diagonal of two more dimensions."""
    ndim = len(self._shape) + 1
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = self._shape[-1] + abs(offset)
    shape = list(self._shape[:-1])
    for d in sorted((first, second)):
        shape.insert(d, size)
    made = zeros(shape, self)
    move(diagonal_of(made, offset, first, second).of(made), self)
    return made


@composite("diag(Tensor self, int diagonal=0) -> Tensor", out="out", out_by=cast_into_out)
def diag(self: Any, diagonal: int) -> Any:
    """Returns the matrix that has a vector on its diagonal, or the diagonal of a matrix."""
    if len(self._shape) not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {len(self._shape)}D")
    if len(self._shape) == 1:
        return diag_embed.op.functional(self, diagonal)
    return diagonal_copy_op.functional(self, diagonal)


@composite("diagflat(Tensor self, int offset=0) -> Tensor")
def diagflat(self: Any, offset: int) -> Tensor:
    """Returns the matrix that has all elements on its diagonal."""
    return diag_embed.op.functional(self.contiguous().view([-1]), offset)


@composite("fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)", function=False)
def fill_diagonal_(self: Any, fill_value: Any, wrap: bool) -> Any:
    """Fills the elements whose indices are all the same; with `wrap`, a tall matrix has several diagonals."""
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


@composite(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    out="out",
    out_by=cast_into_out,
)
def diff(self: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    """Returns each element minus the one before it along `dim`, `n` times over."""
    if not self._shape:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    axis = wrap_dim(dim, len(self._shape))
    for x in (prepend, append):
        if x is None:
            continue
        if len(x.shape) != len(self._shape):
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for d, (size, own) in enumerate(zip(x.shape, self.shape, strict=True)):
            if size != own and d != axis:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({d}) = {own}, but got tensor.size({d}) = {size}"
                )
    if not n:
        return self.clone()
    parts = [x for x in (prepend, self, append) if x is not None]
    result = self if len(parts) == 1 else ops.aten.cat.default(parts, axis)
    for _ in range(min(n, result.shape[axis])):
        size = result.shape[axis]
        if self.dtype.name == "bool":
            result = result.narrow(axis, 1, size - 1).logical_xor(result.narrow(axis, 0, size - 1))
        else:
            result = result.narrow(axis, 1, size - 1) - result.narrow(axis, 0, size - 1)
    return result


def shape_of_block(position: int, x: Tensor) -> tuple[int, int]:
    if len(x._shape) > 2:
        raise RuntimeError(
            f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {position} has {len(x._shape)} "
            "dimensions"
        )
    rows, columns = (1, 1, *x._shape)[-2:]
    return rows, columns


def block_diag_backward(grad: Any, tensors_shape: Sequence[Size]) -> list[Any]:
    gradients, row, column = [], 0, 0
    for shape in tensors_shape:
        rows, columns = (1, 1, *shape)[-2:]
        block = grad.narrow(0, row, rows).narrow(1, column, columns)
        gradients.append(block.reshape(shape))
        row, column = row + rows, column + columns
    return gradients


@kernel(
    "block_diag(Tensor[] tensors) -> Tensor", out="out", derivative=block_diag_backward, forward="linear", face=False
)
def block_diag_op(tensors: Sequence[Tensor]) -> Tensor:
    """Returns zeros with the matrices one behind the other along the diagonal; a vector is a row."""
    shapes = [shape_of_block(position, x) for position, x in enumerate(tensors)]
    height, width = (sum(sizes) for sizes in zip(*shapes, strict=True))
    made = empty(Size((height, width)), result_type(*tensors), tensors[0]._device)
    made.zero_()
    row = column = 0
    for x, (rows, columns) in zip(tensors, shapes, strict=True):
        block = Geometry((rows, columns), made._stride, row * width + column).of(made)
        move(block, ops.aten.view.default(ops.aten.contiguous.default(x), [rows, columns]))
        row, column = row + rows, column + columns
    return made


block_diag_op.kernel("Undefined")(lambda tensors: empty(Size((1, 0)), dtypes.float32))  # of no tensors


@overridable_function
def block_diag(*tensors: Any) -> Tensor:
    """Returns a matrix with the given ones along its diagonal: block_diag(a, b, ...)."""
    return block_diag_op.functional(list(tensors))


# --- pixels and channels: copies between two views, both with dimensions split in two, one of them permuted -----------


def shuffled(shape: Sequence[int], x: Tensor, split: Sequence[int], order: Sequence[int]) -> Tensor:
    """A tensor of this shape, with the elements of `x` in the order in which its view of the shape `split` has them
    when its dimensions are permuted."""
    made = shaped_like(shape, x).allocate()
    source = viewed(x, split).of(x)
    source = permuted(source, order).of(source)
    target = viewed(made, source._shape).of(made)
    move(target, source)
    return made


def pixels(schema: str, derivative: Callable[..., Any]) -> Any:
    """A decorator that declares an operator which moves pixels between channels and space, by its kernel."""
    facts: Any = {"out": "out", "forward": "linear", "method": False, "batching": "leading"}
    return leaf_kernel(schema, derivative=derivative, **facts)


def check_pixels(name: str, self: Tensor, factor: int, word: str) -> tuple[int, ...]:
    """The dimensions in front of the channels."""
    ndim = len(self._shape)
    if ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {word}, but got {factor}")
    return tuple(self._shape[:-3])


@pixels(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    derivative=lambda grad, upscale_factor: pixel_unshuffle.op.functional(grad, upscale_factor),
)
def pixel_shuffle(self: Tensor, r: int) -> Tensor:
    """Returns images that are r times as high and wide, of r² times fewer channels.

    [..., channels r², height, width] -> [..., channels, height r, width r]: r² channels fill a square of pixels.
    """
    lead = check_pixels("pixel_shuffle", self, r, "upscale_factor")
    channels, height, width = self._shape[-3:]
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    n, made = len(lead), channels // (r * r)
    split, order = (*lead, made, r, r, height, width), (*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return shuffled((*lead, made, height * r, width * r), self, split, order)


@pixels(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    derivative=lambda grad, downscale_factor: pixel_shuffle.op.functional(grad, downscale_factor),
)
def pixel_unshuffle(self: Tensor, r: int) -> Tensor:
    """Returns images of r² times the channels, r times less high and wide: the way back."""
    lead = check_pixels("pixel_unshuffle", self, r, "downscale_factor")
    channels, height, width = self._shape[-3:]
    for name, d, size in (("height", -2, height), ("width", -1, width)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({d})={size} is "
                f"not divisible by {r}"
            )
    n = len(lead)
    split, order = (*lead, channels, height // r, r, width // r, r), (*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return shuffled((*lead, channels * r * r, height // r, width // r), self, split, order)


def shuffled_channels(self: Tensor, groups: int) -> Tensor:
    """The channels, in groups one behind the other, so that the first of each group comes first, then the second."""
    shape = tuple(self._shape)
    if len(shape) <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    batch, channels, *space = shape
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    split = (batch, groups, channels // groups, *space)
    return shuffled(shape, self, split, (0, 2, 1, *range(3, len(split))))


def channels_back(grad: Any, self_shape: Any, groups: int) -> Any:
    """Undoes `channel_shuffle`: with as many groups as one had members, channels change places back."""
    return channel_shuffle.op.functional(grad, self_shape[1] // groups)


SHUFFLE: dict[str, Any] = {"derivative": channels_back, "forward": "linear", "method": False}
native_channel_shuffle = leaf_kernel(
    "native_channel_shuffle(Tensor self, SymInt groups) -> Tensor",
    **SHUFFLE,
    late_out=False,
    doc="Returns the channels of groups in turn: each first one, then each second.",
)(shuffled_channels)
channel_shuffle = leaf_kernel(
    "channel_shuffle(Tensor self, SymInt groups) -> Tensor",
    out="out",
    **SHUFFLE,
    doc="Returns the channels of groups in turn: each first one, then each second.",
)(shuffled_channels)
channel_shuffle_op, native_channel_shuffle_op = channel_shuffle.op, native_channel_shuffle.op

# --- all choices ------------------------------------------------------------------------------------------------------


@composite("cartesian_prod(Tensor[] tensors) -> Tensor", face=False)
def cartesian_prod_op(tensors: Sequence[Any]) -> Any:
    """Returns all ways to take one element of each vector, a row for each."""
    for x in tensors:
        if x.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack_op.functional([grid.flatten() for grid in meshgrid_op.functional(list(tensors))], 1)


cartesian_prod_op.kernel("Undefined")(lambda tensors: meshgrid_op.functional(tensors))  # which says what is wrong


@overridable_function
def cartesian_prod(*tensors: Any) -> Tensor:
    """Returns all ways to take one element of each vector, a row for each: cartesian_prod(a, b, ...)."""
    return cartesian_prod_op.functional(list(tensors))


@composite("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor")
def combinations(self: Any, r: int, with_replacement: bool) -> Any:
    """Returns all ways to take `r` elements of a vector, in the vector's order, a row for each."""
    if self.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(self.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return self.new_empty([0])
    n = self.numel()
    count = math.comb(max(n + r - 1, 0), r) if with_replacement else math.comb(n, r)
    kernels.memory(count * r, np.int64)  # RuntimeError for more than there is
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = np.array(list(choose(range(n), r)), np.int64).reshape(-1, r)
    places = empty(Size(chosen.shape), dtypes.int64)
    as_numpy(places)[...] = chosen
    return self.take(ops.aten.lift_fresh.default(places).to(self.device))  # so that modes see where it comes from


# --- parts ------------------------------------------------------------------------------------------------------------


def splitting(name: str, least: int, axis_of: Any, doc: str) -> Any:
    """`hsplit` and its kin: `tensor_split` along one dimension, into equal parts or at indices."""
    parts = "Tensor(a -> *) self, {}) -> Tensor(a)[]"

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
        return tensor_split.op.functional(self, sections, along)

    def at_indices(self: Any, indices: Sequence[int]) -> Any:
        return tensor_split_indices_op.functional(self, indices, axis(self))

    at = composite(f"{name}.array({parts.format('int[] indices')}")(at_indices)
    return composite(f"{name}.int({parts.format('int sections')}", also=(at,), doc=doc)(into_sections)


hsplit = splitting(
    "hsplit",
    1,
    lambda self: 0 if self.dim() == 1 else 1,
    "Returns views of parts of the second dimension, or of the only one.",
)
vsplit = splitting("vsplit", 2, lambda self: 0, "Returns views of parts of the first dimension.")
dsplit = splitting("dsplit", 3, lambda self: 2, "Returns views of parts of the third dimension.")


def unsafely(schema: str, geometries: Callable[..., list[Geometry]], derivative: Any, doc: str) -> Any:
    """Parts as tensors that share the memory and that nobody knows to be views: they may be written in place only where
    the whole is not used any more."""

    def function(self: Tensor, *args: Any) -> list[Tensor]:
        return [view_over(self, part.shape, part.stride, part.offset) for part in geometries(self, *args)]

    function.__name__ = schema.partition("(")[0].partition(".")[0]
    facts: dict[str, Any] = {"derivative": derivative, "forward": "linear", "batching": "dims", "late_out": True}
    return kernel(schema, doc=doc, face=True, **facts)(function)


unsafe_split = unsafely(
    "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
    split_evenly,
    split_evenly_back,
    "Returns the parts of a dimension, which share memory without being known as views.",
)
unsafe_split_with_sizes = unsafely(
    "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
    split_by_sizes,
    split_gradient,
    "Returns parts of these sizes, which share memory without being known as views.",
)
unsafe_chunk = composite(
    "unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
    doc="Returns `chunks` parts of a dimension, which share memory without being known as views.",
)(lambda self, chunks, dim: chunked(self, chunks, dim, unsafe_split.op, unsafe_split_with_sizes.op))
unsafe_chunk_op = unsafe_chunk.op


@kernel(
    "slice_inverse(Tensor(a) self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) "
    "-> Tensor(a)",
    derivative={
        "self": lambda grad, dim, start, end, step: slice_op.functional(grad, dim, start, end, step),
        "src": lambda grad: None,
    },
    forward="linear",
    batching="view",
)
def slice_inverse(self: Tensor, src: Tensor, dim: int, start: int | None, end: int | None, step: int) -> Tensor:
    """Returns a view of the memory of `self` in the shape of `src`, of which `self` is a slice."""
    return strided_window(self, src._shape, src._stride, src._offset).of(self)


# --- shapes -----------------------------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Any) -> Size:
    """Returns the shape that tensors of these shapes broadcast to. RuntimeError where they do not.

    >>> import redispatch as rd
    >>> rd.broadcast_shapes((3, 1), (1, 4))
    torch.Size([3, 4])
    """
    found: list[int] = []
    for position, given in enumerate(shapes):
        if not isinstance(given, int | SymInt | tuple | list):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {given}")
        shape = (given,) if isinstance(given, int | SymInt) else tuple(given)
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
    """Returns the coordinates, a tensor for each dimension, of elements that are numbered row by row."""
    if not isinstance(indices, Tensor) or indices._dtype.category != 1:
        kind = indices._dtype if isinstance(indices, Tensor) else type(indices).__name__
        raise TypeError(f"expected 'indices' to be integer dtype, but got {kind}")
    if not isinstance(shape, int | Sequence):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    if not sizes:
        return ()
    steps = list(itertools.accumulate(reversed(sizes[1:]), operator.mul, initial=1))[::-1]
    of, size = (tensor(numbers, dtype=dtypes.int64, device=indices.device) for numbers in (steps, sizes))
    found = ops.aten.div.Tensor_mode(indices.unsqueeze(-1), of, rounding_mode="floor") % size
    return tuple(found.unbind(-1))


# --- _chunk_cat: several tensors, each cut into as many chunks, joined chunk by chunk ---------------------------------


def chunks_of(x: Any, dim: int, count: int) -> Any:
    """The tensor as `count` rows: padded with zeros along `dim`, where it does not go into so many equal chunks."""
    missing = -x.shape[dim] % count
    if missing:
        x = constant_pad_nd.op.functional(x, [*(0, 0) * (x.dim() - dim - 1), 0, missing], 0)
    return x.reshape([*x.shape[:dim], count, -1])


@kernel(
    "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", out="out", out_by=copy_into_out, dispatches=True
)
def _chunk_cat(tensors, dim, num_chunks):
    """Returns the tensors side by side, each as `num_chunks` rows, which lie along `dim`."""
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    first = tensors[0]
    for x in tensors:
        if not x.numel():
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if x.dtype is not first.dtype:
            raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
        if x.device != first.device:
            raise RuntimeError("_chunk_cat expects all inputs tensors on the same device")
    if all(x.dim() == first.dim() for x in tensors):
        dim = wrap_dim(dim, first.dim())
    elif dim < 0:
        raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
    elif any(dim >= x.dim() for x in tensors):
        raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
    if any(x.shape[:dim] != first.shape[:dim] for x in tensors):
        raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
    return chunks_joined(tensors, dim, num_chunks)


def chunks_joined(tensors: Any, dim: int, num_chunks: int) -> Any:
    return ops.aten.cat.default([chunks_of(x, dim, num_chunks) for x in tensors], dim + 1)


@_chunk_cat.gradient("tensors")
def chunk_cat_backward(grad, tensors, dim, num_chunks, needs):
    dim = dim % tensors[0].dim()
    return pulled_back(lambda *parts: [chunks_joined(parts, dim, num_chunks)], tuple(tensors), [grad], needs)


_chunk_cat.forward("linear")
