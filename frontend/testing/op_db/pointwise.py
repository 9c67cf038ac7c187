"""Samples of the pointwise operators: arithmetic, comparisons, elementary and special functions, complex numbers.

Activations have a file of their own; a second name needs no entry (__init__.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

import redispatch.special  # noqa: F401  # its operators are declared when it is imported
from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, INTEGERS, NUMBERS, WHOLE, OpInfo
from .common import (
    NOT_BROADCASTABLE,
    NUMBER,
    RECORDED,
    binary,
    by_numpy,
    call,
    calls,
    entries,
    fixed,
    floating,
    only,
    per_shape,
    quiet,
    table,
    thorough,
    unary,
    whole,
    x,
)

COMPLEX = (dtypes.complex64, dtypes.complex128)
EITHER = (*NUMBERS, *COMPLEX)
NAN, INF = float("nan"), float("inf")
BY_NUMBER = unary(NUMBER)
POSITIVE = binary(low=1, high=5)
PAIRS = [[(2, 3), (2, 3)], [(), ()], [(0, 3), (1, 3)], [(2, 3), (3,)]]

# --- arithmetic -------------------------------------------------------------------------------------------------------


def powers(make):
    exponents: Any = (2, 3, 0.5, -1, 0) if make.dtype.is_floating_point else (2, 3, 0, 1)
    exponents = exponents if make.thorough else exponents[1:3]
    yield from calls(*([x(2, 3, low=1, high=4), one] for one in exponents), [x(low=1), 2], [(0, 3), 2])(make)


def rounding(matrix, number, row):
    """Rounded quotients, by these."""
    return calls(
        *(call((2, 3), matrix, rounding_mode=mode) for mode in ("trunc", "floor")),
        call((), number, rounding_mode="floor"),
        call((0, 3), row, rounding_mode="trunc"),
    )


def divided(self, other, rounding_mode=None):
    rounded: Any = {None: np.asarray, "floor": np.floor, "trunc": np.trunc}[rounding_mode]
    return rounded(np.true_divide(self, other))


def three(low=-3, **kwargs):
    shapes = ([(2, 3)] * 3, [()] * 3, [(0, 3), (1, 3), (3,)], [(2, 3), (2, 1), (3,)])
    last = call((2, 3), (2, 3), x(2, 3, low=low), **kwargs)
    return calls(*([a, b, x(*c, low=low)] for a, b, c in shapes), last)


def lerp(self, end, weight):
    return self + weight * (end - self)


TO_5 = x(2, 3, low=1, high=5)
ROUNDING = rounding(TO_5, x(low=1, high=5), x(3, low=1))
ADDED = calls(binary(), only(lambda make: make.dtype.name != "bool", call((2, 3), (3,), alpha=2)))
ADDED_NUMBERS = calls(BY_NUMBER, [(2, 3), 2, 3])
BOUNDS = [[(2, 3), (2, 3), (2, 3)], [(2, 3), (3,), (2, 1)], call((2, 3), min=(2, 3)), [(2, 3), None, (3,)]]
ARITHMETIC = table(
    *entries("add.Tensor", ADDED),
    *entries("add.Scalar", ADDED_NUMBERS, NUMBERS),
    *entries("sub.Tensor", ADDED, NUMBERS),
    *entries("sub.Scalar", ADDED_NUMBERS, NUMBERS),
    OpInfo("rsub.Tensor", ADDED, lambda self, other, alpha=1: other - alpha * self, NUMBERS),
    OpInfo("rsub.Scalar", BY_NUMBER, lambda self, other, alpha=1: other - alpha * self, NUMBERS),
    *by_numpy("mul.Tensor:multiply maximum minimum", binary()),
    *by_numpy("div.Tensor:true_divide", binary(exclude_zero=True), wrap=quiet),
    *by_numpy("div.Scalar:true_divide", BY_NUMBER),
    *by_numpy("mul.Scalar:multiply remainder.Scalar fmod.Scalar", BY_NUMBER, NUMBERS),
    *by_numpy("remainder.Tensor fmod.Tensor", POSITIVE, NUMBERS),
    *by_numpy("remainder.Scalar_Tensor:remainder", calls(per_shape(lambda s: [7, x(*s, low=1)])), NUMBERS),
    *by_numpy("floor_divide", POSITIVE, NUMBERS, gradients=False),
    OpInfo("div.Tensor_mode", calls(floating(call((2, 3), TO_5, rounding_mode=None)), ROUNDING), divided, NUMBERS),
    OpInfo("div.Scalar_mode", rounding(2, 2, 2), divided, NUMBERS),
    OpInfo("pow.Tensor_Scalar", powers, lambda self, exponent: self ** np.asarray(exponent), NUMBERS),
    *by_numpy("pow.Tensor_Tensor", binary(low=1), NUMBERS),
    *by_numpy("pow.Scalar", calls(per_shape(lambda s: [2, x(*s, low=0)]), [1, x(2, low=0)]), NUMBERS),
    *entries("clamp", calls([(2, 3), -1, 2], call((2, 3), min=0), call((), max=1), [(0, 3), 0, 1]), NUMBERS),
    *entries("clamp.Tensor", calls(*BOUNDS, [(), (), ()], [(0, 3), (3,), (1,)]), NUMBERS),
    *by_numpy("clamp_min:maximum", unary(0), NUMBERS),
    *by_numpy("clamp_max:minimum", unary(1), NUMBERS),
    *by_numpy("clamp_min.Tensor:maximum clamp_max.Tensor:minimum", calls(*PAIRS), NUMBERS),
    OpInfo("addcmul", three(value=2), lambda self, a, b, value=1: self + value * a * b, NUMBERS),
    OpInfo("addcdiv", three(low=1, value=2), quiet(lambda self, a, b, value=1: self + value * a / b), FLOATS),
    OpInfo(
        "lerp.Scalar",
        calls(*([(2, 3), (2, 3), weight] for weight in (0.25, 0.75, 2)), [(), (), 0.5], [(0, 3), (1, 3), 0.5]),
        lerp,
        FLOATS,
    ),
    OpInfo("lerp.Tensor", three(), lerp, FLOATS, tolerance={"float32": (1e-5, 1e-5)}),  # it starts at the nearer end
    references={
        "add": lambda self, other, alpha=1: self + alpha * other,
        "sub": lambda self, other, alpha=1: self - alpha * other,
        "clamp": lambda self, min=None, max=None: np.clip(self, min, max),
    },
    errors={
        "add.Tensor sub.Tensor mul.Tensor div.Tensor": NOT_BROADCASTABLE,
        "add_.Tensor": {"output with shape [3] doesn't match the broadcast shape [2, 3]": [(3,), (2, 3)]},
        "sub.Tensor": {
            "Subtraction, the `-` operator, with two bool tensors is not supported.": [x.mask(2), x.mask(2)]
        },
        "floor_divide": {"ZeroDivisionError": [whole([1, 2]), x.index(2, below=1)]},
        "clamp clamp.Tensor": {"torch.clamp: At least one of 'min' or 'max' must not be None": [(2,)]},
        "addcdiv": {"Integer division with addcdiv is no longer supported": [x.index(2, below=3)] * 3},
        "lerp.Scalar": {"expected dtype double for `end` but got dtype float": [(2,), fixed(2).float(), 0.5]},
    },
    skips={RECORDED: "recording: floor_divide"},
    representative="add.Tensor mul.Tensor pow.Tensor_Tensor",
)

# --- comparison, bits -------------------------------------------------------------------------------------------------

SPECIAL = calls(floating([x.values([0.0, -0.0, NAN, INF, -INF])]), unary())
NEAR = calls([x.values([[0, 1, 2], [1, 1, 0]]), x.values([[0, 2, 1], [1, 0, 0]])], binary())
SHIFTED = binary(low=0, high=5)
WITH_ZEROS = calls(binary(), [x.values([0, 0, 1]).detach(), x.values([2, 3, 4]).detach()])
CONDITIONS = [
    [x.mask(2, 3), (2, 3), (2, 3)],
    [x.mask(), (), ()],
    thorough([x.mask(2, 1), (3,), ()]),
    [x.mask(0, 3), (3,), (1, 3)],
]


def in_bool(kernel):
    return {f"NotImplementedError: \"{kernel}\" not implemented for 'Bool'": [x.mask(2), x.mask(2)]}


COMPARISON = table(
    *by_numpy("eq.Tensor:equal ne.Tensor:not_equal lt.Tensor:less le.Tensor:less_equal", NEAR),
    *by_numpy("gt.Tensor:greater ge.Tensor:greater_equal", NEAR),
    *by_numpy("eq.Scalar:equal ne.Scalar:not_equal lt.Scalar:less le.Scalar:less_equal", BY_NUMBER),
    *by_numpy("gt.Scalar:greater ge.Scalar:greater_equal", BY_NUMBER),
    *by_numpy("logical_and logical_or logical_xor", NEAR),
    *by_numpy("logical_not isreal", unary()),
    *by_numpy("bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor", NEAR, WHOLE),
    *by_numpy("bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar", BY_NUMBER, WHOLE),
    *by_numpy("bitwise_not", unary(), WHOLE),
    *by_numpy("bitwise_left_shift.Tensor bitwise_right_shift.Tensor", SHIFTED, INTEGERS),
    *by_numpy("__lshift__.Tensor:left_shift __rshift__.Tensor:right_shift", SHIFTED, INTEGERS),
    *by_numpy("bitwise_left_shift.Tensor_Scalar __lshift__.Scalar:left_shift", BY_NUMBER, INTEGERS),
    *by_numpy("bitwise_right_shift.Tensor_Scalar __rshift__.Scalar:right_shift", BY_NUMBER, INTEGERS),
    *by_numpy("gcd lcm", WITH_ZEROS, INTEGERS),
    *by_numpy("isnan isinf isfinite", SPECIAL),
    *by_numpy("where.self", calls(*CONDITIONS)),
    *by_numpy("where.ScalarSelf", per_shape(lambda s: [x.mask(*s), NUMBER, s])),
    *by_numpy("where.ScalarOther", per_shape(lambda s: [x.mask(*s), s, NUMBER])),
    *by_numpy("where.Scalar", per_shape(lambda s: [x.mask(*s), NUMBER, NUMBER])),
    *by_numpy("where:nonzero", calls([x.values([[0, 1, 0], [2, 0, 3]])], [(0, 3)])),
    errors={
        "eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor": NOT_BROADCASTABLE,
        "where.self": {
            "where expected condition to be a boolean tensor, but got a tensor with dtype Long": [
                *(x.index(2, below=2), (2,), (2,))
            ]
        },
        "gcd": in_bool("gcd_cpu"),
        "lcm": in_bool("lcm_cpu"),
        "bitwise_left_shift.Tensor": in_bool("lshift_cpu"),
        "bitwise_right_shift.Tensor": in_bool("rshift_cpu"),
    },
    skips={"its shape depends on the data": "meta: where"},
    representative="lt.Tensor where.self",
    flat="[!w]* where.Scalar where",
)

# --- functions of one number ------------------------------------------------------------------------------------------


def floats(function):
    """numpy computes whole numbers in float64, and bool in float16, which is too coarse."""
    return quiet(lambda self: function(np.asarray(self, self.dtype if self.dtype.kind == "f" else np.float64)))


@quiet
def logit(x, eps=None):
    wide = np.asarray(x, np.float64)
    wide = wide if eps is None else np.clip(wide, eps, 1 - eps)
    return np.log(wide / (1 - wide))


def of_bools(function, otherwise=lambda self: self):
    """numpy's function, and what is true of a bool, for which it has none."""
    return lambda self: otherwise(self) if self.dtype == bool else function(self)


