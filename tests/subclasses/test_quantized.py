"""Quantised weights: how close, how small, the product and its gradient, and that models keep and copy them."""

import copy
import io

import pytest

import redispatch as rd
from redispatch.serialization import add_safe_globals, clear_safe_globals
from redispatch.subclasses.quantized import Int4Weight, Int8Weight
from redispatch.testing import assert_close

KINDS = pytest.mark.parametrize("kind, options", [(Int8Weight, ()), (Int4Weight, (4,))])


def weight(rows=3, columns=8):
    return rd.randn(rows, columns, generator=rd.Generator().manual_seed(0))


@KINDS
def test_each_value_is_within_half_a_scale(kind, options):
    plain = weight()
    quantized = kind.from_float(plain, *options)
    assert quantized.shape == plain.shape and quantized.dtype == rd.float32
    scale = quantized.scale[:, None] if kind is Int8Weight else quantized.scale.repeat_interleave(4, 1)
    assert bool(((quantized.dequantize() - plain).abs() <= scale * 0.5001).all())


def test_codes_take_a_quarter_and_an_eighth_of_the_bytes():
    assert Int8Weight.from_float(weight()).codes.nbytes == weight().nbytes // 4
    packed = Int4Weight.from_float(weight(), 4)
    assert packed.codes.nbytes == weight().nbytes // 8
    assert repr(packed) == "Int4Weight(shape=[3, 8], 36 bytes)"


def test_two_nibbles_make_a_byte():
    packed = Int4Weight.from_float(rd.tensor([[7.0, -7.0, 0.0, 1.0]]), 4)
    assert packed.codes.tolist() == [[15 | 1 << 4, 8 | 9 << 4]]
    assert packed.dequantize().tolist() == [[7.0, -7.0, 0.0, 1.0]]


@KINDS
def test_zeros_stay_zeros(kind, options):
    assert kind.from_float(rd.zeros(2, 4), *options).dequantize().tolist() == [[0.0] * 4] * 2


@KINDS
@pytest.mark.parametrize("shape", [(5, 8), (8,), (2, 5, 8)])
def test_linear_and_the_gradient_of_its_input_are_those_of_the_dequantised_weight(kind, options, shape):
    quantized, bias = kind.from_float(weight(), *options), rd.ones(3)
    results = []
    for w in (quantized, quantized.dequantize()):
        x = rd.arange(1.0 + rd.Size(shape).numel())[1:].reshape(shape).requires_grad_()
        y = rd.nn.functional.linear(x, w, bias)
        (y * y).sum().backward()
        assert type(y) is type(x.grad) is rd.Tensor
        results.append((y, x.grad))
    assert_close(results[0], results[1], rtol=1e-4, atol=1e-3)


@KINDS
def test_what_has_no_rule_dequantises(kind, options):
    quantized = kind.from_float(weight(), *options)
    plain = quantized.dequantize()
    assert_close(quantized * 2, plain * 2)
    assert_close(quantized[1], plain[1])
    assert_close(quantized.t() @ rd.ones(3), plain.t() @ rd.ones(3))
    assert_close(rd.cat([quantized, plain]), rd.cat([plain, plain]))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        rd.mm(rd.ones(2, 2), quantized)


@KINDS
def test_transposing_keeps_the_codes(kind, options):
    quantized = kind.from_float(weight(), *options)
    turned = quantized.t()
    assert type(turned) is kind and turned.codes is quantized.codes
    assert turned.shape == (8, 3) and turned.stride() == (1, 8)
    assert_close(turned.dequantize(), quantized.dequantize().t())


@KINDS
def test_a_model_keeps_copies_and_loads_it(kind, options):
    def model(values):
        linear = rd.nn.Linear(8, 3)
        linear.weight = rd.nn.Parameter(kind.from_float(values, *options), requires_grad=False)
        return linear

    linear = model(weight())
    assert [name for name, p in linear.named_parameters() if p.requires_grad] == ["bias"]
    twin = copy.deepcopy(linear)
    assert type(twin.weight) is kind and twin.weight.codes is not linear.weight.codes
    assert_close(twin.weight.dequantize(), linear.weight.dequantize())

    file = io.BytesIO()
    rd.save(linear.state_dict(), file)
    file.seek(0)
    add_safe_globals([kind])
    try:
        state = rd.load(file)
    finally:
        clear_safe_globals()
    other = model(rd.zeros(3, 8))
    other.load_state_dict(state)
    assert_close(other.weight.dequantize(), linear.weight.dequantize())

    floats = rd.nn.Linear(8, 3)
    other.load_state_dict(floats.state_dict())
    assert_close(other.weight.dequantize(), kind.from_float(floats.weight, *options).dequantize())


@KINDS
def test_clone_has_codes_of_its_own_and_elements_cannot_be_written(kind, options):
    quantized = kind.from_float(weight(), *options)
    assert type(quantized.clone()) is kind and quantized.clone().codes is not quantized.codes
    with pytest.raises(TypeError, match="aten.add_.Tensor: a Int.Weight cannot be changed element by element"):
        quantized.add_(1)


@pytest.mark.parametrize("out", [Int8Weight, Int4Weight])
def test_a_weight_given_as_out_is_refused_and_not_written_past(out):
    target = out.from_float(rd.ones(2, 32))
    with pytest.raises(TypeError, match="aten.mm.out: a Int.Weight cannot be changed element by element"):
        rd.mm(rd.ones(2, 3), rd.ones(3, 32), out=target)
    assert target.dequantize().tolist() == rd.ones(2, 32).tolist()


@KINDS
def test_a_write_through_a_view_by_strides_is_refused_instead_of_lost(kind, options):
    with pytest.raises(TypeError, match="aten.as_strided.default: a Int[48]Weight has no memory"):
        kind.from_float(weight(), *options).fill_diagonal_(1)
