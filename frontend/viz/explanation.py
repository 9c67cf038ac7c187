"""`explain`: who would answer at each key, for an operator or for all that a function calls.

    explain(rd.ops.aten.add.Tensor, x)              the table of an operator for the keys of a tensor
    explain(rd.ops.aten.add.Tensor, x, 1)           for a call: its arguments and the present state decide the keys
    explain(rd.nn.functional.linear, x, w)          for each operator that the function calls

An operator is only looked up. What a function calls shows when it runs; so it runs once, with everything that it could
change held back: it gets copies of its arguments, and random numbers are put back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import field
from html import escape
from typing import Any

from redispatch.dispatch import (
    STATE,
    DispatchKey,
    Hop,
    OpOverload,
    OpOverloadPacket,
    TensorBase,
    as_keyset,
    bind,
    dataclass,
    describe,
    describe_value,
    dispatch_keyset,
    keyset,
    overriding,
    trace,
    with_modes,
    within,
)
from redispatch.dispatch.inspection.explain import Row, operator_meant, rows_of
from redispatch.dispatch.inspection.explain import explain as read_table
from redispatch.dispatch.inspection.trace import name_of
from redispatch.dispatch.layers.python import given_tensors, handling_types
from redispatch.dispatch.pytree import tree_leaves, tree_map
from redispatch.kernels.ops import random

STYLE = """<style>
.redispatch-explain{font:13px/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-x:auto}
.redispatch-explain table{border-collapse:collapse;margin:.2em 0 .6em}
.redispatch-explain td,.redispatch-explain th{text-align:left;padding:.1em .9em .1em 0;white-space:nowrap}
.redispatch-explain .skipped td{opacity:.55}
.redispatch-explain .keys,.redispatch-explain .rule{opacity:.7}
.redispatch-explain .inside{border-left:2px solid rgba(64,120,242,.4);padding-left:.9em}
</style>"""


@dataclass
class Call:
    """One call: what is called, with which keys, and the rows of its table, each with the calls that it leads to."""

    head: str
    keys: str = ""
    rows: list[tuple[Row, list[Call]]] = field(default_factory=list)
    inside: list[Call] = field(default_factory=list)  # of what has no table: the handler of a function

    def lines(self, places: bool) -> Iterable[str]:
        yield self.head
        if self.keys:
            yield self.keys
        for row, calls in self.rows:
            yield f"  {row.text(places)}"
            for call in calls:
                yield from (f"      {line}" for line in call.lines(places))
        for call in self.inside:
            yield from (f"  {line}" for line in call.lines(places))

    def html(self, places: bool) -> str:
        parts = [f"<div><b>{escape(self.head)}</b></div>"]
        if self.keys:
            parts.append(f'<div class="keys">{escape(self.keys)}</div>')
        if self.rows:
            parts.append("<table>")
            for row, calls in self.rows:
                rule = "; ".join(filter(None, (row.rule, row.note, row.place if places else "")))
                parts.append(
                    f'<tr{" class=skipped" if row.skipped else ""} title="{escape(row.place)}">'
                    f"<th>{escape(row.key)}</th>"
                    f'<td>{escape(row.who)}</td><td class="rule">{escape(rule)}</td></tr>'
                )
                if calls:
                    inside = "".join(call.html(places) for call in calls)
                    parts.append(f'<tr><td></td><td colspan="2"><div class="inside">{inside}</div></td></tr>')
            parts.append("</table>")
        parts += [f'<div class="inside">{call.html(places)}</div>' for call in self.inside]
        return "".join(parts)


class Explanation(str):
    """The text of an explanation. A notebook shows it as tables; `calls` is what it was made of."""

    calls: list[Call]
    places: bool

    def __new__(cls, calls: list[Call], places: bool = False, last: str = "") -> Explanation:
        text = "\n\n".join("\n".join(call.lines(places)) for call in calls)
        self = super().__new__(cls, "\n\n".join(filter(None, (text, last))))
        self.calls, self.places = calls, places
        return self

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'{STYLE}<div class="redispatch-explain">{"".join(call.html(self.places) for call in self.calls)}</div>'


def explain(what: Any, /, *args: Any, places: bool = False, **kwargs: Any) -> Explanation:
    """Shows which kernel would answer for an operator, or each operator that a function calls, at each key, and by
    which rule.

    what: an operator, its packet or its name ("aten::add.Tensor"); or a function, which is run once, on copies of
    itself and its arguments. args: those of a call; or, for an operator, one keyset, key, name of a key, or tensor, or
    several keys in a list, whose table is then shown whatever the present state. Without any, it is that for plain
    tensors on the CPU, of each overload of a packet. places: shows the file and line of
    each registration, too.
    Errors: TypeError for what is neither; RuntimeError where the arguments do not fit the operator.

    >>> import redispatch as rd
    >>> print(rd.explain(rd.relu, rd.ones(2)))
    aten::relu(Tensor self) -> Tensor
    DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU) for (f32[2])
      AutogradCPU            autograd                                     backend fallback; ReluBackward0(self)
      ADInplaceOrView        skipped                                      backend fallback
      BackendSelect          skipped                                      backend fallback
      CPU                    pointwise relu                               kernel
    """
    if isinstance(what, OpOverload | OpOverloadPacket | str):
        if len(args) == 1 and not kwargs and stands_for_keys(args[0]):
            op = operator_meant(what)
            head, keys, *_ = read_table(op, args[0]).split("\n")
            keyset = args[0]._keyset if isinstance(args[0], TensorBase) else args[0]
            return Explanation([table(op, keyset, head, keys)], places)
        if not args and not kwargs:
            return Explanation([of_plain_tensors(op) for op in all_meant(what)], places)
        return Explanation([call_of(*fitting(what, args, kwargs))], places)
    if not callable(what):
        raise TypeError(
            f"explain: expected an operator such as redispatch.ops.aten.add.Tensor or a function, got {what!r}"
        )
    return explain_function(what, args, kwargs, places)


# An operator ---------------------------------------------------------------------------------------------------------


def stands_for_keys(value: Any) -> bool:
    """Returns whether an argument is one that `as_keyset` takes, and not one of a call."""
    if isinstance(value, list | tuple | set | frozenset):
        return all(isinstance(item, DispatchKey | str) for item in value)
    return isinstance(value, int | DispatchKey | str | TensorBase) and not isinstance(value, bool)


def fitting(what: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[OpOverload, list[Any]]:
    """The operator of a call and its stack: of a packet, the first overload that the arguments fit."""
    if isinstance(what, OpOverloadPacket):
        problems = []
        for overload in what.overloads():
            op = getattr(what, overload)
            try:
                return op, bind(op.schema, args, kwargs)
            except RuntimeError as problem:
                problems.append(str(problem))
        raise RuntimeError(f"explain: no overload of {what} fits these arguments:\n" + "\n".join(problems))
    op = operator_meant(what)
    return op, bind(op.schema, args, kwargs)


def all_meant(what: Any) -> list[OpOverload]:
    """An operator, or the overloads of a packet."""
    if isinstance(what, OpOverloadPacket):
        return [getattr(what, overload) for overload in what.overloads()]
    return [operator_meant(what)]


def of_plain_tensors(op: OpOverload) -> Call:
    """The table of an operator for the keys that a tensor on the CPU brings to a call."""
    state = STATE.get()
    keys = keyset("CPU", "BackendSelect", "ADInplaceOrView", "AutogradCPU") | state.included
    keys &= ~state.excluded
    return table(op, keys, f"{op.schema}", f"{describe(keys)} for plain tensors on the CPU")


def table(op: OpOverload, keyset: Any, head: str, keys: str) -> Call:
    """The table of an operator for a keyset."""
    return Call(head, keys, [(row, []) for row in rows_of(op, as_keyset(keyset))])


def call_of(op: OpOverload, stack: list[Any]) -> Call:
    """A call of an operator in the present state, which is not made."""
    keyset = dispatch_keyset(op.schema, stack)
    call = table(op, keyset, f"{op.schema}", f"{describe(keyset)} for ({', '.join(map(describe_value, stack))})")
    asked = asked_at_python(op, stack)
    call.rows = [
        (row._replace(note=asked) if row.key == "Python" and asked else row, calls) for row, calls in call.rows
    ]
    state = STATE.get()
    before = [type(mode).__name__ for mode in reversed(state.function_modes)] if state.overrides != "none" else []
    if state.overrides == "all":
        before += [type(value).__name__ for value in overriding(stack, {})]
    rows = [Row("before any key", f"{name}.__torch_function__", "is asked first", "", "", False) for name in before]
    call.rows[:0] = [(row, []) for row in rows]
    return call


def asked_at_python(op: OpOverload, stack: list[Any]) -> str:
    """Those that the layer Python asks: the modes from the innermost on, then the classes of the arguments."""
    modes = [type(mode).__name__ for mode in reversed(STATE.get().modes)]
    kinds = handling_types(tuple(type(tensor) for tensor in given_tensors(op.schema, stack)))
    names = [*modes, *(kind.__name__ for kind in kinds)]
    return f"asks {', then '.join(names)}" if names else ""


# A function -----------------------------------------------------------------------------------------------------------


def explain_function(function: Callable[..., Any], args: Any, kwargs: Any, places: bool) -> Explanation:
    """Explains each operator that a function calls."""
    state = STATE.get()
    with within(with_modes(state.replace(function_modes=(), tracer=None), ())):  # copying is nobody's affair
        function, args, kwargs = copied((function, args, kwargs))
        numbers = random.get_rng_state()
    last = ""
    try:
        with trace() as hops:
            function(*args, **kwargs)
    except Exception as error:  # what the function raises is part of the answer
        last = f"then it raises {type(error).__name__}: {error}"
    finally:
        with within(with_modes(state.replace(function_modes=(), tracer=None), ())):
            random.set_rng_state(numbers)
    calls = [call_from(hop) for hop in hops.children]
    return Explanation(calls, places, last or ("" if calls else f"{name_of(function)} calls no operator"))


def copied(everything: Any) -> Any:
    """A deep copy, in which tensors that are the same stay the same. What cannot be copied stays as it is."""
    memo: dict[int, Any] = {}
    for leaf in tree_leaves(everything):
        if isinstance(leaf, TensorBase) and not leaf.is_leaf:  # type: ignore[attr-defined]  # a Tensor
            memo[id(leaf)] = leaf.detach().clone().requires_grad_().clone()  # type: ignore[attr-defined]  # an attribute that mypy does not see

    def copy_of(leaf: Any) -> Any:
        try:
            return copy.deepcopy(leaf, memo)
        except (TypeError, RuntimeError, NotImplementedError):
            return leaf

    return tree_map(copy_of, everything)


def call_from(hop: Hop) -> Call:
    """The call that began with a hop, and those inside it."""
    if hop.entry is None:
        head = f"{name_of(hop.op)} is given to {hop.handler}.{hop.key}"
        return Call(head, inside=[call_from(child) for child in hop.children])
    arguments = f"({hop.arguments})"
    if not isinstance(hop.op, OpOverload):
        row = Row(hop.key, hop.entry.kernel.label, hop.entry.rule, "", hop.place, False)
        return Call(f"{hop.op}{arguments}", rows=[(row, [call_from(child) for child in hop.children])])
    below: dict[str, list[Call]] = {}
    notes: dict[str, list[str]] = {}
    pending = [(hop, hop.key)]
    while pending:  # the hops of this call; what they lead to besides are calls of their own
        one, key = pending.pop()
        notes.setdefault(key, []).extend(one.notes)
        for child in one.children:
            if child.key == "__torch_dispatch__":
                pending.append((child, key))
            elif child.begins:
                below.setdefault(key, []).append(call_from(child))
            else:
                pending.append((child, child.key))
    rows = [
        (row._replace(note="; ".join(filter(None, (row.note, *notes.get(row.key, ()))))), below.get(row.key, []))
        for row in rows_of(hop.op, hop.keyset)
    ]
    return Call(f"{hop.op.schema}", f"{describe(hop.keyset)} for {arguments}", rows)
