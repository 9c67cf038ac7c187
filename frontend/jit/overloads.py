"""The overload that a call means: the first whose schema its arguments fit, the registry's before TorchScript's own.

Each is tried without conversions, and if none fits, with those that PyTorch allows: a tensor for a number, a number
for a tensor. Where none fits still, the error lists each with its reason. Read next: expressions.py.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.core.registry import LATE, OVERLOADS, load_late
from redispatch.dispatch.schema.convert import NUMBER_FOR_TENSOR, default_of
from redispatch.dispatch.schema.schema import (
    INT,
    NO_DEFAULT,
    NONE,
    TENSOR,
    Argument,
    BaseType,
    DictType,
    GenericType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    VarType,
)

from .builtins import BUILTINS, CODES, ENUMS
from .graph import Graph, Node, Value
from .source import Place, ScriptError
from .types import (
    AS_INTS,
    COMPLEX,
    DEVICE,
    FLOAT,
    NUMBER,
    NUMBERS,
    STR,
    EnumType,
    is_subtype,
    mapped,
    members,
    normal,
    shown,
    spoken,
    unified,
)


class Unfit(Exception):
    """The reason why an overload does not fit."""


def candidates(name: str) -> list[Any]:
    """Returns the overloads of "aten::add": operators and TorchScript's own."""
    if name not in OVERLOADS and LATE:
        load_late(name)
    found = list(OVERLOADS.get(name, {}).values())
    return [*found, *BUILTINS.get(name, ())]


