"""Types of TorchScript: those of the schema language, and classes, named tuples and modules beside them.

An annotation is read from the syntax tree, name by name; nothing of it is evaluated. `convert` makes a caller's value
one of a type, or says why not. Read next: graph.py.
"""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Callable, Iterable
from types import UnionType
from typing import Any

from redispatch.dispatch.schema.convert import converter
from redispatch.dispatch.schema.schema import (
    ANY,
    INT,
    NONE,
    TENSOR,
    BaseType,
    DictType,
    GenericType,
    ListType,
    OptionalType,
    TupleType,
    Type,
)
from redispatch.dispatch.tensor import Tensor, device, dtype, layout, memory_format
from redispatch.futures import Future

BOOL, FLOAT, COMPLEX, STR, NUMBER, DEVICE, DTYPE, LAYOUT, MEMORY_FORMAT, FUNCTION = (
    BaseType(name) for name in "bool float complex str Scalar Device ScalarType Layout MemoryFormat Function".split()
)
NUMBERS = (INT, FLOAT, COMPLEX, BOOL)
AS_INTS = (DTYPE, LAYOUT, MEMORY_FORMAT)  # which are numbers in PyTorch's programs

PYTHON_TYPES: dict[Any, Type] = {
    int: INT, float: FLOAT, bool: BOOL, complex: COMPLEX, str: STR, type(None): NONE, None: NONE, Any: ANY,
    Tensor: TENSOR, device: DEVICE, dtype: DTYPE, layout: LAYOUT, memory_format: MEMORY_FORMAT,
}  # fmt: skip
NAMED = {"Tensor": TENSOR, "Any": ANY, "Device": DEVICE, "Scalar": NUMBER, "number": NUMBER, "NoneType": NONE} | {
    kind.__name__: one for kind, one in PYTHON_TYPES.items() if isinstance(kind, type) and kind is not type(None)
}
GENERIC = {list: "List", tuple: "Tuple", dict: "Dict", Future: "Future", UnionType: "Union", typing.Union: "Union"}


class ObjectType(Type):
    """A class or a module: attributes with types, methods with graphs. Two are the same only if they are one object.

    python: the class by which instances are made, where there is one (an archive brings none).
    """

    def __init__(self, name: str, python: Any = None, is_module: bool = False) -> None:
        self.name, self.python, self.is_module = name, python, is_module
        self.attributes: dict[str, Type] = {}
        self.methods: dict[str, Any] = {}  # name -> ScriptFunction
        self.pending: dict[str, Any] = {}  # of a text, compiled when they are first called
        self.constants: dict[str, Any] = {}
        self.parameters: list[str] = []  # which attributes are a module's parameters, and which its buffers
        self.buffers: list[str] = []
        self.hooks: list[list[Any]] = [[], []]  # Python functions before and after a module's call

    def __str__(self) -> str:
        return f"__torch__.{self.name}"

    _plain = __str__

    def kind(self) -> str:
        return "ClassType"


def python_method(kind: ObjectType, name: str) -> Any:
    """Returns the Python function of a method, or of a property's `__name_getter` and `__name_setter`; None without."""
    if kind.python is None:
        return None
    prefix, _, what = name[2:].rpartition("_")
    owner = inspect.getattr_static(kind.python, prefix, None) if name[:2] == "__" and prefix else None
    if isinstance(owner, property):
        return {"getter": owner.fget, "setter": owner.fset}.get(what)
    return inspect.getattr_static(kind.python, name, None)


def path_of(python: type) -> str:
    """Returns the name of a class in programs, without `__torch__`."""
    return f"{python.__module__}.{python.__qualname__}".replace(".<locals>", "").removeprefix("__main__.").lstrip(".")


class EnumType(Type):
    """An enumeration."""

    def __init__(self, python: Any) -> None:
        self.python = python

    def __str__(self) -> str:
        return f"__torch__.{path_of(self.python)}"

    _plain = schema_str = lambda self, alias=None: str(self)
    __hash__ = Type.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EnumType) and self.python is other.python

    def value_type(self) -> Type:
        """Returns the type of its members' values."""
        return of_value(next(iter(self.python)).value) or ANY

    def kind(self) -> str:
        return "EnumType"


