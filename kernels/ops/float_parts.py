"""The parts of a number and its neighbours: fraction, sign bit, mantissa and exponent, decimals, the next float.

With them what is defined by such parts: tests for infinities, numbers in the place of NaN, degrees and radians, sinc.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, dtype, dtypes, result_type
from redispatch.kernels import Elementwise
from redispatch.kernels.engine.primitives import bfloat16_to_float, float_to_bfloat16, float_to_half, half_to_float

from ..declare.operator import composite, flat, operator, passed_on, per_element, several, unary
from ..declare.pointwise import COMPLEX, NOT_FLOATING
from ..declare.public import public
from ..declare.structured import broadcast, c_name, check_has_kernel, not_implemented
from .comparison import never
from .creation import ones_like
from .elementary import round_op

# --- fraction, sign, infinities --------------------------------------------------------------------------------------


@unary("frac", exact_out=True, refuses=NOT_FLOATING, derivative=passed_on)
def frac(self):
    """Returns the fraction of each element, with its sign."""
    return self - np.trunc(self)


def has_sign(self):
    return math.copysign(1.0, self) < 0  # of -0.0 and NaN, too


def is_negative(self):
    return self < 0


def is_positive_infinity(self):
    return self == math.inf


def is_negative_infinity(self):
    return self == -math.inf


def question(name: str, kinds: dict[str, Any], no_complex: Exception, doc: str) -> Any:
    """A function of a real number whose results are bools."""
    return unary(
        name,
        kinds,
        "compare",
        inplace=False,
        exact_out=f"{name} does not support non-boolean outputs.",
        refuses={COMPLEX: no_complex},
        derivative=False,
        doc=doc,
    )


signbit = question(
    "signbit",
    {"float": has_sign, "int": is_negative, "uint": never, "bool": never},
    NotImplementedError("signbit is not implemented for complex tensors."),
    "Returns for each element whether its sign is minus, of zeros, too.",
)
isposinf = question(
    "isposinf",
    {"float": is_positive_infinity, "int": never, "uint": never, "bool": never},
    RuntimeError("isposinf does not support complex inputs."),
    "Returns for each element whether it is positive infinity.",
)
isneginf = question(
    "isneginf",
    {"float": is_negative_infinity, "int": never, "uint": never, "bool": never},
    RuntimeError("isneginf does not support complex inputs."),
    "Returns for each element whether it is negative infinity.",
)


@composite("isreal(Tensor self) -> Tensor")
def isreal(self):
    """Returns for each element whether its imaginary part is 0."""
    return self.imag == 0 if self.is_complex() else ones_like(self, dtype=dtypes.bool)


# --- numbers for NaN and infinities ----------------------------------------------------------------------------------


def number_for(self, nan, high, low):
    return nan if self != self else high if self == math.inf else low if self == -math.inf else self


def numbers_for_parts(self, nan, high, low):
    real = number_for(self.real, nan.real, high.real, low.real)
    return complex(real, number_for(self.imag, nan.real, high.real, low.real))


def as_it_is(self, nan, high, low):
    return self


NUMBER_FOR = Elementwise(
    "nan_to_num", dict(float=number_for, complex=numbers_for_parts, int=as_it_is, uint=as_it_is, bool=as_it_is)
)


@per_element(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    inplace=True,
    out="out",
    derivative=lambda grad, self: grad * (self == self).logical_and(self.abs() != math.inf),
)
def nan_to_num(self, nan, posinf, neginf):
    """Returns each element with NaN and infinities replaced by numbers."""
    return broadcast(self)


@nan_to_num.op.body
def nan_to_num_body(out, self, nan, posinf, neginf):
    """By default 0 and the largest and the least number of the dtype."""
    kind = self._dtype.to_real()
    most = largest(kind) if kind.is_floating_point else 0.0
    numbers = nan or 0.0, most if posinf is None else posinf, -most if neginf is None else neginf
    NUMBER_FOR.run(out._operand, self._operand, *numbers, dtype=self._dtype.name)


def largest(kind: dtype) -> float:
    """The largest finite number of a floating dtype."""
    return 3.3895313892515355e38 if kind is dtypes.bfloat16 else float(np.finfo(kind.numpy).max)


# --- mantissa and exponent -------------------------------------------------------------------------------------------


def mantissa_and_exponent(x):
    return math.frexp(x) if abs(x) < math.inf else (x, 0)


FREXP = Elementwise("frexp", mantissa_and_exponent, outputs=2)


@several(
    "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    out="Tensor_out",
    tags=("pointwise",),
    refuses=NOT_FLOATING,
    derivative=lambda grad, result1: grad / result1.exp2(),
    nondifferentiable=(1,),
    face=True,
)
def frexp(self):
    """Returns mantissa m and exponent e of each element x = m 2^e, with |m| in [0.5, 1)."""
    if not self._dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return broadcast(self), broadcast(self, dtype=dtypes.int32)


@frexp.op.body
def frexp_body(outs, self):
    """x = m 2^e with |m| from [0.5, 1); zeros, infinities and NaN are their own mantissa."""
    FREXP.run(tuple(out._operand for out in outs), self._operand, dtype=self._dtype.name)


def check_part(out: Tensor, kind: dtype, name: str) -> None:
    if out._dtype is not kind:
        found, wanted = c_name(out._dtype), c_name(kind)
        raise RuntimeError(f"torch.frexp() expects {name} to have {wanted} dtype but got {found}")


frexp.op.out_dtype = check_part


def ldexp_elements(self, other):
    """x 2^y, in two steps, so that neither overflows where the result does not."""
    half = np.floor(other / 2)
    return self * kernels.exp2(half) * kernels.exp2(other - half)


def ldexp_complex(self, other):
    return self * kernels.exp2(other)


ldexp = operator(
    "ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
    {"float": ldexp_elements, "complex": ldexp_complex},
    inplace="default",
    out="out",
    promotion="float",
    cost=16,
    derivative={
        "self": lambda grad, other: grad * other.exp2(),
        "other": lambda grad, result: grad * result * math.log(2),
    },
    doc="Returns self 2^other.",
)

# --- the next float --------------------------------------------------------------------------------------------------

LEAST_HALF, LEAST_BFLOAT16 = 2.0**-24, 2.0**-133


def next_float(x, y):
    return np.nextafter(x, y)


@kernels.integral
def stepped(bits, away):
    """The bits of the next float of one sign: away from zero, or towards it."""
    return np.uint16(np.int64(bits) + (1 if away else -1))


def next_half(x, y):
    if x == y or x != x or y != y:
        return y if x == y else x + y
    away = (x < y) == (x > 0)
    return half_to_float(stepped(float_to_half(x), away)) if x != 0 else math.copysign(LEAST_HALF, y)


def next_bfloat16(x, y):
    if x == y or x != x or y != y:
        return y if x == y else x + y
    away = (x < y) == (x > 0)
    return bfloat16_to_float(stepped(float_to_bfloat16(x), away)) if x != 0 else math.copysign(LEAST_BFLOAT16, y)


# Numbers of 16 bits are computed in float32, whose neighbours are nearer.
NEXT = {
    "float16": Elementwise("nextafter", next_half),
    "bfloat16": Elementwise("nextafter", next_bfloat16),
    "float32": Elementwise("nextafter", next_float),
    "float64": Elementwise("nextafter", next_float),
}


@per_element(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    inplace=True,
    out="out",
    refuses=NOT_FLOATING,
    derivative={"self": lambda grad, self, other: grad.masked_fill(self == other, 0), "other": flat},
)
def nextafter(self, other):
    """Returns the next floating-point number from each element towards `other`."""
    meta = broadcast(self, other)
    if not meta.dtype.is_floating_point:
        raise not_implemented("nextafter_cpu", meta.dtype)
    return meta


@nextafter.op.body
def nextafter_body(out, self, other):
    """The float behind x on the way to y; y where they are equal."""
    kind = result_type(self, other).name
    NEXT[kind].run(out._operand, self._operand, other._operand, dtype=kind)


# --- decimals --------------------------------------------------------------------------------------------------------


def round_to_parts(x, power):
    return np.rint(x * power) / power


def round_to_multiples(x, power):
    return np.rint(x / power) * power


ROUND_TO_PARTS = Elementwise("round", round_to_parts)
ROUND_TO_MULTIPLES = Elementwise("round", round_to_multiples)


@per_element(
    "round.decimals(Tensor self, *, int decimals) -> Tensor",
    inplace=True,
    out="decimals_out",
    refuses=NOT_FLOATING,
    derivative=flat,
    node="RoundBackward1",
)
def round_decimals_op(self, decimals):
    """To so many digits behind the point, before it where negative; halves go to the even neighbour."""
    check_has_kernel("round_cpu" if decimals else "round_vml_cpu", self, NOT_FLOATING)
    return broadcast(self)


@round_decimals_op.body
def round_decimals_body(out, self, decimals):
    """To so many digits behind the point, before it where negative; halves go to the even neighbour."""
    power = 10.0 ** abs(decimals) if abs(decimals) < 309 else math.inf
    loop = ROUND_TO_PARTS if decimals >= 0 else ROUND_TO_MULTIPLES
    loop.run(out._operand, self._operand, power, dtype=self._dtype.name)


round = public(round_op, round_decimals_op)

# --- degrees, radians, sinc ------------------------------------------------------------------------------------------

RADIANS = math.pi / 180
DEGREES = 180 / math.pi


def no_complex(name: str) -> Any:
    return {COMPLEX: RuntimeError(f"{name} is not supported for complex tensors.")}


def sinc_gradient(grad: Any, self: Any) -> Any:
    angle = self * math.pi
    slope = (angle * angle.cos() - angle.sin()) / (angle * self)
    return grad * slope.masked_fill(self == 0, 0)


@unary(
    "deg2rad", "float", refuses=no_complex("deg2rad"), derivative=lambda grad: grad * RADIANS, node="Deg2RadBackward0"
)
def deg2rad(self):
    """Returns each angle in degrees as radians."""
    return self * RADIANS


@unary(
    "rad2deg", "float", refuses=no_complex("rad2deg"), derivative=lambda grad: grad * DEGREES, node="Rad2DegBackward0"
)
def rad2deg(self):
    """Returns each angle in radians as degrees."""
    return self * DEGREES


@unary("sinc", "float", cost=16, derivative=sinc_gradient)
def sinc(self):
    """Returns sin(πx) / (πx) of each element, which is 1 at 0."""
    angle = self * math.pi
    return kernels.sin(angle) / angle if self != 0 else self * 0 + 1
