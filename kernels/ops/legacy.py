"""The names from before there were dtypes: `FloatTensor(2, 3)`, `x.storage()`, `FloatStorage(3)`.

`FloatTensor` is no class of tensors: there is one class, `Tensor`, and `isinstance(x, FloatTensor)` asks for the dtype.
A typed storage is an untyped one seen as elements of a dtype. New programs need neither.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import (
    DTYPES,
    Size,
    Tensor,
    UntypedStorage,
    dtype,
    get_default_dtype,
    overridable_in_python,
    tensor_over,
)

from .from_data import legacy

DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. "
    "This should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
    "tensor.untyped_storage() instead of tensor.storage()"
)


class TensorType(type):
    """The class of `FloatTensor` and its kin: each stands for the tensors of one dtype on the CPU."""

    dtype: dtype

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        """Memory of a shape, `FloatTensor(2, 3)`, or data, `FloatTensor([1, 2])`."""
        if args and isinstance(args[0], Tensor) and args[0].dtype is not cls.dtype:
            raise TypeError(f"expected {cls.__module__}.{cls.__name__} (got {args[0].type()})")
        if args and isinstance(args[0], TypedStorage):
            args = (args[0].untyped(), *args[1:])
        return legacy(cls.dtype, *args)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance._dtype is cls.dtype and instance._device.type == "cpu"

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


class TypedStorage:
    """A storage as a sequence of elements of one dtype: `FloatStorage(3)`, `FloatStorage([1, 2])`, `x.storage()`."""

    dtype: dtype = None  # type: ignore[assignment]  # the subclasses', and that of the storage it is made of

    def __init__(self, data: Any = 0, *, wrap_storage: Any = None, dtype: Any = None, _quiet: bool = False) -> None:
        if not _quiet:
            warnings.warn(DEPRECATED, UserWarning, stacklevel=2)
        element = dtype or type(self).dtype or get_default_dtype()
        self.dtype = element
        if wrap_storage is not None:
            self._untyped = wrap_storage
        elif isinstance(data, int):
            self._untyped = UntypedStorage(data * element.itemsize)
        else:
            array = np.asarray(list(data)).astype(element.array)
            self._untyped = UntypedStorage.of_array(array)

    def _elements(self) -> Any:
        """A tensor over all of it."""
        count = self.size()
        array = self._untyped.typed(self.dtype)
        return tensor_over(self._untyped, array, Size((count,)), (1,), 0, self.dtype, self._untyped.device)

    def untyped(self) -> UntypedStorage:
        return self._untyped

    def size(self) -> int:
        """The number of elements."""
        return self._untyped.nbytes() // self.dtype.itemsize

    def nbytes(self) -> int:
        return self._untyped.nbytes()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return self._untyped.data_ptr()

    @property
    def device(self) -> Any:
        return self._untyped.device

    def __len__(self) -> int:
        return self.size()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._elements()[self._place(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements()[index if isinstance(index, slice) else self._place(index)] = value

    def _place(self, index: Any) -> int:
        at = operator.index(index)
        if not -self.size() <= at < self.size():
            raise IndexError(f"index {at} out of range for storage of size {self.size()}")
        return at

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        return self._elements().tolist()

    def fill_(self, value: Any) -> TypedStorage:
        self._elements().fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
        """Writes the elements of another storage, converted. RuntimeError where it has another number of them."""
        if source.size() != self.size():
            raise RuntimeError(f"size mismatch: {self.size()} elements, and {source.size()} to copy")
        self._elements().copy_(source._elements())
        return self

    def clone(self) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped.clone(), dtype=self.dtype, _quiet=True)

    def resize_(self, size: int) -> TypedStorage:
        self._untyped.resize_(size * self.dtype.itemsize)
        return self

    def type(self) -> str:
        return f"torch.{self.dtype.tensor_name}Storage"

    def __repr__(self) -> str:
        shown = "\n".join(f" {value}" for value in self)
        return f"{shown}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


@overridable_in_python
def storage(self: Tensor) -> TypedStorage:
    """Returns the tensor's storage, as elements of its dtype. Deprecated, as in PyTorch: see `untyped_storage`."""
    warnings.warn(DEPRECATED, UserWarning, stacklevel=3)
    return TypedStorage(wrap_storage=self._storage, dtype=self._dtype, _quiet=True)


Tensor.storage = storage  # type: ignore[attr-defined]  # attached here
Storage = TypedStorage  # of the default dtype

TYPES: dict[str, Any] = {}  # "FloatTensor", "FloatStorage", "ComplexFloatStorage", ... -> the class
for _dtype in DTYPES.values():
    _name = _dtype.tensor_name
    TYPES[f"{_name}Storage"] = type(f"{_name}Storage", (TypedStorage,), {"dtype": _dtype, "__module__": "torch"})
    if not _dtype.is_complex:
        TYPES[f"{_name}Tensor"] = TensorType(f"{_name}Tensor", (), {"dtype": _dtype, "__module__": "torch"})
