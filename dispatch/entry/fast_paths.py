"""FastPaths: straight ways through a public function, for calls whose arguments are plain to see.

A public function must ask for overrides, choose an overload, read each argument and work out the facts by which
specialised code is found. For most calls the classes of the values decide all of that. So the function is written out
as a person would: a tree of tests on these classes, at whose leaves the code is looked up and called.

    if type(input) is Tensor or id(type(input)) in state.plain:
        if type(other) is Tensor or id(type(other)) in state.plain:
            last = add_TTD.last
            if last.state is state.keys and last.tensors is input._keyset is other._keyset:
                return last.code(input, other)
            if state.keys.slow:
                ...                                       # a function mode is asked, or the slow path taken
            return add_TTD.find(state.keys, input._keyset, other._keyset)(input, other)
        if type(other) is int or type(other) is float or type(other) is bool or type(other) is complex:
            ...

Calls that no fast path covers use the slow path, which defines the semantics: `overridden`, `Parser` or `bind`, `call`.

A *reading* says how one overload reads a call of a given shape (so many positions, these keywords): for each value,
what a value of each *kind* becomes, and where each slot of the stack comes from. The first overload that fits is
right; a fast path stands only where that is certain.

Read next: entries.py (the functions that are made of fast paths), signature.py (the readings of public functions).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..core.base import ARGUMENT_TYPES, VALUE_CLASSES, Operator
from ..core.interpreter import call, run
from ..core.state import FLAGS
from ..records import dataclass
from ..schema.convert import NUMBERS, default_of, is_default
from ..schema.schema import NO_DEFAULT, BaseType, ListType, OptionalType, Type
from ..specialiser.residual import Writer
from ..specialiser.site import Site, known_at

# Kinds of values: a class, for values of exactly that class, or one of these.
A_TENSOR = "tensor"  # a tensor whose class overrides nothing: Note [Plain classes of tensors]
INTS = "ints"  # a list or tuple of ints, perhaps empty
BOOLS = "bools"  # the same of bools
TENSORS = "tensors"  # a list or tuple of such tensors, empty only where no other overload may want it
NONE = type(None)
Kind = Any

TESTED_LAST = {NONE: 1, INTS: 2, BOOLS: 2, TENSORS: 2}  # what is rarer, or costs a loop

FEW = 3  # how many times a fast path divides by whether an argument equals its default


class Taken(NamedTuple):
    """The treatment of values of one kind: what they become, in source where `{v}` stands for the value."""

    kind: Kind
    text: str = "{v}"
    default: str = ""  # source of whether the result is the default, where it can be
    only_if: str = ""  # source of what must hold besides
    value: Any = NO_DEFAULT  # what None becomes
    convert: Callable[[Any], Any] | None = None  # `{convert}` in the text


MAYBE = Taken(None, text="")  # not certain, or not decided by the kind


@dataclass(frozen=True, slots=True)
class Reads:
    """The readings of a parameter, by kinds of values: taken, refused for certain, or MAYBE."""

    taken: dict[Kind, Taken]
    unsure: frozenset[Kind] | None  # the kinds that are neither taken nor certainly refused; None: all others

    def of(self, kind: Kind) -> Taken | None:
        """The treatment of the kind; None where it is refused."""
        found = self.taken.get(kind)
        if found is None and (self.unsure is None or kind in self.unsure):
            return MAYBE
        return found


@dataclass(frozen=True, slots=True)
class Fixed:
    """A slot of the stack whose value does not come from the call."""

    value: Any


@dataclass(frozen=True, slots=True)
class Attribute:
    """A slot which holds an attribute of a value: `self._dtype`, where a call says nothing of the dtype."""

    value: int
    name: str


@dataclass(frozen=True, slots=True)
class Reading:
    """An overload's way to read a call of one shape. `stack` has, for each slot, the index of a value, several (a list
    of ints spread over the positions), what is fixed, or an attribute, which is neither None nor the default;
    `wants_grad` is the index of a factory's `requires_grad`."""

    op: Operator
    values: tuple[Reads, ...]
    stack: tuple[int | tuple[int, ...] | Fixed | Attribute, ...]
    wants_grad: int | None = None


