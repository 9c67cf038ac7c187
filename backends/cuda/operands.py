"""What the kernels at the key CUDA see: operands whose array is a storage's block, and inputs that lie apart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from redispatch.kernels import Operand, is_dense, overlap
from redispatch.kernels.cuda import Memory
from redispatch.ops.structured import overlapping
from redispatch.tensor import KINDS, Tensor, empty, no_memory

from .memory import CachingAllocator


def allocator() -> CachingAllocator:
    """The allocator of the devices."""
    found = KINDS["cuda"].allocator
    assert isinstance(found, CachingAllocator)
    return found


def block_of(x: Tensor) -> Memory:
    """Where a tensor's storage lies. RuntimeError for one that has no memory."""
    block: Memory | None = x._storage.block
    if block is None:
        raise no_memory(x)
    return block


def operand(x: Tensor) -> Operand:
    """A tensor on a device, as kernels take it. RuntimeError for one that has no memory."""
    array: Any = block_of(x)  # which stands for the CPU's array
    return Operand(array, x._dtype.name, x._shape, x._stride, x._offset)


def scratch(like: Tensor) -> Any:
    """What gives memory on the tensor's device for a while: until the caller drops the storage that it got."""
    held = []

    def give(nbytes: int) -> Memory:
        from redispatch.tensor import UntypedStorage

        storage = UntypedStorage(nbytes, like._device)
        held.append(storage)
        block: Memory = storage.block
        return block

    give.held = held  # type: ignore[attr-defined]  # lives as long as the function
    return give


def apart(value: Any, target: Tensor, elementwise: bool = True) -> Any:
    """`value`, or a copy where it shares memory with `target` (ops/structured.py, Note [Inputs that share memory with
    the output])."""
    from .copies import copied  # which needs this file

    if not isinstance(value, Tensor) or value._storage is not target._storage:
        return value
    array: Any = SimpleNamespace(itemsize=value._dtype.itemsize)
    a, b = (Operand(array, x._dtype.name, x._shape, x._stride, x._offset) for x in (value, target))
    if value._dtype.itemsize != target._dtype.itemsize:
        return copied(value)
    shared = overlap(a, b)
    if value is target or shared == "full":
        return value if elementwise else copied(value)
    if shared == "no":
        return value
    if is_dense(a.shape, a.strides) and is_dense(b.shape, b.strides):
        raise overlapping()
    return copied(value)


def uploaded(value: Any, on: Any, dtype: Any) -> Tensor:
    """A Python number as a tensor without dimensions on a device."""
    from redispatch.ops.creation import scalar_tensor_op

    return scalar_tensor_op.functional(value, dtype=dtype, device=on)


def fresh_like(x: Tensor, dtype: Any = None) -> Tensor:
    """Dense memory on the tensor's device for a tensor of its shape."""
    return empty(x._shape, dtype or x._dtype, x._device)
