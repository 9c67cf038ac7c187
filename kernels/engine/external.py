"""Functions of other libraries, which loops call by their address.

    dgemm = External("redispatch.dgemm", ("int32", "ptr", "int64"), address, meaning)

An object file has the symbol alone: the address is another one in each process, and is asked for where the file is
linked (`native.py`). A loop passes numbers, and arrays from an element on, of which the function gets the pointer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import dataclass

EXTERNALS: dict[str, External] = {}  # by symbol


@dataclass(frozen=True, eq=False, slots=True)
class External:
    """A function that returns nothing. takes: the types of its arguments, "ptr" for arrays. meaning: it in Python."""

    symbol: str
    takes: tuple[str, ...]
    address: int
    meaning: Callable[..., None]

    def __post_init__(self) -> None:
        EXTERNALS[self.symbol] = self

    def __call__(self, *args: Any) -> None:
        self.meaning(*args)
