"""What has kernels at the key CUDA: a table that operators' files fill, and `devices.py` registers when devices start.

    @kernel_of("masked_fill.Scalar")     a function that launches
    @composite_of("flip")                one in other operators, for all forms of the operator
    @work_of(linalg.mm_op)               one that says what is to be launched (structured.py)

Read next: structured.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from redispatch.dispatch import DispatchKey, OpOverload, ops
from redispatch.kernels import on_target
from redispatch.kernels.declare.structured import unmarked

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
    (device_target.py): the operators that it calls choose where they run."""

    def kernel(*args: Any) -> Any:
        with on_target(None):
            return function(*args)

    return kernel
