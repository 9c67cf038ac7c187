"""Operators whose CPU kernels run on a device as they are: what they decide is decided there, too (device_target.py).

They leave all work on elements to functions of the room `kernels`, and read no number that is on the device. So does
each kernel of the CPU for which the device has no other one, but those that are for the CPU by their name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from redispatch.dispatch import OpOverload
from redispatch.kernels.declare.declare import DECLARED
from redispatch.kernels.declare.planned import Planned, PlannedSeveral
from redispatch.kernels.declare.structured import Structured


def served() -> Iterator[tuple[OpOverload, Callable[..., Any]]]:
    """Each of these operators that has a kernel of the CPU's and none of a device's, and what is to run there."""
    for op in DECLARED:
        keys = {key.name: found for key, found in op.registrations.items()}
        if "CPU" in keys and "CUDA" not in keys and "_for_cpu" not in op._opname:
            yield op, without_plan(keys["CPU"][-1].function)


def without_plan(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel that decides anew each time, of one that remembers what it did with the CPU's memory."""
    op = getattr(kernel, "__self__", None)
    if isinstance(op, Planned) and kernel.__name__ == "run_functional":
        return lambda *args: Structured.run_functional(op, *args)
    if isinstance(op, PlannedSeveral):
        return lambda *args: several(op, *args)
    return kernel


def several(op: PlannedSeveral, *args: Any) -> tuple[Any, ...]:
    """The results of an operator that has several, decided anew."""
    results = tuple(None if meta is None else meta.allocate() for meta in op.metas_function(*args))
    run = op.loop_function(results, *args)
    written = [part for x in results if x is not None for part in (x._operand.array, x._offset)]
    run(*written, *op.operands(args))
    return results
