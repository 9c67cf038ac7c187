"""Attention over several heads, and the stacks of it: masks, shapes, and that a model learns with them."""

import math

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.testing import assert_close

EMBED, HEADS = 6, 2
x, memory = (rd.randn(n, 3, EMBED, generator=rd.Generator().manual_seed(n)) for n in (4, 5))
AHEAD = rd.ones(4, 4, dtype=rd.bool).triu(1)


def by_hand(layer, query, key, value, mask=None):
    """The formula, head by head."""
    q, k, v = (
        nn.functional.linear(part, weight, bias)
        for part, weight, bias in zip(
            (query, key, value), layer.in_proj_weight.chunk(3), layer.in_proj_bias.chunk(3), strict=True
        )
    )
    results, width = [], EMBED // HEADS
    for head in range(HEADS):
        own = slice(head * width, (head + 1) * width)
        scores = rd.einsum("nbd,mbd->bnm", q[..., own], k[..., own]) / math.sqrt(width)
        scores = scores if mask is None else scores.masked_fill(mask, -math.inf)
        results.append(rd.einsum("bnm,mbd->nbd", scores.softmax(-1), v[..., own]))
    return layer.out_proj(rd.cat(results, -1))


@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_is_the_formula_head_by_head(need_weights):
    layer = nn.MultiheadAttention(EMBED, HEADS)
    result, weights = layer(x, memory, memory, need_weights=need_weights)
    assert_close(result, by_hand(layer, x, memory, memory))
    assert weights is None or (weights.shape == (3, 4, 5) and rd.allclose(weights.sum(-1), rd.ones(3, 4)))


@pytest.mark.parametrize("need_weights", [True, False])
def test_masks_leave_keys_out(need_weights):
    layer = nn.MultiheadAttention(EMBED, HEADS)
    wanted = by_hand(layer, x, x, x, AHEAD)
    assert_close(layer(x, x, x, attn_mask=AHEAD, need_weights=need_weights)[0], wanted)
    assert_close(layer(x, x, x, attn_mask=AHEAD, need_weights=need_weights, is_causal=True)[0], wanted)
    added = nn.Transformer.generate_square_subsequent_mask(4)
    assert_close(layer(x, x, x, attn_mask=added, need_weights=need_weights)[0], wanted)
    padding = rd.tensor([[False] * 3 + [True] * 2] * 3)
    found = layer(x, memory, memory, key_padding_mask=padding, need_weights=need_weights)[0]
    assert_close(found, by_hand(layer, x, memory[:3], memory[:3]))


def test_keys_may_have_other_features_and_the_batch_may_come_first_or_not_at_all():
    layer = nn.MultiheadAttention(EMBED, HEADS, kdim=2, vdim=3, batch_first=True)
    query, key, value = rd.randn(3, 4, EMBED), rd.randn(3, 5, 2), rd.randn(3, 5, 3)
    result, weights = layer(query, key, value, average_attn_weights=False)
    assert result.shape == (3, 4, EMBED) and weights.shape == (3, HEADS, 4, 5)
    alone, _ = layer(query[1], key[1], value[1])
    assert_close(alone, result[1])


def test_a_key_of_zeros_and_a_learned_one_are_added():
    layer = nn.MultiheadAttention(EMBED, HEADS, add_bias_kv=True, add_zero_attn=True)
    assert layer(x, memory, memory)[1].shape == (3, 4, 7)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_a_transformer_does_not_look_ahead_where_the_mask_forbids_it(norm_first, batch_first):
    model = nn.Transformer(
        EMBED, HEADS, 1, 2, 8, activation="gelu", norm_first=norm_first, batch_first=batch_first
    ).eval()
    src, tgt = (memory.transpose(0, 1), x.transpose(0, 1)) if batch_first else (memory, x)
    time = 1 if batch_first else 0
    changed = tgt.clone()
    changed.select(time, 3).zero_()
    one, other = (model(src, each, tgt_mask=AHEAD, tgt_is_causal=True) for each in (tgt, changed))
    assert one.shape == tgt.shape
    assert_close(one.narrow(time, 0, 3), other.narrow(time, 0, 3))
    assert not rd.allclose(one.select(time, 3), other.select(time, 3))


def test_the_layers_of_a_stack_are_copies():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(EMBED, HEADS, 8), 2, nn.LayerNorm(EMBED))
    one, other = encoder.layers
    assert one.linear1.weight is not other.linear1.weight and rd.equal(one.linear1.weight, other.linear1.weight)
    assert list(encoder.state_dict())[:2] == ["layers.0.self_attn.in_proj_weight", "layers.0.self_attn.in_proj_bias"]


def test_an_encoder_learns_to_copy_the_first_letter():
    rd.manual_seed(0)
    letters, layer = nn.Embedding(4, 16), nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    read = nn.Linear(16, 4)
    optimizer = rd.optim.AdamW([*letters.parameters(), *layer.parameters(), *read.parameters()], lr=0.01)
    text = rd.randint(4, (32, 5))
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(read(layer(letters(text))[:, 0]), text[:, 0])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
