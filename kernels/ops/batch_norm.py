"""Normalisation over a batch, groups of channels, each image: batch_norm, group_norm, instance_norm; and rms_norm.

All take away a mean and divide by a standard deviation; they differ in what these are taken over. Sums are float64.
Read next: normalization.py, for layer_norm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from redispatch import kernels
from redispatch.dispatch import STATE, OpOverload, ops, place_of
from redispatch.dispatch.autograd import pulled_back
from redispatch.dispatch.layers.functionalize import FUNCTIONALIZATION, compute, write
from redispatch.dispatch.tensor import Size, Tensor, dtypes, empty, wrap_dim
from redispatch.kernels import Elementwise, Operand

from ..declare.declare import no_formula, taking
from ..declare.operator import CUDA_FP32, composite, kernel, leaf_kernel
from ..declare.structured import not_implemented
from .copying import suggested_format
from .creation import preserved_strides
from .moments import scratch
from .normalization import gradients


def squared_difference(x, mean):
    return (x - mean) * (x - mean)


def reciprocal_root(total, count, eps):
    return 1 / math.sqrt(total / count + eps)


def reciprocal_root_of(var, eps):
    return 1 / math.sqrt(var + eps)


def normalized(x, mean, rstd, weight, bias):
    return (x - mean) * rstd * weight + bias


def moved(old, new, momentum):
    return (1 - momentum) * old + momentum * new


def moved_by_total(old, total, freedom, momentum):
    return (1 - momentum) * old + momentum * (total / freedom)


SQUARED_DIFFERENCE = Elementwise("squared_difference", squared_difference)
RECIPROCAL_ROOT = Elementwise("reciprocal_root", reciprocal_root)
RECIPROCAL_ROOT_OF = Elementwise("reciprocal_root_of", reciprocal_root_of)
NORMALIZED = Elementwise("normalized", normalized)
MOVED = Elementwise("moved", moved)
MOVED_BY_TOTAL = Elementwise("moved_by_total", moved_by_total)


def statistics(x: Operand, dims: Sequence[int], kept: tuple[int, ...]) -> tuple[Operand, Operand]:
    """The means over `dims`, and the sums of the squared differences from them, in float64, of the shape `kept`."""
    mean, squares, total = scratch(kept), scratch(x.shape), scratch(kept)
    kernels.MEAN.run(mean, x, dims)
    SQUARED_DIFFERENCE.run(squares, x, mean, dtype="float64")
    kernels.SUM.run(total, squares, dims)
    return mean, total


def normalize(out: Operand, x: Operand, mean: Operand, rstd: Operand, weight: Any, bias: Any) -> None:
    """`weight` and `bias` broadcast; None stands for 1 and 0."""
    scale, shift = (1.0 if weight is None else weight), (0.0 if bias is None else bias)
    NORMALIZED.run(out, x, mean, rstd, scale, shift, dtype="float64" if x.dtype == "float64" else "float32")


def per_channel(x: Tensor | Operand | None, ndim: int) -> Operand | None:
    """A vector as [1, channels, 1, ...]."""
    if x is None:
        return None
    one = x._operand if isinstance(x, Tensor) else x
    shape = [1] * ndim
    strides = [1] * ndim
    shape[1], strides[1] = one.shape[0], one.strides[0]
    return one._replace(shape=tuple(shape), strides=tuple(strides))


class Fills(NamedTuple):
    """The functions that fill the results of batch norm and of group norm on a device of another type."""

    batch: Callable[..., None]
    group: Callable[..., None]


ELSEWHERE: dict[str, Fills] = {}  # by type of device

# --- batch norm ------------------------------------------------------------------------------------------------------

AFFINE = "Tensor input, Tensor? weight, Tensor? bias"
THREE = "(Tensor, Tensor, Tensor)"


def batch_dims(x: Any) -> list[int]:
    return [d for d in range(len(x._shape)) if d != 1]


def batch_norm_results(
    input: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool
) -> tuple[Tensor, list[Tensor]]:
    """The result and the saved statistics, not yet filled; all that can be wrong with the arguments is said."""
    if not input._dtype.is_floating_point:
        raise NotImplementedError(f"\"batch_norm\" not implemented for '{input._dtype.tensor_name}'")
    wrap_dim(1, len(input._shape))
    if training and not input._shape.numel():
        raise RuntimeError(f"input tensor must have at least one element, but got input_sizes = {list(input._shape)}")
    if not training and (mean is None or var is None):
        raise RuntimeError("running_mean must be defined in evaluation mode")
    channels = input._shape[1]
    for name, x in {"weight": weight, "bias": bias, "running_mean": mean, "running_var": var}.items():
        if x is not None and tuple(x._shape) != (channels,):
            raise RuntimeError(f"{name} should contain {channels} elements not {x._shape.numel()}")
    result = empty(input._shape, input._dtype, input._device, preserved_strides(input))
    kind = input._dtype if mean is None and weight is None else (weight if mean is None else mean)._dtype
    saved = [empty(Size((input._shape[1] if training else 0,)), kind, input._device) for _ in range(2)]
    return result, saved


def run_batch_norm(
    input: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(result, mean, 1 / standard deviation). Training takes both over the batch, and moves the running ones there.

    Otherwise the running ones are used, and nothing is saved: both are empty.
    """
    result, saved = batch_norm_results(input, weight, bias, mean, var, training)
    channels, ndim = input._shape[1], len(input._shape)
    if input._device.type in ELSEWHERE and result._shape.numel():
        fill = ELSEWHERE[input._device.type].batch
        fill(result, *saved, input, weight, bias, mean, var, training, momentum, eps)
    if result._array is None or not result._shape.numel():
        return result, saved[0], saved[1]
    factors = per_channel(weight, ndim), per_channel(bias, ndim)
    if not training:
        rstd = scratch((channels,))
        RECIPROCAL_ROOT_OF.run(rstd, var._operand, float(eps), dtype="float64")
        of_channel = per_channel(mean, ndim), per_channel(rstd, ndim)
        normalize(result._operand, input._operand, *of_channel, *factors)  # type: ignore[arg-type]  # none is None
        return result, saved[0], saved[1]
    count = input._shape.numel() // channels
    kept = tuple(channels if d == 1 else 1 for d in range(ndim))
    exact, total = statistics(input._operand, batch_dims(input), kept)
    line: dict[str, Any] = {"shape": (channels,), "strides": (1,)}
    kernels.copy(saved[0]._operand, exact._replace(**line))
    rstd = scratch(kept)
    RECIPROCAL_ROOT.run(rstd, total, float(count), float(eps), dtype="float64")
    kernels.copy(saved[1]._operand, rstd._replace(**line))
    normalize(result._operand, input._operand, exact, rstd, *factors)
    if mean is not None:
        MOVED.run(mean._operand, mean._operand, exact._replace(**line), float(momentum), dtype="float64")
    if var is not None:
        freedom = float(max(count - 1, 0))
        MOVED_BY_TOTAL.run(
            var._operand, var._operand, total._replace(**line), freedom, float(momentum), dtype="float64"
        )
    return result, saved[0], saved[1]