class Emitter:
    """Appends nodes to `graph`: to `block`, its block that is being written.

    The compiler is one class, of which each file from here to classes.py has a part. Fields: `env` (name -> value),
    `find` (name -> Python object), `undefined` (name -> why), `casts` (value -> the wider one that it was), `depth` (of
    loops), `unit` (classes.Compiler).
    """

    graph: Graph
    block: Any
    env: dict[str, Any]
    undefined: dict[str, Any]
    casts: dict[Value, Value]
    returns: Type | None
    depth: int
    find: Any
    source: Any
    unit: Any

    # of the files that follow
    statements: Any
    condition: Any
    expr: Any
    value: Any
    place: Any
    as_value: Any
    attribute: Any
    python_attribute: Any
    annotation: Any
    assign: Any
    binary: Any
    literal: Any
    plain_loop: Any
    truth: Any
    tuple_of: Any
    unpacked: Any

    def node(
        self,
        kind: str,
        inputs: list[Value],
        results: list[Type],
        place: Place | None,
        op: Any = None,
        **attributes: Any,
    ) -> Node:
        """Appends a node with results of these types."""
        made = Node(self.graph, kind, inputs, place, op, **attributes)
        for one in results:
            made.add_output(one)
        self.block.nodes_.append(made)
        return made

    def constant(self, value: Any, kind: Type | None = None, place: Place | None = None) -> Value:
        return self.graph.constant(value, kind, place)

    # Calls of operators ---------------------------------------------------------------------------------------

    def call(
        self, name: str, args: list[Value], kwargs: dict[str, Value], place: Place | None, ops: list[Any] | None = None
    ) -> Value:
        """Appends the call of an operator by name; RuntimeError with all overloads where none fits."""
        ops = candidates(name) if ops is None else ops
        if name in ("aten::eq", "aten::ne") and args:
            if isinstance(args[0].type, EnumType) and args[0].type == args[-1].type:
                ops = [ENUMS[name]]
            elif any(one.type in AS_INTS for one in args):  # which may be numbers, and fit where those do
                ops = [CODES[name]]
        problems = []
        for conversions in (False, True):
            for op in ops:
                taken, mark = len(self.block.nodes_), dict(self.graph.constants)
                try:
                    return self._called(op, args, kwargs, place, conversions)
                except Unfit as problem:
                    self._undone(taken, mark)
                    if not conversions:
                        problems.append((op, str(problem)))
        text = _listed(problems)
        where = f"The original call is:\n{place.pointed()}\n" if place is not None else ""
        raise ScriptError(f"\nArguments for call are not valid.\n{text}\n{where}")

    def _undone(self, taken: int, mark: dict[Any, Value]) -> None:
        """Takes back what an overload that did not fit had appended."""
        added = len(self.graph.constants) - len(mark)
        if self.block is self.graph:
            taken += added
        del self.block.nodes_[taken:]

    def _called(
        self, op: Any, args: list[Value], kwargs: dict[str, Value], place: Place | None, conversions: bool
    ) -> Value:
        schema = op.schema
        inputs, known = self.matched(schema, args, kwargs, place, conversions)
        results = [replaced(normal(one.type), known) for one in schema.returns]
        made = self.node(schema.name, inputs, results or [NONE], place, op)
        if len(results) > 1:
            packed = self.node("prim::TupleConstruct", made.output_values, [TupleType(tuple(results))], place)
            return packed.output()
        return made.output()

    def matched(
        self, schema: Any, args: list[Value], kwargs: dict[str, Value], place: Place | None, conversions: bool = True
    ) -> tuple[list[Value], dict[str, Type]]:
        """Returns the values for a schema's arguments, and the types of its variables; Unfit where they do not fit."""
        left = dict(kwargs)
        inputs: list[Value] = []
        known: dict[str, Type] = {}
        used = 0
        count = sum(not one.kwarg_only for one in schema.arguments)
        for place_of, argument in enumerate(schema.arguments):
            if not argument.kwarg_only and used < len(args):
                if argument.name in left:
                    raise Unfit(f"argument '{argument.name}' specified twice.")
                rest = args[used:]
                if self._is_spread(argument, rest, place_of == count - 1):
                    value = self.node("prim::ListConstruct", rest, [ListType(rest[0].type)], place).output()
                    used = len(args)
                else:
                    value = args[used]
                    used += 1
            elif argument.name in left:
                value = left.pop(argument.name)
            elif argument.name == "self" and "input" in left and "::" in schema.name:
                value = left.pop("input")
            elif argument.default is not NO_DEFAULT:
                inputs.append(self.constant(default_of(argument), self._default_type(argument)))
                continue
            else:
                raise Unfit(f"Argument {argument.name} not provided.")
            inputs.append(self.fitted(value, argument, known, place, conversions, schema.name))
        if schema.is_vararg:
            return inputs + args[used:], known
        if used < len(args):
            raise Unfit(f"Expected at most {count} arguments but found {len(args)} positional arguments.")
        if left:
            raise Unfit(f"Unknown keyword argument '{next(iter(left))}'.")
        return inputs, known

    @staticmethod
    def _default_type(argument: Argument) -> Type:
        if argument.default is None:
            return NONE
        kind = normal(argument.type)
        kind = kind.elem if isinstance(kind, OptionalType) else kind
        return (
            {bool: BaseType("bool"), int: INT, float: FLOAT}.get(type(argument.default), kind)
            if kind == NUMBER
            else kind
        )

    @staticmethod
    def _is_spread(argument: Argument, rest: list[Value], last: bool) -> bool:
        """Whether the last arguments stand for a list: `x.view(2, 3)`, `chain_matmul(x, y)`."""
        kind = normal(argument.type)
        kind = kind.elem if isinstance(kind, OptionalType) else kind
        if not isinstance(kind, ListType) or has_variables(kind) or not last or argument.N is not None:
            return False
        return all(is_subtype(one.type, kind.elem) for one in rest)

    def fitted(
        self,
        value: Value,
        argument: Argument,
        known: dict[str, Type],
        place: Place | None,
        conversions: bool,
        name: str,
    ) -> Value:
        """Returns a value as an argument takes it, converted where that is allowed. Unfit for another type."""
        formal, actual = normal(argument.type), value.type
        if has_variables(formal):
            problem = bound(formal, actual, known)
            if problem:
                raise Unfit(
                    f"Could not match type {spoken(actual)} to {spoken(formal)} in argument '{argument.name}': "
                    f"{problem}."
                )
            return value
        target = formal.elem if isinstance(formal, OptionalType) else formal
        if is_subtype(actual, formal):
            return value
        made = self.fitted_list(value, argument, target, place) if isinstance(target, ListType) else None
        if made is not None:
            return made
        if target == NUMBER and actual == BaseType("bool") and conversions:
            return value
        if conversions and actual == TENSOR and target in (INT, FLOAT, COMPLEX, NUMBER):
            word = {INT: "Int", FLOAT: "Float", COMPLEX: "Complex", NUMBER: "Scalar"}[target]
            return self.call(f"aten::{word}Implicit", [value], {}, place)
        if conversions and target == FLOAT and actual == INT and name.startswith("aten::"):
            return self.call("aten::Float", [value], {}, place)
        if conversions and target == TENSOR and actual in (*NUMBERS, NUMBER) and name in NUMBER_FOR_TENSOR:
            return value
        if target == DEVICE and actual == STR:
            return self.call("aten::device", [value], {}, place)
        raise Unfit(
            f"Expected a value of type '{spoken(formal)}' for argument '{argument.name}' but instead found type "
            f"'{spoken(actual)}'."
        )

    def fitted_list(self, value: Value, argument: Argument, target: ListType, place: Place | None) -> Value | None:
        """Returns a value as the list that an argument takes: one number for all, a tuple, an empty list."""
        actual = value.type
        if argument.N is not None and is_subtype(actual, target.elem):  # one number for all
            return self.node("prim::ListConstruct", [value] * argument.N, [ListType(actual)], place).output()
        if isinstance(actual, TupleType) and actual.elems and all(is_subtype(one, target.elem) for one in actual.elems):
            parts = self.node("prim::TupleUnpack", [value], list(actual.elems), place).output_values
            return self.node("prim::ListConstruct", parts, [target], place).output()
        if (
            actual == ListType(TENSOR)
            and target.elem in (INT, FLOAT)
            and value.node is not None
            and not value.node.input_values
        ):
            return self.node("prim::ListConstruct", [], [target], place).output()
        if (
            isinstance(actual, ListType)
            and isinstance(target.elem, OptionalType)
            and is_subtype(actual.elem, target.elem)
        ):
            return value
        if isinstance(actual, ListType) and target.elem == NUMBER and is_subtype(actual.elem, NUMBER):
            return value
        return None


