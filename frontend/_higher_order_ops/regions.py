"""Regions: operators that call a function as it is, and say something about the call to whoever compiles it.

    hints_wrapper(f, (x,), {}, hints={"stage": 1})       # what a compiler may want to know
    strict_mode(f, (x,))                                 # the function has no effects outside
    invoke_subgraph(f, "layer", x)                       # the same function as other calls under this name
    foreach_map(torch.add, [x, y], [z, w])               # one function on each of several tensors
    local_map_hop(f, x)                                  # on the part of a tensor that this process has

Eagerly each is its function. `make_fx` enters the operator, with a graph of the function.

Source: PyTorch's modules of these names in torch._higher_order_ops. Read next: effects.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.compiler import nested_compile_region
from redispatch.dispatch.pytree import tree_flatten, tree_unflatten

from .control_flow import BodyOperator, functionalize_functions
from .wrap import call


def call_with_operands(function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    return function(*operands)


def call_hinted(
    body_fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None, hints: Any = None
) -> Any:
    """The function's result. RuntimeError where arguments are in no tuple or dictionary."""
    if not isinstance(args, tuple | list) or not isinstance(kwargs or {}, dict):
        raise RuntimeError(f"hints_wrapper: expected args to be a tuple and kwargs a dict, got {args} and {kwargs}")
    return body_fn(*args, **(kwargs or {}))


def call_named(subgraph: Callable[..., Any], identifier: str | None, *operands: Any) -> Any:
    return subgraph(*operands)


strict_mode_op = BodyOperator("strict_mode", call_with_operands)
hints_wrapper = BodyOperator("hints_wrapper", call_hinted)
invoke_subgraph = BodyOperator("invoke_subgraph", call_named)
_foreach_map = BodyOperator("foreach_map", call)
local_map_hop = BodyOperator("local_map_hop", call)
for region in (strict_mode_op, hints_wrapper, invoke_subgraph, _foreach_map, local_map_hop):
    functionalize_functions(region, 0)


def strict_mode(callable: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Returns `callable(*operands)`, of which a compiler may assume that it has no effects outside."""
    return strict_mode_op(callable, operands)


def foreach_map(op: Callable[..., Any], *operands: Any, **kwargs: Any) -> list[Any]:
    """Returns [op(x0, y0), op(x1, y1), ...] for operands that are lists; others are the same for each.

    Errors: ValueError where no operand is a list, or their lengths differ.
    """
    lengths = {len(one) for one in operands if isinstance(one, list | tuple)}
    if len(lengths) != 1:
        raise ValueError(f"foreach_map: expected lists of one length among the operands, got lengths {sorted(lengths)}")
    (length,) = lengths
    leaves, spec = tree_flatten(operands)

    def each(*leaves: Any) -> tuple[Any, ...]:
        given = tree_unflatten(list(leaves), spec)
        rows = zip(*(one if isinstance(one, list | tuple) else [one] * length for one in given), strict=True)
        return tuple(op(*row, **kwargs) for row in rows)

    return list(_foreach_map(each, *leaves))


mark_compile_region = nested_compile_region
