"""Special functions, one number at a time: Bessel, Airy, incomplete gamma, normal distribution, orthogonal polynomials.

Each is computed in float64 and rounded once for others (`vecmath/define.py`). They are no vector functions: series,
recurrences and continued fractions take as many steps as a number needs. Each says where its formula stands; A&S is
Abramowitz and Stegun, DLMF is dlmf.nist.gov. `tests/kernels/test_vecmath.py` compares them with mpmath.

Read `bessel.py` first.
"""

from .bessel import (
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_i0,
    scaled_modified_bessel_i1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    spherical_bessel_j0,
)
from .distributions import erfcx, log_ndtr, lower_gamma, ndtri, upper_gamma, zeta
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
