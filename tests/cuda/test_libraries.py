"""Products by cuBLAS, factorisations by cuSOLVER and transforms by cuFFT, with bindings that check how they are called.

No card is needed, nor claimed.
"""

import gc
import inspect
from contextlib import contextmanager

import pytest

import redispatch as rd
from redispatch import linalg
from redispatch.kernels import cuda
from redispatch.kernels.cuda import blas, cufft, solver
from redispatch.kernels.cuda.ops import factorisations, matrices
from redispatch.testing import assert_close

from .conftest import devices_of
from .helpers import compare, same_gradients
from .test_matrices import definite, regular, the_same
from .test_matrices import numbers as matrix
from .test_products import numbers

pytest.importorskip("cuda.core", reason="NVIDIA's bindings, whose signatures are checked: install redispatch[cuda]")
pytestmark = pytest.mark.skipif(not cuda.available(), reason="kernels are compiled: install redispatch[cuda]")

from .fakes import (  # noqa: E402  # behind the skips
    FakeBlas,
    FakeFFT,
    FakeSolver,
    fake_cards,  # behind the skips
    fake_libraries,
)


@contextmanager
def libraries(monkeypatch, **those):
    """Devices whose driver has these libraries, by the names that it has for them; their bindings."""
    monkeypatch.setattr(blas, "WORKSPACE", 1 << 10)
    with fake_cards(monkeypatch) as (driver, world), fake_libraries(monkeypatch, world) as found:
        for name, library in those.items():
            setattr(driver, name, library(driver))
        with devices_of(driver):
            yield found
        driver.blas = driver.solver = driver.fft = None


@pytest.fixture
def products(monkeypatch):
    with libraries(monkeypatch, blas=blas.library) as found:
        yield found.cublas


@pytest.fixture
def factors(monkeypatch):
    """cuSOLVER for all matrices of more than two elements, and cuBLAS, whose calls it notes, too."""
    monkeypatch.setattr(factorisations, "SHARED_BYTES", 8)
    monkeypatch.setattr(matrices, "LEAST", 2)
    with libraries(monkeypatch, blas=blas.library, solver=solver.solver_library) as found:
        found.cublas.calls = found.cusolverDn.calls
        yield found.cusolverDn


@pytest.fixture
def transforms(monkeypatch):
    with libraries(monkeypatch, fft=cufft.library) as found:
        yield found.cufft


# --- products ---------------------------------------------------------------------------------------------------------


def test_factors_by_rows_and_by_columns_are_multiplied_where_they_lie(products):
    a, b = numbers(5, 7), numbers(7, 3)
    wide = numbers(5, 9)[:, :7]
    turned_a, turned_b = a.t().contiguous().t(), b.t().contiguous().t()
    for left in (a, turned_a, wide):
        for right in (b, turned_b):
            before = len(products.products)
            x = (
                numbers(5, 9).cuda()[:, :7]
                if left is wide
                else left.t().contiguous().cuda().t()
                if left is turned_a
                else a.cuda()
            )
            y = right.t().contiguous().cuda().t() if right is turned_b else b.cuda()
            compare(x @ y, left @ right)
            assert products.products[before:] == [(blas.IN_32, int(right is turned_b), int(left is turned_a))]


@pytest.mark.parametrize("dtype", [rd.float16, rd.bfloat16, rd.float64, rd.complex64, rd.complex128], ids=str)
def test_dtypes_and_what_is_added(products, dtype):
    a, b, c = numbers(4, 6, dtype=dtype), numbers(6, 3, dtype=dtype), numbers(3, dtype=dtype)
    compare(rd.addmm(c.cuda(), a.cuda(), b.cuda(), beta=2, alpha=3), rd.addmm(c, a, b, beta=2, alpha=3))
    wide = dtype in (rd.float64, rd.complex128)
    assert [one[0] for one in products.products] == [blas.IN_64 if wide else blas.IN_32]


