"""Typed storages: an untyped one seen as a sequence of elements of a dtype, `x.storage()` or `FloatStorage(3)`.

PyTorch's former interface, and what its module `storage` has; new programs use `x.untyped_storage()`. Making one warns
once in a program. The class of all of them is `TypedStorage`; `FloatStorage` makes one of its dtype.
"""

from __future__ import annotations

import collections.abc
import operator
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import (
    CPU,
    StorageBase,
    Tensor,
    UntypedStorage,
    as_device,
    dtype,
    dtypes,
    get_default_dtype,
    overridable_in_python,
)
from redispatch.dispatch.tensor.storage import BYTE, map_path, share_fd

from . import copying
from .from_data import new_memory, storage_of, tensor

DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. "
    "This should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
    "tensor.untyped_storage() instead of tensor.storage()"
)
_warned = _always = False


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    """Warns that typed storages go: once, or always after `_set_always_warn_typed_storage_removal(True)`."""
    global _warned
    if _always or not _warned:
        warnings.warn(DEPRECATED, UserWarning, stacklevel=stacklevel + 1)
        _warned = True


def _reset_warn_typed_storage_removal() -> None:
    global _warned
    _warned = False


def _get_always_warn_typed_storage_removal() -> bool:
    return _always


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    global _always
    assert isinstance(always_warn, bool)
    _always = always_warn


CASTS = "double float half long int short char byte bool bfloat16 complex_double complex_float"
OTHERWISE = {"char": "int8", "byte": "uint8", "complex_double": "complex128", "complex_float": "complex64"}


class Alike:
    """The methods that storages of elements and of bytes have alike; `_to` converts."""

    def cpu(self: Any) -> Any:
        return self.to(device=CPU)

    def to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
        """Returns the storage on a device; itself if it is there."""
        untyped, on = getattr(self, "_untyped_storage", self), as_device(device)
        if on == untyped.device:
            return self
        copy = UntypedStorage(untyped.nbytes(), on).copy_(untyped)
        return self._new_wrapped_storage(copy) if isinstance(self, TypedStorage) else copy

    def new(self: Any) -> Any:
        return type(self)()

    def get_device(self: Any) -> int:
        return -1 if self.device.type == "cpu" else self.device.index

    def is_pinned(self, device: Any = "cuda") -> bool:
        return False

    def __sizeof__(self: Any) -> int:
        return object.__sizeof__(self) + self.nbytes()


def cast_to(element: dtype) -> Any:
    """Returns the method that converts the elements."""

    def cast(self: Any) -> TypedStorage:
        return self._to(element)

    return cast


for _name in CASTS.split():
    setattr(Alike, _name, cast_to(getattr(dtypes, OTHERWISE.get(_name, _name))))