# A gradient, and the result that was saved: by that there is a gradient, too.
SAVED = calls(per_shape(lambda s: [s, s]), [(2, 3), x(3, 2).t()])
SHARE = {"low": 0.1, "high": 0.9}
LOGITS = calls(unary(**SHARE), [x(2, 3, low=-0.5, high=1.5), 0.125], [x(2, 3, low=1.1, high=1.9), 0.05])
FUNCTIONS = table(
    *by_numpy("neg:negative abs floor ceil trunc round square", unary(), NUMBERS),
    *by_numpy("sign sgn:sign", unary(), wrap=of_bools),
    *by_numpy("exp expm1 sin cos atan sinh cosh tanh asinh exp2 deg2rad rad2deg", unary(), wrap=floats),
    *by_numpy("sqrt log log2 log10", unary(low=1), wrap=floats),
    *by_numpy("log1p", unary(low=0), wrap=floats),
    *by_numpy("tan", unary(low=-1, high=1.5), wrap=floats),
    *by_numpy("asin acos atanh", unary(low=-0.9, high=0.9), wrap=floats),
    *by_numpy("acosh", unary(low=2), wrap=floats),
    *by_numpy("sinc", unary(), wrap=floats, tolerance={"float32": (1e-5, 1e-6)}),  # pi x is rounded before its sine
    OpInfo("rsqrt", unary(low=1), floats(lambda x: 1 / np.sqrt(x))),
    OpInfo("reciprocal", unary(low=1), floats(lambda x: 1 / x)),
    *by_numpy("erf erfc sigmoid:expit", unary(), wrap=floats),
    *by_numpy("erfinv", unary(low=-0.9, high=0.9), wrap=floats),
    *by_numpy("lgamma:gammaln digamma", unary(low=1), wrap=floats),
    *by_numpy(
        "polygamma",
        calls(per_shape(lambda s: [1, x(*s, low=1)]), [2, x(2, low=0)], [1, x(2, low=-0.9, high=-0.1)]),
        FLOATS,
    ),
    OpInfo("polygamma_", per_shape(lambda s: [fixed(*s, low=1), 1]), lambda x, n: special.polygamma(n, x), FLOATS),
    *by_numpy("mvlgamma:multigammaln", unary(3, low=3, high=6), NUMBERS),
    OpInfo("tanh_backward", SAVED, lambda grad, output: grad * (1 - output * output), FLOATS),
    OpInfo("sigmoid_backward", SAVED, lambda grad, output: grad * (1 - output) * output, FLOATS),
    OpInfo("logit", LOGITS, logit, FLOATS),
    OpInfo("frac", unary(), lambda self: self - np.trunc(self), FLOATS),
    OpInfo("positive", unary(), lambda self: self, NUMBERS),
    errors={"mvlgamma": {"p has to be greater than or equal to 1": [(2,), 0]}},
    skips={
        "a leaf cannot be written over; polygamma is checked": "gradients second_gradients: polygamma_",
    },
    representative="exp",
)

