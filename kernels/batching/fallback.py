"""The operator once for each example: for what has no batching rule."""

from __future__ import annotations

import warnings
import weakref
from functools import partial
from typing import Any

from redispatch.dispatch import OpOverload, call, ops

from ...dispatch.transforms.batched import dims_of_result, each, is_tensor

# By operator, not by name: one that is defined anew under the same name has lost its rule, too.
_WARNED: weakref.WeakSet[OpOverload] = weakref.WeakSet()


def one_by_one(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """The results of all examples, stacked; what an example writes, it writes into the batch."""
    warn(op)
    if size == 0:
        raise RuntimeError(
            f"{op.schema.name}: The fallback path does not support vmap over dims of size 0, because nobody has seen "
            "what the operator makes of an example. Give the operator a batching rule: library.register_vmap"
        )
    results = []
    for index in range(size):
        results.append(call(op, each(op.schema, values, dims, partial(example, index))))
    if op.schema.mutable_positions and all(returned.is_write for returned in op.schema.returns):
        return results[0], None
    result = stacked(results)
    return result, dims_of_result(op, result, size)


def example(index: int, value: Any, dim: int | None) -> Any:
    return value if dim is None else value.select(dim, index)


def stacked(results: list[Any]) -> Any:
    if isinstance(results[0], tuple | list):
        return type(results[0])(stacked([result[i] for result in results]) for i in range(len(results[0])))
    return ops.aten.stack.default(results, 0) if is_tensor(results[0]) else results[0]


def warn(op: OpOverload) -> None:
    """Says once for each operator that it is slow, and what to do."""
    if op not in _WARNED:
        _WARNED.add(op)
        warnings.warn(
            "There is a performance drop because we have not yet implemented the batching rule for "
            f"{op.qualified_name}. It is called once for each example. To give it a rule: "
            f"redispatch.library.register_vmap({op.qualified_name!r}, rule).",
            UserWarning,
            stacklevel=2,
        )
