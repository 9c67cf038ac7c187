"""Symbolic numbers: expressions in normal form, what is known of them, and the guards that questions leave."""

import math
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch._dynamo.source import ConstantSource, LocalSource
from redispatch.dispatch.symbolic import (
    GuardOnDataDependentSymNode,
    ShapeEnv,
    SymInt,
    SymNode,
    apply,
    bounds,
    evaluate,
)
from redispatch.fx.experimental import symbolic_shapes as shapes
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.fx.experimental.sym_node import method_to_operator
from redispatch.fx.experimental.symbolic_shapes import DimDynamic, statically_known_true
from redispatch.modes.fake_tensor import FakeTensorMode

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
    with pytest.raises(TypeError, match="unhashable type: non-nested SymInt"):
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


def test_a_choice_asks_nothing_until_its_value_is_wanted():
    env, (a, b) = symbols((8, 6))
    chosen = rd.sym_ite(a > b, a, b)
    assert type(chosen) is SymInt and str(chosen) == "(s0 if s0 > s1 else s1)" and not env.guards
    assert chosen.node.hint == 8 and bool(chosen >= 2) and not env.guards
    assert int(chosen + 1) == 9 and len(env.guards) == 1
    assert [(a ^ 3).node.hint, (3 ^ a).node.hint, (a ^ b).node.hint] == [11, 11, 14]


def test_what_is_known_of_a_range_is_known_and_plain_numbers_are_checked():
    env = ShapeEnv()
    n, size = env.create_unbacked_symint(), env.create_unbacked_symint()
    rd.sym_constrain_range(n, min=3, max=8)
    rd.sym_constrain_range_for_size(size, max=8)
    assert bool(n > 2) and bool(n < 9) and bool(size >= 0) and not env.guards
    for bad in (lambda: rd.sym_constrain_range(9, min=3, max=8), lambda: rd.sym_constrain_range_for_size(9, max=8)):
        with pytest.raises(RuntimeError, match="Invalid value range for 9 between"):
            bad()
    with pytest.raises(RuntimeError, match="must be greater than 2. got: 1"):
        rd.sym_constrain_range_for_size(1, max=1)
    with pytest.raises(GuardOnDataDependentSymNode, match="Could not extract specialized integer from data-dependent"):
        int(n)
    assert env.is_unbacked_symint("u0") and env.size_hint(n.node.expr, allow_none=True) is None


def test_a_region_may_leave_no_guards():
    env, (a,) = symbols((8,))
    with env.suppress_guards():
        assert a > 5 and not env.guards
    assert a > 6 and len(env.guards) == 1 and env.size_hint(a.node.expr) == 8


def test_sizes_are_treated_as_the_environment_and_the_context_say():
    treated, kinds = shapes.StatelessSymbolicContext, shapes.DimDynamic
    apart = FakeTensorMode(shape_env=ShapeEnv(duck_shape=False)).from_tensor(rd.ones(3, 3))
    assert str(apart.shape[0]) != str(apart.shape[1])
    mode = FakeTensorMode(shape_env=ShapeEnv())
    context = treated(dynamic_sizes=[kinds.UNBACKED, kinds.STATIC])
    free = mode.from_tensor(rd.ones(4, 4), symbolic_context=context)
    assert str(free.shape[0]) == "u0" and free.shape[1] == 4 and shapes.has_free_unbacked_symbols(free)
    with mode:
        assert list(rd.tensor([1, 0, 2]).shape) == [3]  # what a program writes down has its size
        found = mode.from_tensor(rd.ones(5)).nonzero()
        assert (found + rd.ones(2)).shape[1] == 2  # is (u0, 1) as (2,)? no question of u0


def test_a_graph_knows_its_symbols():
    graph = make_fx(lambda x, n: x[:n] * 2, tracing_mode="symbolic")(rd.ones(6), 3)
    assert [str(one) for one in shapes.find_symbol_binding_fx_nodes(graph.graph)] == ["s1"]
    assert shapes.fx_placeholder_targets(graph) == ["x_1", "n_1"] and shapes.fx_placeholder_vals(graph)[0].dim() == 1
    assert shapes.eval_guards(graph, rd.ones(9), 4) and not shapes.eval_guards(graph, rd.ones(9), 12)
    assert shapes.optimization_hint(shapes.fx_placeholder_vals(graph)[1]) == 3


def test_symbols_are_bound_and_guards_are_called_by_their_sources():
    env = ShapeEnv()
    x = FakeTensorMode(shape_env=env).from_tensor(rd.ones(4, 3), source=LocalSource("x"))
    assert x.shape[0] > 3
    assert env.produce_guards([x], [LocalSource("x")]) == ["L['x'].size()[0] > 3"]
    assert {str(one): value for one, value in env.bind_symbols([x], [rd.ones(7, 5)]).items()} == {"s0": 7, "s1": 5}
    text = env.produce_guards_expression([x])
    assert env.evaluate_guards_expression(text, [9, 3]) and not env.evaluate_guards_expression(text, [3, 3])


def test_nodes_tell_which_symbols_they_bring():
    graph = make_fx(lambda x: x.nonzero() + 1, tracing_mode="symbolic")(rd.ones(3))
    nonzero = graph.graph.find_nodes(op="call_function", target=rd.ops.aten.nonzero.default)[0]
    ((symbol, way),) = nonzero.meta["unbacked_bindings"].items()
    assert str(symbol) == "u0" and [str(step) for step in way] == [".size()", "[0]"]
    env = graph.shape_env
    assert not env.pending_fresh_unbacked_symbols
    with env.ignore_fresh_unbacked_symbols():
        number = env.create_unbacked_symint()
    assert not env.pending_fresh_unbacked_symbols
    rd._check(number > 5)
    assert env.num_deferred_runtime_asserts == 1 and len(env.deferred_runtime_asserts) == 1


def test_symbols_are_made_as_is_said():
    env = ShapeEnv()
    duck, own = (
        SymInt(SymNode(env.create_symbol(5, ConstantSource(name), how, None), env, int, hint=5))
        for name, how in (("a", DimDynamic.DUCK), ("b", DimDynamic.DYNAMIC))
    )
    assert statically_known_true(duck + own - own == duck) and not statically_known_true(duck == own)
    assert env.create_symbol(5, "c", DimDynamic.STATIC) == 5
    assert method_to_operator("int_floordiv")(duck, 2) == 2 and method_to_operator("sym_float")(own) == 5.0
    assert method_to_operator("floor") is math.floor and method_to_operator("bitwise_and")(6, 3) == 2
    with pytest.raises(ValueError, match="no function does what"):
        method_to_operator("nothing_such")
