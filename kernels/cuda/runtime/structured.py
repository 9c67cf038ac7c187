"""The table of kernels at the key CUDA, and how files of operators fill it; `devices.py` registers it at the start.

    @kernel_of("masked_fill.Tensor")     a function that launches
    @composite_of("flip")                one in other operators, for all forms of the operator
    @work_of(linalg.mm_op)               one that says what is to be launched

An operator's `work` gets results and arguments, as its CPU `loop` does, reads only their metadata, and returns the
launches; its meta function says the metadata of results. They are launched anew at each call here; launch_plan.py
records them once per metadata.

Read next: ../ops/matmul.py, kernels/cuda/ops/softmax.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from redispatch.dispatch import DispatchKey, OpOverload, ops
from redispatch.dispatch.tensor import Tensor, empty, wrap_dim
from redispatch.kernels import is_contiguous, on_target
from redispatch.kernels.cuda import Launch, current_stream
from redispatch.kernels.declare import structured
from redispatch.kernels.declare.planned import PlannedSeveral
from redispatch.kernels.declare.structured import Several, Structured, check_no_internal_overlap, unmarked

from .async_errors import late_errors
from .copies import apart, copied, copy_on_device
from .operands import address_of, allocator, not_here

# --- the table --------------------------------------------------------------------------------------------------------


Forms = Iterable[tuple[OpOverload, Callable[..., Any]]]


class Definition(NamedTuple):
    """Overloads with their kernels; whether these are recorded (launch_plan.py)."""

    title: str
    forms: Callable[[], Forms]
    recorded: bool = True


DEFINED: list[Definition] = []


def kernel_of(*names: str, recorded: bool = True) -> Callable[..., Any]:
    """Registers a function as the kernel of overloads of the namespace aten."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        DEFINED.extend(Definition(name, lambda name=name: [(operator(name), function)], recorded) for name in names)  # type: ignore[misc]  # mypy gives up on a default argument
        return function

    return register


def as_on_cpu(title: str, *overloads: OpOverload | None) -> None:
    """Registers the CPU's kernels of overloads, which ask a table for what does the work on a device."""
    DEFINED.append(Definition(title, lambda: [(op, unmarked(on_cpu(op))) for op in overloads if op is not None]))


def operator(name: str) -> OpOverload:
    """The overload of the namespace aten with this name."""
    base, _, overload = name.partition(".")
    return getattr(getattr(ops.aten, base), overload or "default")


def on_cpu(op: OpOverload) -> Callable[..., Any]:
    """The kernel of an operator at the key CPU, which may know of other devices."""
    function: Callable[..., Any] = op.registrations[DispatchKey.CPU][-1].function
    return function


