"""Samples of kernels/ops/random.py, distributions.py, dropout.py and rrelu.py.

What a generator draws is nobody's to predict, so the reference says what can be known: the shape, and a range. It
gives the lowest and the highest value that may come, and the test looks whether all lie between.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import ALL, FLOATS, INTEGERS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .creation import FRESH

DRAWN = {
    "reference": "what it draws is not given by its arguments",
    "bfloat16": "what it draws is not given by its arguments",
    "layouts": "which number goes where depends on the layout",
    "subclass": "the two halves of a TwoTensor draw different numbers",
    "parity": "PyTorch draws other numbers from the same seed",
}
FRESH_DRAWN = DRAWN | FRESH
VALUELESS = DRAWN


def sizes(*args: Any, **kwargs: Any) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for size in ([2, 3], [], [0, 3]):
            yield sample(*args, size, dtype=make.dtype, **kwargs)

    return samples


def filled(*args: Any) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in ((2, 3), (), (0, 3)):
            yield sample(make(*shape).detach(), *args)

    return samples


def like(*args: Any) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for x in (make(2, 3), make(2, 3).detach().t(), make(), make(0, 3)):
            yield sample(x, *args)

    return samples


def counts(make: Maker, **kwargs: Any) -> Iterator[SampleInput]:
    for n in (5, 1, 0):
        yield sample(n, dtype=make.dtype, **kwargs)


def without_generator(samples: Any) -> Any:
    """With `generator=None`: the default one."""

    def with_none(make: Maker) -> Iterator[SampleInput]:
        for s in samples(make):
            yield SampleInput(s.input, s.args, {**s.kwargs, "generator": None})

    return with_none


def probabilities(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape, low=0, high=1))


def probability_tensors(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3).detach(), make(2, 3, low=0, high=1, dtype=dtypes.float32).detach())


def means(kinds: str) -> Any:
    """`normal(mean, std)` with a tensor ("t") or a number ("n") for each of the two."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in ((2, 3), (), (0, 3)):
            yield sample(*(make(*shape, low=0.5, high=2) if kind == "t" else 1.5 for kind in kinds))

    return samples


def drawn(name: str, samples: Any, dtypes: Any = FLOATS, skips: Any = DRAWN, **options: Any) -> OpInfo:
    return OpInfo(name, samples, None, dtypes, random=True, skips=skips, **{"gradients": False, **options})


def fresh(name: str, samples: Any, dtypes: Any = FLOATS) -> list[OpInfo]:
    """A factory and its overload that takes a generator."""
    stem, dot, overload = name.partition(".")
    with_generator = f"{stem}.{overload}_generator" if overload else f"{stem}.generator"
    return [
        drawn(name, samples, dtypes, FRESH_DRAWN),
        drawn(with_generator, without_generator(samples), dtypes, FRESH_DRAWN),
    ]


def moved(name: str, samples: Any, **options: Any) -> OpInfo:
    """An operator whose results are recorded, and whose gradient is declared to be zero."""
    return drawn(
        name,
        samples,
        skips=DRAWN
        | {
            "gradients": "the gradient is declared to be zero",
            "second_gradients": "the gradient is declared to be zero",
        },
        gradients=True,
        **options,
    )


# --- dropout ----------------------------------------------------------------------------------------------------------


def dropouts(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape), 0.5, True)
    yield sample(make(2, 3), 0.5, False)
    yield sample(make(2, 3), 0.0, True)
    yield sample(make(2, 3), 1.0, True)


def channel_dropouts(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (2, 3, 2), (0, 3)):
        yield sample(make(*shape), 0.5, True)
    yield sample(make(3), 0.5, False)
    yield sample(make(2, 3), 1.0, True)


def no_channels(make: Maker) -> Iterator[ErrorInput]:
    text = "Feature dropout requires at least 2 dimensions in the input"
    yield ErrorInput(sample(make(3), 0.5, True), RuntimeError, text)
    yield ErrorInput(
        sample(make(2, 3), 1.5, True), RuntimeError, "dropout probability has to be between 0 and 1, but got 1.5"
    )


