"""Padding and resizing of images: results laid out as images, 16-bit floats computed in float32, and what is done along
one axis, as a sparse matrix for kernels/cpu/resample.py.

    reflected, replicated    padding: an element of the image, or one near its edge
    nearest                  resizing: the one element that lies nearest
    interpolated             resizing: a straight line, or a cubic, through the elements around a place
    filtered                 resizing: a mean under a hill that is as wide as an element of the smaller image

Everything is computed in the precision of the images (float32 for 16-bit ones), as PyTorch does: at a place halfway
between two elements, rounding decides. The maps are remembered, since a program resizes many images alike.

Sources: R. Keys, "Cubic convolution interpolation for digital image processing", 1981; Duchon, "Lanczos filtering in
one and two dimensions", 1979. Read next: padding.py, upsampling.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import dataclass
from redispatch.dispatch.tensor import Tensor, empty
from redispatch.kernels import is_contiguous
from redispatch.kernels.cpu.resample import AxisMap, picking, resample

from ..declare.structured import Meta
from .convolution import compute_dtype, dense
from .copying import suggested_format
from .creation import strides_for


def shaped_like(shape: Sequence[int], x: Tensor) -> Meta:
    """A result of this shape, with the dtype, the device and the memory format of `x`."""
    return Meta(tuple(shape), x._dtype, x._device, strides_for(shape, suggested_format(x)))


def resampled(out: Tensor, x: Tensor, axes: Sequence[AxisMap]) -> None:
    """Fills `out` with `x` mapped along its last axes, one map for each."""
    if not out._shape.numel():
        return
    compute = compute_dtype(x)
    whole = out._dtype is compute and is_contiguous(out._shape, out._stride)
    result = out if whole else empty(out._shape, compute, out._device)
    resample(result._operand, dense(x, compute)._operand, axes)
    if result is not out:
        kernels.copy(out._operand, result._operand)


# --- along one axis ---------------------------------------------------------------------------------------------------

REMEMBERED = 512  # maps of each kind

# --- padding ---------------------------------------------------------------------------------------------------------


@lru_cache(REMEMBERED)
def replicated(size: int, before: int, behind: int) -> AxisMap:
    """The element at the edge, again and again; negative widths cut off."""
    return picking(size, np.clip(np.arange(-before, size + behind), 0, size - 1))


@lru_cache(REMEMBERED)
def reflected(size: int, before: int, behind: int) -> AxisMap:
    """The image mirrored at the element at its edge, which is not repeated; negative widths cut off."""
    places = np.abs(np.arange(-before, size + behind))
    return picking(size, np.clip(size - 1 - np.abs(size - 1 - places), 0, size - 1))


# --- resizing --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Resizing:
    """The resizing of one axis.

    scale: by how much the result is larger, as the caller gave it; None, or below 0, for what the sizes say.
    """

    size: int
    count: int
    scale: float | None = None
    align_corners: bool = False

    def step(self, real: Any) -> Any:
        """Returns how far apart in the source the elements of the result lie."""
        if self.align_corners:
            return real(self.size - 1) / real(self.count - 1) if self.count > 1 else real(0)
        if self.scale is not None and self.scale > 0:
            return real(1 / self.scale)
        return real(self.size) / real(self.count)

    def centres(self, real: Any) -> np.ndarray:
        """The places in the source of the elements of the result, counted from the first element's middle."""
        numbers = np.arange(self.count, dtype=real)
        if self.align_corners:
            return self.step(real) * numbers
        return self.step(real) * (numbers + real(0.5)) - real(0.5)


@lru_cache(REMEMBERED)
def nearest(how: Resizing, real: Any) -> AxisMap:
    """The element in which the result's begins."""
    places = whole(np.arange(how.count, dtype=real) * how.step(real))
    return picking(how.size, np.minimum(places, how.size - 1))


@lru_cache(REMEMBERED)
def nearest_exact(how: Resizing, real: Any) -> AxisMap:
    """The element in which the middle of the result's lies."""
    places = whole((np.arange(how.count, dtype=real) + real(0.5)) * how.step(real))
    return picking(how.size, np.minimum(places, how.size - 1))


