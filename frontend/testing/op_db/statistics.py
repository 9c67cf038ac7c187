"""Samples of kernels/ops/statistics.py, histograms.py, integrals.py, segments.py and bilinear.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import RECORDED, axes, call, quiet, reductions
from .views import calls

# --- sums, means, variances -------------------------------------------------------------------------------------------


def with_nan(*rest: Any, **kwargs: Any) -> Any:
    """A matrix in which, if it is one of floats, one element is NaN; one without dimensions, one without elements."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        numbers: list[list[float]] = [[1, 2, 3], [4, 0, 2]]
        if make.dtype.is_floating_point:
            numbers[0][1] = float("nan")
        yield sample(make.values(numbers), *rest, **kwargs)
        yield sample(make.values(numbers), [1], True)
        yield sample(make(), *rest, **kwargs)
        yield sample(make(0, 3), *rest, **kwargs)

    return samples


def along(function: Any) -> Any:
    @quiet
    def reference(self: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        return function(self, axis=axes(dim) if self.ndim else None, keepdims=keepdim)

    return reference


def nanmean(self: Any, axis: Any, keepdims: bool) -> Any:
    kept = ~np.isnan(self)
    return np.where(kept, self, 0).sum(axis, keepdims=keepdims) / kept.sum(axis, keepdims=keepdims)


def both(name: str) -> Any:
    def reference(self: Any, dim: Any = None, correction: Any = 1, keepdim: bool = False) -> Any:
        axis = axes(dim) if self.ndim else None
        spread = getattr(np, name)(self, axis=axis, ddof=int(correction), keepdims=keepdim)
        return [spread, self.mean(axis, keepdims=keepdim)]

    return reference


SPREADS = reductions(call((2, 3)), call((3,), False), call((2, 3), True))
SPREADS_ALONG = reductions(call((2, 3), [1]), call((2, 3, 2), [0, -1], True, True), call((2, 3), [0], False))
SPREADS_CORRECTED = reductions(
    call((2, 3)), call((2, 3), [1], correction=0), call((2, 3, 2), [0, -1], correction=2, keepdim=True)
)


def only_floats(name: str) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        whole = make(3, dtype=dtypes.int64)
        yield ErrorInput(sample(whole), RuntimeError, f"{name} only support floating point and complex dtypes")

    return errors


# --- quantiles and covariance -----------------------------------------------------------------------------------------


def shares(make: Maker) -> Iterator[SampleInput]:
    yield sample(make.distinct(3, 4), make.values([0.0, 0.3, 1.0]).detach())
    yield sample(make.distinct(3, 4), make.values([0.25]).detach(), 1, True, interpolation="linear")
    for way in ("lower", "higher", "midpoint", "nearest"):
        yield sample(make.distinct(4, 3), make.values(0.4).detach(), 0, interpolation=way)


def one_share(make: Maker) -> Iterator[SampleInput]:
    yield sample(make.distinct(3, 4), 0.3)
    yield sample(make.distinct(3, 4), 0.75, -1, True)
    yield sample(make.distinct(), 0.5)


def quantile(function: Any) -> Any:
    def reference(self: Any, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear") -> Any:
        return function(self, q, axis=dim if self.ndim else None, keepdims=keepdim, method=interpolation)

    return reference


def quantile_errors(make: Maker) -> Iterator[ErrorInput]:
    x = make(3)
    yield ErrorInput(sample(x, make(2, 2)), RuntimeError, "quantile() q must be a scalar or 1D tensor")
    yield ErrorInput(sample(x, make.values([2.0])), RuntimeError, "quantile() q values must be in the range [0, 1]")
    yield ErrorInput(
        sample(make(3, dtype=dtypes.int64), make()),
        RuntimeError,
        "quantile() input tensor must be either float or double dtype",
    )


def share_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(3), 1.5), RuntimeError, "quantile() q must be in the range [0, 1] but got 1.5")
    yield ErrorInput(sample(make(0), 0.5), RuntimeError, "quantile() input tensor must be non-empty")


def variables(make: Maker) -> Iterator[SampleInput]:
    yield sample(make.distinct(2, 4))
    yield sample(make.distinct(4), correction=0)
    often, much = make.index(4, below=3, low=1), make.values([0.5, 1.0, 2.0, 1.0], dtypes.float64)
    yield sample(make.distinct(2, 4), fweights=often)
    yield sample(make.distinct(2, 4), fweights=often, aweights=much)


