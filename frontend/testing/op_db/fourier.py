"""Samples of Fourier transforms: the operators that compute them, their public forms, and short-time transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, NUMBERS, OpInfo
from .common import Later, by_numpy, call, calls, entries, table, x

COMPLEX = (dtypes.complex64, dtypes.complex128)
EITHER = (*NUMBERS, *COMPLEX)
NORMS: Any = ("backward", "ortho", "forward")
BACK = NORMS[::-1]  # of an inverse


def from_reals(self, dim, normalization, onesided):
    return (np.fft.rfftn if onesided else np.fft.fftn)(self, axes=dim, norm=NORMS[normalization])


def back_to_reals(self, dim, normalization, last):
    return np.fft.irfftn(self, [self.shape[d] for d in dim[:-1]] + [last], dim, BACK[normalization])


def complex_both(self, dim, normalization, forward):
    norms, transform = (NORMS, np.fft.fftn) if forward else (BACK, np.fft.ifftn)
    return transform(self, axes=dim, norm=norms[normalization])


OF_REALS = calls(*([(2, 3), [1], 0, True], [(2, 4), [0, 1], 1, True], [(5,), [0], 2, False], [(4, 3), [1, 0], 0, True]))
FOURIER = table(
    OpInfo("_fft_r2c", OF_REALS, from_reals, FLOATS),
    OpInfo("_fft_c2r", calls([(2, 3), [1], 2, 4], [(3, 2), [0, 1], 1, 3]), back_to_reals, COMPLEX),
    OpInfo("_fft_c2c", calls([(2, 3), [1], 0, True], [(3, 2), [0, 1], 2, False]), complex_both, COMPLEX),
    errors={"_fft_r2c": {"Only supports floating-point dtypes, but found: Long": [x.index(3, below=3), [0], 0, True]}},
    skips={"there are no complex numbers of 16 bits": "bfloat16: _fft_r2c"},
)

# --- the public forms -------------------------------------------------------------------------------------------------


def precise(found, x):
    """numpy computes integers in float64, PyTorch in float32."""
    if x.dtype.kind in "fc":
        return found
    return found.astype(np.complex64 if np.iscomplexobj(found) else np.float32)


def one(transform):
    """numpy's function, in the precision of the input."""
    return lambda self, n=None, dim=-1, norm=None: precise(transform(self, n, dim, norm or "backward"), self)


def several(transform, dims=None, to_reals=False):
    """The same for several dimensions; a transform to reals gives by default as many as an even number allows."""

    def reference(self, s=None, dim=dims, norm=None):
        if s is not None and dim is None:
            dim = range(self.ndim - len(s), self.ndim)
        sizes = None if s is None else [self.shape[d] if n == -1 else n for n, d in zip(s, dim, strict=True)]
        if sizes is not None and to_reals and s[-1] == -1:
            sizes[-1] = 2 * (self.shape[dim[-1]] - 1)
        return precise(transform(self, sizes, dim, norm or "backward"), self)

    return reference


SWAPPED: Any = dict(zip(NORMS, BACK, strict=True))


def hfftn(x, s, axes, norm):
    """irfftn of the conjugates, with the factor at the other side."""
    return np.fft.irfftn(np.conj(x), s, axes, SWAPPED[norm])


def exactly(*value):
    """A tuple that stands for itself."""
    return Later(lambda make: value)


