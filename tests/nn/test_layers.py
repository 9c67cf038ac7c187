"""Linear layers, embeddings and Flatten, against numpy."""

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
