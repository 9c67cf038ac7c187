"""The node of an operator without a derivative: it raises when backward reaches it.

The error comes in backward, not in forward, because most results are never differentiated. Where it is known that no
derivative can come, it does not wait: a custom operator that writes a tensor of the graph would cut it off from its
history, and an operator that writes cannot be given a derivative. (PyTorch records nothing there, and backward gives
the gradient of another program.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch import OpOverload, describe_value, wants_gradient
from redispatch.dispatch.layers.autograd import NO_DERIVATIVE

from .history import check_writes, gradient_edge, refuse_out, tensors_of, tie_results, written_tensors
from .node import Node


class NotImplementedNode(Node):
    """The node of an operator of which nobody has declared the derivative."""

    __slots__ = ("op",)

    def __init__(self, op: OpOverload, edges: tuple[Any, ...]) -> None:
        super().__init__(edges)
        self.op = op

    def name(self) -> str:
        return "torch::autograd::NotImplemented"

    def apply(self, gradients: list[Any], wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        if self.op.namespace == "aten":
            raise RuntimeError(f"derivative for {self.op.schema.name} is not implemented")
        raise RuntimeError(
            f"Trying to backward through {self.op} but no autograd formula was registered. Please use "
            "register_autograd to add one."
        )


NotImplementedNode.__name__ = "NotImplemented"  # as tensors print it: grad_fn=<NotImplemented>


class NoDerivative:
    """The rule of every operator that has none."""

    def begin(self, op: OpOverload, stack: list[Any]) -> NotImplementedNode:
        refuse_out(op)
        for position in op.schema.mutable_positions:
            check_writes(stack[position])
            if op.namespace != "aten":
                refuse_graph_tensors(op, position, stack[position])
        # What is written comes first: its former value is what the node's first edge must lead to (history.py).
        written = written_tensors(op, stack)
        others = [tensor for tensor in tensors_of(stack) if all(tensor is not one for one in written)]
        return NotImplementedNode(op, tuple(gradient_edge(tensor) for tensor in (*written, *others)))

    def finish(self, op: OpOverload, node: NotImplementedNode, stack: list[Any], result: Any) -> Any:
        return tie_results(op, node, stack, result)[0]


def refuse_graph_tensors(op: OpOverload, position: int, written: Any) -> None:
    """RuntimeError where an argument to be written is the result of recorded calls."""
    if any(wants_gradient(tensor) for tensor in tensors_of(written)):
        name = op.schema.arguments[position].name
        raise RuntimeError(
            f"{op} writes its argument '{name}', which is part of a graph, and has no derivative: backward could not "
            "go past the write.\n"
            f"  you passed   {name}: {', '.join(map(describe_value, tensors_of(written)))}, requires grad\n"
            f"  to fix       call it under no_grad(), or on a clone that is detached; for gradients, write a "
            "functional operator, give it a derivative by register_autograd, and take its `inplace_form()`"
        )


NO_DERIVATIVE.fill(NoDerivative())
