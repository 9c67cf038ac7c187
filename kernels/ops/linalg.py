"""Products of matrices and vectors: mm, bmm, addmm and their kin; `matmul`, `linear`, `tensordot`, which are written in
them; and the trace.

Factors have one dtype, and only autocast changes it. The products themselves are BLAS calls (kernels/cpu/blas.py), and
so is every derivative here: the gradient of a product is a product with the other factor transposed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import STATE, asks, call, call_overridden, ops, overridden
from redispatch.dispatch import trace as call_trace
from redispatch.dispatch.layers.lazy_bit import CONJUGATE
from redispatch.dispatch.specialiser.annotations import frozen, inline
from redispatch.dispatch.tensor import Size, Tensor, as_numpy, dtypes, metadata_of, result_type, wrap_dim
from redispatch.kernels import Operand, broadcast_shapes

from ..declare.declare import Operator
from ..declare.operator import CPU_FP32, CUDA_LOWER, CUDA_PROMOTE, LOWER, composite, kernel, planned, structured
from ..declare.out_forms import cast_into_out, copy_into_out, filled
from ..declare.overridable import overridable_function
from ..declare.planned import Planned
from ..declare.public import public
from ..declare.relies import check_scalar_type
from ..declare.structured import (
    Meta,
    Structured,
    c_name,
    check_has_kernel,
    check_out_dtype,
    common_device,
    resize,
    same_dtype,
)
from .views import t_op, view_op

OF_DOT = same_dtype("result dtype {found} does not match input dtype {wanted}")
OF_TENSORDOT = same_dtype(
    "tensordot: Expected the output tensor to have dtype {wanted}, but got an output tensor with dtype {found}"
)

SCALES = "*, Scalar beta=1, Scalar alpha=1"
CONJUGATES: dict[str, Any] = {"understands": ("Conjugate",)}

# --- checks, factors ------------------------------------------------------------------------------------------------


def check_inner(a: Tensor, b: Tensor) -> None:
    """Raises RuntimeError where a[n, k] cannot be multiplied with b[k, m]."""
    (n, k), (k2, m) = a._shape, b._shape
    if k != k2:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({n}x{k} and {k2}x{m})")


def check_batches(a: Tensor, b: Tensor) -> tuple[int, int, int]:
    """The shape of the products of two batches. RuntimeError where a[batch, n, k] does not fit b[batch, k, m]."""
    for name, x in (("batch1", a), ("batch2", b)):
        if len(x._shape) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if a._shape[0] != b._shape[0] or a._shape[2] != b._shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a._shape[0]}, {a._shape[2]}] but got: "
            f"[{b._shape[0]}, {b._shape[1]}]."
        )
    return a._shape[0], a._shape[1], b._shape[2]


def check_expands(self: Tensor, shape: tuple[int, ...]) -> None:
    """Raises RuntimeError where the added tensor does not broadcast to the product's shape."""
    own = self._shape
    if len(own) > len(shape):
        raise RuntimeError(
            f"expand({self._summary()}, size={list(shape)}): the number of sizes provided ({len(shape)}) must be "
            f"greater or equal to the number of dimensions in the tensor ({len(own)})"
        )
    for back in range(1, len(own) + 1):
        if own[-back] not in (1, shape[-back]):
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[-back]}) must match the existing size ({own[-back]}) at "
                f"non-singleton dimension {len(shape) - back}.  Target sizes: {list(shape)}.  Tensor sizes: {list(own)}"
            )


def scale(grad: Any, factor: Any) -> Any:
    """`grad * factor`, without an operator where the factor is 1."""
    return grad if factor == 1 else grad * factor


def scaled_by_beta(grad: Any, beta: Any) -> Any:
    """The gradient of what is added."""
    return scale(grad, beta)


def tangent_of_sum(product: Any) -> Any:
    """The tangent of `beta self + alpha product(a, b)`: the product rule, and the tangent of what is added."""

    def tangent(arguments: list[Any], tangents: list[Any], result: Any) -> Any:
        (_, a, b, beta, alpha), (of_self, of_a, of_b, *_) = arguments, tangents
        terms = [] if of_self is None else [scale(of_self, beta).expand(result.shape)]
        terms += [] if of_a is None else [scale(product.op.functional(of_a, b), alpha)]
        terms += [] if of_b is None else [scale(product.op.functional(a, of_b), alpha)]
        return sum(terms[1:], terms[0])

    return tangent


def whole(out: Tensor, *factors: Any) -> list[Any]:
    """`alpha` and `beta` as the memory of the result has them: cut off at the point for integers, conjugated where it
    is a conjugate view."""
    if out._dtype.category <= dtypes.INTEGER:
        return [int(f) for f in factors]
    return [f.conjugate() for f in factors] if metadata_of(out).bits & CONJUGATE else [*factors]


