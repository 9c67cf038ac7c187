"""Functions of functions: `vmap`, `grad`, `vjp`, `jvp` and what is made of them. They nest in any order.

Read in this order: arguments, reverse, forward, vmap, vmap_level, batching/, functionalize, jacobians, modules.
"""

# the rules of their operators are entered when they are imported
from .batching import attention, batch_norm, decompositions, indices, layer_norm, products, sequences, views, writes
from .debug_unwrap import debug_unwrap
from .forward import jvp, linearize
from .functionalize import functionalize
from .functionalize_api import FunctionalizeAPI  # higher-order operators find it when it is imported
from .jacobians import hessian, jacfwd, jacrev
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .reverse import grad, grad_and_value, vjp
from .vmap import vmap

__all__ = [
    "FunctionalizeAPI",
    "batch_norm",
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "indices",
    "jacfwd",
    "jacrev",
    "jvp",
    "layer_norm",
    "linearize",
    "products",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "views",
    "vjp",
    "vmap",
    "writes",
]
