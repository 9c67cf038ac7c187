"""Functions of matrices that are no factorisation: powers, the exponential, chains of products, equations of tensors,
Vandermonde's matrix; products of vectors.

Nearly all are written in other operators. Read next: linalg.py, solving.py.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, as_numpy, contiguous_format, dtypes, promote_types, wrap_dim
from redispatch.kernels import broadcast_shapes

from ..declare.operator import CPU_FP32, CUDA_LOWER, CUDA_PROMOTE, LOWER, composite, same_as, structured
from ..declare.overridable import overridable_function
from ..declare.structured import Meta, c_name, castable, check_out_dtype, common_device, not_implemented, same_dtype
from .linalg import matmul_op, mm, vdot
from .matrices import check_errors_op, check_floating, check_same_dtype, check_square, is_low_precision
from .solving import linalg_inv, linalg_inv_ex, linalg_solve

OF_CHAIN = same_dtype("multi_dot(): expected out tensor to have dtype {c_wanted} but got {c_found}")

# --- matrix_power ----------------------------------------------------------------------------------------------------


@composite("matrix_power(Tensor self, int n) -> Tensor", out="out", refuses="bool")
def matrix_power(self, n):
    """Returns the product of n equal matrices; of their inverses for negative n."""
    check_square(self, "linalg.matrix_power")
    if not n:
        made = self.clone(memory_format=contiguous_format)
        return made.copy_(ops.aten.eye.default(self.shape[-1], dtype=self.dtype, device=self.device))
    if n == 1:
        return self.clone()
    base = linalg_inv.op.functional(self) if n < 0 else self
    result, n = None, abs(n)
    while n:
        if n & 1:
            result = base if result is None else result.matmul(base)
        n >>= 1
        if n:
            base = base.matmul(base)
    return result


linalg_matrix_power = same_as(
    "linalg_matrix_power(Tensor self, int n) -> Tensor",
    matrix_power,
    out="out",
    out_dtype=castable("matrix_power"),
    refuses="bool",
    doc="Returns the product of n equal matrices; of their inverses for negative n.",
)

# --- matrix_exp ------------------------------------------------------------------------------------------------------


@structured("linalg_matrix_exp(Tensor self) -> Tensor", refuses="whole")
def linalg_matrix_exp(self):
    """Returns the exponential function of square matrices."""
    check_square(self, "linalg.matrix_exp")
    check_floating(self, "linalg.matrix_exp")
    return Meta(self._shape, self._dtype, self._device)


@linalg_matrix_exp.op.body
def matrix_exp_body(out, self):
    """1 + A + A² / 2 + ..., in double precision."""
    from scipy.linalg import expm  # here, because it takes long to import, and few programs need it

    x, result = as_numpy(self), as_numpy(out)
    wide = x.astype(np.complex128 if self._dtype.is_complex else np.float64)
    for at in np.ndindex(x.shape[:-2]):
        if x[at].size:
            result[at] = expm(wide[at]) if np.isfinite(wide[at]).all() else np.nan


@linalg_matrix_exp.op.gradient("self", for_complex=True)
def matrix_exp_backward(grad, self):
    """exp of [[A, G], [0, A]] has, beside exp(A), the derivative of exp at A in the direction G."""
    adjoint = self.mH
    n = adjoint.shape[-1]
    upper = ops.aten.cat.default([adjoint, grad], -1)
    lower = ops.aten.cat.default([adjoint.new_zeros(adjoint.shape), adjoint], -1)
    return linalg_matrix_exp.op.functional(ops.aten.cat.default([upper, lower], -2))[..., :n, n:]


matrix_exp = same_as(
    "matrix_exp(Tensor self) -> Tensor",
    linalg_matrix_exp,
    refuses="whole",
    doc="Returns the exponential function of square matrices, as `linalg.matrix_exp` does.",
)

# --- chains of products ----------------------------------------------------------------------------------------------


def as_matrices(tensors: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Vectors at the ends as matrices of one row or column; and the shape of the product."""
    matrices, shape = list(tensors), []
    for at, word, dim in ((0, "first", 0), (-1, "last", -1)):
        end = tensors[at]
        if end.dim() not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {word} tensor must be 1D or 2D but got {end.dim()}D")
        if end.dim() == 1:
            matrices[at] = end.unsqueeze(dim)
        else:
            shape.append(end.shape[at])
    for i, x in enumerate(matrices[1:-1], 1):
        if x.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {x.dim()}D")
    return matrices, shape


