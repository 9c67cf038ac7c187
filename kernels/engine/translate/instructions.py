"""What each operation on numbers is in LLVM's language: tables of instructions, and short functions.

Meanings are numba's with `error_model="numpy"`, to the bit: an integer divided by 0 is 0, `//` and `%` round as Python
does, `int64 < uint64` compares float64s. Where numba would raise even so, the loop goes on: a complex number divided by
0 is infinite or NaN in each part, 0.0 to a negative power is infinite. Read next: `writer.py`.
"""

from __future__ import annotations

import ast
import math
import struct
from functools import cache as once
from typing import Any, NamedTuple

import numpy as np

from .promote import (
    BITS,
    NUMBERS,
    PART,
    REALS,
    Case,
    Type,
    alike,
    kind,
    llvm,
)


class Unknown(Exception):
    """What a program has that is not translated here: numba takes the whole program then."""


VARIES = object()  # a value that is not known before the loop runs


class Value(NamedTuple):
    """A value of a program: a word of LLVM's, or for what has parts, these."""

    type: Type
    text: str | None  # None where only the parts are there as yet
    parts: tuple[Value, ...] | None = None
    known: Any = VARIES  # the number itself, of a literal


NOTHING = Value("none", "")
UNDEFINED = "zeroinitializer"  # of a variable that was given no value on the way here


def constant(number: Any, type: str | None = None) -> Value:
    """A number that is known, of its own type if no other is given."""
    name = type or type_of(number)
    if name in PART:
        whole = tuple(constant(part, PART[name]) for part in (number.real, number.imag))
        return Value(name, f"{{ {', '.join(f'{llvm(part.type)} {part.text}' for part in whole)} }}", whole, number)
    if kind(name) == "f":
        return Value(name, real_text(float(number)), None, number)
    return Value(name, str(number).lower() if name == "bool" else str(int(number)), None, number)


def real_text(number: float) -> str:
    """A float as LLVM spells it, of either size: the bits of the float64."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def type_of(number: Any) -> str:
    """The type of a number that a program names: one of numpy's has its own, Python's integers have 64 bits."""
    if isinstance(number, np.generic):
        return number.dtype.name if number.dtype.name in NUMBERS else _unknown(number.dtype)
    if isinstance(number, bool):
        return "bool"
    if isinstance(number, int):
        return "int64" if -(1 << 63) <= number < 1 << 63 else "uint64" if 0 < number < 1 << 64 else _unknown(number)
    return "float64" if isinstance(number, float) else "complex128" if isinstance(number, complex) else _unknown(number)


def _unknown(thing: Any) -> Any:
    raise Unknown(f"{type(thing).__name__} {thing}")


# Tables: an operation, by the kind of its operands -> LLVM's instruction ----------------------------------------------

# A signed sum that does not fit is nobody's intention: so an index that is one may be taken not to wrap (nsw).
ARITHMETIC: dict[type, dict[str, str]] = {
    ast.Add: {"i": "add nsw", "u": "add", "f": "fadd"},
    ast.Sub: {"i": "sub nsw", "u": "sub", "f": "fsub"},
    ast.Mult: {"i": "mul nsw", "u": "mul", "f": "fmul"},
    ast.Div: {"f": "fdiv"},
    ast.BitAnd: {"b": "and", "i": "and", "u": "and"},
    ast.BitOr: {"b": "or", "i": "or", "u": "or"},
    ast.BitXor: {"b": "xor", "i": "xor", "u": "xor"},
    ast.LShift: {"i": "shl", "u": "shl"},
    ast.RShift: {"i": "ashr", "u": "lshr"},
}
ORDER: dict[type, dict[str, str]] = {
    ast.Lt: {"b": "ult", "i": "slt", "u": "ult", "f": "olt"},
    ast.LtE: {"b": "ule", "i": "sle", "u": "ule", "f": "ole"},
    ast.Gt: {"b": "ugt", "i": "sgt", "u": "ugt", "f": "ogt"},
    ast.GtE: {"b": "uge", "i": "sge", "u": "uge", "f": "oge"},
    ast.Eq: {"b": "eq", "i": "eq", "u": "eq", "f": "oeq"},
    ast.NotEq: {"b": "ne", "i": "ne", "u": "ne", "f": "une"},
}
# From kind to kind, where the number of bits is another one: (to fewer, to more)
WITHIN = {
    "ii": ("trunc", "sext"),
    "iu": ("trunc", "sext"),
    "ui": ("trunc", "zext"),
    "uu": ("trunc", "zext"),
    "ff": ("fptrunc", "fpext"),
}
BETWEEN = {"if": "sitofp", "uf": "uitofp", "fi": "fptosi", "fu": "fptoui"}

# Operations of several instructions, as functions that are inlined. {t} is a type's word, {fast} its flags.
FLOOR_INTEGERS = """
  %none = icmp eq i64 %b, 0
  br i1 %none, label %void, label %some
