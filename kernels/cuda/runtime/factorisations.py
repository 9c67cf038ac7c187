"""Factorisations and solutions on a device: what kernels/cuda/factorisations.py is told, for batches of matrices.

A kernel sees a batch as so many matrices at equal distances; an argument that lies otherwise, or whose batch is
broadcast unevenly, is copied before. On a card that has NVIDIA's libraries, these factor matrices that are too large
for shared memory, and solve their triangles. A function here fills results that have their shape and strides already,
as the CPU's bodies do. Shapes, strides and errors are said by the operators themselves. Read next: matrices.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from redispatch.dispatch.tensor import Size, Tensor, dtypes, empty, view_over
from redispatch.kernels import DTYPES, broadcast_strides
from redispatch.kernels.cuda import Launch, blas, solver
from redispatch.kernels.cuda import factorisations as kernels
from redispatch.kernels.cuda.templates import THREADS, WARP, Written, threads_for
from redispatch.kernels.engine.convert import as_is

from .async_errors import late_errors
from .copies import copied, copy_on_device
from .operands import allocator
from .structured import ERRORS, Task, launched

SHARED_BYTES = 40 << 10  # of a block's 48 KB, a part of which reductions need
SMALL = 1024  # elements: a small piece of shared memory leaves room for more blocks

# --- where matrices lie -----------------------------------------------------------------------------------------------


class Laid(NamedTuple):
    """Matrices in memory: the steps from one matrix, row, column to the next."""

    step: int
    row: int
    column: int

    @property
    def turned(self) -> Laid:
        """The transposed matrices."""
        return Laid(self.step, self.column, self.row)


class Batch(NamedTuple):
    """Matrices of a tensor: how many there are of how many rows and columns, and where."""

    x: Tensor
    many: int
    rows: int
    columns: int
    laid: Laid

    @property
    def turned(self) -> Batch:
        return Batch(self.x, self.many, self.columns, self.rows, self.laid.turned)

    def first(self, rows: int, columns: int) -> Batch:
        """The first rows and columns of each."""
        return self._replace(rows=rows, columns=columns)


def step_of(x: Tensor, core: int, batch: Sequence[int]) -> int | None:
    """How far the matrices of this batch lie apart in `x`, which repeats its own; None where they lie unevenly."""
    own = len(x._shape) - core
    steps = broadcast_strides(x._shape[:own], x._stride[:own], tuple(batch))
    dims = [(size, step) for size, step in zip(batch, steps, strict=True) if size != 1]
    if any(dims[i][1] != dims[i + 1][0] * dims[i + 1][1] for i in range(len(dims) - 1)):
        return None
    return dims[-1][1] if dims else 0


def evenly(x: Tensor, core: int, batch: Sequence[int]) -> tuple[Tensor, int]:
    """The tensor, or a copy for each of the batch, and how far its matrices, or vectors, lie apart."""
    step = step_of(x, core, batch)
    if step is None:
        shape = (*batch, *x._shape[len(x._shape) - core :])
        x = copied(view_over(x, Size(shape), tuple(broadcast_strides(x._shape, x._stride, shape)), x._offset))
        step = math.prod(shape[len(shape) - core :])
    return x, step


def matrices(x: Tensor, batch: Sequence[int] | None = None) -> Batch:
    """The matrices of a tensor, as a batch of these sizes."""
    batch = x._shape[:-2] if batch is None else batch
    x, step = evenly(x, 2, batch)
    rows, columns = x._shape[-2:]
    return Batch(x, math.prod(batch), rows, columns, Laid(step, *x._stride[-2:]))


def columns_of(x: Tensor, count: int, rows: int, columns: int) -> Batch:
    """New memory for so many matrices, each column by column."""
    made = empty(Size((count, columns, rows)), x._dtype, x._device)
    return Batch(made, count, rows, columns, Laid(rows * columns, 1, rows))


# --- launches ---------------------------------------------------------------------------------------------------------


def fits(elements: int, itemsize: int) -> bool:
    """Whether so many elements are worked on in shared memory."""
    return elements * itemsize <= SHARED_BYTES


def room(elements: int, itemsize: int) -> dict[str, Any]:
    """Whether they are, and of what size it is."""
    shared = fits(elements, itemsize)
    return {"SHARED": shared, "SIZE": (SMALL if elements <= SMALL else SHARED_BYTES // itemsize) if shared else 1}


def for_library(A: Tensor) -> bool:
    """Whether NVIDIA's library factors matrices like these: where it is, and each is too large for shared memory."""
    return allocator().driver.solver is not None and not fits(A._shape[-2] * A._shape[-1], A._dtype.itemsize)


