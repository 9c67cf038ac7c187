"""Activations made of pieces: straight lines that bend (leaky_relu, hardtanh, hardswish, ...) and elu's exponential.

Where one has a slope that is an operator of PyTorch, it has one here: `<name>_backward`. Read next: activations.py.
"""

from __future__ import annotations

from typing import Any

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels import Elementwise

from ..declare.declare import Operator
from ..declare.pointwise import COMPLEX, WHOLE, Pointwise, pointwise
from ..declare.public import public
from ..declare.structured import c_name
from .activations import floating_only, threshold_backward_op
from .comparison import where_op


def floats_only(op: Pointwise, kernel: str, position: int = 0) -> None:
    """The operator refuses what is not floating, under the name of PyTorch's kernel."""
    refuse = floating_only(kernel)
    op.check(lambda *args: refuse(args[position]))


# --- elu, celu, selu -------------------------------------------------------------------------------------------------

elu_op = pointwise(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", inplace=True, out="out", cost=8
)
elu_backward_op = pointwise(
    "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, "
    "Tensor self_or_result) -> Tensor",
    unsupported=dict.fromkeys((*WHOLE, *COMPLEX), "elu_backward_cpu"),
    cost=8,
)
floats_only(elu_op, "elu_cpu")


@elu_op.scalar
def elu_element(self, alpha, scale, input_scale):
    """scale * alpha * (exp(input_scale x) - 1) below 0, scale * x above."""
    return kernels.expm1(self * input_scale) * (alpha * scale) if self <= 0 else self * scale


@elu_backward_op.scalar(when={"is_result": True})
def elu_slope_of_result(grad_output, alpha, scale, input_scale, self_or_result):
    below = grad_output * input_scale * (self_or_result + alpha * scale)
    return below if self_or_result <= 0 else grad_output * scale


@elu_backward_op.scalar(when={"is_result": False})
def elu_slope(grad_output, alpha, scale, input_scale, self_or_result):
    below = grad_output * input_scale * (alpha * scale) * kernels.exp(self_or_result * input_scale)
    return below if self_or_result <= 0 else grad_output * scale


@elu_backward_op.check
def check_elu_backward(
    grad_output: Tensor, alpha: Any, scale: Any, input_scale: Any, is_result: bool, self_or_result: Tensor
) -> None:
    if is_result and alpha < 0:
        raise RuntimeError(
            "In-place elu backward calculation is triggered with a negative slope which is not supported. This is "
            "caused by calling in-place forward function with a negative slope, please call out-of-place version "
            "instead."
        )


def elu_bend(
    grad: Any, grad_output: Any, alpha: Any, scale: Any, input_scale: Any, is_result: bool, self_or_result: Any
) -> Any:
    """How the slope changes: below 0 only."""
    if is_result:
        bend = grad * grad_output * input_scale
    else:
        bend = grad * grad_output * (input_scale**2 * alpha * scale) * (self_or_result * input_scale).exp()
    return bend.masked_fill(self_or_result > 0, 0)


