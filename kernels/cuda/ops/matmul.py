"""Products of matrices on a GPU: `out = beta added + alpha a b`, in batches, of factors that lie anyhow.

Two forms:

- tiles: a block makes 64 x 64 results, or 64 x 32 of types of 8 bytes or more. It carries STEP columns of `a` and rows
  of `b` at a time into shared memory, from where a thread reads 4 + 4 numbers for 4 x 4 sums, which it keeps in
  registers. Factors are read by their strides, along whichever of them is 1: a transposed one is no copy.
- thin: for a product with one row or one column, a block for each result, as in a reduction; or, where neighbouring
  results read neighbouring numbers, for 32.

Sums are formed in float32 for 16-bit floats, and in int64 for integers, which wrap when they are stored. An operator is
one launch, with its operands seen as matrices. Read next: convolution.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined, assignment"
# Names like load_a, store_out, zero are put there by `Written`.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, result_type
from redispatch.dispatch.tensor.operand import DTYPES, Operand
from redispatch.kernels import broadcast_strides
from redispatch.kernels.engine.convert import as_is
from redispatch.kernels.engine.elementwise import Number
from redispatch.kernels.engine.primitives import double_of_bits, float_of_bits
from redispatch.kernels.ops import linalg
from redispatch.kernels.ops.linalg import conjugated, whole
from redispatch.kernels.settings import settings

from .. import blas
from ..blas import in_batches
from ..compiler import CUDA as cuda
from ..elementwise import as_argument
from ..launch import Launch
from ..runtime.operands import allocator, operand
from ..runtime.structured import Task, composite_of, work_of
from ..templates import (
    THREADS,
    WARP,
    Written,
    accumulating,
    block_total,
    conjugate,
    strip_total,
    threads_for,
)

TILE, STEP = 64, 16
ROW = TILE + 1  # of shared memory: one more, so that a column lies in different banks
SHARED = STEP * ROW
int32, int64, complex64 = np.int32, np.int64, np.complex64


def tiled_product(
    out, a, b, added, results, rows, columns, inner, adds, alpha, alpha_i, beta, beta_i, out_batch, out_row, out_column,
    a_batch, a_row, a_inner, b_batch, b_inner, b_column, added_batch, added_row, added_column,
):  # fmt: skip
    """A block makes a tile of TILE x WIDTH. Thread (i, j) of 16 x 16 has rows i, i + 16, ... of it, columns j, ..."""
    left = cuda.shared.array(SHARED, compute)
    right = cuda.shared.array(SHARED, compute)
    sums = cuda.local.array(SUMS, compute)  # registers: all loops over it are written out by the compiler
    thread, block = int64(cuda.threadIdx.x), int64(cuda.blockIdx.x)
    down, across = (rows + (TILE - 1)) // TILE, (columns + (WIDTH - 1)) // WIDTH
    batch = block // (down * across)
    block -= batch * down * across
    top = block // across * TILE
    side = (block - block // across * across) * WIDTH
    i, j = thread >> 4, thread & 15
    for part in range(SUMS):
        sums[part] = zero
    start = int64(0)
    while start < inner:
        for part in range(4):
            element = thread + part * THREADS
            at, row = (element & 15, element >> 4) if a_inner == 1 else (element >> 6, element & 63)
            value = zero
            if top + row < rows and start + at < inner:
                value = of_a(load_a(a[batch * a_batch + (top + row) * a_row + (start + at) * a_inner]))
            left[at * ROW + row] = value
        for part in range(EACH):
            element = thread + part * THREADS
            at, column = (element & 15, element >> 4) if b_inner == 1 else (element >> SHIFT, element & (WIDTH - 1))
            value = zero
            if side + column < columns and start + at < inner:
                value = of_b(load_b(b[batch * b_batch + (start + at) * b_inner + (side + column) * b_column]))
            right[at * ROW + column] = value
        cuda.syncthreads()
        for at in range(STEP):
            row, column = at * ROW + i, at * ROW + j
            x0, x1, x2, x3 = left[row], left[row + 16], left[row + 32], left[row + 48]
            for part in range(EACH):
                y = right[column + part * 16]
                sums[part] += x0 * y
                sums[part + EACH] += x1 * y
                sums[part + 2 * EACH] += x2 * y
                sums[part + 3 * EACH] += x3 * y
        cuda.syncthreads()
        start += STEP
    for part in range(SUMS):
        row, column = top + i + part // EACH * 16, side + j + part % EACH * 16
        if row < rows and column < columns:
            total = factor(alpha, alpha_i) * sums[part]
            if adds == 1:
                more = of_added(load_added(added[batch * added_batch + row * added_row + column * added_column]))
                total += factor(beta, beta_i) * more
            out[batch * out_batch + row * out_row + column * out_column] = store_out(total)


def thin_product(
    out, a, b, added, results, rows, columns, inner, adds, alpha, alpha_i, beta, beta_i, out_batch, out_row, out_column,
    a_batch, a_row, a_inner, b_batch, b_inner, b_column, added_batch, added_row, added_column,
):  # fmt: skip
    """`TOGETHER` neighbouring results a block, whose threads share out the elements of the sums."""
    parts = cuda.shared.array(THREADS, compute)
    thread, threads = int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    result = int64(cuda.blockIdx.x) * TOGETHER + thread % TOGETHER
    batch = result // (rows * columns)
    rest = result - batch * rows * columns
    row = rest // columns
    column = rest - row * columns
    total = zero
    if result < results:
        at = thread // TOGETHER
        while at < inner:
            x = of_a(load_a(a[batch * a_batch + row * a_row + at * a_inner]))
            total += x * of_b(load_b(b[batch * b_batch + at * b_inner + column * b_column]))
            at += threads // TOGETHER
    total = combine_total(total, parts)
    if thread < TOGETHER and result < results:
        total = factor(alpha, alpha_i) * total
        if adds == 1:
            more = of_added(load_added(added[batch * added_batch + row * added_row + column * added_column]))
            total += factor(beta, beta_i) * more
        out[batch * out_batch + row * out_row + column * out_column] = store_out(total)


# --- factors ----------------------------------------------------------------------------------------------------------


def complex64_of(real, imaginary):
    return complex64(complex(float_of_bits(int32(real)), float_of_bits(int32(imaginary))))


def complex128_of(real, imaginary):
    return complex(double_of_bits(real), double_of_bits(imaginary))


def float32_of(real, imaginary):
    return float_of_bits(int32(real))


def float64_of(real, imaginary):
    return double_of_bits(real)


def int64_of(real, imaginary):
    return real


FACTORS: dict[str, Callable] = {
    "complex64": complex64_of,
    "complex128": complex128_of,
    "float32": float32_of,
    "float64": float64_of,
    "int64": int64_of,
}


def factor_arguments(number: Number, compute: str) -> list[int]:
    """The two int64 of which a kernel makes a factor."""
    if DTYPES[compute].kind != "complex":
        return [as_argument(number, compute), 0]
    real, whole = {"complex64": "float32", "complex128": "float64"}[compute], complex(number)
    return [as_argument(whole.real, real), as_argument(whole.imag, real)]


# --- from operands to a launch ----------------------------------------------------------------------------------------

ARRAYS = ("out", "a", "b", "added")
TILED, THIN = Written(tiled_product, ARRAYS), Written(thin_product, ARRAYS)


def tile_of(compute: str) -> dict[str, int]:
    """The shape of a tile: EACH columns a thread, WIDTH of them together. Wide types leave too few registers for 4."""
    each = 4 if np.dtype(compute).itemsize <= 4 else 2
    return {"EACH": each, "SUMS": 4 * each, "WIDTH": 16 * each, "SHIFT": (16 * each).bit_length() - 1}


def product(
    out: Operand,
    a: Operand,
    b: Operand,
    added: Operand | None,
    alpha: Number = 1,
    beta: Number = 0,
    conj: Sequence[bool] = (False, False, False),
) -> tuple[Launch, tuple[int, ...]] | None:
    """The launch that fills `out`, and what it is told behind the addresses of out, a, b and added; None for no
    elements. Only how the operands look is read, and all have one dtype. `added` has the shape of `out`."""
    adds = added is not None and beta != 0  # else its NaN would show
    out, a, b = in_batches(out), in_batches(a), in_batches(b)
    more = in_batches(added) if added is not None else out
    (count, rows, columns), inner = out.shape, a.shape[2]
    results = count * rows * columns
    if not results:
        return None
    compute = accumulating(out.dtype)
    turned = [conjugate if flag and DTYPES[compute].kind == "complex" else as_is for flag in conj]
    given: dict[str, object] = {
        **dict(zip(("of_a", "of_b", "of_added"), turned, strict=True)),
        "factor": FACTORS[compute],
    }
    numbers = [*factor_arguments(alpha, compute), *factor_arguments(beta, compute)]
    steps = [step for x in (out, a, b, more) for step in x.strides]
    rest = (results, rows, columns, inner, int(adds), *numbers, *steps)
    dtypes = (out.dtype,) * 4
    if min(rows, columns) > 1:
        shape = tile_of(compute)
        blocks = count * -(-rows // TILE) * -(-columns // shape["WIDTH"])
        return TILED.launch(compute, dtypes, blocks, **given, **shape), rest
    beside = b.strides[2] == 1 if rows == 1 else a.strides[1] == 1
    together = WARP if beside and max(rows, columns) > 1 else 1
    given |= {"TOGETHER": together, "combine_total": strip_total if together > 1 else block_total}
    threads = THREADS if together > 1 else threads_for(inner)
    return THIN.launch(compute, dtypes, -(-results // together), threads, **given), rest


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


@work_of(linalg.mm.op, linalg.bmm.op)
def matrices(out: Tensor, self: Tensor, mat2: Tensor) -> list[Task]:
    """mm, bmm"""
    conj = conjugated(out, self, mat2)
    return task((0, 1, 2, 0), operand(out), operand(self), operand(mat2), None, conj=conj)


@work_of(linalg.addmm.op, linalg.baddbmm.op)
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


@work_of(linalg.mv.op)
def with_vector(out: Tensor, self: Tensor, vec: Tensor) -> list[Task]:
    """mv"""
    return task((0, 1, 2, 0), column(operand(out)), operand(self), column(operand(vec)), None)


@work_of(linalg.addmv.op)
def added_with_vector(out: Tensor, self: Tensor, mat: Tensor, vec: Tensor, beta: Any, alpha: Any) -> list[Task]:
    """addmv"""
    alpha, beta = whole(out, alpha, beta)
    more = column(broadcast(self, out._shape))
    return task((0, 2, 3, 1), column(operand(out)), operand(mat), column(operand(vec)), more, alpha, beta)


@work_of(linalg.dot.op)
def vectors(out: Tensor, self: Tensor, other: Tensor) -> list[Task]:
    """dot"""
    conj = conjugated(out, self, other)
    return task((0, 1, 2, 0), column(column(operand(out))), row(operand(self)), column(operand(other)), None, conj=conj)


@work_of(linalg.vdot.op)
def vectors_conjugated(out: Tensor, self: Tensor, other: Tensor) -> list[Task]:
    """vdot"""
    first, second, none = conjugated(out, self, other)
    conj = (first != self._dtype.is_complex, second, none)
    return task((0, 1, 2, 0), column(column(operand(out))), row(operand(self)), column(operand(other)), None, conj=conj)


@composite_of("addbmm")
def sum_of_products(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Any, alpha: Any) -> Tensor:
    """addbmm: one product over the elements of all the rows that belong together. `self` may have integers' factors."""
    count, n, k = batch1._shape
    rows = batch1.transpose(0, 1).reshape([n, count * k])
    return ops.aten.addmm.default(self, rows, batch2.reshape([count * k, batch2._shape[2]]), beta=beta, alpha=alpha)


@composite_of("addr")
def outer_sum(self: Tensor, vec1: Tensor, vec2: Tensor, beta: Any, alpha: Any) -> Tensor:
    """addr: a product over one column; that of booleans is made of integers."""
    kind = result_type(self, vec1, vec2)
    truth = kind is dtypes.bool
    if truth:
        beta, alpha = int(bool(beta)), int(bool(alpha))
    given, a, b = (x.to(dtypes.int32 if truth else kind) for x in (self, vec1, vec2))
    return ops.aten.addmm.default(given, a.unsqueeze(1), b.unsqueeze(0), beta=beta, alpha=alpha).to(kind)
