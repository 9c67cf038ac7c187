"""The overloads `Scalar` of arithmetic, and bounds that are tensors: add.Scalar, mul.Scalar, clamp.Tensor.

No Python call ends in a `Scalar` overload here, since `x + 1` hands the number to add.Tensor; but programs that were
written in Core ATen call them, and so do backends. Each is the operator for tensors with a number in the place of one.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor, result_type
from redispatch.kernels import Elementwise, broadcast_shapes, output_strides

from ..declare.operator import passed_on, pointwise, with_number
from ..declare.pointwise import COMPLEX
from ..declare.public import public
from ..declare.structured import Meta, Structured, common_device, not_implemented
from .arithmetic import add_op, clamp_max_op, clamp_min_op, clamp_op, div_mode_op, mul_op, sub_op

# --- a number for a tensor -------------------------------------------------------------------------------------------

add_scalar_op = with_number(
    add_op,
    "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    core=True,
    derivative=passed_on,
    node="AddBackward1",
)
sub_scalar_op = with_number(
    sub_op,
    "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    core=True,
    derivative=passed_on,
    node="SubBackward1",
)
mul_scalar_op = with_number(
    mul_op,
    "mul.Scalar(Tensor self, Scalar other) -> Tensor",
    core=True,
    derivative=lambda grad, other: grad * other,
    node="MulBackward1",
    forward="linear",
)
div_scalar_mode_op = with_number(
    div_mode_op,
    "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
    core=True,
    refuses={COMPLEX: ""},
    derivative=lambda grad, other, rounding_mode: grad / other if rounding_mode is None else grad * 0,
    node="DivBackward3",
)

# --- tensors for bounds ----------------------------------------------------------------------------------------------

clamp_tensor_op = Structured(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    inplace=True,
    out="Tensor_out",
    core=True,
    tags=("pointwise",),
    refuses=("bool", *COMPLEX),
)
clamp_tensor_op.elementwise = True


@clamp_tensor_op.meta
def clamp_tensor_meta(self: Tensor, min: Any, max: Any) -> Meta:
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    tensors = [x for x in (self, min, max) if x is not None]
    kind = result_type(*tensors)
    if kind.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    if kind.name == "bool":
        raise not_implemented("clamp_cpu", kind)
    shape = broadcast_shapes(*(x._shape for x in tensors))
    strides = output_strides(shape, tuple((x._shape, x._stride) for x in tensors))
    return Meta(shape, kind, common_device(*tensors), strides)


def at_least(x, low):
    return x if x >= low or x != x else low  # NaN wins from either side


def at_most(x, high):
    return x if x <= high or x != x else high


def between(x, low, high):
    above = x if x >= low or x != x else low
    return above if above <= high or above != above else high


AT_LEAST = Elementwise("clamp_min", at_least)
AT_MOST = Elementwise("clamp_max", at_most)
BETWEEN = Elementwise("clamp", between)


@clamp_tensor_op.body
def clamp_tensor_body(out: Tensor, self: Tensor, min: Any, max: Any) -> None:
    """An upper bound below the lower one wins."""
    loop = AT_MOST if min is None else AT_LEAST if max is None else BETWEEN
    bounds = [x for x in (min, max) if x is not None]
    dtype = result_type(self, *bounds).name
    loop.run(out._operand, self._operand, *(x._operand for x in bounds), dtype=dtype)


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


clamp_tensor_op.derivative(self=clamp_self_gradient, min=clamp_min_gradient, max=clamp_max_gradient)


def clamp_min_elements(self, min):
    return self if self >= min or self != self else min


def clamp_max_elements(self, max):
    return self if self <= max or self != self else max


clamp_min_tensor_op = pointwise(
    "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
    clamp_min_elements,
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
    clamp_max_elements,
    inplace=True,
    out="Tensor_out",
    refuses={COMPLEX: "minimum_cpu"},
    derivative={
        "self": lambda grad, self, max: grad.masked_fill(self > max, 0),
        "max": lambda grad, self, max: grad.masked_fill(self <= max, 0),
    },
    node="ClampMaxBackward1",
)
clamp = public(clamp_op, clamp_tensor_op, doc="Returns each element, at least `min` and at most `max`.")
clamp_min = public(clamp_min_op, clamp_min_tensor_op, doc="Returns each element, at least `min`.")
clamp_max = public(clamp_max_op, clamp_max_tensor_op, doc="Returns each element, at most `max`.")
