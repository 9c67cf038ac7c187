"""Modes: objects on a stack that see every call while they are active.

A *function mode* stands before the dispatcher (override.py asks it), a *dispatch mode* at the key Python
(layers/python.py asks it). Both are pushed by `with mode:`, run with themselves popped while they handle a call, and
take themselves off again whatever happens. Modes of one stack end in the reverse order of their beginning; where a
suspended generator breaks that order, the one that ends takes its own entry away and says so.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .errors import ModeOrderError
from .state import STATE, Region, State, with_modes


def with_function_modes(state: State, modes: tuple[Any, ...]) -> State:
    """`state` with this stack of function modes."""
    return state.replace(function_modes=modes)


class StackMode(Region):
    """A mode that `with` pushes on a stack and takes off again. `_stack` and `_restack` say which stack, `_handler`
    which method is asked.

    Errors: RuntimeError for a handler that is a classmethod, and so would not know which mode it answers for.
    """

    _stack: str
    _handler: str
    _restack: Callable[[State, tuple[Any, ...]], State]

    def __enter__(self) -> Any:
        if inspect.ismethod(getattr(type(self), self._handler)):
            raise RuntimeError(
                f"Defining your mode's `{self._handler}` as a classmethod is not supported, please make it a plain "
                "method"
            )
        state = STATE.get()
        STATE.set(type(self)._restack(state, (*getattr(state, self._stack), self)))
        return self

    def __exit__(self, *error: Any) -> None:
        state = STATE.get()
        modes = getattr(state, self._stack)
        place = next((i for i in reversed(range(len(modes))) if modes[i] is self), None)
        if place is None:
            raise ModeOrderError(f"{self!r} ends, but it is not among the active modes {list(modes)}")
        STATE.set(type(self)._restack(state, modes[:place] + modes[place + 1 :]))
        state.forget()
        if place != len(modes) - 1:
            raise ModeOrderError(
                f"{self!r} ends while {modes[-1]!r}, entered after it, is still active; leave modes in the reverse "
                "order of entering them (a suspended generator that holds one open is the usual cause)"
            )

    def clone(self) -> StackMode:
        return self  # a mode keeps its identity, also as a decorator

    def __repr__(self) -> str:
        return f"<{type(self).__qualname__}>"


class TorchFunctionMode(StackMode):
    """A mode that sees every public function.

    Override `__torch_function__(self, func, types, args=(), kwargs=None)`.
    """

    _stack = "function_modes"
    _handler = "__torch_function__"
    _restack = staticmethod(with_function_modes)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} is a function mode without a __torch_function__")


class TorchDispatchMode(StackMode):
    """A mode that sees every operator, below autograd.

    Override `__torch_dispatch__(self, func, types, args=(), kwargs=None)`.
    """

    _stack = "modes"
    _handler = "__torch_dispatch__"
    _restack = staticmethod(with_modes)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} is a dispatch mode without a __torch_dispatch__")


def pop_mode() -> Any:
    """Takes the innermost dispatch mode off the stack and returns it; RuntimeError where there is none."""
    state = STATE.get()
    if not state.modes:
        raise RuntimeError("trying to pop from empty mode stack")
    STATE.set(with_modes(state, state.modes[:-1]))
    return state.modes[-1]


def push_mode(mode: Any) -> None:
    """Puts a dispatch mode on the stack."""
    state = STATE.get()
    STATE.set(with_modes(state, (*state.modes, mode)))
