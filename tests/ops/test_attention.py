"""Attention, beyond the operator table: blocks, memory, queries that see nothing, strides; which kernel it takes."""

import tracemalloc

import numpy as np
import pytest

import redispatch as rd
from redispatch.backends import cuda
from redispatch.dispatch import ops
from redispatch.nn import functional as F
from redispatch.nn.attention import SDPBackend, bias, sdpa_kernel
from redispatch.nn.functional import scaled_dot_product_attention
from redispatch.testing import assert_close

from ..seeing import seen

FUSED = "_scaled_dot_product_flash_attention_for_cpu"


def heads(*shapes, dtype=rd.float64):
    rd.manual_seed(0)
    return [rd.randn(*shape, dtype=dtype) for shape in shapes]


def by_definition(query, key, value, mask=None, is_causal=False):
    """With all scores in memory, and the derivative that follows from the parts."""
    if is_causal:
        seen = rd.ones(query.shape[-2], key.shape[-2], dtype=rd.bool).tril()
        causal = rd.zeros(seen.shape, dtype=query.dtype).masked_fill(seen.logical_not(), -float("inf"))
        mask = causal if mask is None else mask + causal
    return rd.ops.aten._scaled_dot_product_attention_math(query, key, value, mask)[0]


SIZES = [
    (2, 3, 130, 700, 16),  # several blocks of both
    (2, 4, 700, 130, 8),  # more queries than keys
    (3, 2, 1, 1100, 4),  # one query: several heads at a time
    (40, 9, 5, 7, 3),  # more small heads than are worked on at a time
]


