"""Copies on a device, to it and from it; filling; a number for Python.

A copy between the CPU and a device moves dense bytes; whatever else there is to be done, another order or dtype, is
done where it costs least: on the CPU before bytes go up, on the device before they come down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache as once
from typing import Any

import numpy as np

from redispatch.dispatch import STATE, keyset, ops, within
from redispatch.dispatch.specialiser.annotations import inline, leaf
from redispatch.dispatch.tensor import (
    CPU,
    Pinned,
    Size,
    Tensor,
    as_numpy,
    dtypes,
    empty,
    metadata_of,
    owner_of,
    view_over,
)
from redispatch.kernels import DTYPES, Operand, is_contiguous, is_dense, on_target, overlap
from redispatch.kernels.cpu.copy import BITS, elementwise_for
from redispatch.kernels.cuda import CUDAElementwise, current_stream
from redispatch.kernels.cuda.elementwise import LAUNCHES, VECTOR, Ready, memory_of
from redispatch.kernels.cuda.elementwise import address_of as cuda_address
from redispatch.kernels.declare.pointwise import as_it_is
from redispatch.kernels.declare.structured import check_no_internal_overlap, overlapping
from redispatch.kernels.engine.elementwise import Elementwise
from redispatch.kernels.ops.copying import copy_between_devices, is_tensor, storable

from .async_errors import late_errors
from .launch_recorder import constant
from .operands import address_of, allocator, block_of, fresh_like, located, operand, stream_for

ABOVE = keyset("AutogradCUDA", "ADInplaceOrView")  # where layers are that kernels are not to enter again
TABLES: dict[Any, Tensor] = {}  # by device and what they are; of the devices there are
MOST_TABLES = 1024
# Copies by metadata of the target and of the source, fills by metadata; of the devices there are.
READY: dict[Any, Ready] = {}


@once
def on_cuda(loops: Elementwise) -> CUDAElementwise:
    """The CUDA kernels of an `Elementwise`."""
    return CUDAElementwise(loops)


def on_cpu(op: Any, *args: Any) -> Any:
    """An operator's CPU kernel, whatever the target of kernels is."""
    with on_target(None):
        return op.redispatch(keyset("CPU"), *args)


def copy_on_device(target: Tensor, source: Tensor) -> None:
    """Writes `source`, broadcast and converted, into `target`; they are on one device and share no memory."""
    metadata = target._interned or metadata_of(target), source._interned or metadata_of(source)
    ready, to, at = READY.get(metadata), located(target), located(source)
    if ready is not None and not (to | at) & ready.mask:
        ready.start((ready.numel, to, at), stream_for(target))
        return
    out, x = operand(target), operand(source)
    if out.dtype == x.dtype and DTYPES[out.dtype].compute != out.dtype:
        bits = BITS[DTYPES[out.dtype].storage.itemsize]
        out, x = out._replace(dtype=bits), x._replace(dtype=bits)  # what is computed in another type is moved as it is
    start(metadata, elementwise_for(out, x), out, x, None)


def start(metadata: Any, loops: Elementwise, out: Operand, value: Any, dtype: str | None) -> None:
    """Launches a kernel with one output and one input. If it is as aligned as can be, the launch is remembered."""
    if 0 in out.shape:
        return
    cuda, memory = on_cuda(loops), memory_of(out)
    values = [cuda_address(x) if isinstance(x, Operand) else x for x in (out, value)]
    prepared = cuda.prepared([out], [value], dtype)
    if not any(at % VECTOR for at, x in zip(values, (out, value), strict=True) if isinstance(x, Operand)):
        if len(READY) >= LAUNCHES:
            READY.clear()
        READY[metadata] = prepared.ready(memory.driver, as_it_is)
    prepared.start(memory, values)


def copied(x: Tensor, dtype: Any = None) -> Tensor:
    """A dense copy on the same device."""
    fresh = fresh_like(x, dtype)
    copy_on_device(fresh, x)
    return fresh


def laid(x: Tensor, strides: Sequence[int] | None) -> Tensor:
    """The tensor, or a copy with these strides."""
    if strides is None or tuple(x._stride) == tuple(strides):
        return x
    made = empty(x._shape, x._dtype, x._device, tuple(strides))
    copy_on_device(made, x)
    return made


