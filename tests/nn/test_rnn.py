"""Recurrent layers, packed sequences, bags of embeddings."""

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.nn.utils import rnn
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


# Padded and packed sequences, embedding bags, Bilinear and Unflatten --------------------------------------------------


def test_packing_and_padding_undo_each_other():
    x = rd.arange(12.0).view(3, 2, 2)
    packed = rnn.pack_padded_sequence(x, [2, 3], enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [2, 2, 1] and packed.sorted_indices.tolist() == [1, 0]
    padded, lengths = rnn.pad_packed_sequence(packed, padding_value=-1)
    assert lengths.tolist() == [2, 3]
    assert rd.equal(padded[:, 1], x[:, 1]) and rd.equal(padded[:2, 0], x[:2, 0]) and (padded[2, 0] == -1).all()
    assert [len(one) for one in rnn.unpack_sequence(packed)] == [2, 3]


def test_packing_is_differentiable():
    x = rd.randn(2, 3, 2, dtype=rd.float64, requires_grad=True)

    def there_and_back(x):
        return rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [1, 3], True, enforce_sorted=False), True)[0]

    assert rd.autograd.gradcheck(there_and_back, x)


def test_lengths_are_checked():
    x = rd.ones(3, 2)
    for lengths, text in (([2, 3], "must be sorted"), ([3, 0], "greater than 0"), ([3], "equal to batch_size")):
        with pytest.raises(RuntimeError, match=text):
            rnn.pack_padded_sequence(x, lengths)
    with pytest.raises(RuntimeError, match="at most 3"):
        rnn.pack_padded_sequence(x, [4, 1])
    with pytest.raises(RuntimeError, match="do not fit"):
        rnn.pad_packed_sequence(rnn.PackedSequence(rd.ones(3), rd.tensor([2, 2])))
    with pytest.raises(ValueError, match="total_length=1"):
        rnn.pad_packed_sequence(rnn.pack_sequence([rd.ones(3)]), total_length=1)


def test_a_packed_sequence_is_a_tuple_that_can_be_converted():
    packed = rnn.pack_sequence([rd.ones(3), rd.ones(2)])
    assert isinstance(packed, tuple) and packed.double().data.dtype is rd.float64 and packed.float() is packed
    assert rnn.pad_sequence([rd.ones(1), rd.ones(2)], True, 5.0, "left").tolist() == [[5, 1], [1, 1]]


def test_embedding_bags_are_rows_of_a_matrix_or_begin_at_offsets():
    layer = nn.EmbeddingBag.from_pretrained(rd.arange(8.0).view(4, 2), mode="sum")
    assert layer(rd.tensor([[0, 1], [2, 3]])).tolist() == [[2, 4], [10, 12]]
    assert layer(rd.tensor([0, 1, 2]), rd.tensor([0, 1])).tolist() == [[0, 1], [6, 8]]
    assert layer(rd.tensor([0, 1]), rd.tensor([0]), rd.tensor([1.0, 2.0])).tolist() == [[4, 7]]
    assert repr(nn.EmbeddingBag(10, 3, max_norm=1.0)) == "EmbeddingBag(10, 3, max_norm=1.0, mode='mean')"
    for call, text in (
        (lambda: layer(rd.tensor([0, 1])), "offsets has to be a 1D Tensor but got None"),
        (lambda: layer(rd.tensor([[0, 1]]), rd.tensor([0])), "if input is 2D, then offsets has to be None"),
        (lambda: nn.functional.embedding_bag(rd.tensor([[0]]), layer.weight, mode="best"), "mode has to be one of"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_rows_longer_than_max_norm_are_scaled_down():
    layer = nn.Embedding(2, 2, max_norm=1.0, _weight=rd.tensor([[3.0, 4.0], [0.3, 0.4]]))
    assert rd.allclose(layer(rd.tensor([0, 1])), rd.tensor([[0.6, 0.8], [0.3, 0.4]]))
    assert repr(layer) == "Embedding(2, 2, max_norm=1.0)"


def test_bilinear_is_linear_in_each_input():
    layer = nn.Bilinear(2, 3, 4)
    x, y = rd.randn(5, 2), rd.randn(5, 3)
    assert rd.allclose(layer(2 * x, y) - layer.bias, 2 * (layer(x, y) - layer.bias), atol=1e-5)
    assert layer.weight.abs().max() <= 2**-0.5
    with pytest.raises(ValueError, match="in1_features must be > 0"):
        nn.Bilinear(0, 3, 4)


def test_unflatten_takes_a_dimension_apart():
    assert nn.Unflatten(1, (2, -1))(rd.ones(2, 6)).shape == (2, 2, 3)
    with pytest.raises(TypeError, match="found element of type str at pos 1"):
        nn.Unflatten(1, (2, "a"))
