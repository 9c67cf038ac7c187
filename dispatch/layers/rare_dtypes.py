"""RareDtype: the layer that says which kernels do not know a dtype, so that the kernels need not ask.

Few of PyTorch's loops are written for float8, complex32, wide unsigned integers or bits; ours would compute in any of
them. A tensor of such a dtype on the CPU brings this key, just above those of backends, and other tensors pay nothing.
The room `kernels` publishes what is known of single operators: kernels/ops/rare_dtypes.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.interpreter import run
from ..core.keyset import below, keyset
from ..core.operator import OpOverload
from ..keys import define_key
from ..rules import Slot
from ..specialiser.annotations import leaf
from .layer import layer

define_key("RareDtype", above="NestedTensor")
RARE_DTYPE, BELOW_RARE_DTYPE = keyset("RareDtype"), below("RareDtype")

# (operator, stack): raises where the operator's kernel is not written for a dtype in which it would compute
CHECK_DTYPES: Slot[Callable[[OpOverload, list[Any]], None]] = Slot("which kernels know a rare dtype")


@layer("RareDtype")
def rare_dtype(op: OpOverload, keys: int, stack: list[Any]) -> Any:
    """Runs `op`. NotImplementedError where its kernel is not written for the dtype."""
    check(op, stack)
    return run(op, keys & BELOW_RARE_DTYPE, stack)


@leaf
def check(op: OpOverload, stack: list[Any]) -> None:
    CHECK_DTYPES()(op, stack)
