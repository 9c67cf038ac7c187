"""Random numbers: the published answers of Philox, ranges, moments, and independence of layout."""

import numpy as np
import pytest

from redispatch.kernels import Operand, bernoulli, normal, randint, uniform
from redispatch.kernels.random import philox

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
    uniform(moved, 5, 4)
    np.testing.assert_array_equal(moved.array[:8], plain.array[4:])
    uniform(moved, 6, 0)
    assert not (moved.array == plain.array).any()
    uniform(moved, -1, 0)  # a negative seed is its 64 bits
