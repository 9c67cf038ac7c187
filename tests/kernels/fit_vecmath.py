"""Fits the polynomials of kernels/vecmath: `python tests/kernels/fit_vecmath.py` prints its coefficients.py.

Each is a minimax polynomial, found by Remez's exchange: demand that the weighted error be +h, -h, +h, ... at n + 2
points, which is a linear system in the n + 1 coefficients and h; move the points to where the error peaks; repeat
until all peaks are equally high. mpmath computes with 40 digits, so that rounding plays no part. The weight is what
turns the polynomial's error into the relative error of the function that is built around it. Coefficients are rounded
once, at the end: leading terms that must be exact (the 1 in e^r = 1 + r + ...) are no part of what is fitted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import mpmath as mp
import numpy as np

mp.mp.dps = 40
Function = Callable[[mp.mpf], mp.mpf]


@dataclass(frozen=True)
class Fit:
    """A polynomial of `degree` for `function` on [low, high]; its error, times `weight`, is to be small everywhere."""

    name: str
    meaning: str
    function: Function
    low: float
    high: float
    degree: int
    weight: Function = lambda x: mp.mpf(1)
    dtype: str = "float64"
    long_first: bool = False  # whether the first coefficient is to be a sum of two floats, under a name of its own


def horner(coefficients: list[mp.mpf], x: mp.mpf) -> mp.mpf:
    total = mp.mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def remez(fit: Fit, rounds: int = 12) -> tuple[list[mp.mpf], mp.mpf]:
    """(coefficients, lowest first; the largest weighted error)"""
    count = fit.degree + 2
    middle, half = mp.mpf(fit.low + fit.high) / 2, mp.mpf(fit.high - fit.low) / 2
    size = 16 * count
    grid = [middle - half * mp.cos(mp.pi * k / size) for k in range(size + 1)]
    values, weights = [fit.function(x) for x in grid], [fit.weight(x) for x in grid]
    largest = max(weights)
    heavy = [k for k in range(size + 1) if weights[k] > largest / 10**6]  # an error without weight alternates nowhere
    at = [heavy[round(k * (len(heavy) - 1) / (count - 1))] for k in range(count)]
    for _ in range(rounds):
        system, right = mp.matrix(count, count), mp.matrix(count, 1)
        for row, k in enumerate(at):
            t = (grid[k] - middle) / half
            power = mp.mpf(1)
            for column in range(count - 1):
                system[row, column] = power
                power *= t
            system[row, count - 1] = (-1) ** row / weights[k]
            right[row] = values[k]
        scaled = list(mp.lu_solve(system, right))[:-1]
        errors = [(horner(scaled, (x - middle) / half) - v) * w for x, v, w in zip(grid, values, weights, strict=True)]
        peaks = exchange({k: errors[k] for k in heavy}, count)
        if len(peaks) < count or peaks == at:
            break
        at = peaks
    return expand(scaled, middle, half), max(abs(e) for e in errors)


def exchange(errors: dict[int, mp.mpf], count: int) -> list[int]:
    """The highest peak of each run of equal signs; `count` neighbouring ones, those that are highest."""
    peaks: list[int] = []
    for k, error in errors.items():
        if peaks and (error > 0) == (errors[peaks[-1]] > 0):
            if abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = k
        else:
            peaks.append(k)
    while len(peaks) > count:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks


def expand(scaled: list[mp.mpf], middle: mp.mpf, half: mp.mpf) -> list[mp.mpf]:
    """The coefficients in powers of x, from those in powers of (x - middle) / half."""
    result = [mp.mpf(0)]
    for c in reversed(scaled):
        shifted = [mp.mpf(0), *result]
        for k, r in enumerate(result):
            shifted[k] -= r * middle
        result = [s / half for s in shifted]
        result[0] += c
    return result[: len(scaled)]


def beyond(function: Function, terms: list[float | mp.mpf], step: int = 1) -> Function:
    """Returns the rest of a power series behind its first terms, divided by the next power: stable near 0.

    `terms` are the coefficients of x^0, x^step, ...; the result is a function of x^step.
    """

    def rest(x: mp.mpf) -> mp.mpf:
        if x == 0:
            x = mp.mpf(10) ** -12
        with mp.workdps(40 + 14 * len(terms) + 20):
            x = mp.mpf(x)
            return (function(x) - sum(t * x**k for k, t in enumerate(terms))) / x ** len(terms)

    return rest


def odd(function: Function) -> Function:
    """function(sqrt(z)) / sqrt(z), for odd functions as series in z = x²."""
    return lambda z: function(mp.sqrt(z)) / mp.sqrt(z) if z else function(mp.mpf(10) ** -30) * mp.mpf(10) ** 30


def of_root(function: Function) -> Function:
    """function(sqrt(z)), for even functions as series in z = x²."""
    return lambda z: function(mp.sqrt(z))


def fits() -> Iterator[Fit]:
    """All of them, in the order of coefficients.py."""
    half_ln2 = float(mp.ln(2) / 2) * 1.0001
    eighth = float((mp.pi / 4) ** 2) * 1.02
    for dtype, exp, log, sin, cos in (("float64", 9, 6, 5, 5), ("float32", 4, 5, 2, 2)):
        tag = "" if dtype == "float64" else "_32"
        yield Fit(f"EXP{tag}", "(e^r - 1 - r) / r^2", beyond(mp.exp, [1, 1]), -half_ln2, half_ln2, exp,
                  lambda r: r * r * mp.exp(-r), dtype)  # fmt: skip
        if dtype == "float64":
            yield Fit("LOG", "(2 atanh(s) / s - 2) / z, z = s^2", beyond(odd(lambda s: 2 * mp.atanh(s)), [2]),
                      0, 0.02944, log, lambda z: z / 2)  # fmt: skip
        else:
            yield Fit("LOG_32", "(log(1 + f) - f + f^2 / 2) / f^3", beyond(mp.log1p, [0, 1, mp.mpf(-1) / 2]),
                      -0.29290, 0.41422, 8, lambda f: f * f, dtype)  # fmt: skip
        yield Fit(f"SIN{tag}", "(sin(r) / r - 1) / z, z = r^2", beyond(odd(mp.sin), [1]), 0, eighth, sin,
                  lambda z: z, dtype)  # fmt: skip
        yield Fit(f"COS{tag}", "(cos(r) - 1 + z / 2) / z^2, z = r^2", beyond(of_root(mp.cos), [1, mp.mpf(-1) / 2]),
                  0, eighth, cos, lambda z: z * z, dtype)  # fmt: skip
    yield Fit("TANH_32", "(tanh(x) / x - 1) / z, z = x^2", beyond(odd(mp.tanh), [1]), 0, 0.390625, 4,
              lambda z: z, "float32")  # fmt: skip
    yield from fits_of_power()
    yield from fits_of_error()
    yield from fits_of_inverses()
    yield from fits_of_gamma()


def fits_of_power() -> Iterator[Fit]:
    yield Fit("LOG2_OF_POWER_32", "log2(1 + f) / f", lambda f: mp.log1p(f) / f / mp.ln(2) if f else 1 / mp.ln(2),
              -0.29290, 0.41422, 11, lambda f: f / mp.log1p(f) if f else mp.mpf(1))  # fmt: skip
    yield Fit("EXP2_OF_POWER_32", "2^r", lambda r: mp.mpf(2) ** r, -0.5, 0.5, 6, lambda r: mp.mpf(2) ** -r)
    yield Fit("LOG_OF_POWER", "(2 atanh(s) / s - 2 - 2/3 z) / z^2, z = s^2",
              beyond(odd(lambda s: 2 * mp.atanh(s)), [2, mp.mpf(2) / 3]), 0, 0.02944, 6,
              lambda z: z * z / 2)  # fmt: skip


def erfcx(x: mp.mpf) -> mp.mpf:
    return mp.exp(x * x) * mp.erfc(x)


def erfinv_over_x(w: mp.mpf) -> mp.mpf:
    """erfinv(x) / x with w = -log(1 - x^2)."""
    if w < mp.mpf(10) ** -25:
        return mp.sqrt(mp.pi) / 2
    with mp.workdps(70):
        x = mp.sqrt(-mp.expm1(-w))
        return mp.erfinv(x) / x


def fits_of_error() -> Iterator[Fit]:
    for tag, dtype, near, far, start, end in (("", "float64", 11, 22, 4, 27.3), ("_32", "float32", 6, 10, 3, 10.2)):
        yield Fit(f"ERF{tag}", "erf(x) / x, z = x^2", odd(mp.erf), 0, 1, near, lambda z: 1 / odd(mp.erf)(z), dtype)
        low, high = 1 / (start + end), 1 / start
        middle = round(512 * (low + high) / 2) / 512  # exact in both types

        def tail(w: mp.mpf, start: float = start, middle: float = middle) -> mp.mpf:
            v = w + mp.mpf(middle)
            return erfcx(1 / v - start) / v

        yield Fit(f"ERFCX{tag}", f"erfcx(x) / v, v = 1 / (x + {start}), w = v - {middle}", tail, low - middle,
                  high - middle + 1e-9, far, lambda w, tail=tail: 1 / tail(w), dtype, long_first=True)  # fmt: skip
    yield Fit("ERF_FAR_32", "log2(1 - erf(x))", lambda x: mp.log(mp.erfc(x), 2), 1, 4, 7, mp.erfc, "float32")
    yield Fit("EXP2_32", "2^r", lambda r: mp.mpf(2) ** r, -0.5, 0.5, 5, lambda r: mp.mpf(2) ** -r, "float32")
    yield Fit("ERFINV_NEAR", "erfinv(x) / x, w = -log(1 - x^2) - 2.5", lambda w: erfinv_over_x(w + mp.mpf("2.5")),
              -2.5, 2.6, 21, lambda w: 1 / erfinv_over_x(w + mp.mpf("2.5")))  # fmt: skip
    yield Fit("ERFINV_MIDDLE", "erfinv(x) / x, s = sqrt(-log(1 - x^2)) - 3", lambda s: erfinv_over_x((s + 3) ** 2),
              2.22 - 3, 4 - 3 + 0.01, 20, lambda s: 1 / erfinv_over_x((s + 3) ** 2))  # fmt: skip
    yield Fit("ERFINV_FAR", "erfinv(x) / x, s = sqrt(-log(1 - x^2)) - 5", lambda s: erfinv_over_x((s + 5) ** 2),
              4 - 5, 6.1 - 5, 17, lambda s: 1 / erfinv_over_x((s + 5) ** 2))  # fmt: skip


def fits_of_inverses() -> Iterator[Fit]:
    yield Fit("ASIN", "(asin(x) / x - 1) / z, z = x^2", beyond(odd(mp.asin), [1]), 0, 0.25, 12, lambda z: z)
    yield Fit("ATAN", "(atan(x) / x - 1) / z, z = x^2", beyond(odd(mp.atan), [1]), 0, 0.17158, 10, lambda z: z)


def stirling_rest(u: mp.mpf) -> mp.mpf:
    """x times what Stirling's formula lacks of lgamma(x), u = 1 / x^2."""
    if u < mp.mpf(10) ** -20:
        return mp.mpf(1) / 12
    with mp.workdps(60):
        x = 1 / mp.sqrt(u)
        return x * (mp.loggamma(x) - (x - mp.mpf("0.5")) * (mp.log(x) - 1) - (mp.log(2 * mp.pi) - 1) / 2)


