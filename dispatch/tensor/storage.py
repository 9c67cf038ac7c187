"""Storages: untyped bytes, shared by every tensor that is a view of them.

A storage keeps its memory as a flat numpy array, and the same bytes as arrays of the other element types that it has
been asked for. A tensor holds on to the array of its dtype, so that a kernel is called without touching the storage
at all, and a tensor that nobody views needs no storage object (tensor.py, Note [Storages are made when they are asked
for]).

Note [Resizing finds its tensors]
`resize_` may move the bytes, and tensors hold arrays over the old ones. Resizing is rare and must not cost every
other operation a look-up, so it asks the garbage collector which tensors hold this storage, and gives them new arrays.
That takes .03 s and more, by the size of the heap; a tensor that is resized, or is given as `out`, mostly is the only
one, and the number of references to its storage proves it (`resize_storage_of`).
A tensor that reaches beyond the end of a storage made smaller gets None: using it is an error until the storage has
grown again.
"""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Iterator
from sys import getrefcount
from typing import Any

import numpy as np

from redispatch.dispatch import TensorBase

from .devices import CPU, KINDS, Allocator, as_device, device, indexed
from .dtypes import dtype
from .geometry import last_element

BYTE = np.dtype(np.uint8)
_new = object.__new__


class StorageBase:
    """A block of bytes on one device. Tensors make theirs from typed arrays, as `UntypedStorage`."""

    __slots__ = (
        "_array",
        "_retyped",
        "_nbytes",
        "device",
        "block",
        "_free",
        "_owner",
        "_resizable",
        "_descriptor",
        "__weakref__",
    )
    _array: np.ndarray | None  # all the bytes
    block: Any  # where they are instead on a user's device: what its allocator gave
    _free: Any  # gives the block back; called when the storage goes. Not there where blocks go back by themselves
    _retyped: dict[np.dtype, np.ndarray] | None  # the same bytes as other elements; made when first asked for
    _nbytes: int  # where there is no array
    _owner: Any  # what keeps foreign memory alive
    _resizable: bool  # not so where others hold the memory, too: numpy arrays, other processes
    _descriptor: int  # of the file that holds the bytes, where processes share them

    def __new__(cls, *args: Any, **kwargs: Any) -> StorageBase:
        if cls is StorageBase:
            raise RuntimeError("Cannot directly construct StorageBase; subclass it and then construct that")
        return _new(cls)

    def __init__(self, data: Any = 0, device: Any = CPU) -> None:
        where, nbytes = as_device(device), data if isinstance(data, int) else len(data)
        self._begin(nbytes, where)
        if where.type == "cpu":
            self._array = allocate(nbytes, BYTE)
        if self.allocator is not None:
            self.device = indexed(where)
            self._obtain(nbytes)
        if data is not nbytes and self.has_data:
            self.write(bytes_of(data))

    def _begin(self, nbytes: int, device: device) -> None:
        """Sets all that a storage without bytes has."""
        self._array = self._retyped = self._owner = self.block = None
        self._nbytes, self.device, self._resizable = nbytes, device, True

    @staticmethod
    def of_array(array: np.ndarray, owner: Any = None) -> UntypedStorage:
        """The storage whose bytes are those of a flat contiguous array; nothing is copied."""
        storage = object.__new__(UntypedStorage)
        storage._array = array
        storage._retyped = None
        storage.device = CPU
        storage.block = None
        storage._owner = owner
        storage._resizable = owner is None
        return storage

    @staticmethod
    def on_device(nbytes: int, device: device, allocator: Allocator) -> UntypedStorage:
        """A storage with a block of the memory of a device, which has an index."""
        storage = _new(UntypedStorage)
        storage._array = None
        storage._retyped = None
        storage._nbytes = nbytes
        storage.device = device
        storage._owner = None
        storage._resizable = True
        storage.block = allocator.allocate(nbytes, device)
        if not allocator.returning:
            storage._return_block(allocator)
        return storage

    @staticmethod
    def without_data(nbytes: int, device: device) -> UntypedStorage:
        """A storage that has a size and no bytes: of a meta tensor, or of a wrapper around other tensors."""
        storage = object.__new__(UntypedStorage)
        storage._begin(nbytes, device)
        return storage

    @property
    def allocator(self) -> Allocator | None:
        """Returns the allocator of a user's device."""
        kind = KINDS.get(self.device.type)
        return None if kind is None else kind.allocator

    def _obtain(self, nbytes: int) -> None:
        """Gets a block of a user's device, which goes back to it when the storage goes."""
        allocator = self.allocator
        assert allocator is not None
        self.block = allocator.allocate(nbytes, self.device)
        if not allocator.returning:
            self._return_block(allocator)

    def _return_block(self, allocator: Allocator) -> None:
        self._free = weakref.finalize(self, allocator.free, self.block)
        self._free.atexit = False  # a device need not outlive its program's end

    @property
    def has_data(self) -> bool:
        return self._array is not None or self.block is not None

    def typed(self, element: dtype) -> np.ndarray | None:
        """All the bytes as a flat array of that element type, the odd bytes at the end left out; None without data."""
        array = self._array
        if array is None or array.dtype is element.array:
            return array
        if self._retyped is None:
            self._retyped = {}
        found = self._retyped.get(element.array)
        if found is None:
            whole = array.view(BYTE)
            found = whole[: len(whole) // element.itemsize * element.itemsize].view(element.array)
            self._retyped[element.array] = found
        return found

    def nbytes(self) -> int:
        return self._nbytes if self._array is None else self._array.nbytes

    size = __len__ = nbytes

    def data_ptr(self) -> int:
        """The address of the first byte; 0 where there is none."""
        array = self._array
        if array is None:
            if self.block is not None and self.allocator is not None:
                return self.allocator.address(self.block)
            if self.device.type == "meta":
                return 0
            raise RuntimeError("Attempted to access the data pointer on an invalid python storage.")
        return array.__array_interface__["data"][0] if array.nbytes else 0

    @property
    def _cdata(self) -> int:
        """A number that two tensors share exactly if they share the storage."""
        return id(self)

    @property
    def descriptor(self) -> int | None:
        """The file that holds the bytes, where processes share them."""
        return getattr(self, "_descriptor", None)

    @descriptor.setter
    def descriptor(self, value: int) -> None:
        self._descriptor = value

    def resizable(self) -> bool:
        """Returns whether `resize_` may move the bytes: not so where others hold the memory, too."""
        return self._resizable

    def is_shared(self) -> bool:
        """Whether other processes can see the bytes."""
        return self.descriptor is not None

    def take(self, array: np.ndarray) -> None:
        """Lets the bytes be those of another flat array, for all tensors that hold this storage."""
        self._array, self._retyped, self._owner = array, None, None
        self._tell_holders()

    def resize_(self, nbytes: int) -> Any:
        """Changes the size in bytes; what fits keeps its value, new bytes are undefined.

        Note [Resizing finds its tensors]. Errors: RuntimeError for memory that is shared with numpy.
        """
        self._resize(nbytes)
        self._tell_holders()
        return self

    def _resize(self, nbytes: int) -> None:
        """Gets memory of another size; the caller tells the tensors that hold the storage."""
        if nbytes < 0:
            raise RuntimeError(f"resize_: the size in bytes must not be negative, got {nbytes}")
        if not self._resizable:
            raise RuntimeError("Trying to resize storage that is not resizable")
        if self._array is not None:
            former = self._array.view(BYTE)
            self._array = allocate(nbytes, BYTE)
            self._retyped = None
            kept = min(nbytes, len(former))
            self._array[:kept] = former[:kept]
        elif self.block is not None:
            kept_bytes, free = self.read()[:nbytes], getattr(self, "_free", None)
            self._obtain(nbytes)
            self.write(kept_bytes)
            if free is not None:
                free()
        self._nbytes = nbytes

    def _tell_holders(self) -> None:
        for holder in gc.get_referrers(self):
            if isinstance(holder, TensorBase):
                self.hand_out(holder)

    def hand_out(self, holder: Any) -> None:
        """Gives a tensor the array of its dtype, if all its elements lie inside."""
        array = self.typed(holder._dtype)
        inside = array is None or last_element(holder._shape, holder._stride, holder._offset) < len(array)
        holder._array = array if inside else None

    def clone(self) -> UntypedStorage:
        """A storage of its own with the same bytes."""
        copy = UntypedStorage(self.nbytes(), self.device)
        return copy.copy_(self) if self.has_data else copy

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Any:
        """Takes the bytes of another storage of the same size."""
        if source.device.type == "meta" != self.device.type:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        if source.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            )
        self.write(source.read())
        return self

    def read(self) -> np.ndarray:
        """The bytes: those themselves that lie in the CPU's memory, a copy of others. RuntimeError without data."""
        if self._array is not None:
            return self._array.view(BYTE)
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if self.block is None or self.allocator is None:
            raise RuntimeError("Attempted to access the data of an invalid python storage.")
        return np.frombuffer(self.allocator.read(self.block, self._nbytes), BYTE)

    def write(self, data: np.ndarray) -> None:
        """Puts bytes at the beginning, wherever the memory is."""
        if self._array is not None:
            self._array.view(BYTE)[: len(data)] = data
        elif self.block is not None and self.allocator is not None:
            self.allocator.write(self.block, data)
        else:
            raise RuntimeError("Attempted to access the data of an invalid python storage.")

    def tolist(self) -> list[int]:
        return self.read().tolist()

    def __getitem__(self, index: Any) -> Any:
        """A byte, or some in a row, as a storage over the same memory."""
        found, place = self.read(), self._place(index)
        if isinstance(place, int):
            return found[place].item()
        return UntypedStorage.of_array(found[place], owner=self)

    def __setitem__(self, index: Any, value: int) -> None:
        place, former = self._place(index), self.read()
        if former.flags.writeable:
            former[place] = value & 255
        else:  # a copy of what is on a user's device
            changed = former.copy()
            changed[place] = value & 255
            self.write(changed)

    def _place(self, index: Any) -> Any:
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
            return index
        if not isinstance(index, int):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        if not -self.nbytes() <= index < self.nbytes():
            raise IndexError(f"index {index} out of range for storage of size {self.nbytes()}")
        return index

    def fill_(self, value: int) -> Any:
        """Gives all bytes one value."""
        self[:] = value
        return self

    def byteswap(self, element: dtype) -> None:
        """Turns the order of the bytes of every element around; of every part of a complex one."""
        size = element.to_real().itemsize
        if self.nbytes() % size:
            raise RuntimeError(f"the length of data is not a multiple of {size}")
        self.write(self.read().reshape(-1, size)[:, ::-1].reshape(-1).copy())

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        data = "..." if self.device.type == "meta" else "\n ".join(map(str, self))
        device = f"(device={self.device})"
        return f"{'' if data == '...' else ' '}{data}\n[torch.storage.UntypedStorage{device} of size {self.nbytes()}]"