def one_block_each(written: Written, tensors: Sequence[Tensor], x: Batch, *rest: int) -> None:
    """Launches a factorisation of each matrix; its results lie column by column, and are named before `x`."""
    if not x.many:
        return
    kind = x.x._dtype
    elements = x.rows * x.columns
    given = {**room(elements, kind.itemsize), **kernels.arithmetic(kind.name)}
    kernel = written.kernel(kind.name, [one._dtype.name for one in (*tensors, x.x)], **used(written, given))
    launch = Launch(kernel, (x.many, 1, 1), (threads_for(-(-elements // 4)), 1, 1))
    shape = (x.rows, x.columns) if written is not kernels.CHOLESKY else (x.rows,)
    numbers = (*shape, *rest, *x.laid)
    launched([Task(launch, tuple(range(len(tensors) + 1)), numbers)], [*tensors, x.x])


def used(written: Written, given: dict[str, Any]) -> dict[str, Any]:
    """Those that the kernel names: others would only make it a kernel of its own."""
    return {name: value for name, value in given.items() if name in written.words}


def copy_matrices(out: Batch, x: Batch, keep: int = kernels.ALL, order: Tensor | None = None, moves: int = 0) -> None:
    """out = x, or the part of it to keep, its rows in an order."""
    elements = out.many * out.rows * out.columns
    if elements:
        rows = x.x if order is None else order
        kinds = [out.x._dtype.name, x.x._dtype.name]
        kernel = kernels.COPIED.kernel(DTYPES[kinds[0]].compute, [*kinds, "int32"])
        launch = Launch(kernel, (-(-elements // THREADS), 1, 1), (THREADS, 1, 1))
        numbers = (elements, out.rows, out.columns, keep, moves, *out.laid, *x.laid)
        launched([Task(launch, (0, 1, 2), numbers)], [out.x, x.x, rows])


def by_columns(x: Batch) -> bool:
    """Whether the matrices lie column by column, without gaps or with."""
    return x.laid.row == 1 and x.laid.column >= max(x.rows, 1)


def triangles_by_library(out: Batch, a: Batch, lower: bool, unit: bool, conj: bool) -> Any:
    """cuBLAS's solution for large matrices, where it is and can; None elsewhere.

    With S as A lies by columns, A is S or Sᵀ; and where X lies by rows, Xᵀ is sought, of Xᵀ Aᵀ = Bᵀ.
    """
    kind = out.x._dtype
    if allocator().driver.blas is None or a.x._dtype is not kind or fits(out.rows * out.rows, kind.itemsize):
        return None
    turned, left = not by_columns(a), by_columns(out)
    stored, target = a.turned if turned else a, out if left else out.turned
    if not by_columns(stored) or not by_columns(target):
        return None
    flipped = turned == left
    conj = conj and kind.is_complex
    if conj and not flipped:
        return None
    how = blas.ADJOINT if conj else blas.TRANSPOSED if flipped else blas.PLAIN
    steps = (target.laid.step, target.laid.column, stored.laid.step, stored.laid.column)
    shape = (target.rows, target.columns)
    return blas.Triangles(kind.name, out.many, shape, steps, left, lower != turned, how, unit)


def solve_triangles(out: Batch, a: Batch, lower: bool, unit: bool = False, conj: bool = False) -> None:
    """X of A X = out, or of conj(A) X = out, in the place of `out`."""
    if not out.many * out.rows * out.columns:
        return
    found = triangles_by_library(out, a, lower, unit, conj)
    if found is not None:
        launched([Task(found, (0, 1), ())], [out.x, a.x])
        return
    kind = out.x._dtype.name
    turned = kernels.conjugate if conj and DTYPES[kind].kind == "complex" else as_is
    kernel = kernels.TRIANGLES.kernel(kind, (kind, a.x._dtype.name), of_a=turned)
    down = WARP
    while down < min(out.rows, THREADS):
        down *= 2
    each = max(1, min(THREADS // down, out.columns))
    launch = Launch(kernel, (out.many * -(-out.columns // each), 1, 1), (down * each, 1, 1))
    numbers = (out.rows, out.columns, int(lower), int(unit), down, *out.laid, *a.laid)
    launched([Task(launch, (0, 1), numbers)], [out.x, a.x])


def order_of(pivots: Tensor, batch: Sequence[int], rows: int, operator: str) -> Tensor:
    """For each matrix where its rows come from, by these exchanges."""
    pivots, step = evenly(pivots, 1, batch)
    count = math.prod(batch)
    order = empty(Size((count, rows)), dtypes.int32, pivots._device)
    if count:
        number = late_errors(allocator().driver).number(operator)
        kernel = kernels.ORDERS.kernel("int64", ("int32", pivots._dtype.name, "int64"), **room(rows, 4))
        launch = Launch(kernel, (count, 1, 1), (threads_for(rows), 1, 1))
        numbers = (number, 0, rows, pivots._shape[-1], step, pivots._stride[-1])
        launched([Task(launch, (0, 1, ERRORS), numbers)], [order, pivots])
    return order


# --- what they make ---------------------------------------------------------------------------------------------------


def factor_cholesky(L: Tensor, info: Tensor, A: Tensor, upper: bool) -> None:
    x = matrices(A)
    if not for_library(A):
        one_block_each(kernels.CHOLESKY, (L, info), x, int(upper))
    elif x.many:
        copy_matrices(matrices(L), x, kernels.UPPER if upper else kernels.LOWER)
        launched([Task(solver.cholesky(A._dtype.name, x.many, x.rows, upper), (0, 1), ())], [L, info])


def factor_lu(LU: Tensor, pivots: Tensor, info: Tensor, A: Tensor, turned: bool = False) -> None:
    """turned: whether the transposed matrices are factored."""
    x = matrices(A).turned if turned else matrices(A)
    if not for_library(A):
        one_block_each(kernels.LU, (LU, pivots, info), x)
    elif x.many:
        copy_matrices(matrices(LU), x)
        wide = empty(pivots._shape, dtypes.int64, pivots._device)
        launched([Task(solver.lu(A._dtype.name, x.many, x.rows, x.columns), (0, 1, 2), ())], [LU, wide, info])
        copy_on_device(pivots, wide)


def factor_qr(a: Tensor, tau: Tensor, A: Tensor) -> None:
    x = matrices(A)
    if not for_library(A):
        one_block_each(kernels.REFLECTIONS, (a, tau), x)
    elif x.many:
        copy_matrices(matrices(a), x)
        info = empty(Size((x.many,)), dtypes.int32, A._device)  # it tells of bad arguments alone
        launched([Task(solver.reflections(A._dtype.name, x.many, x.rows, x.columns), (0, 1, 2), ())], [a, tau, info])


def solve_with_lu(
    out: Tensor, LU: Tensor, pivots: Tensor, B: Tensor | None, left: bool, adjoint: bool, operator: str
) -> None:
    """X of A X = B, X A = B, or the same with Aᴴ; `B` None is the identity.

    X A = B is Aᵀ Xᵀ = Bᵀ. With P A = L U, A Y = C is L U Y = P C, and Aᵀ Y = C is Uᵀ Lᵀ (P Y) = C.
    """
    batch = out._shape[:-2]
    y, a = matrices(out), matrices(LU, batch)
    c = y if B is None else matrices(B, batch)
    y, c = (y, c) if left else (y.turned, c.turned)
    order = order_of(pivots, batch, y.rows, operator)
    conj = adjoint
    if left != adjoint:
        if B is None:
            copy_matrices(y.turned, c, kernels.IDENTITY, order, kernels.TO)
        else:
            copy_matrices(y, c, kernels.ALL, order, kernels.FROM)
        solve_triangles(y, a, lower=True, unit=True, conj=conj)
        solve_triangles(y, a, lower=False, conj=conj)
        return
    z = columns_of(out, y.many, y.rows, y.columns)
    copy_matrices(z, c, kernels.IDENTITY if B is None else kernels.ALL)
    solve_triangles(z, a.turned, lower=True, conj=conj)
    solve_triangles(z, a.turned, lower=False, unit=True, conj=conj)
    copy_matrices(y, z, kernels.ALL, order, kernels.TO)


def solve_with_cholesky(out: Tensor, factor: Tensor, B: Tensor | None, upper: bool) -> None:
    """X of L Lᴴ X = B, or of Uᴴ U X = B; `B` None is the identity."""
    batch = out._shape[:-2]
    x, a = matrices(out), matrices(factor, batch)
    copy_matrices(x, x if B is None else matrices(B, batch), kernels.IDENTITY if B is None else kernels.ALL)
    for adjoint in (upper, not upper):
        solve_triangles(x, a.turned if adjoint else a, lower=upper if adjoint else not upper, conj=adjoint)


def unpack(P: Tensor | None, L: Tensor | None, U: Tensor | None, LU: Tensor, pivots: Tensor, operator: str) -> None:
    """The three factors, or those of them that are wanted."""
    x = matrices(LU)
    few = min(x.rows, x.columns)
    if P is not None:
        order = order_of(pivots, LU._shape[:-2], x.rows, operator)
        copy_matrices(matrices(P), x, kernels.IDENTITY, order, kernels.TO)
    if L is not None:
        copy_matrices(matrices(L), x.first(x.rows, few), kernels.UNIT_LOWER)
    if U is not None:
        copy_matrices(matrices(U), x.first(few, x.columns), kernels.UPPER)


def reflect(
    out: Batch, vectors: Tensor, tau: Tensor, backwards: bool, conj_vectors: bool = False, conj_tau: bool = False
) -> None:
    """Each column of `out`, reflected by all reflections in turn."""
    pairs = out.many * out.columns
    if not pairs or not tau._shape[-1]:
        return
    batch = tau._shape[:-1]
    v, (tau, step) = matrices(vectors, batch), evenly(tau, 1, batch)
    kind = out.x._dtype.name
    wide = DTYPES[kind].kind == "complex"
    given = {**kernels.arithmetic(kind)}
    given["of_vector"] = kernels.conjugate if conj_vectors and wide else as_is
    given["of_tau"] = kernels.conjugate if conj_tau and wide else as_is
    kernel = kernels.REFLECTED.kernel(kind, (kind,) * 3, **used(kernels.REFLECTED, given))
    launch = Launch(kernel, (-(-pairs * WARP // THREADS), 1, 1), (min(THREADS, pairs * WARP), 1, 1))
    shape = (pairs, out.rows, out.columns, tau._shape[-1], int(backwards))
    numbers = (*shape, *out.laid, *v.laid, step, tau._stride[-1])
    launched([Task(launch, (0, 1, 2), numbers)], [out.x, v.x, tau])


def product_of_reflections(out: Tensor, vectors: Tensor, tau: Tensor) -> None:
    """The first columns of Q."""
    q = matrices(out)
    copy_matrices(q, q, kernels.IDENTITY)
    reflect(q, vectors, tau, backwards=True)


def times_reflections(out: Tensor, vectors: Tensor, tau: Tensor, C: Tensor, left: bool, adjoint: bool) -> None:
    """Q C, C Q, or the same with Qᴴ. C Q is worked out as (Qᵀ Cᵀ)ᵀ, where Qᵀ is made of conjugated reflections, the
    other way round."""
    c = matrices(out)
    copy_matrices(c, matrices(C))
    if left:
        reflect(c, vectors, tau, backwards=not adjoint, conj_tau=adjoint)
    else:
        reflect(c.turned, vectors, tau, backwards=adjoint, conj_vectors=True, conj_tau=adjoint)
