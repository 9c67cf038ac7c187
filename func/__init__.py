"""Functions of functions: `vmap`, `grad`, `vjp`, `jvp` and what is made of them. They nest in any order.

Read in this order: arguments, reverse, forward.
"""

from .forward import jvp, linearize
from .reverse import grad, grad_and_value, vjp

__all__ = ["grad", "grad_and_value", "jvp", "linearize", "vjp"]
