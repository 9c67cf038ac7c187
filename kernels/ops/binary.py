"""Functions of two numbers or three, element by element: copysign, hypot, xlogy, fmax, gcd, shifts of bits, lerp."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, dtypes, result_type

from ..declare.declare import Operator
from ..declare.operator import binary, flat, operator, passed_on, pointwise, with_number
from ..declare.pointwise import COMPLEX, FLOATING, NOT_FLOATING, WHOLE
from ..declare.public import public
from ..declare.scalar_functions import common_divisor
from ..declare.structured import c_name
from .arithmetic import pow

# --- copysign, hypot, heaviside --------------------------------------------------------------------------------------


def copysign_elements(self, other):
    return math.copysign(self, other)


def copysign_gradient(grad: Any, self: Any, result: Any) -> Any:
    """1 where the sign stayed, -1 where it turned, 0 at 0."""
    return grad * (result / self).masked_fill(self == 0, 0)


def refuse_number(op: Any, beside_tensor: bool) -> None:
    """Makes an operator refuse a number as its first operand: beside a tensor, too, or beside another number alone."""
    name = op.base_name

    def check(self: Any, other: Any) -> None:
        if not isinstance(self, Tensor) and (beside_tensor or not isinstance(other, Tensor)):
            given = ", ".join(type(x).__name__ for x in (self, other))
            raise TypeError(f"{name}() received an invalid combination of arguments - got ({given})")

    op.check(check)
    op.kernel("Undefined")(check)


copysign = operator(
    "copysign.Tensor(Tensor self, Tensor other) -> Tensor",
    copysign_elements,
    inplace=True,
    out="out",
    numbers=True,
    promotion="float",
    refuses=COMPLEX,
    derivative={"self": copysign_gradient, "other": flat},
    doc="Returns the magnitude of each element with the sign of `other`.",
)
refuse_number(copysign.op, beside_tensor=True)
with_number(
    copysign,
    "copysign.Scalar(Tensor self, Scalar other) -> Tensor",
    derivative=copysign_gradient,
    node="CopysignBackward1",
)


@binary(
    "hypot",
    refuses=NOT_FLOATING,
    derivative={
        "self": lambda grad, self, result: grad * (self / result),
        "other": lambda grad, other, result: grad * (other / result),
    },
)
def hypot(self, other):
    """Returns sqrt(self² + other²), without overflow."""
    return math.hypot(self, other)


OTHER_DTYPES = "heaviside is not yet implemented for tensors with different dtypes."


@operator(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    inplace=True,
    out="out",
    refuses={COMPLEX: RuntimeError("heaviside is not yet implemented for complex tensors.")},
    exact_out=OTHER_DTYPES,
    derivative={"self": flat, "values": lambda grad, self: grad.masked_fill(self != 0, 0)},
)
def heaviside(self, values):
    """Returns 0 for negative elements, 1 for positive ones, and `values` where they are 0."""
    return values if self == 0 else self > 0


@heaviside.op.check
def check_one_kind(self, values):
    if self._dtype is not values._dtype and not result_type(self, values).is_complex:
        raise RuntimeError(OTHER_DTYPES)


# --- logarithms ------------------------------------------------------------------------------------------------------


def xlogy_elements(self, other):
    """x log(y); 0 where x is 0, unless y is NaN."""
    return other if other != other else 0 if self == 0 else self * kernels.log(other)


def log_where_it_counts(grad: Any, self: Any, other: Any) -> Any:
    return grad * other.log().masked_fill((self == 0) & (other <= 0), 0)


def log_of_number_where_it_counts(grad: Any, self: Any, other: Any) -> Any:
    return xlogy_other_op.functional(grad, other).masked_fill((self == 0) * (other <= 0), 0)


def ratio(grad: Any, self: Any, other: Any) -> Any:
    return grad * self / other


xlogy_facts: dict[str, Any] = {"promotion": "float", "cost": 16, "refuses": COMPLEX}
xlogy_op = pointwise(
    "xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
    xlogy_elements,
    inplace=True,
    out="OutTensor",
    derivative={"self": log_where_it_counts, "other": ratio},
    **xlogy_facts,
)
xlogy_other_op = pointwise(
    "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",
    xlogy_elements,
    inplace=True,
    out="OutScalar_Other",
    derivative=log_of_number_where_it_counts,
    node="XlogyBackward2",
    **xlogy_facts,
)
xlogy_self_op = pointwise(
    "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
    xlogy_elements,
    out="OutScalar_Self",
    derivative=ratio,
    node="XlogyBackward1",
    **xlogy_facts,
)
xlogy = public(
    xlogy_op, xlogy_self_op, xlogy_other_op, doc="Returns self log(other), 0 where `self` is 0 and `other` is no NaN."
)


def logaddexp_elements(self, other):
    """log(e^x + e^y), from the larger of the two, so that nothing overflows."""
    top = self if self > other or self != self else other
    return top if self == other and abs(self) == math.inf else top + kernels.log1p(kernels.exp(-abs(self - other)))


def logaddexp_complex(self, other):
    """Adds logarithms from that of the larger real part on."""
    top, low = (self, other) if self.real >= other.real or self.real != self.real else (other, self)
    if top.real == low.real and abs(top.real) == math.inf:
        return low if low.real < 0 else kernels.log(kernels.exp(low) + kernels.exp(top))
    return top + kernels.log1p(kernels.exp(low - top))


logaddexp = binary(
    "logaddexp",
    {"float": logaddexp_elements, "complex": logaddexp_complex},
    inplace=False,
    cost=32,
    refuses=WHOLE,
    derivative={
        "self": lambda grad, self, other: grad / (1 + (other - self).exp()),
        "other": lambda grad, self, other: grad / (1 + (self - other).exp()),
    },
    doc="Returns log(exp(self) + exp(other)), without overflow.",
)


@binary(
    "logaddexp2",
    inplace=False,
    cost=32,
    refuses=NOT_FLOATING,
    derivative={
        "self": lambda grad, self, other: grad / (1 + (other - self).exp2()),
        "other": lambda grad, self, other: grad / (1 + (self - other).exp2()),
    },
)
def logaddexp2(self, other):
    """Returns log2(2^self + 2^other), without overflow."""
    top = self if self > other or self != self else other
    more = kernels.log1p(kernels.exp2(-abs(self - other))) * 1.4426950408889634
    return top if self == other and abs(self) == math.inf else top + more


# --- fmax, fmin: a number wins over NaN ------------------------------------------------------------------------------


@binary(
    "fmax",
    inplace=False,
    refuses={COMPLEX: NotImplementedError("fmax not implemented for complex tensors.")},
    derivative={
        "self": lambda grad, self, other: grad.masked_fill(~((self >= other) | (other != other)), 0),
        "other": lambda grad, self, other: grad.masked_fill((self >= other) | (other != other), 0),
    },
)
def fmax(self, other):
    """Returns the larger of each pair of elements; the other one where one is NaN."""
    return self if self >= other or other != other else other


@binary(
    "fmin",
    inplace=False,
    refuses={COMPLEX: NotImplementedError("fmin not implemented for complex tensors.")},
    derivative={
        "self": lambda grad, self, other: grad.masked_fill(~((self <= other) | (other != other)), 0),
        "other": lambda grad, self, other: grad.masked_fill((self <= other) | (other != other), 0),
    },
)
def fmin(self, other):
    """Returns the smaller of each pair of elements; the other one where one is NaN."""
    return self if self <= other or other != other else other


# --- whole numbers ---------------------------------------------------------------------------------------------------

NOT_INTEGRAL = ("bool", *FLOATING, *COMPLEX)


def common_multiple(self, other):
    divisor = common_divisor(self, other)
    return abs(self // divisor * other) if divisor != 0 else divisor


def shifted_left(self, other):
    """x 2^n; 0 where all bits leave, or where there is no such shift."""
    return self * 0 if other < 0 or other >= 64 else self << other


def shifted_right(self, other):
    """x / 2^n, rounded down; by 63 bits where there is no such shift, which leaves the sign."""
    return self >> (63 if other < 0 or other >= 64 else other)


def integral(elements: Any) -> dict[str, Any]:
    """A function for the two kinds of integers."""
    return {"int": elements, "uint": elements}


of_integers = partial(binary, cost=16, refuses=NOT_INTEGRAL, derivative=False)
gcd = of_integers("gcd", integral(common_divisor), doc="Returns the greatest common divisor of each pair of elements.")
lcm = of_integers("lcm", integral(common_multiple), doc="Returns the least common multiple of each pair of elements.")


def shift(name: str, short: str, body: Any) -> Any:
    """The function `name`, with overloads `Tensor` and `Tensor_Scalar`, and the operators that `<<` and `>>` call."""
    facts: dict[str, Any] = {"refuses": {NOT_INTEGRAL: f"{short}_cpu"}, "derivative": False}
    op = pointwise(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        integral(body),
        inplace=True,
        out="Tensor_out",
        numbers=True,
        **facts,
    )
    refuse_number(op, beside_tensor=False)
    schema = f"{name}.Tensor_Scalar(Tensor self, Scalar other) -> Tensor"
    number = with_number(op, schema, derivative=False)
    signs = [
        pointwise(f"__{short}__.{kind}(Tensor self, {kind} other) -> Tensor", integral(body), **facts)
        for kind in ("Tensor", "Scalar")
    ]
    public(*signs, function=False, doc=f"Returns what `{name}` does, for the operator of Python.")
    way = "left" if short == "lshift" else "right"
    return public(op, number, doc=f"Returns each element with its bits moved to the {way} by `other`.")


bitwise_left_shift = shift("bitwise_left_shift", "lshift", shifted_left)
bitwise_right_shift = shift("bitwise_right_shift", "rshift", shifted_right)

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
float_power = public(
    float_power_tensor_op,
    float_power_scalar_op,
    float_power_op,
    doc="Returns each element to a power, in float64 or complex128.",
)

# --- three operands: addcmul, addcdiv, lerp ---------------------------------------------------------------------------

# --- addcmul, addcdiv ------------------------------------------------------------------------------------------------


@operator(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    inplace=True,
    out="out",
    autocast={"cuda": "promote"},
    refuses={"bool": "addcmul_cpu_out"},
    derivative={
        "self": passed_on,
        "tensor1": lambda grad, tensor2, value: grad * (tensor2 * value),
        "tensor2": lambda grad, tensor1, value: grad * (tensor1 * value),
    },
)
def addcmul(self, tensor1, tensor2, value):
    """Returns self + value tensor1 tensor2."""
    return self + value * tensor1 * tensor2


@addcmul.op.scalar(when={"value": 1})
def added_plain_product(self, tensor1, tensor2):
    return self + tensor1 * tensor2


@operator(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    inplace=True,
    out="out",
    autocast={"cuda": "promote"},
    refuses={WHOLE: "addcdiv_cpu_out"},
    derivative={
        "self": passed_on,
        "tensor1": lambda grad, tensor2, value: grad * (value / tensor2),
        "tensor2": lambda grad, tensor1, tensor2, value: -grad * (value * tensor1 / (tensor2 * tensor2)),
    },
)
def addcdiv(self, tensor1, tensor2, value):
    """Returns self + value tensor1 / tensor2."""
    return self + value * tensor1 / tensor2


@addcdiv.op.check
def check_addcdiv(self, tensor1, tensor2, value):
    kind = result_type(tensor1, tensor2)
    if not kind.is_floating_point and not kind.is_complex:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value "
            "* torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value "
            "* tensor1 / tensor2), for all dtypes."
        )


# --- lerp ------------------------------------------------------------------------------------------------------------


def between(self, end, weight):
    """From the nearer end, so that both ends are met exactly."""
    return self + weight * (end - self) if abs(weight) < 0.5 else end - (end - self) * (1 - weight)


def left(grad: Any, weight: Any) -> Any:
    return grad * (1 - weight)


def weighted(grad: Any, weight: Any) -> Any:
    return grad * weight


lerp_scalar_op = pointwise(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    between,
    inplace=True,
    out="Scalar_out",
    refuses={WHOLE: "lerp_kernel_scalar"},
    derivative={"self": left, "end": weighted},
)
lerp_tensor_op = pointwise(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    between,
    inplace=True,
    out="Tensor_out",
    refuses={WHOLE: "lerp_kernel_tensor"},
    derivative={"self": left, "end": weighted, "weight": lambda grad, self, end: grad * (end - self)},
    node="LerpBackward1",
)
lerp = public(lerp_tensor_op, lerp_scalar_op, doc="Returns self + weight (end - self).")


@lerp_scalar_op.check
def check_ends(self, end, weight):
    check_kind("end", self, end)


@lerp_tensor_op.check
def check_ends_and_weight(self, end, weight):
    check_kind("end", self, end)
    check_kind("weight", self, weight)


def check_kind(name: str, self: Tensor, other: Tensor) -> None:
    if self._dtype is not other._dtype:
        raise RuntimeError(f"expected dtype {c_name(self._dtype)} for `{name}` but got dtype {c_name(other._dtype)}")
