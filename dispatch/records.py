"""`dataclass`, as the standard library's, at a quarter of its price: an import of the library makes sixty of them.

The standard library's decorator compiles each method from a source of its own, half a dozen for a frozen class. But the
methods of two classes differ in the names of their attributes alone. So `__init__`, of which the speed counts, is the
one method that is compiled here; the others are functions that all classes share, over a getter of their attributes.

Fields, `replace`, `asdict` and pattern matching are the standard library's own. There is no `order`, `unsafe_hash` or
`InitVar`, for nobody asks for them. Read next: core/key.py, which has the first one.
"""

from __future__ import annotations

import dataclasses
import reprlib
from operator import attrgetter
from typing import TYPE_CHECKING, Any

MISSING: Any = dataclasses.MISSING


class Factory:
    """The default of a parameter whose value is made at each call."""

    def __repr__(self) -> str:
        return "<factory>"


FACTORY = Factory()


def made(cls: Any, frozen: bool, slots: bool, eq: bool, repr: bool) -> Any:
    """Returns the class with its methods; with `slots`, that is a new class."""
    own = vars(cls)
    methods: dict[str, Any] = {"__repr__": shown} if repr else {}
    methods |= {"__setattr__": refuse_to_set, "__delattr__": refuse_to_delete} if frozen else {}
    if eq:
        methods |= {"__eq__": equal, "__hash__": hashed if frozen else None}
    if frozen and slots:
        methods |= {"__getstate__": state, "__setstate__": set_state}
    taken = {name for name in methods if name in own and not (name == "__hash__" and own[name] is None)}
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    for name, method in methods.items():
        if name not in taken:
            setattr(cls, name, method)
    fields = dataclasses.fields(cls)
    if eq:
        names = [field.name for field in fields if field.compare]
        cls.__compared__ = attrgetter(*names) if names else type  # called without `self`: it is no function of Python's
    if "__init__" not in own:
        cls.__init__ = initializer(cls, fields, frozen)
    return cls


def initializer(cls: Any, fields: tuple[Any, ...], frozen: bool) -> Any:
    """Returns `__init__`, compiled."""
    scope: dict[str, Any] = {"FACTORY": FACTORY, "put": object.__setattr__}
    parameters, keywords, body = ["self"], list[str](), list[str]()
    for field in fields:
        name, value = field.name, field.name
        default = field.default_factory if field.default is MISSING else field.default
        scope[f"default_{name}"] = default
        if field.default_factory is not MISSING:
            value = f"default_{name}()" + (f" if {name} is FACTORY else {name}" if field.init else "")
        if field.init:
            shown = "FACTORY" if field.default_factory is not MISSING else f"default_{name}"
            text = name if default is MISSING else f"{name}={shown}"
            (keywords if field.kw_only else parameters).append(text)
        elif field.default_factory is MISSING:
            if default is MISSING:
                continue
            value = f"default_{name}"
        body.append(f"put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    head = ", ".join([*parameters, *(["*", *keywords] if keywords else [])])
    exec(f"def __init__({head}):\n " + "\n ".join(body or ["pass"]), scope)
    made = scope["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    made.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return made


@reprlib.recursive_repr()
def shown(self: Any) -> str:
    parts = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(parts)})"


def equal(self: Any, other: Any) -> Any:
    return self.__compared__(self) == self.__compared__(other) if type(other) is type(self) else NotImplemented


def hashed(self: Any) -> int:
    return hash(self.__compared__(self))


def refuse_to_set(self: Any, name: str, value: Any) -> None:
    if is_frozen(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def refuse_to_delete(self: Any, name: str) -> None:
    if is_frozen(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def is_frozen(self: Any, name: str) -> bool:
    """Returns whether an attribute is none that a subclass, which is no such record itself, adds."""
    return name in self.__dataclass_fields__ or "__dataclass_fields__" in vars(type(self))


def state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def set_state(self: Any, values: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), values, strict=True):
        object.__setattr__(self, field.name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # which type checkers know
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, repr=True):
        """Returns a class with the methods that its annotated attributes ask for; or a decorator that makes one."""
        return made(cls, frozen, slots, eq, repr) if cls else lambda cls: made(cls, frozen, slots, eq, repr)
