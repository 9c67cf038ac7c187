"""How rules are entered, and what holds where there is none: the operator once for each example, or a refusal.

Read next: by_dims.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from redispatch.dispatch import OpOverload, call, ops
from redispatch.dispatch.layers.transforms import BATCHING
from redispatch.dispatch.rules import place_of

from ...dispatch.transforms.batched import Decomposition, dims_of_result, each, is_tensor

Rule = Callable[..., Any] | Decomposition
CLASSES: dict[Any, str] = {}  # rule -> the shape class of its operators


def batches(shape_class: str, *ops: Any, otherwise: Callable[..., Any] | None = None) -> Callable[[Callable], Callable]:
    """Decorates the batching rule of operators: of declared ones the functional form's, of overloads their own.

    With `otherwise` it is a decomposition, which may leave a call to that rule.
    """

    def enter(function: Callable) -> Callable:
        rule: Rule = function if otherwise is None else Decomposition(function, otherwise)
        CLASSES[rule] = shape_class
        for op in ops:
            BATCHING.add(getattr(op, "functional", op), rule, place_of(function))
        return function

    return enter


class Fallback:
    """Whether operators without a rule may be called once for each example, and whether each such call warns."""

    enabled = warns = True


FALLBACK = Fallback()


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
    """Says that an operator is slow, and what to do; RuntimeError where the fallback is off."""
    if not FALLBACK.enabled:
        raise RuntimeError(f"{op.qualified_name} hit the vmap fallback which is currently disabled")
    if FALLBACK.warns:
        warnings.warn(
            "There is a performance drop because we have not yet implemented the batching rule for "
            f"{op.qualified_name}. It is called once for each example. To give it a rule: "
            f"redispatch.library.register_vmap({op.qualified_name!r}, rule).",
            UserWarning,
            stacklevel=2,
        )


# Refusals: results whose shape differs between examples, and Python values that do ------------------------------------

TEXTS = {
    "_local_scalar_dense": (
        "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a "
        "Tensor, please try to rewrite what you're doing with other operations."
    ),
    "is_nonzero": (
        "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support "
        "that yet."
    ),
    "allclose": ("vmap over torch.allclose isn't supported yet: torch.isclose(x, y).all() is."),
    "equal": "Batching rule not implemented for aten::equal. We could not generate a fallback.",
    "masked_select": (
        "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for "
        "each batch this would return a differently shaped Tensor: torch.where(mask, x, 0) keeps the shape."
    ),
    "index": (
        "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing "
        "with a boolean mask."
    ),
}


def refuse(op: OpOverload, why: str) -> Callable[..., Any]:
    """A rule that raises RuntimeError."""
    name = op.schema.name
    if why == "dynamic":
        text = TEXTS.get(op._opname) or (
            f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over {name}."
        )
    else:
        text = (
            f"Batching rule not implemented for {op.qualified_name}; the fallback path doesn't work on out= or view "
            "ops."
        )

    def refused(*ignored: Any) -> Any:
        raise RuntimeError(text)

    return refused


batches("dynamic", ops.aten.where.default)(refuse(ops.aten.where.default, "dynamic"))  # else its parts would tell
