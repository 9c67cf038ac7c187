"""Views: the same memory under another shape, other strides or another offset. Nothing is copied, ever.

What a view looks like is arithmetic on (shape, strides, offset) and stands in geometry.py. The layer ADInplaceOrView
ties the result to its base; the in-place forms (`t_`, `squeeze_`, ...) put the geometry into the tensor itself.

A view's derivative puts the gradient back where the view took its elements from. Where the view showed all elements,
that is a view again; where it left some out, it is one of the `*_backward` operators in scattering.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from redispatch import kernels
from redispatch.dispatch import call
from redispatch.dispatch.layers.lazy_bit import CONJUGATE, NEGATIVE
from redispatch.dispatch.specialiser.annotations import inline, leaf
from redispatch.dispatch.symbolic import holds
from redispatch.dispatch.tensor import (
    Tensor,
    contiguous_format,
    dtype,
    metadata_of,
    overridable_property,
    view_over,
    wrap_dim,
)
from redispatch.kernels import infer_view_strides

from ..declare.declare import Function, Operator, through
from ..declare.operator import LAZY, composite, kernel, same_as
from ..declare.public import public
from .copying import clone_op, outside_graph
from .geometry import (
    WINDOWS,
    Geometry,
    diagonal_of,
    expanded,
    give_parts,
    give_view,
    inferred_shape,
    matrix_transposed,
    permuted,
    selected,
    sliced,
    split_lengths,
    squeezed,
    squeezed_dim,
    squeezed_dims,
    strided_window,
    t_inplace_geometry,
    transposed,
    unsqueezed,
    viewed,
    windows,
)
from .scattering import (
    as_strided_gradient,
    diagonal_backward_op,
    select_backward_op,
    slice_backward_op,
    split_gradient,
    unbind_gradient,
    unfold_backward_op,
)

INPLACE_VIEW = ("inplace", "inplace_view")
MAX = 2**63 - 1


def view_operator(
    schema: str,
    geometry: Callable[..., Geometry],
    derivative: Function,
    *,
    inplace: str = "",
    nodes: tuple[str | None, ...] = (None, None),
    **facts: Any,
) -> tuple[Any, Any]:
    """A view operator whose result looks as `geometry` of the schema's arguments says; and, if it has a name, the one
    that gives its argument itself this geometry, with the nodes of both."""
    op = Operator(schema, **facts)
    give_view(op, geometry)
    op.differentiate_by([(("self",), derivative)], nodes[0])
    if not inplace:
        return op, None
    arguments = schema[schema.index("(") :].replace("Tensor(a)", "Tensor(a!)")
    return op, inplace_view_operator(f"{inplace}{arguments}", geometry, derivative, nodes[1])


def inplace_view_operator(
    schema: str, geometry: Callable[..., Geometry], derivative: Function, node: str | None, **facts: Any
) -> Operator:
    def function(self: Tensor, *args: Any) -> Tensor:
        return geometry(self, *args).put_into(self)

    function.__name__ = f"{geometry.__name__}_inplace"
    return kernel(schema, tags=INPLACE_VIEW, derivative=derivative, node=node, face=False, **facts)(function)


# --- another shape for the same elements ------------------------------------------------------------------------------


def reshaped_back(grad: Any, self_shape: Any) -> Tensor:
    return grad.reshape(self_shape)


view_op, _ = view_operator("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", viewed, reshaped_back, core=True)


@kernel("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", batching="pointwise", refuses="bool uint8 int8")
def view_dtype_op(self: Tensor, to: dtype) -> Tensor:
    """Returns the same bytes read as elements of another size: the last dimension shrinks or grows."""
    bits = metadata_of(self).bits if to is not self._dtype else 0
    if bits & (CONJUGATE | NEGATIVE):
        kind = "conjugate view tensors" if bits & CONJUGATE else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {kind} when converting to a different dtype.")
    shape, stride, offset = tuple(self._shape), self._stride, self._offset
    old: Any = self._dtype.itemsize
    new: Any = to.itemsize
    if old == new:
        return view_over(self, shape, stride, offset, to)
    names = f"view {self._dtype.tensor_name} as {to.tensor_name} (different element sizes)"
    if not shape:
        raise RuntimeError(f"self.dim() cannot be 0 to {names}")
    if stride[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 to {names}, but got {stride[-1]}")
    if old > new:
        ratio = old // new
        shape = (*shape[:-1], shape[-1] * ratio)
        return view_over(self, shape, (*(step * ratio for step in stride[:-1]), 1), offset * ratio, to)
    ratio = new // old
    if shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} to {names}, but got {shape[-1]}")
    if offset % ratio:
        raise RuntimeError(f"self.storage_offset() must be divisible by {ratio} to {names}, but got {offset}")
    for dim, step in enumerate(stride[:-1]):
        if step % ratio:
            raise RuntimeError(f"self.stride({dim}) must be divisible by {ratio} to {names}, but got {step}")
    shape = (*shape[:-1], shape[-1] // ratio)
    return view_over(self, shape, (*(step // ratio for step in stride[:-1]), 1), offset // ratio, to)


outside_graph(view_dtype_op)
view = public(
    view_dtype_op,
    view_op,
    function=False,
    doc="Returns a view in another shape, or of the same bytes as another dtype.",
)

# A view that nobody is to know of, because its base is a temporary that nobody else has.
unsafe_view_op = Operator("_unsafe_view(Tensor self, SymInt[] size) -> Tensor")
give_view(unsafe_view_op, viewed, "unsafe_view_kernel")
unsafe_view_op.understands(*LAZY)
unsafe_view_op.derivative(self=reshaped_back)
unsafe_view_op.forward("linear")


class Reshaping(NamedTuple):
    """The reshaping of a tensor: the shape without a -1, and whether the strides allow a view."""

    shape: tuple[int, ...]
    is_view: bool


RESHAPINGS: dict[Any, Reshaping] = {}  # by metadata and wanted shape: geometry.py, Note [Windows are remembered]


@inline
def reshaped(self: Tensor, shape: Sequence[int]) -> Tensor:
    """A view where the strides allow it, otherwise a copy."""
    key = (self._interned or metadata_of(self), tuple(shape))
    found = RESHAPINGS.get(key) or new_reshaping(key, self)
    if found.is_view:
        return call(view_op.functional, [self, list(shape if self.is_contiguous() else found.shape)])
    return unsafe_view_op.functional(contiguous_copy(self), found.shape)


@leaf
def new_reshaping(key: Any, self: Tensor) -> Reshaping:
    wanted = inferred_shape(key[1], self._shape.numel())
    found = Reshaping(wanted, infer_view_strides(tuple(self._shape), self._stride, wanted) is not None)
    if len(RESHAPINGS) >= WINDOWS:
        RESHAPINGS.clear()
    RESHAPINGS[key] = found
    return found


def contiguous_copy(x: Tensor) -> Tensor:
    return clone_op.functional(x, memory_format=contiguous_format)


reshape = composite(
    "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
    doc="Returns a view in another shape where the strides allow it, otherwise a copy.",
)(reshaped)
view_as = composite(
    "view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    function=False,
    doc="Returns a view of the tensor in the shape of `other`.",
)(lambda self, other: view_op.functional(self, other._shape))
reshape_as = composite(
    "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    function=False,
    doc="Returns the tensor in the shape of `other`, a view if possible.",
)(lambda self, other: reshaped(self, other._shape))
ravel = composite(
    "ravel(Tensor(a) self) -> Tensor(a)",
    doc="Returns the elements as one dimension: a view where the strides allow it, otherwise a copy.",
)(lambda self: view_op.functional(self if self.is_contiguous() else contiguous_copy(self), [-1]))


FLATTENINGS: dict[Any, tuple[int, ...]] = {}  # by metadata and dimensions, the shape


@composite("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", face=True)
@inline
def flatten(self: Tensor, start_dim: int, end_dim: int) -> Tensor:
    """Returns the tensor with its dimensions from `start_dim` to `end_dim` made one."""
    key = (self._interned or metadata_of(self), start_dim, end_dim)
    shape = FLATTENINGS.get(key) or new_flattening(key, self)
    return reshaped(self, shape) if len(shape) != len(self._shape) else self


@leaf
def new_flattening(key: Any, self: Tensor) -> tuple[int, ...]:
    shape = tuple(self._shape)
    start, end = wrap_dim(key[1], len(shape)), wrap_dim(key[2], len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    found = (*shape[:start], kernels.numel(shape[start : end + 1]), *shape[end + 1 :])
    if len(FLATTENINGS) >= WINDOWS:
        FLATTENINGS.clear()
    FLATTENINGS[key] = found
    return found


@composite(
    "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
    method_like=lambda self, dim, sizes: None,
    face=True,
)
def unflatten(self: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Returns the tensor with one dimension parted into several."""
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    dim = wrap_dim(dim, len(self._shape))
    try:
        shape = inferred_shape(sizes, self._shape[dim])
    except RuntimeError as problem:
        if "is invalid for input" not in str(problem):
            raise RuntimeError(f"unflatten got an unexpected error:\n{problem}") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({self._shape[dim]}) "
            "in the input tensor"
        ) from None
    return view_op.functional(self, [*self._shape[:dim], *shape, *self._shape[dim + 1 :]])


