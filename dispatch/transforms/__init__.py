"""Functions of functions: `vmap`, `grad`, `vjp`, `jvp` and what is made of them. They nest in any order.

Read in this order: reverse, vmap, vmap_level, functionalize, jacobians; then kernels/batching/, the
rules by which operators work on a whole batch.
"""

from redispatch.dispatch.tensor.wrapped import debug_unwrap

from .functionalize import (
    FunctionalizeAPI,  # higher-order operators find it when it is imported
    functionalize,
)
from .jacobians import hessian, jacfwd, jacrev
from .reverse import grad, grad_and_value, jvp, linearize, vjp
from .vmap import vmap

__all__ = [
    "FunctionalizeAPI",
    "debug_unwrap",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
    "vmap",
]
