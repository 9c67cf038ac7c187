"""`redispatch.accelerator`: the device to compute on besides the CPU, whichever it is.

    device = rd.accelerator.current_accelerator() if rd.accelerator.is_available() else "cpu"

It is the first device type that has a module (`backend.register`, `utils.backend_registration`) which says that it is
available. Where there is none, what needs one raises a RuntimeError.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redispatch import _names
from redispatch.dispatch import BACKEND_OF_DEVICE
from redispatch.dispatch.tensor import device

from .backend import get_device_module

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "device_count",
    "device_index",
    "is_available",
    "set_device_idx",
    "set_device_index",
    "synchronize",
]


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
