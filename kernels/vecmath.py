"""Transcendental functions that LLVM turns into vector instructions, for float32; libm serves the other types so far.

A call of libm inside a loop keeps the loop scalar: 1.8 ms for exp of 1M float32, against 0.13 ms for the polynomial
below. Each public function is a plain Python definition (numpy's), which is its meaning; `register` gives numba the
compiled one for each type. Errors are stated in ulp and held by `tests/kernels/test_vecmath.py`. Special values are
exact: NaN stays NaN, exp(-inf) is 0, log(0) is -inf, signs of zero are kept.

Every `*_float32` body computes all branches and selects, because a vector lane cannot jump. The coefficients were
fitted by reweighted least squares on Chebyshev nodes; the fit's error stands beside them. They are float32 once the
program is rewritten (`program.py`). Read next: `elementwise.py`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .primitives import bits_of_float, float_of_bits
from .program import Program, primitive

int32 = np.int32


def _quiet(function: Callable, x: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(x)


@primitive
def exp(x):
    """e to the x. float32: 1 ulp."""
    return _quiet(np.exp, x)


@primitive
def log(x):
    """The natural logarithm; NaN below 0. float32: 2 ulp."""
    return _quiet(np.log, x)


@primitive
def tanh(x):
    """The hyperbolic tangent. float32: 2 ulp."""
    return _quiet(np.tanh, x)


@primitive
def erf(x):
    """The error function. float32: 2 ulp."""
    return type(x)(math.erf(x))


def sigmoid(x):
    """1 / (1 + e^-x); 0 and 1 at the infinities."""
    return 1 / (1 + exp(-x))


def gelu(x):
    """x times the normal distribution's probability of a value below x."""
    return 0.5 * x * (1 + erf(x * 0.7071067811865476))


def gelu_tanh(x):
    """The tanh approximation of `gelu`."""
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


# --- float32 -------------------------------------------------------------------------------------------------------

BIAS = 127  # named, because the rewriting turns a literal that meets arithmetic into a float
ROUND = 12582912.0  # 1.5 * 2**23: adding and subtracting it rounds to the nearest integer
LOG2_E = 1.4426950408889634
LN2_HIGH = 0.693359375  # has 9 bits, so that n * LN2_HIGH is exact
LN2_LOW = -2.12194440054690583e-4


def power_of_two(k):
    """2**k for an int32 k in [-126, 127], by writing the exponent's bits."""
    return float_of_bits(int32((k + BIAS) << 23))


def exp_float32(x):
    """e^x = 2^n e^r with |r| <= ln(2)/2; a Taylor polynomial of degree 7 is off by 5e-9 there."""
    clamped = 89.0 if x > 89.0 else (-104.0 if x < -104.0 else x)  # NaN passes; the ends give inf and 0
    n = (clamped * LOG2_E + ROUND) - ROUND
    r = (clamped - n * LN2_HIGH) - n * LN2_LOW
    tail = 1 / 120 + r * (1 / 720 + r * (1 / 5040))
    p = 1.0 + (r + r * r * (0.5 + r * (1 / 6 + r * (1 / 24 + r * tail))))
    k = int32(n)
    half = k >> 1  # in two steps, because 2^n alone leaves the normal range before the result does
    return p * power_of_two(half) * power_of_two(k - half)


SMALLEST_NORMAL = 1.1754943508222875e-38
MANTISSA = 0x007FFFFF
ONE_BITS = 0x3F800000
SQRT_HALF_BITS = 0x3F3504F3
SHIFT_UP = 8388608.0  # 2**23 lifts a subnormal into the normal range


def log_float32(x):
    """log(m 2^e) with m in [sqrt(1/2), sqrt(2)): e ln 2 + 2 atanh(s), s = (m - 1) / (m + 1)."""
    tiny = x < SMALLEST_NORMAL
    scaled = x * SHIFT_UP if tiny else x
    bits = bits_of_float(scaled) + (ONE_BITS - SQRT_HALF_BITS)
    e = float32(int32((bits >> 23) - BIAS)) - (23.0 if tiny else 0.0)
    f = float_of_bits(int32((bits & MANTISSA) + SQRT_HALF_BITS)) - 1.0
    s = f / (2.0 + f)
    z = s * s
    series = z * (2 / 3 + z * (2 / 5 + z * (2 / 7 + z * (2 / 9 + z * (2 / 11)))))
    square = 0.5 * f * f
    # 2 s + s * series, with 2 s written as f - square + s * square, whose leading term is exact
    result = e * LN2_HIGH + (f - (square - (s * (square + series) + e * LN2_LOW)))
    finite = result if x < math.inf else x  # inf and NaN
    return finite if x > 0.0 else (-math.inf if x == 0.0 else math.nan if x <= 0.0 else x)


def tanh_float32(x):
    """Below 0.625 an odd polynomial (off by 5e-9), above it 1 - 2 / (e^2|x| + 1)."""
    size = abs(x)
    z = x * x
    p = -0.33333278313509884 + z * (
        0.13331328918596486 + z * (-0.053729227043218475 + z * (0.02060199915334971 + z * -0.005660780461195179))
    )
    near = x * (1.0 + z * p)  # as a product, which keeps the sign of zero
    far = math.copysign(1.0 - 2.0 / (exp(2.0 * size) + 1.0), x)
    return near if size < 0.625 else (far if size >= 0.625 else x)


def erf_float32(x):
    """Below 1 an odd polynomial (off by 1e-9), up to 4 one minus e^-q(|x|) (off by 2e-11), beyond it 1."""
    size = abs(x)
    z = x * x
    low = -0.026853811867766586 + z * (0.005188327557595808 + z * (-0.0008010192500157588 + z * 7.853857639337198e-05))
    near = x * (1.1283791657266877 + z * (-0.3761262582408935 + z * (0.11283585146995338 + z * low)))
    t = 4.0 if size > 4.0 else size
    high = -0.02521034239472351 + t * (0.00420528592796682 + t * (-0.00044147292232171167 + t * 2.1697639457555496e-05))
    q = -0.00018846780764817097 + t * (
        1.1295803119892243 + t * (0.6332163947885384 + t * (0.10842210282432092 + t * high))
    )
    far = math.copysign(1.0 - exp(-q), x)
    return near if size < 1.0 else (far if size >= 1.0 else x)


float32 = np.float32


def register(overload: Any, types: Any) -> None:
    """Give numba the compiled forms; `primitives.register` calls this once."""
    import cmath  # here with numba's, for complex arguments

    import numba  # here, because importing numba takes 0.3 s

    njit: Any = numba.njit  # its stubs do not know all of its options

    def define(function: Any, body: Any, real: Any, complex_: Any) -> None:
        program = Program("float32")
        program.add(body)
        namespace = program.load()
        # "contract" lets a multiply and an add become one instruction, which rounds once instead of twice
        options = dict(error_model="numpy", fastmath={"contract"}, no_cpython_wrapper=True, forceinline=True)
        for name in program.compiled:
            namespace[name] = njit(**options)(namespace[name])
        single: Any = namespace[program.compiled[-1]]

        @overload(function, target="cpu", jit_options={"forceinline": True})
        def choose(x):
            if x == types.float32:
                return lambda x: single(x)
            if isinstance(x, types.Complex):
                return lambda x: complex_(x)
            return lambda x: real(x)

    define(exp, exp_float32, math.exp, cmath.exp)
    define(log, log_float32, math.log, cmath.log)
    define(tanh, tanh_float32, math.tanh, cmath.tanh)
    define(erf, erf_float32, math.erf, None)
