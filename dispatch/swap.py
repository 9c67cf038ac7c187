"""`swap`: a part of the library is replaced by one of yours, for the block, in this task, on every path.

    with redispatch.swap("autograd.engine", my_run_backward):
        loss.backward()

What can be swapped is a *point*: a function of the library, with a contract. `swap.points()` lists them; the table is
filled by the rooms above.

Note [How a function is swapped]
Others hold the function, by import and in tables, so a new name would reach few of them. Each holds the same object,
though, and a function is told from its code: while some task swaps it, its code is a `taken`, which asks the dispatch
state who answers. So nobody is missed, and what nobody swaps has nothing to pay. With the last task that swaps it the
former code comes back.

The state says what is swapped. Like what is traced, such a call runs boxed and takes no fast path, since these are made
of what is swapped; no code is made meanwhile in this task, so that none has to be dropped. Others go on as before: the
specialiser reads what stands behind a `taken` (`code_of`).

Read next: frontend/_swap_points.py (the table), core/interpreter.py (the definition, which runs meanwhile).
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

from .core.interpreter import hop
from .core.registry import LOCK
from .core.state import FLAGS, STATE, TRACED, State
from .core.table import Entry, Kernel
from .records import dataclass
from .regions import Region
from .rules import place_of, short
from .specialiser.annotations import BEHIND
from .specialiser.specialise import facts_of

Taken = Callable[..., Any]  # (swapped, *args, **kwargs)

POINTS: dict[str, Point] = {}


@dataclass(frozen=True, eq=False)
class Point:
    """A part that can be swapped: its name, the default ("module:name" of a function), and what it owes its callers.

    tests: the files of the library's tests that hold for it. around: how yours is called, and inner: the default for
    yours to call, where that takes more. also: what else holds while it is swapped, by function: it would remember
    answers of the default. said: of which hops a trace says who made it so, "each" or the "first" of a call.
    """

    name: str
    function: str
    contract: str
    tests: tuple[str, ...] = ()
    around: Taken | None = None
    inner: Callable[..., Any] | None = None
    also: Mapping[str, Taken] | None = None
    said: str = ""

    @cached_property
    def target(self) -> Target:
        return target_named(self.function)

    @property
    def default(self) -> Any:
        """The library's own function, whatever is swapped: yours may call it."""
        return self.inner or self.target.default

    @property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.target.default)

    @property
    def place(self) -> str:
        """The default's file and line."""
        return short(place_of(self.target.default))

    def checked(self, implementation: Any) -> Any:
        """TypeError for what could not be called as the default is."""
        if not callable(implementation):
            raise TypeError(f"swap({self.name!r}): expected a function {self.signature}, not {implementation!r}")
        try:
            taken = inspect.signature(implementation)
        except (TypeError, ValueError):
            return implementation
        needed = [one for one in self.signature.parameters.values() if one.default is one.empty]
        by_name = {one.name: None for one in needed if one.kind is one.KEYWORD_ONLY}
        count = sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in needed)
        try:
            taken.bind(*[None] * count, **by_name)
        except TypeError as problem:
            raise TypeError(
                f"swap({self.name!r}): {place_of(implementation)} takes {taken}, but is called as {self.signature}: "
                f"{problem}\n  to fix       give it these parameters; redispatch.swap.points() says what they mean"
            ) from None
        return implementation

    def __str__(self) -> str:
        tests = f"\n    tests      {' '.join(self.tests)}" if self.tests else ""
        parameters = str(self.signature).replace("'", "")
        return f"{self.name}{parameters}\n    {self.contract}\n    default    {self.place}{tests}"


class Swapped:
    """One use of `swap`: the states of its block hold it. `kept`: what it may remember, for as long as it lasts."""

    def __init__(self, point: Point, implementation: Any) -> None:
        self.point, self.implementation = point, implementation
        self.takes: dict[Target, Taken] = {point.target: point.around or called}
        self.takes |= {target_named(name): take for name, take in (point.also or {}).items()}
        self.kept: dict[Any, Any] = {}
        for target in self.takes:
            target.hold()
        weakref.finalize(self, release, tuple(self.takes)).atexit = False

    @property
    def name(self) -> str:
        return getattr(self.implementation, "__name__", None) or type(self.implementation).__name__

    def __str__(self) -> str:
        return f"{self.point.name} is {self.name} of {place_of(self.implementation)}"


