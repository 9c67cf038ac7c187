"""PyTorch's place for what traces operators (proxy_tensor.py), and for sizes that are symbols (symbolic_shapes.py)."""

from redispatch import _moved

from . import proxy_tensor, symbolic_shapes

__all__ = ["proxy_tensor", "symbolic_shapes"]

_moved.join(__name__)
