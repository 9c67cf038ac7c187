"""Samples of kernels/ops/fft.py and stft.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample

COMPLEX = (dtypes.complex64, dtypes.complex128)
EITHER = (*FLOATS, dtypes.int64, *COMPLEX)
REALS = (*FLOATS, dtypes.int64)


# --- transforms -------------------------------------------------------------------------------------------------------


def along_one(make: Maker) -> Iterator[SampleInput]:
    """Cut off, filled up, along another dimension, with each factor."""
    yield sample(make(2, 5))
    yield sample(make(3, 4), 3, 0, "ortho")
    yield sample(make(4), 6, norm="forward")
    yield sample(make(2, 4), norm="backward")
    yield sample(make(0, 4))


def over_two(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 4))
    yield sample(make(3, 2, 4), (4, 3), (0, 2), "ortho")


def over_all(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 5))
    yield sample(make(3, 2, 4), (4, -1), norm="forward")
    yield sample(make(3, 2, 4), dim=(2, 0))
    yield sample(make(2, 4), dim=[1], norm="ortho")


def one(transform: Callable[..., Any]) -> Callable[..., Any]:
    """numpy's function, in the precision of the input."""

    def reference(self: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
        return precise(transform(self, n, dim, norm or "backward"), self)

    return reference


def several(transform: Callable[..., Any], dims: Any = None, to_reals: bool = False) -> Callable[..., Any]:
    """The same for several dimensions; a transform to reals gives by default as many as an even number allows."""

    def reference(self: Any, s: Any = None, dim: Any = dims, norm: Any = None) -> Any:
        if s is not None and dim is None:
            dim = range(self.ndim - len(s), self.ndim)
        sizes = None if s is None else [self.shape[d] if n == -1 else n for n, d in zip(s, dim, strict=True)]
        if sizes is not None and to_reals and s[-1] == -1:
            sizes[-1] = 2 * (self.shape[dim[-1]] - 1)
        return precise(transform(self, sizes, dim, norm or "backward"), self)

    return reference


def precise(found: np.ndarray, x: np.ndarray) -> np.ndarray:
    """numpy computes integers in float64, PyTorch in float32."""
    if x.dtype.kind in "fc":
        return found
    return found.astype(np.complex64 if np.iscomplexobj(found) else np.float32)


SWAPPED: Any = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfftn(x: Any, s: Any, axes: Any, norm: Any) -> np.ndarray:
    """irfftn of the conjugates, with the factor at the other side."""
    return np.fft.irfftn(np.conj(x), s, axes, SWAPPED[norm])


def ihfftn(x: Any, s: Any, axes: Any, norm: Any) -> np.ndarray:
    return np.conj(np.fft.rfftn(x, s, axes, SWAPPED[norm]))


def wrong(name: str) -> Callable[[Maker], Iterator[ErrorInput]]:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        yield ErrorInput(sample(make(2, 3), 0), RuntimeError, "Invalid number of data points (0) specified")
        yield ErrorInput(sample(make(2, 3), norm="x"), RuntimeError, 'Invalid normalization mode: "x"')
        yield ErrorInput(sample(make()), IndexError, "Dimension specified as -1 but tensor has no dimensions")

    return errors


def wrong_dims(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(2, 3), dim=(0, 0)), RuntimeError, "FFT dims must be unique")
    text = "When given, dim and shape arguments must have the same length"
    yield ErrorInput(sample(make(2, 3), (1, 2), (0,)), RuntimeError, text)
    text = "Got shape with 3 values but input tensor only has 2 dimensions."
    yield ErrorInput(sample(make(2, 3), (1, 2, 3)), RuntimeError, text)


def no_dims(name: str) -> Callable[[Maker], Iterator[ErrorInput]]:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        yield ErrorInput(sample(make(2, 3), dim=()), RuntimeError, f"{name} must transform at least one axis")

    return errors


def transform(name: str, samples: Any, reference: Any, kinds: Any, errors: Any = None) -> OpInfo:
    return OpInfo(f"fft_{name}", samples, reference, kinds, function=f"fft.{name}", errors=errors)


# --- frequencies ------------------------------------------------------------------------------------------------------


def counts(make: Maker) -> Iterator[SampleInput]:
    for n, d in ((5, 1.0), (4, 0.5), (1, 2.0)):
        yield SampleInput(n, (d,), {"dtype": make.dtype})


def frequencies(given: Callable[..., Any]) -> Callable[..., Any]:
    return lambda n, d, dtype: given(n, d).astype(dtype)


def shifted(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(4, 5))
    yield sample(make(5), dim=0)
    yield sample(make(2, 3, 4), dim=(0, 2))


# --- short-time transforms --------------------------------------------------------------------------------------------


def signals(make: Maker) -> Iterator[SampleInput]:
    rest = {"return_complex": True}
    yield SampleInput(make(12), (4, 2), rest)
    yield SampleInput(make(2, 9), (4,), {"window": make(4, low=1), "normalized": True, **rest})
    yield SampleInput(make(9), (5, 2, 3), {"window": make(3, low=1), "onesided": False, **rest})
    yield SampleInput(make(9), (6, 2, 3), {"window": make(3, low=1), "align_to_window": True, **rest})


def centred(make: Maker) -> Iterator[SampleInput]:
    rest = {"return_complex": True}
    yield SampleInput(make(12), (4, 2), rest)
    yield SampleInput(make(2, 9), (4,), {"pad_mode": "constant", **rest})
    yield SampleInput(make(9), (4,), {"center": False, **rest})


