"""Quantised tensors: codes and what they are read by, and the operators that know of them.

The values are compared with PyTorch's in tests/parity/quantized.py.
"""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch.dispatch import MissingKernelError

X = rd.tensor([1.0, 2.0, 3.3, -0.2])
KINDS = {rd.quint8: rd.uint8, rd.qint8: rd.int8, rd.qint32: rd.int32}


@pytest.fixture
def q():
    return rd.quantize_per_tensor(X, 0.1, 3, rd.quint8)


@pytest.fixture
def c():
    return rd.quantize_per_channel(
        rd.tensor([[1.0, 2.0], [-0.5, 3.3]]), rd.tensor([0.1, 0.2]), rd.tensor([0, 1]), 0, rd.qint8
    )


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(
    values=st.lists(st.floats(-1e6, 1e6, width=32), max_size=5),
    scale=st.floats(0.01, 100),
    zero_point=st.integers(0, 100),
)
def test_codes_are_the_nearest_within_the_limits(kind, values, scale, zero_point):
    x = rd.tensor(values, dtype=rd.float32)
    q = rd.quantize_per_tensor(x, scale, zero_point, kind)
    codes, limits = q.int_repr(), rd.iinfo(KINDS[kind])
    assert codes.dtype is KINDS[kind] and q.dtype is kind and q.is_quantized and q.dequantize().dtype is rd.float32
    low, high = ((edge - zero_point) * scale for edge in (limits.min, limits.max))
    error = (q.dequantize().double() - x.double().clamp(low, high)).abs()
    assert (error <= scale * 0.501 + 1e-6 * x.double().abs()).all()
    assert rd.equal(q, rd._make_per_tensor_quantized_tensor(codes, scale, zero_point))


def test_a_quantised_tensor_says_what_its_codes_mean(q, c):
    assert (q.q_scale(), q.q_zero_point(), q.qscheme()) == (0.1, 3, rd.per_tensor_affine)
    assert q.int_repr().tolist() == [13, 23, 36, 1]
    assert c.q_per_channel_scales().dtype is rd.float64 and c.q_per_channel_zero_points().tolist() == [0, 1]
    assert c.q_per_channel_axis() == 0 and c.qscheme() is rd.per_channel_affine
    floating = rd.quantize_per_channel(rd.ones(2, 2), rd.tensor([0.1, 0.2]), rd.tensor([0, 1.5]), 1, rd.quint8)
    assert floating.qscheme() is rd.per_channel_affine_float_qparams
    with pytest.raises(RuntimeError, match=r"Expected quantizer->qscheme\(\) == kPerTensorAffine"):
        c.q_scale()
    with pytest.raises(RuntimeError, match=r"Expected quantizer->qscheme\(\) == kPerChannelAffine"):
        q.q_per_channel_axis()
    with pytest.raises(RuntimeError, match="has no scale"):
        rd.empty(2, dtype=rd.quint8).q_scale()


def test_it_is_printed_as_the_numbers_that_it_stands_for(q, c):
    assert str(q[:2]) == (
        "tensor([1., 2.], size=(2,), dtype=torch.quint8,\n"
        "       quantization_scheme=torch.per_tensor_affine, scale=0.1, zero_point=3)"
    )
    assert "zero_point=tensor([0, 1]), axis=0)" in str(c) and "[-0.6000,  3.4000]" in str(c)


def test_it_brings_the_key_of_its_backend_and_is_refused_by_the_dispatcher(q):
    keys = str(rd._C._dispatch_keys(q))
    assert "QuantizedCPU" in keys and "(CPU" not in keys
    for refused in (lambda: q + q, lambda: q.sum(), lambda: q.exp(), lambda: q.zero_(), lambda: rd.zeros_like(q)):
        with pytest.raises(MissingKernelError, match=r"Could not run 'aten::\w+.* from the 'QuantizedCPU' backend"):
            refused()
    with pytest.raises(MissingKernelError, match="Could not run 'aten::q_scale' with arguments from the 'CPU' backend"):
        X.q_scale()


@pytest.mark.parametrize(
    "move",
    [
        lambda x: x.clone(), lambda x: x.view(2, 2), lambda x: x[1:], lambda x: x[1], lambda x: x[None].t(),
        lambda x: x.flip(0), lambda x: rd.cat([x, x]), lambda x: rd.stack([x, x]), lambda x: x[rd.tensor([2, 0])],
        lambda x: x.index_select(0, rd.tensor([1])), lambda x: x.repeat(2), lambda x: x.unbind()[0],
        lambda x: x.sort()[0], lambda x: x.expand(2, 4), lambda x: x.relu(), lambda x: x.clamp(0, 2), lambda x: x.max(),
        lambda x: x.masked_fill(rd.tensor([True, False, True, False]), 1.0), lambda x: x.reshape(2, 2).contiguous(),
    ],
)  # fmt: skip
def test_what_moves_or_chooses_elements_gives_what_the_numbers_give(move, q):
    found = move(q)
    assert found.is_quantized and (found.q_scale(), found.q_zero_point()) == (0.1, 3)
    np.testing.assert_allclose(found.dequantize().numpy(), move(q.dequantize()).numpy(), rtol=1e-6)


