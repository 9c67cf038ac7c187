"""Samples of reductions, scans, extremes, moments, quantiles, integrals and slopes."""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, NUMBERS, OpInfo, SampleInput
from .common import (
    BAD_DIM,
    NOT_BROADCASTABLE,
    RECORDED,
    axes,
    binary,
    by_numpy,
    call,
    calls,
    d,
    quiet,
    table,
    whole,
    x,
)

INF = float("inf")

# --- sums, products, conditions ---------------------------------------------------------------------------------------

WHOLE_TENSOR = calls([(2, 3)], [()], [(0, 3)])
ONE_DIM = calls([(2, 3), 1], [(2, 3, 2), -2, True], [(), 0], [(0, 3), 0])
LISTS = calls([(2, 3), [1]], [(2, 3, 2), [0, -1], True], [(2, 3), None], [(), [0]], [(0, 3), [0]])


def reduced(function):
    """numpy's reduction under our argument names."""

    @quiet
    def reference(self, dim=None, keepdim=False, dtype=None):
        self = np.asarray(self) if dtype is None else np.asarray(self, dtype)
        return function(self, axis=axes(dim), keepdims=keepdim) if self.ndim else function(self)

    return reference


def summed_to(self, size):
    summed = self.sum(axis=tuple(range(self.ndim - len(size))))
    return summed.sum(axis=tuple(i for i, n in enumerate(size) if n == 1), keepdims=True).reshape(size)


def to_double(*args):
    return call((2, 3), *args, dtype=dtypes.float64)


HASHED = calls([(2, 3)], [(2, 3), [1]], call((2, 3, 2), [0, -1], keepdim=True), [()], [(0, 3), [1]])


def hash_of(self, dim=(), keepdim=False, mode=0):
    bits = np.asarray(self, np.float64 if self.dtype.kind == "f" else np.int64).view(np.uint64)
    return np.bitwise_xor.reduce(bits, axis=tuple(dim) or None, keepdims=keepdim) if self.ndim else bits


SUMS = table(
    *by_numpy("sum", calls(WHOLE_TENSOR, to_double()), wrap=reduced),
    *by_numpy("sum.dim_IntList", calls(LISTS, to_double([1])), wrap=reduced),
    OpInfo("sum_to_size", calls([(2, 3), [1, 3]], [(2, 2, 3), [2, 1]], [(), []]), summed_to, NUMBERS),
    *by_numpy("mean", WHOLE_TENSOR, FLOATS, reduced),
    *by_numpy("mean.dim", LISTS, FLOATS, reduced),
    *by_numpy("prod", WHOLE_TENSOR, wrap=reduced),
    *by_numpy("prod.dim_int", ONE_DIM, wrap=reduced),
    *by_numpy("all any", WHOLE_TENSOR, wrap=reduced, gradients=False),
    *by_numpy("_is_all_true:all _is_any_true:any", WHOLE_TENSOR, (dtypes.bool,), reduced, gradients=False),
    *by_numpy("all.dim any.dim", ONE_DIM, wrap=reduced, gradients=False),
    *by_numpy("all.dims any.dims", LISTS, wrap=reduced, gradients=False),
    *by_numpy("count_nonzero", calls([(2, 3)], [(2, 3), 1], [()], [(0, 3), 0]), wrap=reduced, gradients=False),
    *by_numpy("count_nonzero.dim_IntList", calls([(2, 3), [0, 1]], [(0, 3), [0]]), wrap=reduced, gradients=False),
    OpInfo("hash_tensor", HASHED, hash_of, NUMBERS, gradients=False),
    errors={
        "hash_tensor": {
            "Unknown hash_tensor mode: 1": call((2,), mode=1),
            "IndexError: hash_tensor: Expected reduction dim 1 to have non-zero size.": [(2, 0), [1]],
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0.": [(0,)],
        },
        "sum.dim_IntList mean.dim": BAD_DIM | {"dim 0 appears multiple times in the list of dims": [(2, 3), [0, 0]]},
        "mean": {
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            "Long": [x.index(2, below=3)]
        },
        "prod.dim_int": BAD_DIM,
    },
)

# --- scans ------------------------------------------------------------------------------------------------------------


