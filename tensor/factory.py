"""Making tensors: the two functions by which every Tensor comes to be, with memory of its own or as a view.

Both set every slot themselves and check nothing but sizes: kernels call them after they have decided everything.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import STATE
from redispatch.kernels import contiguous_strides

from .devices import CPU, device, device_keyset
from .dtypes import dtype
from .size import Size
from .storage import UntypedStorage, allocate
from .tensor import Tensor

_new = object.__new__
_MAX_BYTES = 2**63 - 1


def empty(shape: Any, element: dtype, on: device = CPU, strides: tuple[int, ...] | None = None) -> Tensor:
    """A tensor with memory of its own and undefined values; dense in the order that `strides` gives, or row by row.

    Errors: RuntimeError for a negative size, for one that overflows, or where the memory is not to be had.
    """
    if type(shape) is not Size:
        shape = Size(shape)
    stride = contiguous_strides(shape) if strides is None else strides
    return fresh(shape, stride, storage_elements(shape, stride, element), element, on)


def fresh(shape: Size, stride: tuple[int, ...], elements: int, element: dtype, on: device) -> Tensor:
    """`empty` for callers that know how many elements the storage needs, and that all sizes are in order."""
    if on.type == "cpu":
        array = allocate(elements, element.array)
        storage = UntypedStorage.of_array(array)
    else:
        array = None
        storage = UntypedStorage.without_data(elements * element.itemsize, on)
    return tensor_over(storage, array, shape, stride, 0, element, on)


def tensor_over(
    storage: UntypedStorage, array: Any, shape: Size, stride: tuple[int, ...], offset: int, element: dtype, on: device
) -> Tensor:
    """A tensor over a storage, with the keys and the version of a new tensor in this thread's state."""
    inference = STATE.get().inference
    t = _new(Tensor)
    t._keyset = device_keyset(on.type, inference)
    t._counter = None if inference else [0]
    t._autograd = None
    t._storage = storage
    t._array = array
    t._shape = shape
    t._stride = stride
    t._offset = offset
    t._dtype = element
    t._device = on
    t._view = None
    return t


def view_over(base: Tensor, shape: Any, stride: tuple[int, ...], offset: int, element: dtype | None = None) -> Tensor:
    """A plain tensor over the base's storage, with the base's keys.

    It is the layer ADInplaceOrView that makes it a view in autograd's sense, version counter included.
    """
    t = _new(Tensor)
    t._keyset = device_keyset(base._device.type, base._counter is None)
    t._counter = None if base._counter is None else [0]
    t._autograd = None
    t._storage = base._storage
    t._shape = shape if type(shape) is Size else Size(shape)
    t._stride = tuple(stride)
    t._offset = offset
    t._device = base._device
    t._view = None
    if element is None or element is base._dtype:
        t._dtype, t._array = base._dtype, base._array
    else:
        t._dtype, t._array = element, base._storage.typed(element)
    if base._array is None:  # it reaches beyond the end of its storage, or has no data at all
        base._storage.hand_out(t)
    return t


def storage_elements(shape: tuple[int, ...], stride: tuple[int, ...], element: dtype) -> int:
    """How many elements a storage needs for this shape and these strides, offset 0."""
    for size in shape:
        if size < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {size}: {list(shape)}")
    if 0 in shape:
        return 0
    elements = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    if elements * element.itemsize > _MAX_BYTES:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    return elements
