"""The names that a saved pickle may use, and what each stands for. All others are refused.

They are PyTorch's names, since the format is PyTorch's: `torch._utils._rebuild_tensor_v2` in a file is `rebuild_tensor`
here. Classes of your own are saved under their own names and loaded once they are allowed:

    redispatch.serialization.add_safe_globals([Config])

The tensor subclasses that come with this library need no allowance.

To allow a class is to trust its `__new__`, `__setstate__` and attributes with what any file says.
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

from redispatch.dispatch.tensor import (
    DTYPES,
    Size,
    Tensor,
    UntypedStorage,
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    preserve_format,
    strided,
)
from redispatch.kernels.ops.legacy import TYPES, TypedStorage
from redispatch.nn.parameter import Parameter

from . import rebuild

STORAGES: dict[str, type[TypedStorage]] = {
    f"torch.{name}": kind for name, kind in TYPES.items() if issubclass(kind, TypedStorage)
}

# What files are written with
WRITTEN: dict[str, Any] = {
    **STORAGES,
    **{f"torch.{dtype.name}": dtype for dtype in DTYPES.values()},
    **{f"torch.{form.name}": form for form in (contiguous_format, preserve_format, channels_last, channels_last_3d)},
    "torch.Size": Size,
    "torch.Tensor": Tensor,
    "torch.device": device,
    "torch.nn.parameter.Parameter": Parameter,
    "torch.storage.UntypedStorage": UntypedStorage,
    "torch.serialization._get_layout": rebuild.layout_named,
    "torch._utils._rebuild_tensor_v2": rebuild.rebuild_tensor,
    "torch._utils._rebuild_parameter": rebuild.rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild.rebuild_parameter_with_state,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild.rebuild_meta_tensor,
    "torch._utils._rebuild_wrapper_subclass": rebuild.rebuild_wrapper,
    "torch._tensor._rebuild_from_type_v2": rebuild.rebuild_subclass,
}
# What older files hold, and Python's own classes; `__builtin__` is Python 2's name, which the protocol keeps
READ: dict[str, Any] = {
    **WRITTEN,
    "torch.strided": strided,
    "torch.storage.TypedStorage": TypedStorage,
    "torch._utils._rebuild_tensor": rebuild.rebuild_tensor,
    "torch._utils._rebuild_tensor_v3": rebuild.rebuild_tensor_of,
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
    """What users have allowed, here and for good."""
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
    if module not in {f"{room.__name__}.{place}" for place in room.PLACES.values()}:
        return None
    kind = getattr(import_module(module), name, None)
    return kind if isinstance(kind, type) and kind.__module__ == module else None


def allowed_by_users() -> dict[str, Any]:
    return {**_ALLOWED, **_ALLOWED_HERE.get()}
