"""Expressions of a program -> values of its graph.

An expression is read to a value, or to what stands for one for a while (sugared.py). Read next: calls.py, which has
calls and attributes; statements.py.
"""

from __future__ import annotations

import ast
from typing import Any

from redispatch.dispatch.schema.schema import INT, NONE, TENSOR, DictType, ListType, OptionalType, TupleType, Type
from redispatch.dispatch.tensor import Tensor

from .calls import Calls
from .graph import Value
from .source import NotSupportedError, Place, fail
from .sugared import Condition, Iteration, Py, Several, of_object
from .types import (
    BOOL,
    NUMBER,
    NUMBERS,
    STR,
    NamedTupleType,
    ObjectType,
    is_subtype,
    members,
    spoken,
    unified,
    union,
)

BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "remainder",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "__and__", ast.BitOr: "__or__", ast.BitXor: "__xor__",
    ast.LShift: "__lshift__", ast.RShift: "__rshift__",
}  # fmt: skip
ON_TENSORS = {"floordiv": "floor_divide", "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor",
              "__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift"}  # fmt: skip
REFLECTED = {"sub": "rsub", "div": None, "remainder": "remainder", "pow": "pow"}
COMPARED = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Is: "__is__",
    ast.IsNot: "__isnot__",
}  # fmt: skip
METHODS = {"add": "__add__", "sub": "__sub__", "mul": "__mul__", "div": "__truediv__", "eq": "__eq__", "ne": "__ne__",
           "lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__", "floordiv": "__floordiv__",
           "remainder": "__mod__", "pow": "__pow__", "matmul": "__matmul__"}  # fmt: skip
SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


