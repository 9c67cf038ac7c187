"""Switches of `torch._dynamo.config`, by PyTorch's names. Those of limits are heeded; the others say how it is.

    config.recompile_limit = 4
    with config.patch(recompile_limit=4): ...          # or as a decorator

recompile_limit (cache_size_limit): programs of one function, and segments behind one break. accumulated_recompile_limit
(accumulated_cache_size_limit): segments of one program. error_on_recompile: whether another program is an error.
disable: whether functions run as they stand. Read next: capture.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["patch"]

recompile_limit = 8
accumulated_recompile_limit = 64
error_on_recompile = False
disable = False
suppress_errors = False
verbose = False
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
assume_static_by_default = True
automatic_dynamic_shapes = True
force_parameter_static_shapes = True
specialize_int = False
inline_inbuilt_nn_modules = True
optimize_ddp = True
guard_nn_modules = True


@contextmanager
def patch(changes: Any = None, value: Any = None, **named: Any) -> Iterator[None]:
    """Returns a region in which switches are others. `patch("verbose", True)` and `patch({"verbose": True})` do, too.

    Errors: AttributeError for a switch that there is not.
    """
    module = sys.modules[__name__]
    new = {**({changes: value} if isinstance(changes, str) else changes or {}), **named}
    old = {name: getattr(module, ALIASES.get(name, name)) for name in new}
    try:
        for name, one in new.items():
            setattr(module, ALIASES.get(name, name), one)
        yield
    finally:
        for name, one in old.items():
            setattr(module, ALIASES.get(name, name), one)


ALIASES = {"cache_size_limit": "recompile_limit", "accumulated_cache_size_limit": "accumulated_recompile_limit"}


class _Switches(type(sys)):  # type: ignore[misc]  # the class of modules
    """This module, in which two names are one switch."""

    def __getattr__(self, name: str) -> Any:
        if name in ALIASES:
            return getattr(self, ALIASES[name])
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(ALIASES.get(name, name), value)


sys.modules[__name__].__class__ = _Switches
