"""Calls and attributes in a program: operators, methods, functions of the program, classes, modules.

Read next: classes.py, which makes types of classes and modules; statements.py.
"""

from __future__ import annotations

import ast
import builtins
import enum
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import redispatch
from redispatch import nn
from redispatch.dispatch.schema.schema import (
    NONE,
    TENSOR,
    DictType,
    GenericType,
    ListType,
    OptionalType,
    TupleType,
    Type,
)
from redispatch.dispatch.tensor import Tensor

from . import marks
from .builtins import BY_NAME
from .graph import Value
from .overloads import Unfit, candidates
from .source import Place, ScriptError, UnsupportedNodeError, fail
from .special import Specials
from .sugared import (
    SAME,
    Functional,
    Method,
    Names,
    New,
    Op,
    Py,
    Several,
    is_library,
    member,
    of_object,
)
from .types import (
    STR,
    EnumType,
    NamedTupleType,
    ObjectType,
    is_subtype,
    normal,
    of_annotation,
    of_value,
    python_method,
    spoken,
)

# Attributes of tensors that are operators of another name; the others are `prim::dtype` and the like, or `aten::real`
ATTRIBUTE_OPS = {"shape": "aten::size", "ndim": "aten::dim", "T": "aten::numpy_T", "H": "aten::matrix_H"}
COMPUTED = ("mT", "mH", "real", "imag")