@leaf_kernel(
    f"native_batch_norm({AFFINE}, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) "
    f"-> {THREE}",
    refuses="whole complex",
    out="out",
    out_names=("out", "save_mean", "save_invstd"),
    method=False,
)
def native_batch_norm(input, weight, bias, mean, var, training, momentum, eps):
    """Returns (result, mean, 1 / standard deviation) of batch normalization; updates the running ones while
    training."""
    return run_batch_norm(input, weight, bias, mean, var, training, momentum, eps)


@leaf_kernel(
    f"_native_batch_norm_legit({AFFINE}, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, "
    f"float momentum, float eps) -> {THREE}",
    refuses="whole complex",
    core=True,
    late_out=("out", "out", "save_mean", "save_invstd"),
)
def batch_norm_legit_op(input, weight, bias, mean, var, training, momentum, eps):
    return run_batch_norm(input, weight, bias, mean, var, training, momentum, eps)


@leaf_kernel(
    f"_native_batch_norm_legit.no_stats({AFFINE}, bool training, float momentum, float eps) -> {THREE}",
    core=True,
    late_out=("no_stats_out", "out", "save_mean", "save_invstd"),
)
def batch_norm_no_stats_op(input, weight, bias, training, momentum, eps):
    return run_batch_norm(input, weight, bias, None, None, training, momentum, eps)


@leaf_kernel(
    f"_native_batch_norm_legit_no_training({AFFINE}, Tensor running_mean, Tensor running_var, float momentum, "
    f"float eps) -> {THREE}",
    refuses="whole complex",
    core=True,
)
def batch_norm_no_training_op(input, weight, bias, mean, var, momentum, eps):
    return run_batch_norm(input, weight, bias, mean, var, False, momentum, eps)


