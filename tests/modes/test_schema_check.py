"""SchemaCheckMode: a broken promise of a schema is an error at the call."""

import pytest

import redispatch as rd
from redispatch._subclasses import schema_check_mode
from redispatch.library import Library
from redispatch.modes.schema_check import Aliasing, Mutation, SchemaCheckMode
from redispatch.subclasses.two_tensor import TwoTensor


def called(schema, kernel, *args):
    """What an operator of this schema and kernel gives under the mode, and the mode."""
    with Library("t", "FRAGMENT") as lib:
        lib.define(schema)
        lib.impl("f", kernel, "CPU")
        with SchemaCheckMode() as mode:
            return rd.ops.t.f(*args), mode


@pytest.mark.parametrize(
    ("schema", "kernel", "text"),
    [
        ("f(Tensor x) -> Tensor", lambda x: x.add_(1).clone(), "Argument x is not defined as mutable but was mutated"),
        ("f(Tensor x) -> Tensor", lambda x: (x.t_(), x.clone())[1], "Argument x is not defined as mutable"),
        ("f(Tensor[] x) -> Tensor", lambda x: x[0].add_(1).clone(), "Argument x is not defined as mutable"),
        ("f(Tensor x) -> Tensor", lambda x: x.view(-1), "Argument x is not defined to alias output but was aliasing"),
        ("f(Tensor x) -> Tensor", lambda x: x, "Argument x is not defined to alias output but was aliasing"),
        ("f(Tensor(a) x) -> Tensor(a)", lambda x: x, "not allowed to directly return inputs"),
        ("f(Tensor x) -> (Tensor, Tensor)", lambda x: (x.clone(),) * 2, "Outputs 0 and 1 alias unexpectedly"),
        ("f(Tensor self) -> Tensor", lambda x: x.add_(1).clone(), "Argument input is not defined as mutable"),
    ],
)
def test_a_broken_promise_raises(schema, kernel, text):
    x = rd.arange(6.0).view(2, 3)
    with pytest.raises(RuntimeError, match=text):
        called(schema, kernel, [x] if "[]" in schema else x)


def test_what_the_schema_says_is_recorded():
    x = rd.ones(2, 3)
    with SchemaCheckMode() as mode:
        x.add_(1).view(-1)
    assert mode.ops == ["aten::add_", "aten::view"]
    assert mode.mutated == [Mutation("aten::add_", "input")]
    assert mode.aliasing == [Aliasing("aten::add_", "input", "output_0"), Aliasing("aten::view", "input", "output_0")]
    mode.reset_cache()
    assert mode.ops == mode.mutated == mode.aliasing == []


def test_a_write_that_is_declared_and_does_not_happen_is_reported():
    """PyTorch's mode says nothing, and nobody learns that the schema costs a copy for nothing."""
    with pytest.warns(UserWarning, match="t::f: argument x is declared as written and was not"):
        _, mode = called("f(Tensor(a!) x) -> Tensor", lambda x: x.clone(), rd.ones(2))
    assert mode.unmutated == [Mutation("t::f", "x")]


def test_not_a_number_is_no_change():
    with SchemaCheckMode() as mode:
        rd.full((2,), float("nan")).sin()
    assert mode.mutated == [] and "aten::sin" in mode.ops


def test_training_holds_every_promise():
    layer = rd.nn.Sequential(rd.nn.Linear(3, 4), rd.nn.ReLU(inplace=True), rd.nn.BatchNorm1d(4))
    with SchemaCheckMode() as mode:
        layer(rd.ones(2, 3)).sum().backward()
    assert Mutation("aten::relu_", "input") in mode.mutated or "aten::relu_" in mode.ops


def test_wrappers_are_looked_into():
    with SchemaCheckMode() as mode:
        TwoTensor(rd.ones(2), rd.ones(2)).mul_(2)
    assert Mutation("aten::mul_", "input") in mode.mutated


def test_the_module_has_pytorchs_name():
    assert schema_check_mode.SchemaCheckMode is SchemaCheckMode


def test_views_of_one_memory_may_be_copied_into_one_another():
    x = rd.arange(6)
    with SchemaCheckMode():
        assert x[:2].copy_(x[4:]).tolist() == [4, 5]
        assert [len(part) for part in rd.unsafe_split_with_sizes(x, [2, 4])] == [2, 4]
