"""Parts of numbers: what is easily wrong at the borders of a dtype, and what out= must look like."""

import math

import numpy as np
import pytest

import redispatch as rd


@pytest.mark.parametrize("kind, digits, least", [("float16", 10, 2.0**-24), ("bfloat16", 7, 2.0**-133)])
def test_the_next_number_of_16_bits_is_one_step_away(kind, digits, least):
    x = rd.tensor([1.0, 1.0, 0.0, -1.0, math.nan], dtype=getattr(rd, kind))
    y = rd.tensor([2.0, 0.0, -1.0, -1.0, 0.0], dtype=getattr(rd, kind))
    step = 2.0**-digits
    np.testing.assert_equal(rd.nextafter(x, y).tolist(), [1 + step, 1 - step / 2, -least, -1.0, math.nan])


def test_behind_the_largest_half_is_infinity_and_back():
    x = rd.tensor([65504.0, math.inf], dtype=rd.float16)
    assert rd.nextafter(x, rd.tensor([math.inf, 0.0], dtype=rd.float16)).tolist() == [math.inf, 65504.0]


def test_ldexp_reaches_what_the_power_alone_does_not():
    assert rd.ldexp(rd.tensor([1e-30]), rd.tensor([150])).item() == pytest.approx(1e-30 * 2.0**150)
    assert rd.ldexp(rd.tensor([1.0], dtype=rd.float64), rd.tensor([-1074])).item() == 5e-324


def test_frexp_and_ldexp_are_inverse():
    x = rd.randn(100, dtype=rd.float64)
    mantissa, exponent = rd.frexp(x)
    assert exponent.dtype is rd.int32 and rd.equal(rd.ldexp(mantissa, exponent), x)
    assert ((mantissa.abs() >= 0.5) & (mantissa.abs() < 1)).all()
    out = rd.frexp(x, out=(rd.empty(0, dtype=rd.float64), rd.empty(0, dtype=rd.int32)))
    assert rd.equal(out[0], mantissa)
    with pytest.raises(RuntimeError, match=r"torch.frexp\(\) expects exponent to have int dtype but got float"):
        rd.frexp(rd.ones(1), out=(rd.empty(1), rd.empty(1)))


def test_nan_to_num_knows_the_largest_number_of_each_dtype():
    for kind, most in (("float16", 65504.0), ("float32", np.finfo(np.float32).max), ("float64", np.finfo(float).max)):
        x = rd.tensor([math.nan, math.inf, -math.inf], dtype=getattr(rd, kind))
        assert x.nan_to_num_().tolist() == [0.0, most, -most]
    z = rd.tensor([complex(math.nan, math.inf)])
    assert rd.nan_to_num(z, 1.0, 2.0).tolist() == [1 + 2j]


def test_out_must_be_of_bool_where_the_answer_is():
    for function in (rd.signbit, rd.isposinf, rd.isneginf):
        with pytest.raises(RuntimeError, match=f"{function.__name__} does not support non-boolean outputs."):
            function(rd.ones(1), out=rd.empty(1))


def test_rounding_to_decimals():
    assert rd.round(rd.tensor([1.235, -2.5], dtype=rd.float64), decimals=2).tolist() == [1.24, -2.5]
    assert rd.round(rd.tensor([12345.0, 15.0]), decimals=-1).tolist() == [12340.0, 20.0]
    assert math.isnan(rd.round(rd.tensor([1.5]), decimals=400).item())


def test_float_power_computes_in_float64():
    assert rd.float_power(2, rd.tensor([3])).dtype is rd.float64
    assert rd.tensor([2.0], dtype=rd.float64).float_power_(3).item() == 8.0
    with pytest.raises(RuntimeError, match="the base given to float_power_ has dtype Float but the operation's result"):
        rd.ones(1).float_power_(2)
    with pytest.raises(RuntimeError, match="the output given to float_power has dtype Float but the operation's"):
        rd.float_power(rd.ones(1), 2, out=rd.empty(1))


def test_the_gradient_of_xlogy_by_a_number_is_zero_where_it_does_not_count():
    x = rd.tensor([0.0, 2.0], requires_grad=True)
    rd.xlogy(x, 0).sum().backward()
    assert x.grad.tolist() == [0.0, -math.inf]