def with_reserve(input: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool, *how: float) -> Any:
    """The results of batch norm, and what other backends keep for its backward: nothing."""
    results = run_batch_norm(input, weight, bias, mean, var, training, *how)
    return *results, empty(Size((0,)), dtypes.uint8, input._device)


@leaf_kernel(
    f"_batch_norm_with_update({AFFINE}, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    refuses="whole complex",
    late_out=("out", "out", "save_mean", "save_invstd", "reserve"),
)
def batch_norm_with_update_op(input, weight, bias, mean, var, momentum, eps):
    """Returns what `native_batch_norm` does while training, and moves the running mean and variance."""
    return with_reserve(input, weight, bias, mean, var, True, momentum, eps)


@leaf_kernel(
    f"_batch_norm_no_update({AFFINE}, Tensor? running_mean, Tensor? running_var, float momentum, float eps) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    refuses="whole complex",
)
def batch_norm_no_update_op(input, weight, bias, mean, var, momentum, eps):
    """Returns what `native_batch_norm` does with the running mean and variance."""
    return with_reserve(input, weight, bias, mean, var, False, momentum, eps)


def batch_norm_gradients(
    grad: Any, input: Any, weight: Any, mean: Any, rstd: Any, train: bool, wanted: Sequence[bool]
) -> tuple[Any, Any, Any]:
    shape = [1] * input.dim()
    shape[1] = -1
    mean, rstd = mean.reshape(shape), rstd.reshape(shape)
    scale = None if weight is None else weight.reshape(shape)
    dims = batch_dims(input)
    return gradients(grad, (input - mean) * rstd, rstd, scale, dims, train, wanted, dims)


@kernel(
    "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, "
    "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) "
    f"-> {THREE}",
    refuses="whole complex",
    face=False,
    relies="native_batch_norm",
)
def native_batch_norm_backward_op(grad_out, input, weight, mean, var, save_mean, save_invstd, train, eps, output_mask):
    if not input._dtype.is_floating_point:
        raise not_implemented("batch_norm_backward_cpu", input._dtype)
    if train:
        return batch_norm_gradients(grad_out, input, weight, save_mean, save_invstd, True, output_mask)
    return batch_norm_gradients(grad_out, input, weight, mean, (var + eps).rsqrt(), False, output_mask)


def second_gradients(
    grads: Sequence[Any], grad_out: Any, input: Any, weight: Any, running_mean: Any, running_var: Any,
    train: bool, eps: float, output_mask: Sequence[bool], needs: Sequence[bool],
) -> Any:  # fmt: skip
    """Returns the gradients of `batch_norm_gradients`. In training mean and deviation are the input's own, and move
    with it."""
    dims = batch_dims(input)

    def backward(grad_out: Any, input: Any, weight: Any) -> Any:
        if not train:
            rstd = (running_var + eps).rsqrt()
            return batch_norm_gradients(grad_out, input, weight, running_mean, rstd, False, output_mask)
        mean = input.mean(dims, True)
        rstd = ((input - mean).square().mean(dims, True) + eps).rsqrt()
        return batch_norm_gradients(grad_out, input, weight, mean, rstd, True, output_mask)

    return pulled_back(backward, (grad_out, input, weight), grads, needs)


native_batch_norm_backward_op.derivative(
    (("grad_out", "input", "weight"), second_gradients),
    save_mean=no_formula("native_batch_norm_backward save_mean"),
    save_invstd=no_formula("native_batch_norm_backward save_invstd"),
)


def batch_norm_backward(
    grad: Any, input: Any, weight: Any, mean: Any, var: Any, save_mean: Any, save_invstd: Any,
    train: bool, eps: float, needs: Sequence[bool],
) -> Any:  # fmt: skip
    """One operator; where the gradient is itself to be differentiated, mean and deviation are formed again for it."""
    wanted = list(needs)
    if not STATE.get().grad_enabled:
        return native_batch_norm_backward_op.functional(
            grad, input, weight, mean, var, save_mean, save_invstd, train, eps, wanted
        )
    if train:
        dims = batch_dims(input)
        mean = input.mean(dims, True)
        save_invstd = ((input - mean).square().mean(dims, True) + eps).rsqrt()
        return batch_norm_gradients(grad, input, weight, mean, save_invstd, True, wanted)
    return batch_norm_gradients(grad, input, weight, mean, (var + eps).rsqrt(), False, wanted)


