"""What structured operators come down to on a device: launches, remembered by how the arguments look.

An operator's `work` gets results and arguments, as its CPU `loop` does, reads only how they look, and returns the
launches that do it for all that look so. Shapes, dtypes and errors are said by the operator's meta function.

Read next: products.py, softmax.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from redispatch.dispatch import Memo
from redispatch.dispatch.marks import frozen, inline, leaf
from redispatch.kernels import is_contiguous
from redispatch.kernels.cuda import Launch, current_stream
from redispatch.ops.planned import PLANS, PlannedSeveral, is_list
from redispatch.ops.structured import (
    Structured,
    check_no_internal_overlap,
    check_writable,
    is_among,
    resize_out,
)
from redispatch.tensor import Mould, Size, Tensor, device, fresh, looks_of, mould

from .copies import apart, copied, copy_on_device
from .late_errors import late_errors
from .operands import address_of, allocator, located

SCRATCH, ERRORS = -2, -1  # stand behind the tensors


class Task(NamedTuple):
    """A launch: of which tensors it is told the addresses, counted over results and then arguments; and what else.

    Number ERRORS is the words in which kernels tell of bad indices (late_errors.py), and SCRATCH memory for as long as
    the launches run, which all of them share: of `scratch` bytes.
    """

    launch: Launch | Any  # or what stands in its place: `on(driver)` gives what starts it
    tensors: tuple[int, ...]
    rest: tuple[int, ...]
    scratch: int = 0


Work = Callable[..., Sequence[Task]]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A decided call: what results are made from, and what fills them, by their addresses and those of arguments.

    copied: the numbers of the arguments that are copied before, so that they lie row by row.
    plain: whether none are, and all results are made.
    """

    moulds: tuple[Mould | None, ...]
    run: Callable[[list[int], int], None]
    copied: tuple[int, ...]
    plain: bool


def ready(tasks: Sequence[Task], on: device) -> Callable[[list[int], int], None]:
    """What launches these on a device: `run(addresses, stream)`."""
    source = allocator()
    starts = [(task.launch.on(source.driver), task.tensors, task.rest) for task in tasks]
    scratch = max((task.scratch for task in tasks), default=0)

    first, chosen, others = starts[0] if starts else (None, (), ())
    choose = itemgetter(*chosen) if len(chosen) > 1 else None

    def run_one(addresses: list[int], stream: int) -> None:
        first((*choose(addresses), *others), stream)  # type: ignore[misc]  # only where there are both

    def run(addresses: list[int], stream: int) -> None:
        for start, tensors, rest in starts:
            start((*[addresses[k] for k in tensors], *rest), stream)

    errors = late_errors(source.driver)

    def run_with_more(addresses: list[int], stream: int) -> None:
        block = source.allocate(scratch, on)
        run([*addresses, block.address, errors.address(on.index or 0)], stream)

    more = any(k < 0 for task in tasks for k in task.tensors)
    if more:
        return run_with_more
    return run_one if len(tasks) == 1 and choose is not None else run


def addresses_of(tensors: Sequence[Tensor | None]) -> list[int]:
    return [0 if x is None else address_of(x) for x in tensors]


RECORDED: ContextVar[list[tuple[Sequence[Task], Sequence[Tensor | None]]] | None] = ContextVar("recorded", default=None)


def launched(tasks: Sequence[Task], tensors: Sequence[Tensor | None]) -> None:
    """Launches these at once, in the current stream of the first tensor's device."""
    recorded = RECORDED.get()
    if recorded is not None:
        recorded.append((tasks, tensors))
    on = next(x._device for x in tensors if x is not None)
    ready(tasks, on)(addresses_of(tensors), current_stream(on.index or 0))


def dense(x: Tensor) -> Tensor:
    """The tensor, or a copy that lies row by row."""
    return x if is_contiguous(x._shape, x._stride) else copied(x)


def with_copies(args: tuple[Any, ...], which: Sequence[int]) -> tuple[Any, ...]:
    """The arguments, with dense copies of those with these numbers."""
    return tuple(copied(x) if i in which else x for i, x in enumerate(args))


