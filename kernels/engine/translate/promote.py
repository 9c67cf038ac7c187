"""The types of a program's values, and what comes of two that meet: numba's rules, which numpy's are not.

A type is a word: "int64", "float32", "bool", "complex64"; "float32[]" for a flat array, "none" for nothing; a tuple of
types for a tuple; a function is a type of its own (`Meant`). An operator has cases, each a result and what it takes
(`BINARY`, `COMPARE`). The case is chosen to which the operands convert best: without loss rather than with, by widening
(int8 to int64) rather than by changing kind (int64 to float64), the first of equals.

    BINARY[ast.Add], ("int32", "float32")  ->  ("float64", "float64", "float64")

Read next: `instructions.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache as once
from itertools import product
from typing import Any

import numpy as np

from redispatch.dispatch import dataclass

Type = Any  # a word, a tuple of types, or a function
Case = tuple[str, ...]  # the result, and what the operator takes

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
REALS, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
INTEGERS = (*SIGNED, *UNSIGNED)
NUMBERS = ("bool", *INTEGERS, *REALS, *COMPLEX)

LLVM = {
    "bool": "i1", **{f"{u}int{bits}": f"i{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)},
    "float32": "float", "float64": "double", "ptr": "ptr", "none": "void",
}  # fmt: skip
PART = {"complex64": "float32", "complex128": "float64"}  # of a complex number
BITS = {"bool": 1, **{name: np.dtype(name).itemsize * 8 for name in (*INTEGERS, *REALS)}}


@dataclass(frozen=True)
class Meant:
    """The type of a function that is passed to another: which one it is, so that there is nothing to pass."""

    function: Any


def kind(type: Type) -> str:
    """Returns one letter: b, i, u, f, c; or t for tuples, a for arrays, m for functions."""
    if isinstance(type, (tuple, Meant)):
        return "t" if isinstance(type, tuple) else "m"
    return "a" if type.endswith("[]") else type[0]


@once
def parts(type: Type) -> tuple[Type, ...]:
    """The types of which one consists: those in a tuple, the two of a complex number, an array's pointer and size."""
    if isinstance(type, (tuple, Meant)):
        return type if isinstance(type, tuple) else ()
    return ("ptr", "int64") if type.endswith("[]") else (PART[type],) * 2 if type in PART else ()


@once
def leaves(type: Type) -> tuple[str, ...]:
    """The types of which one consists in the end."""
    inside = parts(type)
    return tuple(leaf for part in inside for leaf in leaves(part)) if inside or type == () else (type,)


@once
def llvm(type: Type) -> str:
    """LLVM's word for a type of values."""
    inside = parts(type)
    return f"{{ {', '.join(map(llvm, inside))} }}" if inside else LLVM[type]


# Conversions ----------------------------------------------------------------------------------------------------------

SAME, WIDER, SAFE, LOSSY = range(4)


@once
def conversions() -> dict[tuple[str, str], int]:
    """Rates the conversions of types of numbers to others. One is as good as the worst step of the best way."""
    known = {(name, name): SAME for name in NUMBERS}
    for row in (SIGNED, UNSIGNED, REALS, COMPLEX):
        known |= {(a, b): WIDER for a, b in zip(row, row[1:])}  # noqa: B905  # each with the next
    known |= dict.fromkeys((("bool", "int8"), ("bool", "uint8")), SAFE)
    known |= dict.fromkeys((("uint8", "int16"), ("uint16", "int32"), ("uint32", "int64")), SAFE)
    known |= dict.fromkeys(
        (("int16", "float32"), ("int32", "float64"), ("int64", "float64"), ("uint64", "float64")), SAFE
    )
    known |= {(b, a): LOSSY for (a, b) in [*known] if a != b}
    known |= {("float32", "complex64"): SAFE, ("float64", "complex128"): SAFE, ("int32", "float32"): LOSSY}
    for by, a, b in product(NUMBERS, repeat=3):
        if (a, by) in known and (by, b) in known:
            known[a, b] = min(max(known[a, by], known[by, b]), known.get((a, b), LOSSY))
    return known