def digamma_rest(u: mp.mpf) -> mp.mpf:
    """x^2 (log x - 1 / (2 x) - digamma(x)), u = 1 / x^2."""
    if u < mp.mpf(10) ** -20:
        return mp.mpf(1) / 12
    with mp.workdps(60):
        x = 1 / mp.sqrt(u)
        return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / u


def lgamma_over_w(w: mp.mpf) -> mp.mpf:
    with mp.workdps(100):
        return mp.loggamma(2 + w) / w


def fits_of_gamma() -> Iterator[Fit]:
    with mp.workdps(60):
        root = mp.findroot(mp.digamma, 1.46)
    half = mp.mpf("0.5")
    yield Fit("LGAMMA_NEAR", "lgamma(2 + w) / w", lgamma_over_w, -1, 1, 27)
    yield Fit("LGAMMA_FAR", "x (lgamma(x) - (x - 1/2) (log x - 1) - (log 2 pi - 1) / 2), u = 1 / x^2", stirling_rest,
              0, 0.1112, 12, lambda u: mp.sqrt(u) if u else mp.mpf(10) ** -6)  # fmt: skip
    yield Fit("DIGAMMA_NEAR", "digamma(1.5 + w) / (1.5 + w - root)",
              lambda w: mp.digamma(w + 3 * half) / (w + 3 * half - root), -0.5, 0.5, 21,
              lambda w: (w + 3 * half - root) / mp.digamma(w + 3 * half))  # fmt: skip
    yield Fit("DIGAMMA_FAR", "x^2 (log x - 1 / (2 x) - digamma(x)), u = 1 / x^2", digamma_rest, 0, 0.2501, 16,
              lambda u: u * 2 if u else mp.mpf(10) ** -6)  # fmt: skip


