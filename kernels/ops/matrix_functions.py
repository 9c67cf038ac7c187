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
from redispatch.kernels.declare.out_forms import resize_and_copy_into_out

from ..declare.declare import Operator
from ..declare.overridable import overridable_function
from ..declare.public import public
from ..declare.structured import Meta, Structured, c_name, check_out_dtype, common_device, not_implemented
from .linalg import matmul_op, mm_op, vdot_op
from .matrices import check_errors_op, check_floating, check_same_dtype, check_square, is_low_precision
from .solving import inv_ex_op, inv_op, solve_op

# --- matrix_power ----------------------------------------------------------------------------------------------------

matrix_power_op = Operator("matrix_power(Tensor self, int n) -> Tensor", out="out", refuses="bool")
linalg_matrix_power_op = Operator("linalg_matrix_power(Tensor self, int n) -> Tensor", out="out", refuses="bool")


@matrix_power_op.implicit
@linalg_matrix_power_op.implicit
def matrix_power_composite(self: Any, n: int) -> Any:
    """The product of n equal matrices, by squaring; of their inverses for negative n."""
    check_square(self, "linalg.matrix_power")
    if not n:
        made = self.clone(memory_format=contiguous_format)
        return made.copy_(ops.aten.eye.default(self.shape[-1], dtype=self.dtype, device=self.device))
    if n == 1:
        return self.clone()
    base = inv_op.functional(self) if n < 0 else self
    result, n = None, abs(n)
    while n:
        if n & 1:
            result = base if result is None else result.matmul(base)
        n >>= 1
        if n:
            base = base.matmul(base)
    return result


resize_and_copy_into_out(matrix_power_op)
resize_and_copy_into_out(linalg_matrix_power_op)
matrix_power = public(matrix_power_op, doc="Returns the product of n equal matrices; of their inverses for negative n.")
linalg_matrix_power = public(
    linalg_matrix_power_op,
    method=False,
    doc="Returns the product of n equal matrices; of their inverses for negative n.",
)

# --- matrix_exp ------------------------------------------------------------------------------------------------------

linalg_matrix_exp_op = Structured("linalg_matrix_exp(Tensor self) -> Tensor", refuses="whole")
matrix_exp_op = Operator("matrix_exp(Tensor self) -> Tensor", refuses="whole")


@linalg_matrix_exp_op.meta
def matrix_exp_meta(self: Tensor) -> Meta:
    check_square(self, "linalg.matrix_exp")
    check_floating(self, "linalg.matrix_exp")
    return Meta(self._shape, self._dtype, self._device)


@linalg_matrix_exp_op.body
def matrix_exp_body(out: Tensor, self: Tensor) -> None:
    """1 + A + A² / 2 + ..., in double precision."""
    from scipy.linalg import expm  # here, because it takes long to import, and few programs need it

    x, result = as_numpy(self), as_numpy(out)
    wide = x.astype(np.complex128 if self._dtype.is_complex else np.float64)
    for at in np.ndindex(x.shape[:-2]):
        if x[at].size:
            result[at] = expm(wide[at]) if np.isfinite(wide[at]).all() else np.nan


def matrix_exp_backward(grad: Any, self: Any) -> Any:
    """exp of [[A, G], [0, A]] has, beside exp(A), the derivative of exp at A in the direction G."""
    adjoint = self.mH
    n = adjoint.shape[-1]
    upper = ops.aten.cat.default([adjoint, grad], -1)
    lower = ops.aten.cat.default([adjoint.new_zeros(adjoint.shape), adjoint], -1)
    return linalg_matrix_exp_op.functional(ops.aten.cat.default([upper, lower], -2))[..., :n, n:]


linalg_matrix_exp_op.derivative(self=matrix_exp_backward, for_complex=True)


@matrix_exp_op.implicit
def matrix_exp_composite(self: Tensor) -> Tensor:
    """Returns the exponential function of square matrices, as `linalg.matrix_exp` does."""
    return linalg_matrix_exp_op.functional(self)


linalg_matrix_exp = public(
    linalg_matrix_exp_op, method=False, doc="Returns the exponential function of square matrices."
)
matrix_exp = public(matrix_exp_op)

# --- chains of products ----------------------------------------------------------------------------------------------

