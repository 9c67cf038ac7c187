"""Factorisations of matrices on a GPU, and solutions with their factors: batches of small matrices, a block for each.

A matrix that fits lies in shared memory while it is worked on, column by column; a larger one in the result's own
memory. A step takes a column: the block works out what follows from it (a root, a pivot, a reflection), and then its
threads change all columns behind it, a warp for each column and a lane for each row. So neighbouring lanes touch
neighbouring numbers, and a step costs a few barriers.

- Cholesky: A = L Lᴴ. LU: P A = L U with the largest pivots. Householder: A = H₀ H₁ ... R, as LAPACK keeps it.
- Triangles are solved by columns of the right-hand side, so that there is more than a block for each matrix.
- `copied_matrices` is what is left to do: other strides, one triangle, ones on the diagonal, rows in another order.

Numbers that say how it went (`info`) stay on the device. What they mean is LAPACK's (../lapack.py).
Source: Golub and Van Loan, Matrix Computations, 3.4, 4.2 and 5.1.

A kernel sees a batch as so many matrices at equal distances; an argument that lies otherwise, or whose batch is
broadcast unevenly, is copied before. On a card that has NVIDIA's libraries, these factor matrices that are too large
for shared memory, and solve their triangles. A function here fills results that have their shape and strides already,
as the CPU's bodies do. Shapes, strides and errors are said by the operators themselves. Read next: matrices.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined, assignment"
# Names like load_x, store_out, zero are put there by `Written`; those of `arithmetic` are said there.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor import Size, Tensor, dtypes, empty, view_over
from redispatch.kernels import DTYPES, broadcast_strides
from redispatch.kernels.engine.convert import as_is
from redispatch.kernels.engine.program import integral, steps

from .. import blas, solver
from ..compiler import CUDA as cuda
from ..indexing import report
from ..intrinsics import advanced, shuffle_down
from ..runtime.async_errors import late_errors
from ..runtime.copies import copied, copy_on_device
from ..runtime.operands import allocator
from ..runtime.structured import ERRORS, Task, launched
from ..templates import THREADS, WARP, Written, add, block_total, conjugate, over_lanes, part, threads_for

int32, int64 = np.int32, np.int64

# --- numbers, real or complex -----------------------------------------------------------------------------------------


def real_part(x):
    return x.real


def imaginary_part(x):
    return x.imag


def nothing_imaginary(x):
    return x - x


def square(x):
    return x * x


def square_of_complex(x):
    return x.real * x.real + x.imag * x.imag


def size(x):
    return abs(x)


def size_of_complex(x):
    """The measure by which LAPACK chooses pivots."""
    return abs(x.real) + abs(x.imag)


@integral
def larger(best, place, distance):
    """The larger of two lanes' numbers with its place; the first one of equals."""
    other, there = shuffle_down(best, distance), shuffle_down(place, distance)
    if other > best or (other == best and there < place):
        return other, there
    return best, place


def arithmetic(dtype: str) -> dict[str, object]:
    """Returns the functions that kernels call, for a dtype: `conj`, `real`, `imag`, `squared`, `sized`, `total_of`, and
    `nought` and `unit`, the real 0 and 1."""
    kind = np.dtype(dtype)
    wide = kind.kind == "c"
    real = np.zeros(1, kind).real.dtype.type
    names: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "conj": (as_is, conjugate),
        "real": (as_is, real_part),
        "imag": (nothing_imaginary, imaginary_part),
        "squared": (square, square_of_complex),
        "sized": (size, size_of_complex),
    }
    parts = {name: pair[wide] for name, pair in names.items()}
    return {**parts, "total_of": over_lanes(add, WARP), "nought": real(0), "unit": real(1), "real_kind": real}


# --- factorisations: a block for each matrix --------------------------------------------------------------------------


@part
def carried_in(work, x, m, n, source, x_row, x_column):
    """A matrix by columns: a warp for each of them."""
    thread = int64(cuda.threadIdx.x)
    for column in steps(thread >> 5, n, int64(cuda.blockDim.x) >> 5):
        for row in steps(thread & 31, m, 32):
            work[column * m + row] = load_x(x[source + row * x_row + column * x_column])


@part
def carried_out(out, base, work, elements):
    for place in steps(int64(cuda.threadIdx.x), elements, int64(cuda.blockDim.x)):
        out[base + place] = store_out(work[place])