# --- functions of two numbers, parts of numbers -----------------------------------------------------------------------


def wide(function):
    """numpy's function in float64."""
    return quiet(lambda self, other: function(np.asarray(self, np.float64), np.asarray(other, np.float64)))


def nan_to_num(self, nan=0.0, posinf=None, neginf=None):
    return np.nan_to_num(self, nan=nan, posinf=posinf, neginf=neginf)


NUMBER_FIRST, SQUARES = per_shape(lambda s: [2, x(*s, low=1)]), unary(2, low=1)
WITH_INFINITIES = calls(unary(), floating([x.values([-0.0, 0.0, INF, -INF, NAN, 1.5])]))
REPLACED = floating(call(x.values([INF, -INF, NAN, 1.5]), 1.0, posinf=2.0, neginf=-3.0))
COMPLEX_NUMBER = [x.values([1j], dtype=dtypes.complex64)]
PARTS = table(
    *by_numpy("atan2", binary(exclude_zero=True), wrap=wide),
    *by_numpy("copysign.Tensor", binary(exclude_zero=True), NUMBERS, wide),
    *by_numpy("copysign.Scalar", unary(-2), NUMBERS, wide),
    *by_numpy("hypot logaddexp logaddexp2", binary(), FLOATS),
    *by_numpy("heaviside", binary(exclude_zero=True), FLOATS),
    *by_numpy("fmax fmin", binary(), NUMBERS),
    *by_numpy("float_power.Tensor_Tensor", binary(low=1), NUMBERS, wide),
    *by_numpy("float_power.Tensor_Scalar", SQUARES, NUMBERS, wide),
    *by_numpy("float_power.Scalar", NUMBER_FIRST, NUMBERS, wide),
    *by_numpy("xlogy.Tensor", binary(low=1), NUMBERS, wide),
    *by_numpy("xlogy.Scalar_Other", SQUARES, NUMBERS, wide),
    *by_numpy("xlogy.Scalar_Self", NUMBER_FIRST, NUMBERS, wide),
    OpInfo("signbit", WITH_INFINITIES, of_bools(np.signbit, np.zeros_like), gradients=False),
    OpInfo("isposinf", WITH_INFINITIES, lambda self: self == np.inf, gradients=False),
    OpInfo("isneginf", WITH_INFINITIES, lambda self: self == -np.inf, gradients=False),
    OpInfo("nan_to_num", calls(WITH_INFINITIES, REPLACED), nan_to_num, NUMBERS),
    *by_numpy("frexp.Tensor", calls(unary(), floating([x.values([0.0, INF, -8.5, 0.1])])), FLOATS),
    OpInfo(
        "ldexp.Tensor",
        calls(per_shape(lambda s: [s, s]), [(2, 3), x.index(3, below=5)]),
        wide(lambda self, other: self * np.exp2(other)),
        NUMBERS,
    ),
    *by_numpy("nextafter", calls(binary(), [x.values([0.0, 1.0, 1.0, 2.0]), x.values([-1.0, 1.0, 2.0, -2.0])]), FLOATS),
    *by_numpy("round.decimals", calls(unary(decimals=2), call(x(2, 3, low=-300, high=300), decimals=-2)), FLOATS),
    errors={
        "hypot": in_bool("hypot_cpu"),
        "logaddexp": in_bool("logaddexp_cpu"),
        "logaddexp2": in_bool("logaddexp2_cpu"),
        "heaviside": {
            "heaviside is not yet implemented for tensors with different dtypes.": [(2,), x.index(2, below=2)]
        },
        "isposinf": {"isposinf does not support complex inputs.": COMPLEX_NUMBER},
        "isneginf": {"isneginf does not support complex inputs.": COMPLEX_NUMBER},
        "frexp.Tensor": {"torch.frexp() only supports floating-point dtypes": [x.index(2, below=3)]},
    },
    skips={
        "a difference across a jump is not the gradient": (
            "gradients second_gradients: nan_to_num frexp.Tensor nextafter round.decimals"
        ),
        "its neighbours are others": "bfloat16: nextafter",
    },
)