def _listed(problems: list[tuple[Any, str]]) -> str:
    lines = "".join(f"  {op.schema}:\n  {problem}\n  \n" for op, problem in problems)
    return f"The following variants are available:\n  \n{lines}".rstrip(" ")


# Type variables -------------------------------------------------------------------------------------------------------


def has_variables(kind: Type) -> bool:
    return isinstance(kind, VarType) or any(map(has_variables, kind.containedTypes()))


def bound(formal: Type, actual: Type, known: dict[str, Type]) -> str:
    """Finds the types of a formal type's variables; returns why that cannot be, or nothing."""
    if isinstance(formal, VarType):
        both = unified(known[formal.name], actual) if formal.name in known else actual
        if both is None or (formal.name in known and not is_subtype(actual, known[formal.name])):
            former = spoken(known[formal.name])
            return (
                f"Type variable '{formal.name}' previously matched to type {former} is matched to type {spoken(actual)}"
            )
        known.setdefault(formal.name, actual)
        return ""
    if isinstance(formal, OptionalType):
        inner = [one for one in members(actual) if one != NONE]
        return bound(formal.elem, inner[0], known) if inner else ""
    if isinstance(formal, ListType):
        if isinstance(actual, ListType):
            return bound(formal.elem, actual.elem, known)
        return f"Cannot match {spoken(formal)} to {spoken(actual)}"
    if isinstance(formal, DictType):
        if isinstance(actual, DictType):
            return bound(formal.key, actual.key, known) or bound(formal.value, actual.value, known)
        return f"Cannot match a dict to {spoken(actual)}"
    if isinstance(formal, TupleType):
        if isinstance(actual, TupleType) and len(actual.elems) == len(formal.elems):
            return next(filter(None, (bound(f, a, known) for f, a in zip(formal.elems, actual.elems, strict=True))), "")
        return f"Cannot match a tuple to {spoken(actual)}"
    if isinstance(formal, GenericType):
        if isinstance(actual, GenericType) and actual.name == formal.name:
            return bound(formal.elems[0], actual.elems[0], known)
        return f"Cannot match a {formal.name.lower()} to {spoken(actual)}"
    return "" if is_subtype(actual, formal) else f"Cannot match {shown(formal)} to {spoken(actual)}"


def replaced(kind: Type, known: dict[str, Type]) -> Type:
    """Returns a type with its variables filled in."""
    return mapped(kind, lambda one: known[one.name] if isinstance(one, VarType) else one)
