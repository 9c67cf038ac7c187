"""PyTorch's first PassManager: passes are functions of anything, each of which gets what the one before returned.

Read next: infra.py, for passes over graph modules that say whether they changed something.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from .infra import PassManager as Ordered
from .infra import these_before_those_pass_constraint, this_before_that_pass_constraint

__all__ = [
    "PassManager",
    "inplace_wrapper",
    "log_hook",
    "loop_pass",
    "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]

logger = logging.getLogger(__name__)
Pass = Callable[..., Any]


def inplace_wrapper(fn: Pass) -> Pass:
    """Returns a pass that returns its argument, which `fn` changes."""

    @wraps(fn)
    def changed(gm: Any, *args: Any, **kwargs: Any) -> Any:
        fn(gm, *args, **kwargs)
        return gm

    return changed


def log_hook(fn: Pass, level: int = logging.INFO) -> Pass:
    """Returns a pass that logs what `fn` returns."""

    @wraps(fn)
    def logged(*args: Any, **kwargs: Any) -> Any:
        found = fn(*args, **kwargs)
        logger.log(level, "Ran pass %s\t Return value: %s", getattr(fn, "__name__", fn), found)
        return found

    return logged


def loop_pass(
    base_pass: Pass, n_iter: int | None = None, predicate: Callable[[Any], bool] | None = None
) -> Callable[[Any], Any]:
    """Returns a pass that runs another one so many times, or as long as `predicate` holds of what it returned."""
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter` or `predicate` must be specified.")

    def repeated(source: Any) -> Any:
        if predicate is None:
            for _ in range(n_iter or 0):
                source = base_pass(source)
            return source
        while predicate(source):
            source = base_pass(source)
        return source

    return repeated


class PassManager:
    """Runs passes in order. constraints: functions of two passes, that say whether the first may precede the other."""

    def __init__(self, passes: list[Pass] | None = None, constraints: list[Any] | None = None) -> None:
        self.passes, self.constraints = list(passes or []), list(constraints or [])
        self._validated = False

    @classmethod
    def build_from_passlist(cls, passes: list[Pass]) -> PassManager:
        """Returns a manager of these passes."""
        return cls(passes)

    def add_pass(self, _pass: Pass) -> None:
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Any) -> None:
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes: list[str]) -> None:
        """Takes out the passes of these names."""
        self.passes = [one for one in self.passes if getattr(one, "__name__", "") not in _passes]
        self._validated = False

    def replace_pass(self, _target: Pass, _replacement: Pass) -> None:
        """Has one pass stand where another one, of the same name, stood."""
        name = _target.__name__
        self.passes = [_replacement if getattr(one, "__name__", "") == name else one for one in self.passes]
        self._validated = False

    def validate(self) -> None:
        """Raises RuntimeError where the passes stand in an order that they may not have."""
        if not self._validated:
            Ordered(self.passes, self.constraints).validate_constraints()
        self._validated = True

    def __call__(self, source: Any) -> Any:
        """Returns what the last pass returns."""
        self.validate()
        for one in self.passes:
            source = one(source)
        return source
