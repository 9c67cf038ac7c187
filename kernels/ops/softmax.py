"""Softmax and log-softmax, with derivatives that are operators themselves, so that second derivatives follow."""

from __future__ import annotations

from typing import Any

from redispatch import kernels
from redispatch.dispatch import call, ops
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.tensor import Tensor, strided, wrap_dim

from ..declare.declare import Operator
from ..declare.plan import Run
from ..declare.planned import Planned
from ..declare.public import public
from ..declare.structured import Meta, not_implemented

# --- forward ---------------------------------------------------------------------------------------------------------

softmax_data_op = Planned("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", out="out")
log_softmax_data_op = Planned("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", out="out")


def forward_meta(name: str, self: Tensor, dim: int, half_to_float: bool) -> Meta:
    if half_to_float:
        raise RuntimeError(f"{name} with half to float conversion is not supported on CPU")
    wrapped = wrap_dim(dim, len(self._shape))
    if not self._dtype.is_floating_point and self._shape.numel():
        last = "lastdim_" if wrapped == max(len(self._shape), 1) - 1 else ""
        raise not_implemented(f"{name}_{last}kernel_impl", self._dtype)
    return Meta(self._shape, self._dtype, self._device)


@softmax_data_op.meta
def softmax_meta(self: Tensor, dim: int, half_to_float: bool) -> Meta:
    return forward_meta("softmax", self, dim, half_to_float)


@log_softmax_data_op.meta
def log_softmax_meta(self: Tensor, dim: int, half_to_float: bool) -> Meta:
    return forward_meta("log_softmax", self, dim, half_to_float)


@softmax_data_op.loop
def softmax_loop(out: Tensor, self: Tensor, dim: int, half_to_float: bool) -> Run:
    return kernels.ready_softmax(out._operand, self._operand, wrap_dim(dim, len(self._shape)))


@log_softmax_data_op.loop
def log_softmax_loop(out: Tensor, self: Tensor, dim: int, half_to_float: bool) -> Run:
    return kernels.ready_log_softmax(out._operand, self._operand, wrap_dim(dim, len(self._shape)))


softmax_data_op.derivative(
    self=lambda grad, result, dim, self_dtype: softmax_backward_op.functional(grad, result, dim, self_dtype)
)
log_softmax_data_op.derivative(
    self=lambda grad, result, dim, self_dtype: log_softmax_backward_op.functional(grad, result, dim, self_dtype)
)

# --- backward --------------------------------------------------------------------------------------------------------

BACKWARD = "(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor"
softmax_backward_op: Planned = Planned(f"_softmax_backward_data{BACKWARD}")
log_softmax_backward_op: Planned = Planned(f"_log_softmax_backward_data{BACKWARD}")


@softmax_backward_op.meta
def softmax_backward_meta(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Meta:
    return backward_meta("softmax", grad_output, output, dim, input_dtype)


@log_softmax_backward_op.meta
def log_softmax_backward_meta(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Meta:
    return backward_meta("log_softmax", grad_output, output, dim, input_dtype)


def backward_meta(name: str, grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Meta:
    wrapped = wrap_dim(dim, len(grad_output._shape))
    if not output._dtype.is_floating_point and output._shape.numel():
        last = wrapped == max(len(output._shape), 1) - 1
        raise not_implemented(f"{name}_backward_{'lastdim_' if last else ''}kernel_impl", output._dtype)
    if grad_output._shape != output._shape or grad_output._dtype is not output._dtype:
        raise RuntimeError(
            f"the gradient of a softmax must look like its result, but got {grad_output._summary()} for "
            f"{output._summary()}"
        )
    return Meta(output._shape, input_dtype, output._device)


@softmax_backward_op.loop
def softmax_backward_loop(out: Tensor, grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Run:
    d = wrap_dim(dim, len(output._shape))
    return kernels.ready_softmax_backward(out._operand, grad_output._operand, output._operand, d)


@log_softmax_backward_op.loop
def log_softmax_backward_loop(out: Tensor, grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Run:
    d = wrap_dim(dim, len(output._shape))
    return kernels.ready_log_softmax_backward(out._operand, grad_output._operand, output._operand, d)


# The backward of softmax is y * (g - sum(g * y)), of log-softmax g - exp(y) * sum(g), for y the result.
softmax_backward_op.derivative(
    grad_output=lambda grad, output, dim, input_dtype: softmax_backward_op.functional(grad, output, dim, input_dtype),
    output=lambda grad, grad_output, output, dim: (
        grad * (grad_output - (grad_output * output).sum(dim, True)) - grad_output * (grad * output).sum(dim, True)
    ),
    node="SoftmaxBackwardDataBackward0",
)
log_softmax_backward_op.derivative(
    grad_output=lambda grad, output, dim: grad - (grad * output.exp()).sum(dim, True),
    output=lambda grad, grad_output, output, dim: -(grad * output.exp()) * grad_output.sum(dim, True),
    node="LogSoftmaxBackwardDataBackward0",
)

# --- the public operators --------------------------------------------------------------------------------------------

softmax_op = Operator("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
log_softmax_op = Operator("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")


@softmax_op.implicit
@inline
def softmax_composite(self: Tensor, dim: int, dtype: Any) -> Tensor:
    x = self if dtype is None or dtype is self._dtype else converted(self, dtype)
    return call(softmax_data_op.functional, [x, dim, False])


@log_softmax_op.implicit
@inline
def log_softmax_composite(self: Tensor, dim: int, dtype: Any) -> Tensor:
    x = self if dtype is None or dtype is self._dtype else converted(self, dtype)
    return call(log_softmax_data_op.functional, [x, dim, False])


def converted(self: Tensor, dtype: Any) -> Tensor:
    return ops.aten._to_copy.default(self, dtype=dtype, layout=strided, device=self._device)


softmax_op.autocast(cuda="fp32_set_opt_dtype")
log_softmax_op.autocast(cuda="fp32_set_opt_dtype")
softmax = public(softmax_op)
log_softmax = public(log_softmax_op)
