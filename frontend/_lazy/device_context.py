"""What belongs to a lazy device while a program runs: the closures of its step."""

from __future__ import annotations

import threading
from typing import Any

from redispatch._C import _lazy


class DeviceContext:
    """A place for attributes, one for each device."""

    _CONTEXTS: dict[str, DeviceContext] = {}
    _CONTEXTS_LOCK = threading.Lock()

    def __init__(self, device: str) -> None:
        self.device = device
        self.step_closures: list[Any] = []
        self.async_step_closures: list[Any] = []
        self.closure_handler: Any = None
        self.async_closure_handler: Any = None


def get_device_context(device: Any = None) -> DeviceContext:
    """The context of a device; that of "lazy" by default."""
    name = _lazy._get_default_device_type() if device is None else str(device)
    with DeviceContext._CONTEXTS_LOCK:
        return DeviceContext._CONTEXTS.setdefault(name, DeviceContext(name))
