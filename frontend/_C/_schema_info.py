"""`_C._SchemaInfo`: what a schema says of a call of which some arguments are known.

By itself a schema says which arguments are written and which arguments and results share memory. Where two arguments of
a call are one tensor, what holds of one of them holds of the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from redispatch.dispatch import Argument, FunctionSchema
from redispatch.dispatch.schema.schema import DictType, ListType, OptionalType, TupleType, Type
from redispatch.dispatch.tensor import Tensor

# Statistics that these write in training, while their schemas say nothing of it
RUNNING = ("running_mean", "running_var")
WRITE_RUNNING = ("aten::native_batch_norm", "aten::batch_norm", "aten::instance_norm", "aten::_batch_norm_impl_index")
TRAINS = ("training", "train", "use_input_stats")  # the flags of operators that write statistics


class _SchemaArgType(Enum):
    """Whether a `_SchemaArgument` is an argument or a result."""

    input = 0
    output = 1


@dataclass(frozen=True)
class _SchemaArgument:
    """A place of a schema."""

    type: _SchemaArgType
    index: int


class _SchemaInfo:
    """A schema, and the arguments of a call as far as they are known."""

    def __init__(self, schema: FunctionSchema) -> None:
        self.schema = schema
        self.values: dict[str, Any] = {}

    def add_argument_value(self, name: str, value: Any) -> None:
        """Tells an argument of the call. RuntimeError where the schema has none of that name."""
        if not self.has_argument(name):
            raise RuntimeError(f"Schema has no argument named {name}")
        self.values[name] = value

    def add_argument_values(self, values: Mapping[str, Any]) -> None:
        """Tells arguments by name; those that the schema has not are passed over."""
        self.values.update({name: value for name, value in values.items() if self.has_argument(name)})

    def has_argument(self, name: str) -> bool:
        return any(argument.name == name for argument in self.schema.arguments)

    def is_mutable(self, asked: _SchemaArgument | str | None = None) -> bool:
        """Returns whether the call may write an argument, by place or name; without one, whether it may write any."""
        if asked is None:
            return any(self.is_mutable(argument.name) for argument in self.schema.arguments)
        if isinstance(asked, str):
            if not self.has_argument(asked):
                raise RuntimeError(f"Schema has no argument named {asked}")
            names = [argument.name for argument in self.schema.arguments]
            asked = _SchemaArgument(_SchemaArgType.input, names.index(asked))
        self._at(asked)
        return any(
            self._writes(argument)
            for place, argument in self._places(_SchemaArgType.input)
            if self.may_alias(asked, place)
        )

    def may_alias(self, one: _SchemaArgument, other: _SchemaArgument) -> bool:
        """Returns whether two places may hold the same memory."""
        return bool(self._kin(one) & self._kin(other)) or self._share_a_set(one, other)

    def may_contain_alias(self, one: _SchemaArgument, other: _SchemaArgument) -> bool:
        """Returns whether two places, or elements of lists there, may hold the same memory."""
        return self.may_alias(one, other) or self._holds(one, other) or self._holds(other, one)

    def _places(self, kind: _SchemaArgType) -> list[tuple[_SchemaArgument, Argument]]:
        listed = self.schema.arguments if kind is _SchemaArgType.input else self.schema.returns
        return [(_SchemaArgument(kind, index), argument) for index, argument in enumerate(listed)]

    def _at(self, place: _SchemaArgument) -> Argument:
        places = self._places(place.type)
        if not 0 <= place.index < len(places):
            raise RuntimeError(f"Invalid index for schema. {self.schema} has {len(places)} {place.type.name}s")
        return places[place.index][1]

    def _writes(self, argument: Argument) -> bool:
        """Returns whether the schema has it written; the statistics of a norm are, unless the call does not train."""
        if argument.name in RUNNING and self.schema.name in WRITE_RUNNING:
            return all(self.values.get(name, True) for name in TRAINS)
        return argument.is_write

    def _share_a_set(self, one: _SchemaArgument, other: _SchemaArgument) -> bool:
        """Returns whether the schema gives both places a letter."""
        first, second = self._at(one), self._at(other)
        return bool(_shared(first.type) & _shared(second.type) and _after(first) & _after(second))

    def _kin(self, place: _SchemaArgument) -> set[int]:
        """Returns the positions of the arguments that have the memory of a place."""
        self._at(place)
        if place.type is _SchemaArgType.output:
            inputs = self._places(_SchemaArgType.input)
            shared = [one for one, _ in inputs if self._share_a_set(one, place)]
            return {position for one in shared for position in self._kin(one)}
        here = self.schema.arguments[place.index]
        known = self.values.get(here.name)
        return {
            other.index
            for other, argument in self._places(_SchemaArgType.input)
            if _shared(here.type) & _shared(argument.type)
            and (other == place or self._share_a_set(place, other) or same(known, self.values.get(argument.name)))
        }

    def _holds(self, one: _SchemaArgument, other: _SchemaArgument) -> bool:
        """Returns whether elements of a list at `one` may hold the memory at `other`, or that of elements there.

        What a list holds may be in any other list of such elements.
        """
        holder, held = self._at(one), self._at(other)
        inside = _elements(holder.type)
        if not inside or inside & _elements(held.type):
            return bool(inside)
        contained = holder.alias_info.contained if holder.alias_info is not None else None
        names = {"*"} | (contained.after if contained is not None else frozenset())
        tied = [held, *(self.schema.arguments[position] for position in self._kin(other))]
        return bool(inside & _shared(held.type)) and any(names & _after(argument) for argument in tied)


def _after(argument: Argument) -> frozenset[str]:
    return argument.alias_info.after if argument.alias_info is not None else frozenset()


def _shared(type: Type) -> set[str]:
    """Returns the types of memory that values of a type are: tensors, and lists themselves."""
    if isinstance(type, OptionalType):
        return _shared(type.elem)
    if isinstance(type, TupleType):
        return {one for element in type.elems for one in _shared(element)}
    return {str(type)} if isinstance(type, ListType | DictType) or str(type) == "Tensor" else set()


def _elements(type: Type) -> set[str]:
    """Returns the types that lists and dictionaries of a type hold; a size is a number."""
    if isinstance(type, OptionalType):
        return _elements(type.elem)
    parts = (type.elem,) if isinstance(type, ListType) else (type.key, type.value) if isinstance(type, DictType) else ()
    return {one.replace("SymInt", "int") for part in parts for one in {str(part)} | _shared(part) | _elements(part)}


def same(one: Any, other: Any) -> bool:
    """Returns whether two values are tensors of one memory."""
    return isinstance(one, Tensor) and isinstance(other, Tensor) and one._storage is other._storage
