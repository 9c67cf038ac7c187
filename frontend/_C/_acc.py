"""`torch._C._acc`: what a backend in Python needs of PyTorch's C++ side."""

from __future__ import annotations

from collections.abc import Sequence

from redispatch.dispatch.tensor import Size, Tensor, UntypedStorage, device, dtype, tensor_over
from redispatch.kernels import contiguous_strides


def create_empty_tensor(shape: Sequence[int], dtype: dtype) -> Tensor:
    """A tensor on the device of PrivateUse1 that has no memory here: its kernels know where it is."""
    size = Size(shape)
    on = device("privateuseone", 0)
    stride = contiguous_strides(size)
    storage = UntypedStorage.without_data(size.numel() * dtype.itemsize, on)
    return tensor_over(storage, None, size, stride, 0, dtype, on)