def whole(x: np.ndarray) -> np.ndarray:
    """Rounded down, in float32 always: what is a little below a whole number in float64 was meant to be that number."""
    return floor(x.astype(np.float32))


def floor(x: np.ndarray) -> np.ndarray:
    return np.floor(x).astype(np.int64)


def linear_weights(t: np.ndarray) -> list[np.ndarray]:
    """The weights of the two elements around a place, `t` of the way from the first to the second."""
    return [1 - t, t]


def cubic_weights(t: np.ndarray) -> list[np.ndarray]:
    """The weights of the four elements around a place, `t` of the way from the second to the third."""
    a = t.dtype.type(-0.75)
    return [cubic_far(t + 1, a), cubic_near(t, a), cubic_near(1 - t, a), cubic_far(2 - t, a)]


def cubic_near(x: np.ndarray, a: Any) -> np.ndarray:
    """Keys' cubic up to a distance of 1."""
    return ((a + 2) * x - (a + 3)) * x * x + 1


def cubic_far(x: np.ndarray, a: Any) -> np.ndarray:
    """Keys' cubic between distances of 1 and 2."""
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


@lru_cache(REMEMBERED)
def interpolated(how: Resizing, real: Any, *, cubic: bool) -> AxisMap:
    """A line through the two elements around each place, or a cubic through four; beyond the edge, that at the edge."""
    centres = how.centres(real)
    if not cubic and how.count == how.size:
        centres = np.arange(how.size, dtype=real)  # whatever the factor
    elif not cubic:
        centres = np.maximum(centres, real(0))
    lower = np.minimum(floor(centres), how.size - 1)
    t = np.clip(centres - lower.astype(real), real(0), real(1))
    weights = np.stack(cubic_weights(t) if cubic else linear_weights(t), 1)
    first = -1 if cubic else 0
    places = np.clip(lower[:, None] + np.arange(first, first + weights.shape[1]), 0, how.size - 1)
    return AxisMap(how.size, np.arange(how.count + 1) * weights.shape[1], places.ravel(), weights.ravel())


# --- filters ---------------------------------------------------------------------------------------------------------


def triangle(x: np.ndarray) -> np.ndarray:
    """A hill with straight sides, from -1 to 1."""
    return np.maximum(1 - np.abs(x), 0)


def keys(x: np.ndarray) -> np.ndarray:
    """Keys' cubic with the constant -1/2, from -2 to 2."""
    x, a = np.abs(x), x.dtype.type(-0.5)
    return np.where(x < 1, cubic_near(x, a), np.where(x < 2, cubic_far(x, a), 0))


def lanczos(x: np.ndarray) -> np.ndarray:
    """A sinc under a wider sinc, from -3 to 3."""
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


Hill = Callable[[np.ndarray], np.ndarray]
RADIUS: dict[Hill, int] = {triangle: 1, keys: 2, lanczos: 3}


@lru_cache(REMEMBERED)
def filtered(how: Resizing, real: Any, *, hill: Hill) -> AxisMap:
    """The mean of the elements under a hill around each place.

    The hill is stretched where the image shrinks, so that every element of the source counts.
    """
    if how.count == how.size:
        return picking(how.size, np.arange(how.size))  # whatever the factor
    step = how.step(real)
    width = max(step, real(1))
    support = real(RADIUS[hill]) * width
    middles = step * (np.arange(how.count, dtype=real) + real(0.5))  # counted from the first element's edge
    first = np.maximum((middles - support + real(0.5)).astype(np.int64), 0)
    last = np.minimum((middles + support + real(0.5)).astype(np.int64), how.size)
    lengths = np.clip(last - first, 0, 2 * int(np.ceil(support)) + 1)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.repeat(np.arange(how.count), lengths)
    places = np.arange(starts[-1]) - starts[rows] + first[rows]
    weights = hill((places - middles[rows] + real(0.5)).astype(real) / width).astype(real)
    totals = np.bincount(rows, weights, how.count).astype(real)
    weights = weights / np.where(totals == 0, real(1), totals)[rows]
    return AxisMap(how.size, starts, places, weights)
