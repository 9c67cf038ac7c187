"""Weights of convolutions in another order in memory, such as channels_last; the rest of a model stays as it is."""

from __future__ import annotations

from typing import Any

from ..convolution import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..module import Module


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
