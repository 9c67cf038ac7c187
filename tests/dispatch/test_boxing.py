"""A call is read against its schema with PyTorch's words for what does not fit, and a stack becomes a call again."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redispatch.dispatch import NUMBER_FOR_TENSOR, DispatchKeySet, bind, keyset, parse_schema, unbind
from redispatch.dispatch.core.base import ARGUMENT_TYPES
from redispatch.dispatch.kernel_conventions import box, box_fallback
from redispatch.dispatch.schema.convert import _CONVERTERS

from .fakes import Fake

F = parse_schema("t::f(Tensor x, int n=1, *, float a=1., bool b=False) -> Tensor")
G = parse_schema('t::g(Tensor[] xs, int[2] s=1, Tensor? o=None, int[]? d=None, Scalar c=1, str m="a") -> Tensor')
x = Fake(name="x")
y = Fake(name="y")


@pytest.mark.parametrize(
    ("args", "kwargs", "stack"),
    [
        ((x,), {}, [x, 1, 1.0, False]),
        ((), {"n": 2, "x": x, "b": True}, [x, 2, 1.0, True]),
        ((x, True), {}, [x, 1, 1.0, False]),
        ((x, np.int64(3)), {"a": np.float32(0.5), "b": np.True_}, [x, 3, 0.5, True]),
        ((x,), {"a": 2, "b": 1}, [x, 1, 2.0, True]),
        ((x,), {"b": None}, [x, 1, 1.0, False]),
    ],
)
def test_a_call_becomes_a_stack_of_the_schemas_types(args, kwargs, stack):
    bound = bind(F, args, kwargs)
    assert bound == stack
    assert list(map(type, bound)) == list(map(type, stack))


@pytest.mark.parametrize(
    ("args", "kwargs", "stack"),
    [
        (([x],), {}, [[x], [1, 1], None, None, 1, "a"]),
        (((x, y), 3), {}, [[x, y], [3, 3], None, None, 1, "a"]),
        (([], [3]), {}, [[], [3], None, None, 1, "a"]),
        (([x], range(3, 5)), {}, [[x], [3, 4], None, None, 1, "a"]),
        (([x], (4, 5), y, (3, True)), {}, [[x], [4, 5], y, [3, 1], 1, "a"]),
        (([x],), {"c": True, "m": "b"}, [[x], [1, 1], None, None, True, "b"]),
        (([x],), {"c": np.float64(0.5)}, [[x], [1, 1], None, None, 0.5, "a"]),
        (([x],), {"c": 1j}, [[x], [1, 1], None, None, 1j, "a"]),
    ],
)
def test_lists_optionals_and_numbers(args, kwargs, stack):
    bound = bind(G, args, kwargs)
    assert bound == stack
    assert list(map(type, bound)) == list(map(type, stack))


# The messages are PyTorch's, word for word up to "Cast error details".


@pytest.mark.parametrize(
    ("kwargs", "type_", "name", "found"),
    [
        ({"xs": x}, "List[Tensor]", "xs", "Fake"),
        ({"xs": [x, None]}, "List[Tensor]", "xs", "list"),
        ({"xs": [x], "s": "ab"}, "List[int]", "s", "str"),
        ({"xs": [x], "d": 3}, "Optional[List[int]]", "d", "int"),
        ({"xs": [x], "d": [1.5]}, "Optional[List[int]]", "d", "list"),
        ({"xs": [x], "c": "q"}, "number", "c", "str"),
        ({"xs": [x], "m": 3}, "str", "m", "int"),
        ({"xs": [x], "o": 3}, "Optional[Tensor]", "o", "int"),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_both_types(kwargs, type_, name, found):
    text = f"Expected a value of type '{type_}' for argument '{name}' but instead found type '{found}'"
    with pytest.raises(RuntimeError) as caught:
        bind(G, (), kwargs)
    assert text in str(caught.value)


def test_a_number_may_stand_for_a_tensor_where_the_operator_says_so():
    with pytest.raises(RuntimeError, match="Unable to cast 2 to Tensor"):
        bind(F, (2,), {})
    NUMBER_FOR_TENSOR.add("t::f")
    assert bind(F, (2,), {}) == [2, 1, 1.0, False]
    with pytest.raises(RuntimeError, match="Unable to cast two to Tensor"):
        bind(F, ("two",), {})


def test_upper_rooms_give_the_types_that_only_they_know():
    schema = parse_schema("t::c(__torch__.torch.classes.t.Colour c) -> ()")
    ARGUMENT_TYPES[schema.arguments[0].type.name] = lambda value: value.upper()
    assert bind(schema, ("red",), {}) == ["RED"]


def test_a_default_that_the_schema_writes_as_a_number_is_what_the_number_stands_for():
    schema = parse_schema("t::h(int n=3, *, ScalarType? dtype=4) -> Tensor")
    ARGUMENT_TYPES["ScalarType"] = lambda value: {4: "int64"}.get(value, value)
    _CONVERTERS.clear()
    try:
        assert bind(schema, (), {}) == bind(schema, (), {"dtype": "int64"}) == [3, "int64"]
        assert unbind(schema, [3, "int64"]) == ((), {})
        assert unbind(schema, [3, "int32"]) == ((), {"dtype": "int32"})
    finally:
        _CONVERTERS.clear()


def test_a_self_argument_may_be_passed_by_name():
    schema = parse_schema("t::s(Tensor self, Tensor op) -> Tensor")
    assert bind(schema, (), {"op": y, "self": x}) == [x, y]


# Back to a call -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stack", "args", "kwargs"),
    [
        ([x, 1, 1.0, False], (x,), {}),
        ([x, 2, 1.0, False], (x, 2), {}),
        ([x, 1, 2.0, False], (x,), {"a": 2.0}),
        ([x, True, 1, False], (x, True), {"a": 1}),  # equal, but of another type: not the default
        ([x, 1, 1.0, True], (x,), {"b": True}),
    ],
)
def test_defaults_are_left_out_from_the_right_and_keywords_each_for_itself(stack, args, kwargs):
    assert unbind(F, stack) == (args, kwargs)


def test_a_default_in_the_middle_stays():
    assert unbind(G, [[x], [1, 1], None, [3], 1, "a"]) == (([x], [1, 1], None, [3]), {})
    assert unbind(G, [[x], [1, 1], y, None, 1, "a"]) == (([x], [1, 1], y), {})


values = {
    "x": st.just(x),
    "n": st.integers(-1, 2),
    "a": st.sampled_from([1.0, 0.5]),
    "b": st.booleans(),
}


@given(st.fixed_dictionaries(values))
def test_unbind_is_the_inverse_of_bind(named):
    stack = bind(F, (), named)
    args, kwargs = unbind(F, stack)
    assert bind(F, args, kwargs) == stack == [named["x"], named["n"], named["a"], named["b"]]


# Kernels ------------------------------------------------------------------------------------------------------------


def test_each_convention_takes_the_stack_its_own_way():
    stack, keys, op = [x, 2, 1.0, True], keyset("CPU"), SimpleNamespace(schema=F)
    assert box(lambda *a: a, op, "boxed")("op", keys, stack) == ("op", keys, stack)
    assert box(lambda *a: a, op, "positional")("op", keys, stack) == (x, 2, 1.0, True)
    seen = []
    assert box(lambda *a, **k: seen.append((a, k)) or x, op, "python")("op", keys, stack) is x
    assert seen.pop() == ((x, 2), {"b": True})
    assert box(lambda *a, **k: seen.append((a, k)) or x, op, "keyset")("op", keys, stack) is x
    (given_keys, *args), kwargs = seen.pop()
    assert isinstance(given_keys, DispatchKeySet) and given_keys == keys
    assert (args, kwargs) == ([x, 2], {"b": True})
    with pytest.raises(ValueError, match="unknown calling convention 'c'"):
        box(len, op, "c")


def test_a_fallback_is_given_the_operator_first():
    class Op:
        schema = F

    assert box_fallback(lambda *a, **k: (a, k), with_keyset=False)(Op, 5, [x, 2, 1.0, True]) == (
        (Op, x, 2),
        {"b": True},
    )
    args, _ = box_fallback(lambda *a, **k: (a, k), with_keyset=True)(Op, 5, [x, 1, 1.0, False])
    assert args == (DispatchKeySet(5), Op, x)
