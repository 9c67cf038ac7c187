"""Loops of a program -> `prim::Loop`, and which statements leave them.

Read next: statements.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from redispatch.dispatch.schema.schema import INT, Type

from .expressions import Expressions
from .graph import Value
from .source import fail
from .sugared import Condition, Iteration
from .types import BOOL, is_subtype, spoken

EXITS: dict[type, str] = {ast.Return: ".returned", ast.Break: ".broke", ast.Continue: ".continued"}
FOREVER = 2**63 - 1


def leaves(statements: Iterable[ast.stmt], loops: bool = False) -> set[str]:
    """Returns the hidden variables that these statements may set; those of an inner loop's own end with it."""
    found: set[str] = set()
    for one in statements:
        if type(one) in EXITS:
            found.add(EXITS[type(one)])
        elif isinstance(one, ast.If | ast.With):
            found |= leaves(one.body) | leaves(getattr(one, "orelse", []))
        elif isinstance(one, ast.For | ast.While):
            found |= leaves(one.body) & {".returned"}
    return found


def leaves_own(loop: ast.While | ast.For) -> set[str]:
    """Returns the hidden variables that the body of a loop may set."""
    return leaves(loop.body)


def ends(statements: list[ast.stmt]) -> bool:
    """Whether control never comes to the end of these statements."""
    for one in statements:
        if isinstance(one, ast.Return | ast.Break | ast.Continue | ast.Raise):
            return True
        if isinstance(one, ast.If) and one.orelse and ends(one.body) and ends(one.orelse):
            return True
    return False


def assigned(statements: Iterable[ast.AST]) -> list[str]:
    """Returns the names that these statements set, in order."""
    names: dict[str, None] = {}
    for one in statements:
        for node in ast.walk(one):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names[node.id] = None
    return list(names)


class Loops(Expressions):
    """Compiles loops. `depth` says in how many."""

    # Loops ----------------------------------------------------------------------------------------------------

    def write_While(self, node: ast.While) -> None:
        if node.orelse:
            fail(self.place(node), "else branches of while loops aren't supported")
        self.loop(self.constant(FOREVER), node, None, lambda: self.condition(node.test))

    def write_For(self, node: ast.For) -> None:
        if node.orelse:
            fail(self.place(node), "else branches of for loops aren't supported")
        over = self.iterated(self.expr(node.iter), node.iter)
        if over.items is None:
            assert over.length is not None
            self.loop(over.length, node, over, None)
            return
        if leaves(node.body) & {".broke", ".continued"}:
            fail(
                self.place(node),
                "`break` and `continue` aren't supported in a loop that is unrolled, over a tuple or modules",
            )
        body: list[Any] = []
        for item in over.items:
            body += [Given(node.target, item), *node.body]
        self.statements(body)

    def write_Given(self, node: Given) -> None:
        self.assign(node.target, node.value)

    def loop(self, length: Value, node: Any, over: Iteration | None, test: Callable[[], Condition] | None) -> None:
        """Writes a `prim::Loop` whose carried values are the variables that its body sets."""
        left = leaves(node.body)
        place = self.place(node)
        kept: dict[str, Any] = {name: self.env.pop(name) for name in (".broke", ".continued") if name in self.env}
        for name in left - {".continued"}:
            if name not in self.env:
                self.env[name] = self.constant(False)
        start = self.constant(True)
        if test is not None:
            start = self.truth(test())
        if ".returned" in left and ".ret" not in self.env:
            self.env[".ret"] = self.ret_before(node)
        names = [
            name
            for name in assigned([getattr(node, "target", node), *node.body]) + sorted(left - {".continued"})
            if isinstance(self.env.get(name), Value)
        ]
        names += [".ret"] if ".returned" in left else []
        for name in names:  # what a loop sets has the type with which it was declared
            self.env[name] = self.casts.get(self.env[name], self.env[name])
        made = self.node("prim::Loop", [length, start, *(self.env[name] for name in names)], [], place)
        outer, before = self.block, dict(self.env)
        self.block = made.add_block()
        turn = self.block.add_param(INT)
        for name in names:
            value = self.block.add_param(before[name].type, "" if name.startswith(".") else name)
            value.loose = before[name].loose
            self.env[name] = value
        if test is not None:
            self.refine(self.condition_types(node))
        if over is not None:
            self.assign(node.target, over.item(turn))
        self.depth += 1
        self.statements(node.body)
        self.depth -= 1
        goes_on = self.goes_on(left, test)
        self.block.results = [goes_on, *(self.carried(name, before[name], node) for name in names)]
        self.block, self.env = outer, before
        for name in names:
            self.env[name] = made.add_output(
                before[name].type, "" if name.startswith(".") else name, loose=before[name].loose
            )
        self.env.pop(".broke", None)
        self.env |= kept

    def condition_types(self, node: ast.While) -> dict[str, Type]:
        """Returns what a loop's condition says of the types of names; what it computes is thrown away."""
        count = len(self.block.nodes_)
        types = self.condition(node.test).yes
        del self.block.nodes_[count:]
        return types

    def ret_before(self, node: Any) -> Value:
        """Returns what stands for the value to return before a loop that may return one."""
        kind = self.returns if self.returns is not None else self.unit.guess_return(self, node)
        return self.node("prim::Uninitialized", [], [kind], None).output()

    def truth(self, condition: Condition) -> Value:
        return self.constant(condition.always) if condition.value is None else condition.value

    def goes_on(self, left: set[str], test: Callable[[], Condition] | None) -> Value:
        """Returns whether a loop goes on after this turn."""
        flags = [self.env[name] for name in sorted(left - {".continued"})]
        if not flags:
            return self.constant(True) if test is None else self.truth(test())
        gone = flags[0]
        for one in flags[1:]:
            gone = self.call("aten::__or__", [gone, one], {}, None)
        if test is None:
            return self.call("aten::__not__", [gone], {}, None)
        made = self.node("prim::If", [gone], [], None)
        outer, env = self.block, dict(self.env)
        made.add_block().results = [self.constant(False)]
        self.block = made.add_block()
        self.block.results = [self.truth(test())]
        self.block, self.env = outer, env
        return made.add_output(BOOL)

    def carried(self, name: str, before: Value, node: Any) -> Value:
        """Returns a variable's value at the end of a turn."""
        value = self.env[name]
        if not isinstance(value, Value):
            fail(self.place(node), f"{name} is a value before this loop, and none after a turn")
        if not is_subtype(value.type, before.type) and not (value.loose or before.loose):
            fail(
                self.place(node),
                f"Variable '{name}' previously had type {spoken(before.type)} but is now being assigned to a "
                f"value of type {spoken(value.type)}",
            )
        return value

    def plain_loop(self, over: Iteration, target: Any, body: Callable[[], None]) -> None:
        """Writes a loop that carries nothing: that of a comprehension."""
        if over.items is not None:
            for item in over.items:
                saved = self.block
                self.assign(target, item)
                body()
                self.block = saved
            return
        assert over.length is not None
        made = self.node("prim::Loop", [over.length, self.constant(True)], [], None)
        outer = self.block
        inner = self.block = made.add_block()
        self.assign(target, over.item(self.block.add_param(INT)))
        body()
        inner.results = [self.constant(True)]
        self.block = outer


class Given(ast.stmt):
    """A target that gets a value which is read already: a turn of a loop that is unrolled."""

    def __init__(self, target: Any, value: Any) -> None:
        super().__init__()
        self.target, self.value = target, value
