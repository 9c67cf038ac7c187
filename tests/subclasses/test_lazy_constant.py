"""LazyConstant and ZeroTensor: they stay one number where they can, and every answer is the full tensor's."""

import copy

import pytest

import redispatch as rd
from redispatch.subclasses.lazy_constant import LazyConstant, ZeroTensor
from redispatch.testing import assert_close


def lazy(number, *shape, dtype=None):
    return LazyConstant(rd.tensor(number, dtype=dtype), shape)


LAZY = [
    lambda x, y: x * 3,
    lambda x, y: (x + y).exp(),
    lambda x, y: x / y[0],
    lambda x, y: x > y,
    lambda x, y: rd.where(x > 1, x, y),
    lambda x, y: x.t(),
    lambda x, y: x.view(6)[2:],
    lambda x, y: x[1],
    lambda x, y: x.unbind(1)[2],
    lambda x, y: x.amax(0, keepdim=True),
    lambda x, y: x.clone(),
    lambda x, y: x.sum(),
]
PLAIN = [
    lambda x, y: x + rd.ones(3),
    lambda x, y: x.sum(0),
    lambda x, y: x @ y.t(),
    lambda x, y: rd.cat([x, rd.zeros(1, 3)]),
    lambda x, y: x.softmax(1),
    lambda x, y: x.std(),
    lambda x, y: x.sort()[0],
]


@pytest.mark.parametrize("run", LAZY)
def test_what_stays_one_number_is_the_full_tensors_answer(run):
    x, y = lazy(2.0, 2, 3), lazy(0.5, 2, 3)
    result, expected = run(x, y), run(x.materialize(), y.materialize())
    assert isinstance(result, LazyConstant) or result.dim() == 0
    assert_close(result.materialize() if isinstance(result, LazyConstant) else result, expected)


@pytest.mark.parametrize("run", PLAIN)
def test_the_rest_reads_it_as_a_plain_tensor(run):
    x, y = lazy(2.0, 2, 3), lazy(0.5, 2, 3)
    result = run(x, y)
    assert type(result) is rd.Tensor
    assert_close(result, run(x.materialize(), y.materialize()))


def test_dtypes_are_promoted_as_those_of_full_tensors():
    whole, half = lazy(2, 4), LazyConstant(rd.tensor(0.5, dtype=rd.float64), ())
    for a, b in [(whole, half), (lazy(1.0, 4), half), (whole, lazy(True, 4))]:
        assert (a + b).dtype == (a.materialize() + b.materialize()).dtype


def test_it_holds_one_element():
    x = lazy(1.0, 1000, 1000)
    assert x.value.numel() == 1 and x.shape == (1000, 1000) and x.stride() == (1000, 1)
    assert x.materialize().stride() == (1000, 1)


def test_it_cannot_be_written():
    for write in (lambda x: x.add_(1), lambda x: rd.add(rd.ones(2), 1, out=x)):
        x = lazy(1.0, 2)
        with pytest.raises(TypeError, match=r"has no elements to write to; write to x.materialize\(\)"):
            write(x)
    assert rd.zeros(2).add_(lazy(1.0, 2)).tolist() == [1.0, 1.0]


def test_zero_vanishes_in_sums():
    x, zero = rd.arange(6.0).reshape(2, 3), ZeroTensor((2, 3))
    for result in (x + zero, zero + x, x - zero, rd.add(x, zero, alpha=3)):
        assert type(result) is rd.Tensor and result.tolist() == x.tolist()
        assert result.data_ptr() != x.data_ptr()
    assert (zero - x).tolist() == (-x).tolist()
    assert rd.add(zero, x, alpha=2).tolist() == (2 * x).tolist()
    assert (x[0] + zero).tolist() == [x[0].tolist()] * 2
    assert (ZeroTensor((2, 3), dtype=rd.float64) + x).dtype == rd.float64
    assert repr(zero + zero) == "ZeroTensor(0.0, shape=[2, 3])"


def test_zero_makes_zero_of_products_whatever_the_other_is():
    zero = ZeroTensor((2, 3))
    for result, shape in ((zero * rd.full((3,), float("inf")), (2, 3)), (zero @ rd.ones(3, 4), (2, 4))):
        assert type(result) is ZeroTensor and result.shape == shape
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied|must match"):
        zero @ rd.ones(2, 2)


def test_constants_become_zero_when_their_value_does_and_minus_zero_is_another():
    assert type(lazy(2.0, 3) - 2) is ZeroTensor
    assert type(ZeroTensor((3,)).exp()) is LazyConstant
    assert type(ZeroTensor((3,)).neg()) is LazyConstant
    assert (1 / ZeroTensor((1,)).neg()).materialize().tolist() == [float("-inf")]


def test_gradients_pass_through_what_it_meets():
    x = rd.ones(2, 3, requires_grad=True)
    (x * lazy(3.0, 2, 3) + ZeroTensor((2, 3))).sum().backward()
    assert_close(x.grad, rd.full((2, 3), 3.0))
    y = lazy(2.0, 3).requires_grad_()
    (y * y).sum().backward()
    assert y.grad.tolist() == [4.0] * 3


def test_it_is_copied_as_one_number_and_wants_one():
    assert repr(copy.deepcopy(lazy(1.5, 2))) == "LazyConstant(1.5, shape=[2])"
    assert type(copy.deepcopy(ZeroTensor((2,)))) is ZeroTensor
    with pytest.raises(ValueError, match=r"without dimensions, but got shape \[1\]"):
        LazyConstant(rd.ones(1), (2,))


def test_operators_with_several_results_or_none_that_is_a_tensor():
    mantissa, exponent = rd.frexp(lazy(8.0, 2, 3))
    assert type(mantissa) is type(exponent) is LazyConstant and exponent.value == 4
    assert rd.equal(lazy(8.0, 2), lazy(8.0, 2)) and not rd.equal(lazy(8.0, 2), rd.ones(2))


def test_what_writes_into_views_or_into_lists_is_refused_before_it_does():
    x = lazy(1.0, 3, 3)
    with pytest.raises(TypeError, match="aten.as_strided.default: a LazyConstant has no memory"):
        x.fill_diagonal_(2)
    with pytest.raises(TypeError, match="a constant has no elements to write to"):
        rd.ops.aten._foreach_add_.Scalar([rd.ones(2), lazy(1.0, 2)], 1)
    assert x.value == 1


def test_a_complex_zero_is_a_constant_like_any_other():
    zero = rd.complex(ZeroTensor((2,)), ZeroTensor((2,)))
    assert type(zero) is LazyConstant and zero.dtype == rd.complex64
