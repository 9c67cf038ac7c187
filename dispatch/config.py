"""`redispatch.config`: switches that change how things run, never what they do.

`config.specialize` says what runs an operator call: True, straight-line code made for it; False, the boxed interpreter;
"strict", as True, but a layer that cannot be specialised is an error, where it would run boxed otherwise. The
environment variable REDISPATCH_SPECIALIZE (1, 0, strict) sets it at the start.

`config.full_tracebacks` says whether the traceback of an error shows the dispatcher's own frames, too (frames.py). The
environment variable REDISPATCH_FULL_TRACEBACKS (1, 0) sets it at the start.

`config.debug_origins` says whether operators note where they make tensors, so that errors about inference tensors and
views can tell (origins.py). The environment variable REDISPATCH_DEBUG_ORIGINS (1, 0) sets it at the start.
"""

from __future__ import annotations

import os
from collections.abc import Callable

SETTINGS: dict[str, bool | str] = {"1": True, "true": True, "": True, "0": False, "false": False, "strict": "strict"}

# called with the value of `specialize` after it, or `debug_origins`, has changed
ON_CHANGE: list[Callable[[bool | str], None]] = []


class Config:
    """The switches, as attributes. ValueError for a value that is none of theirs, AttributeError for another name.

    >>> import redispatch as rd
    >>> rd.config.specialize = False  # every call runs boxed
    >>> rd.ones(2) + 1
    tensor([2., 2.])
    >>> rd.config.specialize = True
    """

    __slots__ = ("_specialize", "_debug_origins", "full_tracebacks")
    full_tracebacks: bool

    def __init__(self) -> None:
        self._specialize: bool | str = setting(os.environ.get("REDISPATCH_SPECIALIZE", ""), "REDISPATCH_SPECIALIZE")
        self._debug_origins = os.environ.get("REDISPATCH_DEBUG_ORIGINS", "0") not in ("", "0")
        self.full_tracebacks = os.environ.get("REDISPATCH_FULL_TRACEBACKS", "0") not in ("", "0")

    @property
    def specialize(self) -> bool | str:
        return self._specialize

    @specialize.setter
    def specialize(self, value: bool | str) -> None:
        if value not in (True, False, "strict"):
            raise ValueError(f"config.specialize must be True, False or 'strict', not {value!r}")
        self._specialize = value
        for tell in ON_CHANGE:
            tell(value)

    @property
    def debug_origins(self) -> bool:
        return self._debug_origins

    @debug_origins.setter
    def debug_origins(self, value: bool) -> None:
        if value not in (True, False):
            raise ValueError(f"config.debug_origins must be True or False, not {value!r}")
        self._debug_origins = value
        for tell in ON_CHANGE:
            tell(self._specialize)

    def __repr__(self) -> str:
        return (
            f"Config(specialize={self.specialize!r}, debug_origins={self.debug_origins!r}, "
            f"full_tracebacks={self.full_tracebacks!r})"
        )


def setting(text: str, name: str) -> bool | str:
    """Returns the setting that a value of the environment variable stands for."""
    try:
        return SETTINGS[text.lower()]
    except KeyError:
        raise ValueError(f"{name} must be 1, 0 or strict, not {text!r}") from None


config = Config()