def conjugated(out: Tensor, a: Tensor, b: Tensor, bias: Tensor | None = None) -> tuple[bool, bool, bool]:
    """The operands of a product that are to be conjugated in memory: those that differ in this from the result."""
    wanted = metadata_of(out).bits & CONJUGATE
    flags = [x is not None and metadata_of(x).bits & CONJUGATE != wanted for x in (a, b, bias)]
    return flags[0], flags[1], flags[2]


# --- vectors and batches as matrices ----------------------------------------------------------------------------------


def column(vec: Tensor) -> Operand:
    """A vector as a matrix with one column."""
    return vec._operand._replace(shape=(vec._shape[0], 1), strides=(vec._stride[0], 1))


def row(vec: Tensor) -> Operand:
    """A vector as a matrix with one row."""
    return vec._operand._replace(shape=(1, vec._shape[0]), strides=(1, vec._stride[0]))


def as_matrix(number: Tensor) -> Operand:
    return number._operand._replace(shape=(1, 1), strides=(1, 1))


def matrix(batch: Tensor, i: int) -> Operand:
    """Matrix i of a batch."""
    step, *strides = batch._stride
    x = batch._operand
    return x._replace(shape=tuple(batch._shape[1:]), strides=tuple(strides), offset=x.offset + i * step)


def expanded(self: Tensor, out: Tensor) -> Operand:
    """The added tensor, broadcast to the shape of the result."""
    steps = kernels.broadcast_strides(self._shape, self._stride, out._shape)
    return self._operand._replace(shape=tuple(out._shape), strides=steps)


# --- mm, bmm ----------------------------------------------------------------------------------------------------------