def cholesky_of_each(out, info, x, n, upper, x_step, x_row, x_column):
    """L, or with `upper` its adjoint; one triangle of x is read. `info` is the order of the first bad minor."""
    matrix, thread = int64(cuda.blockIdx.x), int64(cuda.threadIdx.x)
    base, source = matrix * n * n, matrix * x_step
    work = cuda.shared.array(SIZE, compute) if SHARED else advanced(out, base)
    lane, warp, warps = thread & 31, thread >> 5, int64(cuda.blockDim.x) >> 5
    for column in steps(warp, n, warps):
        for row in steps(column + lane, n, 32):
            if upper == 1:
                work[column * n + row] = conj(load_x(x[source + column * x_row + row * x_column]))
            else:
                work[column * n + row] = load_x(x[source + row * x_row + column * x_column])
    cuda.syncthreads()
    k, failed = int64(0), int64(0)
    while k < n and failed == 0:
        pivot = real(work[k * n + k])
        cuda.syncthreads()
        if pivot > nought:
            root = math.sqrt(pivot)
            if thread == 0:
                work[k * n + k] = compute(root)
            for row in steps(k + 1 + thread, n, int64(cuda.blockDim.x)):
                work[k * n + row] *= unit / root
            cuda.syncthreads()
            for column in steps(k + 1 + warp, n, warps):
                factor = conj(work[k * n + column])
                for row in steps(column + lane, n, 32):
                    work[column * n + row] -= work[k * n + row] * factor
            cuda.syncthreads()
        else:
            failed = k + 1
        k += 1
    if thread == 0:
        info[matrix] = int32(failed)
    for column in steps(warp, n, warps):
        for row in steps(
            column + lane, n, 32
        ):  # in the result's own memory, too, a thread has both places of a pair to itself
            value = work[column * n + row]
            if row > column:
                out[base + column * n + row] = store_out(zero)
                out[base + row * n + column] = store_out(zero)
            if upper == 1:
                out[base + row * n + column] = store_out(conj(value))
            else:
                out[base + column * n + row] = store_out(value)


def lu_of_each(out, pivots, info, x, m, n, x_step, x_row, x_column):
    """L below the diagonal and U above; row k was exchanged with row pivots[k], counted from 1."""
    matrix, thread, threads = int64(cuda.blockIdx.x), int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    base, source, few = matrix * m * n, matrix * x_step, min(m, n)
    work = cuda.shared.array(SIZE, compute) if SHARED else advanced(out, base)
    chosen = cuda.shared.array(1, int64)
    lane, warp, warps = thread & 31, thread >> 5, threads >> 5
    carried_in(work, x, m, n, source, x_row, x_column)
    # Nobody waits here, nor at the end of a step: what is looked at next, a column by the lanes of warp 0, these lanes
    # have written themselves.
    k, failed = int64(0), int64(0)
    while k < few:
        if warp == 0:
            best, place = -unit, k
            for row in steps(k + lane, m, 32):
                here = sized(work[k * m + row])
                if here > best:
                    best, place = here, row
            best, place = larger(best, place, 16)
            best, place = larger(best, place, 8)
            best, place = larger(best, place, 4)
            best, place = larger(best, place, 2)
            best, place = larger(best, place, 1)
            if lane == 0:
                chosen[0] = place
                pivots[matrix * few + k] = int32(place + 1)
        cuda.syncthreads()
        place = chosen[0]
        for column in steps(thread if place != k else n, n, threads):
            value = work[column * m + k]
            work[column * m + k] = work[column * m + place]
            work[column * m + place] = value
        cuda.syncthreads()
        pivot = work[k * m + k]
        if pivot == zero:
            if failed == 0:
                failed = k + 1
        else:
            scale = one / pivot
            for row in steps(k + 1 + thread, m, threads):
                work[k * m + row] *= scale
            cuda.syncthreads()
            for column in steps(k + 1 + warp, n, warps):
                factor = work[column * m + k]
                for row in steps(k + 1 + lane, m, 32):
                    work[column * m + row] -= work[k * m + row] * factor
        k += 1
    if thread == 0:
        info[matrix] = int32(failed)
    if SHARED:  # the last step changed nothing behind its last barrier
        carried_out(out, base, work, m * n)


