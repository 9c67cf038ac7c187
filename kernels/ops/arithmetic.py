"""Arithmetic: sums, products, quotients, remainders and powers, element by element.

A Python number may stand for the second operand. It is handed down as it is: `x + 1` is add.Tensor(x, 1).
"""

from __future__ import annotations

import cmath
import math
from functools import partial
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import call, ops
from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, result_type
from redispatch.kernels.engine.primitives import bfloat16_to_float, float_to_bfloat16, float_to_half, half_to_float

from ..declare.numbers import storable
from ..declare.operator import binary, composite, operator, passed_on, pointwise, with_arguments, with_number
from ..declare.pointwise import COMPLEX
from ..declare.public import public
from ..declare.structured import not_implemented
from .comparison import where_op, zero_of

of_numbers = partial(pointwise, inplace=True, out="out", numbers=True, core=True)  # as in `x + 1`


def dtype_name(value: Any) -> str:
    """The name of a tensor's dtype, or of that which a number would have."""
    return value._dtype.name if isinstance(value, Tensor) else result_type(value).name


def check_alpha(self: Any, other: Any, alpha: Any) -> None:
    """Raises RuntimeError for a factor that the result's dtype cannot hold."""
    if type(alpha) is int:
        return
    common = result_type(self, other)
    if isinstance(alpha, float) and not common.is_floating_point and not common.is_complex:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, bool) and common.name != "bool":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, complex) and not common.is_complex:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")


# --- add, sub, rsub ------------------------------------------------------------------------------------------------


def add_scaled(self, other, alpha):
    return self + alpha * other


add_op = of_numbers(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    add_scaled,
    derivative={"self": passed_on, "other": lambda grad, alpha: grad if alpha == 1 else grad * alpha},
)
add_op.check(check_alpha)
add = public(add_op, doc="Returns self + alpha other.")


@add_op.scalar(when={"alpha": 1})
def add_plain(self, other):
    return self + other


def sub_scaled(self, other, alpha):
    return self - alpha * other


def subtracted(grad: Any, alpha: Any) -> Any:
    return -grad if alpha == 1 else grad * -alpha


sub_op = of_numbers(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    sub_scaled,
    refuses={"bool": ""},
    derivative={"self": passed_on, "other": subtracted},
)
sub = public(sub_op, doc="Returns self - alpha other.")


@sub_op.scalar(when={"alpha": 1})
def sub_plain(self, other):
    return self - other


