"""Recurrent layers: sequences with and without a batch, in both directions, step by step; and what they refuse."""

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.testing import assert_close

KINDS = [nn.RNN, nn.GRU, nn.LSTM]
CELLS = {nn.RNN: nn.RNNCell, nn.GRU: nn.GRUCell, nn.LSTM: nn.LSTMCell}


def states(last):
    return last if isinstance(last, tuple) else (last,)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_is_its_cell_repeated(kind, bias):
    layer, cell = kind(2, 3, bias=bias), CELLS[kind](2, 3, bias=bias)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    x, state = rd.randn(4, 5, 2), None
    result, last = layer(x)
    for time in range(4):
        state = cell(x[time], state)
        assert_close(result[time], states(state)[0])
    for one, other in zip(states(last), states(state), strict=True):
        assert_close(one[0], other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_backward_direction_is_a_forward_one_of_the_reversed_sequence(kind):
    both, one = kind(2, 3, bidirectional=True), kind(2, 3)
    saved = both.state_dict()
    one.load_state_dict({name: saved[f"{name}_reverse"] for name in one.state_dict()})
    x = rd.randn(4, 5, 2)
    assert_close(both(x)[0][..., 3:], one(x.flip(0))[0].flip(0))


@pytest.mark.parametrize("kind", KINDS)
def test_where_the_batch_is_makes_no_difference(kind):
    layer, other = kind(2, 3, 2), kind(2, 3, 2, batch_first=True)
    other.load_state_dict(layer.state_dict())
    x = rd.randn(4, 5, 2)
    assert_close(layer(x)[0], other(x.transpose(0, 1))[0].transpose(0, 1))
    alone, last = layer(x[:, 1])
    assert_close(alone, layer(x)[0][:, 1])
    assert [state.shape for state in states(last)] == [(2, 3)] * len(states(last))


def test_an_lstm_with_projections_shows_narrower_states():
    layer = nn.LSTM(2, 5, 2, proj_size=3)
    result, (h, c) = layer(rd.randn(4, 2, 2))
    assert (result.shape, h.shape, c.shape) == ((4, 2, 3), (2, 2, 3), (2, 2, 5))
    assert layer.weight_hr_l1.shape == (3, 5) and layer.weight_ih_l1.shape == (20, 3)


def test_dropout_lies_between_the_layers_in_training_only():
    rd.manual_seed(0)
    layer = nn.GRU(2, 8, 2, dropout=0.5)
    x = rd.randn(4, 2, 2)
    assert not rd.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert rd.equal(layer(x)[0], layer(x)[0])
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last recurrent layer"):
        nn.GRU(2, 3, dropout=0.5)


def test_a_sequence_is_learned():
    rd.manual_seed(0)
    layer, read = nn.LSTM(1, 8), nn.Linear(8, 1)
    x = rd.randn(6, 16, 1)
    target = x.cumsum(0)
    optimizer = rd.optim.Adam([*layer.parameters(), *read.parameters()], lr=0.05)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = ((read(layer(x)[0]) - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