@once
def chosen(cases: tuple[Case, ...], types: tuple[str, ...], lossy: bool = True) -> Case | None:
    """The case to which arguments of these types convert best; None where they convert to none."""
    best, least = None, (99, 0, 0)
    known = conversions()
    for case in cases:
        steps = [known.get(pair) for pair in zip(types, case[1:], strict=True)]
        if None in steps or (LOSSY in steps and not lossy):
            continue
        rate = (steps.count(LOSSY), steps.count(SAFE), steps.count(WIDER))
        if rate < least:
            best, least = case, rate
    return best


@once
def unified(a: Type, b: Type) -> Type | None:
    """The type of a variable that is now of one type and now of another; None where there is none."""
    if a == b:
        return a
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        inside = tuple(unified(*pair) for pair in zip(a, b, strict=True))
        return None if None in inside else inside
    if a not in NUMBERS or b not in NUMBERS:
        return None
    if "bool" in (a, b):
        return b if a == "bool" else a
    if kind(a) == kind(b):
        return max(a, b, key=NUMBERS.index)
    if {kind(a), kind(b)} == {"i", "u"}:
        signed, unsigned = (a, b) if kind(a) == "i" else (b, a)
        wide = max(BITS[signed], 2 * BITS[unsigned])
        return f"int{wide}" if wide <= 64 else "float64"
    real = (
        "float64"
        if any(x in INTEGERS and BITS[x] > 16 or x in ("float64", "complex128") for x in (a, b))
        else "float32"
    )
    return {"float32": "complex64", "float64": "complex128"}[real] if "c" in (kind(a), kind(b)) else real


# Operators ------------------------------------------------------------------------------------------------------------


def alike(types: Iterable[str], result: str = "", count: int = 2) -> tuple[Case, ...]:
    """The cases of an operator whose operands have one type, and so has the result if none is given."""
    return tuple((result or name, *[name] * count) for name in types)


WORDS = ("int64", "uint64")  # to which all integers are widened
MACHINE = tuple(("uint64" if a == b == "uint64" else "int64", a, b) for a, b in product(WORDS, repeat=2))
SHIFTS = tuple(
    (max(name, word, key=INTEGERS.index), name, by)
    for row, word in ((SIGNED, "int64"), (UNSIGNED, "uint64")) for name in row for by in ("uint64", "int64")
)  # fmt: skip
ORDERED = (*alike(("bool",), "bool"), *alike((*SIGNED, *UNSIGNED, *REALS), "bool"))
POWERS = tuple((real, real, exponent) for real in REALS for exponent in ("int32", "int64", "uint64"))

BINARY: dict[type, tuple[Case, ...]] = {
    **dict.fromkeys((ast.Add, ast.Sub, ast.Mult), (*MACHINE, *alike((*REALS, *COMPLEX)))),
    **dict.fromkeys((ast.FloorDiv, ast.Mod), (*MACHINE, *alike(REALS))),
    ast.Div: (*(("float64", a, b) for a, b in product(WORDS, repeat=2)), *alike((*REALS, *COMPLEX))),
    ast.Pow: (*MACHINE, *POWERS, *alike((*REALS, *COMPLEX))),
    **dict.fromkeys((ast.LShift, ast.RShift), SHIFTS),
    **dict.fromkeys((ast.BitAnd, ast.BitOr, ast.BitXor), (*alike(("bool",)), *MACHINE)),
}
WITHOUT_LOSS = (ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)  # a float is no operand of these
COMPARE: dict[type, tuple[Case, ...]] = {
    **dict.fromkeys((ast.Lt, ast.LtE, ast.Gt, ast.GtE), ORDERED),
    **dict.fromkeys((ast.Eq, ast.NotEq), (*ORDERED, *alike(COMPLEX, "bool"))),
}
RANGE = {count: tuple((name, *[name] * count) for name in ("int32", "int64", "uint64")) for count in (1, 2, 3)}
