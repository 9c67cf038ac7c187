"""Samples of sorting, searching, uniqueness, counting and histograms."""

from __future__ import annotations

import numpy as np

from ..op_info import FLOATS, INTEGERS, NUMBERS, OpInfo, SampleInput
from .common import BAD_DIM, RECORDED, call, calls, d, entries, fixed, floating, only, table, x

# --- sorting ----------------------------------------------------------------------------------------------------------


def ordered(self, dim=-1, descending=False, stable=None):
    if not self.ndim:
        return self, np.zeros((), np.int64)
    order = np.argsort(self, axis=dim, kind="stable")
    order = np.flip(order, dim) if descending else order
    return np.take_along_axis(self, order, dim), order


def order(*args, **kwargs):
    return ordered(*args, **kwargs)[1]


def top(self, k, dim=-1, largest=True, sorted=True):
    found = ordered(self, dim, largest)
    return tuple(np.take(one, range(k), dim) for one in found) if self.ndim else found


def kth(self, k, dim=-1, keepdim=False):
    found = ordered(self, dim)
    chosen = [np.take(one, [k - 1], dim) for one in found] if self.ndim else found
    return tuple(one if keepdim or not one.ndim else one.squeeze(dim) for one in chosen)


def middle(self, dim=-1, keepdim=False):
    return kth(self, (self.shape[dim] + 1) // 2 if self.ndim else 1, dim, keepdim)


def with_nan(make):
    """A third of the numbers are none, and one row has no other."""
    x = make.distinct(3, 5).detach()
    x[0, 1] = x[1, 0] = x[1, 3] = float("nan")
    yield SampleInput(x.requires_grad_(make.requires_grad), (1,))


def middle_without_nan(self, dim, keepdim=False):
    if not self.ndim or self.dtype.kind != "f":
        return middle(self, dim, keepdim)
    rank = np.maximum((~np.isnan(self)).sum(dim) - 1, 0)[..., None] // 2
    return tuple(np.take_along_axis(one, rank, dim)[..., 0] for one in ordered(self, dim))


def most_frequent(self, dim=-1, keepdim=False):
    if not self.ndim:
        return self, np.zeros((), np.int64)

    def of_line(line):
        values, counts = np.unique(line, return_counts=True)
        best = values[counts.argmax()]
        return best, np.flatnonzero(line == best)[-1]

    lines = np.moveaxis(self, dim, -1)
    found = [of_line(line) for line in lines.reshape(-1, lines.shape[-1])]
    shape = np.sum(self[None], axis=dim if dim < 0 else dim + 1, keepdims=keepdim).shape[1:]
    return tuple(np.array([pair[k] for pair in found]).reshape(shape) for k in (0, 1))


def unless_recorded(*parts):
    """Numerical differences would tear ties apart."""
    return only(lambda make: not make.requires_grad, *parts)


def zeros_of_both_signs(make):
    yield from call(x.values([0, -0.0, 1, -0.0, 0]) if make.dtype.is_floating_point else (3,), stable=True)(make)


SORTS = calls([d(2, 3)], [d(3, 4), 0], [d(2, 50), -1, True], [d(), 0], [d(0, 3), 0], [d(2, 1)])
# Whole numbers from a small range, so that many are equal, in lines short and long; floats with two zeros
WITH_TIES = (
    call(d(2, 3), stable=True),
    call(d(3, 4), stable=False, dim=0),
    call(d(2, 50), stable=True, descending=True),
    call(d(), stable=False),
    call(d(0, 3), stable=True),
    unless_recorded(
        call(x.index(2, 30, below=4).to(x.dtype), stable=True),
        call(x.index(1, 300, below=9).to(x.dtype), stable=True),
        zeros_of_both_signs,
    ),
)
TOPS = calls(
    *([d(2, 3), 2], [d(4, 3), 2, 0, False], [d(2, 60), 5], [d(2, 60), 20, -1, True, True]),
    *([d(), 1], [d(0, 3), 2], [d(2, 3), 0]),
)
MIDDLES = calls([d(2, 3), 1], [d(4, 3), 0, True], [d(2, 60), 1], [d(), 0], [d(0, 3), 1])
KTHS = calls([d(2, 3), 2], [d(4, 3), 1, 0, True], [d(2, 60), 33], [d(), 1], [d(0, 3), 2])
OF_ALL = calls([d(2, 3)], [d(3, 3)], [d()])
FREQUENT = calls(
    *([d(2, 3)], [d(3, 2), 0, True], [d(), 0]),
    unless_recorded([x.index(3, 9, below=3).to(x.dtype)], [d(2, 60), 1]),
)
EMPTY_LINE = "IndexError: {}(): Expected reduction dim 0 to have non-zero size."
OUT_OF_RANGE = "kthvalue(): selected number k out of range for dimension 1"

SORTING = table(
    OpInfo("sort", SORTS, ordered, NUMBERS),
    OpInfo("sort.stable", calls(*WITH_TIES, call(d(), stable=None)), ordered, NUMBERS),
    OpInfo("argsort", SORTS, order, NUMBERS, gradients=False),
    OpInfo("argsort.stable", calls(*WITH_TIES), order, NUMBERS, gradients=False),
    OpInfo("msort", calls([d(3, 2)], [d(0, 3)]), lambda self: np.sort(self, 0), NUMBERS),
    OpInfo("topk", TOPS, top, NUMBERS),
    OpInfo("kthvalue", KTHS, kth, NUMBERS),
    *entries("median", OF_ALL, NUMBERS),
    *entries("nanmedian", OF_ALL, NUMBERS),
    OpInfo("median.dim", MIDDLES, middle, NUMBERS),
    OpInfo("nanmedian.dim", calls([d(2, 3), 1], [d(), 0], floating(with_nan)), middle_without_nan, NUMBERS),
    OpInfo("mode", FREQUENT, most_frequent, NUMBERS),
    references={
        "median nanmedian": lambda self: np.sort(self, None)[(self.size - 1) // 2],
    },
    errors={
        "sort median.dim nanmedian.dim mode": BAD_DIM,
        "topk": {
            "selected index k out of range": calls([(2, 3), 4], [(2, 3), -1]),
            "topk does not support bool dtypes on CPU": [x.mask(3), 1],
        },
        "kthvalue": {OUT_OF_RANGE: calls([(2, 3), 0], [(2, 3), 4]), EMPTY_LINE.format("kthvalue"): [(0, 3), 1, 0]},
        "median": {"NotImplementedError: \"median_cpu\" not implemented for 'Bool'": [x.mask(3)]},
        "median.dim nanmedian.dim": {EMPTY_LINE.format("median"): [(0, 3), 0]},
        "mode": {EMPTY_LINE.format("mode"): [(0, 3), 0]},
    },
)

# --- uniqueness, searching, counting ----------------------------------------------------------------------------------


def few(*shape):
    """Small whole numbers, of which many are equal."""
    return x.index(*shape, below=4).to(x.dtype)


def values(*flags):
    return calls([few(3, 4)], [few(9), *flags], [few(), *flags], [few(0), *flags])


def unique(self, sorted=True, return_inverse=False, return_counts=False):
    found, inverse, counts = np.unique(self, return_inverse=True, return_counts=True)
    none = np.zeros(0, np.int64)
    return found, inverse.reshape(self.shape) if return_inverse else none, counts if return_counts else none


def unique_slices(self, dim, *flags):
    found, inverse, counts = np.unique(self, return_inverse=True, return_counts=True, axis=dim)
    return found, inverse.ravel(), counts


def first_of_runs(self, return_inverse=False, return_counts=False, dim=None):
    lines = self.reshape(-1) if dim is None else self[:, 0]
    starts = [k for k in range(len(lines)) if not k or lines[k] != lines[k - 1]]
    inverse = np.cumsum([k in starts for k in range(len(lines))]) - 1
    counts, none = np.diff([*starts, len(lines)]), np.zeros(0, np.int64)
    if dim is not None:
        return self[starts], inverse, counts
    return lines[starts], inverse.reshape(self.shape) if return_inverse else none, counts if return_counts else none


def edges(*shape):
    return fixed(*shape).sort().values


def sorted_by_places(make):
    x = make.distinct(4).detach()
    yield from call(x, make(3).detach(), sorter=x.argsort())(make)


def searched(sorted_sequence, self, out_int32=False, right=False, side=None, sorter=None):
    lines = sorted_sequence if sorter is None else np.take_along_axis(sorted_sequence, sorter, -1)
    lines = lines if lines.ndim == 1 else lines[..., None, :]
    below = lines <= np.asarray(self)[..., None] if right or side == "right" else lines < np.asarray(self)[..., None]
    return below.sum(-1)


def histc(self, bins=100, min=0, max=0):
    if min == max and self.size:
        min, max = self.min(), self.max()
    if min == max:
        min, max = min - 1, max + 1
    return np.histogram(self, bins, (min, max))[0]


SLICES = calls(*([few(*shape), dim, True, True, True] for shape, dim in (((6, 2), 0), ((2, 5), -1), ((1, 3), 0))))
SEARCHES = calls(
    *(call(edges(4), fixed(2, 3), **how) for how in ({}, {"right": True}, {"side": "right", "out_int32": True})),
    [edges(2, 4), fixed(2, 3)],
    sorted_by_places,
    [edges(3), fixed()],
    [edges(0), fixed(2)],
)
BUCKETS = calls([fixed(2, 3), edges(4)], call(fixed(3), edges(4), right=True, out_int32=True))
MEMBERS = calls([few(2, 3), few(2)], call(few(4), few(2, 1), invert=True), [few(), few(0)])
COUNTS = calls(*([few(7)], call(few(7), minlength=9), [few(5), few(5).double()], [few(5), few(5).float()], [few(0)]))
BARS = calls([fixed(3, 4), 5], [fixed(9), 4, -1, 2], [fixed(4, low=2, high=3).mul(0), 3], [fixed(0), 2])
NO_BINS = "torch.histogram(): bins must be > 0, but got 0 for dimension 0"
FEW_DIMS = "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries"


SEARCHING = table(
    OpInfo("_unique", values(True, True), lambda *args: unique(*args)[:2], NUMBERS),
    OpInfo("_unique2", values(True, True, True), unique, NUMBERS),
    OpInfo("unique_dim", SLICES, unique_slices, NUMBERS),
    OpInfo(
        "unique_consecutive",
        calls([few(12), True, True], [few(3, 3)], [few(7, 1), True, True, 0]),
        first_of_runs,
        NUMBERS,
    ),
    OpInfo(
        "unique_dim_consecutive",
        calls([few(7, 1), 0, True, True]),
        lambda self, dim, inverse, counts: first_of_runs(self, inverse, counts, dim),
        NUMBERS,
    ),
    OpInfo("searchsorted.Tensor", SEARCHES, searched, NUMBERS),
    OpInfo("searchsorted.Scalar", calls([edges(4), 1], call(edges(4), 2, right=True)), searched, NUMBERS),
    *entries("bucketize.Tensor", BUCKETS, NUMBERS),
    *entries("bucketize.Scalar", calls([1, edges(4)]), NUMBERS),
    *entries("isin.Tensor_Tensor", MEMBERS, NUMBERS),
    *entries("isin.Tensor_Scalar", calls([few(2, 3), 2]), NUMBERS),
    *entries("isin.Scalar_Tensor", calls([2, few(2, 3)]), NUMBERS),
    OpInfo("bincount", COUNTS, lambda x, weights=None, minlength=0: np.bincount(x, weights, minlength), INTEGERS),
    OpInfo("histc", BARS, histc, FLOATS),
    references={
        "bucketize": lambda x, lines, **rest: searched(lines, x, **rest),
        "isin": lambda elements, test_elements, assume_unique=False, invert=False: np.isin(
            elements, test_elements, invert=invert
        ),
    },
    errors={
        "searchsorted.Tensor": {
            "torch.searchsorted(): side can only be 'left' or 'right' but got top": call(
                fixed(3), fixed(3), side="top"
            ),
            FEW_DIMS: [fixed(2, 3), fixed(1, 3)],
        },
        "bucketize.Tensor": {"boundaries tensor must be 1 dimension, but got dim(2)": [fixed(2, 3), fixed(2, 3)]},
        "isin.Tensor_Tensor": {"Unsupported input type encountered for isin(): Bool": [x.mask(2), x.mask(2)]},
        "bincount": {"bincount only supports 1-d non-negative integral inputs.": calls([x.values([-1])], [few(2, 3)])},
        "histc": {NO_BINS: [fixed(3), 0], "torch.histc: max must be larger than min": [fixed(3), 3, 2, 1]},
    },
    skips={
        "how many values there are is not known there": "meta: *unique* bincount",
        RECORDED: "recording: *unique*",
    },
    flat="*",
)

# --- histograms -------------------------------------------------------------------------------------------------------


def flat(weight):
    return None if weight is None else weight.reshape(-1)


def histogram(self, bins=100, range=None, weight=None, density=False):
    return list(np.histogram(self.reshape(-1), bins, range and tuple(range), density, flat(weight)))


def histogramdd(self, bins, range=None, weight=None, density=False):
    pairs = range and [tuple(range[i : i + 2]) for i in np.arange(0, len(range), 2)]
    found, edges = np.histogramdd(self.reshape(-1, self.shape[-1]), bins, pairs, density, flat(weight))
    return [found, *edges]


def counted(*args, **kwargs):
    return histogramdd(*args, **kwargs)[0]


def points(bins, **kwargs):
    return calls(call((8, 2), bins, **kwargs), call((2, 4, 2), bins, weight=x(2, 4, low=0, high=2)))


WEIGHT = x(4, 5, low=0, high=2)
BY_COUNT = calls(
    [(4, 5), 3],
    call((20,), 4, range=[-2.0, 2.0], density=True),
    call((4, 5), 3, weight=WEIGHT),
    *([x.values([1.0, 1.0]), 2], [(0,), 2]),
)
BY_EDGES = calls(
    [(4, 5), x.values([-2.0, 0.0, 0.5, 3.0])],
    call((4, 5), x.values([-3.0, 1.0, 4.0]), weight=WEIGHT, density=True),
)
RANGE, EDGES = [-2.0, 2.0, -3.0, 1.0], [x.values([-2.0, 0.0, 3.0]).detach(), x.values([-3.0, 1.0]).detach()]
OF_HISTOGRAMS = {
    "histogram.bin_ct": (BY_COUNT, histogram),
    "histogram.bins_tensor": (BY_EDGES, histogram),
    "histogramdd": (points([3, 2], range=RANGE), histogramdd),
    "histogramdd.int_bins": (points(3), histogramdd),
    "histogramdd.TensorList_bins": (points(EDGES), histogramdd),
    "_histogramdd_bin_edges": (points([3, 2], range=RANGE), lambda *args, **kwargs: histogramdd(*args, **kwargs)[1:]),
    "_histogramdd_from_bin_cts": (points([3, 2], range=RANGE, density=True), counted),
    "_histogramdd_from_bin_tensors": (points(EDGES), counted),
}
REVERSED = "torch.histogramdd: min should not exceed max, but got min 2 max 1 for dimension 0"
HISTOGRAMS = table(
    *(OpInfo(name, samples, reference, FLOATS) for name, (samples, reference) in OF_HISTOGRAMS.items()),
    errors={
        "histogram.bin_ct": {
            NO_BINS: [(3,), 0],
            REVERSED: call((3,), 2, range=[2.0, 1.0]),
            "torch.histogramdd: dimension 0's range [1, inf] is not finite": call((3,), 2, range=[1.0, float("inf")]),
        }
    },
    skips={
        "there is no kernel for the meta device, as in PyTorch": "meta: *",
        "it is refused, as in PyTorch": "bfloat16: *",
        RECORDED: "recording: *",
    },
    flat="*",
)

ORDERS = [*SORTING, *SEARCHING, *HISTOGRAMS]
