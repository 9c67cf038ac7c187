"""Promotion as tables: the dtype of a result for each pair of dtypes, a letter each, for whichever library is asked.

A row is a dtype of the first operand, a column one of the second, both in the order of DTYPES; "." stands for an error,
"?" for a dtype that only the other library has. Ranks: a tensor with dimensions, one without, a Python number. The
tables in test_promotion.py were printed by PyTorch; tests/parity/test_scripts.py prints them again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LETTERS = {
    "bool": "b", "uint8": "u", "int8": "c", "int16": "s", "int32": "i", "int64": "l", "float16": "h", "bfloat16": "g",
    "float32": "f", "float64": "d", "complex64": "F", "complex128": "D",
}  # fmt: skip
DTYPES = tuple(LETTERS)
NUMBERS = (True, 2, 2.5, 2.5j)
RANKS = ("dim dim", "dim 0-d", "0-d 0-d", "dim number", "0-d number")

BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda library, x, y: library.add(x, y),
    "lt": lambda library, x, y: library.lt(x, y),
    "div": lambda library, x, y: library.div(x, y),
    "floor_divide": lambda library, x, y: library.floor_divide(x, y),
    "pow": lambda library, x, y: library.pow(x, y),
    "bitwise_and": lambda library, x, y: library.bitwise_and(x, y),
    "add_": lambda library, x, y: x.add_(y),
    "mul_": lambda library, x, y: x.mul_(y),
}
UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda library, x: library.sum(x),
    "prod": lambda library, x: library.prod(x),
    "mean": lambda library, x: library.mean(x),
    "amax": lambda library, x: library.amax(x),
    "argmax": lambda library, x: library.argmax(x),
    "all": lambda library, x: library.all(x),
    "cumsum": lambda library, x: library.cumsum(x, 0),
    "exp": lambda library, x: library.exp(x),
    "abs": lambda library, x: library.abs(x),
    "neg": lambda library, x: library.neg(x),
    "floor": lambda library, x: library.floor(x),
    "bitwise_not": lambda library, x: library.bitwise_not(x),
}


def letter(call: Callable[[], Any]) -> str:
    """The result's dtype; "." for an error that a user is told of."""
    try:
        return LETTERS.get(str(call().dtype).rpartition(".")[2], "?")
    except (RuntimeError, TypeError) as error:  # NotImplementedError is a RuntimeError
        return "?" if "ComplexHalf" in str(error) else "."


def operands(library: Any, rank: str, device: str) -> list[Callable[[], Any]]:
    """The makers of operands of a rank, in order: these are made anew for each call, which may write to them."""
    if rank == "number":
        return [lambda number=number: number for number in NUMBERS]
    shape = (2,) if rank == "dim" else ()
    return [lambda name=name: library.ones(shape, dtype=getattr(library, name), device=device) for name in DTYPES]


def binary_table(library: Any, name: str, ranks: str, device: str = "cpu") -> str:
    """The rows of a binary operator's table, with spaces between them."""
    first, second = (operands(library, rank, device) for rank in ranks.split())
    call = BINARY[name]
    return " ".join("".join(letter(lambda x=x, y=y: call(library, x(), y())) for y in second) for x in first)


def unary_row(library: Any, name: str, device: str = "cpu") -> str:
    """One letter for each dtype."""
    return "".join(letter(lambda x=x: UNARY[name](library, x())) for x in operands(library, "dim", device))
