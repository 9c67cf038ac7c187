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

What a name stands for is known at each place, as a value with a type. Where ways join, a name that has two values gets
a `phi`, of the type of both (`promote.unified`), when it is asked for. A called function is written once for the types
of its arguments. A condition that is known, such as a global of the program, decides which branch is translated at all.

What programs of kernels have is translated: numbers, tuples of them, flat arrays, loops over `range`, and calls.
Everything else raises `Unknown`: numba takes the program then, to which all meanings here are equal.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..maths.vecmath import define
from . import primitives
from .instructions import NOTHING, UNDEFINED, VARIES, Unknown, Value, Writer, constant, maths
from .program import Program
from .promote import NUMBERS, PART, RANGE, Meant, Type, kind, leaves, llvm, parts, unified

CONTRACT = frozenset({"contract"})  # of the math functions' bodies: see define.py
FOLDED: dict[type, Callable] = {  # operators that Python computes itself where both sides are literals
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.BitXor: operator.xor,
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip


class Function(NamedTuple):
    """A function that is written already."""

    symbol: str
    result: Type


class Unit:
    """The text of one module: each function once for the types of its arguments, after those that it calls."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}  # by symbol
        self.functions: dict[tuple, Function | None] = {}  # None: it is being written

    def function(self, program: Program, name: str, types: tuple[Type, ...], flags: frozenset[str] = frozenset()) -> Function:
        """Writes a function of a program, and all that it calls, for arguments of these types.

        flags: LLVM's, of all operations on floats.
        """
        key = (program, name, types, flags)
        if key not in self.functions:
            self.functions[key] = None
            symbol = f"{name}.{len(self.functions)}"
            text, result = _Body(self, program, flags).translated(symbol, program.trees[name], types)
            self.require(symbol, text)
            self.functions[key] = Function(symbol, result)
        found = self.functions[key]
        if found is None:
            raise Unknown(f"{name} calls itself")
        return found

    def require(self, symbol: str, text: str) -> None:
        """Has the module contain a function, given as text."""
        self.texts.setdefault(symbol, text)

    def text(self) -> str:
        """All functions."""
        return "\n".join(self.texts.values())


class Way(NamedTuple):
    """A jump: from which block, what names stand for there, and lines in front of it, to which some can be added."""

    label: str
    names: dict[str, Any]
    lines: list[Any]


class Join:
    """A place to which ways lead, and the values that names have there."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.ways: list[Way] = []
        self.head: list[Any] = []  # lines at its beginning
        self.found: dict[str, Value] = {}


class _Body(Writer):
    """The translation of one function."""

    def __init__(self, unit: Unit, program: Program, flags: frozenset[str]) -> None:
        super().__init__("".join(f" {flag}" for flag in sorted(flags)), unit.require)
        self.unit, self.program, self.flags = unit, program, flags
        self.names: dict[str, Any] = {}  # what each stands for: a value, or the place of joining where it is decided
        self.label = "0"  # of the block that is being written
        self.alive = True  # whether anything leads here
        self.loops: list[tuple[Join, Join]] = []  # where `continue` and `break` lead to
        self.exit = self.join()

    def translated(self, symbol: str, tree: ast.FunctionDef, types: tuple[Type, ...]) -> tuple[str, Type]:
        """The text of the function, and the type of its result."""
        arguments = tree.args
        if len(arguments.args) != len(types) or arguments.vararg or arguments.kwonlyargs or arguments.kwarg:
            raise Unknown(f"the parameters of {tree.name}")
        parameters: list[str] = []
        for argument, type in zip(arguments.args, types, strict=True):
            self.names[argument.arg] = self._parameter(f"%_{argument.arg}", type, parameters)
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

    # Ways through the function

    def join(self) -> Join:
        """A new place where ways may join."""
        self.count += 1
        return Join(f"b{self.count}")

    def leave(self, to: Join) -> None:
        """Jumps."""
        if self.alive:
            lines: list[Any] = []
            self.lines += [lines, f"  br label %{to.label}"]
            to.ways.append(Way(self.label, self.names, lines))
            self.alive = False

    def branch(self, condition: Value, yes: Join, no: Join) -> None:
        """Jumps by a condition."""
        if condition.known is not VARIES:
            return self.leave(yes if condition.known else no)
        lines: list[Any] = []
        self.lines += [lines, f"  br i1 {condition.text}, label %{yes.label}, label %{no.label}"]
        for to in (yes, no):
            to.ways.append(Way(self.label, self.names, lines))
        self.alive = False

    def enter(self, place: Join) -> None:
        """Goes on where ways join, if any leads there."""
        self.alive = bool(place.ways)
        if not self.alive:
            return
        self.lines += [f"{place.label}:", place.head]
        self.label = place.label
        known = [way.names for way in place.ways]
        self.names = {
            name: value if all(names.get(name) is value for names in known) else place
            for names in known for name, value in names.items()
        }  # fmt: skip

    def named(self, name: str, among: dict[str, Any] | None = None) -> Value:
        """What a name stands for."""
        names = self.names if among is None else among
        found = names[name]
        if isinstance(found, Join):
            found = names[name] = self.joined(found, name)
        return found

    def joined(self, place: Join, name: str) -> Value:
        """What a name stands for where ways join: each converts its value to one type."""
        if name not in place.found:
            values = [self.named(name, way.names) if name in way.names else None for way in place.ways]
            type: Type = None
            for value in values:
                if value is not None:
                    type = value.type if type is None else unified(type, value.type)
                    if type is None:
                        raise Unknown(f"{name or 'a result'} of several types")
            sources = [(way, value) for way, value in zip(place.ways, values, strict=True)]
            place.found[name] = self.phi(place, type, [(way, self.before(way, value, type)) for way, value in sources])
        return place.found[name]

    def before(self, way: Way, value: Value | None, type: Type) -> Value:
        """Converts a value before a jump."""
        if value is None:
            return undefined(type)
        here, self.lines = self.lines, way.lines
        found = self.cast(value, type)
        if parts(type):
            found = self._in_parts(found)
        self.lines = here
        return found

    def _in_parts(self, value: Value) -> Value:
        inside = self.parts(value) if parts(value.type) else None
        return Value(value.type, None, tuple(map(self._in_parts, inside))) if inside is not None else value

    def phi(self, place: Join, type: Type, sources: list[tuple[Way, Value]]) -> Value:
        """The value that each way brings along."""
        first = sources[0][1]
        if all(value == first for _, value in sources):
            return first
        inside = parts(type)
        if inside:
            return Value(type, None, tuple(
                self.phi(place, part, [(way, value.parts[k]) for way, value in sources if value.parts])
                for k, part in enumerate(inside)
            ))  # fmt: skip
        if type == "none":
            return NOTHING
        pairs = ", ".join(f"[{value.text}, %{way.label}]" for way, value in sources)
        return self.line(type, f"phi {llvm(type)} {pairs}", place.head)

    # Statements

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

        self.loop(node, turn)

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
        number, left = _counters(node)
        self.names |= {number: start, left: self.turns(start, stop, step)}

        def turn(body: Join, out: Join) -> None:
            self.branch(self.signed("icmp sgt", self.named(left), constant(0, type), "bool"), body, out)

        def begin() -> None:
            at = self.named(number)
            self.names[left] = self.signed("sub nsw", self.named(left), constant(1, type))
            self.names[number] = self.signed("add", at, step)
            self.assign(node.target, at)

        self.loop(node, turn, begin)

    def signed(self, instruction: str, a: Value, b: Value, type: str = "") -> Value:
        """An instruction on two numbers of one type, as they are."""
        return self.line(type or a.type, f"{instruction} {llvm(a.type)} {a.text}, {b.text}")

    def turns(self, start: Value, stop: Value, step: Value) -> Value:
        """How often a loop over a range runs: not at all if this is negative, and with a step of 0."""
        way, zero = self.signed("sub", stop, start), constant(0, start.type)
        if step.known == 1:
            return way
        some = step
        if step.known is VARIES:
            none = self.signed("icmp eq", step, zero, "bool")
            some = self.select(none, constant(1, step.type), step)
        whole, rest = self.signed("sdiv", way, some), self.signed("srem", way, some)
        ways = [self.signed(f"icmp {than}", rest, zero, "bool") for than in ("sgt", "slt")]
        if step.known is VARIES:
            up = self.signed("icmp sgt", step, zero, "bool")
            more = self.select(up, *ways)
        else:
            more = ways[step.known < 0]
        turns = self.signed("add", whole, self.line(way.type, f"zext i1 {more.text} to {llvm(way.type)}"))
        return self.select(none, zero, turns) if step.known is VARIES else constant(0, step.type) if not step.known else turns

    def loop(self, node: ast.For | ast.While, turn: Callable, begin: Callable = lambda: None) -> None:
        """A loop; `turn` branches to the body or out, and `begin` is what the body begins with.

        A name that is assigned within is a phi at the top, of the type with which it comes in. Where it comes back with
        another one, all is written again with the type of both.
        """
        if node.orelse:
            raise Unknown("a loop with an else")
        types = {name: self.named(name).type for name in _assigned(node) if name in self.names}
        names, lines, label = self.names, len(self.lines), self.label
        while True:
            top, body, again, out = (self.join() for _ in range(4))
            self.names = dict(names)
            self.leave(top)
            self.enter(top)
            phis: dict[str, list[Any]] = {name: [] for name in types}
            for name, type in types.items():
                self.names[name] = self._promised(type, top.head, phis[name])
            turn(body, out)
            self.enter(body)
            self.loops.append((again, out))
            if self.alive:
                begin()
                self.block(node.body)
                self.leave(again)
            self.loops.pop()
            self.enter(again)
            if not self.alive:  # it runs once at most
                back = None
            else:
                wider = {name: unified(type, self.named(name).type) for name, type in types.items()}
                if None in wider.values():
                    raise Unknown(f"a name of several types in a loop: {wider}")
                if wider != types:
                    types, self.names, self.label, self.alive = wider, names, label, True
                    del self.lines[lines:]
                    continue
                back = self.names
                self.leave(top)
            for name, type in types.items():
                ways = [self.before(way, self.named(name, way.names), type) for way in top.ways]
                for k, lines_of_phi in enumerate(phis[name]):
                    pairs = (f"[{_leaf(value, k)}, %{way.label}]" for way, value in zip(top.ways, ways, strict=True))
                    lines_of_phi.append(lines_of_phi.pop() + ", ".join(pairs))
            self.enter(out)
            return

    def _promised(self, type: Type, head: list[Any], phis: list[Any]) -> Value:
        """A value that a phi will have, whose lines are finished when all ways to it are known."""
        inside = parts(type)
        if inside:
            return Value(type, None, tuple(self._promised(part, head, phis) for part in inside))
        name = self.name()
        line = [f"  {name} = phi {llvm(type)} "]
        head.append(line)
        phis.append(line)
        return Value(type, name)

    # Conditions

    def condition(self, node: ast.expr, yes: Join, no: Join) -> None:
        """Jumps by whether an expression is true, which is computed as far as that takes."""
        if isinstance(node, ast.BoolOp):
            every = isinstance(node.op, ast.And)
            for one in node.values[:-1]:
                next = self.join()
                self.condition(one, *((next, no) if every else (yes, next)))
                self.enter(next)
                if not self.alive:
                    return
            self.condition(node.values[-1], yes, no)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.condition(node.operand, no, yes)
        else:
            self.branch(self.truth(self.value(node)), yes, no)

    def choice(self, test: Callable[[Join, Join], None], yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
        """One of two values, of which the other is not computed."""
        this, that, end = self.join(), self.join(), self.join()
        name = f"{end.label}?"
        test(this, that)
        for place, value in ((this, yes), (that, no)):
            self.enter(place)
            if self.alive:
                self.names[name] = value()
                self.leave(end)
        self.enter(end)
        found = self.named(name)
        del self.names[name]
        return found

    # Expressions

    def value(self, node: ast.expr) -> Value:
        """The value of an expression."""
        method = getattr(self, f"of_{type(node).__name__}", None)
        if method is None:
            raise Unknown(type(node).__name__)
        return method(node)

    def of_Constant(self, node: ast.Constant) -> Value:
        return constant(node.value)

    def of_Name(self, node: ast.Name) -> Value:
        if node.id in self.names:
            return self.named(node.id)
        if node.id in self.program.trees:
            return Value(Meant(node.id), "")
        return self.given(self.meaning(node))

    def given(self, thing: Any) -> Value:
        """A global of the program."""
        if isinstance(thing, tuple):
            inside = tuple(map(self.given, thing))
            return Value(tuple(part.type for part in inside), None, inside)
        return Value(Meant(thing), "") if callable(thing) and not isinstance(thing, np.generic) else constant(thing)

    def of_Attribute(self, node: ast.Attribute) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id not in self.names:
            return self.given(self.meaning(node))
        value = self.value(node.value)
        if node.attr not in ("real", "imag") or value.type not in NUMBERS or value.type == "bool":
            raise Unknown(f"{node.attr} of {value.type}")
        if value.type in PART:
            return self.parts(value)[node.attr == "imag"]
        return value if node.attr == "real" else constant(0, value.type)

    def of_Tuple(self, node: ast.Tuple) -> Value:
        inside = tuple(map(self.value, node.elts))
        return Value(tuple(part.type for part in inside), None, inside)

    def of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        folded = _literal(node)
        if folded is not None:
            return constant(folded)
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not) and value.known is not VARIES:
            return constant(not value.known)
        return self.unary(node.op, value)

    def of_BinOp(self, node: ast.BinOp) -> Value:
        folded = _literal(node)
        if folded is not None:
            return constant(folded)
        return self.binary(node.op, self.value(node.left), self.value(node.right))

    def of_Compare(self, node: ast.Compare) -> Value:
        left, op, right = self.value(node.left), node.ops[0], self.value(node.comparators[0])
        first = self.compared(op, left, right)
        if len(node.ops) == 1:
            return first
        rest = ast.Compare(node.comparators[0], node.ops[1:], node.comparators[1:])
        if not isinstance(node.comparators[0], (ast.Name, ast.Constant)):  # it would be computed twice
            raise Unknown("a chain of comparisons")
        return self.choice(lambda *ways: self.branch(first, *ways), lambda: self.of_Compare(rest), lambda: constant(False))

    def compared(self, op: ast.cmpop, a: Value, b: Value) -> Value:
        if a.known is not VARIES and b.known is not VARIES and a.type == b.type and type(op) in FOLDED:
            return constant(bool(FOLDED[type(op)](a.known, b.known)))
        return self.compare(op, a, b)

    def of_BoolOp(self, node: ast.BoolOp) -> Value:
        """`x and y`, which is x or y itself: one of both types."""
        first, *rest = node.values
        value = self.value(first)
        if not rest:
            return value
        others = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        truth = self.truth(value)
        sides = [lambda: value, lambda: self.value(others)]
        if isinstance(node.op, ast.And):
            sides.reverse()
        return self.choice(lambda *ways: self.branch(truth, *ways), *sides)

    def of_IfExp(self, node: ast.IfExp) -> Value:
        return self.choice(
            lambda *ways: self.condition(node.test, *ways),
            lambda: self.value(node.body),
            lambda: self.value(node.orelse),
        )

    # Arrays

    def of_Subscript(self, node: ast.Subscript) -> Value:
        container = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            return self.rest(container, node.slice)
        if not isinstance(container.type, tuple):
            return self.load(*self.place(node, container))
        index = self.value(node.slice).known
        if type(index) is not int or not -len(container.type) <= index < len(container.type):
            raise Unknown("an element of a tuple that is not known")
        return self.parts(container)[index]

    def rest(self, array: Value, which: ast.Slice) -> Value:
        """What is left of an array from an element on; nothing where there is no such element."""
        if kind(array.type) != "a" or which.lower is None or which.upper is not None or which.step is not None:
            raise Unknown("a slice")
        index, (start, size) = self.value(which.lower), self.parts(array)
        if kind(index.type) not in "iu":
            raise Unknown(f"a slice from {index.type}")
        index = self.wrapped(self.cast(index, "int64"), size)
        index = self.extreme(ast.Lt(), (self.extreme(ast.Gt(), (index, constant(0))), size))
        place = self.at(start, array.type[:-2], index)
        return Value(array.type, None, (place, self.signed("sub", size, index)))

    def wrapped(self, index: Value, size: Value) -> Value:
        """A signed index as one from the start."""
        if index.known is not VARIES and index.known >= 0:
            return index
        minus = self.signed("icmp slt", index, constant(0), "bool")
        return self.select(minus, self.signed("add", index, size), index)

    def at(self, start: Value, element: str, index: Value) -> Value:
        return self.line("ptr", f"getelementptr {self.stored(element)}, ptr {start.text}, i64 {index.text}")

    def place(self, node: ast.Subscript, array: Value | None = None) -> tuple[Value, str]:
        """Where an element of an array lies, and its type. A signed index may count from the end."""
        array = self.value(node.value) if array is None else array
        if kind(array.type) != "a":
            raise Unknown(f"an element of {array.type}")
        index, element = self.value(node.slice), array.type[:-2]
        if kind(index.type) not in "iu":
            raise Unknown(f"an element at {index.type}")
        start, size = self.parts(array)
        index = self.wrapped(self.cast(index, "int64"), size) if kind(index.type) == "i" else self.cast(index, "uint64")
        return self.at(start, element, index), element

    def stored(self, element: str) -> str:
        """LLVM's word for an element in memory."""
        return "i8" if element == "bool" else llvm(element)

    def load(self, place: Value, element: str) -> Value:
        found = self.line(element, f"load {self.stored(element)}, ptr {place.text}")
        return self.line("bool", f"icmp ne i8 {found.text}, 0") if element == "bool" else found

    def store(self, place: Value, element: str, value: Value) -> None:
        value = self.cast(value, element)
        if element == "bool":
            value = self.line("uint8", f"zext i1 {value.text} to i8")
        self.lines.append(f"  store {self.stored(element)} {self.text(value)}, ptr {place.text}")

    # Calls

    def meaning(self, node: ast.expr) -> Any:
        """What a global is: a name of the program, a builtin, or a module's attribute."""
        if isinstance(node, ast.Attribute):
            module = self.meaning(node.value)
            if module not in (np, math):
                raise Unknown(f"an attribute of {module}")
            return getattr(module, node.attr)
        if not isinstance(node, ast.Name):
            raise Unknown(f"a call of {type(node).__name__}")
        for scope in (self.program.constants, self.program.namespace, vars(builtins)):
            if node.id in scope:
                return scope[node.id]
        raise Unknown(f"the name {node.id}")

    def of_Call(self, node: ast.Call) -> Value:
        called = node.func
        if node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
            raise Unknown("an argument by name")
        if isinstance(called, ast.Attribute) and called.attr == "conjugate" and not node.args:
            return self.conjugate(self.value(called.value))
        if isinstance(called, ast.Call) and self.meaning(called.func) is type:  # type(x)(y)
            return self.cast(self.value(node.args[0]), self.value(called.args[0]).type)
        function = self.called(called)
        if isinstance(function, str):
            return self.call(self.program, function, tuple(map(self.value, node.args)), self.flags)
        if function is float and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            return constant(float(node.args[0].value))
        return self.apply(function, tuple(map(self.value, node.args)))

    def called(self, node: ast.expr) -> Any:
        """The function that is called; one of the program by its name."""
        if isinstance(node, ast.Name) and node.id in self.names:
            value = self.named(node.id)
            return value.type.function if isinstance(value.type, Meant) else _refuse(f"a call of {value.type}")
        return node.id if isinstance(node, ast.Name) and node.id in self.program.trees else self.meaning(node)

    def conjugate(self, x: Value) -> Value:
        if x.type not in PART:
            raise Unknown(f"conjugate of {x.type}")
        real, imaginary = self.parts(x)
        return Value(x.type, None, (real, self.unary(ast.USub(), imaginary)))

    def call(self, program: Program, name: str, arguments: tuple[Value, ...], flags: frozenset[str]) -> Value:
        """Calls a function of a program."""
        found = self.unit.function(program, name, tuple(one.type for one in arguments), flags)
        passed = ", ".join(leaf for one in arguments for leaf in self.leaves(one))
        call = f"call {llvm(found.result)} @{found.symbol}({passed})"
        if found.result == "none":
            self.lines.append(f"  {call}")
            return NOTHING
        return self.line(found.result, call)

    def apply(self, function: Any, arguments: tuple[Value, ...]) -> Value:
        """Calls what is no function of the program."""
        if isinstance(function, type) and issubclass(function, np.generic):
            (value,) = arguments
            return self.cast(value, np.dtype(function).name)
        known = BUILTINS.get(function) if _hashable(function) else None
        if known is not None:
            return known(self, *arguments)
        mathematical = maths().get(function)
        if mathematical is not None:
            return self.mathematical(mathematical, arguments)
        if function in define.BODIES:
            return self.computed(function, arguments)
        form = primitives.FORMS.get(function)
        if form is None:
            raise Unknown(f"a call of {function}")
        return self.primitive(function, form, arguments)

    def computed(self, function: Callable, arguments: tuple[Value, ...]) -> Value:
        """Calls a math function of ours, by its body for these types."""
        form = define.form_of(function, tuple(one.type for one in arguments))
        if form is None:
            raise Unknown(f"{function.__name__} of {[one.type for one in arguments]}")
        if form.in_double:
            arguments = tuple(self.cast(one, "float64") for one in arguments)
        program = define.program_of(form.body, form.real)
        found = self.call(program, program.compiled[-1], arguments, CONTRACT)
        return self.apply(primitives.rounded, (found,)) if form.rounds else found

    def primitive(self, function: Callable, form: primitives.Form, arguments: tuple[Value, ...]) -> Value:
        """Calls a primitive, whose text stands in primitives.py."""
        real = arguments[0].type
        if "real" in form.arguments and real not in ("float32", "float64"):
            raise Unknown(f"{function.__name__} of {real}")
        wanted = [real if one == "real" else one for one in form.arguments]
        result = real if form.result == "real" else form.result
        arguments = tuple(self.cast(one, to) for one, to in zip(arguments, wanted, strict=True))
        symbol = primitives.symbol(function, real)
        self.require(symbol, primitives.text(function, real))
        passed = ", ".join(leaf for one in arguments for leaf in self.leaves(one))
        return self.line(result, f"call {llvm(result)} @{symbol}({passed})")

    # Python's own functions

    def length(self, x: Value) -> Value:
        return constant(len(x.type)) if isinstance(x.type, tuple) else self.parts(x)[1]

    def whole(self, x: Value) -> Value:
        """`int(x)`: an integer keeps its type."""
        return x if kind(x.type) in "iu" else self.cast(x, "int64")

    def real(self, x: Value) -> Value:
        """`float(x)`: a float keeps its type."""
        if x.type == "bool":
            raise Unknown("float of a bool")
        return x if kind(x.type) == "f" else self.cast(x, "float64")

    def complex(self, real: Value, imaginary: Value | None = None) -> Value:
        if imaginary is None:
            return real if real.type in PART else self.cast(real, "complex64" if real.type == "float32" else "complex128")
        if kind(real.type) not in "iuf" or kind(imaginary.type) not in "iuf":
            raise Unknown("a complex number of others")
        to = "complex64" if real.type == imaginary.type == "float32" else "complex128"
        return Value(to, None, (self.cast(real, PART[to]), self.cast(imaginary, PART[to])))


BUILTINS: dict[Any, Callable[..., Value]] = {
    len: _Body.length,
    int: _Body.whole,
    float: _Body.real,
    bool: _Body.truth,
    complex: _Body.complex,
    abs: _Body.absolute,
    np.abs: lambda body, x: body.absolute(x) if x.type != "bool" else _refuse("np.abs of a bool"),
    round: _Body.rounded,
    min: lambda body, *values: body.extreme(ast.Lt(), values),
    max: lambda body, *values: body.extreme(ast.Gt(), values),
    **{
        getattr(module, test): lambda body, x, test=test: body.is_class(test, x)
        for module in (math, np) for test in ("isnan", "isinf", "isfinite")
    },
}  # fmt: skip


def undefined(type: Type) -> Value:
    """A value for where none was given."""
    inside = parts(type)
    return Value(type, None, tuple(map(undefined, inside))) if inside else Value(type, UNDEFINED)


def _refuse(what: str) -> Any:
    raise Unknown(what)


def _hashable(thing: Any) -> bool:
    try:
        hash(thing)
    except TypeError:
        return False
    return True


def _flat(lines: list[Any]) -> list[str]:
    found: list[str] = []
    for line in lines:
        found += [line] if isinstance(line, str) else _flat(line)
    return found


def _leaf(value: Value, at: int) -> str | None:
    """The word of one of those of which a value consists in the end, by number."""
    for part in value.parts or ():
        count = len(leaves(part.type))
        if at < count:
            return _leaf(part, at)
        at -= count
    return value.text


def _assigned(node: ast.For | ast.While) -> list[str]:
    """The names that are assigned within a loop, in order."""
    found = [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
    return [*dict.fromkeys(found), *(_counters(node) if isinstance(node, ast.For) else ())]


def _counters(node: ast.For) -> tuple[str, str]:
    """The names of what a loop counts: no program has such."""
    return f"number {id(node)}", f"left {id(node)}"


def _literal(node: ast.expr) -> Any:
    """The number that Python itself makes of an expression of literals; None where it is no such expression."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) in (int, float, complex, bool) else None
    if isinstance(node, ast.UnaryOp):
        inside = [node.operand]
    elif isinstance(node, ast.BinOp):
        inside = [node.left, node.right]
    else:
        return None
    numbers = [_literal(one) for one in inside]
    if any(one is None for one in numbers) or type(node.op) not in FOLDED:
        return None
    try:
        return FOLDED[type(node.op)](*numbers)
    except (ArithmeticError, TypeError, ValueError):
        return None
