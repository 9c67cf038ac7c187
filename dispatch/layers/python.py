"""Python: dispatch modes and tensor subclasses take the call.

A call stops here when a dispatch mode is active or an argument's class has a `__torch_dispatch__`. The innermost mode
is asked, with itself popped; if it answers NotImplemented, or no mode is there, the arguments' classes are asked in
turn. While a handler runs, everything above this key is excluded: autograd, autocast and the rest have had their turn
on the way down, and what the handler calls is not for them to see again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from redispatch.dispatch.kernel_conventions import checked, no_tensor

from ..core.base import TensorBase
from ..core.boxing import unbind
from ..core.interpreter import call, run
from ..core.keyset import below
from ..core.keyset import keyset as keys
from ..core.operator import OpOverload
from ..core.state import ABOVE_PYTHON, PYTHON_KEYS, STATE, within
from ..protocols.override import HANDLER_CHANGED, described, not_handled
from ..rules import RuleTable, is_own
from ..schema.schema import TENSOR, FunctionSchema
from ..specialiser.annotations import inline, leaf
from ..specialiser.site import Memo
from .layer import layer

PYTHON = keys("Python")
FUNCTIONALIZE = keys("Functionalize")
BELOW_SNAPSHOT = below("PythonTLSSnapshot")
BELOW_PRE_DISPATCH = below("PreDispatch")
REMEMBERED = 4096  # combinations of classes; then it starts afresh

# By (operator, class of a mode or of tensors): what is called in the place of that class's `__torch_dispatch__`, with
# the mode or the class first.
TORCH_DISPATCH: RuleTable[Callable[..., Any]] = RuleTable("torch_dispatch rule")


def _disabled_torch_dispatch_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Runs the operator below the key Python: a class sets this as its `__torch_dispatch__` to opt out."""
    with within(STATE.get().excluding(ABOVE_PYTHON | PYTHON_KEYS)):
        return func(*args, **(kwargs or {}))


def has_handler(kind: type) -> bool:
    """Whether tensors of this class are to stop at the key Python."""
    handler = getattr(kind, "__torch_dispatch__", None)
    return handler is not None and handler is not _disabled_torch_dispatch_impl


