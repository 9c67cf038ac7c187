"""Translates expressions: names, operators, elements of arrays, conditions and calls.

A called function of the program is written once for the types of its arguments; a math function of ours is one of a
program of its own, and a primitive comes as text. Read next: `statements.py`.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from redispatch.dispatch.disk import digest

from ...maths.vecmath import define
from .. import primitives
from ..external import External
from ..program import Part, Program
from .flow import Flow, Join
from .instructions import NOTHING, VARIES, Unknown, Value, constant, maths
from .promote import NUMBERS, PART, Meant, Type, kind, llvm

ONE_ROUNDING = frozenset({"one rounding"})  # of the math functions' bodies, for us: see the note
FOLDED: dict[type, Callable] = {  # operators that Python computes itself where both sides are literals
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.BitXor: operator.xor,
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip

# Note [One rounding]
# In the math functions' bodies a product and a sum in one expression, a * b + c, are one operation, which rounds once,
# where the machine has one. LLVM's flag "contract" would leave it to LLVM which of them are: then a function's bits
# depend on what stands beside it in a loop (a product that two functions share is not contracted), and on whether LLVM
# knows an argument.


class Function(NamedTuple):
    """A function that is written already."""

    symbol: str
    result: Type


class Functions(Protocol):
    """Those of a module."""

    def function(
        self, program: Program, name: str, types: tuple[Type, ...], flags: frozenset[str], inline: bool
    ) -> Function:
        """Writes a function for arguments of these types."""

    def require(self, symbol: str, text: str) -> None:
        """Has the module contain a function, given as text."""


class Expressions(Flow):
    """Translates the expressions of one function."""

    def __init__(self, unit: Functions, program: Program, flags: frozenset[str]) -> None:
        super().__init__("".join(f" {flag}" for flag in sorted(flags - ONE_ROUNDING)), unit.require)
        self.unit, self.program, self.flags = unit, program, flags

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
        if isinstance(node.op, ast.Add | ast.Sub) and self.flags >= ONE_ROUNDING:
            for product, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult) and _literal(product) is None:
                    a, b, c = map(self.value, (product.left, product.right, other))
                    return self.with_product(node.op, a, b, c, first=product is node.left)
        return self.binary(node.op, self.value(node.left), self.value(node.right))

    def with_product(self, op: ast.operator, a: Value, b: Value, c: Value, first: bool) -> Value:
        """`c op a * b`, or `a * b op c` where the product comes first. Note [One rounding]"""
        if not a.type == b.type == c.type or a.type not in ("float32", "float64"):
            product = self.binary(ast.Mult(), a, b)
            return self.binary(op, *((product, c) if first else (c, product)))
        if isinstance(op, ast.Sub):
            a, c = (a, self.unary(ast.USub(), c)) if first else (self.unary(ast.USub(), a), c)
        return self.call_intrinsic("fmuladd", a.type, (a, b, c))

    def of_Compare(self, node: ast.Compare) -> Value:
        left, op, right = self.value(node.left), node.ops[0], self.value(node.comparators[0])
        first = self.compared(op, left, right)
        if len(node.ops) == 1:
            return first
        rest = ast.Compare(node.comparators[0], node.ops[1:], node.comparators[1:])
        if not isinstance(node.comparators[0], (ast.Name, ast.Constant)):  # it would be computed twice
            raise Unknown("a chain of comparisons")
        return self.choice(
            lambda *ways: self.branch(first, *ways), lambda: self.of_Compare(rest), lambda: constant(False)
        )

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
        index = self.value(node.slice)
        if index.known is VARIES:
            return self.looked_up(container, index)
        if type(index.known) is not int or not -len(container.type) <= index.known < len(container.type):
            raise Unknown("an element of a tuple that has none such")
        return self.parts(container)[index.known]

    def looked_up(self, table: Value, index: Value) -> Value:
        """The element of a tuple of literals of one type. Beyond its ends stands the last."""
        numbers, size = self.parts(table), constant(len(table.type))
        element = table.type[0] if table.type else ""
        plain = {*table.type} == {element} and kind(element) in "iuf" and kind(index.type) in "iu"
        if not plain or any(number.known is VARIES for number in numbers):
            raise Unknown("an element of a tuple that is not known")
        words = f"[{size.text} x {llvm(element)}] [{', '.join(f'{llvm(element)} {one.text}' for one in numbers)}]"
        symbol = f"table.{digest(words.encode()).hex()[:16]}"
        self.require(symbol, f"@{symbol} = internal constant {words}\n")
        index = self.wrapped(self.cast(index, "int64"), size)
        inside = self.plainly("icmp ult", index, size, "bool")
        index = self.select(inside, index, constant(len(numbers) - 1))
        return self.load(self.at(Value("ptr", f"@{symbol}"), element, index), element)

    def rest(self, array: Value, which: ast.Slice) -> Value:
        """The part of an array from an element on, up to another; nothing where there is no such element."""
        if kind(array.type) != "a" or which.lower is None or which.step is not None:
            raise Unknown("a slice")
        index, (start, size) = self.value(which.lower), self.parts(array)
        if which.upper is not None:
            end = self.cast(self.value(which.upper), "int64")
            size = self.extreme(ast.Lt(), (self.wrapped(end, size), size))
        if kind(index.type) not in "iu":
            raise Unknown(f"a slice from {index.type}")
        index = self.wrapped(self.cast(index, "int64"), size)
        index = self.extreme(ast.Lt(), (self.extreme(ast.Gt(), (index, constant(0))), size))
        place = self.at(start, array.type[:-2], index)
        return Value(array.type, None, (place, self.plainly("sub", size, index)))

    def wrapped(self, index: Value, size: Value) -> Value:
        """A signed index as one from the start."""
        if index.known is not VARIES and index.known >= 0:
            return index
        minus = self.plainly("icmp slt", index, constant(0), "bool")
        return self.select(minus, self.plainly("add", index, size), index)

    def at(self, start: Value, element: str, index: Value) -> Value:
        return self.line("ptr", f"getelementptr {self.stored(element)}, ptr {start.text}, i64 {index.text}")

    def place(self, node: ast.Subscript, array: Value | None = None) -> tuple[Value, str]:
        """The address of an element of an array, and its type. A signed index may count from the end."""
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
        """Finds what a global is: a name of the program, a builtin, or a module's attribute."""
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

    def call(
        self, program: Program, name: str, arguments: tuple[Value, ...], flags: frozenset[str], inline: bool = True
    ) -> Value:
        """Calls a function of a program."""
        found = self.unit.function(program, name, tuple(one.type for one in arguments), flags, inline)
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
        if isinstance(function, Part):
            return self.call(function.program, function.program.compiled[-1], arguments, function.flags, False)
        if isinstance(function, External):
            return self.external(function, arguments)
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
        found = self.call(program, program.compiled[-1], arguments, ONE_ROUNDING)
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

    def external(self, function: External, arguments: tuple[Value, ...]) -> Value:
        """Calls a function of another library."""
        given = [
            self.parts(one)[0] if to == "ptr" else self.cast(one, to)
            for one, to in zip(arguments, function.takes, strict=True)
        ]
        self.require(function.symbol, f"declare void @{function.symbol}({', '.join(map(llvm, function.takes))})\n")
        passed = ", ".join(f"{llvm(one.type)} {one.text}" for one in given)
        self.lines.append(f"  call void @{function.symbol}({passed})")
        return NOTHING

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
            return (
                real if real.type in PART else self.cast(real, "complex64" if real.type == "float32" else "complex128")
            )
        if kind(real.type) not in "iuf" or kind(imaginary.type) not in "iuf":
            raise Unknown("a complex number of others")
        to = "complex64" if real.type == imaginary.type == "float32" else "complex128"
        return Value(to, None, (self.cast(real, PART[to]), self.cast(imaginary, PART[to])))

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


BUILTINS: dict[Any, Callable[..., Value]] = {
    len: Expressions.length,
    int: Expressions.whole,
    float: Expressions.real,
    bool: Expressions.truth,
    complex: Expressions.complex,
    abs: Expressions.absolute,
    np.abs: lambda body, x: body.absolute(x) if x.type != "bool" else _refuse("np.abs of a bool"),
    round: Expressions.rounded,
    min: lambda body, *values: body.extreme(ast.Lt(), values),
    max: lambda body, *values: body.extreme(ast.Gt(), values),
    **{
        getattr(module, test): lambda body, x, test=test: body.is_class(test, x)
        for module in (math, np) for test in ("isnan", "isinf", "isfinite")
    },
}  # fmt: skip


def _refuse(what: str) -> Any:
    raise Unknown(what)


def _hashable(thing: Any) -> bool:
    try:
        hash(thing)
    except TypeError:
        return False
    return True


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
