"""Instances of a program's own classes: their `__init__` is converted, too, and those that are returned are made anew.

An object that came into being in the run is nobody else's: its attributes need no guards and writes to them are no
effects. What is read of its class is guarded. Read next: reads.py, whose log calls these.
"""

from __future__ import annotations

import dataclasses
from types import FunctionType
from typing import Any

from redispatch.dispatch.pytree import register_pytree_node
from redispatch.dispatch.tensor import Tensor
from redispatch.nn import Module

from .effects import has_plain_attribute
from .known import class_attribute
from .paths import Path

FACTORIES = list, dict, dataclasses.MISSING


def is_plain_class(kind: Any) -> bool:
    """Whether making an instance does no more than `__init__` says."""
    if not isinstance(kind, type) or type(kind).__call__ is not type.__call__ or kind.__new__ is not object.__new__:
        return False
    if issubclass(kind, Module | Tensor | BaseException) or any("__slots__" in vars(one) for one in kind.__mro__):
        return False
    return isinstance(kind.__init__, FunctionType) or kind.__init__ is object.__init__


def is_plain_dataclass(kind: Any) -> bool:
    """Whether a class's `__init__` is the one that `dataclass` wrote, and calls no code of a program's."""
    fields = vars(kind).get("__dataclass_fields__")
    if fields is None or not kind.__dataclass_params__.init or hasattr(kind, "__post_init__"):
        return False
    written = kind.__init__.__code__.co_filename == "<string>"
    return written and all(any(one.default_factory is known for known in FACTORIES) for one in fields.values())


def made(log: Any, kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Makes an instance of a plain class."""
    log.guard(log.constant(kind), "class attribute __init__", kind.__init__)
    if is_plain_dataclass(kind):
        instance = kind(*args, **kwargs)
        log.made[id(instance)] = instance
        return instance
    instance = object.__new__(kind)
    log.made[id(instance)] = instance
    if kind.__init__ is object.__init__:
        if args or kwargs:
            kind(*args, **kwargs)  # raises the error
    else:
        log.call(kind.__init__, instance, *args, **kwargs)
    return instance


def attribute(log: Any, instance: Any, name: str) -> Any:
    """Reads an attribute of an instance that was made in the run."""
    kind = type(instance)
    own, root = class_attribute(kind, name), log.constant(kind)
    custom = class_attribute(kind, "__getattr__") is not None
    if custom or kind.__getattribute__ is not object.__getattribute__:
        log.escape(f"{kind.__name__} has a `__getattr__` of its own")
    elif isinstance(own, property):
        log.guard(root, f"class attribute {name}", own)
        return log.call(own.fget, instance)
    elif name in vars(instance) and not hasattr(type(own), "__set__"):
        pass
    elif own is None and not hasattr(instance, name):
        log.guard(root, "lacks", name)
    elif isinstance(own, FunctionType):
        log.guard(root, f"class attribute {name}", own)
    elif hasattr(type(own), "__get__") or own is None:
        log.escape(f"{kind.__name__}.{name} is computed by code that is not shown")
    else:
        return log.register(getattr(instance, name), Path(root, f".{name}"))
    return getattr(instance, name)


class Own:
    """An instance made in the run of which attributes or items are written."""

    instance: Any
    log: Any

    def __init__(self, instance: Any, log: Any) -> None:
        vars(self).update(instance=instance, log=log)

    def __setattr__(self, name: str, value: Any) -> None:
        if not has_plain_attribute(self.instance, name):
            self.log.escape(f"{type(self.instance).__name__}.{name} is set by code that is not shown")
        setattr(self.instance, name, value)

    def __delattr__(self, name: str) -> None:
        self.log.escape(f"an attribute of a {type(self.instance).__name__} is deleted")
        delattr(self.instance, name)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.log.escape(f"an item of a {type(self.instance).__name__} is set by code that is not shown")
        self.instance[key] = value

    def __delitem__(self, key: Any) -> None:
        self.log.escape(f"an item of a {type(self.instance).__name__} is deleted")
        del self.instance[key]


class Entered:
    """A region that is an object of a program's: its methods are converted."""

    def __init__(self, region: Any, log: Any, enter: Any, leave: Any) -> None:
        self.region, self.log, self.enter, self.leave = region, log, enter, leave

    def __enter__(self) -> Any:
        return self.log.call(self.enter, self.region)

    def __exit__(self, *error: Any) -> Any:
        if error[0] is not None:
            self.log.escape("an error passes through `with`")
            return self.leave(self.region, *error)
        return self.log.call(self.leave, self.region, *error)


def entered(log: Any, region: Any) -> Any:
    """Returns what `with` is to enter in the place of a region; None where its methods are not shown."""
    methods = [class_attribute(type(region), name) for name in ("__enter__", "__exit__")]
    path = log.path_of.get(id(region))
    if not all(isinstance(one, FunctionType) for one in methods) or (path is None and id(region) not in log.made):
        return None
    if any(one.__globals__.get("__name__", "").startswith("redispatch.") for one in methods):
        return None
    for name, method in zip(("__enter__", "__exit__"), methods, strict=True):
        log.method_of(region, path, name, method)
    return Entered(region, log, *methods)


class Packed:
    """An instance in a result, as a node of trees: another like it is made of its leaves."""

    def __init__(self, instance: Any, values: list[Any]) -> None:
        self.kind, self.names, self.values = type(instance), tuple(vars(instance)), values


def unpacked(values: Any, context: Any) -> Any:
    kind, names = context
    instance = object.__new__(kind)
    vars(instance).update(zip(names, values, strict=True))
    return instance


register_pytree_node(Packed, lambda one: (one.values, (one.kind, one.names)), unpacked)


def packed(log: Any, value: Any, seen: list[int]) -> Any:
    """Returns a result with `Packed` in the place of instances; `seen` gets the ids of these."""
    if id(value) in log.made:
        seen.append(id(value))
        if seen.count(id(value)) > 1:
            return value
        return Packed(value, [packed(log, one, seen) for one in vars(value).values()])
    if type(value) in (list, tuple):
        return type(value)(packed(log, one, seen) for one in value)
    if type(value) is dict:
        return {key: packed(log, one, seen) for key, one in value.items()}
    return value