def reflections_of_each(out, tau, x, m, n, x_step, x_row, x_column):
    """R on and above the diagonal, the vectors of the reflections 1 - tau v vᴴ below it: v is 1 on the diagonal."""
    matrix, thread, threads = int64(cuda.blockIdx.x), int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    base, source, few = matrix * m * n, matrix * x_step, min(m, n)
    work = cuda.shared.array(SIZE, compute) if SHARED else advanced(out, base)
    parts = cuda.shared.array(32, real_kind)
    lane, warp, warps = thread & 31, thread >> 5, threads >> 5
    carried_in(work, x, m, n, source, x_row, x_column)
    cuda.syncthreads()
    for k in steps(int64(0), few, 1):
        squares = nought
        for row in steps(k + 1 + thread, m, threads):
            squares += squared(work[k * m + row])
        squares = block_total(squares, parts)
        first = work[k * m + k]
        cuda.syncthreads()
        factor, scale = zero, zero
        if squares != nought or imag(first) != nought:
            length = math.sqrt(squared(first) + squares)
            turned = -length if real(first) >= nought else length
            factor = (turned - first) / turned
            scale = one / (first - turned)
            first = compute(turned)
        if thread == 0:
            work[k * m + k] = first
            tau[matrix * few + k] = store_tau(factor)
        for row in steps(k + 1 + thread, m, threads):
            work[k * m + row] *= scale
        cuda.syncthreads()
        for column in steps(k + 1 + warp, n, warps):
            along = work[column * m + k] if lane == 0 else zero
            for row in steps(k + 1 + lane, m, 32):
                along += conj(work[k * m + row]) * work[column * m + row]
            along = total_of(along) * conj(factor)
            if lane == 0:
                work[column * m + k] -= along
            for row in steps(k + 1 + lane, m, 32):
                work[column * m + row] -= work[k * m + row] * along
        cuda.syncthreads()
    if SHARED:
        carried_out(out, base, work, m * n)


# --- with factors: all columns are worked on at once ------------------------------------------------------------------


def triangles_solved(
    out, a, n, columns, lower, unitary, down, out_step, out_row, out_column, a_step, a_row, a_column
):  # fmt: skip
    """X of A X = out, written over `out`; `down` threads share a column of it.

    A row's number is divided by the diagonal at the end, so that no thread changes what others still read.
    """
    thread, block, each = int64(cuda.threadIdx.x), int64(cuda.blockIdx.x), int64(cuda.blockDim.x) // down
    groups = (columns + each - 1) // each
    matrix = block // groups
    column, lane = (block - matrix * groups) * each + thread // down, thread % down
    at, source = matrix * out_step + column * out_column, matrix * a_step
    for step in steps(int64(0), n, 1):
        k = step if lower == 1 else n - 1 - step
        if column < columns:
            value = load_out(out[at + k * out_row])
            if unitary == 0:
                value /= of_a(load_a(a[source + k * (a_row + a_column)]))
            for left in steps(lane, n - 1 - step, down):
                row = k + 1 + left if lower == 1 else k - 1 - left
                change = of_a(load_a(a[source + row * a_row + k * a_column])) * value
                out[at + row * out_row] = store_out(load_out(out[at + row * out_row]) - change)
        cuda.syncthreads()
    for row in steps(lane if column < columns and unitary == 0 else n, n, down):
        value = load_out(out[at + row * out_row]) / of_a(load_a(a[source + row * (a_row + a_column)]))
        out[at + row * out_row] = store_out(value)


def reflected_columns(
    out, vectors, tau, pairs, m, columns, count, backwards, out_step, out_row, out_column, v_step, v_row, v_column,
    tau_step, tau_one,
):  # fmt: skip
    """Each column of `out` reflected so often, by a warp of its own; a lane has every 32nd row, and no other's."""
    thread = int64(cuda.threadIdx.x)
    lane, pair = thread & 31, int64(cuda.blockIdx.x) * (int64(cuda.blockDim.x) >> 5) + (thread >> 5)
    matrix = pair // columns
    at = matrix * out_step + (pair - matrix * columns) * out_column
    for step in steps(int64(0) if pair < pairs else count, count, 1):
        k = count - 1 - step if backwards == 1 else step
        source = matrix * v_step + k * v_column
        start = (k & -32) + lane
        start += 32 if start < k else 0
        along = zero
        for row in steps(start, m, 32):
            v = one if row == k else of_vector(load_vectors(vectors[source + row * v_row]))
            along += conj(v) * load_out(out[at + row * out_row])
        along = total_of(along) * of_tau(load_tau(tau[matrix * tau_step + k * tau_one]))
        for row in steps(start, m, 32):
            v = one if row == k else of_vector(load_vectors(vectors[source + row * v_row]))
            out[at + row * out_row] = store_out(load_out(out[at + row * out_row]) - v * along)


# --- rows in order, and copies ----------------------------------------------------------------------------------------

ALL, LOWER, UPPER, UNIT_LOWER, IDENTITY = range(5)  # what of a matrix is copied
IN_PLACE, FROM, TO = range(3)  # whether an order says where a row comes from, or goes to


