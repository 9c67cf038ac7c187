"""Operators: one schema with its registrations, PyTorch's `OpOverload`.

An operator works out who answers for a keyset when it is first asked, and remembers it until a registration changes.
Read next: registry.py; then ../namespaces.py (how users find one) and ../library.py (how they register).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import Any

from ..entry.entries import EntryPoint, HasEntryPoint, OpForm, RedispatchEntryPoint
from ..inspection.frames import STOPS, with_stops
from ..inspection.missing import MISSING
from ..inspection.python_kernels import HasPythonKernels
from ..keys import as_keyset
from ..protocols.override import handle_torch_function, overridden, overriding
from ..schema.schema import FunctionSchema, Tag
from ..schema.text import SchemaText
from ..specialiser.annotations import frozen, pure
from ..specialiser.site import Site
from ..specialiser.specialise import Facts, Table, forget, sorts_of, usual_facts
from .boxing import bind
from .interpreter import call, run
from .key import DispatchKey, key_named
from .keyset import runtime_keys
from .registry import FALLBACKS, LOCK, Names, Undo
from .state import FLAGS, KEYS_MASK, STATE, TRACED
from .table import Entry, Kernel, resolve, runtime_table_keys


@frozen
class OpOverload(HasEntryPoint, HasPythonKernels):
    """One operator: call it with the schema's arguments, ask it what runs where, register kernels for it.

    Fields: `schema`, `tags`, `place` (where it was defined), `registrations` (key -> kernels, the newest last).
    """

    def __init__(self, schema: FunctionSchema | SchemaText, tags: Iterable[Any] = (), place: str = "") -> None:
        self._declared = schema
        self.tags = [tag if type(tag) is Tag else Tag(tag) for tag in tags]
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

    # Who answers ----------------------------------------------------------------------------------------------

    @pure
    def entry(self, keyset: int) -> Entry:
        """Returns the entry of a keyset: of its highest key that is not fallen through."""
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
        """Returns the entry at one runtime key; where there is no kernel, one that raises MissingKernelError."""
        return resolve(self.registrations, FALLBACKS, key) or Entry(key, MISSING, "missing")

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
        return partial(self.unregister, key, kernel)

    def unregister(self, key: DispatchKey, kernel: Kernel) -> None:
        """Takes a kernel out again, if it is there."""
        with LOCK:
            rest = [known for known in self.registrations.get(key, ()) if known is not kernel]
            self.registrations[key] = rest
            if not rest:
                del self.registrations[key]
            self.forget_entries()

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
        return self.table(facts or usual_facts(self.schema)).made(keys).source  # type: ignore[attr-defined]  # an attribute that mypy does not see

    # Names ----------------------------------------------------------------------------------------------------

    def name(self) -> str:
        return self.qualified_name

    @property
    def overloadpacket(self) -> Any:
        return Names.packet_of(self)

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __deepcopy__(self, memo: object) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return Names.operator, (self.qualified_name,)
