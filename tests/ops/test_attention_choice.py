"""Which kernel attention takes, and what users may say of it."""

import pytest

import redispatch as rd
from redispatch.backends import cuda
from redispatch.dispatch import ops
from redispatch.nn import functional as F
from redispatch.nn.attention import SDPBackend, sdpa_kernel

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
    assert (int(seed), int(offset)) == (3, 0)
    generator = rd.Generator().manual_seed(3)
    kept = rd.empty(1, 2, 5, 2, 16, 4).bernoulli_(0.5, generator=generator).transpose(-1, -2).reshape(1, 2, 5, 128)
    weights = (q @ k.mT / 2).softmax(-1) * kept[..., :70] * 2
    rd.testing.assert_close(out, weights @ k)
    _, _, _, after = drop(q, k, k, None, False, 0.5)
    assert int(after) == 1 * 2 * 5 * 2 * 16


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