# --- complex numbers --------------------------------------------------------------------------------------------------


def angle(self):
    found = np.angle(self) if np.iscomplexobj(self) else np.where(np.isnan(self), self, np.where(self < 0, np.pi, 0.0))
    return found if found.dtype.itemsize == self.dtype.itemsize else found.astype(np.float32)


SINGLE, DOUBLE = x(2, dtype=dtypes.float32), x(2, dtype=dtypes.float64)
UNLIKE = {
    "Expected object of scalar type Double but got scalar type Float for second argument": [(2,), SINGLE],
    "Expected both inputs to be Half, Float or Double tensors but got Long and Long": [x.index(2, below=2)] * 2,
}
ZEROS = calls(call([2, 3], dtype=x.dtype), call([], dtype=x.dtype))
NO_COMPLEX = (
    "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: Long"
)
COMPLEX_NUMBERS = table(
    *by_numpy("conj conj_physical:conj _conj_physical:conj _neg_view:negative resolve_conj:asarray", unary(), EITHER),
    *by_numpy("resolve_neg:asarray real", unary(), EITHER),
    *by_numpy("_conj:conj imag", unary(), COMPLEX),
    OpInfo("view_as_real", unary(), lambda self: np.stack([self.real, self.imag], -1), COMPLEX),
    OpInfo("view_as_complex", calls([(3, 2)], [(2,)], [(0, 2)]), lambda self: self[..., 0] + 1j * self[..., 1], FLOATS),
    OpInfo("complex", binary(), lambda real, imag: real + 1j * imag, FLOATS),
    OpInfo("polar", binary(), lambda abs, angle: abs * np.exp(1j * angle), FLOATS),
    OpInfo("angle", unary(low=1), angle, EITHER),
    *by_numpy("vdot", calls([(4,), (4,)], [(0,), (0,)]), EITHER),
    *by_numpy("_efficientzerotensor:zeros", ZEROS, EITHER, gradients=False),
    errors={
        "view_as_real": {"view_as_real is only supported for complex tensors": [DOUBLE]},
        "view_as_complex": {
            NO_COMPLEX: [x.index(3, 2, below=3)],
            "Tensor must have a last dimension of size 2": [(3,)],
            "Input tensor must have one or more dimensions": [()],
            "Tensor must have a last dimension with stride 1": [x(2, 2).t()],
            "Tensor must have a stride divisible by 2 for all but last dimension": [x(2, 3)[:, :2]],
        },
        "imag": {"imag is not implemented for tensors with non-complex dtypes.": [DOUBLE]},
        "complex polar": UNLIKE,
        "vdot": {"1D tensors expected, but got 2D and 1D tensors": [(2, 2), (2,)]},
    },
    skips={
        "it wants the pairs to lie side by side": "layouts: view_as_complex",
        "it has no data on any device": "meta: _efficientzerotensor",
        "it takes no tensor": "subclass: _efficientzerotensor",
    },
)

# --- special functions: scipy's are the reference ---------------------------------------------------------------------

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


POSITIVE_PAIRS = per_shape(lambda s: [x(*s, low=1), x(*s, low=1)])
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
    *by_numpy("special_xlog1py", POSITIVE_PAIRS, FLOATS),
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

POINTWISE = [*ARITHMETIC, *COMPARISON, *FUNCTIONS, *PARTS, *COMPLEX_NUMBERS]
