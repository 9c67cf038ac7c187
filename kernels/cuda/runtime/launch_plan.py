"""What structured operators come down to on a device: launches, remembered by how the arguments look.

An operator's `work` gets results and arguments, as its CPU `loop` does, reads only how they look, and returns the
launches that do it for all that look so. Shapes, dtypes and errors are said by the operator's meta function.

Read next: matmul.py, softmax.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from redispatch.dispatch import Memo
from redispatch.dispatch.specialiser.marks import frozen, inline, leaf
from redispatch.dispatch.tensor import Mould, Size, Tensor, device, fresh, looks_of, mould
from redispatch.kernels import is_contiguous
from redispatch.kernels.cuda import Launch, current_stream
from redispatch.kernels.declare.plan import PLANS, is_list
from redispatch.kernels.declare.planned import Planned, PlannedSeveral
from redispatch.kernels.declare.structured import (
    Structured,
    check_no_internal_overlap,
    check_writable,
    is_among,
    resize_out,
)

from .async_errors import late_errors
from .copies import apart, copied, copy_on_device
from .launch_codegen import Life, Run, Writer
from .launch_recorder import Told
from .operands import address_of, allocator, located, not_here

SCRATCH, ERRORS = -2, -1  # stand behind the tensors


class Within(NamedTuple):
    """A place in SCRATCH, so many bytes behind its beginning."""

    offset: int


class Task(NamedTuple):
    """A launch: of which tensors it is told the addresses, counted over results and then arguments; and what else.

    Number ERRORS is the words in which kernels tell of bad indices (async_errors.py), and SCRATCH memory for as long as
    the launches run, which all of them share: of `scratch` bytes. Of `tables`, which never change, it is told the
    addresses behind these, and before `rest`.
    """

    launch: Launch | Any  # or what stands in its place: `on(driver)` gives what starts it
    tensors: tuple[int | Within, ...]
    rest: tuple[int, ...]
    scratch: int = 0
    tables: tuple[Tensor, ...] = ()


Work = Callable[..., Sequence[Task]]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A decided call: what results are made from, and what fills them, by their addresses and those of arguments.

    copied: the numbers of the arguments that are copied before, so that they lie row by row.
    plain: whether none are, and all results are made.
    """

    moulds: tuple[Mould | None, ...]
    run: Run
    copied: tuple[int, ...]
    plain: bool


def ready(tasks: Sequence[Task], on: device, count: int) -> Run:
    """What launches these on a device, told so many addresses."""
    source = allocator()
    writer = Writer(source, on, {k: k for k in range(count)}, [task.tables for task in tasks])
    writer.scratch(*pieces(tasks, count))
    for task in tasks:
        rest = (*addresses_of(task.tables), *task.rest)
        writer.launch(task.launch.on(source.driver), [told(k, on, count) for k in task.tensors] + numbers(rest))
    return writer.function()


def pieces(tasks: Sequence[Task], count: int) -> tuple[list[int], list[int], list[Life]]:
    """The memory that all these share, as the writer takes it."""
    size = max((task.scratch for task in tasks), default=0)
    return ([count], [size], [Life(0, None)]) if size else ([], [], [])


def told(k: int | Within, on: device, count: int) -> Told:
    """What a launch is told for one of a task's tensors."""
    if isinstance(k, Within):
        return Told(count, k.offset)
    if k == ERRORS:
        return Told(None, late_errors(allocator().driver).address(on.index or 0))
    return Told(count if k == SCRATCH else k, 0)


def numbers(rest: Sequence[int]) -> list[Told]:
    return [Told(None, number) for number in rest]


def start(tasks: Sequence[Task], addresses: Sequence[int], on: device, stream: int) -> None:
    """Launches these at once."""
    source = allocator()
    block = source.allocate(max((task.scratch for task in tasks), default=0), on)
    errors = late_errors(source.driver).address(on.index or 0) if any(ERRORS in task.tensors for task in tasks) else 0
    known = {SCRATCH: block.address, ERRORS: errors, **dict(enumerate(addresses))}
    for task in tasks:
        told = [block.address + k.offset if isinstance(k, Within) else known[k] for k in task.tensors]
        task.launch.on(source.driver)((*told, *addresses_of(task.tables), *task.rest), stream)


def addresses_of(tensors: Sequence[Tensor | None]) -> list[int]:
    return [0 if x is None else address_of(x) for x in tensors]


def launched(tasks: Sequence[Task], tensors: Sequence[Tensor | None]) -> None:
    """Launches these at once, in the current stream of the first tensor's device."""
    on = next(x._device for x in tensors if x is not None)
    start(tasks, addresses_of(tensors), on, current_stream(on.index or 0))


