"""Quantity: units are checked and combined, gradients come in the right ones, errors say what to do."""

import copy

import pytest

import redispatch as rd
from redispatch.subclasses.quantity import Quantity, Unit, UnitError


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
