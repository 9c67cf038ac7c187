"""Anomaly mode: an error in backward is shown with the place in forward that it comes from.

While it is on, each node keeps the call stack of the operator that made it. Where its backward raises, or yields NaN,
that stack is printed beside the error.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from redispatch.tensor import as_numpy

from .node import Node, evaluate
from .watch import WATCH

# (whether anomaly mode is on, whether it looks for NaN)
ANOMALY: ContextVar[tuple[bool, bool]] = ContextVar("anomaly mode", default=(False, False))


class detect_anomaly:
    """A region in which forward calls are remembered and backward is watched for errors and NaN."""

    def __init__(self, check_nan: bool = True) -> None:
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


def is_anomaly_enabled() -> bool:
    return ANOMALY.get()[0]


def is_anomaly_check_nan_enabled() -> bool:
    return ANOMALY.get()[1]


def remember(node: Node) -> None:
    """Keeps the present call stack with a node that was just made, if anomaly mode is on."""
    if ANOMALY.get()[0]:
        node._hooks().stack_trace = traceback.format_list(traceback.extract_stack()[:-2])


def explained(node: Node, gradients: list[Any], wanted: Sequence[bool] | None) -> list[Any]:
    """`evaluate` for a node with a remembered stack: RuntimeError where it yields NaN."""
    try:
        results = evaluate(node, gradients, wanted)
        if ANOMALY.get() == (True, True):
            for index, result in enumerate(results):
                if result is not None and has_nan(result):
                    raise RuntimeError(f"Function '{node.name()}' returned nan values in its {index}th output.")
        return results
    except Exception:
        warnings.warn(
            f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
            + "".join(node.stack_trace),
            stacklevel=2,
        )
        raise


def has_nan(tensor: Any) -> bool:
    if tensor._array is None:
        return False
    values = as_numpy(tensor)
    return bool((values != values).any())
