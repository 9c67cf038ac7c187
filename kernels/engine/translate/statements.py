"""From a program's functions to LLVM's language, for the types of their arguments.

    def clamped(x, low):
        if x < low:
            x = low
        return x

    Unit().function(program, "clamped", ("float32", "float32"))   # its text:

    define internal float @clamped.1(float %x, float %low) alwaysinline {
      %v1 = fcmp olt float %x, %low
      br i1 %v1, label %b2, label %b3
    b2:
      br label %b4
    b3:
      br label %b4
    b4:
      %v5 = phi float [%low, %b2], [%x, %b3]
      ...

A condition that is known, such as a global of the program, decides which branch is translated at all.

What programs of kernels have is translated: numbers, tuples of them, flat arrays, loops over `range`, and calls.
Everything else raises `Unknown`: numba takes the program then, to which all meanings here are equal.
"""

from __future__ import annotations

import ast
from typing import Any

from ..program import Program
from .expressions import Expressions, Function
from .flow import Join
from .instructions import NOTHING, VARIES, Unknown, Value, constant
from .promote import RANGE, Meant, Type, llvm, parts


class Unit:
    """The text of one module: each function once for the types of its arguments, after those that it calls."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}  # by symbol
        self.functions: dict[tuple, Function | None] = {}  # None: it is being written

    def function(
        self,
        program: Program,
        name: str,
        types: tuple[Type, ...],
        flags: frozenset[str] = frozenset(),
        inline: bool = True,
    ) -> Function:
        """Writes a function of a program, and all that it calls, for arguments of these types.

        flags: LLVM's, of all operations on floats. inline: whether it becomes part of who calls it.
        """
        key = (program, name, types, flags)
        if key not in self.functions:
            self.functions[key] = None
            symbol = f"{name}.{len(self.functions)}"
            text, result = self.statements(program, flags).translated(symbol, program.trees[name], types)
            text = text if inline else text.replace(" alwaysinline {", " noinline {", 1)
            self.require(symbol, text)
            self.functions[key] = Function(symbol, result)
        found = self.functions[key]
        if found is None:
            raise Unknown(f"{name} calls itself")
        return found

    def statements(self, program: Program, flags: frozenset[str]) -> Statements:
        """Returns the translation of a function, to be begun."""
        return Statements(self, program, flags)

    def require(self, symbol: str, text: str) -> None:
        """Has the module contain a function, given as text."""
        self.texts.setdefault(symbol, text)

    def text(self) -> str:
        """All functions."""
        return "\n".join(self.texts.values())


class Statements(Expressions):
    """The translation of one function."""

    def __init__(self, unit: Unit, program: Program, flags: frozenset[str]) -> None:
        super().__init__(unit, program, flags)
        self.exit = self.join()

    def translated(self, symbol: str, tree: ast.FunctionDef, types: tuple[Type, ...]) -> tuple[str, Type]:
        """The text of the function, and the type of its result."""
        arguments = tree.args
        if len(arguments.args) != len(types) or arguments.vararg or arguments.kwonlyargs or arguments.kwarg:
            raise Unknown(f"the parameters of {tree.name}")
        parameters: list[str] = []
        for argument, type in zip(arguments.args, types, strict=True):
            self.names[argument.arg] = self._parameter(f"%_{argument.arg}", type, parameters)
        if tree.name in self.program.apart:  # so that LLVM need not ask, which it does for a few arrays alone
            parameters = [one.replace("ptr ", "ptr noalias ", 1) for one in parameters]
        self.block(tree.body)
        self.give(NOTHING)
        self.enter(self.exit)
        if not self.alive:
            raise Unknown("a function that does not end")
        result = self.named("")
        word = llvm(result.type)
        self.lines.append("  ret void" if word == "void" else f"  ret {word} {self.text(result)}")
        lines = "\n".join(_flat(self.lines))
        return f"define internal {word} @{symbol}({', '.join(parameters)}) alwaysinline {{\n{lines}\n}}\n", result.type

    def _parameter(self, name: str, type: Type, written: list[str]) -> Value:
        inside = parts(type)
        if isinstance(type, Meant):
            return Value(type, "")
        if not inside:
            written.append(f"{llvm(type)} {name}")
            return Value(type, name)
        return Value(type, None, tuple(self._parameter(f"{name}.{k}", one, written) for k, one in enumerate(inside)))

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if not self.alive:
                return
            method = getattr(self, f"do_{type(statement).__name__}", None)
            if method is None:
                raise Unknown(type(statement).__name__)
            method(statement)

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def do_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            old = self.value(ast.Name(node.target.id, ast.Load()))
            self.assign(node.target, self.binary(node.op, old, self.value(node.value)))
            return
        if not isinstance(node.target, ast.Subscript):
            raise Unknown("an assignment to an attribute")
        place, element = self.place(node.target)
        self.store(place, element, self.binary(node.op, self.load(place, element), self.value(node.value)))

    def assign(self, target: ast.expr, value: Value) -> None:
        """Has a name stand for a value, or stores it."""
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value.type, tuple) or len(value.type) != len(target.elts):
                raise Unknown(f"{len(target.elts)} names of {value.type}")
            for one, part in zip(target.elts, self.parts(value), strict=True):
                self.assign(one, part)
        elif isinstance(target, ast.Subscript):
            self.store(*self.place(target), value)
        else:
            raise Unknown(f"an assignment to {type(target).__name__}")

    def do_If(self, node: ast.If) -> None:
        yes, no, end = self.join(), self.join(), self.join()
        self.condition(node.test, yes, no)
        for place, statements in ((yes, node.body), (no, node.orelse)):
            self.enter(place)
            self.block(statements)
            self.leave(end)
        self.enter(end)

    def do_Return(self, node: ast.Return) -> None:
        self.give(NOTHING if node.value is None else self.value(node.value))

    def give(self, value: Value) -> None:
        """Ends the function; the name of its result is an empty word."""
        self.names = {"": value}
        self.leave(self.exit)

    def do_Break(self, node: ast.Break) -> None:
        self.leave(self.loops[-1][1])

    def do_Continue(self, node: ast.Continue) -> None:
        self.leave(self.loops[-1][0])

    def do_While(self, node: ast.While) -> None:
        def turn(body: Join, out: Join) -> None:
            self.condition(node.test, body, out)

        self.loop(_assigned(node), turn, lambda: self.block(node.body))

    def do_For(self, node: ast.For) -> None:
        """A loop over `range`: counts down how often it still runs, and up the numbers."""
        call = node.iter
        if not (isinstance(call, ast.Call) and self.meaning(call.func) is range and not call.keywords):
            raise Unknown("a loop over anything but a range")
        given = tuple(self.value(one) for one in call.args)
        type, *_ = self.case(RANGE[len(given)], given)
        given = tuple(self.cast(one, type) for one in given)
        start, stop = given[:2] if len(given) > 1 else (constant(0, type), *given)
        step = given[2] if len(given) == 3 else constant(1, type)
        number, left = f"number {id(node)}", f"left {id(node)}"  # no program has such names
        self.names |= {number: start, left: self.turns(start, stop, step)}

        def turn(body: Join, out: Join) -> None:
            self.branch(self.plainly("icmp sgt", self.named(left), constant(0, type), "bool"), body, out)

        def body() -> None:
            at = self.named(number)
            self.names[left] = self.plainly("sub nsw", self.named(left), constant(1, type))
            self.names[number] = self.plainly("add", at, step)
            self.assign(node.target, at)
            self.block(node.body)

        self.loop([*_assigned(node), number, left], turn, body)

    def turns(self, start: Value, stop: Value, step: Value) -> Value:
        """The turns of a loop over a range: it takes none if this is negative, and with a step of 0."""
        way, zero = self.plainly("sub", stop, start), constant(0, start.type)
        if step.known == 1:
            return way
        some = step
        if step.known is VARIES:
            none = self.plainly("icmp eq", step, zero, "bool")
            some = self.select(none, constant(1, step.type), step)
        whole, rest = self.plainly("sdiv", way, some), self.plainly("srem", way, some)
        ways = [self.plainly(f"icmp {than}", rest, zero, "bool") for than in ("sgt", "slt")]
        if step.known is VARIES:
            up = self.plainly("icmp sgt", step, zero, "bool")
            more = self.select(up, *ways)
        else:
            more = ways[step.known < 0]
        turns = self.plainly("add", whole, self.line(way.type, f"zext i1 {more.text} to {llvm(way.type)}"))
        if step.known is VARIES:
            return self.select(none, zero, turns)
        return turns if step.known else zero


def _assigned(node: ast.For | ast.While) -> list[str]:
    """The names that are assigned within a loop, in order."""
    if node.orelse:
        raise Unknown("a loop with an else")
    found = [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
    return [*dict.fromkeys(found)]


def _flat(lines: list[Any]) -> list[str]:
    found: list[str] = []
    for line in lines:
        found += [line] if isinstance(line, str) else _flat(line)
    return found
