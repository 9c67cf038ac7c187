"""Kernels of which it is remembered what they launched: a call is a look-up, memory for the results, and the launches.

`Remembered(op, kernel).run` stands in the place of a kernel that decides anew each time. What it comes down to for
arguments that look so is found on a tape (launch_recorder.py), and written down as a function of a few lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Any

from redispatch.dispatch import STATE, Memo, OpOverload, within
from redispatch.dispatch.specialiser.marks import frozen, inline, leaf, pure
from redispatch.dispatch.tensor import Mould, Tensor, depends_on_default, fresh, get_default_dtype, looks_of, remember
from redispatch.kernels import has_internal_overlap
from redispatch.kernels.cuda import STREAMS
from redispatch.kernels.declare.plan import PLANS, is_list
from redispatch.kernels.ops.random import Generator

from .copies import ABOVE
from .launch_codegen import Run, Writer
from .launch_recorder import AT_WORK, FAR, OTHER, Refused, Tape, same
from .operands import address_of, allocator, located, stream_for

ALIGNMENT = 15  # bits of an address that a plan is for: no access is wider than 16 bytes
NUMBERS = 16  # plans for arguments that differ in numbers alone; more are not remembered

# In which kernels run: nothing is at work but what they do themselves.
PLAIN = Context().run(STATE.get).excluding(ABOVE)
PLAIN_INFERENCE = PLAIN.replace(inference=True)


def is_remembered(op: OpOverload) -> bool:
    """Whether an overload returns tensors alone: new ones, or those that it writes to, which are no `out=`."""
    schema = op.schema
    known = all(aliases in ((), (i,)) for aliases in schema.return_aliases for i in (aliases or (0,)))
    fresh_or_written = all(set(aliases) <= set(schema.mutable_positions) for aliases in schema.return_aliases)
    tensors = all(str(one.type) == "Tensor" for one in schema.returns)
    writes = set(schema.mutable_positions) <= set(schema.tensor_positions)
    does = bool(schema.returns or schema.mutable_positions)  # else it only looks whether something is wrong
    return known and fresh_or_written and tensors and writes and does and schema.kind != "out"


def nothing(addresses: list[int], stream: int) -> None:
    """In the place of a plan's launches, where there are none to remember."""
    raise AssertionError("this call is decided anew each time")


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A decided call: what results are made from, None for one that is not there, and what fills them.

    run: launches, told the addresses of arguments and then results, on a stream. plain: whether there is such a plan.
    """

    moulds: tuple[Mould | None, ...]
    run: Run
    plain: bool


EACH_TIME = Plan((), nothing, False)


@pure
def number_fact(value: Any) -> Any:
    """What tells a number from others that are equal to it: 1 from 1.0 and True, 0.0 from -0.0."""
    return (type(value), value if value else str(value))


@frozen
class Remembered:
    """The kernel of an overload, by how its tensors look and by its other arguments."""

    def __init__(self, op: OpOverload, kernel: Callable[..., Any]) -> None:
        self.kernel: Callable[..., Any] = kernel
        schema = op.schema
        kinds = [str(argument.type) for argument in schema.arguments]
        self.tensors, self.tensor_lists = schema.tensor_positions, schema.tensor_list_positions
        self.lists = tuple(i for i, argument in enumerate(schema.arguments) if is_list(argument.type))
        self.numbers = tuple(
            i
            for i, kind in enumerate(kinds)
            if kind.removeprefix("Optional[").startswith(("number", "float", "Scalar"))
        )
        self.written = schema.mutable_positions
        self.returned = tuple(aliases[0] if aliases else None for aliases in schema.return_aliases)
        self.several = len(schema.returns) > 1
        self.made = None in self.returned
        self.first = self.returned.index(None) if self.made else 0  # of the results that are made
        self.may_leave_out = any(argument.name == "output_mask" for argument in schema.arguments)
        self.plans = Memo(PLANS, alike=self.tensors)
        depends_on_default(self)
        self.seen: dict[Any, int] = {}  # facts without numbers -> plans

    @inline
    def fact(self, i: int, value: Any) -> Any:
        """What counts of argument number `i`."""
        if i in self.tensors:
            return None if value is None else value._looks or looks_of(value)
        if i in self.tensor_lists:
            return looks_in(value)
        if i in self.lists:
            return None if value is None else tuple(value)
        return number_fact(value) if i in self.numbers else value

    @leaf
    @inline
    def run(self, *args: Any) -> Any:
        facts = tuple(self.fact(i, value) for i, value in enumerate(args))
        plan = self.plans.get(facts)
        if plan is None:
            plan = self.new_plan(facts, args)
        if not plan.plain:
            return self.run_anew(*args)
        addresses: list[int] = []
        low = 0
        for i in self.tensors:
            if args[i] is None:
                addresses.append(0)
            else:
                address = located(args[i])
                low = low | address
                addresses.append(address)
        for i in self.tensor_lists:
            addresses = with_those_in(addresses, args[i])
            low = bits_of(addresses)
        if low & ALIGNMENT:
            return self.run_skewed(facts, args, addresses)
        if len(self.written) == 1:
            i = self.written[0]
            for k in self.tensors:
                if k != i and args[k] is not None and args[k]._store is args[i]._store:
                    return self.run_anew(*args)
        elif self.written and share_memory(args, self.written, self.tensors):
            return self.run_anew(*args)
        return finished(self, plan, addresses, args)

    def run_anew(self, *args: Any) -> Any:
        """The kernel itself."""
        with within(PLAIN_INFERENCE if STATE.get().inference else PLAIN):
            return self.kernel(*args)

    def run_skewed(self, facts: tuple[Any, ...], args: tuple[Any, ...], addresses: list[int]) -> Any:
        """The call where some address is no multiple of 16 bytes: its kernels may be others."""
        stores = [args[k]._store for k in self.tensors if args[k] is not None]
        if any(stores.count(args[i]._store) > 1 for i in self.written):
            return self.run_anew(*args)
        low = tuple(address & ALIGNMENT for address in addresses)
        plan = self.plans.get((*facts, low))
        if plan is None:
            default = get_default_dtype()
            plan = self.decided(args, low)
            remember(self, (*facts, low), plan, default)
        return finished(self, plan, addresses, args) if plan.plain else self.run_anew(*args)

    def new_plan(self, facts: tuple[Any, ...], args: tuple[Any, ...]) -> Plan:
        """The plan for arguments that look so for the first time, at addresses that are multiples of 16 bytes."""
        if AT_WORK.get() is not None or any(isinstance(value, Generator) for value in args):
            return (
                EACH_TIME  # whoever is on the tape has all that is launched; a generator of one's own is asked itself
            )
        others = tuple(fact for i, fact in enumerate(facts) if i not in self.numbers)
        if self.seen.get(others, 0) >= NUMBERS:
            return EACH_TIME
        if len(self.seen) >= PLANS:
            self.seen.clear()
        self.seen[others] = self.seen.get(others, 0) + 1
        default, driver = get_default_dtype(), allocator().driver
        plan = self.decided(args)
        if plan.plain or not any(map(driver.captured, STREAMS.get().values())):  # else it may be for the capture's sake
            remember(self, facts, plan, default)
        return plan

    def decided(self, args: tuple[Any, ...], low: Sequence[int] = ()) -> Plan:
        """The plan, found on two tapes. `low` are the last bits of the addresses, in order; zeros where it is empty."""
        tensors = [args[i] for i in self.tensors] + [x for i in self.tensor_lists for x in args[i]]
        on = {x._device for x in tensors if x is not None}
        overlaps = (has_internal_overlap(args[i]._shape, args[i]._stride) for i in self.written)
        if len(on) != 1 or next(iter(on)).type != "cuda" or any(overlaps):
            return EACH_TIME
        bits = low or [0] * len(tensors)
        try:
            first = self.taped(args, Tape(allocator(), next(iter(on)), FAR), bits)
            again = self.taped(args, Tape(allocator(), next(iter(on)), OTHER, former=first.tape), bits)
            return first.plan() if first.alike(again) else EACH_TIME
        except Exception:  # of whatever kind: the kernel itself raises what there is to raise
            return EACH_TIME

    def taped(self, args: tuple[Any, ...], tape: Tape, bits: Sequence[int]) -> Taped:
        """What a run of the kernel on a tape leaves there."""
        left = iter(bits)
        places: list[int | None] = []

        def stand_in(x: Tensor | None) -> Tensor | None:
            at = next(left)
            places.append(None if x is None else len(tape.places))
            return None if x is None else tape.stand_in(x, at)

        stands: dict[int, Any] = {i: stand_in(args[i]) for i in self.tensors}
        stands |= {i: [stand_in(x) for x in args[i]] for i in self.tensor_lists}
        given = tuple(stands.get(i, value) for i, value in enumerate(args))
        with tape.running():
            found = self.run_anew(*given)
            results = found if self.several else () if not self.returned else (found,)
            moulds, made = [], []
            for result, i in zip(results, self.returned, strict=True):
                if i is not None and result is not given[i]:
                    raise Refused
                moulds.append(None if i is not None or result is None else tape.mould_of(result))
                if moulds[-1] is not None:
                    made.append(tape.number_of(result._storage.block.address))
            for x in (x for one in stands.values() for x in (one if isinstance(one, list) else [one])):
                if x is not None and x._looks is None:  # it was given another shape
                    raise Refused
            del found, results, stands, given
            result = x = None
        known = {*places, *made, *(k for _, _, at in tape.drawn for k in (at, at + 1))}
        if any(place.until is None for k, place in enumerate(tape.places) if k not in known):
            raise Refused  # somebody keeps memory that is none
        return Taped(tape, places, moulds, made)

    def forget(self) -> None:
        """Plans are of the driver that there was."""
        self.plans.clear()
        self.seen.clear()


@leaf
def looks_in(tensors: Sequence[Tensor | None]) -> tuple[Any, ...]:
    return tuple([None if x is None else x._looks or looks_of(x) for x in tensors])


@leaf
def addresses_in(tensors: Sequence[Tensor | None]) -> list[int]:
    return [0 if x is None else address_of(x) for x in tensors]


@leaf
def with_those_in(addresses: list[int], tensors: Sequence[Tensor | None]) -> list[int]:
    return addresses + addresses_in(tensors)


@leaf
def bits_of(addresses: Sequence[int]) -> int:
    bits = 0
    for one in addresses:
        bits |= one
    return bits


@leaf
def share_memory(args: tuple[Any, ...], written: Sequence[int], tensors: Sequence[int]) -> bool:
    """Whether an argument that is written lies where another one does. (Not written out at each call, as that for one
    written argument is: the code of each call would have a way out for each pair.)"""
    return any(
        k != i and args[i] is not None and args[k] is not None and args[k]._store is args[i]._store
        for i in written
        for k in tensors
    )


@inline
def finished(op: Remembered, plan: Plan, addresses: list[int], args: tuple[Any, ...]) -> Any:
    """The results, filled by the plan."""
    if op.may_leave_out:
        return finished_some(op, plan, addresses)
    results: list[Any] = []
    for k, i in enumerate(op.returned):
        if i is None:
            made: Any = plan.moulds[k]
            result = fresh(made)
            store: Any = result._store
            addresses.append(store.block.address)
            results.append(result)
        else:
            results.append(args[i])
    if op.made:
        store = results[op.first]._store
        plan.run(addresses, store.block.shelf.stream)
    else:
        plan.run(addresses, stream_for(args[op.written[0]]))
    return tuple(results) if op.several else results[0]


@leaf
def finished_some(op: Remembered, plan: Plan, addresses: list[int]) -> Any:
    """The same where only some results are asked for."""
    results = [None if made is None else fresh(made) for made in plan.moulds]
    made = [x for x in results if x is not None]
    plan.run([*addresses, *addresses_in(made)], made[0]._storage.block.stream if made else 0)
    return tuple(results) if op.several else results[0]


# --- from a tape to a plan --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Taped:
    """A tape after a kernel has run on it: the places of its arguments, None where one is missing, and results."""

    tape: Tape
    given: Sequence[int | None]
    moulds: Sequence[Mould | None]
    made: Sequence[int]

    def alike(self, other: Taped) -> bool:
        steps = self.tape.steps(), other.tape.steps()
        return same(*steps) and self.moulds == other.moulds and self.made == other.made

    def plan(self) -> Plan:
        return Plan(tuple(self.moulds), self.run(), True)

    def run(self) -> Run:
        """The launches, with memory for a while, and random numbers that are drawn anew."""
        tape, order = self.tape, [*self.given, *self.made]
        writer = Writer(tape.allocator, tape.device, {k: i for i, k in enumerate(order) if k is not None}, tape.kept)
        steps = tape.steps()
        used = {one.place for _, told in steps for one in told}
        drawn = {at for _, _, k in tape.drawn for at in (k, k + 1)}
        for generator, count, k in tape.drawn:
            writer.draw(generator, count, k)
        pieces = [k for k in range(len(tape.places)) if k in used and k not in writer.names and k not in drawn]
        writer.scratch(pieces, [tape.size_of(k) for k in pieces], [tape.places[k] for k in pieces])
        for start, told in steps:
            writer.launch(start, told)
        return writer.function()
