"""Products by cuBLAS, with bindings that check how they are called. No card is needed, nor claimed."""

import inspect

import pytest

import redispatch as rd
from redispatch.kernels import cuda
from redispatch.kernels.cuda import blas

from .conftest import devices_of
from .families import compare
from .test_products import numbers

pytest.importorskip("cuda.core", reason="NVIDIA's bindings, whose signatures are checked: install redispatch[cuda]")
pytestmark = pytest.mark.skipif(not cuda.available(), reason="kernels are compiled: install redispatch[cuda]")

from .fake_blas import SIGNATURES, FakeBlas, fake_blas  # noqa: E402  # behind the skips
from .fake_card import fake_cards  # noqa: E402  # after the path is set


@pytest.fixture
def library(monkeypatch):
    monkeypatch.setattr(blas, "WORKSPACE", 1 << 10)
    with fake_cards(monkeypatch) as (driver, world), fake_blas(monkeypatch, world) as found:
        driver.blas = blas.library(driver)
        with devices_of(driver):
            yield found


def test_factors_by_rows_and_by_columns_are_multiplied_where_they_lie(library):
    a, b = numbers(5, 7), numbers(7, 3)
    wide = numbers(5, 9)[:, :7]
    turned_a, turned_b = a.t().contiguous().t(), b.t().contiguous().t()
    for left in (a, turned_a, wide):
        for right in (b, turned_b):
            before = len(library.products)
            x = (
                numbers(5, 9).cuda()[:, :7]
                if left is wide
                else left.t().contiguous().cuda().t()
                if left is turned_a
                else a.cuda()
            )
            y = right.t().contiguous().cuda().t() if right is turned_b else b.cuda()
            compare(x @ y, left @ right)
            assert library.products[before:] == [(blas.IN_32, int(right is turned_b), int(left is turned_a))]


@pytest.mark.parametrize("dtype", [rd.float16, rd.bfloat16, rd.float64, rd.complex64, rd.complex128], ids=str)
def test_dtypes_and_what_is_added(library, dtype):
    a, b, c = numbers(4, 6, dtype=dtype), numbers(6, 3, dtype=dtype), numbers(3, dtype=dtype)
    compare(rd.addmm(c.cuda(), a.cuda(), b.cuda(), beta=2, alpha=3), rd.addmm(c, a, b, beta=2, alpha=3))
    wide = dtype in (rd.float64, rd.complex128)
    assert [one[0] for one in library.products] == [blas.IN_64 if wide else blas.IN_32]


def test_batches_vectors_and_a_factor_that_is_repeated(library):
    a, b = numbers(4, 2, 3), numbers(4, 3, 5)
    compare(a.cuda() @ b.cuda(), a @ b)
    compare(rd.bmm(a.cuda(), b[:1].cuda().expand(4, 3, 5)), rd.bmm(a, b[:1].expand(4, 3, 5)))
    compare(a[0].cuda() @ b[0, :, 0].cuda(), a[0] @ b[0, :, 0])
    assert len(library.products) == 3


def test_what_cublas_cannot_do_our_own_kernel_does(library):
    a, b = numbers(4, 6), numbers(6, 3)
    compare(a.int().cuda() @ b.int().cuda(), a.int() @ b.int())
    compare(numbers(4, 12).cuda()[:, ::2] @ b.cuda(), numbers(4, 12)[:, ::2] @ b)
    z = (a + 1j).cuda()
    compare(z.conj() @ b.cuda().to(z.dtype), (a - 1j) @ b.to(z.dtype))
    compare(a.cuda()[:, :0] @ b.cuda()[:0], a[:, :0] @ b[:0])
    assert not library.products


def test_factors_are_rounded_to_tf32_where_the_program_allows_it(library):
    x = numbers(3, 3).cuda()
    try:
        for precision in ("high", "highest", "medium"):
            rd.set_float32_matmul_precision(precision)
            x @ x
            x.double() @ x.double()
    finally:
        rd.set_float32_matmul_precision("highest")
    rounded, exact, double = (blas.IN_TF32, 0, 0), (blas.IN_32, 0, 0), (blas.IN_64, 0, 0)
    assert library.products == [rounded, double, exact, double, rounded, double]


def test_each_stream_has_a_handle_and_a_product_can_be_recorded(library):
    x = numbers(3, 3).cuda()
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        y = x @ x
    x.copy_(x + 1)
    graph.replay()
    compare(y.cpu(), (numbers(3, 3) + 1) @ (numbers(3, 3) + 1))
    x @ x
    assert len(library.streams) == 2 and len(set(library.workspaces.values())) == 2


def test_the_signatures_are_those_of_the_bindings():
    cublas = pytest.importorskip("nvmath.bindings.cublas", reason="needs nvmath-python")
    for name, words in SIGNATURES.items():
        for function in (getattr(cublas, name), getattr(FakeBlas(None), name)):
            assert " ".join(inspect.signature(function).parameters) == words
    assert (blas.IN_32, blas.IN_64, blas.IN_TF32) == (
        cublas.ComputeType.COMPUTE_32F, cublas.ComputeType.COMPUTE_64F, cublas.ComputeType.COMPUTE_32F_FAST_TF32,
    )  # fmt: skip
    assert (blas.PLAIN, blas.TRANSPOSED) == (cublas.Operation.N, cublas.Operation.T)