# --- another order of dimensions --------------------------------------------------------------------------------------


def permute_backward(grad: Tensor, dims: Sequence[int]) -> Tensor:
    inverse = [0] * len(dims)
    for position, dim in enumerate(dims):
        inverse[dim % len(dims)] = position
    return permute_op.functional(grad, inverse)


permute_op, _ = view_operator(
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    permuted,
    permute_backward,
    core=True,
    doc="Returns a view of the tensor with its dimensions in the order `dims`.",
)


def transpose_backward(grad: Tensor, dim0: int, dim1: int) -> Tensor:
    return transpose_op.functional(grad, dim0, dim1)


def t_backward(grad: Tensor) -> Tensor:
    return t_op.functional(grad)


transpose_op, transpose_inplace_op = view_operator(
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    transposed,
    transpose_backward,
    inplace="transpose_",
    nodes=(None, "TransposeBackward1"),
    doc="Returns a view of the tensor with two dimensions exchanged.",
)
t_op, _ = view_operator(
    "t(Tensor(a) self) -> Tensor(a)",
    matrix_transposed,
    t_backward,
    doc="Returns a view of a matrix with its dimensions exchanged; a vector as it is.",
)
t_inplace_op = inplace_view_operator("t_(Tensor(a!) self) -> Tensor(a!)", t_inplace_geometry, t_backward, "TBackward1")
permute = public(permute_op)
transpose = public(transpose_op)
transpose_ = public(transpose_inplace_op, function=False, doc="Exchanges two dimensions of the tensor, in place.")
t = public(t_op)
t_ = public(t_inplace_op, function=False, doc="Exchanges the dimensions of a matrix, in place.")


