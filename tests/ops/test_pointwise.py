"""Pointwise operators where the rule is easy to get wrong: integer powers, narrow integers, the order of errors."""

from __future__ import annotations

import pytest

import redispatch as rd


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


@pytest.mark.parametrize("call", [rd.floor_divide, rd.remainder, rd.fmod])
def test_shapes_are_checked_before_values(call):
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        call(rd.ones(2, dtype=rd.int64), rd.zeros(3, dtype=rd.int64))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        call(rd.ones(3, dtype=rd.int64), rd.zeros(3, dtype=rd.int64))


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
