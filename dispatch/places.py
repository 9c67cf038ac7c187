"""Places of source: which files are the library's own, and how a place in one of them is written for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # of the rooms: a checkout, or the package
# In a checkout tests, docs and programs of users lie beside the rooms; where it is installed there are only rooms.
ROOMS = ("dispatch", "kernels", "modes", "subclasses", "frontend") if os.path.isdir(HERE + "frontend") else ()


def is_own(file: str) -> bool:
    """Whether a file is one of the library's sources."""
    return file.startswith(HERE) and (not ROOMS or file[len(HERE) :].replace("\\", "/").startswith(ROOMS))


def short(place: str) -> str:
    """Returns a file and line from the rooms' folder on; of a file that is not the library's, the place as it is."""
    return place[len(HERE) :].replace("\\", "/") if is_own(place) else place


def caller(depth: int = 1) -> str:
    """Where a registration was written: the "file:line" of the caller's caller."""
    frame = sys._getframe(depth + 1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def place_of(function: Callable[..., object]) -> str:
    """Where a function is defined, as "file:line"; its name where it has no source."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else getattr(function, "__qualname__", repr(function))