def column_major(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether a matrix lies in memory column by column, as the transpose of a weight does."""
    return stride[0] == 1 and stride[1] == shape[0]


def left_gradient(grad: Any, mat2: Any, shape: Any, stride: Any) -> Any:
    """The gradient of the left factor, laid out as the factor is: then it reaches a parameter without a copy."""
    return mat2.mm(grad.t()).t() if column_major(shape, stride) else grad.mm(mat2.t())


def right_gradient(grad: Any, mat1: Any, shape: Any, stride: Any) -> Any:
    """The gradient of the right factor, laid out as the factor is."""
    return grad.t().mm(mat1).t() if column_major(shape, stride) else mat1.t().mm(grad)


@planned(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    out="out",
    out_dtype=check_out_dtype,
    autocast=LOWER,
    derivative={
        "self": lambda grad, mat2, self_shape, self_stride: left_gradient(grad, mat2, self_shape, self_stride),
        "mat2": lambda grad, self, mat2_shape, mat2_stride: right_gradient(grad, self, mat2_shape, mat2_stride),
    },
    forward="multilinear",
    **CONJUGATES,
    core=True,
    refuses="bool",
)
def mm(self, mat2):
    """Returns the product of two matrices."""
    for name, x in (("self", self), ("mat2", mat2)):
        if len(x._shape) != 2:
            raise RuntimeError(f"{name} must be a matrix")
    check_inner(self, mat2)
    if self._dtype is not mat2._dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {c_name(self._dtype)} != {c_name(mat2._dtype)}"
        )
    check_has_kernel("addmm_impl_cpu_", self, "bool")
    return Meta((self._shape[0], mat2._shape[1]), self._dtype, common_device(self, mat2))


@planned(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    out="out",
    out_dtype=check_out_dtype,
    autocast=LOWER,
    derivative={
        "self": lambda grad, mat2: grad.bmm(mat2.transpose(1, 2)),
        "mat2": lambda grad, self: self.transpose(1, 2).bmm(grad),
    },
    forward="multilinear",
    **CONJUGATES,
    core=True,
    refuses="bool",
)
def bmm(self, mat2):
    """Returns the products of two batches of matrices."""
    shape = check_batches(self, mat2)
    check_has_kernel("bmm", self, "bool")
    check_scalar_type(self, mat2)
    return Meta(shape, self._dtype, common_device(self, mat2))


@mm.op.body
@bmm.op.body
def product_body(out, self, mat2):
    kernels.matmul(out._operand, self._operand, mat2._operand, conj=conjugated(out, self, mat2))


@mm.op.loop
@bmm.op.loop
def product_loop(out, self, mat2):
    return kernels.ready_matmul(out._operand, self._operand, mat2._operand, conj=conjugated(out, self, mat2))


@kernel(
    "_int_mm(Tensor self, Tensor mat2) -> Tensor",
    face=True,
    method=False,
    out="out",
    derivative=False,
    refuses="bool uint8 int16 int32 int64 floating complex",  # of both; bytes beside signed ones are taken
)
def int_mm(self, mat2):
    """Returns the product of two matrices of bytes, the second one signed, whose sums are int32."""
    for name, x in (("self", self), ("mat2", mat2)):
        if len(x._shape) != 2:
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} to be of dimension 2 but got {len(x._shape)}")
    if self._dtype.name not in ("int8", "uint8"):
        raise RuntimeError(f"int_mm_out_cpu: Expected self dtype to be int8 or uint8 but got {c_name(self._dtype)}")
    if mat2._dtype.name != "int8":
        raise RuntimeError(f"int_mm_out_cpu: Expected mat2 dtype to be of type int8 but got {c_name(mat2._dtype)}")
    if self._shape[1] != mat2._shape[0]:
        raise RuntimeError(
            f"int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got {self._shape[1]} and {mat2._shape[0]}"
        )
    return mm.op.functional(self.to(dtypes.int32), mat2.to(dtypes.int32))


# --- addmm, baddbmm ---------------------------------------------------------------------------------------------------


@frozen
class Accumulated(Planned):
    """An operator whose in-place form adds a product to its first argument, which must have its shape."""

    def run_inplace(self, *args: Any) -> Tensor:
        target, a, b = args[:3]
        if len(a._shape) == len(b._shape) >= 2:
            shape = [*a._shape[:-1], b._shape[-1]]
            if list(target._shape) != shape:
                raise RuntimeError(
                    f"Bad in-place call: input tensor size {list(target._shape)} and output tensor size {shape} "
                    "should match"
                )
        return super().run_inplace(*args)


@structured(
    f"addmm(Tensor self, Tensor mat1, Tensor mat2, {SCALES}) -> Tensor",
    Accumulated,
    inplace=True,
    out="out",
    out_dtype=check_out_dtype,
    autocast=LOWER,
    derivative={
        "self": scaled_by_beta,
        "mat1": lambda grad, mat2, mat1_shape, mat1_stride, alpha: scale(
            left_gradient(grad, mat2, mat1_shape, mat1_stride), alpha
        ),
        "mat2": lambda grad, mat1, mat2_shape, mat2_stride, alpha: scale(
            right_gradient(grad, mat1, mat2_shape, mat2_stride), alpha
        ),
    },
    forward=tangent_of_sum(mm),
    **CONJUGATES,
    core=True,
    refuses="bool",
)
def addmm(self, mat1, mat2, beta, alpha):
    """Returns beta self + alpha mat1 @ mat2."""
    for name, x in (("mat1", mat1), ("mat2", mat2)):
        if len(x._shape) != 2:
            raise RuntimeError(f"{name} must be a matrix, got {len(x._shape)}-D tensor")
    check_inner(mat1, mat2)
    for name, x in (("self", self), ("mat1", mat1)):
        if x._dtype is not mat2._dtype:
            names = f"{x._dtype.tensor_name} and {mat2._dtype.tensor_name}"
            raise RuntimeError(f"{name} and mat2 must have the same dtype, but got {names}")
    check_has_kernel("addmm_impl_cpu_", self, "bool")
    shape = (mat1._shape[0], mat2._shape[1])
    check_expands(self, shape)
    return Meta(shape, self._dtype, common_device(self, mat1, mat2))


@structured(
    f"baddbmm(Tensor self, Tensor batch1, Tensor batch2, {SCALES}) -> Tensor",
    Accumulated,
    inplace=True,
    out="out",
    out_dtype=check_out_dtype,
    autocast=LOWER,
    derivative={
        "self": scaled_by_beta,
        "batch1": lambda grad, batch2, alpha: scale(grad.bmm(batch2.transpose(1, 2)), alpha),
        "batch2": lambda grad, batch1, alpha: scale(batch1.transpose(1, 2).bmm(grad), alpha),
    },
    forward=tangent_of_sum(bmm),
    **CONJUGATES,
    refuses="bool",
)
def baddbmm(self, batch1, batch2, beta, alpha):
    """Returns beta self + alpha batch1 @ batch2, for batches of matrices."""
    shape = check_batches(batch1, batch2)
    if not self._dtype is batch1._dtype is batch2._dtype:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {c_name(self._dtype)}, batch1: {c_name(batch1._dtype)}, "
            f"batch2: {c_name(batch2._dtype)}"
        )
    check_has_kernel("baddbmm", self, "bool")
    check_expands(self, shape)
    return Meta(shape, self._dtype, common_device(self, batch1, batch2))


@addmm.op.body
@baddbmm.op.body
def sum_body(out, self, a, b, beta, alpha):
    alpha, beta = whole(out, alpha, beta)
    conj = conjugated(out, a, b, self)
    kernels.matmul(out._operand, a._operand, b._operand, expanded(self, out), alpha=alpha, beta=beta, conj=conj)


@addmm.op.loop
@baddbmm.op.loop
def sum_loop(out, self, a, b, beta, alpha):
    alpha, beta = whole(out, alpha, beta)
    conj, added = conjugated(out, a, b, self), expanded(self, out)
    return kernels.ready_addmm(out._operand, added, a._operand, b._operand, alpha=alpha, beta=beta, conj=conj)


# --- vectors: mv, addmv, dot ------------------------------------------------------------------------------------------


def check_mv(input_shape: tuple[int, ...], input_dtype: Any, mat: Tensor, vec: Tensor) -> None:
    if len(mat._shape) != 2 or len(vec._shape) != 1 or len(input_shape) > 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {len(input_shape)}, {len(mat._shape)}, {len(vec._shape)}"
        )
    n, k = mat._shape
    if k != vec._shape[0] or (input_shape and input_shape[0] not in (1, n)):
        raise RuntimeError(
            f"size mismatch, got input ({input_shape[0] if input_shape else 1}), mat ({n}x{k}), vec ({vec._shape[0]})"
        )
    if not input_dtype is mat._dtype is vec._dtype:
        names = [t.tensor_name for t in (input_dtype, mat._dtype, vec._dtype)]
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {names[0]}, {names[1]}, and {names[2]}"
        )
    check_has_kernel("addmv_impl_cpu", mat, "bool")


@planned(
    "mv(Tensor self, Tensor vec) -> Tensor",
    out="out",
    out_dtype=check_out_dtype,
    autocast=CUDA_LOWER,
    derivative={"self": lambda grad, vec: grad.outer(vec), "vec": lambda grad, self: self.t().mv(grad)},
    forward="multilinear",
    refuses="bool",
)
def mv(self, vec):
    """Returns the product of a matrix and a vector."""
    check_mv((self._shape[0] if self._shape else 1,), vec._dtype, self, vec)
    return Meta(self._shape[:1], self._dtype, common_device(self, vec))


@mv.op.body
def mv_body(out, self, vec):
    kernels.matmul(column(out), self._operand, column(vec))


@mv.op.loop
def mv_loop(out, self, vec):
    return kernels.ready_matmul(column(out), self._operand, column(vec))


@structured(
    f"addmv(Tensor self, Tensor mat, Tensor vec, {SCALES}) -> Tensor",
    inplace=True,
    out="out",
    out_dtype=check_out_dtype,
    autocast=CUDA_LOWER,
    derivative={
        "self": scaled_by_beta,
        "mat": lambda grad, vec, alpha: scale(grad.outer(vec), alpha),
        "vec": lambda grad, mat, alpha: scale(mat.t().mv(grad), alpha),
    },
    forward=tangent_of_sum(mv),
    refuses="bool",
)
def addmv(self, mat, vec, beta, alpha):
    """Returns beta self + alpha mat @ vec."""
    check_mv(tuple(self._shape), self._dtype, mat, vec)
    return Meta(mat._shape[:1], self._dtype, common_device(self, mat, vec))


@addmv.op.body
def addmv_body(out, self, mat, vec, beta, alpha):
    n = mat._shape[0]
    step = self._stride[0] if self._shape and self._shape[0] == n else 0
    bias = self._operand._replace(shape=(n, 1), strides=(step, 1))
    alpha, beta = whole(self, alpha, beta)
    kernels.matmul(column(out), mat._operand, column(vec), bias, alpha=alpha, beta=beta)


@planned(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    out="out",
    out_dtype=OF_DOT,
    autocast=CUDA_PROMOTE,
    derivative={"self": lambda grad, tensor: grad * tensor, "tensor": lambda grad, self: grad * self},
    forward="multilinear",
    **CONJUGATES,
    refuses="bool",
)
def dot(self, tensor):
    """Returns the sum of the products of two vectors' elements; none is conjugated."""
    if len(self._shape) != 1 or len(tensor._shape) != 1:
        raise RuntimeError(f"1D tensors expected, but got {len(self._shape)}D and {len(tensor._shape)}D tensors")
    if self._dtype is not tensor._dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {self._dtype.tensor_name} and "
            f"{tensor._dtype.tensor_name}"
        )
    if self._shape != tensor._shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {list(self._shape)} and src {list(tensor._shape)} to have "
            f"the same number of elements, but got {self._shape[0]} and {tensor._shape[0]} elements respectively"
        )
    check_has_kernel("dot", self, "bool")
    return Meta((), self._dtype, common_device(self, tensor))


