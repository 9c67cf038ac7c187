"""Factorisations of matrices on a GPU, and solutions with their factors: batches of small matrices, a block for each.

A matrix that fits lies in shared memory while it is worked on, column by column; a larger one in the result's own
memory. A step takes a column: the block works out what follows from it (a root, a pivot, a reflection), and then its
threads change all columns behind it, a warp for each column and a lane for each row. So neighbouring lanes touch
neighbouring numbers, and a step costs a few barriers.

- Cholesky: A = L Lᴴ. LU: P A = L U with the largest pivots. Householder: A = H₀ H₁ ... R, as LAPACK keeps it.
- Triangles are solved by columns of the right-hand side, so that there is more than a block for each matrix.
- `copied_matrices` is what is left to do: other strides, one triangle, ones on the diagonal, rows in another order.

Numbers that say how it went (`info`) stay on the device. What they mean is LAPACK's (../lapack.py).
Source: Golub and Van Loan, Matrix Computations, 3.4, 4.2 and 5.1. Read next: `runtime/factorisations.py`.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined, assignment"
# Names like load_x, store_out, zero are put there by `Written`; those of `arithmetic` are said there.

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..engine.convert import as_is
from ..engine.program import integral
from .compiler import CUDA as cuda
from .indexing import report
from .intrinsics import advanced, shuffle_across, shuffle_down
from .templates import Written, block_total

int32, int64 = np.int32, np.int64

# --- numbers, real or complex -----------------------------------------------------------------------------------------


def conjugate(x):
    return x.conjugate()


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
def warp_total(x):
    """The sum of what the lanes of the warp have, for each of them."""
    x += shuffle_across(x, 16)
    x += shuffle_across(x, 8)
    x += shuffle_across(x, 4)
    x += shuffle_across(x, 2)
    return x + shuffle_across(x, 1)


@integral
def warp_total_of_complex(x):
    return complex(warp_total(x.real), warp_total(x.imag))


@integral
def larger(best, place, distance):
    """The larger of two lanes' numbers with its place; the first one of equals."""
    other, there = shuffle_down(best, distance), shuffle_down(place, distance)
    if other > best or (other == best and there < place):
        return other, there
    return best, place


