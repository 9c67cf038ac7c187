"""Python kernels of an operator: `op.py_impl(key)`, which the Python dispatcher asks before those in the table.

    @torch.ops.aten.hardswish.default.py_impl(DispatchKey.CompositeImplicitAutograd)
    def hardswish(x): ...

    with enable_python_dispatcher():    # at each key, what a table would say that had these kernels, too
        torch.nn.functional.hardswish(x)

They are no part of the operator's table, and without the Python dispatcher nobody sees them but `decompose`. An
operator that has some runs boxed, with a stop before its kernel at each key (frames.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

from ..core.boxing import bind, unbind
from ..core.key import DispatchKey, key_named
from ..core.keyset import keyset
from ..core.registry import FALLBACKS, LOCK
from ..core.state import STATE, within
from ..core.table import Entry, Kernel, resolve
from ..protocols.mode_stack import pop_mode
from .frames import STOPS

Function = Callable[..., Any]
PYTHON_DISPATCHER = keyset("PythonDispatcher")


class HasPythonKernels:
    """The part of an operator that holds its Python kernels; see the head of this file."""

    registrations: dict[DispatchKey, list[Kernel]]
    schema: Any

    @cached_property
    def py_kernels(self) -> dict[DispatchKey, Function]:
        """The Python kernels, by key."""
        return {}

    @cached_property
    def python_key_table(self) -> dict[type, Function]:
        """The Python kernels at the key Python, by class of mode."""
        return {}

    def py_impl(self, key: Any) -> Callable[[Function], Function]:
        """A decorator that registers what answers at a dispatch key or for a mode while the Python dispatcher is on.

        A kernel gets the call's arguments, one for a mode the mode first.
        Errors: RuntimeError for a second one; TypeError for a key that it cannot be.
        """
        if isinstance(key, DispatchKey):
            table: dict[Any, Function] = self.py_kernels
        elif inspect.isclass(key):
            table = self.python_key_table
        else:
            raise TypeError(f"py_impl: expected a DispatchKey or the class of a mode, got {key!r}")

        def register(function: Function) -> Function:
            with LOCK:
                if key in table:
                    raise RuntimeError(
                        f"Trying to override a python impl for {key!r} on operator {self.name()}"  # type: ignore[attr-defined]  # an operator's
                    )
                table[key] = function
                if PYTHON_KERNELS not in STOPS:
                    STOPS.append(PYTHON_KERNELS)
                self.forget_entries()  # type: ignore[attr-defined]  # an operator's
            return function

        return register

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the CompositeImplicitAutograd kernel, whatever the arguments; NotImplemented where there is none."""
        if python := self.py_kernels.get(DispatchKey.CompositeImplicitAutograd):
            return python(*args, **kwargs)
        kernels = self.registrations.get(DispatchKey.CompositeImplicitAutograd)
        return kernels[-1].boxed(self, 0, bind(self.schema, args, kwargs)) if kernels else NotImplemented

    def has_kernel_for_dispatch_key(self, key: DispatchKey | str) -> bool:
        key = key_named(key)
        return key in self.py_kernels or bool(self.registrations.get(key))

    def has_kernel_for_any_dispatch_key(self, keyset: Iterable[DispatchKey]) -> bool:
        return any(self.has_kernel_for_dispatch_key(key) for key in keyset)


class PythonKernels:
    """The stop before the kernels of operators that have Python kernels."""

    def concerns(self, op: Any) -> bool:
        made = vars(op)  # where the tables are as soon as somebody has asked for them
        return bool(made.get("py_kernels") or made.get("python_key_table"))

    def before(self, op: Any, entry: Entry) -> Entry:
        if not self.concerns(op):
            return entry

        def choosing(op: Any, keys: int, stack: list[Any]) -> Any:
            state = STATE.get()
            if state.included & ~state.excluded & PYTHON_DISPATCHER:
                args, kwargs = unbind(op.schema, stack)
                if entry.key is DispatchKey.Python and state.modes:
                    of_mode = op.python_key_table.get(type(state.modes[-1]))
                    if of_mode is not None:
                        with within(state):
                            return of_mode(pop_mode(), *args, **kwargs)
                if python := python_kernel(op, entry.key):
                    return python(*args, **kwargs)
            return entry.kernel.boxed(op, keys, stack)

        return replace(entry, kernel=replace(entry.kernel, boxed=choosing))


PYTHON_KERNELS = PythonKernels()


def python_kernel(op: Any, key: DispatchKey) -> Function | None:
    """The Python kernel that answers at a key, or None where one of the table does."""
    made = {
        at: [*op.registrations.get(at, ()), Kernel(function, function, "python", "")]
        for at, function in op.py_kernels.items()
    }
    found = resolve({**op.registrations, **made}, FALLBACKS, key)
    return found.kernel.function if found and any(found.kernel is kernels[-1] for kernels in made.values()) else None