def check_chain(tensors: Sequence[Any], matrices: Sequence[Any]) -> None:
    for i, x in enumerate(tensors):
        if x.dtype is not tensors[0].dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {c_name(tensors[0].dtype)} and "
                f"tensor {i} {c_name(x.dtype)}"
            )
    for i in range(len(matrices) - 1):
        if matrices[i].shape[1] != matrices[i + 1].shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(tensors[i].shape)} and "
                f"{list(tensors[i + 1].shape)} cannot be multiplied"
            )


def cheapest_splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """The divisions of the product of matrices i to j by which all takes the fewest multiplications; matrix i is
    sizes[i] by sizes[i + 1]. Cormen et al., Introduction to Algorithms, 15.2."""
    count = len(sizes) - 1
    costs, splits = {(i, i): 0 for i in range(count)}, {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs[i, j], splits[i, j] = min(
                (costs[i, k] + costs[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return splits


@composite(
    "linalg_multi_dot(Tensor[] tensors) -> Tensor", out="out", out_dtype=OF_CHAIN, autocast=CUDA_LOWER, refuses="bool"
)
def linalg_multi_dot(tensors):
    """Returns the product of all matrices, in the order that takes the fewest multiplications."""
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    matrices, shape = as_matrices(tensors)
    check_chain(tensors, matrices)
    splits = cheapest_splits([*(x.shape[0] for x in matrices), matrices[-1].shape[1]])

    def product(i: int, j: int) -> Any:
        if i == j:
            return matrices[i]
        k = splits[i, j]
        return mm.op.functional(product(i, k), product(k + 1, j))

    return product(0, len(matrices) - 1).view(shape)


@composite(
    "chain_matmul(Tensor[] matrices) -> Tensor",
    out="out",
    out_dtype=OF_CHAIN,
    autocast=CUDA_LOWER,
    method=False,
    refuses="bool",
)
def chain_of_matrices(matrices):
    """Returns the product of all matrices, in the order that takes the fewest multiplications."""
    for x in matrices:
        if x.dim() != 2:
            raise RuntimeError(f"Tensor dimension is {x.dim()}, expected 2 instead.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return matrices[0].clone() if len(matrices) == 1 else linalg_multi_dot.op.functional(matrices)


@overridable_function
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Returns the older name of `linalg.multi_dot`, which takes the matrices one by one."""
    warnings.warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters.",
        UserWarning,
        stacklevel=3,
    )
    return chain_of_matrices(list(matrices), out=out)


@composite("linalg_matmul(Tensor self, Tensor other) -> Tensor", out="out", refuses="bool")
def linalg_matmul(self, other):
    """Returns the product of vectors, matrices or batches of matrices, as `matmul` does."""
    return matmul_op.functional(self, other)


# --- equations of tensors --------------------------------------------------------------------------------------------


@composite(
    "linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
    out="out",
    out_dtype=castable("tensorinv"),
    autocast=CPU_FP32,
    refuses="whole halves",
)
def linalg_tensorinv(self, ind):
    """Returns the inverse of the matrix whose rows are the first `ind` dimensions, and whose columns the others."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    first, rest = self.shape[:ind], self.shape[ind:]
    rows, columns = math.prod(first), math.prod(rest)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns} != {rows}"
        )
    inverse, info = linalg_inv_ex.op.functional(self.reshape([columns, rows]))
    check_errors_op.functional(info, "inv", is_matrix=True)
    return inverse.reshape([*rest, *first])


@composite(
    "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
    out="out",
    out_dtype=castable("tensorsolve"),
    autocast=CPU_FP32,
    refuses="whole halves",
)
def linalg_tensorsolve(self, other, dims):
    """Returns X whose product with `self`, over all dimensions that `other` does not have, is `other`."""
    if dims is not None:
        ndim = self.dim()
        self = self.movedim(list(dims), list(range(ndim - len(dims), ndim)))
    unknown = self.shape[other.dim() :]
    columns = math.prod(unknown)
    if columns != other.numel():
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {columns} != {other.numel()}"
        )
    matrix = self.reshape([columns, columns])
    return linalg_solve.op.functional(matrix, other.flatten()).reshape(unknown)


# --- vander ----------------------------------------------------------------------------------------------------------


@composite("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", refuses="bool halves")
def linalg_vander(x, N):
    """Returns the powers 0 to N - 1 of each number, in a row."""
    kind = x.dtype
    if kind is dtypes.bool or is_low_precision(kind):
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {kind.tensor_name}"
        )
    row = x if x.dim() else x.unsqueeze(-1)
    n = row.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = row.unsqueeze(-1).expand([*row.shape, n - 1]).cumprod(-1)
    return ops.aten.cat.default([powers.new_ones([*row.shape, 1]), powers], -1)


@composite("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor")
def vander(x, N, increasing):
    """Returns the powers of each number, the highest first unless `increasing`."""
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    kind = promote_types(x.dtype, dtypes.int64)
    result = ops.aten.empty.memory_format([x.shape[0], n], dtype=kind, device=x.device)
    if n > 0:
        result.select(1, 0).fill_(1)
    if n > 1:
        result[:, 1:].copy_(x.unsqueeze(1))
        result[:, 1:].copy_(result[:, 1:].cumprod(1))
    return result if increasing else result.flip(1)


# --- products of vectors ---------------------------------------------------------------------------------------------


@composite(
    "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
    out="out",
    out_dtype=same_dtype("linalg.vecdot: Expected out of dtype{wanted} but found {found}"),
    autocast=LOWER,
    refuses="whole",
)
def linalg_vecdot(x, y, dim):
    """Returns the inner products along one dimension: the first vector is conjugated."""
    check_floating(x, "linalg.vecdot")
    check_same_dtype("linalg.vecdot", x=x, y=y)
    if x.dim() == 1 and y.dim() == 1:
        return vdot.op.functional(x, y)
    return x.conj().mul(y).sum([dim])


@structured(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    out="out",
    out_dtype=check_out_dtype,
    derivative={
        "self": lambda grad, other, dim: linalg_cross.op.functional(other, grad, dim=dim),
        "other": lambda grad, self, dim: linalg_cross.op.functional(grad, self, dim=dim),
    },
    refuses="bool",
)
def linalg_cross(self, other, dim):
    """Returns the cross products of vectors of three elements along `dim`."""
    if len(self._shape) != len(other._shape):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axis = wrap_dim(dim, len(self._shape))
    sizes = [x._shape[axis] if x._shape else 1 for x in (self, other)]
    if sizes != [3, 3]:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}")
    if self._dtype is not other._dtype:
        raise RuntimeError(f"expected scalar type {self._dtype.tensor_name} but found {other._dtype.tensor_name}")
    if self._dtype is dtypes.bool:
        raise not_implemented("cross", self._dtype)
    from_shape = broadcast_shapes(self._shape, other._shape)
    return Meta(from_shape, self._dtype, common_device(self, other))


