"""Operators: one schema with its registrations, and the packets and namespaces through which users find them.

`redispatch.ops.aten.add.Tensor` is a namespace (`aten`), a packet of overloads (`add`) and an operator, PyTorch's
`OpOverload` (`Tensor`). An operator works out who answers for a keyset when it is first asked, and remembers it
until a registration changes.

Read next: library.py (how users register), layers/.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from ..entry.entries import EntryPoint, HasEntryPoint, OpForm, RedispatchEntryPoint
from ..errors import MissingKernelError, RegistrationError
from ..protocols.override import handle_torch_function, overridden, overriding
from ..schema.schema import FunctionSchema
from ..schema.tags import Tag
from ..schema.text import SchemaText
from ..specialiser.marks import frozen, pure
from ..specialiser.site import Site
from ..specialiser.specialise import Facts, Table, forget, sorts_of, usual_facts
from .boxing import bind
from .interpreter import call, run
from .key import DispatchKey, key_named
from .keyset import DispatchKeySet, describe, runtime_keys
from .registry import FALLBACKS, LISTENERS, LOCK, OPERATORS, OVERLOADS, Undo, load_late
from .state import FLAGS, KEYS_MASK, STATE, TRACED
from .table import Entry, Kernel, resolve, runtime_table_keys

STOPS: list[Any] = []  # the breakpoints that stand, see breakpoint.py; an operator that one concerns runs boxed


def with_stops(op: OpOverload, entry: Entry) -> Entry:
    """The entry of an operator, with the breakpoints that stand before its kernel."""
    for stop in STOPS:
        entry = stop.before(op, entry)
    return entry


@frozen
class OpOverload(HasEntryPoint):
    """One operator: call it with the schema's arguments, ask it what runs where, register kernels for it.

    Fields: `schema`, `tags`, `place` (where it was defined), `registrations` (key -> kernels, the newest last).
    """

    def __init__(self, schema: FunctionSchema | SchemaText, tags: Iterable[Any] = (), place: str = "") -> None:
        self._declared = schema
        self.tags = [Tag(tag) for tag in tags]
        self.place = place
        self.packet_name = schema.name  # "aten::add"
        self.namespace, _, self._opname = schema.name.rpartition("::")
        self._overloadname = schema.overload_name or "default"
        self.qualified_name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        self.__name__ = f"{self._opname}.{self._overloadname}"
        self.__qualname__ = self.__name__
        self.__module__ = f"torch._ops.{self.namespace}"
        self.registrations: dict[DispatchKey, list[Kernel]] = {}
        self._entries: dict[int, Entry] = {}  # keyset -> entry, as far as asked
        self.tables: dict[Facts, Table] = {}  # facts about arguments -> specialised code by keyset
        self.generation = 0  # how often that code was dropped
        self.__call__ = EntryPoint(self.__name__, self._forms, self._called, qualname=str(self)).function

    @cached_property
    def schema(self) -> FunctionSchema:
        declared = self._declared
        return declared.schema if isinstance(declared, SchemaText) else declared

    @property
    def _schema(self) -> FunctionSchema:
        return self.schema

    # Calling --------------------------------------------------------------------------------------------------

    def _forms(self) -> list[OpForm]:
        return [OpForm(self)]

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the operator from the top of the key stack. RuntimeError where the arguments do not fit the schema.

        This is what `op(...)` means; see entries.py for how it is done.
        """
        if overridden(args, kwargs):
            return handle_torch_function(self, overriding(args, kwargs), *args, **kwargs)
        return call(self, bind(self.schema, args, kwargs))

    @cached_property
    def redispatch(self) -> Callable[..., Any]:
        """`op.redispatch(keyset, ...)` runs the operator with exactly these keys: neither the arguments' keys nor the
        thread's state are asked."""
        return RedispatchEntryPoint(
            "redispatch", self._forms, self._redispatched, qualname=f"{self}.redispatch"
        ).function

    def _redispatched(self, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return run(self, int(keyset), bind(self.schema, args, kwargs))

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the CompositeImplicitAutograd kernel, whatever the arguments; NotImplemented where there is none."""
        kernels = self.registrations.get(DispatchKey.CompositeImplicitAutograd)
        return kernels[-1].boxed(self, 0, bind(self.schema, args, kwargs)) if kernels else NotImplemented

    # Who answers ----------------------------------------------------------------------------------------------

    @pure
    def entry(self, keyset: int) -> Entry:
        """Who answers for a keyset: the highest key of it that is not fallen through."""
        entries = self._entries
        found = entries.get(keyset)
        if found is None:
            found = entries[keyset] = self._highest_entry(keyset)
        return found

    def _highest_entry(self, keyset: int) -> Entry:
        for key in runtime_keys(keyset):
            entry = self.entry_at(key)
            if not entry.kernel.is_fallthrough:
                return with_stops(self, entry)
        return with_stops(self, self.entry_at(DispatchKey.Undefined))

    def entry_at(self, key: DispatchKey) -> Entry:
        """Who answers at one runtime key; where nothing does, an entry whose kernel raises MissingKernelError."""
        return resolve(self.registrations, FALLBACKS, key) or Entry(key, _MISSING, "missing")

    def has_kernel_for_dispatch_key(self, key: DispatchKey | str) -> bool:
        return bool(self.registrations.get(key_named(key)))

    def has_kernel_for_any_dispatch_key(self, keyset: Iterable[DispatchKey]) -> bool:
        return any(self.has_kernel_for_dispatch_key(key) for key in keyset)

    def fallthrough_keys(self) -> list[DispatchKey]:
        """The runtime keys at which a call does not stop."""
        return [key for key in runtime_table_keys() if self.entry_at(key).kernel.is_fallthrough]

    # Registering ----------------------------------------------------------------------------------------------

    def register(self, key: DispatchKey | str, kernel: Kernel) -> Undo:
        """Makes `kernel` answer at `key` (a runtime or alias key) before all earlier ones; returns what undoes it."""
        key = key_named(key)
        with LOCK:  # for those who write; who reads needs none, since a list is replaced and never changed
            self.registrations[key] = [*self.registrations.get(key, ()), kernel]
            self.forget_entries()

        def undo() -> None:
            with LOCK:
                rest = [known for known in self.registrations.get(key, ()) if known is not kernel]
                if rest:
                    self.registrations[key] = rest
                else:
                    self.registrations.pop(key, None)
                self.forget_entries()

        return undo

    def forget_entries(self, key: DispatchKey | None = None) -> None:
        """Works out anew who answers, and drops the code made of that; with `key`, of what is registered there."""
        self._entries = {}  # a new dict: a thread that is working out an entry now writes it into the former one
        forget(self, key)

    # Specialised code -----------------------------------------------------------------------------------------

    @cached_property
    def sorts(self) -> list[tuple[str, Any]]:
        return sorts_of(self.schema)

    def stops(self) -> bool:
        """Whether a breakpoint concerns this operator."""
        return any(stop.concerns(self) for stop in STOPS)

    def table(self, facts: Facts) -> Table:
        """The code for calls about whose arguments these facts are known, by keyset; see specialiser/specialise.py."""
        found = self.tables.get(facts)
        if found is None:
            found = self.tables.setdefault(facts, Table(self, facts))
        return found

    def site(self, facts: Facts) -> Site:
        """A place which calls the operator with arguments of these facts; see specialiser/site.py for how."""
        return Site(self.table(facts))

    def source(self, keyset: Any, facts: Facts | None = None) -> str:
        """The source of the code that runs for a keyset (or a tensor, a key, their names).

        `facts`, as in specialise.py, by default says that all tensors are given and everything else is defaulted.
        """
        if facts is not None and len(facts) != len(self.schema.arguments):
            raise ValueError(
                f"{self}.source: expected a fact for each of the {len(self.schema.arguments)} arguments of "
                f"{self.schema}, got {facts}; see dispatch/specialiser/specialise.py for what they say"
            )
        keys = int(as_keyset(keyset)) | STATE.get().included
        keys = keys & ~STATE.get().excluded & KEYS_MASK | STATE.get().keys.added & FLAGS & ~TRACED
        return self.table(facts or usual_facts(self.schema)).made(keys).source  # type: ignore[attr-defined]

    # Names ----------------------------------------------------------------------------------------------------

    def name(self) -> str:
        return self.qualified_name

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        return getattr(getattr(ops, self.namespace), self._opname)

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __deepcopy__(self, memo: object) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return operator_named, (self.qualified_name,)


def _missing(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    key = op.entry(keyset).key
    registered = ", ".join(f"{known.name} ({kernels[-1].place})" for known, kernels in list(op.registrations.items()))
    facts = (
        f"\n  you passed   {', '.join(map(describe_value, stack)) or 'nothing'}"
        f"\n  keyset       {describe(keyset)}"
        f"\n  registered   {registered or 'nothing'}"
        f"\n  to fix       register a kernel: library.impl('{op.qualified_name}', '{_register_at(key)}')(function)"
    )
    if key is DispatchKey.Undefined:
        text = (
            "There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), but no "
            f"fallback function is registered for schema {op.qualified_name}.  This usually means that this function "
            "requires a non-empty list of Tensors, or that you (the operator writer) forgot to register a fallback "
            f"function.  Available functions are {backends_of(op)}."
        )
    else:
        text = (
            f"Could not run '{op.qualified_name}' with arguments from the '{key.name}' backend. '{op.qualified_name}' "
            f"is only available for these backends: {backends_of(op)}."
        )
    raise MissingKernelError(text + facts, op, key, keyset)


def _register_at(key: DispatchKey) -> str:
    """The key to register at where `key` has nothing: Undefined is nobody's backend."""
    return "CompositeExplicitAutograd" if key is DispatchKey.Undefined else key.name


_MISSING = Kernel(_missing, _missing, "boxed", "dispatch/core/operator.py")


def backends_of(op: OpOverload) -> str:
    """The keys at which something answers for `op`, as the reference lists them: `[CPU, Meta, Python]`."""
    entries = [op.entry_at(key) for key in runtime_table_keys()]
    names = [e.key.name for e in entries if e.rule != "missing" and not e.kernel.is_fallthrough]
    return f"[{', '.join(names)}]"


def describe_value(value: Any) -> str:
    """A value as error messages and traces show it: tensors by dtype, shape and device, lists by their items."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(describe_value, value))}]"
    summary = getattr(type(value), "_summary", None)
    return summary(value) if summary else repr(value)


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
        """Runs the first overload whose schema the arguments fit; RuntimeError where none is."""
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

    def __getattr__(self, name: str) -> OpOverloadPacket:
        with LOCK:
            if f"{self.name}::{name}" in OVERLOADS:
                return self.__dict__.setdefault(name, OpOverloadPacket(self.name, name))
        if load_late(f"{self.name}::{name}"):
            return getattr(self, name)
        raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
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


def operator_named(name: str) -> OpOverload:
    """The operator "ns::name.overload" ("ns::name" for the default overload). RegistrationError where there is none."""
    op = OPERATORS.get(name.removesuffix(".default"))
    if op is None and load_late(name):
        op = OPERATORS.get(name.removesuffix(".default"))
    if op is None:
        stem = name.split(".")[0]
        near = [known for known in OPERATORS if known.split(".")[0] == stem or known.split("::")[-1] == stem]
        hint = f"; there are {', '.join(near)}" if near else ""
        raise RegistrationError(f"there is no operator {name!r}{hint}")
    return op


def as_keyset(value: Any) -> DispatchKeySet:
    """A keyset from what users pass for one: a keyset, a key, the name of one, several of them, or a tensor."""
    if isinstance(value, int):
        return DispatchKeySet(value)
    if isinstance(value, DispatchKey | str):
        return DispatchKeySet(key_named(value))
    if hasattr(value, "_keyset"):
        return DispatchKeySet(value._keyset)
    return DispatchKeySet(keys for keys in map(key_named, value))
