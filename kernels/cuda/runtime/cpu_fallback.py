"""Operators that the CPU computes for a device: the arguments are fetched, the CPU's kernel runs, the results are sent.

They are algorithms of many steps that depend on one another's numbers (iterations until an eigenvalue has converged, a
rank that is found on the way), on which a GPU is seldom faster than the host for matrices of a common size; PyTorch,
too, has the host do `eig`. All forms of an operator are meant: what is written to is sent back as well, and a result
has the strides that it has on the CPU. The program waits for the device, so that such a call cannot be recorded.
Nobody computes on the null device, where results are memory that looks as they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from redispatch.dispatch import OpOverload, keyset, run
from redispatch.dispatch import pytree as pytree
from redispatch.dispatch.tensor import CPU, META, Tensor, empty
from redispatch.kernels import is_dense
from redispatch.kernels.cuda import current_stream
from redispatch.kernels.declare.declare import DECLARED
from redispatch.kernels.declare.structured import common_device, resize

from .copies import fetch, send
from .operands import allocator

ON_CPU, ON_META = keyset("CPU"), keyset("Meta")


def through_host() -> Iterator[tuple[OpOverload, Callable[..., Any]]]:
    """Each overload of the operators whose declarations say why the host computes them, and what is to run."""
    for op, declared in DECLARED.items():
        if declared.by_host and "CPU" in {key.name for key in op.registrations}:
            yield op, by_host(op)


def by_host(op: OpOverload) -> Callable[..., Any]:
    """The kernel of an overload that the CPU carries out."""

    def kernel(*args: Any) -> Any:
        here = common_device(*[x for x in args if isinstance(x, Tensor)])
        driver = allocator().driver
        if driver.captured(current_stream(here.index or 0)):
            raise RuntimeError(
                f"{op.name()} is computed by the CPU, which a graph cannot record: call it before, and record what "
                "comes behind"
            )
        copies: dict[int, Tensor] = {}  # by the tensors' ids: what is passed twice is one tensor there, too
        given = pytree.tree_map_only(Tensor, lambda x: fetched(x, copies, driver.computes), args)
        found = run(op, ON_CPU if driver.computes else ON_META, [*given])
        for i in op.schema.mutable_positions:
            put_back(args[i], given[i], driver.computes)
        written = {id(given[i]): args[i] for i in op.schema.mutable_positions}
        return pytree.tree_map_only(
            Tensor, lambda x: written[id(x)] if id(x) in written else sent_as_it_lies(x, here, driver.computes), found
        )

    return kernel


def fetched(x: Tensor, copies: dict[int, Tensor], computes: bool) -> Tensor:
    """The tensor on the CPU, lying as it does; without numbers, where there are none."""
    found = copies.get(id(x))
    if found is None:
        strides = tuple(x._stride) if is_dense(x._shape, x._stride) else None
        found = copies[id(x)] = empty(x._shape, x._dtype, CPU if computes else META, strides)
        if computes and x._shape.numel():
            fetch(found, x)
    return found


def sent_as_it_lies(x: Tensor, here: Any, computes: bool) -> Tensor:
    """The CPU's tensor on a device, with its strides."""
    made = empty(x._shape, x._dtype, here, tuple(x._stride))
    if computes and x._shape.numel():
        send(made, x)
    return made


def put_back(target: Tensor, result: Tensor, computes: bool) -> None:
    """What the CPU has written, where it is to be written; an `out=` that it has resized is resized."""
    if target._shape != result._shape:
        resize(target, result._shape, tuple(result._stride))
    if computes and result._shape.numel():
        send(target, result)