class TypedStorage(Alike):
    """A storage as a sequence of elements of one dtype: `x.storage()`, `TypedStorage(3, dtype=int64, device="cpu")`.

    data: a number of elements, or a sequence of them. wrap_storage: the storage to look at, instead of a new one.
    Errors: RuntimeError and TypeError for arguments that do not go together.
    """

    is_sparse = False
    _dtype: Any  # of FloatStorage and its kin
    dtype: dtype

    def __init__(
        self, *args: Any, device: Any = None, dtype: Any = None, wrap_storage: Any = None, _internal: bool = False
    ) -> None:
        if not _internal:
            _warn_typed_storage_removal()
        forms = (
            "TypedStorage.__init__ received an invalid combination of arguments. Expected one of:\n"
            " * (*, torch.device device, torch.dtype dtype)\n * (int size, *, torch.device device, torch.dtype dtype)\n"
            " * (Sequence data, *, torch.device device, torch.dtype dtype)\n"
            " * (*, UntypedStorage wrap_storage, torch.dtype dtype)\n"
        )
        check_arguments(forms, args, wrap_storage)
        if wrap_storage is not None:
            if dtype is None:
                raise RuntimeError(f"{forms}Argument 'dtype' must be specified")
            if not isinstance(dtype, dtypes.dtype):
                raise TypeError(f"{forms}Argument 'dtype' must be torch.dtype, not {type(dtype)}")
            if device is not None:
                raise RuntimeError(f"{forms}Argument 'device' should not be specified when 'wrap_storage' is given")
        self.dtype = get_default_dtype() if dtype is None else dtype
        self._untyped_storage: Any = (
            wrap_storage
            if wrap_storage is not None
            else made(args[0] if args else 0, self.dtype, as_device(device or CPU))
        )

    def __getattr__(self, name: str) -> Any:
        if name not in FORWARDED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._untyped_storage, FORWARDED[name])

    def _elements(self) -> Tensor:
        """A tensor over all of it."""
        return new_memory(self._untyped_storage, self.dtype)

    def untyped(self) -> UntypedStorage:
        """Returns the storage as bytes."""
        _warn_typed_storage_removal()
        return self._untyped_storage

    def size(self) -> int:
        """The number of elements."""
        _warn_typed_storage_removal()
        return self._size()

    __len__ = size

    def _size(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def element_size(self) -> int:
        return self.dtype.itemsize

    _element_size = element_size

    @property
    def is_cuda(self) -> bool:
        _warn_typed_storage_removal()
        return bool(self.device.type == "cuda")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """The storage on a CUDA device, as an untyped one: `redispatch.cuda` gives these the method."""
        return vars(UntypedStorage)["cuda"](self, device, non_blocking)

    def _new_wrapped_storage(self, untyped_storage: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped_storage, dtype=self.dtype, _internal=True)

    def __getitem__(self, index: Any) -> Any:
        _warn_typed_storage_removal()
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._elements()[self._place(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        _warn_typed_storage_removal()
        self._setitem(index, value)

    def _setitem(self, index: Any, value: Any) -> None:
        if isinstance(value, UntypedStorage | TypedStorage):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        self._elements()[index if isinstance(index, slice) else self._place(index)] = value

    def _place(self, index: Any) -> int:
        if not hasattr(type(index), "__index__"):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        at = operator.index(index)
        if not -self._size() <= at < self._size():
            raise IndexError(f"index {at} out of range for storage of size {self._size()}")
        return at

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        return self._elements().tolist()

    def fill_(self, value: Any) -> TypedStorage:
        _warn_typed_storage_removal()
        self._setitem(slice(None), value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Takes the bytes of another storage of the same size."""
        self._untyped_storage.copy_(getattr(source, "_untyped_storage", source))
        return self

    def clone(self) -> TypedStorage:
        return self._new_wrapped_storage(self._untyped_storage.clone())

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return self._new_wrapped_storage(self._untyped_storage.__deepcopy__(memo))

    _deepcopy = __deepcopy__

    def resize_(self, size: int) -> TypedStorage:
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    _resize_ = resize_

    def _to(self, dtype: Any) -> TypedStorage:
        """The elements, converted."""
        changed = self._elements().to(dtype)
        changed = changed.clone() if changed.data_ptr() == self.data_ptr() else changed
        return TypedStorage(wrap_storage=changed.untyped_storage(), dtype=dtype, _internal=True)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Returns the name of the class of such storages; those of another, if its name is given."""
        if dtype is None:
            return f"{'torch.cuda' if self.device.type == 'cuda' else 'torch'}.{self.pickle_storage_type()}"
        return self._untyped_storage.type(dtype, non_blocking)

    def pickle_storage_type(self) -> str:
        return f"{self.dtype.tensor_name}Storage"

    _pickle_storage_type = pickle_storage_type

    def share_memory_(self) -> TypedStorage:
        self._untyped_storage.share_memory_()
        return self

    _share_memory_ = share_memory_

    @classmethod
    def from_buffer(cls, *args: Any, dtype: Any = None, device: Any = None, **kwargs: Any) -> TypedStorage:
        """Copies the bytes of a buffer: `ShortStorage.from_buffer(data, "little", count=-1, offset=0)`."""
        element = dtype or getattr(cls, "_dtype", None) or get_default_dtype()
        untyped = from_buffer(*args, dtype=element, **kwargs)
        return TypedStorage(wrap_storage=untyped, dtype=element, _internal=True)

    @classmethod
    def from_file(cls, filename: Any, shared: bool, size: int) -> TypedStorage:
        """Maps a file into memory: `FloatStorage.from_file(name, shared, size)`."""
        if cls is TypedStorage:
            raise RuntimeError("from_file can only be called on derived classes")
        element = cls._dtype
        untyped = map_path(filename, shared, size * element.itemsize)
        return TypedStorage(wrap_storage=untyped, dtype=element, _internal=True)

    def _write_file(self, file: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        """Writes the bytes to a file, behind the number of elements if `save_size`."""
        data = self._untyped_storage.cpu().read().tobytes()
        file.write((len(data) // element_size).to_bytes(8, "little") * save_size + data)

    def __repr__(self) -> str:
        data = "..." if self.device.type == "meta" else "\n ".join(map(str, self.tolist()))
        shown = f"{'' if data == '...' else ' '}{data}"
        return f"{shown}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self._size()}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self._untyped_storage, self.dtype)


def _rebuilt(untyped: UntypedStorage, element: dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=element, _internal=True)


class ClassProperty:
    """A property of a class, which may warn."""

    def __init__(self, getter: Any) -> None:
        self.getter = getter

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self.getter(owner)


class _LegacyStorageMeta(type):
    """The class of `FloatStorage` and its kin, of which the typed storages of their dtype are instances."""

    _dtype: dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is TypedStorage and instance.dtype is getattr(cls, "_dtype", None)


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """The base of `FloatStorage` and its kin: calling one makes a TypedStorage."""

    def __new__(cls, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None,
                _internal: bool = False) -> Any:  # fmt: skip
        if not _internal:
            _warn_typed_storage_removal()
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        forms = (
            f"{cls}.__new__ received an invalid combination of arguments. Expected one of:\n"
            " * no arguments\n * (int size)\n * (Sequence data)\n * (*, UntypedStorage wrap_storage)\n"
        )
        for name, value in (("device", device), ("dtype", dtype)):
            if value is not None:
                raise RuntimeError(f"{forms}Keyword argument '{name}' cannot be specified")
        check_arguments(forms, args, wrap_storage)
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls._dtype, _internal=True)

    @ClassProperty
    def dtype(cls) -> Any:
        _warn_typed_storage_removal(3)
        return cls._dtype


LEGACY: dict[Any, Any] = {}  # dtype -> FloatStorage, ...; legacy.py fills it


def check_arguments(forms: str, args: tuple[Any, ...], wrap_storage: Any) -> None:
    """Errors for arguments of a storage that do not go together; `forms` are those that do."""
    if wrap_storage is not None:
        if args:
            raise RuntimeError(f"{forms}No positional arguments should be given when using 'wrap_storage'")
        if not isinstance(wrap_storage, StorageBase):
            raise TypeError(f"{forms}Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
    elif len(args) > 1:
        raise RuntimeError(f"{forms}Too many positional arguments")
    elif args and not isinstance(args[0], int | np.integer | collections.abc.Sequence):
        raise TypeError(f"{forms}Argument type not recognized: {type(args[0])}")
    elif args and isinstance(args[0], str):
        raise TypeError("new(): invalid data type 'str'")


def made(data: Any, element: dtype, on: Any) -> UntypedStorage:
    """A storage for so many elements, or of these."""
    if isinstance(data, int | np.integer):
        return UntypedStorage(int(data) * element.itemsize, on)
    if on.type == "meta":
        return UntypedStorage(len(data) * element.itemsize, on)
    return tensor(list(data), dtype=element, device=on).untyped_storage()


def from_buffer(
    buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *, dtype: dtype
) -> UntypedStorage:
    """Returns a storage with a copy of a buffer's bytes, those of each element in this machine's order."""
    size = dtype.itemsize
    order = sys.byteorder if size == 1 else byte_order
    if order is None:
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    if order not in ("little", "big", "native"):
        raise ValueError(f"invalid byte_order '{order}' (expected 'big', 'little', or 'native')")
    data = np.frombuffer(buffer, BYTE)
    rest, limit = len(data) - offset, len(data)
    if not 0 <= offset <= limit:
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({limit}) , but got {offset}")
    if count < 0 and rest % size:
        raise ValueError(f"buffer size ({rest}) must be a multiple of element size ({size})")
    if count >= 0 and rest // size < count:
        has = f"{rest // size} elements after offset {offset}"
        raise ValueError(f"buffer has only {has}, but specified a size of {count}")
    data = data[offset : offset + count * size] if count >= 0 else data[offset:]
    storage = UntypedStorage.of_array((data != 0 if dtype is dtypes.bool else data).astype(BYTE))
    if order not in ("native", sys.byteorder):
        storage.byteswap(dtype)
    return storage


# What typed storages ask their bytes, under PyTorch's names
_SAME = "device _cdata filename nbytes data_ptr resizable is_shared _share_fd_cpu_ _share_filename_cpu_"
FORWARDED = {name: name for name in _SAME.split()}
FORWARDED |= {"_nbytes": "nbytes", "_data_ptr": "data_ptr", "_is_shared": "is_shared"}


def untyped_type(self: UntypedStorage, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Returns the name of the class; the bytes as elements, where a class of typed storages is given."""
    if dtype is None:
        return f"torch.{'cuda' if self.device.type == 'cuda' else 'storage'}.UntypedStorage"
    name = dtype if isinstance(dtype, str) else f"torch.{dtype.__name__}"
    kind = next(kind for kind in LEGACY.values() if f"torch.{kind.__name__}" == name)
    return TypedStorage(self.nbytes(), dtype=kind._dtype, _internal=True).copy_(self)


def converted(self: UntypedStorage, dtype: dtype) -> TypedStorage:
    """The bytes as numbers of a dtype."""
    return TypedStorage(wrap_storage=self, dtype=dtypes.uint8, _internal=True)._to(dtype)


ATTACHED = {  # to storages of bytes
    **{name: value for name, value in vars(Alike).items() if not name.startswith("__") or name == "__sizeof__"},
    "_to": converted,
    "type": untyped_type,
    "from_file": staticmethod(map_path),
    "from_buffer": staticmethod(from_buffer),
    "__copy__": UntypedStorage.clone,
    "element_size": lambda self: 1,
    "_fix_weakref": lambda self: None,  # what a weak reference found is alive
    "_share_fd_cpu_": share_fd,
    "_share_filename_cpu_": share_fd,
    "filename": property(lambda self: getattr(self, "_filename", None)),
    "untyped": lambda self: self,
}
for _name, _value in ATTACHED.items():
    setattr(StorageBase, _name, _value)


def _dtype_to_storage_type_map() -> dict[dtype, str]:
    """Returns the name of the class of typed storages of each dtype."""
    return {element: kind.__name__ for element, kind in LEGACY.items()}


def _storage_type_to_dtype_map() -> dict[str, dtype]:
    """Returns the dtype of each class of typed storages, by its name."""
    return {kind.__name__: element for element, kind in LEGACY.items()}


@overridable_in_python
def _typed_storage(self: Tensor) -> TypedStorage:
    """Returns the tensor's storage, as elements of its dtype."""
    return TypedStorage(wrap_storage=self._storage, dtype=self._dtype, _internal=True)


@overridable_in_python
def storage(self: Tensor) -> TypedStorage:
    """Returns the tensor's storage, as elements of its dtype. Deprecated, as in PyTorch: see `untyped_storage`."""
    _warn_typed_storage_removal(stacklevel=3)
    return TypedStorage(wrap_storage=self._storage, dtype=self._dtype, _internal=True)


@overridable_in_python
def set_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Makes the tensor show other memory, in place: a tensor's, or a storage's."""
    source = kwargs.get("source", args[0] if args else None)
    if isinstance(source, TypedStorage):
        untyped = storage_of(source, self._dtype, "got type")
        args, kwargs = ((), {**kwargs, "source": untyped}) if "source" in kwargs else ((untyped, *args[1:]), kwargs)
    return copying.set_(self, *args, **kwargs)


Tensor.set_ = set_  # type: ignore[attr-defined]  # attached here
Tensor._typed_storage = _typed_storage  # type: ignore[attr-defined]  # attached here
Tensor.storage = storage  # type: ignore[attr-defined]  # attached here
