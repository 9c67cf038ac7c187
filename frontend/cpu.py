"""`redispatch.cpu`: what programs for any device ask of its module. All work is done when a call returns."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from types import MappingProxyType
from typing import Any

from redispatch.kernels.engine.plain import has_llvm

from .amp.by_device import cpu_amp as amp

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1: all processors are one device."""
    return 1


def current_device() -> str:
    """Returns the name of the device."""
    return "cpu"


def set_device(device: Any) -> None:
    """Chooses the only device there is."""


def synchronize(device: Any = None) -> None:
    """Waits for nothing: all is done."""


class Stream:
    """The order of work: one call after the other."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Any) -> None:
        """Has the stream wait for another one, whose work is done."""

    def record_event(self) -> None:
        """Marks a point, which is reached."""

    def wait_event(self, event: Any) -> None:
        """Has the stream wait for a point, which is reached."""


class Event:
    """A point in the work, which is reached."""

    def query(self) -> bool:
        """True: all is done."""
        return True

    def record(self, stream: Any = None) -> None:
        """Marks the point."""

    def synchronize(self) -> None:
        """Waits for nothing: all is done."""

    def wait(self, stream: Any = None) -> None:
        """Has a stream wait for the point, which is reached."""


DEFAULT = Stream()
CURRENT: ContextVar[Stream] = ContextVar("stream", default=DEFAULT)


def current_stream(device: Any = None) -> Stream:
    """Returns the stream of the region."""
    return CURRENT.get()


class StreamContext:
    """A region with another stream; None leaves the one that there is."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream, self.tokens = stream, []  # type: tuple[Stream | None, list[Any]]

    def __enter__(self) -> None:
        self.tokens.append(CURRENT.set(self.stream or CURRENT.get()))

    def __exit__(self, *problem: Any) -> None:
        CURRENT.reset(self.tokens.pop())


stream = StreamContext


@cache
def get_capabilities() -> Mapping[str, Any]:
    """Returns the processor's architecture, and by PyTorch's names whether it has an instruction set."""
    if not has_llvm():
        return MappingProxyType({"architecture": platform.machine()})
    from llvmlite import binding  # here: it is loaded with the first kernel

    found = {
        re.sub(r"^avx512", "avx512_", {"fma": "fma3"}.get(name, name)).translate(str.maketrans(".-", "__")): has
        for name, has in binding.get_host_cpu_features().items()
    }
    return MappingProxyType({"architecture": platform.machine(), "cpu_name": binding.get_host_cpu_name(), **found})
