"""Memory that operands share never makes a result silently wrong: it is right, or there is an error."""

import random

import numpy as np
from numpy.lib.stride_tricks import as_strided

import redispatch as rd

from .counts import cases

ELEMENTS = 16


def some_view(dice, dims):
    """Sizes, strides and an offset that stay inside 16 elements."""
    while True:
        sizes, strides = [dice.randint(1, 4) for _ in range(dims)], [dice.randint(0, 5) for _ in range(dims)]
        reach = sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
        if reach < ELEMENTS:
            return sizes, strides, dice.randint(0, ELEMENTS - 1 - reach)


def shown(memory, view):
    sizes, strides, offset = view
    return as_strided(memory[offset:], sizes, [s * memory.itemsize for s in strides])


@cases(20_000)
def test_adding_in_place_to_a_view_is_right_or_refused(count, seed):
    dice = random.Random(seed)
    refused = 0
    for _ in range(count):
        view = some_view(dice, dice.randint(1, 4))
        memory, x = np.arange(float(ELEMENTS)), rd.arange(float(ELEMENTS), dtype=rd.float64)
        places = shown(np.arange(ELEMENTS), view).ravel()
        try:
            x.as_strided(*view).add_(1)
        except RuntimeError as error:
            assert "more than one element of the written-to tensor" in str(error)
            assert len(set(places.tolist())) < len(places), f"{view} has no two elements in one place, seed {seed}"
            refused += 1
            continue
        assert len(set(places.tolist())) == len(places), f"{view} was written to, seed {seed}"
        memory[places] += 1
        assert x.tolist() == memory.tolist(), (view, seed)
    assert refused


@cases(20_000, seed=1)
def test_two_views_of_one_memory_give_what_copies_would(count, seed):
    dice = random.Random(seed)
    ways = [
        (lambda out, x: out.add_(x), lambda out, x: out + x),
        (lambda out, x: out.copy_(x), lambda out, x: x),
        (lambda out, x: rd.mul(x, x, out=out), lambda out, x: x * x),
        (lambda out, x: rd.cumsum(x, 0, out=out), lambda out, x: x.cumsum(0)),
        (lambda out, x: out.copy_(x.flip(0)), lambda out, x: x[::-1]),
    ]
    for _ in range(count):
        sizes, strides, offset = some_view(dice, dice.randint(1, 3))
        other = [dice.randint(0, 5) for _ in sizes]
        reach = sum((n - 1) * s for n, s in zip(sizes, other, strict=True))
        if reach >= ELEMENTS:
            continue
        second = sizes, other, dice.randint(0, ELEMENTS - 1 - reach)
        ours, numpys = dice.choice(ways)
        memory, x = np.arange(float(ELEMENTS)), rd.arange(float(ELEMENTS), dtype=rd.float64)
        out, given = shown(memory, (sizes, strides, offset)), shown(memory, second)
        expected = np.array(numpys(out, given))
        try:
            ours(x.as_strided(sizes, strides, offset), x.as_strided(*second))
        except RuntimeError as error:
            assert "refers to a single memory location" in str(error) or "refer to a single memory" in str(error)
            assert x.tolist() == memory.tolist(), "an error has changed something"
            continue
        memory[shown(np.arange(ELEMENTS), (sizes, strides, offset))] = expected
        assert x.tolist() == memory.tolist(), (sizes, strides, offset, second, seed)
