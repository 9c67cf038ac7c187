"""Functions of two numbers, element by element: copysign, hypot, xlogy, logaddexp, fmax, gcd, shifts of bits."""

from __future__ import annotations

import math
from typing import Any

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, dtypes, overridable, result_type

from ..declare.declare import Operator
from ..declare.pointwise import Pointwise, pointwise
from ..declare.public import public
from ..declare.scalar_functions import common_divisor
from .arithmetic import pow

WHOLE = ("uint8", "int8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")
FLOATING = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def refusing(kernel: str, *kinds: str) -> dict[str, str]:
    return dict.fromkeys(kinds, kernel)


def with_number(op: Pointwise, schema: str, inplace: bool = True) -> Operator:
    """The overload with a number for the second operand: the operator for tensors, with the number handed down."""
    made = Operator(schema, inplace=inplace, tags=("pointwise",))
    made.explicit(lambda self, other: op.functional(self, other))
    if inplace:
        made.kernel_inplace("CompositeExplicitAutograd")(lambda self, other: op.inplace(self, other))  # type: ignore[misc]  # this operator has the form
    return made


# --- copysign, hypot, heaviside --------------------------------------------------------------------------------------

copysign_op = pointwise(
    "copysign.Tensor(Tensor self, Tensor other) -> Tensor",
    inplace=True,
    out="out",
    numbers=True,
    promotion="float",
    unsupported=refusing("copysign_cpu", *COMPLEX),
)


@copysign_op.scalar
def copysign_elements(self, other):
    return math.copysign(self, other)


def copysign_gradient(grad: Any, self: Any, result: Any) -> Any:
    """1 where the sign stayed, -1 where it turned, 0 at 0."""
    return grad * (result / self).masked_fill(self == 0, 0)


copysign_op.derivative(self=copysign_gradient, other=lambda grad: grad * 0)
copysign_scalar_op = with_number(copysign_op, "copysign.Scalar(Tensor self, Scalar other) -> Tensor")
copysign_scalar_op.derivative(self=copysign_gradient, node="CopysignBackward1")
copysign = public(copysign_op)

hypot_op = pointwise(
    "hypot(Tensor self, Tensor other) -> Tensor",
    inplace=True,
    out="out",
    unsupported=refusing("hypot_cpu", "bool", *WHOLE, *COMPLEX),
)


@hypot_op.scalar
def hypot_elements(self, other):
    return math.hypot(self, other)


hypot_op.derivative(
    self=lambda grad, self, result: grad * (self / result),
    other=lambda grad, other, result: grad * (other / result),
)
hypot = public(hypot_op)

heaviside_op = pointwise("heaviside(Tensor self, Tensor values) -> Tensor", inplace=True, out="out")


@heaviside_op.check
def check_one_kind(self: Tensor, values: Tensor) -> None:
    if self._dtype.is_complex or values._dtype.is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if self._dtype is not values._dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


@heaviside_op.scalar
def heaviside_elements(self, values):
    return values if self == 0 else self > 0


heaviside_op.derivative(self=lambda grad: grad * 0, values=lambda grad, self: grad.masked_fill(self != 0, 0))
heaviside = public(heaviside_op)

# --- logarithms ------------------------------------------------------------------------------------------------------

xlogy_op = pointwise(
    "xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
    inplace=True,
    out="OutTensor",
    promotion="float",
    cost=16,
    unsupported=refusing("xlogy_cpu", *COMPLEX),
)
xlogy_other_op = pointwise(
    "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",
    inplace=True,
    out="OutScalar_Other",
    promotion="float",
    cost=16,
    unsupported=refusing("xlogy_cpu", *COMPLEX),
)
xlogy_self_op = pointwise(
    "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
    out="OutScalar_Self",
    promotion="float",
    cost=16,
    unsupported=refusing("xlogy_cpu", *COMPLEX),
)


@xlogy_op.scalar
@xlogy_other_op.scalar
@xlogy_self_op.scalar
def xlogy_elements(self, other):
    """x log(y); 0 where x is 0, unless y is NaN."""
    return other if other != other else 0 if self == 0 else self * kernels.log(other)


def log_where_it_counts(grad: Any, self: Any, other: Any) -> Any:
    return grad * other.log().masked_fill((self == 0) & (other <= 0), 0)


xlogy_op.derivative(self=log_where_it_counts, other=lambda grad, self, other: grad * self / other)


def log_of_number_where_it_counts(grad: Any, self: Any, other: Any) -> Any:
    return xlogy_other_op.functional(grad, other).masked_fill((self == 0) * (other <= 0), 0)