LEARNED = ("input", "weight", "bias")
STATS = ("grad", "input", "weight", "running_mean", "running_var")
with_stats = taking(*STATS, "result1", "result2", "training", "eps", "needs")(batch_norm_backward)
native_batch_norm.op.derivative((LEARNED, with_stats), nondifferentiable=(1, 2))
batch_norm_legit_op.derivative((LEARNED, with_stats), nondifferentiable=(1, 2))


@batch_norm_with_update_op.gradient(*LEARNED, nondifferentiable=(1, 2, 3))
def with_update(grad, input, weight, running_mean, running_var, result1, result2, eps, needs):
    return batch_norm_backward(grad, input, weight, running_mean, running_var, result1, result2, True, eps, needs)


@batch_norm_no_stats_op.gradient(*LEARNED, nondifferentiable=(1, 2), node="NativeBatchNormLegitBackward1")
def without_stats(grad, input, weight, result1, result2, training, eps, needs):
    return batch_norm_backward(grad, input, weight, None, None, result1, result2, training, eps, needs)


@batch_norm_no_update_op.gradient(*LEARNED, nondifferentiable=(1, 2, 3))
@batch_norm_no_training_op.gradient(*LEARNED, nondifferentiable=(1, 2))
def without_training(grad, input, weight, running_mean, running_var, eps, needs):
    return batch_norm_backward(grad, input, weight, running_mean, running_var, None, None, False, eps, needs)


@composite(
    f"batch_norm({AFFINE}, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, "
    "bool cudnn_enabled) -> Tensor",
    refuses="whole complex",
    method=False,
)
def batch_norm(input, weight, bias, mean, var, training, momentum, eps, cudnn):
    """Returns each channel less its mean, over its standard deviation, times `weight` plus `bias`."""
    channels = input._shape[1] if len(input._shape) > 1 else 0
    named = {"running_mean": mean, "running_var": var, "weight": weight, "bias": bias}
    for name, x in named.items():
        if x is None:
            if not training and name.startswith("running"):
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        elif x.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {x.numel()}")
    # what PyTorch keeps for cuDNN, which modes see; of an empty input all that is kept
    for dtype in (dtypes.uint8, *([input.dtype] * 2 if not input._shape.numel() else ())):
        ops.aten.empty.memory_format([0], dtype=dtype, layout=input.layout, device=input.device)
    if not input._shape.numel():
        result = input.clone()  # which the gradient of weight and bias, 0, still reaches
        result = result if weight is None else result * weight[0]
        return result if bias is None else result + bias[0]
    return native_batch_norm.op.functional(input, weight, bias, mean, var, training, momentum, eps)[0]


