"""Symbolic numbers: expressions in normal form, what is known of them, and the guards that questions leave."""

import math
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redispatch.dispatch.symbolic import (
    GuardOnDataDependentSymNode,
    ShapeEnv,
    SymInt,
    apply,
    bounds,
    evaluate,
)

OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "max": max,
    "min": min,
}
LEAVES = st.one_of(st.sampled_from("abc"), st.integers(-4, 6))
PROGRAMS = st.recursive(
    LEAVES, lambda inner: st.tuples(st.sampled_from(sorted(OPERATIONS)), inner, inner), max_leaves=9
)
VALUES = st.tuples(*[st.integers(2, 40)] * 3)


def computed(program, values, symbolic):
    """The value of a program, on ints or on symbols."""
    if isinstance(program, int):
        return program
    if isinstance(program, str):
        return values["abc".index(program)]
    kind, *parts = program
    one, two = (computed(part, values, symbolic) for part in parts)
    if symbolic and isinstance(one, SymInt) | isinstance(two, SymInt):
        return apply(kind, one, two)
    return OPERATIONS[kind](one, two)


def symbols(values):
    env = ShapeEnv(duck_shape=False)
    return env, [env.create_unspecified_symint(value) for value in values]


@given(PROGRAMS, VALUES, VALUES)
def test_an_expression_has_the_value_that_python_gives_its_program(program, values, others):
    env, made = symbols(values)
    try:
        wanted = computed(program, values, False)
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            computed(program, made, True)
        return
    found = computed(program, made, True)
    if isinstance(found, int):
        assert found == wanted
        return
    node = found.node
    assert node.hint == evaluate(node.original, env.var_to_val) == wanted
    assert all(evaluate(guard.expr, env.var_to_val) for guard in env.guards)
    elsewhere = dict(zip(("s0", "s1", "s2"), others, strict=True))
    if all(evaluate(guard.expr, elsewhere) for guard in env.guards):  # where they hold, it says what Python does
        wanted = computed(program, others, False)
        assert evaluate(node.original, elsewhere) == evaluate(node.expr, elsewhere) == wanted
        low, high = bounds(node.original, env.var_to_range)
        assert low <= wanted <= high


@given(st.lists(st.tuples(PROGRAMS, PROGRAMS, st.sampled_from("== != < <= > >=".split())), max_size=6), VALUES, VALUES)
def test_where_the_guards_hold_every_question_has_the_answer_that_was_seen(questions, values, others):
    compare = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt}
    compare[">="] = operator.ge
    env, made = symbols(values)
    asked = []
    for one, two, kind in questions:
        try:
            answer = compare[kind](computed(one, values, False), computed(two, values, False))
            assert bool(compare[kind](computed(one, made, True), computed(two, made, True))) is answer
            asked.append((one, two, kind, answer))
        except ZeroDivisionError:
            pass
    assert all(evaluate(guard.expr, env.var_to_val) for guard in env.guards)
    elsewhere = dict(zip(("s0", "s1", "s2"), others, strict=True))
    if all(evaluate(guard.expr, elsewhere) for guard in env.guards):
        for one, two, kind, answer in asked:
            assert compare[kind](computed(one, others, False), computed(two, others, False)) is answer


def test_equal_polynomials_are_one_text_and_ask_nothing():
    env, (a, b, _) = symbols((5, 7, 9))
    assert (a + b) * (a - b) == a * a - b * b
    assert (4 * a + 3) // 2 == 2 * a + 1
    assert (a * b + a) // a == b + 1
    assert a - a == 0 and type(a - a) is int
    assert str((a // 2) // 3) == "(s0 // 6)" and str((6 * a + b) % 3) == "(s1 % 3)"
    assert env.guards == []


def test_what_needs_an_int_leaves_a_guard():
    env, (a, b, c) = symbols((5, 7, 9))
    assert list(range(a)) == [0, 1, 2, 3, 4]
    assert "x" * b == "xxxxxxx" and math.sqrt(c) == 3
    assert [str(guard) for guard in env.guards] == ["s0 == 5", "s1 == 7", "s2 == 9"]
    assert a == 5 and type(a + 1) is int


def test_sizes_of_zero_and_one_are_numbers_and_equal_ones_one_symbol():
    env = ShapeEnv()
    assert [str(env.create_symbol(value, f"x{value}")) for value in (0, 1, 4, 6, 4)] == ["0", "1", "s0", "s1", "s0"]


def test_a_dictionary_does_not_hide_the_value_of_a_symbol():
    _, (a, _, _) = symbols((5, 7, 9))
    with pytest.raises(TypeError, match="unhashable type: 'SymInt'"):
        {5: "five"}.get(a)


def test_what_depends_on_elements_has_the_answer_that_facts_give():
    env = ShapeEnv()
    u = env.create_unbacked_symint()
    with pytest.raises(GuardOnDataDependentSymNode, match="Could not guard on data-dependent expression u0 < 10"):
        bool(u < 10)
    env.check((u >= 3).node.original)
    env.check((u < 10).node.original)
    assert u > 2 and not u * 2 > 18 and u != 11 and not u == 2
    v = env.create_unbacked_symint()
    env.check((v == u + 1).node.original)
    assert v - u == 1 and v > 3
    assert env.guards == [] and [str(one) for one in env.deferred] == ["u0 >= 3", "u0 < 10", "u1 == u0 + 1"]


def test_numbers_with_a_point_are_followed_too():
    env, (a, b, _) = symbols((5, 7, 9))
    half = a / 2
    assert str(half) == "(s0 / 2)" and half.node.hint == 2.5
    rounded = math.floor(half + 0.5)
    assert isinstance(rounded, SymInt) and rounded == 3
    assert half < b and [str(guard) for guard in env.guards][-1] == "(s0 / 2) < s1"
    assert round(a) is round(a, 2) is a and round(b, -1) == 10 and str(env.guards[-1]) == "s1 == 7"
