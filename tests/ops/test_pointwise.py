"""Pointwise operators where a rule is easily wrong: integer powers, borders of a dtype, plans, the order of errors."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import redispatch as rd
from redispatch.kernels.declare.pointwise import pointwise


def test_an_integer_power_with_a_negative_exponent_is_a_rounded_inverse():
    base = rd.tensor([1, -1, -1, 2, -3])
    assert (base ** rd.tensor([-1, -1, -2, -1, -2])).tolist() == [1, -1, 1, 0, 0]


@pytest.mark.parametrize(
    ("dtype", "number", "sum"),
    [(rd.uint8, 300, 45), (rd.int8, 200, -55), (rd.uint8, -1, 0), (rd.int32, 2**31, 1 - 2**31)],
)
def test_a_number_too_large_for_a_narrow_integer_wraps(dtype, number, sum):
    result = rd.ones(1, dtype=dtype) + number
    assert (result.item(), result.dtype) == (sum, dtype)


def test_division_by_zero_is_not_looked_for_without_data():
    assert rd.floor_divide(rd.ones(2, dtype=rd.int64, device="meta"), 1).shape == (2,)


@pytest.mark.parametrize("call", [rd.neg, rd.abs, rd.floor, lambda x, out: rd.clamp(x, 0, out=out)])
def test_some_operators_convert_nothing_on_the_way_to_out(call):
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        call(rd.ones(2), out=rd.empty(2, dtype=rd.float64))
    assert rd.exp(rd.zeros(2), out=rd.empty(2, dtype=rd.float64)).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("call", "name"),
    [(rd.remainder, "remainder_cpu"), (rd.fmod, "fmod_cpu"), (rd.pow, "pow"), (rd.floor_divide, "div_floor_cpu")],
)
def test_bools_have_no_arithmetic_of_their_own(call, name):
    flag = rd.tensor([True])
    with pytest.raises(NotImplementedError, match=f"\"{name}\" not implemented for 'Bool'"):
        call(flag, flag)
    assert (flag / flag).item() == 1


# Note [A plan for arguments that look alike]: what was decided for one call must not hold for a call that differs in
# what counts.


def test_the_default_dtype_counts_after_calls_were_planned():
    whole = rd.tensor([1, 2])
    calls = [lambda: whole / 2, lambda: whole + 1.5, lambda: rd.exp(whole), lambda: whole.float() * 1.5]
    before = [call().dtype for call in calls]
    rd.set_default_dtype(rd.float64)
    try:
        assert [call().dtype for call in calls] == [rd.float64, rd.float64, rd.float64, rd.float32]
    finally:
        rd.set_default_dtype(rd.float32)
    assert [call().dtype for call in calls] == before == [rd.float32] * 4


def test_the_type_of_a_number_counts_although_the_value_is_equal():
    whole = rd.tensor([1, 2])
    assert (whole**2).dtype is rd.int64
    assert (whole**2.0).dtype is rd.float32
    assert (whole + 1).dtype is rd.int64
    assert (whole + 1.0).dtype is rd.float32
    assert (rd.tensor([True]) + True).dtype is rd.bool
    assert (rd.tensor([True]) + 1).dtype is rd.int64
    rd.add(whole, whole, alpha=1)
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        rd.add(whole, whole, alpha=1.0)


def test_the_value_of_a_number_is_checked_at_each_call():
    whole = rd.tensor([1, 2])
    assert (whole**4).tolist() == [1, 16]
    for _ in range(2):
        with pytest.raises(RuntimeError, match="negative integer powers"):
            whole**-4
    assert (whole % 4).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        whole % 0


@pytest.mark.parametrize("dtype, number, sum", [(rd.uint8, 300, 45), (rd.int8, 200, -55), (rd.int32, 2**31, 1 - 2**31)])
def test_a_number_too_large_for_a_narrow_integer_wraps_in_place_and_into_out(dtype, number, sum):
    assert rd.ones(2, dtype=dtype).add_(number).tolist() == [sum, sum]
    assert rd.add(rd.ones(2, dtype=dtype), number, out=rd.empty(2, dtype=dtype)).tolist() == [sum, sum]
    assert rd.ones(2, dtype=dtype).add_(rd.ones(1, dtype=dtype), alpha=number).tolist() == [sum, sum]


def test_each_scalar_function_serves_the_values_that_it_names():
    x = rd.tensor([2.0, -3.0])
    for exponent, wanted in [(2, [4, 9]), (3, [8, -27]), (2.0, [4, 9]), (4, [16, 81]), (2, [4, 9])]:
        assert x.pow(exponent).tolist() == wanted
    assert rd.add(x, x, alpha=2).tolist() == [6, -9]
    assert rd.add(x, x, alpha=1).tolist() == [4, -6]
    assert [rd.clamp(x, min=0).tolist(), rd.clamp(x, max=0).tolist(), rd.clamp(x, -1, 1).tolist()] == [
        [2, 0],
        [0, -3],
        [1, -1],
    ]


@pytest.mark.parametrize(
    "call, wanted",
    [
        (lambda x: x.add_(x), [0, 2, 4, 6]),
        (lambda x: x.mul_(x.detach()), [0, 1, 4, 9]),
        (lambda x: x[:2].add_(x[2:]), [2, 4, 2, 3]),
        (lambda x: x[::2].add_(x[1::2]), [1, 1, 5, 3]),
        (lambda x: x.view(2, 2).add_(x.view(2, 2)[:, :1]), [0, 1, 4, 5]),
        (lambda x: x.add_(x[1:2].clone()), [1, 2, 3, 4]),
    ],
)
def test_an_in_place_operator_reads_its_inputs_as_they_were(call, wanted):
    for x in (rd.arange(4.0), rd.arange(4.0) + 0):  # with a storage object, and without one
        x[0]
        call(x)
        assert x.tolist() == wanted


def test_what_an_in_place_operator_refuses_it_refuses_each_time():
    x, expanded = rd.arange(4.0), rd.ones(1).expand(3)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
            x[1:].add_(x[:-1])
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            expanded.add_(1)
        with pytest.raises(RuntimeError, match="can't be cast"):
            rd.ones(2, dtype=rd.int64).add_(1.5)
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            rd.ones(2).add_(rd.ones(3, 2))


def test_large_operands_are_computed_as_small_ones_are():
    x = rd.arange(300_000, dtype=rd.float64)
    assert (x + x)[-3:].tolist() == [599_994, 599_996, 599_998]
    assert (x.view(1000, 300) * rd.arange(300.0, dtype=rd.float64))[-1, -1].item() == 299 * 299_999
    assert x.add_(1)[-1].item() == 300_000
    assert (x.to(rd.int32) + 2**32)[-1].item() == 300_000


def test_results_in_inference_mode_are_inference_tensors():
    x = rd.ones(3)
    assert not (x + 1).is_inference()
    with rd.inference_mode():
        assert (x + 1).is_inference()
    assert not (x + 1).is_inference()


def test_a_parameter_is_an_operand_like_any_other():
    parameter = rd.nn.Parameter(rd.ones(3))
    assert type(parameter + 1) is rd.Tensor
    with rd.no_grad():
        assert parameter.add_(1) is parameter
    assert parameter.tolist() == [2, 2, 2]


def twice_element(self):
    return self + self


def thrice_element(self):
    return self + self + self


def refuse(self, how):
    raise RuntimeError("refused")


def test_what_is_declared_later_counts_for_calls_that_were_planned_before():
    op = pointwise("test_manifold(Tensor self, *, int how=0) -> Tensor", namespace="lesson")
    op.scalar(twice_element)
    x = rd.ones(2)
    for _ in range(5):  # often enough for code to be made
        assert op.functional(x, how=1).tolist() == [2, 2]
    op.scalar(thrice_element, when={"how": 1})
    assert op.functional(x, how=1).tolist() == [3, 3]
    assert op.functional(x).tolist() == [2, 2]
    op.check(refuse)
    with pytest.raises(RuntimeError, match="refused"):
        op.functional(x, how=1)


def test_numbers_of_64_bits_without_a_sign_wrap_in_int64():
    x = rd.tensor([1, 2])
    assert (x + 2**63).tolist() == [1 - 2**63, 2 - 2**63]
    assert (x * (2**64 - 1)).tolist() == [-1, -2]
    assert (2**63 - x).tolist() == [2**63 - 1, 2**63 - 2]
    assert (x | (2**64 - 1)).tolist() == [-1, -1]
    assert x.add_(2**63).tolist() == [1 - 2**63, 2 - 2**63]
    with pytest.raises(OverflowError, match="int too big to convert"):
        x + 2**64
    with pytest.raises(OverflowError, match="can't convert negative int to unsigned"):
        x - (-(2**63) - 1)


# Parts of numbers: what is easily wrong at the borders of a dtype, and what out= must look like -----------------------


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


@pytest.mark.parametrize(
    "name, dtype", list(itertools.product(["sin", "cos", "tan", "lgamma", "digamma", "pow"], [rd.float32, rd.float64]))
)
def test_the_bits_of_an_element_do_not_depend_on_its_neighbours(name, dtype):
    """Kernels look at blocks of elements, and compute usual ones faster."""
    x = rd.randn(2000, generator=rd.Generator().manual_seed(0)).abs().to(dtype)
    beside_strange = x.clone()
    beside_strange[::500] = {"pow": math.inf}.get(name, -1e30)
    function = (lambda x: x**1.7) if name == "pow" else getattr(rd, name)
    usual = beside_strange == x
    assert rd.equal(function(x)[usual], function(beside_strange)[usual])
    assert rd.equal(function(x[::2]), function(x)[::2])  # by a loop over elements that are apart
