"""PyTorch's place for what traces operators: proxy_tensor.py, and higher_order.py for those that take functions."""

from . import higher_order, proxy_tensor  # the first registers its rules when it is imported

__all__ = ["higher_order", "proxy_tensor"]
