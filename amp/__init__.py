"""Automatic mixed precision, under PyTorch's module path: `redispatch.amp.autocast`."""

from .autocast_mode import autocast, get_autocast_dtype, is_autocast_available, is_autocast_enabled

__all__ = ["autocast", "get_autocast_dtype", "is_autocast_available", "is_autocast_enabled"]
