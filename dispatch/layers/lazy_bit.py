"""Lazy bits: the layers Conjugate, Negative and ZeroTensor, and what they have in common.

A tensor may carry a bit which says that its elements are not what lies in memory but the conjugates of that, or the
negatives, or that they are all zero and nothing lies in memory at all. The bit is a dispatch key in the tensor's
keyset, so that tensors without it pay nothing: they never come here. A call with such a tensor stops at the key of its
bit. An operator that knows what to do with the bit has a fallthrough there; for all others, the elements are worked out
first:

    a view            runs as it is: the bit goes with the memory, from the base to its views
    a read argument   is cloned: a clone has its elements in memory, and no bit
    a written one     is cloned, too; the call writes the clone, which is then copied back through the bit
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
from ..schema.schema import FunctionSchema, Tag
from ..specialiser.annotations import inline, pure
from .ad_inplace_or_view import tensors_in, written_results
from .layer import layer

# (tensor) -> a tensor of the same elements that has no lazy bit; through the dispatcher
CLONE: Slot[Callable[[Any], Any]] = Slot("what works out the elements of a lazy tensor")
# (target, source): has the target show the source's elements, in the source's shape; through the dispatcher
STORE: Slot[Callable[[Any, Any], None]] = Slot("what writes through a lazy bit")


@inline
def run_worked_out(op: OpOverload, keyset: int, stack: list[Any], bit: int) -> Any:
    """Runs `op`, with the keys below that of the bit, on arguments none of which has the bit."""
    below = keyset & (bit - 1)
    if is_about_memory(op):
        return run(op, below, stack)
    schema = op.schema
    given = [without_bit(schema, position, value, bit, clone_of) for position, value in enumerate(stack)]
    result = run(op, below, given)
    for position in schema.mutable_positions:
        write_back(stack[position], given[position])
    return written_results(schema, stack, result)


@pure
def is_about_memory(op: OpOverload) -> bool:
    """Whether `op` asks where elements lie and not what they are."""
    return op.schema.is_view or Tag.inplace_view in op.tags


@inline
def without_bit(schema: FunctionSchema, position: int, value: Any, bit: int, made: Callable[[Any], Any]) -> Any:
    """One argument, of which `made` has made each tensor that has the bit one without."""
    if position in schema.tensor_positions:
        return made(value) if isinstance(value, TensorBase) and value._keyset & bit else value
    if position in schema.tensor_list_positions and value is not None:
        return [made(x) if isinstance(x, TensorBase) and x._keyset & bit else x for x in value]
    return value


def clone_of(tensor: Any) -> TensorBase:
    return CLONE()(tensor)


@inline
def write_back(lazy: Any, written: Any) -> None:
    """Copies what a call has written to the argument that stood there."""
    if isinstance(written, list):
        for target, source in zip(lazy, written, strict=True):
            write_back_one(target, source)
    elif written is not lazy:
        write_back_one(lazy, written)


def write_back_one(lazy: Any, written: Any) -> None:
    if written is not lazy:
        STORE()(lazy, written)


# Conjugate: `x.conj()` is a view of x with a bit; here the conjugates are computed, for operators that need them ------
#
# Matrix products need them not, since the kernel conjugates on the way or afterwards, and copies do it while they copy:
# they have a fallthrough at this key.

CONJUGATE = keys("Conjugate")


@layer("Conjugate")
def conjugate(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Runs `op` on the conjugates themselves, where an argument is a conjugate view."""
    return run_worked_out(op, keyset, stack, CONJUGATE)


# Negative: the imaginary part of `x.conj()` is a view of x with a bit, since it is that of x with the other sign ------

NEGATIVE = keys("Negative")


@layer("Negative")
def negative(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Runs `op` on the negatives themselves, where an argument is a negative view."""
    return run_worked_out(op, keyset, stack, NEGATIVE)


# ZeroTensor: zeros that take no memory, for derivatives that are known to vanish --------------------------------------
#
# A product with such a tensor is one again, and a sum is the other term: these operators have kernels at this key.
# Others get a zero in memory, expanded to the shape. Such a tensor cannot be written: there is no place for what would
# be stored.

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
    given = [without_bit(op.schema, position, value, ZERO_TENSOR, zeros_of) for position, value in enumerate(stack)]
    return run(op, keyset & BELOW_ZERO_TENSOR, given)


def zeros_of(tensor: Any) -> TensorBase:
    return ZEROS_IN_MEMORY()(tensor)


def refuse_zero_tensors(written: Any) -> None:
    """Raises RuntimeError where an argument to be written has no memory."""
    if any(tensor._keyset & ZERO_TENSOR for tensor in tensors_in(written)):
        raise RuntimeError(
            "ZeroTensors are immutable. Please use the materialized zero tensor obtained using .clone() if you want a "
            "mutable tensor."
        )
