"""The graph that backward walks, and the engine that walks it."""

from .derivative import differentiable

__all__ = ["differentiable"]