def dropout_gradients(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape), make.mask(*shape), 2.0)


def dropout_gradient(grad_output: Any, mask: Any, scale: float) -> Any:
    return grad_output * mask * scale


# --- further distributions --------------------------------------------------------------------------------------------


def rates(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape, low=0, high=30))


def shapes_of_gamma(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape, low=0.25, high=5))


def gamma_numbers(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape, low=0.5, high=3).detach(), make(*shape, low=0.5, high=6).detach())


def slope_of_gamma(a: Any, x: Any) -> Any:
    """By differences: where the same quantile is for a little more and a little less."""
    from scipy.special import gammainc, gammaincinv  # here, because it takes long to import, and few programs need it

    a, x = np.asarray(a, np.float64), np.asarray(x, np.float64)
    quantile, step = gammainc(a, x), 1e-4
    return (gammaincinv(a + step, quantile) - gammaincinv(a - step, quantile)) / (2 * step)


NO_SECOND = {"second_gradients": "its gradient has none; it has none in PyTorch, either"}


def trials(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape, low=0, high=30).detach(), make(*shape, low=0, high=1).detach())


def negative_rate(make: Maker) -> Iterator[ErrorInput]:
    text = "invalid Poisson rate, expected rate to be non-negative"
    yield ErrorInput(sample(make.values([-1.0])), RuntimeError, text)


def whole_trials(make: Maker) -> Iterator[ErrorInput]:
    text = "binomial only supports floating-point dtypes for count, got: Long"
    yield ErrorInput(sample(make.index(2, below=5), make(2, low=0, high=1)), ValueError, text)
    text = "Found dtype Float but expected Double"
    yield ErrorInput(sample(make(2), make(2, dtype=dtypes.float32)), RuntimeError, text)


def weights(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(4, low=0.5, high=2), 3)
    yield sample(make(2, 3, low=0.5, high=2), 2)
    yield sample(make(2, 3, low=0.5, high=2), 5, True)
    yield sample(make(0, 3), 2)


def bad_weights(make: Maker) -> Iterator[ErrorInput]:
    x = make.values([1.0, 2.0])
    text = "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
    yield ErrorInput(sample(x, 3), RuntimeError, text)
    yield ErrorInput(sample(x, 0), RuntimeError, "cannot sample n_sample <= 0 samples")
    yield ErrorInput(sample(make(1, 1, 1), 1), RuntimeError, "prob_dist must be 1 or 2 dim")
    text = "invalid multinomial distribution (sum of probabilities <= 0)"
    yield ErrorInput(sample(make.values([0.0, 0.0]), 1), RuntimeError, text)
    text = "probability tensor contains either `inf`, `nan` or element < 0"
    yield ErrorInput(sample(make.values([-1.0, 2.0]), 1), RuntimeError, text)
    text = "multinomial only supports floating-point dtypes for input, got: Long"
    yield ErrorInput(sample(make.index(2, below=3), 1), RuntimeError, text)


# --- rrelu ------------------------------------------------------------------------------------------------------------


def rrelus(make: Maker) -> Iterator[SampleInput]:
    for training in (True, False):  # without training, nothing is written into the noise, which is what memory held
        for shape in ((2, 3), (), (0, 3)):
            yield sample(make(*shape, exclude_zero=True), 0.25, 0.5, training)


def rrelus_with_noise(make: Maker) -> Iterator[SampleInput]:
    for s in rrelus(make):
        yield sample(s.input, make(*s.input.shape).detach(), *s.args)


def rrelu_gradients(make: Maker) -> Iterator[SampleInput]:
    for training in (False, True):
        for shape in ((2, 3), (), (0, 3)):
            x = make(*shape, exclude_zero=True)
            yield sample(make(*shape), x, make(*shape, low=0.25, high=0.5).detach(), 0.25, 0.5, training, False)


