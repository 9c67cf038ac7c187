"""Operators that name dimensions or sizes: with the batch in front, each dimension is one further, each size longer.

What an argument counts is in its name: `dim`, `dims`, `dim0` are dimensions of the first tensor, `size` and `repeats`
lists of sizes. So one rule does for reductions, views, scans, sorting, gathering and the like.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, call

from .common import dims_of_result, each, is_tensor, ranks, shifted, whole

DIMENSIONS = ("dim", "dims", "dim0", "dim1", "dim2", "axis0", "axis1", "axis", "dimension")
SIZES = ("size", "sizes", "input_sizes", "input_size", "self_sizes", "sym_sizes")
ONE_MORE = ("unsqueeze", "unsqueeze_", "stack", "unsqueeze_copy", "diag_embed")  # their dimensions are the result's


def dims_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Batches in front, what is not batched repeated; dimensions counted one further. Examples without dimensions get
    one meanwhile, since for them dimension 0 means the whole."""
    schema = op.schema
    sizes = next((i for i, argument in enumerate(schema.arguments) if argument.name in SIZES), None)
    count = max(ranks(schema, values, dims), default=0)
    if sizes is not None and schema.arguments[sizes].name.startswith("input"):
        count = len(values[sizes])  # what was selected from, say: the backward of a view names its dimensions
    more = op._opname in ONE_MORE
    lonely = count == 0 and not more and sizes is None
    arguments = each(schema, values, dims, lambda value, dim: whole(value, dim, size))
    if lonely:
        arguments = each(schema, arguments, dims, lambda value, dim: value.unsqueeze(1))
    for position, argument in enumerate(schema.arguments):
        value = values[position]
        if argument.name in DIMENSIONS and not is_tensor(value):
            arguments[position] = all_or_shifted(argument, value, count + more, lonely)
    if sizes is not None:
        arguments[sizes] = [size, *values[sizes]]
    result = call(op, arguments)
    if lonely and not op.schema.mutable_positions:
        result = without_helper(result)
    return result, dims_of_result(op, result)


def all_or_shifted(argument: Any, dim: Any, count: int, lonely: bool) -> Any:
    """The dimensions to work along: for none, or None, all of the example's."""
    if dim is None or (isinstance(dim, list | tuple) and not dim and argument.name == "dim"):
        return list(range(1, max(count, 1) + 1))
    return shifted(dim, count)


def without_helper(result: Any) -> Any:
    """The results without the dimension that examples had been given."""
    if isinstance(result, tuple | list):
        return type(result)(map(without_helper, result))
    return result.squeeze(1) if is_tensor(result) and result.dim() > 1 and result.shape[1] == 1 else result


def leading_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Operators on the last dimensions, which take any number of others in front: linear algebra, triangles, padding.

    Tensors of fewer dimensions than others get them behind the batch.
    """
    wanted = max(ranks(op.schema, values, dims))

    def placed(value: Any, dim: int | None) -> Any:
        moved = whole(value, dim, size)
        for _ in range(wanted - (moved.dim() - 1)):
            moved = moved.unsqueeze(1)
        return moved

    result = call(op, each(op.schema, values, dims, placed))
    return result, dims_of_result(op, result)