def arithmetic(dtype: str) -> dict[str, object]:
    """What the kernels call, for numbers of a dtype: `conj`, `real`, `imag`, `squared`, `sized`, `total_of`, and
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
        "total_of": (warp_total, warp_total_of_complex),
    }
    return {**{name: pair[wide] for name, pair in names.items()}, "nought": real(0), "unit": real(1), "real_kind": real}


# --- factorisations: a block for each matrix --------------------------------------------------------------------------


def cholesky_of_each(out, info, x, n, upper, x_step, x_row, x_column):
    """L, or with `upper` its adjoint; one triangle of x is read. `info` is the order of the first bad minor."""
    matrix, thread = int64(cuda.blockIdx.x), int64(cuda.threadIdx.x)
    base, source = matrix * n * n, matrix * x_step
    work = cuda.shared.array(SIZE, compute) if SHARED else advanced(out, base)
    lane, warp, warps = thread & 31, thread >> 5, int64(cuda.blockDim.x) >> 5
    column = warp
    while column < n:
        row = column + lane
        while row < n:
            if upper == 1:
                work[column * n + row] = conj(load_x(x[source + column * x_row + row * x_column]))
            else:
                work[column * n + row] = load_x(x[source + row * x_row + column * x_column])
            row += 32
        column += warps
    cuda.syncthreads()
    k, failed = int64(0), int64(0)
    while k < n and failed == 0:
        pivot = real(work[k * n + k])
        cuda.syncthreads()
        if pivot > nought:
            root = math.sqrt(pivot)
            if thread == 0:
                work[k * n + k] = compute(root)
            row = k + 1 + thread
            while row < n:
                work[k * n + row] *= unit / root
                row += int64(cuda.blockDim.x)
            cuda.syncthreads()
            column = k + 1 + warp
            while column < n:
                factor = conj(work[k * n + column])
                row = column + lane
                while row < n:
                    work[column * n + row] -= work[k * n + row] * factor
                    row += 32
                column += warps
            cuda.syncthreads()
        else:
            failed = k + 1
        k += 1
    if thread == 0:
        info[matrix] = int32(failed)
    column = warp
    while column < n:
        row = column + lane
        while row < n:  # in the result's own memory, too, a thread has both places of a pair to itself
            value = work[column * n + row]
            if row > column:
                out[base + column * n + row] = store_out(zero)
                out[base + row * n + column] = store_out(zero)
            if upper == 1:
                out[base + row * n + column] = store_out(conj(value))
            else:
                out[base + column * n + row] = store_out(value)
            row += 32
        column += warps


def lu_of_each(out, pivots, info, x, m, n, x_step, x_row, x_column):
    """L below the diagonal and U above; row k was exchanged with row pivots[k], counted from 1."""
    matrix, thread, threads = int64(cuda.blockIdx.x), int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    base, source, few = matrix * m * n, matrix * x_step, min(m, n)
    work = cuda.shared.array(SIZE, compute) if SHARED else advanced(out, base)
    chosen = cuda.shared.array(1, int64)
    lane, warp, warps = thread & 31, thread >> 5, threads >> 5
    column = warp
    while column < n:
        row = lane
        while row < m:
            work[column * m + row] = load_x(x[source + row * x_row + column * x_column])
            row += 32
        column += warps
    # Nobody waits here, nor at the end of a step: what is looked at next, a column by the lanes of warp 0, these lanes
    # have written themselves.
    k, failed = int64(0), int64(0)
    while k < few:
        if warp == 0:
            best, place = -unit, k
            row = k + lane
            while row < m:
                here = sized(work[k * m + row])
                if here > best:
                    best, place = here, row
                row += 32
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
        column = thread if place != k else n
        while column < n:
            value = work[column * m + k]
            work[column * m + k] = work[column * m + place]
            work[column * m + place] = value
            column += threads
        cuda.syncthreads()
        pivot = work[k * m + k]
        if pivot == zero:
            if failed == 0:
                failed = k + 1
        else:
            scale = one / pivot
            row = k + 1 + thread
            while row < m:
                work[k * m + row] *= scale
                row += threads
            cuda.syncthreads()
            column = k + 1 + warp
            while column < n:
                factor = work[column * m + k]
                row = k + 1 + lane
                while row < m:
                    work[column * m + row] -= work[k * m + row] * factor
                    row += 32
                column += warps
        k += 1
    if thread == 0:
        info[matrix] = int32(failed)
    if SHARED:  # the last step changed nothing behind its last barrier
        place = thread
        while place < m * n:
            out[base + place] = store_out(work[place])
            place += threads


def reflections_of_each(out, tau, x, m, n, x_step, x_row, x_column):
    """R on and above the diagonal, the vectors of the reflections 1 - tau v vᴴ below it: v is 1 on the diagonal."""
    matrix, thread, threads = int64(cuda.blockIdx.x), int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    base, source, few = matrix * m * n, matrix * x_step, min(m, n)
    work = cuda.shared.array(SIZE, compute) if SHARED else advanced(out, base)
    parts = cuda.shared.array(32, real_kind)
    lane, warp, warps = thread & 31, thread >> 5, threads >> 5
    column = warp
    while column < n:
        row = lane
        while row < m:
            work[column * m + row] = load_x(x[source + row * x_row + column * x_column])
            row += 32
        column += warps
    cuda.syncthreads()
    k = int64(0)
    while k < few:
        squares = nought
        row = k + 1 + thread
        while row < m:
            squares += squared(work[k * m + row])
            row += threads
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
        row = k + 1 + thread
        while row < m:
            work[k * m + row] *= scale
            row += threads
        cuda.syncthreads()
        column = k + 1 + warp
        while column < n:
            along = work[column * m + k] if lane == 0 else zero
            row = k + 1 + lane
            while row < m:
                along += conj(work[k * m + row]) * work[column * m + row]
                row += 32
            along = total_of(along) * conj(factor)
            if lane == 0:
                work[column * m + k] -= along
            row = k + 1 + lane
            while row < m:
                work[column * m + row] -= work[k * m + row] * along
                row += 32
            column += warps
        cuda.syncthreads()
        k += 1
    if SHARED:
        place = thread
        while place < m * n:
            out[base + place] = store_out(work[place])
            place += threads


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
    step = int64(0)
    while step < n:
        k = step if lower == 1 else n - 1 - step
        if column < columns:
            value = load_out(out[at + k * out_row])
            if unitary == 0:
                value /= of_a(load_a(a[source + k * (a_row + a_column)]))
            left = lane
            while left < n - 1 - step:
                row = k + 1 + left if lower == 1 else k - 1 - left
                change = of_a(load_a(a[source + row * a_row + k * a_column])) * value
                out[at + row * out_row] = store_out(load_out(out[at + row * out_row]) - change)
                left += down
        cuda.syncthreads()
        step += 1
    row = lane if column < columns and unitary == 0 else n
    while row < n:
        value = load_out(out[at + row * out_row]) / of_a(load_a(a[source + row * (a_row + a_column)]))
        out[at + row * out_row] = store_out(value)
        row += down


def reflected_columns(
    out, vectors, tau, pairs, m, columns, count, backwards, out_step, out_row, out_column, v_step, v_row, v_column,
    tau_step, tau_one,
):  # fmt: skip
    """Each column of `out` reflected so often, by a warp of its own; a lane has every 32nd row, and no other's."""
    thread = int64(cuda.threadIdx.x)
    lane, pair = thread & 31, int64(cuda.blockIdx.x) * (int64(cuda.blockDim.x) >> 5) + (thread >> 5)
    matrix = pair // columns
    at = matrix * out_step + (pair - matrix * columns) * out_column
    step = int64(0) if pair < pairs else count
    while step < count:
        k = count - 1 - step if backwards == 1 else step
        source = matrix * v_step + k * v_column
        start = (k & -32) + lane
        start += 32 if start < k else 0
        along = zero
        row = start
        while row < m:
            v = one if row == k else of_vector(load_vectors(vectors[source + row * v_row]))
            along += conj(v) * load_out(out[at + row * out_row])
            row += 32
        along = total_of(along) * of_tau(load_tau(tau[matrix * tau_step + k * tau_one]))
        row = start
        while row < m:
            v = one if row == k else of_vector(load_vectors(vectors[source + row * v_row]))
            out[at + row * out_row] = store_out(load_out(out[at + row * out_row]) - v * along)
            row += 32
        step += 1


