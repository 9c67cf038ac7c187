"""Random numbers: the published answers of Philox, ranges, moments, and independence of layout."""

import math

import numpy as np
import pytest

from redispatch.kernels import (
    Operand,
    bernoulli,
    blocks,
    exponential,
    get_num_threads,
    normal,
    permutation,
    randint,
    set_num_threads,
    uniform,
)
from redispatch.kernels.cpu.random import block, philox

from .layouts import dense, values

# From the authors' kat_vectors file: counter, key, result.
KNOWN = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize("counter,key,expected", KNOWN)
def test_philox_gives_its_known_answers(counter, key, expected):
    assert [int(word) for word in philox(*map(np.uint64, counter + key))] == expected


def test_numbers_have_the_range_and_moments_asked_for():
    out = dense(np.zeros(100_000, np.float32))
    uniform(out, 1, 0, -2, 4)
    assert -2 <= out.array.min() and out.array.max() < 4 and abs(out.array.mean() - 1) < 0.02
    normal(out, 1, 0, 5, 2)
    assert abs(out.array.mean() - 5) < 0.03 and abs(out.array.std() - 2) < 0.03
    bernoulli(out, 1, 0, 0.3)
    assert set(out.array.tolist()) == {0, 1} and abs(out.array.mean() - 0.3) < 0.01
    whole = dense(np.zeros(100_000, np.int64))
    randint(whole, 1, 0, -3, 4)
    assert set(whole.array.tolist()) == set(range(-3, 4))
    with pytest.raises(ValueError, match="low < high"):
        randint(whole, 1, 0, 4, 4)


def test_a_fill_depends_on_seed_and_position_and_not_on_strides():
    plain, moved = dense(np.zeros((3, 4), np.float32)), dense(np.zeros((3, 4), np.float32))
    uniform(plain, 5, 0)
    turned = Operand(np.zeros(12, np.float32), "float32", (3, 4), (1, 3))
    uniform(turned, 5, 0)
    np.testing.assert_array_equal(values(turned), values(plain))
    uniform(moved, 5, 1)  # a block serves four
    np.testing.assert_array_equal(moved.array[:8], plain.array[4:])
    uniform(moved, 6, 0)
    assert not (moved.array == plain.array).any()
    uniform(moved, -1, 0)  # a negative seed is its 64 bits


def words(seed, offset, count):
    """The words of so many blocks, as Python ints."""
    return [[int(w) for w in block(np.uint64(seed), np.uint64(offset + i))] for i in range(count)]


@pytest.mark.parametrize("elements", [1, 3, 4, 5, 11])
def test_a_block_serves_four_numbers_of_32_bits_and_two_of_64(elements):
    seed, offset = 2**63 + 5, 2**32 - 2  # the counter's carry, too
    flat = [word for four in words(seed, offset, 3) for word in four][:elements]
    single, double = dense(np.zeros(elements, np.float32)), dense(np.zeros(elements, np.float64))
    uniform(single, seed, offset)
    assert single.array.tolist() == [(word >> 8) * 2.0**-24 for word in flat]
    pairs = [pair for four in words(seed, offset, 6) for pair in (four[:2], four[2:])][:elements]
    uniform(double, seed, offset)
    assert double.array.tolist() == [((high << 32 | low) >> 11) * 2.0**-53 for high, low in pairs]
    assert blocks(elements) >= -(-elements // 2)


def test_normal_numbers_are_those_of_box_and_muller():
    single, double = dense(np.zeros(4000, np.float32)), dense(np.zeros(4000, np.float64))
    normal(single, 3, 0)
    normal(double, 3, 0)
    four = np.array(words(3, 0, 1000), np.float64)
    radius, angle = np.sqrt(-2 * np.log((four[:, ::2] // 2 + 0.5) / 2**31)), four[:, 1::2] * (2 * np.pi / 2**32)
    expected = np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).reshape(-1)
    np.testing.assert_allclose(single.array, expected, rtol=2e-6, atol=1e-6)
    four = np.array(words(3, 0, 2000), object)
    u = ((four[:, 0] * 2**32 + four[:, 1]) // 2**11).astype(np.float64)
    radius = np.sqrt(-2 * np.log((u + 0.5) * 2.0**-53))
    angle = (four[:, 2].astype(np.float64) + (four[:, 3] // 2**8).astype(np.float64) * 2.0**-24) * (2 * np.pi / 2**32)
    expected = np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).reshape(-1)
    np.testing.assert_allclose(double.array, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distributions_are_right(dtype):
    """By Kolmogorov and Smirnov: the largest distance from the distribution function, which 1.95 / sqrt(n) passes in a
    thousandth of all cases; the seed is fixed."""
    n = 200_000
    out = dense(np.zeros(n, dtype))
    rank = np.arange(1, n + 1) / n
    normal(out, 11, 0, 1.0, 2.0)
    z = np.sort(out.array.astype(np.float64))
    by_grid = np.array([0.5 * (1 + math.erf((x - 1) / 2 / math.sqrt(2))) for x in z[::100]])
    assert np.abs(by_grid - rank[::100]).max() < 1.95 / np.sqrt(n)
    for fill, by in (
        (lambda: uniform(out, 12, 0), lambda x: x),
        (lambda: exponential(out, 13, 0, 0.5), lambda x: 1 - np.exp(-0.5 * x)),
    ):
        fill()
        x = np.sort(out.array.astype(np.float64))
        assert np.abs(by(x) - rank).max() < 1.95 / np.sqrt(n)
    exponential(out, 14, 0)
    assert out.array.min() > 0


def test_certain_and_impossible_events():
    out = dense(np.zeros(10_000, np.float32))
    bernoulli(out, 1, 0, 1.0)
    assert out.array.all()
    bernoulli(out, 1, 0, 0.0)
    assert not out.array.any()


def test_integers_of_any_range():
    out = dense(np.zeros(20_000, np.int64))
    for low, high in ((0, 2**32), (-5, 2**33), (-(2**63), 2**63), (0, 2**63)):
        randint(out, 9, 0, low, high)
        place = (out.array.astype(object) - low) / (high - low)
        assert 0 <= min(place) < 0.001 and 0.999 < max(place) < 1 and abs(np.mean(place.astype(float)) - 0.5) < 0.02


def test_any_number_of_threads_gives_the_same_numbers():
    before = get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            set_num_threads(threads)
            out = dense(np.zeros(300_001, np.float32))
            normal(out, 7, 3)
            found.append(out.array.copy())
    finally:
        set_num_threads(before)
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()


def test_all_orders_of_four_are_equally_frequent():
    counts = {}
    for offset in range(6000):
        order = tuple(permutation(4, 5, 2 * offset).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 24
    assert sum((count - 250) ** 2 / 250 for count in counts.values()) < 49.7  # chi-squared, 23 degrees, 0.001


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_a_permutation_has_each_number_once(n):
    assert sorted(permutation(n, 1, 0).tolist()) == list(range(n))
