"""`redispatch.accelerator`: the device to compute on besides the CPU, whichever it is.

    device = rd.accelerator.current_accelerator() if rd.accelerator.is_available() else "cpu"

It is the first device type that has a module (`backend.register`, `utils.backend_registration`) which says that it is
available. Where there is none, what needs one raises a RuntimeError.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from redispatch import _names
from redispatch.dispatch import BACKEND_OF_DEVICE
from redispatch.dispatch.tensor import DTYPES, device

from .backend import get_device_module

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]

__path__: list[str] = []  # PyTorch has a module of some of these: _moved.py names it


def _kind() -> str | None:
    """The device type, None where there is none."""
    for kind in BACKEND_OF_DEVICE:
        if kind in ("cpu", "meta"):
            continue
        try:
            module = get_device_module(kind)
        except RuntimeError:  # it has no module
            continue
        if module.is_available():
            return kind
    return None


def _module() -> Any:
    kind = _kind()
    if kind is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return get_device_module(kind)


def is_available() -> bool:
    """Returns whether there is an accelerator."""
    return _kind() is not None


def current_accelerator(check_available: bool = False) -> device | None:
    """Its device, without an index; None where there is none. A device that is not available is not known here, so
    `check_available` changes nothing."""
    kind = _kind()
    return None if kind is None else device(kind)


def _get_accelerator(check: bool | None = None) -> device:
    """Returns its device, and the CPU where there is none."""
    return current_accelerator() or device("cpu")


def device_count() -> int:
    """Returns the number of devices."""
    return _module().device_count() if is_available() else 0


def current_device_index() -> int:
    """The index of the device on which tensors are made where none is given."""
    return _module().current_device()


def set_device_index(device: Any) -> None:
    """Makes another device the current one: an index, or a device."""
    _module().set_device(device)


current_device_idx = _names.former(current_device_index, "current_device_idx", "Use `current_device_index` instead.")
set_device_idx = _names.former(set_device_index, "set_device_idx", "Use `set_device_index` instead.")


@contextmanager
def device_index(device: int | None) -> Iterator[None]:
    """A block in which another device is the current one; None changes nothing."""
    former = None if device is None else current_device_index()
    try:
        if device is not None:
            set_device_index(device)
        yield
    finally:
        if former is not None:
            set_device_index(former)


def synchronize(device: Any = None) -> None:
    """Waits for what runs on a device."""
    _module().synchronize(device)


# What the device's own module is asked for. Where there is no accelerator, nothing is allocated.


def _of_module(name: str, theirs: str = "") -> Callable[..., Any]:
    def function(*device: Any) -> Any:
        return getattr(_module(), theirs or name)(*device)

    return _named(function, name, "Returns what the module of the accelerator says; RuntimeError where there is none.")


def _of_memory(name: str, where_none: Callable[[], Any]) -> Callable[..., Any]:
    def function(*device: Any) -> Any:
        return getattr(_module(), name)(*device) if is_available() else where_none()

    return _named(function, name, "Asks the module of the accelerator; where there is none, nothing is allocated.")


def _named(function: Callable[..., Any], name: str, about: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = about
    return function


current_stream, get_memory_info = _of_module("current_stream"), _of_module("get_memory_info", "mem_get_info")
empty_cache, memory_stats = _of_memory("empty_cache", lambda: None), _of_memory("memory_stats", OrderedDict)
memory_allocated, max_memory_allocated, memory_reserved, max_memory_reserved = (
    _of_memory(name, int)
    for name in "memory_allocated max_memory_allocated memory_reserved max_memory_reserved".split()
)
reset_peak_memory_stats, reset_accumulated_memory_stats = (
    _of_memory(name, lambda: None) for name in ("reset_peak_memory_stats", "reset_accumulated_memory_stats")
)


def set_stream(stream: Any) -> None:
    """Makes a stream the current one, and its device the current device."""
    _module().set_device(stream.device)
    _module().set_stream(stream)


def empty_host_cache() -> None:
    """Does nothing: memory of the host is Python's."""


def get_device_capability(device: Any = None) -> dict[str, Any]:
    """Returns the dtypes that the accelerator holds. RuntimeError where there is none."""
    _module()
    return {"supported_dtypes": {*DTYPES.values()}}
