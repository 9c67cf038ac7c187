"""Drawn numbers: their generators, their distributions, and what dropout leaves out."""

import math
import threading

import numpy as np
import pytest

import redispatch as rd
import redispatch.nn.functional as F
from redispatch import nn
from redispatch.kernels import get_num_threads, set_num_threads
from redispatch.kernels.ops.generators import fork_rng

# Random numbers -------------------------------------------------------------------------------------------------------

# Reproducible, the same on any number of threads, never drawn twice, and distributed as they say.

pytestmark = pytest.mark.usefixtures("seeded")


def generator(seed=0):
    return rd.Generator().manual_seed(seed)


def test_a_seed_gives_the_same_numbers_and_goes_on():
    a, b = generator(), generator()
    assert rd.rand(5, generator=a).tolist() == rd.rand(5, generator=b).tolist()
    first, second = rd.rand(5, generator=a).tolist(), rd.rand(5, generator=generator()).tolist()
    assert first != second


def test_the_number_of_threads_changes_nothing():
    before = get_num_threads()
    try:
        drawn = []
        for count in (1, 2):
            set_num_threads(count)
            drawn.append(rd.randn(300_000, generator=generator()).numpy())
        np.testing.assert_array_equal(*drawn)
    finally:
        set_num_threads(before)


def test_threads_that_share_a_generator_draw_different_numbers():
    shared, drawn = generator(), []
    threads = [
        threading.Thread(target=lambda: drawn.append(rd.rand(500, generator=shared, dtype=rd.float64)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = np.sort(np.concatenate([d.numpy() for d in drawn]))
    whole = np.sort(rd.rand(4000, generator=generator(), dtype=rd.float64).numpy())
    np.testing.assert_array_equal(numbers, whole)


def test_states_are_bytes_and_come_back():
    state = rd.get_rng_state()
    assert state.dtype is rd.uint8
    first = rd.rand(3).tolist()
    rd.set_rng_state(state)
    assert rd.rand(3).tolist() == first
    with fork_rng():
        rd.rand(100)
    again = rd.rand(3).tolist()
    rd.set_rng_state(state)
    rd.rand(3)
    assert rd.rand(3).tolist() == again
    with pytest.raises(TypeError, match="RNG state must be a torch.ByteTensor"):
        rd.set_rng_state(rd.ones(2))


def test_moments():
    n = 100_000
    assert rd.rand(n).mean().item() == pytest.approx(0.5, abs=5e-3)
    x = rd.randn(n)
    assert x.mean().item() == pytest.approx(0, abs=1e-2) and x.std().item() == pytest.approx(1, abs=1e-2)
    assert rd.empty(n).exponential_(2.0).mean().item() == pytest.approx(0.5, abs=1e-2)
    assert rd.bernoulli(rd.full((n,), 0.3)).mean().item() == pytest.approx(0.3, abs=1e-2)
    assert rd.normal(rd.full((n,), 5.0), 2.0).std().item() == pytest.approx(2, abs=3e-2)
    integers = rd.randint(-2, 3, (n,))
    assert sorted(set(integers.tolist())) == [-2, -1, 0, 1, 2] and integers.dtype is rd.int64


@pytest.mark.parametrize("n", [0, 1, 10])
def test_a_permutation_holds_each_number_once(n):
    assert sorted(rd.randperm(n).tolist()) == list(range(n))


def test_dropout_keeps_the_mean():
    x = rd.ones(50_000, requires_grad=True)
    y = rd.nn.functional.dropout(x, 0.25)
    values = y.detach()
    assert set(np.round(np.unique(values.numpy()), 5)) == {0, np.float32(1.33333)}
    assert values.mean().item() == pytest.approx(1, abs=2e-2)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), values.numpy())
    assert rd.nn.functional.dropout(x, 0.5, training=False) is x
    assert rd.nn.functional.dropout(x, 1.0).sum().item() == 0


def test_native_dropout_gives_its_mask():
    x = rd.ones(1000, requires_grad=True)
    y, mask = rd.ops.aten.native_dropout.default(x, 0.5, True)
    np.testing.assert_array_equal(y.detach().numpy(), mask.numpy() * 2)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), mask.numpy() * 2)


def test_a_fill_keeps_no_gradient_of_the_former_value():
    x = rd.ones(3, requires_grad=True)
    (x * 2).normal_().sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


# Drawn numbers have their distributions -------------------------------------------------------------------------------

# Means, variances, and the largest distance of distribution functions.

N = 40_000
FAR = 1.95 / math.sqrt(N)  # Kolmogorov and Smirnov: exceeded once in a thousand times


