"""The pickle of an object, under PyTorch's names; storages stay outside it and are numbered.

Python's pickler looks every name up before it writes it, and PyTorch's names need not exist in this process: so the
names of names.py are written by hand. For that the pickler has to be the one that is written in Python.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from types import FunctionType
from typing import Any

from redispatch.dispatch.tensor import Size, Tensor, UntypedStorage, device, dtype, layout, strided
from redispatch.kernels.ops.legacy import TypedStorage
from redispatch.nn.parameter import Parameter

from . import rebuild
from .names import NAME_OF, STORAGES

STORAGE_OF = {kind.dtype: kind for kind in STORAGES.values()}


PythonPickler: Any = pickle._Pickler  # what is written in Python can be extended, and has no public name


class Writer(PythonPickler):
    """Pickles to bytes and gathers the storages that it meets."""

    def __init__(self, protocol: int) -> None:
        self._buffer = io.BytesIO()
        super().__init__(self._buffer, protocol)
        self.storages: dict[int, tuple[str, UntypedStorage, Any]] = {}  # by identity: the number, itself, the dtype

    def pickled(self, value: Any) -> bytes:
        self.dump(value)
        return self._buffer.getvalue()

    def persistent_id(self, value: Any) -> Any:
        """A storage as its dtype, number, device and size; None for what belongs into the pickle."""
        if isinstance(value, TypedStorage):
            storage, element = value.untyped(), value.dtype
        elif isinstance(value, UntypedStorage):
            storage, element = value, None
        else:
            return None
        number, _, known = self.storages.setdefault(id(storage), (str(len(self.storages)), storage, element))
        if known is not element:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        kind = UntypedStorage if element is None else STORAGE_OF[element]
        size = storage.nbytes() // (1 if element is None else element.itemsize)
        return "storage", kind, number, str(storage.device), size

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Writes a class or function by name."""
        known = NAME_OF.get(obj)
        if known is None:
            super().save_global(obj, name)
            return
        module, _, short = known.rpartition(".")
        self.write(pickle.GLOBAL + f"{module}\n{short}\n".encode())
        self.memoize(obj)

    dispatch = {**PythonPickler.dispatch, FunctionType: save_global}

    def reducer_override(self, obj: Any) -> Any:
        """How the library's own objects are put together again."""
        if isinstance(obj, Tensor) and type(obj).__reduce_ex__ in (Tensor.__reduce_ex__, Parameter.__reduce_ex__):
            return tensor_reduced(obj)
        if isinstance(obj, Size):
            return Size, (tuple(obj),)
        if isinstance(obj, device):
            return device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, layout):
            return rebuild.layout_named, (f"torch.{obj.name}",)
        if isinstance(obj, dtype):
            return obj.name
        return NotImplemented


def tensor_reduced(x: Any) -> tuple[Any, ...]:
    """A function and its arguments, as PyTorch writes tensors: graphs and gradients are not kept."""
    state, requires_grad = dict(x.__dict__), x._requires_grad()
    if type(x) is Parameter:
        if state:
            return rebuild.rebuild_parameter_with_state, (x.data, requires_grad, OrderedDict(), state)
        return rebuild.rebuild_parameter, (x.data, requires_grad, OrderedDict())
    make, args = data_reduced(x, requires_grad)
    if type(x) is Tensor and not state:
        return make, args
    return rebuild.rebuild_subclass, (make, type(x), args, state)


def data_reduced(x: Any, requires_grad: bool) -> tuple[Any, tuple[Any, ...]]:
    """The same, without class and attributes."""
    shape, stride = tuple(x._shape), tuple(x._stride)
    if x._storage.has_data:
        storage = TypedStorage(wrap_storage=x._storage, dtype=x._dtype, _quiet=True)
        hooks: Any = OrderedDict()
        parts = (storage, x._offset, shape, stride, requires_grad, hooks)
        bits = rebuild.lazy_bits_of(x)
        return rebuild.rebuild_tensor, (*parts, bits) if bits else parts
    if type(x) is Tensor:
        return rebuild.rebuild_meta_tensor, (x._dtype, shape, stride, requires_grad)
    face = (type(x), x._dtype, shape, stride, x._offset, strided, x._device, requires_grad)
    return rebuild.rebuild_wrapper, face