def swapping(name: str, arguments: str, whose: str = "") -> tuple[Any, Any]:
    """A second name of `transpose`, and of `transpose_`."""
    plain = same_as(
        f"{name}(Tensor(a) self, {arguments}) -> Tensor(a)",
        transpose_op,
        doc=f"Returns a view of the tensor with two dimensions exchanged{whose}.",
    )
    return plain, same_as(
        f"{name}_(Tensor(a!) self, {arguments}) -> Tensor(a!)",
        transpose_inplace_op,
        tags=INPLACE_VIEW,
        function=False,
        doc=f"Exchanges two dimensions of the tensor, in place{whose}.",
    )


swapaxes, swapaxes_ = swapping("swapaxes", "int axis0, int axis1", ", by numpy's name")
swapdims, swapdims_ = swapping("swapdims", "int dim0, int dim1")


def moved(self: Tensor, source: Sequence[int], destination: Sequence[int]) -> Tensor:
    """Returns a view with the dimensions `source` at the places `destination`; the others keep their order."""
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number "
            f"of dims as destination ({list(destination)} dims)"
        )
    ndim = len(self._shape)
    came = [wrap_dim(dim, ndim) for dim in source]
    goes = [wrap_dim(dim, ndim) for dim in destination]
    for name, dims, given in (("source", came, source), ("destination", goes, destination)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    if not ndim:
        return self.alias()
    rest = iter([dim for dim in range(ndim) if dim not in came])
    order = [came[goes.index(place)] if place in goes else next(rest) for place in range(ndim)]
    return permute_op.functional(self, order)


def moving(name: str) -> Any:
    """`movedim`, under one of its names."""
    lists = "(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)"
    of_lists = composite(f"{name}.intlist{lists}")(moved)
    return composite(
        f"{name}.int{lists.replace('[]', '')}",
        also=(of_lists,),
        doc="Returns a view with dimensions `source` at `destination`.",
    )(lambda self, source, destination: moved(self, [source], [destination]))


movedim, moveaxis = moving("movedim"), moving("moveaxis")

# Properties: T, mT, H, mH


def matrix_only(self: Tensor, name: str) -> None:
    if len(self._shape) < 2:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got {len(self._shape)}-D tensor."
        )