# What a schema type takes ---------------------------------------------------------------------------------------------


def reads(type_: Type, default: Any = NO_DEFAULT, *, numbers: bool, strict: bool, none: Any = NO_DEFAULT) -> Reads:
    """Returns the readings of a parameter of the schema type `type_`.

    numbers: whether Python's numbers stand for tensors. strict: by the rules of public functions (signature.py), not
    those of `ops` (boxing.py). none: what None becomes; NO_DEFAULT where it is refused.
    """
    base = type_.elem if isinstance(type_, OptionalType) else type_
    if isinstance(base, ListType):
        taken, unsure = list_reads(base, default, strict)
    else:
        taken, unsure = base_reads(base.name if isinstance(base, BaseType) else "", default, strict)
    if numbers:
        taken += [Taken(kind) for kind in NUMBERS]
    if none is not NO_DEFAULT:
        taken.append(Taken(NONE, value=none))
    return Reads({one.kind: one for one in taken}, unsure)


def base_reads(name: str, default: Any, strict: bool) -> tuple[list[Taken], frozenset[Kind] | None]:
    """(what is taken, what is unsure) at a type without parts."""

    def taken(kind: Kind, text: str = "{v}", result: type | None = None, only_if: str = "") -> Taken:
        return Taken(kind, text, is_default_text(text, result or kind, default), only_if)

    match name:
        case "Tensor":
            return [Taken(A_TENSOR)], frozenset()
        case "Scalar":
            return [taken(kind) for kind in NUMBERS], frozenset([A_TENSOR])
        case "int" | "SymInt":
            truth = [] if strict else [taken(bool, "int({v})", int)]
            return [taken(int), *truth], frozenset([A_TENSOR])
        case "float":
            exact = "-9007199254740992 <= {v} <= 9007199254740992"  # a greater one may not fit into a float
            truth = [] if strict else [taken(bool, "float({v})", float)]
            return [taken(float), taken(int, "float({v})", float, exact), *truth], frozenset([A_TENSOR])
        case "bool":
            return [taken(bool)], frozenset([A_TENSOR, NONE, int, float, complex, *VALUE_CLASSES.values()])
        case "str":
            return [taken(str)], frozenset()
        case "ScalarType":
            return [taken(VALUE_CLASSES[name])], frozenset() if strict else frozenset([int])
        case "Device":  # by its name, too: if there is none of that name, the converter's error is the right one
            by_name = Taken(str, "{convert}({v})", convert=ARGUMENT_TYPES[name])
            return [taken(VALUE_CLASSES[name]), by_name], None
    return [taken(VALUE_CLASSES[name])] if name in VALUE_CLASSES else [], None


def list_reads(type_: ListType, default: Any, strict: bool) -> tuple[list[Taken], frozenset[Kind] | None]:
    """Returns the readings of a parameter whose type is a list."""
    inner = type_.elem.elem if isinstance(type_.elem, OptionalType) else type_.elem
    name = inner.name if isinstance(inner, BaseType) else ""
    if name == "Tensor":
        return [Taken(TENSORS)], frozenset([INTS])  # unsure: the empty list
    if name == "Scalar" and strict:
        return [], frozenset([INTS, BOOLS])  # a tensor is no number there, and a number no list
    if name == "bool" and inner is type_.elem:
        many = f"len({{v}}) == {type_.size}" if type_.size else ""
        return [Taken(BOOLS, default=is_default_text("{v}", list, default), only_if=many)], None
    if name not in ("int", "SymInt") or inner is not type_.elem:
        return [], None
    taken = [Taken(INTS, default=is_default_text("{v}", list, default))]
    if type_.size is not None:
        items = ", ".join(["{v}"] * type_.size)
        taken.append(Taken(int, f"[{items}]", is_default_text(f"[{items}]", list, default)))
        unsure = {TENSORS, A_TENSOR} if strict else {TENSORS, A_TENSOR, bool}
        return taken, frozenset(unsure)
    return taken, frozenset([TENSORS])


