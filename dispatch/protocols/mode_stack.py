"""Modes: objects on a stack that see every call while they are active.

A *function mode* stands before the dispatcher (override.py asks it), a *dispatch mode* at the key Python
(layers/python.py asks it), or at the key PreDispatch where its `_dispatch_key` says so. All are pushed by `with mode:`,
run with themselves popped while they handle a call, and take themselves off again whatever happens. Modes of one stack
end in the reverse order of their beginning; where a suspended generator breaks that order, the one that ends takes its
own entry away and says so.

Note [Infra modes have slots]
Fake tensors, tracing and functionalization are made of modes, too. What they do makes sense in one order only: what is
traced is functional, and runs on fakes. So a mode with a `_mode_key` stands in the slot of that key at the bottom of
the stack, whenever it was entered: FAKE < PROXY < FUNCTIONAL < modes of users, the innermost last. A second one for the
same slot takes the place of the first until it ends.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from ..core.key import DispatchKey
from ..core.state import STATE, State, with_modes, with_pre_dispatch_modes
from ..errors import ModeOrderError
from ..regions import Region


def with_function_modes(state: State, modes: tuple[Any, ...]) -> State:
    """`state` with this stack of function modes."""
    return state.replace(function_modes=modes)


# The stacks: fields of the state, and what gives a state with another stack in that field
STACKS: dict[str, Callable[[State, tuple[Any, ...]], State]] = {
    "modes": with_modes,
    "pre_dispatch_modes": with_pre_dispatch_modes,
    "function_modes": with_function_modes,
}


class StackMode(Region):
    """A mode that `with` pushes on a stack and takes off again. `_stack` says which of STACKS, `_handler` which method
    is asked.

    Errors: RuntimeError for a handler that is a classmethod, and so would not know which mode it answers for.
    """

    _stack: str
    _handler: str

    def __enter__(self) -> Any:
        if inspect.ismethod(getattr(type(self), self._handler)):
            raise RuntimeError(
                f"Defining your mode's `{self._handler}` as a classmethod is not supported, please make it a plain "
                "method"
            )
        self._enter()
        return self

    def _enter(self) -> None:
        state, stack = STATE.get(), stack_of(self)
        STATE.set(STACKS[stack](state, (*getattr(state, stack), self)))

    def __exit__(self, *error: Any) -> None:
        state, stack = STATE.get(), stack_of(self)
        modes = getattr(state, stack)
        place = last_place(modes, self)
        if place is None:
            raise not_active(self, modes)
        STATE.set(STACKS[stack](state, modes[:place] + modes[place + 1 :]))
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

    >>> import redispatch as rd
    >>> from redispatch.overrides import TorchFunctionMode
    >>> class Calls(TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> x = rd.ones(2)
    >>> with Calls():
    ...     _ = rd.relu(x)
    relu
    """

    _stack = "function_modes"
    _handler = "__torch_function__"

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} is a function mode without a __torch_function__")


class TorchDispatchModeKey(IntEnum):
    """The slots of infra modes, from the bottom of the stack. Note [Infra modes have slots]"""

    FAKE = 0
    PROXY = 1
    FUNCTIONAL = 2