class NamedTupleType(TupleType):
    """A tuple whose members have names."""

    __slots__ = ("fields", "name", "python")
    name: str
    fields: tuple[str, ...]
    python: Any

    def __init__(self, name: str, fields: Iterable[str], elems: Iterable[Type], python: Any = None) -> None:
        super().__init__(tuple(elems))
        for field, value in (("name", name), ("fields", tuple(fields)), ("python", python)):
            object.__setattr__(self, field, value)

    def __str__(self) -> str:
        return f"__torch__.{self.name}"

    __hash__ = TupleType.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedTupleType) and (self.name, self.elems) == (other.name, other.elems)

    def schema_str(self, alias: Any = None) -> str:
        return str(self)


def union(types: Iterable[Type]) -> Type:
    """Returns the type of values of any of these."""
    flat: list[Type] = []
    for one in types:
        parts = (
            one.elems if isinstance(one, GenericType) else (one.elem, NONE) if isinstance(one, OptionalType) else (one,)
        )
        flat += [part for part in parts if part not in flat]
    rest = [one for one in flat if one != NONE]
    if len(rest) == 1:
        return OptionalType(rest[0]) if NONE in flat else rest[0]
    return GenericType("Union", tuple(flat))


def members(kind: Type) -> tuple[Type, ...]:
    """Returns the types of which an Optional or Union is one; of another type, itself."""
    if isinstance(kind, OptionalType):
        return (*members(kind.elem), NONE)
    return kind.elems if isinstance(kind, GenericType) and kind.name == "Union" else (kind,)


def unified(a: Type, b: Type) -> Type | None:
    """Returns the type of a variable that has type `a` after one branch and `b` after the other, if there is one."""
    if a == b or is_subtype(b, a):
        return a
    if is_subtype(a, b):
        return b
    if a == NONE or b == NONE:
        return OptionalType(b if a == NONE else a)
    if isinstance(a, OptionalType) or isinstance(b, OptionalType):
        inner = unified(*(one.elem if isinstance(one, OptionalType) else one for one in (a, b)))
        return None if inner is None else OptionalType(inner)
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.elems) == len(b.elems):
        both = [unified(x, y) for x, y in zip(a.elems, b.elems, strict=True)]
        return None if None in both else TupleType(tuple(both))  # type: ignore[arg-type]  # None was excluded
    return None


def is_subtype(a: Type, b: Type) -> bool:
    """Whether each value of type `a` may stand where `b` is declared."""
    if a == b or b == ANY:
        return True
    if isinstance(b, OptionalType | GenericType) and len(members(b)) > 1:
        return all(any(is_subtype(one, other) for other in members(b)) for one in members(a))
    if len(members(a)) > 1:
        return all(is_subtype(one, b) for one in members(a))
    if b == INT and a in AS_INTS or a == INT and b in AS_INTS:
        return True
    if b == NUMBER:
        return a in (INT, FLOAT, COMPLEX)
    if isinstance(a, ListType) and isinstance(b, ListType):
        return same(a.elem, b.elem)
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        if isinstance(b, NamedTupleType):
            return a == b
        return len(a.elems) == len(b.elems) and all(map(is_subtype, a.elems, b.elems))
    return False


def same(a: Type, b: Type) -> bool:
    return a == b or {a, b} <= {INT, *AS_INTS}


def mapped(kind: Type, change: Callable[[Type], Type]) -> Type:
    """Returns a type whose innermost parts have changed."""
    if isinstance(kind, ListType):
        return ListType(mapped(kind.elem, change))
    if isinstance(kind, OptionalType):
        inner = mapped(kind.elem, change)
        return inner if isinstance(inner, OptionalType) else OptionalType(inner)
    if type(kind) is TupleType:
        return TupleType(tuple(mapped(one, change) for one in kind.elems))
    if isinstance(kind, DictType):
        return DictType(mapped(kind.key, change), mapped(kind.value, change))
    return change(kind)


SIZES = {BaseType(name): kind for name, kind in (("SymInt", INT), ("SymBool", BOOL), ("SymFloat", FLOAT))}


