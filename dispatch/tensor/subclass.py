"""Tensor subclasses: the same data under another class, and wrappers that have a tensor's face and no data.

A *wrapper* carries shape, strides, dtype and device, the keys of that device and the key Python; every operator on it
goes to its `__torch_dispatch__`. `as_subclass` and `_make_subclass` put existing memory under a class.
"""

from __future__ import annotations

from functools import cache, lru_cache
from sys import getrefcount
from typing import Any, NamedTuple

from redispatch.dispatch import HANDLER_CHANGED, STATE, keyset, shared, within
from redispatch.dispatch.core.state import DEFAULT_TENSORS, with_modes
from redispatch.dispatch.layers.python import _disabled_torch_dispatch_impl, has_handler
from redispatch.dispatch.symbolic import as_index

from .devices import CPU, as_device, device_keyset
from .dtypes import dtype as DType
from .dtypes import get_default_dtype
from .geometry import contiguous_strides
from .layouts import strided
from .metadata import SET_REQUIRES_GRAD, Metadata, Size, interned
from .routes import give_routes
from .storage import UntypedStorage
from .tensor import HELD_ONCE, Tensor

PYTHON = keyset("Python", "PythonTLSSnapshot")


def shell(cls: type, like: Tensor) -> Any:
    """A new tensor of class `cls` over the memory of `like`, with the keys that the class needs and no history."""
    t: Any = object.__new__(cls)
    t._store = like._storage if like._store is None else like._store
    t._array, t._shape, t._stride, t._offset = like._array, like._shape, like._stride, like._offset
    t._dtype, t._device, t._counter, t._interned = like._dtype, like._device, like._counter, like._interned
    t._keyset = keys_of_class(cls, like._keyset)
    t._autograd = t._view = None
    if like._quantizer is not None:
        t._quantizer = like._quantizer
    return t


def keys_of_class(cls: type, keys: int) -> int:
    """The keys of a tensor as another class has them."""
    if has_handler(cls):
        return shared(keys | PYTHON)
    return shared(keys & ~PYTHON) if keys & PYTHON else keys


