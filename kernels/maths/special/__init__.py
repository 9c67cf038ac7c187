"""Special functions, one number at a time: Bessel, Airy, incomplete gamma, normal distribution, orthogonal polynomials.

Each is computed in float64 and rounded once for others (`vecmath/define.py`). They are no vector functions: series,
recurrences and continued fractions take as many steps as a number needs. Each says where its formula stands; A&S is
Abramowitz and Stegun, DLMF is dlmf.nist.gov. `tests/kernels/test_special.py` compares them with mpmath.

Read `bessel.py` first.
"""

from .airy import (
    airy_ai,
)
from .bessel import (
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    spherical_bessel_j0,
)
from .incomplete_gamma import (
    lower_gamma,
    upper_gamma,
    zeta,
)
from .modified_bessel import (
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_i0,
    scaled_modified_bessel_i1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
)
from .normal import (
    erfcx,
    log_ndtr,
    ndtri,
)
from .polynomials import (
    chebyshev_t,
    chebyshev_u,
    chebyshev_v,
    chebyshev_w,
    hermite_h,
    hermite_he,
    laguerre_l,
    legendre_p,
    shifted_chebyshev_t,
    shifted_chebyshev_u,
    shifted_chebyshev_v,
    shifted_chebyshev_w,
)

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_t",
    "chebyshev_u",
    "chebyshev_v",
    "chebyshev_w",
    "erfcx",
    "hermite_h",
    "hermite_he",
    "laguerre_l",
    "legendre_p",
    "log_ndtr",
    "lower_gamma",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "ndtri",
    "scaled_modified_bessel_i0",
    "scaled_modified_bessel_i1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_t",
    "shifted_chebyshev_u",
    "shifted_chebyshev_v",
    "shifted_chebyshev_w",
    "spherical_bessel_j0",
    "upper_gamma",
    "zeta",
]