xlogy_other_op.derivative(self=log_of_number_where_it_counts, node="XlogyBackward2")
xlogy_self_op.derivative(other=lambda grad, self, other: grad * self / other, node="XlogyBackward1")
xlogy = public(xlogy_op, xlogy_self_op, xlogy_other_op)

logaddexp_op = pointwise(
    "logaddexp(Tensor self, Tensor other) -> Tensor",
    inplace=False,
    out="out",
    cost=32,
    unsupported=refusing("logaddexp_cpu", "bool", *WHOLE),
)
logaddexp2_op = pointwise(
    "logaddexp2(Tensor self, Tensor other) -> Tensor",
    inplace=False,
    out="out",
    cost=32,
    unsupported=refusing("logaddexp2_cpu", "bool", *WHOLE, *COMPLEX),
)


def logaddexp_elements(self, other):
    """log(e^x + e^y), from the larger of the two, so that nothing overflows."""
    top = self if self > other or self != self else other
    return top if self == other and abs(self) == math.inf else top + kernels.log1p(kernels.exp(-abs(self - other)))


def logaddexp_complex(self, other):
    """The same from that of the larger real part."""
    top, low = (self, other) if self.real >= other.real or self.real != self.real else (other, self)
    if top.real == low.real and abs(top.real) == math.inf:
        return low if low.real < 0 else kernels.log(kernels.exp(low) + kernels.exp(top))
    return top + kernels.log1p(kernels.exp(low - top))


logaddexp_op.scalar(float=logaddexp_elements, complex=logaddexp_complex)


@logaddexp2_op.scalar
def logaddexp2_elements(self, other):
    top = self if self > other or self != self else other
    more = kernels.log1p(kernels.exp2(-abs(self - other))) * 1.4426950408889634
    return top if self == other and abs(self) == math.inf else top + more


logaddexp_op.derivative(
    self=lambda grad, self, other: grad / (1 + (other - self).exp()),
    other=lambda grad, self, other: grad / (1 + (self - other).exp()),
)
logaddexp2_op.derivative(
    self=lambda grad, self, other: grad / (1 + (other - self).exp2()),
    other=lambda grad, self, other: grad / (1 + (self - other).exp2()),
)
logaddexp = public(logaddexp_op)
logaddexp2 = public(logaddexp2_op)

# --- fmax, fmin ------------------------------------------------------------------------------------------------------

fmax_op = pointwise("fmax(Tensor self, Tensor other) -> Tensor", out="out")
fmin_op = pointwise("fmin(Tensor self, Tensor other) -> Tensor", out="out")


def refuse_complex(name: str) -> Any:
    def check(self: Tensor, other: Tensor) -> None:
        if self._dtype.is_complex or other._dtype.is_complex:
            raise NotImplementedError(f"{name} not implemented for complex tensors.")

    return check


fmax_op.check(refuse_complex("fmax"))
fmin_op.check(refuse_complex("fmin"))


@fmax_op.scalar
def fmax_elements(self, other):
    return self if self >= other or other != other else other  # a number wins over NaN


@fmin_op.scalar
def fmin_elements(self, other):
    return self if self <= other or other != other else other


fmax_op.derivative(
    self=lambda grad, self, other: grad.masked_fill(~((self >= other) | (other != other)), 0),
    other=lambda grad, self, other: grad.masked_fill((self >= other) | (other != other), 0),
)
fmin_op.derivative(
    self=lambda grad, self, other: grad.masked_fill(~((self <= other) | (other != other)), 0),
    other=lambda grad, self, other: grad.masked_fill((self <= other) | (other != other), 0),
)
fmax = public(fmax_op)
fmin = public(fmin_op)

# --- whole numbers ---------------------------------------------------------------------------------------------------

gcd_op = pointwise(
    "gcd(Tensor self, Tensor other) -> Tensor",
    inplace=True,
    out="out",
    cost=16,
    unsupported=refusing("gcd_cpu", "bool", *FLOATING),
)
lcm_op = pointwise(
    "lcm(Tensor self, Tensor other) -> Tensor",
    inplace=True,
    out="out",
    cost=16,
    unsupported=refusing("lcm_cpu", "bool", *FLOATING),
)


