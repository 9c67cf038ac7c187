"""`explain`: who would answer for an operator at each key of a keyset, by which rule, registered where.

Nothing is run. The lines go from the highest key down; the call stops at the first that is not a fallthrough, and
each layer decides whether it goes on. `dump_table` gives the whole table in PyTorch's words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.key import ALIASES, DispatchKey, key_named
from ..core.keyset import describe, runtime_keys
from ..core.operator import OpOverload
from ..core.registry import FALLBACKS, OPERATORS
from ..core.table import Entry, Kernel, resolve, runtime_table_keys
from ..keys import as_keyset
from ..layers.autocast import POLICIES
from ..layers.autograd import DERIVATIVES
from ..library import ALIAS_ANALYSIS, registrations
from ..namespaces import OpOverloadPacket, operator_named
from ..swap import entry_at_work


class Row(NamedTuple):
    """One line of an explanation: who answers at a key, by which rule, and what the layer knows of the operator."""

    key: str
    who: str
    rule: str
    note: str
    place: str
    skipped: bool

    def text(self, places: bool = False) -> str:
        line = f"{self.key:<22} {self.who:<44} {self.rule}{f'; {self.note}' if self.note else ''}".rstrip()
        return line + (f"  at {self.place}" if places and self.place else "")


def explain(op: OpOverload | OpOverloadPacket | str, keyset: Any, places: bool = False) -> str:
    """Shows as text which kernel answers for `op` at each key of `keyset` (a keyset, keys, their names, or a tensor).

    `op` may be its name ("aten::add.Tensor"), or a packet that has one overload. With `places`, the file and line of
    each registration.
    """
    op = operator_meant(op)
    keys = as_keyset(keyset)
    return "\n".join([f"{op.schema}", describe(keys), *(f"  {row.text(places)}" for row in rows_of(op, keys))])


def rows_of(op: OpOverload, keyset: int) -> list[Row]:
    """Returns the entry of `op` at each key of `keyset`, from the highest key down."""
    rows = [row_of(op, op.entry_at(key), note_of(op, key)) for key in runtime_keys(keyset)]
    if rows:
        return rows
    undefined = row_of(op, op.entry_at(DispatchKey.Undefined), "")
    return [undefined._replace(rule="", place="")]


def row_of(op: OpOverload, entry: Entry, note: str) -> Row:
    entry = entry_at_work(entry)
    kernel = entry.kernel
    return Row(entry.key.name, who_answers(entry), entry.rule, note, kernel.place, kernel.is_fallthrough)


def operator_meant(op: Any) -> OpOverload:
    """The operator that a user means by itself, its name or its packet. TypeError where that could be several."""
    if isinstance(op, OpOverload):
        return op
    if isinstance(op, str):
        return operator_named(op)
    if not isinstance(op, OpOverloadPacket):
        raise TypeError(f"explain: expected an operator such as redispatch.ops.aten.add.Tensor, got {op!r}")
    overloads = op.overloads()
    if len(overloads) != 1:
        raise TypeError(f"explain: {op} has the overloads {', '.join(overloads)}; say which: {op}.{overloads[0]}")
    return getattr(op, overloads[0])


def who_answers(entry: Entry) -> str:
    """Names the kernel of an entry in words."""
    if entry.rule == "missing":
        return "nothing: a call that arrives here fails"
    if entry.kernel.is_fallthrough:
        return "skipped"
    return entry.kernel.label


def note_of(op: OpOverload, key: DispatchKey) -> str:
    """Returns a note on the rule that the layer at this key has for this operator."""
    if key.is_autograd:
        rule = DERIVATIVES.get(op)
        return str(rule) if rule is not None else ""
    if key.name.startswith("Autocast"):
        policy = POLICIES.get((op, key.name.removeprefix("Autocast").lower()))
        return getattr(policy, "__name__", "")
    return ""


def shown(kernel: Kernel, skipped: str = "fallthrough ") -> str:
    """Names a kernel as PyTorch's dumps do: by its place; one that says its schema, as C++ does, by its name."""
    if getattr(kernel.function, "inferred_schema", None) is not None:
        return kernel.label
    return f"{skipped if kernel.is_fallthrough else ''}registered at {kernel.place}"


def dump_table(op: OpOverload | str) -> str:
    """The computed table of an operator, a line per runtime key that has an entry, as PyTorch's `_dispatch_dump_table`.

    Empty where nobody has heard of the operator, which need not be defined.
    """
    registered = registrations(op) if isinstance(op, str) else op.registrations
    if registered is None:
        return ""
    entries = [entry for key in runtime_table_keys() if (entry := resolve(registered, FALLBACKS, key))]
    return "".join(
        f"{entry.key.name}: {'ambiguous_autogradother' if 'ambiguous' in entry.rule else shown(entry.kernel)} "
        f"[{entry.rule}]\n"
        for entry in entries
    )


def dump_registrations(op: OpOverload | str) -> str:
    """Lists the registrations of an operator, as PyTorch's `_dispatch_dump`; empty where nobody has heard of it."""
    name, registered = (op, registrations(op)) if isinstance(op, str) else (op.qualified_name, op.registrations)
    defined = OPERATORS.get(op) if isinstance(op, str) else op
    if registered is None:
        return ""
    lines = [f"name: {name}", f"schema: {defined.schema if defined else '(none)'}"]
    if defined:
        lines += [
            f"debug: registered at {defined.place}",
            f"alias analysis kind: {ALIAS_ANALYSIS.get(defined, 'FROM_SCHEMA')}",
        ]
    runtime = sorted(runtime_table_keys(), key=lambda key: key.backend is not None)
    for key in [*runtime, *map(key_named, ALIASES)]:
        for index, kernel in enumerate(reversed(registered.get(key, ()))):
            label = f"{key.name}{'[alias]' if key.is_alias else ''}{' (inactive)' if index else ''}"
            inferred = getattr(kernel.function, "inferred_schema", None)
            how = "boxed unboxed" if inferred else "fallthrough boxed" if kernel.is_fallthrough else "boxed"
            lines.append(f"{label}: {shown(kernel, '')} :: {inferred or '(none)'} [ {how} ]")
    return "\n".join(lines) + "\n"
