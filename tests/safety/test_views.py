"""No view reaches beyond its storage, whatever numbers it is made of; an error says so, and nothing else happens."""

import random

import pytest

import redispatch as rd

from .counts import cases

NUMBERS = [0, 0, 1, 1, 2, 3, 4, 5, 7, 11, 12, 13, -1, -2, 2**31 - 1, 2**31, 2**31 + 1, 2**62, 2**63 - 1, -(2**63)]
ELEMENTS = 12


def reaches(sizes, strides, offset):
    """The elements that a view shows, by brute force where they are few; None where some lie outside."""
    if any(size < 0 for size in sizes) or any(step < 0 for step in strides) or offset < 0:
        return None
    if max([offset, *sizes, *strides]) >= 2**63:
        return None
    if 0 in sizes:
        return []
    places = [offset]
    for size, step in zip(sizes, strides, strict=True):
        if size > 1 and places[-1] + (size - 1) * step >= ELEMENTS:
            return None
        if len(places) * size > 10_000:
            return "many"
        places = [place + i * step for place in places for i in range(size)]
        places.sort()
    return places if places[-1] < ELEMENTS else None


def outcome(call, *args):
    try:
        return call(*args)
    except (RuntimeError, IndexError):
        return None


@cases(50_000)
def test_as_strided_shows_what_is_inside_and_refuses_the_rest(count, seed):
    dice = random.Random(seed)
    x = rd.arange(ELEMENTS)
    for _ in range(count):
        dims = dice.randrange(4)
        sizes, strides = ([dice.choice(NUMBERS) for _ in range(dims)] for _ in range(2))
        offset = dice.choice(NUMBERS)
        expected = reaches(sizes, strides, offset)
        view = outcome(x.as_strided, sizes, strides, offset)
        told = f"as_strided({sizes}, {strides}, {offset}), seed {seed}"
        if expected is None:
            assert view is None, told
        elif expected == "many":
            assert view is None or view.numel() > 10_000, told
        elif view is None:
            assert 0 in sizes, told  # a view of nothing may be refused for where it lies
        else:
            assert sorted(view.reshape(-1).tolist()) == expected, told


@cases(50_000, seed=1)
def test_set_shows_what_is_inside_and_refuses_the_rest(count, seed):
    dice = random.Random(seed)
    storage = rd.arange(ELEMENTS).untyped_storage()
    for _ in range(count):
        dims = dice.randrange(4)
        sizes, strides = ([dice.choice(NUMBERS) for _ in range(dims)] for _ in range(2))
        offset = dice.choice(NUMBERS)
        expected = reaches(sizes, strides, offset)
        x = rd.empty(0, dtype=rd.int64)
        if outcome(x.set_, storage, offset, sizes, strides) is None:
            assert expected is None or expected == "many" or 0 in sizes, (sizes, strides, offset, seed)
            assert x.tolist() == []
        else:
            assert expected == "many" or sorted(x.reshape(-1).tolist()) == expected, (sizes, strides, offset, seed)


@cases(100_000, seed=2)
def test_windows_parts_and_diagonals_stay_inside(count, seed):
    """Each view is asked for its last element's place: it must lie in the storage."""
    dice = random.Random(seed)
    ways = [
        lambda x, a, b, c: x.unfold(a, b, c),
        lambda x, a, b, c: x.narrow(a, b, c),
        lambda x, a, b, c: x.select(a, b),
        lambda x, a, b, c: x.diagonal(a, b, c),
        lambda x, a, b, c: x.expand(a, b, c),
        lambda x, a, b, c: x.view(a, b, c),
        lambda x, a, b, c: x.transpose(a, b),
        lambda x, a, b, c: x[a:b:c],
        lambda x, a, b, c: x[a, b],
        lambda x, a, b, c: x.unsqueeze(a),
        lambda x, a, b, c: x.split(a, b)[-1],
        lambda x, a, b, c: x.movedim(a, b),
        lambda x, a, b, c: x.unflatten(a, (b, c)),
    ]
    x = rd.arange(ELEMENTS).view(3, 4)
    for _ in range(count):
        way, numbers = dice.choice(ways), [dice.choice(NUMBERS) for _ in range(3)]
        try:
            view = way(x, *numbers)
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue
        last = view.storage_offset() + sum(
            (size - 1) * step for size, step in zip(view.shape, view.stride(), strict=True)
        )
        assert 0 in view.shape or 0 <= last < ELEMENTS, (numbers, view.shape, view.stride(), seed)


def test_a_storage_that_has_become_too_small_is_not_read():
    x = rd.arange(4.0)
    view, storage = x[1:3], x.untyped_storage()
    storage.resize_(8)
    for use in (lambda: x + 1, x.sum, x.tolist, x.numpy, x.clone, lambda: x.add_(1), lambda: view * 2, view.tolist):
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            use()
    storage.resize_(16)
    assert x.shape == (4,) and x[:2].tolist() == [0.0, 1.0]
