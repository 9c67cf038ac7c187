"""The log of what a function reads: a path and a guard for each thing from outside.

    log = Log(strict, is_leaf)      # converted functions call its methods
    log.guards                      # [(path, kind, what was found)], in the order of the reads
    log.path_of[id(x)]              # Path args[0].layers[1].weight

An object from outside has a *path*, by which the next call finds its own. What is read of such an object is guarded,
and has a path, too. What no guard can hold (code that is not shown, writes to the outside, a value of a tensor) is an
*escape*: the run goes on as it would, and its program is not compiled. Read next: guards.py.
"""

from __future__ import annotations

import enum
import functools
from collections import OrderedDict
from collections.abc import Callable
from types import (
    BuiltinMethodType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

from redispatch.dispatch import OpOverload, OpOverloadPacket
from redispatch.dispatch.pytree import tree_flatten
from redispatch.dispatch.tensor import Tensor
from redispatch.nn import Module
from redispatch.nn.hooks import EVERYWHERE

from . import instances
from .decorators import graph_break
from .exc import Unsupported
from .known import (
    CONTAINERS,
    DEFAULT,
    FACTS,
    FIXED,
    HOOKS,
    MUTATORS,
    PRIMITIVES,
    PURE,
    QUESTIONS,
    READERS,
    REGIONS,
    STRUCTURAL,
    TABLES,
    VIEWS,
    WALKING,
    class_attribute,
    described,
    hashable,
    is_simple,
    method_behind,
    plain_attribute,
)
from .paths import Path, named, place
from .scopes import Function
from .stores import Stored, Written, appended, augmented
from .transform import LOG, Unconvertible, converted


class Log:
    """Log of what a run of converted functions reads.

    strict: whether an escape raises. leaf: says whether a function of the library is recorded as one call. most: as
    many breaks. ended: is told of an escape. effect: does what others see. hold: has a tensor from outside be carried.
    """

    ended: Callable[[str], Any]
    hold: Callable[[Any], Any]
    effect: Callable[[Any, Any, Any, str], Any]

    def __init__(self, strict: bool, leaf: Callable[[Any], bool], most: int) -> None:
        self.strict, self.leaf, self.most = strict, leaf, most
        self.guards: list[tuple[Path, str, Any]] = []
        self.path_of: dict[int, Path] = {}
        self.kept: list[Any] = []
        self.made: dict[int, Any] = {}  # instances of a program's own classes that came into being
        self.known: set[Path] = set()
        self.noted: set[tuple[Path, str, int]] = set()
        self.constants: dict[str, Any] = {}
        self.reason = ""
        self.no_source = False  # whether the reason is that a text is not known

    # Escapes and guards -----------------------------------------------------------------------------------------------

    def escape(self, reason: str) -> None:
        """Notes that from here on the program is not recorded. Unsupported where that is an error."""
        if self.reason:
            return
        reason += place()
        if self.strict:
            raise Unsupported(reason)
        self.ended(reason)
        self.reason = reason

    def break_at(self, reason: str, instead: str | None, is_error: bool) -> str:
        """Returns the place of a break. Unsupported where that is an error."""
        where = place()
        if self.strict and is_error:
            raise Unsupported(f"{reason}{where}" + (f": {instead}" if instead else ""))
        return where

    def forget(self) -> None:
        """Has all be guarded anew that is read from now on: what was read before may have changed."""
        self.known.clear()
        self.noted.clear()

    def constant(self, value: Any) -> Path:
        """Returns a root that is always this object."""
        for name, one in self.constants.items():
            if one is value:
                return Path(None, name)
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return Path(None, name)

    def root(self, value: Any) -> None:
        """Has an object be a root: the one that is called, or belongs to it."""
        self.kept.append(value)
        self.path_of.setdefault(id(value), self.constant(value))

    def named(self, path: Path) -> str:
        """The way to an object, as a reader knows it."""
        return named(path, self.constants)

    def guard(self, path: Path, kind: str, found: Any) -> None:
        """Adds a guard, but behind an escape, where whatever is found runs as it stands."""
        if not self.reason and (path, kind, id(found)) not in self.noted:
            self.noted.add((path, kind, id(found)))
            self.kept.append(found)
            self.guards.append((path, kind, found))

    def register(self, value: Any, path: Path) -> Any:
        """Guards what was read by a path; returns it."""
        if path in self.known:
            return value
        self.known.add(path)
        kind = type(value)
        self.kept.append(value)
        if kind is slice and not all(type(part) in (int, type(None)) for part in (value.start, value.stop, value.step)):
            self.escape(f"{self.named(path)} is a slice of objects")
        elif kind in PRIMITIVES or kind in FACTS or kind is range:
            self.guard(path, "equal", value)
        elif isinstance(value, FIXED):
            self.guard(path, "is", value)
        elif isinstance(value, MethodType):
            self.guard(path, "type", kind)
            self.register(value.__func__, Path(path, ".__func__"))
            self.path_of.setdefault(id(value.__self__), Path(path, ".__self__"))
        elif isinstance(value, type | ModuleType):
            self.guard(path, "is", value)
            self.path_of.setdefault(id(value), path)
        else:
            self.guard(path, "type", kind)
            known = self.path_of.setdefault(id(value), path)
            if known != path:
                self.guard(path, "same", known)
        return value

    def deep(self, value: Any) -> Any:
        """Guards all that a container from outside holds."""
        path, kind = self.path_of.get(id(value)), type(value)
        if path is not None and (kind in VIEWS or kind.__name__ == "generator"):
            self.escape(f"{self.named(path)} is an iterator or a view that others see")
        if path is None or kind in VIEWS:
            if kind in (list, tuple, dict, OrderedDict):
                for one in value.values() if isinstance(value, dict) else value:
                    if type(one) in CONTAINERS:
                        self.deep(one)
            return value
        if kind in (list, tuple) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
            self.guard(path, "len", len(value))
            for i, one in enumerate(value):
                self.deep(self.register(one, Path(path, f"[{i}]")))
        elif kind in (dict, OrderedDict):
            self.keys(value, path)
            for key, one in value.items():
                if type(key) in (str, int, bool):
                    self.deep(self.register(one, Path(path, f"[{key!r}]")))
        elif kind in (set, frozenset):
            if all(type(one) in PRIMITIVES for one in value):
                self.guard(path, "keys", tuple(value))  # in their order, which equal sets need not share
            else:
                self.escape(f"{self.named(path)} is a set of objects")
        return value

    def keys(self, value: Any, path: Path) -> None:
        if all(type(key) in (str, int, bool) for key in value):
            self.guard(path, "keys", tuple(value))
        else:
            self.escape(f"{self.named(path)} has keys that are neither strings nor integers")

    # Reads of converted functions -------------------------------------------------------------------------------------

    def of(self, function: FunctionType) -> Function:
        """Returns the log as a function sees it that has globals and closure of its own."""
        return Function(self, function)

    def attr(self, value: Any, name: str) -> Any:
        """Reads `value.name`."""
        if isinstance(value, Tensor):
            return self.tensor_attr(value, name)
        path, kind = self.path_of.get(id(value)), type(value)
        if kind is super:
            return self.super_attr(value, name)
        if id(value) in self.made:
            return instances.attribute(self, value, name)
        if path is None and isinstance(value, (type, ModuleType, FunctionType)):
            path = self.constant(value)  # which one it is was guarded where it came from
        own = None if isinstance(value, type | ModuleType) else class_attribute(kind, name)
        if isinstance(own, property):
            if path is not None:
                self.guard(path, "type", kind)
                self.guard(self.constant(kind), f"class attribute {name}", own)
            return self.call(own.fget, value)
        if kind in CONTAINERS | PRIMITIVES | FACTS:
            return getattr(value, name)  # what the type says tells its methods
        if path is None:
            if own is not None and not plain_attribute(own) and kind not in CONTAINERS | FACTS | PRIMITIVES:
                self.escape(f"{kind.__name__}.{name} is computed by code that is not shown")
            return getattr(value, name)
        if not isinstance(value, type | ModuleType):
            lookup = class_attribute(kind, "__getattr__")
            if isinstance(class_attribute(kind, "__getattribute__"), FunctionType) or (
                lookup is not None and lookup is not Module.__getattr__
            ):
                self.escape(f"{kind.__name__} has a `__getattr__` of its own")
            if own is not None and not plain_attribute(own):
                self.escape(f"{kind.__name__}.{name} is computed by code that is not shown")
        try:
            found = getattr(value, name)
        except AttributeError:
            self.guard(path, "lacks", name)
            raise
        if isinstance(value, Module) and own is None and name not in vars(value):
            self.guard(self.constant(kind), "lacks", name)
            table = next(one for one in TABLES if name in getattr(value, one))  # a way past `Module.__getattr__`
            return self.register(found, Path(Path(path, f".{table}"), f"[{name!r}]"))
        of_instance = getattr(value, "__dict__", None)
        if isinstance(own, FunctionType) and isinstance(found, MethodType) and name not in (of_instance or ()):
            self.method_of(value, path, name, own)
            if of_instance is not None:
                self.guard(Path(path, ".__dict__"), "lacks item", name)
            return found
        return self.register(found, Path(path, f".{name}"))

    def super_attr(self, value: Any, name: str) -> Any:
        found = getattr(value, name)
        if isinstance(found, MethodType):
            lookup = functools.partial(method_behind, value.__thisclass__, value.__self_class__, name)
            self.guard(self.constant(lookup), "gives", found.__func__)
        else:
            self.escape(f"super().{name} is no method")
        return found

    def tensor_attr(self, value: Tensor, name: str) -> Any:
        found = getattr(value, name)
        if class_attribute(type(value), name) is None:
            path = self.path_of.get(id(value))
            if path is None:
                self.escape(f"{name} is an attribute that a tensor was given")
            else:
                self.register(found, Path(path, f".{name}"))
        return found

    def item(self, value: Any, at: Any) -> Any:
        """Reads `value[at]`."""
        kind = type(value)
        if isinstance(value, Tensor):
            return value[at]
        self.deep(at)
        path = self.path_of.get(id(value))
        if kind in (list, tuple, dict, OrderedDict) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
            if path is None:
                return value[at]
            if type(at) in (int, str, bool):
                try:
                    return self.register(value[at], Path(path, f"[{at!r}]"))
                except (KeyError, IndexError):
                    self.deep(value)
                    raise
            return self.deep(value)[at]
        if kind in PRIMITIVES | FACTS | {range}:
            return value[at]
        method = class_attribute(kind, "__getitem__")
        if isinstance(method, FunctionType):
            self.method_of(value, path, "__getitem__", method)
            return self.call(method, value, at)
        self.escape(f"an item of a {kind.__name__} is read by code that is not shown")
        return value[at]

    def method_of(self, value: Any, path: Path | None, name: str, method: Any) -> None:
        """Guards a method that Python looks up in the class."""
        if path is not None:
            self.guard(path, "type", type(value))
        self.guard(self.constant(type(value)), f"class attribute {name}", method)

    def each(self, value: Any) -> Any:
        """Returns what a loop walks through."""
        kind = type(value)
        if isinstance(value, Tensor) or kind in VIEWS or kind.__name__ in ("generator", "str", "Size", "SizeOfSymbols"):
            return self.deep(value)
        if kind in CONTAINERS or (isinstance(value, tuple) and hasattr(kind, "_fields")):
            return self.deep(value)
        method = class_attribute(kind, "__iter__")
        if isinstance(method, FunctionType):
            self.method_of(value, self.path_of.get(id(value)), "__iter__", method)
            return self.call(method, value)
        self.escape(f"a {kind.__name__} is walked by code that is not shown")
        return value

    def mapping(self, value: Any) -> Any:
        """Returns what `**` spreads."""
        if type(value) not in (dict, OrderedDict):
            self.escape(f"** of a {type(value).__name__}")
        return self.deep(value)

    def test(self, value: Any) -> Any:
        """Returns a value that is asked whether it is true."""
        kind = type(value)
        if isinstance(value, Tensor) or kind in PRIMITIVES | FACTS or kind in VIEWS:
            return value
        if kind in CONTAINERS:
            path = self.path_of.get(id(value))
            if path is not None:
                self.guard(path, "len", len(value))
            return value
        for name in ("__bool__", "__len__"):
            method = class_attribute(kind, name)
            if isinstance(method, FunctionType):
                self.method_of(value, self.path_of.get(id(value)), name, method)
                self.call(method, value)
                return value
            if method is not None and not isinstance(value, FIXED):
                self.escape(f"whether a {kind.__name__} is true is told by code that is not shown")
                return value
        if self.path_of.get(id(value)) is not None:
            self.guard(self.constant(kind), "no truth", None)
        return value

    def safe(self, value: Any) -> Any:
        """An operand."""
        kind = type(value)
        if isinstance(value, Tensor) or kind in PRIMITIVES | FACTS | CONTAINERS or isinstance(value, enum.Enum):
            if kind in CONTAINERS and not all(is_simple(one) for one in tree_flatten(value)[0]):
                self.escape(f"a {kind.__name__} of objects is an operand")
            return self.deep(value)
        if not isinstance(value, type | FunctionType):
            self.escape(f"a {kind.__name__} is an operand, whose operator is code that is not shown")
        return value

    def shown(self, value: Any) -> Any:
        """Returns a value that becomes text."""
        return self.safe(value)

    def same(self, a: Any, b: Any) -> bool:
        """Tells whether `a is b`."""
        paths = self.path_of.get(id(a)), self.path_of.get(id(b))
        if a is not None and b is not None and None not in paths and not isinstance(a, type):
            self.guard(paths[0], "same" if a is b else "other", paths[1])  # type: ignore[arg-type]  # not None
        elif type(a) in PRIMITIVES and type(b) in PRIMITIVES and not {type(a), type(b)} & {type(None), bool}:
            self.escape("numbers or strings are compared by `is`")
        return a is b

    def contains(self, value: Any, container: Any) -> bool:
        """Tells whether `value in container`."""
        if type(container) in CONTAINERS | PRIMITIVES:
            if any(isinstance(one, Tensor) for one in container if type(container) is not str):
                self.escape("a tensor is looked for in a container")
            self.safe(value)
            self.safe(container)
            return value in container
        method = class_attribute(type(container), "__contains__")
        if isinstance(method, FunctionType):
            self.method_of(container, self.path_of.get(id(container)), "__contains__", method)
            return bool(self.call(method, container, value))
        self.deep(container)
        if type(container) not in VIEWS:
            self.escape(f"`in` a {type(container).__name__} is code that is not shown")
        return value in container

    def slice(self, *parts: Any) -> slice:
        for part in parts:
            if type(part) not in PRIMITIVES and not isinstance(part, Tensor):
                self.escape(f"a {type(part).__name__} is a place in a slice")
        return slice(*parts)

    def store(self, value: Any) -> Any:
        """An object of which an attribute or item is written."""
        if isinstance(value, Tensor):
            return Written(value, self)
        if id(value) in self.path_of:
            return Stored(value, self)
        if id(value) in self.made:
            return instances.Own(value, self)
        if type(value) not in (list, dict, OrderedDict):
            self.escape(f"a {type(value).__name__} is written that others may see")
        return value

    def augmented(self, value: Any) -> None:
        """A variable that `+=` and the like change."""
        if id(value) in self.path_of and type(value) in (list, dict, set, OrderedDict):
            self.escape(f"a {type(value).__name__} is changed that others see")
        self.safe(value)

    def augment(self, owner: Any, name: Any, kind: str, sign: str, value: Any) -> None:
        """Changes an attribute or item, as `+=` does."""
        augmented(self, owner, name, kind, sign, value)

    def entered(self, region: Any) -> Any:
        """Returns the region that `with` enters."""
        shown = None if isinstance(region, REGIONS) else instances.entered(self, region)
        if shown is None and not isinstance(region, REGIONS):
            self.escape(f"`with` enters a {type(region).__name__}")
        return region if shown is None else shown

    # Calls ------------------------------------------------------------------------------------------------------------

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Calls a function, by the converted one, where there is one."""
        inner = getattr(function, "__dict__", {}).get("__compiles__")
        if inner is not None:
            for one in (inner, getattr(inner, "__self__", inner)):
                self.root(one)
            function = inner
        if isinstance(function, MethodType):
            return self.call(function.__func__, function.__self__, *args, **kwargs)
        if isinstance(function, functools.partial):
            given, named = self.deep(self.attr(function, "args")), self.deep(self.attr(function, "keywords"))
            return self.call(self.attr(function, "func"), *given, *args, **{**named, **kwargs})
        if isinstance(function, Module):
            method, path = class_attribute(type(function), "__call__"), self.path_of.get(id(function))
            self.method_of(function, path, "__call__", method)
            if (
                method is Module.__call__
                and path
                and not EVERYWHERE
                and not any(getattr(function, one) for one in HOOKS)
            ):
                self.guard(self.constant(EVERYWHERE), "len", 0)
                self.guard(path, "no hooks", HOOKS)
                return self.call(self.attr(function, "forward"), *args, **kwargs)
            if method is Module.__call__:
                method = Module._call_impl  # as if it were not compiled by itself
            return self.call(method, function, *args, **kwargs)
        if function is print:
            return self.effect(print, args, kwargs, "print writes")
        if function is graph_break:
            return self.effect(graph_break, args, kwargs, "graph_break is called")
        if function is getattr:
            return self.got(args[0], args[1], *args[2:3])
        if function is hasattr:
            return self.got(args[0], args[1], DEFAULT) is not DEFAULT
        if function is functools.partial:
            return functools.partial(args[0], *args[1:], **kwargs)
        if (
            function is isinstance
            or function is issubclass
            or function is callable
            or function is type
            and len(args) == 1
        ):
            return function(*args)
        if isinstance(function, FunctionType):
            if function in QUESTIONS:
                return function(*args, **kwargs)
            return self.call_function(function, args, kwargs)
        if isinstance(function, OpOverload | OpOverloadPacket):
            return self.call_leaf(function, args, kwargs)
        if isinstance(function, type) and issubclass(function, REGIONS):
            return function(*args, **kwargs)
        if isinstance(function, BuiltinMethodType | MethodWrapperType) and not isinstance(
            function.__self__, ModuleType
        ):
            return self.call_method(function, args, kwargs)
        if hashable(function) and function in PURE:
            for one in [] if function in STRUCTURAL else tree_flatten((args, kwargs))[0]:
                if not is_simple(one):
                    self.escape(f"{described(function)} is given a {type(one).__name__}")
            return self.call_pure(function, args, kwargs)
        if isinstance(function, type) and issubclass(function, tuple) and hasattr(function, "_fields"):
            return function(*args, **kwargs)
        if instances.is_plain_class(function):
            return instances.made(self, function, args, kwargs)
        method, path = class_attribute(type(function), "__call__"), self.path_of.get(id(function))
        if isinstance(method, FunctionType) and (path is not None or id(function) in self.made):
            self.method_of(function, path, "__call__", method)
            return self.call(method, function, *args, **kwargs)
        self.escape(f"{described(function)} is called, whose code is not shown")
        return function(*args, **kwargs)

    def got(self, value: Any, name: str, default: Any = Ellipsis) -> Any:
        """Reads an attribute as `getattr` does."""
        try:
            return self.attr(value, name)
        except AttributeError:
            if default is Ellipsis:
                raise
            return default

    def call_pure(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a builtin function that depends on its arguments alone."""
        if len(args) == 1 and not kwargs:
            if function is bool:
                return bool(self.test(args[0]))
            method = class_attribute(type(args[0]), "__len__")
            if function is len and isinstance(method, FunctionType):
                self.method_of(args[0], self.path_of.get(id(args[0])), "__len__", method)
                return self.call(method, args[0])
        walks = function in WALKING
        given = [self.argument(one, walks) for one in args]
        return function(*given, **{key: self.argument(one, False) for key, one in kwargs.items()})

    def argument(self, value: Any, walked: bool = False) -> Any:
        """Returns an argument of a builtin function: all it holds is guarded, and a function is converted."""
        if isinstance(value, FunctionType) and LOG not in value.__code__.co_freevars:
            return lambda *args, **kwargs: self.call(value, *args, **kwargs)
        kind = type(value)
        if kind in CONTAINERS | VIEWS or kind.__name__ == "generator":
            return self.deep(value)
        if not (isinstance(value, Tensor | type) or kind in PRIMITIVES | FACTS):
            if walked and isinstance(class_attribute(kind, "__iter__"), FunctionType):
                return self.each(value)
            if not isinstance(value, FIXED):
                self.escape(f"a {kind.__name__} is given to a builtin function")
        return value

    def call_method(self, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a method of a builtin type."""
        owner, name = method.__self__, method.__name__
        if isinstance(owner, Tensor):
            return self.call_leaf(method, args, kwargs)
        if name == "append" and type(owner) is list and id(owner) in self.path_of and len(args) == 1:
            return appended(self, owner, args[0])
        if name in MUTATORS and id(owner) in self.path_of:
            self.escape(f"{self.named(self.path_of[id(owner)])}.{name}() changes what others see")
        elif type(owner) not in CONTAINERS | PRIMITIVES | FACTS or name not in MUTATORS | READERS:
            self.escape(f"{type(owner).__name__}.{name} is called, whose code is not shown")
        self.deep(owner)
        return method(*map(self.argument, args), **{key: self.argument(one) for key, one in kwargs.items()})

    def call_function(self, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a function that is written in Python."""
        if LOG in function.__code__.co_freevars:  # made by a converted function
            return function(*args, **kwargs)
        if self.leaf(function):
            return self.call_leaf(function, args, kwargs)
        module = function.__globals__.get("__name__", "")
        if module.startswith("redispatch.") and not module.startswith("redispatch.nn"):
            self.escape(f"{described(function)} is called, whose code is not shown")
            return function(*args, **kwargs)
        try:
            made = converted(function)(self)
        except Unconvertible as problem:
            self.no_source |= "no source text" in str(problem) and not self.reason
            self.escape(f"{described(function)}: {problem}")
            return function(*args, **kwargs)
        return made(*args, **kwargs)

    def call_leaf(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls what is recorded as one call."""
        for one in tree_flatten((args, kwargs))[0]:
            if not (isinstance(one, Tensor) or type(one) in PRIMITIVES | FACTS or isinstance(one, enum.Enum)):
                self.escape(f"{described(function)} is given a {type(one).__name__}")
        for one in (*args, *kwargs.values()):
            self.deep(one)
        return function(*args, **kwargs)
