"""Scans, sorting and what is chosen by them on the simulated device, with blocks so small that every way is taken:
lines of several pieces, keys of several digits, tiles that are not full, one block for a line and many."""

import numpy as np
import pytest

import redispatch as rd
from redispatch.kernels.cuda.ops import argreduce, compaction, scan, searching, selection, sort
from redispatch.testing import assert_close

from .helpers import same_gradients

SMALL = scan.Cut(threads=64, groups=6, walkers=40, shortest=4)
EVERY_DTYPE = [
    rd.bool,
    rd.uint8,
    rd.int8,
    rd.int16,
    rd.int32,
    rd.int64,
    rd.float16,
    rd.bfloat16,
    rd.float32,
    rd.float64,
]
long = pytest.mark.long


@pytest.fixture
def tight(simulator, monkeypatch):
    """Small blocks, and few of them."""
    room = sort.Room(slots=16, few=32, threads=64, each=2, scan=SMALL)
    monkeypatch.setattr(scan, "CUT", SMALL)
    monkeypatch.setattr(sort, "ROOM", room)
    monkeypatch.setattr(selection, "ROOM", room)
    monkeypatch.setattr(selection, "MANY", 100)  # lines are sorted,
    monkeypatch.setattr(selection, "LONG", 0)  # and by all blocks
    monkeypatch.setattr(compaction, "CUT", compaction.Cut(threads=64, most=3))
    monkeypatch.setattr(argreduce, "CUT", argreduce.Cut(threads=64, piece=16, groups=8))
    monkeypatch.setattr(searching, "ROOM", searching.Room(shared=16, each=2))
    return monkeypatch


def numbers(*shape, dtype=rd.float32):
    """Numbers of which many are equal, of a seed of their own."""
    drawn = np.random.default_rng(len(shape)).normal(0, 4, shape).round()
    return rd.tensor(drawn.tolist(), dtype=rd.float64).reshape(shape).to(dtype)


def same(function, x):
    """A function gives on the device what it gives on the CPU, to the last bit where it chooses."""
    found, wanted = function(x.cuda()), function(x)
    for ours, theirs in zip(*((one if isinstance(one, tuple) else (one,)) for one in (found, wanted)), strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        assert ours.stride() == theirs.stride() or not theirs.numel()
        assert_close(ours.cpu(), theirs, equal_nan=True, rtol=1e-3, atol=1e-4)


# --- scans ------------------------------------------------------------------------------------------------------------

ROWS = [((1, 1500), 1), ((2, 700), 1), ((3, 100), 1), ((9, 15), 1)]
COLUMNS = [((50, 3), 0), ((2, 70, 5), 1), ((7, 60), 0)]
EMPTY = [((0, 3), 1), ((3, 0), 1), ((), 0)]


@pytest.mark.parametrize("shape,dim", [*ROWS[1:], COLUMNS[0], *EMPTY])
def test_running_sums_of_lines_of_every_length(tight, shape, dim):
    same(lambda x: x.cumsum(dim), numbers(*shape))


@long
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"])
@pytest.mark.parametrize("shape,dim", [*ROWS, *COLUMNS, *EMPTY])
def test_every_scan_of_lines_of_every_length(tight, name, shape, dim):
    x = numbers(*shape) / 8 + (1 if name == "cumprod" else 0)
    same(lambda x: getattr(rd, name)(x, dim), x)


@long
@pytest.mark.parametrize("dtype", [*EVERY_DTYPE, rd.complex64], ids=str)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "cummax"])
def test_scans_of_every_dtype(tight, name, dtype):
    x = numbers(2, 300, dtype=dtype)
    if name == "cumprod":
        x = x % 2 * 2 - 1 if not dtype.is_complex and dtype is not rd.bool else x * 0 + 1
    try:
        getattr(rd, name)(x, 1)
    except (RuntimeError, NotImplementedError):
        with pytest.raises((RuntimeError, NotImplementedError)):
            getattr(rd, name)(x.cuda(), 1)
        return
    same(lambda x: getattr(rd, name)(x, 1), x)
    same(lambda x: getattr(rd, name)(x, 0), x)


@long
def test_scans_of_what_is_no_number():
    x = rd.tensor([1.0, float("nan"), 2.0, float("inf"), -float("inf"), float("nan"), 5.0])
    for name in ("cumsum", "logcumsumexp", "cummax", "cummin"):
        same(lambda x, name=name: getattr(rd, name)(x, 0), x)
    same(lambda x: x.logcumsumexp(0), rd.tensor([-float("inf"), -float("inf"), 0.0, float("inf"), 1.0]))


