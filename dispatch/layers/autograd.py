"""Autograd: records an operator on the graph, if gradients are wanted, and runs it below.

What the graph is made of is no business of this room: an operator's rule in `DERIVATIVES` makes the node before the
call (it may have to keep inputs that the call overwrites) and attaches the results after it. Where an operator has no
rule, `NO_DERIVATIVE` provides one that fails in the backward pass, with the operator's name; an operator of a user
falls back to running as if nothing were there (autograd/fallback.py).

Source of the two steps: PyTorch's generated VariableType kernels do the same for each operator in turn.
"""

from __future__ import annotations

from typing import Any, Protocol

from ..core.base import wants_gradient
from ..core.interpreter import run
from ..core.key import KEYS
from ..core.keyset import below, keyset
from ..core.operator import OpOverload
from ..core.state import STATE, within
from ..rules import RuleTable, Slot
from ..schema.schema import FunctionSchema
from ..specialiser.annotations import inline, pure
from .layer import layer

AUTOGRAD_KEYS = tuple(name for name, key in KEYS.items() if key.is_autograd)
AUTOGRAD = keyset(*AUTOGRAD_KEYS)
BELOW_AUTOGRAD = below("AutogradOther")


class Derivative(Protocol):
    """The interface of an operator to autograd."""

    def begin(self, op: OpOverload, stack: list[Any]) -> Any:
        """A node with edges to the inputs and what the derivative needs of them; None if nothing is to be recorded.

        Raises RuntimeError where the call must not happen: writing into a leaf, for example.
        """

    def finish(self, op: OpOverload, node: Any, stack: list[Any], result: Any) -> Any:
        """The result, made to point to the node."""


DERIVATIVES: RuleTable[Derivative] = RuleTable("derivative")
AUTOGRAD_FALLBACK: Slot[Any] = Slot("what is done with an operator of a user that has no derivative")
NO_DERIVATIVE: Slot[Derivative] = Slot("the derivative of an operator that has none")


@layer(*AUTOGRAD_KEYS)
def autograd(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Records `op` if an input requires grad and recording is on; runs it with the keys below either way."""
    state = STATE.get()
    node = None
    if state.grad_enabled and any_wants_gradient(op.schema, stack):
        if falls_back(op) and AUTOGRAD_FALLBACK().applies():
            return AUTOGRAD_FALLBACK().run(op, keyset, stack)
        rule = rule_of(op)
        node = rule.begin(op, stack)
    # A kernel may be written in other operators; they are not to be recorded beside the one that they make up.
    with within(state.excluding(AUTOGRAD)):
        result = run(op, keyset & BELOW_AUTOGRAD, stack)
    return result if node is None else rule.finish(op, node, stack, result)


@pure
def rule_of(op: OpOverload) -> Derivative:
    """Returns the rule of an operator, or that of one that has none."""
    return DERIVATIVES.get(op) or NO_DERIVATIVE()


@pure
def falls_back(op: OpOverload) -> bool:
    """Whether an operator is a user's and nothing was said of its derivative."""
    return op.namespace != "aten" and DERIVATIVES.get(op) is None


@inline
def any_wants_gradient(schema: FunctionSchema, stack: list[Any]) -> bool:
    """Whether some tensor among the arguments requires grad."""
    return any(wants_gradient(stack[position]) for position in schema.tensor_positions) or any(
        wants_gradient(value) for position in schema.tensor_list_positions for value in stack[position] or ()
    )