@composite("numpy_T(Tensor(a) self) -> Tensor(a)", face=False)
@inline
def numpy_T_op(self: Tensor) -> Tensor:
    return call(permute_op.functional, [self, list(range(len(self._shape) - 1, -1, -1))])


@composite("mT(Tensor(a) self) -> Tensor(a)", face=False)
@inline
def mT_op(self: Tensor) -> Tensor:
    if len(self._shape) < 2:
        matrix_only(self, "mT")
    return call(transpose_op.functional, [self, -2, -1])


def conjugate_transposed(self: Tensor) -> Tensor:
    result: Any = transpose_op.functional(self, -2, -1)
    return result.conj() if self._dtype.is_complex else result


@composite("mH(Tensor(a) self) -> Tensor(a)", face=False)
def mH_op(self: Tensor) -> Tensor:
    matrix_only(self, "mH")
    return conjugate_transposed(self)


@composite("adjoint(Tensor(a) self) -> Tensor(a)")
def adjoint(self: Tensor) -> Tensor:
    """Returns a view of the matrices that is transposed and conjugated."""
    matrix_only(self, "adjoint()")
    return conjugate_transposed(self)


@composite("matrix_H(Tensor(a) self) -> Tensor(a)", face=False)
def matrix_H_op(self: Tensor) -> Tensor:
    if len(self._shape) not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {len(self._shape)}-D tensor. For batches of "
            "matrices, consider using tensor.mH"
        )
    return conjugate_transposed(self) if self._shape else self


Tensor.T = overridable_property(lambda self: numpy_T_op.functional(self))  # type: ignore[attr-defined]  # attached here
Tensor.mT = overridable_property(lambda self: mT_op.functional(self))  # type: ignore[attr-defined]  # attached here
Tensor.mH = overridable_property(lambda self: mH_op.functional(self))  # type: ignore[attr-defined]  # attached here
Tensor.H = overridable_property(lambda self: matrix_H_op.functional(self))  # type: ignore[attr-defined]  # attached here

# --- dimensions of size 1, and of stride 0 ----------------------------------------------------------------------------


