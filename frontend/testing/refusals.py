"""Which dtypes an operator refuses, by its declaration: all others are computed. `make parity` compares with PyTorch.

Read next: `refuses` in kernels/declare/declare.py, OpInfo.refused, tests/op_db/properties/dtypes.py.
"""

import fnmatch

from redispatch.dispatch import OpOverload
from redispatch.kernels.declare.declare import DECLARED


def refused_by(op: OpOverload) -> frozenset[str]:
    """Returns the names of the dtypes that an operator refuses."""
    declared = DECLARED.get(op)
    return frozenset() if declared is None else frozenset(declared.refuses)


INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")

# Their samples need numbers that these dtypes do not hold.
NOT_SAMPLED: dict[str, tuple[str, ...]] = {
    "_neg_view*": ("bool",),
    "retain_grad": ("bool", *INTEGERS),
    "cov": ("bool",),
    "corrcoef": ("bool", *COMPLEX),
    "binomial": ("bool", *INTEGERS, *COMPLEX),  # a ValueError
    "searchsorted.*": COMPLEX,
    "bucketize.*": COMPLEX,
    "_pdist_forward": ("bool",),
    "_scaled_dot_product_flash_attention_for_cpu*": INTEGERS,
    "_scaled_dot_product_efficient_attention*": INTEGERS,
    "_safe_softmax": INTEGERS,
}


def not_sampled(name: str) -> tuple[str, ...]:
    """Returns the names of the dtypes that an operator's samples cannot be made of."""
    return next((kinds for pattern, kinds in NOT_SAMPLED.items() if fnmatch.fnmatch(name, pattern)), ())
