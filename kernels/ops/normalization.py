"""Layer normalisation: (x - mean) / sqrt(var + eps) over the last dimensions, times a weight, plus a bias; softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from redispatch import kernels
from redispatch.dispatch import STATE, call, ops
from redispatch.dispatch.autograd import pulled_back
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.tensor import Tensor, dtype, dtypes, empty, strided, wrap_dim
from redispatch.kernels.cpu.normalize import Softmax

from ..declare.declare import no_formula
from ..declare.operator import CUDA_FP32, CUDA_SET_DTYPE, composite, planned, planned_several
from ..declare.planned import Planned, on_dense
from ..declare.structured import Meta, not_implemented


def check_normalized(input: Tensor, normalized_shape: Sequence[int], weight: Any, bias: Any) -> None:
    """Raises RuntimeError where the input does not end in `normalized_shape`, or weight or bias have another shape."""
    if not normalized_shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, x in (("weight", weight), ("bias", bias)):
        if x is not None and list(x._shape) != list(normalized_shape):
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(x._shape)} "
                f"and normalized_shape = {list(normalized_shape)}"
            )
    if list(input._shape[-len(normalized_shape) :]) != list(normalized_shape):
        wanted = ", ".join(["*", *map(str, normalized_shape)])
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [{wanted}], but got input of "
            f"size{list(input._shape)}"
        )
    if not input._dtype.is_floating_point:
        raise NotImplementedError(f"\"LayerNormKernelImpl\" not implemented for '{input._dtype.tensor_name}'")


@planned_several(
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) "
    "-> (Tensor, Tensor, Tensor)",
    refuses="whole complex",
    core=True,
    autocast=CUDA_FP32,
    method=False,
    doc="Returns (result, mean, 1 / standard deviation) over the last dimensions.",
)
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """(result, mean, 1 / standard deviation); the last two keep the normalised dimensions as size 1."""
    check_normalized(input, normalized_shape, weight, bias)
    dims = normalized_dims(input, normalized_shape)
    kept = Meta(tuple(1 if d in dims else size for d, size in enumerate(input._shape)), input._dtype, input._device)
    return Meta(input._shape, input._dtype, input._device), kept, kept


@native_layer_norm.op.loop
def native_layer_norm_loop(outs, input, normalized_shape, weight, bias, eps):
    size = math.prod(normalized_shape)
    rows = input._shape.numel() // size if size else 0
    wide = dtypes.float64 if input._dtype is dtypes.float64 else dtypes.float32  # in which the kernel computes
    scale, shift = (x if x is None or computes_in(x._dtype) is wide else empty(x._shape, wide) for x in (weight, bias))
    metadata = (None if x is None else x._operand for x in (scale, shift))
    run = kernels.ready_layer_norm(input._operand, rows, size, eps, *metadata)
    wanted = [(x, like._dtype) for x, like in ((input, input), (weight, scale), (bias, shift)) if x is not None]
    return on_dense(run, len(outs), wanted)


def computes_in(dtype: dtype) -> dtype:
    """The dtype in which kernels compute with elements of a floating dtype."""
    return dtypes.float32 if dtype.itemsize == 2 else dtype


def normalized_dims(input: Any, normalized_shape: Sequence[int]) -> list[int]:
    ndim = len(input._shape)
    return list(range(ndim - len(normalized_shape), ndim))


@planned_several(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, "
    "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    refuses="whole complex",
    core=True,
    face=False,
    relies="native_layer_norm",
)
def native_layer_norm_backward_op(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    """The gradients of input, weight and bias, those that are asked for."""
    if not input._dtype.is_floating_point:
        raise not_implemented("LayerNormBackwardKernelImpl", input._dtype)
    shape = tuple(normalized_shape)
    affine = (Meta(shape, (input if x is None else x)._dtype, input._device) for x in (weight, bias))
    metas = Meta(input._shape, input._dtype, input._device), *affine
    return tuple(meta if wanted else None for meta, wanted in zip(metas, output_mask, strict=True))


@native_layer_norm_backward_op.loop
def native_layer_norm_backward_loop(outs, grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    kind, size = input._dtype, math.prod(normalized_shape)
    wide = computes_in(kind)
    scale = None if weight is None else weight._dtype if computes_in(weight._dtype) is wide else wide
    run = kernels.ready_layer_norm_backward(
        kind.name,
        input._shape.numel() // size if size else 0,
        size,
        None if scale is None else scale.name,
        [None if out is None else out._operand for out in outs],
    )
    inputs = [(x, kind) for x in (grad_out, input, mean, rstd)]
    if weight is not None and scale is not None:
        inputs.append((weight, scale))
    return on_dense(run, sum(out is not None for out in outs), inputs)


def gradients(
    grad: Any, standard: Any, rstd: Any, weight: Any, dims: list[int], moving: bool, wanted: Sequence[bool], over: Any
) -> tuple[Any, Any, Any]:
    """Returns the gradients of the input, the weight and the bias. `standard` is (x - mean) rstd; normalized over
    `dims`.

    With g the gradient of `standard`: rstd (g - mean(g) - standard mean(g standard)), where the two means are what
    reaches x through its mean and its deviation; without them where these are not x's own (`moving` false).
    `over`: what the gradients of weight and bias are sums over, which may be nothing.
    """
    of_input = of_weight = of_bias = None
    if wanted[0]:
        g = grad if weight is None else grad * weight
        if moving:
            g = g - g.mean(dims, True) - standard * (g * standard).mean(dims, True)
        of_input = g * rstd
    if wanted[1]:
        of_weight = (grad * standard).sum(over) if over else grad * standard
    if wanted[2]:
        of_bias = grad.sum(over) if over else grad
    return of_input, of_weight, of_bias


def layer_gradients(grad: Any, x: Any, dims: list[int], mean: Any, rstd: Any, weight: Any, wanted: Any) -> Any:
    return gradients(grad, (x - mean) * rstd, rstd, weight, dims, True, wanted, list(range(dims[0])))


@native_layer_norm.op.gradient("input", "weight", "bias", nondifferentiable=(1, 2))
def native_layer_norm_backward(grad, input, normalized_shape, result1, result2, weight, bias, eps, needs):
    """One operator; where the gradient is itself to be differentiated, mean and deviation are formed again for it."""
    wanted = list(needs)
    if not STATE.get().grad_enabled:
        return native_layer_norm_backward_op.functional(
            grad, input, list(normalized_shape), result1, result2, weight, bias, wanted
        )
    dims = normalized_dims(input, normalized_shape)
    mean = input.mean(dims, True)
    rstd = ((input - mean).square().mean(dims, True) + eps).rsqrt()
    return layer_gradients(grad, input, dims, mean, rstd, weight, wanted)


def second_gradients(grads, grad_out, input, normalized_shape, rstd, weight, output_mask, needs):
    """Returns the gradients of `layer_gradients`, where mean and deviation are the input's own, and move with it."""
    dims = normalized_dims(input, normalized_shape)

    def backward(grad_out: Any, input: Any, weight: Any) -> Any:
        mean = input.mean(dims, True)
        var = (input - mean).square().mean(dims, True)
        eps = (rstd.pow(-2) - var).detach()
        return layer_gradients(grad_out, input, dims, mean, (var + eps).rsqrt(), weight, output_mask)

    return pulled_back(backward, (grad_out, input, weight), grads, needs)


