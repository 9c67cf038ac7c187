"""`redispatch.autograd.function`: operators with a backward pass of their own. Read dispatch/autograd/function.py."""

from redispatch.dispatch.autograd.function import (
    Function,
    FunctionCtx,
    once_differentiable,
)

__all__ = [
    "Function",
    "FunctionCtx",
    "once_differentiable",
]