def test_batches_vectors_and_a_factor_that_is_repeated(products):
    a, b = numbers(4, 2, 3), numbers(4, 3, 5)
    compare(a.cuda() @ b.cuda(), a @ b)
    compare(rd.bmm(a.cuda(), b[:1].cuda().expand(4, 3, 5)), rd.bmm(a, b[:1].expand(4, 3, 5)))
    compare(a[0].cuda() @ b[0, :, 0].cuda(), a[0] @ b[0, :, 0])
    assert len(products.products) == 3


def test_what_cublas_cannot_do_our_own_kernel_does(products):
    a, b = numbers(4, 6), numbers(6, 3)
    compare(a.int().cuda() @ b.int().cuda(), a.int() @ b.int())
    compare(numbers(4, 12).cuda()[:, ::2] @ b.cuda(), numbers(4, 12)[:, ::2] @ b)
    z = (a + 1j).cuda()
    compare(z.conj() @ b.cuda().to(z.dtype), (a - 1j) @ b.to(z.dtype))
    compare(a.cuda()[:, :0] @ b.cuda()[:0], a[:, :0] @ b[:0])
    assert not products.products


def test_factors_are_rounded_to_tf32_where_the_program_allows_it(products):
    x = numbers(3, 3).cuda()
    try:
        for precision in ("high", "highest", "medium"):
            rd.set_float32_matmul_precision(precision)
            x @ x
            x.double() @ x.double()
    finally:
        rd.set_float32_matmul_precision("highest")
    rounded, exact, double = (blas.IN_TF32, 0, 0), (blas.IN_32, 0, 0), (blas.IN_64, 0, 0)
    assert products.products == [rounded, double, exact, double, rounded, double]


def test_each_stream_has_a_handle_and_a_product_can_be_recorded(products):
    x = numbers(3, 3).cuda()
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        y = x @ x
    x.copy_(x + 1)
    graph.replay()
    compare(y.cpu(), (numbers(3, 3) + 1) @ (numbers(3, 3) + 1))
    x @ x
    assert len(products.streams) == 2 and len(set(products.workspaces.values())) == 2


# --- factorisations ---------------------------------------------------------------------------------------------------

DTYPES = [rd.float32, *(pytest.param(dtype, marks=pytest.mark.long) for dtype in (rd.float64, rd.complex64))]


