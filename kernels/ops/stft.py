"""The short-time Fourier transform: the spectrum of one stretch of a signal after the other; and the signal from them.

`stft` looks at the signal through a window that moves on by `hop_length`, and transforms what it sees. `istft` puts the
pieces, each seen through the window again, on top of each other, and divides by what the windows themselves add up to.

A window of n points is one turn of its curve; a periodic one, the default, is that of n + 1 points without the last.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch import STATE
from redispatch.dispatch.tensor import (
    Tensor,
    another,
    cannot_allocate,
    dtype,
    dtypes,
    get_default_dtype,
    overridable_in_python,
    wrap_dim,
)

from ..declare.declare import Operator
from ..declare.operator import CPU_FP32, composite
from ..declare.overridable import overridable_function
from ..declare.public import public
from ..declare.structured import not_implemented
from .complex_numbers import view_as_complex_op, view_as_real_op
from .creation import FACTORY, new, ones_op, shaped, written, zeros_op
from .fft import ALL, NONE, ROOT, fft_c2c_op, fft_c2r_op, fft_r2c_op
from .padding import constant_pad_nd, pad
from .scattering import unfold_backward_op
from .views import slice_op

_STFT = "Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
_KIND = "bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None"
stft_center_op = Operator(
    f'stft.center({_STFT}bool center=True, str pad_mode="reflect", {_KIND}) -> Tensor', refuses="whole halves"
)
SMALLEST = 1e-11  # what windows must add up to, for the signal to be had from them


def shown(value: Any) -> str:
    """A value as PyTorch's messages show it here."""
    if isinstance(value, Tensor):
        return f"torch.{value._dtype.tensor_name}Tensor{{{list(value._shape)}}}"
    return str(int(value)) if isinstance(value, bool) else str(value)


def described(call: str, **values: Any) -> str:
    return f"{call}, {', '.join(f'{name}={shown(value)}' for name, value in values.items())})"


# --- spectra ----------------------------------------------------------------------------------------------------------


@composite(f"stft({_STFT}{_KIND}) -> Tensor", autocast=CPU_FP32, face=False, refuses="whole halves")
def stft_op(self, n_fft, hop_length, win_length, window, *rest):
    """[frequencies, pieces], with the batch before them; the signal is taken as it is."""
    return spectra(self, n_fft, hop_length, win_length, window, False, "", *rest)


