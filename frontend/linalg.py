"""`redispatch.linalg`: linear algebra under PyTorch's module path.

Each name is that of an operator: `linalg.inv` is `linalg_inv` as dispatch modes and programs of Core ATen call it.
linalg.pyi lists them with types. Read next: kernels/ops/matrices.py.
"""

from redispatch.kernels.declare.public import FUNCTIONS
from redispatch.kernels.cpu.lapack import LinAlgError as LinAlgError

globals().update(FUNCTIONS["linalg"])
__all__ = ["LinAlgError", *sorted(FUNCTIONS["linalg"])]
