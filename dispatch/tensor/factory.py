"""Making tensors: the functions by which every Tensor comes to be, with memory of its own or as a view.

They set every slot themselves and check nothing: kernels call them after they have decided everything. What is decided
about a result with memory of its own stands in an `OutputSpec`, made once for all results that look alike; then a fresh
tensor costs little more than its memory and its object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from redispatch.dispatch import LAZY_BITS, STATE
from redispatch.dispatch.specialiser.annotations import frozen, inline
from redispatch.dispatch.symbolic import holds

from .devices import ARRAYS, CPU, KINDS, MAKERS, device, device_keyset, indexed
from .dtypes import dtype
from .geometry import contiguous_strides
from .metadata import Metadata, Size, interned
from .storage import UntypedStorage, allocate
from .tensor import Tensor

_new = object.__new__
on_device = UntypedStorage.on_device
_MAX_BYTES = 2**63 - 1
_SURE = 1 << 16  # bytes; so few are always to be had


@frozen
class OutputSpec:
    """The common facts of new tensors with equal metadata."""

    metadata: Metadata
    shape: Size
    stride: tuple[int, ...]
    dtype: dtype
    device: device
    elements: int  # of the memory
    nbytes: int
    array: np.dtype
    sure: bool  # whether it is on the CPU, and so small that it is always to be had
    keyset: int
    inference_keyset: int  # of a tensor made in inference mode

    __slots__ = tuple(__annotations__)

    def __init__(self, metadata: Metadata, elements: int) -> None:
        self.metadata = metadata
        self.shape, self.stride, self.dtype, self.device = (
            metadata.shape,
            metadata.stride,
            metadata.dtype,
            metadata.device,
        )
        self.elements, self.array = elements, metadata.dtype.array
        self.nbytes = elements * metadata.dtype.itemsize
        self.sure = metadata.device.type == "cpu" and self.nbytes <= _SURE
        self.keyset, self.inference_keyset = (
            device_keyset(metadata.device.type, bits=metadata.dtype.bits),
            device_keyset(metadata.device.type, True, metadata.dtype.bits),
        )


def memory_for(spec: OutputSpec, t: Tensor) -> np.ndarray | None:
    """The flat array of a fresh tensor `t`; None off the CPU, where a user's device gives it a storage.

    Errors: RuntimeError where so much memory is not to be had.
    """
    make = MAKERS.get(spec.device)
    if make is not None:
        t._store = make(spec.nbytes)
        return None
    if spec.device.type == "cpu":
        return allocate(spec.elements, spec.array)
    if spec.device in ARRAYS:
        return ARRAYS[spec.device](spec.elements, spec.array)
    kind = KINDS.get(spec.device.type)
    if kind is not None and kind.allocator is not None:
        on = spec.device
        t._store = on_device(spec.nbytes, on if on.index is not None else indexed(on), kind.allocator)
    return None


@lru_cache(1 << 14)
def output_spec(shape: Size, element: dtype, on: device = CPU, strides: tuple[int, ...] | None = None) -> OutputSpec:
    """Returns the spec of tensors of this shape and dtype; dense in the order of `strides`, or row by row.

    Errors: RuntimeError for a negative size, or for one that overflows.
    """
    stride = contiguous_strides(shape) if strides is None else strides
    return OutputSpec(interned(element, shape, stride, on), storage_elements(shape, stride, element))


@inline
def empty(shape: Any, element: dtype, on: device = CPU, strides: tuple[int, ...] | None = None) -> Tensor:
    """A tensor with memory of its own and undefined values; dense in the order that `strides` gives, or row by row.

    Errors: RuntimeError for a negative size, for one that overflows, or where the memory is not to be had.
    """
    return empty_from(output_spec(shape if type(shape) is Size else Size.of(shape), element, on, strides))


@inline
def empty_from(spec: OutputSpec) -> Tensor:
    """A tensor with memory of its own and undefined values, with the keys and version of a new one in this state.

    Errors: RuntimeError where the memory is not to be had.
    """
    inference = STATE.get().inference
    t = _new(Tensor)
    t._keyset = spec.inference_keyset if inference else spec.keyset
    t._counter = None if inference else [0]
    t._autograd = None
    t._store = None  # Note [Storages are made when they are asked for]
    t._array = np.empty(spec.elements, spec.array) if spec.sure else memory_for(spec, t)
    t._shape = spec.shape
    t._stride = spec.stride
    t._offset = 0
    t._dtype = spec.dtype
    t._device = spec.device
    t._view = None
    t._interned = spec.metadata
    return t


def tensor_over(
    storage: UntypedStorage, array: Any, shape: Size, stride: tuple[int, ...], offset: int, element: dtype, on: device
) -> Tensor:
    """A tensor over a storage, with the keys and the version of a new tensor in this thread's state."""
    inference = STATE.get().inference
    t = _new(Tensor)
    t._keyset = device_keyset(on.type, inference, element.bits)
    t._counter = None if inference else [0]
    t._autograd = None
    t._store = storage
    t._array = array
    t._shape = shape
    t._stride = stride
    t._offset = offset
    t._dtype = element
    t._device = on
    t._view = None
    t._interned = None
    return t


