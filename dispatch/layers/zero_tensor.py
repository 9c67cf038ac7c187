"""ZeroTensor: zeros that take no memory, for derivatives that are known to vanish.

A product with such a tensor is one again, and a sum is the other term: these operators have kernels at this key.
Others get a zero in memory, expanded to the shape. Such a tensor cannot be written: there is no place for what would be
stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.base import TensorBase
from ..core.interpreter import run
from ..core.keyset import below
from ..core.keyset import keyset as keys
from ..core.operator import OpOverload
from ..rules import Slot
from ..schema.schema import FunctionSchema
from ..specialiser.annotations import inline
from .ad_inplace_or_view import tensors_in
from .layer import layer
from .lazy_bit import is_about_memory

ZERO_TENSOR = keys("ZeroTensor")
BELOW_ZERO_TENSOR = below("ZeroTensor")

# (tensor) -> zeros of its shape and dtype that lie in memory
ZEROS_IN_MEMORY: Slot[Callable[[Any], Any]] = Slot("what gives a ZeroTensor memory")


@layer("ZeroTensor")
def zero_tensor(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Runs `op` on zeros in memory. RuntimeError where it would write to a ZeroTensor."""
    if is_about_memory(op):
        return run(op, keyset & BELOW_ZERO_TENSOR, stack)
    for position in op.schema.mutable_positions:
        refuse_zero_tensors(stack[position])
    given = [in_memory(op.schema, position, value) for position, value in enumerate(stack)]
    return run(op, keyset & BELOW_ZERO_TENSOR, given)


@inline
def in_memory(schema: FunctionSchema, position: int, value: Any) -> Any:
    """One argument, with its zeros in memory."""
    if position in schema.tensor_positions:
        return zeros_of(value) if isinstance(value, TensorBase) and value._keyset & ZERO_TENSOR else value
    if position in schema.tensor_list_positions and value is not None:
        return [zeros_of(x) if isinstance(x, TensorBase) and x._keyset & ZERO_TENSOR else x for x in value]
    return value


def zeros_of(tensor: Any) -> TensorBase:
    return ZEROS_IN_MEMORY()(tensor)


def refuse_zero_tensors(written: Any) -> None:
    """Raises RuntimeError where an argument to be written has no memory."""
    if any(tensor._keyset & ZERO_TENSOR for tensor in tensors_in(written)):
        raise RuntimeError(
            "ZeroTensors are immutable. Please use the materialized zero tensor obtained using .clone() if you want a "
            "mutable tensor."
        )