@pytest.mark.parametrize("batch, count, n, m, width", SIZES)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_blocks_give_what_the_definition_gives(batch, count, n, m, width, is_causal, masked):
    three = heads((batch, count, n, width), (batch, count, m, width), (batch, count, m, width))
    mask = heads((batch, 1, n, m))[0] if masked else None
    ours = [x.clone().requires_grad_() for x in three]
    plain = [x.clone().requires_grad_() for x in three]
    result = scaled_dot_product_attention(*ours, mask, is_causal=is_causal)
    expected = by_definition(*plain, mask, is_causal)
    assert_close(result, expected)
    (grad,) = heads(tuple(result.shape))
    result.backward(grad)
    expected.backward(grad)
    for x, y in zip(ours, plain, strict=True):
        assert_close(x.grad, y.grad, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_share_the_heads(threads):
    three = heads(*[(2, 4, 128, 32)] * 3)
    before = rd.get_num_threads()
    rd.set_num_threads(threads)
    try:
        result = scaled_dot_product_attention(*three)
    finally:
        rd.set_num_threads(before)
    assert_close(result, by_definition(*three))


def test_the_matrix_of_scores_is_never_in_memory():
    n = 2048
    three = [x.requires_grad_() for x in heads(*[(1, 1, n, 8)] * 3, dtype=rd.float32)]
    for _ in range(4):  # whatever is compiled, specialised or imported is now
        scaled_dot_product_attention(*three).sum().backward()
    tracemalloc.start()
    try:
        scaled_dot_product_attention(*three).sum().backward()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < n * n * 4 / 8


def test_a_query_that_sees_no_key_gives_zeros_and_gets_no_gradient():
    query, key, value = (x.requires_grad_() for x in heads((1, 1, 3, 4), (1, 1, 5, 4), (1, 1, 5, 4)))
    seen = rd.ones(3, 5, dtype=rd.bool)
    seen[1] = False
    result = scaled_dot_product_attention(query, key, value, seen)
    result.sum().backward()
    assert result[0, 0, 1].tolist() == [0.0] * 4
    assert query.grad[0, 0, 1].tolist() == [0.0] * 4
    logs = getattr(rd.ops.aten, FUSED)(
        query, key, value, attn_mask=rd.zeros(3, 5, dtype=rd.float64).masked_fill(~seen, -float("inf"))
    )[1]
    assert logs[0, 0, 1].item() == 0.0


def test_keys_that_are_masked_in_the_first_block_are_no_matter():
    query, key, value = heads((1, 2, 3, 4), (1, 2, 600, 4), (1, 2, 600, 4))
    mask = rd.zeros(3, 600, dtype=rd.float64)
    mask[:, :550] = -float("inf")
    assert_close(
        scaled_dot_product_attention(query, key, value, mask),
        by_definition(query, key[:, :, 550:], value[:, :, 550:]),
    )


def test_large_scores_do_not_overflow():
    query, key, value = heads((1, 1, 2, 4), (1, 1, 3, 4), (1, 1, 3, 4), dtype=rd.float32)
    assert_close(scaled_dot_product_attention(query * 1000, key, value), by_definition(query * 1000, key, value))


def test_nan_in_a_key_reaches_all_queries_that_see_it():
    query, key, value = heads((1, 1, 3, 4), (1, 1, 3, 4), (1, 1, 3, 4))
    key[0, 0, 1, 2] = float("nan")
    result = scaled_dot_product_attention(query, key, value, is_causal=True)
    assert result.isnan().all(-1).tolist() == [[[False, True, True]]]


def test_heads_side_by_side_are_taken_as_they_lie():
    """Takes what nn.MultiheadAttention has: [batch, n, heads, width], transposed."""
    three = [x.transpose(1, 2) for x in heads(*[(2, 70, 3, 8)] * 3)]
    result = scaled_dot_product_attention(*three)
    assert result.stride() == three[0].stride()
    assert_close(result, by_definition(*three))


def test_16_bit_floats_are_computed_in_float32():
    three = heads(*[(1, 2, 9, 8)] * 3, dtype=rd.float32)
    for dtype in (rd.float16, rd.bfloat16):
        narrow = [x.to(dtype).requires_grad_() for x in three]
        wide = [x.detach().float().requires_grad_() for x in narrow]
        result, expected = scaled_dot_product_attention(*narrow), scaled_dot_product_attention(*wide)
        assert result.dtype is dtype
        assert_close(result, expected.to(dtype))
        result.sum().backward()
        expected.sum().backward()
        for x, y in zip(narrow, wide, strict=True):
            assert_close(x.grad, y.grad.to(dtype), rtol=2e-2, atol=2e-2)


def test_query_heads_share_key_heads():
    query, key, value = (x.requires_grad_() for x in heads((2, 6, 5, 4), (2, 2, 7, 4), (2, 2, 7, 4)))
    (mask,) = heads((2, 6, 5, 7))
    result = scaled_dot_product_attention(query, key, value, mask, enable_gqa=True)
    repeated = [x.detach().repeat_interleave(3, 1) for x in (key, value)]
    assert_close(result, by_definition(query.detach(), *repeated, mask))
    result.sum().backward()
    again = [x.detach().requires_grad_() for x in (query, key, value)]
    by_definition(again[0], *(x.repeat_interleave(3, 1) for x in again[1:]), mask).sum().backward()
    for x, y in zip((query, key, value), again, strict=True):
        assert_close(x.grad, y.grad)


def test_one_operator_where_that_is_possible():
    query, key, value = heads((2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 8))
    assert seen(lambda: scaled_dot_product_attention(query, key, value)) == FUSED
    assert seen(lambda: scaled_dot_product_attention(query, key, value, is_causal=True)) == FUSED


@pytest.mark.parametrize(
    "call",
    [
        lambda q, k, v: scaled_dot_product_attention(q[0], k[0], v[0]),
        lambda q, k, v: scaled_dot_product_attention(q, k, v, dropout_p=0.5),
        lambda q, k, v: scaled_dot_product_attention(q, k, v, rd.zeros(4, 5, dtype=rd.float64, requires_grad=True)),
        lambda q, k, v: scaled_dot_product_attention(q, k, v[..., :6]),
        lambda q, k, v: scaled_dot_product_attention(q, k[:1], v[:1]),
    ],
    ids=["three dimensions", "dropout", "a learned mask", "values of another width", "one batch for all"],
)
def test_by_the_definition_elsewhere(call):
    query, key, value = heads((2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 8))
    names = seen(lambda: call(query, key, value))
    assert FUSED not in names and "_safe_softmax" in names


def test_dropout_leaves_out_weights():
    ones = rd.ones(1, 1, 200, 4), rd.ones(1, 1, 50, 4), rd.ones(1, 1, 50, 4)
    rd.manual_seed(0)
    result = scaled_dot_product_attention(*ones, dropout_p=0.5)
    assert abs(float(result.mean()) - 1) < 0.05
    assert float(result.std()) > 0.05


@pytest.mark.parametrize(
    "shapes", [((2, 3, 0, 4), (2, 3, 5, 4)), ((2, 3, 5, 4), (2, 3, 0, 4)), ((0, 3, 5, 4), (0, 3, 2, 4))]
)
def test_of_nothing(shapes):
    query, key = heads(*shapes)
    result = scaled_dot_product_attention(query, key, key)
    assert result.shape == query.shape
    assert not np.any(result.numpy())


def test_logs_of_another_shape_are_refused_and_of_another_dtype_converted():
    q, k, v = heads(*[(1, 2, 5, 4)] * 3)
    out, logs = rd.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(q, k, v)
    (grad,) = heads((1, 2, 5, 4))
    backward = rd.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
    wanted = backward(grad, q, k, v, out, logs, 0.0, False)
    for given in (logs.contiguous(), logs.float()):
        for x, y in zip(backward(grad, q, k, v, out, given, 0.0, False), wanted, strict=True):
            assert_close(x, y, rtol=1e-5, atol=1e-5)
    for wrong in (logs[..., :1], logs[0], logs.new_empty(0)):
        with pytest.raises(RuntimeError, match="logsumexp to have the shape"):
            backward(grad, q, k, v, out, wrong, 0.0, False)


def test_a_mask_may_be_the_query_itself():
    q, k = heads((1, 2, 4, 4), (1, 2, 4, 4))
    q = q.transpose(1, 2).contiguous().transpose(1, 2)[..., ::2].repeat_interleave(2, -1)
    given = q.transpose(2, 3)  # of which BLAS takes the columns
    assert_close(scaled_dot_product_attention(given, k, k, given), by_definition(given, k, k, given, False))


# Which kernel attention takes, and what users may say of it -----------------------------------------------------------

choice = ops.aten._fused_sdp_choice.default
MATH, FLASH = int(SDPBackend.MATH), int(SDPBackend.FLASH_ATTENTION)


def test_the_cpu_takes_its_fused_kernel_where_it_can():
    q = rd.ones(1, 2, 3, 4)
    assert choice(q, q, q) == choice(q.double(), q.double(), q.double()) == FLASH
    assert choice(q, q, q, None, 0.5) == choice(q[0], q[0], q[0]) == choice(q, q, rd.ones(1, 2, 3, 8)) == MATH
    assert choice(q, q, q, rd.ones(3, 3, requires_grad=True)) == MATH


def test_a_region_allows_some_kernels_and_what_was_allowed_comes_back():
    q = rd.ones(1, 2, 3, 4)
    with sdpa_kernel(SDPBackend.MATH) as nothing:
        assert nothing == {} and choice(q, q, q) == MATH and not cuda.flash_sdp_enabled()
        with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
            assert choice(q, q, q) == FLASH
        assert choice(q, q, q) == MATH
    assert choice(q, q, q) == FLASH and cuda.flash_sdp_enabled()
    cuda.enable_flash_sdp(False)
    try:
        assert choice(q, q, q) == MATH
    finally:
        cuda.enable_flash_sdp(True)
    with pytest.warns(FutureWarning), cuda.sdp_kernel(enable_flash=False):
        assert choice(q, q, q) == MATH


@pytest.mark.parametrize("allowed", [SDPBackend.EFFICIENT_ATTENTION, []])
def test_where_no_kernel_of_the_device_is_allowed_that_is_an_error(allowed):
    q = rd.ones(1, 2, 3, 4)
    with sdpa_kernel(allowed), pytest.raises(RuntimeError, match="No viable backend for scaled_dot_product_attention"):
        F.scaled_dot_product_attention(q, q, q)
    assert F.scaled_dot_product_attention(q, q, q).shape == q.shape


def test_where_none_of_the_allowed_takes_the_call_the_reasons_are_told():
    q = rd.ones(1, 2, 3, 4)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), pytest.warns(UserWarning) as told:
        with pytest.raises(RuntimeError, match="No available kernel"):
            F.scaled_dot_product_attention(q, q.transpose(2, 3).contiguous().transpose(2, 3), q)
    assert [str(one.message) for one in told] == [
        "Flash attention kernel not used because:",
        "All fused kernels require the last dimension of the input to have stride 1. Got Query.stride(-1): 1, "
        "Key.stride(-1): 3, Value.stride(-1): 1",
    ]