def is_default_text(text: str, result: type, default: Any) -> str:
    """Source of whether `text`, which is of class `result`, is the default (boxing.py, `is_default`); "" if never.

    `{d}` stands for the default, where it has no literal.
    """
    if type(default) is not result:
        return ""
    if result is bool:
        return f"{text} is {default}"
    if isinstance(default, float) and default != 0 and math.isfinite(default):
        return f"{text} == {default!r}"
    if result in (int, str, list):
        return f"{text} == {default!r}"
    return f"is_default({text}, {{d}})"


# The tree -------------------------------------------------------------------------------------------------------------


class Candidate(NamedTuple):
    """A reading that the tests so far leave possible, and how it takes the values that were tested."""

    reading: Reading
    taken: tuple[Taken, ...]

    @property
    def certain(self) -> bool:
        return all(how is not MAYBE for how in self.taken)


class Slot(NamedTuple):
    """A slot of the stack at a leaf: its fact (specialiser/specialise.py), source, and source of whether the value is
    the default after all."""

    fact: Any
    text: str
    default: str = ""


class FastPaths:
    """Writes the fast paths of one function, and collects the constants that they refer to.

    names: the variables which hold the values. finish: gives, for an operator, what its result goes through, or None.
    grad: sets a factory's `requires_grad`. keyset: the variable of the keyset, where that is not to follow from the
    arguments and the state. by_mode: gives source of what a call with so many values means under a function mode.
    gives_first: the function returns the operator's first argument, as it was given.
    """

    gives_first = False

    def __init__(
        self,
        writer: Writer,
        names: Sequence[str],
        finish: Callable[[Any], Any] | None = None,
        grad: Callable[[Any, bool], Any] | None = None,
        keyset: str = "",
        by_mode: Callable[[int], str] | None = None,
    ) -> None:
        self.writer, self.names, self.finish, self.grad, self.keyset = writer, names, finish, grad, keyset
        self.by_mode = None if keyset else by_mode
        self.sites: dict[Any, Site] = {}
        self.by_length: dict[Any, ByLength] = {}
        self.lists = [writer.variable(f"{name}_ints") for name in names]  # for the list of ints or bools made of one
        self.keys = [writer.variable(f"{name}_keys") for name in names]  # for the keys of the tensors in a value

    def lines(self, readings: Iterable[Reading]) -> list[str]:
        """The tree for these readings of calls, which are in the order in which overloads are tried."""
        return self.tree([Candidate(reading, ()) for reading in readings], 0)

    def tree(self, candidates: list[Candidate], position: int) -> list[str]:
        """Tests on the value at `position`, and what is below them; no lines where no fast path is certain."""
        if not any(one.certain for one in candidates):
            return []
        lines: list[str] = []
        ended = [one for one in candidates if len(one.reading.values) == position]
        going = [one for one in candidates if len(one.reading.values) > position]
        if ended and ended[0].certain:
            lines = self.leaf(ended[0])
            if position < len(self.names):
                lines = [f"if {self.names[position]} is UNSET:", *indented(lines)]
        one = len({candidate.reading.op for candidate in candidates}) == 1  # another overload may want the empty list
        for kinds, left in divided(going, position):
            below = self.tree(left, position + 1)
            if below:
                test, *below = self.under(kinds, position, below, empty=one)
                lines += [f"{'elif' if lines else 'if'} {test}:", *indented(below)]
        return lines

    def under(self, kinds: list[Kind], position: int, below: list[str], empty: bool) -> list[str]:
        """The test for these kinds, and the lines below it. `empty`: a list of tensors may be empty."""
        value = self.names[position]
        if kinds in ([INTS], [BOOLS]):
            made = self.writer.constant(as_ints if kinds == [INTS] else as_bools)
            return [f"({self.lists[position]} := {made}({value})) is not None", *below]
        if kinds == [TENSORS]:
            keys = self.keys[position]
            many = f"type({value}) is list or type({value}) is tuple"
            return [
                many if empty else f"({many}) and {value}",
                f"{keys} = 0",
                f"for item in {value}:",
                f"    if not ({self.is_plain('item')}):",
                "        break",
                f"    if {keys} is not item._keyset:",
                f"        {keys} = {keys} | item._keyset if {keys} else item._keyset",
                "else:",
                *indented(below),
            ]
        tests = [
            self.is_plain(value)
            if kind is A_TENSOR
            else f"{value} is None"
            if kind is NONE
            else f"type({value}) is {self.writer.constant(kind, f'{kind.__name__}_class')}"
            for kind in kinds
        ]
        return [" or ".join(tests), *below]

    def is_plain(self, value: str) -> str:
        return f"type({value}) is {self.writer.constant(VALUE_CLASSES['Tensor'])} or id(type({value})) in state.plain"

    # Leaves -----------------------------------------------------------------------------------------------------------

    def leaf(self, candidate: Candidate) -> list[str]:
        """Calls the code for one reading, with all values known by their kinds."""
        reading, taken = candidate
        defaults = [default_of(argument) for argument in reading.op.schema.arguments]
        slots = [self.slot(source, taken, default) for source, default in zip(reading.stack, defaults, strict=True)]
        united = [f"{self.names[i]}._keyset" for i, how in enumerate(taken) if how.kind is A_TENSOR]
        united += [self.keys[i] for i, how in enumerate(taken) if how.kind is TENSORS]
        lines = self.divided_by_defaults(reading, slots, defaults, united)
        needed = [how.only_if.replace("{v}", self.names[i]) for i, how in enumerate(taken) if how.only_if]
        return [f"if {' and '.join(needed)}:", *indented(lines)] if needed else lines

    def slot(self, source: Any, taken: Sequence[Taken], default: Any) -> Slot:
        if isinstance(source, Fixed):
            return self.fixed(source.value, default)
        if isinstance(source, Attribute):
            return Slot("x", f"{self.names[source.value]}.{source.name}")
        if isinstance(source, tuple):
            text = f"[{', '.join(self.names[i] for i in source)}]"
            return Slot("x", text, is_default_text(text, list, default))
        how, name = taken[source], self.names[source]
        if how.kind is NONE:
            return self.fixed(how.value, default)
        if how.kind is A_TENSOR:
            return Slot("T", name)
        if how.kind is TENSORS:
            return Slot(TENSORS, f"[*{name}]")
        if how.kind in (INTS, BOOLS):
            name = self.lists[source]
        test = how.default.replace("{v}", name)
        if "{d}" in test:
            test = test.replace("is_default", self.writer.constant(is_default))
            test = test.replace("{d}", self.writer.constant(default, "default"))
        text = how.text
        if how.convert is not None:
            text = text.replace("{convert}", self.writer.constant(how.convert))
        return Slot("x", text.replace("{v}", name), test)

    def fixed(self, value: Any, default: Any) -> Slot:
        fact = "D" if is_default(value, default) else "N" if value is None else "x"
        return Slot(fact, self.writer.constant(value, "value") if fact == "x" else "")

    def divided_by_defaults(
        self, reading: Reading, slots: list[Slot], defaults: list[Any], keysets: list[str]
    ) -> list[str]:
        """The call, once for each combination of which values equal their defaults."""
        op = reading.op
        unsure = [i for i, slot in enumerate(slots) if slot.default]
        if len(unsure) > FEW:
            stack = [
                self.writer.constant(default, "default") if slot.fact == "D" else slot.text or "None"
                for slot, default in zip(slots, defaults, strict=True)
            ]
            boxed = f"[{', '.join(stack)}]"
            if self.keyset:
                made = f"{self.writer.constant(run)}({self.writer.constant(op, 'op')}, int({self.keyset}), {boxed})"
            else:
                made = f"{self.writer.constant(call)}({self.writer.constant(op, 'op')}, {boxed})"
            return [*self.asking(reading), f"return {self.finished(made, reading)}"]
        if unsure:
            first = unsure[0]
            equal, other = list(slots), list(slots)
            equal[first], other[first] = Slot("D", ""), slots[first]._replace(default="")
            return [
                f"if {slots[first].default}:",
                *indented(self.divided_by_defaults(reading, equal, defaults, keysets)),
                *self.divided_by_defaults(reading, other, defaults, keysets),
            ]
        given, site = ", ".join(slot.text for slot in slots if slot.text), self.site(op, slots)
        if self.keyset:
            found = f"int({self.keyset}) | state.keys.added & {self.writer.constant(FLAGS, 'FLAGS')}"
            return [f"return {self.finished(f'{site}.table[{found}]({given})', reading)}"]
        lines = []
        if "[" in site:
            lines, site = [f"site = {site}"], "site"
        same, otherwise = known_at(site, "state", keysets)
        return [
            *lines,
            f"last = {site}.last",
            f"if {same}:",
            f"    return {self.finished(f'last.code({given})', reading)}",
            *self.asking(reading),
            f"return {self.finished(f'{otherwise}({given})', reading)}",
        ]

    def asking(self, reading: Reading) -> list[str]:
        """Lines that ask a function mode if there is one, or leave. (A site remembers no code for such a state.)"""
        if self.by_mode is None:
            return []
        return ["if state.keys.slow:", f"    return {self.by_mode(len(reading.values))}"]

    def site(self, op: Operator, slots: list[Slot]) -> str:
        """Source of the site for these facts."""
        facts = tuple(slot.fact for slot in slots)
        name = f"{op.__name__.removesuffix('.default')}_{''.join('L' if fact is TENSORS else fact for fact in facts)}"
        lists = [i for i, fact in enumerate(facts) if fact is TENSORS]
        if not lists:
            site = self.sites.setdefault((op, facts), Site(op.table(facts)))
            return self.writer.constant(site, name)
        sites = self.writer.constant(self.by_length.setdefault((op, facts), ByLength(op, facts)), name)
        lengths = ", ".join(f"len({slots[i].text[2:-1]})" for i in lists)
        return f"{sites}[{lengths}]"

    def finished(self, result: str, reading: Reading) -> str:
        finish = self.finish and self.finish(reading.op)
        if finish is not None:
            result = f"{self.writer.constant(finish, 'finish')}({result})"
        if self.gives_first and isinstance(reading.stack[0], int):
            result = f"({result}, {self.names[reading.stack[0]]})[1]"
        if reading.wants_grad is not None:
            result = f"{self.writer.constant(self.grad)}({result}, {self.names[reading.wants_grad]})"
        return result