def distance(drawn, function):
    """The largest difference between the share of numbers up to x and what it should be."""
    x = np.sort(drawn.numpy().astype(float))
    expected = function(x)
    share = np.arange(N + 1) / N
    return max(np.abs(share[1:] - expected).max(), np.abs(share[:-1] - expected).max())


def test_cauchy_numbers():
    drawn = rd.empty(N, dtype=rd.float64).cauchy_(1.0, 2.0)
    assert distance(drawn, lambda x: 0.5 + np.arctan((x - 1) / 2) / math.pi) < FAR


def test_the_logarithms_of_log_normal_numbers_are_normal():
    drawn = rd.empty(N, dtype=rd.float64).log_normal_(0.5, 0.25)
    assert distance(drawn.log(), lambda x: rd.special.ndtr(rd.from_numpy((x - 0.5) / 0.25)).numpy()) < FAR


def chi_square(drawn, probability, counts):
    """The sum of squared differences from what is expected of these counts, over what is expected."""
    found = np.array([(drawn.numpy() == k).sum() for k in counts])
    expected = N * np.array([probability(k) for k in counts])
    return ((found - expected) ** 2 / expected).sum()


def test_geometric_numbers_count_trials_from_one_on():
    drawn = rd.empty(N, dtype=rd.int64).geometric_(0.3)
    assert drawn.min().item() == 1
    assert chi_square(drawn, lambda k: 0.3 * 0.7 ** (k - 1), range(1, 15)) < 37  # once in a thousand times


@pytest.mark.parametrize("rate", [0.3, 7.5, 60.0, 900.0])
def test_poisson_numbers(rate):
    drawn = rd.poisson(rd.full((N,), rate, dtype=rd.float64))
    near = range(max(0, int(rate - 2 * math.sqrt(rate))), int(rate + 2 * math.sqrt(rate)) + 2)
    limit = len(near) + 4 * math.sqrt(2 * len(near)) + 4
    assert chi_square(drawn, lambda k: math.exp(k * math.log(rate) - rate - math.lgamma(k + 1)), near) < limit
    assert abs(drawn.mean().item() - rate) < 4 * math.sqrt(rate / N)
    assert abs(drawn.var().item() / rate - 1) < 0.05


@pytest.mark.parametrize("n, p", [(5, 0.2), (40, 0.5), (1000, 0.01), (1000, 0.97)])
def test_binomial_numbers(n, p):
    drawn = rd.binomial(rd.full((N,), float(n), dtype=rd.float64), rd.tensor(p, dtype=rd.float64))
    middle, spread = n * p, math.sqrt(n * p * (1 - p))
    near = range(max(0, int(middle - 2 * spread)), min(n, int(middle + 2 * spread) + 1) + 1)
    limit = len(near) + 4 * math.sqrt(2 * len(near)) + 4
    assert chi_square(drawn, lambda k: math.comb(n, k) * p**k * (1 - p) ** (n - k), near) < limit
    assert abs(drawn.mean().item() - middle) < 4 * spread / math.sqrt(N)
    assert drawn.min().item() >= 0 and drawn.max().item() <= n


def test_counts_where_nothing_is_left_to_chance():
    assert rd.poisson(rd.zeros(3)).tolist() == [0, 0, 0]
    assert rd.binomial(rd.tensor([7.0, 7.0, 0.0]), rd.tensor([0.0, 1.0, 0.5])).tolist() == [0, 7, 0]


def test_categories_come_as_often_as_they_weigh():
    weights = rd.tensor([1.0, 0.0, 3.0, 4.0], dtype=rd.float64)
    drawn = rd.multinomial(weights, N, replacement=True)
    shares = np.bincount(drawn.numpy(), minlength=4) / N
    np.testing.assert_allclose(shares, [1 / 8, 0, 3 / 8, 4 / 8], atol=0.01)
    first = rd.multinomial(weights.expand(N, 4), 2)[:, 0]
    np.testing.assert_allclose(np.bincount(first.numpy(), minlength=4) / N, [1 / 8, 0, 3 / 8, 4 / 8], atol=0.01)


def test_without_replacement_no_category_comes_twice_and_those_without_weight_come_last():
    weights = rd.tensor([[1.0, 2.0, 3.0, 0.0]]).expand(500, 4)
    drawn = rd.multinomial(weights, 4).numpy()
    assert (np.sort(drawn, 1) == np.arange(4)).all() and (drawn[:, 3] == 3).all()


