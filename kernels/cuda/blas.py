"""Products of matrices by NVIDIA's cuBLAS, where its bindings are installed: `nvmath.bindings`. Read matmul.py before.

cuBLAS knows matrices by columns, and a matrix by rows is the transposed one by columns: so b^T a^T is asked for, which
lies in memory as a b does by rows. A factor may lie by rows or by columns, with any step from one to the next; products
of others, of integers, and of complex numbers that are to be conjugated fall to our own kernel.

Sums are float32 for 16-bit floats, and float32 products are exact float32, unless `reduced` says that factors may be
rounded to TF32, as it is asked at each call. Source: NVIDIA, cuBLAS Library documentation, "cublasGemmEx".
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES, Operand

from ..engine.elementwise import Number
from .driver import Driver, Start, calling, where_bound

OF_16_BITS = {"float16": 2, "bfloat16": 14}  # cudaDataType_t
DATA = {**OF_16_BITS, "float32": 0, "float64": 1, "complex64": 4, "complex128": 5}
IN_32, IN_64, IN_TF32 = 68, 70, 77  # cublasComputeType_t
PLAIN, TRANSPOSED, ADJOINT = 0, 1, 2  # cublasOperation_t
LEFT, RIGHT = 0, 1  # cublasSideMode_t
LOWER, UPPER = 0, 1  # cublasFillMode_t
DEFAULT = -1  # cublasGemmAlgo_t
MOST = 2**31 - 1  # of sizes and steps
WORKSPACE = 32 << 20  # bytes, what NVIDIA recommends for its largest cards


class Library:
    """cuBLAS on the devices of a driver. A handle serves one thread and one stream, and has memory of its own."""

    def __init__(self, api: Any, driver: Any) -> None:
        self.api, self.driver = api, driver
        self.local = threading.local()

    def handle(self, stream: int) -> Any:
        """The handle for a stream, in the calling thread, with the stream's device current."""
        handles: dict[int, Any] = self.local.__dict__.setdefault("handles", {})
        device, raw = self.driver.streams[stream][0], int(self.driver.raw(stream))
        found = handles.get(stream)
        if found is None:
            found = handles[stream] = self.create(device, raw)
        return found

    def create(self, device: int, raw: int) -> Any:
        """A handle for a stream that CUDA knows by this number."""
        memory = self.driver.allocate(device, WORKSPACE)
        with self.driver.relaxed():
            found = self.api.create()
            self.api.set_stream(found, raw)
            self.api.set_workspace(found, memory, WORKSPACE)
        return found


@where_bound
def library(driver: Any) -> Library:
    """cuBLAS for a driver of cards."""
    from nvmath.bindings import cublas  # here, because few have it

    cublas.get_property(0)  # finds the library itself
    return Library(cublas, driver)


def laid(rows: int, columns: int, strides: tuple[int, ...]) -> tuple[int, int] | None:
    """(whether it is transposed, the step from line to line) of a matrix as cuBLAS sees it; None where it cannot."""
    down, across = strides[-2:]
    if (across == 1 or columns == 1) and (down >= columns or rows == 1):
        return PLAIN, down if rows > 1 else max(columns, 1)
    if (down == 1 or rows == 1) and (across >= rows or columns == 1):
        return TRANSPOSED, across if columns > 1 else max(rows, 1)
    return None


def in_batches(x: Operand) -> Operand:
    """A matrix, or a batch of them, as a batch."""
    return x if len(x.shape) == 3 else x._replace(shape=(1, *x.shape), strides=(0, *x.strides))