@dot.op.body
def dot_body(out, self, tensor):
    kernels.matmul(as_matrix(out), row(self), column(tensor), conj=conjugated(out, self, tensor))


@dot.op.loop
def dot_loop(out, self, tensor):
    return kernels.ready_matmul(as_matrix(out), row(self), column(tensor), conj=conjugated(out, self, tensor))


@planned(
    "vdot(Tensor self, Tensor other) -> Tensor",
    out="out",
    out_dtype=OF_DOT,
    autocast=CUDA_PROMOTE,
    derivative={"self": lambda grad, other: grad.conj() * other, "other": lambda grad, self: grad * self},
    for_complex=True,
    forward="multilinear",
    **CONJUGATES,
    refuses="bool",
)
def vdot(self, other):
    """Returns the inner product of two vectors, of which the first is conjugated."""
    return dot.op.meta_function(self, other)


@vdot.op.loop
def vdot_loop(out, self, other):
    """The product of the conjugate of `self` with `other`, as the inner product of complex vectors is defined."""
    if out._dtype is not self._dtype:
        raise RuntimeError(
            f"result dtype {out._dtype.tensor_name} does not match input dtype {self._dtype.tensor_name}"
        )
    first, second, none = conjugated(out, self, other)
    conj = (first != self._dtype.is_complex, second, none)
    return kernels.ready_matmul(as_matrix(out), row(self), column(other), conj=conj)


