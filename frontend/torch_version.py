"""The version of PyTorch that this library behaves as, as programs ask for it: `torch.__version__ >= "2.4"`.

Read next: utils/install.py.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

__all__ = ["TorchVersion"]


def release(version: Any) -> list[int]:
    """Returns the numbers of a version, without zeros at the end: of a text, a tuple, or an object with a `release`.

    Errors: ValueError or TypeError for what is no version.
    """
    if isinstance(version, str):
        found = re.match(r"\s*v?(\d+(?:\.\d+)*)", version)
        if found is None:
            raise ValueError(f"Invalid version: {version!r}; a version begins with numbers, as in '2.13.0'")
        version = found[1].split(".")
    numbers = [int(number) for number in getattr(version, "release", version)]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers


def compared(by: Callable[[Any, Any], bool], unlike: bool = False) -> Callable[[str, Any], bool]:
    """Returns a method that compares two versions by their numbers; it says `unlike` of what is no version."""

    def compare(self: str, other: Any) -> bool:
        try:
            return by(release(str(self)), release(other))
        except (TypeError, ValueError):
            return unlike

    return compare


class TorchVersion(str):
    """A version as a text, compared by its numbers with other versions, with texts and with tuples of numbers."""

    __slots__ = ()
    __lt__, __le__, __gt__, __ge__ = map(compared, (operator.lt, operator.le, operator.gt, operator.ge))
    __eq__, __ne__ = compared(operator.eq), compared(operator.ne, True)
    __hash__ = str.__hash__
