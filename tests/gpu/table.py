"""The table of operators on a device, against the CPU and against the simulator."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "cuda"))
from missing import NOT_ALIKE  # noqa: E402  # what cannot be compared, with reasons

import redispatch as rd  # noqa: E402
from redispatch.backends.cuda.devices import start, started  # noqa: E402
from redispatch.dispatch import MissingKernelError  # noqa: E402
from redispatch.kernels import cuda  # noqa: E402
from redispatch.kernels.cuda.simulated import SimulatedDriver  # noqa: E402
from redispatch.testing import SampleInput, assert_close  # noqa: E402
from redispatch.testing.op_db import op_db  # noqa: E402
from redispatch.utils import _pytree as pytree  # noqa: E402

FEW = 3  # samples of an operator, where all is to be small


class NoKernel(Exception):
    """The operator has none on the device, or none for this dtype."""


def infos(only: str) -> Iterator[Any]:
    return (info for info in op_db if only in str(info))


def on_device(info: Any, sample: Any) -> Any:
    """The same call with every tensor on the device, and new ones made there."""
    there = sample.map(lambda x: x.detach().cuda()).map(lambda on: rd.device("cuda"), rd.device)
    takes_one = any(argument.name == "device" for argument in info.op._schema.arguments)
    if takes_one and "device" not in sample.kwargs:
        return SampleInput(there.input, there.args, {**there.kwargs, "device": rd.device("cuda")})
    return there


def results(info: Any, small: bool, device: str) -> list[tuple[dict[str, float], list[Any]]]:
    """What an operator gives for its samples, as tensors of the CPU and Python's numbers, and how near is near."""
    found = []
    for dtype in [info.main_dtype] if small else info.dtypes:
        tolerance = info.tolerance.get(dtype.name)
        near = {} if tolerance is None else {"rtol": tolerance[0], "atol": tolerance[1]}
        for sample in itertools.islice(info.sample_inputs(dtype, thorough=not small), FEW if small else None):
            call = on_device(info, sample) if device == "cuda" else sample.copy()
            try:
                given = info.op(*call.arguments, **call.kwargs)
            except MissingKernelError as problem:
                raise NoKernel(str(problem)) from None
            leaves = [x.detach().cpu() if isinstance(x, rd.Tensor) else x for x in pytree.tree_leaves(given)]
            found.append((near, leaves))
    return found


def agree(found: list[Any], wanted: list[Any]) -> None:
    """AssertionError where results differ by more than rounding."""
    for (near, ours), (_, theirs) in zip(found, wanted, strict=True):
        for x, y in zip(ours, theirs, strict=True):
            if isinstance(y, rd.Tensor):
                assert_close(x, y, equal_nan=True, **near)
            else:
                assert x == y or x != x, f"{x} where {y} was expected"


def is_random(info: Any) -> bool:
    """Whether results are drawn, so that two runs give two results."""
    return any(argument.name == "generator" for argument in info.op._schema.arguments)


def compare(only: str, small: bool, wanted: Any) -> dict[str, Any]:
    """{"right": how many, "wrong": {name: what}, "without": names of those without kernels}"""
    right, wrong, without = 0, {}, []
    for info in infos(only):
        if str(info) in NOT_ALIKE:
            continue
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
    simulated: dict[str, list[Any]] = {}
    with other_device(SimulatedDriver()):
        for info in infos(only):
            try:
                simulated[str(info)] = results(info, small, "cuda")
            except Exception:  # of what the simulator cannot do, nothing can be said here
                continue
    start()
    return compare(only, small, lambda info: simulated.get(str(info)) or results(info, small, "cpu"))
