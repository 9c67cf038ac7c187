"""Layers that are a function and a few numbers: linear maps, embeddings, activations, normalisation."""

import math

import numpy as np
import pytest

import redispatch as rd
import redispatch.nn.functional as F
from redispatch import nn
from redispatch.testing import assert_close

# Linear layers, embeddings and Flatten, against numpy -----------------------------------------------------------------

X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)


def test_linear_is_an_affine_map_with_uniform_weights():
    layer = nn.Linear(3, 5)
    expected = X @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    np.testing.assert_allclose(layer(rd.from_numpy(X)).detach().numpy(), expected, rtol=1e-5, atol=1e-6)
    assert layer.weight.abs().max().item() <= 1 / math.sqrt(3)
    assert nn.Linear(3, 5, bias=False).bias is None
    assert (
        nn.Linear(3, 5, dtype=rd.float64).weight.dtype is rd.float64 and nn.Linear(3, 5, device="meta").weight.is_meta
    )
    assert nn.Identity(3, a=4)(layer) is layer


def test_an_embedding_picks_rows_and_does_not_train_its_padding():
    layer = nn.Embedding(5, 3, padding_idx=-1)
    assert layer.weight[4].tolist() == [0, 0, 0] and repr(layer) == "Embedding(5, 3, padding_idx=4)"
    picked = layer(rd.tensor([[1, 4], [1, 0]]))
    assert picked.shape == (2, 2, 3) and picked[0, 0].tolist() == layer.weight[1].tolist()
    picked.sum().backward()
    assert layer.weight.grad[:, 0].tolist() == [1, 2, 0, 0, 0]
    with pytest.raises(AssertionError, match="Padding_idx must be within num_embeddings"):
        nn.Embedding(5, 3, padding_idx=5)
    table = rd.ones(2, 2)
    assert not nn.Embedding.from_pretrained(table).weight.requires_grad


def test_flatten_joins_all_but_the_first_dimension():
    assert nn.Flatten()(rd.ones(2, 3, 4)).shape == (2, 12)
    assert repr(nn.Flatten()) == "Flatten(start_dim=1, end_dim=-1)"


# Activation modules: each is the function of its name, with what it was made of, and shows that -----------------------

MODULES = [
    (nn.ELU(0.5), "ELU(alpha=0.5)", lambda x: F.elu(x, 0.5)),
    (nn.CELU(0.5), "CELU(alpha=0.5)", lambda x: F.celu(x, 0.5)),
    (nn.SELU(), "SELU()", F.selu),
    (nn.LeakyReLU(0.2), "LeakyReLU(negative_slope=0.2)", lambda x: F.leaky_relu(x, 0.2)),
    (nn.RReLU(0.25, 0.75).eval(), "RReLU(lower=0.25, upper=0.75)", lambda x: F.leaky_relu(x, 0.5)),
    (nn.PReLU(3, 0.5), "PReLU(num_parameters=3)", lambda x: F.leaky_relu(x, 0.5)),
    (nn.Threshold(0.1, 20), "Threshold(threshold=0.1, value=20)", lambda x: F.threshold(x, 0.1, 20)),
    (nn.Hardtanh(-2, 0.5), "Hardtanh(min_val=-2, max_val=0.5)", lambda x: x.clamp(-2, 0.5)),
    (nn.ReLU6(), "ReLU6()", lambda x: x.clamp(0, 6)),
    (nn.Hardsigmoid(), "Hardsigmoid()", lambda x: (x + 3).clamp(0, 6) / 6),
    (nn.Hardswish(), "Hardswish()", lambda x: x * (x + 3).clamp(0, 6) / 6),
    (nn.Hardshrink(0.25), "Hardshrink(0.25)", lambda x: x * (x.abs() > 0.25)),
    (nn.Softshrink(0.25), "Softshrink(0.25)", lambda x: F.softshrink(x, 0.25)),
    (nn.Tanhshrink(), "Tanhshrink()", lambda x: x - x.tanh()),
    (nn.Softmin(1), "Softmin(dim=1)", lambda x: (-x).softmax(1)),
    (nn.Softmax2d(), "Softmax2d()", lambda x: x.softmax(-3)),
    (nn.Softplus(2, 10), "Softplus(beta=2, threshold=10)", lambda x: (1 + (2 * x).exp()).log() / 2),
    (nn.LogSigmoid(), "LogSigmoid()", lambda x: x.sigmoid().log()),
    (nn.Mish(), "Mish()", lambda x: x * F.softplus(x).tanh()),
    (nn.Softsign(), "Softsign()", lambda x: x / (1 + x.abs())),
    (nn.ReLU(), "ReLU()", lambda x: x.clamp(min=0)),
    (nn.SiLU(), "SiLU()", lambda x: x * x.sigmoid()),
    (nn.GELU(), "GELU(approximate='none')", lambda x: x * (1 + (x / 2**0.5).erf()) / 2),
    (nn.GELU(approximate="tanh"), "GELU(approximate='tanh')", lambda x: F.gelu(x, approximate="tanh")),
    (nn.Sigmoid(), "Sigmoid()", rd.sigmoid),
    (nn.Tanh(), "Tanh()", rd.tanh),
    (nn.Softmax(dim=1), "Softmax(dim=1)", lambda x: x.softmax(1)),
    (nn.LogSoftmax(dim=1), "LogSoftmax(dim=1)", lambda x: x.log_softmax(1)),
    (nn.GLU(2), "GLU(dim=2)", lambda x: x[:, :, :2] * x[:, :, 2:].sigmoid()),
]