@stft_center_op.implicit
def spectra(
    self, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window
):
    """Returns the spectra; with `center`, a piece has its point in its middle, and the signal goes on at both sides."""
    if center and align_to_window is not None:
        raise RuntimeError("stft only supports align_to_window for center = False.")
    has_complex = self._dtype.is_complex or (window is not None and window._dtype.is_complex)
    gives_complex = has_complex if return_complex is None else return_complex
    if not gives_complex:
        warn_of_reals(return_complex)
    hop, width = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    facts = (window, n_fft, hop, width, normalized, onesided, gives_complex, align_to_window)
    check_signal(self, *facts)
    signal = self.unsqueeze(0) if self.dim() == 1 else self
    if center:
        signal = continued(signal, n_fft // 2, pad_mode)
    length = signal._shape[1]
    check_stft(self, length, *facts)
    if width < n_fft:
        window = in_the_middle(window, n_fft, width, self)
    if align_to_window:
        left = (n_fft - width) // 2
        signal = constant_pad_nd.op.functional(signal, [left, n_fft - width - left])
        pieces = 1 + (length - width) // hop
    else:
        pieces = 1 + (length - n_fft) // hop
    row, step = signal.stride()
    seen = signal.as_strided((signal._shape[0], pieces, n_fft), (row, hop * step, step))
    if window is not None:
        seen = seen.mul(window)
    found = spectra_of(seen, ROOT if normalized else NONE, onesided).transpose_(1, 2)
    if self.dim() == 1:
        found = found.squeeze_(0)
    return found if gives_complex else view_as_real_op.functional(found)


def in_the_middle(window: Any, length: int, width: int, like: Any) -> Any:
    """The window, or ones, with zeros on both sides."""
    model = like if window is None else window
    longer: Any = zeros_op.functional([length], dtype=model._dtype, device=model._device)
    start = (length - width) // 2
    middle = longer.narrow(0, start, width)
    if window is not None and STATE.get().levels:  # each example may have its own
        return constant_pad_nd.op.functional(window, [start, length - width - start])
    middle.fill_(1) if window is None else middle.copy_(window)
    return longer


def spectra_of(seen: Any, way: int, onesided: bool | None) -> Any:
    if not seen.is_complex():
        return fft_r2c_op.functional(seen, [2], way, True if onesided is None else onesided)
    if onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    return fft_c2c_op.functional(seen, [2], way, True)


def warn_of_reals(return_complex: bool | None) -> None:
    if return_complex is None:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    warnings.warn(
        "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors "
        "for all inputs, and return_complex=False will raise an error.\nNote: you can still call torch.view_as_real on "
        "the complex output to recover the old return format.",
        UserWarning,
        stacklevel=2,
    )


def check_signal(x: Any, *facts: Any) -> None:
    if x._dtype.category < dtypes.FLOATING:
        raise refused(x, "expected a tensor of floating point or complex values", *facts)
    if x.dim() not in (1, 2):
        raise refused(x, "expected a 1D or 2D tensor", *facts)


def check_stft(x: Any, length: int, window: Any, n_fft: int, hop: int, width: int, *facts: Any) -> None:
    problem = None
    if not 0 < n_fft <= length:
        problem = f"expected 0 < n_fft < {length}, but got n_fft={width}"
    elif hop <= 0:
        problem = f"expected hop_length > 0, but got hop_length={hop}"
    elif not 0 < width <= n_fft:
        problem = f"expected 0 < win_length <= n_fft, but got win_length={width}"
    elif window is not None and tuple(window._shape) != (width,):
        problem = (
            f"expected a 1D window tensor of size equal to win_length={width}, but got window with size "
            f"{list(window._shape)}"
        )
    if problem is not None:
        raise refused(x, problem, window, n_fft, hop, width, *facts)


def refused(
    x: Any, problem: str, window: Any, n_fft: int, hop: int, width: int, normalized: bool, onesided: Any, *rest: Any
) -> RuntimeError:
    call = described(
        f"stft(torch.{x._dtype.tensor_name}Tensor{list(x._shape)}",
        n_fft=n_fft,
        hop_length=hop,
        win_length=width,
        window=window,
        normalized=normalized,
        onesided=onesided,
        return_complex=rest[0],
        align_to_window=rest[1],
    )
    return RuntimeError(f"{call} : {problem}")


def continued(x: Any, width: int, mode: str) -> Any:
    """The signal with so many more points before and behind it."""
    shape = [1] * (3 - x.dim()) + list(x._shape)
    longer = pad.op.functional(x.view(shape), [width, width], mode)
    return longer.view(longer._shape[-x.dim() :])


@overridable_function
def stft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Returns the spectra of pieces of `n_fft` points, `hop_length` apart (by default a quarter of it), as columns.

    center: piece k is around point k * hop_length, for which the signal is continued by `pad_mode`; else it begins
    there. window: as long as `win_length`, by default `n_fft`; put in the middle of the piece. normalized: divides by
    the square root of `n_fft`. onesided: leaves out what follows from the rest, as it does for reals. return_complex:
    must be given for reals.
    """
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        input = continued(input, n_fft // 2, pad_mode)
    return stft_op.functional(
        input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window
    )


Tensor.stft = another(stft, "stft", overridable_in_python)  # type: ignore[attr-defined]  # attached here

# --- and back ---------------------------------------------------------------------------------------------------------


def in_python(
    self: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> None:
    """The parameters of `Tensor.istft`, which PyTorch has in Python."""


@composite(
    f"istft({_STFT}bool center=True, bool normalized=False, bool? onesided=None, int? length=None, "
    "bool return_complex=False) -> Tensor",
    method_like=in_python,
    refuses="whole floating",
)
def istft(self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex):
    """Returns the signal that has these spectra, in the sense of least squares; of `length` points, if that is
    given."""
    hop, width = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if not self.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    pairs = view_as_real_op.functional(self.resolve_conj())
    frequencies = pairs._shape[wrap_dim(-3, pairs.dim())]
    half = frequencies != n_fft if onesided is None else onesided
    call = described(
        f"istft(CPU{self._dtype.tensor_name}Type{list(self._shape)}",
        n_fft=n_fft,
        hop_length=hop,
        win_length=width,
        window=window,
        center=center,
        normalized=normalized,
        onesided=onesided,
        length=length,
        return_complex=return_complex,
    )
    check_istft(call, pairs, frequencies, half, n_fft, hop, width, window)
    options = {"dtype": pairs._dtype, "device": pairs._device}
    seen_through = ones_op.functional([width], **options) if window is None else window
    if width != n_fft:
        left = (n_fft - width) // 2
        seen_through = constant_pad_nd.op.functional(seen_through, [left, n_fft - width - left])
    pairs = pairs.unsqueeze(0) if self.dim() == 2 else pairs
    given = view_as_complex_op.functional(pairs.transpose(1, 2))
    pieces = given._shape[1]
    seen = pieces_of(given, ROOT if normalized else ALL, half, n_fft, window, return_complex)
    total = n_fft + hop * (pieces - 1)
    signal = laid_over(seen * seen_through.view((1, 1, n_fft)), total, n_fft, hop)
    weight = laid_over(seen_through.pow(2).expand((1, pieces, n_fft)), total, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else -(n_fft // 2) if center else total
    signal, weight = (slice_op.functional(x, 1, start, end, 1) for x in (signal, weight))
    lowest = weight.abs().min().lt(SMALLEST)
    if lowest.equal(lowest.new_ones([], dtype=dtypes.bool)):
        raise RuntimeError(f"{call} window overlap add min: 1\n[ CPUBoolType{{}} ]")
    signal = signal / weight
    signal = signal.squeeze(0) if self.dim() == 2 else signal
    if end > total:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings.",
            UserWarning,
            stacklevel=2,
        )
        signal = constant_pad_nd.op.functional(signal, [0, end - total])
    return signal


def pieces_of(given: Any, way: int, half: bool, n_fft: int, window: Any, return_complex: bool) -> Any:
    if return_complex:
        if half:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        return fft_c2c_op.functional(given, [2], way, False)
    if window is not None and window._dtype.is_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if not half:
        given = given.narrow(2, 0, n_fft // 2 + 1)
    return fft_c2r_op.functional(given, [2], way, n_fft)


def laid_over(pieces: Any, total: int, n_fft: int, hop: int) -> Any:
    """The sum of all pieces, each at its place."""
    return unfold_backward_op.functional(pieces, [pieces._shape[0], total], 1, n_fft, hop)


def check_istft(
    call: str, pairs: Any, frequencies: int, half: bool, n_fft: int, hop: int, width: int, window: Any
) -> None:
    problem = None
    where = "expected the frequency dimension (3rd to the last) of the input tensor to match"
    if not pairs.numel():
        problem = "input tensor cannot be empty."
    elif pairs.dim() not in (3, 4):
        problem = f"expected a tensor with 3 or 4 dimensions, but got {pairs.dim()}"
    elif half and frequencies != n_fft // 2 + 1:
        problem = f"{where} n_fft / 2 + 1 when onesided=True, but got {frequencies}"
    elif not half and frequencies != n_fft:
        problem = f"{where} n_fft when onesided=False, but got {frequencies}"
    elif not 0 < hop <= width:
        problem = "expected 0 < hop_length <= win_length"
    elif not 0 < width <= n_fft:
        problem = "expected 0 < win_length <= n_fft"
    elif window is not None and tuple(window._shape) != (width,):
        problem = "Invalid window shape. window has to be 1D and length of `win_length`"
    if problem is not None:
        raise RuntimeError(f"{call} : {problem}")


stft_center_op.autocast(cpu="fp32")

# --- windows: hann, hamming, blackman, bartlett, kaiser ---------------------------------------------------------------

# --- windows ---------------------------------------------------------------------------------------------------------


def cosines(turn: np.ndarray, *weights: float) -> np.ndarray:
    """weights[0] - weights[1] cos(turn) + weights[2] cos(2 turn)"""
    total = np.full_like(turn, weights[0])
    for k, weight in enumerate(weights[1:], 1):
        total += (-1) ** k * weight * np.cos(k * turn)
    return total


def hann_values(turn: np.ndarray) -> np.ndarray:
    return cosines(turn, 0.5, 0.5)


def hamming_values(turn: np.ndarray, alpha: float = 0.54, beta: float = 0.46) -> np.ndarray:
    return cosines(turn, alpha, beta)


def blackman_values(turn: np.ndarray) -> np.ndarray:
    return cosines(turn, 0.42, 0.5, 0.08)


def bartlett_values(turn: np.ndarray) -> np.ndarray:
    return 1 - np.abs(turn / math.pi - 1)


def kaiser_values(turn: np.ndarray, beta: float = 12.0) -> np.ndarray:
    x = turn / math.pi - 1
    return np.i0(beta * np.sqrt(np.maximum(1 - x * x, 0))) / np.i0(beta)


def window(name: str, values: Callable[..., np.ndarray], *overloads: tuple[str, str]) -> Any:
    """The face of a window with its overloads: without arguments but its length, then `periodic`, then these."""
    declared = []
    for overload, arguments in (("", ""), ("periodic", ", bool periodic"), *overloads):
        head = f"{name}.{overload}" if overload else name
        into = f"{overload}_out" if overload else "out"
        op = Operator(f"{head}(int window_length{arguments}, *, {FACTORY}) -> Tensor", refuses="whole complex")
        out_op = Operator(f"{name}.{into}(int window_length{arguments}, *, Tensor(a!) out) -> Tensor(a!)")
        op.explicit(window_kernel(name, values))
        out_op.explicit(window_out_kernel(name, values))
        op.not_differentiable()
        op.out = out_op.functional
        declared.append(op)
    return public(
        *declared, doc=f"Returns a {name.partition('_')[0].capitalize()} window: weights that fall off to both ends."
    )


def window_kernel(name: str, values: Callable[..., np.ndarray]) -> Callable[..., Tensor]:
    """The kernel of all overloads: what stands between the length and the factory's options is `periodic` and shape."""

    def kernel(length: int, *given: Any) -> Tensor:
        *shape, kind, _, device, pin_memory = given
        kind = kind or get_default_dtype()
        check_window(name, kind, device, pin_memory)
        points = window_points(name, values, length, shape)
        return written(new((length,), kind, device, pin_memory), points)

    kernel.__name__ = name
    return kernel


def window_out_kernel(name: str, values: Callable[..., np.ndarray]) -> Callable[..., Tensor]:
    def into_out(length: int, *given: Any) -> Tensor:
        *shape, out = given
        check_window(name, out._dtype, out._device, None)
        points = window_points(name, values, length, shape)
        return written(shaped(out, [length]), points)

    into_out.__name__ = name
    return into_out


# How C++ calls them, which is how the message does.
C_NAMES = {"uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int"}


def check_window(name: str, kind: dtype, device: Any, pin_memory: Any) -> None:
    """Raises RuntimeError for whole numbers, and NotImplementedError for complex ones."""
    if kind.is_complex:
        raise not_implemented("arange_cpu", kind)
    if not kind.is_floating_point:
        on, pinned = ("" if given is not None else " (default)" for given in (device, pin_memory))
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={C_NAMES.get(kind.name, kind.name)}, "
            f"device={device or 'cpu'}{on}, layout=Strided (default), requires_grad=false (default), "
            f"pinned_memory=false{pinned}, memory_format=(nullopt))"
        )


def window_points(name: str, values: Callable[..., np.ndarray], length: int, shape: Any) -> np.ndarray:
    """The values of a window in float64. `shape`: periodic, and the numbers that its curve takes."""
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if length == 1:
        return np.ones(1)
    periodic = not shape or shape[0]
    try:
        turn = 2 * math.pi * np.arange(length) / (length if periodic else max(length - 1, 1))
        return values(turn, *shape[1:])
    except (MemoryError, ValueError):  # of more elements than numpy can count
        raise cannot_allocate(8 * length) from None


hann_window = window("hann_window", hann_values)
hamming_window = window(
    "hamming_window",
    hamming_values,
    ("periodic_alpha", ", bool periodic, float alpha"),
    ("periodic_alpha_beta", ", bool periodic, float alpha, float beta"),
)
blackman_window = window("blackman_window", blackman_values)
bartlett_window = window("bartlett_window", bartlett_values)
kaiser_window = window("kaiser_window", kaiser_values, ("beta", ", bool periodic, float beta"))
