"""Samples of kernels/ops/special_functions.py, special_names.py incomplete gamma functions; mpmath is the reference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import redispatch.special  # noqa: F401  # the operators are declared when this is imported

from ..op_info import FLOATS, Maker, OpInfo, SampleInput, sample
from .common import second_names, unary
from .elementary import ELEMENTARY
from .pairs import PAIRS
from .parts import JUMPS, PARTS
from .reductions import MOMENTS
from .shape import SHAPE


def by_mpmath(function: Any) -> Any:
    """`function(mp, *numbers)` for arrays, to 30 digits."""

    def each(*numbers: float) -> float:
        import mpmath  # here: only tests need it

        with mpmath.workdps(30):
            try:
                return float(function(mpmath.mp, *(mpmath.mpf(float(x)) for x in numbers)))
            except (TypeError, ZeroDivisionError, ValueError):  # complex, infinite or unknown
                return math.nan

    return lambda *arrays: np.vectorize(each, otypes=[float])(*arrays)


def pairs(low: float, high: float, first: tuple[float, float] | None = None) -> Any:
    """Two tensors from these ranges."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        one = first or (low, high)
        for shape in ((2, 3), (), (0, 3)):
            yield sample(make(*shape, low=one[0], high=one[1]), make(*shape, low=low, high=high))

    return samples


def number_first(number: float, low: float = 1, high: float = 4) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in ((2, 3), (), (0, 3)):
            yield sample(number, make(*shape, low=low, high=high))

    return samples


def number_second(number: float, low: float = 1, high: float = 4) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in ((2, 3), (), (0, 3)):
            yield sample(make(*shape, low=low, high=high), number)

    return samples


def special(name: str, samples: Any, reference: Any, **options: Any) -> OpInfo:
    function = f"special.{name.partition('.')[0]}"
    options = {"dtypes": FLOATS, "function": function, **options}
    return OpInfo(f"special_{name}", samples, by_mpmath(reference), **options)


def entr(mp: Any, x: Any) -> Any:
    return -x * mp.log(x) if x > 0 else 0 if x == 0 else -mp.inf


def log_ndtr(mp: Any, x: Any) -> Any:
    return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)


FLAT: Any = {"gradients": False}
BESSEL = [
    special("bessel_j0", unary(), lambda mp, x: mp.besselj(0, x), **FLAT),
    special("bessel_j1", unary(), lambda mp, x: mp.besselj(1, x), **FLAT),
    special("bessel_y0", unary(low=1), lambda mp, x: mp.bessely(0, x), **FLAT),
    special("bessel_y1", unary(low=1), lambda mp, x: mp.bessely(1, x), **FLAT),
    special("modified_bessel_i0", unary(), lambda mp, x: mp.besseli(0, x), **FLAT),
    special("modified_bessel_i1", unary(), lambda mp, x: mp.besseli(1, x), **FLAT),
    special("modified_bessel_k0", unary(low=1), lambda mp, x: mp.besselk(0, x), **FLAT),
    special("modified_bessel_k1", unary(low=1), lambda mp, x: mp.besselk(1, x), **FLAT),
    special("scaled_modified_bessel_k0", unary(low=1), lambda mp, x: mp.besselk(0, x) * mp.exp(x), **FLAT),
    special("scaled_modified_bessel_k1", unary(low=1), lambda mp, x: mp.besselk(1, x) * mp.exp(x), **FLAT),
    special("spherical_bessel_j0", unary(), lambda mp, x: mp.sinc(x), **FLAT),
    special("airy_ai", unary(), lambda mp, x: mp.airyai(x), **FLAT),
    OpInfo("i0", unary(), by_mpmath(lambda mp, x: mp.besseli(0, x)), FLOATS),
    special("i0e", unary(), lambda mp, x: mp.besseli(0, x) * mp.exp(-abs(x))),
    special("i1", unary(), lambda mp, x: mp.besseli(1, x)),
    special("i1e", unary(), lambda mp, x: mp.besseli(1, x) * mp.exp(-abs(x))),
]

NORMAL = [
    special("entr", unary(low=1), entr),
    special("erfcx", unary(), lambda mp, x: mp.exp(x * x) * mp.erfc(x)),
    special("log_ndtr", unary(), log_ndtr),
    special("ndtr", unary(), lambda mp, x: mp.ncdf(x)),
    special("ndtri", unary(low=0.05, high=0.95), lambda mp, p: mp.sqrt(2) * mp.erfinv(2 * p - 1)),
]


def xlog1py(mp: Any, x: Any, y: Any) -> Any:
    return 0 if x == 0 else x * mp.log1p(y)


