"""The functions that a file's pickle calls to make its tensors, with PyTorch's arguments.

A file may say anything. So every number goes through the checks of `as_strided`, which lets no tensor reach past its
storage.
"""

from __future__ import annotations

import _codecs
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from types import MappingProxyType
from typing import Any

from redispatch.dispatch import TorchDispatchModeKey, keyset, mode_in_slot, shared
from redispatch.dispatch.tensor import (
    META,
    Size,
    Tensor,
    UntypedStorage,
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    dtype,
    dtypes,
    empty,
    layout,
    preserve_format,
    strided,
    tensor_over,
)
from redispatch.dispatch.tensor.layouts import SCHEMES
from redispatch.dispatch.tensor.quantizer import Quantizer, codes_of
from redispatch.kernels import check_view
from redispatch.kernels.ops.legacy import TYPES
from redispatch.kernels.ops.quantized import per_channel
from redispatch.kernels.ops.storages import TypedStorage
from redispatch.nn.parameter import Parameter


def rebuild_tensor(
    storage: TypedStorage,
    storage_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool = False,
    backward_hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    """A tensor over a storage that has a dtype."""
    return over(storage._untyped_storage, storage.dtype, storage_offset, size, stride, requires_grad, metadata)


def rebuild_tensor_of(
    storage: TypedStorage | UntypedStorage,
    storage_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    backward_hooks: Any,
    element: dtype,
    metadata: Any = None,
) -> Tensor:
    """Rebuilds a tensor where the storage does not say the dtype."""
    untyped = storage._untyped_storage if isinstance(storage, TypedStorage) else storage
    return over(untyped, element, storage_offset, size, stride, requires_grad, metadata)


def rebuild_quantized(
    storage: TypedStorage, offset: int, size: Any, stride: Any, how: Sequence[Any], requires_grad: bool, hooks: Any
) -> Tensor:
    """A quantised tensor over a storage of codes. RuntimeError where what they are read by does not fit its shape."""
    made = over(storage._untyped_storage, storage.dtype, offset, size, stride, requires_grad, None)
    codes_of(made._dtype)
    scheme, scale, zero_point, *axis = how
    made._quantizer = per_channel(scale, zero_point, axis[0], made._shape) if axis else Quantizer(scale, zero_point)
    if made._quantizer.scheme is not scheme:
        raise RuntimeError(f"load: the scheme {scheme} does not go with {len(how) - 1} parameters")
    return made


# What a tensor's elements still need to have done to them, by the name in its metadata: the key that notes it
LAZY_BITS = {"conj": "Conjugate", "neg": "Negative"}


def lazy_bits_of(x: Any) -> dict[str, bool]:
    """The metadata of a tensor: which bits it has."""
    return {name: True for name, key in LAZY_BITS.items() if x._keyset & keyset(key)}


def over(
    storage: UntypedStorage, element: dtype, offset: int, size: Any, stride: Any, requires_grad: bool, metadata: Any
) -> Tensor:
    """A tensor over a storage. RuntimeError where it would reach past it, or has a bit that its dtype cannot have."""
    shape, steps = Size(size), tuple(stride)
    if not all(type(number) is int for number in (offset, *shape, *steps)):
        raise RuntimeError("load: sizes, strides and offsets must be integers")
    check_view(shape, steps, offset, storage.nbytes() // element.itemsize)
    made = tensor_over(storage, storage.typed(element), shape, steps, offset, element, storage.device)
    for name, is_set in (metadata or {}).items():
        if name not in LAZY_BITS or (name == "conj" and not element.is_complex):
            raise RuntimeError(f"load: a tensor of {element} cannot be {name!r}")
        if is_set:
            made._keyset = shared(made._keyset | keyset(LAZY_BITS[name]))
    fakes = mode_in_slot(TorchDispatchModeKey.FAKE)  # which gives a fake that is where the tensor would be
    return (made if fakes is None else fakes.from_tensor(made)).requires_grad_(requires_grad)


def rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any = None) -> Any:
    return Parameter(data, requires_grad)


def rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    """A parameter with the attributes that were hung on it."""
    return with_state(Parameter(data, requires_grad), state)


def rebuild_meta_tensor(element: dtype, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    return empty(Size(size), element, META, tuple(stride)).requires_grad_(requires_grad)


def rebuild_wrapper(
    kind: Any,
    element: dtype,
    size: Any,
    stride: Any,
    storage_offset: int,
    form: layout,
    on: Any,
    requires_grad: bool,
) -> Any:
    """A wrapper subclass's face; what it wraps comes as its state."""
    return Tensor._make_wrapper_subclass(
        kind,
        size,
        strides=stride,
        storage_offset=storage_offset,
        layout=form,
        device=on,
        dtype=element,
        requires_grad=requires_grad,
    )


def rebuild_subclass(make: Any, kind: type, args: tuple[Any, ...], state: Any) -> Any:
    """Returns the result of `make(*args)` as class `kind`, with its attributes."""
    made = make(*args)
    return with_state(made if type(made) is kind else made.as_subclass(kind), state)


def with_state(made: Any, state: Any) -> Any:
    """The object with the attributes that a file has for it: a dict, or that and a dict of slots."""
    set_state = type(made).__setstate__ if hasattr(type(made), "__setstate__") else None
    if set_state is not None and set_state is not Tensor.__setstate__:
        made.__setstate__(state)
        return made
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    made.__dict__.update(attributes or {})
    for name, value in (slots or {}).items():
        setattr(made, name, value)
    return made


def layout_named(name: str) -> layout:
    if name != "torch.strided":
        raise NotImplementedError(f"load: tensors of layout {name} are not supported")
    return strided


# --- The names that a saved pickle may use, and what each stands for. All others are refused --------------------------
#
# They are PyTorch's names, since the format is PyTorch's: `torch._utils._rebuild_tensor_v2` in a file is
# `rebuild_tensor` here. Classes of your own are saved under their own names and loaded once they are allowed:
#
#     redispatch.serialization.add_safe_globals([Config])
#
# The tensor subclasses that come with this library need no allowance.
#
# To allow a class is to trust its `__new__`, `__setstate__` and attributes with what any file says.

STORAGES: dict[str, type[TypedStorage]] = {
    f"torch.{name}": kind for name, kind in TYPES.items() if issubclass(kind, TypedStorage)
}

# What files are written with
WRITTEN: dict[str, Any] = {
    **STORAGES,
    **{f"torch.{dtype.name}": dtype for dtype in dtypes._BY_NAME.values()},
    **{f"torch.{form.name}": form for form in (contiguous_format, preserve_format, channels_last, channels_last_3d)},
    **{f"torch.{scheme.name}": scheme for scheme in SCHEMES},
    "torch.Size": Size,
    "torch.Tensor": Tensor,
    "torch.device": device,
    "torch.nn.parameter.Parameter": Parameter,
    "torch.storage.UntypedStorage": UntypedStorage,
    "torch.serialization._get_layout": layout_named,
    "torch._utils._rebuild_tensor_v2": rebuild_tensor,
    "torch._utils._rebuild_tensor_v3": rebuild_tensor_of,
    "torch._utils._rebuild_parameter": rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild_parameter_with_state,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild_meta_tensor,
    "torch._utils._rebuild_qtensor": rebuild_quantized,
    "torch._utils._rebuild_wrapper_subclass": rebuild_wrapper,
    "torch._tensor._rebuild_from_type_v2": rebuild_subclass,
}
# What older files hold, and Python's own classes; `__builtin__` is Python 2's name, which the protocol keeps
READ: dict[str, Any] = {
    **WRITTEN,
    "torch.strided": strided,
    "torch.storage.TypedStorage": TypedStorage,
    "torch._utils._rebuild_tensor": rebuild_tensor,
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "collections.defaultdict": defaultdict,
    "_codecs.encode": _codecs.encode,
    **{
        f"{module}.{kind.__name__}": kind
        for module in ("builtins", "__builtin__")
        for kind in (set, complex, bytearray)
    },
}
NAME_OF: dict[Any, str] = {value: name for name, value in WRITTEN.items()}

_ALLOWED: dict[str, Any] = {}  # by users, for good
_ALLOWED_HERE: ContextVar[Mapping[str, Any]] = ContextVar("allowed by safe_globals", default=MappingProxyType({}))


def named(allowed: Sequence[Any]) -> dict[str, Any]:
    """Classes and functions by the names under which pickles know them; a pair (object, name) says the name."""
    pairs = [item if isinstance(item, tuple) else (item, f"{item.__module__}.{item.__qualname__}") for item in allowed]
    return {name: value for value, name in pairs}


def add_safe_globals(safe_globals: Sequence[Any]) -> None:
    """Has `load` accept these classes and functions from now on."""
    _ALLOWED.update(named(safe_globals))


def clear_safe_globals() -> None:
    """Takes back what add_safe_globals allowed."""
    _ALLOWED.clear()


def get_safe_globals() -> list[Any]:
    """Returns the names that users have allowed, here and for good."""
    return list({**_ALLOWED, **_ALLOWED_HERE.get()}.values())


@contextmanager
def safe_globals(safe_globals: Sequence[Any]) -> Iterator[None]:
    """Has `load` accept these classes and functions inside the block."""
    token = _ALLOWED_HERE.set({**_ALLOWED_HERE.get(), **named(safe_globals)})
    try:
        yield
    finally:
        _ALLOWED_HERE.reset(token)


def shipped(module: str, name: str) -> Any:
    """A class of a module in which a tensor subclass of this library lives, or None.

    These are the only modules that a file can have imported. Their room is above this one, so it is found by name.
    """
    room = import_module(f"{__name__.split('.')[0]}.subclasses")
    if module not in {f"{room.__name__}{place}" for place in room.PLACES.values()}:
        return None
    kind = getattr(import_module(module), name, None)
    return kind if isinstance(kind, type) and kind.__module__ == module else None


def allowed_by_users() -> dict[str, Any]:
    return {**_ALLOWED, **_ALLOWED_HERE.get()}
