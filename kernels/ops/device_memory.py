"""Operators that a device has once an allocator can read and write its memory: tensors, and copies from and to them.

Making a tensor is a question to the allocator. A copy goes through the CPU: the bytes of a storage are read, changed
and written back. A few operators without which nothing works (filling, a number for Python) run on the CPU.
Views need nothing: they are a matter of shape, strides and offset, and the same for every device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import keyset, ops
from redispatch.dispatch.specialiser.annotations import inline, leaf
from redispatch.dispatch.tensor import (
    OutputSpec,
    Size,
    Tensor,
    as_device,
    current_index,
    device,
    device_keyset,
    empty,
    empty_from,
    get_default_dtype,
    indexed,
    on_host,
    output_spec,
)

from .copying import resize_kernel, set_storage_kernel, set_tensor_kernel
from .creation import REMEMBERED, check_pinning, strides_for

Kernels = dict[str, Callable[..., Any]]

# What runs on the CPU even where the user asks for no fallback
ON_CPU = ("fill_.Scalar", "fill_.Tensor", "zero_", "conj_physical_", "neg_", "_local_scalar_dense", "equal")


def memory_kernels(type_name: str) -> Kernels:
    """The kernels, which take all arguments by position, by the name of their operator."""

    def here(on: device | None) -> device:
        return indexed(on or as_device(type_name))

    specs: dict[Any, OutputSpec] = {}

    def first(key: Any) -> OutputSpec:
        size, dtype, on, memory_format, _ = key
        if len(specs) >= REMEMBERED:
            specs.clear()
        made = specs[key] = output_spec(Size.of(size), dtype, here(on), strides_for(size, memory_format))
        return made

    @leaf
    @inline
    def empty_kernel(size: Any, dtype: Any, layout: Any, on: Any, pin_memory: Any, memory_format: Any) -> Tensor:
        if pin_memory:
            check_pinning(pin_memory)
        current = 0 if on is not None and on.index is not None else current_index(type_name)
        key = (tuple(size), dtype or get_default_dtype(), on, memory_format, current)
        return empty_from(specs.get(key) or first(key))

    def empty_strided_kernel(size: Any, stride: Any, dtype: Any, layout: Any, on: Any, pin_memory: Any) -> Tensor:
        check_pinning(pin_memory)
        return empty(size, dtype or get_default_dtype(), here(on), tuple(stride))

    return {
        "empty.memory_format": empty_kernel,
        "empty_strided": empty_strided_kernel,
        "_copy_from": copy_from_kernel,
        "resize_": resize_kernel,
        "set_.source_Tensor": set_tensor_kernel,
        "set_.source_Storage_storage_offset": set_storage_kernel,
    }


def copy_from_kernel(self: Tensor, dst: Tensor, non_blocking: bool) -> Tensor:
    """`dst`, with the values of `self`; at least one of them is on a user's device."""
    source = memory_on_cpu(self)
    target = memory_on_cpu(dst)
    ops.aten.copy_.default.redispatch(keyset("CPU"), target, source)
    if target is not dst:
        dst.untyped_storage().write(target.untyped_storage().read())
    return dst


def memory_on_cpu(x: Tensor) -> Tensor:
    """A tensor over the same bytes in the CPU's memory: itself, or over a copy of the whole storage.

    What the elements show is left out: it is memory that is copied.
    """
    if x.device.type == "cpu":
        return x
    copy = on_host(x)
    copy._keyset = device_keyset("cpu")
    copy._interned = None
    return copy