def text(fit: Fit) -> str:
    """The lines of one polynomial."""
    coefficients, error = remez(fit)
    kind = np.float32 if fit.dtype == "float32" else np.float64
    comment = f"# {fit.meaning}; {fit.low:.6g} to {fit.high:.6g}, off by {mp.nstr(error, 2)}\n"
    if fit.long_first:
        first = float(kind(str(coefficients[0])))
        rest = float(kind(str(coefficients.pop(0) - mp.mpf(first))))
        name, tag, _ = fit.name.partition("_32")
        comment += f"{name}_FIRST{tag}, {name}_FIRST_REST{tag} = {first!r}, {rest!r}\n"
    numbers = ",\n    ".join(repr(float(kind(str(c)))) for c in coefficients)
    return f"{comment}{fit.name} = (\n    {numbers},\n)\n"


HEAD = '''"""The polynomials' coefficients, lowest power first: written by tests/kernels/fit_vecmath.py, which says how.

Beside each stands what it approximates, from where to where, and the largest error that this leaves in the function
built around it, relative to it unless that file says otherwise. Read next: `exponential.py`.
"""
'''

if __name__ == "__main__":
    chosen = [fit for fit in fits() if not sys.argv[1:] or fit.name in sys.argv[1:]]
    print("\n".join([HEAD, *map(text, chosen)]), end="")
