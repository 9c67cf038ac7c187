"""Operators that reduce a whole tensor: on a batch, along all dimensions of an example, laid out as one."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, ops

from ...dispatch.transforms.batched import front
from .by_dims import dims_rule

# full reduction -> the overload along one dimension, and which of its results is meant
FULL = {
    "sum": ("sum.dim_IntList", None),
    "mean": ("mean.dim", None),
    "max": ("amax", None),
    "min": ("amin", None),
    "prod": ("prod.dim_int", None),
    "all": ("all.dim", None),
    "any": ("any.dim", None),
    "median": ("median.dim", 0),
    "nanmedian": ("nanmedian.dim", 0),
    "count_nonzero": ("count_nonzero.dim_IntList", None),
    "argmax": ("argmax", None),
    "argmin": ("argmin", None),
    "aminmax": ("aminmax", None),
}
OVERLOADS = {"argmax", "argmin", "aminmax", "count_nonzero"}  # whose `dim` may be given, too: then they are not full


def full_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """The examples as rows, and each row reduced."""
    has_dim = op._opname in OVERLOADS and len(values) > 1 and values[1] is not None
    if op._overloadname != "default" or has_dim:
        return dims_rule(op, values, dims, size)
    name, which = FULL[op._opname]
    packet, _, overload = name.partition(".")
    along = getattr(getattr(ops.aten, packet), overload or "default")
    rows = front(values[0], dims[0])
    keepdim = bool(values[2]) if op._opname in OVERLOADS and len(values) > 2 else False
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
    if op._opname in ("max", "min", "count_nonzero"):
        return along(rows, [1])
    return along(rows, 1)
