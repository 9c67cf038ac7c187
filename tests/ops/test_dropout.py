"""Dropout in all its forms, rrelu and gumbel_softmax: what is left out, what becomes of the rest, and gradients."""

import math

import numpy as np
import pytest

import redispatch as rd
import redispatch.nn.functional as F
from redispatch import nn

pytestmark = pytest.mark.usefixtures("seeded")


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
