"""Samples of what makes tensors: filled ones, ranges, windows, and numbers drawn at random.

What a generator draws is nobody's to predict, so tests of such operators compare shapes, dtypes and seeds.
"""

from __future__ import annotations

import math

import numpy as np

from redispatch.dispatch.tensor import channels_last, dtypes

from ..op_info import ALL, FLOATS, INTEGERS, NUMBERS, OpInfo, SampleInput
from .common import by_numpy, call, calls, entries, fixed, per_shape, table, unary, whole, x

TAKES_NO_TENSOR = "it takes no tensor"  # no gradient flows, no layout matters, a subclass is not met
UNKNOWN = "its result holds whatever the memory held"
EVERY_VALUE = "reference bfloat16 inplace out layouts dispatch_mode function_mode subclass functionalized"

# --- filled tensors ---------------------------------------------------------------------------------------------------


def sizes(*args):
    """A size, then these arguments."""
    return calls(*(call(size, *args, dtype=x.dtype) for size in ([2, 3], [], [0, 3])))


def like(*args):
    """A tensor to be like, then these arguments; a transposed one, too, since its strides are kept."""
    return calls(*([one, *args] for one in ((2, 3), fixed(2, 3).t(), (), (0, 3))))


def like_and_options(*args):
    formatted = call((1, 2, 2, 2), *args, memory_format=channels_last)
    return calls(like(*args), call((2, 3), *args, dtype=dtypes.int64), formatted)


def new(*args):
    return calls([(2,), [2, 3], *args], [(2,), [], *args], call((2,), [0], *args, dtype=dtypes.float64))


def filled(self, value, dtype=None, memory_format=None):
    return np.full(np.shape(self), value, dtype or self.dtype)


def with_dtype(*parts):
    """Calls that are told the dtype."""
    return calls(*(call(*args, dtype=x.dtype) for args in parts))


SCALARS = calls(with_dtype([1], [0]), *([value] for value in (True, 2, 0.5)))
FRESH = "empty.memory_format empty_strided empty_permuted zeros ones full scalar_tensor eye eye.m"
FILLED = table(
    *entries("empty.memory_format", sizes()),
    *entries("empty_strided", with_dtype([[2, 3], [1, 2]], [[], []], [[0, 3], [3, 1]])),
    *entries("empty_permuted", with_dtype([[2, 3, 4], [0, 2, 1]], [[], []], [[0, 3], [1, 0]])),
    *by_numpy("zeros ones", sizes()),
    *by_numpy("full", sizes(1)),
    *by_numpy("scalar_tensor:asarray", SCALARS),
    *by_numpy("eye", with_dtype([3], [0])),
    *by_numpy("eye.m", with_dtype([2, 3], [3, 2], [0, 2])),
    *entries("empty_like zeros_like ones_like", like_and_options()),
    *entries("full_like", like_and_options(1)),
    *entries("new_empty new_zeros new_ones", new()),
    *entries("new_full", new(1)),
    *entries("new_empty_strided", calls([(2,), [2, 3], [1, 2]])),
    *entries("_new_zeros_with_same_feature_meta", calls([(5,), (2, 3)], call((4, 5), (2, 3), self_num_batch_dims=1))),
    references={
        "zeros_like": lambda self, **options: filled(self, 0, **options),
        "ones_like": lambda self, **options: filled(self, 1, **options),
        "full_like": filled,
        "new_zeros": lambda self, size, dtype=None: np.zeros(size),
        "_new_zeros_with_same_feature_meta": lambda self, other, self_num_batch_dims=0: np.zeros(
            (*self.shape[:self_num_batch_dims], *other.shape)
        ),
        "new_ones": lambda self, size, dtype=None: np.ones(size),
        "new_full": lambda self, size, value, dtype=None: np.full(size, value),
    },
    errors={
        "empty.memory_format": {"Trying to create tensor with negative dimension -1: [-1]": [[-1]]},
        "zeros": {"zeros: Dimension size must be non-negative.": [[-1]]},
        "empty_permuted": {
            "Duplicate dim not allowed": [[2, 3], [0, 0]],
            "Number of dimensions in size does not match the length of the physical_layout": [[2, 3], [0]],
            "Dimension out of range (expected to be between 0 and 1, but got 2 at index 1).": [[2, 3], [0, 2]],
        },
    },
    skips={UNKNOWN: f"{EVERY_VALUE}: empty* new_empty*", TAKES_NO_TENSOR: f"layouts subclass: {FRESH}"},
    flat="*",
)

# --- ranges -----------------------------------------------------------------------------------------------------------


def spaces(start, end, *steps):
    """Both ends as numbers."""
    return with_dtype(*([start, end, count] for count in steps))


def between(start, end, *more):
    """One end or both as tensors."""
    ends = [x.values(n).detach() if of_tensor else n for n, of_tensor in ((0, start), (3, end))]
    return with_dtype(*([*ends, steps, *more] for steps in (4, 1, 0)))


