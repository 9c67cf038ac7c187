"""Norms of matrices and the many names of norms: linalg.matrix_norm, linalg.norm, norm, dist, renorm, _weight_norm.

All end in `linalg_vector_norm` (moments.py), or in singular values (spectra.py).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.layers.autocast import WITH_DTYPE
from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, overridable_in_python, wrap_dim
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator, taking
from ..declare.operator import CUDA_FP32, CUDA_SET_DTYPE, composite, in_parts, kernel, structured
from ..declare.overridable import overridable_function
from ..declare.public import public
from ..declare.structured import Meta, check_out_dtype, not_implemented, same_dtype
from .matrices import check_floating, check_matrix, conj
from .moments import linalg_vector_norm, vector_norm_backward
from .reductions import reduced_shape
from .spectra import linalg_svdvals

OF_NORM = same_dtype("linalg.norm expected out tensor dtype {wanted} but got: {found}")

# --- of matrices -----------------------------------------------------------------------------------------------------


def matrix_dims(self: Tensor, dim: Sequence[int], dtype: Any, low_precision: bool) -> list[int]:
    """The two dimensions, wrapped; RuntimeError for what is no matrix."""
    name = "linalg.matrix_norm"
    check_matrix(self, name)
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    dims = [wrap_dim(d, len(self._shape)) for d in dim]
    if dims[0] == dims[1]:
        raise RuntimeError(f"{name}: dims must be different. Got ({dims[0]}, {dims[1]})")
    check_floating(self, name, low_precision)
    if dtype is not None:
        check_wider(self, dtype, name)
    return dims


def check_wider(self: Tensor, dtype: Any, name: str) -> None:
    """Raises RuntimeError where a norm cannot be computed in that dtype."""
    own = self._dtype
    if dtype.category < dtypes.FLOATING:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {dtype.tensor_name}")
    if dtype.is_complex != own.is_complex:
        kind = "complex" if own.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {dtype.tensor_name}")
    if dtype.itemsize < own.itemsize:
        raise RuntimeError(
            f"{name}: the dtype of the input ({own.tensor_name}) should be convertible without narrowing to the "
            f"specified dtype ({dtype.tensor_name})"
        )


def extreme(x: Any, dim: int, largest: bool, keepdim: bool) -> Any:
    """The largest or the least along `dim`. The largest of none is 0, as norms are not negative."""
    if not largest:
        return x.amin(dim, keepdim)
    if x.shape[dim]:
        return x.amax(dim, keepdim)
    shape = reduced_shape(x.shape, (wrap_dim(dim, x.dim()),), keepdim)
    return ops.aten.zeros.default(shape, dtype=x.dtype, device=x.device)


def of_singular_values(self: Any, dims: list[int], keepdim: bool, dtype: Any, function: Any) -> Any:
    """A function of the singular values of the matrices in these dimensions."""
    x = self if dtype is None else self.to(dtype)
    order = [d for d in range(x.dim()) if d not in dims] + dims
    result = function(linalg_svdvals.op.functional(x.permute(order)))
    if not keepdim:
        return result
    return result.unsqueeze(-1).permute([order.index(d) for d in range(x.dim())])


@composite(
    'linalg_matrix_norm.str_ord(Tensor self, str ord="fro", int[] dim=[-2, -1], bool keepdim=False, *, '
    "ScalarType? dtype=None) -> Tensor",
    out="str_ord_out",
    autocast=CUDA_SET_DTYPE,
    refuses="whole",
)
def matrix_norm_str_op(self, ord, dim, keepdim, dtype):
    """The root of all squares for "fro", the sum of the singular values for "nuc"."""
    if ord not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    dims = matrix_dims(self, dim, dtype, low_precision=ord != "nuc")
    if ord == "fro":
        return linalg_vector_norm.op.functional(self, 2, dims, keepdim, dtype=dtype)
    return of_singular_values(self, dims, keepdim, dtype, lambda x: x.sum([-1], keepdim))


@composite(
    "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    out="out",
    out_dtype=OF_NORM,
    refuses="whole",
    autocast=CUDA_SET_DTYPE,
    also=(matrix_norm_str_op,),
)
def linalg_matrix_norm(self, ord, dim, keepdim, dtype):
    """Returns the norm of matrices: the largest singular value for 2, sum of a column for 1, of a row for inf."""
    if isinstance(ord, complex):
        raise RuntimeError("linalg.matrix_norm: Expected a non-complex scalar as the order of norm.")
    size = abs(float(ord))
    if size not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord:g} not supported.")
    row, column = matrix_dims(self, dim, dtype, low_precision=size != 2)
    if size == 2:
        return of_singular_values(self, [row, column], keepdim, dtype, lambda x: extreme(x, -1, ord > 0, keepdim))
    summed, compared = (row, column) if size == 1 else (column, row)
    if not keepdim and summed < compared:
        compared -= 1
    return extreme(
        linalg_vector_norm.op.functional(self, 1, [summed], keepdim, dtype=dtype), compared, ord > 0, keepdim
    )


powsum_op = Operator(
    "linalg__powsum(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)"
    " -> Tensor",
    late_out=False,
    refuses={"whole": "powsum_cpu"},
    doc="Returns the sum of the absolute values to the power `ord`: what `vector_norm` takes a root of.",
)


@in_parts(powsum_op, "self")
def powsum_kernel(self, ord, dim, keepdim, dtype):
    x = self if dtype is None else self.to(dtype)
    if x._dtype.category < dtypes.FLOATING:
        raise not_implemented("powsum_cpu", dtypes.int64)  # in which whole numbers are added
    return x.abs().pow(ord).sum(dim, keepdim)


_powsum = public(powsum_op, method=False)

# --- linalg.norm -----------------------------------------------------------------------------------------------------


def check_dims(self: Tensor, ord: Any, dim: Any) -> None:
    if dim is not None:
        if len(dim) not in (1, 2):
            raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    elif ord is not None and len(self._shape) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {len(self._shape)}D."
        )


@composite(
    "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    out="ord_str_out",
    out_dtype=OF_NORM,
    refuses="whole",
)
def linalg_norm_str_op(self, ord, dim, keepdim, dtype):
    check_dims(self, ord, dim)
    return matrix_norm_str_op.functional(self, ord, [-2, -1] if dim is None else dim, keepdim, dtype=dtype)


@composite(
    "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    out="out",
    out_dtype=OF_NORM,
    refuses="whole",
    also=(linalg_norm_str_op,),
)
def linalg_norm(self, ord, dim, keepdim, dtype):
    """Returns the norm of a vector, or of a matrix where two dimensions and an order are given."""
    check_dims(self, ord, dim)
    if ord is not None and (len(dim) == 2 if dim is not None else len(self._shape) == 2):
        return linalg_matrix_norm.op.functional(self, ord, [0, 1] if dim is None else dim, keepdim, dtype=dtype)
    return linalg_vector_norm.op.functional(self, 2.0 if ord is None else ord, dim, keepdim, dtype=dtype)


# --- norm ------------------------------------------------------------------------------------------------------------

DIMS = "int[1] dim, bool keepdim"


def norm_overload(overload: str, arguments: str, out: str, node: str) -> Operator:
    """Declares an overload of `norm` by what it is told: `p`, and maybe the dimensions and a dtype."""
    op = Operator(
        f"norm.{overload}(Tensor self, {arguments}) -> Tensor",
        out=out,
        refuses="whole",
        autocast={} if "dtype" in arguments else {"cuda": "fp32_append_dtype"},
    )
    _, *names = op.names

    @op.explicit
    def kernel(self, *given):
        how = dict(zip(names, given, strict=True))
        if "dtype" not in how and self._dtype.category < dtypes.FLOATING:
            raise RuntimeError(
                "norm(): input dtype should be either floating point or complex. "
                f"Got {self._dtype.tensor_name} instead."
            )
        p, dim, keepdim = order(how), how.get("dim"), how.get("keepdim", False)
        return linalg_vector_norm.op.functional(self, p, dim, keepdim, dtype=how.get("dtype"))

    saved = [name for name in names if name != "dtype"]

    @taking("grad", "self", "result", *saved)
    def backward(grad, self, result, *given):
        how = dict(zip(saved, given, strict=True))
        return vector_norm_backward(grad, self, result, order(how), how.get("dim"), how.get("keepdim", False))

    op.derivative(self=backward, node=node)
    copy_into_out(op)
    return op


def order(how: dict[str, Any]) -> Any:
    return 2 if how["p"] is None else how["p"]


norm_op = norm_overload("Scalar", "Scalar p=2", "Scalar_out", "NormBackward0")
norm_dim_op = norm_overload("ScalarOpt_dim", f"Scalar? p, {DIMS}=False", "out", "NormBackward1")
norm_dtype_op = norm_overload(
    "ScalarOpt_dtype", "Scalar? p, *, ScalarType dtype", "ScalarOpt_dtype_out", "NormBackward2"
)
norm_dim_dtype_op = norm_overload(
    "ScalarOpt_dim_dtype", f"Scalar? p, {DIMS}, *, ScalarType dtype", "dtype_out", "NormBackward3"
)
for plain, with_dtype in ((norm_op, norm_dtype_op), (norm_dim_op, norm_dim_dtype_op)):
    WITH_DTYPE.add(plain.functional, with_dtype.functional, with_dtype.place)


@overridable_function
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Tensor | None = None, dtype: Any = None
) -> Tensor:
    """Returns the p-norm of all elements, or of those along `dim`; "fro" is the 2-norm, "nuc" the nuclear norm of a
    matrix.

    The older name of `linalg.vector_norm` and `linalg.matrix_norm`, which say more clearly what is meant.
    """
    dims = [dim] if isinstance(dim, int) else dim
    if isinstance(p, str) and not (p == "fro" and (dims is None or len(dims) <= 2)):
        everything = list(range(len(input.shape)))
        return linalg_matrix_norm(input, p, everything if dims is None else dims, keepdim, dtype=dtype, out=out)
    order = 2 if p is None or p == "fro" else p
    return linalg_vector_norm(input, order, dims, keepdim, dtype=dtype, out=out)


def norm_method(self: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """Returns what the function `norm` does."""
    return norm(self, p, dim, keepdim, dtype=dtype)


norm_method.__name__ = "norm"
Tensor.norm = overridable_in_python(norm_method)  # type: ignore[attr-defined]  # attached here


def warn_of_age(name: str, instead: str) -> None:
    warnings.warn(
        f"at::{name} is deprecated and it is just left for JIT compatibility. It will be removed in a future PyTorch "
        f"release. Please use `{instead}` instead",
        UserWarning,
        stacklevel=2,
    )


@composite(
    "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    out="out",
    refuses="whole",
    autocast=CUDA_FP32,
    method=False,
)
def frobenius_norm(self, dim, keepdim):
    """Returns the root of the sum of the squares of all elements, or of those along `dim`."""
    warn_of_age("frobenius_norm", "linalg.vector_norm(A, 2., dim, keepdim)")
    if len(dim) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dim)} dimensions instead.")
    return norm_dim_op.functional(self, 2, dim, keepdim)


@composite(
    "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
    out="out",
    refuses="whole halves",
    autocast=CUDA_FP32,
    face=False,
)
def nuclear_norm_op(self, keepdim):
    return nuclear_norm.op.functional(self, [-2, -1], keepdim)


@composite(
    "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
    out="dim_out",
    autocast=CUDA_FP32,
    also=(nuclear_norm_op,),
    method=False,
)
def nuclear_norm(self, dim, keepdim):
    """Returns the sum of the singular values of matrices."""
    warn_of_age("nuclear_norm", "linalg.matrix_norm(A, 'nuc', dim, keepdim)")
    return matrix_norm_str_op.functional(self, "nuc", dim, keepdim)


# --- dist, renorm ----------------------------------------------------------------------------------------------------


def dist_backward(grad: Any, difference: Any, result: Any, p: Any) -> Any:
    return vector_norm_backward(grad, difference, result, p, None, False)


@kernel(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    out="out",
    refuses="whole",
    derivative={
        "self": lambda grad, self, other, result, p: dist_backward(grad, self - other, result, p),
        "other": lambda grad, self, other, result, p: -dist_backward(grad, self - other, result, p),
    },
    autocast=CUDA_FP32,
)
def dist(self, other, p):
    """Returns the p-norm of the difference of two tensors."""
    return norm_op.functional(self - other, p)


SMALL = 1e-7  # added to norms that are divided by


@structured(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    inplace=True,
    out="out",
    out_dtype=check_out_dtype,
    refuses="whole",
    batching="parts",
    autocast=CUDA_FP32,
    doc="Returns the tensor with each slice along `dim` scaled down to a p-norm of at most `maxnorm`.",
)
def renorm(self, p, dim, maxnorm):
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if len(self._shape) < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {len(self._shape)} dimensions")
    wrap_dim(dim, len(self._shape))
    check_floating(self, "linalg.vector_norm")
    return Meta(self._shape, self._dtype, self._device)


@renorm.op.body
def renorm_body(out, self, p, dim, maxnorm):
    """Each part along `dim`, scaled down to `maxnorm` where its p-norm is larger."""
    axes = other_dims(dim, len(self._shape))
    x = as_numpy(self)
    sizes = abs(x).astype(np.float64)
    if math.isinf(p):
        norm = sizes.max(axis=axes, keepdims=True, initial=0)
    else:
        norm = (sizes**p).sum(axis=axes, keepdims=True) ** (1 / p)
    as_numpy(out)[...] = np.where(norm > maxnorm, x * (maxnorm / (norm + SMALL)), x)


def other_dims(dim: int, ndim: int) -> tuple[int, ...]:
    return tuple(d for d in range(ndim) if d != wrap_dim(dim, ndim))


@renorm.op.gradient("self", for_complex=True)
def renorm_backward(grad, self, p, dim, maxnorm):
    """y = x c / (|x| + e), so the gradient is c / (|x| + e) (grad - (x . grad) / (|x| + e) d|x|/dx)."""
    dims = list(other_dims(dim, self.dim()))
    norm = linalg_vector_norm.op.functional(self, p, dims, True)
    along = (conj(self) * grad).sum(dims, True)
    along = along.real if self._dtype.is_complex else along
    inverse = (norm + SMALL).reciprocal()
    of_norm = vector_norm_backward(along, self, norm, p, dims, True)
    scaled = (grad - of_norm * inverse) * inverse * maxnorm
    return ops.aten.where.self(norm > maxnorm, scaled, grad)


# --- what weight normalisation is made of: norm_except_dim, _weight_norm ----------------------------------------------


@composite("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", refuses="whole", method=False)
def norm_except_dim(v, pow, dim):
    """Returns the norm over all dimensions but `dim`, which are left with size 1; over all of them for -1.

    Errors: IndexError for a dimension that there is not.
    """
    if dim == -1:
        return ops.aten.norm.Scalar(v, pow)
    dim = wrap_dim(dim, v.dim())
    ones = [1] * v.dim()
    if dim == 0:
        ones[0] = v.size(0)
        return ops.aten.norm.ScalarOpt_dim(v.contiguous().view(v.size(0), -1), pow, [1]).view(ones)
    if dim == v.dim() - 1:
        ones[-1] = v.size(-1)
        return ops.aten.norm.ScalarOpt_dim(v.contiguous().view(-1, v.size(-1)), pow, [0]).view(ones)
    return norm_except_dim.op.functional(v.transpose(0, dim), pow, 0).transpose(0, dim)


@composite("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", refuses="whole")
def weight_norm_op(v, g, dim):
    """`v` with the lengths `g` along `dim`: v g / |v|. (Salimans and Kingma, "Weight normalization", 2016.)"""
    return v * (g / norm_except_dim.op.functional(v, 2, dim))
