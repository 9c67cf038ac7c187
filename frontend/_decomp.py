"""`redispatch._decomp`: tables of what stands for an operator in a trace, for `make_fx(f, decomposition_table=...)`.

An operator that is made of others is traced as those without any table. A table has what programs register, and nothing
else: an operator that is one loop here, such as gelu, stays in a trace until a program says what stands for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from redispatch.dispatch import OpOverload, OpOverloadPacket
from redispatch.dispatch.pytree import tree_leaves

__all__ = [
    "core_aten_decompositions",
    "decomposition_table",
    "get_decompositions",
    "global_decomposition_table",
    "meta_table",
    "pre_autograd_decomposition_table",
    "register_decomposition",
    "remove_decompositions",
]

Table = dict[OpOverload, Callable[..., Any]]
global_decomposition_table: dict[str, Table] = {"post_autograd": {}, "pre_autograd": {}, "meta": {}}
decomposition_table, pre_autograd_decomposition_table, meta_table = global_decomposition_table.values()


def register_decomposition(
    aten_op: Any, registry: Table | None = None, *, type: str = "post_autograd", unsafe: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters the decorated function as what stands for operators: overloads, or packets with all of theirs.

    Errors: RuntimeError where something does already.
    """
    table = global_decomposition_table[type] if registry is None else registry

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for op in overloads(tree_leaves(aten_op)):
            if op in table:
                raise RuntimeError(f"duplicate registrations for {op}")
            table[op] = function
        return function

    return enter


def get_decompositions(aten_ops: Iterable[Any], type: str = "post_autograd") -> Table:
    """Returns the part of a table that is about some operators: overloads, or packets with all of theirs."""
    table = global_decomposition_table[type]
    return {op: table[op] for op in overloads(aten_ops) if op in table}


def remove_decompositions(decompositions: Table, aten_ops: Iterable[Any]) -> None:
    """Takes some operators out of a table."""
    for op in overloads(aten_ops):
        decompositions.pop(op, None)


def core_aten_decompositions() -> Table:
    """Returns what programs have registered; the library has nothing that stands for its own operators."""
    return dict(decomposition_table)


def overloads(ops: Iterable[Any]) -> list[OpOverload]:
    """Returns operators, and the overloads of packets."""
    return [
        one
        for op in ops
        for one in ([getattr(op, name) for name in op.overloads()] if isinstance(op, OpOverloadPacket) else [op])
    ]
