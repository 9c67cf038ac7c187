"""Calls that read their own arguments: annotate, isinstance, getattr, fork and the like.

Read next: calls.py.
"""

from __future__ import annotations

import ast
from typing import Any

from redispatch.dispatch.schema.schema import ANY, NONE, TENSOR, DictType, GenericType, ListType, TupleType, Type

from . import marks
from .graph import Value
from .iterating import Iterations
from .overloads import Unfit
from .source import Place, fail
from .sugared import Condition, Forked, Method, Py
from .types import BOOL, NUMBERS, NamedTupleType, ObjectType, is_subtype, members, spoken, union

OPERATORS = {"unwrap_optional": "aten::_unwrap_optional", "wait": "aten::wait", "warn": "aten::warn"}


class Specials(Iterations):
    """Reads these calls."""

    def special(self, function: Any, node: ast.Call) -> Any:
        """Reads the calls whose arguments are no values; NotImplemented for others."""
        name = marks.special_name(function)
        if name in OPERATORS:
            return self.call(OPERATORS[name], [self.value(node.args[0])], {}, self.place(node))
        if name in ("isinstance", "hasattr", "is_scripting", "is_tracing"):
            return self.truth(self.static_call(node))
        if name == "range":
            return self.ranged([self.value(one) for one in node.args], node)
        return NotImplemented if name is None else getattr(self, f"special_{name}")(node, *node.args)

    def special_annotate(self, node: ast.Call, annotation: ast.expr, value: ast.expr) -> Value:
        kind = self.annotation(annotation)
        return self.widened(self.value(value, kind), kind, self.place(node))

    def special_unchecked_cast(self, node: ast.Call, annotation: ast.expr, value: ast.expr) -> Value:
        kind = self.annotation(annotation)
        return self.node("prim::unchecked_cast", [self.value(value)], [kind], self.place(node)).output()

    def special_uninitialized(self, node: ast.Call, annotation: ast.expr) -> Value:
        return self.node("prim::Uninitialized", [], [self.annotation(annotation)], self.place(node)).output()

    def special_getattr(self, node: ast.Call, of: ast.expr, name: ast.expr, *default: ast.expr) -> Any:
        owner, attribute, place = self.expr(of), self.known_text(name), self.place(node)
        if attribute is None:
            fail(place, "getattr's second argument must be a string literal")
        if isinstance(owner, Py):
            return self.python_attribute(owner.object, attribute, place)
        if default and attribute not in getattr(owner.type, "attributes", {}):
            return self.expr(default[0])
        return self.attribute(owner, attribute, place)

    def special_fork(self, node: ast.Call, called: ast.expr, *args: ast.expr) -> Value:
        callee, values, place = self.expr(called), [self.value(one) for one in args], self.place(node)
        named = {one.arg: self.value(one.value) for one in node.keywords if one.arg}
        if isinstance(callee, Forked):
            function, values = callee.function, [*callee.values, *values]
        elif isinstance(callee, Py):
            function = self.unit.function(callee.object, place, self)
        elif isinstance(callee, Method):
            function = self.unit.method(callee.self.type, callee.name, place, self)
            values = [callee.self, *values]
        elif isinstance(callee, Value) and isinstance(callee.type, ObjectType):
            function, values = self.unit.method(callee.type, "forward", place, self), [callee, *values]
        else:
            fail(place, "fork takes a function or a method of the program")
        try:
            inputs, _ = self.matched(function.schema, values, named, place)
        except Unfit as problem:
            fail(place, f"fork: {problem}")
        kind = GenericType("Future", (function.schema.returns[0].type,))
        return self.node("prim::fork", inputs, [kind], place, name=function.name, value=function).output()

    def known_text(self, node: ast.expr) -> str | None:
        """Returns a string that is known while the program is compiled, or None."""
        if isinstance(node, ast.JoinedStr):
            parts = [self.known_text(one.value if isinstance(one, ast.FormattedValue) else one) for one in node.values]
            return None if None in parts else "".join(map(str, parts))
        found = Py(node.value) if isinstance(node, ast.Constant) else self.expr(node)
        return str(found.object) if isinstance(found, Py) and isinstance(found.object, str | int) else None

    def widened(self, value: Value, kind: Type, place: Place, name: str = "") -> Value:
        """Returns a value as one of a wider type that the program declares."""
        if value.node is not None and value.type == NONE:
            return self.constant(None, kind)
        if value.type == kind:
            return value
        if value.type == TENSOR and kind in NUMBERS:
            return self.call(f"aten::{spoken(kind).capitalize()}Implicit", [value], {}, place)
        empty = value.node is not None and not value.node.input_values
        if value.node is not None and value.node._kind in ("prim::ListConstruct", "prim::DictConstruct") and empty:
            value.type = next((one for one in members(kind) if type(one) is type(value.type)), value.type)
        if not is_subtype(value.type, kind):
            fail(
                place,
                f"Variable {name and repr(name) + ' '}is annotated with type {spoken(kind)} but is being assigned to a "
                f"value of type {spoken(value.type)}",
            )
        return self.node("prim::unchecked_cast", [value], [kind], place).output()

    def static_call(self, node: ast.Call) -> Any:
        """Reads a call that says something of types: isinstance, hasattr, is_scripting. None for others."""
        callee = self.expr(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else None
        name = marks.special_name(callee.object) if isinstance(callee, Py) else None
        if name in ("is_scripting", "is_tracing"):
            return Condition(None, name == "is_scripting")
        if name == "hasattr":
            owner, attribute = self.value(node.args[0]), node.args[1].value  # type: ignore[attr-defined]  # a constant
            kind = owner.type
            known = isinstance(kind, ObjectType) and (
                attribute in (*kind.attributes, *kind.constants)
                or self.unit.has_method(kind, attribute)
                or self.unit.has_method(kind, f"__{attribute}_getter")
            )
            return Condition(None, bool(known or (isinstance(kind, NamedTupleType) and attribute in kind.fields)))
        if name != "isinstance":
            return None
        subject = self.value(node.args[0])
        asked = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        kinds = [self.asked_type(one, subject.type) for one in asked]
        own = members(subject.type)
        yes = [one for one in own if any(is_subtype(one, kind) for kind in kinds)]
        no = [one for one in own if one not in yes]
        if subject.type == ANY:
            yes, no = kinds, [subject.type]
        elif not no or not yes:
            return Condition(None, not no)
        made = self.node("prim::isinstance", [subject], [BOOL], self.place(node), types=kinds)
        first = node.args[0].id if isinstance(node.args[0], ast.Name) else ""
        return Condition(made.output(), None, {first: union(yes)}, {first: union(no)})

    def asked_type(self, node: ast.expr, subject: Type) -> Type:
        """Returns the type that `isinstance` asks for; a bare `list` is any list."""
        found = self.expr(node) if isinstance(node, ast.Name) else None
        bare = {list: ListType, tuple: TupleType, dict: DictType}.get(found.object) if isinstance(found, Py) else None
        if bare is not None:
            return next((one for one in members(subject) if isinstance(one, bare)), ListType(NONE))
        return self.annotation(node)
