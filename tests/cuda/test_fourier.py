"""Fourier transforms on the simulated device, against numpy's and the CPU's."""

import re

import numpy as np
import pytest

import redispatch as rd
from redispatch.kernels.cuda import compiler
from redispatch.kernels.cuda.ops import fourier as kernels
from redispatch.kernels.cuda.sass import machine_code
from redispatch.testing import assert_close

from .helpers import compare, same_gradients

pytestmark = pytest.mark.usefixtures("simulator")


def error_of(found, wanted):
    return np.abs(found.cpu().numpy() - wanted).max() / np.abs(wanted).max()


# one stage of each radix, several of them, a prime length, one that has to be convolved over several passes
LENGTHS = [(1, 3), (2, 600), (3, 2), (4, 1), (5, 2), (7, 300), (8, 2), (60, 40), (210, 2), (1024, 2), (2048, 1)]
LENGTHS += [(11, 3), (97, 2), (4096, 1), (2205, 1), (1031, 1)]


@pytest.mark.parametrize("n,lines", LENGTHS)
def test_every_length_both_ways(n, lines):
    x = rd.randn(lines, n, dtype=rd.complex64)
    wide = x.numpy().astype(np.complex128)
    assert error_of(rd.fft.fft(x.cuda()), np.fft.fft(wide)) < 4e-7
    assert error_of(rd.fft.ifft(x.cuda()), np.fft.ifft(wide)) < 4e-7


@pytest.mark.long
def test_a_length_of_three_passes_and_every_small_one():
    for n in [*range(1, 130), 1 << 18, 3**9, 5**6, 6859]:
        test_every_length_both_ways(n, 1)
        x = rd.randn(2, n)
        compare(rd.fft.irfft(rd.fft.rfft(x.cuda()), n).cpu(), x)


@pytest.mark.long  # the kernels of double precision are compiled for it
@pytest.mark.parametrize("n", [1, 60, 97, 1024, 2100])
def test_double_precision(n):
    x = rd.randn(2, n, dtype=rd.complex128)
    assert error_of(rd.fft.fft(x.cuda()), np.fft.fft(x.numpy())) < 2e-15 * max(1, np.log2(n))
    assert error_of(rd.fft.rfft(x.real.cuda()), np.fft.rfft(x.real.numpy())) < 2e-15 * max(1, np.log2(n))
    compare(rd.fft.irfft(x.cuda(), n), rd.fft.irfft(x, n))


@pytest.mark.parametrize("n", [1, 2, 5, 8, 13])
def test_of_reals_half_is_written_and_half_is_read(n):
    x = rd.randn(2, n)
    half = rd.fft.rfft(x)
    compare(rd.fft.rfft(x.cuda()), half)
    compare(rd.fft.fft(x.cuda()), rd.fft.fft(x))
    for size in (n, n + 2, max(n - 2, 1)):  # of which some is cut off, or is not there
        compare(rd.fft.irfft(half.cuda(), size), rd.fft.irfft(half, size))
        compare(rd.ops.aten._fft_c2r(half.cuda(), [1], 0, size), rd.ops.aten._fft_c2r(half, [1], 0, size))
    imaginary = rd.complex(half.real, half.imag + 1)  # what the first and the middle one have of it does not count
    compare(rd.fft.irfft(imaginary.cuda(), n), rd.fft.irfft(imaginary, n))


VIEWS = {
    "dense": lambda x: x,
    "permuted": lambda x: x.permute(2, 0, 3, 1),
    "stepped": lambda x: x[::2, :, 1:, ::2],
    "expanded": lambda x: x[:1, :, :, :1].expand(3, 4, 6, 2),
}


@pytest.mark.parametrize("view", VIEWS)
def test_several_dimensions_of_tensors_that_lie_anyhow(view):
    x = rd.randn(3, 4, 6, 5)
    here, there = VIEWS[view](x), VIEWS[view](x.cuda())
    for dim, norm in (((0,), "backward"), ((1, 3), "ortho"), ((3, 0, 2), "forward")):
        half = rd.fft.rfftn(here, dim=dim, norm=norm)
        compare(rd.fft.rfftn(there, dim=dim, norm=norm), half)
        compare(rd.fft.fftn(there, dim=dim, norm=norm), rd.fft.fftn(here, dim=dim, norm=norm))
        sizes = [here.shape[d] for d in dim]
        compare(rd.fft.irfftn(half.cuda(), sizes, dim, norm), rd.fft.irfftn(half, sizes, dim, norm))


def test_results_lie_as_they_do_on_the_cpu():
    x = rd.randn(3, 4, 6)
    for given in (x, x.permute(2, 0, 1)):
        there = x.cuda() if given is x else x.cuda().permute(2, 0, 1)
        compare(rd.fft.rfftn(there), rd.fft.rfftn(given))
        compare(rd.fft.fft(there, dim=0), rd.fft.fft(given, dim=0))
        compare(rd.fft.fft(there.conj() + 1j, dim=0).conj(), rd.fft.fft(given + 1j, dim=0).conj())


def test_long_lines_whose_neighbours_lie_side_by_side():
    x = rd.randn(1024, 3, dtype=rd.complex64)
    compare(rd.fft.fft(x.cuda(), dim=0), rd.fft.fft(x, dim=0))


