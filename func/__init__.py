"""Functions of functions: `vmap`, `grad`, `vjp`, `jvp` and what is made of them. They nest in any order.

Read in this order: arguments, reverse, forward, vmap, vmap_level, batching/.
"""

from .batching import indices, products, views, writes  # their operators' rules are entered when they are imported
from .forward import jvp, linearize
from .reverse import grad, grad_and_value, vjp
from .vmap import vmap

__all__ = ["grad", "grad_and_value", "indices", "jvp", "linearize", "products", "views", "vjp", "vmap", "writes"]