class Calls(Specials):
    """Reads calls and attributes."""

    def unsupported(self, node: Any) -> NoReturn:
        raise UnsupportedNodeError(Place(self.source, node), f"{marks.spoken_syntax(node)} aren't supported")

    def constant_type(self, found: Any) -> Type | None:
        """Returns the type of a Python object that may stand as a constant, or None."""
        if not isinstance(found, Py) or isinstance(found.object, Tensor | type):
            return None
        if isinstance(found.object, enum.Enum):
            return self.unit.type_of_class(type(found.object))
        return of_value(found.object, lambda kind: None)

    def annotation(self, node: ast.expr) -> Type:
        try:
            return of_annotation(node, self.find, self.unit.type_of_class)
        except (ValueError, AttributeError) as problem:
            fail(self.place(node), str(problem))

    def unpacked(self, value: Value, node: Any, place: Place | None = None) -> list[Value]:
        """Returns the members of a tuple."""
        kind = value.type
        if not isinstance(kind, TupleType):
            fail(place or self.place(node), f"{spoken(kind)} cannot be used as a tuple")
        if value.node is not None and value.node._kind == "prim::TupleConstruct":
            return value.node.input_values
        return self.node("prim::TupleUnpack", [value], list(kind.elems), place or self.place(node)).output_values

    # Attributes -----------------------------------------------------------------------------------------------

    def read_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.expr(node.value)
        if isinstance(owner, Py):
            return self.python_attribute(owner.object, node.attr, self.place(node))
        if not isinstance(owner, Value):
            owner = self.as_value(owner, node.value)
        return self.attribute(owner, node.attr, self.place(node))

    def python_attribute(self, owner: Any, name: str, place: Place) -> Any:
        """Returns what a name of a Python object is. A text of an archive has only the names that text.py knows."""
        if isinstance(owner, Names):
            found = owner.member(name)
            if isinstance(found, Tensor):
                return self.constant(found, TENSOR, place)
            return found if isinstance(found, Op | Functional) else Py(found)
        if isinstance(owner, ObjectType) and name == "__new__":
            return New(owner)
        if isinstance(owner, EnumType) and name in owner.python.__members__:
            return Py(owner.python.__members__[name])
        if getattr(self.find, "strict", False):
            fail(place, f"a program of an archive has no {name} of a {type(owner).__name__}")
        if owner in (redispatch, redispatch.ops.prim) and not hasattr(owner, name):
            word = f"{'aten' if owner is redispatch else 'prim'}::{name}"
            if candidates(word):
                return Op(word)
        if not hasattr(owner, name):
            fail(
                place,
                f"python value of type '{type(owner).__name__}' cannot be used as a value: it has no attribute '{name}'"
                if not inspect.ismodule(owner)
                else f"object has no attribute {name}",
            )
        if inspect.ismodule(owner) and is_library(owner):
            return member(owner, name)
        found = getattr(owner, name)
        return (
            member(owner, name)
            if is_library(type(owner)) and not isinstance(owner, nn.Module) and callable(found)
            else of_object(found)
        )

    def attribute(self, owner: Value, name: str, place: Place) -> Any:
        """Returns an attribute of a value: of a tensor, a module, an instance, a named tuple."""
        kind = owner.type
        if isinstance(kind, NamedTupleType) and name in kind.fields:
            index = kind.fields.index(name)
            return self.node("prim::TupleIndex", [owner, self.constant(index)], [kind.elems[index]], place).output()
        if isinstance(kind, ObjectType):
            return self.object_attribute(owner, kind, name, place)
        if isinstance(kind, TupleType) and owner.node is not None and owner.node._kind == "prim::TupleConstruct":
            for one in owner.node.input_values:  # an operator's results have names
                schema = getattr(one.node and one.node.op, "schema", None)
                if schema is not None and name in [each.name for each in schema.returns]:
                    return owner.node.input_values[[each.name for each in schema.returns].index(name)]
        if isinstance(kind, EnumType) and name in ("name", "value"):
            if name == "name":
                return self.call("prim::EnumName", [owner], {}, place)
            return self.node("prim::EnumValue", [owner], [kind.value_type()], place).output()
        if kind == TENSOR and (name in ATTRIBUTE_OPS or name in COMPUTED):
            return self.call(ATTRIBUTE_OPS.get(name, f"aten::{name}"), [owner], {}, place)
        own = BY_NAME.get(f"prim::{name}")
        if own is not None and own.schema.arguments[0].type == kind:
            return self.call(f"prim::{name}", [owner], {}, place, [own])
        if isinstance(kind, GenericType) and kind.name == "Future" and name == "wait":
            return Method(owner, name)
        if candidates(f"aten::{name}") and not isinstance(kind, OptionalType):
            return Op(f"aten::{name}", owner)
        fail(place, f"'{spoken(kind)}' object has no attribute or method '{name}'.")

    def object_attribute(self, owner: Value, kind: ObjectType, name: str, place: Place) -> Any:
        if name in kind.attributes:
            found = kind.attributes[name]
            if found == NONE:
                return self.constant(None)
            return self.node("prim::GetAttr", [owner], [found], place, name=name).output()
        if name in kind.constants:
            return of_object(kind.constants[name])
        if self.unit.has_method(kind, f"__{name}_getter"):
            return self.call_method(owner, f"__{name}_getter", [], {}, place)
        if self.unit.has_method(kind, name):
            return Method(owner, name)
        fail(
            place,
            f"{'Module' if kind.is_module else 'Class'} '{kind.name.rpartition('.')[2]}' has no attribute "
            f"'{name}' {self.unit.why_no_attribute(kind, name)}",
        )

    def module_item(self, owner: Value, node: ast.Subscript) -> Any:
        """Reads `modules[1]`, `modules["name"]`: which one is known while the program is compiled."""
        names = self.unit.children(owner.type)
        if isinstance(node.slice, ast.Slice):
            kept = names[self.known_slice(node.slice)]  # type: ignore[attr-defined]  # of the file above
            return Several([self.attribute(owner, name, self.place(node)) for name in kept])
        found = self.value(node.slice)
        if found.node is None or found.node._kind != "prim::Constant":
            of_dict = self.unit.iterates(owner.type) == "keys"
            fail(
                self.place(node),
                "Unable to extract string literal index. ModuleDict indexing is only supported with string literals. "
                "For example, 'i = \"a\"; self.layers[i](x)' will fail because i is not a literal. Enumeration of "
                "ModuleDict is supported, e.g. 'for k, v in self.items(): out = v(inp)'"
                if of_dict
                else "Expected integer literal for index but got a variable or non-integer. ModuleList/Sequential "
                "indexing is only supported with integer literals. For example, 'i = 4; self.layers[i](x)' will fail "
                "because i is not a literal. Enumeration is supported, e.g. 'for index, v in enumerate(self): "
                "out = v(inp)'",
            )
        key = found.node.attributes["value"]
        name = names[key] if type(key) is int and -len(names) <= key < len(names) else key
        if name not in names:
            fail(
                self.place(node),
                f"Key Error, {key}"
                if isinstance(key, str)
                else f"Index {key} out of range of modules: there are {len(names)}",
            )
        return self.attribute(owner, name, self.place(node))

    # Calls ----------------------------------------------------------------------------------------------------

    def read_Call(self, node: ast.Call, hint: Type | None = None) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return Py(super)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "tolist" and not node.args:
            owner = self.expr(node.func.value)
            if isinstance(owner, Value) and owner.type == TENSOR:
                if hint is None:
                    fail(self.place(node), "Expected type hint for result of tolist()")
                return self.node("prim::tolist", [owner], [hint], self.place(node)).output()
        callee = self.expr(node.func)
        if isinstance(callee, Py):
            special = self.special(callee.object, node)
            if special is not NotImplemented:
                return special
        args: list[Any] = []
        for one in node.args:
            if isinstance(one, ast.Starred):
                found = self.expr(one.value)
                args += (
                    found.items if isinstance(found, Several) else self.unpacked(self.as_value(found, one.value), one)
                )
            else:
                args.append(self.expr(one))
        kwargs = {one.arg: self.expr(one.value) for one in node.keywords if one.arg is not None}
        if len(kwargs) != len(node.keywords):
            self.unsupported(node)
        return self.called(callee, args, kwargs, node)

    def called(self, callee: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        """Returns the result of a call whose arguments are read."""
        place = self.place(node.func)
        if isinstance(callee, Value) and isinstance(callee.type, ObjectType) and not callee.type.is_module:
            callee = Method(callee, "__call__")
        if isinstance(callee, Several) and all(isinstance(one, Value) for one in callee.items):  # a slice of modules
            for one in callee.items:
                args = [self.called(one, args, {}, node)]
            return args[0]
        if isinstance(callee, New):
            return self.node("prim::CreateObject", [], [callee.kind], place).output()
        if (
            isinstance(callee, Py)
            and callee.object in (builtins.list, builtins.dict, builtins.tuple, enumerate, zip, reversed)
            and args
        ):
            return self.container(callee.object, args, kwargs, node)
        values = [self.as_value(one, node) for one in args]
        named = {name: self.as_value(one, node) for name, one in kwargs.items()}
        if isinstance(callee, Op) and callee.name == "prim::ModuleCall":
            return self.module_call(values, place)
        if isinstance(callee, Op):
            first = [] if callee.self is None else [callee.self]
            return self.call(callee.name, [*first, *values], named, place, callee.overloads)
        if isinstance(callee, Value) and isinstance(callee.type, ObjectType):
            return self.call_module(callee, values, named, node)
        if isinstance(callee, Functional):
            return self.functional(callee.name, values, named, place)
        if isinstance(callee, Method):
            if callee.name in ("items", "keys", "values", "children", "named_children") and self.unit.is_container(
                callee.self.type
            ):
                return Several(self.module_iteration(callee.self, callee.name, node).items or [])
            if isinstance(callee.self.type, GenericType):
                return self.call("aten::wait", [callee.self], {}, place)
            return self.call_method(callee.self, callee.name, values, named, place)
        if isinstance(callee, Py):
            return self.call_python(callee.object, values, named, node)
        fail(
            place,
            f"cannot call a value of type "
            f"'{spoken(callee.type) if isinstance(callee, Value) else type(callee).__name__}'",
        )

    def module_call(self, values: list[Value], place: Place | None) -> Value:
        """Appends what runs the Python of one of the library's modules."""
        kind = values[0].type if values else None
        if not (isinstance(kind, ObjectType) and kind.is_module and is_library(kind.python)):
            fail(place, f"{kind} is none of the library's modules")
        made = self.node("prim::ModuleCall", values, [], place, name="forward")
        return made.add_output(TENSOR, loose=True)

    def call_method(self, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value], place: Place) -> Value:
        """Appends the call of a method, compiled if it is not yet."""
        assert isinstance(owner.type, ObjectType)
        if not self.unit.has_method(owner.type, name):
            fail(place, f"'{spoken(owner.type)}' object has no attribute or method '{name}'.")
        declared = [] if name in owner.type.pending else marks.overloads_of(python_method(owner.type, name))
        if declared:
            return self.first_that_fits(
                len(declared), lambda number: self.call_method(owner, f"{name}__{number}", args, kwargs, place)
            )
        function = self.unit.method(owner.type, name, place, self)
        if self.unit.is_static(owner.type, name):
            return self.call_function(function, args, kwargs, place)
        return self.call_function(function, [owner, *args], kwargs, place, "prim::CallMethod")

    def first_that_fits(self, count: int, call: Callable[[int], Value]) -> Value:
        """Returns the result of the first of several overloads that fits; raises the error of the last one."""
        for number in range(count):
            taken, constants = len(self.block.nodes_), dict(self.graph.constants)
            try:
                return call(number)
            except ScriptError:
                if number == count - 1:
                    raise
                self._undone(taken, constants)
        raise AssertionError

    def call_module(self, owner: Value, args: list[Value], kwargs: dict[str, Value], node: ast.Call) -> Value:
        """Appends the call of a module itself: its hooks are called before and after `forward`."""
        assert isinstance(owner.type, ObjectType)
        before, after = owner.type.hooks
        place = self.place(node.func)
        if not before and not after:
            return self.call_method(owner, "forward", args, kwargs, place)
        given = self.tuple_of(args, node)
        for fn in before:
            found = self.call_function(self.unit.hook(owner.type, fn, place, self), [owner, given], {}, place)
            if found.type != NONE:
                given = found if isinstance(found.type, TupleType) else self.tuple_of([found], node)
        result = self.call_method(owner, "forward", self.unpacked(given, node), kwargs, place)
        for fn in after:
            hook = self.unit.hook(owner.type, fn, place, self)
            found = self.call_function(hook, [owner, given, result], {}, place)
            result = result if found.type == NONE else found
        return result

    def call_function(
        self, function: Any, args: list[Value], kwargs: dict[str, Value], place: Place, kind: str = "prim::CallFunction"
    ) -> Value:
        """Appends the call of a function of the program."""
        schema = function.schema
        try:
            inputs, _ = self.matched(schema, args, kwargs, place)
        except Unfit as problem:
            raise ScriptError(
                f"\nArguments for call are not valid.\nThe following variants are available:\n  \n  {schema}:\n "
                f" {problem}\n\nThe original call is:\n{place.pointed()}\n"
            ) from None
        made = self.node(kind, inputs, [], place, name=function.name, value=function)
        return made.add_output(normal(schema.returns[0].type), loose=function.loose)

    def functional(self, name: str, args: list[Value], kwargs: dict[str, Value], place: Place) -> Value:
        """Appends the call of a function of nn.functional: its operator, where that takes the same arguments under the
        same names, and else the function itself."""
        function = getattr(nn.functional, name)
        signature = inspect.signature(function)
        names = list(signature.parameters)
        is_operator = names == ["args", "kwargs"]  # an operator's own function, which reads arguments by its schemas
        for op in candidates(f"aten::{name}"):
            ours = ["input" if one.name == "self" else one.name for one in op.schema.arguments]
            if (is_operator or ours[: len(args)] == names[: len(args)]) and kwargs.keys() <= set(ours):
                try:
                    return self.call(f"aten::{name}", args, kwargs, None, [op])
                except ScriptError:
                    pass
        try:
            signature.bind(*args, **kwargs)
        except TypeError as problem:
            fail(place, f"nn.functional.{name}: {problem}")
        tells = signature.return_annotation
        made = self.node(
            "prim::FunctionalCall",
            [*args, *kwargs.values()],
            [],
            place,
            name=name,
            arguments=[*([None] * len(args)), *kwargs],
        )
        return made.add_output(TENSOR, loose=tells not in ("Tensor", Tensor))

    def call_python(self, function: Any, args: list[Value], kwargs: dict[str, Value], node: ast.Call) -> Any:
        place = self.place(node.func)
        if function in SAME:
            return self.same(function, args, kwargs, place)
        if function is print:
            return self.call("prim::Print", args, {}, place)
        if isinstance(function, type | NamedTupleType):
            return self.construct(function, args, kwargs, place)
        if isinstance(function, str):  # a name that only printed programs have
            return self.node("prim::Uninitialized", [], [TENSOR], place).output()
        if marks.of(function) == "ignore":
            return self.ignored(function, args, place)
        if marks.of(function) == "unused":
            self.call("prim::RaiseException", [self.constant(marks.IGNORED)], {}, place)
            return self.node("prim::Uninitialized", [], [self.unit.declared(function).returns[0].type], place).output()
        if isinstance(function, Names):
            name = function.path.removeprefix("ops.").replace("torch.", "aten::", 1).replace(".", "::", 1)
            fail(
                place,
                f"Unknown builtin op: {name}.\nThis op may not exist or may not be currently supported in TorchScript",
            )
        if not callable(function):
            fail(place, f"python value of type '{type(function).__name__}' cannot be called")
        declared = marks.overloads_of(function)
        if declared:

            def call(number: int) -> Value:
                made = self.unit.overloaded(function, number, None, place, self)
                return self.call_function(made, args, kwargs, place)

            return self.first_that_fits(len(declared), call)
        return self.call_function(self.unit.function(function, place, self), args, kwargs, place)

    def ignored(self, function: Any, args: list[Value], place: Place, method: bool = False) -> Value:
        """Appends a call that Python runs as it is; such a program cannot be saved."""
        schema = self.unit.declared(function, method)
        return self.node(
            "prim::PythonOp", args, [schema.returns[0].type], place, function, name=function.__name__
        ).output()

    def same(self, function: Any, args: list[Value], kwargs: dict[str, Value], place: Place) -> Value:
        """Appends the operator that one of Python's functions is."""
        name = SAME[function]
        special = {len: "__len__", int: "__int__", float: "__float__", bool: "__bool__", abs: "__abs__"}.get(function)
        if args and isinstance(args[0].type, ObjectType):
            if args[0].type.is_module and function is len:
                return self.constant(len(self.unit.children(args[0].type)))
            if special:
                return self.call_method(args[0], special, args[1:], kwargs, place)
        if function is len and isinstance(args[0].type, TupleType):
            return self.constant(len(args[0].type.elems))
        if function in (min, max) and len(args) > 2:
            first = args[0]
            for one in args[1:]:
                first = self.call(name, [first, one], {}, place)
            return first
        if function in (min, max) and all(one.type == TENSOR for one in args):
            name = name.replace("prim", "aten")
        return self.call(name, args, kwargs, place)

    def construct(self, kind: Any, args: list[Value], kwargs: dict[str, Value], place: Place) -> Value:
        """Appends what makes an instance of a class."""
        if isinstance(kind, NamedTupleType):
            return self.named_tuple(kind, args, kwargs, place)
        if issubclass(kind, Exception):
            fail(place, f"{kind.__name__} can only be raised")
        if kind is str and args and isinstance(args[0].type, ObjectType):
            return self.call_method(args[0], "__str__", [], {}, place)
        if kind is str:
            return self.call("aten::str", args, {}, place) if args else self.constant("")
        if kind is redispatch.device:
            return self.call("aten::device", args, kwargs, place)
        if kind in (list, dict):
            made: Type = ListType(TENSOR) if kind is list else DictType(STR, TENSOR)
            return self.node(
                "prim::ListConstruct" if kind is list else "prim::DictConstruct", [], [made], place
            ).output()
        if kind is Tensor:
            fail(place, "Tensor() cannot be called in a program; use torch.tensor")
        made = self.unit.type_of_class(kind)
        if isinstance(made, NamedTupleType):
            return self.named_tuple(made, args, kwargs, place)
        if not isinstance(made, ObjectType):
            fail(place, f"'{kind.__name__}' cannot be made in a program")
        owner = self.node("prim::CreateObject", [], [made], place).output()
        if self.unit.has_method(made, "__init__"):
            self.call_method(owner, "__init__", args, kwargs, place)
        return owner

    def named_tuple(self, made: NamedTupleType, args: list[Value], kwargs: dict[str, Value], place: Place) -> Value:
        """Appends what makes a named tuple."""
        defaults = getattr(made.python, "_field_defaults", {})
        values = dict(zip(made.fields, args, strict=False)) | kwargs
        for name in made.fields:
            if name not in values and name in defaults:
                values[name] = self.constant(defaults[name], of_value(defaults[name]) or NONE, place)
        missing = [one for one in made.fields if one not in values]
        if missing or len(values) != len(made.fields) or len(args) > len(made.fields):
            short = made.name.rpartition(".")[2]
            fail(
                place,
                f"Argument {missing[0] if missing else len(args)} not provided. {short} has the fields "
                f"{', '.join(made.fields)}",
            )
        for name, wanted in zip(made.fields, made.elems, strict=True):
            if not is_subtype(values[name].type, wanted):
                fail(
                    place,
                    f"Expected a value of type '{spoken(wanted)}' for argument '{name}' but instead found type "
                    f"'{spoken(values[name].type)}'.",
                )
        return self.node("prim::TupleConstruct", [values[name] for name in made.fields], [made], place).output()
