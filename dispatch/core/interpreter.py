"""The boxed interpreter: how every operator call goes down its stack of dispatch keys.

`call` starts at the top: it unites the keysets of the arguments with the thread's state. `hop` makes one step: it asks
the operator who answers for a keyset and hands the whole stack over. A layer does its work and lets the call `run` on
with the keys below its own. That is all; the interpreter knows no operator, no layer and no mode.

A *stack* is a list of argument values in schema order, defaults filled in; the result is one value, or a tuple
where the schema has several returns.

This is the definition. What `run` really runs, unless that is switched off (config.py), is straight-line code which the
specialiser makes of these functions and of the layers' own source, for one operator, one keyset and what else is known.

Read next: boxing.py (how a user's call becomes a stack), layers/ (what happens at each key), specialiser/.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..specialiser.annotations import inline
from .base import Operator, TensorBase
from .state import STATE

if TYPE_CHECKING:
    from ..schema.schema import FunctionSchema


def call(op: Operator, stack: list[Any]) -> Any:
    """Runs `op` on a stack, from the highest key that the arguments and the state of this thread give."""
    return run(op, dispatch_keyset(op.schema, stack), stack)


class Specialised:
    """Runs operators by specialised code: the room above fills it in, and takes it out to have all run boxed."""

    run: Callable[[Operator, int, list[Any]], Any] | None = None


def run(op: Operator, keyset: int, stack: list[Any]) -> Any:
    """Runs `op` with exactly these keys, arguments and state no longer asked."""
    specialised = Specialised.run
    return hop(op, keyset, stack) if specialised is None else specialised(op, keyset, stack)


@inline
def hop(op: Operator, keyset: int, stack: list[Any]) -> Any:
    """One hop: runs the kernel that answers for `keyset`."""
    entry = op.entry(keyset)
    tracer = STATE.get().tracer
    if tracer is not None:
        return tracer.hop(op, entry, keyset, stack)
    return entry.kernel.boxed(op, keyset, stack)


def dispatch_keyset(schema: FunctionSchema, stack: list[Any]) -> int:
    """The keyset of a call: (keys of the tensors | included) - excluded."""
    state = STATE.get()
    return (tensors_keyset(schema, stack) | state.included) & ~state.excluded


def tensors_keyset(schema: FunctionSchema, stack: list[Any]) -> int:
    """The union of the keysets of all tensors among the arguments, lists of tensors included."""
    keys = 0
    for position in schema.tensor_positions:
        value = stack[position]
        if isinstance(value, TensorBase):  # not None, and not a number standing for a tensor
            keys |= value._keyset
    for position in schema.tensor_list_positions:
        for value in stack[position] or ():
            if isinstance(value, TensorBase):
                keys |= value._keyset
    return keys
