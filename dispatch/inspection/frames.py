"""Tracebacks without the dispatcher: an error is shown where the user called, and where it arose.

Between the two lie a dozen frames of the interpreter, its layers and specialised code, the same for every operator.
Each public function takes them out of an error that passes through it (entries.py), its own frame included. What a user
wrote stays: handlers, kernels, hooks; and so do the operators' own functions, which say what was wrong.

A `try` costs nothing while nothing is raised. `config.full_tracebacks = True` shows everything.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import lru_cache
from types import FrameType
from typing import Any

from ..config import config

ROOM = __name__.removesuffix(".inspection.frames")
LIBRARY = (ROOM.partition(".")[0], "torch")
OTHERS = ("tensor.", "autograd.", "transforms.")  # parts of the room whose functions say what was wrong
HIDDEN = {ROOM, f"{ROOM.partition('.')[0]}.specialised"}  # names of modules; upper rooms add what is as much machinery


REMEDIED = "To fix: "  # how the note of an error begins that says what to do
ADVICE: list[Callable[[BaseException], None]] = []  # called with an error that leaves a public function


def hide_frames(error: BaseException) -> None:
    """Takes the dispatcher's frames out of the traceback of `error`, and asks for advice on it."""
    if not isinstance(error, RecursionError):  # there is no room for it
        for advise in ADVICE:
            advise(error)
    if config.full_tracebacks:
        return
    kept = None
    at = error.__traceback__
    first = None
    while at is not None:
        if not is_own(at.tb_frame):
            if kept is None:
                first = at
            else:
                kept.tb_next = at
            kept = at
        at = at.tb_next
    if kept is not None:
        kept.tb_next = None
    error.__traceback__ = first


def is_own(frame: FrameType) -> bool:
    """Whether a frame is of the dispatcher or of code that it made."""
    name = frame.f_globals.get("__name__") or ""
    within = name.removeprefix(f"{ROOM}.")
    return name in HIDDEN or (within != name and not f"{within}.".startswith(OTHERS))


def users_frame() -> FrameType | None:
    """Returns the innermost frame outside of the library: where the program is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARY:
        frame = frame.f_back
    return frame


def users_line() -> str:
    """Returns the line of the program that runs, as a traceback shows it; "" outside of any."""
    frame = users_frame()
    return "" if frame is None else shown_line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


@lru_cache(1024)
def shown_line(filename: str, number: int, function: str) -> str:
    return "".join(traceback.format_list([traceback.FrameSummary(filename, number, function)]))


# Stops: the breakpoints that stand. An operator that one concerns runs boxed -----------------------------------------

STOPS: list[Any] = []


def with_stops(op: Any, entry: Any) -> Any:
    """The entry of an operator, with the breakpoints that stand before its kernel."""
    for stop in STOPS:
        entry = stop.before(op, entry)
    return entry