def view_over(base: Tensor, shape: Any, stride: tuple[int, ...], offset: int, element: dtype | None = None) -> Tensor:
    """A plain tensor over the base's storage, with the base's keys.

    It is the layer ADInplaceOrView that makes it a view in autograd's sense, version counter included.
    """
    t = _new(Tensor)
    plain = device_keyset(base._device.type, base._counter is None)
    t._keyset = plain if base._keyset is plain and element is None else view_keyset(base, element)
    t._counter = None if base._counter is None else [0]
    t._autograd = None
    t._store = base._storage
    t._shape = shape if type(shape) is Size else Size(shape)
    t._stride = tuple(stride)
    t._offset = offset
    t._device = base._device
    t._view = None
    t._interned = None
    if element is None or element is base._dtype:
        t._dtype, t._array = base._dtype, base._array
    else:
        t._dtype, t._array = element, t._store.typed(element)
    if base._array is None:  # it reaches beyond the end of its storage, or has no data at all
        t._store.hand_out(t)
    return t


def view_keyset(base: Tensor, element: dtype | None = None) -> int:
    """The keys of a plain tensor over the memory of any tensor: lazy bits go with the memory."""
    bits = (element or base._dtype).bits | base._keyset & LAZY_BITS
    return device_keyset(base._device.type, base._counter is None, bits)


@frozen
class Window:
    """The common facts of views with equal metadata, and their offset in elements from the base's first one."""

    __slots__ = ("metadata", "start", "keyset", "inference_keyset")
    metadata: Metadata
    start: int
    keyset: int
    inference_keyset: int  # of a view of an inference tensor

    def __init__(self, metadata: Metadata, start: int) -> None:
        self.metadata, self.start = metadata, start
        kind, bits = metadata.device.type, metadata.bits | metadata.dtype.bits
        self.keyset = device_keyset(kind, bits=bits)
        self.inference_keyset = device_keyset(kind, True, bits)


@inline
def view_through(window: Window, base: Tensor) -> Tensor:
    """`view_over` for callers that have decided before how such a view looks."""
    metadata, store = window.metadata, base._store
    if store is None:
        store = base._storage  # before anything else here holds the array: to be its only storage then needs no search
    array = base._array
    counted = base._counter is not None
    t = _new(Tensor)
    t._keyset = window.keyset if counted else window.inference_keyset
    t._counter = [0] if counted else None
    t._autograd = None
    t._store = store
    t._array = array
    t._shape = metadata.shape
    t._stride = metadata.stride
    t._offset = base._offset + window.start
    t._dtype = metadata.dtype
    t._device = metadata.device
    t._view = None
    t._interned = metadata
    if array is None and store._array is not None:  # the base reaches beyond the end of its storage
        store.hand_out(t)
    return t


def storage_elements(shape: tuple[int, ...], stride: tuple[int, ...], element: dtype) -> int:
    """The number of elements that a storage needs for this shape and these strides, offset 0."""
    for size in shape:
        if size < 0 if type(size) is int else not holds(size >= 0):
            raise RuntimeError(f"Trying to create tensor with negative dimension {size}: {list(shape)}")
    if 0 in shape:
        if stride and max(stride) > _MAX_BYTES:
            raise RuntimeError("Stride calculation overflowed")
        return 0
    elements = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    if elements * element.itemsize > _MAX_BYTES:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    return elements


# Pinned memory: memory of the CPU's that an accelerator reads and writes by itself, while the program goes on ---------
#
# A backend that has such memory publishes in `PINNERS` what gives it; a pinned tensor is one of the CPU's whose storage
# is owned by a `Pinned`.


class Pinned:
    """Owner of pinned memory: `array` are its bytes. A backend's subclass gives them back when it goes."""

    array: np.ndarray

    def used_on(self, device: int, stream: int) -> None:
        """Told when a stream begins to use the memory: it is nobody else's before that is over."""


# What gives pinned memory of so many bytes; None where there is no device that would read it.
PINNERS: list[Callable[[int], Pinned | None]] = []


def pinned_memory(nbytes: int) -> Pinned | None:
    """Pinned memory of the first backend that has any; None without one."""
    for pinner in PINNERS:
        found = pinner(nbytes)
        if found is not None:
            return found
    return None


def owner_of(x: Tensor) -> Pinned | None:
    """Returns the owner of a tensor's memory, if that is pinned."""
    owner = None if x._store is None else getattr(x._store, "_owner", None)
    return owner if isinstance(owner, Pinned) else None


def pinned_copy(x: Tensor) -> Tensor | None:
    """A tensor in pinned memory with the storage's elements, shape and strides; None where there is no such memory."""
    storage = x._storage
    owner = pinned_memory(storage.nbytes())
    if owner is None:
        return None
    owner.array[:] = storage.read()
    home = UntypedStorage.of_array(owner.array, owner)
    return tensor_over(home, home.typed(x._dtype), x._shape, x._stride, x._offset, x._dtype, x._device)


def pinned(x: Tensor, pin_memory: Any) -> Tensor:
    """A factory's result on the CPU, moved to pinned memory where that is asked for.

    Errors: RuntimeError where there is no device that would read it, and for meta tensors.
    """
    if not pin_memory:
        return x
    if x._device.type != "cpu":
        raise RuntimeError("Only dense CPU tensors can be pinned")
    found = pinned_copy(x)
    if found is None:
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
            "this system."
        )
    return found
