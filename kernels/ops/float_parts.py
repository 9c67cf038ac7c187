"""The parts of a number and its neighbours: fraction, sign bit, mantissa and exponent, decimals, the next float.

With them what is defined by such parts: tests for infinities, numbers in the place of NaN, degrees and radians, sinc.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, dtype, dtypes, empty, result_type
from redispatch.kernels import Elementwise, broadcast_shapes, output_strides
from redispatch.kernels.engine.primitives import bfloat16_to_float, float_to_bfloat16, float_to_half, half_to_float

from ..declare.declare import Operator
from ..declare.operator import flat, operator, passed_on, unary
from ..declare.pointwise import COMPLEX, NOT_FLOATING
from ..declare.public import public
from ..declare.structured import Meta, Structured, c_name, common_device, not_implemented, resize_out
from .comparison import never
from .creation import ones_like, preserved_strides
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

isreal_op = Operator("isreal(Tensor self) -> Tensor")


@isreal_op.implicit
def isreal_composite(self: Any) -> Tensor:
    """Returns for each element whether its imaginary part is 0."""
    return self.imag == 0 if self.is_complex() else ones_like(self, dtype=dtypes.bool)


isreal = public(isreal_op)

# --- numbers for NaN and infinities ----------------------------------------------------------------------------------

nan_to_num_op = Structured(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    inplace=True,
    out="out",
    tags=("pointwise",),
)
nan_to_num_op.elementwise = True


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


@nan_to_num_op.meta
def nan_to_num_meta(self: Tensor, nan: Any, posinf: Any, neginf: Any) -> Meta:
    return Meta(self._shape, self._dtype, self._device, preserved_strides(self))


@nan_to_num_op.body
def nan_to_num_body(out: Tensor, self: Tensor, nan: Any, posinf: Any, neginf: Any) -> None:
    """By default 0 and the largest and the least number of the dtype."""
    kind = self._dtype.to_real()
    most = largest(kind) if kind.is_floating_point else 0.0
    numbers = nan or 0.0, most if posinf is None else posinf, -most if neginf is None else neginf
    NUMBER_FOR.run(out._operand, self._operand, *numbers, dtype=self._dtype.name)


def largest(kind: dtype) -> float:
    """The largest finite number of a floating dtype."""
    return 3.3895313892515355e38 if kind is dtypes.bfloat16 else float(np.finfo(kind.numpy).max)


nan_to_num_op.derivative(self=lambda grad, self: grad * (self == self).logical_and(self.abs() != math.inf))
nan_to_num = public(nan_to_num_op, doc="Returns each element with NaN and infinities replaced by numbers.")

# --- mantissa and exponent -------------------------------------------------------------------------------------------

frexp_op = Operator(
    "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", tags=("pointwise",), refuses=NOT_FLOATING
)
frexp_out_op = Operator(
    "frexp.Tensor_out(Tensor self, *, Tensor(a!) mantissa, Tensor(b!) exponent) -> "
    "(Tensor(a!) mantissa, Tensor(b!) exponent)",
    tags=("pointwise",),
)


def mantissa_and_exponent(x):
    return math.frexp(x) if abs(x) < math.inf else (x, 0)


FREXP = Elementwise("frexp", mantissa_and_exponent, outputs=2)


def check_frexp(self: Tensor) -> None:
    if not self._dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")


@frexp_op.kernel("CPU", "Meta")
def frexp_kernel(self: Tensor) -> tuple[Tensor, Tensor]:
    """x = m 2^e with |m| from [0.5, 1); zeros, infinities and NaN are their own mantissa."""
    check_frexp(self)
    strides = preserved_strides(self)
    mantissa, exponent = (empty(self._shape, kind, self._device, strides) for kind in (self._dtype, dtypes.int32))
    if self._device.type != "meta":
        FREXP.run((mantissa._operand, exponent._operand), self._operand, dtype=self._dtype.name)
    return mantissa, exponent


@frexp_out_op.kernel("CPU", "Meta")
def frexp_out_kernel(self: Tensor, mantissa: Tensor, exponent: Tensor) -> tuple[Tensor, Tensor]:
    check_frexp(self)
    for name, out, kind in (("mantissa", mantissa, self._dtype), ("exponent", exponent, dtypes.int32)):
        if out._dtype is not kind:
            found, wanted = c_name(out._dtype), c_name(kind)
            raise RuntimeError(f"torch.frexp() expects {name} to have {wanted} dtype but got {found}")
        resize_out(out, Meta(self._shape, kind, self._device))
    if self._device.type != "meta":
        FREXP.run((mantissa._operand, exponent._operand), self._operand, dtype=self._dtype.name)
    return mantissa, exponent


frexp_op.out = frexp_out_op.functional
frexp_op.derivative(self=lambda grad, result1: grad / result1.exp2(), nondifferentiable=(1,))
frexp = public(frexp_op, doc="Returns mantissa m and exponent e of each element x = m 2^e, with |m| in [0.5, 1).")


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

nextafter_op = Structured(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    inplace=True,
    out="out",
    tags=("pointwise",),
    refuses=NOT_FLOATING,
)
nextafter_op.elementwise = True


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


@nextafter_op.meta
def nextafter_meta(self: Tensor, other: Tensor) -> Meta:
    kind = result_type(self, other)
    if not kind.is_floating_point:
        raise not_implemented("nextafter_cpu", kind)
    shape = broadcast_shapes(self._shape, other._shape)
    strides = output_strides(shape, ((self._shape, self._stride), (other._shape, other._stride)))
    return Meta(shape, kind, common_device(self, other), strides)


@nextafter_op.body
def nextafter_body(out: Tensor, self: Tensor, other: Tensor) -> None:
    """The float behind x on the way to y; y where they are equal."""
    kind = result_type(self, other).name
    NEXT[kind].run(out._operand, self._operand, other._operand, dtype=kind)


nextafter_op.derivative(self=lambda grad, self, other: grad.masked_fill(self == other, 0), other=lambda grad: grad * 0)
nextafter = public(nextafter_op, doc="Returns the next floating-point number from each element towards `other`.")

# --- decimals --------------------------------------------------------------------------------------------------------

round_decimals_op = Structured(
    "round.decimals(Tensor self, *, int decimals) -> Tensor",
    inplace=True,
    out="decimals_out",
    tags=("pointwise",),
    refuses=NOT_FLOATING,
)
round_decimals_op.elementwise = True


def round_to_parts(x, power):
    return np.rint(x * power) / power


def round_to_multiples(x, power):
    return np.rint(x / power) * power


ROUND_TO_PARTS = Elementwise("round", round_to_parts)
ROUND_TO_MULTIPLES = Elementwise("round", round_to_multiples)


@round_decimals_op.meta
def round_decimals_meta(self: Tensor, decimals: int) -> Meta:
    if not self._dtype.is_floating_point:
        raise not_implemented("round_cpu" if decimals else "round_vml_cpu", self._dtype)
    return Meta(self._shape, self._dtype, self._device, preserved_strides(self))


@round_decimals_op.body
def round_decimals_body(out: Tensor, self: Tensor, decimals: int) -> None:
    """To so many digits behind the point, before it where negative; halves go to the even neighbour."""
    power = 10.0 ** abs(decimals) if abs(decimals) < 309 else math.inf
    loop = ROUND_TO_PARTS if decimals >= 0 else ROUND_TO_MULTIPLES
    loop.run(out._operand, self._operand, power, dtype=self._dtype.name)


round_decimals_op.derivative(self=flat, node="RoundBackward1")
round = public(round_op, round_decimals_op, doc="Returns each element rounded to `decimals` places, halves to even.")

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