def test_what_is_no_kernel_is_refused():
    with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend or a list of .*, got tuple"):
        with sdpa_kernel((SDPBackend.MATH,)):
            pass
    with pytest.raises(RuntimeError, match="expects a bool, but got int"):
        cuda.enable_flash_sdp(1)


def test_the_definition_of_the_fused_operator_drops_what_its_seed_says():
    q, k = rd.randn(1, 2, 5, 4), rd.randn(1, 2, 70, 4)
    drop = ops.aten._scaled_dot_product_efficient_attention.default
    rd.manual_seed(3)
    out, _, seed, offset = drop(q, k, k, None, False, 0.5)
    assert int(offset) == 0
    generator = rd.Generator(kind="philox").manual_seed(int(seed))
    kept = rd.empty(1, 2, 5, 2, 16, 4).bernoulli_(0.5, generator=generator).transpose(-1, -2).reshape(1, 2, 5, 128)
    weights = (q @ k.mT / 2).softmax(-1) * kept[..., :70] * 2
    rd.testing.assert_close(out, weights @ k)
    assert int(drop(q, k, k, None, False, 0.5)[2]) != int(seed)


def test_products_may_be_rounded_where_the_backend_is_told_so():
    assert cuda.matmul.allow_tf32 is False
    cuda.matmul.allow_tf32 = True
    try:
        assert rd.get_float32_matmul_precision() == "high" and cuda.matmul.fp32_precision == "tf32"
    finally:
        cuda.matmul.allow_tf32 = False
    assert rd.get_float32_matmul_precision() == "highest"
    with pytest.raises(AttributeError, match="Unknown attribute colour"):
        cuda.matmul.colour = 1


def test_a_causal_mask_knows_its_corner():
    query, key = rd.randn(1, 1, 3, 8), rd.randn(1, 1, 4, 8)
    attend = rd.nn.functional.scaled_dot_product_attention
    for made, offset in ((bias.causal_upper_left, 0), (bias.causal_lower_right, 1)):
        mask = made(3, 4)
        dense = rd.ones(3, 4, dtype=rd.bool).tril(offset)
        assert isinstance(mask, rd.Tensor) and rd.equal(mask._materialize(), dense) and repr(mask) == repr(dense)
        assert rd.allclose(attend(query, key, key, attn_mask=mask), attend(query, key, key, attn_mask=dense))
    with pytest.raises(ValueError, match="should not be used with causal=True"):
        attend(query, key, key, mask, is_causal=True)
    with pytest.warns(UserWarning, match="will produce NaNs"):
        bias.causal_lower_right(4, 3)
    with pytest.raises(AssertionError, match="only supports 2D"):
        bias.causal_upper_left(4)