@pytest.mark.parametrize("module, shown, function", MODULES, ids=[type(module).__name__ for module, *_ in MODULES])
def test_a_module_is_its_function(module, shown, function):
    x = rd.randn(2, 3, 4, 2)
    np.testing.assert_allclose(module(x).detach().numpy(), function(x).numpy(), rtol=2e-5, atol=1e-6)
    assert repr(module) == shown


@pytest.mark.parametrize(
    "kind",
    "ReLU ELU CELU SELU LeakyReLU RReLU Hardtanh ReLU6 Hardsigmoid Hardswish Mish Threshold".split(),
)
def test_inplace_writes_over_the_input(kind):
    args = (0.1, 20.0) if kind == "Threshold" else ()
    x = rd.randn(3, 4)
    expected = getattr(nn, kind)(*args).eval()(x)
    module = getattr(nn, kind)(*args, inplace=True).eval()
    assert module(x) is x and rd.equal(x, expected)
    assert ("inplace=True" in repr(module)) == (kind not in ("Hardsigmoid", "Hardswish"))


def test_prelu_learns_its_slopes():
    module = nn.PReLU(2)
    module(-rd.ones(3, 2)).sum().backward()
    assert module.weight.grad.tolist() == [-3.0, -3.0]


def test_modules_refuse_what_makes_no_sense():
    with pytest.raises(AssertionError, match=r"max_val \(1\) must be greater than min_val \(3\)"):
        nn.Hardtanh(3, 1)
    with pytest.warns(FutureWarning, match="keyword argument `min_value` is deprecated and renamed to `min_val`"):
        assert nn.Hardtanh(min_value=-2).min_val == -2
    with pytest.raises(ValueError, match="Softmax2d: expected input to be 3D or 4D, got 1D instead"):
        nn.Softmax2d()(rd.ones(2))


# Normalisation layers: what each has mean 0 and variance 1 over, and the statistics that run along --------------------

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
    assert_close(nn.RMSNorm(2, eps=0)(x).square().mean(-1), rd.ones(4, 6, 5, 3))


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


# The backward pass of layer_norm over more rows than one block of its kernel takes ------------------------------------

# Op_db has the small cases.

rng = np.random.default_rng(0)


@pytest.mark.parametrize("rows", [1, 32, 33, 100])
@pytest.mark.parametrize("mask", [[True, True, True], [True, False, False], [False, True, False], [False, False, True]])
def test_the_gradients_of_many_rows_are_the_formulas(rows, mask):
    x, grad = rng.standard_normal((2, rows, 5)) + 3
    weight = rng.standard_normal(5)
    mean, rstd = x.mean(1, keepdims=True), 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    y, g = (x - mean) * rstd, grad * weight
    wanted = (
        rstd * (g - g.mean(1, keepdims=True) - y * (g * y).mean(1, keepdims=True)),
        (grad * y).sum(0),
        grad.sum(0),
    )
    tensors = [rd.from_numpy(array) for array in (grad, x, mean, rstd, weight)]
    grad, x, mean, rstd, weight = tensors
    found = rd.ops.aten.native_layer_norm_backward.default(grad, x, [5], mean, rstd, weight, weight, mask)
    assert [one is not None for one in found] == mask
    for one, value in zip(found, wanted, strict=True):
        if one is not None:
            assert_close(one, rd.from_numpy(value))


def test_statistics_that_are_not_tracked_any_more_stay():
    norm = nn.BatchNorm1d(2)
    norm.track_running_stats = False
    norm(rd.randn(4, 2))
    assert norm.num_batches_tracked == 0 and norm.running_mean.tolist() == [0, 0]


@pytest.mark.parametrize("shape, last", [((2, 4, 3, 3), rd.channels_last), ((2, 4, 2, 3, 3), rd.channels_last_3d)])
def test_group_norm_keeps_channels_last(shape, last):
    x = rd.randn(shape)
    result = nn.functional.group_norm(x.contiguous(memory_format=last), 2)
    assert result.is_contiguous(memory_format=last)
    assert_close(result, nn.functional.group_norm(x, 2))


def test_softplus_and_logsigmoid_write_where_told():
    x, out = rd.randn(3), rd.empty(3)
    for function in (nn.functional.softplus, nn.functional.logsigmoid):
        assert function(x, out=out) is out
        assert_close(out, function(x))
    with pytest.raises(RuntimeError, match="unsupported operation"):
        nn.functional.softplus(rd.ones(3), out=rd.ones(1).expand(3))


def test_layers_take_an_empty_batch():
    x = rd.randn(3, 0, 8, requires_grad=True)
    layer = nn.TransformerDecoderLayer(8, 2, 16)
    assert layer(x, x).shape == (3, 0, 8)


def test_an_lstm_of_an_older_pickle_has_no_projection():
    layer = nn.LSTM(2, 3)
    state = layer.__dict__.copy()
    del state["proj_size"]
    loaded = nn.LSTM(2, 3)
    loaded.__setstate__(state)
    x = rd.randn(4, 1, 2)
    assert_close(loaded(x)[0], layer(x)[0])
