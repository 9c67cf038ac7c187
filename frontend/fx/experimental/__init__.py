"""PyTorch's place for what traces operators: proxy_tensor.py."""

from redispatch import _moved

from . import proxy_tensor

__all__ = ["proxy_tensor"]

_moved.join(__name__)
