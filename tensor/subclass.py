"""Tensor subclasses: the same data under another class, and wrappers that have a tensor's face and no data.

A *wrapper* carries shape, strides, dtype and device, the keys of that device and the key Python; every operator on it
goes to its `__torch_dispatch__`. `as_subclass` and `_make_subclass` put existing memory under a class.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from redispatch.dispatch import HANDLER_CHANGED, keyset, shared
from redispatch.dispatch.layers.python import has_handler
from redispatch.kernels import contiguous_strides

from .devices import CPU, as_device, device_keyset
from .dtypes import dtype, get_default_dtype
from .layouts import strided
from .looks import Looks, interned, show_same
from .record import SET_REQUIRES_GRAD
from .size import Size
from .storage import UntypedStorage
from .tensor import Tensor, overridable

PYTHON = keyset("Python", "PythonTLSSnapshot")


def shell(cls: type, like: Tensor) -> Any:
    """A new tensor of class `cls` over the memory of `like`, with the keys that the class needs and no history."""
    t: Any = object.__new__(cls)
    show_same(t, like)
    t._counter = like._counter
    t._keyset = shared(like._keyset | PYTHON if has_handler(cls) else like._keyset & ~PYTHON)
    t._autograd = None
    t._view = None
    return t


def make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
    """`Tensor._make_subclass`: the memory of `data` under the class `cls`, as a leaf."""
    _check_class(cls)
    if not isinstance(data, Tensor):
        raise TypeError(f"_make_subclass(): argument 'data' (position 2) must be Tensor, not {type(data).__name__}")
    t = shell(cls, data)
    if require_grad:
        SET_REQUIRES_GRAD()(t, True)
    return t


def make_wrapper_subclass(
    cls: type,
    size: Any,
    strides: Any = None,
    storage_offset: int | None = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    _extra_dispatch_keys: int | None = None,
    storage_size: int | None = None,
) -> Any:
    """`Tensor._make_wrapper_subclass`: a tensor of class `cls` with this face and no data.

    Errors: TypeError where `cls` is no Tensor subclass or has no `__torch_dispatch__`; RuntimeError where the number
    of strides is not that of sizes. The policies that route sizes, device and layout to the handler are not built yet.
    """
    if cls not in _WRAPPERS:
        check_wrapper(cls)
    if dispatch_sizes_strides_policy or dispatch_device or dispatch_layout:
        raise NotImplementedError(
            "_make_wrapper_subclass: dispatch_sizes_strides_policy, dispatch_device and dispatch_layout are not "
            "supported"
        )
    element = get_default_dtype() if dtype is None else dtype
    looks = face(
        size if type(size) is Size else Size(size),
        None if strides is None else tuple(strides),
        element,
        CPU if device is None else device,
    )
    t: Any = object.__new__(cls)
    t._store = None if storage_size is None else UntypedStorage.without_data(storage_size, looks.device)
    t._array = None
    t._shape, t._stride, t._dtype, t._device = looks.shape, looks.stride, looks.dtype, looks.device
    t._offset = storage_offset or 0
    keys = wrapper_keyset(looks.device.type)
    t._keyset = shared(keys | _extra_dispatch_keys) if _extra_dispatch_keys else keys
    t._counter = [0]
    t._autograd = None
    t._view = None
    t._looks = None if _extra_dispatch_keys else looks
    if requires_grad:
        SET_REQUIRES_GRAD()(t, True)
    return t


_WRAPPERS: set[type] = set()  # classes that `check_wrapper` has passed


def check_wrapper(cls: Any) -> None:
    """Raises TypeError where `cls` cannot be a wrapper's class."""
    _check_class(cls)
    if not has_handler(cls):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    _WRAPPERS.add(cls)


HANDLER_CHANGED.append(lambda cls: _WRAPPERS.clear())


@lru_cache(4096)
def face(shape: Size, strides: tuple[int, ...] | None, element: dtype, on: Any) -> Looks:
    """What a wrapper shows: a program makes many that look alike."""
    stride = contiguous_strides(shape) if strides is None else strides
    if len(stride) != len(shape):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(stride)})"
        )
    return interned(element, shape, stride, as_device(on))


@cache
def wrapper_keyset(device_type: str) -> int:
    """The keys of a wrapper on a type of device."""
    return shared(device_keyset(device_type) | PYTHON)


@overridable
def as_subclass(self: Tensor, cls: type) -> Any:
    """The same memory as class `cls`; with grad, if this tensor has one, flowing through."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"cls must be a type (got {cls!r}) that inherits from Tensor")
    alias = self.alias()
    result = shell(cls, alias)
    result._autograd, result._view = alias._autograd, alias._view  # the alias itself goes away with this call
    return result


def _check_class(cls: Any) -> None:
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your "
            "class inherits from Tensor."
        )


Tensor._make_subclass = staticmethod(make_subclass)
Tensor._make_wrapper_subclass = staticmethod(make_wrapper_subclass)
Tensor.as_subclass = as_subclass  # type: ignore[attr-defined]
