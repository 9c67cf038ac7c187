"""Words of programs to the compiler: marks on functions, and functions that mean something else while compiling.

In Python they do what their names say, or nothing. Read next: sugared.py.
"""

from __future__ import annotations

import builtins
import typing
import warnings
from collections.abc import Callable
from typing import Any

MARK = "_torchscript_modifier"
IGNORED = "This Python function is annotated to be ignored and cannot be run"


def of(fn: Any) -> str | None:
    """Returns 'export', 'ignore' or 'unused', where a function is marked so."""
    return getattr(fn, MARK, None)


def _marked(fn: Any, mark: str) -> Any:
    target = fn.fget if builtins.isinstance(fn, property) else fn
    setattr(target, MARK, mark)
    return fn


def export(fn: Any) -> Any:
    """Marks a method that is compiled though `forward` does not call it."""
    return _marked(fn, "export")


def ignore(drop: Any = False, **options: Any) -> Any:
    """Marks a function that programs leave to Python: a decorator, with options or without.

    drop: whether a program may be saved with it; then its call is an error, as with `unused`.
    """
    if callable(drop):
        return _marked(drop, "ignore")
    return lambda fn: _marked(fn, "unused" if drop else "ignore")


def unused(fn: Any) -> Any:
    """Marks a function that is not compiled; a program that calls it raises an error."""
    return _marked(fn, "unused")


OVERLOADED: dict[tuple[str, str], list[Any]] = {}  # by module and name: signatures without bodies, in order


def overload(fn: Any) -> Any:
    """Declares a signature of the function or method of this name that follows."""
    OVERLOADED.setdefault((fn.__module__, fn.__qualname__), []).append(fn)
    return fn


def overloads_of(fn: Any) -> list[Any]:
    """Returns the signatures that were declared for a function."""
    found = OVERLOADED.get((getattr(fn, "__module__", ""), getattr(fn, "__qualname__", "")), [])
    return [] if fn in found else found


def script_method(fn: Any) -> Any:
    """Marks a method of a class below ScriptModule that is compiled when an instance is made."""
    return _marked(fn, "export")


def is_scripting() -> bool:
    """Returns False: Python runs this. In a program it is True."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """Returns the value; in a program it has this type."""
    return the_value


class Attribute(typing.NamedTuple):
    """A value and the type that it is declared with."""

    value: Any
    type: Any


def isinstance(obj: Any, target_type: Any) -> bool:
    """Returns whether an object is of a type, which may be a container of types such as `list[int]`."""
    kinds = target_type if type(target_type) is tuple else (target_type,)
    return any(_is_of(obj, kind) for kind in kinds)


def _is_of(obj: Any, kind: Any) -> bool:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is None:
        return kind is Any or issubclass(type(obj), kind)
    if origin in (list, set, frozenset):
        return issubclass(type(obj), origin) and all(_is_of(item, inner[0]) for item in obj)
    if origin is dict:
        return issubclass(type(obj), dict) and all(_is_of(k, inner[0]) and _is_of(v, inner[1]) for k, v in obj.items())
    if origin is tuple:
        return issubclass(type(obj), tuple) and len(obj) == len(inner) and all(map(_is_of, obj, inner))
    return any(_is_of(obj, one) for one in inner)  # a union


def _unwrap_optional(x: Any) -> Any:
    """Returns a value that is not None. AssertionError where it is."""
    assert x is not None, "Unwrapping null optional"
    return x


def spoken_syntax(node: Any) -> str:
    """Returns the words for a kind of syntax: `Lambda` is a lambda."""
    words = {"AsyncFor": "async "
                         "for", "GeneratorExp": "generator "
                                                "expressions", "SetComp": "set comprehensions", "Set": "set literals",
             "Try": "try blocks", "FunctionDef": "function definitions", "ClassDef": "class definitions",
             "Import": "import statements", "ImportFrom": "import statements", "Global": "global variables",
             "Yield": "yield expressions", "Match": "match statements"}  # fmt: skip
    name = type(node).__name__
    return words.get(name, name)


SPECIAL: dict[Any, str] = {  # functions whose arguments a program reads in its own way
    annotate: "annotate", isinstance: "isinstance", builtins.isinstance: "isinstance", hasattr: "hasattr",
    getattr: "getattr", range: "range", is_scripting: "is_scripting", warnings.warn: "warn",
    _unwrap_optional: "unwrap_optional", "annotate": "annotate", "unchecked_cast": "unchecked_cast",
    "uninitialized": "uninitialized", "fork": "fork", "wait": "wait",
}  # fmt: skip


def special_name(function: Any) -> str | None:
    """Returns the word by which the compiler knows a function that reads its own arguments."""
    try:
        return SPECIAL.get(function)
    except TypeError:  # not hashable
        return None


def special(name: str) -> Callable[[Any], Any]:
    """Gives a function such a word: a decorator."""

    def mark(fn: Any) -> Any:
        SPECIAL[fn] = name
        return fn

    return mark
