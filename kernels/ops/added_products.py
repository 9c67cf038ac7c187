"""A tensor plus products: addbmm, the sum of a batch of products; addr, the outer product of two vectors.

Read next: linalg.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, result_type, wrap_dim

from ..declare.public import public
from ..declare.structured import Meta, Structured, check_out_dtype, common_device
from .linalg import SCALES, check_expands, check_not_bool, expanded, scale, whole

# --- addbmm ----------------------------------------------------------------------------------------------------------

addbmm_op = Structured(
    f"addbmm(Tensor self, Tensor batch1, Tensor batch2, {SCALES}) -> Tensor", inplace=True, out="out", refuses="bool"
)


@addbmm_op.meta
def addbmm_meta(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Meta:
    for x in (batch1, batch2):
        wrap_dim(2, len(x._shape))
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
    check_not_bool("addmm_impl_cpu_", self)
    return Meta((n, m), self._dtype, common_device(self, batch1, batch2))


@addbmm_op.body
def addbmm_body(out: Tensor, self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> None:
    """beta self + alpha (A1 B1 + A2 B2 + ...), one product after the other."""
    check_out_dtype(out, self._dtype)
    alpha, beta = whole(out, alpha, beta)
    count, n, k = batch1._shape
    added = expanded(self, out)
    if not count:  # a product over no columns leaves what is added
        nothing = batch1._operand._replace(shape=(n, 0), strides=(0, 1))
        none = batch2._operand._replace(shape=(0, out._shape[1]), strides=(0, 1))
        kernels.addmm(out._operand, added, nothing, none, alpha=alpha, beta=beta)
    for i in range(count):
        a, b = (matrix(x, i) for x in (batch1, batch2))
        kernels.addmm(out._operand, added, a, b, alpha=alpha, beta=beta)
        added, beta = out._operand, 1


def matrix(batch: Tensor, i: int) -> kernels.Operand:
    """Matrix i of a batch."""
    step, *strides = batch._stride
    return batch._operand._replace(
        shape=tuple(batch._shape[1:]), strides=tuple(strides), offset=batch._operand.offset + i * step
    )


addbmm_op.derivative(
    self=lambda grad, beta: scale(grad, beta),
    batch1=lambda grad, batch2, alpha: scale(over_batch(grad, batch2).bmm(batch2.transpose(1, 2)), alpha),
    batch2=lambda grad, batch1, alpha: scale(batch1.transpose(1, 2).bmm(over_batch(grad, batch1)), alpha),
)


def over_batch(grad: Any, batch: Any) -> Any:
    """The gradient of a sum: the same for each matrix."""
    return grad.unsqueeze(0).expand([batch.shape[0], *grad.shape])


addbmm_op.autocast(cpu="lower_precision_fp", cuda="lower_precision_fp")
addbmm = public(addbmm_op, doc="Returns beta self + alpha times the sum of the products of two batches of matrices.")

# --- addr ------------------------------------------------------------------------------------------------------------

addr_op = Structured(f"addr(Tensor self, Tensor vec1, Tensor vec2, {SCALES}) -> Tensor", inplace=True, out="out")


@addr_op.meta
def addr_meta(self: Tensor, vec1: Tensor, vec2: Tensor, beta: Any, alpha: Any) -> Meta:
    for name, vec in (("vec1", vec1), ("vec2", vec2)):
        if len(vec._shape) != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {len(vec._shape)}-D")
    kind = result_type(self, vec1, vec2)
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if kind.category <= dtypes.INTEGER and isinstance(factor, float):
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    shape = (vec1._shape[0], vec2._shape[0])
    check_expands(self, shape)
    return Meta(shape, kind, common_device(self, vec1, vec2))


@addr_op.body
def addr_body(out: Tensor, self: Tensor, vec1: Tensor, vec2: Tensor, beta: Any, alpha: Any) -> None:
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


addr_op.derivative(
    self=lambda grad, beta: scale(grad, beta),
    vec1=lambda grad, vec2, alpha: scale(grad.mv(vec2), alpha),
    vec2=lambda grad, vec1, alpha: scale(grad.t().mv(vec1), alpha),
)
addr_op.autocast(cuda="lower_precision_fp")
addr = public(addr_op, doc="Returns beta self + alpha times the outer product of two vectors.")