def divided(candidates: list[Candidate], position: int) -> list[tuple[list[Kind], list[Candidate]]]:
    """(kinds of the value at `position`, what they leave possible); kinds that make no difference go together."""
    found: dict[Any, tuple[list[Kind], list[Candidate]]] = {}
    wanted = {kind: None for one in candidates for kind in one.reading.values[position].taken}
    for kind in wanted:
        taken = [one.reading.values[position].of(kind) for one in candidates]
        left = [Candidate(c.reading, (*c.taken, how)) for c, how in zip(candidates, taken, strict=True) if how]
        apart = kind if kind in (A_TENSOR, INTS, BOOLS, TENSORS) else None
        alike = apart, tuple(how and how._replace(kind=None) for how in taken)
        found.setdefault(alike, ([], left))[0].append(kind)
    return sorted(found.values(), key=lambda one: TESTED_LAST.get(one[0][0], 0))


def indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


class ByLength(dict[Any, Any]):
    """The sites for lists of tensors, by their length; by their lengths, where there are several."""

    def __init__(self, op: Operator, facts: tuple[Any, ...]) -> None:
        self.op, self.facts = op, facts

    def __missing__(self, lengths: Any) -> Any:
        left = iter(lengths if isinstance(lengths, tuple) else (lengths,))
        facts = tuple(("T",) * next(left) if fact is TENSORS else fact for fact in self.facts)
        found = self[lengths] = Site(self.op.table(facts))
        return found


def as_ints(value: Any) -> list[int] | None:
    """The items of a list or tuple of ints; None for anything else."""
    if not isinstance(value, (list, tuple)):  # a third faster than a union
        return None
    for item in value:
        if type(item) is not int:
            return None
    return [*value]


def as_bools(value: Any) -> list[bool] | None:
    """The items of a list or tuple of bools; None for anything else."""
    if type(value) is not list and type(value) is not tuple:
        return None
    for item in value:
        if item is not True and item is not False:
            return None
    return [*value]
