"""Operators in asyncio tasks that interleave inside modes, grad modes and autocast: each does what it does alone."""

import asyncio
import random
from contextlib import nullcontext

import pytest

import redispatch as rd
from redispatch.dispatch import DEFAULT, STATE
from redispatch.overrides import TorchFunctionMode

from ..seeing import Seen


class Called(TorchFunctionMode):
    """Notes the functions that it is asked about."""

    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


REGIONS = {
    "nothing": nullcontext,
    "no_grad": rd.no_grad,
    "enable_grad": rd.enable_grad,
    "inference": rd.inference_mode,
    "autocast": lambda: rd.autocast("cpu", dtype=rd.bfloat16),
    "no autocast": lambda: rd.autocast("cpu", enabled=False),
    "mode": Seen,
    "function mode": Called,
}


def observed(weight):
    """What the state makes of a few calls."""
    product = rd.mm(weight, weight)
    total = product.sum()
    return product.dtype, product.requires_grad, total.requires_grad, product.is_inference()


async def program(rng, weight, found, depth=3):
    """Nested regions; between two steps another task may run. Notes what is observed, and what each mode is told."""
    for _ in range(rng.randint(1, 2)):
        region = REGIONS[rng.choice(list(REGIONS))]()
        try:
            with region:
                await asyncio.sleep(0)
                found.append(observed(weight))
                if depth:
                    await program(rng, weight, found, depth - 1)
                await asyncio.sleep(0)
                found.append(observed(weight))
                if rng.random() < 0.2:
                    raise KeyError
        except KeyError:
            found.append("left by an error")
        if isinstance(region, Seen | Called):
            found.append(tuple(region.names))
        await asyncio.sleep(0)
        found.append(observed(weight))


async def together(seeds, weight):
    """What the programs of several seeds note, as tasks that run at the same time."""
    notes = [[] for _ in seeds]
    await asyncio.gather(
        *(program(random.Random(seed), weight, found) for seed, found in zip(seeds, notes, strict=True))
    )
    return notes


@pytest.mark.parametrize("start", [0, 100, 200])
def test_tasks_that_interleave_do_what_each_does_alone(start):
    weight = rd.ones(2, 2, requires_grad=True)
    seeds = range(start, start + 6)
    alone = [asyncio.run(together([seed], weight))[0] for seed in seeds]
    assert asyncio.run(together(seeds, weight)) == alone
    assert STATE.get() == DEFAULT and sum(map(len, alone)) > 100


def test_a_task_begins_with_what_holds_where_it_is_made_and_leaves_nothing_behind():
    weight = rd.ones(2, 2, requires_grad=True)

    async def inner():
        seen = [observed(weight)]
        with rd.enable_grad(), rd.autocast("cpu", enabled=False):
            await asyncio.sleep(0)
            seen.append(observed(weight))
        return seen

    async def outer():
        with rd.no_grad(), rd.autocast("cpu", dtype=rd.bfloat16), Seen() as mode:
            task = asyncio.create_task(inner())
        seen = [observed(weight), *await task]
        return seen, mode.names.count("mm")

    seen, heard = asyncio.run(outer())
    assert seen == [
        (rd.float32, True, True, False),
        (rd.bfloat16, False, False, False),
        (rd.float32, True, True, False),
    ]
    assert heard == 2