@frozen
class OnCUDA:
    """The kernels of one structured operator, with one result or several.

    dense: the arguments that `work` wants row by row; others are copied for it.
    """

    def __init__(self, op: Any, work: Work, dense: Sequence[str] = ()) -> None:
        self.op, self.work = op, work
        arguments = op.schema.arguments
        self.tensors = op.text.tensor_positions
        self.lists = tuple(i for i, argument in enumerate(arguments) if is_list(argument.type))
        self.dense = tuple(i for i, argument in enumerate(arguments) if argument.name in dense)
        self.several = isinstance(op, PlannedSeveral)
        self.outs = len(op.functional.schema.returns)
        self.plans = Memo(PLANS, alike=self.tensors)

    @inline
    def fact(self, i: int, value: Any) -> Any:
        if i in self.tensors:
            return None if value is None else value._looks or looks_of(value)
        if i in self.lists:
            return None if value is None else tuple(value)
        return value

    @leaf
    @inline
    def functional(self, *args: Any) -> Any:
        facts = tuple(self.fact(i, value) for i, value in enumerate(args))
        plan = self.plans.get(facts)
        if plan is None:
            plan = self.new_plan(facts, args)
        if not plan.plain:
            return self.run_otherwise(plan, args)
        results = tuple(fresh(plan.moulds[k]) for k in range(self.outs))
        addresses: list[int] = []
        for result in results:
            store: Any = result._store
            addresses.append(store.block.address)
        for i in self.tensors:
            addresses.append(0 if args[i] is None else located(args[i]))
        store = results[0]._store
        plan.run(addresses, store.block.stream)
        return results if self.several else results[0]

    def run_otherwise(self, plan: Plan, args: tuple[Any, ...]) -> Any:
        """The call where arguments are copied before, or a result is not asked for."""
        results = [None if made is None else fresh(made) for made in plan.moulds]
        self.run(plan.run, results, with_copies(args, plan.copied))
        return tuple(results) if self.several else results[0]

    def to_copy(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """The arguments that must lie row by row, and do not."""
        given = [(i, args[i]) for i in self.dense if args[i] is not None]
        return tuple(i for i, x in given if not is_contiguous(x._shape, x._stride))

    def new_plan(self, facts: tuple[Any, ...], args: tuple[Any, ...]) -> Plan:
        """The plan for arguments that look so for the first time."""
        metas = self.op.metas_function(*args) if self.several else (self.op.meta_function(*args),)
        moulds = tuple(None if m is None else mould(Size(m.shape), m.dtype, m.device, m.strides) for m in metas)
        results = tuple(None if made is None else fresh(made) for made in moulds)
        on = next(args[i]._device for i in self.tensors if args[i] is not None)
        copies = self.to_copy(args)
        tasks = self.work(results if self.several else results[0], *with_copies(args, copies))
        plan = self.plans[facts] = Plan(moulds, ready(tasks, on), copies, not copies and None not in moulds)
        return plan

    def run(self, run: Callable[[list[int], int], None], results: Sequence[Any], args: Sequence[Any]) -> None:
        tensors = [*results, *[args[i] for i in self.tensors]]
        on = tensors[0]._device if tensors[0] is not None else next(x._device for x in tensors if x is not None)
        run(addresses_of(tensors), current_stream(on.index or 0))

    @leaf
    def inplace(self, *args: Any) -> Tensor:
        check_writable(args[0], self.op.meta_function(*args))
        self.fill(args[0], args)
        return args[0]

    @leaf
    def out(self, *args: Any) -> Tensor:
        *inputs, out = args
        meta = self.op.meta_function(*inputs)
        if is_among(out, inputs):
            check_writable(out, meta)
        resize_out(out, meta)
        self.fill(out, tuple(inputs))
        return out

    def fill(self, out: Tensor, args: tuple[Any, ...]) -> None:
        """Fills any tensor: directly where it is of the result's dtype and lies row by row, or by a copy."""
        check_no_internal_overlap(out)
        args = tuple(apart(value, out, elementwise=False) for value in args)
        meta = self.op.meta_function(*args)
        if meta.dtype is not out._dtype or not is_contiguous(out._shape, out._stride):
            copy_on_device(out, self.functional(*args))
            return
        args = with_copies(args, self.to_copy(args))
        self.run(ready(self.work(out, *args), out._device), [out], args)

    def forget(self) -> None:
        """Plans are of the driver that there was."""
        self.plans.clear()

    def forms(self) -> list[tuple[Any, Callable[..., Any]]]:
        """Each overload with its kernel."""
        found = [(self.op.functional, self.functional)]
        if isinstance(self.op, Structured):
            found += [(self.op.inplace, self.inplace), (self.op.out, self.out)]
        return [(form, kernel) for form, kernel in found if form is not None]


@frozen
class Recorded(OnCUDA):
    """A kernel that decides anew at each call, and calls `launched`: what it launched for tensors that look so is
    remembered, where it launched for its results and arguments alone, and for tensors that never change.

    keeps: whether a tensor is one of the latter.
    """

    def __init__(self, op: Any, kernel: Callable[..., Any], keeps: Callable[[Tensor], bool]) -> None:
        super().__init__(op, kernel)
        self.kernel: Callable[..., Any] = kernel
        self.keeps, self.several = keeps, self.outs > 1

    def new_plan(self, facts: tuple[Any, ...], args: tuple[Any, ...]) -> Plan:
        token = RECORDED.set([])
        try:
            found = self.kernel(*args)
            recorded = RECORDED.get() or []
        finally:
            RECORDED.reset(token)
        results = found if self.several else (found,)
        run = self.again(recorded, results, args)
        moulds = tuple(mould(x._shape, x._dtype, x._device, tuple(x._stride)) for x in results)
        plan = self.plans[facts] = Plan(moulds, run or unplanned, (), run is not None)
        return plan

    def again(self, recorded: Any, results: Sequence[Tensor], args: Sequence[Any]) -> Any:
        """What launches the same; None where it launched for other tensors, or made results otherwise."""
        known = [*results, *[args[i] for i in self.tensors]]
        count, tasks = len(known), []
        for group, tensors in recorded:
            for x in tensors:
                if not any(x is one for one in known):
                    if not self.keeps(x):
                        return None
                    known.append(x)
            places = [next(k for k, one in enumerate(known) if one is x) for x in tensors]
            tasks += [task._replace(tensors=tuple(places[k] for k in task.tensors)) for task in group]
        if not set(range(len(results))) <= {k for task in tasks for k in task.tensors}:
            return None
        run, kept = ready(tasks, results[0]._device), known[count:]
        at = addresses_of(kept)  # `kept` lives as long as the plan
        return lambda addresses, stream, kept=kept: run([*addresses, *at], stream)

    def run_otherwise(self, plan: Plan, args: tuple[Any, ...]) -> Any:
        return self.kernel(*args)


def unplanned(addresses: list[int], stream: int) -> None:
    """In the place of a plan's launches, where there are none to remember."""
    raise AssertionError("this call is decided anew each time")


class InParts:
    """The kernels of a structured operator that other operators make up: `function` gets its arguments."""

    def __init__(self, op: Structured, function: Callable[..., Tensor]) -> None:
        self.op, self.function = op, function

    def functional(self, *args: Any) -> Tensor:
        self.op.meta_function(*args)
        return self.function(*args)

    def inplace(self, *args: Any) -> Tensor:
        check_writable(args[0], self.op.meta_function(*args))
        return self.written(args[0], args)

    def out(self, *args: Any) -> Tensor:
        *inputs, out = args
        resize_out(out, self.op.meta_function(*inputs))
        return self.written(out, inputs)

    def written(self, out: Tensor, args: Sequence[Any]) -> Tensor:
        check_no_internal_overlap(out)
        copy_on_device(out, self.function(*args))
        return out

    def forget(self) -> None:
        """Nothing is remembered."""

    def forms(self) -> list[tuple[Any, Callable[..., Any]]]:
        """Each overload with its kernel."""
        found = (self.op.functional, self.functional), (self.op.inplace, self.inplace), (self.op.out, self.out)
        return [(form, kernel) for form, kernel in found if form is not None]
