"""A mode that looks for something, and what it does when it finds it: raise, warn, or only write it down.

The modes that check (nan_detector.py, dtype_check.py, determinism.py, cross_check.py) differ in what they look for;
that a finding is an exception which is also kept in `found`, they share.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import redispatch as rd
from redispatch.testing.schema_check import plain_tensors
from redispatch.utils._python_dispatch import TorchDispatchMode

ACTIONS = ("raise", "warn", "record")


def is_uninitialized(func: Any) -> bool:
    """Whether an operator returns whatever stood in memory, by its name: there is nothing to check in it."""
    _, _, name = func._schema.name.partition("::")
    return not {"empty", "resize"}.isdisjoint(name.split("_"))


class FindingMode(TorchDispatchMode):
    """A region with an eye on something. action: "raise", "warn" or "record"; in each case `found` has all findings.

    Errors: ValueError for another action.
    """

    def __init__(self, action: str = "raise") -> None:
        super().__init__()
        if action not in ACTIONS:
            raise ValueError(f"{type(self).__name__}: action should be one of {', '.join(ACTIONS)}, got {action!r}")
        self.action = action
        self.found: list[Exception] = []

    def __enter__(self) -> Any:
        self.found.clear()
        return super().__enter__()

    def report(self, finding: Exception) -> None:
        """Keeps a finding, and raises it, or warns of it, where that was asked for."""
        self.found.append(finding)
        if self.action == "raise":
            raise finding
        if self.action == "warn":
            warn_user(str(finding))


def warn_user(message: str) -> None:
    """Warns of what the user's own line did, the innermost one outside of this package: of a line once, as usual."""
    package = rd.__name__
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and (frame.f_globals.get("__name__") or "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def tensors_with_data(value: Any) -> Iterator[Any]:
    """The tensors in a value whose elements can be read: those inside wrappers, too; none on the meta device."""
    return (tensor for tensor in plain_tensors(value) if tensor.untyped_storage().has_data)


def floating_tensors(value: Any) -> list[Any]:
    """Returns the `tensors_with_data` of floating and complex dtypes."""
    return [x for x in tensors_with_data(value) if x.dtype.is_floating_point or x.dtype.is_complex]


def copied(value: Any, storages: dict[int, Any]) -> Any:
    """A tensor with memory of its own, laid out as this one is; what shares memory with it shares it there, too.

    storages: the copies made so far, by the id of what was copied. A wrapper, and a tensor without data, is cloned.
    """
    if hasattr(value, "__tensor_flatten__") or not value.untyped_storage().has_data:
        return value.detach().clone()
    storage = value.untyped_storage()
    if id(storage) not in storages:
        storages[id(storage)] = storage.clone()
    plain = rd.empty(0, dtype=value.dtype, device=value.device)
    plain.set_(storages[id(storage)], value.storage_offset(), value.size(), value.stride())
    plain = plain.conj() if value.is_conj() else plain
    return plain._neg_view() if value.is_neg() else plain