class TorchDispatchMode(StackMode):
    """A mode that sees every operator, below autograd.

    Override `__torch_dispatch__(self, func, types, args=(), kwargs=None)`.

    _mode_key: the slot of an infra mode, set for a class or for an instance. _dispatch_key: PreDispatch for a mode that
    is asked before all layers: it sees composite operators whole, and what it calls is recorded.
    decompose, in `class Names(TorchDispatchMode, decompose=True)`: whether it sees composite operators in parts, True,
    or whole, False; by default in parts outside of inference mode, and whole inside.

    >>> import redispatch as rd
    >>> from redispatch.utils._python_dispatch import TorchDispatchMode
    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = rd.ones(2)
    >>> with Names():
    ...     _ = x + x.relu()
    aten.relu.default
    aten.add.Tensor
    """

    _stack = "modes"
    _handler = "__torch_dispatch__"
    _mode_key: TorchDispatchModeKey | None = None
    _dispatch_key: DispatchKey | None = None
    supports_higher_order_operators = False

    def __init_subclass__(cls, decompose: bool | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if decompose:
            cls.__torch_dispatch__ = in_parts(cls.__torch_dispatch__)  # type: ignore[method-assign]  # the same with more
        elif decompose is not None:
            cls._dispatch_key = DispatchKey.PreDispatch

    def __init__(self, _dispatch_key: DispatchKey | None = None) -> None:
        if _dispatch_key is not None:
            self._dispatch_key = _dispatch_key

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} is a dispatch mode without a __torch_dispatch__")

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether modes of this class belong to the machinery, and not to a user."""
        return cls._mode_key is not None

    def _enter(self) -> None:
        if self._mode_key is None:
            super()._enter()
        else:
            former = unset_mode(self._mode_key, stack_of(self))
            push_mode(self)
            state = STATE.get()
            STATE.set(state.replace(displaced=(*state.displaced, (self, former))))

    def __exit__(self, *error: Any) -> None:
        if self._mode_key is None:
            super().__exit__(*error)
            return
        state = STATE.get()
        place = last_place([entered for entered, _ in state.displaced], self)
        modes = getattr(state, stack_of(self))
        if place is None or self not in modes:
            raise not_active(self, modes)
        _, former = state.displaced[place]
        STATE.set(state.replace(displaced=state.displaced[:place] + state.displaced[place + 1 :]))
        unset_mode(self._mode_key, stack_of(self))
        if former is not None:
            push_mode(former)


def in_parts(handler: Any) -> Any:
    """Returns a handler that is asked of the operators in which a composite one is written."""

    @functools.wraps(handler)
    def asked(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        entry_at = getattr(func, "entry_at", None)  # which a higher order operator has not
        if entry_at is not None and entry_at(DispatchKey.AutogradCPU).rule == "math kernel":
            with self:
                return func.decompose(*args, **(kwargs or {}))
        return handler(self, func, types, args, kwargs)

    return asked


def last_place(modes: Sequence[Any], mode: Any) -> int | None:
    """The place of the innermost entry of a mode, or None."""
    return next((place for place in reversed(range(len(modes))) if modes[place] is mode), None)


def not_active(mode: Any, modes: Sequence[Any]) -> ModeOrderError:
    return ModeOrderError(f"{mode!r} ends, but it is not among the active modes {list(modes)}")


# By hand ------------------------------------------------------------------------------------------------------------


def slot_of(mode: Any) -> TorchDispatchModeKey | None:
    """The slot of an infra mode; None for a mode of users."""
    return getattr(mode, "_mode_key", None)


def stack_of(mode: Any) -> str:
    """The one of STACKS that a mode belongs to."""
    if getattr(mode, "_dispatch_key", None) is not None:
        return "pre_dispatch_modes"
    return getattr(mode, "_stack", "modes")


def mode_in_slot(key: TorchDispatchModeKey, stack: str = "modes") -> Any:
    """The infra mode that is active in a slot, or None."""
    return next((mode for mode in getattr(STATE.get(), stack) if slot_of(mode) == key), None)


def unset_mode(key: TorchDispatchModeKey, stack: str = "modes") -> Any:
    """Takes the infra mode out of a slot and returns it; None where there is none."""
    mode = mode_in_slot(key, stack)
    if mode is not None:
        state = STATE.get()
        STATE.set(STACKS[stack](state, tuple(one for one in getattr(state, stack) if one is not mode)))
    return mode


def push_mode(mode: Any) -> None:
    """Puts a dispatch mode on its stack: an infra mode in its slot, any other on the top.

    Errors: RuntimeError where the slot is taken.
    """
    state, stack = STATE.get(), stack_of(mode)
    modes = getattr(state, stack)
    slot, place = slot_of(mode), len(modes)
    if slot is not None:
        below = [one for one in modes if (other := slot_of(one)) is not None and other <= slot]
        if below and slot_of(below[-1]) == slot:
            name = TorchDispatchModeKey(slot).name
            raise RuntimeError(f"trying to set the current {name} mode, but one already exists: {below[-1]!r}")
        place = len(below)
    STATE.set(STACKS[stack](state, (*modes[:place], mode, *modes[place:])))


def pop_mode(stack: str = "modes") -> Any:
    """Takes the innermost dispatch mode off the stack and returns it; RuntimeError where there is none."""
    state = STATE.get()
    modes = getattr(state, stack)
    if not modes:
        raise RuntimeError("trying to pop from empty mode stack")
    STATE.set(STACKS[stack](state, modes[:-1]))
    return modes[-1]
