"""The classes of schemas' types under PyTorch's names: `isinstance(argument.type, ListType)`, `TensorType.get()`.

Their instances are the dispatcher's own types (dispatch/schema/schema.py), which say by `kind()` of which class they
are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from redispatch.dispatch.schema import schema
from redispatch.dispatch.schema.schema import BaseType

from .._names import own


class Kind(type):
    """The metaclass: a type is an instance of the class that its `kind()` names, and each of `Type`."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, schema.Type) and cls.__name__ in ("Type", value.kind())


class Type(metaclass=Kind):
    """Any type of a schema."""


def named(kind: str, name: str) -> Any:
    """Returns the class of a type without parts."""
    return Kind(kind, (Type,), {"get": staticmethod(lambda: BaseType(name)), "__module__": __name__})


AnyType = named("AnyType", "Any")
BoolType = named("BoolType", "bool")
ComplexType = named("ComplexType", "complex")
DeviceObjType = named("DeviceObjType", "Device")
FloatType = named("FloatType", "float")
IntType = named("IntType", "int")
NoneType = named("NoneType", "NoneType")
NumberType = named("NumberType", "Scalar")
StreamObjType = named("StreamObjType", "Stream")
StringType = named("StringType", "str")
TensorType = named("TensorType", "Tensor")


class OptionalType(Type):
    """A type, or None."""

    def __new__(cls, element: schema.Type) -> Any:
        return schema.OptionalType(element)

    @staticmethod
    def ofTensor() -> schema.Type:
        return schema.OptionalType(BaseType("Tensor"))


def of(name: str) -> Callable[[], schema.Type]:
    return staticmethod(lambda: schema.ListType(BaseType(name)))


class ListType(Type):
    """Any number of values of one type."""

    def __new__(cls, element: schema.Type) -> Any:
        return schema.ListType(element)

    ofBools, ofFloats, ofInts = of("bool"), of("float"), of("int")
    ofComplexDoubles, ofStrings, ofTensors = of("complex"), of("str"), of("Tensor")


class TupleType(Type):
    """One value for each of several types."""

    def __new__(cls, elements: Iterable[schema.Type]) -> Any:
        return schema.TupleType(tuple(elements))


class DictType(Type):
    """Keys of one type, and values of another."""

    def __new__(cls, key: schema.Type, value: schema.Type) -> Any:
        return schema.DictType(key, value)


__all__ = [name for name in own(globals()) if name.endswith("Type")]