def unsqueezed_again(grad: Tensor, self_shape: Sequence[int], dims: Sequence[int]) -> Tensor:
    """The gradient with those of `dims` back that `squeeze` took away."""
    for dim in sorted(wrap_dim(dim, len(self_shape)) for dim in dims):
        if self_shape and self_shape[dim] == 1:
            grad = unsqueeze_op.functional(grad, dim)
    return grad


unsqueeze_op, unsqueeze_inplace_op = view_operator(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    unsqueezed,
    lambda grad, dim: grad.squeeze(dim),
    inplace="unsqueeze_",
    nodes=(None, "UnsqueezeBackward1"),
    core=True,
    doc="Returns a view of the tensor with one more dimension, of size 1, at `dim`.",
)
squeeze_op, squeeze_inplace_op = view_operator(
    "squeeze(Tensor(a) self) -> Tensor(a)",
    squeezed,
    lambda grad, self_shape: unsqueezed_again(grad, self_shape, range(len(self_shape))),
    inplace="squeeze_",
    nodes=("SqueezeBackward0", "SqueezeBackward3"),
    doc="Returns a view without dimensions of size 1, all or some.",
)
squeeze_dim_op, squeeze_dim_inplace_op = view_operator(
    "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    squeezed_dim,
    lambda grad, self_shape, dim: unsqueezed_again(grad, self_shape, [dim]),
    inplace="squeeze_.dim",
    nodes=("SqueezeBackward1", "SqueezeBackward4"),
    core=True,
)
squeeze_dims_op, squeeze_dims_inplace_op = view_operator(
    "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    squeezed_dims,
    lambda grad, self_shape, dim: unsqueezed_again(grad, self_shape, dim),
    inplace="squeeze_.dims",
    nodes=("SqueezeBackward2", "SqueezeBackward5"),
    core=True,
)
unsqueeze = public(unsqueeze_op)
unsqueeze_ = public(
    unsqueeze_inplace_op,
    function=False,
    doc="Gives the tensor one more dimension, of size 1, at `dim`, in place.",
)
squeeze = public(squeeze_op, squeeze_dim_op, squeeze_dims_op)
squeeze_ = public(
    squeeze_inplace_op,
    squeeze_dim_inplace_op,
    squeeze_dims_inplace_op,
    function=False,
    doc="Takes away dimensions of size 1, in place.",
)
expand_op, _ = view_operator(
    "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
    expanded,
    lambda grad: grad,  # the engine sums a gradient to the input's shape
    core=True,
    doc="Returns a view of this size, where dimensions of size 1 are repeated.",
)
expand = public(expand_op, function=False)
expand_as = composite(
    "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    function=False,
    doc="Returns a view of the tensor that is expanded to the shape of `other`.",
)(lambda self, other: expand_op.functional(self, other._shape))
broadcast_to = composite(
    "broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    doc="Returns a view of the tensor that is broadcast to the given size.",
)(lambda self, size: expand_op.functional(self, size))

# --- some of the elements ---------------------------------------------------------------------------------------------


def slice_gradient(grad: Tensor, self_shape: Any, dim: int, start: Any, end: Any, step: int) -> Tensor:
    first, past = 0 if start is None else start, MAX if end is None else end
    return slice_backward_op.functional(grad, self_shape, dim, first, past, step)


select_op, _ = view_operator(
    "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
    selected,
    through(select_backward_op, "grad", "self_shape", "dim", "index"),
    core=True,
    doc="Returns a view of the elements at `index` of one dimension, which is gone in it.",
)
slice_op, _ = view_operator(
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
    sliced,
    slice_gradient,
    core=True,
)
diagonal_op, _ = view_operator(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    diagonal_of,
    through(diagonal_backward_op, "grad", "self_shape", "offset", "dim1", "dim2"),
    core=True,
    doc="Returns a view of a diagonal of two dimensions, which stands last in it.",
)
unfold_op, _ = view_operator(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    windows,
    through(unfold_backward_op, "grad", "self_shape", "dimension", "size", "step"),
    doc="Returns a view of all windows of a dimension, with one more dimension behind.",
)
select, diagonal, unfold = public(select_op), public(diagonal_op), public(unfold_op, function=False)


