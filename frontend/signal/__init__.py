"""`redispatch.signal`: windows of signals, under PyTorch's module path."""

from . import windows

__all__ = ["windows"]
