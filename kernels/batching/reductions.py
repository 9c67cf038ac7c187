"""Operators that reduce a whole tensor: on a batch, along all dimensions of an example, laid out as one."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, ops

from ...dispatch.transforms.batched import front
from .by_dims import dims_rule


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
