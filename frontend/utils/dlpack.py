"""`redispatch.utils.dlpack`: tensors as DLPack capsules, and back."""

from __future__ import annotations

from typing import Any

from redispatch.kernels.ops.from_data import from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Any) -> Any:
    """A DLPack capsule over the memory of a tensor. BufferError where gradients would be lost."""
    return tensor.__dlpack__()
