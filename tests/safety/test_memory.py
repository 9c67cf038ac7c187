"""No call reads or writes outside its memory, whatever views, overlaps, sizes and numbers it gets."""

import random
import subprocess
import sys
import time

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import redispatch as rd

from .counts import cases

# No view reaches beyond its storage, whatever numbers it is made of ---------------------------------------------------

# An error says so, and nothing else happens.

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


# Memory that operands share never makes a result silently wrong: it is right, or there is an error --------------------

CELLS = 16


def some_view(dice, dims):
    """Sizes, strides and an offset that stay inside 16 elements."""
    while True:
        sizes, strides = [dice.randint(1, 4) for _ in range(dims)], [dice.randint(0, 5) for _ in range(dims)]
        reach = sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
        if reach < CELLS:
            return sizes, strides, dice.randint(0, CELLS - 1 - reach)


def shown(memory, view):
    sizes, strides, offset = view
    return as_strided(memory[offset:], sizes, [s * memory.itemsize for s in strides])


@cases(20_000)
def test_adding_in_place_to_a_view_is_right_or_refused(count, seed):
    dice = random.Random(seed)
    refused = 0
    for _ in range(count):
        view = some_view(dice, dice.randint(1, 4))
        memory, x = np.arange(float(CELLS)), rd.arange(float(CELLS), dtype=rd.float64)
        places = shown(np.arange(CELLS), view).ravel()
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
        if reach >= CELLS:
            continue
        second = sizes, other, dice.randint(0, CELLS - 1 - reach)
        ours, numpys = dice.choice(ways)
        memory, x = np.arange(float(CELLS)), rd.arange(float(CELLS), dtype=rd.float64)
        out, given = shown(memory, (sizes, strides, offset)), shown(memory, second)
        expected = np.array(numpys(out, given))
        try:
            ours(x.as_strided(sizes, strides, offset), x.as_strided(*second))
        except RuntimeError as error:
            assert "refers to a single memory location" in str(error) or "refer to a single memory" in str(error)
            assert x.tolist() == memory.tolist(), "an error has changed something"
            continue
        memory[shown(np.arange(CELLS), (sizes, strides, offset))] = expected
        assert x.tolist() == memory.tolist(), (sizes, strides, offset, second, seed)


# Tensors that are too large: an error at once that names the size, and everything works afterwards --------------------

MAKERS = [
    lambda size: rd.empty(size),
    lambda size: rd.zeros(size, dtype=rd.float64),
    lambda size: rd.ones(size, dtype=rd.uint8),
    lambda size: rd.full(size, 1.5),
    lambda size: rd.rand(size),
    lambda size: rd.zeros(2).repeat(*size),
    lambda size: rd.empty_strided(size, size),
    lambda size: rd.zeros(1).expand(*size).clone(),
    lambda size: rd.zeros(3).resize_(size),
]


@cases(1_000)
def test_what_cannot_be_held_is_refused_within_a_moment(count, seed):
    dice = random.Random(seed)
    for make in MAKERS:
        make([2, 1])  # what must be loaded and compiled is
    slowest = 0.0
    for _ in range(count):
        size = [dice.choice([1, 3, 2**31, 2**40, 2**62, 2**63 - 1]) for _ in range(dice.randint(1, 4))]
        if max(size) < 2**40:
            size[0] = 2**50
        start = time.perf_counter()
        with pytest.raises(RuntimeError, match="overflowed|can't allocate memory|overflow"):
            dice.choice(MAKERS)(size)
        slowest = max(slowest, time.perf_counter() - start)
    assert slowest < 0.25  # a millisecond on an idle machine
    assert (rd.ones(3) + 1).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("size", [(-1,), (2, -3), (0, -1)])
@pytest.mark.parametrize("make", [rd.empty, rd.zeros, rd.ones, rd.rand])
def test_negative_sizes_are_refused(make, size):
    with pytest.raises(RuntimeError, match="negative"):
        make(size)


LIMITED = """
import resource
import redispatch as rd

rd.ones(10) + 1  # what must be loaded is
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (256 << 20), resource.RLIM_INFINITY))
kept = []
try:
    while True:
        kept.append(rd.empty(4 << 20))  # 16 MB each
except RuntimeError as error:
    assert "you tried to allocate 16777216 bytes" in str(error), error
held = len(kept)
kept.clear()
for _ in range(held // 2):
    kept.append(rd.empty(4 << 20))
assert (rd.ones(10) + 1).sum().item() == 20
print("held", held)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a process's memory is Linux's")
def test_after_an_allocation_has_failed_and_memory_is_free_again_all_works():
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "held" in done.stdout, done.stderr


# Zeros with a sign, the smallest and the largest numbers, infinities and NaN ------------------------------------------

# Each operator gives what numpy does.

DTYPES = ["float32", pytest.param("float64", marks=pytest.mark.long)]
ONE = [
    "negative", "abs", "floor", "ceil", "trunc", "sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "tanh",
    "isnan", "isinf", "isfinite", "sin", "cos", "arctan", "arcsinh", "exp2", "reciprocal", "square",
]  # fmt: skip
TWO = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "fmod",
    "arctan2",
    "maximum",
    "minimum",
    "less",
    "equal",
]


def special(dtype):
    info = np.finfo(dtype)
    sizes = [0.0, info.smallest_subnormal, info.tiny, 0.5, 1.0, 1.5, 2.0, 3.0, info.max, np.inf]
    return np.array([*sizes, *(-x for x in sizes), np.nan], dtype)


def same(ours, numpys):
    """Equal, up to rounding of the largest functions; zeros have the same sign."""
    np.testing.assert_allclose(ours, numpys, rtol=4e-6 if numpys.dtype == np.float32 else 4e-15)
    if numpys.dtype.kind == "f":
        zero = numpys == 0
        np.testing.assert_array_equal(np.signbit(ours[zero]), np.signbit(numpys[zero]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE)
def test_of_one_operand(name, dtype):
    x = special(dtype)
    with np.errstate(all="ignore"):
        same(getattr(rd, name)(rd.from_numpy(x.copy())).numpy(), getattr(np, name)(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TWO)
def test_of_two_operands(name, dtype):
    x, y = (np.ascontiguousarray(v) for v in np.broadcast_arrays(special(dtype)[:, None], special(dtype)))
    call = {"equal": rd.eq}.get(name) or getattr(rd, name)
    with np.errstate(all="ignore"):
        ours, numpys = call(rd.from_numpy(x), rd.from_numpy(y)).numpy(), getattr(np, name)(x, y)
    if name in ("maximum", "minimum"):  # of two zeros, either
        np.testing.assert_array_equal(ours, numpys)
    else:
        same(ours, numpys)
