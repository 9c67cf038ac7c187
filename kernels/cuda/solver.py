"""Factorisations of large matrices by NVIDIA's cuSOLVER, where its bindings are installed: `nvmath.bindings`.

Read blas.py before: handles are made alike, and a `Factor` stands in the place of a launch. Matrices lie by columns,
which is how results of factorisations lie anyway; each is overwritten by its factors. A batch is a call for each
matrix: batches of small ones are for our own kernels (factorisations.py). What cuSOLVER needs to work in belongs to the
handle, and is never given back, since a recorded graph may use it; each piece is at least twice the one before.
Source: NVIDIA, cuSOLVER Library documentation, "cuSolverDN: dense LAPACK, 64-bit API".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .blas import DATA, LOWER, UPPER, Library
from .driver import Driver, Start, calling, where_bound

ALL, SOME, NONE = (ord(letter) for letter in "ASN")  # which singular vectors are wanted
REAL = {"complex64": "float32", "complex128": "float64"}


class Handle:
    """A handle of cuSOLVER's for one thread and one stream, with what it works in."""

    def __init__(self, api: Any, allocate: Callable[[int], int], raw: int) -> None:
        self.number = api.create()
        self.params = api.create_params()
        api.set_stream(self.number, raw)
        self.allocate, self.memory, self.nbytes = allocate, 0, 0
        self.host = np.empty(0, np.uint8)

    def work(self, on_device: int, on_host: int) -> tuple[int, int, int, int]:
        """Addresses and sizes of memory to work in, on the device and on the host."""
        if on_device > self.nbytes:
            self.nbytes = max(on_device, 2 * self.nbytes)
            self.memory = self.allocate(self.nbytes)
        if on_host > self.host.nbytes:
            self.host = np.empty(on_host, np.uint8)
        return self.memory, on_device, self.host.ctypes.data, on_host


class Solver(Library):
    """cuSOLVER on the devices of a driver."""

    def create(self, device: int, raw: int) -> Handle:
        with self.driver.relaxed():
            return Handle(self.api, lambda nbytes: self.driver.allocate(device, nbytes), raw)


@where_bound
def solver_library(driver: Any) -> Solver:
    """cuSOLVER for a driver of cards."""
    from nvmath.bindings import cusolver, cusolverDn  # here, because few have it

    cusolver.get_property(0)  # finds the library itself
    return Solver(cusolverDn, driver)


class Factor:
    """A call for each of so many matrices, one behind the other: what stands in the place of a launch.

    name: of cuSOLVER's function. strides: for each address that is told, how many bytes it is on from one matrix to the
    next; the last is that of `info`. arguments: of the function, behind its parameters and before what it works in, for
    the other addresses; `asked` are those of the function that tells how much that is, where they are others.
    """

    def __init__(
        self,
        name: str,
        count: int,
        strides: tuple[int, ...],
        arguments: Callable[..., tuple[int, ...]],
        asked: Callable[..., tuple[int, ...]] | None = None,
    ) -> None:
        self.name, self.count, self.strides = name, count, strides
        self.arguments, self.asked = arguments, asked or arguments

    def on(self, driver: Driver) -> Start:
        """Returns its caller: `start(addresses, stream)`."""
        solver: Any = driver.solver
        run, size_of = getattr(solver.api, self.name), getattr(solver.api, f"{self.name}_buffer_size")

        def factor(stream: int, *addresses: int) -> None:
            handle = solver.handle(stream)
            for k in range(self.count):
                *at, info = (a + k * step for a, step in zip(addresses, self.strides, strict=True))
                first = handle.number, handle.params
                needed = size_of(*first, *self.asked(*at))
                run(*first, *self.arguments(*at), *handle.work(*needed), info)

        return calling(factor)


INFO = 4  # bytes


def cholesky(dtype: str, count: int, n: int, upper: bool) -> Factor:
    """Runs on a, info."""
    kind, item = DATA[dtype], np.dtype(dtype).itemsize
    side = UPPER if upper else LOWER
    return Factor("xpotrf", count, (n * n * item, INFO), lambda a: (side, n, kind, a, n, kind))


def lu(dtype: str, count: int, m: int, n: int) -> Factor:
    """Runs on a, pivots, info. Pivots are int64."""
    kind, item = DATA[dtype], np.dtype(dtype).itemsize
    return Factor(
        "xgetrf", count, (m * n * item, min(m, n) * 8, INFO),
        lambda a, pivots: (m, n, kind, a, m, pivots, kind), lambda a, pivots: (m, n, kind, a, m, kind),
    )  # fmt: skip


def reflections(dtype: str, count: int, m: int, n: int) -> Factor:
    """Runs on a, tau, info."""
    kind, item = DATA[dtype], np.dtype(dtype).itemsize
    strides = (m * n * item, min(m, n) * item, INFO)
    return Factor("xgeqrf", count, strides, lambda a, tau: (m, n, kind, a, m, kind, tau, kind))


def eigenvalues(dtype: str, count: int, n: int, upper: bool, vectors: bool) -> Factor:
    """Runs on a, which becomes the vectors, values, info."""
    kind, real, item = DATA[dtype], REAL.get(dtype, dtype), np.dtype(dtype).itemsize
    side, values, small = UPPER if upper else LOWER, DATA[real], np.dtype(real).itemsize
    strides = (n * n * item, n * small, INFO)
    return Factor("xsyevd", count, strides, lambda a, w: (int(vectors), side, n, kind, a, n, values, w, kind))


def singular_values(dtype: str, count: int, m: int, n: int, wanted: int) -> Factor:
    """Runs on a, which is lost, values, u, vt, info, for m >= n."""
    kind, real, item = DATA[dtype], REAL.get(dtype, dtype), np.dtype(dtype).itemsize
    values, columns = DATA[real], m if wanted == ALL else n
    strides = (m * n * item, n * np.dtype(real).itemsize, m * columns * item, n * n * item, INFO)
    if wanted == NONE:
        strides = (*strides[:2], 0, 0, INFO)
    return Factor(
        "xgesvd", count, strides,
        lambda a, s, u, vt: (wanted, wanted, m, n, kind, a, m, values, s, kind, u, m, kind, vt, n, kind),
    )  # fmt: skip
