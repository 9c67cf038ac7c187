"""Layers and losses, against numpy."""

import math

import numpy as np
import pytest

import redispatch as rd
from redispatch import nn

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


ERF = np.vectorize(math.erf)
ACTIVATIONS = [
    (nn.ReLU(), lambda x: np.maximum(x, 0), "ReLU()"),
    (nn.ReLU(inplace=True), lambda x: np.maximum(x, 0), "ReLU(inplace=True)"),
    (nn.SiLU(), lambda x: x / (1 + np.exp(-x)), "SiLU()"),
    (nn.GELU(), lambda x: x * (1 + ERF(x / math.sqrt(2))) / 2, "GELU(approximate='none')"),
    (
        nn.GELU(approximate="tanh"),
        lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
        "GELU(approximate='tanh')",
    ),
    (nn.Sigmoid(), lambda x: 1 / (1 + np.exp(-x)), "Sigmoid()"),
    (nn.Tanh(), np.tanh, "Tanh()"),
    (nn.Softmax(dim=1), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True), "Softmax(dim=1)"),
    (nn.LogSoftmax(dim=1), lambda x: x - np.log(np.exp(x).sum(1, keepdims=True)), "LogSoftmax(dim=1)"),
]


@pytest.mark.parametrize(("layer", "reference", "text"), ACTIVATIONS, ids=[case[2] for case in ACTIVATIONS])
def test_an_activation_is_its_function(layer, reference, text):
    np.testing.assert_allclose(layer(rd.from_numpy(X.copy())).numpy(), reference(X), rtol=1e-5, atol=1e-6)
    assert repr(layer) == text


@pytest.mark.parametrize(("reduction", "reduce"), [("mean", np.mean), ("sum", np.sum), ("none", lambda x: x)])
def test_a_loss_is_its_formula(reduction, reduce):
    y = X[::-1].copy()
    target = np.array([0, 2, 1, 2])
    logs = X - np.log(np.exp(X).sum(1, keepdims=True))
    cases = [
        (nn.MSELoss(reduction=reduction), X, y, (X - y) ** 2),
        (nn.L1Loss(reduction=reduction), X, y, np.abs(X - y)),
        (nn.NLLLoss(reduction=reduction), logs, target, -logs[range(4), target]),
        (nn.CrossEntropyLoss(reduction=reduction), X, target, -logs[range(4), target]),
    ]
    for loss, given, wanted, expected in cases:
        result = loss(rd.from_numpy(given), rd.from_numpy(wanted)).numpy()
        np.testing.assert_allclose(result, reduce(expected), rtol=1e-5, atol=1e-6)


def test_cross_entropy_weighs_ignores_and_smooths():
    weight, target = np.array([1.0, 2.0, 3.0], np.float32), np.array([0, 2, -100, 1])
    logs = X - np.log(np.exp(X).sum(1, keepdims=True))
    kept = target >= 0
    picked, share = -logs[kept, target[kept]], weight[target[kept]]
    loss = nn.CrossEntropyLoss(weight=rd.from_numpy(weight))
    assert list(loss.state_dict()) == ["weight"] and repr(loss) == "CrossEntropyLoss()"
    result = loss(rd.from_numpy(X), rd.from_numpy(target)).item()
    assert result == pytest.approx((picked * share).sum() / share.sum(), rel=1e-5)
    smooth = nn.CrossEntropyLoss(label_smoothing=0.3)(rd.from_numpy(X), rd.from_numpy(np.array([0, 2, 1, 1]))).item()
    expected = 0.7 * -logs[range(4), [0, 2, 1, 1]].mean() + 0.3 * -logs.mean()
    assert smooth == pytest.approx(expected, rel=1e-5)


def test_dropout_zeros_a_share_in_training_only():
    layer, ones = nn.Dropout(0.25), rd.ones(10000)
    rd.manual_seed(0)
    values = layer(ones).numpy()
    assert abs((values == 0).mean() - 0.25) < 0.02 and set(values) == {0.0, np.float32(1 / 0.75)}
    assert layer.eval()(ones).tolist() == ones.tolist()
    assert repr(layer) == "Dropout(p=0.25, inplace=False)"
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got 2"):
        nn.Dropout(2)


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


def test_layer_norm_gives_each_row_mean_0_and_variance_1():
    layer = nn.LayerNorm(3)
    expected = (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(layer(rd.from_numpy(X)).detach().numpy(), expected, rtol=1e-4, atol=1e-5)
    assert repr(layer) == "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)"
    assert nn.LayerNorm(3, elementwise_affine=False).weight is None and nn.LayerNorm((2, 3), bias=False).bias is None
