"""The parts of batching rules: the batch moved to the front, and arguments that count dimensions put right.

A rule is a function of (op, values, dims, size), as BATCHING says (dispatch/layers/transforms.py). Most rules bring
all batches to the front, where dimension d of an example is dimension d + 1 of its batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import FunctionSchema, OpOverload, Slot, TensorBase
from redispatch.dispatch.specialiser.annotations import frozen, inline

from ..records import dataclass


@dataclass(frozen=True)
class Decomposition:
    """A batching rule that says what an operator is for one example, in other operators or another case of itself.

    function: of (op, stack), called under the level; where it gives NotImplemented, the rule `otherwise` holds.
    """

    function: Callable[[OpOverload, list[Any]], Any]
    otherwise: Callable[..., Any]


@frozen
@dataclass(frozen=True)
class Rules:
    """The facts of operators that `vmap` needs; kernels/batching/ provides them."""

    of: Callable[[OpOverload], Any]  # the batching rule of an operator that has declared none
    of_rows: Callable[[OpOverload], Any]  # the rule for tensors whose rows are the examples, or None
    draws: Callable[[OpOverload, list[Any]], bool]  # whether the call draws random numbers
    draw: Callable[[OpOverload, list[Any], list[Any], Any], Any]  # such a call, for a whole batch
    same_numbers: Callable[[], Callable[[], None]]  # a function by which generators give the same numbers once more
    check_writes: Callable[[OpOverload, list[Any], list[Any]], None]  # RuntimeError where examples write one tensor


RULES: Slot[Rules] = Slot("batching rules")


def is_batched(dims: Any) -> bool:
    """Whether some tensor of an argument is batched, or of all arguments."""
    return any(map(is_batched, dims)) if isinstance(dims, list) else dims is not None


def is_tensor(value: Any) -> bool:
    return isinstance(value, TensorBase)


def rank(value: Any, dim: int | None) -> int:
    """The number of dimensions of one example."""
    return value.dim() - (dim is not None)


def front(value: Any, dim: int | None) -> Any:
    """The batch with its dimension first; what is not batched as it is."""
    return value if dim is None or dim == 0 else value.movedim(dim, 0)


def whole(value: Any, dim: int | None, size: int) -> Any:
    """The batch with its dimension first; what is not batched, repeated."""
    return front(value, dim) if dim is not None else value.expand((size, *value.shape))


def padded(value: Any, dim: int | None, wanted: int) -> Any:
    """The batch first, then dimensions of size 1 until each example has `wanted` of them."""
    moved = front(value, dim)
    if dim is None:
        return moved
    for _ in range(wanted - rank(value, dim)):
        moved = moved.unsqueeze(1)
    return moved


def each(schema: FunctionSchema, values: list[Any], dims: list[Any], change: Any) -> list[Any]:
    """The stack with each tensor replaced by `change(tensor, dim)`, those in lists included."""
    changed = list(values)
    for position in schema.tensor_positions:
        if is_tensor(values[position]):
            changed[position] = change(values[position], dims[position])
    for position in schema.tensor_list_positions:
        if values[position]:
            changed[position] = [
                change(value, dim) if is_tensor(value) else value
                for value, dim in zip(values[position], dims[position], strict=True)
            ]
    return changed


def ranks(schema: FunctionSchema, values: list[Any], dims: list[Any]) -> list[int]:
    """The number of dimensions of each tensor's examples."""
    found: list[int] = []
    each(schema, values, dims, lambda value, dim: found.append(rank(value, dim)))
    return found


def shifted(dim: Any, count: int) -> Any:
    """A dimension of an example, out of `count`, as one of its batch. IndexError where there is none such."""
    if isinstance(dim, list | tuple):
        return [shifted(one, count) for one in dim]
    limit = max(count, 1)
    if not -limit <= dim < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    return dim % limit + 1


def position_of(schema: FunctionSchema, name: str) -> int | None:
    return next((i for i, argument in enumerate(schema.arguments) if argument.name == name), None)


def dims_of_result(op: Any, result: Any, size: int) -> Any:
    """The batch's dimension in each result: the first, but for what an operator was told to leave empty."""
    if isinstance(result, tuple) and len(op.schema.returns) > 1:
        return [dims_of_result(None, one, size) if is_tensor(one) else 0 for one in result]
    return 0 if not is_tensor(result) or result.shape[:1] == (size,) else None


@inline
def tensors_in(stack: list[Any]) -> list[TensorBase]:
    """The tensors of a stack without lists of them."""
    return [value for value in stack if isinstance(value, TensorBase)]