def normal(kind: Type) -> Type:
    """Returns a type of a schema as programs know it: sizes are ints, lists have any length."""
    return mapped(kind, lambda one: NUMBER if getattr(one, "name", "") == "number" else SIZES.get(one, one))  # type: ignore[call-overload]  # any type


def shown(kind: Type) -> str:
    """Returns a type as graphs show it: `int[]`, `Tensor?`."""
    if isinstance(kind, ListType):
        return f"{shown(kind.elem)}[]"
    if isinstance(kind, OptionalType):
        return f"{shown(kind.elem)}?"
    if isinstance(kind, NamedTupleType | ObjectType | EnumType):
        return str(kind)
    if isinstance(kind, TupleType):
        return f"({', '.join(map(shown, kind.elems))})"
    if isinstance(kind, DictType):
        return f"Dict({shown(kind.key)}, {shown(kind.value)})"
    if isinstance(kind, GenericType):
        return f"{kind.name}({', '.join(map(shown, kind.elems))})"
    return "int" if kind in AS_INTS else kind.schema_str()


def spoken(kind: Type) -> str:
    """Returns a type as programs write it: `List[int]`, `Optional[Tensor]`."""
    return "number" if kind == NUMBER else str(kind)


# --- from Python ------------------------------------------------------------------------------------------------------


