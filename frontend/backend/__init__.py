"""Backends of one's own: `redispatch.backend.register("mydev", allocator=..., kernels={...}, fallback="cpu")`.

Read register.py first; then kernels/ops/device_memory.py (what a device has for free once its memory can be read and
written) and cpu_fallback.py.
"""

from redispatch import _moved
from redispatch.dispatch.tensor import Allocator

from .cpu_fallback import cpu_fallback
from .register import (
    Backend,
    DeviceModule,
    enable_autocast,
    generate_methods,
    get_device_module,
    register,
    register_device_module,
)

__all__ = [
    "Allocator",
    "Backend",
    "DeviceModule",
    "cpu_fallback",
    "enable_autocast",
    "generate_methods",
    "get_device_module",
    "register",
    "register_device_module",
]

_moved.join(__name__)