def rrelu_slope(grad: Any, self: Any, noise: Any, lower: float, upper: float, training: bool, of_result: bool) -> Any:
    return grad * (noise if training else np.where(self > 0, 1, (lower + upper) / 2))


def rrelu_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "Lower bound should be less than or equal to the upper bound"
    yield ErrorInput(sample(make(2), 0.5, 0.25, True), RuntimeError, text)
    text = "rrelu: upper bound must be finite, got inf"
    yield ErrorInput(sample(make(2), 0.5, float("inf"), True), RuntimeError, text)


def noise_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "noise tensor shape must match self tensor shape. Got self.shape = [2, 3] noise.shape = [2]"
    yield ErrorInput(sample(make(2, 3), make(2), 0.25, 0.5, True), RuntimeError, text)


RANDOM = [
    drawn("uniform_", filled(-1, 2)),
    drawn("normal_", filled(1, 2)),
    drawn("exponential_", filled(2)),
    drawn("cauchy_", filled(1, 2)),
    drawn("log_normal_", filled(1, 0.5)),
    drawn("geometric_", filled(0.25), NUMBERS),
    moved("poisson", rates, errors=negative_rate),
    drawn("binomial", trials, errors=whole_trials),
    drawn(
        "_standard_gamma",
        shapes_of_gamma,
        skips=DRAWN | NO_SECOND | {"gradients": "numbers that are drawn again jump: tests/ops/test_distributions.py"},
        gradients=True,
    ),
    OpInfo(
        "_standard_gamma_grad",
        gamma_numbers,
        slope_of_gamma,
        FLOATS,
        gradients=False,
        tolerance={"float64": (1e-6, 1e-6)},  # of the differences that it is compared with
    ),
    drawn("multinomial", weights, errors=bad_weights),
    drawn("bernoulli_.Tensor", probability_tensors, ALL),
    drawn("random_", filled(), NUMBERS),
    drawn("random_.from", filled(-3, 3), NUMBERS),
    drawn("random_.to", filled(5), NUMBERS),
    *fresh("rand", sizes()),
    *fresh("randn", sizes()),
    *fresh("randint", sizes(5), NUMBERS),
    *fresh("randint.low", sizes(-2, 5), NUMBERS),
    *fresh("randperm", counts, INTEGERS),
    drawn("rand_like", like()),
    drawn("randn_like", like()),
    drawn("randint_like", like(5), NUMBERS),
    drawn("randint_like.low_dtype", like(-2, 5), NUMBERS),
    moved("bernoulli", probabilities),
    moved("bernoulli.p", like(0.5)),
    moved("normal.Tensor_float", means("tn")),
    moved("normal.float_Tensor", means("nt")),
    moved("normal.Tensor_Tensor", means("tt")),
    drawn("normal.float_float", sizes(0.5, 2.0), skips=FRESH_DRAWN),
    OpInfo("dropout", dropouts, None, FLOATS, random=True, skips=DRAWN),
    OpInfo("alpha_dropout", dropouts, None, FLOATS, random=True, skips=DRAWN),
    OpInfo("feature_dropout", channel_dropouts, None, FLOATS, random=True, skips=DRAWN, errors=no_channels),
    OpInfo("feature_alpha_dropout", channel_dropouts, None, FLOATS, random=True, skips=DRAWN, errors=no_channels),
    OpInfo("native_dropout", dropouts, None, FLOATS, random=True, skips=DRAWN),
    OpInfo("rrelu", rrelus, None, FLOATS, random=True, skips=DRAWN, errors=rrelu_errors),
    OpInfo("rrelu_with_noise", rrelus_with_noise, None, FLOATS, random=True, skips=DRAWN, errors=noise_errors),
    OpInfo("rrelu_with_noise_backward", rrelu_gradients, rrelu_slope, FLOATS),
    OpInfo("native_dropout_backward", dropout_gradients, dropout_gradient, FLOATS),
]
