"""Statements of a program -> nodes: variables become values, branches and loops nodes with blocks.

A variable that a branch sets is a result of `prim::If`; one that a loop sets is carried by `prim::Loop`. Returns inside
of branches put the statements that follow into the other branch; where that cannot be, and in loops, `return`, `break`
and `continue` set hidden variables, and what follows runs under `prim::If` of them.

Note [Hidden variables]
`.ret` is the value to return, `.returned`, `.broke` and `.continued` say what has happened. They are variables like
others, so branches and loops carry them without knowing them.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from redispatch.dispatch.schema.schema import NONE, TENSOR, ListType, TupleType, Type

from .expressions import BINARY, METHODS, ON_TENSORS
from .graph import Block, Graph, Value
from .loops import Loops, ends, leaves, leaves_own
from .source import Place, Source, fail
from .sugared import Condition, Forked, Py, Several
from .types import NUMBERS, STR, ObjectType, is_subtype, members, spoken, unified


class Statements(Loops):
    """Compiles the body of one function into a graph."""

    def __init__(self, unit: Any, source: Source, find: Any, name: str) -> None:
        self.unit, self.source, self.find, self.name = unit, source, find, name
        self.graph = Graph()
        self.block: Block = self.graph
        self.env: dict[str, Any] = {}
        self.undefined: dict[str, Any] = {}
        self.casts: dict[Value, Value] = {}
        self.returns: Type | None = None
        self.declared_return = False
        self.depth = 0  # of loops
        self.initialises: ObjectType | None = None  # the class whose __init__ this is

    # Sequences ------------------------------------------------------------------------------------------------

    def statements(self, body: list[ast.stmt]) -> None:
        """Compiles statements in order; those after one that may leave run where it has not left."""
        for number, one in enumerate(body):
            rest = body[number + 1 :]
            if isinstance(one, ast.If):
                if self.if_then_rest(one, rest):
                    return
            else:
                self.statement(one)
                if isinstance(one, ast.Return | ast.Break | ast.Continue | ast.Raise):
                    return
            left = leaves([one])
            if left and rest:
                self.unless(left, rest, one)
                return

    def if_then_rest(self, node: ast.If, rest: list[ast.stmt]) -> bool:
        """Compiles an `if`, and the rest with it where one side leaves; returns whether the rest is done."""
        condition = self.condition(node.test)
        if condition.value is None:
            chosen = node.body if condition.always else node.orelse
            self.refine(condition.yes if condition.always else condition.no)
            self.statements([*chosen, *rest])
            return True
        body, orelse = node.body, node.orelse
        pushed = bool(rest) and (ends(body) or ends(orelse))
        if pushed:
            body, orelse = (body, [*orelse, *rest]) if ends(body) else ([*body, *rest], orelse)
        self.branch(
            condition, lambda: self.statements(body), lambda: self.statements(orelse), (ends(body), ends(orelse)), node
        )
        return pushed

    def unless(self, left: set[str], rest: list[ast.stmt], node: Any) -> None:
        """Compiles the rest where none of these hidden variables is set."""
        flags = [self.env[name] for name in sorted(left) if name in self.env]
        gone = flags[0]
        for one in flags[1:]:
            gone = self.call("aten::__or__", [gone, one], {}, None)
        true = {name: self.constant(True) for name in left if len(left) == 1}
        self.branch(
            Condition(gone), lambda: self.env.update(true), lambda: self.statements(rest), (True, ends(rest)), node
        )

    def branch(
        self, condition: Condition, yes: Callable[[], None], no: Callable[[], None], end: tuple[bool, bool], node: Any
    ) -> None:
        """Writes a `prim::If`, and gives the variables that a side sets their values after it."""
        assert condition.value is not None
        made = self.node("prim::If", [condition.value], [], self.place(node))
        outer, before, arms = self.block, self.env, []
        for write, types in ((yes, condition.yes), (no, condition.no)):
            self.block, self.env = made.add_block(), dict(before)
            self.refine(types)
            write()
            arms.append(self.env)
        self.block, self.env = outer, before
        for name in dict.fromkeys([*arms[0], *arms[1]]):
            self.joined(name, made, [arm.get(name) for arm in arms], end, node)

    def joined(self, name: str, made: Any, found: list[Any], end: tuple[bool, bool], node: Any) -> None:
        """Gives one variable its value after a branch."""
        old = self.env.get(name)
        if all(self.is_same(one, old) for one in found) and old is not None:
            return
        if found[0] is found[1]:
            self.env[name] = found[0]
            return
        hidden = name.startswith(".")
        for side in (0, 1):
            if found[side] is None:
                if hidden and name != ".ret":
                    found[side] = self.graph.constant(False)
                elif not (hidden or end[side]):
                    self.undefined[name] = (Place(self.source, node), "true" if side == 0 else "false")
                    return
        known = [one for one in found if one is not None]
        if not all(isinstance(one, Value) for one in known):
            if len(known) == 2 and not any(end):
                fail(self.place(node), f"{name} is set to values of different kinds in the two branches")
            self.env[name] = known[-1] if end[0] or len(known) == 1 else known[0]
            return
        gone = [one is None or (end[side] and not hidden) for side, one in enumerate(found)]
        kinds = [
            one.type for one, out in zip(found, gone, strict=True) if one is not None and not (out and not all(gone))
        ]
        kind = kinds[0] if len(kinds) == 1 else unified(kinds[0], kinds[1]) if kinds else known[0].type
        if kind is None:
            if name == ".ret" and self.returns is not None:
                kind = self.returns
            else:
                self.mismatched(name, kinds, node)
                return
        for side, arm in enumerate(made.blocks):
            value = found[side]
            if value is None or not is_subtype(value.type, kind):
                saved, self.block = self.block, arm
                value = self.node("prim::Uninitialized", [], [kind], None).output()
                self.block = saved
            arm.results.append(value)
        loose = any(one.loose for one in known)
        self.env[name] = made.add_output(kind, "" if hidden else name, loose=loose)

    def mismatched(self, name: str, kinds: list[Type], node: Any) -> None:
        self.env.pop(name, None)
        fail(
            None,
            f"\nType mismatch: {name} is set to type {spoken(kinds[0])} in the true branch and type "
            f"{spoken(kinds[1])} in the false branch:\n{self.place(node).pointed()}\n",
        )

    def is_same(self, value: Any, old: Any) -> bool:
        """Whether a variable has its former value, perhaps known by a narrower type."""
        return value is old or (
            isinstance(value, Value)
            and self.casts.get(value) is not None
            and self.casts[value] is self.casts.get(old, old)
        )

    # Single statements ----------------------------------------------------------------------------------------

    def statement(self, node: ast.stmt) -> None:
        write = getattr(self, f"write_{type(node).__name__}", None)
        if write is None:
            self.unsupported(node)
        write(node)

    def write_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Compiles a function that a printed program forks: what it takes from around it are its arguments."""
        if not getattr(self.find, "strict", False) or node.args.args:
            self.unsupported(node)
        read = dict.fromkeys(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
        taken = {name: self.env[name] for name in read if isinstance(self.env.get(name), Value)}
        others = {name: one for name, one in self.env.items() if not isinstance(one, Value)}
        self.env[node.name] = Forked(self.unit.closure(self, node, taken, others), list(taken.values()))

    def write_Pass(self, node: ast.Pass) -> None:
        pass

    def write_Expr(self, node: ast.Expr) -> None:
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
            self.expr(node.value)

    def write_Return(self, node: ast.Return) -> None:
        hint = self.returns if self.declared_return else None
        value = self.constant(None) if node.value is None else self.value(node.value, hint)
        if self.returns is not None:
            if self.declared_return:
                value = self.as_declared(value, node)
            else:
                both = unified(self.returns, value.type)
                if both is None:
                    fail(
                        self.place(node),
                        f"Previous return statement returned a value of type {spoken(self.returns)} but this "
                        f"return statement returns a value of type {spoken(value.type)}",
                    )
                self.returns = both
        else:
            self.returns = value.type
        self.env[".ret"] = value
        self.env[".returned"] = self.constant(True)

    def as_declared(self, value: Value, node: ast.Return) -> Value:
        kind = self.returns
        assert kind is not None
        if value.loose or is_subtype(value.type, kind):
            return self.constant(None, kind) if value.type == NONE and kind != NONE else value
        if (
            isinstance(kind, TupleType)
            and isinstance(value.type, TupleType)
            and len(kind.elems) == len(value.type.elems)
        ):
            parts = self.unpacked(value, node)
            if all(part.loose or is_subtype(part.type, one) for part, one in zip(parts, kind.elems, strict=True)):
                return value
        fail(
            self.place(node),
            f"Return value was annotated as having type {spoken(kind)} but is actually of type {spoken(value.type)}",
        )

    def write_Break(self, node: ast.Break) -> None:
        if not self.depth:
            fail(self.place(node), "SyntaxError: 'break' outside loop")
        self.env[".broke"] = self.constant(True)

    def write_Continue(self, node: ast.Continue) -> None:
        if not self.depth:
            fail(self.place(node), "SyntaxError: 'continue' not properly in loop")
        self.env[".continued"] = self.constant(True)

    def write_Raise(self, node: ast.Raise) -> None:
        made = node.exc
        message: Value = self.constant("")
        kind = "builtins.Exception"
        if isinstance(made, ast.Call):
            if made.args:
                message = self.value(made.args[0])
            made = made.func
        if made is None:
            self.unsupported(node)
        found = self.expr(made)
        if isinstance(found, Py) and isinstance(found.object, type):
            kind = f"{found.object.__module__}.{found.object.__qualname__}"
        if message.type != STR:
            message = self.call("aten::str", [message], {}, self.place(node))
        self.call("prim::RaiseException", [message, self.constant(kind)], {}, self.place(node))

    def write_Assert(self, node: ast.Assert) -> None:
        condition = self.condition(node.test)
        if condition.value is None:
            if not condition.always:
                self.raise_assertion(node)
            return
        made = self.node("prim::If", [condition.value], [], self.place(node))
        outer, env = self.block, dict(self.env)
        made.add_block()
        self.block = made.add_block()
        self.raise_assertion(node)
        self.block, self.env = outer, env
        self.refine(condition.yes)

    def raise_assertion(self, node: ast.Assert) -> None:
        message = self.constant("AssertionError: ")
        if node.msg is not None:
            said = self.value(node.msg)
            said = said if said.type == STR else self.call("aten::str", [said], {}, self.place(node))
            message = self.call("aten::add", [message, said], {}, self.place(node))
        self.call("prim::RaiseException", [message], {}, self.place(node))

    def write_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.env.pop(target.id, None)
            elif isinstance(target, ast.Subscript):
                owner = self.value(target.value)
                self.call("aten::Delete", [owner, self.value(target.slice)], {}, self.place(node))
            else:
                self.unsupported(node)

    def write_With(self, node: ast.With) -> None:
        """Compiles `with torch.no_grad():` and objects with __enter__ and __exit__.

        Statements that leave set hidden variables only, so what leaves the region comes after them in any case.
        """
        entered: list[Callable[[], Any]] = []
        none = [self.constant(None)] * 3
        for item in node.items:
            call = item.context_expr
            callee = self.expr(call.func) if isinstance(call, ast.Call) else None
            name = getattr(getattr(callee, "object", None), "__name__", "")
            if name in ("no_grad", "enable_grad"):
                before = self.call("aten::is_grad_enabled", [], {}, self.place(call))
                self.call("aten::set_grad_enabled", [self.constant(name == "enable_grad")], {}, self.place(call))
                entered.append(functools.partial(self.call, "aten::set_grad_enabled", [before], {}, None))
                continue
            value = self.value(call)
            if not isinstance(value.type, ObjectType) or not self.unit.has_method(value.type, "__enter__"):
                fail(
                    self.place(call),
                    f"Object of type {spoken(value.type)} cannot be used with `with`: it has no __enter__ and __exit__",
                )
            got = self.call_method(value, "__enter__", [], {}, self.place(call))
            if item.optional_vars is not None:
                self.assign(item.optional_vars, got)
            entered.append(functools.partial(self.call_method, value, "__exit__", none, {}, self.place(call)))
        self.statements(node.body)
        for leave in reversed(entered):
            leave()

    # Assignments ----------------------------------------------------------------------------------------------

    def write_Assign(self, node: ast.Assign) -> None:
        value = self.expr(node.value)
        for target in node.targets:
            self.assign(target, value)

    def write_AnnAssign(self, node: ast.AnnAssign) -> None:
        kind = self.annotation(node.annotation)
        if node.value is None:
            fail(self.place(node), "a variable is declared by its first value: write `x: T = value`")
        value = self.widened(self.value(node.value, kind), kind, self.place(node), getattr(node.target, "id", ""))
        if self.initialises is not None and isinstance(node.target, ast.Attribute):
            self.initialises.attributes.setdefault(node.target.attr, kind)
        self.assign(node.target, value)

    def assign(self, target: Any, value: Any) -> None:
        """Gives what stands at the left of `=` a value."""
        if isinstance(target, ast.Name):
            if isinstance(value, Value):
                former = self.env.get(target.id)
                if isinstance(former, Value) and self.block is not self.graph:
                    value = self.kept_type(target, former, value)
                if value.name.isdigit() and (value.node is None or value.node._kind != "prim::Constant"):
                    value.name = self.graph.unique(target.id)
            self.env[target.id] = value
            self.undefined.pop(target.id, None)
        elif isinstance(target, ast.Tuple | ast.List):
            self.assign_several(target, value)
        elif isinstance(target, ast.Attribute):
            owner = self.expr(target.value)
            self.set_attribute(self.as_value(owner, target.value), target, self.as_value(value, target))
        elif isinstance(target, ast.Subscript):
            self.set_item(target, self.as_value(value, target))
        else:
            self.unsupported(target)

    def kept_type(self, target: ast.Name, former: Value, value: Value) -> Value:
        """Returns the value for a variable that was set outside of this block: its type stays."""
        declared = self.casts.get(former, former).type
        if is_subtype(value.type, declared) or former.loose or value.loose:
            return value
        if declared == NONE or unified(declared, value.type) is not None and self.block is not self.graph:
            return value
        fail(
            self.place(target),
            f"Variable '{target.id}' previously had type {spoken(declared)} but is now being assigned to a "
            f"value of type {spoken(value.type)}",
        )

    def assign_several(self, target: Any, value: Any) -> None:
        place = self.place(target)
        stars = [i for i, one in enumerate(target.elts) if isinstance(one, ast.Starred)]
        if isinstance(value, Several):
            parts: list[Any] = value.items
        else:
            value = self.as_value(value, target)
            count = len(target.elts)
            if isinstance(value.type, TupleType):
                parts = list(self.unpacked(value, target))
            elif isinstance(value.type, ListType):
                parts = self.node("prim::ListUnpack", [value], [value.type.elem] * count, place).output_values
            elif value.loose or value.type == TENSOR:
                made = self.node("prim::TupleUnpack", [value], [], place)
                parts = [made.add_output(TENSOR, loose=value.loose) for _ in range(count)]
            else:
                fail(place, f"{spoken(value.type)} cannot be used as a tuple")
        if stars:
            after = len(target.elts) - stars[0] - 1
            middle = parts[stars[0] : len(parts) - after]
            parts = [*parts[: stars[0]], Several(middle), *parts[len(parts) - after :]]
        if len(parts) != len(target.elts):
            if len(parts) < len(target.elts):
                fail(place, f"need {len(target.elts)} values to unpack but found only {len(parts)}")
            fail(place, f"too many values to unpack: need {len(target.elts)} but found {len(parts)}")
        for one, part in zip(target.elts, parts, strict=True):
            self.assign(one.value if isinstance(one, ast.Starred) else one, part)

    def set_attribute(self, owner: Value, target: ast.Attribute, value: Value) -> None:
        kind = owner.type
        if not isinstance(kind, ObjectType):
            fail(self.place(target), f"Tried to set an attribute: {target.attr} on a non-class: {spoken(kind)}")
        setter = f"__{target.attr}_setter"
        if target.attr not in kind.attributes and self.unit.has_method(kind, setter):
            self.call_method(owner, setter, [value], {}, self.place(target))
            return
        if self.initialises is kind and target.attr not in kind.attributes:
            kind.attributes[target.attr] = value.type
        declared = kind.attributes.get(target.attr)
        if declared is None:
            fail(
                self.place(target),
                f"Tried to set nonexistent attribute: {target.attr}. Did you forget to initialize it in __init__()?",
            )
        if not is_subtype(value.type, declared) and not value.loose:
            fail(
                self.place(target),
                f"Wrong type for attribute assignment. Expected {spoken(declared)} but got {spoken(value.type)}",
            )
        self.node("prim::SetAttr", [owner, value], [], self.place(target), name=target.attr)

    def set_item(self, target: ast.Subscript, value: Value) -> None:
        owner, place = self.value(target.value), self.place(target)
        if isinstance(target.slice, ast.Slice) and owner.type != TENSOR:
            fail(place, "Sliced expression not yet supported for subscripted assignment. Write it in two steps")
        if isinstance(owner.type, ObjectType):
            self.call_method(owner, "__setitem__", [self.value(target.slice), value], {}, place)
        elif owner.type != TENSOR:
            self.call("aten::_set_item", [owner, self.value(target.slice), value], {}, place)
        else:
            self.set_elements(owner, target.slice, value, place)

    def set_elements(self, owner: Value, index: ast.expr, value: Value, place: Place) -> None:
        """Writes to the elements of a tensor that an index picks."""
        shown = self.indexed(owner, index, place)
        node = shown.node
        if value.type in NUMBERS:
            other = self.attribute(owner, "dtype", place)
            value = self.call("aten::tensor", [value], {"dtype": other}, place)
        if node is not None and node._kind == "aten::index":
            self.block.nodes_.remove(node)
            self.call("aten::index_put_", [*node.input_values, value], {}, place)
        else:
            self.call("aten::copy_", [shown, value], {}, place)

    def write_AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        load = ast.copy_location(
            type(target)(**{k: getattr(target, k) for k in target._fields} | {"ctx": ast.Load()}), target
        )
        old = self.value(load)
        value = self.value(node.value)
        name = METHODS.get(BINARY[type(node.op)], "")
        if isinstance(old.type, ObjectType) and self.unit.has_method(old.type, f"__i{name[2:]}"):
            self.assign(target, self.call_method(old, f"__i{name[2:]}", [value], {}, self.place(node)))
            return
        if old.type == TENSOR and not isinstance(target, ast.Subscript) or isinstance(old.type, ListType):
            self.changed_in_place(node, old, value)
            if isinstance(target, ast.Name | ast.Attribute):
                return
        self.assign(target, self.binary(BINARY[type(node.op)], old, value, self.place(node)))

    def changed_in_place(self, node: ast.AugAssign, old: Value, value: Value) -> None:
        """Writes `x += y` of tensors and lists, which changes x itself."""
        name = BINARY[type(node.op)]
        name = ON_TENSORS.get(name, name) if old.type == TENSOR else name
        if isinstance(old.type, ListType) and name == "mul":
            fail(self.place(node), "`*=` of a list is not supported; write x = x * n")
        self.call(f"aten::{name}_", [old, value], {}, self.place(node))

    def finish(self, node: Any) -> None:
        """Ends the graph with what the function returns."""
        value = self.env.get(".ret")
        if value is None:
            value = self.constant(None)
            if (
                self.declared_return
                and self.returns is not None
                and NONE not in members(self.returns)
                and not ends(node.body)
            ):
                fail(
                    self.place(node),
                    "Function was not annotated as having type None, but does not return along all paths"
                    if not self.declared_return
                    else f"Return value was annotated as having type {spoken(self.returns)} but is actually of "
                    f"type NoneType",
                )
            self.returns = self.returns if self.declared_return and ends(node.body) else NONE
        elif (
            not (self.always_returns(node.body) or self.declared_return and NONE in members(self.returns or NONE))
            and self.returns != NONE
        ):
            fail(
                self.place(node), "Function was not annotated as having type None, but does not return along all paths"
            )
        self.graph.results = [value]

    def always_returns(self, body: list[ast.stmt]) -> bool:
        """Whether each way through a function ends in `return` or `raise`, as far as it is known."""
        for one in body:
            if isinstance(one, ast.Return | ast.Raise):
                return True
            if isinstance(one, ast.If):
                if one.orelse and self.always_returns(one.body) and self.always_returns(one.orelse):
                    return True
            if (
                isinstance(one, ast.While)
                and isinstance(one.test, ast.Constant)
                and one.test.value
                and ".broke" not in leaves_own(one)
            ):
                return True
            if isinstance(one, ast.With) and self.always_returns(one.body):
                return True
        return self.env.get(".returned") is not None and self.is_true(self.env[".returned"])

    def is_true(self, value: Any) -> bool:
        return isinstance(value, Value) and value.node is not None and value.node.attributes.get("value") is True