def test_a_scan_is_in_place_into_any_tensor_and_in_another_dtype(simulator):
    x = rd.arange(7.0, device="cuda")
    assert x.cumsum_(0) is x and x.tolist() == [0, 1, 3, 6, 10, 15, 21]
    out = rd.empty(7, 2, device="cuda")[:, 0]
    assert rd.cumsum(rd.ones(7, device="cuda"), 0, out=out) is out and out.tolist() == [1, 2, 3, 4, 5, 6, 7]
    small = rd.ones(4, dtype=rd.int16, device="cuda")
    assert small.cumsum_(0).dtype is rd.int16 and small.tolist() == [1, 2, 3, 4]


@long
def test_gradients_of_scans_and_of_what_is_chosen(tight):
    same_gradients(lambda x: x.cumsum(1) + x.t().cumprod(0).t() + x.logcumsumexp(1), rd.randn(3, 70))
    for function in (
        lambda x: x.cummax(1)[0],
        lambda x: x.sort(1, descending=True)[0],
        lambda x: x.topk(4, 1)[0],
        lambda x: x.kthvalue(30, 1)[0],
        lambda x: x.median(1)[0],
        lambda x: x.max(0)[0],
    ):
        same_gradients(function, rd.randn(3, 70))


# --- order ------------------------------------------------------------------------------------------------------------


