"""Regions of PyTorch's Python dispatcher (`torch._dispatch.python`), and checks of what functionalization makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redispatch import _disable_functionalization, _enable_functionalization
from redispatch._C import _DisablePythonDispatcher, _EnablePreDispatch, _EnablePythonDispatcher
from redispatch.dispatch import OPERATORS, STATE, DispatchKey, has
from redispatch.modes.fake.cross_ref import CrossRefFakeMode

__all__ = ["enable_pre_dispatch", "enable_python_dispatcher", "no_python_dispatcher"]

enable_python_dispatcher, no_python_dispatcher = _EnablePythonDispatcher, _DisablePythonDispatcher
enable_pre_dispatch = _EnablePreDispatch


def all_py_loaded_overloads() -> Iterator[Any]:
    """Yields the operators that there are now."""
    yield from list(OPERATORS.values())


@contextmanager
def suspend_functionalization() -> Iterator[None]:
    """A region in which writes are writes."""
    state = STATE.get()
    active = has(state.included, DispatchKey.Functionalize)
    if active:
        _disable_functionalization()
    try:
        yield
    finally:
        if active:
            _enable_functionalization(reapply_views=state.reapply_views)


@contextmanager
def enable_crossref_functionalize() -> Iterator[None]:
    """A region in which each operator that functionalization runs also runs on fakes, and must look the same."""

    def kept(op: Any) -> bool:
        return op.namespace != "aten" or op._opname == "lift_fresh"

    with enable_python_dispatcher(), CrossRefFakeMode(kept):
        yield
