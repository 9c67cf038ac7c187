"""Matrix products through numpy's BLAS, on views of the flat arrays: a transposed operand is not copied.

16-bit floats are widened to float32 and the product is rounded once. Integers go through numpy's own loops, and wrap.
Small matrices never reach BLAS: making views for it takes longer than a loop of our own takes for the product.

OpenBLAS keeps threads of its own, and offers numpy and scipy no way to say how many. For a small product they cost more
than they give: waiting for each other, they have made a 64 x 64 product take 15 ms on a busy machine that one thread
finishes in 16 us. So products below `WORTH_THREADS` run on one thread, larger ones on as many as `set_num_threads`
allows. Each package brings a library of its own; where it was built with another BLAS, nothing is changed. Read next:
`copy.py`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.geometry import contiguous_strides, is_contiguous, numel
from redispatch.dispatch.tensor.operand import DTYPES, TARGET, Operand, as_ndarray

from ..engine.elementwise import Elementwise
from ..engine.external import External
from ..engine.pool import get_num_threads, ready
from ..engine.program import integral
from ..engine.template import Template, load_x, store_x, zero
from .copy import copy

FEW = 4096  # multiplications in one product of matrices, up to which the loops below are faster than BLAS
uint64 = np.uint64

# Which of the two factors, and of what is added to their product, are to be conjugated.
Conjugated = tuple[bool, bool, bool]
NONE = (False, False, False)

# --- small products --------------------------------------------------------------------------------------------------


@integral
def product_loop(lo, hi, sizes, steps, out, out_at, a, a_at, b, b_at):
    """Matrices lo <= g < hi of out = a @ b, with any strides, in blocks of two rows and four columns: eight sums, which
    stay in registers. Where a block reaches beyond the edge, it computes the last row or column several times.

    sizes: n, k, m. steps: from one matrix, row and column to the next, of out, a and b.
    """
    n, k, m = sizes[0], sizes[1], sizes[2]
    out_step, out_row, out_column = steps[0], steps[1], steps[2]
    a_step, a_row, a_column = steps[3], steps[4], steps[5]
    b_step, b_row, b_column = steps[6], steps[7], steps[8]
    for g in range(lo, hi):
        for i in range(0, n, 2):
            i1 = min(i + 1, n - 1)
            row, x1_at = a_at + g * a_step + i * a_row, (i1 - i) * a_row
            to0, to1 = out_at + g * out_step + i * out_row, out_at + g * out_step + i1 * out_row
            for j in range(0, m, 4):
                j1, j2, j3 = min(j + 1, m - 1), min(j + 2, m - 1), min(j + 3, m - 1)
                at, from_ = b_at + g * b_step + j * b_column, row
                y1_at, y2_at, y3_at = (j1 - j) * b_column, (j2 - j) * b_column, (j3 - j) * b_column
                c00, c01, c02, c03 = zero, zero, zero, zero
                c10, c11, c12, c13 = zero, zero, zero, zero
                for _ in range(k):
                    x0, x1 = load_x(a[uint64(from_)]), load_x(a[uint64(from_ + x1_at)])
                    y0, y1 = load_x(b[uint64(at)]), load_x(b[uint64(at + y1_at)])
                    y2, y3 = load_x(b[uint64(at + y2_at)]), load_x(b[uint64(at + y3_at)])
                    c00 += x0 * y0
                    c01 += x0 * y1
                    c02 += x0 * y2
                    c03 += x0 * y3
                    c10 += x1 * y0
                    c11 += x1 * y1
                    c12 += x1 * y2
                    c13 += x1 * y3
                    from_ += a_column
                    at += b_row
                out[uint64(to0 + j * out_column)] = store_x(c00)
                out[uint64(to0 + j1 * out_column)] = store_x(c01)
                out[uint64(to0 + j2 * out_column)] = store_x(c02)
                out[uint64(to0 + j3 * out_column)] = store_x(c03)
                out[uint64(to1 + j * out_column)] = store_x(c10)
                out[uint64(to1 + j1 * out_column)] = store_x(c11)
                out[uint64(to1 + j2 * out_column)] = store_x(c12)
                out[uint64(to1 + j3 * out_column)] = store_x(c13)


def biased_product_loop(lo, hi, sizes, steps, alpha, beta, out, out_at, bias, bias_at, a, a_at, b, b_at):
    """Matrices lo <= g < hi of out = alpha * (a @ b) + beta * bias. The steps of `bias` are the last ones."""
    product_loop(lo, hi, sizes, steps, out, out_at, a, a_at, b, b_at)
    n, m = sizes[0], sizes[2]
    out_step, out_row, out_column = steps[0], steps[1], steps[2]
    bias_step, bias_row, bias_column = steps[9], steps[10], steps[11]
    for g in range(lo, hi):
        for i in range(n):
            to, at = out_at + g * out_step + i * out_row, bias_at + g * bias_step + i * bias_row
            for j in range(m):
                product = out[uint64(to + j * out_column)] * alpha
                out[uint64(to + j * out_column)] = product + bias[uint64(at + j * bias_column)] * beta


# "contract" alone: a product and a sum may be rounded once instead of twice, as in BLAS. It changes nothing for NaN.
CONTRACT = frozenset({"contract"})

PRODUCT = Template(product_loop, "int64[] sizes steps", "x[] out a b", fastmath=CONTRACT)
BIASED_PRODUCT = Template(
    biased_product_loop, "int64[] sizes steps", "x alpha beta", "x[] out bias a b", fastmath=CONTRACT
)


def _tables(a: Operand, b: Operand, *steps_of: Operand) -> tuple[np.ndarray, np.ndarray]:
    """The loops' sizes and steps."""
    sizes = a.shape[-2], a.shape[-1], b.shape[-1]
    steps = [(0, *x.strides)[-3:] for x in steps_of]
    return np.array(sizes, np.int64), np.array(steps, np.int64).ravel()


