"""PyTorch's first way to define operators (`torch._custom_op`), from before `library.custom_op`; kept for old code."""

from . import impl

__all__ = ["impl"]
