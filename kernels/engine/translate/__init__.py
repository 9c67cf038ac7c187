"""The translator: a program's functions, in LLVM's language. Read first `statements.py`, or `promote.py` from below."""

from .instructions import Unknown
from .statements import Unit

__all__ = ["Unit", "Unknown"]