class Expressions(Calls):
    """Reads expressions; `env` has the variables."""

    def value(self, node: ast.expr, hint: Type | None = None) -> Value:
        """Returns an expression's value in the graph."""
        return self.as_value(self.expr(node, hint), node, hint)

    def expr(self, node: ast.expr, hint: Type | None = None) -> Any:
        """Returns an expression's value, or what stands for it."""
        read = getattr(self, f"read_{type(node).__name__}", None)
        if read is None:
            self.unsupported(node)
        return read(node, hint) if read.__func__ in HINTED else read(node)

    def place(self, node: Any) -> Place:
        return Place(self.source, node)

    # Names and literals ---------------------------------------------------------------------------------------

    def read_Name(self, node: ast.Name) -> Any:
        found = self.env.get(node.id)
        if found is None:
            reason = self.undefined.get(node.id)
            if reason is not None:
                where, branch = reason
                fail(
                    None,
                    f"\n{node.id} is not defined in the {branch} branch:\n{where.pointed()}\nand was used "
                    f"here:\n{self.place(node).pointed()}\n",
                )
            found = self.find(node.id)
            if found is None:
                fail(self.place(node), f"undefined value {node.id}")
            return of_object(found)
        return found

    def read_Constant(self, node: ast.Constant) -> Value:
        if node.value is Ellipsis or isinstance(node.value, bytes):
            self.unsupported(node)
        return self.constant(node.value, place=self.place(node))

    def read_JoinedStr(self, node: ast.JoinedStr) -> Value:
        text, values = "", []
        for part in node.values:
            if isinstance(part, ast.Constant):
                text += str(part.value).replace("{", "{{").replace("}", "}}")
            elif isinstance(part, ast.FormattedValue):
                if part.conversion != -1 or part.format_spec is not None:
                    raise NotSupportedError(self.place(node), "Don't support formatting in JoinedStr")
                text += "{}"
                values.append(self.value(part.value))
        return self.call("aten::format", [self.constant(text), *values], {}, self.place(node))

    def read_Tuple(self, node: ast.Tuple, hint: Type | None = None) -> Any:
        hints: Any = (
            hint.elems if isinstance(hint, TupleType) and len(hint.elems) == len(node.elts) else [None] * len(node.elts)
        )
        items = [self.expr(one, wanted) for one, wanted in zip(node.elts, hints, strict=True)]
        if all(isinstance(one, Value) or self.constant_type(one) for one in items):
            values = [self.as_value(one, part) for one, part in zip(items, node.elts, strict=True)]
            return self.tuple_of(values, node)
        return Several(items)

    def tuple_of(self, values: list[Value], node: Any) -> Value:
        return self.node(
            "prim::TupleConstruct", values, [TupleType(tuple(v.type for v in values))], self.place(node)
        ).output()

    def read_List(self, node: ast.List, hint: Type | None = None) -> Value:
        hint = next((one for one in members(hint) if isinstance(one, ListType)), None) if hint else None
        wanted = hint.elem if isinstance(hint, ListType) else None
        values = [self.value(one, wanted) for one in node.elts]
        kind = wanted or self.common([one.type for one in values], TENSOR)
        for one in values:
            if not is_subtype(one.type, kind):
                unified_to = spoken(self.common([each.type for each in values], TENSOR))
                fail(
                    self.place(node),
                    f"List type annotation `List[{spoken(kind)}]` did not match the types of the given list "
                    f"elements, which were unified to {unified_to}",
                )
        return self.node("prim::ListConstruct", values, [ListType(kind)], self.place(node)).output()

    def common(self, types: list[Type], default: Type) -> Type:
        if not types:
            return default
        kind: Type | None = types[0]
        for one in types[1:]:
            kind = None if kind is None else unified(kind, one)
        return union(types) if kind is None else kind

    def read_Dict(self, node: ast.Dict, hint: Type | None = None) -> Value:
        hint = next((one for one in members(hint) if isinstance(one, DictType)), None) if hint else None
        key, kind = (hint.key, hint.value) if isinstance(hint, DictType) else (None, None)
        if None in node.keys:
            self.unsupported(node)
        keys = [self.value(one, key) for one in node.keys if one is not None]
        values = [self.value(one, kind) for one in node.values]
        made = DictType(
            key or self.common([k.type for k in keys], STR), kind or self.common([v.type for v in values], TENSOR)
        )
        pairs = [one for pair in zip(keys, values, strict=True) for one in pair]
        return self.node("prim::DictConstruct", pairs, [made], self.place(node)).output()

    # Operators ------------------------------------------------------------------------------------------------

    def read_UnaryOp(self, node: ast.UnaryOp) -> Value:
        place = self.place(node)
        if isinstance(node.op, ast.Not):
            return self.read_condition(node)
        if (
            isinstance(node.op, ast.USub)
            and isinstance(node.operand, ast.Constant)
            and type(node.operand.value) in (int, float, complex)
        ):
            return self.constant(-node.operand.value, place=place)  # type: ignore[operator]  # a number
        name = {ast.USub: "neg", ast.Invert: "bitwise_not", ast.UAdd: "positive"}[type(node.op)]
        value = self.value(node.operand)
        if isinstance(value.type, ObjectType):
            method = {"neg": "__neg__", "positive": "__pos__"}.get(name, "__invert__")
            return self.call_method(value, method, [], {}, place)
        return self.call(f"aten::{name}", [value], {}, place)

    def read_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.expr(node.left), self.expr(node.right)
        if isinstance(left, Several) and isinstance(right, Several):
            return Several(left.items + right.items)
        a, b = self.as_value(left, node.left), self.as_value(right, node.right)
        if isinstance(node.op, ast.Mod) and a.type == STR:
            parts = self.unpacked(b, node) if isinstance(b.type, TupleType) else [b]
            return self.call("aten::percentFormat", [a, *parts], {}, self.place(node))
        return self.binary(BINARY[type(node.op)], a, b, self.place(node))

    def binary(self, name: str, a: Value, b: Value, place: Place) -> Value:
        """Returns the result of a binary operator, chosen by the types of its two sides."""
        if isinstance(a.type, ObjectType) and name in METHODS:
            return self.call_method(a, METHODS[name], [b], {}, place)
        if isinstance(a.type, TupleType) and isinstance(b.type, TupleType) and name == "add":
            parts = [one for value in (a, b) for one in self.unpacked(value, None, place)]
            return self.node("prim::TupleConstruct", parts, [TupleType(tuple(v.type for v in parts))], place).output()
        numbers = (*NUMBERS, NUMBER)
        if TENSOR in (a.type, b.type):
            name = ON_TENSORS.get(name, name)
            if a.type in numbers:
                if name in ("add", "mul", "bitwise_and", "bitwise_or", "bitwise_xor"):
                    return self.call(f"aten::{name}", [b, a], {}, place)
                if name in SWAPPED:
                    return self.call(f"aten::{SWAPPED[name]}", [b, a], {}, place)
                if name == "sub":
                    return self.call("aten::rsub", [b, a], {}, place)
                if name == "div":
                    inverse = self.call("aten::reciprocal", [b], {}, place)
                    return self.call("aten::mul", [inverse, a], {}, place)
        elif a.type == BOOL and b.type in NUMBERS and name not in ("eq", "ne", "__and__", "__or__", "__xor__"):
            a = self.call("aten::Int", [a], {}, place)
        return self.call(f"aten::{name}", [a, b], {}, place)

    def read_Compare(self, node: ast.Compare) -> Value:
        return self.read_condition(node)

    def read_BoolOp(self, node: ast.BoolOp) -> Value:
        return self.read_condition(node)

    def read_condition(self, node: ast.expr) -> Value:
        found = self.condition(node)
        return self.constant(found.always) if found.value is None else found.value

    def compared(self, node: ast.Compare) -> Value:
        a = self.expr(node.left)
        results = []
        for op, right in zip(node.ops, node.comparators, strict=True):
            b = self.expr(right)
            results.append(self.compared_pair(op, a, b, node, right))
            a = b
        value = results[0]
        for one in results[1:]:
            value = self.call("aten::__and__", [value, one], {}, self.place(node))
        return value

    def compared_pair(self, op: ast.cmpop, a: Any, b: Any, node: ast.Compare, right: ast.expr) -> Value:
        place = self.place(node)
        x, y = self.as_value(a, node.left), self.as_value(b, right)
        if isinstance(op, ast.In | ast.NotIn):
            if self.unit.is_container(y.type) and x.node is not None and x.node._kind == "prim::Constant":
                inside = x.node.attributes["value"] in self.unit.children(y.type)
                return self.constant(inside is isinstance(op, ast.In))
            if isinstance(y.type, TupleType):
                y = self.node(
                    "prim::ListConstruct", self.unpacked(y, right), [ListType(y.type.elems[0])], place
                ).output()
            found = (
                self.call_method(y, "__contains__", [x], {}, place)
                if isinstance(y.type, ObjectType)
                else self.call("aten::__contains__", [y, x], {}, place)
            )
            return self.call("aten::__not__", [found], {}, place) if isinstance(op, ast.NotIn) else found
        return self.binary(COMPARED[type(op)], x, y, place)

    # Conditions -----------------------------------------------------------------------------------------------

    def condition(self, node: ast.expr) -> Condition:
        """Reads a condition, with what it says of the types of names."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand)
            if inner.value is None:
                return Condition(None, not inner.always, inner.no, inner.yes)
            return Condition(self.call("aten::__not__", [inner.value], {}, self.place(node)), None, inner.no, inner.yes)
        if isinstance(node, ast.BoolOp):
            return self.short_circuit(node, node.values)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot):
            found = self.none_check(node)
            if found is not None:
                return found
        if isinstance(node, ast.Call):
            found = self.static_call(node)
            if found is not None:
                return found
        if isinstance(node, ast.Compare):
            return Condition(self.compared(node))
        value = self.value(node)
        if value.type == STR or isinstance(value.type, ListType | DictType):
            length = self.call("aten::len", [value], {}, self.place(node))
            return Condition(self.call("aten::gt", [length, self.constant(0)], {}, self.place(node)))
        if isinstance(value.type, OptionalType | TupleType) or value.type == NONE:
            fail(self.place(node), f"Could not cast value of type {spoken(value.type)} to bool")
        if value.type != BOOL:
            if isinstance(value.type, ObjectType):
                value = self.call_method(value, "__bool__", [], {}, self.place(node))
            else:
                value = self.call("aten::Bool", [value], {}, self.place(node))
        if value.node is not None and value.node._kind == "prim::Constant" and not isinstance(node, ast.Constant):
            return Condition(None, value.node.attributes["value"])
        return Condition(value)

    def none_check(self, node: ast.Compare) -> Condition | None:
        """Reads `x is None` and `x is not None`; None where neither side is None."""
        sides = [node.left, node.comparators[0]]
        if isinstance(sides[0], ast.Constant) and sides[0].value is None:
            sides.reverse()
        if not (isinstance(sides[1], ast.Constant) and sides[1].value is None):
            return None
        is_none = isinstance(node.ops[0], ast.Is)
        found = self.expr(sides[0])
        if not isinstance(found, Value):
            found = self.as_value(found, sides[0]) if self.constant_type(found) else Py(found)
        kind = found.type if isinstance(found, Value) else BOOL
        if NONE not in members(kind):
            return Condition(None, not is_none)
        if kind == NONE:
            return Condition(None, is_none)
        place = self.place(node)
        value = self.call("aten::__is__" if is_none else "aten::__isnot__", [found, self.constant(None)], {}, place)
        name = sides[0].id if isinstance(sides[0], ast.Name) else ""
        some: dict[str, Type] = {name: union(one for one in members(kind) if one != NONE)}
        none: dict[str, Type] = {name: NONE}
        return Condition(value, None, none if is_none else some, some if is_none else none)

    def short_circuit(self, node: ast.BoolOp, parts: list[ast.expr]) -> Condition:
        """Reads `a and b`, `a or b`: the second side is computed, and its names refined, where the first says so."""
        first = self.condition(parts[0])
        if len(parts) == 1:
            return first
        conjunction = isinstance(node.op, ast.And)
        if first.value is None:
            if first.always is conjunction:
                return self.short_circuit(node, parts[1:])
            return first
        branch = self.node("prim::If", [first.value], [], self.place(node))
        inner, outer, env = branch.add_block(), self.block, dict(self.env)
        other = branch.add_block()
        if not conjunction:
            inner, other = other, inner
        self.block = inner
        self.refine(first.yes if conjunction else first.no)
        second = self.short_circuit(node, parts[1:])
        inner.results = [self.constant(second.always) if second.value is None else second.value]
        other.results = [self.constant(not conjunction)]
        self.block, self.env = outer, env
        branch.add_output(BOOL)
        both = (first.yes | second.yes, {}) if conjunction else ({}, first.no | second.no)
        return Condition(branch.output(), None, *both)

    def refine(self, types: dict[str, Type]) -> None:
        """Gives names narrower types, in the block that is being written."""
        for name, kind in types.items():
            found = self.env.get(name)
            if isinstance(found, Value) and found.type != kind and kind != NONE:
                cast = self.node("prim::unchecked_cast", [found], [kind], None).output()
                self.casts[cast] = self.casts.get(found, found)
                self.env[name] = cast

    def read_IfExp(self, node: ast.IfExp, hint: Type | None = None) -> Any:
        condition = self.condition(node.test)
        if isinstance(node.test, ast.Constant) and type(node.test.value) is bool:
            condition = Condition(None, node.test.value)
        if condition.value is None:
            return self.expr(node.body if condition.always else node.orelse, hint)
        branch = self.node("prim::If", [condition.value], [], self.place(node))
        outer, env, found = self.block, dict(self.env), []
        for part, types in ((node.body, condition.yes), (node.orelse, condition.no)):
            self.block = branch.add_block()
            self.refine(types)
            found.append(self.value(part, hint))
            self.block.results = [found[-1]]
            self.env = dict(env)
        self.block = outer
        kind = unified(found[0].type, found[1].type)
        if kind is None:
            kind = union(one.type for one in found) if hint is None else hint
        return branch.add_output(kind)

    # Items ----------------------------------------------------------------------------------------------------

    def read_Subscript(self, node: ast.Subscript) -> Any:
        owner = self.expr(node.value)
        if isinstance(owner, Several):
            return (
                owner.items[self.known_index(node.slice)]
                if not isinstance(node.slice, ast.Slice)
                else Several(owner.items[self.known_slice(node.slice)])
            )
        if isinstance(owner, Py):
            owner = self.as_value(owner, node.value)
        kind, place = owner.type, self.place(node)
        if isinstance(kind, ObjectType):
            if kind.is_module:
                return self.module_item(owner, node)
            return self.call_method(owner, "__getitem__", [self.value(node.slice)], {}, place)
        if isinstance(kind, OptionalType):
            fail(place, f"'{spoken(kind)}' object is not subscriptable")
        if kind == TENSOR and not owner.loose:
            return self.indexed(owner, node.slice, place)
        if isinstance(node.slice, ast.Slice):
            return self.sliced(owner, node.slice, place)
        if isinstance(kind, TupleType):
            if len(set(kind.elems)) == 1 and isinstance(value := self.expr(node.slice), Value) and value.type == INT:
                return self.node("prim::TupleIndex", [owner, value], [kind.elems[0]], place).output()
            index = self.known_index(node.slice)
            if not -len(kind.elems) <= index < len(kind.elems):
                fail(place, f"Tuple index out of range: {index}")
            return self.node("prim::TupleIndex", [owner, self.constant(index)], [kind.elems[index]], place).output()
        if owner.loose:
            made = self.node("prim::TupleIndex", [owner, self.constant(self.known_index(node.slice))], [], place)
            return made.add_output(TENSOR, loose=True)
        return self.call("aten::__getitem__", [owner, self.value(node.slice)], {}, place)

    def known_index(self, node: ast.expr) -> int:
        found = self.expr(node)
        if (
            isinstance(found, Value)
            and found.node is not None
            and found.node._kind == "prim::Constant"
            and found.type == INT
        ):
            return found.node.attributes["value"]
        if isinstance(found, Py) and type(found.object) is int:
            return found.object
        fail(
            self.place(node),
            "Cannot index into a tuple with a non-integer literal because we cannot resolve the output type",
        )

    def known_slice(self, node: ast.Slice) -> slice:
        return slice(*(None if one is None else self.known_index(one) for one in (node.lower, node.upper, node.step)))

    def sliced(self, owner: Value, node: ast.Slice, place: Place) -> Value:
        """Reads `x[a:b:c]` of a list, a string or a tuple."""
        if isinstance(owner.type, TupleType):
            kept = self.unpacked(owner, None, place)[self.known_slice(node)]
            return self.node("prim::TupleConstruct", kept, [TupleType(tuple(v.type for v in kept))], place).output()
        bounds = [self.constant(None) if one is None else self.value(one) for one in (node.lower, node.upper)]
        step = self.constant(1) if node.step is None else self.value(node.step)
        return self.call("aten::slice", [owner, *bounds, step], {}, place)

    def indexed(self, x: Value, index: ast.expr, place: Place) -> Value:
        """Reads `x[...]` of a tensor: an int selects, a slice slices, None inserts a dimension, tensors gather."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        gathered: list[Value] = []
        dim, from_end = 0, False  # behind an ellipsis dimensions are counted from the end

        for number, part in enumerate(parts):
            if isinstance(part, ast.Constant) and part.value is Ellipsis:
                dim, from_end = -sum(not is_none(one) for one in parts[number + 1 :]), True
                continue
            if isinstance(part, ast.Slice):
                bounds = [self.constant(None) if one is None else self.value(one) for one in (part.lower, part.upper)]
                step = self.constant(1) if part.step is None else self.value(part.step)
                x = self.call("aten::slice", [x, self.constant(dim), *bounds, step], {}, place)
                dim += 1
                continue
            value = self.value(part)
            if value.type == NONE:
                x = self.call("aten::unsqueeze", [x, self.constant(dim - 1 if from_end else dim)], {}, place)
                dim += not from_end
            elif value.type == INT:
                x = self.call("aten::select", [x, self.constant(dim), value], {}, place)
                dim += from_end
            else:
                if isinstance(value.type, ListType) or value.type == BOOL:
                    value = self.call("aten::tensor", [value], {}, place)
                if value.type != TENSOR and value.type != OptionalType(TENSOR):
                    fail(
                        place,
                        f"Unsupported operation: indexing tensor with unsupported index type "
                        f"'{spoken(value.type)}'. Only ints, slices, lists and tensors are supported",
                    )
                if from_end:
                    fail(place, "tensors after an ellipsis cannot index here; put them before it")
                gathered += [self.constant(None)] * (dim - len(gathered)) + [value]
                dim += 1
        if not gathered:
            return x
        indices = self.node("prim::ListConstruct", gathered, [ListType(OptionalType(TENSOR))], place).output()
        return self.call("aten::index", [x, indices], {}, place)

    # Comprehensions -------------------------------------------------------------------------------------------

    def read_ListComp(self, node: ast.ListComp, hint: Type | None = None) -> Any:
        (part,) = node.generators if len(node.generators) == 1 else self.unsupported(node)
        over = self.iterated(self.expr(part.iter), part.iter)
        if over.items is not None and not part.ifs:
            found = []
            saved = dict(self.env)
            for item in over.items:
                self.assign(part.target, item)
                found.append(self.expr(node.elt))
            self.env = saved
            if all(isinstance(one, Value) and not isinstance(one.type, ObjectType) for one in found):
                kind = self.common([one.type for one in found], TENSOR)
                return self.node("prim::ListConstruct", found, [ListType(kind)], self.place(node)).output()
            return Several(found)
        made = self.node("prim::ListConstruct", [], [ListType(TENSOR)], self.place(node)).output()

        def add() -> None:
            value = self.value(node.elt)
            made.type = ListType(value.type if not isinstance(hint, ListType) else hint.elem)
            self.call("aten::append", [made, value], {}, self.place(node))

        self.comprehended(part, over, add)
        return made

    def read_DictComp(self, node: ast.DictComp, hint: Type | None = None) -> Value:
        (part,) = node.generators if len(node.generators) == 1 else self.unsupported(node)
        made = self.node("prim::DictConstruct", [], [DictType(STR, TENSOR)], self.place(node)).output()

        def add() -> None:
            key, value = self.value(node.key), self.value(node.value)
            made.type = DictType(key.type, value.type)
            self.call("aten::_set_item", [made, key, value], {}, self.place(node))

        self.comprehended(part, self.iterated(self.expr(part.iter), part.iter), add)
        return made

    def comprehended(self, part: ast.comprehension, over: Iteration, add: Any) -> None:
        """Writes the loop of a comprehension, whose variables end with it."""
        saved = dict(self.env)

        def body() -> None:
            for test in part.ifs:
                condition = self.condition(test)
                value = self.constant(condition.always) if condition.value is None else condition.value
                branch = self.node("prim::If", [value], [], self.place(test))
                self.block = branch.add_block()
                branch.add_block()
                self.refine(condition.yes)
            add()

        self.plain_loop(over, part.target, body)
        self.env = saved

    def as_value(self, found: Any, node: Any, hint: Type | None = None) -> Value:
        """Returns the value that something stands for. RuntimeError where there is none."""
        if isinstance(found, Value):
            if hint is not None and found.type == NONE and NONE in members(hint):
                return self.constant(None, hint)
            return found
        if isinstance(found, Several):
            return self.tuple_of([self.as_value(one, node) for one in found.items], node)
        if isinstance(found, Py):
            kind = self.constant_type(found)
            if kind is not None:
                return self.literal(found.object, kind, node)
            what = f"python value of type '{type(found.object).__name__}'"
            if isinstance(found.object, Tensor):
                fail(
                    self.place(node),
                    "a tensor of the surrounding program cannot be used as a value; pass it as an argument",
                )
            fail(
                self.place(node),
                f"{what} cannot be used as a value. Perhaps it is a closed over global variable? If so, please "
                f"consider passing it in as an argument or use a local variable instead.",
            )
        fail(self.place(node), f"{type(found).__name__.lower()} cannot be used as a value")

    def literal(self, value: Any, kind: Type, node: Any) -> Value:
        """Returns a Python constant in the graph: lists and dicts are made anew each time."""
        if isinstance(kind, ListType):
            return self.node(
                "prim::ListConstruct", [self.constant(one) for one in value], [kind], self.place(node)
            ).output()
        if isinstance(kind, TupleType) and not isinstance(kind, NamedTupleType):
            return self.tuple_of(
                [self.literal(one, sub, node) for one, sub in zip(value, kind.elems, strict=True)], node
            )
        return self.constant(value, kind, self.place(node))


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


HINTED = {Expressions.read_Call, Expressions.read_List, Expressions.read_Dict, Expressions.read_Tuple,
          Expressions.read_IfExp, Expressions.read_ListComp, Expressions.read_DictComp}  # fmt: skip