def ranged(start, end, step=1, dtype=None):
    if dtype is not None and np.issubdtype(dtype, np.integer):
        start, end, step = int(start), int(end), int(step)
    return start + step * np.arange(math.floor((end - start) / step) + 1)


def of_ends(name):
    text = f"{name} only supports 0-dimensional start and end tensors, but got start with 1 dimension(s)."
    return {text: [(1,), 2, 3]}


OF_TENSORS = {"Tensor_Tensor": (True, True), "Tensor_Scalar": (True, False), "Scalar_Tensor": (False, True)}
TRIANGLES = calls([3, 3], [2, 3, 1], [3, 2, -1], [0, 3], [2, 2, 5])
BY_NUMBERS = "arange arange.start arange.start_step range range.step linspace logspace tril_indices triu_indices"
INCONSISTENT = "upper bound and lower bound inconsistent with step sign"
RANGES = table(
    *by_numpy("arange", calls([5], [2.5], [0], with_dtype([4])), NUMBERS),
    *by_numpy("arange.start", calls([1, 5], with_dtype([-1, 3]), [2, 2]), NUMBERS),
    *by_numpy("arange.start_step", calls(with_dtype([1, 8, 3]), [0, 1, 0.25], [5, 0, -2]), NUMBERS),
    *entries("range", with_dtype([0, 4], [-1.5, 2]), NUMBERS, reference=ranged),
    *entries("range.step", with_dtype([0, 4, 2], [3, -3, -3]), NUMBERS, reference=ranged),
    *entries("linspace", spaces(-1, 3, 5, 1, 0), NUMBERS),
    *entries("logspace", spaces(0, 3, 4, 3, 1, 0), NUMBERS),
    *(
        info
        for overload, ends in OF_TENSORS.items()
        for name, base in (("linspace", ()), ("logspace", (2.0,) if all(ends) else ()))
        for info in entries(f"{name}.{overload}", between(*ends, *base), NUMBERS)
    ),
    *entries("tril_indices triu_indices", TRIANGLES, INTEGERS),
    references={
        "linspace": lambda start, end, steps, dtype=None: np.linspace(start, end, steps, dtype=dtype),
        "logspace": lambda start, end, steps, base=10.0, dtype=None: np.logspace(start, end, steps, base=base),
        "tril_indices": lambda row, col, offset=0: np.stack(np.tril_indices(row, offset, col)),
        "triu_indices": lambda row, col, offset=0: np.stack(np.triu_indices(row, offset, col)),
    },
    errors={
        "arange.start_step": {"step must be nonzero": [0, 5, 0], INCONSISTENT: [0, 5, -1]},
        "range.step": {"step must be nonzero": [0, 3, 0], INCONSISTENT: [0, 3, -1]},
        "linspace logspace": {"number of steps must be non-negative": [0, 1, -1]},
        "linspace.Tensor_Scalar": of_ends("linspace"),
        "logspace.Tensor_Scalar": of_ends("logspace"),
        "tril_indices": {
            "row must be non-negative, got-1": [-1, 3],
            "NotImplementedError: not implemented for 'Float'": call(3, 3, dtype=dtypes.float32),
        },
    },
    skips={
        TAKES_NO_TENSOR: f"layouts subclass: {BY_NUMBERS}",
        "the ends are read from their tensors": "meta: linspace.* logspace.*",
    },
    flat="*",
)

# --- windows ----------------------------------------------------------------------------------------------------------


def hamming(length, periodic=True, alpha=0.54, beta=0.46):
    return alpha - beta * np.cos(2 * math.pi * np.arange(length) / (length - 1 or 1))


def by_window(window, *more):
    """numpy's windows are those that are not periodic."""

    def reference(length, periodic=True, *shape, dtype=None):
        return np.ones(length) if length < 2 else window(length + periodic, *(shape or more))[:length]

    return reference


def lengths(*given):
    """Windows of several lengths, whole and empty, with these arguments behind the length."""
    return with_dtype(*([length, *given] for length in (5, 4, 1, 0)))


def no_length(name):
    return {
        f"{name} requires non-negative window_length, got window_length=-1": [-1],
        f"{name} expects floating point dtypes, got: ": call(3, dtype=dtypes.int32),
    }


