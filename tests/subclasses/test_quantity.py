"""Subclasses that hold less than their shape says, or more: diagonals, constants, units."""

import copy

import pytest

import redispatch as rd
from redispatch.subclasses.diag_tensor import DiagTensor
from redispatch.subclasses.lazy_constant import LazyConstant, ZeroTensor
from redispatch.subclasses.quantity import Quantity, Unit, UnitError
from redispatch.testing import assert_close

# Quantity: units are checked and combined, gradients come in the right ones, errors say what to do --------------------


def q(unit, *numbers):
    return Quantity(rd.tensor(numbers or (2.0, 3.0)), unit)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("", "1"),
        ("m", "m"),
        ("m/s^2", "m/s^2"),
        ("s^-2*m", "m/s^2"),
        ("m*m/m", "m"),
        ("m/m", "1"),
        ("1/s", "1/s"),
        ("kg*m^2/s^2/K", "kg*m^2/K/s^2"),
        ("m^0.5", "m^0.5"),
    ],
)
def test_units_are_read_and_shown(text, shown):
    unit = Unit("" if text == "1" else text)
    assert str(unit) == shown
    assert Unit("" if shown == "1" else shown) == unit


@pytest.mark.parametrize("text", ["m//s", "2m", "m s", "m^", "/s"])
def test_what_is_no_unit_is_refused(text):
    with pytest.raises(ValueError, match="cannot read .* such as kg"):
        Unit(text)


@pytest.mark.parametrize(
    "run, unit",
    [
        (lambda x, y: x + x, "m"),
        (lambda x, y: x - x, "m"),
        (lambda x, y: x * y, "m*s"),
        (lambda x, y: x / y, "m/s"),
        (lambda x, y: 1 / y, "1/s"),
        (lambda x, y: 3 * x, "m"),
        (lambda x, y: x @ y, "m*s"),
        (lambda x, y: x**3, "m^3"),
        (lambda x, y: x.square().sqrt(), "m"),
        (lambda x, y: rd.rsqrt(x), "1/m^0.5"),
        (lambda x, y: x.var(), "m^2"),
        (lambda x, y: x.std(), "m"),
        (lambda x, y: -x.mean(), "m"),
        (lambda x, y: rd.cat([x, x])[0], "m"),
        (lambda x, y: rd.stack([x, x]).t(), "m"),
        (lambda x, y: rd.where(x > 0, x, x), "m"),
        (lambda x, y: x.clamp(min=0), "m"),
        (lambda x, y: (x / x).exp(), "1"),
        (lambda x, y: rd.zeros_like(x), "m"),
    ],
)
def test_operators_combine_units_and_compute_what_they_did(run, unit):
    x, y = q("m"), q("s", 4.0, 5.0)
    result = run(x, y)
    assert str(result.unit) == unit
    assert result.value.tolist() == run(x.value, y.value).tolist()


def test_a_comparison_is_plain():
    assert type(q("m") > q("m")) is rd.Tensor
    assert (q("m") > 0).tolist() == [True, True]


@pytest.mark.parametrize(
    "run, text",
    [
        (lambda x, y: x + y, "aten.add.Tensor: cannot add m and s; convert one of them"),
        (lambda x, y: x + 1, r"cannot add 1 and m; .* wrap what is plain in Quantity\(x, unit\)"),
        (lambda x, y: rd.ones(2) - x, "cannot sub 1 and m"),
        (lambda x, y: x < y, "cannot lt m and s"),
        (lambda x, y: rd.cat([x, y]), "cannot cat m and s"),
        (lambda x, y: rd.where(x > 0, x, y), "cannot where m and s"),
        (lambda x, y: x.exp(), "aten.exp.default: expected pure numbers, but got m; divide by a Quantity"),
        (lambda x, y: 2**x, "expected pure numbers"),
    ],
)
def test_units_that_make_no_sense_are_refused(run, text):
    with pytest.raises(UnitError, match=text) as caught:
        run(q("m"), q("s"))
    assert caught.value.op.namespace == "aten" and Unit("m") in caught.value.units


def test_in_place_checks_before_it_writes():
    x, plain = q("m"), rd.zeros(2)
    assert x.add_(q("m")) is x and x.value.tolist() == [4.0, 6.0]
    assert x.mul_(2) is x
    for write in (lambda: x.mul_(q("m")), lambda: x.add_(q("s")), lambda: plain.copy_(x)):
        with pytest.raises(UnitError):
            write()
    assert x.value.tolist() == [8.0, 12.0] and plain.tolist() == [0.0, 0.0]
    with pytest.raises(UnitError, match="in m/s, but the tensor that it is written to in m"):
        rd.div(x, q("s"), out=q("m"))


