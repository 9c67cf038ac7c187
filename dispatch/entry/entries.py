"""Entry points: the functions that users call, made of fast paths when they are called.

`redispatch.add`, `Tensor.add`, `Tensor.__add__`, `ops.aten.add`, `ops.aten.add.Tensor`: there are a thousand, and a
program calls a few dozen. Each is a function object from the start, and stays that object: handlers are given it, and
tables of theirs have it as a key. When it is called again and again, it is given the code in which it is written out:

    def relu(self=UNSET, /, *rest, **kwargs):
        if not kwargs and not rest:
            state = get_state()
            if type(self) is Tensor or id(type(self)) in state.plain:
                last = relu_T.last
                if last.state is state.keys and last.tensors is self._keyset:
                    return last.code(self)
                if state.keys.slow:
                    return ask_function_mode(public, state, (self,)) if state.keys.by_mode else slow((self,), kwargs)
                return relu_T.find(state.keys, self._keyset)(self)
        if kwargs and not rest:
            ...                                           # fast paths for these keywords, made when first seen
        return slow(given(self, *rest), kwargs)

around which a `try` takes the dispatcher's frames out of errors (frames.py).

`inspect.getsource` and the debugger show it. Read fast paths.py first. Read next: dispatch/core/operator.py.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType, MappingProxyType
from typing import Any, Protocol

from ..core.base import Operator
from ..core.registry import LOCK
from ..core.state import STATE
from ..inspection.frames import hide_frames
from ..schema.convert import NUMBER_FOR_TENSOR, NUMBERS, default_of
from ..schema.schema import NO_DEFAULT, TENSOR, OptionalType
from ..specialiser.residual import Writer, compiled
from .fast_paths import A_TENSOR, FastPaths, Fixed, Reading, Reads, indented, reads

# Names that the code uses itself; an argument may have that of another builtin
WORDS = (
    "entry_point ask_function_mode by_default public state item site last rest kwargs name passed given slow get_state "
    "UNSET result error hide_frames Exception NotImplemented "
    "type id len int float bool complex str list tuple"
).split()
MANY = 64  # how many shapes of calls with keywords an entry remembers, by the number of positions


class Unset:
    """The value of a position that was not given."""

    def __repr__(self) -> str:
        return "<not given>"


UNSET = Unset()


def given(*values: Any) -> tuple[Any, ...]:
    """The positions that were given."""
    if values and values[-1] is not UNSET:
        return values
    count = len(values)
    while count and values[count - 1] is UNSET:
        count -= 1
    return values[:count]


class Form(Protocol):
    """One overload, as an entry reads its arguments."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the values that may be given by position."""

    def read(self, count: int, names: Sequence[str]) -> list[Reading]:
        """The readings of a call with `count` positions and these keywords, in the order in which they are tried; none
        where it certainly does not fit."""


entry_point: Any = None  # what `not_yet` calls: each function that starts with its code has globals of its own


def not_yet(*args: Any, **kwargs: Any) -> Any:
    try:
        return entry_point.early_call(args, kwargs)
    except Exception as error:
        entry_point.hide_frames(error)
        raise