# --- rows in order, and copies ----------------------------------------------------------------------------------------

ALL, LOWER, UPPER, UNIT_LOWER, IDENTITY = range(5)  # what of a matrix is copied
IN_PLACE, FROM, TO = range(3)  # whether an order says where a row comes from, or goes to


def orders_of_pivots(order, pivots, error, operator, dim, n, count, pivots_step, pivots_one):
    """Where the rows of P A come from. A pivot that is no row is told of (async_errors.py), and left out."""
    matrix, thread = int64(cuda.blockIdx.x), int64(cuda.threadIdx.x)
    work = cuda.shared.array(SIZE, int32) if SHARED else advanced(order, matrix * n)
    row = thread
    while row < n:
        work[row] = int32(row)
        row += int64(cuda.blockDim.x)
    cuda.syncthreads()
    k = int64(0) if thread == 0 else count
    while k < count:  # one exchange depends on the other; in shared memory it takes some ten cycles
        place = int64(pivots[matrix * pivots_step + k * pivots_one])
        if place < 1 or place > n:
            report(error, operator, place, n + 1, dim)
        else:
            value = work[k]
            work[k] = work[place - 1]
            work[place - 1] = value
        k += 1
    cuda.syncthreads()
    if SHARED:
        row = thread
        while row < n:
            order[matrix * n + row] = work[row]
            row += int64(cuda.blockDim.x)


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
LU = Written(lu_of_each, ("out", "pivots", "info", "x"))
REFLECTIONS = Written(reflections_of_each, ("out", "tau", "x"))
TRIANGLES = Written(triangles_solved, ("out", "a"))
REFLECTED = Written(reflected_columns, ("out", "vectors", "tau"))
ORDERS = Written(orders_of_pivots, ("order", "pivots", "error"))
COPIED = Written(copied_matrices, ("out", "x", "order"))
