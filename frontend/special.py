"""`redispatch.special`: special functions under PyTorch's module path; special.pyi lists them with types.

It is imported when it, or one of its operators, is first asked for.
"""

from redispatch.kernels.declare.public import FUNCTIONS
from redispatch.kernels.ops import special_functions, special_names  # noqa: F401  # they declare the operators

globals().update(FUNCTIONS["special"])
__all__ = [*sorted(FUNCTIONS["special"])]
