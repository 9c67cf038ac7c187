"""Fourier transforms: what modes see of them, where their results lie, out=, dtypes, autocast."""

import numpy as np
import pytest
from scipy.signal import windows

import redispatch as rd
from redispatch import fft
from redispatch.testing import assert_close

from ..seeing import seen


def reals(*shape):
    return rd.from_numpy(np.random.default_rng(0).standard_normal(shape))


def test_modes_see_one_transform():
    x = reals(4, 5)
    z = x.to(rd.complex128)
    assert seen(lambda: fft.fft(x)) == "_fft_r2c"
    assert seen(lambda: fft.ifft(x)) == "_fft_r2c _conj"
    assert seen(lambda: fft.fft(z, 7)) == "constant_pad_nd _fft_c2c"
    assert seen(lambda: fft.irfft(z, 6)) == "slice.Tensor _fft_c2r"
    assert seen(lambda: fft.hfft(z)) == "_conj clone _fft_c2r"
    assert seen(lambda: fft.fftshift(x)) == "roll"
    assert seen(lambda: fft.fftfreq(4)) == "fft_fftfreq"


def test_the_transformed_dimensions_lie_innermost():
    x = rd.ones(2, 3, 4)
    assert fft.fft(x, dim=1).stride() == (12, 1, 3)
    assert fft.rfftn(x, dim=(2, 0)).stride() == (1, 8, 2)
    assert fft.irfftn(x.to(rd.complex64), dim=(2, 0)).stride() == (1, 8, 2)
    assert fft.fftn(x.permute(2, 0, 1)).stride() == (1, 12, 4)


def test_out_is_checked_filled_and_returned():
    x, out = reals(4), rd.empty(0, dtype=rd.complex128)
    assert fft.ihfft(x, out=out) is out and np.allclose(out.numpy(), np.fft.ihfft(x.numpy()))
    with pytest.raises(RuntimeError, match="irfft expects a floating point output tensor, but got ComplexDouble"):
        fft.irfft(x, out=out)
    with pytest.raises(RuntimeError, match="fft expects a complex output tensor, but got Double"):
        fft.fft(x, out=rd.empty(0, dtype=rd.float64))
    freqs = rd.empty(0)
    assert fft.fftfreq(4, out=freqs) is freqs and freqs.tolist() == [0.0, 0.25, -0.5, -0.25]


def test_dtypes():
    assert fft.fft(rd.arange(3)).dtype is rd.complex64 and fft.fft(reals(3)).dtype is rd.complex128
    with pytest.raises(RuntimeError, match="Unsupported dtype Half"):
        fft.fft(rd.ones(3, dtype=rd.float16))
    with pytest.raises(RuntimeError, match="rfft expects a real input tensor, but got ComplexFloat"):
        fft.rfft(rd.ones(3, dtype=rd.complex64))
    with pytest.raises(RuntimeError, match="fftfreq requires a floating point or complex dtype"):
        fft.fftfreq(3, dtype=rd.int64)


def test_autocast_keeps_transforms_in_float32():
    with rd.autocast("cpu"):
        assert fft.rfft(rd.ones(4, dtype=rd.bfloat16)).dtype is rd.complex64


def test_a_gradient_goes_through_a_spectrum():
    x = reals(7).requires_grad_()
    fft.rfft(x).abs().pow(2).sum().backward()
    spectrum = np.fft.fft(x.detach().numpy())
    wanted = 2 * np.fft.ifft(np.where(np.arange(7) <= 3, spectrum, 0), norm="forward").real
    assert np.allclose(x.grad.numpy(), wanted)


def test_a_signal_comes_back_from_its_spectra():
    x, window = reals(2, 50), rd.from_numpy(np.hanning(9)[:8])
    for options in ({}, {"normalized": True}, {"onesided": False}):
        spectra = rd.stft(x, 8, 2, window=window, return_complex=True, **options)
        assert spectra.shape == (2, 8 if options.get("onesided") is False else 5, 26)
        assert_close(rd.istft(spectra, 8, 2, window=window, length=50, **options), x)
    assert_close(x.stft(8, 2, window=window, return_complex=True), rd.stft(x, 8, 2, window=window, return_complex=True))


def test_spectra_as_pairs_of_reals_are_deprecated():
    with pytest.warns(UserWarning, match="stft with return_complex=False is deprecated"):
        assert rd.stft(reals(8), 4, return_complex=False).shape == (3, 9, 2)
    with pytest.raises(RuntimeError, match="align_to_window should only be set when center = false"):
        rd.stft(reals(8), 4, return_complex=True, align_to_window=True)


# Windows, as scipy has them -------------------------------------------------------------------------------------------

WINDOWS = {
    "bartlett": {},
    "blackman": {},
    "cosine": {},
    "exponential": {"tau": 2.0},
    "gaussian": {"std": 1.5},
    "general_cosine": {"a": [0.5, 0.3, 0.2]},
    "general_hamming": {"alpha": 0.7},
    "hamming": {},
    "hann": {},
    "kaiser": {"beta": 9.0},
    "nuttall": {},
}


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_is_scipys(name, sym):
    options = WINDOWS[name]
    for count in (0, 1, 2, 9, 10):
        expected = getattr(windows, name)(count, *options.values() if name != "exponential" else (None, 2.0), sym=sym)
        found = getattr(rd.signal.windows, name)(count, sym=sym, dtype=rd.float64, **options)
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_a_window_says_what_is_wrong_with_its_arguments():
    for match, call in {
        "requires non-negative window length, got M=-1": lambda: rd.signal.windows.hann(-1),
        "expects float32 or float64 dtypes": lambda: rd.signal.windows.cosine(3, dtype=rd.int64),
        "Tau must be positive": lambda: rd.signal.windows.exponential(3, tau=0),
        "Standard deviation must be positive": lambda: rd.signal.windows.gaussian(3, std=0),
        "beta must be non-negative": lambda: rd.signal.windows.kaiser(3, beta=-1),
        "Coefficients cannot be empty": lambda: rd.signal.windows.general_cosine(3, a=[]),
    }.items():
        with pytest.raises(ValueError, match=match):
            call()