# --- through BLAS ----------------------------------------------------------------------------------------------------


def _compute(x: Operand) -> np.ndarray:
    """A numpy view of the operand in its compute type; copies only 16-bit floats."""
    compute = DTYPES[x.dtype].compute
    if compute == x.dtype:
        return as_ndarray(x)
    wide = empty(x.shape, compute)
    copy(wide, x)
    return as_ndarray(wide)


def empty(shape: tuple[int, ...], dtype: str) -> Operand:
    """Fresh dense memory."""
    return Operand(np.empty(numel(shape), DTYPES[dtype].storage), dtype, shape, contiguous_strides(shape))


def matmul(
    out: Operand,
    a: Operand,
    b: Operand,
    bias: Operand | None = None,
    *,
    alpha: complex = 1,
    beta: complex = 1,
    conj: Conjugated = NONE,
) -> None:
    """out = alpha * (a @ b) + beta * bias. Shapes [..., n, k] @ [..., k, m] -> [..., n, m]; `bias` broadcasts.

    With beta == 0 the bias is not read, so that NaN in it does not spread. `out` may be the bias, not a factor.
    An empty k gives zeros. All operands have one dtype. `conj`: which of a, b and bias are to be conjugated.
    """
    compute = DTYPES[out.dtype].compute
    biased = bias is not None and beta != 0
    in_place = compute == out.dtype != "bool" and not (biased and bias.array is out.array)  # type: ignore[union-attr]  # biased
    x, y = _compute(a), _compute(b)
    both = conj[0] and conj[1]  # then it is done to the product
    x, y = x.conj() if conj[0] and not both else x, y.conj() if conj[1] and not both else y
    allow_threads(numel(out.shape) * a.shape[-1])
    if out.dtype == "bool":
        result = np.matmul(x.astype(np.int64), y.astype(np.int64)) != 0
    elif in_place:
        result = as_ndarray(out)
        multiply(result, x, y)
    else:
        result = np.matmul(x, y)
    if both:
        np.conjugate(result, out=result)
    if alpha != 1:
        result *= result.dtype.type(alpha)
    if bias is not None and biased:
        added = _compute(bias).conj() if conj[2] else _compute(bias)
        result += added if beta == 1 else added * result.dtype.type(beta)
    if in_place:
        return
    dense = np.ascontiguousarray(result)
    copy(out, Operand(dense.ravel(), compute, dense.shape, contiguous_strides(dense.shape)))