# Cut off, filled up, along another dimension, with each factor
ALONG_ONE = calls(
    *([(2, 5)], [(3, 4), 3, 0, "ortho"], call((4,), 6, norm="forward"), call((2, 4), norm="backward"), [(0, 4)])
)
OVER_ALL = calls(
    [(2, 5)],
    call((3, 2, 4), exactly(4, -1), norm="forward"),
    call((3, 2, 4), dim=exactly(2, 0)),
    call((2, 4), dim=[1], norm="ortho"),
)
SHIFTED = calls([(4, 5)], call((5,), dim=0), call((2, 3, 4), dim=exactly(0, 2)))
COUNTS = calls(*(call(n, d, dtype=x.dtype) for n, d in ((5, 1.0), (4, 0.5), (1, 2.0))))
OF_ALL = {
    "fft": np.fft.fftn, "ifft": np.fft.ifftn, "rfft": np.fft.rfftn, "irfft": np.fft.irfftn, "hfft": hfftn,
    "ihfft": lambda x, s, axes, norm: np.conj(np.fft.rfftn(x, s, axes, SWAPPED[norm])),
}  # fmt: skip
FROM_REALS, TO_REALS = ("rfft", "ihfft"), ("irfft", "hfft")
FFT = table(
    *by_numpy("fft_fft fft_ifft fft_irfft fft_hfft", ALONG_ONE, EITHER, one),
    *by_numpy("fft_rfft fft_ihfft", ALONG_ONE, NUMBERS, one),
    *(
        OpInfo(f"fft_{name}{over}", samples, reference, NUMBERS if name in FROM_REALS else EITHER)
        for name, transform in OF_ALL.items()
        for over, samples, reference in (
            ("2", calls([(2, 4)], [(3, 2, 4), exactly(4, 3), exactly(0, 2), "ortho"]), several(transform, (-2, -1))),
            ("n", OVER_ALL, several(transform, to_reals=name in TO_REALS)),
        )
    ),
    *by_numpy("fft_fftshift fft_ifftshift", SHIFTED, EITHER, lambda shift: lambda self, dim=None: shift(self, dim)),
    *entries("fft_fftfreq fft_rfftfreq", COUNTS, FLOATS, gradients=False),
    references={
        "fft_fftfreq": lambda n, d, dtype: np.fft.fftfreq(n, d).astype(dtype),
        "fft_rfftfreq": lambda n, d, dtype: np.fft.rfftfreq(n, d).astype(dtype),
    },
    errors={
        " ".join(f"fft_{name}" for name in OF_ALL): {
            "Invalid number of data points (0) specified": [(2, 3), 0],
            'Invalid normalization mode: "x"': call((2, 3), norm="x"),
            "IndexError: Dimension specified as -1 but tensor has no dimensions": [()],
        },
        "fft_fftn fft_ifftn": {
            "FFT dims must be unique": call((2, 3), dim=exactly(0, 0)),
            "When given, dim and shape arguments must have the same length": [(2, 3), exactly(1, 2), exactly(0)],
            "Got shape with 3 values but input tensor only has 2 dimensions.": [(2, 3), exactly(1, 2, 3)],
        },
        **{
            f"fft_{name}2 fft_{name}n": {f"{name}n must transform at least one axis": call((2, 3), dim=exactly())}
            for name in OF_ALL
            if name not in ("fft", "ifft")
        },
    },
    skips={"it takes no tensor": "layouts subclass: fft_fftfreq fft_rfftfreq"},
)

# --- short-time transforms --------------------------------------------------------------------------------------------


def stft(
    self, n_fft, hop_length=None, win_length=None, *, window=None, normalized=False, onesided=True,
    return_complex=True, align_to_window=False,
):  # fmt: skip
    hop, width = hop_length or n_fft // 4, win_length or n_fft
    left = (n_fft - width) // 2
    sides = (left, n_fft - width - left)
    window = np.pad(np.ones(width, self.dtype) if window is None else window, sides)
    if align_to_window:
        self = np.pad(self, [(0, 0)] * (self.ndim - 1) + [sides])
    pieces = np.lib.stride_tricks.sliding_window_view(self, n_fft, -1)[..., ::hop, :] * window
    found = (np.fft.rfft if onesided else np.fft.fft)(pieces, norm="ortho" if normalized else "backward")
    return found.swapaxes(-1, -2)


def centred(self, n_fft, hop_length=None, *, center=True, pad_mode="reflect", **rest):
    if center:
        self = np.pad(self, [(0, 0)] * (self.ndim - 1) + [(n_fft // 2,) * 2], pad_mode)
    return stft(self, n_fft, hop_length, **rest)


def signal(*args, **kwargs):
    return call(*args, **kwargs, return_complex=True)


SIGNALS = calls(
    signal((12,), 4, 2),
    signal((2, 9), 4, window=x(4, low=1), normalized=True),
    signal((9,), 5, 2, 3, window=x(3, low=1), onesided=False),
    signal((9,), 6, 2, 3, window=x(3, low=1), align_to_window=True),
)
CENTRED = calls(signal((12,), 4, 2), signal((2, 9), 4, pad_mode="constant"), signal((9,), 4, center=False))
SPECTRA = calls(
    call((3, 6), 4, 2, window=x(4, low=1, high=2, dtype=x.dtype.to_real())),
    call((2, 3, 4), 4, normalized=True),
    signal((4, 5), 4, 1, center=False, onesided=False),
    [(3, 6), 4, 1, 3],
    call((3, 6), 4, length=6),
)
NO_HOP = (
    "stft(torch.DoubleTensor[9], n_fft=4, hop_length=0, win_length=4, window=None, normalized=0, onesided=None, "
    "return_complex=1, align_to_window=None) : expected hop_length > 0, but got"
)
REALS = "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
FREQUENCIES = "expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when"
SHORT_TIME = table(
    OpInfo("stft", SIGNALS, stft, FLOATS),
    OpInfo("stft.center", CENTRED, centred, FLOATS),
    OpInfo("istft", SPECTRA, None, COMPLEX),
    errors={
        "stft": {
            NO_HOP: signal((9,), 4, 0),
            "stft requires the return_complex parameter be given for real inputs": [(9,), 4],
        },
        "istft": {
            REALS: [x(5, 6, dtype=dtypes.float32), 8],
            FREQUENCIES: call((5, 6), 12, onesided=True),
            "expected 0 < hop_length <= win_length": [(5, 6), 8, 9],
        },
    },
    skips={"it looks at what the windows add up to, in PyTorch as here": "meta: istft"},
)

TRANSFORMS = [*FFT, *SHORT_TIME]
