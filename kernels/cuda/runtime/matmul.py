"""Products of matrices and vectors on a device: each is one launch of kernels/cuda/matmul.py, with its operands seen as
matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, result_type
from redispatch.kernels import Operand, broadcast_strides
from redispatch.kernels.cuda import blas
from redispatch.kernels.cuda.matmul import product
from redispatch.kernels.ops import linalg
from redispatch.kernels.ops.linalg import conjugated, whole
from redispatch.kernels.settings import settings

from .operands import allocator, operand
from .structured import ByWork, InParts, Task


def task(
    tensors: Sequence[int],
    out: Operand,
    a: Operand,
    b: Operand,
    more: Operand | None,
    alpha: Any = 1,
    beta: Any = 0,
    conj: Sequence[bool] = (False, False, False),
) -> list[Task]:
    """One launch, or none where the result has no elements. NVIDIA's library, where it is and can, takes the product;
    what is added is then put into the result before."""
    if allocator().driver.blas is not None and not (conj[0] or conj[1]):
        adds = more is not None and beta != 0
        by_library = blas.product(out, a, b, alpha, beta if adds else 0, may_be_rounded)
        if by_library is not None:
            before = (
                task(tensors, out, nothing(a, -1), nothing(b, -2), more, 0, 1, (False, False, conj[2])) if adds else []
            )
            return [*before, Task(by_library, tuple(tensors[:3]), ())]
    found = product(out, a, b, more, alpha, beta, conj)
    return [] if found is None else [Task(found[0], tuple(tensors), found[1])]


def nothing(x: Operand, dim: int) -> Operand:
    """A factor of which nothing is left to add up."""
    shape = list(x.shape)
    shape[dim] = 0
    return x._replace(shape=tuple(shape))


def may_be_rounded() -> bool:
    """Whether factors of float32 products may be rounded, by `set_float32_matmul_precision`."""
    return settings().precision != "highest"


def matrices(out: Tensor, self: Tensor, mat2: Tensor) -> list[Task]:
    """mm, bmm"""
    conj = conjugated(out, self, mat2)
    return task((0, 1, 2, 0), operand(out), operand(self), operand(mat2), None, conj=conj)


def added(out: Tensor, self: Tensor, a: Tensor, b: Tensor, beta: Any, alpha: Any) -> list[Task]:
    """addmm, baddbmm"""
    alpha, beta = whole(out, alpha, beta)
    conj, more = conjugated(out, a, b, self), broadcast(self, out._shape)
    return task((0, 2, 3, 1), operand(out), operand(a), operand(b), more, alpha, beta, conj)


def broadcast(x: Tensor, shape: Sequence[int]) -> Operand:
    steps = broadcast_strides(x._shape, x._stride, tuple(shape))
    return operand(x)._replace(shape=tuple(shape), strides=steps)


def column(x: Operand) -> Operand:
    """A vector as a matrix with one column."""
    return x._replace(shape=(*x.shape, 1), strides=(*x.strides, 1))


def row(x: Operand) -> Operand:
    """A vector as a matrix with one row."""
    return x._replace(shape=(1, *x.shape), strides=(1, *x.strides))


def with_vector(out: Tensor, self: Tensor, vec: Tensor) -> list[Task]:
    """mv"""
    return task((0, 1, 2, 0), column(operand(out)), operand(self), column(operand(vec)), None)


def added_with_vector(out: Tensor, self: Tensor, mat: Tensor, vec: Tensor, beta: Any, alpha: Any) -> list[Task]:
    """addmv"""
    alpha, beta = whole(out, alpha, beta)
    more = column(broadcast(self, out._shape))
    return task((0, 2, 3, 1), column(operand(out)), operand(mat), column(operand(vec)), more, alpha, beta)


def vectors(out: Tensor, self: Tensor, other: Tensor) -> list[Task]:
    """dot"""
    conj = conjugated(out, self, other)
    return task((0, 1, 2, 0), column(column(operand(out))), row(operand(self)), column(operand(other)), None, conj=conj)


def vectors_conjugated(out: Tensor, self: Tensor, other: Tensor) -> list[Task]:
    """vdot"""
    first, second, none = conjugated(out, self, other)
    conj = (first != self._dtype.is_complex, second, none)
    return task((0, 1, 2, 0), column(column(operand(out))), row(operand(self)), column(operand(other)), None, conj=conj)


def sum_of_products(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Tensor:
    """addbmm: one product over the elements of all the rows that belong together. `self` may have integers' factors."""
    count, n, k = batch1._shape
    rows = batch1.transpose(0, 1).reshape([n, count * k])
    return ops.aten.addmm.default(self, rows, batch2.reshape([count * k, batch2._shape[2]]), beta=beta, alpha=alpha)


def outer_sum(self: Tensor, vec1: Tensor, vec2: Tensor, beta: Any, alpha: Any) -> Tensor:
    """addr: a product over one column; that of booleans is made of integers."""
    kind = result_type(self, vec1, vec2)
    truth = kind is dtypes.bool
    if truth:
        beta, alpha = int(bool(beta)), int(bool(alpha))
    given, a, b = (x.to(dtypes.int32 if truth else kind) for x in (self, vec1, vec2))
    return ops.aten.addmm.default(given, a.unsqueeze(1), b.unsqueeze(0), beta=beta, alpha=alpha).to(kind)


OPERATORS = (
    ByWork(linalg.mm.op, matrices),
    ByWork(linalg.bmm.op, matrices),
    ByWork(linalg.addmm.op, added),
    ByWork(linalg.baddbmm.op, added),
    ByWork(linalg.mv.op, with_vector),
    ByWork(linalg.addmv.op, added_with_vector),
    ByWork(linalg.dot.op, vectors),
    ByWork(linalg.vdot.op, vectors_conjugated),
    InParts(linalg.addbmm.op, sum_of_products),
    InParts(linalg.addr.op, outer_sum),
)
