"""`CSEPass`: common subexpressions as a pass of a PassManager; PyTorch's `fx.passes.dialect.common.cse_pass`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from redispatch.dispatch import Tag, ops

from ..graph_module import GraphModule
from .infra import PassBase, PassResult
from .post_grad import merge_equals

__all__ = ["CSEPass", "get_CSE_banned_ops"]
__path__: list[str] = []  # PyTorch's packages `dialect` and `dialect.common`: _moved.py


def get_CSE_banned_ops() -> set[Any]:  # PyTorch's name
    """Returns the operators that draw random numbers or write: of those, two calls are two values."""
    packets = [getattr(ops.aten, name) for name in dir(ops.aten) if not name.startswith("__")]
    return {one for one in packets if any(has_effects(getattr(one, name)) for name in one.overloads())}


def has_effects(op: Any) -> bool:
    writes = op._schema.is_mutable and "out" not in op._overloadname
    return writes or Tag.nondeterministic_seeded in op.tags


class CSEPass(PassBase):
    """Has nodes that compute the same of the same be one. banned_ops: operators, or overloads, to leave alone."""

    def __init__(self, banned_ops: Collection[Any] | None = None) -> None:
        super().__init__()
        self.banned_ops = set() if banned_ops is None else set(banned_ops)

    def call(self, graph_module: GraphModule) -> PassResult:
        before = len(graph_module.graph.nodes)
        merge_equals(graph_module.graph, self.banned_ops)
        return PassResult(graph_module, len(graph_module.graph.nodes) != before)
