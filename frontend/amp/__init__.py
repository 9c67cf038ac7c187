"""Automatic mixed precision, under PyTorch's module path: `redispatch.amp.autocast`, `redispatch.amp.GradScaler`.

Read in this order: autocast_mode, grad_scaler, by_device.
"""

from redispatch import _moved

from .autocast_mode import _enter_autocast, _exit_autocast, autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "_enter_autocast",
    "_exit_autocast",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "is_autocast_available",
]

_moved.join(__name__)