def called(factors):
    names, factors.calls[:] = sorted(set(factors.calls)), []
    return names


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_factorisations(factors, dtype):
    for upper in (True, False):
        the_same(lambda x, upper=upper: linalg.cholesky_ex(x, upper=upper), definite(2, 4, 4, dtype=dtype))
    assert called(factors) == ["xpotrf"]
    for shape in ((2, 4, 4), (3, 5), (5, 3)):
        the_same(linalg.lu_factor_ex, matrix(*shape, dtype=dtype))
        the_same(linalg.qr, matrix(*shape, dtype=dtype).mT.contiguous().mT)
    the_same(linalg.lu_factor_ex, matrix(0, 3, 3, dtype=dtype))
    assert called(factors) == ["xgeqrf", "xgetrf"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_solutions(factors, dtype):
    letter = {"float32": "s", "float64": "d", "complex64": "c"}[dtype.name]
    a, b = regular(2, 4, 4, dtype=dtype), matrix(2, 4, 3, dtype=dtype)
    for left in (True, False):
        right = b if left else b.mT.contiguous()
        for flag in (True, False):
            for given in (a, a.mT.contiguous().mT):
                the_same(
                    lambda a, b, x=left, f=flag: linalg.solve_triangular(a, b, upper=f, left=x, unitriangular=x),
                    given / 4,
                    right,
                )
                assert called(factors) == [f"{letter}trsm"]
            the_same(lambda a, b, x=left, f=flag: linalg.lu_solve(*linalg.lu_factor(a), b, left=x, adjoint=f), a, right)
            by_own_kernel = dtype.is_complex and not left and flag  # conj(A), which cuBLAS does not know
            assert called(factors) == ([] if by_own_kernel else [f"{letter}trsm"]) + ["xgetrf"]
    the_same(linalg.solve, a, b)
    the_same(linalg.inv, a)
    the_same(lambda s, b: rd.cholesky_solve(b, linalg.cholesky(s)), definite(2, 4, 4, dtype=dtype), b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_eigenvalues_and_singular_values(factors, dtype):
    for flag in ("L", "U"):
        the_same(lambda x, flag=flag: linalg.eigh(x, flag), definite(2, 4, 4, dtype=dtype))
    the_same(linalg.eigvalsh, definite(4, 4, dtype=dtype))
    assert called(factors) == ["xsyevd"]
    for shape in ((2, 4, 3), (3, 5), (4, 4)):
        x = matrix(*shape, dtype=dtype)
        the_same(linalg.svdvals, x)
        for full in (True, False):
            U, S, Vh = linalg.svd(x.cuda(), full)
            wanted = linalg.svd(x, full)
            assert [one.stride() for one in (U, S, Vh)] == [one.stride() for one in wanted]
            assert_close(S.cpu(), wanted[1])
            k = S.shape[-1]
            assert_close(((U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :]).cpu(), x)
            assert_close((U.mH @ U).cpu(), rd.eye(U.shape[-1], dtype=dtype).expand(*shape[:-2], -1, -1))
    assert called(factors) == ["xgesvd"]
    if dtype is rd.float64:
        same_gradients(linalg.svdvals, matrix(3, 3, dtype=dtype))


def test_small_matrices_are_for_our_own_kernels_and_the_host(factors, monkeypatch):
    monkeypatch.setattr(factorisations, "SHARED_BYTES", 40 << 10)
    monkeypatch.setattr(matrices, "LEAST", 64)
    x = definite(2, 3, 3)
    the_same(linalg.cholesky, x)
    the_same(linalg.eigvalsh, x)
    the_same(linalg.solve, x, x)
    assert not factors.calls


def test_what_went_wrong_is_told_of_and_a_factorisation_can_be_recorded(factors):
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


# --- transforms -------------------------------------------------------------------------------------------------------


def test_several_dimensions_are_transformed_at_once(transforms):
    x = rd.randn(2, 3, 4, dtype=rd.complex64)
    compare(rd.fft.fft2(x.cuda()), rd.fft.fft2(x))
    assert transforms.done == [("c2c", (3, 4), 2)]
    compare(rd.fft.ifftn(x.cuda(), norm="forward"), rd.fft.ifftn(x, norm="forward"))
    assert transforms.done[1:] == [("c2c", (2, 3, 4), 1)]
    x = rd.randn(2, 1, 3, 2, 4, dtype=rd.complex64)
    compare(rd.fft.fftn(x.cuda(), norm="ortho"), rd.fft.fftn(x, norm="ortho"))  # of five, three and then two
    assert [n for _, n, _ in transforms.done[2:]] == [(3, 2, 4), (2, 1)]


def test_of_reals_and_to_reals(transforms):
    x = rd.randn(3, 4, 6)
    half = rd.fft.rfftn(x, dim=(1, 2))
    compare(rd.fft.rfftn(x.cuda(), dim=(1, 2)), half)
    there = half.cuda()
    compare(rd.fft.irfft(there, 6, norm="ortho"), rd.fft.irfft(half, 6, norm="ortho"))
    compare(rd.fft.irfftn(there, dim=(1, 2)), rd.fft.irfftn(half, dim=(1, 2)))
    compare(there, half)  # it is not overwritten
    compare(rd.fft.fft(x.cuda()), rd.fft.fft(x))
    names = [name for name, _, _ in transforms.done]
    assert names == ["r2c", "c2r", "c2r", "c2c"]
    x = rd.randn(2, 2, 3, 4)
    compare(rd.fft.irfftn(rd.fft.rfftn(x.cuda()), norm="forward"), rd.fft.irfftn(rd.fft.rfftn(x), norm="forward"))
    assert [(name, n) for name, n, _ in transforms.done[4:]] == [
        ("r2c", (2, 3, 4)), ("c2c", (2,)), ("c2c", (2,)), ("c2r", (2, 3, 4)),
    ]  # fmt: skip


def test_steps_between_elements_and_between_lines(transforms):
    x = rd.randn(4, 6, dtype=rd.complex64)
    compare(rd.fft.fft(x.cuda(), dim=0), rd.fft.fft(x, dim=0))
    compare(rd.fft.fft(x.cuda()[:, ::2]), rd.fft.fft(x[:, ::2]))
    flat = rd.randn(25)
    compare(rd.fft.rfft(flat.cuda()[1:].view(4, 6)), rd.fft.rfft(flat[1:].view(4, 6)))  # not as complex numbers lie
    assert len(transforms.done) == 3


def test_what_cufft_cannot_do_our_own_kernel_does(transforms):
    x = rd.randn(2, 23, dtype=rd.complex64)
    compare(rd.fft.fft(x.cuda()), rd.fft.fft(x))
    y = rd.randn(2, 3, 4, dtype=rd.complex64)
    compare(rd.fft.fft(y.cuda(), dim=1), rd.fft.fft(y, dim=1))  # lines at two distances
    compare(rd.fft.fft(y[:1].cuda().expand(3, 3, 4)), rd.fft.fft(y[:1].expand(3, 3, 4)))
    compare(rd.ops.aten._fft_c2r(y.cuda(), [2], 0, 9), rd.ops.aten._fft_c2r(y, [2], 0, 9))
    compare(rd.fft.fft(y[:0].cuda()), rd.fft.fft(y[:0]))
    assert not transforms.done


def test_gradients_of_transforms(transforms):
    same_gradients(lambda x: rd.fft.irfft(rd.fft.rfft(x, norm="ortho")), rd.randn(3, 4))


def test_a_plan_is_kept_for_calls_that_look_so_and_then_given_back(transforms, monkeypatch):
    monkeypatch.setattr(cufft, "MOST_PLANS", 2)
    x = rd.randn(2, 4, dtype=rd.complex64)
    for _ in range(3):
        compare(rd.fft.fft(x.cuda()), rd.fft.fft(x))
    assert transforms.made == 1
    for n in (2, 3, 5):
        out = rd.empty(2, n, dtype=rd.complex64, device="cuda")
        rd.fft.fft(x.cuda(), n, out=out)  # of such calls nothing is remembered
    gc.collect()
    assert transforms.made == 4 and len(transforms.plans) < 4


def test_a_transform_can_be_recorded_and_runs_in_the_stream_that_it_is_called_in(transforms):
    x = rd.randn(2, 4, dtype=rd.complex64).cuda()
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        y = rd.fft.fft(x)
    x.copy_(x + 1)
    graph.replay()
    compare(y.cpu(), rd.fft.fft(x.cpu()))


# --- all of them ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fake, name", [(FakeBlas, "cublas"), (FakeSolver, "cusolverDn"), (FakeFFT, "cufft")])
def test_the_signatures_are_those_of_the_bindings(fake, name):
    theirs = pytest.importorskip(f"nvmath.bindings.{name}", reason="needs nvmath-python")
    for function, words in fake.SIGNATURES.items():
        assert " ".join(inspect.signature(getattr(theirs, function)).parameters) == words


def test_the_numbers_are_those_of_the_bindings():
    cublas = pytest.importorskip("nvmath.bindings.cublas", reason="needs nvmath-python")
    kinds = pytest.importorskip("nvmath.bindings.cufft", reason="needs nvmath-python").Type
    assert (blas.IN_32, blas.IN_64, blas.IN_TF32) == (
        cublas.ComputeType.COMPUTE_32F, cublas.ComputeType.COMPUTE_64F, cublas.ComputeType.COMPUTE_32F_FAST_TF32,
    )  # fmt: skip
    assert (blas.PLAIN, blas.TRANSPOSED, blas.ADJOINT) == (
        cublas.Operation.N, cublas.Operation.T, cublas.Operation.C,
    )  # fmt: skip
    assert (blas.LOWER, blas.UPPER) == (cublas.FillMode.LOWER, cublas.FillMode.UPPER)
    assert (blas.LEFT, blas.RIGHT) == (cublas.SideMode.LEFT, cublas.SideMode.RIGHT)
    codes = {f"exec_{name.lower()}": int(kinds[name]) for name in ("C2C", "R2C", "C2R", "Z2Z", "D2Z", "Z2D")}
    assert {function: code for code, function in cufft.KINDS.values()} == codes