def called(swapped: Swapped, *args: Any, **kwargs: Any) -> Any:
    """Calls yours in the place of the default."""
    return swapped.implementation(*args, **kwargs)


class Target:
    """A function whose code is replaced while somebody holds it: Note [How a function is swapped]."""

    def __init__(self, function: FunctionType) -> None:
        self.function, self.holders = function, 0
        self.code = function.__code__
        made = FunctionType(
            self.code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        made.__kwdefaults__, made.__qualname__ = function.__kwdefaults__, function.__qualname__
        self.default = made
        self.taken: CodeType = taken.__code__.replace(
            co_consts=tuple(self if constant == MARK else constant for constant in taken.__code__.co_consts),
            co_name=self.code.co_name,
            co_qualname=self.code.co_qualname,
        )
        BEHIND[self.taken] = self.code

    def hold(self) -> None:
        with LOCK:
            self.holders += 1
            self.function.__code__ = self.taken

    def swapped(self) -> Swapped | None:
        """The innermost swap of this task that concerns the function."""
        return next((one for one in reversed(STATE.get().swaps) if self in one.takes), None)

    def join(self, *args: Any, **kwargs: Any) -> Any:  # so named since the place holds a string in the source
        swapped = self.swapped()
        return self.default(*args, **kwargs) if swapped is None else swapped.takes[self](swapped, *args, **kwargs)


MARK = "the target of this code"


def taken(*args: Any, **kwargs: Any) -> Any:
    """Stands in for each function that is swapped: a copy has its `Target` in the place of the string."""
    return "the target of this code".join(*args, **kwargs)


def release(targets: tuple[Target, ...]) -> None:
    """Gives functions their own code back, where nobody else holds them."""
    with LOCK:
        for target in targets:
            target.holders -= 1
            if not target.holders:
                target.function.__code__ = target.code


TARGETS: dict[str, Target] = {}  # by "module:name"
BY_FUNCTION: dict[int, Target] = {}  # by its id; functions of modules stay


def target_named(name: str) -> Target:
    """Returns the target of a function, "dispatch.core.boxing:bind"; imports the module."""
    with LOCK:
        found = TARGETS.get(name)
        if found is None:
            module, _, path = name.partition(":")
            function: Any = import_module(f"{__name__.partition('.')[0]}.{module}")
            for part in path.split("."):
                function = inspect.getattr_static(function, part)
            found = TARGETS[name] = BY_FUNCTION[id(function)] = Target(function)
    return found


class swap(Region):
    """A region in which `implementation` stands in for the library's own part at `point`; a decorator, too.

    It holds in this thread or task, and in the tasks that it starts, on every path: what it replaces is called nowhere.
    Of several at one point the innermost holds. `swap.default(point)` is the library's own, for yours to call.

    Errors: ValueError for a point that there is not, TypeError for a function that could not be called.

    >>> import redispatch as rd
    >>> def highest_first(schema, stack):
    ...     print(schema.name)
    ...     return rd.swap.default("keyset")(schema, stack)
    >>> with rd.swap("keyset", highest_first):
    ...     _ = rd.ones(2).neg()
    aten::ones
    aten::neg
    """

    def __init__(self, point: str, implementation: Any) -> None:
        self.point, self.implementation = point_named(point), implementation
        self.point.checked(implementation)
        self._entered: list[tuple[State, State]] = []

    def __enter__(self) -> Any:
        before = STATE.get()
        inside = before.replace(swaps=(*before.swaps, Swapped(self.point, self.implementation)))
        self._entered.append((before, inside))
        STATE.set(inside)
        return self.implementation

    def __exit__(self, *error: object) -> None:
        before, inside = self._entered.pop()
        state, mine = STATE.get(), inside.swaps[-1]
        inside.forget()
        if state is inside:
            STATE.set(before)
        else:  # a region that was entered meanwhile lasts longer
            STATE.set(state.replace(swaps=tuple(one for one in state.swaps if one is not mine)))

    def clone(self) -> swap:
        return swap(self.point.name, self.implementation)

    @staticmethod
    def points() -> Points:
        """Returns all points by name; printed, with signature, contract, default and tests."""
        return Points(POINTS)

    @staticmethod
    def default(point: str) -> Any:
        """Returns the library's own function at a point, whatever is swapped."""
        return point_named(point).default


class Points(dict[str, Point]):
    """Points by name, which print as a list to read."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self.values()))


def point_named(name: str) -> Point:
    """Returns the point of a name. ValueError where there is none."""
    if name not in POINTS:
        near = get_close_matches(str(name), POINTS, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(POINTS)}"
        raise ValueError(f"swap: no part of the library is named {name!r}; {hint}")
    return POINTS[name]


# What traces and explanations say -------------------------------------------------------------------------------------


def entry_at_work(entry: Entry) -> Entry:
    """An entry as this task has it: where the kernel's function is swapped, with yours in its place."""
    state = STATE.get()
    target = BY_FUNCTION.get(id(entry.kernel.function)) if state.swaps else None
    swapped = target.swapped() if target is not None else None
    if swapped is None:
        return entry
    yours, kernel = swapped.implementation, entry.kernel
    name = f"{swapped.name} in the place of {kernel.label}"
    return replace(entry, kernel=Kernel(yours, kernel.boxed, kernel.convention, place_of(yours), name=name))


def notes_of_hop(first: bool) -> list[str]:
    """Notes for a trace, what is swapped that has no hop of its own; first: whether the hop begins a call."""
    wanted = ("each", "first") if first else ("each",)
    return [f"{one.point.name} by {one.name}" for one in STATE.get().swaps if one.point.said in wanted]


# How yours is called where that takes more than to call it ------------------------------------------------------------


def hop_of_yours(swapped: Swapped, op: Any, keyset: int, stack: list[Any]) -> Any:
    """Lets your interpreter make one hop; a trace records it all the same."""
    tracer = STATE.get().tracer
    if tracer is None:
        return swapped.implementation(op, keyset, stack)
    entry = op.entry(keyset)
    return tracer.hop(op, replace(entry, kernel=replace(entry.kernel, boxed=swapped.implementation)), keyset, stack)


def entry_by_yours(swapped: Swapped, op: Any, keyset: int) -> Any:
    """`OpOverload.entry` by your rule: what operators remember was found by the library's."""
    asked = (op, op.generation, keyset)
    found = swapped.kept.get(asked)
    if found is None:
        found = swapped.kept[asked] = op._highest_entry(keyset)
    return found


def run_by_yours(swapped: Swapped, op: Any, keyset: int, stack: list[Any]) -> Any:
    """`run_specialised` by your specialiser, whose code lasts as long as the swap. A trace sees the definition."""
    if STATE.get().tracer is not None:
        return hop(op, keyset, stack)
    facts, values = facts_of(op, stack)
    keys = keyset | STATE.get().keys.added & FLAGS & ~TRACED
    asked = (op, op.generation, facts, keys)
    code = swapped.kept.get(asked)
    if code is None:
        code = swapped.kept[asked] = swapped.implementation(op, facts, keys)
    return code(*values)


def hop_untold(op: Any, keyset: int, stack: list[Any]) -> Any:
    """`hop` for yours to call: the trace knows of the hop already."""
    return op.entry(keyset).kernel.boxed(op, keyset, stack)


def empty_by_yours(swapped: Swapped, spec: Any) -> Any:
    """`empty_from`, which asks nobody where memory is sure to be had."""
    tensor = target_named(EMPTY_FROM).default(spec)
    if spec.sure:
        tensor._array = swapped.implementation(spec.elements, spec.array)
    return tensor


EMPTY_FROM = "dispatch.tensor.factory:empty_from"


def fake_by_yours(swapped: Swapped, mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`FakeTensorMode.__torch_dispatch__` without its cache, which all modes share."""
    if mode.propagate_real_tensors or not mode.cache_enabled:
        return target_named(FAKE).default(mode, func, types, args, kwargs)  # which asks yours
    return swapped.implementation(mode, func, args, kwargs or {})


FAKE = "modes.fake_tensor:FakeTensorMode.__torch_dispatch__"
