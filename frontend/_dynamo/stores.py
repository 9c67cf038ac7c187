"""Stores: what a converted function writes to objects, and where such a write is an effect, in its turn at each call.

    self.count += 1        # log.augment(self, "count", "attribute", "+", 1)
    self.seen[k] = x       # log.store(self.seen)[k] = x, with a `Stored` in the place of the dict

A write that is no effect of effects.py's is an escape, and is done all the same. Read next: effects.py.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from redispatch.dispatch.tensor import Tensor
from redispatch.nn import Module, Parameter

from . import effects
from .effects import ABSENT, OPERATORS
from .known import FACTS, PRIMITIVES
from .paths import Path


def storable(value: Any) -> bool:
    """Whether a later call can find a value to store: one that was seen is another there."""
    return isinstance(value, Tensor) or type(value) in PRIMITIVES | FACTS


def replaceable(log: Any, old: Any) -> bool:
    """Whether a value may go from its place: no path leads through it. A tensor is carried from now on."""
    if id(old) not in log.path_of:
        return True
    if not isinstance(old, Tensor):
        return False
    log.hold(old)
    log.path_of.pop(id(old), None)
    return True


def set_attribute(log: Any, owner: Any, name: str, value: Any) -> None:
    """Sets an attribute of an object from outside."""
    path = log.path_of[id(owner)]
    if isinstance(owner, Module) and name in owner._buffers and type(value) is Tensor:
        log.path_of.setdefault(id(owner._buffers), Path(path, "._buffers"))
        if type(owner).__setattr__ is Module.__setattr__:
            set_item(log, owner._buffers, name, value)
            return
    registered = isinstance(owner, Module) and isinstance(value, Module | Parameter)
    plain = effects.has_plain_attribute(owner, name) and storable(value) and not registered
    if plain and replaceable(log, vars(owner).get(name, ABSENT)):
        log.effect(effects.set_attribute, (owner, name, value), {}, f"{log.named(path)}.{name} is set")
        return
    log.escape(f"{log.named(path)}.{name} is set, which others may see")
    setattr(owner, name, value)


def set_item(log: Any, owner: Any, key: Any, value: Any) -> None:
    """Sets an item of a list or dict from outside."""
    path = log.path_of[id(owner)]
    if effects.has_plain_items(owner, key) and storable(value):
        old = owner.get(key, ABSENT) if isinstance(owner, dict) else owner[key]
        if replaceable(log, old):
            log.effect(effects.set_item, (owner, key, value), {}, f"{log.named(path)}[{key!r}] is set")
            return
    log.escape(f"an item of {log.named(path)} is set, which others may see")
    owner[key] = value


def appended(log: Any, owner: list[Any], value: Any) -> None:
    """Appends to a list from outside."""
    path = log.path_of[id(owner)]
    if storable(value):
        log.effect(effects.append, (owner, value), {}, f"{log.named(path)} gets another item")
        return
    log.escape(f"{log.named(path)}.append() changes what others see")
    owner.append(value)


def augmented(log: Any, owner: Any, name: Any, kind: str, sign: str, value: Any) -> None:
    """Changes an attribute or item, as `+=` does; a number that nobody has read is counted on, whichever it is."""
    path = log.path_of.get(id(owner))
    count: Any = effects.count if kind == "attribute" else effects.count_item
    if kind == "attribute":
        plain, way = effects.has_plain_attribute(owner, name), ".__dict__"
    else:
        plain, way = effects.has_plain_items(owner, name), ""
    if path is not None and plain:
        table = vars(owner) if kind == "attribute" else owner
        old = table[name] if type(table) is list else table.get(name)
        if type(old) in (int, float) and type(value) in (int, float):
            log.guard(Path(Path(path, way) if way else path, f"[{name!r}]"), "type", type(old))
            log.effect(count, (owner, name, sign, value), {}, f"{log.named(path)}[{name!r}] is counted on")
            return
    old = log.attr(owner, name) if kind == "attribute" else log.item(owner, name)
    if id(old) in log.path_of and type(old) in (list, dict, set, OrderedDict):
        log.escape(f"a {type(old).__name__} is changed that others see")
    new = OPERATORS[sign](log.safe(old), log.safe(value))
    if kind == "attribute":
        setattr(log.store(owner), name, new)
    else:
        log.store(owner)[name] = new


class Stored:
    """An object from outside whose attributes or items are written."""

    owner: Any
    log: Any

    def __init__(self, owner: Any, log: Any) -> None:
        vars(self).update(owner=owner, log=log)

    def __setattr__(self, name: str, value: Any) -> None:
        set_attribute(self.log, self.owner, name, value)

    def __setitem__(self, key: Any, value: Any) -> None:
        set_item(self.log, self.owner, key, value)

    def __delattr__(self, name: str) -> None:
        self.log.escape(f"an attribute of a {type(self.owner).__name__} is deleted")
        delattr(self.owner, name)

    def __delitem__(self, key: Any) -> None:
        self.log.escape(f"an item of a {type(self.owner).__name__} is deleted")
        del self.owner[key]


class Written:
    """A tensor whose items are written."""

    def __init__(self, tensor: Tensor, log: Any) -> None:
        vars(self).update(tensor=tensor, log=log)

    def __getitem__(self, at: Any) -> Any:
        return self.tensor[at]

    def __setitem__(self, at: Any, value: Any) -> None:
        self.tensor[at] = value

    def __setattr__(self, name: str, value: Any) -> None:
        self.log.escape(f"a tensor's {name} is set")
        setattr(self.tensor, name, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tensor, name)

    def __delattr__(self, name: str) -> None:
        self.log.escape(f"a tensor's {name} is deleted")
        delattr(self.tensor, name)
