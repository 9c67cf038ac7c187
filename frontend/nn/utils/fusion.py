"""Modules made otherwise: without values, with weights in another order in memory, with a batch norm taken in.

A batch norm in evaluation is an affine map of each channel: it can be taken into the layer before it.
"""

from __future__ import annotations

import inspect
from copy import deepcopy
from typing import Any

from redispatch.kernels.ops.creation import ones_like, zeros_like

from ..linear import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..module import Module
from ..parameter import Parameter


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """An instance with undefined values. Errors: RuntimeError for what is no Module or takes no `device`."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)


# --- Weights of convolutions in another order in memory, such as channels_last; the rest of a model stays as it is


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Lays out the weights of all Conv2d and ConvTranspose2d in the module. Returns the module."""
    return converted(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Lays out the weights of all Conv3d and ConvTranspose3d in the module. Returns the module."""
    return converted(module, (Conv3d, ConvTranspose3d), memory_format)


def converted(module: Module, kinds: Any, memory_format: Any) -> Module:
    for each in module.modules():
        if isinstance(each, kinds):
            each.weight.data = each.weight.detach().clone(memory_format=memory_format)
    return module


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of the convolution that does what it and the batch norm behind it do. AssertionError while they train."""
    return fused(conv, bn, transpose)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Returns a linear layer that does the work of both."""
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return fused(linear, bn, False)


def fused(layer: Any, bn: Any, transpose: bool) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    made = deepcopy(layer)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    made.weight, made.bias = fuse_conv_bn_weights(
        layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return made


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Any, Any]:
    """Weight and bias of both together."""
    bias = zeros_like(bn_rm) if conv_b is None else conv_b
    weight = ones_like(bn_rm) if bn_w is None else bn_w
    shift = zeros_like(bn_rm) if bn_b is None else bn_b
    scale = weight * (bn_rv + bn_eps).rsqrt()
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    made = conv_w * scale.reshape(shape).to(conv_w.dtype), ((bias - bn_rm) * scale + shift).to(bias.dtype)
    return tuple(
        Parameter(value.detach(), old is None or old.requires_grad)
        for value, old in zip(made, (conv_w, conv_b), strict=True)
    )


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Any, Any]:
    """Weight and bias of both together."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