# --- outer, addr, addbmm ----------------------------------------------------------------------------------------------


@composite("outer(Tensor self, Tensor vec2) -> Tensor", out="out")
def outer(self, vec2):
    """Returns the product of each element of one vector with each of another."""
    for name, x in (("self", self), ("vec2", vec2)):
        if x.dim() != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {x.dim()}-D")
    return self.unsqueeze(1).mul(vec2.unsqueeze(0)) if STATE.get().levels else self.reshape(self.shape[0], 1).mul(vec2)


@composite("ger(Tensor self, Tensor vec2) -> Tensor", out="out")
def ger(self, vec2):
    """Returns the product of each element of one vector with each of another, as `outer` does."""
    return outer.op.functional(self, vec2)


@structured(
    f"addr(Tensor self, Tensor vec1, Tensor vec2, {SCALES}) -> Tensor",
    inplace=True,
    out="out",
    autocast=CUDA_LOWER,
    derivative={
        "self": scaled_by_beta,
        "vec1": lambda grad, vec2, alpha: scale(grad.mv(vec2), alpha),
        "vec2": lambda grad, vec1, alpha: scale(grad.t().mv(vec1), alpha),
    },
)
def addr(self, vec1, vec2, beta, alpha):
    """Returns beta self + alpha times the outer product of two vectors."""
    for name, vec in (("vec1", vec1), ("vec2", vec2)):
        if len(vec._shape) != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {len(vec._shape)}-D")
    kind = result_type(self, vec1, vec2)
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if kind.category <= dtypes.INTEGER and isinstance(factor, float):
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
        if isinstance(factor, bool) and kind is not dtypes.bool:
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if isinstance(factor, complex) and not kind.is_complex:
            raise RuntimeError(f"value cannot be converted to type {c_name(kind)} without overflow")
    shape = (vec1._shape[0], vec2._shape[0])
    check_expands(self, shape)
    return Meta(shape, kind, common_device(self, vec1, vec2))


@addr.op.body
def addr_body(out, self, vec1, vec2, beta, alpha):
    """beta self + alpha vec1 vec2ᵀ; without `self` where beta is 0, so that its NaN do not show."""
    kind = result_type(self, vec1, vec2)
    given, a, b = (as_numpy(x) for x in (self, vec1, vec2))
    if kind is dtypes.bool:
        product = np.logical_and(bool(alpha), np.logical_and.outer(a, b))
        as_numpy(out)[...] = np.logical_or(product, given) if beta else product
        return
    wide = np.dtype(np.float32) if kind.is_floating_point and kind.itemsize == 2 else kind.numpy
    product = np.outer(a.astype(wide), b.astype(wide)) * wide.type(alpha)
    as_numpy(out)[...] = product + given.astype(wide) * wide.type(beta) if beta else product


def over_batch(grad: Any, batch: Any) -> Any:
    """The gradient of a sum: the same for each matrix."""
    return grad.unsqueeze(0).expand([batch.shape[0], *grad.shape])


@frozen
class Growing(Structured):
    """An operator whose in-place form takes the shape of the result, which it computes first where that is another."""

    def run_inplace(self, *args: Any) -> Tensor:
        target, meta = args[0], self.meta_function(*args)
        if tuple(target._shape) == tuple(meta.shape):
            return super().run_inplace(*args)
        result = self.run_functional(*args)
        resize(target, Size(meta.shape))
        kernels.copy(target._operand, result._operand)
        return target


