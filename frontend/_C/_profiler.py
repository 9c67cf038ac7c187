"""Tracebacks that are kept cheaply and read later: `torch._C._profiler.gather_traceback` and `symbolize_tracebacks`."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import Any

__all__ = ["CapturedTraceback", "gather_traceback", "symbolize_tracebacks"]


class CapturedTraceback:
    """The places of the frames that were active, the innermost first."""

    def __init__(self, frame: FrameType | None) -> None:
        self.places = [(one.f_code, line) for one, line in traceback.walk_stack(frame)]


def gather_traceback(python: bool = True, script: bool = True, cpp: bool = True) -> CapturedTraceback:
    """Returns where this is called from: all of it is Python."""
    return CapturedTraceback(sys._getframe(1) if python else None)


def symbolize_tracebacks(tracebacks: Sequence[CapturedTraceback]) -> list[list[dict[str, Any]]]:
    """Returns for each traceback its frames, as dicts of `name`, `filename` and `line`."""
    return [
        [{"name": code.co_name, "filename": code.co_filename, "line": line} for code, line in one.places]
        for one in tracebacks
    ]
