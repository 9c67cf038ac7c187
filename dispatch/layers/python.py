"""Python: dispatch modes and tensor subclasses take the call.

A call stops here when a dispatch mode is active or an argument's class has a `__torch_dispatch__`. The innermost mode
is asked, with itself popped; if it answers NotImplemented, or no mode is there, the arguments' classes are asked in
turn. While a handler runs, everything above this key is excluded: autograd, autocast and the rest have had their turn
on the way down, and what the handler calls is not for them to see again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base import TensorBase
from ..boxing import checked, unbind
from ..interpreter import run
from ..keyset import above, below
from ..mode_stack import with_modes
from ..operator import OpOverload
from ..override import NotHandledError, one_per_type
from ..rules import RuleTable
from ..schema import FunctionSchema
from ..state import STATE, within
from .layer import layer

ABOVE_PYTHON = above("Python")
BELOW_SNAPSHOT = below("PythonTLSSnapshot")

# By (operator, class of a mode or of tensors): what is called in the place of that class's `__torch_dispatch__`, with
# the mode or the class first.
TORCH_DISPATCH: RuleTable[Callable[..., Any]] = RuleTable("torch_dispatch rule")


def _disabled_torch_dispatch_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """What a class sets as its `__torch_dispatch__` to handle no operator itself."""
    return NotImplemented


def has_handler(kind: type) -> bool:
    """Whether tensors of this class are to stop at the key Python."""
    handler = getattr(kind, "__torch_dispatch__", None)
    return handler is not None and handler is not _disabled_torch_dispatch_impl


@layer("PythonTLSSnapshot")
def python_tls_snapshot(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Remembers the state in which the user made the call, for `enable_reentrant_dispatch` inside a handler."""
    state = STATE.get()
    with within(state.replace(entry=state)):
        return run(op, keyset & BELOW_SNAPSHOT, stack)


@layer("Python")
def python(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Asks the innermost mode, then the classes of the arguments."""
    state = STATE.get()
    handled = state.excluding(ABOVE_PYTHON)
    args, kwargs = unbind(op.schema, stack)
    tensors = handling_tensors(op.schema, stack)
    types = tuple(type(tensor) for tensor in tensors)
    if state.modes:
        mode = state.modes[-1]
        with within(with_modes(handled, state.modes[:-1])):
            result = ask(mode, type(mode), op, types, args, kwargs)
        if result is not NotImplemented:
            return checked(op.schema, result)
    for tensor in tensors:
        with within(handled):
            result = ask(type(tensor), type(tensor), op, types, args, kwargs)
        if result is not NotImplemented:
            return checked(op.schema, result)
    raise no_handler(op, state.modes, types)


def ask(asked: Any, kind: type, op: OpOverload, types: tuple[type, ...], args: Any, kwargs: Any) -> Any:
    """What a mode, or a class of tensors, answers: by its rule for this operator, or else by its `__torch_dispatch__`.

    A trace is told who it was. Only then is the mode's own `__repr__` called, which may be anything.
    """
    tracer = STATE.get().tracer
    if tracer is not None:
        tracer.notes.append(f"asks {kind.__name__ if asked is kind else repr(asked)}")
    rule = TORCH_DISPATCH.get((op, kind))
    return rule(asked, op, types, args, kwargs) if rule else asked.__torch_dispatch__(op, types, args, kwargs)


def handling_tensors(schema: FunctionSchema, stack: list[Any]) -> list[Any]:
    """One tensor for each class that handles operators, subclass before superclass, otherwise from left to right."""
    tensors = [stack[position] for position in schema.tensor_positions]
    for position in schema.tensor_list_positions:
        tensors += stack[position] or ()
    return one_per_type(t for t in tensors if isinstance(t, TensorBase) and has_handler(type(t)))


def no_handler(op: OpOverload, modes: tuple[Any, ...], types: tuple[type, ...]) -> NotHandledError:
    asked = ([f"  - mode object {modes[-1]!r}"] if modes else []) + [f"  - tensor subclass {kind}" for kind in types]
    return NotHandledError(
        f"Multiple dispatch failed for 'torch._ops.{op}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
        + "\n".join(asked)
        + f"\n\nFor more information, try re-running with a handler that accepts {op}."
    )