class UntypedStorage(StorageBase):
    """A block of bytes on one device: of a size, `UntypedStorage(10)`, or of values, `UntypedStorage([1, 2])`."""

    __slots__ = ("__dict__",)


def bytes_of(data: Any) -> np.ndarray:
    """Returns a sequence of ints as bytes, the lowest 8 bits of each."""
    for one in data:
        if not isinstance(one, int):
            raise RuntimeError(
                f"torch.UntypedStorage(): tried to construct a storage from a sequence ({type(data).__name__}), but "
                f"one of the items was of type {type(one).__name__} instead of int"
            )
    return np.array([one & 255 for one in data], BYTE)


class _Probe:
    def __init__(self) -> None:
        self.held = object()


# What `getrefcount(tensor._store)` says of what the tensor alone holds; measured, since interpreters differ.
ALONE = (lambda probe: getrefcount(probe.held))(_Probe())


def resize_storage_of(tensor: Any, nbytes: int) -> None:
    """Changes the size of a tensor's storage in bytes, as its `resize_`. Note [Resizing finds its tensors]."""
    is_only_holder = getrefcount(tensor._store) == ALONE  # a name for it here would count, too
    tensor._storage._resize(nbytes)
    if is_only_holder:
        tensor._store.hand_out(tensor)
    else:
        tensor._store._tell_holders()


