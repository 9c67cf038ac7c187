"""The records of a trace: facts of values and of the dispatch state, never the values themselves.

A trace that held tensors would keep their memory, and would show what has become of them since. So each tensor has a
number in the trace, by which it is known again, and its facts as they were at that moment. Equal facts are one object:
a long trace sees few different ones. Read next: trace.py.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, NamedTuple

from ..core.base import VALUE_CLASSES, TensorBase
from ..core.state import AT_WORK, STATE, State
from .missing import describe_value

OWN = __name__.partition(".")[0]  # the name of this package


class TensorFacts(NamedTuple):
    """One tensor at one moment. Its `number` stays with it: two arguments of one number are one tensor."""

    number: int
    summary: str  # as messages show it: `f32[2, 3]`
    kind: str  # its class
    keyset: int
    look: tuple[tuple[str, str], ...]  # (("dtype", "float32"), ...): what else its class tells


class Value(NamedTuple):
    """An argument or a result: its name in the schema (or empty), as text, and the tensors in it."""

    name: str
    text: str
    tensors: tuple[TensorFacts, ...]


class StateFacts(NamedTuple):
    """The dispatch state at one moment. Modes are named by their classes, the innermost last."""

    modes: tuple[str, ...]
    function_modes: tuple[str, ...]
    transforms: tuple[str, ...]
    included: int
    excluded: int
    grad_enabled: bool
    inference: bool
    own_policies: bool  # whether an autocast region says something of single operators
    autocast: tuple[str, ...]


class Seen:
    """The facts that one trace has met."""

    def __init__(self) -> None:
        self._facts: dict[Any, Any] = {}
        self._numbers: dict[
            int, tuple[weakref.ref[Any], int]
        ] = {}  # by the id of a tensor, which another may have later

    def value(self, value: Any, name: str = "") -> Value:
        """The facts of an argument or a result of an operator."""
        return self._shared(Value(name, describe_value(value), tuple(map(self._tensor, tensors_in(value)))))

    def anything(self, value: Any, name: str = "") -> Value:
        """The facts of what a function is given or returns, which may be anything."""
        return self._shared(Value(name, spoken(value), tuple(map(self._tensor, tensors_in(value)))))

    def state(self, state: State | None = None) -> StateFacts:
        """The facts of the present dispatch state, or of `state`."""
        state = state or STATE.get()
        return self._shared(
            StateFacts(
                modes=tuple(type(mode).__name__ for mode in state.modes),
                function_modes=tuple(type(mode).__name__ for mode in state.function_modes),
                transforms=tuple(type(level).__name__ for level in AT_WORK.get()[: len(state.levels)]),
                included=state.included,
                excluded=state.excluded,
                grad_enabled=state.grad_enabled,
                inference=state.inference,
                own_policies=state.own_policies,
                autocast=tuple(f"{device}: {dtype}" for device, dtype in state.autocast_dtypes.items()),
            )
        )

    def _tensor(self, tensor: TensorBase) -> TensorFacts:
        look = getattr(tensor, "_look", None)
        facts = TensorFacts(
            self._number(tensor),
            describe_value(tensor),
            type(tensor).__name__,
            tensor._keyset,
            look() if look is not None else (),
        )
        return self._shared(facts)

    def _number(self, tensor: TensorBase) -> int:
        known = self._numbers.get(id(tensor))
        if known is None or known[0]() is not tensor:
            count = self._facts.get("tensors", 0) + 1
            self._facts["tensors"] = count
            known = self._numbers[id(tensor)] = (weakref.ref(tensor), count)
        return known[1]

    def _shared(self, facts: Any) -> Any:
        return self._facts.setdefault(facts, facts)


def spoken(value: Any) -> str:
    """A value in short. Of what is no value of an operator the class alone: its `repr` might call operators."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(spoken, value))}]"
    if value is None or isinstance(value, TensorBase | int | float | complex | str | slice):
        return describe_value(value)
    if isinstance(value, tuple(VALUE_CLASSES.values())):
        return repr(value)
    return getattr(value, "__name__", None) or f"<{type(value).__name__}>"


def tensors_in(value: Any) -> list[TensorBase]:
    """The tensors that an argument is, or that it holds in lists and tuples."""
    if isinstance(value, TensorBase):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def line_within(code: Any) -> int:
    """The line at which the innermost running call of `code` is; 0 where it is not running."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back  # type: ignore[assignment]  # None at the end
    return frame.f_lineno if frame is not None else 0


def users_line() -> str:
    """Where the user's own code is, as "file:line": the innermost frame outside of this package."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name != OWN and not name.startswith(OWN + "."):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]  # None at the end
    return ""
