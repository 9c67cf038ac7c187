"""`redispatch.utils.dlpack`: tensors as DLPack capsules, and back."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from redispatch.kernels.ops.from_data import from_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(IntEnum):
    """Kinds of devices by DLPack's numbers."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor: Any) -> Any:
    """A DLPack capsule over the memory of a tensor. BufferError where gradients would be lost."""
    return tensor.__dlpack__()