def stft(
    self: Any, n_fft: int, hop_length: Any = None, win_length: Any = None, *, window: Any = None,
    normalized: bool = False, onesided: bool = True, return_complex: bool = True, align_to_window: bool = False,
) -> Any:  # fmt: skip
    hop, width = hop_length or n_fft // 4, win_length or n_fft
    left = (n_fft - width) // 2
    window = np.ones(width, self.dtype) if window is None else window
    window = np.pad(window, (left, n_fft - width - left))
    if align_to_window:
        self = np.pad(self, [(0, 0)] * (self.ndim - 1) + [(left, n_fft - width - left)])
    pieces = np.lib.stride_tricks.sliding_window_view(self, n_fft, -1)[..., ::hop, :] * window
    norm: Any = "ortho" if normalized else "backward"
    found = np.fft.rfft(pieces, norm=norm) if onesided else np.fft.fft(pieces, norm=norm)
    return found.swapaxes(-1, -2)


def stft_centred(
    self: Any, n_fft: int, hop_length: Any = None, *, center: bool = True, pad_mode: str = "reflect", **rest: Any
) -> Any:
    if center:
        mode: Any = pad_mode
        self = np.pad(self, [(0, 0)] * (self.ndim - 1) + [(n_fft // 2,) * 2], mode)
    return stft(self, n_fft, hop_length, **rest)


def no_signal(make: Maker) -> Iterator[ErrorInput]:
    call = "window=None, normalized=0, onesided=None, return_complex=1, align_to_window=None)"
    text = f"stft(torch.DoubleTensor[9], n_fft=4, hop_length=0, win_length=4, {call} : expected hop_length > 0, but got"
    yield ErrorInput(SampleInput(make(9), (4, 0), {"return_complex": True}), RuntimeError, text)
    text = "stft requires the return_complex parameter be given for real inputs"
    yield ErrorInput(sample(make(9), 4), RuntimeError, text)


def spectra(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 6), 4, 2, window=make(4, low=1, high=2, dtype=make.dtype.to_real()))
    yield sample(make(2, 3, 4), 4, normalized=True)
    yield sample(make(4, 5), 4, 1, center=False, onesided=False, return_complex=True)
    yield sample(make(3, 6), 4, 1, 3)
    yield sample(make(3, 6), 4, length=6)


def no_spectra(make: Maker) -> Iterator[ErrorInput]:
    text = "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
    yield ErrorInput(sample(make(5, 6, dtype=dtypes.float32), 8), RuntimeError, text)
    text = "expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when"
    yield ErrorInput(sample(make(5, 6), 12, onesided=True), RuntimeError, text)
    yield ErrorInput(sample(make(5, 6), 8, 9), RuntimeError, "expected 0 < hop_length <= win_length")


FRESH = {name: "it takes no tensor" for name in ("layouts", "subclass")}

FFT = [
    transform("fft", along_one, one(np.fft.fft), EITHER, wrong("fft")),
    transform("ifft", along_one, one(np.fft.ifft), EITHER, wrong("ifft")),
    transform("rfft", along_one, one(np.fft.rfft), REALS, wrong("rfft")),
    transform("irfft", along_one, one(np.fft.irfft), EITHER, wrong("irfft")),
    transform("hfft", along_one, one(np.fft.hfft), EITHER, wrong("hfft")),
    transform("ihfft", along_one, one(np.fft.ihfft), REALS, wrong("ihfft")),
    transform("fft2", over_two, several(np.fft.fftn, (-2, -1)), EITHER),
    transform("ifft2", over_two, several(np.fft.ifftn, (-2, -1)), EITHER),
    transform("rfft2", over_two, several(np.fft.rfftn, (-2, -1)), REALS, no_dims("rfftn")),
    transform("irfft2", over_two, several(np.fft.irfftn, (-2, -1)), EITHER, no_dims("irfftn")),
    transform("hfft2", over_two, several(hfftn, (-2, -1)), EITHER, no_dims("hfftn")),
    transform("ihfft2", over_two, several(ihfftn, (-2, -1)), REALS, no_dims("ihfftn")),
    transform("fftn", over_all, several(np.fft.fftn), EITHER, wrong_dims),
    transform("ifftn", over_all, several(np.fft.ifftn), EITHER, wrong_dims),
    transform("rfftn", over_all, several(np.fft.rfftn), REALS, no_dims("rfftn")),
    transform("irfftn", over_all, several(np.fft.irfftn, to_reals=True), EITHER, no_dims("irfftn")),
    transform("hfftn", over_all, several(hfftn, to_reals=True), EITHER, no_dims("hfftn")),
    transform("ihfftn", over_all, several(ihfftn), REALS, no_dims("ihfftn")),
    OpInfo(
        "fft_fftfreq", counts, frequencies(np.fft.fftfreq), FLOATS, gradients=False, function="fft.fftfreq", skips=FRESH
    ),
    OpInfo(
        "fft_rfftfreq",
        counts,
        frequencies(np.fft.rfftfreq),
        FLOATS,
        gradients=False,
        function="fft.rfftfreq",
        skips=FRESH,
    ),
    OpInfo("fft_fftshift", shifted, lambda self, dim=None: np.fft.fftshift(self, dim), EITHER, function="fft.fftshift"),
    OpInfo(
        "fft_ifftshift", shifted, lambda self, dim=None: np.fft.ifftshift(self, dim), EITHER, function="fft.ifftshift"
    ),
    OpInfo("stft", signals, stft, FLOATS, errors=no_signal),
    OpInfo("stft.center", centred, stft_centred, FLOATS),
    OpInfo(
        "istft",
        spectra,
        None,
        COMPLEX,
        errors=no_spectra,
        skips={"meta": "it looks at what the windows add up to, in PyTorch as here"},
    ),
]