def test_gradients_come_in_the_units_of_the_loss_by_the_input():
    mass, speed = q("kg").requires_grad_(), q("m/s", 1.0, 2.0).requires_grad_()
    energy = (mass * speed**2 / 2).sum()
    energy.backward()
    assert repr(energy.detach()) == "Quantity(7.0 kg*m^2/s^2)"
    assert repr(mass.grad) == "Quantity([0.5, 2.0] m^2/s^2)"
    assert repr(speed.grad) == "Quantity([2.0, 6.0] kg*m/s)"


def test_a_view_is_a_view_and_a_copy_keeps_the_unit():
    x = q("m/s")
    assert x[0]._base is x
    twin = copy.deepcopy(x)
    assert repr(twin) == repr(x) and twin.value is not x.value


# DiagTensor -----------------------------------------------------------------------------------------------------------

# The structure is kept where known, every answer is the dense matrix's, gradients find the diagonal.


def diag(*numbers):
    return DiagTensor(rd.tensor(numbers))


MATRIX = rd.arange(4.0).reshape(2, 2) + 1


@pytest.mark.parametrize(
    "run",
    [
        lambda d: d + diag(3.0, 4.0),
        lambda d: rd.add(d, diag(3.0, 4.0), alpha=2),
        lambda d: d - diag(3.0, 4.0),
        lambda d: d * diag(3.0, 4.0),
        lambda d: d * 3,
        lambda d: 3 * d,
        lambda d: d * rd.tensor(3.0),
        lambda d: MATRIX * d,
        lambda d: d @ diag(3.0, 4.0),
        lambda d: rd.linalg.inv(d),
        lambda d: rd.t(d),
    ],
)
def test_the_structure_is_kept_and_the_answer_is_the_dense_one(run):
    d = diag(2.0, 5.0)
    kept = run(d)
    assert type(kept) is DiagTensor
    dense = run(d.to_dense())
    assert_close(kept.to_dense(), dense.to_dense() if isinstance(dense, DiagTensor) else dense)


@pytest.mark.parametrize(
    "run",
    [
        lambda d: d @ MATRIX,
        lambda d: MATRIX @ d,
        lambda d: d @ MATRIX[0],
        lambda d: MATRIX[0] @ d,
        lambda d: rd.ones(3, 2, 2) @ d,
        lambda d: rd.matmul(d, rd.ones(3, 2, 2)),
        lambda d: rd.linalg.solve(d, MATRIX),
        lambda d: rd.linalg.det(d),
        lambda d: rd.trace(d),
        lambda d: rd.diagonal(d),
        lambda d: rd.diagonal(d, 1),
        # no rule for these: they get the dense matrix
        lambda d: d + 1,
        lambda d: MATRIX + d,
        lambda d: rd.exp(d),
        lambda d: rd.cat([d, MATRIX]),
        lambda d: d * MATRIX[0],
    ],
)
def test_every_other_answer_is_the_dense_one(run):
    d = diag(2.0, 5.0)
    result = run(d)
    assert type(result) is rd.Tensor or type(result) is DiagTensor
    assert_close(result.to_dense() if isinstance(result, DiagTensor) else result, run(d.to_dense()))


def test_gradients_arrive_at_the_diagonal():
    x = rd.tensor([2.0, 5.0], requires_grad=True)
    (rd.linalg.inv(DiagTensor(x)) @ MATRIX).sum().backward()
    dense = rd.tensor([2.0, 5.0], requires_grad=True)
    (rd.linalg.inv(rd.diag(dense)) @ MATRIX).sum().backward()
    assert_close(x.grad, dense.grad)


def test_a_zero_by_structure_is_zero_even_times_infinity():
    product = diag(1.0, 2.0) * rd.full((2, 2), float("inf"))
    assert product.to_dense().tolist() == [[float("inf"), 0.0], [0.0, float("inf")]]


def test_another_class_of_its_kind_is_let_answer():
    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "other"

    assert rd.matmul(diag(1.0), Other()) == "other"


def test_it_cannot_be_written_and_says_so():
    d, keep = diag(1.0, 2.0), diag(1.0, 2.0)
    with pytest.raises(TypeError, match="a DiagTensor cannot be written"):
        rd.tril(MATRIX, out=d)
    with pytest.raises(TypeError, match="aten.linalg_qr.out: a DiagTensor cannot be written"):
        rd.ops.aten.linalg_qr.out(MATRIX, Q=d, R=rd.zeros(2, 2))
    with pytest.raises(TypeError, match="fill_diagonal_: a DiagTensor cannot be written"):
        rd.Tensor.fill_diagonal_(d, 5)
    assert d.diagonal.tolist() == keep.diagonal.tolist()


# LazyConstant and ZeroTensor ------------------------------------------------------------------------------------------

# They stay one number where they can, and every answer is the full tensor's.


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
