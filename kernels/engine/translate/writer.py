"""Writes operations on values as lines of LLVM's language.

    w.binary(ast.Add(), x, y)     of an int32 and a float32 writes
      %v1 = sitofp i32 %x to double
      %v2 = fpext float %y to double
      %v3 = fadd double %v1, %v2

Read next: `flow.py`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .instructions import (
    ARITHMETIC,
    BETWEEN,
    FROM_REALS,
    LONGER,
    MAX_UNROLLED_POWER,
    ORDER,
    TWO_REALS,
    VARIES,
    WITHIN,
    Maths,
    Unknown,
    Value,
    _function,
    constant,
)
from .promote import (
    BINARY,
    BITS,
    COMPARE,
    NUMBERS,
    PART,
    WITHOUT_LOSS,
    Case,
    Meant,
    Type,
    chosen,
    kind,
    llvm,
    parts,
    unified,
)


class Writer:
    """Writes the lines of one function: each method writes what it takes to compute a value, and returns that.

    fast: LLVM's flags of all operations on floats. require: is told of functions that the lines call, by name and text.
    """

    def __init__(self, fast: str, require: Callable[[str, str], None]) -> None:
        self.fast, self.require = fast, require
        self.lines: list[Any] = []  # lines, and lists of lines to which something may still be added
        self.count = 0

    def name(self) -> str:
        """A name that no value has yet."""
        self.count += 1
        return f"%v{self.count}"

    def line(self, type: Type, instruction: str, into: list[Any] | None = None) -> Value:
        """Writes an instruction, and returns its value."""
        name = self.name()
        (self.lines if into is None else into).append(f"  {name} = {instruction}")
        return Value(type, name)

    def plainly(self, instruction: str, a: Value, b: Value, type: str = "") -> Value:
        """An instruction on two numbers of one type, as they are."""
        return self.line(type or a.type, f"{instruction} {llvm(a.type)} {a.text}, {b.text}")

    # What has parts

    def parts(self, value: Value) -> tuple[Value, ...]:
        """The parts of a tuple, a complex number or an array."""
        if value.parts is not None:
            return value.parts
        whole = f"{llvm(value.type)} {value.text}"
        return tuple(self.line(part, f"extractvalue {whole}, {k}") for k, part in enumerate(parts(value.type)))

    def text(self, value: Value) -> str:
        """LLVM's word for a value, whose parts are put together first."""
        if value.text is not None:
            return value.text
        word, whole = llvm(value.type), "undef"
        for k, part in enumerate(value.parts or ()):
            text = self.line(value.type, f"insertvalue {word} {whole}, {llvm(part.type)} {self.text(part)}, {k}").text
            assert text is not None
            whole = text
        return whole

    def leaves(self, value: Value) -> list[str]:
        """A value as a call passes it: types and words of all that it consists of."""
        if parts(value.type):
            return [leaf for part in self.parts(value) for leaf in self.leaves(part)]
        if isinstance(value.type, Meant):
            return []
        return [f"{llvm(value.type)} {value.text}"]

    # Conversions

    def cast(self, value: Value, to: Type) -> Value:
        """The value as another type has it, as C converts numbers."""
        have = value.type
        if have == to:
            return value
        if isinstance(have, tuple) and isinstance(to, tuple) and len(have) == len(to):
            return Value(to, None, tuple(map(self.cast, self.parts(value), to)))
        if have not in NUMBERS or to not in NUMBERS or (have in PART and to not in (*PART, "bool")):
            raise Unknown(f"{have} as {to}")
        if to in PART:
            real, imaginary = self.parts(value) if have in PART else (value, constant(0, PART[to]))
            return Value(to, None, (self.cast(real, PART[to]), self.cast(imaginary, PART[to])))
        if to == "bool":
            return self.truth(value)
        if value.known is not VARIES and kind(have) in "iu" and kind(to) in "iuf":
            return self._known(value, to)
        if have == "bool":
            wide = self.line("int32", f"zext i1 {value.text} to i{max(BITS[to], 32) if kind(to) in 'iu' else 32}")
            return wide._replace(type=to) if kind(to) in "iu" and BITS[to] >= 32 else self.cast(wide, to)
        ways = kind(have) + kind(to)
        if ways in WITHIN and BITS[have] == BITS[to]:
            return value._replace(type=to)
        how = WITHIN[ways][BITS[to] > BITS[have]] if ways in WITHIN else BETWEEN[ways]
        return self.line(to, f"{how} {llvm(have)} {value.text} to {llvm(to)}")

    def _known(self, value: Value, to: str) -> Value:
        """A literal integer as another type has it."""
        number = int(value.known)
        if kind(to) == "f":
            return constant(float(np.dtype(to).type(number)), to)
        number &= (1 << BITS[to]) - 1
        return constant(number - (1 << BITS[to]) if kind(to) == "i" and number >> (BITS[to] - 1) else number, to)

    def truth(self, value: Value) -> Value:
        """Whether a number is not 0."""
        if value.type == "bool":
            return value
        if value.known is not VARIES:
            return constant(bool(value.known))
        if value.type in PART:
            real, imaginary = map(self.truth, self.parts(value))
            return self.line("bool", f"or i1 {real.text}, {imaginary.text}")
        if value.type not in NUMBERS:
            raise Unknown(f"the truth of {value.type}")
        zero = "icmp ne {} {}, 0" if kind(value.type) in "iu" else f"fcmp{self.fast} une {{}} {{}}, 0.0"
        return self.line("bool", zero.format(llvm(value.type), value.text))

    # Operators

    def binary(self, op: ast.operator, a: Value, b: Value) -> Value:
        """`a op b`, in the types to which they are promoted."""
        which = type(op)
        if which is ast.Pow and isinstance(b.known, int):
            return self.power(a, int(b.known))
        case = self.case(BINARY.get(which, ()), (a, b), which not in WITHOUT_LOSS)
        result, *wanted = case
        a, b = self.cast(a, wanted[0]), self.cast(b, wanted[1])
        if kind(result) != "f" or which in (ast.LShift, ast.RShift):  # in the type of the result
            a, b = self.cast(a, result), self.cast(b, result)
        elif kind(wanted[0]) in "iu" and which is ast.Div:
            a, b = self.cast(a, result), self.cast(b, result)
        if result in PART:
            return self._complex(which, a, b)
        if which is ast.Pow:
            if not wanted[0] == wanted[1] == result or kind(result) != "f":
                raise Unknown(f"a power of {wanted[0]} by {wanted[1]}")
            return self.call_intrinsic("pow", result, (a, b))
        longer = LONGER.get((which, kind(result)))
        if longer is not None:
            symbol, body = _function(longer[0], result, longer[1], self.fast)
            self.require(symbol, body)
            return self.line(result, f"call {llvm(result)} @{symbol}({llvm(result)} {a.text}, {llvm(result)} {b.text})")
        fast = self.fast if kind(result) == "f" else ""
        return self.line(result, f"{ARITHMETIC[which][kind(result)]}{fast} {llvm(result)} {a.text}, {b.text}")

    def case(self, cases: tuple[Case, ...], values: tuple[Value, ...], lossy: bool = True) -> Case:
        """The case of an operator or a function for these arguments."""
        types = tuple(value.type for value in values)
        found = chosen(cases, types, lossy) if all(isinstance(one, str) for one in types) else None
        if found is None:
            raise Unknown(f"an operation on {types}")
        return found

    def _complex(self, which: type, a: Value, b: Value) -> Value:
        """A sum, difference or product of complex numbers of one type."""
        (ar, ai), (br, bi) = self.parts(a), self.parts(b)
        op = which()
        if which in (ast.Add, ast.Sub):
            return Value(a.type, None, (self.binary(op, ar, br), self.binary(op, ai, bi)))
        if which is ast.Div:
            return self._quotient(a, b)
        if which is not ast.Mult:
            raise Unknown(f"{which.__name__} of complex numbers")
        ac, bd, ad, bc = (self.binary(op, *pair) for pair in ((ar, br), (ai, bi), (ar, bi), (ai, br)))
        return Value(a.type, None, (self.binary(ast.Sub(), ac, bd), self.binary(ast.Add(), ad, bc)))

    def _quotient(self, a: Value, b: Value) -> Value:
        """A quotient of complex numbers, by way of the larger part of the divisor; by 0 it is that of each part."""
        (ar, ai), (br, bi) = self.parts(a), self.parts(b)
        add, sub, mul, div = ast.Add(), ast.Sub(), ast.Mult(), ast.Div()
        size_r, size_i = self.absolute(br), self.absolute(bi)
        level = self.compare(ast.GtE(), size_r, size_i)
        large, small = self.select(level, br, bi), self.select(level, bi, br)
        ratio = self.binary(div, small, large)
        below = self.binary(add, large, self.binary(mul, small, ratio))
        first, second = self.select(level, ar, ai), self.select(level, ai, ar)
        real = self.binary(add, first, self.binary(mul, second, ratio))
        ways = self.binary(sub, ai, self.binary(mul, ar, ratio)), self.binary(sub, self.binary(mul, ai, ratio), ar)
        found = self.binary(div, real, below), self.binary(div, self.select(level, *ways), below)
        none = self.compare(ast.Eq(), self.select(level, size_r, size_i), constant(0.0, br.type))
        known = self.line("bool", f"fcmp ord {llvm(br.type)} {br.text}, {bi.text}")
        nan = constant(math.nan, br.type)
        by_zero = self.binary(div, ar, size_r), self.binary(div, ai, size_r)
        return Value(a.type, None, tuple(
            self.select(known, self.select(none, *pair), nan) for pair in zip(by_zero, found, strict=True)
        ))  # fmt: skip

    def power(self, base: Value, exponent: int) -> Value:
        """A number to an exponent that is written in the program: products."""
        result = self.case(BINARY[ast.Pow], (base, constant(exponent)))[0]
        if result in PART or abs(exponent) > MAX_UNROLLED_POWER or (exponent < 0 and kind(result) != "f"):
            raise Unknown(f"{base.type} ** {exponent}")
        multiply = "mul" if kind(result) in "iu" else f"fmul{self.fast}"
        square, total, left = self.cast(base, result), constant(1, result), abs(exponent)
        while left:
            if left & 1:
                total = self.line(result, f"{multiply} {llvm(result)} {total.text}, {square.text}")
            left >>= 1
            square = self.line(result, f"{multiply} {llvm(result)} {square.text}, {square.text}") if left else square
        if exponent < 0:  # in float64
            total = self.cast(self.binary(ast.Div(), constant(1.0), total), result)
        return total

    def compare(self, op: ast.cmpop, a: Value, b: Value) -> Value:
        """`a op b`, as a bool."""
        which = type(op)
        _, wanted, _ = self.case(COMPARE.get(which, ()), (a, b))
        a, b = self.cast(a, wanted), self.cast(b, wanted)
        if wanted in PART:
            real, imaginary = (self.compare(op, *pair) for pair in zip(self.parts(a), self.parts(b), strict=True))
            both = "and" if which is ast.Eq else "or"
            return self.line("bool", f"{both} i1 {real.text}, {imaginary.text}")
        how = f"fcmp{self.fast}" if kind(wanted) == "f" else "icmp"
        return self.line("bool", f"{how} {ORDER[which][kind(wanted)]} {llvm(wanted)} {a.text}, {b.text}")

    def unary(self, op: ast.unaryop, x: Value) -> Value:
        """`-x`, `~x`, `+x` or `not x`."""
        if isinstance(op, ast.Not):
            return self.line("bool", f"xor i1 {self.truth(x).text}, true")
        if x.type not in NUMBERS:
            raise Unknown(f"a sign of {x.type}")
        word, wide = llvm(x.type), "uint64" if kind(x.type) == "u" else "int64"
        if isinstance(op, ast.Invert):
            if kind(x.type) not in "biu":
                raise Unknown(f"~ of {x.type}")
            flipped = self.line(x.type, f"xor {word} {x.text}, {'true' if x.type == 'bool' else '-1'}")
            return flipped if x.type == "bool" else self.cast(flipped, wide)
        if isinstance(op, ast.UAdd):
            return self.cast(x, wide) if kind(x.type) in "biu" else x
        if x.type in PART:
            return Value(x.type, None, tuple(self.unary(op, part) for part in self.parts(x)))
        if kind(x.type) == "f":
            return self.line(x.type, f"fsub{self.fast} {word} -0.0, {x.text}")
        x = self.cast(x, wide) if x.type == "bool" else x  # others are widened afterwards
        return self.cast(self.line(x.type, f"sub {llvm(x.type)} 0, {x.text}"), wide)

    # Functions

    def call_intrinsic(self, name: str, type: str, values: tuple[Value, ...]) -> Value:
        """Calls LLVM's own function for one type of floats."""
        word = llvm(type)
        passed = ", ".join(f"{word} {value.text}" for value in values)
        return self.line(type, f"call{self.fast} {word} @llvm.{name}.f{BITS[type]}({passed})")

    def call_external(self, name: str, type: str, values: tuple[Value, ...]) -> Value:
        """Calls the C library's function, which writes nothing that anybody reads."""
        symbol, word = name + "f" * (type == "float32"), llvm(type)
        self.require(symbol, f"declare {word} @{symbol}({', '.join([word] * len(values))}) nounwind memory(none)\n")
        passed = ", ".join(f"{word} {value.text}" for value in values)
        return self.line(type, f"call{self.fast} {word} @{symbol}({passed})")

    def mathematical(self, function: Maths, values: tuple[Value, ...]) -> Value:
        """Calls a function of `math` or numpy."""
        if function.whole and kind(values[0].type) in "biu":
            return self.cast(values[0], "uint64" if kind(values[0].type) == "u" else "int64")
        if function.cases in (FROM_REALS, TWO_REALS) and any(kind(value.type) != "f" for value in values):
            raise Unknown("a function of floats, of another number")
        result, *wanted = self.case(function.cases, values)
        values = tuple(self.cast(self.cast(x, to), result) for x, to in zip(values, wanted, strict=True))
        if function.instruction:
            a, b = values
            return self.line(result, f"{function.instruction}{self.fast} {llvm(result)} {a.text}, {b.text}")
        if function.intrinsic:
            found = self.call_intrinsic(function.intrinsic, result, values)
        else:
            found = self.call_external(function.external, result, values)
        return self.cast(found, "int64") if function.whole else found

    def is_class(self, test: str, x: Value) -> Value:
        """`isnan`, `isinf` or `isfinite` of a number."""
        if kind(x.type) not in "fiu":
            raise Unknown(f"{test} of {x.type}")
        if kind(x.type) != "f":
            return constant(test == "isfinite")
        word = llvm(x.type)
        if test == "isnan":
            return self.line("bool", f"fcmp{self.fast} uno {word} {x.text}, {x.text}")
        if test == "isfinite":
            none = self.line(x.type, f"fsub{self.fast} {word} {x.text}, {x.text}")
            return self.line("bool", f"fcmp{self.fast} ord {word} {none.text}, {none.text}")
        ends = (self.compare(ast.Eq(), x, constant(end, x.type)) for end in (math.inf, -math.inf))
        return self.line("bool", "or i1 {}, {}".format(*(end.text for end in ends)))

    def absolute(self, x: Value) -> Value:
        """`abs(x)`."""
        if x.type in PART:
            return self.call_external("hypot", PART[x.type], self.parts(x))
        if x.type == "bool":
            x = self.cast(x, "int8")
        if kind(x.type) == "f":
            return self.call_intrinsic("fabs", x.type, (x,))
        if kind(x.type) == "u":
            return x
        if kind(x.type) != "i":
            raise Unknown(f"abs of {x.type}")
        minus = self.line("bool", f"icmp slt {llvm(x.type)} {x.text}, 0")
        negated = self.line(x.type, f"sub {llvm(x.type)} 0, {x.text}")
        return self.select(minus, negated, x)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """One of two values of one type, both of which are computed."""
        word = llvm(a.type)
        return self.line(a.type, f"select i1 {condition.text}, {word} {self.text(a)}, {word} {self.text(b)}")

    def extreme(self, op: ast.cmpop, values: tuple[Value, ...]) -> Value:
        """`max` or `min`, by Python's rule: what comes first stays unless a later one is beyond it."""
        if [value.type for value in values] == ["bool", "bool"]:
            return self.line(
                "bool", f"{'or' if isinstance(op, ast.Gt) else 'and'} i1 {values[0].text}, {values[1].text}"
            )
        if len(values) > 2 and len({value.type for value in values}) > 1:
            raise Unknown("an extreme of three types")
        best, *rest = values
        for value in rest:
            common = unified(best.type, value.type)
            if common not in NUMBERS or common in PART:
                raise Unknown(f"an extreme of {best.type} and {value.type}")
            best, value = self.cast(best, common), self.cast(value, common)
            best = self.select(self.compare(op, value, best), value, best)
        return best

    def rounded(self, x: Value) -> Value:
        """`round(x)`: the nearest integer, ties to even."""
        (_, wanted) = self.case((("int64", "float32"), ("int64", "float64")), (x,))
        return self.cast(self.call_intrinsic("rint", wanted, (self.cast(x, wanted),)), "int64")