def narrowed(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Returns a view of `length` elements of one dimension, from `start` on."""
    if not self._shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = self._shape[wrap_dim(dim, len(self._shape))]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [-{size}, {size}], but got {start})")
    first = start + size if start < 0 else start
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return slice_op.functional(self, dim, first, first + length, 1)


narrow_op = composite("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", face=False)(narrowed)


@composite(
    "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
    also=(narrow_op,),
    doc=narrowed.__doc__,
)
def narrow(self: Tensor, dim: int, start: Tensor, length: int) -> Tensor:
    if start._shape or start._dtype.category != 1:
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    return narrowed(self, dim, int(start), length)


@kernel(
    "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
    derivative=as_strided_gradient,
    core=True,
)
@leaf
def as_strided(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Tensor:
    """Returns a view of the storage with the given size, strides and offset.

    Nothing is remembered: what is allowed depends on how large the storage is now.
    """
    return strided_window(self, size, stride, storage_offset).of(self)


as_strided_op = as_strided.op
as_strided_inplace_op = inplace_view_operator(
    "as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)",
    strided_window,
    as_strided_gradient,
    "AsStridedBackward1",
    batching="view",
)
as_strided_ = public(
    as_strided_inplace_op, doc="Gives the tensor the given size, strides and offset in its storage, in place."
)

# What PyTorch writes for `reshape` where no copy is needed: its strides are those that the new shape has.
reshape_alias_op, _ = view_operator(
    "_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)",
    lambda self, size, stride: strided_window(self, size, stride, None),
    reshaped_back,
)

# --- into parts -------------------------------------------------------------------------------------------------------

_PARTS = "(Tensor(a -> *) self, {}, int dim=0) -> Tensor(a)[]"


def split_evenly(self: Tensor, split_size: int, dim: int) -> list[Geometry]:
    """Parts of `split_size`; the last one may be smaller."""
    if not self._shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, len(self._shape))
    return consecutive(self, split_lengths(self._shape[dim], split_size), dim)


def split_by_sizes(self: Tensor, split_sizes: Sequence[int], dim: int) -> list[Geometry]:
    if not self._shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    axis = wrap_dim(dim, len(self._shape))
    if not all(holds(length >= 0) for length in split_sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(split_sizes)}"
        )
    if not holds(sum(split_sizes) == self._shape[axis]):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {self._shape[axis]} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    return consecutive(self, split_sizes, axis)


def consecutive(x: Tensor, lengths: Sequence[int], dim: int) -> list[Geometry]:
    """Windows of these lengths along `dim`, one behind the other."""
    shape, step, made, start = tuple(x._shape), x._stride[dim], [], 0
    for length in lengths:
        made.append(Geometry((*shape[:dim], length, *shape[dim + 1 :]), x._stride, x._offset + start * step))
        start += length
    return made


def split_evenly_back(grads: Any, self_shape: Any, split_size: int, dim: int) -> Tensor:
    return split_gradient(grads, self_shape, split_lengths(self_shape[dim], split_size), dim)


split_op = Operator(f"split.Tensor{_PARTS.format('SymInt split_size')}")
split_with_sizes_op = Operator(f"split_with_sizes{_PARTS.format('SymInt[] split_sizes')}", core=True)
give_parts(split_op, split_evenly)
give_parts(split_with_sizes_op, split_by_sizes)
split_op.derivative(self=split_evenly_back)
split_with_sizes_op.derivative(self=split_gradient)
split_sizes_op = composite(f"split.sizes{_PARTS.format('SymInt[] split_size')}")(
    lambda self, split_size, dim: split_with_sizes_op.functional(self, split_size, dim)
)


def chunked(self: Tensor, chunks: int, dim: int, evenly: Operator, by_sizes: Operator) -> Any:
    """`chunks` parts of equal size but the last, by these operators; fewer where the dimension is too small."""
    if not self._shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = self._shape[wrap_dim(dim, len(self._shape))]
    each = -(-size // chunks)
    if each == 0 and size == 0:
        return by_sizes.functional(self, [0] * chunks, dim)
    return evenly.functional(self, each, dim)


@composite(f"tensor_split.indices{_PARTS.format('SymInt[] indices')}")
def tensor_split_indices_op(self: Tensor, indices: Sequence[int], dim: int) -> list[Tensor]:
    axis = _axis_to_split(self, dim)
    starts, ends = [0, *indices], [*indices, self._shape[axis]]
    return [slice_op.functional(self, axis, a, b, 1) for a, b in zip(starts, ends, strict=True)]


@composite(f"tensor_split.tensor_indices_or_sections{_PARTS.format('Tensor tensor_indices_or_sections')}")
def tensor_split_tensor_op(self: Tensor, tensor_indices_or_sections: Any, dim: int) -> list[Tensor]:
    given = tensor_indices_or_sections
    if given.dim() > 1 or given.dtype.name != "int64" or given.device.type != "cpu":
        name = "tensor_split expected tensor_indices_or_sections to"
        if given.device.type != "cpu":
            raise RuntimeError(f"{name} be on cpu, but it's on {given.device}")
        if given.dtype.name != "int64":
            raise RuntimeError(f"{name} have dtype of long, but got {given.dtype.tensor_name}")
        raise RuntimeError(
            f"{name} be a zero-dimensional or one-dimensional tensor, but got a tensor with {given.dim()} dims"
        )
    if given.dim():
        return tensor_split_indices_op.functional(self, [one.item() for one in given.unbind()], dim)
    return tensor_split.op.functional(self, given.item(), dim)


@composite(
    f"tensor_split.sections{_PARTS.format('SymInt sections')}", also=(tensor_split_tensor_op, tensor_split_indices_op)
)
def tensor_split(self: Tensor, sections: int, dim: int) -> list[Tensor]:
    """Returns views of parts of a dimension: so many that differ by at most one element, or between the given
    indices."""
    axis = _axis_to_split(self, dim)
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    kernels.memory(sections, "int64")  # RuntimeError for more views than memory can hold
    least, longer = divmod(self._shape[axis], sections)
    ends = [(i + 1) * least + min(i + 1, longer) for i in range(sections)]
    starts = [0, *ends[:-1]]
    return [slice_op.functional(self, axis, a, b, 1) for a, b in zip(starts, ends, strict=True)]


def _axis_to_split(self: Tensor, dim: int) -> int:
    if not self._shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    return wrap_dim(dim, len(self._shape))


def unbound(self: Tensor, dim: int) -> list[Geometry]:
    """The slices along a dimension, without it."""
    dim = wrap_dim(dim, len(self._shape), wrap_scalar=False)
    return [selected(self, dim, index) for index in range(self._shape[dim])]


unbind_op = Operator(
    "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    doc="Returns views of all elements of a dimension, which is gone in them.",
)
give_parts(unbind_op, unbound)
unbind_op.derivative(self=unbind_gradient)
split = public(
    split_op,
    split_sizes_op,
    function_like=lambda tensor, split_size_or_sections, dim=0: None,
    method_like=lambda self, split_size, dim=0: None,
    doc="Returns views of the parts of a dimension, of the given size each, or of the sizes in a list.",
)
split_with_sizes = public(
    split_with_sizes_op, doc="Returns views of the parts of a dimension that have the given sizes."
)
chunk = composite(
    f"chunk{_PARTS.format('int chunks')}",
    doc="Returns views of `chunks` parts of a dimension, of equal size but the last; fewer where it is too small.",
)(lambda self, chunks, dim: chunked(self, chunks, dim, split_op, split_with_sizes_op))
unbind = public(unbind_op)
