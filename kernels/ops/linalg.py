"""Matrix products: mm, bmm, addmm and their kin, and `matmul` and `linear`, which are written in them.

Factors have one dtype, and only autocast changes it. The products themselves are BLAS calls (kernels/cpu/blas.py), and
so is every derivative here: the gradient of a product is a product with the other factor transposed.
"""

from __future__ import annotations

import math
from typing import Any

from redispatch import kernels
from redispatch.dispatch import STATE, call, ops
from redispatch.dispatch.layers.conjugate import CONJUGATE
from redispatch.dispatch.specialiser.annotations import frozen, inline
from redispatch.dispatch.tensor import Tensor, dtypes, metadata_of
from redispatch.kernels import Operand, broadcast_shapes
from redispatch.kernels.declare.out_forms import copy_into_out, filled, resize_and_copy_into_out

from ..declare.declare import Operator
from ..declare.plan import Run
from ..declare.planned import Planned
from ..declare.public import public
from ..declare.structured import Meta, Structured, c_name, check_out_dtype, common_device
from .views import t_op, view_op

SCALES = "*, Scalar beta=1, Scalar alpha=1"

# --- checks ----------------------------------------------------------------------------------------------------------


def check_not_bool(kernel_name: str, self: Tensor) -> None:
    if self._dtype is dtypes.bool:
        raise NotImplementedError(f"\"{kernel_name}\" not implemented for 'Bool'")


def check_inner(a: Tensor, b: Tensor) -> None:
    """Raises RuntimeError where a[n, k] cannot be multiplied with b[k, m]."""
    (n, k), (k2, m) = a._shape, b._shape
    if k != k2:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({n}x{k} and {k2}x{m})")


def check_batches(a: Tensor, b: Tensor) -> None:
    """Raises RuntimeError where a[batch, n, k] cannot be multiplied with b[batch, k, m]."""
    for name, x in (("batch1", a), ("batch2", b)):
        if len(x._shape) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if a._shape[0] != b._shape[0] or a._shape[2] != b._shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a._shape[0]}, {a._shape[2]}] but got: "
            f"[{b._shape[0]}, {b._shape[1]}]."
        )


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


def tangent_of_sum(product: Operator) -> Any:
    """The tangent of `beta self + alpha product(a, b)`: the product rule, and the tangent of what is added."""

    def tangent(arguments: list[Any], tangents: list[Any], result: Any) -> Any:
        (_, a, b, beta, alpha), (of_self, of_a, of_b, *_) = arguments, tangents
        terms = [] if of_self is None else [scale(of_self, beta).expand(result.shape)]
        terms += [] if of_a is None else [scale(product.functional(of_a, b), alpha)]
        terms += [] if of_b is None else [scale(product.functional(a, of_b), alpha)]
        return sum(terms[1:], terms[0])

    return tangent


def whole(out: Tensor, *factors: Any) -> list[Any]:
    """`alpha` and `beta` as the memory of the result has them: cut off at the point for integers, conjugated where it
    is a conjugate view."""
    if out._dtype.category <= dtypes.INTEGER:
        return [int(f) for f in factors]
    return [f.conjugate() for f in factors] if metadata_of(out).bits & CONJUGATE else [*factors]


# --- mm --------------------------------------------------------------------------------------------------------------

mm_op = Planned("mm(Tensor self, Tensor mat2) -> Tensor", out="out")


@mm_op.meta
def mm_meta(self: Tensor, mat2: Tensor) -> Meta:
    for name, x in (("self", self), ("mat2", mat2)):
        if len(x._shape) != 2:
            raise RuntimeError(f"{name} must be a matrix")
    check_inner(self, mat2)
    if self._dtype is not mat2._dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {c_name(self._dtype)} != {c_name(mat2._dtype)}"
        )
    check_not_bool("addmm_impl_cpu_", self)
    return Meta((self._shape[0], mat2._shape[1]), self._dtype, common_device(self, mat2))


@mm_op.body
def mm_body(out: Tensor, self: Tensor, mat2: Tensor) -> None:
    check_out_dtype(out, self._dtype)
    kernels.matmul(out._operand, self._operand, mat2._operand, conj=conjugated(out, self, mat2))


@mm_op.loop
def mm_loop(out: Tensor, self: Tensor, mat2: Tensor) -> Run:
    return kernels.ready_matmul(out._operand, self._operand, mat2._operand, conj=conjugated(out, self, mat2))