def cov(self: Any, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    return np.cov(self, ddof=correction, fweights=fweights, aweights=aweights)


def cov_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(
        sample(make(2, 2, 2)),
        RuntimeError,
        "cov(): expected input to have two or fewer dimensions but got an input with 3 dimensions",
    )
    yield ErrorInput(
        sample(make(2, 3), fweights=make(3)),
        RuntimeError,
        "cov(): expected fweights to have integral dtype but got fweights with Double dtype",
    )


STATISTICS = [
    OpInfo("nansum", with_nan(), along(np.nansum)),
    OpInfo("nanmean", with_nan(), along(nanmean), FLOATS),
    OpInfo(
        "var_mean",
        SPREADS,
        lambda self, unbiased=True: both("var")(self, correction=unbiased),
        FLOATS,
        errors=only_floats("var_mean"),
    ),
    OpInfo(
        "var_mean.dim",
        SPREADS_ALONG,
        lambda self, dim, unbiased=True, keepdim=False: both("var")(self, dim, unbiased, keepdim),
        FLOATS,
    ),
    OpInfo("var_mean.correction", SPREADS_CORRECTED, both("var"), FLOATS),
    OpInfo("std_mean", SPREADS, lambda self, unbiased=True: both("std")(self, correction=unbiased), FLOATS),
    OpInfo(
        "std_mean.dim",
        SPREADS_ALONG,
        lambda self, dim, unbiased=True, keepdim=False: both("std")(self, dim, unbiased, keepdim),
        FLOATS,
    ),
    OpInfo("std_mean.correction", SPREADS_CORRECTED, both("std"), FLOATS),
    OpInfo(
        "quantile", shares, quantile(np.quantile), FLOATS, errors=quantile_errors, skips={"meta": "it sorts values"}
    ),
    OpInfo("quantile.scalar", one_share, quantile(np.quantile), FLOATS, errors=share_errors),
    OpInfo("nanquantile", shares, quantile(np.nanquantile), FLOATS),
    OpInfo("nanquantile.scalar", one_share, quantile(np.nanquantile), FLOATS),
    OpInfo("cov", variables, cov, FLOATS, errors=cov_errors, skips={"meta": "weights are checked"}),
    OpInfo("corrcoef", calls([(2, 4)], [(3, 5)]), np.corrcoef, FLOATS),
]

# --- histograms -------------------------------------------------------------------------------------------------------

NO_META = {
    "meta": "there is no kernel for the meta device, as in PyTorch",
    "bfloat16": "it is refused, as in PyTorch",
}


def by_count(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(4, 5), 3)
    yield sample(make(20), 4, range=[-2.0, 2.0], density=True)
    yield sample(make(4, 5), 3, weight=make(4, 5, low=0, high=2))
    yield sample(make.values([1.0, 1.0]), 2)
    yield sample(make(0), 2)


def by_edges(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(4, 5), make.values([-2.0, 0.0, 0.5, 3.0]))
    yield sample(make(4, 5), make.values([-3.0, 1.0, 4.0]), weight=make(4, 5, low=0, high=2), density=True)


def histogram(self: Any, bins: Any = 100, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    flat = None if weight is None else weight.reshape(-1)
    return list(np.histogram(self.reshape(-1), bins, range and tuple(range), density, flat))


def points(bins: Any, **kwargs: Any) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        yield sample(make(8, 2), bins(make) if callable(bins) else bins, **kwargs)
        yield sample(make(2, 4, 2), bins(make) if callable(bins) else bins, weight=make(2, 4, low=0, high=2))

    return samples


def histogramdd(self: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    flat = None if weight is None else weight.reshape(-1)
    pairs = range and [tuple(range[i : i + 2]) for i in np.arange(0, len(range), 2)]
    found, edges = np.histogramdd(self.reshape(-1, self.shape[-1]), bins, pairs, density, flat)
    return [found, *edges]


def histogram_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "torch.histogram(): bins must be > 0, but got 0 for dimension 0"
    yield ErrorInput(sample(make(3), 0), RuntimeError, text)
    text = "torch.histogramdd: min should not exceed max, but got min 2 max 1 for dimension 0"
    yield ErrorInput(sample(make(3), 2, range=[2.0, 1.0]), RuntimeError, text)
    text = "torch.histogramdd: dimension 0's range [1, inf] is not finite"
    yield ErrorInput(sample(make(3), 2, range=[1.0, float("inf")]), RuntimeError, text)


def edges_of_two(make: Maker) -> Any:
    return [make.values([-2.0, 0.0, 3.0]).detach(), make.values([-3.0, 1.0]).detach()]


RANGE = [-2.0, 2.0, -3.0, 1.0]
RECORDED_HERE = {**NO_META, **RECORDED}
HISTOGRAMS = [
    OpInfo(
        "histogram.bin_ct", by_count, histogram, FLOATS, gradients=False, errors=histogram_errors, skips=RECORDED_HERE
    ),
    OpInfo("histogram.bins_tensor", by_edges, histogram, FLOATS, gradients=False, skips=RECORDED_HERE),
    OpInfo("histogramdd", points([3, 2], range=RANGE), histogramdd, FLOATS, gradients=False, skips=RECORDED_HERE),
    OpInfo("histogramdd.int_bins", points(3), histogramdd, FLOATS, gradients=False, skips=RECORDED_HERE),
    OpInfo(
        "histogramdd.TensorList_bins", points(edges_of_two), histogramdd, FLOATS, gradients=False, skips=RECORDED_HERE
    ),
    OpInfo(
        "_histogramdd_bin_edges",
        points([3, 2], range=RANGE),
        lambda *args, **kwargs: histogramdd(*args, **kwargs)[1:],
        FLOATS,
        gradients=False,
        skips=RECORDED_HERE,
    ),
    OpInfo(
        "_histogramdd_from_bin_cts",
        points([3, 2], range=RANGE, density=True),
        lambda *args, **kwargs: histogramdd(*args, **kwargs)[0],
        FLOATS,
        gradients=False,
        skips=RECORDED_HERE,
    ),
    OpInfo(
        "_histogramdd_from_bin_tensors",
        points(edges_of_two),
        lambda *args, **kwargs: histogramdd(*args, **kwargs)[0],
        FLOATS,
        gradients=False,
        skips=RECORDED_HERE,
    ),
]

# --- integrals and slopes ---------------------------------------------------------------------------------------------


def at_places(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 4), make(4))
    yield sample(make(4, 2), make(4, 2), dim=0)


def apart(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 4))
    yield sample(make(4, 2), dx=2, dim=0)


def trapezoid(y: Any, x: Any = None, dx: float = 1, dim: int = -1) -> Any:
    return np.trapezoid(y, x, dx, dim)


def cumulative(y: Any, x: Any = None, dx: float = 1, dim: int = -1) -> Any:
    left, right = np.delete(y, -1, dim), np.delete(y, 0, dim)
    width = dx if x is None else np.diff(x, axis=dim if x.ndim > 1 else 0)
    return np.cumsum((left + right) * width / 2, dim)


def one_per_sample(name: str) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        text = f"{name}: There must be one `x` value for each sample point"
        yield ErrorInput(sample(make(2, 4), make(3)), RuntimeError, text)

    return errors


def slopes(*cases: dict[str, Any]) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for kwargs in cases:
            yield sample(make(3, 4), **kwargs)

    return samples


def between_places(dims: Any) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        places = [make.values([0.0, 1.0, 3.0]).detach(), make.values([0.0, 0.5, 2.0, 3.0]).detach()]
        for edge_order in (1, 2):
            chosen = places if dims is None else [places[d] for d in dims]
            given = {} if dims is None else {"dim": dims}
            yield sample(make(3, 4), spacing=chosen, edge_order=edge_order, **given)

    return samples


def gradient(self: Any, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    steps = spacing if isinstance(spacing, list) else [spacing]
    numpys: Any = np.gradient
    found = numpys(self, *steps, axis=axes(dim), edge_order=edge_order)
    return list(found) if isinstance(found, tuple) else [found]


def gradient_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "torch.gradient only supports edge_order=1 and edge_order=2."
    yield ErrorInput(sample(make(4), edge_order=3), RuntimeError, text)
    text = "torch.gradient expected each dimension size to be at least edge_order+1"
    yield ErrorInput(sample(make(1)), RuntimeError, text)


INTEGRALS = [
    OpInfo("trapezoid.x", at_places, trapezoid, FLOATS, errors=one_per_sample("trapezoid")),
    OpInfo("trapezoid.dx", apart, trapezoid, FLOATS),
    OpInfo("trapz.x", at_places, trapezoid, FLOATS),
    OpInfo("trapz.dx", apart, trapezoid, FLOATS),
    OpInfo("cumulative_trapezoid.x", at_places, cumulative, FLOATS, errors=one_per_sample("cumulative_trapezoid")),
    OpInfo("cumulative_trapezoid.dx", apart, cumulative, FLOATS),
    OpInfo("gradient.scalarint", slopes({}, {"spacing": 2.0, "dim": 1}), gradient, FLOATS, errors=gradient_errors),
    OpInfo("gradient.scalararray", slopes({"spacing": 0.5, "dim": [1, 0], "edge_order": 2}), gradient, FLOATS),
    OpInfo("gradient.array", slopes({"dim": [0]}, {"dim": [0, 1], "edge_order": 2}), gradient, FLOATS),
    OpInfo("gradient.scalarrayint", slopes({"spacing": [2.0, 0.5]}), gradient, FLOATS),
    OpInfo("gradient.scalarrayarray", slopes({"spacing": [2.0, 0.5], "dim": [1, 0]}), gradient, FLOATS),
    OpInfo("gradient.tensorarrayint", between_places(None), gradient, FLOATS),
    OpInfo("gradient.tensorarray", between_places([1, 0]), gradient, FLOATS),
]

# --- segments ---------------------------------------------------------------------------------------------------------

UFUNCS: dict[str, Any] = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min}


def segments(make: Maker) -> Iterator[SampleInput]:
    lengths = make.values([2, 1, 3], dtypes.int64)
    for reduce in UFUNCS:
        yield sample(make.distinct(6, 2), reduce, lengths=lengths)
    for reduce in ("sum", "prod"):
        yield sample(make.distinct(6), reduce, lengths=make.values([2, 0, 4], dtypes.int64), initial=2)
    yield sample(make.distinct(2, 3), "sum", lengths=make.values([[1, 2], [3, 0]], dtypes.int64), axis=1)
    yield sample(make.distinct(6), "mean", offsets=make.values([1, 3, 5], dtypes.int64))


def segment_reduce(
    data: Any, reduce: str, lengths: Any = None, offsets: Any = None, axis: int = 0, initial: Any = None
) -> Any:
    if axis:
        return np.array([segment_reduce(row, reduce, own) for row, own in zip(data, lengths, strict=True)])
    bounds = offsets if lengths is None else np.concatenate([[0], np.cumsum(lengths)])
    start = [] if initial is None else [np.full((1, *data.shape[1:]), initial)]
    rows = [np.concatenate([*start, data[a:b]]) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
    return np.array([UFUNCS[reduce](part, 0) if len(part) else np.zeros(data.shape[1:]) for part in rows])


def segment_gradients(make: Maker) -> Iterator[SampleInput]:
    lengths = make.values([1, 2], dtypes.int64)
    data = make.values([1.0, 2.0, 4.0])
    yield sample(make(2), make.values([1.0, 6.0]), data, "sum", lengths=lengths)
    yield sample(make(2), make.values([1.0, 4.0]), data, "max", lengths=lengths)


def segment_gradient(grad: Any, output: Any, data: Any, reduce: str, lengths: Any) -> Any:
    spread = np.repeat(grad, lengths)
    return spread if reduce == "sum" else np.where(np.repeat(output, lengths) == data, spread, 0)


def segment_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "reduce argument must be either sum, prod, mean, amax or amin, got foo"
    lengths = make.values([3], dtypes.int64)
    yield ErrorInput(sample(make(3), "foo", lengths=lengths), RuntimeError, text)
    text = (
        "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
    )
    yield ErrorInput(sample(make(4), "sum", lengths=lengths), RuntimeError, text)


LENGTHS = {"layouts": "of lengths laid out otherwise the sum is another one"}
SEGMENTS = [
    OpInfo(
        "segment_reduce",
        segments,
        segment_reduce,
        FLOATS,
        errors=segment_errors,
        skips={"second_gradients": "its gradient is a kernel without one, as in PyTorch", **LENGTHS},
    ),
    OpInfo(
        "_segment_reduce_backward",
        segment_gradients,
        segment_gradient,
        FLOATS,
        gradients=False,
        skips={**LENGTHS, **RECORDED},
    ),
]

# --- bilinear forms ---------------------------------------------------------------------------------------------------


def bilinear(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make(2, 4), make(5, 3, 4), make(5))
    yield sample(make(3), make(4), make(2, 3, 4))
    yield sample(make(2, 2, 3), make(2, 2, 4), make(1, 3, 4))


def bilinear_form(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    return np.einsum("...i,oij,...j->...o", input1, weight, input2) + (0 if bias is None else bias)


def bilinear_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "bilinear(): input1 size does not match weight size: got 3 but expected 2"
    yield ErrorInput(sample(make(2, 3), make(2, 4), make(5, 2, 4)), RuntimeError, text)


BILINEAR = [
    OpInfo(
        "_trilinear",
        lambda make: iter([sample(make(2, 3), make(5, 3, 4), make(2, 4), [1, 3], [0], [1, 2], [2, 3])]),
        lambda i1, i2, i3, *dims: bilinear_form(i1, i3, i2),
        FLOATS,
        skips={"bfloat16": "the product of two of the tensors is rounded"},
    ),
    OpInfo("bilinear", bilinear, bilinear_form, FLOATS, errors=bilinear_errors),
]
