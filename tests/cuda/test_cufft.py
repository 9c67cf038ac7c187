"""Fourier transforms by cuFFT, with bindings that check how they are called. No card is needed, nor claimed."""

import gc
import inspect

import pytest

import redispatch as rd
from redispatch.kernels import cuda
from redispatch.kernels.cuda import cufft

from .conftest import devices_of
from .families import compare, same_gradients

pytest.importorskip("cuda.core", reason="NVIDIA's bindings, whose signatures are checked: install redispatch[cuda]")
pytestmark = pytest.mark.skipif(not cuda.available(), reason="kernels are compiled: install redispatch[cuda]")

from .fake_card import fake_cards  # noqa: E402  # behind the skips
from .fake_fft import SIGNATURES, FakeFFT, fake_fft  # noqa: E402  # after the path is set


@pytest.fixture
def library(monkeypatch):
    with fake_cards(monkeypatch) as (driver, world), fake_fft(monkeypatch, world) as found:
        driver.fft = cufft.library(driver)
        with devices_of(driver):
            yield found
        driver.fft = None


def test_several_dimensions_are_transformed_at_once(library):
    x = rd.randn(2, 3, 4, dtype=rd.complex64)
    compare(rd.fft.fft2(x.cuda()), rd.fft.fft2(x))
    assert library.done == [("c2c", (3, 4), 2)]
    compare(rd.fft.ifftn(x.cuda(), norm="forward"), rd.fft.ifftn(x, norm="forward"))
    assert library.done[1:] == [("c2c", (2, 3, 4), 1)]
    x = rd.randn(2, 1, 3, 2, 4, dtype=rd.complex64)
    compare(rd.fft.fftn(x.cuda(), norm="ortho"), rd.fft.fftn(x, norm="ortho"))  # of five, three and then two
    assert [n for _, n, _ in library.done[2:]] == [(3, 2, 4), (2, 1)]


def test_of_reals_and_to_reals(library):
    x = rd.randn(3, 4, 6)
    half = rd.fft.rfftn(x, dim=(1, 2))
    compare(rd.fft.rfftn(x.cuda(), dim=(1, 2)), half)
    there = half.cuda()
    compare(rd.fft.irfft(there, 6, norm="ortho"), rd.fft.irfft(half, 6, norm="ortho"))
    compare(rd.fft.irfftn(there, dim=(1, 2)), rd.fft.irfftn(half, dim=(1, 2)))
    compare(there, half)  # it is not overwritten
    compare(rd.fft.fft(x.cuda()), rd.fft.fft(x))
    names = [name for name, _, _ in library.done]
    assert names == ["r2c", "c2r", "c2r", "c2c"]
    x = rd.randn(2, 2, 3, 4)
    compare(rd.fft.irfftn(rd.fft.rfftn(x.cuda()), norm="forward"), rd.fft.irfftn(rd.fft.rfftn(x), norm="forward"))
    assert [(name, n) for name, n, _ in library.done[4:]] == [
        ("r2c", (2, 3, 4)), ("c2c", (2,)), ("c2c", (2,)), ("c2r", (2, 3, 4)),
    ]  # fmt: skip


def test_steps_between_elements_and_between_lines(library):
    x = rd.randn(4, 6, dtype=rd.complex64)
    compare(rd.fft.fft(x.cuda(), dim=0), rd.fft.fft(x, dim=0))
    compare(rd.fft.fft(x.cuda()[:, ::2]), rd.fft.fft(x[:, ::2]))
    flat = rd.randn(25)
    compare(rd.fft.rfft(flat.cuda()[1:].view(4, 6)), rd.fft.rfft(flat[1:].view(4, 6)))  # not as complex numbers lie
    assert len(library.done) == 3


def test_what_cufft_cannot_do_our_own_kernel_does(library):
    x = rd.randn(2, 23, dtype=rd.complex64)
    compare(rd.fft.fft(x.cuda()), rd.fft.fft(x))
    y = rd.randn(2, 3, 4, dtype=rd.complex64)
    compare(rd.fft.fft(y.cuda(), dim=1), rd.fft.fft(y, dim=1))  # lines at two distances
    compare(rd.fft.fft(y[:1].cuda().expand(3, 3, 4)), rd.fft.fft(y[:1].expand(3, 3, 4)))
    compare(rd.ops.aten._fft_c2r(y.cuda(), [2], 0, 9), rd.ops.aten._fft_c2r(y, [2], 0, 9))
    compare(rd.fft.fft(y[:0].cuda()), rd.fft.fft(y[:0]))
    assert not library.done


def test_gradients(library):
    same_gradients(lambda x: rd.fft.irfft(rd.fft.rfft(x, norm="ortho")), rd.randn(3, 4))


def test_a_plan_is_kept_for_calls_that_look_so_and_then_given_back(library, monkeypatch):
    monkeypatch.setattr(cufft, "MOST_PLANS", 2)
    x = rd.randn(2, 4, dtype=rd.complex64)
    for _ in range(3):
        compare(rd.fft.fft(x.cuda()), rd.fft.fft(x))
    assert library.made == 1
    for n in (2, 3, 5):
        out = rd.empty(2, n, dtype=rd.complex64, device="cuda")
        rd.fft.fft(x.cuda(), n, out=out)  # of such calls nothing is remembered
    gc.collect()
    assert library.made == 4 and len(library.plans) < 4


def test_a_transform_can_be_recorded_and_runs_in_the_stream_that_it_is_called_in(library):
    x = rd.randn(2, 4, dtype=rd.complex64).cuda()
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        y = rd.fft.fft(x)
    x.copy_(x + 1)
    graph.replay()
    compare(y.cpu(), rd.fft.fft(x.cpu()))


def test_the_signatures_are_those_of_the_bindings():
    theirs = pytest.importorskip("nvmath.bindings.cufft", reason="needs nvmath-python")
    for name, words in SIGNATURES.items():
        for function in (getattr(theirs, name), getattr(FakeFFT(None), name)):
            assert " ".join(inspect.signature(function).parameters) == words
    codes = {name: int(theirs.Type[name]) for name in ("C2C", "R2C", "C2R", "Z2Z", "D2Z", "Z2D")}
    assert {function: code for code, function in cufft.KINDS.values()} == {
        f"exec_{name.lower()}": code for name, code in codes.items()
    }
