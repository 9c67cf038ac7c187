"""`breakpoint(op, key)`: a call of that operator stops in the debugger when it comes to that key.

    with breakpoint("aten::mm", key="AutogradCPU"):
        x @ w                       # pdb, in front of the kernel; `op`, `keyset` and `stack` are its variables

A breakpoint stands before the kernel that answers, in the operator's own entries; calls of other operators know nothing
of it. While it stands the operator runs boxed, so that `step` and `up` walk through the interpreter as it is written.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ..core.key import DispatchKey, key_named
from ..core.operator import OpOverload
from ..core.registry import LOCK, OVERLOADS, forget_entries
from ..core.table import Entry, members
from ..keys import DispatchKeySet
from ..namespaces import OpOverloadPacket, operator_named
from ..specialiser.annotations import leaf
from .frames import STOPS


class Breakpoint:
    """A breakpoint that stands until `remove()`, or until the end of the `with` block that it opens."""

    def __init__(self, ops: list[OpOverload] | None, keys: frozenset[DispatchKey] | None, key: str) -> None:
        self.ops, self.keys, self.key = ops, keys, key
        with LOCK:
            STOPS.append(self)
            self._forget()

    def remove(self) -> None:
        """Takes it away. A second time does nothing."""
        with LOCK:
            if self in STOPS:
                STOPS.remove(self)
                self._forget()

    def concerns(self, op: OpOverload) -> bool:
        """Whether calls of this operator may stop here."""
        return self.ops is None or op in self.ops

    def before(self, op: OpOverload, entry: Entry) -> Entry:
        """The entry of `op`, with a stop before its kernel where this breakpoint asks for one."""
        if not self.concerns(op) or (self.keys is not None and entry.key not in self.keys):
            return entry
        return replace(entry, kernel=replace(entry.kernel, boxed=stopping(entry)))

    def _forget(self) -> None:
        """Has the operators work out anew who answers."""
        if self.ops is None:
            forget_entries()
        else:
            for op in self.ops:
                op.forget_entries()

    def __enter__(self) -> Breakpoint:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        ops = "every operator" if self.ops is None else ", ".join(map(str, self.ops))
        return f"<breakpoint: {ops} at {self.key}{'' if self in STOPS else ', removed'}>"


def breakpoint(op: Any = None, key: DispatchKey | str | None = None) -> Breakpoint:
    """Has calls stop in the debugger: those of `op` that come to `key`.

    op: an operator, a packet (all its overloads) or a name of either ("aten::add", "aten::add.Tensor"); by default
    every operator. key: a key or its name; an alias key such as "Autograd" stands for all its keys; by default every
    key. It is a context manager, and without `with` it stands until its `remove()`.
    Errors: ValueError where no call of `op` ever stops at `key`, since the key is passed over; RegistrationError and
    UnknownKeyError for names that there are not; TypeError where both are left out.
    """
    if op is None and key is None:
        raise TypeError("breakpoint: say which operator, which key, or both: breakpoint('aten::mm', key='AutogradCPU')")
    ops = None if op is None else list(operators_meant(op))
    found = None if key is None else key_named(key)
    keys = None if found is None else frozenset(members(found)) if found.is_alias else frozenset({found})
    if ops is not None and found is not None and keys is not None:
        if all(passed_over(one, at) for one in ops for at in keys):
            raise ValueError(
                f"breakpoint: no call of {', '.join(map(str, ops))} stops at {found.name}: it has nothing to do there; "
                "explain(op, tensor) shows where calls stop"
            )
    return Breakpoint(ops, keys, found.name if found is not None else "every key")


def operators_meant(op: Any) -> Iterator[OpOverload]:
    """The operators that a user means by one, by a packet, or by a name of either."""
    if isinstance(op, OpOverload):
        yield op
    elif isinstance(op, OpOverloadPacket):
        yield from (getattr(op, overload) for overload in op.overloads())
    elif isinstance(op, str):
        name = op if "::" in op else f"aten::{op}"
        yield from list(OVERLOADS.get(name, {}).values()) or [operator_named(name)]
    else:
        raise TypeError(f"breakpoint: expected an operator such as redispatch.ops.aten.add.Tensor, got {op!r}")


def passed_over(op: OpOverload, key: DispatchKey) -> bool:
    return op.entry_at(key).kernel.is_fallthrough


def stopping(entry: Entry) -> Callable[..., Any]:
    """The boxed kernel of an entry, before which the debugger is asked."""

    @leaf
    def stopped(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
        """A call of `op` has come to `entry.key` with these keys and this stack; `entry.kernel` is about to answer."""
        keyset = DispatchKeySet(keyset)  # which prints its names
        builtins.breakpoint()  # asks sys.breakpointhook: pdb, or what a notebook has put there
        return entry.kernel.boxed(op, int(keyset), stack)

    return stopped
