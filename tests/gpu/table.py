"""The table of operators on a device, against the CPU and against the simulator.

A *verdict* of an operator is None where it is right, `WITHOUT` where it has no kernel on the device, and else what is
wrong with it, in words.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "cuda"))
from missing import NOT_ALIKE  # what cannot be compared, with reasons

import redispatch as rd  # after the path is set
from redispatch.dispatch import MissingKernelError, Tag  # after the path is set
from redispatch.kernels import cuda  # after the path is set
from redispatch.kernels.cuda.runtime.devices import start, started  # after the path is set
from redispatch.kernels.cuda.simulated_driver import SimulatedDriver  # after the path is set
from redispatch.testing import SampleInput, assert_close  # after the path is set
from redispatch.testing.op_db import op_db  # after the path is set
from redispatch.utils import _pytree as pytree  # after the path is set

FEW = 3  # samples of an operator, where all is to be small
LARGEST = 3000  # elements of what the simulator is asked for: it takes microseconds for each
WITHOUT = "without"
INFOS = {str(info): info for info in op_db if str(info) not in NOT_ALIKE}

Result = tuple[dict[str, float], list[Any]]  # how near is near, and the tensors and numbers
Verdict = str | None


def on_device(info: Any, sample: Any) -> Any:
    """The same call with every tensor on the device, and new ones made there."""
    there = sample.map(lambda x: x.detach().cuda().requires_grad_(x.requires_grad))
    there = there.map(lambda on: rd.device("cuda"), rd.device)
    names = [argument.name for argument in info.op._schema.arguments]
    if "device" in names[len(sample.arguments) :] and "device" not in sample.kwargs:
        return SampleInput(there.input, there.args, {**there.kwargs, "device": rd.device("cuda")})
    return there


def results(info: Any, device: str, small: bool, simulable: bool) -> list[Result]:
    """The results of an operator's samples, as tensors of the CPU and Python's numbers.

    small: few samples, of the main dtype. simulable: the usual samples of it, and no large ones. Neither: all there is.
    """
    found = []
    for dtype in [info.main_dtype] if small or simulable else info.dtypes:
        tolerance = info.tolerance.get(dtype.name)
        near = {} if tolerance is None else {"rtol": tolerance[0], "atol": tolerance[1]}
        samples = info.sample_inputs(dtype, thorough=not (small or simulable))
        for sample in itertools.islice(samples, FEW if small else None):
            if simulable and any(x.numel() > LARGEST for x in sample.tensors()):
                continue
            call = on_device(info, sample) if device == "cuda" else sample.copy()
            given = info.op(*call.arguments, **call.kwargs)
            found.append(
                (near, [x.detach().cpu() if isinstance(x, rd.Tensor) else x for x in pytree.tree_leaves(given)])
            )
    return found


def agree(found: list[Result], wanted: list[Result], random: bool) -> None:
    """AssertionError where results differ by more than rounding; of drawn ones, where shapes or dtypes differ."""
    for (near, ours), (_, theirs) in zip(found, wanted, strict=True):
        for x, y in zip(ours, theirs, strict=True):
            if isinstance(y, rd.Tensor) and random:
                assert (x.shape, x.dtype) == (y.shape, y.dtype), f"{x.dtype} of shape {list(x.shape)}"
            elif isinstance(y, rd.Tensor):
                assert_close(x, y, equal_nan=True, **near)
            elif not random:
                assert x == y or x != x, f"{x} where {y} was expected"


def is_random(info: Any) -> bool:
    """Whether results are drawn, so that two runs give two results."""
    return Tag.nondeterministic_seeded in info.op.tags


def verdict(found: Callable[[], list[Result]], wanted: Callable[[], list[Result]] | None, random: bool) -> Verdict:
    try:
        ours = found()
        if wanted is not None:
            agree(ours, wanted(), random)
    except MissingKernelError:
        return WITHOUT
    except Exception as problem:  # any failure is a result
        first = str(problem).strip().splitlines()[:1]
        return f"{type(problem).__name__}: {first[0][:300] if first else ''}"
    return None


def device_is_lost() -> bool:
    """Whether this process can do no more on the device, as after an access out of bounds on a card."""
    try:
        rd.cuda.synchronize()
    except Exception:  # whatever it is: a device that is waited for in vain
        return True
    return False


def with_cpu(small: bool, names: list[str]) -> dict[str, Verdict]:
    """Each operator's verdict; of those behind one that lost the device, none."""
    found: dict[str, Verdict] = {}
    for name in names:
        here, there = (partial(results, INFOS[name], device, small, False) for device in ("cpu", "cuda"))
        found[name] = verdict(there, here, is_random(INFOS[name]))
        if found[name] not in (None, WITHOUT) and device_is_lost():
            break
    return found


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


def with_simulator(small: bool, names: list[str]) -> dict[str, Verdict]:
    """The same, against the same kernels' PTX as the simulator runs it."""
    simulated: dict[str, list[Result]] = {}
    with other_device(SimulatedDriver()):
        for name in names:
            try:
                simulated[name] = results(INFOS[name], "cuda", small, True)
            except Exception:  # of what the simulator cannot do, nothing can be said here
                continue
    start()
    found: dict[str, Verdict] = {}
    for name in names:
        there = partial(results, INFOS[name], "cuda", small, True)
        if name in simulated:
            found[name] = verdict(there, partial(simulated.__getitem__, name), is_random(INFOS[name]))
        else:
            found[name] = verdict(there, None, is_random(INFOS[name]))  # at least it runs, or has no kernel
        if found[name] not in (None, WITHOUT) and device_is_lost():
            break
    return found
