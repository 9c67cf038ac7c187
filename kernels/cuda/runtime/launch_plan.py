"""Plans on CUDA: a call is a look-up, memory for the results, and the launches.

`Recorded(op, kernel).run` stands in the place of a kernel that decides anew each time: any kernel. The launches that it
makes for arguments of such metadata are found on a tape (launch_recorder.py), and written down as the `run` of a plan
(kernels/declare/plan.py), with all that they are told but for addresses:

    def run(addresses, stream):
        block = allocate(1024, on)
        at = block.address
        start0((64, at, addresses[0], 17), stream)
        start1((64, addresses[2], at, addresses[1] + 16), stream)

It is a function of its own for each plan: to put such tuples together from a list of what goes where takes as long as
all else that a planned call does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any, NamedTuple

from redispatch.dispatch import STATE, Memo, OpOverload, within
from redispatch.dispatch.specialiser.annotations import frozen, inline, leaf
from redispatch.dispatch.tensor import Tensor, depends_on_default, empty_from, get_default_dtype, remember
from redispatch.kernels import has_internal_overlap
from redispatch.kernels.cuda import STREAMS, TAPES
from redispatch.kernels.declare.plan import PLANS, Deciding, Plan
from redispatch.kernels.ops.generators import Generator

from .async_errors import late_errors
from .copies import ABOVE
from .launch_recorder import AT_WORK, FAR, OTHER, Place, Refused, Tape, Told, keep
from .operands import address_of, allocator, located, stream_for

ALIGNMENT = 15  # bits of an address that a plan is for: no access is wider than 16 bytes
NUMBERS = 16  # plans for arguments that differ in numbers alone; more are not cached

# In which kernels run: nothing is at work but what they do themselves.
PLAIN = Context().run(STATE.get).excluding(ABOVE)
PLAIN_INFERENCE = PLAIN.replace(inference=True)
EACH_TIME = Plan((), None)


def is_recorded(op: OpOverload) -> bool:
    """Whether an overload returns tensors alone: new ones, or those that it writes to, which are no `out=`."""
    schema = op.schema
    known = all(aliases in ((), (i,)) for aliases in schema.return_aliases for i in (aliases or (0,)))
    fresh_or_written = all(set(aliases) <= set(schema.mutable_positions) for aliases in schema.return_aliases)
    tensors = all(str(one.type) == "Tensor" for one in schema.returns)
    writes = set(schema.mutable_positions) <= set(schema.tensor_positions)
    does = bool(schema.returns or schema.mutable_positions)  # else it only looks whether something is wrong
    return known and fresh_or_written and tensors and writes and does and schema.kind != "out"


@frozen
class Recorded(Deciding):
    """The kernel of an overload, by the metadata of its tensors and by its other arguments."""

    def __init__(self, op: OpOverload, kernel: Callable[..., Any]) -> None:
        self.kernel: Callable[..., Any] = kernel
        self.schema = schema = op.schema
        self.tensors = schema.tensor_positions
        self.written = schema.mutable_positions
        self.returned = tuple(aliases[0] if aliases else None for aliases in schema.return_aliases)
        self.several = len(schema.returns) > 1
        self.made = None in self.returned
        self.first = self.returned.index(None) if self.made else 0  # of the results that are made
        self.plans = Memo(PLANS, alike=self.tensors)
        depends_on_default(self)
        self.seen: dict[Any, int] = {}  # facts without numbers -> plans

    @leaf
    @inline
    def run(self, *args: Any) -> Any:
        facts = self.facts(args)
        plan = self.plans.get(facts)
        if plan is None:
            plan = self.new_plan(facts, args)
        if plan.run is None:
            return self.run_uncached(*args)
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
            return self.run_unaligned(facts, args, addresses)
        if len(self.written) == 1:
            i = self.written[0]
            for k in self.tensors:
                if k != i and args[k] is not None and args[k]._store is args[i]._store:
                    return self.run_uncached(*args)
        elif self.written and share_memory(args, self.written, self.tensors):
            return self.run_uncached(*args)
        return finished(self, plan, addresses, args)

    def run_uncached(self, *args: Any) -> Any:
        """The kernel itself."""
        with within(PLAIN_INFERENCE if STATE.get().inference else PLAIN):
            return self.kernel(*args)

    def run_unaligned(self, facts: tuple[Any, ...], args: tuple[Any, ...], addresses: list[int]) -> Any:
        """The call where some address is no multiple of 16 bytes: its kernels may be others."""
        stores = [args[k]._store for k in self.tensors if args[k] is not None]
        if any(stores.count(args[i]._store) > 1 for i in self.written):
            return self.run_uncached(*args)
        low = tuple(address & ALIGNMENT for address in addresses)
        plan = self.plans.get((*facts, low))
        if plan is None:
            default = get_default_dtype()
            plan = self.decided(args, low)
            remember(self, (*facts, low), plan, default)
        return self.run_uncached(*args) if plan.run is None else finished(self, plan, addresses, args)

    def new_plan(self, facts: tuple[Any, ...], args: tuple[Any, ...]) -> Plan:
        """The plan for arguments that look so for the first time, at addresses that are multiples of 16 bytes."""
        if AT_WORK.get() is not None or any(isinstance(value, Generator) for value in args):
            return EACH_TIME  # the outer tape has all that is launched; a generator of the user's is asked itself
        others = tuple(fact for i, fact in enumerate(facts) if i not in self.numbers and i not in self.floats)
        if self.seen.get(others, 0) >= NUMBERS:
            return EACH_TIME
        if len(self.seen) >= PLANS:
            self.seen.clear()
        self.seen[others] = self.seen.get(others, 0) + 1
        default, driver = get_default_dtype(), allocator().driver
        plan = self.decided(args)
        # What has no plan while a stream is captured may be so for the capture's sake.
        if plan.run is not None or not any(map(driver.captured, STREAMS.get().values())):
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
            return first.plan() if same(first, again) else EACH_TIME
        except Exception:  # of whatever kind: the kernel itself raises what there is to raise
            return EACH_TIME

    def taped(self, args: tuple[Any, ...], tape: Tape, bits: Sequence[int]) -> Taped:
        """Runs the kernel on a tape, and returns the tape."""
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
            found = self.run_uncached(*given)
            results = found if self.several else () if not self.returned else (found,)
            outputs, made = [], []
            for result, i in zip(results, self.returned, strict=True):
                if i is not None and result is not given[i]:
                    raise Refused
                outputs.append(None if i is not None or result is None else tape.spec_of(result))
                if outputs[-1] is not None:
                    made.append(tape.number_of(result._storage.block.address))
            for x in (x for one in stands.values() for x in (one if isinstance(one, list) else [one])):
                if x is not None and x._interned is None:  # it was given another shape
                    raise Refused
            del found, results, stands, given
            result = x = None
        known = {*places, *made, *(k for _, _, at in tape.drawn for k in (at, at + 1))}
        if any(place.until is None for k, place in enumerate(tape.places) if k not in known):
            raise Refused  # somebody keeps memory that is none
        return Taped(tape, places, tuple(outputs), made)

    def forget(self) -> None:
        """Plans are of the driver that there was."""
        self.plans.clear()
        self.seen.clear()


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
def finished(op: Recorded, plan: Plan, addresses: list[int], args: tuple[Any, ...]) -> Any:
    """The results, filled by the plan."""
    if op.may_leave_out:
        return finished_some(op, plan, addresses)
    results: list[Any] = []
    for k, i in enumerate(op.returned):
        if i is None:
            result = empty_from(plan.outputs[k])
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
def finished_some(op: Recorded, plan: Plan, addresses: list[int]) -> Any:
    """Runs a plan of which only some results are asked for."""
    results = [None if spec is None else empty_from(spec) for spec in plan.outputs]
    made = [x for x in results if x is not None]
    plan.run([*addresses, *addresses_in(made)], made[0]._storage.block.stream if made else 0)
    return tuple(results) if op.several else results[0]


class Taped(NamedTuple):
    """A tape after a kernel has run on it: the places of its arguments, None where one is missing, and of results."""

    tape: Tape
    given: Sequence[int | None]
    outputs: tuple[Any, ...]
    made: Sequence[int]

    def plan(self) -> Plan:
        return Plan(self.outputs, function_of(self.tape, [*self.given, *self.made]))


def same(a: Taped, b: Taped) -> bool:
    """Whether a kernel did the same on two tapes. As text, -0.0 is another number than 0.0, and NaN the same as NaN."""
    said = [[[(one.place, repr(one.number)) for one in told] for _, told in taped.tape.steps()] for taped in (a, b)]
    return said[0] == said[1] and a.outputs == b.outputs and a.made == b.made


# --- launches, written out --------------------------------------------------------------------------------------------


Run = Callable[[list[int], int], None]  # (addresses, stream)
ALIGNED = 512  # bytes, of pieces of memory


def function_of(tape: Tape, order: Sequence[int | None]) -> Run:
    """The launches of a tape as `run(addresses, stream)`, where `order` says which place each address is of.

    Memory that a kernel made for the while is allocated again, and random numbers are drawn anew.
    """
    errors, index, steps = late_errors(tape.allocator.driver), tape.device.index or 0, tape.steps()
    scope: dict[str, Any] = {"allocate": tape.allocator.allocate, "on": tape.device}
    names = {k: f"addresses[{i}]" for i, k in enumerate(order) if k is not None}
    lines: list[str] = []

    def named(hint: str, value: Any) -> str:
        name = f"{hint}{len(scope)}"
        scope[name] = value
        return name

    def text(told: Told) -> str:
        if told.place is not None:
            return f"{names[told.place]} + {told.number}" if told.number else names[told.place]
        return str(told.number) if type(told.number) is int else named("number", told.number)

    if tape.kept:
        scope |= {"tapes": TAPES, "keep": keep, "kept": tape.kept}
        lines.append("if tapes: keep(kept)")
    for generator, count, k in tape.drawn:
        names |= {k: f"seed{k}", k + 1: f"offset{k}"}
        lines.append(f"seed{k}, offset{k} = {named('take', generator.take)}({count})")
    pieces = sorted({one.place for _, told in steps for one in told if one.place is not None} - {*names})
    if tape.allocator.told:  # the driver is told who has which memory, and so sees where each piece ends
        for k in pieces:
            names[k] = f"at{k}"
            lines += [f"block{k} = allocate({tape.size_of(k)}, on)", f"at{k} = block{k}.address"]
    elif pieces:
        starts, whole = packed([tape.size_of(k) for k in pieces], [tape.places[k] for k in pieces])
        lines += [f"block = allocate({whole}, on)", "at = block.address"]
        names |= {k: f"at + {start}" if start else "at" for k, start in zip(pieces, starts, strict=True)}
    for start, told in steps:
        lines.append(f"{named('start', start)}(({''.join(text(one) + ', ' for one in told)}), stream)")
    words = errors.words.get(index)
    if any(one.place is None and one.number == words for _, told in steps for one in told):
        scope["asked"] = errors.asked.add  # the device is to be asked for errors later
        lines.append(f"asked({index})")
    source = "\n    ".join(["def run(addresses, stream):", *(lines or ["pass"])])
    exec(compile(source, "<launches of a plan>", "exec"), scope)
    run: Run = scope["run"]
    return run


def packed(sizes: Sequence[int], lives: Sequence[Place]) -> tuple[list[int], int]:
    """The start of each of these pieces in one block, and the block's size; what never lives at once may overlap."""
    taken: list[tuple[int, int, Place]] = []
    for size, life in zip(sizes, lives, strict=True):
        at = 0
        for low, high, other in sorted(taken, key=lambda one: one[0]):
            apart = ends(other) <= life.since or ends(life) <= other.since
            if not apart and at < high and low < at + size:
                at = high
        taken.append((at, at + -(-max(size, 1) // ALIGNED) * ALIGNED, life))
    return [low for low, _, _ in taken], max((high for _, high, _ in taken), default=0)


def ends(life: Any) -> float:
    return float("inf") if life.until is None else life.until
