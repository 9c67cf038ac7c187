"""PyTorch's private helpers: what its own tests and other packages ask of `torch._utils`."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import dtype

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


def _flatten_dense_tensors(tensors: Any) -> Any:
    """Returns the elements of all tensors, one after another, as one vector."""
    return ops.aten.flatten_dense_tensors.default(list(tensors))


def _unflatten_dense_tensors(flat: Any, tensors: Any) -> Any:
    """Returns the parts of a vector that `_flatten_dense_tensors` made of such tensors, in their shapes."""
    return tuple(ops.aten.unflatten_dense_tensors.default(flat, list(tensors)))