def lower_gamma(mp: Any, a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def upper_gamma(mp: Any, a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def shares(make: Maker) -> Iterator[SampleInput]:
    """The first does not require grad: there is no derivative in it."""
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape, low=0.5, high=5).detach(), make(*shape, low=0.5, high=5))


def zetas(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape, low=2, high=6).detach(), make(*shape, low=1, high=6))


def zetas_of_number(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape, low=2, high=6).detach(), 2)


def zeta(mp: Any, s: Any, q: Any) -> Any:
    return mp.zeta(s, q)


NO_DERIVATIVE = dict.fromkeys(("gradients", "second_gradients"), "there is no derivative in the first argument")
OF_TWO = [
    special("xlog1py", pairs(1, 4), xlog1py),
    special("xlog1py.self_scalar", number_first(2), xlog1py),
    special("xlog1py.other_scalar", number_second(2), xlog1py),
    special("zeta", zetas, zeta, skips={"second_gradients": "there is no derivative in the first argument"}),
    special("zeta.self_scalar", number_first(2), zeta),
    special("zeta.other_scalar", zetas_of_number, zeta, skips=NO_DERIVATIVE),
    OpInfo("igamma", shares, by_mpmath(lower_gamma), FLOATS),
    OpInfo("igammac", shares, by_mpmath(upper_gamma), FLOATS),
]

POLYNOMIALS: dict[str, Any] = {
    "chebyshev_polynomial_t": lambda mp, x, n: mp.chebyt(n, x),
    "chebyshev_polynomial_u": lambda mp, x, n: mp.chebyu(n, x),
    "chebyshev_polynomial_v": lambda mp, x, n: mp.chebyu(n, x) - (mp.chebyu(n - 1, x) if n else 0),
    "chebyshev_polynomial_w": lambda mp, x, n: mp.chebyu(n, x) + (mp.chebyu(n - 1, x) if n else 0),
    "shifted_chebyshev_polynomial_t": lambda mp, x, n: mp.chebyt(n, 2 * x - 1),
    "shifted_chebyshev_polynomial_u": lambda mp, x, n: mp.chebyu(n, 2 * x - 1),
    "shifted_chebyshev_polynomial_v": lambda mp, x, n: (
        mp.chebyu(n, 2 * x - 1) - (mp.chebyu(n - 1, 2 * x - 1) if n else 0)
    ),
    "shifted_chebyshev_polynomial_w": lambda mp, x, n: (
        mp.chebyu(n, 2 * x - 1) + (mp.chebyu(n - 1, 2 * x - 1) if n else 0)
    ),
    "hermite_polynomial_h": lambda mp, x, n: mp.hermite(n, x),
    "hermite_polynomial_he": lambda mp, x, n: mp.hermite(n, x / mp.sqrt(2)) / mp.mpf(2) ** (n / 2),
    "laguerre_polynomial_l": lambda mp, x, n: mp.laguerre(n, 0, x),
    "legendre_polynomial_p": lambda mp, x, n: mp.legendre(n, x),
}


def degrees(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape), make.index(*shape, below=4).to(make.dtype))


def degrees_of_a_number(make: Maker) -> Iterator[SampleInput]:
    for s in degrees(make):
        yield sample(1.5, *s.args)


ORTHOGONAL = [
    special(f"{name}{overload}", samples, reference, **FLAT)
    for name, reference in POLYNOMIALS.items()
    for overload, samples in (
        ("", degrees),
        (".x_scalar", degrees_of_a_number),
        (".n_scalar", number_second(3, low=-3)),
    )
]

# --- second names -----------------------------------------------------------------------------------------------------

KNOWN = {str(info): info for info in (*ELEMENTARY, *PAIRS, *PARTS, *MOMENTS, *SHAPE, *BESSEL, *OF_TWO)}


def called(info: OpInfo, name: str) -> OpInfo:
    function = f"special.{name.partition('.')[0]}"
    return info.but(f"aten::special_{name}", representative=False, function=function, dtypes=FLOATS)


def decimals(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape))
    yield sample(make(2, 3), decimals=1)


def rounded(x: Any, decimals: int = 0) -> Any:
    return np.round(x, decimals)


SPECIAL = [
    *BESSEL,
    *NORMAL,
    *OF_TWO,
    *ORTHOGONAL,
    *(
        called(info, name.removeprefix("special_"))
        for info, name in second_names("special_functions.py", KNOWN.values())
    ),
    called(KNOWN["log_softmax.int"], "log_softmax"),
    OpInfo("special_round", decimals, rounded, FLOATS, function="special.round", skips=JUMPS),
]