OF_WINDOWS = {
    "hann_window": by_window(np.hanning),
    "hamming_window": by_window(lambda length, *shape: hamming(length, True, *shape)),
    "blackman_window": by_window(np.blackman),
    "bartlett_window": by_window(np.bartlett),
    "kaiser_window": by_window(np.kaiser, 12.0),
}
OVERLOADS = {
    **{name: () for name in OF_WINDOWS},
    **{f"{name}.periodic": (False,) for name in OF_WINDOWS},
    "hamming_window.periodic_alpha": (True, 0.6),
    "hamming_window.periodic_alpha_beta": (False, 0.6, 0.3),
    "kaiser_window.beta": (True, 5.0),
}
# The first bits of a 0 that is not one are nobody's to predict: atol.
OF_ZERO = {"float32": (1e-5, 1e-6), "float64": (1e-12, 1e-15)}
WINDOWS = table(
    *(OpInfo(name, lengths(*how), None, FLOATS, tolerance=OF_ZERO) for name, how in OVERLOADS.items()),
    references=OF_WINDOWS,
    errors={name: no_length(name) for name in OF_WINDOWS},
    skips={TAKES_NO_TENSOR: "layouts subclass: *"},
    flat="*",
)

# --- drawn at random --------------------------------------------------------------------------------------------------


def random_sizes(*args):
    return calls(*(call(*args, size, dtype=x.dtype) for size in ([2, 3], [], [0, 3])))


def written(*args):
    return per_shape(lambda s: [fixed(*s), *args])


def without_generator(samples):
    """With `generator=None`: the default one."""
    return lambda make: (SampleInput(one.input, one.args, {**one.kwargs, "generator": None}) for one in samples(make))


def means(kinds):
    """`normal(mean, std)` with a tensor ("t") or a number ("n") for each of the two."""
    return per_shape(lambda s: [x(*s, low=0.5, high=2) if kind == "t" else 1.5 for kind in kinds])


DRAWN = {
    "reference": "what it draws is not given by its arguments",
    "bfloat16": "what it draws is not given by its arguments",
    "layouts": "which number goes where depends on the layout",
    "subclass": "the two halves of a TwoTensor draw different numbers",
}


def drawn(names, samples, dtypes=FLOATS, **options):
    return entries(names, samples, dtypes, random=True, skips=DRAWN, **options)


def fresh(name, samples, dtypes=FLOATS):
    """A factory and its overload that takes a generator."""
    stem, dot, overload = name.partition(".")
    seeded = f"{stem}.{overload}{'_' * bool(dot)}generator".replace("dtype_generator", "generator_dtype")
    return (*drawn(name, samples, dtypes), *drawn(seeded, without_generator(samples), dtypes))


def slope_of_gamma(a, x):
    """By differences: where the same quantile is for a little more and a little less."""
    from scipy.special import gammainc, gammaincinv  # here, because it takes long to import, and few programs need it

    a, x = np.asarray(a, np.float64), np.asarray(x, np.float64)
    quantile, step = gammainc(a, x), 1e-4
    return (gammaincinv(a + step, quantile) - gammaincinv(a - step, quantile)) / (2 * step)


DROPOUTS = calls(unary(0.5, True), [(2, 3), 0.5, False], [(2, 3), 0.0, True], [(2, 3), 1.0, True])
CHANNELS = calls(
    *([shape, 0.5, True] for shape in ((2, 3), (2, 3, 2), (0, 3))), [(3,), 0.5, False], [(2, 3), 1.0, True]
)
WEIGHTS = calls(
    *([x(4, low=0.5, high=2), 3], [x(2, 3, low=0.5, high=2), 2], [x(2, 3, low=0.5, high=2), 5, True], [(0, 3), 2])
)
# Without training, nothing is written into the noise, which is what memory held.
TRAINING = [(training, s) for training in (True, False) for s in ((2, 3), (), (0, 3))]
NOISY = calls(*([x(*s, exclude_zero=True), fixed(*s), 0.25, 0.5, training] for training, s in TRAINING))
GAMMAS = per_shape(lambda s: [fixed(*s, low=0.5, high=3), fixed(*s, low=0.5, high=6)])


def rrelu_gradients(make):
    for training in (False, True):
        for shape in ((2, 3), (), (0, 3)):
            slope = make(*shape, exclude_zero=True)
            yield from call(shape, slope, fixed(*shape, low=0.25, high=0.5), 0.25, 0.5, training, False)(make)


def rrelu_slope(grad, self, noise, lower, upper, training, of_result):
    return grad * (noise if training else np.where(self > 0, 1, (lower + upper) / 2))