multi_dot_op = Operator("linalg_multi_dot(Tensor[] tensors) -> Tensor", out="out", refuses="bool")
chain_matmul_op = Operator("chain_matmul(Tensor[] matrices) -> Tensor", out="out", refuses="bool")


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
    """Where to divide the product of matrices i to j so that all takes the fewest multiplications; matrix i is
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


@multi_dot_op.implicit
def multi_dot_composite(tensors: Sequence[Any]) -> Any:
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
        return mm_op.functional(product(i, k), product(k + 1, j))

    return product(0, len(matrices) - 1).view(shape)


@chain_matmul_op.implicit
def chain_matmul_composite(matrices: Sequence[Any]) -> Any:
    """Returns the product of all matrices, in the order that takes the fewest multiplications."""
    for x in matrices:
        if x.dim() != 2:
            raise RuntimeError(f"Tensor dimension is {x.dim()}, expected 2 instead.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return matrices[0].clone() if len(matrices) == 1 else multi_dot_op.functional(matrices)


resize_and_copy_into_out(multi_dot_op)
resize_and_copy_into_out(chain_matmul_op)
multi_dot_op.autocast(cuda="lower_precision_fp")
linalg_multi_dot = public(multi_dot_op, method=False)
chain_matmul_op.autocast(cuda="lower_precision_fp")
chain_of_matrices = public(chain_matmul_op, method=False)


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


linalg_matmul_op = Operator("linalg_matmul(Tensor self, Tensor other) -> Tensor", out="out", refuses="bool")


@linalg_matmul_op.implicit
def linalg_matmul_composite(self: Tensor, other: Tensor) -> Tensor:
    """Returns the product of vectors, matrices or batches of matrices, as `matmul` does."""
    return matmul_op.functional(self, other)


resize_and_copy_into_out(linalg_matmul_op)
linalg_matmul = public(linalg_matmul_op, method=False)

# --- equations of tensors --------------------------------------------------------------------------------------------

tensorinv_op = Operator("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", out="out", refuses="whole halves")
tensorsolve_op = Operator(
    "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", out="out", refuses="whole halves"
)


@tensorinv_op.implicit
def tensorinv_composite(self: Any, ind: int) -> Any:
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
    inverse, info = inv_ex_op.functional(self.reshape([columns, rows]))
    check_errors_op.functional(info, "inv", is_matrix=True)
    return inverse.reshape([*rest, *first])


@tensorsolve_op.implicit
def tensorsolve_composite(self: Any, other: Any, dims: Sequence[int] | None) -> Any:
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
    return solve_op.functional(matrix, other.flatten()).reshape(unknown)


resize_and_copy_into_out(tensorinv_op)
resize_and_copy_into_out(tensorsolve_op)
tensorinv_op.autocast(cpu="fp32")
linalg_tensorinv = public(tensorinv_op, method=False)
tensorsolve_op.autocast(cpu="fp32")
linalg_tensorsolve = public(tensorsolve_op, method=False)

# --- vander ----------------------------------------------------------------------------------------------------------

linalg_vander_op = Operator("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", refuses="bool halves")
vander_op = Operator("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor")


@linalg_vander_op.implicit
def linalg_vander_composite(x: Any, N: int | None) -> Any:
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


@vander_op.implicit
def vander_composite(x: Any, N: int | None, increasing: bool) -> Any:
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


linalg_vander = public(linalg_vander_op, method=False)
vander = public(vander_op)

# --- products of vectors ---------------------------------------------------------------------------------------------

vecdot_op = Operator("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", out="out", refuses="whole")


@vecdot_op.implicit
def vecdot_composite(x: Any, y: Any, dim: int) -> Any:
    """Returns the inner products along one dimension: the first vector is conjugated."""
    check_floating(x, "linalg.vecdot")
    check_same_dtype("linalg.vecdot", x=x, y=y)
    if x.dim() == 1 and y.dim() == 1:
        return vdot_op.functional(x, y)
    return x.conj().mul(y).sum([dim])


resize_and_copy_into_out(vecdot_op)
vecdot_op.autocast(cpu="lower_precision_fp", cuda="lower_precision_fp")
linalg_vecdot = public(vecdot_op, method=False)

linalg_cross_op = Structured(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", out="out", refuses="bool"
)


@linalg_cross_op.meta
def cross_meta(self: Tensor, other: Tensor, dim: int) -> Meta:
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
    from_shape = np.broadcast_shapes(tuple(self._shape), tuple(other._shape))
    return Meta(from_shape, self._dtype, common_device(self, other))


@linalg_cross_op.body
def cross_body(out: Tensor, self: Tensor, other: Tensor, dim: int) -> None:
    """(a1 b2 - a2 b1, a2 b0 - a0 b2, a0 b1 - a1 b0)."""
    check_out_dtype(out, self._dtype)
    axis = wrap_dim(dim, len(self._shape))
    a, b = (np.moveaxis(as_numpy(x), axis, 0) for x in (self, other))
    result = np.moveaxis(as_numpy(out), axis, 0)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        result[i] = a[j] * b[k] - a[k] * b[j]


linalg_cross_op.derivative(
    self=lambda grad, other, dim: linalg_cross_op.functional(other, grad, dim=dim),
    other=lambda grad, self, dim: linalg_cross_op.functional(grad, self, dim=dim),
)
cross_op = Operator("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", out="out", refuses="bool")


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


@cross_op.implicit
def cross_composite(self: Tensor, other: Tensor, dim: int | None) -> Tensor:
    """Returns the cross products of vectors of three elements, along the first dimension of size 3 by default."""
    return linalg_cross_op.functional(self, other, dim=default_dim(self, dim))


@cross_op.kernel_out("CompositeImplicitAutograd")
def cross_out(self: Tensor, other: Tensor, dim: int | None, out: Tensor) -> Tensor:
    return linalg_cross_op.out(self, other, dim=default_dim(self, dim), out=out)  # type: ignore[misc]  # this operator has the form


linalg_cross = public(
    linalg_cross_op, method=False, doc="Returns the cross products of vectors of three elements along `dim`."
)
cross_op.autocast(cuda="promote")
cross = public(cross_op)

linalg_diagonal_op = Operator("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)")


@linalg_diagonal_op.implicit
def linalg_diagonal_composite(A: Any, offset: int, dim1: int, dim2: int) -> Any:
    """Returns a view of a diagonal of the last two dimensions, which stands last in it."""
    return A.diagonal(offset, dim1, dim2)


linalg_diagonal = public(linalg_diagonal_op, method=False)