def cumulated(function):
    """numpy's running operation; a result without dimensions is the element itself."""

    def reference(self, dim, dtype=None):
        wide = np.int64 if dtype is None and self.dtype.kind in "bui" else dtype
        return function(self, axis=dim, dtype=wide) if self.ndim else np.asarray(self, wide)

    return reference


def log_of_running_sums(self, dim):
    return np.log(np.cumsum(np.exp(self, dtype=np.float64), axis=dim)) if self.ndim else self


def running_extreme(ufunc):
    """The extremes so far, and the last place where each stood."""

    def reference(self, dim):
        if not self.ndim:
            return self, np.zeros((), np.int64)
        values = ufunc.accumulate(self, axis=dim)
        steps = np.arange(self.shape[dim]).reshape([-1 if i == dim % self.ndim else 1 for i in range(self.ndim)])
        return values, np.maximum.accumulate(np.where(self == values, steps, 0), axis=dim)

    return reference


def with_zeros(make):
    for places in ([1], [0, 2]):
        x = make(2, 4)
        values = x.detach()
        values[0, places] = 0
        yield SampleInput(values.requires_grad_(x.requires_grad), (1,))


LINES = [((2, 3), 1), ((2, 3), -2), ((3, 2, 2), 1), ((), 0), ((0, 3), 0)]
RUNNING = calls(*(list(line) for line in LINES))
EXTREMES_SO_FAR = calls(*([d(*shape), dim] for shape, dim in LINES))
SCANS = table(
    *by_numpy("cumsum", calls(RUNNING, to_double(1)), wrap=cumulated),
    *by_numpy("cumprod", calls(RUNNING, with_zeros, to_double(1)), wrap=cumulated),
    OpInfo("logcumsumexp", RUNNING, log_of_running_sums, FLOATS),
    *by_numpy("cummax:maximum cummin:minimum", EXTREMES_SO_FAR, NUMBERS, running_extreme),
    errors={
        "cumsum cumprod cummax cummin": BAD_DIM,
        "logcumsumexp": {
            "NotImplementedError: \"logcumsumexp_out_cpu\" not implemented for 'Long'": [x.index(2, below=3), 0]
        },
        "cummax": {"IndexError: cummax(): Expected reduction dim -1 or 0 for scalar but got 1": [(), 1]},
        "cummin": {"IndexError: cummin(): Expected reduction dim -1 or 0 for scalar but got 1": [(), 1]},
    },
)

# --- extremes ---------------------------------------------------------------------------------------------------------


def places(place):
    def reference(self, dim=None, keepdim=False):
        return place(self, axis=dim, keepdims=keepdim) if self.ndim else np.zeros((), np.int64)

    return reference


def extreme_and_place(function):
    place = {np.max: np.argmax, np.min: np.argmin}[function]
    return lambda *args: (reduced(function)(*args), places(place)(*args))


def both_extremes(self, *, dim=None, keepdim=False):
    return tuple(reduced(function)(self, dim, keepdim) for function in (np.min, np.max))


ALONG_FILLED = calls([d(2, 3), 1], [d(2, 3, 2), -2, True], [d(), 0], [d(0, 3), 1])
TO_PLACES = calls([d(2, 3)], [d(2, 3), 1], [d(2, 3), 0, True], [d()], [d(0, 3), 1, True])
TO_EXTREMES = calls([d(2, 3)], [d(2, 3), [1]], [d(2, 3, 2), [0, 2], True], [d()], [d(0, 3), [1]])
BOTH_EXTREMES = calls([d(2, 3)], call(d(2, 3), dim=1), call(d(2, 3), dim=0, keepdim=True), [d()])
EXTREMES = table(
    *by_numpy("amax amin", TO_EXTREMES, NUMBERS, reduced),
    *by_numpy("max min", calls([d(2, 3)], [d()]), wrap=reduced),
    *by_numpy("max.dim min.dim", ALONG_FILLED, NUMBERS, extreme_and_place),
    *by_numpy("max.other:maximum min.other:minimum", binary()),
    *by_numpy("argmax argmin", TO_PLACES, NUMBERS, places, gradients=False),
    OpInfo("aminmax", BOTH_EXTREMES, both_extremes, NUMBERS),
    errors={
        "max.dim min.dim": BAD_DIM,
        "max.other min.other": NOT_BROADCASTABLE,
        **{
            name: {f"{kind}{name}(): Expected reduction dim to be specified for input.numel() == 0.": [(0,)]}
            for kind, names in (("", "amax amin max min"), ("IndexError: ", "argmax argmin"))
            for name in names.split()
        },
    },
)

