"""Softmax and log-softmax, with derivatives that are operators themselves, so that second derivatives follow."""

from __future__ import annotations

from typing import Any

from redispatch import kernels
from redispatch.dispatch import call, ops
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.tensor import Tensor, strided, wrap_dim
from redispatch.kernels.cpu.softmax import Softmax

from ..declare.declare import Operator
from ..declare.plan import Run
from ..declare.planned import Planned
from ..declare.public import public
from ..declare.structured import Meta, not_implemented

BACKWARD = "(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor"
FACTS: dict[str, Any] = {"refuses": "whole complex"}
softmax_data_op = Planned("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", out="out", core=True, **FACTS)
log_softmax_data_op = Planned(
    "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", out="out", core=True, **FACTS
)
softmax_backward_op = Planned(f"_softmax_backward_data{BACKWARD}", late_out=("out", "grad_input"), **FACTS)
log_softmax_backward_op = Planned(f"_log_softmax_backward_data{BACKWARD}", **FACTS)
softmax_op = Operator("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", late_out=True, **FACTS)
log_softmax_op = Operator(
    "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", late_out=True, **FACTS
)


def family(kernel: Softmax, data_op: Planned, backward_op: Planned, op: Operator) -> None:
    """Declares the operator that computes, its backward and the public one, which may convert before."""

    def refuse(kind: str, x: Tensor, dim: int) -> None:
        """Raises NotImplementedError for a dtype that is not floating."""
        last = wrap_dim(dim, len(x._shape)) == max(len(x._shape), 1) - 1
        if not x._dtype.is_floating_point and x._shape.numel():
            raise not_implemented(f"{kernel.name}_{kind}{'lastdim_' if last else ''}kernel_impl", x._dtype)

    @data_op.meta
    def forward_meta(self: Tensor, dim: int, half_to_float: bool) -> Meta:
        if half_to_float:
            raise RuntimeError(f"{kernel.name} with half to float conversion is not supported on CPU")
        refuse("", self, dim)
        return Meta(self._shape, self._dtype, self._device)

    @data_op.loop
    def forward_loop(out: Tensor, self: Tensor, dim: int, half_to_float: bool) -> Run:
        return kernel.ready(out._operand, self._operand, wrap_dim(dim, len(self._shape)))

    data_op.derivative(self=lambda grad, result, dim, self_dtype: backward_op.functional(grad, result, dim, self_dtype))

    @backward_op.meta
    def backward_meta(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Meta:
        refuse("backward_", output, dim)
        if grad_output._shape != output._shape or grad_output._dtype is not output._dtype:
            raise RuntimeError(
                f"the gradient of a softmax must look like its result, but got {grad_output._summary()} for "
                f"{output._summary()}"
            )
        return Meta(output._shape, input_dtype, output._device)

    @backward_op.loop
    def backward_loop(out: Tensor, grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Run:
        axis = wrap_dim(dim, len(output._shape))
        return kernel.ready_backward(out._operand, grad_output._operand, output._operand, axis)

    @op.implicit
    @inline
    def in_dtype(self: Tensor, dim: int, dtype: Any) -> Tensor:
        x = self if dtype is None or dtype is self._dtype else converted(self, dtype)
        return call(data_op.functional, [x, dim, False])

    op.autocast(cuda="fp32_set_opt_dtype")


def converted(self: Tensor, dtype: Any) -> Tensor:
    return ops.aten._to_copy.default(self, dtype=dtype, layout=strided, device=self._device)


family(kernels.SOFTMAX, softmax_data_op, softmax_backward_op, softmax_op)
family(kernels.LOG_SOFTMAX, log_softmax_data_op, log_softmax_backward_op, log_softmax_op)
softmax = public(softmax_op, doc="Returns exp(x) divided by its sum along `dim`.")
log_softmax = public(log_softmax_op, doc="Returns x - log(sum of exp(x)) along `dim`, the logarithm of the softmax.")

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