def orders_of_pivots(order, pivots, error, operator, dim, n, count, pivots_step, pivots_one):
    """Finds where the rows of P A come from. A pivot that is no row is told of (async_errors.py), and left out."""
    matrix, thread = int64(cuda.blockIdx.x), int64(cuda.threadIdx.x)
    work = cuda.shared.array(SIZE, int32) if SHARED else advanced(order, matrix * n)
    for row in steps(thread, n, int64(cuda.blockDim.x)):
        work[row] = int32(row)
    cuda.syncthreads()
    for k in steps(
        int64(0) if thread == 0 else count, count, 1
    ):  # one exchange depends on the other; in shared memory it takes some ten cycles
        place = int64(pivots[matrix * pivots_step + k * pivots_one])
        if place < 1 or place > n:
            report(error, operator, place, n + 1, dim)
        else:
            value = work[k]
            work[k] = work[place - 1]
            work[place - 1] = value
    cuda.syncthreads()
    if SHARED:
        for row in steps(thread, n, int64(cuda.blockDim.x)):
            order[matrix * n + row] = work[row]


def copied_matrices(
    out, x, order, elements, rows, columns, keep, moves, out_step, out_row, out_column, x_step, x_row, x_column
):  # fmt: skip
    """out = x, or a part of it. Neighbouring threads have neighbouring rows."""
    i = int64(cuda.blockIdx.x) * int64(cuda.blockDim.x) + int64(cuda.threadIdx.x)
    if i < elements:
        matrix = i // (rows * columns)
        i -= matrix * rows * columns
        column = i // rows
        row = i - column * rows
        to, source = row, row
        if moves == FROM:
            source = int64(order[matrix * rows + row])
        elif moves == TO:
            to = int64(order[matrix * rows + row])
        value = one if row == column and keep >= UNIT_LOWER else zero
        if keep == ALL or (keep == LOWER and row >= column) or (keep == UPPER and row <= column):
            value = load_x(x[matrix * x_step + source * x_row + column * x_column])
        elif keep == UNIT_LOWER and row > column:
            value = load_x(x[matrix * x_step + source * x_row + column * x_column])
        out[matrix * out_step + to * out_row + column * out_column] = store_out(value)