def apart(value: Any, target: Tensor, elementwise: bool = True) -> Any:
    """`value`, or a copy where it shares memory with `target`: Note [Inputs that share memory with the output]."""
    if isinstance(value, list | tuple):
        return [apart(item, target, elementwise) for item in value]
    if not isinstance(value, Tensor) or value._storage is not target._storage:
        return value
    a, b = operand(value), operand(target)
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


def copy_from_kernel(self: Tensor, dst: Tensor, non_blocking: bool) -> Tensor:
    """`dst`, with the values of `self`, which has its shape; at least one is on a CUDA device."""
    check_no_internal_overlap(dst)
    if not dst._shape.numel():
        return dst
    if self._device == dst._device:
        copy_on_device(dst, apart(self, dst))
    elif self._device.type == "cpu":
        send(dst, self, non_blocking)
    elif dst._device.type == "cpu":
        fetch(dst, self, non_blocking)
    else:
        middle = empty(self._shape, self._dtype, CPU)
        fetch(middle, self)
        send(dst, middle)
    return dst


def send(target: Tensor, source: Tensor, non_blocking: bool = False) -> None:
    """From the CPU's memory. Where that is pinned, and need not be changed on the way, the program can go on."""
    block, start_at = block_of(target), target._offset * target._dtype.itemsize
    to, stream = block.address + start_at, current_stream(block.device)
    owner = moved_as_it_is(source, target) if non_blocking else None
    if owner is not None:
        owner.used_on(block.device, stream)
        allocator().driver.send(to, bytes_of(source), stream)
        return
    dense = empty(target._shape, target._dtype, CPU)
    on_cpu(ops.aten.copy_.default, dense, source)
    if is_contiguous(target._shape, target._stride):
        allocator().driver.write(to, bytes_of(dense), stream)
        return
    staged = fresh_like(target)
    send(staged, dense)
    copy_on_device(target, staged)


def moved_as_it_is(host: Tensor, here: Tensor) -> Pinned | None:
    """The owner of pinned memory which a copy reads or writes as it lies; None where there is more to do."""
    dense = is_contiguous(host._shape, host._stride) and is_contiguous(here._shape, here._stride)
    return owner_of(host) if dense and host._dtype is here._dtype and host._shape == here._shape else None


def bytes_of(x: Tensor) -> np.ndarray:
    """The bytes of a dense tensor of the CPU's."""
    assert x._array is not None
    return x._array[x._offset : x._offset + x._shape.numel()].view(np.uint8)


def sent(x: Tensor, on: Any) -> Tensor:
    """A tensor of the CPU's on a device. No operator is called for it, so that autograd sees nothing."""
    here = empty(x._shape, x._dtype, on)
    send(here, x)
    return here


def array_on(on: Any, array: np.ndarray, dtype: Any = None) -> Tensor:
    """An array's numbers on a device; its bytes, where it is of no dtype of tensors and none is given."""
    dtype = dtype or getattr(dtypes, array.dtype.name, None)
    if dtype is None:
        array, dtype = np.ascontiguousarray(array).reshape(-1).view(np.uint8), dtypes.uint8
    here = empty(Size(array.shape), dtype, CPU)
    as_numpy(here)[...] = array
    return sent(here, on)


def table_on(on: Any, key: Any, make: Callable[[], np.ndarray]) -> Tensor:
    """An array that kernels read, sent to a device once for all calls that name it so."""

    def known() -> Tensor:
        found = TABLES.get((on, key))
        if found is None:
            if len(TABLES) >= MOST_TABLES:
                TABLES.clear()
            found = array_on(on, make())
            TABLES[on, key] = found  # now that it was written: while a graph is recorded, that is an error
        return found

    found: Tensor = constant(known)
    return found


def uploaded(value: Any, on: Any, dtype: Any) -> Tensor:
    """A Python number as a tensor without dimensions on a device."""
    one = empty((), dtype, CPU)
    on_cpu(ops.aten.fill_.Scalar, one, value)
    return constant(lambda: sent(one, on))


