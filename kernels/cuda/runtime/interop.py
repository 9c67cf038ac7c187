"""Memory of CUDA devices that other libraries hold: `__cuda_array_interface__` and DLPack, both ways.

A tensor over such memory keeps its owner alive. What the owner's stream has still to do comes before what the tensor is
used for, if the owner tells which stream that is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Size, Tensor, UntypedStorage, device, from_numpy_dtype, indexed, tensor_over
from redispatch.kernels import contiguous_strides, last_element
from redispatch.kernels.cuda import Driver, Memory, current_stream
from redispatch.kernels.first_use import start

from . import dlpack


class Foreign(Memory):
    """Memory of somebody else's; `release` tells them that it is not needed any longer."""

    __slots__ = ("release", "stream")

    def __init__(self, address: int, nbytes: int, index: int, driver: Driver, release: Callable[[], object]) -> None:
        super().__init__(address, nbytes, index, driver)
        self.release, self.stream = release, current_stream(index)

    def __del__(self) -> None:
        self.release()


def over(
    address: int, index: int, element: Any, shape: Size, strides: tuple[int, ...], release: Callable[[], object]
) -> Tensor:
    """A tensor over memory at an address of a device."""
    running = start()
    on = indexed(device("cuda", index))
    nbytes = (last_element(shape, strides, 0) + 1) * element.itemsize if shape.numel() else 0
    storage = UntypedStorage.without_data(nbytes, on)
    storage.block, storage._resizable = Foreign(address, nbytes, index, running.driver, release), False
    return tensor_over(storage, None, shape, strides, 0, element, on)


def order_after(index: int, handle: int | None) -> None:
    """Has the current stream wait for what another library's stream has to do, which it names by CUDA's number."""
    running = start()
    current = current_stream(index)
    if handle is None or running.driver.handle(current) == (0 if handle == 1 else handle):
        return
    other = running.driver.adopt_stream(index, 0 if handle == 1 else handle)
    running.driver.wait(current, recorded(running.driver, index, other))


def order_before(index: int, handle: int | None) -> None:
    """Has another library's stream wait for what the current one has to do. -1: none waits; None, 1: the default one.

    Errors: BufferError for CUDA's stream of each thread.
    """
    if handle == -1:
        return
    if handle == 2:
        raise BufferError("per-thread default stream is not supported.")
    running = start()
    current, wanted = current_stream(index), 0 if handle in (None, 1) else int(handle)
    if running.driver.handle(current) != wanted:
        other = running.driver.adopt_stream(index, wanted)
        running.driver.wait(other, recorded(running.driver, index, current))


def recorded(driver: Driver, index: int, stream: int) -> Any:
    event = driver.create_event(index, False)
    driver.record(event, stream)
    return event


def to_dlpack(x: Tensor, stream: Any, max_version: Any) -> Any:
    """A capsule around a tensor's memory, which the consumer's stream may use."""
    index = x._device.index or 0
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    order_before(index, stream)
    versioned = max_version is not None and max_version[0] >= 1
    return dlpack.exported(x, x.data_ptr() if x._shape.numel() else 0, (dlpack.CUDA, index), versioned)


def from_dlpack(producer: Any) -> Tensor:
    """A tensor over the memory of an object with `__dlpack__` on a CUDA device."""
    _, index = producer.__dlpack_device__()
    stream = start().driver.handle(current_stream(index)) or 1  # DLPack's name for the default one
    try:
        capsule = producer.__dlpack__(stream=stream, max_version=dlpack.VERSION)
    except TypeError:  # it is older than versions
        capsule = producer.__dlpack__(stream=stream)
    return from_capsule(capsule)


def from_capsule(capsule: Any) -> Tensor:
    """A tensor over what a capsule tells of. BufferError for memory that is no CUDA device's."""
    known = dlpack.imported(capsule)
    kind, index = known.device
    if kind != dlpack.CUDA:
        known.release()
        raise BufferError(f"a DLPack tensor on a device of type {kind}, where one on a CUDA device (2) was expected")
    return over(known.address, index, known.dtype, known.shape, known.strides, known.release)


def from_interface(producer: Any) -> Tensor:
    """A tensor over the memory of an object with `__cuda_array_interface__`.

    Errors: ValueError for a mask, and strides that are no multiple of the element size; TypeError for a dtype that has
    no counterpart.
    """
    told = producer.__cuda_array_interface__
    if told.get("mask") is not None:
        raise ValueError("arrays with a mask are not supported")
    kind = np.dtype(told["typestr"])
    shape, strides = Size(told["shape"]), told.get("strides")
    if strides is not None and any(step % kind.itemsize or step < 0 for step in strides):
        raise ValueError(f"strides must be multiples of the {kind.itemsize} bytes of an element, got {strides}")
    steps = contiguous_strides(shape) if strides is None else tuple(step // kind.itemsize for step in strides)
    address, _ = told["data"]
    running = start()
    index = running.driver.device_of(address or 0)
    order_after(index, told.get("stream"))
    return over(address or 0, index, from_numpy_dtype(kind), shape, steps, lambda: producer)