def apart_from_target(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as called by itself, where another operator's kernel calls it that runs on a device
    (cpu_kernels.py): the operators that it calls choose where they run."""

    def kernel(*args: Any) -> Any:
        with on_target(None):
            return function(*args)

    return kernel


# --- launches ---------------------------------------------------------------------------------------------------------


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


def launched(tasks: Sequence[Task], tensors: Sequence[Tensor | None]) -> None:
    """Launches these, in the current stream of the first tensor's device."""
    source, on = allocator(), next(x._device for x in tensors if x is not None)
    stream = current_stream(on.index or 0)
    known = {k: 0 if x is None else address_of(x) for k, x in enumerate(tensors)}
    if any(ERRORS in task.tensors for task in tasks):
        known[ERRORS] = late_errors(source.driver).address(on.index or 0)
    size = max((task.scratch for task in tasks), default=0)
    block = source.allocate(size, on) if size else None  # held until all is launched
    known[SCRATCH] = 0 if block is None else block.address
    for task in tasks:
        told = [known[SCRATCH] + k.offset if isinstance(k, Within) else known[k] for k in task.tensors]
        task.launch.on(source.driver)((*told, *map(address_of, task.tables), *task.rest), stream)


def dense(x: Tensor) -> Tensor:
    """The tensor, or a copy that lies row by row."""
    return x if is_contiguous(x._shape, x._stride) else copied(x)


def dense_like(x: Tensor) -> Tensor:
    """The tensor, or another one of its metadata that lies row by row."""
    return x if x.is_contiguous() else empty(x._shape, x._dtype, x._device)


def filled_anyhow(results: Sequence[Tensor], x: Tensor, work: Callable[..., Sequence[Task]]) -> None:
    """Fills results that may lie anyhow: `work(x, *results)` is what launches fill those that lie row by row."""
    found, x = [dense_like(one) for one in results], dense(x)
    launched(work(x, *found), [*found, x])
    for target, one in zip(results, found, strict=True):
        if one is not target:
            copy_on_device(target, one)


def around(shape: Sequence[int], dim: int) -> tuple[int, int, int]:
    """The numbers of elements before, along and behind a dimension."""
    if not shape:
        return 1, 1, 1
    d = wrap_dim(dim, len(shape))
    return math.prod(shape[:d]), shape[d], math.prod(shape[d + 1 :])


class OnDevice(structured.Forms):
    """The forms of one operator at the key CUDA."""

    def __init__(self, op: Any) -> None:
        self.op, self.names = op, op.names
        self.dtype_of_target = getattr(op, "dtype_of_target", False)

    def meta_function(self, *args: Any) -> Any:
        return self.op.meta_function(*args)

    def unaliased(self, value: Any, target: Tensor) -> Any:
        return apart(value, target, self.elementwise)

    def forms(self) -> Forms:
        """Each overload with its kernel."""
        found = [(self.op.functional, self.run_functional)]
        if isinstance(self.op, Structured):
            found += [(self.op.inplace, self.run_inplace), (self.op.out, self.run_out)]
        return [(form, kernel) for form, kernel in found if form is not None]


class ByWork(OnDevice):
    """The kernels of an operator with one result or several, by the launches of its `work`.

    dense: the arguments that `work` wants row by row; others are copied for it. elementwise: whether an argument may be
    the result's own memory.
    """

    def __init__(self, op: Any, work: Work, dense: Sequence[str] = (), elementwise: bool = False) -> None:
        super().__init__(op)
        self.work, self.elementwise = work, elementwise
        self.tensors = op.text.tensor_positions
        self.dense = tuple(i for i, name in enumerate(op.names) if name in dense)
        self.several = isinstance(op, PlannedSeveral)

    def run_functional(self, *args: Any) -> Any:
        results = self.results(args)
        self.launch(results, args)
        return results if self.several else results[0]

    def results(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """New results. RuntimeError where an argument is on the CPU."""
        for x in (args[i] for i in self.tensors):
            if x is not None and x._device.type == "cpu":
                raise not_here(x)
        return tuple(None if meta is None else meta.allocate() for meta in self.op.metas_function(*args))

    def launch(self, results: tuple[Any, ...], args: tuple[Any, ...]) -> None:
        """Fills results that lie row by row."""
        copies = self.to_copy(args)
        given = tuple(copied(x) if i in copies else x for i, x in enumerate(args))
        tasks = self.work(results if self.several else results[0], *given)
        launched(tasks, [*results, *[given[i] for i in self.tensors]])

    def to_copy(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """The arguments that must lie row by row, and do not."""
        given = [(i, args[i]) for i in self.dense if args[i] is not None]
        return tuple(i for i, x in given if not is_contiguous(x._shape, x._stride))

    def body_function(self, out: Tensor, *args: Any) -> None:
        """Fills any tensor: directly where it is of the result's dtype and lies row by row, or by a copy."""
        if self.op.meta_function(*args).dtype is out._dtype and is_contiguous(out._shape, out._stride):
            self.launch((out,), args)
        else:
            copy_on_device(out, self.run_functional(*args))


class InParts(OnDevice):
    """The kernels of a structured operator whose results `function` makes, of other operators or in parts."""

    def __init__(self, op: Structured, function: Callable[..., Any]) -> None:
        super().__init__(op)
        self.function = function

    def run_functional(self, *args: Any) -> Any:
        self.op.metas_function(*args)
        return self.function(*args)

    def run_out(self, *args: Any) -> Any:
        if not isinstance(self.op, Several):
            return super().run_out(*args)
        inputs, outs = self.op._resized(args)
        for out, result in zip(outs, self.function(*inputs), strict=True):
            check_no_internal_overlap(out)
            copy_on_device(out, result)
        return outs

    def fill(self, target: Tensor, args: Sequence[Any]) -> None:
        check_no_internal_overlap(target)
        copy_on_device(target, self.function(*args))

    def forms(self) -> Forms:
        return [(form, unmarked(kernel)) for form, kernel in super().forms()]


# --- what the files of operators register -----------------------------------------------------------------------------


def work_of(*given: Any, dense: Sequence[str] = (), elementwise: bool = False) -> Callable[[Work], Work]:
    """Registers a function as the work of operators: `ByWork`."""

    def register(work: Work) -> Work:
        for op in given:
            define(ByWork(op, work, dense, elementwise))
        return work

    return register


def define(kernels: OnDevice) -> None:
    """Registers an operator's kernels."""
    DEFINED.append(Definition(f"planned {kernels.op.base_name}", kernels.forms))


def composite_of(*names: str) -> Callable[..., Any]:
    """Registers a function in other operators: as the kernels of a structured operator's forms, or of an overload."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        DEFINED.extend(Definition(f"from parts: {name}", lambda name=name: forms_of(name, function)) for name in names)  # type: ignore[misc]  # mypy gives up on a default argument
        return function

    return register


def forms_of(name: str, function: Callable[..., Any]) -> Forms:
    op, kernel = operator(name), apart_from_target(function)
    declared = getattr(on_cpu(op), "__self__", None)
    if isinstance(declared, Structured) and declared.functional is op:
        return InParts(declared, kernel).forms()
    return [(op, kernel)]