CHOLESKY = Written(cholesky_of_each, ("out", "info", "x"))
LU_FACTORS = Written(lu_of_each, ("out", "pivots", "info", "x"))
REFLECTIONS = Written(reflections_of_each, ("out", "tau", "x"))
TRIANGLES = Written(triangles_solved, ("out", "a"))
REFLECTED = Written(reflected_columns, ("out", "vectors", "tau"))
ORDERS = Written(orders_of_pivots, ("order", "pivots", "error"))
COPIED = Written(copied_matrices, ("out", "x", "order"))

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
    """The step between matrices of this batch in `x`, which repeats its own; None where they lie unevenly."""
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
    given = {**room(elements, kind.itemsize), **arithmetic(kind.name)}
    kinds, threads = [one._dtype.name for one in (*tensors, x.x)], threads_for(-(-elements // 4))
    launch = written.launch(kind.name, kinds, x.many, threads, **used(written, given))
    shape = (x.rows, x.columns) if written is not CHOLESKY else (x.rows,)
    numbers = (*shape, *rest, *x.laid)
    launched([Task(launch, tuple(range(len(tensors) + 1)), numbers)], [*tensors, x.x])


def used(written: Written, given: dict[str, Any]) -> dict[str, Any]:
    """Returns the values that the kernel names: others would only make it a kernel of its own."""
    return {name: value for name, value in given.items() if name in written.words}


def copy_matrices(out: Batch, x: Batch, keep: int = ALL, order: Tensor | None = None, moves: int = 0) -> None:
    """out = x, or the part of it to keep, its rows in an order."""
    elements = out.many * out.rows * out.columns
    if elements:
        rows = x.x if order is None else order
        kinds = [out.x._dtype.name, x.x._dtype.name]
        launch = COPIED.spread(DTYPES[kinds[0]].compute, [*kinds, "int32"], elements)
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
    turned = conjugate if conj and DTYPES[kind].kind == "complex" else as_is
    down = WARP
    while down < min(out.rows, THREADS):
        down *= 2
    each = max(1, min(THREADS // down, out.columns))
    kinds, blocks = (kind, a.x._dtype.name), out.many * -(-out.columns // each)
    launch = TRIANGLES.launch(kind, kinds, blocks, down * each, of_a=turned)
    numbers = (out.rows, out.columns, int(lower), int(unit), down, *out.laid, *a.laid)
    launched([Task(launch, (0, 1), numbers)], [out.x, a.x])


def order_of(pivots: Tensor, batch: Sequence[int], rows: int, operator: str) -> Tensor:
    """For each matrix where its rows come from, by these exchanges."""
    pivots, step = evenly(pivots, 1, batch)
    count = math.prod(batch)
    order = empty(Size((count, rows)), dtypes.int32, pivots._device)
    if count:
        number = late_errors(allocator().driver).number(operator)
        kinds = ("int32", pivots._dtype.name, "int64")
        launch = ORDERS.launch("int64", kinds, count, threads_for(rows), **room(rows, 4))
        numbers = (number, 0, rows, pivots._shape[-1], step, pivots._stride[-1])
        launched([Task(launch, (0, 1, ERRORS), numbers)], [order, pivots])
    return order


# --- what they make ---------------------------------------------------------------------------------------------------


def factor_cholesky(L: Tensor, info: Tensor, A: Tensor, upper: bool) -> None:
    x = matrices(A)
    if not for_library(A):
        one_block_each(CHOLESKY, (L, info), x, int(upper))
    elif x.many:
        copy_matrices(matrices(L), x, UPPER if upper else LOWER)
        launched([Task(solver.cholesky(A._dtype.name, x.many, x.rows, upper), (0, 1), ())], [L, info])


def factor_lu(LU: Tensor, pivots: Tensor, info: Tensor, A: Tensor, turned: bool = False) -> None:
    """turned: whether the transposed matrices are factored."""
    x = matrices(A).turned if turned else matrices(A)
    if not for_library(A):
        one_block_each(LU_FACTORS, (LU, pivots, info), x)
    elif x.many:
        copy_matrices(matrices(LU), x)
        wide = empty(pivots._shape, dtypes.int64, pivots._device)
        launched([Task(solver.lu(A._dtype.name, x.many, x.rows, x.columns), (0, 1, 2), ())], [LU, wide, info])
        copy_on_device(pivots, wide)


def factor_qr(a: Tensor, tau: Tensor, A: Tensor) -> None:
    x = matrices(A)
    if not for_library(A):
        one_block_each(REFLECTIONS, (a, tau), x)
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
            copy_matrices(y.turned, c, IDENTITY, order, TO)
        else:
            copy_matrices(y, c, ALL, order, FROM)
        solve_triangles(y, a, lower=True, unit=True, conj=conj)
        solve_triangles(y, a, lower=False, conj=conj)
        return
    z = columns_of(out, y.many, y.rows, y.columns)
    copy_matrices(z, c, IDENTITY if B is None else ALL)
    solve_triangles(z, a.turned, lower=True, conj=conj)
    solve_triangles(z, a.turned, lower=False, unit=True, conj=conj)
    copy_matrices(y, z, ALL, order, TO)


def solve_with_cholesky(out: Tensor, factor: Tensor, B: Tensor | None, upper: bool) -> None:
    """X of L Lᴴ X = B, or of Uᴴ U X = B; `B` None is the identity."""
    batch = out._shape[:-2]
    x, a = matrices(out), matrices(factor, batch)
    copy_matrices(x, x if B is None else matrices(B, batch), IDENTITY if B is None else ALL)
    for adjoint in (upper, not upper):
        solve_triangles(x, a.turned if adjoint else a, lower=upper if adjoint else not upper, conj=adjoint)


def unpack(P: Tensor | None, L: Tensor | None, U: Tensor | None, LU: Tensor, pivots: Tensor, operator: str) -> None:
    """The three factors, or those of them that are wanted."""
    x = matrices(LU)
    few = min(x.rows, x.columns)
    if P is not None:
        order = order_of(pivots, LU._shape[:-2], x.rows, operator)
        copy_matrices(matrices(P), x, IDENTITY, order, TO)
    if L is not None:
        copy_matrices(matrices(L), x.first(x.rows, few), UNIT_LOWER)
    if U is not None:
        copy_matrices(matrices(U), x.first(few, x.columns), UPPER)


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
    given = {**arithmetic(kind)}
    given["of_vector"] = conjugate if conj_vectors and wide else as_is
    given["of_tau"] = conjugate if conj_tau and wide else as_is
    blocks, threads = -(-pairs * WARP // THREADS), min(THREADS, pairs * WARP)
    launch = REFLECTED.launch(kind, (kind,) * 3, blocks, threads, **used(REFLECTED, given))
    shape = (pairs, out.rows, out.columns, tau._shape[-1], int(backwards))
    numbers = (*shape, *out.laid, *v.laid, step, tau._stride[-1])
    launched([Task(launch, (0, 1, 2), numbers)], [out.x, v.x, tau])


def product_of_reflections(out: Tensor, vectors: Tensor, tau: Tensor) -> None:
    """The first columns of Q."""
    q = matrices(out)
    copy_matrices(q, q, IDENTITY)
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