@linalg_cross.op.body
def cross_body(out, self, other, dim):
    """(a1 b2 - a2 b1, a2 b0 - a0 b2, a0 b1 - a1 b0)."""
    axis = wrap_dim(dim, len(self._shape))
    a, b = (np.moveaxis(as_numpy(x), axis, 0) for x in (self, other))
    result = np.moveaxis(as_numpy(out), axis, 0)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        result[i] = a[j] * b[k] - a[k] * b[j]


def default_dim(self: Tensor, dim: int | None) -> int:
    """The first dimension of size 3, where none is given."""
    if dim is not None:
        return dim
    warnings.warn(
        "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or "
        "simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in a "
        "future release.",
        UserWarning,
        stacklevel=2,
    )
    if 3 not in self._shape:
        raise RuntimeError("no dimension of size 3 in input")
    return list(self._shape).index(3)


@composite(
    "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
    out="out",
    out_by=None,
    autocast=CUDA_PROMOTE,
    refuses="bool",
)
def cross(self, other, dim):
    """Returns the cross products of vectors of three elements, along the first dimension of size 3 by default."""
    return linalg_cross.op.functional(self, other, dim=default_dim(self, dim))


@cross.op.kernel_out("CompositeImplicitAutograd")
def cross_out(self, other, dim, out):
    return linalg_cross.op.out(self, other, dim=default_dim(self, dim), out=out)


@composite("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)")
def linalg_diagonal(A, offset, dim1, dim2):
    """Returns a view of a diagonal of the last two dimensions, which stands last in it."""
    return A.diagonal(offset, dim1, dim2)


# --- removed ----------------------------------------------------------------------------------------------------------

REMOVED = {
    "eig": "`torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors "
    "mimicking complex tensors.",
    "lstsq": "`torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`, which has reversed arguments.",
    "matrix_rank": "Please use the `torch.linalg.matrix_rank` function instead.",
    "solve": "`torch.solve` is deprecated in favor of `torch.linalg.solve`, which has its arguments reversed.",
    "symeig": "Use `torch.linalg.eigh`, which reads the lower triangular portion by default.",
}


def removed(name: str) -> Any:
    """Returns a function that PyTorch has no more, and whose error says what to call instead."""

    def function(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. {REMOVED[name]}")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises RuntimeError: PyTorch has it no more."
    return function


eig, lstsq, matrix_rank, solve, symeig = map(removed, REMOVED)
for _name in REMOVED.keys() - {"matrix_rank"}:
    setattr(Tensor, _name, removed(_name))