@structured(
    f"addbmm(Tensor self, Tensor batch1, Tensor batch2, {SCALES}) -> Tensor",
    Growing,
    inplace=True,
    out="out",
    out_dtype=check_out_dtype,
    autocast=LOWER,
    derivative={
        "self": scaled_by_beta,
        "batch1": lambda grad, batch2, alpha: scale(over_batch(grad, batch2).bmm(batch2.transpose(1, 2)), alpha),
        "batch2": lambda grad, batch1, alpha: scale(batch1.transpose(1, 2).bmm(over_batch(grad, batch1)), alpha),
    },
    refuses="bool",
)
def addbmm(self, batch1, batch2, beta, alpha):
    """Returns beta self + alpha times the sum of the products of two batches of matrices."""
    for name, x in (("batch1", batch1), ("batch2", batch2)):
        wrap_dim(2, len(x._shape))
        if len(x._shape) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if batch1._shape[0] != batch2._shape[0]:
        raise RuntimeError(
            f"batch1 and batch2 must have same number of batches, got {batch1._shape[0]} and {batch2._shape[0]}"
        )
    (_, n, k), (_, k2, m) = batch1._shape, batch2._shape
    check_expands(self, (n, m))
    if k != k2:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({n}x{k} and {k2}x{m})")
    for one, other, a, b in (("mat1", "mat2", batch1, batch2), ("self", "mat2", self, batch2)):
        if a._dtype is not b._dtype:
            raise RuntimeError(
                f"{one} and {other} must have the same dtype, but got {a._dtype.tensor_name} and {b._dtype.tensor_name}"
            )
    check_has_kernel("addmm_impl_cpu_", self, "bool")
    return Meta((n, m), self._dtype, common_device(self, batch1, batch2))


@addbmm.op.body
def addbmm_body(out, self, batch1, batch2, beta, alpha):
    """beta self + alpha (A1 B1 + A2 B2 + ...), one product after the other."""
    alpha, beta = whole(out, alpha, beta)
    count, n, k = batch1._shape
    added = expanded(self, out)
    if not count:  # a product over no columns leaves what is added
        nothing = batch1._operand._replace(shape=(n, 0), strides=(0, 1))
        none = batch2._operand._replace(shape=(0, out._shape[1]), strides=(0, 1))
        kernels.matmul(out._operand, nothing, none, added, alpha=alpha, beta=beta)
    for i in range(count):
        kernels.matmul(out._operand, matrix(batch1, i), matrix(batch2, i), added, alpha=alpha, beta=beta)
        added, beta = out._operand, 1


# --- matmul -----------------------------------------------------------------------------------------------------------

matmul_op = Operator("matmul(Tensor self, Tensor other) -> Tensor", out="out", autocast=LOWER, refuses="bool")


@matmul_op.implicit
@inline
def matmul_composite(self, other):
    """Returns the product of vectors, matrices or batches of matrices, by the numbers of dimensions."""
    if len(self._shape) == 2 and len(other._shape) == 2:
        return call(mm.op.functional, [self, other])
    if len(self._shape) == 2 and len(other._shape) == 1:
        return call(mv.op.functional, [self, other])
    return matmul_slow(self, other)


def matmul_slow(self: Any, other: Any) -> Any:
    """Multiplies where not both are matrices."""
    a, b = len(self._shape), len(other._shape)
    if a == 0 or b == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a}D and {b}D")
    if a == 1 and b == 1:
        return dot.op.functional(self, other)
    if a == 1 and b == 2:
        return mm.op.functional(self.unsqueeze(0), other).squeeze_(0)
    if a == 3 and b == 3 and (self._shape[0] == 1) != (other._shape[0] == 1):  # one matrix for the whole batch
        return (
            matmul_composite(self.squeeze(0), other) if self.shape[0] == 1 else matmul_composite(self, other.squeeze(0))
        )
    if folds(self, other):
        return folded(self, other) if a >= b else folded_right(self, other)
    return batched(self, other)


def folds(self: Any, other: Any) -> bool:
    """Whether one product of matrices, the batch laid out as rows, takes the place of a batch of products.

    It does where one side has at least three dimensions, the other at most two, and the rows can be had without a copy.
    Where the small side needs a gradient, it does in any case: in a batch, it would be formed once for each matrix.
    """
    large, small = (self, other) if self.dim() >= other.dim() else (other.mT, self)
    if large.dim() < 3 or small.dim() > 2:
        return False
    if small.requires_grad:
        return True
    if self.dim() == 2:  # the product would come out transposed
        return False
    return not large.numel() or small.dim() == 1 and self.dim() > 1 or rows_are_a_view(large)


