"""Sorting and selecting along a line: stable, NaN behind all, and right in every way that a length may take."""

import numpy as np
import pytest

from redispatch.kernels import Operand, ready_rank, ready_sort, ready_top

from .. import drawing

DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool")
DRAWN = drawing.draw(DTYPES, "sorted", count=2)


def operand(x):
    return Operand(x.reshape(-1), x.dtype.name, x.shape, tuple(step // x.itemsize for step in x.strides))


def filled(ready, x, shape, *args, **options):
    values, places = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    run = ready(operand(values), operand(places), operand(x), x.ndim - 1, *args, **options)
    run(values.reshape(-1), 0, places.reshape(-1), 0, x.reshape(-1), 0)
    return values, places


def numbers(dtype, *shape):
    random = np.random.default_rng(len(shape))
    x = random.random(shape) > 0.5 if dtype == "bool" else (random.standard_normal(shape) * 100).astype(dtype)
    if dtype.startswith("float"):
        x.flat[:4] = 1.0, np.nan, 0.0, -0.0
    return x


@pytest.mark.parametrize("dtype", DRAWN)
@pytest.mark.parametrize("shape", [(5,), (3, 30), (3, 300), (20000,)], ids=str)
def test_lines_are_sorted_stably_with_nan_behind_all(dtype, shape):
    x = numbers(dtype, *shape)
    values, places = filled(ready_sort, x, shape, descending=False)
    assert np.array_equal(places, np.argsort(x, axis=-1, kind="stable"))
    assert np.array_equal(values, np.take_along_axis(x, places, -1), equal_nan=True)


@pytest.mark.parametrize("dtype", DRAWN)
@pytest.mark.parametrize("shape", [(5,), (3, 300), (20000,)], ids=str)
@pytest.mark.parametrize("largest", [True, False])
def test_the_first_elements_are_those_of_the_sorted_line(dtype, shape, largest):
    x = numbers(dtype, *shape)
    values, places = filled(ready_sort, x, shape, descending=largest)
    for k in (1, 4, shape[-1] // 2, shape[-1]):
        found, where = filled(ready_top, x, (*shape[:-1], k), largest=largest, in_order=True)
        assert np.array_equal(where, places[..., :k])
        assert np.array_equal(found, values[..., :k], equal_nan=True)


@pytest.mark.parametrize("dtype", [dtype for dtype in DRAWN if dtype != "bool"])
@pytest.mark.parametrize("size", [1, 2, 300, 20000])
def test_an_element_of_a_rank_is_found_among_the_smallest_and_the_largest_there_are(dtype, size):
    ends = [-np.inf, np.inf] if dtype.startswith("float") else [np.iinfo(dtype).min, np.iinfo(dtype).max]
    for x in (numbers("int32", size).astype(dtype), np.full(size, 7, dtype), np.array(ends * size, dtype)):
        for rank in (0, len(x) // 2, len(x) - 1):
            value, place = filled(ready_rank, x, (1,), rank)
            assert value == np.sort(x)[rank] and x[place] == value
