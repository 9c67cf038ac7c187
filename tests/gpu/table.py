"""The table of operators on a device, against the CPU and against the simulator."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redispatch as rd
from redispatch.backends.cuda.devices import start, started
from redispatch.dispatch import MissingKernelError
from redispatch.kernels import cuda
from redispatch.kernels.cuda.simulated import SimulatedDriver
from redispatch.testing import assert_close
from redispatch.testing.op_db import op_db
from redispatch.utils import _pytree as pytree

FEW = 3  # samples of an operator, where all is to be small


class NoKernel(Exception):
    """The operator has none on the device, or none for this dtype."""


def infos(only: str) -> Iterator[Any]:
    return (info for info in op_db if only in str(info))


def results(info: Any, small: bool, device: str) -> list[list[Any]]:
    """What an operator gives for its samples, as tensors of the CPU and Python's numbers."""
    found = []
    for dtype in [info.main_dtype] if small else info.dtypes:
        for sample in itertools.islice(info.sample_inputs(dtype), FEW if small else None):
            if device == "cuda":
                sample = sample.map(lambda x: x.cuda()).map(lambda on: rd.device("cuda"), rd.device)
            else:
                sample = sample.copy()
            try:
                given = info.op(*sample.arguments, **sample.kwargs)
            except MissingKernelError as problem:
                raise NoKernel(str(problem)) from None
            found.append([x.cpu() if isinstance(x, rd.Tensor) else x for x in pytree.tree_leaves(given)])
    return found


def agree(found: list[list[Any]], wanted: list[list[Any]]) -> None:
    """AssertionError where results differ by more than rounding."""
    for ours, theirs in zip(found, wanted, strict=True):
        for x, y in zip(ours, theirs, strict=True):
            if isinstance(y, rd.Tensor):
                assert_close(x, y, equal_nan=True)
            else:
                assert x == y or x != x, f"{x} where {y} was expected"


def is_random(info: Any) -> bool:
    """Whether results are drawn, so that two runs give two results."""
    return any(argument.name == "generator" for argument in info.op._schema.arguments)


def compare(only: str, small: bool, wanted: Any) -> dict[str, Any]:
    """{"right": how many, "wrong": {name: what}, "without": names of those without kernels}"""
    right, wrong, without = 0, {}, []
    for info in infos(only):
        try:
            found = results(info, small, "cuda")
            if not is_random(info):
                agree(found, wanted(info))
            right += 1
        except NoKernel:
            without.append(str(info))
        except Exception as problem:  # any failure is a result
            first = str(problem).strip().splitlines()[:1]
            wrong[str(info)] = f"{type(problem).__name__}: {first[0][:300] if first else ''}"
    return {"right": right, "wrong": wrong, "without": without}


def compare_with_cpu(only: str, small: bool) -> dict[str, Any]:
    return compare(only, small, lambda info: results(info, small, "cpu"))


@contextmanager
def other_device(driver: Any) -> Iterator[None]:
    """Another driver's devices in the place of those that there are."""
    before = started()
    if before is not None:
        before.remove()
    former = cuda.use(driver)
    made = start()
    try:
        yield
    finally:
        made.remove()
        cuda.restore(former)


def compare_with_simulator(only: str, small: bool) -> dict[str, Any]:
    """The same kernels' PTX, run by the simulator first."""
    simulated: dict[str, list[list[Any]]] = {}
    with other_device(SimulatedDriver()):
        for info in infos(only):
            try:
                simulated[str(info)] = results(info, small, "cuda")
            except Exception:  # of what the simulator cannot do, nothing can be said here
                continue
    start()
    return compare(only, small, lambda info: simulated.get(str(info)) or results(info, small, "cpu"))
