"""Backends of one's own: `redispatch.backend.register("mydev", allocator=..., kernels={...}, fallback="cpu")`.

Read register.py first; then device_memory.py (what a device has for free once its memory can be read and written),
cpu_fallback.py, device_module.py and methods.py.
"""

from redispatch.dispatch.tensor import Allocator

from .cpu_fallback import cpu_fallback
from .device_module import DeviceModule, get_device_module, register_device_module
from .methods import generate_methods
from .register import Backend, enable_autocast, register

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