# --- moments ----------------------------------------------------------------------------------------------------------


def spread(function, with_mean=False):
    """numpy's variance or deviation. `unbiased` and `correction` say what is taken from the count."""

    def reference(self, dim=None, unbiased=True, keepdim=False, correction=None):
        if isinstance(dim, bool):  # var(unbiased)
            dim, unbiased = None, dim
        kept = {"axis": axes(dim) if self.ndim else None, "keepdims": keepdim}
        found = function(self, ddof=int(unbiased if correction is None else correction), **kept)
        return [found, self.mean(**kept)] if with_mean else found

    return reference


def spread_and_mean(function):
    return spread(function, with_mean=True)


def norm(self, ord=2, dim=None, keepdim=False, dtype=None):
    size = np.abs(np.asarray(self, np.float64))
    where = {"axis": axes(dim), "keepdims": keepdim} if size.ndim else {}
    if ord in (0, INF):
        return size.max(**where) if ord else (size != 0).sum(**where)
    return (size**ord).sum(**where) ** (1 / ord)


def power_sum(self, ord=2, dim=None, keepdim=False):
    return (np.abs(self) ** ord).sum(**({"axis": axes(dim), "keepdims": keepdim} if self.ndim else {}))


NORMS = [[(2, 3)], [(2, 3), 1], [(2, 3), 2, [1], True], [(2, 3), 3], [(2, 3), INF, [0]], [()], [(0, 3)]]
SPREADS_ALONG = calls([(2, 3), [1]], [(2, 3, 2), [0, 2], False, True], [(2, 3), None])
CORRECTED = [[(2, 3)], call((2, 3), [1], correction=0)]
SPREADS_CORRECTED = calls(*CORRECTED, call((3, 2), [0], correction=2, keepdim=True))
BOTH_ALONG = calls([(2, 3), [1]], [(2, 3, 2), [0, -1], True, True], [(2, 3), [0], False])
BOTH_CORRECTED = calls(*CORRECTED, call((2, 3, 2), [0, -1], correction=2, keepdim=True))
MOMENTS = table(
    *by_numpy("var std", calls([(2, 3)], [(2, 3), False]), FLOATS, spread),
    *by_numpy("var.dim std.dim", SPREADS_ALONG, FLOATS, spread),
    *by_numpy("var.correction std.correction", SPREADS_CORRECTED, FLOATS, spread),
    *by_numpy("var_mean:var std_mean:std", calls([(2, 3)], [(3,), False], [(2, 3), True]), FLOATS, spread_and_mean),
    *by_numpy("var_mean.dim:var std_mean.dim:std", BOTH_ALONG, FLOATS, spread_and_mean),
    *by_numpy("var_mean.correction:var std_mean.correction:std", BOTH_CORRECTED, FLOATS, spread_and_mean),
    OpInfo("linalg_vector_norm", calls(*NORMS), norm, FLOATS),
    OpInfo("linalg__powsum", calls(*NORMS[:4], *NORMS[5:]), power_sum, FLOATS),
    *by_numpy("logsumexp", calls([(2, 3), [1]], [(2, 3, 2), [0, 2], True], [(), [0]], [(0, 3), [0]]), FLOATS, reduced),
    errors={
        "var.correction std.correction": BAD_DIM,
        "var_mean": {"var_mean only support floating point and complex dtypes": [x(3, dtype=dtypes.int64)]},
    },
)


# --- without NaN, quantiles, covariance -------------------------------------------------------------------------------


def with_nan(make):
    """A matrix in which, if it is one of floats, one element is NaN; one without dimensions, one without elements."""
    numbers = [[1, float("nan") if make.dtype.is_floating_point else 2, 3], [4, 0, 2]]
    yield from calls([x.values(numbers)], [x.values(numbers), [1], True], [()], [(0, 3)])(make)