def rows_are_a_view(x: Any) -> bool:
    """Whether all dimensions but the last can be seen as one."""
    shape, stride = x.shape, x.stride()
    return x.is_contiguous() or all(stride[d] == stride[d + 1] * shape[d + 1] for d in range(len(shape) - 2))


def folded(large: Any, small: Any) -> Any:
    """large[..., n, k] @ small[k, m] or small[k], the batch laid out as rows."""
    *outer_shape, k = large.shape
    rows = large.reshape(math.prod(outer_shape), k)
    product = (mv if small.dim() == 1 else mm).op.functional(rows, small)
    return ops.aten._unsafe_view.default(product, [*outer_shape, *small.shape[1:]])


def folded_right(small: Any, large: Any) -> Any:
    """small[n, k] or small[k] @ large[..., k, m], as the transposed product."""
    large = large.mT
    if small.dim() == 1:
        return folded(large, small)
    return folded(large, small.t()).mT.contiguous()


def batched(self: Any, other: Any) -> Any:
    """Batches of matrices, broadcast against each other, as one bmm."""
    a, b = self.dim(), other.dim()
    n = self.shape[-2] if a > 1 else 1
    k, (k2, m) = self.shape[-1], (other.shape[-2:] if b > 1 else (other.shape[0], 1))
    batch = broadcast_shapes(tuple(self.shape[:-2]), tuple(other.shape[:-2] if b > 1 else ()))
    count = math.prod(batch)
    left = self.expand((*batch, n, k)).reshape(count, n, k)
    right_source = other.unsqueeze(1) if b == 1 else other
    right = right_source.expand((*batch, k2, m)).reshape(count, k2, m)
    shape = [*batch] + ([n] if a > 1 else []) + ([m] if b > 1 else [])
    return ops.aten._unsafe_view.default(bmm.op.functional(left, right), shape)


@matmul_op.kernel_out("CompositeExplicitAutograd")
def matmul_into_out(self, other, out):
    """Two matrices are multiplied into `out`; other products are made and copied."""
    if len(self._shape) == 2 and len(other._shape) == 2:
        return ops.aten.mm.out(self, other, out=out)
    return filled(out, call(matmul_op.functional, [self, other]), casts=True)


matmul = public(matmul_op)

# --- linear -----------------------------------------------------------------------------------------------------------


@composite(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    out="out",
    autocast=LOWER,
    refuses="bool",
    out_by=copy_into_out,
    module="nn",
)
@inline
def linear(input, weight, bias):
    """Returns input @ weight.T + bias."""
    if bias is None:
        return call(matmul_op.functional, [input, call(t_op.functional, [weight])])
    if len(input._shape) == 2:
        return call(addmm.op.functional, [bias, input, call(t_op.functional, [weight]), 1, 1])
    if len(input._shape) == 3 and len(bias._shape) == 1 and rows_lie_in_turn(input):  # as in a transformer
        batch, n, k = input._shape
        rows = call(view_op.functional, [input, [batch * n, k]])
        product = call(addmm.op.functional, [bias, rows, call(t_op.functional, [weight]), 1, 1])
        return call(view_op.functional, [product, [batch, n, weight._shape[0]]])
    return linear_slow(input, weight, bias)


@inline
def rows_lie_in_turn(x: Any) -> bool:
    """Whether the rows of a batch of matrices follow each other at one step."""
    return x._stride[0] == x._stride[1] * x._shape[1]


def linear_slow(input: Any, weight: Any, bias: Any) -> Any:
    """Multiplies an input of any other number of dimensions, and adds a bias.

    Under a transform one vector stands for many, which are one matrix: as a vector it needs no views of it.
    """
    if len(input._shape) == len(bias._shape) == 1 and STATE.get().levels:
        return addmv.op.functional(bias, weight, input)
    if bias.dim() <= 1 and input.dim() != 0 and rows_are_a_view(input):
        *outer_shape, k = input.shape
        rows = input.view(math.prod(outer_shape), k)
        return addmm.op.functional(bias, rows, weight.t()).view([*outer_shape, weight.shape[0]])
    return matmul_op.functional(input, weight.t()).add(bias)


# --- tensordot, inner, kron -------------------------------------------------------------------------------------------