def test_no_elements_no_dimensions_and_a_result_that_is_given():
    x = rd.randn(2, 3, dtype=rd.complex64)
    compare(rd.fft.fft(x[:0].cuda()), rd.fft.fft(x[:0]))
    compare(rd.ops.aten._fft_c2c(x.cuda(), [], 0, True), x)
    compare(rd.ops.aten._fft_r2c(x.real.cuda(), [], 0, False), x.real + 0j)
    out = rd.empty(3, 2, dtype=rd.complex64, device="cuda").t()
    assert rd.fft.fft(x.cuda(), out=out) is out
    assert_close(out.cpu(), rd.fft.fft(x))
    there = x.cuda()
    rd.fft.fft(there, out=there)
    assert_close(there.cpu(), rd.fft.fft(x))
    with pytest.raises(RuntimeError, match="Unsupported dtype|Only supports"):
        rd.fft.fft(x.real.half().cuda())


def test_gradients():
    x = rd.randn(3, 5)
    same_gradients(lambda x: rd.fft.rfft(x, norm="ortho").abs().square(), x)
    same_gradients(lambda x: rd.fft.irfft(rd.fft.fft2(x)[:, :3], n=4), x)
    same_gradients(lambda x: rd.fft.irfft(rd.fft.rfft(x), n=5), x)


def test_short_time_transforms_there_and_back():
    x, window = rd.randn(2, 40), rd.hann_window(16)

    def there_and_back(x):
        w = window.to(x.device)
        return rd.istft(rd.stft(x, 16, 4, window=w, return_complex=True), 16, 4, window=w, length=40)

    compare(rd.stft(x.cuda(), 16, 4, return_complex=True).cpu(), rd.stft(x, 16, 4, return_complex=True))
    assert_close(there_and_back(x.cuda()).cpu(), x, rtol=1e-4, atol=1e-5)
    same_gradients(there_and_back, x)


# --- tables and lengths -----------------------------------------------------------------------------------------------


def test_roots_are_exact_in_quarters_and_right_everywhere():
    for n in (1, 3, 8, 12, 1000):
        k = np.arange(n)
        assert np.abs(kernels.roots(k, n) - np.exp(-2j * np.pi * k.astype(np.longdouble) / n)).max() < 4e-16
    assert kernels.roots(np.arange(4), 4).tolist() == [1, -1j, -1, 1j]


def test_lengths_are_split_as_evenly_as_they_can_be():
    assert kernels.parts(2048, 2048) == [2048] and kernels.parts(4096, 2048) == [64, 64]
    assert kernels.parts(1024, 512) == [32, 32] and kernels.radices(2048) == [8, 8, 8, 4]
    assert kernels.parts(3**9, 512) == [243, 81] and len(kernels.parts(1 << 20, 512)) == 3
    for n in (3, 11, 97, 1000):
        assert kernels.radices(kernels.convolved(n)) and kernels.convolved(n) >= 2 * n - 1
    assert kernels.radices(22) is None and kernels.radices(1) == []


def test_a_table_is_sent_once(simulator):
    x = rd.randn(3, 24, dtype=rd.complex64).cuda()
    rd.fft.fft(x)
    sent = []
    write = simulator.write
    try:
        simulator.write = lambda *given: sent.append(given) or write(*given)
        rd.fft.fft(x)
        rd.fft.ifft(x)
    finally:
        del simulator.write
    assert not sent


# --- the kernel -------------------------------------------------------------------------------------------------------


def source(compute):
    arrays = (*[compute] * 4, "int64")
    return kernels.KERNEL.source(compute, arrays, **kernels.given(compute, compute, compute))


@pytest.mark.parametrize("compute", ["complex64", pytest.param("complex128", marks=pytest.mark.long)])
def test_elements_are_kept_in_registers(compute):
    code = compiler.ptx(source(compute))
    assert not re.search(r"\.local|\bcall\b", code) and (".f64" in code) == (compute == "complex128")
    narrow = re.findall(r"(?:ld|st)\.(?:global|shared)\.f\d\d.*", code)
    assert not narrow, "a complex number is read and written at once"
    found = machine_code(compiler.cubin(source(compute), "sm_80"), "transformed_lines")
    assert found.registers <= 72 and found.frame == found.stack == 0 and found.shared <= 48 << 10


def test_every_missing_barrier_is_found(simulator):
    code, x = compiler.ptx(source("complex64")), rd.randn(1, 1024, dtype=rd.complex64).cuda()
    barriers = [found.span() for found in re.finditer(r"bar(rier)?\.sync.*?;", code)]
    rd.fft.fft(x)  # sends the tables
    assert len(barriers) == 2
    steps = []
    launch = simulator.device.launch
    try:
        simulator.device.launch = lambda *given: steps.append(given) or launch(*given)
        rd.fft.fft(x)
    finally:
        del simulator.device.launch
    _, _, grid, block, arguments, *_ = steps[-1]
    for start, end in barriers:
        broken = simulator.device.load(code[:start] + code[end:])
        with pytest.raises(RuntimeError, match="a race in shared memory"):
            simulator.device.launch(broken, "transformed_lines", grid, block, list(arguments))