class Product:
    """A product whose operands look so: what stands in the place of a launch. It is told the addresses of out, a, b."""

    def __init__(
        self, numbers: tuple[int, ...], steps: tuple[int, ...], dtype: str, alpha: Number, beta: Number, reduced: Any
    ) -> None:
        self.numbers, self.steps, self.dtype, self.reduced = numbers, steps, dtype, reduced
        scale = "float32" if dtype in OF_16_BITS else dtype
        self.alpha, self.beta = (np.array([value], scale) for value in (alpha, beta))
        self.compute = IN_64 if scale in ("float64", "complex128") else IN_32

    def on(self, driver: Driver) -> Start:
        """Returns the function that computes it: `start(arguments, stream)`."""
        cublas: Any = driver.blas
        run, handle, kind = cublas.api.gemm_strided_batched_ex, cublas.handle, DATA[self.dtype]
        turn_b, turn_a, columns, rows, inner, step_b, step_a, step_out, count = self.numbers
        next_b, next_a, next_out = self.steps
        alpha, beta = self.alpha.ctypes.data, self.beta.ctypes.data  # `self` keeps them: `multiply` holds it
        may_round = self.dtype in ("float32", "complex64")

        def multiply(stream: int, out: int, a: int, b: int) -> None:
            run(
                handle(stream), turn_b, turn_a, columns, rows, inner,
                alpha, b, kind, step_b, next_b, a, kind, step_a, next_a,
                beta, out, kind, step_out, next_out, count, IN_TF32 if may_round and self.reduced() else self.compute,
                DEFAULT,
            )  # fmt: skip

        return calling(multiply)


class Triangles:
    """X of op(A) X = B, or of X op(A) = B where not `left`, in the place of B, for so many matrices whose columns lie
    one behind the other. It is told the addresses of B and A.

    turned: PLAIN, TRANSPOSED or ADJOINT. steps: from matrix to matrix, and the columns' lengths, of B and of A.
    """

    LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}

    def __init__(
        self, dtype: str, count: int, shape: tuple[int, int], steps: tuple[int, int, int, int], *how: bool | int
    ) -> None:
        self.count, self.shape, self.steps, self.dtype = count, shape, steps, dtype
        self.left, self.lower, self.turned, self.unit = how
        self.one = np.ones(1, dtype)

    def on(self, driver: Driver) -> Start:
        """Returns the function that solves it: `start(arguments, stream)`."""
        cublas: Any = driver.blas
        run, handle = getattr(cublas.api, f"{self.LETTERS[self.dtype]}trsm"), cublas.handle
        one, (next_b, column_b, next_a, column_a) = self.one.ctypes.data, self.steps  # `self` keeps it
        how = (LEFT if self.left else RIGHT, LOWER if self.lower else UPPER, self.turned, int(self.unit))
        size = np.dtype(self.dtype).itemsize

        def solve(stream: int, b: int, a: int) -> None:
            for k in range(self.count):
                at = a + k * next_a * size, column_a, b + k * next_b * size, column_b
                run(handle(stream), *how, *self.shape, one, *at)

        return calling(solve)


def product(
    out: Operand, a: Operand, b: Operand, alpha: Number, beta: Number, reduced: Callable[[], bool]
) -> Product | None:
    """out = alpha a b + beta out by cuBLAS; None where it is not for cuBLAS. Batches or matrices, of one dtype."""
    out, a, b = in_batches(out), in_batches(a), in_batches(b)
    (count, rows, columns), inner = out.shape, a.shape[2]
    if out.dtype not in DATA or not (count and rows and columns and inner):
        return None
    how = [laid(x.shape[1], x.shape[2], x.strides) for x in (out, a, b)]
    if how[0] is None or how[1] is None or how[2] is None or how[0][0] != PLAIN:
        return None
    (_, step_out), (turn_a, step_a), (turn_b, step_b) = how[0], how[1], how[2]
    numbers = (turn_b, turn_a, columns, rows, inner, step_b, step_a, step_out, count)
    if max(numbers) > MOST or (count > 1 and out.strides[0] < (rows - 1) * step_out + columns):
        return None
    if DTYPES[out.dtype].kind != "complex":
        alpha, beta = float(alpha.real), float(beta.real)
    return Product(numbers, (b.strides[0], a.strides[0], out.strides[0]), out.dtype, alpha, beta, reduced)
