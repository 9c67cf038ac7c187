"""The evaluator's knowledge of a value while it works a function out: the value itself, its parts, or only its name.

    Static    the very Python object                          an operator, a schema, a keyset, a rule, a default
    Items     a list, tuple or dict whose length is known     the stack, a tuple of arguments
    Code      an expression of the code that is being made    a tensor, a number, what a kernel returned
    Method    a function and the value before its dot
    Closure   a function defined inside one that is being worked out

Of a `Code` a few facts may be known beside its text; they decide conditions that would otherwise be left for run time.
Read next: residual.py (how code is written down), evaluator.py (how functions are worked out).
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from ..core.key import DispatchKey
from ..records import dataclass
from .annotations import FROZEN


class Unsupported(Exception):
    """The evaluator does not handle this construct. The layer in which it stands will run boxed."""


@dataclass(frozen=True, slots=True, eq=False)
class Static:
    """A Python object. `name` is what the source calls it, where it has a name there."""

    value: Any
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """An expression of the residual code.

    atom:    a name or a constant: reading it twice, or later, makes no difference.
    kind:    a class of which it is known to be an instance, or None.
    exact:   whether `kind` is its very class.
    never:   classes of which it is known not to be an instance.
    differs: values from which it is known to differ.
    truth:   whether it counts as true, where that is known.
    """

    text: str
    atom: bool = True
    kind: type | None = None
    exact: bool = False
    never: tuple[type, ...] = ()
    differs: tuple[Any, ...] = ()
    truth: bool | None = None


@dataclass(frozen=True, slots=True, eq=False)
class StateCode(Code):
    """A dispatch state, of which some fields are known: the one at entry, after some changes (state.py, Steps)."""

    facts: dict[str, Any] = field(default_factory=dict)
    steps: tuple[tuple[str, tuple[Any, ...]], ...] | None = ()  # None where `text` says it


@dataclass(slots=True, eq=False)
class Items:
    """A list, tuple or dict that is known item by item. `text` names it, where the code has it as a whole already."""

    kind: type
    items: list[Any]
    text: str = ""
    keys: tuple[str, ...] = ()  # of a dict
    made: bool = False  # in the code itself, so that whoever is given it may change it; a stack is never changed


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """`owner.function`, not called yet."""

    function: Callable[..., Any]
    owner: Any


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function whose definition stands inside one that is being worked out."""

    node: ast.FunctionDef | ast.Lambda
    frame: Frame


@dataclass(slots=True, eq=False)
class Frame:
    """The variables of one function that is being worked out, and where its other names are found."""

    names: dict[str, Any]
    cells: dict[str, Any]
    globals: dict[str, Any]
    number: int = field(default_factory=itertools.count().__next__)  # the same on all paths
    locals: frozenset[str] = frozenset()  # names that the function assigns somewhere

    def copy(self) -> Frame:
        return Frame(dict(self.names), self.cells, self.globals, self.number, self.locals)


def class_attribute(kind: type, name: str) -> Any:
    """An attribute as a class holds it, no descriptor asked; None where it has none."""
    metaclass: type = type(kind)
    for base in (*kind.__mro__, *metaclass.__mro__):
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def before(key: DispatchKey, keys: Iterable[DispatchKey]) -> Iterator[DispatchKey]:
    """The keys down to `key`: those whose registrations decide that a call stops there."""
    for one in keys:
        yield one
        if one is key:
            return


# Classes of which a global or cell that holds an instance is taken for a variable
VARIABLE = (int, float, str, list, dict, set, type(None))

Value = Static | Code | Items | Method | Closure

NONE = Static(None)


def is_static(value: Any) -> bool:
    """Whether the Python object is known, that of each item included."""
    if isinstance(value, Items):
        return all(map(is_static, value.items))
    return isinstance(value, Static)


# Classes whose instances never change
CONSTANT = (int, float, complex, str, bytes, bool, type(None), tuple, frozenset, range, type, Enum, MappingProxyType)
CONSTANT_TOO = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type(NotImplemented), type(Ellipsis))


def is_constant(value: Any) -> bool:
    """Whether an object will always be as it is now, so that its truth and its items may be relied on.

    A dict, list or set that the source names is known, too, but only as an object: what is in it may change.
    """
    return isinstance(value, CONSTANT) or isinstance(value, CONSTANT_TOO) or type(value) in FROZEN


def known(value: Any) -> Any:
    """The Python object of a static value."""
    if isinstance(value, Items):
        items = [known(item) for item in value.items]
        return dict(zip(value.keys, items, strict=True)) if value.kind is dict else value.kind(items)
    return value.value


def truth_of(value: Any) -> bool | None:
    """Whether a value counts as true; None where only running the code tells."""
    if isinstance(value, Static):
        return bool(value.value) if is_constant(value.value) else None
    if isinstance(value, Items):
        return bool(value.items)
    if isinstance(value, Code):
        return value.truth
    return True