def make_subclass(
    cls: type,
    data: Tensor,
    require_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
) -> Any:
    """`Tensor._make_subclass`: the memory of `data` under the class `cls`, as a leaf. The policies: see
    `make_wrapper_subclass`."""
    _check_class(cls)
    if not isinstance(data, Tensor):
        raise TypeError(f"_make_subclass(): argument 'data' (position 2) must be Tensor, not {type(data).__name__}")
    check_handed_over(cls, data)
    t = shell(cls, data)
    if dispatch_sizes_strides_policy is not None or dispatch_device or dispatch_layout:
        give_routes(t, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    if require_grad:
        SET_REQUIRES_GRAD()(t, True)
    return t


def check_handed_over(cls: type, data: Any) -> None:
    """RuntimeError for a tensor of a class that handles operators, where it would be known under another class, too."""
    if type(data) is not Tensor and has_handler(type(data)) and not STATE.get().excluded & PYTHON:
        with within(with_modes(STATE.get(), ())):
            data = data.detach()  # as the handler has it
        if type(data) is not Tensor and not has_handler(cls):
            raise RuntimeError(
                f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is already associated to a "
                f"python object of type {type(data).__name__}"
            )


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

    dispatch_sizes_strides_policy, dispatch_device, dispatch_layout: what the handler is asked for instead; routes.py.
    `memory_format` and `pin_memory` are taken and mean nothing, as in PyTorch: there is no memory.
    Errors: TypeError where `cls` is no Tensor subclass or has no `__torch_dispatch__`, and for sizes that are no ints;
    RuntimeError where the number of strides is not that of sizes, or for an offset without strides; ValueError for an
    unknown policy.
    """
    face = _FACES.get(cls)
    if (
        face is None
        or face.size is not size
        or face.strides is not strides
        or face.dtype is not dtype
        or face.device is not device
    ):
        face = new_face(cls, size, strides, dtype, device)
    t: Any = object.__new__(cls)
    t._interned = metadata = face.metadata
    t._shape, t._stride, t._dtype, t._device = metadata.shape, metadata.stride, metadata.dtype, metadata.device
    t._keyset = face.keyset
    t._counter = [0]
    if STATE.get().inference:
        t._keyset, t._counter = wrapper_keyset(metadata.device.type, True), None
    t._store = t._array = t._autograd = t._view = None
    t._offset = storage_offset or 0
    if storage_offset is not None and strides is None:
        raise RuntimeError("setting storage offset without stride not supported")
    if storage_size is not None:
        t._store = UntypedStorage.without_data(storage_size, metadata.device)
    if _extra_dispatch_keys is not None:
        t._keyset = shared(t._keyset | _extra_dispatch_keys)
        t._interned = None
    if layout is not strided:
        t._layout = layout
    if dispatch_sizes_strides_policy is not None or dispatch_device or dispatch_layout:
        give_routes(t, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    if requires_grad:
        SET_REQUIRES_GRAD()(t, True)
    return t


class Face(NamedTuple):
    """The metadata that a wrapper shows, and the arguments from which it was worked out."""

    size: Any
    strides: Any
    dtype: Any
    device: Any
    metadata: Metadata
    keyset: int


# By class, the face of the wrapper that was made last: the shape and strides of the next one are often the same
# objects, since they come from tensors that an operator made alike. (Working a face out costs 250 ns more.)
_FACES: dict[type, Face] = {}
HANDLER_CHANGED.append(lambda cls: _FACES.clear())


def new_face(cls: Any, size: Any, strides: Any, element: Any, on: Any) -> Face:
    """The face for these arguments, which are checked; remembered where none of them can change its meaning."""
    _check_class(cls)
    if not has_handler(cls):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    shape = as_ints("size", size)
    stride = None if strides is None else as_ints("strides", strides)
    if element is not None and not isinstance(element, DType):
        raise TypeError(f"_make_wrapper_subclass(): argument 'dtype' must be torch.dtype, not {type(element).__name__}")
    metadata = metadata_like(
        Size(shape), stride, get_default_dtype() if element is None else element, CPU if on is None else on
    )
    face = Face(size, strides, element, on, metadata, wrapper_keyset(metadata.device.type))
    if element is not None and type(size) in (tuple, Size) and (strides is None or type(strides) is tuple):
        _FACES[cls] = face
    return face


def as_ints(name: str, values: Any) -> tuple[int, ...]:
    """The sizes or strides as a tuple. TypeError where they are none, RuntimeError where one is negative."""
    place = " (position 2)" if name == "size" else ""
    wanted = f"_make_wrapper_subclass(): argument '{name}'{place} must be tuple of ints"
    if not isinstance(values, tuple | list):
        raise TypeError(f"{wanted}, not {type(values).__name__}")
    for position, value in enumerate(values):
        if not hasattr(value, "__index__"):
            raise TypeError(f"{wanted}, but found element of type {type(value).__name__} at pos {position}")
        if value < 0:
            raise RuntimeError(f"_make_wrapper_subclass(): {name} must not be negative, but {name} is {tuple(values)}")
    return tuple(map(as_index, values))


@lru_cache(4096)
def metadata_like(shape: Size, strides: tuple[int, ...] | None, element: DType, on: Any) -> Metadata:
    """A program makes many wrappers that look alike."""
    stride = contiguous_strides(shape) if strides is None else strides
    if len(stride) != len(shape):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(stride)})"
        )
    return interned(element, shape, stride, as_device(on))


@cache
def wrapper_keyset(device_type: str, inference: bool = False) -> int:
    """The keys of a wrapper on a type of device; those of one that is made in inference mode."""
    return shared(device_keyset(device_type, inference) | PYTHON)


def as_subclass(self: Tensor, cls: type) -> Any:
    """Returns an alias of class `cls`; gradients flow through it."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"cls must be a type (got {cls!r}) that inherits from Tensor")
    state = STATE.get()
    if state.modes or state.function_modes or type(self) is not Tensor:
        # under which class a tensor is known concerns no mode, and no class
        with within(with_modes(state.replace(overrides="none"), ())):
            alias = self.alias()
    else:
        alias = self.alias()
    if alias._array is None and has_handler(type(alias)):
        return as_known(alias, cls)
    if type(alias) is Tensor and getrefcount(alias) == HELD_ONCE:
        try:
            alias.__class__ = cls  # nobody else has seen it: a third of the time that another tensor takes
        except TypeError:
            pass  # the class has slots of its own
        else:
            if id(cls) not in DEFAULT_TENSORS:  # which have no handler, and so the keys of any tensor
                alias._keyset = keys_of_class(cls, alias._keyset)
            return alias
    result = shell(cls, alias)
    result._autograd, result._view = alias._autograd, alias._view  # the alias itself goes away with this call
    return result


def as_known(wrapper: Any, cls: type) -> Any:
    """A wrapper as a class above its own: itself, for nothing else has its data. RuntimeError for another class."""
    if isinstance(wrapper, cls):
        return wrapper
    raise RuntimeError(
        f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is already associated to a python "
        f"object of type {type(wrapper).__name__} which is not a subclass of the requested type"
    )


def _check_class(cls: Any) -> None:
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your "
            "class inherits from Tensor."
        )


Tensor.__torch_dispatch__ = staticmethod(_disabled_torch_dispatch_impl)  # type: ignore[attr-defined]  # for `super()`
Tensor._make_subclass = staticmethod(make_subclass)
Tensor._make_wrapper_subclass = staticmethod(make_wrapper_subclass)
Tensor.as_subclass = as_subclass  # type: ignore[attr-defined]  # attached here
