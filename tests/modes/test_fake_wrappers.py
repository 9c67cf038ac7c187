"""Fakes of wrapper subclasses: of the same class, with fakes inside."""

from __future__ import annotations

import pytest

import redispatch as rd
from redispatch.fx.experimental.symbolic_shapes import ShapeEnv
from redispatch.modes import FakeTensorMode
from redispatch.modes.fake_tensor import FakeTensor
from redispatch.subclasses import TwoTensor


def two(*shape):
    return TwoTensor(rd.ones(*shape), rd.zeros(*shape))


def test_a_fake_of_a_wrapper_has_its_class_and_fakes_inside():
    mode, real = FakeTensorMode(), two(2, 3)
    fake = mode.from_tensor(real)
    assert type(fake) is TwoTensor and type(fake.a) is type(fake.b) is FakeTensor
    assert mode.from_tensor(real) is fake and mode.from_tensor(real.a) is fake.a
    nested = mode.from_tensor(TwoTensor(two(2), two(2)))
    assert type(nested) is type(nested.a) is TwoTensor and type(nested.b.a) is FakeTensor


def test_a_fake_of_a_wrapper_that_is_a_parameter_is_one():
    fake = FakeTensorMode().from_tensor(rd.nn.Parameter(two(2, 3)))
    assert type(fake) is TwoTensor and isinstance(fake, rd.nn.Parameter) and fake.requires_grad and fake.is_leaf


def test_the_sizes_of_a_fake_wrapper_are_symbols_as_those_inside():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    fake = mode.from_tensor(two(4, 3), static_shapes=False)
    assert str(fake.shape) == str(fake.a.shape) == str(fake.b.shape) and "4" not in str(fake.shape)
    doubled = fake * 2
    assert type(doubled) is TwoTensor and str(doubled.shape) == str(fake.shape)


@pytest.mark.parametrize("inside", [True, False])
def test_a_wrapper_of_fakes_meets_a_fake_on_either_side(inside):
    mode = FakeTensorMode()
    with mode:
        wrapped, plain = two(2), rd.zeros(2)
        if inside:
            results = wrapped + plain, plain + wrapped
    if not inside:
        results = wrapped + plain, plain + wrapped
    for result in results:
        assert type(result) is TwoTensor and type(result.a) is FakeTensor