@composite(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    autocast=CUDA_PROMOTE,
    out="out",
    out_dtype=OF_TENSORDOT,
    out_by=cast_into_out,
    function=False,
    method=False,
    refuses="bool",
)
def tensordot_op(self, other, dims_self, dims_other):
    """The sums of products over pairs of dimensions; the others stay, first those of `self`."""
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    if self.dtype is not other.dtype:
        raise RuntimeError(f"both inputs should have same dtype, but got {self.dtype} and {other.dtype}")
    ours, theirs = ([wrap_dim(d, x.dim()) for d in dims] for x, dims in ((self, dims_self), (other, dims_other)))
    count = 1
    for a, b in zip(ours, theirs, strict=True):
        n, m = self.shape[a], other.shape[b]
        if n == 1 or m == 1:
            self = self.sum(a, True, dtype=self.dtype) if n > m else self
            other = other.sum(b, True, dtype=self.dtype) if m > n else other
        elif n != m:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {n} in dim {a} and second has size {m} in "
                f"dim {b}"
            )
        count *= min(n, m)
    kept = [d for d in range(self.dim()) if d not in ours]
    rest = [d for d in range(other.dim()) if d not in theirs]
    shape = [self.shape[d] for d in kept] + [other.shape[d] for d in rest]
    rows, columns = math.prod(self.shape[d] for d in kept), math.prod(other.shape[d] for d in rest)
    if not kept and not rest:
        left, right = self.permute(ours), other.permute(theirs)
        return left.flatten().dot(right.flatten()).view([])
    left = self.permute([*kept, *ours]).reshape([rows, count])
    right = other.permute([*theirs, *rest]).reshape([count, columns])
    return left.mm(right).reshape(shape)


@composite("_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
def sparse_addmm(self, mat1, mat2, beta, alpha):
    """Returns `addmm` of the three: no tensor is sparse."""
    return self.addmm(mat1, mat2, beta=beta, alpha=alpha)


# of sparse matrices alone, so that no backend has a kernel; programs put theirs there, or ask for the name
Operator("_sparse_mm_reduce_impl(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)", derivative=False)


@composite("inner(Tensor self, Tensor other) -> Tensor", out="out", out_dtype=OF_TENSORDOT, refuses="bool")
def inner(self, other):
    """Returns the sums of products over the last dimensions of both tensors."""
    if not self.dim() or not other.dim():
        return self * other
    if self.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(self.shape)} and "
            f"{list(other.shape)}"
        )
    return tensordot_op.functional(self, other, [-1], [-1])


@composite("kron(Tensor self, Tensor other) -> Tensor", out="out")
def kron(self, other):
    """Returns the Kronecker product: every element of `self` times all of `other`, in its place."""
    ndim = max(self.dim(), other.dim())
    ours, theirs = ([1] * (ndim - x.dim()) + list(x.shape) for x in (self, other))
    wide = [size for n in ours for size in (n, 1)]
    narrow = [size for n in theirs for size in (1, n)]
    shown = ops.aten._unsafe_view.default
    product = shown(self.contiguous(), wide) * shown(other.contiguous(), narrow)
    return shown(product, [n * m for n, m in zip(ours, theirs, strict=True)])


@overridable_function
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Returns the sums of products over the last `dims` dimensions of `a` and the first of `b`; or over two lists of
    them."""
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        ours, theirs = list(range(-dims, 0)), list(range(dims))
    else:
        ours, theirs = ([dim] if isinstance(dim, int) else list(dim) for dim in dims)
    found = tensordot_op.functional(a, b, ours, theirs)
    return found if out is None else out.resize_(found.shape).copy_(found)


# --- trace ------------------------------------------------------------------------------------------------------------


@structured(
    "trace(Tensor self) -> Tensor",
    autocast=CPU_FP32,
    out="out",
    function=False,
    method=False,
    derivative=lambda grad, self_shape: grad.new_zeros(self_shape).diagonal_scatter(grad.expand(min(self_shape))),
    forward="linear",
    refuses="bool",
)
def trace_op(self):
    """Returns the sum of the diagonal of a matrix."""
    if len(self._shape) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {len(self._shape)}")
    check_has_kernel("trace", self, "bool")
    kind = dtypes.int64 if self._dtype.category <= dtypes.INTEGER else self._dtype
    return Meta((), kind, self._device)


@trace_op.body
def trace_body(out, self):
    (n, m), (down, right) = self._shape, self._stride
    line = self._operand._replace(shape=(min(n, m),), strides=(down + right,))
    kernels.SUM.run(out._operand, line, (0,))


def trace(*args: Any, **kwargs: Any) -> Any:
    """Returns the sum of the diagonal: `trace(matrix)`. `with trace() as hops:` records the calls of the dispatcher."""
    if not args and not kwargs:
        return call_trace()
    if overridden(args, kwargs):
        return call_overridden(trace, args, kwargs)
    return matrix_trace(*args, **kwargs)


asks(trace, "torch.trace")
trace.__module__ = "torch"
matrix_trace = public(trace_op)
