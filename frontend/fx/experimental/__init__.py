"""PyTorch's place for what traces operators (proxy_tensor.py), and for sizes that are symbols (symbolic_shapes.py)."""

from . import higher_order, proxy_tensor, symbolic_shapes

__all__ = ["higher_order", "proxy_tensor", "symbolic_shapes"]
