"""Attention with scores and masks that are functions (frontend/_higher_order_ops/attention.py)."""

import pytest

import redispatch as rd
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


def causal(b, h, q, k):
    return q >= k


def near(b, h, q, k):
    return (q - k).abs() < 2


@pytest.fixture
def inputs():
    rd.manual_seed(0)
    shapes = [(2, 4, 5, 3), (2, 2, 6, 3), (2, 2, 6, 2)]
    return [rd.randn(*shape, dtype=rd.float64, requires_grad=True) for shape in shapes]


def test_a_mask_and_a_score_are_those_of_plain_attention(inputs):
    slope = rd.arange(1.0, 5.0, dtype=rd.float64)

    def nearer_is_more(score, b, h, q, k):
        return score - slope[h] * (q - k).abs()

    places = [rd.arange(size).view([-1 if i == j else 1 for j in range(4)]) for i, size in enumerate((2, 4, 5, 6))]
    bias = -slope.view(4, 1, 1) * (places[2] - places[3]).abs()
    masked = bias.masked_fill(~causal(*places), -rd.inf)
    for mask, wanted in ((None, bias), (create_block_mask(causal, None, None, 5, 6), masked)):
        found = flex_attention(*inputs, nearer_is_more, mask, enable_gqa=True)
        plain = scaled_dot_product_attention(*inputs, wanted, enable_gqa=True)
        rd.testing.assert_close(found, plain)
        of_found, of_plain = (rd.autograd.grad(out.square().sum(), inputs) for out in (found, plain))
        rd.testing.assert_close(of_found, of_plain)


def test_a_row_that_sees_nothing_is_zero(inputs):
    mask = create_block_mask(lambda b, h, q, k: q > 1, None, None, 5, 6)
    out, aux = flex_attention(*inputs, block_mask=mask, enable_gqa=True, return_aux=AuxRequest(lse=True))
    assert not out[:, :, :2].any() and out[:, :, 2:].all()
    assert (aux.lse == -rd.inf).nonzero()[:, 2].unique().tolist() == [0, 1] and aux.max_scores is None
    assert not rd.autograd.grad(out.sum(), inputs[0])[0][:, :, :2].any()


def test_the_blocks_of_a_causal_mask_are_pytorchs():
    """Of 300 x 300 in blocks of 128: the last ones are not full, since they reach beyond the mask."""
    mask = create_block_mask(causal, 1, 1, 300, 300)
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 3]]]
    assert mask.kv_indices.tolist() == [[[[0, 1, 2], [1, 0, 2], [0, 1, 2]]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1, 0]]] and mask.full_q_num_blocks.tolist() == [[[1, 0, 0]]]
    assert mask.q_num_blocks.tolist() == [[[2, 2, 1]]]
    assert mask.q_indices.tolist() == [[[[0, 2, 1], [1, 2, 0], [2, 0, 1]]]]
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]
    assert (mask.shape, mask.numel(), round(mask.sparsity(), 2)) == ((1, 1, 300, 300), 90000, -9.23)
    rows = BlockMask.from_kv_blocks(*mask.as_tuple()[2:6])
    assert rd.equal(rows.q_indices, mask.q_indices) and rows.shape == (1, 1, 384, 384)
    assert mask[:, :, 1].kv_indices.tolist() == [[[[1, 0, 2]]]]


def test_masks_combine():
    both, either = (create_mask(join(causal, near), None, None, 3, 3)[0, 0].tolist() for join in (and_masks, or_masks))
    assert both == [[True, False, False], [True, True, False], [False, True, True]]
    assert either == [[True, True, False], [True, True, True], [True, True, True]]
    with pytest.raises(RuntimeError, match="should be callable"):
        and_masks(causal, 3)


def test_what_does_not_fit_is_refused(inputs):
    query, key, value = inputs
    with pytest.raises(ValueError, match="Try setting enable_gqa=True"):
        flex_attention(query, key, value)
    with pytest.raises(NotImplementedError, match="must be 4D"):
        flex_attention(query[0], key, value)
    with pytest.raises(ValueError, match="to have the same dtype"):
        flex_attention(query.float(), key, value)
    with pytest.raises(ValueError, match="but got q_len=5 and kv_len=6"):
        flex_attention(query, key, value, block_mask=create_block_mask(causal, 1, 1, 9, 9), enable_gqa=True)
    with pytest.raises(AssertionError, match="4 arguments"):
        create_block_mask(lambda q, k: q >= k, 1, 1, 3, 3)


def test_a_picture_shows_which_blocks_are_seen():
    mask = create_block_mask(causal, 1, 1, 512, 512, BLOCK_SIZE=128)
    assert mask.to_string() == "(0, 0)\n██      \n████    \n██████  \n████████\n"
    assert mask.to_string(grid_size=(2, 2)) == "(0, 0)\n░░  \n██░░\n"
    assert str(mask) == f"BlockMask(shape=(1, 1, 512, 512), sparsity=37.50%, \n{mask.to_string()})"
    assert repr(mask).splitlines()[-3:] == ["    sparsity=37.50%,", "    mask_mod=causal", ")"]
    several = create_block_mask(causal, 2, 1, 256, 256)
    assert several.to_string(limit=1).splitlines()[4] == "..."


def test_a_mask_is_adjusted_to_fewer_queries_and_keys():
    mask = create_block_mask(causal, 1, 1, 512, 512, BLOCK_SIZE=128)._adjust(200, 384)
    assert mask.shape == (1, 1, 200, 384) and mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0]]]]
    assert mask.q_num_blocks.tolist() == [[[1, 1, 0]]]
