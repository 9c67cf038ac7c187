"""cuSOLVER, and cuBLAS for triangles, over a simulated GPU: matrices lie by columns, and LAPACK does the work."""

import sys
from contextlib import contextmanager
from types import ModuleType

import numpy as np
import scipy.linalg

from redispatch.kernels.cpu import lapack

from .fake_blas import ELEMENTS, number_at

# of nvmath-python 1.0; test_solver.py compares them with those that are installed, if any are
WORK = "buffer_on_device workspace_in_bytes_on_device buffer_on_host workspace_in_bytes_on_host info"
ASKED = {
    "xpotrf": "uplo n data_type_a a lda compute_type",
    "xgetrf": "m n data_type_a a lda compute_type",
    "xgeqrf": "m n data_type_a a lda data_type_tau tau compute_type",
    "xsyevd": "jobz uplo n data_type_a a lda data_type_w w compute_type",
    "xgesvd": "jobu jobvt m n data_type_a a lda data_type_s s data_type_u u ldu data_type_vt vt ldvt compute_type",
}
GIVEN = {**ASKED, "xgetrf": "m n data_type_a a lda ipiv compute_type"}
SIGNATURES = {
    "create": "",
    "create_params": "",
    "set_stream": "handle stream_id",
    **{f"{name}_buffer_size": f"handle params {words}" for name, words in ASKED.items()},
    **{name: f"handle params {words} {WORK}" for name, words in GIVEN.items()},
}
TRSM = "handle side uplo trans diag m n alpha a lda b ldb"


class FakeSolver:
    """The functions. `calls` notes which were called."""

    def __init__(self, world):
        self.world, self.streams, self.calls, self.needed = world, {}, [], {}

    def create(self):
        self.streams[len(self.streams) + 1] = None, self.world.current()
        return len(self.streams)

    def create_params(self):
        return 77

    def set_stream(self, handle, stream_id):
        self.streams[handle] = stream_id, self.world.current()

    def __getattr__(self, name):
        asks = name.endswith("_buffer_size")
        words = SIGNATURES[name].split()

        def call(*given):
            assert len(given) == len(words), f"{name} takes {words}"
            named = dict(zip(words, given, strict=True))
            assert named["params"] == 77 and self.world.current() == self.streams[named["handle"]][1]
            if asks:
                self.needed[name.removesuffix("_buffer_size")] = 96, 24
                return 96, 24
            assert (named["workspace_in_bytes_on_device"], named["workspace_in_bytes_on_host"]) == self.needed[name]
            self.calls.append(name)

            class Target:
                number = self.streams[named["handle"]][0]

            def step():
                self.world.gpu.write(named["buffer_on_device"], np.zeros(96, np.uint8))  # it is there
                info = getattr(self, f"on_{name}")(**named)
                self.world.gpu.write(named["info"], np.array([info], np.int32).view(np.uint8))

            self.world.do(Target, step)

        return call

    def matrix(self, at, kind, rows, columns, step):
        assert step >= max(rows, 1), "CUSOLVER_STATUS_INVALID_VALUE"
        item = np.dtype(ELEMENTS[kind])
        flat = self.world.gpu.read(at, ((columns - 1) * step + rows) * item.itemsize).view(item)
        return np.lib.stride_tricks.as_strided(flat, (rows, columns), (item.itemsize, step * item.itemsize)).copy()

    def put(self, at, matrix, step=None):
        for k, column in enumerate(np.atleast_2d(matrix.T)):
            where = at + k * (step or matrix.shape[0]) * matrix.itemsize
            self.world.gpu.write(where, np.ascontiguousarray(column).view(np.uint8))

    def on_xpotrf(self, uplo, n, data_type_a, a, lda, **_):
        x = self.matrix(a, data_type_a, n, n, lda)
        factor, info = lapack.cholesky(x, bool(uplo))
        beside = np.tril(x, -1) if uplo else np.triu(x, 1)  # which is left alone
        self.put(a, factor + beside)
        return info

    def on_xgetrf(self, m, n, data_type_a, a, lda, ipiv, **_):
        factors, pivots, info = lapack.lu(self.matrix(a, data_type_a, m, n, lda))
        self.put(a, factors)
        self.put(ipiv, pivots.astype(np.int64))
        return info

    def on_xgeqrf(self, m, n, data_type_a, a, lda, tau, **_):
        factors, scales = lapack.geqrf(self.matrix(a, data_type_a, m, n, lda))
        self.put(a, factors)
        self.put(tau, scales)
        return 0

    def on_xsyevd(self, jobz, uplo, n, data_type_a, a, lda, data_type_w, w, **_):
        values, vectors, info = lapack.eigh(self.matrix(a, data_type_a, n, n, lda), bool(uplo), bool(jobz))
        self.put(w, values.astype(ELEMENTS[data_type_w]))
        if jobz:
            self.put(a, vectors)
        return info

    def on_xgesvd(
        self, jobu, jobvt, m, n, data_type_a, a, lda, data_type_s, s, u, ldu, vt, ldvt, **_
    ):  # fmt: skip
        assert m >= n and jobu == jobvt, "CUSOLVER_STATUS_INVALID_VALUE"
        wanted = chr(jobu)
        x = self.matrix(a, data_type_a, m, n, lda)
        left, values, right, info = lapack.svd(x, wanted == "A", wanted != "N")
        self.put(s, values.astype(ELEMENTS[data_type_s]))
        if wanted != "N":
            self.put(u, left, ldu)
            self.put(vt, right, ldvt)
        self.put(a, np.full_like(x, 7))  # what is left there
        return info


def trsm(solver, letter):
    """cuBLAS's function of that letter."""
    kind = {"s": 0, "d": 1, "c": 4, "z": 5}[letter]

    def call(handle, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb):
        item = np.dtype(ELEMENTS[kind])
        assert np.frombuffer(number_at(alpha, item.itemsize), item)[0] == 1
        solver.calls.append(f"{letter}trsm")

        class Target:
            number = solver.blas.streams[handle][0]

        def step():
            size = n if side else m
            factor = solver.matrix(a, kind, size, size, lda)
            right = solver.matrix(b, kind, m, n, ldb)
            factor = np.triu(factor) if uplo else np.tril(factor)
            if diag:
                np.fill_diagonal(factor, 1)
            factor = (factor, factor.T, factor.conj().T)[trans]
            found = np.linalg.solve(factor.T, right.T).T if side else scipy.linalg.solve(factor, right)
            solver.put(b, found.astype(item), ldb)

        solver.world.do(Target, step)

    return call


@contextmanager
def fake_solver(monkeypatch, world, blas):
    """`nvmath.bindings` with cuSOLVER for the driver that is made inside; `blas` gets solutions of triangles."""
    found = FakeSolver(world)
    found.blas = blas
    for letter in "sdcz":
        setattr(blas, f"{letter}trsm", trsm(found, letter))
    with monkeypatch.context() as patch:
        bindings = sys.modules["nvmath.bindings"]
        patch.setattr(bindings, "cusolver", ModuleType("cusolver"), raising=False)
        bindings.cusolver.get_property = lambda type: 12
        patch.setattr(bindings, "cusolverDn", found, raising=False)
        yield found
