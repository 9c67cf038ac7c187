"""Operators that name dimensions or sizes: with the batch in front, each dimension is one further, each size longer.

What an argument counts is in its name: `dim`, `dims`, `dim0` are dimensions of the first tensor, `size` and `repeats`
lists of sizes. So one rule does for reductions, views, scans, sorting, gathering and the like.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import DispatchKey, OpOverload, Tag, call, ops
from redispatch.dispatch.tensor import META

from ...dispatch.transforms.batched import dims_of_result, each, front, is_tensor, padded, rank, ranks, shifted, whole
from .fallback import one_by_one

DIMENSIONS = ("dim", "dims", "dim0", "dim1", "dim2", "axis0", "axis1", "axis", "dimension")
SIZES = ("size", "sizes", "input_sizes", "input_size", "self_sizes", "sym_sizes")
COUNTED = {*DIMENSIONS, *SIZES, "split_size"}  # an operator with one of these arguments works along dimensions
ONE_MORE = ("unsqueeze", "unsqueeze_", "stack", "unsqueeze_copy", "diag_embed")  # their dimensions are the result's


def dims_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Batches in front, what is not batched repeated; dimensions counted one further. Examples without dimensions get
    one meanwhile, since for them dimension 0 means the whole."""
    schema = op.schema
    named = (i for i, argument in enumerate(schema.arguments) if argument.name in SIZES)
    sizes = next((i for i in named if isinstance(values[i], list | tuple)), None)
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
    return result, dims_of_result(op, result, size)


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

    Where examples have different numbers of dimensions, only the operator knows which of them broadcast: in BROADCAST
    those in front do.
    """
    found = [rank(value, dim) for value, dim in zip(values, dims, strict=True) if is_tensor(value)]
    names = [argument.name for argument, value in zip(op.schema.arguments, values, strict=True) if is_tensor(value)]
    found = [count + (name in ONE_LESS) for count, name in zip(found, names, strict=True)]
    low = min(found, default=2) < 2 and Tag.pointwise not in op.tags and not op._opname.endswith("_backward")
    broadcasts = op._opname in BROADCAST
    if len(set(found)) > 1 and not broadcasts or low and op.entry_at(DispatchKey.Meta).rule == "backend fallback":
        return one_by_one(op, values, dims, size)
    if low:
        call(op, each(op.schema, values, dims, like_example))  # else a batch of vectors would pass for one matrix
    if len(set(found)) > 1:
        return broadcast_in_front(op, values, dims, size, max(found))
    result = call(op, each(op.schema, values, dims, lambda value, dim: whole(value, dim, size)))
    return result, dims_of_result(op, result, size)


def like_example(value: Any, dim: int | None) -> Any:
    """Returns a tensor without data that has an example's sizes: the operator says whether it takes them."""
    kept = [place for place in range(value.dim()) if place != dim]
    sizes, steps = value.shape, value.stride()
    made = [sizes[place] for place in kept], [steps[place] for place in kept]
    return ops.aten.empty_strided.default(*made, dtype=value.dtype, device=META)


BROADCAST = (
    *("triangular_solve", "linalg_solve_triangular", "linalg_lu_solve"),
    *("_cdist_forward", "binary_cross_entropy_backward"),
)


def broadcast_in_front(op: OpOverload, values: list[Any], dims: list[Any], size: int, count: int) -> Any:
    """The call with all examples of as many dimensions."""
    arguments = list(values)
    for place, argument in enumerate(op.schema.arguments):
        if is_tensor(values[place]):
            wanted = count - (argument.name in ONE_LESS)
            arguments[place] = padded(whole(values[place], dims[place], size), 0, wanted)
    result = call(op, arguments)
    return result, dims_of_result(op, result, size)


ONE_LESS = ("pivots", "LU_pivots", "tau")  # vectors that come with matrices


# The whole of an example ----------------------------------------------------------------------------------------------


def along_dim(op: OpOverload) -> tuple[OpOverload, int | None]:
    """(the overload that does the same along one dimension, which of its results is meant)"""
    if op._opname in ("max", "min"):  # along a dimension they give places, too, and one of equal elements the gradient
        return getattr(ops.aten, f"a{op._opname}").default, None
    packet = getattr(ops.aten, op._opname)
    overloads = (op, *(getattr(packet, name) for name in packet.overloads()))
    found = next(one for one in overloads if takes_dim(one) and not one.schema.is_out)
    return found, 0 if len(found.schema.returns) > len(op.schema.returns) else None


def takes_dim(op: OpOverload) -> bool:
    return any(argument.name == "dim" for argument in op.schema.arguments)


def full_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """The examples as rows, and each row reduced."""
    may_name = takes_dim(op)  # whether a dimension may be given, too: then the whole is not reduced
    if op._overloadname != "default" or (may_name and len(values) > 1 and values[1] is not None):
        return dims_rule(op, values, dims, size)
    along, which = along_dim(op)
    rows = front(values[0], dims[0])
    keepdim = bool(values[2]) if may_name and len(values) > 2 else False
    result = reduced(op, along, rows.reshape(size, -1), values)
    result = result[which] if which is not None else result
    if keepdim:
        shape = (size, *(1,) * (rows.dim() - 1))
        result = tuple(one.reshape(shape) for one in result) if isinstance(result, tuple) else result.reshape(shape)
    return result, [0] * len(result) if isinstance(result, tuple) else 0


def reduced(op: OpOverload, along: OpOverload, rows: Any, values: list[Any]) -> Any:
    if op._opname == "prod":
        return along(rows, 1, False, dtype=values[1])
    if op._opname in ("sum", "mean"):
        return along(rows, [1], dtype=values[1])
    if op._opname == "aminmax":
        return along(rows, dim=1)
    if op._opname in ("max", "min"):
        return along(rows, [1])
    return along(rows, 1)
