"""Packets and namespaces: the way from `redispatch.ops` by names to an operator.

`redispatch.ops.aten.add.Tensor` is a namespace (`aten`), a packet of overloads (`add`) and an operator (`Tensor`).
"""

from __future__ import annotations

import weakref
from importlib import import_module
from typing import Any

from .core.boxing import bind
from .core.interpreter import call
from .core.operator import OpOverload
from .core.registry import LATE, LISTENERS, LOCK, OPERATORS, OVERLOADS, Names, load_late
from .entry.entries import EntryPoint, HasEntryPoint, OpForm
from .errors import RegistrationError
from .protocols.override import handle_torch_function, overridden, overriding


class OpOverloadPacket(HasEntryPoint):
    """The overloads of one name. Calling it runs the first overload that the arguments fit."""

    def __init__(self, namespace: str, name: str) -> None:
        self._qualified_op_name = f"{namespace}::{name}"
        self._namespace, self.__name__ = namespace, name
        self.__module__ = f"torch.ops.{namespace}"
        self._entry_point = EntryPoint(name, self._forms, self._called, qualname=str(self))
        self.__call__ = self._entry_point.function
        _PACKETS.setdefault(self._qualified_op_name, weakref.WeakSet()).add(self)

    def overloads(self) -> list[str]:
        load_late(self._qualified_op_name)
        return list(OVERLOADS.get(self._qualified_op_name, ()))

    def __getattr__(self, overload: str) -> OpOverload:
        if op := self._overload(overload):
            return op
        if not overload.startswith("__") and load_late(f"{self._qualified_op_name}.{overload}"):
            if op := self._overload(overload):
                return op
        raise AttributeError(
            f"The underlying op of '{self}' has no overload name '{overload}'"
            if not overload.startswith("__")
            else f"'{self}' object has no attribute '{overload}'"
        )

    def _overload(self, overload: str) -> OpOverload | None:
        with LOCK:  # else one that is removed meanwhile would be remembered
            op = OVERLOADS.get(self._qualified_op_name, {}).get(overload)
            if op is not None:
                self.__dict__[overload] = op  # where it is found from now on; see `overloads_changed`
            return op

    def _forms(self) -> list[OpForm]:
        return [OpForm(op) for op in OVERLOADS.get(self._qualified_op_name, {}).values()]

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the first overload whose schema the arguments fit; RuntimeError where there is none."""
        if overridden(args, kwargs):
            return handle_torch_function(self, overriding(args, kwargs), *args, **kwargs)
        operators = list(OVERLOADS.get(self._qualified_op_name, {}).values())
        if len(operators) == 1:
            return operators[0](*args, **kwargs)
        problems = []
        for op in operators:
            try:
                stack = bind(op.schema, args, kwargs)
            except RuntimeError as problem:
                if str(op.schema) not in str(problem):
                    raise  # of a value, as of a device's name: as in PyTorch, no other overload is tried
                problems.append(str(problem))
                continue
            return call(op, stack)
        listed = "\n\n".join(problems)
        raise RuntimeError(f"Overloaded torch operator invoked from Python failed to match any schema:\n{listed}\n\n")

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __dir__(self) -> list[str]:
        return self.overloads()

    def __reduce__(self) -> Any:
        return _packet_named, (self._namespace, self.__name__)


_PACKETS: dict[str, weakref.WeakSet[OpOverloadPacket]] = {}  # those that there are, by qualified name


def _packet_named(namespace: str, name: str) -> OpOverloadPacket:
    return getattr(getattr(ops, namespace), name)


class _OpNamespace:
    """The operators of one namespace: `ops.aten.add`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = f"torch.ops.{name}"

    def __getattr__(self, name: str) -> OpOverloadPacket:
        with LOCK:
            if f"{self.name}::{name}" in OVERLOADS:
                return self.__dict__.setdefault(name, OpOverloadPacket(self.name, name))
        if load_late(f"{self.name}::{name}"):
            return getattr(self, name)
        raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        define_late()
        prefix = self.name + "::"
        return sorted(name[len(prefix) :] for name in OVERLOADS if name.startswith(prefix))

    def __repr__(self) -> str:
        return f"<namespace of operators '{self.name}': {len(dir(self))} names>"


class _Ops:
    """`redispatch.ops`: every operator there is, by namespace, name and overload."""

    def __getattr__(self, name: str) -> _OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__.setdefault(name, _OpNamespace(name))

    def __dir__(self) -> list[str]:
        return sorted({name.split("::")[0] for name in OVERLOADS})

    def load_library(self, path: str) -> None:
        """Raises OSError, by which programs know that operators of a C++ library are not there."""
        raise OSError(f"Could not load this library: {path}. It is C++ for PyTorch; operators are Python here")


ops = _Ops()


def overloads_changed(event: str, op: OpOverload) -> None:
    """Takes out what was remembered of a name whose overloads have changed."""
    name = op.packet_name
    with LOCK:
        for packet in _PACKETS.get(name, ()):
            if event == "removed":
                packet.__dict__.pop(op._overloadname, None)
            packet._entry_point.reset()
        if name not in OVERLOADS and op.namespace in vars(ops):
            vars(vars(ops)[op.namespace]).pop(op._opname, None)


LISTENERS.append(overloads_changed)


def packet_of(op: OpOverload) -> OpOverloadPacket:
    """Returns the packet of which `op` is an overload."""
    return _packet_named(op.namespace, op._opname)


def define_late() -> None:
    """Defines the late operators, which nobody has looked for: whoever lists operators lists them all."""
    for module in LATE.values():
        import_module(module)


def operator_named(name: str) -> OpOverload:
    """The operator "ns::name.overload" ("ns::name" for the default overload). RegistrationError where there is none."""
    op = OPERATORS.get(name.removesuffix(".default"))
    if op is None and load_late(name):
        op = OPERATORS.get(name.removesuffix(".default"))
    if op is None:
        stem = name.split(".")[0]
        near = [known for known in OPERATORS if known.split(".")[0] == stem or known.split("::")[-1] == stem]
        hint = (
            f"; there are {', '.join(near)}"
            if near
            else ""
            if "::" in name
            else ". Names are written as 'aten::add.Tensor'"
        )
        raise RegistrationError(f"there is no operator {name!r}{hint}")
    return op


Names.operator, Names.packet_of = operator_named, packet_of
