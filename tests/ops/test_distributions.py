"""Drawn numbers have their distributions: means, variances, and the largest distance of distribution functions."""

import math

import numpy as np
import pytest

import redispatch as rd

N = 40_000
FAR = 1.95 / math.sqrt(N)  # Kolmogorov and Smirnov: exceeded once in a thousand times


pytestmark = pytest.mark.usefixtures("seeded")


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
    assert drawn[0] == 0 and drawn[1].isnan() and drawn[2] == math.inf and drawn[3].isnan()


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
