"""Attention with scores and masks that are functions, against attention with a mask that is a tensor."""

import math

import pytest

import redispatch as rd
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    or_masks,
)
from redispatch.nn.functional import scaled_dot_product_attention
from redispatch.testing import assert_close


def causal(batch, head, query, key):
    return query >= key


def near(batch, head, query, key):
    return query - key < 3


def made(heads=2, shared=2, length=12):
    draw = rd.Generator().manual_seed(0)
    shapes = (2, heads, length, 4), (2, shared, length, 4), (2, shared, length, 6)
    return [rd.randn(shape, generator=draw, dtype=rd.float64).requires_grad_() for shape in shapes]


def compared(found, expected, leaves):
    assert_close(found, expected)
    both = [rd.autograd.grad(one.square().sum(), leaves, allow_unused=True) for one in (found, expected)]
    assert_close(*both)


def test_without_functions_it_is_attention():
    q, k, v = made()
    compared(flex_attention(q, k, v), scaled_dot_product_attention(q, k, v), [q, k, v])


def test_scores_are_changed_one_by_one_and_gradients_reach_what_the_function_holds():
    q, k, v = made()
    bias = rd.randn(2, 12, 12, dtype=rd.float64, requires_grad=True)
    found = flex_attention(q, k, v, lambda score, batch, head, query, key: score + bias[head, query, key], scale=0.3)
    compared(found, scaled_dot_product_attention(q, k, v, bias, scale=0.3), [q, k, v, bias])


def test_a_mask_hides_keys_and_a_row_without_any_is_zero():
    q, k, v = made()

    def after_third(batch, head, query, key):
        return (key >= 3) & (query >= key)

    mask = create_block_mask(after_third, None, None, 12, 12, device="cpu", BLOCK_SIZE=4)
    dense = create_mask(after_third, None, None, 12, 12)
    found, lse = flex_attention(q, k, v, block_mask=mask, return_lse=True)
    assert bool((found[:, :, :3] == 0).all()) and bool((lse[:, :, :3] == -math.inf).all())
    expected = scaled_dot_product_attention(q, k, v, dense).nan_to_num(0)
    compared(found[:, :, 3:], expected[:, :, 3:], [q, k, v])


def test_heads_share_keys_and_more_is_told_of_the_rows():
    q, k, v = made(heads=4)
    found, more = flex_attention(q, k, v, enable_gqa=True, return_aux=AuxRequest(lse=True, max_scores=True))
    compared(found, scaled_dot_product_attention(q, k, v, enable_gqa=True), [q, k, v])
    scores = q @ k.repeat_interleave(2, 1).transpose(-2, -1) / 2
    assert_close((more.lse, more.max_scores), (scores.logsumexp(-1), scores.amax(-1)))


def test_blocks_say_what_is_seen_in_whole_and_in_part():
    mask = create_block_mask(causal, 1, 1, 12, 12, device="cpu", BLOCK_SIZE=4)
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 1]]] and mask.full_kv_num_blocks.tolist() == [[[0, 1, 2]]]
    assert mask.kv_indices.tolist() == [[[[0, 1, 2], [1, 0, 2], [2, 0, 1]]]]
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]] and mask.shape == (1, 1, 12, 12)
    assert mask.sparsity() == pytest.approx(100 / 3) and mask[:, 0].shape == (1, 1, 12, 12)
    again = BlockMask.from_kv_blocks(mask.kv_num_blocks, mask.kv_indices, BLOCK_SIZE=4, mask_mod=causal)
    assert rd.equal(again.q_indices, mask.q_indices) and again.seq_lengths == (12, 12)


def test_masks_are_combined():
    assert rd.equal(create_mask(and_masks(causal, near), 1, 1, 5, 5)[0, 0], rd.ones(5, 5).tril().triu(-2).bool())
    assert rd.equal(create_mask(or_masks(causal, near), 1, 1, 5, 5)[0, 0], rd.ones(5, 5).bool())


def test_a_graph_has_its_formula():
    q, k, v = (one.detach() for one in made())
    graph = make_fx(lambda q, k, v: flex_attention(q, k, v, lambda score, *at: score * 2))(q, k, v)
    assert_close(graph(q, k, v), flex_attention(q, k, v, lambda score, *at: score * 2))


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda q, k, v: flex_attention(q[0], k[0], v[0]), NotImplementedError, "must be 4D tensors"),
        (lambda q, k, v: flex_attention(q, k[:, :1], v[:, :1]), ValueError, "Try setting enable_gqa=True"),
        (lambda q, k, v: flex_attention(q, k.float(), v), ValueError, "to have the same dtype"),
        (lambda q, k, v: create_block_mask(3, 1, 1, 5, 5), TypeError, "3 is not a callable object"),
        (lambda q, k, v: create_block_mask(lambda x: x, 1, 1, 5, 5), AssertionError, "4 arguments, got 1"),
        (
            lambda q, k, v: flex_attention(q, k, v, block_mask=create_block_mask(causal, 1, 1, 8, 8)),
            ValueError,
            "was created for block_mask.shape=\\(1, 1, 8, 8\\) but got q_len=12",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(*made())
