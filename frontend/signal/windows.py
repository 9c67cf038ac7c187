"""Windows: weights by which a piece of a signal is multiplied, so that it begins and ends softly.

Each is a function of points at equal distances, a ramp. A symmetric window of M points ends as it begins; a periodic
one (`sym=False`) leaves the last point out, for it is the first of the next period. `hann_window` and its kin are the
older names of some.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import redispatch as rd
from redispatch import Tensor

__path__: list[str] = []  # PyTorch's path is `signal.windows.windows`, too
__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


class Points:
    """The points of a window: how many, and of which dtype and device their ramps are."""

    def __init__(self, count: int, sym: bool, how: dict[str, Any]) -> None:
        self.count, self.sym, self.how = count, sym, how
        self.period = count - 1 if sym else count
        self.span = count - 1 if sym or count <= 1 else count  # where a single point is in the middle of itself

    def ramp(self, start: Any, step: Any) -> Tensor:
        return rd.linspace(start, start + (self.count - 1) * step, self.count, **self.how)


def window(formula: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Makes a window of a formula, which is given `Points` and its own options."""
    name = formula.__name__

    @wraps(formula)
    def windowed(
        M: int,
        *,
        sym: bool = True,
        dtype: Any = None,
        layout: Any = rd.strided,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> Tensor:
        dtype = rd.get_default_dtype() if dtype is None else dtype
        if M < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout is not rd.strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        if dtype not in (rd.float32, rd.float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
        how = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
        return formula(Points(M, sym, how), **options)

    own = list(inspect.signature(formula).parameters.values())[1:]
    given = inspect.signature(windowed, follow_wrapped=False).parameters
    M, sym, *rest = (given[x] for x in given if x != "options")
    windowed.__signature__ = inspect.Signature([M, *own, sym, *rest], return_annotation="Tensor")  # type: ignore[attr-defined]  # functions have it
    return windowed


@window
def exponential(points, *, center: float | None = None, tau: float = 1.0):
    """Returns a window that falls by e on every `tau` points to both sides of its center.

        exp(-|n - center| / tau)

    Errors: ValueError for a `tau` of 0 or less, and for a `center` of a symmetric window, which has its own.
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if points.sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    center = points.span / 2 if center is None else center
    return (-points.ramp(-center / tau, 1 / tau).abs()).exp()


@window
def cosine(points):
    """Returns one arch of a sine, of which each point is in the middle of its part.

    sin(pi (n + 0.5) / M)
    """
    step = math.pi / max(points.span + 1, 1)
    return points.ramp(0.5 * step, step).sin()


@window
def gaussian(points, *, std: float = 1.0):
    """Returns the bell of a standard deviation of `std` points.

        exp(-n² / (2 std²)), n counted from the middle

    Errors: ValueError for an `std` of 0 or less.
    """
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    step = 1 / (std * math.sqrt(2))
    return (-(points.ramp(-points.span / 2 * step, step) ** 2)).exp()


def one(points: Points) -> Tensor:
    return rd.ones(points.count, **points.how)


@window
def kaiser(points, *, beta: float = 12.0):
    """Returns the window that has most of its energy near frequency 0, as far as `beta` lets the sides fall.

        i0(beta sqrt(1 - t²)) / i0(beta), t from -1 to 1

    Errors: ValueError for a negative `beta`.
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if points.count <= 1:
        return one(points)
    b = rd.tensor(beta, dtype=points.how["dtype"], device=points.how["device"])
    step = 2.0 * b / points.period
    end = rd.minimum(b, -b + (points.count - 1) * step)  # else the root below is of a negative number
    k = rd.linspace(-b, end, points.count, **points.how)
    return rd.i0(rd.sqrt(b * b - k**2)) / rd.i0(b)


@window
def bartlett(points):
    """Returns a triangle that is 0 at its ends.

    1 - |2 n / N - 1|
    """
    if points.count <= 1:
        return one(points)
    return 1 - points.ramp(-1, 2 / points.period).abs()


def cosines(points: Points, a: Any) -> Tensor:
    """Returns the alternating sum of cosines with the coefficients `a`."""
    if points.count <= 1:
        return one(points)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    how = {name: points.how[name] for name in ("dtype", "device", "requires_grad")}
    k = points.ramp(0, 2 * math.pi / points.period)
    weights = rd.tensor([(-1) ** i * weight for i, weight in enumerate(a)], **how)
    i = rd.arange(len(weights), **how)
    return (weights.unsqueeze(-1) * rd.cos(i.unsqueeze(-1) * k)).sum(0)


@window
def general_cosine(points, *, a: Iterable[float]):
    """Returns a sum of cosines.

        sum of (-1)^i a[i] cos(2 pi i n / N)

    Errors: TypeError where `a` is no sequence, ValueError where it is empty.
    """
    return cosines(points, a)


@window
def blackman(points):
    """Returns the sum of three cosines that begins and ends at 0."""
    return cosines(points, [0.42, 0.5, 0.08])


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **how: Any) -> Tensor:
    """Returns a cosine that is raised by `alpha`.

    alpha - (1 - alpha) cos(2 pi n / N)
    """
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **how)


def hamming(M: int, *, sym: bool = True, **how: Any) -> Tensor:
    """Returns the raised cosine whose first side lobe is lowest."""
    return general_hamming(M, sym=sym, **how)


def hann(M: int, *, sym: bool = True, **how: Any) -> Tensor:
    """Returns the raised cosine that begins and ends at 0."""
    return general_hamming(M, alpha=0.5, sym=sym, **how)


def nuttall(M: int, *, sym: bool = True, **how: Any) -> Tensor:
    """Returns the sum of four cosines with the lowest side lobes, after Nuttall (1981)."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **how)