def test_views_share_codes_and_versions(q):
    view = q[1:]
    view.fill_(0.5)
    assert view._is_view() and q._version == 1 and q.int_repr().tolist() == [13, 8, 8, 8]
    q[0] = 2.0
    q.copy_(q.clone()).copy_(rd.ones(4))
    assert q.dequantize().tolist() == [1, 1, 1, 1]
    with pytest.raises(RuntimeError, match="Copying from quantized Tensor to non-quantized Tensor is not allowed"):
        rd.ones(4).copy_(q)
    with pytest.raises(RuntimeError, match="Creation of quantized tensor requires quantized dtype like torch.quint8"):
        q.float()


def test_joining_codes_of_another_scale_makes_them_the_first_ones(q):
    other = rd.quantize_per_tensor(X, 0.2, 0, rd.qint8)
    joined = rd.cat([q, other])
    assert joined.dtype is rd.quint8 and joined.q_scale() == 0.1
    expected = rd.cat([q.dequantize(), other.dequantize()])
    assert rd.allclose(joined.dequantize(), expected, atol=0.051)


def test_channels_are_followed_through_views_that_keep_them_apart(c):
    assert c[0].q_scale() == pytest.approx(0.1) and c[1].dequantize().tolist() == c.dequantize()[1].tolist()
    assert c.select(1, 0).q_per_channel_axis() == 0 and c.unsqueeze(0).q_per_channel_axis() == 1
    assert c[1:].dequantize().tolist() == c.dequantize()[1:].tolist()
    with pytest.raises(RuntimeError, match="Setting strides is possible only on uniformly quantized tensor"):
        c.t()
    with pytest.raises(RuntimeError, match="length of scales must equal to channel, expected 4 got, 2"):
        c.view(4)


def test_comparisons_and_numbers_are_those_of_the_values(q):
    assert (q == q).all() and (q < 1.5).tolist() == [True, False, False, True] and q[1].item() == 2
    assert rd.equal(q, q.clone()) and not rd.equal(q, rd.quantize_per_tensor(X, 0.1, 2, rd.quint8))


def test_what_has_bounds_has_a_scale_of_its_own(q):
    assert q.sigmoid().q_scale() == 1 / 256 and q.tanh().q_zero_point() == 128
    assert rd.allclose(q.tanh().dequantize(), q.dequantize().tanh(), atol=1 / 128)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), "saved"])
def test_copies_and_files_keep_the_quantizer(copied, q, c):
    def saved(x):
        file = io.BytesIO()
        rd.save(x, file)
        file.seek(0)
        return rd.load(file)

    for x in (q, c, rd.nn.Parameter(q, requires_grad=False)):
        found = (saved if copied == "saved" else copied)(x)
        assert str(found) == str(x) and found.dtype is x.dtype and rd.equal(found, x)


@pytest.mark.parametrize(
    "arguments, problem",
    [
        ((X, 0.1, 300, rd.quint8), "quantize_tensor_per_tensor_affine zero_point 300 is above upper bound."),
        ((X, 0.1, -3, rd.quint8), "quantize_tensor_per_tensor_affine zero_point -3 is below lower bound."),
        ((X.double(), 0.1, 3, rd.quint8), "Quantize only works on Float Tensor, got Double"),
        ((X, 0.1, 3, rd.uint8), "ScalarType Byte is not supported in new_qtensor."),
    ],
)
def test_what_cannot_be_quantised_is_refused_in_pytorchs_words(arguments, problem):
    with pytest.raises(RuntimeError, match=problem):
        rd.quantize_per_tensor(*arguments)


def test_channels_must_fit(q):
    make = rd.quantize_per_channel
    for scales, points, axis, problem in (
        ([0.1], [0, 1], 0, "number of elements in scales and zero_points must match"),
        ([0.1, 0.2], [0, 1], 5, "Channel axis out of range"),
        ([0.1, 0.2], [0, 300], 1, "zero_point 300 is above upper bound"),
    ):
        with pytest.raises(RuntimeError, match=problem):
            make(rd.ones(2, 2), rd.tensor(scales), rd.tensor(points), axis, rd.quint8)


def test_quantising_lists_and_by_the_range_of_the_elements():
    both = rd.quantize_per_tensor([X, X], rd.tensor([0.1, 0.2]), rd.tensor([3, 4]), rd.quint8)
    assert [one.q_zero_point() for one in both] == [3, 4] and len(rd.dequantize(list(both))) == 2
    dynamic = rd.quantize_per_tensor_dynamic(X, rd.quint8, False)
    assert (dynamic.dequantize() - X).abs().max() <= dynamic.q_scale() and dynamic.q_zero_point() == 15