class EntryPoint:
    """A function that users call, `function`, over some overloads.

    forms: gives the overloads. slow: `slow(args, kwargs)` is what the function means. module, qualname: what Python
    shows of it. finish: gives, for an operator, what its result goes through, or None. grad: sets `requires_grad` of a
    factory's result. ask: `ask(function, state, args)` is what a call without keywords means under a function mode, if
    all arguments are plain. by_default: `by_default(function, state, args)` is what it means where a class overrides by
    the default, and no other class has a say; NotImplemented where it turns out otherwise.
    """

    lead: Sequence[str] = ()  # parameters that are no arguments of the operator, before all others
    hide_frames = staticmethod(hide_frames)
    gives_first = False  # whether it returns the operator's first argument, which the operator itself does not
    slow_at_first = 2  # calls: making code takes as long as some hundred, and many functions are called but once

    def __init__(
        self,
        name: str,
        forms: Callable[[], Sequence[Form]],
        slow: Callable[..., Any],
        *,
        module: str = "torch.ops",
        qualname: str = "",
        finish: Callable[[Any], Any] | None = None,
        grad: Callable[[Any, bool], Any] | None = None,
        ask: Callable[..., Any] | None = None,
        by_default: Callable[..., Any] | None = None,
    ) -> None:
        self.ask, self.by_default = ask, by_default
        self.forms, self.slow, self.finish, self.grad = forms, slow, finish, grad
        self.function: Any = FunctionType(not_yet.__code__, {"entry_point": self, "__name__": __name__}, name)
        self.function.__module__, self.function.__qualname__ = module, qualname or name
        self.calls = 0  # before there were fast paths
        self.changes = 0  # how often the overloads changed

    def early_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call while the function has no code of its own."""
        self.calls += 1
        if self.calls <= self.slow_at_first:
            return self.slow(args, kwargs)
        self.make()
        return self.function(*args, **kwargs)

    def make(self) -> None:
        """Gives the function its code."""
        with LOCK:
            changes = -1
            while changes != self.changes:  # the garbage collector may remove an overload meanwhile
                changes = self.changes
                made = self.written()
            self.function.__globals__.update(made.__globals__)
            self.function.__defaults__ = made.__defaults__  # first: the former code has no use for them
            self.function.__code__ = made.__code__

    def reset(self) -> None:
        """Has the next call make the code anew: there are other overloads now."""
        self.changes += 1
        self.function.__code__ = not_yet.__code__

    # Writing ----------------------------------------------------------------------------------------------------------

    def written(self) -> Any:
        """A function with the code that this one should have."""
        forms = self.forms()
        fast_paths = self.fast_paths(self.position_names(forms))
        readings = [
            reading for form in forms for count in range(len(fast_paths.names) + 1) for reading in form.read(count, ())
        ]
        keyed = {f"keyed_{count}": Keyed(self, count) for count in range(len(fast_paths.names) + 1)}
        constants = {**keyed, "keyed": Keyed(self), "given": given}
        return self.compiled(fast_paths, self.lines(fast_paths, fast_paths.lines(readings)), forms, constants=constants)

    def position_names(self, forms: Sequence[Form]) -> list[str]:
        longest: list[str] = []
        for form in forms:
            longest += form.names[len(longest) :]
        return longest

    def fast_paths(self, names: Iterable[str]) -> FastPaths:
        """The fast paths, still to be written, for values of these names."""
        names, writer = list(names), Writer()
        keyed = {"keyed", *(f"keyed_{count}" for count in range(len(names) + 1))}
        writer.taken = {*keyword.kwlist, *WORDS, *self.lead, *keyed, self.code_name}
        values = [writer.variable(name) for name in names]
        made = FastPaths(
            writer, values, self.finish, self.grad, "".join(self.lead), lambda count: self.by_mode(values[:count])
        )
        made.gives_first = self.gives_first
        return made

    def by_mode(self, values: Sequence[str]) -> str:
        """Source of what a call with these plain values means under a function mode, or where something is swapped."""
        given = f"({', '.join(values)}{',' if len(values) == 1 else ''})"
        slow = f"slow({given}, kwargs)"
        return f"ask_function_mode(public, state, {given}) if state.keys.by_mode else {slow}" if self.ask else slow

    def lines(self, fast_paths: FastPaths, tree: list[str]) -> list[str]:
        """The lines of the function, with this tree of fast paths."""
        names = list(fast_paths.names)
        positions = [*self.lead, *(f"{name}=UNSET" for name in names)]
        lines = [f"def {self.code_name}({listed(*positions, *(['/'] if positions else []), '*rest', '**kwargs')}):"]
        passed = f"given({listed(*names, '*rest')})"
        if tree:
            lines += ["    if not kwargs and not rest:", "        state = get_state()", *indented(indented(tree))]
            lines += indented(indented(self.default_lines(names, passed)))
        lines += [
            "    if kwargs and not rest:",
            "        if len(kwargs) == 1:",
            "            [name] = kwargs",
        ]
        for count in range(len(names), -1, -1):
            values = listed("kwargs", *self.lead, *names[:count], "kwargs[name]")
            if count:
                lines.append(f"            if {names[count - 1]} is not UNSET:")
            lines.append(f"            {'    ' if count else ''}return keyed_{count}[name]({values})")
        values = listed("kwargs", *self.lead, "*passed", "*kwargs.values()")
        some = f"({names[0]},) if {names[1]} is UNSET else {passed}" if len(names) > 1 else passed
        some = f"() if {names[0]} is UNSET else {some}" if names else some
        lines += [
            f"        passed = {some}",  # one position is what most give, and a call of `given` costs 0.4 us
            f"        return keyed[len(passed), *kwargs]({values})",
            f"    return slow({listed(*self.lead, passed, 'kwargs')})",
        ]
        return lines

    def default_lines(self, names: Sequence[str], passed: str) -> list[str]:
        """Lines for a call in which a class overrides by the default. (One of the first two arguments, mostly.)"""
        if self.by_default is None or not names:
            return []
        return [
            f"if {' or '.join(f'id(type({name})) in state.by_default' for name in names[:2])}:",
            f"    result = by_default(public, state, {passed})",
            "    if result is not NotImplemented:",
            "        return result",
        ]

    @property
    def code_name(self) -> str:
        name = self.function.__name__.replace(".", "_")
        if name in WORDS or keyword.iskeyword(name):
            return f"{name}_"
        return name if name.isidentifier() else "public_function"

    def compiled(
        self,
        fast_paths: FastPaths,
        lines: list[str],
        forms: Sequence[Form],
        shape: str = "",
        constants: Mapping[str, Any] = MappingProxyType({}),
    ) -> Any:
        """The function of these lines; `shape` says for which calls it is, where it is not for all."""
        head, *body = lines
        body = [
            "    try:",
            *indented(body),
            "    except Exception as error:",
            "        hide_frames(error)",
            "        raise",
        ]
        source = "\n".join([head, *(f"    # {form}" for form in forms), *body]) + "\n"
        filename = f"<{self.function.__module__}.{self.function.__qualname__}{shape}>"
        used = {"get_state": STATE.get, "slow": self.slow, "UNSET": UNSET, **fast_paths.writer.constants, **constants}
        used |= {"ask_function_mode": self.ask, "by_default": self.by_default}
        used |= {"public": self.function, "hide_frames": hide_frames}
        return compiled(self.code_name, source, used, filename)

    # Keywords ---------------------------------------------------------------------------------------------------------

    def keyed(self, count: int, names: Sequence[str]) -> tuple[Callable[..., Any], bool]:
        """Returns `fast_path(kwargs, *values)` for `count` positions and these keywords, and whether one may fit."""
        with LOCK:
            forms = self.forms()
            readings = [reading for form in forms for reading in form.read(count, names)]
            fast_paths = self.fast_paths([*self.position_names(forms)[:count], *names])
            if fast_paths.by_mode:
                given = "".join(f"{name}, " for name in fast_paths.names[:count])
                fast_paths.by_mode = lambda _: f"slow(({given}), kwargs)"
            tree = fast_paths.lines(readings)
            if not tree:
                fast_path = self.slow_path(count)
            else:
                positions = "".join(f"{name}, " for name in fast_paths.names[:count])
                lines = [
                    f"def {self.code_name}({listed('kwargs', *self.lead, *fast_paths.names, '/')}):",
                    "    state = get_state()",
                    *indented(tree),
                    f"    return slow({listed(*self.lead, f'({positions})', 'kwargs')})",
                ]
                fast_path = self.compiled(fast_paths, lines, forms, f" {count} {' '.join(names)}")
        return fast_path, bool(readings)

    def slow_path(self, count: int) -> Callable[..., Any]:
        lead = len(self.lead)

        def slow_path(kwargs: dict[str, Any], *values: Any) -> Any:
            return self.slow(*values[:lead], values[lead : lead + count], kwargs)

        return slow_path


class Keyed(dict[Any, Callable[..., Any]]):
    """Caches the fast paths for calls with keywords: keyword -> `fast_path(kwargs, *values)`, for one keyword and
    `count` positions; or (number of positions, keyword, keyword, ...) -> the same."""

    def __init__(self, entry_point: EntryPoint, count: int | None = None) -> None:
        self.entry_point, self.count = entry_point, count

    def __missing__(self, shape: Any) -> Callable[..., Any]:
        count, *names = shape if self.count is None else (self.count, shape)
        fast_path, worth_it = self.entry_point.keyed(count, names)
        if worth_it and len(self) < MANY:
            self[shape] = fast_path
        return fast_path


def listed(*parts: str) -> str:
    return ", ".join(parts)


class HasEntryPoint:
    """An object called through a function of its own: Python finds it in the slot and passes it the arguments alone.

    A method `__call__` that hands them on would cost as much again as all the rest of a call.
    """

    __slots__ = {"__call__": "Runs the operator from the top of the key stack."}
    __call__: Callable[..., Any]
    __signature__ = inspect.signature(not_yet)  # which `inspect` would not find in the slot


def entry_point_of(function: Any) -> EntryPoint:
    """The entry that a function belongs to. KeyError where it is not one of these functions."""
    return function.__globals__["entry_point"]


class RedispatchEntryPoint(EntryPoint):
    """`op.redispatch(keyset, ...)`: the keys are given, and nobody overrides."""

    lead = ("keyset",)
    slow_at_first = 0


class FixedEntryPoint(EntryPoint):
    """A function of a fixed number of operands, such as `__add__`; `slow` takes them one by one.

    names: of the parameters. order: which of them is each value of the overloads' calls.
    """

    slow_at_first = 0

    def __init__(
        self,
        name: str,
        names: Sequence[str],
        order: Sequence[int],
        forms: Callable[[], Sequence[Form]],
        slow: Callable[..., Any],
        *,
        module: str,
        by_default: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(name, forms, slow, module=module, by_default=by_default)
        self.names, self.order = names, order

    def written(self) -> Any:
        forms = self.forms()
        fast_paths = self.fast_paths([self.names[i] for i in self.order])
        readings = [reading for form in forms for reading in form.read(len(self.names), ())]
        tree = fast_paths.lines(
            [replace(one, values=tuple(map(self.operand, self.order, one.values))) for one in readings]
        )
        lines = [
            f"def {self.code_name}({listed(*self.names)}):",
            "    state = get_state()",
            *indented(tree),
            *indented(self.default_lines(self.names, f"({', '.join(self.names)},)")),
            f"    return slow({listed(*self.names)})",
        ]
        return self.compiled(fast_paths, lines, forms)

    def by_mode(self, values: Sequence[str]) -> str:
        return f"slow({listed(*self.names)})"

    def operand(self, index: int, reads: Reads) -> Reads:
        """Returns the readings of an operand: `self` is a tensor, any other may be a number."""
        kinds = (A_TENSOR, *NUMBERS) if index else (A_TENSOR,)
        return Reads({kind: taken for kind, taken in reads.taken.items() if kind in kinds}, reads.unsure)


class OpForm:
    """An operator as `ops` and users of operators call it: by the schema's names and the rules of `bind`."""

    def __init__(self, op: Operator) -> None:
        self.op = op

    @property
    def names(self) -> list[str]:
        schema = self.op.schema
        return [argument.name for argument in schema.arguments[: schema.kwarg_only_start]]

    def read(self, count: int, names: Sequence[str]) -> list[Reading]:
        schema = self.op.schema
        if count > schema.kwarg_only_start:
            return []
        numbers = schema.name in NUMBER_FOR_TENSOR
        left = {name: count + i for i, name in enumerate(names)}
        values: dict[int, Reads] = {}
        stack: list[Any] = []
        for position, argument in enumerate(schema.arguments):
            default = default_of(argument)
            if position < count and argument.name in left:
                return []
            if position >= count and argument.name not in left:
                if default is NO_DEFAULT:
                    return []
                stack.append(Fixed(default))
                continue
            at = position if position < count else left.pop(argument.name)
            values[at] = reads(
                argument.type,
                default,
                numbers=numbers and argument.type == TENSOR,
                strict=False,
                none=None if isinstance(argument.type, OptionalType) else NO_DEFAULT,
            )
            stack.append(at)
        if left:
            return []
        return [Reading(self.op, tuple(values[i] for i in range(len(values))), tuple(stack))]

    def __str__(self) -> str:
        return str(self.op.schema)
