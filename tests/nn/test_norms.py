"""Normalisation layers: what each has mean 0 and variance 1 over, and the statistics that run along."""

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.testing import assert_close

x = rd.randn(4, 6, 5, 3, 2, generator=rd.Generator().manual_seed(0)) * 2 + 1


@pytest.mark.parametrize(
    "layer, input, dims",
    [
        (nn.BatchNorm1d(6), x[..., 0, 0, 0], (0,)),
        (nn.BatchNorm1d(6), x[..., 0, 0], (0, 2)),
        (nn.BatchNorm2d(6), x[..., 0], (0, 2, 3)),
        (nn.BatchNorm3d(6), x, (0, 2, 3, 4)),
        (nn.InstanceNorm1d(6), x[..., 0, 0], (2,)),
        (nn.InstanceNorm2d(6), x[..., 0], (2, 3)),
        (nn.InstanceNorm2d(6), x[0, ..., 0], (1, 2)),
        (nn.InstanceNorm3d(6), x, (2, 3, 4)),
        (nn.LayerNorm((3, 2)), x, (3, 4)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_the_result_has_mean_zero_and_variance_one(layer, input, dims):
    result = layer(input)
    zeros = rd.zeros_like(result.mean(dims))
    assert_close(result.mean(dims), zeros, rtol=0, atol=1e-5)
    assert_close(result.var(dims, correction=0), zeros + 1, rtol=0, atol=1e-3)


def test_groups_of_channels_are_normalised_together():
    result = nn.GroupNorm(2, 6)(x).unflatten(1, (2, 3))
    assert_close(result.mean((2, 3, 4, 5)), rd.zeros(4, 2), rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match=r"num_channels \(6\) must be divisible by num_groups \(4\)"):
        nn.GroupNorm(4, 6)


def test_rms_norm_gives_rows_whose_mean_square_is_one():
    assert_close(nn.RMSNorm(2)(x).square().mean(-1), rd.ones(4, 6, 5, 3), rtol=0, atol=1e-4)


@pytest.mark.parametrize("momentum, share", [(0.1, 0.1), (None, 1.0)])
def test_running_statistics_follow_the_batches_and_serve_in_evaluation(momentum, share):
    layer, input = nn.BatchNorm1d(6, momentum=momentum), x[..., 0, 0, 0]
    layer(input)
    assert layer.num_batches_tracked.item() == 1
    assert_close(layer.running_mean, share * input.mean(0))
    assert_close(layer.running_var, (1 - share) + share * input.var(0))
    layer.eval()
    wanted = (input - layer.running_mean) / (layer.running_var + layer.eps).sqrt()
    assert_close(layer(input), wanted)
    assert layer.num_batches_tracked.item() == 1


def test_statistics_and_weights_are_optional():
    layer = nn.BatchNorm2d(6, affine=False, track_running_stats=False).eval()
    assert list(layer.state_dict()) == []
    assert_close(layer(x[..., 0]).mean((0, 2, 3)), rd.zeros(6), rtol=0, atol=1e-5)
    assert list(nn.BatchNorm2d(6, bias=False).state_dict())[0] == "weight"
    assert nn.BatchNorm2d(6, bias=False).bias is None


def test_checkpoints_of_the_first_version_have_no_count_of_batches():
    layer = nn.BatchNorm1d(6)
    saved = layer.state_dict()
    del saved["num_batches_tracked"]
    saved._metadata[""]["version"] = 1
    assert str(layer.load_state_dict(saved)) == "<All keys matched successfully>"


def test_averaged_models_get_the_statistics_of_all_batches():
    layer, batches = nn.BatchNorm1d(6), [x[:2, ..., 0, 0, 0], x[2:, ..., 0, 0, 0]]
    rd.optim.swa_utils.update_bn(batches, layer)
    assert_close(layer.running_mean, x[..., 0, 0, 0].mean(0))
    assert layer.momentum == 0.1
