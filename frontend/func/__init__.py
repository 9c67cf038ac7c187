"""`redispatch.func`: functions of functions under PyTorch's names. The transforms are in dispatch/transforms/."""

from redispatch.dispatch.transforms import (
    FunctionalizeAPI,
    debug_unwrap,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)

# the rules of their operators are entered when they are imported
from redispatch.kernels import batching as batching

from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state

__all__ = [
    "FunctionalizeAPI",
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