def of_annotation(node: ast.expr, find: Callable[[str], Any], class_type: Callable[[Any], Type | None]) -> Type:
    """Returns the type that an annotation names. find: a name -> its Python object. ValueError where it names none."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return of_annotation(ast.parse(node.value, mode="eval").body, find, class_type)
        if node.value is None:
            return NONE
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return union(of_annotation(side, find, class_type) for side in (node.left, node.right))
    if isinstance(node, ast.Subscript):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        base = _object(node.value, find)
        name = GENERIC.get(typing.get_origin(base) or base) or (
            base if isinstance(base, str) else getattr(base, "__name__", str(base))
        )
        if name == "Final" or str(base) == "typing.Final":
            return of_annotation(inner[0], find, class_type)
        if name == "Tuple" and len(inner) == 1 and isinstance(inner[0], ast.Tuple):
            inner = inner[0].elts
        return _generic(name, [of_annotation(one, find, class_type) for one in inner])
    found = _object(node, find)
    if isinstance(found, str):
        if found in NAMED:
            return NAMED[found]
        raise ValueError(f"Unknown type name '{ast.unparse(node)}'")
    return of_python(found, class_type)


def _object(node: ast.expr, find: Callable[[str], Any]) -> Any:
    """Returns the Python object that a dotted name is, or the last name itself where nothing is found."""
    if isinstance(node, ast.Name):
        found = find(node.id)
        return node.id if found is None else found
    if isinstance(node, ast.Attribute):
        owner = _object(node.value, find)
        return node.attr if isinstance(owner, str) else getattr(owner, node.attr, node.attr)
    raise ValueError(f"Unknown type constructor {ast.unparse(node)}")


def of_python(kind: Any, class_type: Callable[[Any], Type | None]) -> Type:
    """Returns the type that a Python type or generic is. ValueError where it is none."""
    if isinstance(kind, Type):
        return kind
    if isinstance(kind, typing.Hashable) and kind in PYTHON_TYPES:
        return PYTHON_TYPES[kind]
    origin = typing.get_origin(kind)
    if origin is not None:
        if origin is typing.Final:
            return of_python(typing.get_args(kind)[0], class_type)
        inner = [of_python(one, class_type) for one in typing.get_args(kind) if one != ()]
        return _generic(GENERIC.get(origin, str(origin)), inner)
    if isinstance(kind, type) and issubclass(kind, Tensor):
        return TENSOR
    found = class_type(kind)
    if found is not None:
        return found
    raise ValueError(f"Unknown type annotation: '{getattr(kind, '__qualname__', kind)}'")


def _generic(name: Any, inner: list[Type]) -> Type:
    if name in ("List", "list") or name.startswith("BroadcastingList"):
        return ListType(inner[0])
    if name in ("Tuple", "tuple"):
        return TupleType(tuple(inner))
    if name in ("Dict", "dict"):
        return DictType(*inner)
    if name == "Optional":
        return OptionalType(inner[0])
    if name == "Union":
        return union(inner)
    if name == "Future":
        return GenericType("Future", tuple(inner))
    raise ValueError(f"Unknown type constructor {name}")


def of_value(value: Any, class_type: Callable[[Any], Type | None] = lambda kind: None) -> Type | None:
    """Returns the type of a Python value, or None where it has none."""
    kind = type(value)
    if kind in PYTHON_TYPES:
        return PYTHON_TYPES[kind]
    if isinstance(value, Tensor):
        return TENSOR
    if kind is list or kind is dict:
        parts = [value] if kind is list else [value.keys(), value.values()]
        inner: list[Type] = []
        for part in parts:
            found = {of_value(one, class_type): None for one in part}
            if len(found) != 1 or None in found:
                return None
            inner += found  # type: ignore[arg-type]  # None was excluded
        return ListType(inner[0]) if kind is list else DictType(*inner)
    if isinstance(value, tuple):
        named = class_type(kind) if hasattr(kind, "_fields") else None
        inner = [of_value(one, class_type) for one in value]  # type: ignore[misc]  # None is excluded next
        return named or (None if None in inner else TupleType(tuple(inner)))
    return class_type(kind)


def convert(value: Any, kind: Type) -> Any:
    """Returns a caller's value as one of a type; lists and dicts are copied. TypeError where it is none."""
    if isinstance(kind, OptionalType):
        return None if value is None else convert(value, kind.elem)
    if isinstance(kind, ListType):
        if not isinstance(value, list | tuple):
            raise TypeError(f"Unable to cast {value!r} to a list")
        return [convert(one, kind.elem) for one in value]
    if isinstance(kind, DictType):
        if not isinstance(value, dict):
            raise TypeError(f"Unable to cast {value!r} to a dict")
        return {convert(key, kind.key): convert(one, kind.value) for key, one in value.items()}
    if isinstance(kind, TupleType):
        if not isinstance(value, tuple):
            raise TypeError(f"Object {value!r} is not a tuple")
        if len(value) != len(kind.elems):
            raise TypeError(f"Object {value!r} had a different number of elements than type {kind}")
        made = map(convert, value, kind.elems)
        return (kind.python or type(value))(*made) if isinstance(kind, NamedTupleType) else tuple(made)
    if isinstance(kind, GenericType) and kind.name == "Union":
        for one in kind.elems:
            if is_of(value, one):
                return convert(value, one)
        raise TypeError(f"Unable to cast {value!r} to {kind}")
    if kind == NONE and value is not None:
        raise TypeError(f"Cannot cast {value!r} to None")
    if kind == FLOAT and isinstance(value, Tensor | bool):
        raise TypeError(f"Unable to cast {value!r} to float")
    if isinstance(kind, ObjectType | EnumType) and not is_of(value, kind):
        raise TypeError(f"Unable to cast {value!r} to {kind}")
    if kind == INT and isinstance(value, dtype | layout | memory_format):
        return value
    return converter(kind)(value) if isinstance(kind, BaseType) else value


RUNTIME = {kind: python for python, kind in PYTHON_TYPES.items() if isinstance(python, type)}


def is_of(value: Any, kind: Type) -> bool:
    """Whether a value is of a type, at run time."""
    if kind == ANY:
        return True
    if len(members(kind)) > 1:
        return any(is_of(value, one) for one in members(kind))
    if isinstance(kind, ListType):
        return isinstance(value, list) and all(is_of(one, kind.elem) for one in value)
    if isinstance(kind, DictType):
        return isinstance(value, dict) and all(is_of(k, kind.key) and is_of(v, kind.value) for k, v in value.items())
    if isinstance(kind, TupleType):
        return isinstance(value, tuple) and len(value) == len(kind.elems) and all(map(is_of, value, kind.elems))
    if isinstance(kind, EnumType):
        return type(value) is kind.python
    if isinstance(kind, ObjectType):
        return getattr(value, "_script_type", None) is kind or (kind.python is not None and type(value) is kind.python)
    python = RUNTIME.get(kind)
    return python is not None and (isinstance(value, Tensor) if python is Tensor else type(value) is python)