@sub_op.check
def check_sub(self, other, alpha):
    bools = [dtype_name(value) == "bool" for value in (self, other)]
    if all(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if any(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )
    check_alpha(self, other, alpha)


def rsub_scaled(self, other, alpha):
    return other - alpha * self


rsub_op = pointwise(
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    rsub_scaled,
    refuses={"bool": ""},
    derivative={"self": subtracted, "other": passed_on},
)
rsub_scalar_op = pointwise(
    "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    rsub_scaled,
    refuses={"bool": ""},
    derivative=subtracted,
    node="RsubBackward1",
)
rsub = public(rsub_op, rsub_scalar_op, method=False, doc="Returns other - alpha self.")


@rsub_op.scalar(when={"alpha": 1})
@rsub_scalar_op.scalar(when={"alpha": 1})
def rsub_plain(self, other):
    return other - self


@rsub_op.check
@rsub_scalar_op.check
def check_rsub(self, other, alpha):
    check_sub(other, self, alpha)


# --- mul, div ------------------------------------------------------------------------------------------------------


def mul_elements(self, other):
    return self * other


mul_op = of_numbers(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    mul_elements,
    derivative={"self": lambda grad, other: grad * other, "other": lambda grad, self: grad * self},
)
mul = public(mul_op, doc="Returns the product of each pair of elements.")


def div_elements(self, other):
    return self / other


def div_complex(self, other):
    return kernels.quotient(self, other)


div_op = of_numbers(
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    {"float": div_elements, "complex": div_complex},
    promotion="float",
    derivative={
        "self": lambda grad, other: grad / other,
        "other": lambda grad, self, other: -grad * ((self / other) / other),
    },
)

ROUNDED_AWAY = ("bool", *COMPLEX)  # no quotient of these can be rounded, nor has it a remainder


def by_rounding(self: Any, other: Any, rounding_mode: str | None) -> str:
    return "float" if rounding_mode is None else "same"


div_mode_op = of_numbers(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    {"float": div_elements, "complex": div_complex},
    when={"rounding_mode": None},
    out="out_mode",
    promotion=by_rounding,
    derivative={
        "self": lambda grad, other, rounding_mode: grad / other if rounding_mode is None else grad * 0,
        "other": lambda grad, self, other, rounding_mode: (
            -grad * ((self / other) / other) if rounding_mode is None else grad * 0
        ),
    },
    node="DivBackward2",
    refuses={"bool complex": ""},
)
div = public(div_op, div_mode_op, doc="Returns the quotient of each pair of elements; rounded, with a `rounding_mode`.")


@div_mode_op.check
def check_rounding_mode(self, other, rounding_mode):
    if rounding_mode not in (None, "trunc", "floor"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    common = result_type(self, other)
    if rounding_mode is not None and common.name in ROUNDED_AWAY:
        raise not_implemented(f"div_{rounding_mode}_cpu", common)


@div_mode_op.check_values
def check_rounded_divisor(self, other, rounding_mode):
    if rounding_mode is not None:
        check_integer_divisor(self, other)


def check_integer_divisor(self: Any, other: Any) -> None:
    """Raises RuntimeError where integers would be divided by zero: a compiled loop cannot."""
    common = result_type(self, other)
    if common.is_floating_point or common.is_complex:
        return
    if isinstance(other, Tensor):
        has_zero = other._array is not None and not as_numpy(other).all()
    else:
        has_zero = other % 2 ** (8 * common.itemsize) == 0  # a number that is too large wraps
    if has_zero:
        raise RuntimeError("ZeroDivisionError")


def floor_divide_floats(self, other):
    quotient = self / other
    rest = np.fmod(self, other)
    exact = (self - rest) / other  # an integer, but for rounding
    below = exact - 1 if rest != 0 and (other < 0) != (rest < 0) else exact
    return quotient if other == 0 else np.floor(below + 0.5)


def floor_divide_ints(self, other):
    return -self if other == -1 else self // other  # the least integer's quotient wraps: it has no negative


def floor_divide_uints(self, other):
    return self // other


def trunc_divide_floats(self, other):
    return np.trunc(self / other)


def trunc_divide_halves(self, other):
    return np.trunc(half_to_float(float_to_half(self / other)))  # the quotient is one of 16 bits


def trunc_divide_bfloats(self, other):
    return np.trunc(bfloat16_to_float(float_to_bfloat16(self / other)))


def trunc_divide_ints(self, other):
    quotient = -self if other == -1 else self // other
    return quotient + 1 if quotient < 0 and quotient * other != self else quotient


FLOOR_DIVIDE: dict[str, Any] = {
    "float": floor_divide_floats,
    "int": floor_divide_ints,
    "uint": floor_divide_uints,
}
div_mode_op.scalar(when={"rounding_mode": "floor"}, **FLOOR_DIVIDE)
div_mode_op.scalar(
    when={"rounding_mode": "trunc"},
    float=trunc_divide_floats,
    float16=trunc_divide_halves,
    bfloat16=trunc_divide_bfloats,
    int=trunc_divide_ints,
    uint=floor_divide_uints,
)
floor_divide = operator(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    FLOOR_DIVIDE,
    inplace="Tensor",
    out="out",
    numbers=True,
    refuses={ROUNDED_AWAY: "div_floor_cpu"},
    doc="Returns the quotient of each pair of elements, rounded down.",
)
floor_divide.op.check_values(check_integer_divisor)

# --- remainder, fmod -----------------------------------------------------------------------------------------------


def remainder_floats(self, other):
    rest = np.fmod(self, other)
    return rest + other if rest != 0 and (other < 0) != (rest < 0) else rest


def remainder_ints(self, other):
    return self % other


def fmod_floats(self, other):
    return np.fmod(self, other)


def fmod_ints(self, other):
    rest = self % other
    return rest - other if rest != 0 and (self < 0) != (other < 0) else rest


def rest_of_division(name: str, node: str, floats: Any, ints: Any, uints: Any, rounding: str, how: str) -> Any:
    """The function `name`, x - y * round(x / y), with overloads for a tensor and a number as the second operand."""
    slopes: Any = {
        "self": passed_on,
        "other": lambda grad, self, other: -grad * self.div(other, rounding_mode=rounding),
    }
    made = []
    for kind, derivative, own in (("Tensor", slopes, f"{node}Backward1"), ("Scalar", passed_on, None)):
        op = pointwise(
            f"{name}.{kind}(Tensor self, {kind} other) -> Tensor",
            {"float": floats, "int": ints, "uint": uints},
            inplace=True,
            out=f"{kind}_out",
            core=True,
            refuses=ROUNDED_AWAY,
            derivative=derivative,
            node=own,
        )
        op.check_values(check_integer_divisor)
        made.append(op)
    if name == "remainder":

        @composite("remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", face=False)
        def of_number(self, other):
            element = result_type(self, other)
            number = ops.aten.scalar_tensor.default(self, dtype=element, device=other._device)
            return made[0].functional(number, other)

        made.append(of_number)
    return public(*made, doc=f"Returns the remainder of the quotient, {how}.")


remainder = rest_of_division(
    "remainder",
    "Remainder",
    remainder_floats,
    remainder_ints,
    remainder_ints,
    "floor",
    "rounded down, which has the sign of the divisor",
)
fmod = rest_of_division(
    "fmod", "Fmod", fmod_floats, fmod_ints, fmod_ints, "trunc", "rounded towards 0, which has the sign of the dividend"
)

# --- pow -----------------------------------------------------------------------------------------------------------


@kernels.usually(kernels.pow_ordinary, when=kernels.is_ordinary_power)
def pow_floats(self, exponent):
    return kernels.pow(self, exponent)


def pow_ints(self, exponent):
    power = self * 0 + 1
    base = self
    left = exponent
    while left > 0:
        if left & 1:
            power = power * base
        base = base * base
        left = left >> 1
    if exponent < 0:  # 1 and -1 have an inverse; that of any other rounds to 0
        power = 1 if self == 1 else ((-1 if exponent & 1 else 1) if self == -1 else 0)
    return power


def pow_bools(self, exponent):
    return self or not exponent


def square_elements(self):
    return self * self


def cube_elements(self):
    return self * self * self


def pow_grad_self(grad: Tensor, self: Tensor, exponent: Any) -> Tensor:
    """n x^(n-1), and 0 for n = 0 even where x^(n-1) is infinite."""
    if exponent == 0:
        return grad * 0
    return grad * mul_scalar_op.functional(self.pow(exponent - 1), exponent)


def pow_grad_base(grad: Tensor, self: Tensor, exponent: Tensor) -> Tensor:
    slope = exponent * self.pow(exponent - 1)
    return grad * slope.masked_fill(exponent == 0, 0)


def pow_grad_exponent(grad: Tensor, self: Any, exponent: Tensor, result: Tensor) -> Tensor:
    """x^n log x; 0 where x = 0 and n >= 0, the limit."""
    if not isinstance(self, Tensor):
        slope = grad * (result * log_of_number(self, exponent._dtype.is_complex))
        return slope if self or exponent._dtype.is_complex else slope.masked_fill(exponent >= 0, 0)
    limit = exponent >= 0 if not exponent._dtype.is_complex else (exponent.imag == 0).logical_and(exponent.real >= 0)
    base = self.to(exponent._dtype) if exponent._dtype.is_complex else self  # negative numbers have logarithms there
    return grad * (result * base.log()).masked_fill((self == 0).logical_and(limit), 0)


def log_of_number(base: Any, in_complex: bool) -> Any:
    """The logarithm; NaN for a negative number among reals."""
    if base == 0:
        return 0.0 if in_complex else -math.inf
    if in_complex or isinstance(base, complex):
        return cmath.log(base)
    return math.log(base) if base > 0 else math.nan


POW: dict[str, Any] = {"float": pow_floats, "complex": pow_floats, "int": pow_ints, "uint": pow_ints}
pow_facts: dict[str, Any] = {"cost": 8, "core": True, "autocast": {"cuda": "fp32"}}
pow_op = pointwise(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    POW | {"bool": pow_bools},
    inplace="Scalar",
    out="Tensor_Scalar_out",
    derivative=pow_grad_self,
    **pow_facts,
)
pow_op.scalar(square_elements, when={"exponent": 2})
pow_op.scalar(cube_elements, when={"exponent": 3})
pow_tensor_op = pointwise(
    "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    POW,
    inplace="Tensor",
    out="Tensor_Tensor_out",
    refuses={"bool": "pow"},
    derivative={"self": pow_grad_base, "exponent": pow_grad_exponent},
    node="PowBackward1",
    **pow_facts,
)
pow_scalar_op = pointwise(
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    POW,
    out="Scalar_out",
    derivative=pow_grad_exponent,
    node="PowBackward2",
    **pow_facts,
)
pow = public(pow_tensor_op, pow_op, pow_scalar_op, doc="Returns each element to the power of `exponent`.")
square = public(
    with_arguments("square(Tensor self) -> Tensor", pow_op, 2, inplace=True, out="out"),
    doc="Returns the square of each element.",
)


@pow_scalar_op.check
def check_bools(self, exponent):
    if result_type(self, exponent) is dtypes.bool:
        raise not_implemented("pow", dtypes.bool)


@pow_op.check_numbers
def check_pow(self, exponent):
    if isinstance(exponent, int) and self._dtype.category == dtypes.INTEGER:
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        storable(exponent, self._dtype)


# --- maximum, minimum, clamp ---------------------------------------------------------------------------------------


def halved_at_ties(grad: Tensor, self: Tensor, other: Tensor, wins: Tensor) -> Tensor:
    """The gradient where an operand wins, half of it where both are equal."""
    return grad * wins + grad * (self == other) / 2


@binary(
    "maximum",
    inplace=False,
    core=True,
    refuses={COMPLEX: RuntimeError("maximum not implemented for complex tensors.")},
    derivative={
        "self": lambda grad, self, other: halved_at_ties(grad, self, other, self > other),
        "other": lambda grad, self, other: halved_at_ties(grad, self, other, other > self),
    },
)
def maximum(self, other):
    """Returns the larger of each pair of elements; NaN where one is."""
    return self if self > other or self != self else other  # NaN wins from either side


@binary(
    "minimum",
    inplace=False,
    core=True,
    refuses={COMPLEX: RuntimeError("minimum not implemented for complex tensors.")},
    derivative={
        "self": lambda grad, self, other: halved_at_ties(grad, self, other, self < other),
        "other": lambda grad, self, other: halved_at_ties(grad, self, other, other < self),
    },
)
def minimum(self, other):
    """Returns the smaller of each pair of elements; NaN where one is."""
    return self if self < other or self != self else other


# Complex numbers are neither above a bound nor below.
NO_CLAMP = {COMPLEX: NotImplementedError("clamp is not supported for complex types")}


def clamp_both(self, min, max):
    above = min if self < min else self
    return max if above > max else above


def clamp_below(self, min):
    return min if self < min else self


def clamp_above(self, max):
    return max if self > max else self


def inside(self: Tensor, min: Any, max: Any) -> Any:
    """Finds the elements that clamping does not change, the borders included."""
    if min is None:
        return self <= max
    return self >= min if max is None else (self >= min).logical_and_(self <= max)


def clamp_gradient(grad: Tensor, self: Tensor, min: Any, max: Any) -> Tensor:
    zero = zero_of(grad)  # before the comparison, as a mode sees it in PyTorch
    return where_op.functional(inside(self, min, max), grad, zero)


bounded = partial(pointwise, inplace=True, out="out", refuses=NO_CLAMP)
clamp_op = bounded(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    clamp_both,
    core=True,
    exact_out=True,
    derivative=clamp_gradient,
    node="ClampBackward1",
)
clamp_op.scalar(clamp_below, when={"max": None})
clamp_op.scalar(clamp_above, when={"min": None})
clamp_min_op = bounded(
    "clamp_min(Tensor self, Scalar min) -> Tensor",
    clamp_below,
    derivative=lambda grad, self, min: clamp_gradient(grad, self, min, None),
)
clamp_max_op = bounded(
    "clamp_max(Tensor self, Scalar max) -> Tensor",
    clamp_above,
    derivative=lambda grad, self, max: clamp_gradient(grad, self, None, max),
)


@clamp_op.check
def check_clamp(self, min, max):
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")


@clamp_op.check_numbers
@clamp_min_op.check_numbers
@clamp_max_op.check_numbers
def check_bounds(self, *bounds):
    """Raises RuntimeError for a bound that an integer dtype cannot hold."""
    if self._dtype.category == dtypes.INTEGER:
        for bound in bounds:
            if type(bound) is int:
                storable(bound, self._dtype)


# --- a number for a tensor -----------------------------------------------------------------------------------------
#
# No Python call ends in a `Scalar` overload here, since `x + 1` hands the number to add.Tensor; but programs that were
# written in Core ATen call them, and so do backends. Each is the operator for tensors with a number in place of one.

number_form = partial(with_number, core=True, late_out=True)
add_scalar_op = number_form(
    add_op,
    "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    derivative=passed_on,
    node="AddBackward1",
)
sub_scalar_op = number_form(
    sub_op,
    "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    derivative=passed_on,
    node="SubBackward1",
)
mul_scalar_op: Any = number_form(
    mul_op,
    "mul.Scalar(Tensor self, Scalar other) -> Tensor",
    derivative=lambda grad, other: mul_scalar_op.functional(grad, other),
    node="MulBackward1",
    forward="linear",
)
div_scalar_op: Any = number_form(
    div_op,
    "div.Scalar(Tensor self, Scalar other) -> Tensor",
    derivative=lambda grad, other: div_scalar_op.functional(grad, other),
    node="DivBackward1",
    forward="linear",
)
div_scalar_mode_op = number_form(
    div_mode_op,
    "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
    refuses={COMPLEX: ""},
    derivative=lambda grad, other, rounding_mode: grad / other if rounding_mode is None else grad * 0,
    node="DivBackward3",
)

# --- tensors for bounds ----------------------------------------------------------------------------------------------


def at_least(self, min):
    return self if self >= min or self != self else min  # NaN wins from either side


def at_most(self, max):
    return self if self <= max or self != self else max


def between(self, min, max):
    """An upper bound below the lower one wins."""
    above = self if self >= min or self != self else min
    return above if above <= max or above != above else max


def clamp_self_gradient(grad: Any, self: Any, min: Any, max: Any) -> Any:
    """It passes where clamping changes nothing, the borders included."""
    passes = self <= max if min is None else self >= min
    if min is not None and max is not None:
        passes = passes & (self <= max)
    return grad.masked_fill(~passes, 0)


def clamp_min_gradient(grad: Any, self: Any, min: Any, max: Any) -> Any:
    counts = self < min if max is None else (self < min) & (min < max)
    return grad.masked_fill(~counts, 0)


def clamp_max_gradient(grad: Any, self: Any, min: Any, max: Any) -> Any:
    counts = self > max if min is None else (self > max) | (max < min)
    return grad.masked_fill(~counts, 0)


clamp_tensor_op = pointwise(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    between,
    inplace=True,
    out="Tensor_out",
    core=True,
    refuses={"bool": "clamp_cpu"} | NO_CLAMP,
    derivative={"self": clamp_self_gradient, "min": clamp_min_gradient, "max": clamp_max_gradient},
    doc="An upper bound below the lower one wins.",
)
clamp_tensor_op.scalar(at_least, when={"max": None})
clamp_tensor_op.scalar(at_most, when={"min": None})
clamp_tensor_op.check(check_clamp)
clamp_min_tensor_op = pointwise(
    "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
    at_least,
    inplace=True,
    out="Tensor_out",
    refuses={COMPLEX: "maximum_cpu"},
    derivative={
        "self": lambda grad, self, min: grad.masked_fill(self < min, 0),
        "min": lambda grad, self, min: grad.masked_fill(self >= min, 0),
    },
    node="ClampMinBackward1",
)
clamp_max_tensor_op = pointwise(
    "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
    at_most,
    inplace=True,
    out="Tensor_out",
    refuses={COMPLEX: "minimum_cpu"},
    derivative={
        "self": lambda grad, self, max: grad.masked_fill(self > max, 0),
        "max": lambda grad, self, max: grad.masked_fill(self <= max, 0),
    },
    node="ClampMaxBackward1",
)
clamp = public(clamp_tensor_op, clamp_op, doc="Returns each element, at least `min` and at most `max`.")
clamp_min = public(clamp_min_tensor_op, clamp_min_op, doc="Returns each element, at least `min`.")
clamp_max = public(clamp_max_tensor_op, clamp_max_op, doc="Returns each element, at most `max`.")


# --- two numbers: `add(1, 2)` is a tensor -----------------------------------------------------------------------------


def of_two_numbers(op: Any) -> Any:
    """A kernel for calls without tensors: the first number becomes one."""

    def numbers(self: Any, *rest: Any) -> Tensor:
        return call(op.functional, [ops.aten.scalar_tensor.default(self, dtype=result_type(self)), *rest])

    return op.kernel("Undefined", dispatches=True)(numbers)


for _op in (add_op, sub_op, mul_op, div_op, div_mode_op, floor_divide.op):
    of_two_numbers(_op)