some:
  %least = icmp eq i64 %a, -9223372036854775808
  %minus = icmp eq i64 %b, -1
  %large = and i1 %least, %minus
  br i1 %large, label %void, label %divide
divide:
  %quotient = sdiv i64 %a, %b
  %rest = srem i64 %a, %b
  %signs = xor i64 %b, %rest
  %differ = icmp slt i64 %signs, 0
  %left = icmp ne i64 %rest, 0
  %below = and i1 %left, %differ
  %lower = {lower}
  %found = select i1 %below, i64 %lower, i64 {upper}
  br label %void
void:
  %result = phi i64 [0, %0], [0, %some], [%found, %divide]
  ret i64 %result
"""
FLOOR_NATURALS = """
  %none = icmp eq i64 %b, 0
  br i1 %none, label %void, label %divide
divide:
  %found = {divide} i64 %a, %b
  br label %void
void:
  %result = phi i64 [0, %0], [%found, %divide]
  ret i64 %result
"""
MODULO_REALS = """
  %rest = frem {fast} {t} %a, %b
  %none = fcmp {fast} oeq {t} %b, 0.0
  br i1 %none, label %done, label %some
some:
  %left = fcmp {fast} une {t} %rest, 0.0
  %minus = fcmp {fast} olt {t} %b, 0.0
  %below = fcmp {fast} olt {t} %rest, 0.0
  %differ = xor i1 %minus, %below
  %moved = fadd {fast} {t} %rest, %b
  %signed = select i1 %differ, {t} %moved, {t} %rest
  %zero = select i1 %minus, {t} -0.0, {t} 0.0
  %found = select i1 %left, {t} %signed, {t} %zero
  br label %done
done:
  %result = phi {t} [%rest, %0], [%found, %some]
  ret {t} %result
"""
FLOOR_REALS = """
  %none = fcmp {fast} oeq {t} %b, 0.0
  br i1 %none, label %void, label %some
void:
  %infinite = fdiv {fast} {t} %a, %b
  ret {t} %infinite
some:
  %rest = frem {fast} {t} %a, %b
  %less = fsub {fast} {t} %a, %rest
  %quotient = fdiv {fast} {t} %less, %b
  %left = fcmp {fast} une {t} %rest, 0.0
  %minus = fcmp {fast} olt {t} %b, 0.0
  %below = fcmp {fast} olt {t} %rest, 0.0
  %differ = xor i1 %minus, %below
  %lower = and i1 %left, %differ
  %moved = fsub {fast} {t} %quotient, 1.0
  %whole = select i1 %lower, {t} %moved, {t} %quotient
  %any = fcmp {fast} one {t} %whole, 0.0
  br i1 %any, label %snap, label %zero
snap:
  %floor = call {fast} {t} @llvm.floor.{s}({t} %whole)
  %above = fsub {fast} {t} %whole, %floor
  %next = fadd {fast} {t} %floor, 1.0
  %far = fcmp {fast} ogt {t} %above, 0.5
  %found = select i1 %far, {t} %next, {t} %floor
  ret {t} %found