def fetch(target: Tensor, source: Tensor, non_blocking: bool = False) -> None:
    """To the CPU's memory. What is sent has the dtype of the source: nothing is lost on the way."""
    if not is_contiguous(source._shape, source._stride):
        source = copied(source)
    block = block_of(source)
    address, stream = address_of(source), current_stream(block.device)
    owner = moved_as_it_is(target, source) if non_blocking else None
    if owner is not None:
        owner.used_on(block.device, stream)
        allocator().driver.fetch(bytes_of(target), address, stream)
        return
    dense = empty(source._shape, source._dtype, CPU)
    late_errors(allocator().driver).check(block.device)
    data = allocator().driver.read(address, source._shape.numel() * source._dtype.itemsize, stream)
    bytes_of(dense)[:] = data
    on_cpu(ops.aten.copy_.default, target, dense)


@leaf
@inline
def copy_kernel(self: Tensor, src: Any, non_blocking: bool) -> Tensor:
    """`copy_`: at once where both tensors lie apart on one device, and such were copied before."""
    if is_tensor(src) and src._device is self._device and src._store is not self._store:
        metadata, other = self._interned or metadata_of(self), src._interned or metadata_of(src)
        ready = READY.get((metadata, other))
        if ready is not None and not (metadata.bits | other.bits):
            to, at = located(self), located(src)
            if not (to | at) & ready.mask:
                ready.start((ready.numel, to, at), stream_for(self))
                return self
    return copy_slow(self, src, non_blocking)


def copy_slow(self: Tensor, src: Any, non_blocking: bool) -> Tensor:
    with within(STATE.get().excluding(ABOVE)):
        return copy_between_devices(self, src, non_blocking)


@leaf
@inline
def fill_kernel(self: Tensor, value: Any) -> Tensor:
    """`fill_.Scalar`: one number in every place."""
    ready = READY.get(self._interned or metadata_of(self))
    if ready is not None:
        to = located(self)
        if not to & ready.mask:
            ready.start((ready.numel, to, ready.packs[0](storable(value, self._dtype))), stream_for(self))
            return self
    return filled_first(self, value)


def filled_first(self: Tensor, value: Any) -> Tensor:
    """Fills a tensor of metadata that comes for the first time, or that lies less aligned than others."""
    check_no_internal_overlap(self)
    value = storable(value, self._dtype)
    if self._dtype.is_complex:
        copy_on_device(self, uploaded(value, self._device, self._dtype))
    else:
        out = operand(self)
        start(self._interned or metadata_of(self), elementwise_for(out, out), out, value, out.dtype)
    return self


def fill_on_device(target: Tensor, value: Any) -> None:
    fill_kernel(target, value)


def fill_tensor_kernel(self: Tensor, value: Tensor) -> Tensor:
    """`fill_.Tensor`: the number of a tensor without dimensions."""
    if value._shape:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {len(value._shape)} dimensions."
        )
    check_no_internal_overlap(self)
    if value._device != self._device:
        here = empty((), value._dtype, self._device)
        copy_from_kernel(value, here, False)
        value = here
    copy_on_device(self, apart(value, self, elementwise=False))
    return self


@leaf
@inline
def zero_kernel(self: Tensor) -> Tensor:
    """`zero_`."""
    return fill_kernel(self, 0)


def conj_physical_inplace_kernel(self: Tensor) -> Tensor:
    """`conj_physical_`: each number becomes its conjugate."""
    check_no_internal_overlap(self)
    if self._dtype.is_complex and self._shape.numel():
        x = operand(self)
        on_cuda(elementwise_for(x, x, conj=True)).launch([x], [x], None)
    return self


def item_kernel(self: Tensor) -> Any:
    """`_local_scalar_dense`: waits for the device, and returns its number."""
    if self._shape.numel() != 1:
        raise RuntimeError(f"a Tensor with {self._shape.numel()} elements cannot be converted to Scalar")
    here = empty((), self._dtype, CPU)
    fetch(here, view_over(self, (), (), self._offset))
    return on_cpu(ops.aten._local_scalar_dense.default, here)


def equal_kernel(self: Tensor, other: Tensor) -> bool:
    """`equal`: the same shape and, everywhere, the same value."""
    if self._shape != other._shape:
        return False
    return not self._shape.numel() or bool((self == other).all().item())