native_layer_norm_backward_op.derivative(
    (("grad_out", "input", "weight"), second_gradients),
    mean=no_formula("native_layer_norm_backward mean"),
    rstd=no_formula("native_layer_norm_backward rstd"),
    bias=lambda grads: None,
)


@composite(
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enable=True) -> Tensor",
    refuses="whole complex",
    autocast=CUDA_FP32,
    method=False,
)
@inline
def layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable):
    """Returns x less its mean over its standard deviation, both over the last dimensions, times `weight` plus
    `bias`."""
    return call(native_layer_norm.op.functional, [input, normalized_shape, weight, bias, eps])[0]


# --- softmax, log_softmax: their derivatives are operators, so that second derivatives follow -------------------------

FACTS: dict[str, Any] = {"refuses": "whole complex"}


def converted(self: Tensor, dtype: Any) -> Tensor:
    return ops.aten._to_copy.default(self, dtype=dtype, layout=strided, device=self._device)


def refuse(kernel: str, x: Tensor, dim: int) -> None:
    """Raises NotImplementedError for a dtype that is not floating."""
    last = wrap_dim(dim, len(x._shape)) == max(len(x._shape), 1) - 1
    if not x._dtype.is_floating_point and x._shape.numel():
        raise not_implemented(f"{kernel}_{'lastdim_' if last else ''}kernel_impl", x._dtype)


