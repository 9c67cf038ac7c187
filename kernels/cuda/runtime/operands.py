"""Operands for the kernels at the key CUDA: their array is a storage's block. Read next: copies.py."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.tensor import KINDS, Tensor, UntypedStorage, current_index, empty, no_memory
from redispatch.kernels import Operand
from redispatch.kernels.cuda import NONE_CHOSEN, STREAMS, Memory

from .memory import CachingAllocator


def allocator() -> CachingAllocator:
    """The allocator of the devices."""
    found = KINDS["cuda"].allocator
    assert isinstance(found, CachingAllocator)
    return found


def block_of(x: Tensor) -> Memory:
    """The block of a tensor's storage. RuntimeError for one that has no memory."""
    block: Memory | None = x._storage.block
    if block is None:
        raise not_here(x)
    return block


def not_here(x: Tensor) -> Exception:
    """The error for a tensor that lies on no device: on the CPU beside others that do, or nowhere."""
    if x._device.type != "cpu":
        return no_memory(x)
    return RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"cuda:{current_index('cuda')} and cpu! Move {x._summary()} by .cuda(), or the others by .cpu()"
    )


def address_of(x: Tensor) -> int:
    """The address of a tensor's first element. RuntimeError for one that has no memory."""
    return block_of(x).address + x._offset * x._dtype.itemsize


@inline
def located(x: Tensor) -> int:
    """Returns the place of a tensor's memory, worked out where it is asked for."""
    store: Any = x._store
    if store is None or store.block is None:
        raise not_here(x)
    address: int = store.block.address + x._offset * x._dtype.itemsize
    return address


@inline
def stream_for(x: Tensor) -> int:
    """The stream on which this thread or task works on the tensor's device."""
    index = x._device.index or 0
    streams = STREAMS.get()
    return -index if streams is NONE_CHOSEN else streams.get(index, -index)


def operand(x: Tensor) -> Operand:
    """A tensor on a device, as kernels take it. RuntimeError for one that has no memory."""
    array: Any = block_of(x)  # which stands for the CPU's array
    return Operand(array, x._dtype.name, x._shape, x._stride, x._offset)


class Scratch:
    """Memory on a tensor's device, for as long as this object is held: `scratch(nbytes)`."""

    def __init__(self, like: Tensor) -> None:
        self.on, self.held = like._device, list[UntypedStorage]()

    def __call__(self, nbytes: int) -> Memory:
        storage = UntypedStorage(nbytes, self.on)
        self.held.append(storage)
        block: Memory = storage.block
        return block


def fresh_like(x: Tensor, dtype: Any = None) -> Tensor:
    """Dense memory on the tensor's device for a tensor of its shape."""
    return empty(x._shape, dtype or x._dtype, x._device)
