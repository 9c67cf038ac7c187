"""Which fake mode is at work: that of the compilation, of the region, or of the fakes among some values.

Read next: ../fake_tensor.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import _detect_infra_mode, is_traceable_wrapper_subclass

from .tensor import FakeTensor

FakeTensorMode = Any  # the class in ../fake_tensor.py, which imports this file


class TracingContext:
    """The facts of the compilation of one graph. `fake_mode`: the mode in which its fakes are made."""

    def __init__(self, fake_mode: FakeTensorMode | None) -> None:
        self.fake_mode = fake_mode

    @staticmethod
    def try_get() -> TracingContext | None:
        """Returns that of the compilation at work, or None."""
        return COMPILATION.get()

    @staticmethod
    def get() -> TracingContext:
        """Returns that of the compilation at work. RuntimeError where there is none."""
        found = COMPILATION.get()
        if found is None:
            raise RuntimeError(
                "TracingContext.get() must be called within an ongoing trace. Enter one by `with tracing(context):`"
            )
        return found


COMPILATION: ContextVar[TracingContext | None] = ContextVar("the compilation at work", default=None)


@contextmanager
def tracing(context: TracingContext | None) -> Iterator[TracingContext | None]:
    """A region in which this is the compilation at work."""
    token = COMPILATION.set(context)
    try:
        yield context
    finally:
        COMPILATION.reset(token)


def maybe_get_fake_mode(value: Any) -> FakeTensorMode | None:
    """Returns the mode of a fake tensor, or of what is in a wrapper of fakes; None for anything else."""
    if is_traceable_wrapper_subclass(value):
        modes = {maybe_get_fake_mode(getattr(value, name)) for name in value.__tensor_flatten__()[0]}
        if len(modes) != 1:
            raise AssertionError(f"expected one fake mode in {type(value).__name__}, but found {modes}")
        return modes.pop()
    return getattr(value, "fake_mode", None) if isinstance(value, FakeTensor) else None


def active_fake_mode() -> FakeTensorMode | None:
    """Returns the fake mode of this region, or None."""
    return _detect_infra_mode(rd._C._TorchDispatchModeKey.FAKE)


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """Returns the fake mode of the compilation at work; else the one of this region and of the fakes among some values.

    None where there is none. Errors: AssertionError where there are two.
    """
    context = COMPILATION.get()
    if context is not None and context.fake_mode is not None:
        return context.fake_mode
    modes = [active_fake_mode(), *map(maybe_get_fake_mode, pytree.tree_leaves(inputs))]
    found = list(dict.fromkeys(mode for mode in modes if mode is not None))
    if len(found) > 1:
        raise AssertionError(f"fake mode ({found[0]}) doesn't match mode ({found[1]})")
    return found[0] if found else None