def multiply(out: np.ndarray, a: np.ndarray, b: np.ndarray, add: bool = False) -> None:
    """out = a @ b, or that is added to it: of numpy's views of memory. Each target has its own way."""
    target = TARGET.get()
    if target is not None:
        target.multiply(out, a, b, add)
    elif add:
        out += a @ b
    else:
        np.matmul(a, b, out=out)


# --- prepared for operands of such metadata ---------------------------------------------------------------------------


def ready_matmul(out: Operand, a: Operand, b: Operand, *, conj: Conjugated = NONE) -> Callable[..., object]:
    """`matmul` of matrices or batches of them, as `f(out, out_at, a, a_at, b, b_at)`."""
    if is_small(a, b):
        return ready(PRODUCT(x=out.dtype), _matrices(out), _tables(a, b, out, a, b), FEW)
    return _ready_blas(bare(out), bare(a), bare(b), conj)


def ready_addmm(
    out: Operand,
    bias: Operand,
    a: Operand,
    b: Operand,
    *,
    alpha: complex = 1,
    beta: complex = 1,
    conj: Conjugated = NONE,
) -> Callable[..., object]:
    """Prepares a product plus `bias`, of `out`'s shape, as `f(out, out_at, bias, bias_at, a, a_at, b, b_at)`."""
    out, bias, a, b = bare(out), bare(bias), bare(a), bare(b)
    if beta == 0 or DTYPES[out.dtype].kind != "float" or DTYPES[out.dtype].compute != out.dtype:
        return lambda to, to_at, c, c_at, x, x_at, y, y_at: matmul(
            moved(out, to, to_at),
            moved(a, x, x_at),
            moved(b, y, y_at),
            moved(bias, c, c_at),
            alpha=alpha,
            beta=beta,
            conj=conj,
        )
    alpha, beta = float(alpha), float(beta)  # type: ignore[arg-type]  # the dtype is real
    if is_small(a, b):
        return ready(BIASED_PRODUCT(x=out.dtype), _matrices(out), (*_tables(a, b, out, a, b, bias), alpha, beta), FEW)
    multiply = _ready_blas(out, a, b)
    add = _SCALED_SUM.loop((out,), (out, bias, alpha, beta), out.dtype).run

    def product(
        to: np.ndarray, to_at: int, c: np.ndarray, c_at: int, x: np.ndarray, x_at: int, y: np.ndarray, y_at: int
    ) -> None:
        multiply(to, to_at, x, x_at, y, y_at)
        add(to, to_at, c, c_at, alpha, beta)

    return product


def scaled_sum(product, bias, alpha, beta):
    return product * alpha + bias * beta


_SCALED_SUM = Elementwise("scaled_sum", scaled_sum)


def is_small(a: Operand, b: Operand) -> bool:
    """Whether our own loop takes no longer than BLAS for each product of matrices, its blocks being computed whole."""
    (n, k), m = a.shape[-2:], b.shape[-1]
    return DTYPES[a.dtype].kind == "float" and (n + n % 2) * k * (m + -m % 4) <= FEW


def _matrices(out: Operand) -> int:
    return out.shape[0] if len(out.shape) == 3 else 1


def bare(x: Operand) -> Operand:
    """The metadata of an operand, without its memory: for what is remembered, and must not keep memory alive."""
    return x._replace(array=np.empty(0, np.uint8))


def moved(like: Operand, array: np.ndarray, offset: int) -> Operand:
    """Returns an operand of the metadata of another one, elsewhere."""
    return like._replace(array=array, offset=offset)


def _ready_blas(out: Operand, a: Operand, b: Operand, conj: Conjugated = NONE) -> Callable[..., object]:
    info, dense = DTYPES[out.dtype], is_contiguous(out.shape, out.strides)
    plain = dense and not any(conj) and len(out.shape) == 2
    if not plain or info.kind not in ("float", "complex") or info.compute != out.dtype:
        return lambda to, to_at, x, x_at, y, y_at: matmul(
            moved(out, to, to_at), moved(a, x, x_at), moved(b, y, y_at), conj=conj
        )
    see_out, see_a, see_b, work = _matrix_of(out), _matrix_of(a), _matrix_of(b), numel(out.shape) * a.shape[1]

    def product(to: np.ndarray, to_at: int, x: np.ndarray, x_at: int, y: np.ndarray, y_at: int) -> None:
        allow_threads(work)
        np.dot(see_a(x, x_at), see_b(y, y_at), see_out(to, to_at))  # np.matmul asks for 0.5 us more

    return product