def nothing(*arrays: Any) -> None:
    """Fills what has no elements."""


def check_like_result(grad_output: Tensor, output: Tensor) -> None:
    if grad_output._shape != output._shape or grad_output._dtype is not output._dtype:
        raise RuntimeError(
            f"the gradient of a softmax must look like its result, but got {grad_output._summary()} for "
            f"{output._summary()}"
        )


def family(kernel: Softmax, node: str, second: Any, doc: str, **facts: Any) -> tuple[Any, Planned, Planned]:
    """Declares the public operator, which may convert before, the one that computes and that of its gradient.

    second: the derivative of the last one, by names of its tensors.
    """
    name = kernel.name

    @planned(
        f"_{name}(Tensor self, int dim, bool half_to_float) -> Tensor",
        out="out",
        core=True,
        derivative=lambda grad, result, dim, self_dtype: backward_op.functional(grad, result, dim, self_dtype),
        **FACTS,
    )
    def data_op(self, dim, half_to_float):
        if half_to_float:
            raise RuntimeError(f"{name} with half to float conversion is not supported on CPU")
        refuse(name, self, dim)
        return Meta(self._shape, self._dtype, self._device)

    @data_op.loop
    def loop(out, self, dim, half_to_float):
        if not out._shape.numel():  # of any dtype, for which there may be no loop
            return nothing
        return kernel.ready(out._operand, self._operand, wrap_dim(dim, len(self._shape)))

    @planned(
        f"_{name}_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
        derivative=second,
        node=node,
        **FACTS,
        **facts,
    )
    def backward_op(grad_output, output, dim, input_dtype):
        refuse(f"{name}_backward", output, dim)
        check_like_result(grad_output, output)
        return Meta(output._shape, input_dtype, output._device)

    @backward_op.loop
    def backward_loop(out, grad_output, output, dim, input_dtype):
        if not out._shape.numel():
            return nothing
        axis = wrap_dim(dim, len(output._shape))
        return kernel.ready_backward(out._operand, grad_output._operand, output._operand, axis)

    @composite(
        f"{name}.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        out="int_out",
        autocast=CUDA_SET_DTYPE,
        face=True,
        doc=doc,
        **FACTS,
    )
    @inline
    def op(self, dim, dtype):
        x = self if dtype is None or dtype is self._dtype else converted(self, dtype)
        return call(data_op.functional, [x, dim, False])

    return op, data_op, backward_op


softmax_backward_op: Planned
# The backward of softmax is y * (g - sum(g * y)), of log-softmax g - exp(y) * sum(g), for y the result.
softmax, softmax_data_op, softmax_backward_op = family(
    kernels.SOFTMAX,
    "SoftmaxBackwardDataBackward0",
    {
        "grad_output": lambda grad, output, dim, input_dtype: softmax_backward_op.functional(
            grad, output, dim, input_dtype
        ),
        "output": lambda grad, grad_output, output, dim: (
            grad * (grad_output - (grad_output * output).sum(dim, True)) - grad_output * (grad * output).sum(dim, True)
        ),
    },
    "Returns exp(x) divided by its sum along `dim`.",
    late_out=("out", "grad_input"),
)
log_softmax, log_softmax_data_op, log_softmax_backward_op = family(
    kernels.LOG_SOFTMAX,
    "LogSoftmaxBackwardDataBackward0",
    {
        "grad_output": lambda grad, output, dim: grad - (grad * output.exp()).sum(dim, True),
        "output": lambda grad, grad_output, output, dim: -(grad * output.exp()) * grad_output.sum(dim, True),
    },
    "Returns x - log(sum of exp(x)) along `dim`, the logarithm of the softmax.",
)