NO_CHANNELS = {
    "Feature dropout requires at least 2 dimensions in the input": [(3,), 0.5, True],
    "dropout probability has to be between 0 and 1, but got 1.5": [(2, 3), 1.5, True],
}
NOISE = "noise tensor shape must match self tensor shape. Got self.shape = [2, 3] noise.shape = [2]"
RANDOM = table(
    *drawn("uniform_", written(-1, 2)),
    *drawn("normal_ cauchy_", written(1, 2)),
    *drawn("exponential_", written(2)),
    *drawn("log_normal_", written(1, 0.5)),
    *drawn("geometric_", written(0.25), NUMBERS),
    *drawn("random_", written(), NUMBERS),
    *drawn("random_.from", written(-3, 3), NUMBERS),
    *drawn("random_.to", written(5), NUMBERS),
    *drawn("bernoulli_.Tensor", calls([fixed(2, 3), fixed(2, 3, low=0, high=1, dtype=dtypes.float32)]), ALL),
    *drawn("binomial", per_shape(lambda s: [fixed(*s, low=0, high=30), fixed(*s, low=0, high=1)])),
    *drawn("multinomial", WEIGHTS),
    *fresh("rand", random_sizes()),
    *fresh("randn", random_sizes()),
    *fresh("randint", random_sizes(5), NUMBERS),
    *fresh("randint.low", random_sizes(-2, 5), NUMBERS),
    *fresh("randperm", with_dtype([5], [1], [0]), INTEGERS),
    *drawn("normal.float_float", random_sizes(0.5, 2.0)),
    *fresh("rand_like", like()),
    *fresh("randn_like", like()),
    *fresh("randint_like", like(5), NUMBERS),
    *fresh("randint_like.low_dtype", like(-2, 5), NUMBERS),
    *fresh("randint_like.Tensor", like(fixed(dtype=dtypes.int64, low=3, high=9)), NUMBERS),
    *drawn("poisson", unary(low=0, high=30)),
    *drawn("_standard_gamma _sample_dirichlet", unary(low=0.25, high=5)),
    *drawn("bernoulli", unary(low=0, high=1)),
    *drawn("bernoulli.p bernoulli.float", like(0.5)),
    *drawn("normal.Tensor_float", means("tn")),
    *drawn("normal.float_Tensor", means("nt")),
    *drawn("normal.Tensor_Tensor", means("tt")),
    *drawn("dropout alpha_dropout native_dropout", DROPOUTS),
    *drawn("feature_dropout feature_alpha_dropout", CHANNELS),
    *drawn("rrelu", calls(*([x(*s, exclude_zero=True), 0.25, 0.5, training] for training, s in TRAINING))),
    *drawn("rrelu_with_noise", NOISY),
    # the tolerance is of the differences that it is compared with
    OpInfo("_standard_gamma_grad", GAMMAS, slope_of_gamma, FLOATS, tolerance={"float64": (1e-6, 1e-6)}),
    OpInfo("rrelu_with_noise_backward", rrelu_gradients, rrelu_slope, FLOATS),
    *entries("native_dropout_backward", per_shape(lambda s: [s, x.mask(*s), 2.0]), FLOATS),
    references={"native_dropout_backward": lambda grad_output, mask, scale: grad_output * mask * scale},
    errors={
        "poisson": {"invalid Poisson rate, expected rate to be non-negative": [x.values([-1.0])]},
        "binomial": {
            "ValueError: binomial only supports floating-point dtypes for count, got: Long": [whole([2, 4]), (2,)],
            "Found dtype Float but expected Double": [(2,), x(2, dtype=dtypes.float32)],
        },
        "multinomial": {
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement": [x.values([1.0, 2.0]), 3],
            "cannot sample n_sample <= 0 samples": [x.values([1.0, 2.0]), 0],
            "prob_dist must be 1 or 2 dim": [(1, 1, 1), 1],
            "invalid multinomial distribution (sum of probabilities <= 0)": [x.values([0.0, 0.0]), 1],
            "probability tensor contains either `inf`, `nan` or element < 0": [x.values([-1.0, 2.0]), 1],
            "multinomial only supports floating-point dtypes for input, got: Long": [x.index(2, below=3), 1],
        },
        "feature_dropout feature_alpha_dropout": NO_CHANNELS,
        "rrelu": {
            "Lower bound should be less than or equal to the upper bound": [(2,), 0.5, 0.25, True],
            "rrelu: upper bound must be finite, got inf": [(2,), 0.5, math.inf, True],
        },
        "rrelu_with_noise": {NOISE: [(2, 3), (2,), 0.25, 0.5, True]},
    },
    skips={
        TAKES_NO_TENSOR: "layouts subclass: normal.float_float rand rand.* randn randn.* randint randint.* randperm*",
        "PyTorch has no operator for it": "parity: bernoulli.float",
        "the bound is read, on the CPU": "meta: randint_like.Tensor*",
        "the gradient is declared to be zero": (
            "gradients second_gradients: poisson bernoulli bernoulli.* normal.*_Tensor normal.Tensor_float"
        ),
        "numbers that are drawn again jump: tests/ops/test_random.py": "gradients: _standard_gamma _sample_dirichlet",
        "its gradient has none; it has none in PyTorch, either": "second_gradients: _standard_gamma _sample_dirichlet",
    },
    flat="*[!n]_ multinomial binomial rand* normal.float_float *_gamma_grad normal_ random_.* bernoulli_.Tensor",
)

CREATION = [*FILLED, *RANGES, *RANDOM]
