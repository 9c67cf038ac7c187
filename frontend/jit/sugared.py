"""Forms of an expression before it is a value of the graph: a Python object, an operator by name, a method.

Read next: expressions.py.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import redispatch
from redispatch import nn
from redispatch.dispatch import OpOverload, OpOverloadPacket
from redispatch.dispatch.schema.schema import Type

from .graph import Value
from .overloads import candidates


class Py(NamedTuple):
    """A Python object that is known while the program is compiled."""

    object: Any


class Op(NamedTuple):
    """An operator by name, of which the arguments choose the overload; `self` is its first argument, if any."""

    name: str
    self: Value | None = None
    overloads: Any = None


class Functional(NamedTuple):
    """A function of nn.functional."""

    name: str


class New(NamedTuple):
    """A maker of instances without their __init__: `A.__new__`, as printed programs call it."""

    kind: Any


class Names:
    """A name of an archive's text, and what names below it are. Python's modules are not asked."""

    def __init__(self, path: str, resolve: Callable[[str], Any]) -> None:
        self.path, self.resolve = path, resolve

    def __getattr__(self, name: str) -> Any:  # for annotations
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self.member(name)

    def __repr__(self) -> str:
        return self.path

    def member(self, name: str) -> Any:
        found = self.resolve(f"{self.path}.{name}")
        return Names(f"{self.path}.{name}", self.resolve) if found is None else found


class Forked(NamedTuple):
    """A function inside of a printed program, and what it takes from around it."""

    function: Any
    values: list[Value]


class Method(NamedTuple):
    """A method of a module or of an instance of a class."""

    self: Value
    name: str


class Several(NamedTuple):
    """Things side by side, of which some may be no values: a tuple, a row of `zip`, the modules of a list."""

    items: list[Any]


class Iteration(NamedTuple):
    """Something that a loop goes over: its length, and its item at a place. Or `items`: then the loop is unrolled."""

    length: Value | None
    item: Any
    items: list[Any] | None = None


Refined = dict[str, Type]


class Condition:
    """A condition: its value, or what it always is; and the types that names have where it holds, and where not."""

    def __init__(
        self, value: Value | None, always: bool | None = None, yes: Refined | None = None, no: Refined | None = None
    ) -> None:
        self.value, self.always, self.yes, self.no = value, always, yes or {}, no or {}


# Python's functions -> operators that do the same
SAME: dict[Any, str] = {
    len: "aten::len", int: "aten::Int", float: "aten::Float", bool: "aten::Bool", complex: "aten::Complex",
    abs: "aten::abs", min: "prim::min", max: "prim::max", sorted: "aten::sorted", sum: "aten::sum", ord: "aten::ord",
    chr: "aten::chr", hex: "aten::hex", oct: "aten::oct", bin: "aten::bin", round: "aten::round", any: "aten::any",
    all: "aten::all", divmod: "aten::divmod", pow: "aten::pow",
}  # fmt: skip
SAME |= {getattr(math, name): f"aten::{name}" for name in dir(math) if callable(getattr(math, name))}

PREFIXES = {"": "aten::", "linalg": "aten::linalg_", "special": "aten::special_", "fft": "aten::fft_", "_VF": "aten::",
            "_C._nn": "aten::", "_C": "aten::"}  # fmt: skip
PACKAGE = redispatch.__name__


def is_library(obj: Any) -> bool:
    """Whether a module, class or function is a part of this library, and no program's."""
    name = obj.__name__ if isinstance(obj, types.ModuleType) else getattr(obj, "__module__", None) or ""
    return name.split(".")[0] in (PACKAGE, "redispatch", "torch")


def member(module: Any, name: str) -> Any:
    """Returns what a name of one of the library's modules is to programs."""
    found = getattr(module, name)
    if isinstance(found, types.ModuleType) or not callable(found) or isinstance(found, type):
        return Op(f"aten::{name}") if name == "set_grad_enabled" else Py(found)
    if isinstance(found, OpOverload):
        return Op(found.schema.name, None, [found])
    if isinstance(found, OpOverloadPacket):
        return Op(found._qualified_op_name)
    if found in SAME:
        return Op(SAME[found])
    short = module.__name__.partition(".")[2] if isinstance(module, types.ModuleType) else ""
    if short == "nn.functional":
        return Functional(name)
    if getattr(nn.functional, name, None) is found and not hasattr(redispatch, name):
        return Functional(name)
    full = (
        PREFIXES.get(short, "aten::") + name
    )  # by its name: the Python function may be replaced by one that is faster
    return Op(full) if is_library(found) and known(full) else Py(found)


def known(name: str) -> bool:
    return bool(candidates(name))


@functools.cache
def places() -> list[Any]:
    return [redispatch, nn.functional, redispatch.linalg, redispatch.special, redispatch.fft]


def of_object(found: Any) -> Any:
    """Returns what a Python object is to programs: functions of the library are operators, whatever their name."""
    if isinstance(found, OpOverload | OpOverloadPacket):
        return member(types.SimpleNamespace(it=found), "it")
    if callable(found) and not isinstance(found, type) and is_library(found):
        name = getattr(found, "__name__", "")
        for module in places():
            if name and getattr(module, name, None) is found:
                return member(module, name)
        if known(f"aten::{name}"):  # its Python function was replaced since, by one that is faster
            return Op(f"aten::{name}")
    return Py(found)


def finder(fn: Any) -> Any:
    """Returns a function from a name in `fn` to its Python object, or None: closure, globals, builtins."""
    fn = inspect.unwrap(fn)
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))

    def find(name: str) -> Any:
        if name in cells:
            try:
                return cells[name].cell_contents
            except ValueError:  # a name that is set later
                return None
        return fn.__globals__.get(name, getattr(builtins, name, None))

    return find
