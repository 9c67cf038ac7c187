"""Conversions: what one value of a user becomes for an argument of a schema's type, or the error that says why not.

Read next: ../core/boxing.py, which converts whole calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.base import ARGUMENT_TYPES, TensorBase
from ..specialiser.annotations import pure
from ..symbolic import SymFloat, SymInt, as_index
from .schema import Argument, BaseType, ListType, OptionalType, Type

Convert = Callable[[Any], Any]

# Operators of this name take a Python number where the schema says Tensor, and hand it down as it is: `x + 1` is
# add.Tensor(x, 1), and a mode sees the 1. The upper rooms fill the table.
NUMBER_FOR_TENSOR: set[str] = set()
NUMBERS = (int, float, bool, complex)
NUMERIC = (*NUMBERS, SymInt, SymFloat)  # those that are symbolic, too

_CONVERTERS: dict[Type, Convert] = {}


def converter(type_: Type) -> Convert:
    """The function that turns a user's value into one of the schema type, or raises TypeError."""
    found = _CONVERTERS.get(type_)
    if found is None:
        found = _CONVERTERS[type_] = _make_converter(type_)
    return found


def _make_converter(type_: Type) -> Convert:
    if isinstance(type_, OptionalType):
        inner = converter(type_.elem)
        return lambda value: None if value is None else inner(value)
    if isinstance(type_, ListType):
        return _list_of(converter(type_.elem), type_)
    if isinstance(type_, BaseType):
        if type_.name in _CONVERT:
            return _CONVERT[type_.name]
        if type_.name in ARGUMENT_TYPES:
            return ARGUMENT_TYPES[type_.name]
    return lambda value: value  # an opaque Python object


def _list_of(element: Convert, type_: ListType) -> Convert:
    size = type_.size if element in (_int, _float, _bool) else None

    def convert(value: Any) -> list[Any]:
        if isinstance(value, list | tuple) or (isinstance(value, Sequence) and not isinstance(value, str | bytes)):
            if element is _bool and size not in (None, len(value)):
                raise RuntimeError(
                    f"Tried to convert a List with {len(value)} elements to a fixed-size array of size {size}"
                )
            return [element(item) for item in value]
        if size is not None and not isinstance(value, str):
            return [element(value)] * size
        raise Uncastable("Unable to cast {!r} to a list", value)

    return convert


class Uncastable(TypeError):
    """A value that an argument does not take. It is written out when the message is read: while overloads are tried,
    nobody does, and it may be a list of tensors."""

    def __init__(self, text: str, value: Any) -> None:
        super().__init__(text, value)

    def __str__(self) -> str:
        text, value = self.args
        return str(text.format(value))


def _tensor(value: Any) -> Any:
    if isinstance(value, TensorBase):
        return value
    raise Uncastable("Unable to cast {} to Tensor", value)


def _scalar(value: Any) -> Any:
    if type(value) in NUMERIC:
        return value
    if isinstance(value, TensorBase):
        return ARGUMENT_TYPES["Scalar"](value)
    if hasattr(value, "item") and hasattr(value, "dtype") and not getattr(value, "shape", ()):
        return value.item()  # numpy's scalars, of which some are Python floats, too
    if isinstance(value, NUMBERS):
        return value
    raise Uncastable("Cannot cast {} to number", value)


def _int(value: Any) -> int:
    return value if type(value) is int else as_index(value)


def _float(value: Any) -> Any:
    if isinstance(value, str | bytes):
        raise Uncastable("Cannot cast {!r} to float", value)
    return value if isinstance(value, SymFloat) else float(value)


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value is None or hasattr(type(value), "__bool__"):  # numbers, numpy's bools; no strings, no lists
        return bool(value)
    raise Uncastable("Unable to cast {!r} to bool", value)


def _str(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise Uncastable("Unable to cast {!r} to str", value)


_CONVERT: dict[str, Convert] = {
    "Tensor": _tensor,
    "Scalar": _scalar,
    "int": _int,
    "SymInt": _int,
    "float": _float,
    "bool": _bool,
    "str": _str,
}


@pure
def is_default(value: Any, default: Any) -> bool:
    """Whether a value is the default: of the same type, too, and of the same sign where it is zero."""
    if value is default:
        return True
    return type(value) is type(default) and value == default and (value != 0 or str(value) == str(default))


@pure
def default_of(argument: Argument) -> Any:
    """The default as kernels see it. A schema writes a dtype, layout or memory format as PyTorch's number for it."""
    default, type_ = argument.default, argument.type
    if type(default) is int:
        name = getattr(type_.elem if isinstance(type_, OptionalType) else type_, "name", "")
        if name in ("ScalarType", "Layout", "MemoryFormat"):
            return converter(type_)(default)
    return default