def test_a_generator_of_ones_own_gives_the_same_numbers_again():
    def draw():
        generator = rd.Generator().manual_seed(3)
        x = rd.ones(5)
        return [
            rd.poisson(x * 4, generator=generator).tolist(),
            rd.binomial(x * 9, x / 3, generator=generator).tolist(),
            rd.multinomial(x, 3, generator=generator).tolist(),
            rd.empty(5).cauchy_(generator=generator).tolist(),
        ]

    assert draw() == draw()


@pytest.mark.parametrize("a", [0.05, 0.9, 1.0, 7.5, 400.0])
def test_gamma_numbers(a):
    from scipy.special import gammainc

    drawn = rd._standard_gamma(rd.full((N,), a, dtype=rd.float64))
    assert distance(drawn, lambda x: gammainc(a, x)) < FAR


def test_gamma_numbers_of_no_shape_parameter():
    drawn = rd._standard_gamma(rd.tensor([0.0, -1.0, math.inf, math.nan]))
    assert drawn[0] == rd.finfo(rd.float32).tiny and drawn[1].isnan() and drawn[2] == math.inf and drawn[3].isnan()


def test_gamma_numbers_move_with_their_shape_parameter_as_their_quantiles_do():
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(30):
        for a in (0.01, 0.5, 1.0, 3.7, 50.0):
            for x in (1e-4 * a, 0.3 * a, a, a + 0.9, a + 1.5, 2 * a + 3, 3 * a + 8):
                density = mpmath.mpf(x) ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a)
                moved = mpmath.diff(lambda t, x=x: mpmath.gammainc(t, 0, x, regularized=True), a)
                got = rd._standard_gamma_grad(rd.tensor(a, dtype=rd.float64), rd.tensor(x, dtype=rd.float64))
                assert got.item() == pytest.approx(float(-moved / density), rel=1e-11)


def test_the_mean_of_gamma_numbers_moves_with_their_shape_parameter():
    a = rd.full((N,), 2.5, dtype=rd.float64, requires_grad=True)
    rd._standard_gamma(a).sum().backward()
    assert a.grad.mean().item() == pytest.approx(1, abs=0.02)  # the mean is the parameter itself


# Dropout in all its forms, rrelu and gumbel_softmax -------------------------------------------------------------------

# What is left out, what becomes of the rest, and gradients.


def test_alpha_dropout_keeps_mean_and_variance_of_normal_numbers():
    x = rd.randn(200_000, dtype=rd.float64)
    for p in (0.1, 0.5, 0.9):
        y = F.alpha_dropout(x, p, training=True)
        assert abs(y.mean().item()) < 0.02
        assert abs(y.var().item() - 1) < 0.03


def test_alpha_dropout_puts_one_value_in_the_place_of_what_it_leaves_out():
    x = rd.randn(1000, dtype=rd.float64)
    y = F.alpha_dropout(x, 0.5, training=True)
    scale = 1 / math.sqrt((1 + 0.5 * 1.7580993408473766**2) * 0.5)
    shift = 1.7580993408473766 * scale * 0.5
    left_out = (y - (x * scale + shift)).abs() > 1e-9
    assert 400 < left_out.sum().item() < 600
    np.testing.assert_allclose(y[left_out].numpy(), -1.7580993408473766 * scale + shift, rtol=1e-12)


@pytest.mark.parametrize("function", [F.dropout1d, F.dropout2d, F.dropout3d])
def test_whole_channels_are_left_out(function):
    dims = int(function.__name__[-2])
    x = rd.ones(20, 30, *[2] * dims)
    y = function(x, 0.25)
    channels = y.reshape(600, -1).numpy()
    assert (channels == channels[:, :1]).all()
    assert set(np.unique(channels)) == {0, np.float32(1 / 0.75)}
    assert 0.65 < (channels[:, 0] != 0).mean() < 0.85
    alone = function(x[0], 0.25) if dims != 2 else function(x[:1], 0.25)
    assert alone.shape == (x[0] if dims != 2 else x[:1]).shape
    assert function(x, 0.25, training=False) is x
    assert function(x, 0.25, inplace=True) is x


def test_dropouts_refuse_what_is_no_probability_and_inputs_of_the_wrong_shape():
    for function in (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout):
        with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got 2"):
            function(rd.ones(2, 2), 2)
    with pytest.raises(RuntimeError, match="dropout1d: Expected 2D or 3D input, but received a 1D input."):
        F.dropout1d(rd.ones(2))
    with pytest.warns(UserWarning, match="dropout2d: Received a 3D input to dropout2d and assuming"):
        F.dropout2d(rd.ones(2, 2, 2))
    with pytest.warns(UserWarning, match="dropout3d: Received a 3-D input to dropout3d, which is deprecated"):
        F.dropout3d(rd.ones(2, 2, 2))


