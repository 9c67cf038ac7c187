"""Operators that draw numbers: for each example others, or for all the same; vmap's `randomness` says which."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from redispatch.dispatch import OpOverload, Tag, call
from redispatch.dispatch.layers.transforms import BATCHING
from redispatch.kernels.ops.distributions import multinomial
from redispatch.kernels.ops.generators import default_states, restore_states

from ...dispatch.transforms.batched import each, front, is_batched, is_tensor, padded, position_of, ranks, whole
from .fallback import batches, one_by_one
from .pointwise import check_writes

ERROR = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)


def is_random(op: OpOverload) -> bool:
    return Tag.nondeterministic_seeded in op.tags


def draws(op: OpOverload, values: list[Any]) -> bool:
    """Whether a call draws numbers: attention does not where it drops nothing."""
    if not is_random(op):
        return False
    dropout = position_of(op.schema, "dropout_p")
    return dropout is None or values[dropout] != 0


def random_call(op: OpOverload, values: list[Any], dims: list[Any], level: Any) -> Any:
    """(result, its batch dimension). RuntimeError where random operators are not allowed."""
    if level.randomness == "error":
        raise RuntimeError(ERROR)
    if op.schema.is_out:
        raise RuntimeError(
            "vmap: We do not support calling out variants of random operations inside of vmap. Please use non-out "
            "variants as a workaround"
        )
    batched = is_batched(dims)
    if level.randomness == "same":
        return same_for_all(op, values, dims, level.size, batched)
    schema = op.schema
    tensors = [p for p in schema.tensor_positions if is_tensor(values[p])]
    if schema.mutable_positions and dims[schema.mutable_positions[0]] is None:
        if batched:
            check_writes(op, values, dims)
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
            f"randomness: {op.schema.name} would draw into one tensor for all examples. Make the tensor from an input "
            "(`x.new_empty(...)`), or use randomness='same'."
        )
    rule: Any = BATCHING.get(op)
    if rule is not None:
        return rule(op, values, dims, level.size)
    if not tensors:
        arguments = list(values)
        for position, argument in enumerate(schema.arguments):
            if argument.name == "size":
                arguments[position] = [level.size, *values[position]]
                return call(op, arguments), 0
        return one_by_one(op, values, dims, level.size)
    wanted = max(ranks(schema, values, dims))
    first = tensors[0]

    def placed(value: Any, dim: int | None) -> Any:
        return whole(value, dim, level.size) if value is values[first] else padded(value, dim, wanted)

    return call(op, each(schema, values, dims, placed)), tuple_of_zeros(op)


def same_numbers() -> Callable[[], None]:
    """Returns a function that puts the default generators back where they are now."""
    return partial(restore_states, default_states())


@batches("random", multinomial.op)
def multinomial_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Each row of weights draws for itself."""
    weights = whole(values[0], dims[0], size)
    if weights.dim() < 3:
        return call(op, [weights, *values[1:]]), 0
    return call(op, [weights.flatten(0, -2), *values[1:]]).unflatten(0, weights.shape[:-1]), 0


def tuple_of_zeros(op: OpOverload) -> Any:
    return [0] * len(op.schema.returns) if len(op.schema.returns) > 1 else 0


def same_for_all(op: OpOverload, values: list[Any], dims: list[Any], size: int, batched: bool) -> Any:
    """One draw. Where the operator asks for a tensor's shape, that of an example; where it draws from its values, it
    cannot be the same for all."""
    if not batched:
        return call(op, values), None
    if op.schema.mutable_positions:
        position = op.schema.mutable_positions[0]
        target = front(values[position], dims[position])
        if size:
            one = target.new_empty(target.shape[1:])  # in PyTorch's order: as if it were contiguous
            arguments = [value if p != position else one for p, value in enumerate(values)]
            if any(is_batched(dim) for p, dim in enumerate(dims) if p != position):
                raise RuntimeError(SAME)
            call(op, arguments)
            target.copy_(one.expand(target.shape))
        return values[position], None
    if op._opname in SHAPE_ONLY:
        example = each(op.schema, values, dims, lambda value, dim: value if dim is None else value.select(dim, 0))
        return call(op, example), None
    raise RuntimeError(SAME)


SHAPE_ONLY = ("rand_like", "randn_like", "randint_like", "native_dropout", "empty_like")
SAME = (
    "Vmap does not currently support same randomness with a batched tensor input: the distribution itself differs "
    "between examples. Use randomness='different'."
)
