"""Diagonals as copies, and differences of neighbours: diag, diag_embed, diagflat, diff. Read next: views.py."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, wrap_dim
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator
from ..declare.public import public
from .copying import move
from .geometry import diagonal_of
from .scattering import zeros
from .view_copies import diagonal_copy_op

diag_embed_op = Operator("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", batching="dims")
diag_op = Operator("diag(Tensor self, int diagonal=0) -> Tensor", out="out")
diagflat_op = Operator("diagflat(Tensor self, int offset=0) -> Tensor")
diff_op = Operator(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor", out="out"
)


@diag_embed_op.explicit
def diag_embed_kernel(self: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
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


diag_embed_op.derivative(self=lambda grad, offset, dim1, dim2: grad.diagonal(offset, dim1, dim2))
diag_embed_op.forward("linear")


@diag_op.implicit
def diag_composite(self: Any, diagonal: int) -> Any:
    """Returns the matrix that has a vector on its diagonal, or the diagonal of a matrix."""
    if len(self._shape) not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {len(self._shape)}D")
    if len(self._shape) == 1:
        return diag_embed_op.functional(self, diagonal)
    return diagonal_copy_op.functional(self, diagonal)


@diagflat_op.implicit
def diagflat_composite(self: Any, offset: int) -> Any:
    return diag_embed_op.functional(self.contiguous().view([-1]), offset)


@diff_op.implicit
def diff_composite(self: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    """Returns each element minus the one before it along `dim`, `n` times over."""
    if not self._shape:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    axis = wrap_dim(dim, len(self._shape))
    parts = [x for x in (prepend, self, append) if x is not None]
    result = self if len(parts) == 1 else ops.aten.cat.default(parts, axis)
    for _ in range(min(n, result.shape[axis])):
        size = result.shape[axis]
        if self.dtype.name == "bool":
            result = result.narrow(axis, 1, size - 1).logical_xor(result.narrow(axis, 0, size - 1))
        else:
            result = result.narrow(axis, 1, size - 1) - result.narrow(axis, 0, size - 1)
    return result if n else result.clone()


diag_embed = public(diag_embed_op)
copy_into_out(diag_op, diff_op, casts=True)
diag = public(diag_op)
diagflat = public(diagflat_op, doc="Returns the matrix that has all elements on its diagonal.")
diff = public(diff_op)