@layer("PreDispatch")
def pre_dispatch(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Asks the innermost of the modes that stand before all layers: what they call takes its whole way down."""
    state = STATE.get()
    if not state.pre_dispatch_modes:
        return run(op, keyset & BELOW_PRE_DISPATCH, stack)
    mode = state.pre_dispatch_modes[-1]
    args, kwargs = unbind(op.schema, stack)
    types = handling_types(tuple(type(tensor) for tensor in given_tensors(op.schema, stack)))
    with within(state.answering_before()):
        result = ask(mode, type(mode), op, types, args, kwargs)
    if result is NotImplemented:
        raise no_handler(op, state.pre_dispatch_modes, ())
    return answer_of(op.schema, result)


@inline
def answer_of(schema: FunctionSchema, answer: Any) -> Any:
    """Returns an answer that is what the schema promises, or None in the place of one tensor."""
    if len(schema.returns) == 1 and schema.returns[0].type == TENSOR:
        if not isinstance(answer, TensorBase):
            check_none(schema, answer)
        return answer
    return checked(schema, answer)


@leaf
def check_none(schema: FunctionSchema, answer: Any) -> None:
    """RuntimeError for an answer that is neither a tensor nor None."""
    if answer is not None:
        raise no_tensor(schema, answer)


@layer("PythonTLSSnapshot")
def python_tls_snapshot(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Remembers the state in which the user made the call, for `enable_reentrant_dispatch` inside a handler."""
    with within(STATE.get().entered()):
        return run(op, keyset & BELOW_SNAPSHOT, stack)


@layer("Python")
def python(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Asks the innermost mode, then the classes of the arguments."""
    state = STATE.get()
    args, kwargs = unbind(op.schema, stack)
    types = handling_types(tuple(type(tensor) for tensor in given_tensors(op.schema, stack)))
    if state.modes:
        mode = state.modes[-1]
        with within(state.answering()):
            result = ask(mode, type(mode), op, types, args, kwargs)
        if result is not NotImplemented:
            return answer_of(op.schema, result)
    elif types:
        with within(state.excluding(ABOVE_PYTHON)):
            result = ask(types[0], types[0], op, types, args, kwargs)
        if result is not NotImplemented:
            return answer_of(op.schema, result)
        return ask_in_turn(op, types[1:], types, args, kwargs)
    return ask_in_turn(op, types, types, args, kwargs)


@inline
def ask(asked: Any, kind: type, op: OpOverload, types: tuple[type, ...], args: Any, kwargs: Any) -> Any:
    """Returns the answer of a mode, or of a class of tensors, by its rule for this operator or its
    `__torch_dispatch__`."""
    tracer = STATE.get().tracer
    if tracer is not None:
        return ask_traced(tracer, asked, kind, op, types, args, kwargs)
    if TORCH_DISPATCH.concerns(op):
        rule = TORCH_DISPATCH.get((op, kind))
        if rule is not None:
            return rule(asked, op, types, args, kwargs)
    return asked.__torch_dispatch__(op, types, args, kwargs)


def call_showing_type(op: OpOverload, tensor: Any) -> Any:
    """`op(tensor)`, where PyTorch asks the modes outside of its dispatcher: the tensor's class stands among the types,
    with or without a handler. (Not where a transform or Functionalize is to take off a wrapper first.)"""
    state = STATE.get()
    reaches = state.included & ~state.excluded & PYTHON and not (state.levels or tensor._keyset & FUNCTIONALIZE)
    if state.modes and state.tracer is None and reaches:
        mode = state.modes[-1]
        with within(state.answering()):
            result = ask(mode, type(mode), op, (type(tensor),), (tensor,), {})
        if result is not NotImplemented:
            return answer_of(op.schema, result)
    return call(op, [tensor])


def ask_traced(
    tracer: Any, asked: Any, kind: type, op: OpOverload, types: tuple[type, ...], args: Any, kwargs: Any
) -> Any:
    """Returns the answer while a trace records. It is told who was asked; a mode's own `__repr__` may be anything."""
    rule = TORCH_DISPATCH.get((op, kind)) if TORCH_DISPATCH.concerns(op) else None
    tracer.notes.append(f"asks {kind.__name__ if asked is kind else repr(asked)}")
    given = [*(("", value) for value in args), *kwargs.items()]
    handler = asked.__torch_dispatch__

    def answer() -> Any:
        return handler(op, types, args, kwargs) if rule is None else rule(asked, op, types, args, kwargs)

    return tracer.asked(kind.__name__, "__torch_dispatch__", rule or handler, op, given, answer)


def ask_in_turn(op: OpOverload, asked: Any, types: tuple[type, ...], args: Any, kwargs: Any) -> Any:
    """Returns the first answer of the classes `asked` that is not NotImplemented."""
    state = STATE.get()
    for kind in asked:
        with within(state.excluding(ABOVE_PYTHON)):
            result = ask(kind, kind, op, types, args, kwargs)
        if result is not NotImplemented:
            return answer_of(op.schema, result)
    raise no_handler(op, state.modes, types)


@inline
def given_tensors(schema: FunctionSchema, stack: list[Any]) -> list[Any]:
    """The tensors among the arguments, those in lists last."""
    tensors = [stack[position] for position in schema.tensor_positions]
    for position in schema.tensor_list_positions:
        tensors += stack[position] or ()
    return [tensor for tensor in tensors if isinstance(tensor, TensorBase)]


_HANDLING = Memo(REMEMBERED, alike=range(8))  # what `handling_types` has answered


@inline
def handling_types(kinds: tuple[type, ...]) -> tuple[type, ...]:
    """The classes among `kinds` that handle operators, each once, subclass before superclass, else from the left."""
    found = _HANDLING.get(kinds)
    return in_order(kinds) if found is None else found


@leaf
def in_order(kinds: tuple[type, ...]) -> tuple[type, ...]:
    """`handling_types`, worked out; and remembered for the kinds that will be met again."""
    chosen: list[type] = []
    for kind in kinds:
        if has_handler(kind) and kind not in chosen:
            give_self(kind)
            position = next((i for i, known in enumerate(chosen) if issubclass(kind, known)), len(chosen))
            chosen.insert(position, kind)
    answer = _HANDLING[kinds] = tuple(chosen)
    return answer


class PlainHandler:
    """A `__torch_dispatch__` that is no classmethod: its `self` is the first argument of the class that is asked."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function

    def __get__(self, tensor: Any, kind: type) -> Any:
        return partial(self.call, kind) if tensor is None else MethodType(self.function, tensor)

    def call(self, kind: type, op: OpOverload, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        values = (*args, *(kwargs or {}).values())
        given = (one for value in values for one in (value if isinstance(value, list | tuple) else [value]))
        return self.function(next(one for one in given if isinstance(one, kind)), op, types, args, kwargs)


def give_self(kind: Any) -> None:
    """Has a plain handler of a user's asked with a tensor; the library's own functions take none."""
    handler = inspect.getattr_static(kind, "__torch_dispatch__")
    if type(handler) is FunctionType and not is_own(handler.__code__.co_filename):
        type.__setattr__(kind, "__torch_dispatch__", PlainHandler(handler))


def forget_handlers(kind: type) -> None:
    """Forgets cached handlers, since the handler of a class has changed."""
    _HANDLING.clear()


HANDLER_CHANGED.append(forget_handlers)


def no_handler(op: OpOverload, modes: tuple[Any, ...], types: tuple[type, ...]) -> TypeError:
    asked = ([f"  - mode object {described(modes[-1])}"] if modes else []) + [
        f"  - tensor subclass {kind}" for kind in types
    ]
    return not_handled(
        f"Multiple dispatch failed for 'torch._ops.{op}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
        + "\n".join(asked)
        + f"\n\nFor more information, try re-running with a handler that accepts {op}."
    )
