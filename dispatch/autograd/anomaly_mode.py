"""Anomaly mode: an error in backward is shown with the place in forward that it comes from.

While it is on, each node keeps the call stack of the operator that made it, and the node whose backward made it, if one
did. Where its backward raises, or yields NaN, these stacks are shown beside the error. If the error is that a saved
tensor was written since, the stack of the write is shown, too.

Note [Versions that remember]
Writes are counted far below, in code that must not pay for anomaly mode: `counter[0] += 1`. So it is the number that
remembers: when a tensor is saved in anomaly mode, its version is replaced by a WatchedVersion, an int that notes the
call stack when one is added to it.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from redispatch.dispatch.tensor import as_numpy
from redispatch.dispatch.tensor.wrapped import debug_unwrap

from .hooks import WATCH
from .node import Node, evaluate

# (whether anomaly mode is on, whether it looks for NaN)
ANOMALY: ContextVar[tuple[bool, bool]] = ContextVar("anomaly mode", default=(False, True))


# The node whose backward runs now, for the nodes that are made meanwhile
EVALUATING: ContextVar[Node | None] = ContextVar("node that runs in anomaly mode", default=None)
REMEMBERED_WRITES = 8


class detect_anomaly:
    """A region in which forward calls are remembered and backward is watched for errors and NaN."""

    def __init__(self, check_nan: bool = True) -> None:
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )
        self.setting = (True, check_nan)

    def __enter__(self) -> None:
        WATCH.on = True
        self.token = ANOMALY.set(self.setting)

    def __exit__(self, *error: object) -> None:
        ANOMALY.reset(self.token)


class set_detect_anomaly:
    """Turns anomaly mode on or off from here on, or for a `with` block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.former = ANOMALY.get()
        WATCH.on = True
        ANOMALY.set((mode, check_nan))

    def __enter__(self) -> None:
        """The mode is set already."""

    def __exit__(self, *error: object) -> None:
        ANOMALY.set(self.former)


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Turns anomaly mode on or off from here on."""
    set_detect_anomaly(mode, check_nan)


def is_anomaly_enabled() -> bool:
    return ANOMALY.get()[0]


def is_anomaly_check_nan_enabled() -> bool:
    return ANOMALY.get()[1]


class WatchedVersion(int):
    """A version that knows of the last writes that led to it: Note [Versions that remember]."""

    writes: tuple[tuple[int, list[str]], ...] = ()  # (the version that the write made, its call stack)

    def __add__(self, more: int) -> WatchedVersion:
        version = WatchedVersion(int(self) + more)
        version.writes = (*self.writes, (int(version), call_stack()))[-REMEMBERED_WRITES:]
        return version


def watch_writes(tensor: Any) -> None:
    """Has the tensor's version remember its writes from now on, if anomaly mode is on."""
    if ANOMALY.get()[0] and tensor._counter is not None and type(tensor._counter[0]) is int:
        tensor._counter[0] = WatchedVersion(tensor._counter[0])


def write_after(tensor: Any, version: int) -> str:
    """The call stack of the first known write of the tensor after that version, as a note for an error; or ""."""
    for made, stack in getattr(tensor._counter[0], "writes", ()):
        if made > version:
            return "Traceback of the call that wrote the variable:\n" + "".join(stack)
    return ""


def call_stack() -> list[str]:
    """The call stack of the user, this room's innermost frames left out."""
    return traceback.format_list(traceback.extract_stack()[:-3])


def remember(node: Node) -> None:
    """Keeps the present call stack with a node that was just made, if anomaly mode is on."""
    if ANOMALY.get()[0]:
        hooks = node._hooks()
        hooks.stack_trace, hooks.parent = call_stack(), EVALUATING.get()


def explained(node: Node, gradients: list[Any], wanted: Sequence[bool] | None) -> list[Any]:
    """`evaluate` for a node with a remembered stack: RuntimeError where it yields NaN."""
    token = EVALUATING.set(node)
    try:
        results = evaluate(node, gradients, wanted)
        if ANOMALY.get() == (True, True):
            for index, result in enumerate(results):
                if result is not None and has_nan(result):
                    raise RuntimeError(f"Function '{node.name()}' returned nan values in its {index}th output.")
        return results
    except Exception:
        if node.stack_trace is None:
            told(
                f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
                "forward pass for more information."
            )
        else:
            told(
                f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
                + "".join(node.stack_trace)
            )
        parent = node.hooks.parent if node.hooks is not None else None
        while parent is not None:
            told(
                f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the "
                "previous calculation:\n" + "".join(parent.stack_trace or ["  (not remembered)\n"])
            )
            parent = parent.hooks.parent if parent.hooks is not None else None
        raise
    finally:
        EVALUATING.reset(token)


def told(text: str) -> None:
    """Warns; on standard error, where warnings are errors: the error that is explained is to come through."""
    try:
        warnings.warn(text, stacklevel=3)
    except Warning:
        print(text, file=sys.stderr)


def has_nan(tensor: Any) -> bool:
    tensor = debug_unwrap(tensor)
    if tensor._array is None:
        return False
    values = as_numpy(tensor)
    return bool((values != values).any())
