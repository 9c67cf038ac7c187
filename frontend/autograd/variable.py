"""`redispatch.autograd.variable`: the older name of tensors that require gradients (dispatch/autograd/variable.py)."""

from redispatch.dispatch.autograd.variable import (
    Variable,
)

__all__ = [
    "Variable",
]
