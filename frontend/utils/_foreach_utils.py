"""Lists of tensors in groups of one device and dtype, as kernels for lists want them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from redispatch.dispatch import DEFAULT, STATE
from redispatch.dispatch.tensor import TYPE_NAMED, Tensor, device

_foreach_supported_types = [Tensor]

PLAIN_TYPES: set[type] = {Tensor}
PLAIN_KEYS = {DEFAULT.keys.added, DEFAULT.with_grad(False).keys.added}


def unseen(types: Iterable[type]) -> bool:
    """Whether none but a clock can tell by which operators tensors of these types are moved.

    So no mode, tracer or transform is at work, and the types are no subclasses.
    """
    keys = STATE.get().keys
    return keys.added in PLAIN_KEYS and not keys.by_mode and PLAIN_TYPES.issuperset(types)


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Returns the kinds of devices for which optimizers of PyTorch choose kernels for lists by themselves."""
    return ["cuda", "xpu", "mtia", TYPE_NAMED["privateuseone"]]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", TYPE_NAMED["privateuseone"]]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Any, with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[Any, Any]]:
    """Returns (device, dtype) -> (these lists with what belongs to such tensors, their places if asked for).

    The first list has a tensor at each place; what the others have there goes along. A list may be empty.
    """
    groups: dict[tuple[Any, Any], tuple[Any, Any]] = {}
    for index, first in enumerate(tensorlistlist[0]):
        lists, places = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for part, whole in zip(lists, tensorlistlist, strict=True):
            if len(whole):
                part.append(whole[index])
        if with_indices:
            places.append(index)
    return groups


def _device_has_foreach_support(device: device) -> bool:
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list[Any], device: device) -> bool:
    return _device_has_foreach_support(device) and all(
        tensor is None or type(tensor) in _foreach_supported_types for tensor in tensors
    )