def common_multiple(self, other):
    divisor = common_divisor(self, other)
    return abs(self // divisor * other) if divisor != 0 else divisor


gcd_op.scalar(int=common_divisor, uint=common_divisor)
lcm_op.scalar(int=common_multiple, uint=common_multiple)
gcd_op.not_differentiable()
lcm_op.not_differentiable()
gcd = public(gcd_op)
lcm = public(lcm_op)


def shift(name: str, kernel: str, body: Any) -> tuple[Pointwise, Operator]:
    """`name.Tensor` and `name.Tensor_Scalar`."""
    unsupported = refusing(kernel, "bool", *FLOATING)
    op = pointwise(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        inplace=True,
        out="Tensor_out",
        numbers=True,
        unsupported=unsupported,
    )
    op.scalar(int=body, uint=body)
    op.not_differentiable()
    number = with_number(op, f"{name}.Tensor_Scalar(Tensor self, Scalar other) -> Tensor")
    number.not_differentiable()
    return op, number


def shifted_left(self, other):
    """x 2^n; 0 where all bits leave, or where there is no such shift."""
    return self * 0 if other < 0 or other >= 64 else self << other


def shifted_right(self, other):
    """x / 2^n, rounded down; by 63 bits where there is no such shift, which leaves the sign."""
    return self >> (63 if other < 0 or other >= 64 else other)


left_shift_op, left_shift_scalar_op = shift("bitwise_left_shift", "lshift_cpu", shifted_left)
right_shift_op, right_shift_scalar_op = shift("bitwise_right_shift", "rshift_cpu", shifted_right)
bitwise_left_shift = public(left_shift_op, left_shift_scalar_op)
bitwise_right_shift = public(right_shift_op, right_shift_scalar_op)


def shift_sign(name: str, kernel: str, body: Any) -> tuple[Pointwise, Pointwise]:
    """The operators that `<<` and `>>` call."""
    made = []
    for overload in ("Tensor", "Scalar"):
        op = pointwise(
            f"{name}.{overload}(Tensor self, {overload} other) -> Tensor",
            unsupported=refusing(kernel, "bool", *FLOATING),
        )
        op.scalar(int=body, uint=body)
        op.not_differentiable()
        made.append(op)
    return made[0], made[1]


lshift_op, lshift_scalar_op = shift_sign("__lshift__", "lshift_cpu", shifted_left)
rshift_op, rshift_scalar_op = shift_sign("__rshift__", "rshift_cpu", shifted_right)
public(lshift_op, lshift_scalar_op, function=False)
public(rshift_op, rshift_scalar_op, function=False)


def shift_left_in_place(self: Any, other: Any) -> Tensor:
    """self <<= other"""
    return self.bitwise_left_shift_(other)


def shift_right_in_place(self: Any, other: Any) -> Tensor:
    """self >>= other"""
    return self.bitwise_right_shift_(other)


shift_left_in_place.__name__, shift_right_in_place.__name__ = "__ilshift__", "__irshift__"
Tensor.__ilshift__ = overridable(shift_left_in_place)  # type: ignore[attr-defined]  # attached here
Tensor.__irshift__ = overridable(shift_right_in_place)  # type: ignore[attr-defined]  # attached here

# --- powers in float64 -----------------------------------------------------------------------------------------------

float_power_tensor_op = Operator(
    "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    inplace="Tensor",
    out="Tensor_Tensor_out",
    tags=("pointwise",),
)
float_power_scalar_op = Operator(
    "float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", out="Scalar_out", tags=("pointwise",)
)
float_power_op = Operator(
    "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    inplace="Scalar",
    out="Tensor_Scalar_out",
    tags=("pointwise",),
)


def widened(self: Any, exponent: Any) -> tuple[Any, list[Any]]:
    """(float64, or complex128 where either is complex; both in it)"""
    wide = dtypes.complex128 if result_type(self, exponent).is_complex else dtypes.float64
    return wide, [x.to(wide) if isinstance(x, Tensor) else wide.numpy.type(x).item() for x in (self, exponent)]


def float_power_composite(self: Any, exponent: Any) -> Any:
    _, (base, power) = widened(self, exponent)
    return base.pow(power) if isinstance(base, Tensor) else pow(base, power)


def float_power_in_place(self: Any, exponent: Any) -> Any:
    wide, (_, power) = widened(self, exponent)
    check_wide("base", "float_power_", self, wide)
    return self.pow_(power)


def float_power_into(self: Any, exponent: Any, out: Any) -> Any:
    wide, (base, power) = widened(self, exponent)
    check_wide("output", "float_power", out, wide)
    return pow(base, power, out=out)


def check_wide(what: str, name: str, given: Tensor, wide: Any) -> None:
    if given._dtype is not wide:
        raise RuntimeError(
            f"the {what} given to {name} has dtype {given._dtype.tensor_name} but the operation's result requires "
            f"dtype {wide.tensor_name}"
        )


for _op in (float_power_tensor_op, float_power_scalar_op, float_power_op):
    _op.composite(_op.functional)(float_power_composite)
    _op.composite(_op.out)(float_power_into)
for _op in (float_power_tensor_op, float_power_op):
    _op.composite(_op.inplace)(float_power_in_place)
float_power = public(float_power_tensor_op, float_power_scalar_op, float_power_op)
