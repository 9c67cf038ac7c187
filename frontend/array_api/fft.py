"""The standard's extension `fft`: the library's transforms, with `axis` and `axes` for PyTorch's `dim`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import redispatch as rd
from redispatch import Tensor, dtype

from .elementwise import called

Norm = Literal["backward", "ortho", "forward"]
Axes = int | Sequence[int] | None


class AlongOne(Protocol):
    """A transform along one axis."""

    def __call__(self, x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor: ...


class AlongSeveral(Protocol):
    """A transform along several axes."""

    def __call__(
        self,
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> Tensor: ...


def along_one(transform: Any) -> AlongOne:
    def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
        return transform(x, n, axis, norm)

    return named(transform, fft)


def along_several(transform: Any) -> AlongSeveral:
    def fftn(
        x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
    ) -> Tensor:
        return transform(x, s, axes, norm)

    return named(transform, fftn)


def named(transform: Any, made: Any) -> Any:
    name = transform.__name__.removeprefix("fft_")
    return called(name, made, f"fft.{name}")


fft, ifft, hfft = along_one(rd.fft.fft), along_one(rd.fft.ifft), along_one(rd.fft.hfft)
rfft, irfft = along_one(rd.fft.rfft), along_one(rd.fft.irfft)
fftn, ifftn = along_several(rd.fft.fftn), along_several(rd.fft.ifftn)
rfftn, irfftn = along_several(rd.fft.rfftn), along_several(rd.fft.irfftn)


def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
    """`redispatch.fft.ihfft`, by the standard's rules; a lazy conjugate could not be handed to other libraries."""
    return rd.fft.ihfft(x, n, axis, norm).resolve_conj()


def fftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """The frequencies of what `fft` gives for n samples at distances `d`."""
    return rd.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """The frequencies of what `rfft` gives for n samples at distances `d`."""
    return rd.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: Axes = None) -> Tensor:
    """The frequency 0 in the middle."""
    return rd.fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Axes = None) -> Tensor:
    """The frequency 0 back in front."""
    return rd.fft.ifftshift(x, axes)


__all__ = """
    fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn
""".split()
