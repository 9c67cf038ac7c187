"""`redispatch.special`: special functions under PyTorch's module path; special.pyi lists them with types.

It is imported when it, or one of its operators, is first asked for.
"""

from redispatch.kernels.declare.public import FUNCTIONS
from redispatch.kernels.ops import special_functions  # noqa: F401  # it declares the operators

globals().update(FUNCTIONS["special"])
__all__ = [*sorted(FUNCTIONS["special"])]