@composite(
    f"instance_norm({AFFINE}, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, "
    "float eps, bool cudnn_enabled) -> Tensor",
    refuses="whole complex",
    method=False,
)
def instance_norm(input, weight, bias, mean, var, own, momentum, eps, cudnn):
    """Returns each channel of each image less its mean, over its standard deviation, times `weight` plus `bias`."""
    if not own and (mean is None or var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    wrap_dim(1, len(input._shape), wrap_scalar=False)
    batch, channels, *image = input._shape
    each: list[Any] = [None if x is None else x.repeat(batch) for x in (weight, bias, mean, var)]
    shown = input.contiguous().view([1, batch * channels, *image])
    result = batch_norm.op.functional(shown, *each, own, momentum, eps, cudnn)
    for running, moved_ones in ((mean, each[2]), (var, each[3])):
        if running is not None and own:
            running.copy_(moved_ones.view([batch, channels]).mean(0))
    return result.view([batch, channels, *image])


# --- group norm ------------------------------------------------------------------------------------------------------


def in_groups(x: Operand, group: int) -> Operand:
    """[n, channels, ...] as [n, group, channels / group, ...]."""
    channels, step = x.shape[1], x.strides[1]
    each = channels // group
    return x._replace(
        shape=(x.shape[0], group, each, *x.shape[2:]), strides=(x.strides[0], step * each, step, *x.strides[2:])
    )


def by_group(x: Tensor | None, group: int, ndim: int) -> Operand | None:
    """A vector of channels as [1, group, channels / group, 1, ...]."""
    if x is None:
        return None
    one, each = x._operand, x._shape[0] // group
    step = one.strides[0]
    ones = (1,) * (ndim - 2)
    return one._replace(shape=(1, group, each, *ones), strides=(1, step * each, step, *ones))


def group_norm_results(
    input: Tensor, weight: Any, bias: Any, N: int, C: int, group: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The three results, not yet filled; all that can be wrong with the arguments is said."""
    check_groups(input, weight, bias, C, group)
    if not input._dtype.is_floating_point:
        raise NotImplementedError(f"\"GroupNormKernelImpl\" not implemented for '{input._dtype.tensor_name}'")
    result = empty(input._shape, input._dtype, input._device, preserved_strides(input))
    mean, rstd = (empty(Size((N, group)), input._dtype, input._device) for _ in range(2))
    return result, mean, rstd


@leaf_kernel(
    f"native_group_norm({AFFINE}, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> {THREE}",
    refuses="whole complex",
    core=True,
    method=False,
    doc="Returns (result, mean, 1 / standard deviation) of each group of channels.",
    relies="input: N C *image; input: #N C HxW; weight, bias: C",
)
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """(result, mean, 1 / standard deviation); the last two are [N, group]."""
    result, mean, rstd = group_norm_results(input, weight, bias, N, C, group)
    if input._device.type in ELSEWHERE and result._shape.numel():
        ELSEWHERE[input._device.type].group(result, mean, rstd, input, weight, bias, N, C, HxW, group, eps)
    if result._array is None:
        return result, mean, rstd
    if not result._shape.numel():
        kernels.fill(mean._operand, 0)
        kernels.fill(rstd._operand, math.nan)
        return result, mean, rstd
    ndim = len(input._shape)
    x = in_groups(input._operand, group)
    kept = (N, group, *(1,) * (ndim - 1))
    exact, total = statistics(x, range(2, ndim + 1), kept)
    flat: dict[str, Any] = {"shape": (N, group), "strides": (group, 1)}
    kernels.copy(mean._operand, exact._replace(**flat))
    root = scratch(kept)
    RECIPROCAL_ROOT.run(root, total, float(C // group * HxW), float(eps), dtype="float64")
    kernels.copy(rstd._operand, root._replace(**flat))
    factors = by_group(weight, group, ndim), by_group(bias, group, ndim)
    normalize(in_groups(result._operand, group), x, exact, root, *factors)
    return result, mean, rstd


def check_groups(input: Tensor, weight: Any, bias: Any, channels: int, group: int) -> None:
    if group <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {group}")
    if channels % group:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input._shape)} and num_groups={group}"
        )
    for name, x in (("weight", weight), ("bias", bias)):
        if x is not None and (len(x._shape) != 1 or x._shape[0] != channels):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(x._shape)} and input of shape {list(input._shape)}"
            )


def group_norm_gradients(
    grad: Any, input: Any, mean: Any, rstd: Any, weight: Any, N: int, C: int, group: int, wanted: Sequence[bool]
) -> tuple[Any, Any, Any]:
    rows, each = [N, group, C // group, input.numel() // max(N * C, 1)], [N, group, 1, 1]
    x, g = input.reshape(rows), grad.reshape(rows)
    mean, rstd = mean.reshape(each), rstd.reshape(each)
    scale = None if weight is None else weight.reshape([1, group, C // group, 1])
    to_x, to_weight, to_bias = gradients(g, (x - mean) * rstd, rstd, scale, [2, 3], True, wanted, [0, 3])
    return (
        None if to_x is None else to_x.reshape(input.shape),
        None if to_weight is None else to_weight.reshape([C]),
        None if to_bias is None else to_bias.reshape([C]),
    )


@kernel(
    "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, "
    f"SymInt C, SymInt HxW, int group, bool[3] output_mask) -> {THREE}",
    refuses="whole complex",
    core=True,
    face=False,
    relies="native_group_norm",
)
def native_group_norm_backward_op(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    if not input._dtype.is_floating_point:
        raise not_implemented("GroupNormBackwardKernelImpl", input._dtype)
    if input._dtype.itemsize > 2:
        return group_norm_gradients(grad_out, input, mean, rstd, weight, N, C, group, output_mask)
    a, b, c, d, e = (x if x is None else x.to(dtypes.float32) for x in (grad_out, input, mean, rstd, weight))
    found = group_norm_gradients(a, b, c, d, e, N, C, group, output_mask)
    own = (input._dtype, *[(input if weight is None else weight)._dtype] * 2)
    return tuple(x if x is None else x.to(kind) for x, kind in zip(found, own, strict=True))


def group_norm_backward(
    grads: Any, input: Any, weight: Any, result1: Any, result2: Any, N: int, C: int, HxW: int, group: int, eps: float,
    needs: Sequence[bool],
) -> Any:  # fmt: skip
    """One operator; where mean and deviation have gradients of their own, or the gradient is itself to be
    differentiated, both are formed again for it."""
    wanted, (grad, of_mean, of_rstd) = list(needs), grads
    if not STATE.get().grad_enabled and of_mean is None and of_rstd is None:
        return native_group_norm_backward_op.functional(grad, input, result1, result2, weight, N, C, HxW, group, wanted)
    rows = input.reshape([N, group, C // group * HxW])
    mean = rows.mean([2], True)
    rstd = ((rows - mean).square().mean([2], True) + eps).rsqrt()
    found = [None, None, None]
    if grad is not None:
        found = list(group_norm_gradients(grad, input, mean, rstd, weight, N, C, group, wanted))
    if wanted[0] and (of_mean is not None or of_rstd is not None):
        count = rows.shape[2]
        more: Any = 0 if of_mean is None else of_mean.unsqueeze(2) / count
        if of_rstd is not None:  # d rstd / d x = -rstd^3 (x - mean) / count
            more = more - of_rstd.unsqueeze(2) * rstd.pow(3) * (rows - mean) / count
        more = more.expand(rows.shape).reshape(input.shape)
        found[0] = more if found[0] is None else found[0] + more
    return tuple(found)


native_group_norm.op.derivative((LEARNED, group_norm_backward))


@composite(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enabled=True) -> Tensor",
    refuses="whole complex",
    autocast=CUDA_FP32,
    method=False,
)
def group_norm(input, num_groups, weight, bias, eps, cudnn):
    """Returns each group of channels less its mean, over its standard deviation, times `weight` plus `bias`."""
    wrap_dim(1, len(input._shape))
    batch, channels, *image = input._shape
    check_groups(input, weight, bias, channels, num_groups)
    dense = input.contiguous(memory_format=suggested_format(input))
    return native_group_norm.op.functional(dense, weight, bias, batch, channels, math.prod(image), num_groups, eps)[0]


# --- rms norm --------------------------------------------------------------------------------------------------------

EPSILON = {"float64": 2.0**-52, "complex128": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}


@composite(
    "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    refuses="whole",
    autocast=CUDA_FP32,
    method=False,
)
def rms_norm(input, normalized_shape, weight, eps):
    """Returns x over the root of the mean of its squares over the last dimensions, times `weight`."""
    count = len(normalized_shape)
    if not count:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    if weight is not None and list(weight.shape) != list(normalized_shape):
        raise RuntimeError(
            f"Expected weight to be of same shape as normalized_shape, but got weight of shape {list(weight.shape)} "
            f"and normalized_shape = {list(normalized_shape)}"
        )
    if list(input._shape[-count:]) != list(normalized_shape):
        wanted = "*" + ", ".join(map(str, normalized_shape))
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [{wanted}], but got input of "
            f"size{list(input._shape)}"
        )
    ndim = len(input._shape)
    own = input._dtype
    if not (own.is_floating_point or own.is_complex):
        raise not_implemented("rms_norm", own)
    wide = input.to(dtypes.float32) if own.itemsize == 2 else input
    if eps is None:
        eps = EPSILON.get(own.name, 2.0**-23)
    squares = wide.pow(2).mean(list(range(ndim - count, ndim)), True)
    result = wide * ops.aten.add_.Scalar(squares, eps).rsqrt()
    if weight is not None:
        result = result * weight
    return result.to(own) if result._dtype is not own else result


# --- Functionalized ---------------------------------------------------------------------------------------------------


def batch_norm_rule(op: OpOverload, stack: list[Any]) -> Any:
    """It writes the running statistics, and its schema does not say so; that of another operator does."""
    input, weight, bias, mean, var, training, momentum, eps = stack
    if training and mean is not None and var is not None:
        return write(batch_norm_legit_op.functional, stack)
    return compute(op, stack)


FUNCTIONALIZATION.add(native_batch_norm.op.functional, batch_norm_rule, place_of(batch_norm_rule))