def _matrix_of(x: Operand) -> Callable[[np.ndarray, int], np.ndarray]:
    """Returns what views memory as such a matrix. Dense ones are had in half the time of others."""
    rows, columns = x.shape
    size = rows * columns

    def by_rows(array: np.ndarray, at: int) -> np.ndarray:
        return (array if len(array) == size else array[at : at + size]).reshape(rows, columns)

    def by_columns(array: np.ndarray, at: int) -> np.ndarray:
        return (array if len(array) == size else array[at : at + size]).reshape(columns, rows).T

    if is_contiguous(x.shape, x.strides):
        return by_rows
    if is_contiguous(x.shape[::-1], x.strides[::-1]):
        return by_columns
    return lambda array, at: as_ndarray(moved(x, array, at))


# --- for loops that call it by its address ----------------------------------------------------------------------------

BY_ROWS, AS_IT_IS, TRANSPOSED = 101, 111, 112  # C's words for how matrices lie


def gemm_meaning(order, a_as, b_as, n, m, k, alpha, a, a_step, b, b_step, beta, out, out_step):
    """out = alpha * (a @ b) + beta * out: matrices of n x k and k x m, rows that many elements apart."""

    def matrix(array, rows, columns, step, how=AS_IT_IS):
        if how == TRANSPOSED:
            return matrix(array, columns, rows, step).T
        return np.lib.stride_tricks.as_strided(array, (rows, columns), (step * array.itemsize, array.itemsize))

    result = matrix(out, n, m, out_step)
    product = alpha * (matrix(a, n, k, a_step, a_as) @ matrix(b, k, m, b_step, b_as))
    result[...] = product if beta == 0 else product + beta * result


@cache
def gemm(dtype: str) -> External | None:
    """BLAS's product of matrices, for loops to call it; None where numpy has no library of 64-bit sizes."""
    import ctypes  # here, because a program may never multiply matrices

    letter = {"float32": "s", "float64": "d"}.get(dtype)
    names = [f"{prefix}cblas_{letter}gemm{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "_64")]
    for function in _functions("numpy", names if letter else []):
        takes = ("int32",) * 3 + ("int64",) * 3 + (dtype, "ptr", "int64", "ptr", "int64", dtype, "ptr", "int64")
        address = ctypes.cast(function, ctypes.c_void_p).value
        return External(f"redispatch.{letter}gemm", takes, address or 0, gemm_meaning)
    return None


# --- threads ----------------------------------------------------------------------------------------------------------

WORTH_THREADS = 16_000_000  # multiplications; about a quarter of a millisecond on one core

_NAMES = [f"{prefix}openblas_set_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "_64", "")]
_current: dict[str, int] = {}  # what was said last to each package's library


def _functions(package: str, names: Sequence[str]) -> Iterator[Any]:
    """Yields functions of these names from the OpenBLAS that a package brought along."""
    import ctypes  # here, because a program may never multiply matrices

    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return
    folder = Path(spec.origin).parent
    for libraries in (folder.parent / f"{package}.libs", folder / ".dylibs", folder / ".libs"):
        for path in libraries.glob("*openblas*"):
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                continue
            yield from (getattr(library, name) for name in names if hasattr(library, name))


@cache
def _setter(package: str) -> Callable[[int], None] | None:
    """OpenBLAS's own function, from the library that the package brought along; None where there is none."""
    import ctypes  # here, because a program may never multiply matrices

    for function in _functions(package, _NAMES):
        function.argtypes, function.restype = [ctypes.c_int], None
        return function
    return None


def allow_threads(multiplications: int, package: str = "numpy") -> None:
    """Called before a product of that size."""
    wanted = get_num_threads() if multiplications >= WORTH_THREADS else 1
    if wanted != _current.get(package):
        _current[package] = wanted
        if (set_threads := _setter(package)) is not None:
            set_threads(wanted)
