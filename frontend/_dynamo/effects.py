"""Effects on what others see: attributes, items, lists. Each is done in its turn at every call, and can be taken back.

    undo = set_attribute(self, "count", 3)     # what a step between segments does
    undo()                                     # as it was: Python is about to do it again (feeding.py)

Only what runs no code but Python's own is an effect of this kind; the rest is an escape. Read next: segments.py.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from redispatch.nn import Module

from .known import TABLES, class_attribute

ABSENT = object()
OPERATORS = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "//": operator.ifloordiv,
    "%": operator.imod, "**": operator.ipow, "@": operator.imatmul, "<<": operator.ilshift, ">>": operator.irshift,
    "&": operator.iand, "|": operator.ior, "^": operator.ixor,
}  # fmt: skip


class Undo:
    """A way back. All are alike to what chooses a segment."""

    def __init__(self, way: Callable[..., Any], *args: Any) -> None:
        self.way, self.args = way, args

    def __call__(self) -> None:
        self.way(*self.args)

    def __repr__(self) -> str:
        return "undo"


def set_attribute(owner: Any, name: str, value: Any) -> Undo:
    """Sets an attribute of an object's own."""
    old = vars(owner).get(name, ABSENT)
    setattr(owner, name, value)
    return Undo(delattr, owner, name) if old is ABSENT else Undo(setattr, owner, name, old)


def set_item(owner: Any, key: Any, value: Any) -> Undo:
    """Sets an item of a list or dict."""
    old = owner.get(key, ABSENT) if isinstance(owner, dict) else owner[key]
    owner[key] = value
    return Undo(operator.delitem, owner, key) if old is ABSENT else Undo(operator.setitem, owner, key, old)


def append(owner: list[Any], value: Any) -> Undo:
    """Appends to a list."""
    owner.append(value)
    return Undo(owner.pop)


def count(owner: Any, name: str, sign: str, by: Any) -> Undo:
    """Changes a number that is an attribute by another."""
    return set_attribute(owner, name, OPERATORS[sign](vars(owner)[name], by))


def count_item(owner: Any, key: Any, sign: str, by: Any) -> Undo:
    """Changes a number that is an item by another."""
    return set_item(owner, key, OPERATORS[sign](owner[key], by))


def take_back(chain: Sequence[tuple[Any, Any]]) -> None:
    """Takes back what the steps of a chain did, the last first."""
    for _, result in reversed(chain):
        if isinstance(result, Undo):
            result()


def has_plain_attribute(owner: Any, name: str) -> bool:
    """Whether setting an attribute puts it in the object's `__dict__`, by no code but Python's own."""
    kind = type(owner)
    if isinstance(owner, type | ModuleType) or not isinstance(getattr(owner, "__dict__", None), dict):
        return False
    if hasattr(type(class_attribute(kind, name)), "__set__") or name.startswith("__"):
        return False
    for method in ("__setattr__", "__delattr__", "__getattribute__"):
        known = getattr(Module if isinstance(owner, Module) else object, method)
        if getattr(kind, method) is not known:
            return False
    return not isinstance(owner, Module) or not any(name in getattr(owner, table) for table in TABLES)


def has_plain_items(owner: Any, key: Any) -> bool:
    """Whether setting an item runs no code but Python's own."""
    if type(owner) is list:
        return type(key) is int and -len(owner) <= key < len(owner)
    return type(owner) in (dict, OrderedDict) and type(key) in (str, int, bool)