def elu_gradient(grad: Any, self: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    return elu_backward_op.functional(grad, alpha, scale, input_scale, False, self)


elu_backward_op.derivative(
    grad_output=lambda grad, alpha, scale, input_scale, is_result, self_or_result: elu_backward_op.functional(
        grad, alpha, scale, input_scale, is_result, self_or_result
    ),
    self_or_result=elu_bend,
)
elu_op.derivative(self=elu_gradient)
elu = public(elu_op, method=False, module="nn")

celu_op = Operator("celu(Tensor self, Scalar alpha=1.) -> Tensor", inplace=True, tags=("pointwise",))


def check_celu(alpha: Any) -> None:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")


@celu_op.explicit
def celu_kernel(self: Tensor, alpha: Any) -> Tensor:
    """elu whose exponential part is stretched so that the slope is 1 at 0 for every alpha."""
    check_celu(alpha)
    return elu_op.functional(self, alpha, 1.0, 1.0 / alpha)


@celu_op.kernel_inplace("CompositeExplicitAutograd")
def celu_inplace(self: Tensor, alpha: Any) -> Tensor:
    check_celu(alpha)
    return elu_op.inplace(self, alpha, 1.0, 1.0 / alpha)  # type: ignore[misc]  # it has an in-place form


celu_op.derivative(self=lambda grad, self, alpha: elu_gradient(grad, self, alpha, 1.0, 1.0 / alpha))
celu = public(celu_op, method=False)

selu_op = Operator("selu(Tensor self) -> Tensor", inplace=True, tags=("pointwise",))
# The fixed point of mean 0 and variance 1: Klambauer et al., Self-Normalizing Neural Networks, 2017.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@selu_op.implicit
def selu_composite(self: Tensor) -> Tensor:
    return elu_op.functional(self, SELU_ALPHA, SELU_SCALE)


@selu_op.kernel_inplace("CompositeImplicitAutograd")
def selu_inplace(self: Tensor) -> Tensor:
    return elu_op.inplace(self, SELU_ALPHA, SELU_SCALE)  # type: ignore[misc]  # this operator has the form


selu = public(selu_op, method=False)

# --- leaky_relu, threshold, prelu ------------------------------------------------------------------------------------

leaky_relu_op = pointwise("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", inplace=True, out="out")
leaky_relu_backward_op = pointwise(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
    unsupported=dict.fromkeys((*WHOLE, *COMPLEX), "leaky_relu_backward_cpu"),
)
floats_only(leaky_relu_op, "leaky_relu_cpu")


@leaky_relu_op.scalar
def leaky_relu_element(self, negative_slope):
    return self if self > 0 else self * negative_slope


@leaky_relu_backward_op.scalar
def leaky_relu_slope(grad_output, self, negative_slope):
    return grad_output if self > 0 else grad_output * negative_slope


leaky_relu_backward_op.derivative(
    grad_output=lambda grad, self, negative_slope: leaky_relu_backward_op.functional(grad, self, negative_slope, False),
    self=lambda grad: grad * 0,
)
leaky_relu_op.derivative(
    self=lambda grad, self, negative_slope: leaky_relu_backward_op.functional(grad, self, negative_slope, False)
)
leaky_relu = public(leaky_relu_op, method=False, module="nn")

threshold_op = pointwise(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    inplace=True,
    out="out",
    unsupported=dict.fromkeys(("bool", *COMPLEX), "threshold_cpu"),
)


@threshold_op.scalar
def threshold_element(self, threshold, value):
    return value if self <= threshold else self  # NaN passes


threshold_op.derivative(self=lambda grad, self, threshold: threshold_backward_op.functional(grad, self, threshold))
threshold = public(threshold_op, method=False)

prelu_kernel_op = pointwise("_prelu_kernel(Tensor self, Tensor weight) -> Tensor")
floats_only(prelu_kernel_op, "prelu_cpu")


@prelu_kernel_op.scalar
def prelu_element(self, weight):
    return self if self > 0 else weight * self


prelu_backward_op = Operator(
    "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)"
)


def prelu_slopes(grad_output, self, weight):
    """By the input, and by the weight."""
    return (grad_output, 0.0) if self > 0 else (grad_output * weight, grad_output * self)


PRELU_SLOPES = Elementwise("prelu_backward", prelu_slopes, outputs=2)


@prelu_backward_op.kernel("CPU", "Meta")
def prelu_backward(grad_output: Tensor, self: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Both gradients in the shape of the operands together: what the weight was expanded by is summed afterwards."""
    floating_only("prelu_backward_cpu")(self)
    meta = prelu_kernel_op.meta_function(self, weight)
    gradients = meta.allocate(), meta.allocate()
    if self._device.type != "meta":
        operands = grad_output._operand, self._operand, weight._operand
        PRELU_SLOPES.run(tuple(gradient._operand for gradient in gradients), *operands, dtype=meta.dtype.name)
    return gradients


def prelu_second(grads: Any, grad_output: Tensor, self: Tensor, weight: Tensor) -> tuple[Any, Any, Any]:
    """Of g and g w to the left of 0, g x by the weight: what each of g, x and w takes part in."""
    by_self, by_weight = (self.new_zeros(self._shape) if grad is None else grad for grad in grads)
    return (
        where_op.functional(self > 0, by_self, by_self * weight + by_weight * self),
        (by_weight * grad_output).masked_fill(self > 0, 0),
        (by_self * grad_output).masked_fill(self > 0, 0),
    )


prelu_backward_op.derivative((("grad_output", "self", "weight"), prelu_second))
prelu_kernel_op.derivative(
    (("self", "weight"), lambda grad, self, weight: prelu_backward_op.functional(grad, self, weight))
)

prelu_op = Operator("prelu(Tensor self, Tensor weight) -> Tensor")


@prelu_op.implicit
def prelu_composite(self: Any, weight: Any) -> Tensor:
    """leaky_relu with a slope to learn: one for all, or one for each channel, the second dimension."""
    if self._dtype is not weight._dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {c_name(self._dtype)} and {c_name(weight._dtype)}"
        )
    if weight.numel() != 1:
        if not self._shape:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = self._shape[1] if len(self._shape) > 1 else 1
        if channels != weight.numel():
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.numel()} and channel size = {channels}."
            )
    if len(weight._shape) > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {len(weight._shape)}"
        )
    if len(weight._shape) != len(self._shape):
        shape = [1] * len(self._shape)
        if len(shape) > 1:
            shape[1] = weight.numel()
        weight = weight.view(shape)
    return prelu_kernel_op.functional(self, weight)


prelu = public(prelu_op)

# --- hardtanh, relu6, hardsigmoid, hardswish -------------------------------------------------------------------------

hardtanh_op = pointwise("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", inplace=True, out="out")
hardtanh_backward_op = pointwise(
    "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor"
)


@hardtanh_op.check
def check_hardtanh(self: Tensor, min_val: Any, max_val: Any) -> None:
    if self._dtype.name == "bool":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if self._dtype.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")


@hardtanh_op.check_numbers
def check_limits(self: Tensor, min_val: Any, max_val: Any) -> None:
    if self._dtype.name == "uint8" and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")


@hardtanh_op.scalar
def hardtanh_element(self, min_val, max_val):
    above = min_val if self < min_val else self
    return max_val if above > max_val else above


floats_only(hardtanh_backward_op, "hardshrink_backward_cpu")


@hardtanh_backward_op.scalar
def hardtanh_slope(grad_output, self, min_val, max_val):
    return 0 if self <= min_val or self >= max_val else grad_output


hardtanh_backward_op.derivative(
    grad_output=lambda grad, self, min_val, max_val: hardtanh_backward_op.functional(grad, self, min_val, max_val),
    self=lambda grad: grad * 0,
)
hardtanh_op.derivative(
    self=lambda grad, self, min_val, max_val: hardtanh_backward_op.functional(grad, self, min_val, max_val)
)
hardtanh = public(hardtanh_op, method=False, module="nn")

relu6_op = Operator("relu6(Tensor self) -> Tensor", inplace=True)


@relu6_op.implicit
def relu6_composite(self: Tensor) -> Tensor:
    return hardtanh_op.functional(self, 0, 6)


@relu6_op.kernel_inplace("CompositeImplicitAutograd")
def relu6_inplace(self: Tensor) -> Tensor:
    return hardtanh_op.inplace(self, 0, 6)  # type: ignore[misc]  # this operator has the form


relu6 = public(relu6_op, method=False, module="nn")

hardsigmoid_op = pointwise("hardsigmoid(Tensor self) -> Tensor", inplace=True, out="out")
hardsigmoid_backward_op = pointwise(
    "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
    unsupported=dict.fromkeys((*WHOLE, *COMPLEX), "hardsigmoid_backward"),
)
floats_only(hardsigmoid_op, "hardsigmoid_cpu")


@hardsigmoid_op.scalar
def hardsigmoid_element(self):
    """(x + 3) / 6, but no less than 0 and no more than 1."""
    above = 0.0 if self + 3 < 0 else self + 3
    return (6.0 if above > 6 else above) / 6


@hardsigmoid_backward_op.scalar
def hardsigmoid_slope(grad_output, self):
    return grad_output / 6 if self > -3 and self < 3 else 0.0


hardsigmoid_backward_op.derivative(
    grad_output=lambda grad, self: hardsigmoid_backward_op.functional(grad, self), self=lambda grad: grad * 0
)
hardsigmoid_op.derivative(self=lambda grad, self: hardsigmoid_backward_op.functional(grad, self))
hardsigmoid = public(hardsigmoid_op, method=False, module="nn")

hardswish_op = pointwise("hardswish(Tensor self) -> Tensor", inplace=True, out="out")
hardswish_backward_op = pointwise(
    "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
    unsupported=dict.fromkeys((*WHOLE, *COMPLEX), "hardswish_backward_cpu"),
)
floats_only(hardswish_op, "hardswish_cpu")


@hardswish_op.scalar
def hardswish_element(self):
    """x times hardsigmoid(x)."""
    above = 0.0 if self + 3 < 0 else self + 3
    return self * (6.0 if above > 6 else above) / 6


@hardswish_backward_op.scalar
def hardswish_slope(grad_output, self):
    return 0.0 if self <= -3 else grad_output * (self / 3 + 0.5) if self < 3 else grad_output


hardswish_backward_op.derivative(
    grad_output=lambda grad, self: hardswish_backward_op.functional(grad, self),
    self=lambda grad, grad_output, self: (grad * grad_output / 3).masked_fill((self <= -3) | (self >= 3), 0),
)
hardswish_op.derivative(self=lambda grad, self: hardswish_backward_op.functional(grad, self))
hardswish = public(hardswish_op, method=False, module="nn")

# --- hardshrink, softshrink ------------------------------------------------------------------------------------------

hardshrink_op = pointwise("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", out="out")
softshrink_op = pointwise("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", out="out")
hardshrink_backward_op = pointwise(
    "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
    unsupported=dict.fromkeys((*WHOLE, *COMPLEX), "shrink_backward_cpu"),
)
softshrink_backward_op = pointwise(
    "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
    unsupported=dict.fromkeys((*WHOLE, *COMPLEX), "shrink_backward_cpu"),
)
floats_only(hardshrink_op, "hardshrink_cpu")
floats_only(softshrink_op, "softshrink_check")


@softshrink_op.check_numbers
def check_lambda(self: Tensor, lambd: Any) -> None:
    largest = {"float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308, "float16": 65504.0}.get(
        self._dtype.name, 3.3895313892515355e38
    )
    if not 0 <= lambd <= largest:
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype {self._dtype.tensor_name}, but found {lambd:g}"
        )


@hardshrink_op.scalar
def hardshrink_element(self, lambd):
    return self * 0 if self >= -lambd and self <= lambd else self


@softshrink_op.scalar
def softshrink_element(self, lambd):
    return self - lambd if self > lambd else self + lambd if self < -lambd else self * 0  # NaN stays NaN


@hardshrink_backward_op.scalar
def hardshrink_slope(grad_out, self, lambd):
    return 0 if self >= -lambd and self <= lambd else grad_out


@softshrink_backward_op.scalar
def softshrink_slope(grad_output, self, lambd):
    return 0 if self >= -lambd and self <= lambd else grad_output


hardshrink_backward_op.derivative(
    grad_out=lambda grad, self, lambd: hardshrink_backward_op.functional(grad, self, lambd),
    self=lambda grad: grad * 0,
)
softshrink_backward_op.derivative(
    grad_output=lambda grad, self, lambd: softshrink_backward_op.functional(grad, self, lambd),
    self=lambda grad: grad * 0,
)
hardshrink_op.derivative(self=lambda grad, self, lambd: hardshrink_backward_op.functional(grad, self, lambd))
softshrink_op.derivative(self=lambda grad, self, lambd: softshrink_backward_op.functional(grad, self, lambd))
hardshrink = public(hardshrink_op)
softshrink = public(softshrink_op, method=False, module="nn")