def dense(x: Tensor) -> Tensor:
    """The tensor, or a copy that lies row by row."""
    return x if is_contiguous(x._shape, x._stride) else copied(x)


def with_copies(args: tuple[Any, ...], which: Sequence[int]) -> tuple[Any, ...]:
    """The arguments, with dense copies of those with these numbers."""
    return tuple(copied(x) if i in which else x for i, x in enumerate(args))


@frozen
class OnCUDA:
    """The kernels of one structured operator, with one result or several.

    dense: the arguments that `work` wants row by row; others are copied for it. elementwise: whether an argument may be
    the result's own memory.
    """

    def __init__(self, op: Any, work: Work, dense: Sequence[str] = (), elementwise: bool = False) -> None:
        self.op, self.work, self.elementwise = op, work, elementwise
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
        plan.run(addresses, store.block.shelf.stream)
        return results if self.several else results[0]

    def run_otherwise(self, plan: Plan, args: tuple[Any, ...]) -> Any:
        """The call where arguments are copied before, or a result is not asked for."""
        results = [None if made is None else fresh(made) for made in plan.moulds]
        tensors = [*results, *[with_copies(args, plan.copied)[i] for i in self.tensors]]
        on = next(x._device for x in tensors if x is not None)
        plan.run(addresses_of(tensors), current_stream(on.index or 0))
        return tuple(results) if self.several else results[0]

    def to_copy(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """The arguments that must lie row by row, and do not."""
        given = [(i, args[i]) for i in self.dense if args[i] is not None]
        return tuple(i for i, x in given if not is_contiguous(x._shape, x._stride))

    def new_plan(self, facts: tuple[Any, ...], args: tuple[Any, ...]) -> Plan:
        """The plan for arguments that look so for the first time. RuntimeError where one of them is on the CPU."""
        for x in (args[i] for i in self.tensors):
            if x is not None and x._device.type == "cpu":
                raise not_here(x)
        metas = self.op.metas_function(*args) if self.several else (self.op.meta_function(*args),)
        moulds = tuple(None if m is None else mould(Size(m.shape), m.dtype, m.device, m.strides) for m in metas)
        results = tuple(None if made is None else fresh(made) for made in moulds)
        on = next(args[i]._device for i in self.tensors if args[i] is not None)
        copies = self.to_copy(args)
        tasks = self.work(results if self.several else results[0], *with_copies(args, copies))
        count = len(moulds) + len(self.tensors)
        plan = self.plans[facts] = Plan(moulds, ready(tasks, on, count), copies, not copies and None not in moulds)
        return plan

    @leaf
    def inplace(self, *args: Any) -> Tensor:
        args = self.with_dtype(args, args[0])
        check_writable(args[0], self.op.meta_function(*args))
        self.fill(args[0], args)
        return args[0]

    @leaf
    def out(self, *args: Any) -> Tensor:
        *inputs, out = self.with_dtype(args, args[-1])
        meta = self.op.meta_function(*inputs)
        if is_among(out, inputs):
            check_writable(out, meta)
        resize_out(out, meta)
        self.fill(out, tuple(inputs))
        return out

    def with_dtype(self, args: tuple[Any, ...], target: Tensor) -> tuple[Any, ...]:
        """`Planned.with_dtype`, of operators that have it."""
        return self.op.with_dtype(args, target) if isinstance(self.op, Planned) else args

    def fill(self, out: Tensor, args: tuple[Any, ...]) -> None:
        """Fills any tensor: directly where it is of the result's dtype and lies row by row, or by a copy."""
        check_no_internal_overlap(out)
        args = tuple(apart(value, out, self.elementwise) for value in args)
        meta = self.op.meta_function(*args)
        if meta.dtype is not out._dtype or not is_contiguous(out._shape, out._stride):
            copy_on_device(out, self.functional(*args))
            return
        args = with_copies(args, self.to_copy(args))
        launched(self.work(out, *args), [out, *[args[i] for i in self.tensors]])

    def forget(self) -> None:
        """Plans are of the driver that there was."""
        self.plans.clear()

    def forms(self) -> list[tuple[Any, Callable[..., Any]]]:
        """Each overload with its kernel."""
        found = [(self.op.functional, self.functional)]
        if isinstance(self.op, Structured):
            found += [(self.op.inplace, self.inplace), (self.op.out, self.out)]
        return [(form, kernel) for form, kernel in found if form is not None]


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