def test_rrelu_draws_its_slopes_evenly_and_remembers_them():
    x, noise = -rd.ones(100_000, dtype=rd.float64), rd.zeros(100_000, dtype=rd.float64)
    x[0] = 3.0
    y = rd.ops.aten.rrelu_with_noise.default(x, noise, 0.25, 0.75, True)
    assert noise[0].item() == 1.0 and y[0].item() == 3.0
    assert rd.equal(y, x * noise)
    slopes = noise[1:].numpy()
    assert slopes.min() >= 0.25 and slopes.max() < 0.75
    counts, _ = np.histogram(slopes, 10, (0.25, 0.75))
    assert np.abs(counts - 10_000).max() < 500
    assert noise._version == 0 and noise.grad_fn is None


@pytest.mark.parametrize("inplace", [False, True])
def test_the_gradient_of_rrelu_is_by_the_slopes_that_were_drawn(inplace):
    x = rd.tensor([-1.0, 2.0, -4.0], requires_grad=True)
    y = F.rrelu(x * 1, 0.25, 0.75, training=True, inplace=inplace)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.detach().numpy() / x.detach().numpy(), rtol=1e-6)
    assert type(y.grad_fn).__name__ == f"RreluWithNoiseBackward{int(inplace)}"


def test_rrelu_without_training_has_the_mean_slope():
    assert F.rrelu(rd.tensor([-1.0, 2.0]), 0.25, 0.75).tolist() == [-0.5, 2.0]


def test_gumbel_softmax_chooses_with_the_probabilities_of_softmax():
    logits = rd.tensor([0.1, 0.6, 0.3], dtype=rd.float64).log().expand(50_000, 3)
    hard = F.gumbel_softmax(logits, hard=True)
    assert set(np.unique(hard.numpy().round(12))) == {0.0, 1.0}
    np.testing.assert_allclose(hard.mean(0).numpy(), [0.1, 0.6, 0.3], atol=0.02)
    soft = F.gumbel_softmax(logits, tau=0.5)
    np.testing.assert_allclose(soft.sum(1).numpy(), 1.0)


def test_gradients_pass_a_hard_choice():
    logits = rd.randn(4, 3, requires_grad=True)
    (F.gumbel_softmax(logits, hard=True)[:, 0]).sum().backward()
    assert (logits.grad != 0).all()


@pytest.mark.parametrize(
    "kind", ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]
)
def test_dropout_modules_leave_out_in_training_only(kind):
    module = getattr(nn, kind)(0.4)
    x = rd.randn(6, 7, *[2] * int(kind[-2])) if kind[-2].isdigit() else rd.randn(6, 7)
    assert repr(module) == f"{kind}(p=0.4, inplace=False)"
    assert not rd.equal(module(x), x)
    assert rd.equal(module.eval()(x), x)
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got 2"):
        getattr(nn, kind)(2)


# Points that fill the cube evenly -------------------------------------------------------------------------------------


def test_sobol_points_are_those_of_the_sequence():
    engine = rd.quasirandom.SobolEngine(3)
    assert engine.draw(4).tolist() == [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    assert engine.quasi.tolist() == [2**28, 3 * 2**28, 3 * 2**28] and engine.num_generated == 4
    later = engine.fast_forward(1).draw(3, dtype=rd.float64)
    assert rd.equal(later, engine.reset().draw(8, dtype=rd.float64)[5:])
    with pytest.raises(ValueError, match="8\\+2\\*\\*2=12. If you still"):
        engine.draw_base2(2)
    with pytest.raises(ValueError, match="\\[1, 21201\\]"):
        rd.quasirandom.SobolEngine(21202)


def test_scrambled_sobol_points_are_pytorchs_for_a_seed():
    engine = rd.quasirandom.SobolEngine(2, scramble=True, seed=123456)
    expected = [[0.50860737, 0.29320504], [0.07116939, 0.89594537], [0.49354145, 0.11524881]]
    assert np.allclose(engine.draw(3), expected)
    cells = (rd.quasirandom.SobolEngine(50, scramble=True).draw_base2(6) * 64).long()
    assert all(sorted(column) == list(range(64)) for column in cells.T.tolist())  # one point in each 64th
    assert repr(engine) == "SobolEngine(dimension=2, scramble=True, seed=123456)"
