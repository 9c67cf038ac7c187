"""Factorisations by cuSOLVER, with bindings that check how they are called. No card is needed, nor claimed."""

import inspect

import pytest

import redispatch as rd
from redispatch import linalg
from redispatch.kernels import cuda
from redispatch.kernels.cuda import blas, solver
from redispatch.kernels.cuda.ops import factorisations, matrices
from redispatch.testing import assert_close

from .conftest import devices_of
from .families import same_gradients
from .test_matrices import definite, numbers, regular, the_same

pytest.importorskip("cuda.core", reason="NVIDIA's bindings, whose signatures are checked: install redispatch[cuda]")
pytestmark = pytest.mark.skipif(not cuda.available(), reason="kernels are compiled: install redispatch[cuda]")

from .fake_blas import fake_blas  # noqa: E402  # behind the skips
from .fake_card import fake_cards  # noqa: E402  # after the path is set
from .fake_solver import SIGNATURES, TRSM, fake_solver  # noqa: E402  # after the path is set

DTYPES = [rd.float32, *(pytest.param(dtype, marks=pytest.mark.long) for dtype in (rd.float64, rd.complex64))]


@pytest.fixture
def library(monkeypatch):
    """cuSOLVER for all matrices of more than two elements, and cuBLAS."""
    monkeypatch.setattr(blas, "WORKSPACE", 1 << 10)
    monkeypatch.setattr(factorisations, "SHARED_BYTES", 8)
    monkeypatch.setattr(matrices, "LEAST", 2)
    with (
        fake_cards(monkeypatch) as (driver, world),
        fake_blas(monkeypatch, world) as products,
        fake_solver(monkeypatch, world, products) as found,
    ):
        driver.blas, driver.solver = blas.library(driver), solver.solver_library(driver)
        with devices_of(driver):
            yield found


def called(library):
    names, library.calls[:] = sorted(set(library.calls)), []
    return names


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_factors(library, dtype):
    for upper in (True, False):
        the_same(lambda x, upper=upper: linalg.cholesky_ex(x, upper=upper), definite(2, 4, 4, dtype=dtype))
    assert called(library) == ["xpotrf"]
    for shape in ((2, 4, 4), (3, 5), (5, 3)):
        the_same(linalg.lu_factor_ex, numbers(*shape, dtype=dtype))
        the_same(linalg.qr, numbers(*shape, dtype=dtype).mT.contiguous().mT)
    the_same(linalg.lu_factor_ex, numbers(0, 3, 3, dtype=dtype))
    assert called(library) == ["xgeqrf", "xgetrf"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_solutions(library, dtype):
    letter = {"float32": "s", "float64": "d", "complex64": "c"}[dtype.name]
    a, b = regular(2, 4, 4, dtype=dtype), numbers(2, 4, 3, dtype=dtype)
    for left in (True, False):
        right = b if left else b.mT.contiguous()
        for flag in (True, False):
            for given in (a, a.mT.contiguous().mT):
                the_same(
                    lambda a, b, x=left, f=flag: linalg.solve_triangular(a, b, upper=f, left=x, unitriangular=x),
                    given / 4,
                    right,
                )
                assert called(library) == [f"{letter}trsm"]
            the_same(lambda a, b, x=left, f=flag: linalg.lu_solve(*linalg.lu_factor(a), b, left=x, adjoint=f), a, right)
            by_own_kernel = dtype.is_complex and not left and flag  # conj(A), which cuBLAS does not know
            assert called(library) == ([] if by_own_kernel else [f"{letter}trsm"]) + ["xgetrf"]
    the_same(linalg.solve, a, b)
    the_same(linalg.inv, a)
    the_same(lambda s, b: rd.cholesky_solve(b, linalg.cholesky(s)), definite(2, 4, 4, dtype=dtype), b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_eigenvalues_and_singular_values(library, dtype):
    for flag in ("L", "U"):
        the_same(lambda x, flag=flag: linalg.eigh(x, flag), definite(2, 4, 4, dtype=dtype))
    the_same(linalg.eigvalsh, definite(4, 4, dtype=dtype))
    assert called(library) == ["xsyevd"]
    for shape in ((2, 4, 3), (3, 5), (4, 4)):
        x = numbers(*shape, dtype=dtype)
        the_same(linalg.svdvals, x)
        for full in (True, False):
            U, S, Vh = linalg.svd(x.cuda(), full)
            wanted = linalg.svd(x, full)
            assert [one.stride() for one in (U, S, Vh)] == [one.stride() for one in wanted]
            assert_close(S.cpu(), wanted[1])
            k = S.shape[-1]
            assert_close(((U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :]).cpu(), x)
            assert_close((U.mH @ U).cpu(), rd.eye(U.shape[-1], dtype=dtype).expand(*shape[:-2], -1, -1))
    assert called(library) == ["xgesvd"]
    if dtype is rd.float64:
        same_gradients(linalg.svdvals, numbers(3, 3, dtype=dtype))


def test_small_matrices_are_for_our_own_kernels_and_the_host(library, monkeypatch):
    monkeypatch.setattr(factorisations, "SHARED_BYTES", 40 << 10)
    monkeypatch.setattr(matrices, "LEAST", 64)
    x = definite(2, 3, 3)
    the_same(linalg.cholesky, x)
    the_same(linalg.eigvalsh, x)
    the_same(linalg.solve, x, x)
    assert not library.calls


def test_what_went_wrong_is_told_of_and_a_factorisation_can_be_recorded(library):
    x = rd.eye(3, device="cuda")
    assert linalg.cholesky_ex(-x)[1].item() == 1
    with pytest.raises(linalg.LinAlgError, match="leading minor of order 1"):
        linalg.cholesky(-x)
    with pytest.raises(RuntimeError, match="driver='gesvda' is not among those"):
        linalg.svd(x, driver="gesvda")
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        factor, _ = linalg.cholesky_ex(x)
    x.copy_(x * 4)
    graph.replay()
    assert_close(factor.cpu(), rd.eye(3) * 2)


def test_the_signatures_are_those_of_the_bindings():
    cusolver = pytest.importorskip("nvmath.bindings.cusolverDn", reason="needs nvmath-python")
    cublas = pytest.importorskip("nvmath.bindings.cublas", reason="needs nvmath-python")
    for name, words in SIGNATURES.items():
        assert " ".join(inspect.signature(getattr(cusolver, name)).parameters) == words
    for letter in "sdcz":
        assert " ".join(inspect.signature(getattr(cublas, f"{letter}trsm")).parameters) == TRSM
    assert (blas.LOWER, blas.UPPER) == (cublas.FillMode.LOWER, cublas.FillMode.UPPER)
    assert (blas.LEFT, blas.RIGHT) == (cublas.SideMode.LEFT, cublas.SideMode.RIGHT)
    assert blas.ADJOINT == cublas.Operation.C