@quiet
def nanmean(self, dim=None, keepdim=False):
    kept = ~np.isnan(self)
    where = {"axis": axes(dim) if self.ndim else None, "keepdims": keepdim}
    return np.where(kept, self, 0).sum(**where) / kept.sum(**where)


def quantile(function):
    def reference(self, q, dim=None, keepdim=False, interpolation="linear"):
        return function(self, q, axis=dim if self.ndim else None, keepdims=keepdim, method=interpolation)

    return reference


def cov(self, correction=1, fweights=None, aweights=None):
    return np.cov(self, ddof=correction, fweights=fweights, aweights=aweights)


QUANTILES = calls(
    [d(3, 4), x.values([0.0, 0.3, 1.0]).detach()],
    call(d(3, 4), x.values([0.25]).detach(), 1, True, interpolation="linear"),
    *(
        call(d(4, 3), x.values(0.4).detach(), 0, interpolation=way)
        for way in ("lower", "higher", "midpoint", "nearest")
    ),
)
ONE_QUANTILE = calls([d(3, 4), 0.3], [d(3, 4), 0.75, -1, True], [d(), 0.5])
WEIGHTS = x.values([0.5, 1.0, 2.0, 1.0], dtypes.float64)


def variables(make):
    yield from calls([d(2, 4)], call(d(4), correction=0))(make)
    often, much = make.index(4, below=3, low=1), WEIGHTS._of(make)
    yield from calls(call(d(2, 4), fweights=often), call(d(2, 4), fweights=often, aweights=much))(make)


STATISTICS = table(
    *by_numpy("nansum", with_nan, wrap=reduced),
    OpInfo("nanmean", with_nan, nanmean, FLOATS),
    *by_numpy("quantile nanquantile", QUANTILES, FLOATS, quantile),
    *by_numpy("quantile.scalar nanquantile.scalar", ONE_QUANTILE, FLOATS, quantile),
    OpInfo("cov", variables, cov, FLOATS),
    *by_numpy("corrcoef", calls([(2, 4)], [(3, 5)]), FLOATS),
    errors={
        "quantile": {
            "quantile() q must be a scalar or 1D tensor": [(3,), (2, 2)],
            "quantile() q values must be in the range [0, 1]": [(3,), x.values([2.0])],
            "quantile() input tensor must be either float or double dtype": [x(3, dtype=dtypes.int64), ()],
        },
        "quantile.scalar": {
            "quantile() q must be in the range [0, 1] but got 1.5": [(3,), 1.5],
            "quantile() input tensor must be non-empty": [(0,), 0.5],
        },
        "cov": {
            "cov(): expected input to have two or fewer dimensions but got an input with 3 dimensions": [(2, 2, 2)],
            "cov(): expected fweights to have integral dtype but got fweights with Double dtype": call(
                (2, 3), fweights=(3,)
            ),
        },
    },
    skips={"it sorts values": "meta: quantile", "weights are checked": "meta: cov"},
)

# --- integrals, slopes, segments --------------------------------------------------------------------------------------

AT_PLACES = calls([(2, 4), (4,)], call((4, 2), (4, 2), dim=0))
APART = calls([(2, 4)], call((4, 2), dx=2, dim=0))
PLACES = [x.values([0.0, 1.0, 3.0]).detach(), x.values([0.0, 0.5, 2.0, 3.0]).detach()]


def trapezoid(y, x=None, dx=1, dim=-1):
    return np.trapezoid(y, x, dx, dim)


def cumulative(y, x=None, dx=1, dim=-1):
    left, right = np.delete(y, -1, dim), np.delete(y, 0, dim)
    width = dx if x is None else np.diff(x, axis=dim if x.ndim > 1 else 0)
    return np.cumsum((left + right) * width / 2, dim)


def gradient(self, spacing=1, dim=None, edge_order=1):
    steps = spacing if isinstance(spacing, list) else [spacing]
    found = np.gradient(self, *steps, axis=axes(dim), edge_order=edge_order)
    return list(found) if isinstance(found, tuple) else [found]