def allocate(elements: int, numpy_dtype: Any) -> np.ndarray:
    """A flat array of undefined values. RuntimeError, with the bytes asked for, where the memory is not to be had."""
    try:
        return np.empty(elements, numpy_dtype)
    except (MemoryError, ValueError, OverflowError):
        raise cannot_allocate(elements * np.dtype(numpy_dtype).itemsize) from None


def cannot_allocate(nbytes: int) -> RuntimeError:
    """Returns the error for bytes that are not to be had."""
    return RuntimeError(
        f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {nbytes} bytes. Error code 12 (Cannot "
        "allocate memory)"
    )


def map_path(filename: Any, shared: bool | None = False, nbytes: int = 0) -> UntypedStorage:
    """Returns a storage over the bytes of a file; `shared` writes go to the file, which is made as large as asked.

    Errors: RuntimeError for a file that cannot be opened, or is smaller and not shared.
    """
    name = os.fspath(filename)
    try:
        handle = os.open(name, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o600)
    except OSError as problem:
        how = f"{'read-write' if shared else 'read-only'} mode: {problem.strerror} ({problem.errno})"
        raise RuntimeError(f"unable to open file <{name}> in {how}") from None
    try:
        size = os.fstat(handle).st_size
        if nbytes > size and shared:
            os.ftruncate(handle, nbytes)
        elif nbytes > size:
            raise RuntimeError(f"file <{name}> size <{size}> is smaller than the required mapping size <{nbytes}>")
        from mmap import ACCESS_COPY, ACCESS_WRITE, mmap  # here, because a browser has no such memory

        pages = mmap(handle, nbytes or size or 1, access=ACCESS_WRITE if shared else ACCESS_COPY)
    finally:
        os.close(handle)
    storage = UntypedStorage.of_array(np.frombuffer(pages, BYTE)[: nbytes or size], owner=pages)
    storage._resizable, storage._filename = False, name if shared else None  # type: ignore[attr-defined]  # of __dict__
    return storage


# Memory that processes share: `share_memory_` moves the bytes of a storage there --------------------------------------
#
# A child made by `fork` sees what its parent writes, and the other way round. A tensor that is put into a queue of
# `multiprocessing` travels as a file descriptor, and the process that gets it maps the same pages; what is not shared
# travels as a copy. The memory is a file without a name, so it goes when the last process lets go of it, whatever way
# that process ends: there is nothing to clean up.


def anonymous_file(nbytes: int) -> int:
    """The descriptor of a file that has no name and this size; in memory where the system can."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("redispatch")
    else:
        from tempfile import mkstemp  # here, because it takes long to import, and few systems need it

        descriptor, path = mkstemp()
        os.unlink(path)
    os.ftruncate(descriptor, nbytes)
    return descriptor


def map_file(storage: UntypedStorage, descriptor: int, nbytes: int) -> None:
    """Makes the first bytes of a file those of a storage, which from now on owns the descriptor."""
    from mmap import mmap  # here, because a browser has no such memory

    pages = mmap(descriptor, max(nbytes, 1))
    storage.take(np.frombuffer(pages, BYTE)[:nbytes])
    storage.descriptor = descriptor
    storage._resizable = False
    weakref.finalize(storage, os.close, descriptor).atexit = False  # the system closes it then


def share_memory_(self: UntypedStorage) -> UntypedStorage:
    """Moves the bytes to where other processes can see them; all tensors over the storage come along.

    Errors: RuntimeError for a storage that is not in the CPU's memory.
    """
    if self.is_shared():
        return self
    share_fd(self)
    former = self.read()
    descriptor = anonymous_file(max(len(former), 1))
    map_file(self, descriptor, len(former))
    self.write(former)
    return self


def share_fd(self: UntypedStorage) -> None:
    """RuntimeError for memory that is not the CPU's."""
    if self.device.type != "cpu" or not self.has_data:
        raise RuntimeError("_share_fd_: only available on CPU")
    register()


def new_shared(nbytes: int) -> UntypedStorage:
    """A shared storage of zeros."""
    register()
    storage = UntypedStorage(0)
    map_file(storage, anonymous_file(max(nbytes, 1)), nbytes)
    return storage


# --- between processes ------------------------------------------------------------------------------------------------


def register() -> None:
    """Tells multiprocessing how a storage travels, once something is shared."""
    from multiprocessing.reduction import ForkingPickler  # here, because few programs need it

    ForkingPickler.register(UntypedStorage, reduce_shared)


def reduce_shared(storage: UntypedStorage) -> Any:
    """A descriptor for shared memory, which only multiprocessing can hand over; what pickle keeps for other memory."""
    from multiprocessing.reduction import DupFd  # here, because few programs need it

    if storage.descriptor is None:
        return storage.__reduce__()
    return received, (DupFd(storage.descriptor), storage.nbytes())


def received(handle: Any, nbytes: int) -> UntypedStorage:
    """The storage over the memory that another process has sent."""
    register()
    storage = UntypedStorage(0)
    map_file(storage, handle.detach(), nbytes)
    return storage


UntypedStorage.share_memory_ = share_memory_  # type: ignore[attr-defined]  # attached here
UntypedStorage._new_shared = staticmethod(new_shared)  # type: ignore[attr-defined]  # attached here