zero:
  %square = fmul {fast} {t} %whole, %whole
  %product = fmul {fast} {t} %square, %a
  %signed = fdiv {fast} {t} %product, %b
  ret {t} %signed
"""
LONGER: dict[tuple[type, str], tuple[str, str]] = {
    (ast.FloorDiv, "i"): ("floordiv", FLOOR_INTEGERS.format(lower="sub i64 %quotient, 1", upper="%quotient")),
    (ast.Mod, "i"): ("modulo", FLOOR_INTEGERS.format(lower="add i64 %rest, %b", upper="%rest")),
    (ast.FloorDiv, "u"): ("floordiv", FLOOR_NATURALS.format(divide="udiv")),
    (ast.Mod, "u"): ("modulo", FLOOR_NATURALS.format(divide="urem")),
    (ast.FloorDiv, "f"): ("floordiv", FLOOR_REALS),
    (ast.Mod, "f"): ("modulo", MODULO_REALS),
}
MAX_UNROLLED_POWER = 0x10000


@once
def _function(name: str, type: str, body: str, fast: str) -> tuple[str, str]:
    """The name and the text of a function of two numbers of one type."""
    word = llvm(type)
    symbol = f"{name}.{type}" + f".{fast.strip().replace(' ', '.')}" * (kind(type) == "f" and bool(fast))
    filled = body.format(t=word, s=f"f{BITS[type]}", fast=fast) if kind(type) == "f" else body
    return symbol, f"define {word} @{symbol}({word} %a, {word} %b) alwaysinline {{{filled}}}\n"


# Functions of numbers -------------------------------------------------------------------------------------------------

FROM_REALS = alike(REALS, count=1)
FROM_NUMBERS: tuple[Case, ...] = (("float64", "int64"), ("float64", "uint64"), *FROM_REALS)
TWO_REALS = alike(REALS)
FROM_TWO: tuple[Case, ...] = (("float64", "int64", "int64"), ("float64", "uint64", "uint64"), *TWO_REALS)
TESTS: tuple[Case, ...] = (("bool", "float32"), ("bool", "float64"))


class Maths(NamedTuple):
    """A function of `math` or numpy: its cases; LLVM's own, or the C library's; an instruction; whether it counts."""

    cases: tuple[Case, ...]
    intrinsic: str = ""
    external: str = ""
    instruction: str = ""
    whole: bool = False  # its result becomes an int64


@once
def maths() -> dict[Any, Maths]:
    """The functions of `math` and of numpy that are translated. numpy's take no integers here."""
    known: dict[Any, Maths] = {}
    for name in ("fabs", "exp", "log", "log10", "sin", "cos", "sqrt"):
        known[getattr(math, name)] = Maths(FROM_NUMBERS, intrinsic=name)
        known[getattr(np, name)] = Maths(FROM_REALS, intrinsic=name)
    for name in "log1p expm1 erf erfc tan asin acos atan asinh acosh atanh sinh cosh tanh log2".split():
        known[getattr(math, name)] = Maths(FROM_NUMBERS, external=name)
    for name in ("floor", "ceil", "trunc"):
        known[getattr(math, name)] = Maths(FROM_REALS, intrinsic=name, whole=True)
    for name in ("floor", "ceil", "trunc", "rint"):
        known[getattr(np, name)] = Maths(FROM_REALS, intrinsic=name)
    known[math.copysign] = Maths(TWO_REALS, intrinsic="copysign")
    known[np.fmod] = Maths(TWO_REALS, instruction="frem")
    for name in ("hypot", "atan2"):
        known[getattr(math, name)] = Maths(FROM_TWO, external=name)
    known[math.nextafter] = known[np.nextafter] = Maths(TWO_REALS, external="nextafter")
    known[np.hypot] = Maths(TWO_REALS, external="hypot")
    return known
