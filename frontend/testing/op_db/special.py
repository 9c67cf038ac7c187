"""Samples of special functions; scipy's are the reference."""

from __future__ import annotations

import numpy as np
from scipy import special

import redispatch.special  # noqa: F401  # the operators are declared when this is imported

from ..op_info import FLOATS, OpInfo
from .common import by_numpy, call, calls, entries, fixed, per_shape, table, unary, x
from .pointwise import NUMBER_FIRST

# The polynomials, x and degree; degrees are whole numbers, which some of scipy's functions want as such.
POLYNOMIALS = {
    "chebyshev_polynomial_t": special.eval_chebyt,
    "chebyshev_polynomial_u": special.eval_chebyu,
    "chebyshev_polynomial_v": lambda n, x: special.eval_chebyu(n, x) - special.eval_chebyu(n - 1, x),
    "chebyshev_polynomial_w": lambda n, x: special.eval_chebyu(n, x) + special.eval_chebyu(n - 1, x),
    "hermite_polynomial_h": special.eval_hermite,
    "hermite_polynomial_he": special.eval_hermitenorm,
    "laguerre_polynomial_l": special.eval_laguerre,
    "legendre_polynomial_p": special.eval_legendre,
}
DEGREES = per_shape(lambda s: [s, x.index(*s, below=4).to(x.dtype)])


def degrees_of_a_number(make):
    for given in DEGREES(make):
        yield from call(1.5, *given.args)(make)


def polynomial(name, turned=lambda x: x):
    def reference(x, n):
        return POLYNOMIALS[name](np.asarray(n, np.int64), turned(np.asarray(x, np.float64)))

    return reference


PAIRS = per_shape(lambda s: [x(*s, low=1), x(*s, low=1)])
ZETAS = per_shape(lambda s: [fixed(*s, low=2, high=6), x(*s, low=1, high=6)])
# The first does not require grad: there is no derivative in it.
SHARES = per_shape(lambda s: [fixed(*s, low=0.5, high=5), x(*s, low=0.5, high=5)])
BESSEL = (
    "special_bessel_j0:j0 special_bessel_j1:j1 special_modified_bessel_i0:i0 special_modified_bessel_i1:i1",
    "special_bessel_y0:y0 special_bessel_y1:y1 special_modified_bessel_k0:k0 special_modified_bessel_k1:k1 "
    "special_scaled_modified_bessel_k0:k0e special_scaled_modified_bessel_k1:k1e",
)
SPECIAL = table(
    *by_numpy(BESSEL[0], unary(), FLOATS),
    *by_numpy(BESSEL[1], unary(low=1), FLOATS),
    *entries("special_spherical_bessel_j0 special_airy_ai", unary(), FLOATS),
    *(
        OpInfo(f"special_{shifted}{name}{overload}", samples, polynomial(name, turned), FLOATS)
        for shifted, turned in (("", lambda x: x), ("shifted_", lambda x: 2 * x - 1))
        for name in POLYNOMIALS
        if not shifted or name.startswith("chebyshev")
        for overload, samples in (("", DEGREES), (".x_scalar", degrees_of_a_number), (".n_scalar", unary(3)))
    ),
    *by_numpy("i0 special_i0e special_i1 special_i1e special_erfcx special_log_ndtr special_ndtr", unary(), FLOATS),
    *by_numpy("special_entr", unary(low=1), FLOATS),
    *by_numpy("special_ndtri", unary(low=0.05, high=0.95), FLOATS),
    *by_numpy("special_xlog1py", PAIRS, FLOATS),
    *by_numpy("special_zeta", ZETAS, FLOATS),
    *by_numpy("special_xlog1py.self_scalar special_zeta.self_scalar", NUMBER_FIRST, FLOATS),
    *by_numpy("special_xlog1py.other_scalar", unary(2, low=1), FLOATS),
    *by_numpy("special_zeta.other_scalar", per_shape(lambda s: [fixed(*s, low=2, high=6), 2]), FLOATS),
    *by_numpy("igamma:gammainc igammac:gammaincc", SHARES, FLOATS),
    *by_numpy("special_round:round", calls(unary(), call((2, 3), decimals=1)), FLOATS),
    references={
        "special_spherical_bessel_j0": lambda x: np.sinc(np.asarray(x, np.float64) / np.pi),
        "special_airy_ai": lambda x: special.airy(np.asarray(x, np.float64))[0],
    },
    skips={
        "there is no derivative in the first argument": (
            "second_gradients: special_zeta; gradients second_gradients: special_zeta.other_scalar"
        ),
        "a difference across a jump is not the gradient": "gradients second_gradients: special_round",
    },
    flat="*bessel* special_airy_ai special_*polynomial*",
)