def conjugated(out: Tensor, a: Tensor, b: Tensor, bias: Tensor | None = None) -> tuple[bool, bool, bool]:
    """Which operands of a product are to be conjugated in memory: those that differ in this from the result."""
    wanted = metadata_of(out).bits & CONJUGATE
    flags = [x is not None and metadata_of(x).bits & CONJUGATE != wanted for x in (a, b, bias)]
    return flags[0], flags[1], flags[2]


def column_major(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether a matrix lies in memory column by column, as the transpose of a weight does."""
    return stride[0] == 1 and stride[1] == shape[0]


def left_gradient(grad: Any, mat2: Any, shape: Any, stride: Any) -> Any:
    """The gradient of the left factor, laid out as the factor is: then it reaches a parameter without a copy."""
    return mat2.mm(grad.t()).t() if column_major(shape, stride) else grad.mm(mat2.t())


def right_gradient(grad: Any, mat1: Any, shape: Any, stride: Any) -> Any:
    """The gradient of the right factor, laid out as the factor is."""
    return grad.t().mm(mat1).t() if column_major(shape, stride) else mat1.t().mm(grad)


mm_op.understands("Conjugate")
mm_op.derivative(
    self=lambda grad, mat2, self_shape, self_stride: left_gradient(grad, mat2, self_shape, self_stride),
    mat2=lambda grad, self, mat2_shape, mat2_stride: right_gradient(grad, self, mat2_shape, mat2_stride),
)
mm_op.forward("multilinear")
mm_op.autocast(cpu="lower_precision_fp", cuda="lower_precision_fp")
mm = public(mm_op)

# --- bmm -------------------------------------------------------------------------------------------------------------

bmm_op = Planned("bmm(Tensor self, Tensor mat2) -> Tensor", out="out")


@bmm_op.meta
def bmm_meta(self: Tensor, mat2: Tensor) -> Meta:
    check_batches(self, mat2)
    check_not_bool("bmm", self)
    if self._dtype is not mat2._dtype:
        raise RuntimeError(f"expected scalar type {self._dtype.tensor_name} but found {mat2._dtype.tensor_name}")
    shape = (self._shape[0], self._shape[1], mat2._shape[2])
    return Meta(shape, self._dtype, common_device(self, mat2))


@bmm_op.body
def bmm_body(out: Tensor, self: Tensor, mat2: Tensor) -> None:
    check_out_dtype(out, self._dtype)
    kernels.matmul(out._operand, self._operand, mat2._operand, conj=conjugated(out, self, mat2))


@bmm_op.loop
def bmm_loop(out: Tensor, self: Tensor, mat2: Tensor) -> Run:
    return kernels.ready_matmul(out._operand, self._operand, mat2._operand, conj=conjugated(out, self, mat2))


bmm_op.understands("Conjugate")
bmm_op.derivative(
    self=lambda grad, mat2: grad.bmm(mat2.transpose(1, 2)),
    mat2=lambda grad, self: self.transpose(1, 2).bmm(grad),
)
bmm_op.forward("multilinear")
bmm_op.autocast(cpu="lower_precision_fp", cuda="lower_precision_fp")
bmm = public(bmm_op)


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


# --- addmm, baddbmm --------------------------------------------------------------------------------------------------

addmm_op = Accumulated(f"addmm(Tensor self, Tensor mat1, Tensor mat2, {SCALES}) -> Tensor", inplace=True, out="out")


@addmm_op.meta
def addmm_meta(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> Meta:
    for name, x in (("mat1", mat1), ("mat2", mat2)):
        if len(x._shape) != 2:
            raise RuntimeError(f"{name} must be a matrix, got {len(x._shape)}-D tensor")
    check_inner(mat1, mat2)
    if not self._dtype is mat1._dtype is mat2._dtype:
        other = mat2._dtype if mat2._dtype is not self._dtype else mat1._dtype
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {self._dtype.tensor_name} and {other.tensor_name}"
        )
    check_not_bool("addmm_impl_cpu_", self)
    shape = (mat1._shape[0], mat2._shape[1])
    check_expands(self, shape)
    return Meta(shape, self._dtype, common_device(self, mat1, mat2))


@addmm_op.body
def addmm_body(out: Tensor, self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> None:
    check_out_dtype(out, self._dtype)
    alpha, beta = whole(out, alpha, beta)
    conj = conjugated(out, mat1, mat2, self)
    kernels.addmm(out._operand, expanded(self, out), mat1._operand, mat2._operand, alpha=alpha, beta=beta, conj=conj)


@addmm_op.loop
def addmm_loop(out: Tensor, self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any, alpha: Any) -> Run:
    alpha, beta = whole(out, alpha, beta)
    conj, added = conjugated(out, mat1, mat2, self), expanded(self, out)
    return kernels.ready_addmm(out._operand, added, mat1._operand, mat2._operand, alpha=alpha, beta=beta, conj=conj)


def expanded(self: Tensor, out: Tensor) -> Operand:
    """The added tensor, broadcast to the shape of the result."""
    steps = kernels.broadcast_strides(self._shape, self._stride, out._shape)
    return self._operand._replace(shape=tuple(out._shape), strides=steps)


addmm_op.understands("Conjugate")
addmm_op.derivative(
    self=lambda grad, beta: scale(grad, beta),
    mat1=lambda grad, mat2, mat1_shape, mat1_stride, alpha: scale(
        left_gradient(grad, mat2, mat1_shape, mat1_stride), alpha
    ),
    mat2=lambda grad, mat1, mat2_shape, mat2_stride, alpha: scale(
        right_gradient(grad, mat1, mat2_shape, mat2_stride), alpha
    ),
)
addmm_op.forward(tangent_of_sum(mm_op))
addmm_op.autocast(cpu="lower_precision_fp", cuda="lower_precision_fp")
addmm = public(addmm_op)

baddbmm_op = Accumulated(
    f"baddbmm(Tensor self, Tensor batch1, Tensor batch2, {SCALES}) -> Tensor", inplace=True, out="out"
)


@baddbmm_op.meta
def baddbmm_meta(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Meta:
    check_batches(batch1, batch2)
    if not self._dtype is batch1._dtype is batch2._dtype:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {c_name(self._dtype)}, batch1: {c_name(batch1._dtype)}, "
            f"batch2: {c_name(batch2._dtype)}"
        )
    check_not_bool("baddbmm", self)
    shape = (batch1._shape[0], batch1._shape[1], batch2._shape[2])
    check_expands(self, shape)
    return Meta(shape, self._dtype, common_device(self, batch1, batch2))


@baddbmm_op.body
def baddbmm_body(out: Tensor, self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> None:
    addmm_body(out, self, batch1, batch2, beta, alpha)


@baddbmm_op.loop
def baddbmm_loop(out: Tensor, self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Run:
    return addmm_loop(out, self, batch1, batch2, beta, alpha)


baddbmm_op.understands("Conjugate")
baddbmm_op.derivative(
    self=lambda grad, beta: scale(grad, beta),
    batch1=lambda grad, batch2, alpha: scale(grad.bmm(batch2.transpose(1, 2)), alpha),
    batch2=lambda grad, batch1, alpha: scale(batch1.transpose(1, 2).bmm(grad), alpha),
)
baddbmm_op.forward(tangent_of_sum(bmm_op))
baddbmm_op.autocast(cpu="lower_precision_fp", cuda="lower_precision_fp")
baddbmm = public(baddbmm_op)

# --- vectors: mv, addmv, dot -----------------------------------------------------------------------------------------

mv_op = Planned("mv(Tensor self, Tensor vec) -> Tensor", out="out")
addmv_op = Structured(f"addmv(Tensor self, Tensor mat, Tensor vec, {SCALES}) -> Tensor", inplace=True, out="out")


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
    check_not_bool("addmv_impl_cpu", mat)


@mv_op.meta
def mv_meta(self: Tensor, vec: Tensor) -> Meta:
    check_mv((self._shape[0] if self._shape else 1,), vec._dtype, self, vec)
    return Meta(self._shape[:1], self._dtype, common_device(self, vec))


@mv_op.body
def mv_body(out: Tensor, self: Tensor, vec: Tensor) -> None:
    check_out_dtype(out, self._dtype)
    kernels.matmul(column(out), self._operand, column(vec))


@mv_op.loop
def mv_loop(out: Tensor, self: Tensor, vec: Tensor) -> Run:
    return kernels.ready_matmul(column(out), self._operand, column(vec))


def column(vec: Tensor) -> Any:
    """A vector as a matrix with one column."""
    return vec._operand._replace(shape=(vec._shape[0], 1), strides=(vec._stride[0], 1))


mv_op.derivative(
    self=lambda grad, vec: grad.outer(vec),
    vec=lambda grad, self: self.t().mv(grad),
)
mv_op.forward("multilinear")
mv_op.autocast(cuda="lower_precision_fp")
mv = public(mv_op)


@addmv_op.meta
def addmv_meta(self: Tensor, mat: Tensor, vec: Tensor, beta: Any, alpha: Any) -> Meta:
    check_mv(tuple(self._shape), self._dtype, mat, vec)
    return Meta(mat._shape[:1], self._dtype, common_device(self, mat, vec))


@addmv_op.body
def addmv_body(out: Tensor, self: Tensor, mat: Tensor, vec: Tensor, beta: Any, alpha: Any) -> None:
    check_out_dtype(out, self._dtype)
    n = mat._shape[0]
    step = self._stride[0] if self._shape and self._shape[0] == n else 0
    bias = self._operand._replace(shape=(n, 1), strides=(step, 1))
    alpha, beta = whole(self, alpha, beta)
    kernels.matmul(column(out), mat._operand, column(vec), bias, alpha=alpha, beta=beta)


addmv_op.derivative(
    self=lambda grad, beta: scale(grad, beta),
    mat=lambda grad, vec, alpha: scale(grad.outer(vec), alpha),
    vec=lambda grad, mat, alpha: scale(mat.t().mv(grad), alpha),
)
addmv_op.forward(tangent_of_sum(mv_op))
addmv_op.autocast(cuda="lower_precision_fp")
addmv = public(addmv_op)

dot_op = Planned("dot(Tensor self, Tensor tensor) -> Tensor", out="out")


@dot_op.meta
def dot_meta(self: Tensor, tensor: Tensor) -> Meta:
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
    check_not_bool("dot", self)
    return Meta((), self._dtype, common_device(self, tensor))


@dot_op.body
def dot_body(out: Tensor, self: Tensor, tensor: Tensor) -> None:
    check_out_dtype(out, self._dtype)
    kernels.matmul(as_matrix(out), row(self), column(tensor), conj=conjugated(out, self, tensor))


@dot_op.loop
def dot_loop(out: Tensor, self: Tensor, tensor: Tensor) -> Run:
    return kernels.ready_matmul(as_matrix(out), row(self), column(tensor), conj=conjugated(out, self, tensor))


def row(vec: Tensor) -> Any:
    """A vector as a matrix with one row."""
    return vec._operand._replace(shape=(1, vec._shape[0]), strides=(1, vec._stride[0]))


def as_matrix(number: Tensor) -> Any:
    return number._operand._replace(shape=(1, 1), strides=(1, 1))


dot_op.understands("Conjugate")
dot_op.derivative(self=lambda grad, tensor: grad * tensor, tensor=lambda grad, self: grad * self)
dot_op.forward("multilinear")
dot_op.autocast(cuda="promote")
dot = public(dot_op)

vdot_op = Planned("vdot(Tensor self, Tensor other) -> Tensor", out="out")


@vdot_op.meta
def vdot_meta(self: Tensor, other: Tensor) -> Meta:
    return dot_meta(self, other)


@vdot_op.loop
def vdot_loop(out: Tensor, self: Tensor, other: Tensor) -> Run:
    """The product of the conjugate of `self` with `other`, as the inner product of complex vectors is defined."""
    first, second, none = conjugated(out, self, other)
    conj = (first != self._dtype.is_complex, second, none)
    return kernels.ready_matmul(as_matrix(out), row(self), column(other), conj=conj)


vdot_op.understands("Conjugate")
vdot_op.derivative(self=lambda grad, other: grad.conj() * other, other=lambda grad, self: grad * self, for_complex=True)
vdot_op.forward("multilinear")
vdot_op.autocast(cuda="promote")
vdot = public(vdot_op)

outer_op = Operator("outer(Tensor self, Tensor vec2) -> Tensor", out="out")
ger_op = Operator("ger(Tensor self, Tensor vec2) -> Tensor", out="out")


@outer_op.implicit
def outer_composite(self: Any, vec2: Any) -> Any:
    for name, x in (("self", self), ("vec2", vec2)):
        if x.dim() != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {x.dim()}-D")
    return self.unsqueeze(1).mul(vec2.unsqueeze(0)) if STATE.get().levels else self.reshape(self.shape[0], 1).mul(vec2)


@ger_op.implicit
def ger_composite(self: Any, vec2: Any) -> Any:
    """The older name of outer."""
    return outer_op.functional(self, vec2)


resize_and_copy_into_out(outer_op)
resize_and_copy_into_out(ger_op)
outer = public(outer_op)
ger = public(ger_op)

# --- matmul ----------------------------------------------------------------------------------------------------------

matmul_op = Operator("matmul(Tensor self, Tensor other) -> Tensor", out="out")


@matmul_op.implicit
@inline
def matmul_composite(self: Any, other: Any) -> Any:
    """A product by the numbers of dimensions: vectors, matrices, and batches of matrices, which broadcast."""
    if len(self._shape) == 2 and len(other._shape) == 2:
        return call(mm_op.functional, [self, other])
    if len(self._shape) == 2 and len(other._shape) == 1:
        return call(mv_op.functional, [self, other])
    return matmul_slow(self, other)


def matmul_slow(self: Any, other: Any) -> Any:
    """The same where not both are matrices."""
    a, b = len(self._shape), len(other._shape)
    if a == 0 or b == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a}D and {b}D")
    if a == 1 and b == 1:
        return dot_op.functional(self, other)
    if a == 1 and b == 2:
        return mm_op.functional(self.unsqueeze(0), other).squeeze_(0)
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
    return all(stride[d] == stride[d + 1] * shape[d + 1] for d in range(len(shape) - 2))


def folded(large: Any, small: Any) -> Any:
    """large[..., n, k] @ small[k, m] or small[k], the batch laid out as rows."""
    *outer_shape, k = large.shape
    rows = large.reshape(math.prod(outer_shape), k)
    if small.dim() == 1:
        return ops.aten._unsafe_view.default(mv_op.functional(rows, small), outer_shape)
    product = mm_op.functional(rows, small)
    return ops.aten._unsafe_view.default(product, [*outer_shape, small.shape[1]])


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
    return ops.aten._unsafe_view.default(bmm_op.functional(left, right), shape)


@matmul_op.kernel_out("CompositeExplicitAutograd")
def matmul_into_out(self: Tensor, other: Tensor, out: Tensor) -> Tensor:
    """Two matrices are multiplied into `out`; other products are made and copied."""
    if len(self._shape) == 2 and len(other._shape) == 2:
        return ops.aten.mm.out(self, other, out=out)
    return filled(out, call(matmul_op.functional, [self, other]), casts=True)


matmul_op.autocast(cpu="lower_precision_fp", cuda="lower_precision_fp")
matmul = public(matmul_op)

# --- linear ----------------------------------------------------------------------------------------------------------

linear_op = Operator("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", out="out")


@linear_op.implicit
@inline
def linear_composite(input: Any, weight: Any, bias: Any) -> Any:
    """input @ weight.T + bias: one addmm where the rows of the input can be had without a copy."""
    if bias is None:
        return call(matmul_op.functional, [input, call(t_op.functional, [weight])])
    if len(input._shape) == 2:
        return call(addmm_op.functional, [bias, input, call(t_op.functional, [weight]), 1, 1])
    if len(input._shape) == 3 and len(bias._shape) == 1 and rows_lie_in_turn(input):  # as in a transformer
        batch, n, k = input._shape
        rows = call(view_op.functional, [input, [batch * n, k]])
        product = call(addmm_op.functional, [bias, rows, call(t_op.functional, [weight]), 1, 1])
        return call(view_op.functional, [product, [batch, n, weight._shape[0]]])
    return linear_slow(input, weight, bias)


@inline
def rows_lie_in_turn(x: Any) -> bool:
    """Whether the rows of a batch of matrices follow each other at one step."""
    return x._stride[0] == x._stride[1] * x._shape[1]


def linear_slow(input: Any, weight: Any, bias: Any) -> Any:
    """The same for an input of any other number of dimensions, and a bias.

    Under a transform one vector stands for many, which are one matrix: as a vector it needs no views of it.
    """
    if len(input._shape) == len(bias._shape) == 1 and STATE.get().levels:
        return addmv_op.functional(bias, weight, input)
    if bias.dim() <= 1 and input.dim() != 0 and rows_are_a_view(input):
        *outer_shape, k = input.shape
        rows = input.view(math.prod(outer_shape), k)
        return addmm_op.functional(bias, rows, weight.t()).view([*outer_shape, weight.shape[0]])
    return matmul_op.functional(input, weight.t()).add(bias)


linear_op.autocast(cpu="lower_precision_fp", cuda="lower_precision_fp")
copy_into_out(linear_op)
linear = public(linear_op, method=False, module="nn")
