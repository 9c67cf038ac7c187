"""PyTorch's private helpers: what its own tests and other packages ask of `torch._utils`."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import device as device_class
from redispatch.dispatch.tensor import dtype

from . import accelerator
from .accelerator import _kind as _get_available_device_type
from .backend import get_device_module as _get_device_module
from .serialization.names import (
    rebuild_meta_tensor as _rebuild_meta_tensor_no_storage,
)
from .serialization.names import (
    rebuild_parameter as _rebuild_parameter,
)
from .serialization.names import (
    rebuild_tensor as _rebuild_tensor_v2,
)
from .serialization.names import (
    rebuild_wrapper as _rebuild_wrapper_subclass,
)

__all__ = [
    "_get_available_device_type",
    "_get_device_module",
    "_rebuild_meta_tensor_no_storage",
    "_rebuild_parameter",
    "_rebuild_tensor_v2",
    "_rebuild_wrapper_subclass",
]


def _element_size(dtype: dtype) -> int:
    """Returns the size of an element in bytes."""
    return dtype.itemsize


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int | None:
    """Returns the number of a device; of one without a number the current one's, and -1 for the CPU.

    optional: whether None stands for the current accelerator (None, where there is none). allow_cpu: whether the CPU is
    no error.
    Errors: ValueError for what is no device, or has no number.
    """
    if isinstance(device, str):
        device = device_class(device)
    if isinstance(device, int):
        return device
    if isinstance(device, device_class):
        if device.type == "cpu" and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        if device.type == "cpu":
            return -1
        if device.index is not None:
            return device.index
    elif device is not None:
        raise ValueError(f"Expected a torch.device, a number or None, but got: {device!r}")
    if not optional:
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{device}. Write the index, "
            "as in 'cuda:0'"
        )
    return accelerator.current_device_index() if accelerator.is_available() else None


def _flatten_dense_tensors(tensors: Any) -> Any:
    """Returns the elements of all tensors, one after another, as one vector."""
    return ops.aten.flatten_dense_tensors.default(list(tensors))


def _unflatten_dense_tensors(flat: Any, tensors: Any) -> Any:
    """Returns the parts of a vector that `_flatten_dense_tensors` made of such tensors, in their shapes."""
    return tuple(ops.aten.unflatten_dense_tensors.default(flat, list(tensors)))
