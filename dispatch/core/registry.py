"""The process-wide registry: the operators by name, and the fallbacks that hold for all of them.

Registering makes operators forget the entries that they have worked out. Read next: operator.py, ../library.py.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import RegistrationError
from .base import Operator
from .key import ON_UNDEFINE, DispatchKey
from .table import Kernel, forget_members

OPERATORS: dict[str, Any] = {}  # "aten::add.Tensor" -> operator, in the order of definition
OVERLOADS: dict[str, dict[str, Any]] = {}  # "aten::add" -> {"Tensor": operator, ...}: the same, by packet
FALLBACKS: dict[DispatchKey, list[Kernel]] = {}  # the kernel that answers at a key where an operator has none
LOCK = threading.RLock()  # held while a table is changed, never while one is read

# How the names of operators begin that few programs need -> the module that defines them, which is imported when one is
# looked for: to declare an overload takes 0.1 ms, and there are families of two hundred.
LATE: dict[str, str] = {}

# called with ("defined" | "removed", operator) after either has happened
LISTENERS: list[Callable[[str, Any], None]] = []

Undo = Callable[[], None]


class Names:
    """The search for operators by name: ../namespaces.py fills it in."""

    operator: Callable[[str], Any]
    packet_of: Callable[[Any], Any]


def add_operator(op: Operator) -> Undo:
    """Enters a new operator; RegistrationError, with both places, where there is one of that name and overload."""
    with LOCK:
        former = OPERATORS.get(op.qualified_name)
        if former is not None:
            raise RegistrationError(
                f"Tried to register an operator ({op.schema}) with the same name and overload name multiple times. "
                f"Each overload's schema should only be registered with a single call to def(). Duplicate "
                f"registration: registered at {op.place}. Original registration: registered at {former.place}"
            )
        OPERATORS[op.qualified_name] = op
        OVERLOADS.setdefault(op.packet_name, {})[op._overloadname] = op
    _tell("defined", op)
    return partial(remove_operator, op)


def remove_operator(op: Operator) -> None:
    """Takes an operator out again, as far as it is there."""
    with LOCK:
        if OPERATORS.get(op.qualified_name, op) is not op:
            return
        OPERATORS.pop(op.qualified_name, None)
        OVERLOADS.get(op.packet_name, {}).pop(op._overloadname, None)
        if not OVERLOADS.get(op.packet_name):
            OVERLOADS.pop(op.packet_name, None)
    _tell("removed", op)


def load_late(name: str) -> bool:
    """Defines the late operators among which one of this name would be; whether there is one now."""
    for beginning in sorted(LATE, key=len, reverse=True):  # the family, before what is left of the namespace
        if name.startswith(beginning):
            dir(importlib.import_module(LATE[beginning]))  # a selection imports modules when they are asked
            return name.partition(".")[0] in OVERLOADS
    return False


def add_fallback(key: DispatchKey, kernel: Kernel) -> Undo:
    """Enters the one fallback of a key; RegistrationError, with both places, where it has one already."""
    if key.is_alias:
        raise RegistrationError(f"{key.name} is an alias key; register a fallback for each of its keys")
    with LOCK:
        former = FALLBACKS.get(key)
        if former:
            raise RegistrationError(
                f"Tried to register multiple backend fallbacks for the same dispatch key {key.name}; previous "
                f"registration registered at {former[-1].place}, new registration registered at {kernel.place}"
            )
        FALLBACKS[key] = [kernel]
    forget_entries(key)
    return partial(remove_fallback, key, kernel)


def remove_fallback(key: DispatchKey, kernel: Kernel) -> None:
    """Takes a fallback out again, if it is there."""
    with LOCK:
        if kernel in FALLBACKS.get(key, ()):
            del FALLBACKS[key]
    forget_entries(key)


def forget_entries(key: DispatchKey | None = None) -> None:
    """Makes every operator work out its entries anew: the fallback of `key` has changed, or else anything may have."""
    with LOCK:
        for op in OPERATORS.values():
            op.forget_entries(key)


def forget_key(key: DispatchKey) -> None:
    """Removes everything that is registered at a key which is no more; its bit may soon mean another one."""
    with LOCK:
        FALLBACKS.pop(key, None)
        for op in OPERATORS.values():
            op.registrations.pop(key, None)
    forget_members()
    forget_entries()


ON_UNDEFINE.append(forget_key)


def _tell(event: str, op: Operator) -> None:
    for listener in LISTENERS:
        listener(event, op)