# The overloads of gradient, and by which keywords they are called
SLOPES: dict[str, Any] = {
    "scalarint": [{}, {"spacing": 2.0, "dim": 1}],
    "scalararray": [{"spacing": 0.5, "dim": [1, 0], "edge_order": 2}],
    "array": [{"dim": [0]}, {"dim": [0, 1], "edge_order": 2}],
    "scalarrayint": [{"spacing": [2.0, 0.5]}],
    "scalarrayarray": [{"spacing": [2.0, 0.5], "dim": [1, 0]}],
    "tensorarrayint": [{"spacing": PLACES, "edge_order": order} for order in (1, 2)],
    "tensorarray": [{"spacing": PLACES[::-1], "edge_order": order, "dim": [1, 0]} for order in (1, 2)],
}
UFUNCS: Any = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min}


def segment_reduce(data, reduce, lengths=None, offsets=None, axis=0, initial=None):
    if axis:
        return np.array([segment_reduce(row, reduce, own) for row, own in zip(data, lengths, strict=True)])
    bounds = offsets if lengths is None else np.concatenate([[0], np.cumsum(lengths)])
    start = [] if initial is None else [np.full((1, *data.shape[1:]), initial)]
    rows = [np.concatenate([*start, data[a:b]]) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
    return np.array([UFUNCS[reduce](part, 0) if len(part) else np.zeros(data.shape[1:]) for part in rows])


def segment_gradient(grad, output, data, reduce, lengths):
    spread = np.repeat(grad, lengths)
    return spread if reduce == "sum" else np.where(np.repeat(output, lengths) == data, spread, 0)


SEGMENTS = calls(
    *(call(d(6, 2), reduce, lengths=whole([2, 1, 3])) for reduce in UFUNCS),
    *(call(d(6), reduce, lengths=whole([2, 0, 4]), initial=2) for reduce in ("sum", "prod")),
    call(d(2, 3), "sum", lengths=whole([[1, 2], [3, 0]]), axis=1),
    call(d(6), "mean", offsets=whole([1, 3, 5])),
)
SEGMENTED = x.values([1.0, 2.0, 4.0])
SEGMENT_GRADIENTS = calls(
    call((2,), x.values([1.0, 6.0]), SEGMENTED, "sum", lengths=whole([1, 2])),
    call((2,), x.values([1.0, 4.0]), SEGMENTED, "max", lengths=whole([1, 2])),
)
ALL_ROWS = "Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
INTEGRALS = table(
    *(OpInfo(f"{name}.x", AT_PLACES, trapezoid, FLOATS) for name in ("trapezoid", "trapz")),
    *(OpInfo(f"{name}.dx", APART, trapezoid, FLOATS) for name in ("trapezoid", "trapz")),
    OpInfo("cumulative_trapezoid.x", AT_PLACES, cumulative, FLOATS),
    OpInfo("cumulative_trapezoid.dx", APART, cumulative, FLOATS),
    *(
        OpInfo(f"gradient.{overload}", calls(*(call((3, 4), **how) for how in ways)), gradient, FLOATS)
        for overload, ways in SLOPES.items()
    ),
    OpInfo("segment_reduce", SEGMENTS, segment_reduce, FLOATS),
    OpInfo("_segment_reduce_backward", SEGMENT_GRADIENTS, segment_gradient, FLOATS, gradients=False),
    errors={
        **{
            f"{name}.x": {f"{name}: There must be one `x` value for each sample point": [(2, 4), (3,)]}
            for name in ("trapezoid", "cumulative_trapezoid")
        },
        "gradient.scalarint": {
            "torch.gradient only supports edge_order=1 and edge_order=2.": call((4,), edge_order=3),
            "torch.gradient expected each dimension size to be at least edge_order+1": [(1,)],
        },
        "segment_reduce": {
            "reduce argument must be either sum, prod, mean, amax or amin, got foo": call(
                (3,), "foo", lengths=whole([3])
            ),
            f"segment_reduce(): {ALL_ROWS}": call((4,), "sum", lengths=whole([3])),
        },
    },
    skips={
        "its gradient is a kernel without one, as in PyTorch": "second_gradients: segment_reduce",
        "of lengths laid out otherwise the sum is another one": "layouts: segment_reduce _segment_reduce_backward",
        RECORDED: "recording: _segment_reduce_backward",
    },
)

REDUCTIONS = [*SUMS, *SCANS, *EXTREMES, *MOMENTS, *STATISTICS, *INTEGRALS]