def orders(dim, n):
    """Every operator of order, of lines of n elements."""
    return {
        "sort": lambda x: x.sort(dim),
        "sort descending": lambda x: rd.sort(x, dim=dim, descending=True, stable=True),
        "topk": lambda x: x.topk(min(3, n), dim),
        "topk of most": lambda x: x.topk(n - n // 5, dim, largest=False),
        "kthvalue": lambda x: x.kthvalue((n + 1) // 2, dim),
        "median": lambda x: x.median(dim),
        "nanmedian": lambda x: x.nanmedian(dim),
        "mode": lambda x: x.mode(dim, keepdim=True),
        "median of all": lambda x: x.median(),
    }


LINES = [((3, 5), 1), ((2, 300), 1), ((2, 40, 5), 1), ((1, 700), -1)]


@pytest.mark.parametrize("dtype", [rd.int16], ids=str)
def test_long_lines_are_sorted_digit_by_digit(tight, dtype):
    x = numbers(2, 150, dtype=dtype) * 100
    same(lambda x: x.sort(1), x)
    same(lambda x: x.sort(1, descending=True), x.flip(1))
    same(lambda x: x.t().sort(0), x)  # neighbours of a line lie apart


def test_the_first_few_of_long_lines_are_found_by_a_block_each(tight):
    tight.setattr(selection, "MANY", 1)
    same(lambda x: x.topk(7, 1), numbers(3, 700))


@pytest.mark.parametrize("shape,dim", [((3, 5), 1), ((5, 3), 0), ((), 0), ((3, 0), 1), ((1,), 0), ((70, 2), 1)])
def test_short_lines_are_sorted_in_shared_memory(simulator, shape, dim):
    same(lambda x: x.sort(dim), numbers(*shape))


def test_a_sort_lies_as_what_is_sorted(simulator):
    x = numbers(4, 6).t()
    same(lambda x: x.sort(0), x)
    same(lambda x: x[:, ::2].sort(1), x)
    values, places = rd.empty(6, 8, device="cuda")[:, ::2], rd.empty(0, dtype=rd.int64, device="cuda")
    assert rd.sort(x.cuda(), 1, out=(values, places))[0] is values
    assert rd.equal(values.cpu(), x.sort(1)[0]) and rd.equal(places.cpu(), x.sort(1)[1])


@long
@pytest.mark.parametrize("many", [0, 100], ids=["a block each", "all blocks"])
@pytest.mark.parametrize("shape,dim", LINES)
def test_every_operator_of_order_on_lines_of_every_length(tight, shape, dim, many):
    tight.setattr(selection, "MANY", many)
    for function in orders(dim, shape[dim]).values():
        same(function, numbers(*shape))


@long
@pytest.mark.parametrize("many", [0, 100], ids=["a block each", "all blocks"])
@pytest.mark.parametrize("dtype", EVERY_DTYPE, ids=str)
def test_order_of_every_dtype(tight, dtype, many):
    tight.setattr(selection, "MANY", many)
    x = numbers(3, 71, dtype=dtype)
    if dtype.is_floating_point:
        x[0, 3] = x[0, 50] = x[2, 0] = float("nan")
        x[1, 5], x[1, 6], x[1, 7], x[1, 8] = float("inf"), -float("inf"), -0.0, 0.0
    for function in orders(1, 71).values():
        try:
            function(x)
        except (RuntimeError, NotImplementedError):
            with pytest.raises((RuntimeError, NotImplementedError)):
                function(x.cuda())
        else:
            same(function, x)


# --- what is largest, kept, searched and counted ----------------------------------------------------------------------


@pytest.mark.parametrize("shape,dim", [((2, 300), 1)])
def test_places_of_the_largest(tight, shape, dim):
    same(lambda x: x.max(dim), numbers(*shape))


@long
@pytest.mark.parametrize("shape,dim", [*ROWS, *COLUMNS, ((70, 40), 0), ((5, 1), 0), ((0, 3), 1)])
def test_places_of_the_largest_and_the_smallest_of_lines_of_every_length(tight, shape, dim):
    for dtype in (rd.float32, rd.float16, rd.int64):
        x = numbers(*shape, dtype=dtype)
        if dtype.is_floating_point and x.shape[1] > 3:
            x[0, 3] = float("nan")
        for name in ("max", "min", "argmax", "argmin"):
            same(lambda x, name=name: getattr(rd, name)(x, dim), x)
    same(lambda x: x.argmax(), numbers(*shape) if 0 not in shape else numbers(3))
    same(lambda x: x.max(dim), numbers(*shape, dtype=rd.bool))


def test_different_elements_and_how_many_there_are(tight):
    same(lambda x: rd.unique(x, return_inverse=True, return_counts=True), numbers(6, 150))


@long
@pytest.mark.parametrize("dtype", [rd.bool, rd.int32, rd.float16, rd.float32], ids=str)
def test_what_is_kept(tight, dtype):
    x, mask = numbers(7, 130, dtype=dtype), numbers(7, 130) > 1
    same(lambda x: x.nonzero(), x)
    same(lambda x: x.reshape(-1).nonzero(), x)
    same(lambda x: x[mask.to(x.device)], x)
    same(lambda x: rd.masked_select(x[:, :1], mask.to(x.device)), x)
    same(lambda x: rd.unique_consecutive(x.sort(1)[0], return_inverse=True, return_counts=True), x)
    same(lambda x: rd.unique(x[:, :2], dim=0, return_inverse=True, return_counts=True), x)
    same(lambda x: rd.unique_consecutive(x[:, :1], dim=0, return_inverse=True, return_counts=True), x)
    for nothing in (x[:0], x * 0):
        same(lambda x: x.nonzero(), nothing)
        same(lambda x: rd.unique(x, return_inverse=True, return_counts=True), nothing)


def test_counts_of_few_bins_and_of_many(tight):
    x = rd.tensor((np.arange(300) * 7 % 13).tolist())
    same(lambda x: rd.bincount(x), x)
    same(lambda x: rd.bincount(x, minlength=40), x)


@long
def test_weights_and_histograms(tight):
    x, places = numbers(400) / 3, rd.tensor((np.arange(400) * 7 % 13).tolist())
    x[3] = float("nan")
    for dtype in (rd.float32, rd.float64, rd.float16):
        for most in (0, 40):
            same(lambda w, most=most: rd.bincount(places.to(w.device), w, most), numbers(400, dtype=dtype))
    same(lambda x: rd.histc(x, 7, -2, 2), x)
    same(lambda x: rd.histc(x[4:], 30), x)
    same(lambda x: rd.histogram(x[4:], 5, density=True)[0], x)
    same(lambda x: rd.histogramdd(x[4:].reshape(-1, 2), [3, 4])[0], x)


@long
def test_searches(tight):
    x, edges, lines = numbers(7, 50), numbers(9).sort()[0], numbers(7, 9)
    x[0, 0] = float("nan")
    order = lines.argsort(1)
    for right in (False, True):
        same(lambda x, right=right: rd.searchsorted(edges.to(x.device), x, right=right, out_int32=True), x)
        same(lambda x, right=right: rd.searchsorted(lines.to(x.device), x, right=right, sorter=order.to(x.device)), x)
        same(lambda x, right=right: rd.bucketize(x, edges.to(x.device), right=right), x.half())
    same(lambda x: rd.isin(x, rd.tensor([1.0, 2.0]).to(x.device)), x)
