"""The evaluator: what it makes of a function does what the function does, statement by statement.

A kernel here is a boxed kernel of an operator of its own. It is tried with things of which nothing is known when
code is made but that they are tensors: `x.a`, `x.b` are unknown values. Constructs that are not handled must run
boxed, and say so under "strict".
"""

import functools
import inspect
import linecache
import os
import re
import subprocess
import sys
import textwrap
import threading
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch.dispatch import DEFAULT, STATE, Library, below, define_key, include, keyset, run, within
from redispatch.dispatch.config import config
from redispatch.dispatch.core.registry import add_fallback
from redispatch.dispatch.layers.layer import boxed_kernel
from redispatch.dispatch.specialiser.annotations import frozen, inline, leaf, pure
from redispatch.dispatch.specialiser.residual import Writer
from redispatch.dispatch.specialiser.specialise import SpecialisationError

from .. import drawing
from .kernels import Thing, append, bump, code_for, codes_for, note, operator_of, outcome, outcomes, seen
from .twice import specialize

CASES = []
A = [{"a": 0}, {"a": 1}]
AB = [{"a": a, "b": b} for a in (0, 1) for b in (0, 2)]


def tried_with(*attributes, reset=lambda: None, handled=True, limit=""):
    """Adds a kernel to the table, with the attributes of the things that it is tried with.

    `reset` gives what the kernel finds at large its first value; `handled`: whether it must not run boxed; `limit`: why
    the code does something else.
    """

    def add(kernel):
        things = [lambda given=given: Thing(**given()) if callable(given) else Thing(**given) for given in attributes]
        marks = pytest.mark.xfail(reason=limit, strict=True) if limit else ()
        CASES.append(pytest.param(kernel, things, reset, handled, id=kernel.__name__, marks=marks))
        return kernel

    return add


@tried_with({"a": len}, {"a": str})
def what_an_unknown_function_returns_is_of_an_unknown_class(op, keyset, stack):
    function = stack[0].a
    found = function("three")
    return type(found) is int, type(found) is str, found is None, type(found) is type(None)


# Roads ----------------------------------------------------------------------------------------------------------------


@tried_with(*A)
def an_early_return_in_an_inlined_function_is_a_value_of_the_caller(op, keyset, stack):
    return [first_of(stack[0]), "went on"]


@inline
def first_of(x):
    if x.a:
        return note("early")
    note("late")
    return None


@tried_with(*AB)
def roads_that_join_know_what_holds_on_both(op, keyset, stack):
    x = stack[0]
    if x.a:
        value, same = note(1), 7
    else:
        value, same = note("one"), 7
    if x.b:
        value = (value, same)
    return value, isinstance(value, tuple), same + 1


@tried_with(*AB)
def roads_that_differ_in_what_is_known_stay_apart(op, keyset, stack):
    x = stack[0]
    node = None
    if x.a:
        node = note("node")
    rest = note(x.b)
    return rest if node is None else (node, rest)


@tried_with(*AB)
def a_known_number_is_not_joined_with_one_that_only_compares_equal(op, keyset, stack):
    x = stack[0]
    if x.a:
        zero, one, pair = 0.0, 1, (1, 0.0)
    else:
        zero, one, pair = -0.0, True, (True, -0.0)
    return zero, one, pair, note(x.b)


@tried_with(*AB)
def a_condition_is_learnt_on_its_road_alone(op, keyset, stack):
    x = stack[0]
    a = x.a
    if a is None or isinstance(a, int) and not a:
        return "nothing", a is None
    if isinstance(a, int) and x.b is not None:
        return "int", isinstance(a, int), x.b is None
    return "else", isinstance(a, int)


ABC = [{"a": a, "b": b, "c": c} for a in (0, 1) for b in (0, 1) for c in (1, None)]


@tried_with(*ABC)
def a_branch_without_statements(op, keyset, stack):
    x = stack[0]
    if not x.a if x.b else x.c:
        pass
    else:
        note(1)
    if not x.a == x.b:
        pass
    else:
        note(2)
    return x.a


@tried_with(*ABC)
def another_branch_without_statements(op, keyset, stack):
    x = stack[0]
    if x.a if x.b else x.c is None:
        pass
    else:
        note(1)
    if not x.a and x.b or x.c is None:
        pass
    else:
        note(2)
    return x.b


@tried_with(*AB)
def nested_conditions(op, keyset, stack):
    x = stack[0]
    if x.a:
        if x.b:
            result = note("both")
        else:
            return "a"
    elif x.b:
        result = note("b")
    else:
        raise ValueError("neither")
    return result, x.a


# Loops ----------------------------------------------------------------------------------------------------------------


@tried_with({"a": 1}, {"a": 2}, {"a": 9})
def a_loop_that_breaks(op, keyset, stack):
    for number in (1, 2, 3):
        if number == stack[0].a:
            note("found")
            break
        note(number)
    return number


@tried_with({"a": 1}, {"a": 9})
def a_loop_that_continues(op, keyset, stack):
    for number in range(3):
        if number == stack[0].a:
            continue
        note(number)
    return "done"


@tried_with({"a": 1}, {"a": 3}, {"a": 9})
def a_loop_that_returns(op, keyset, stack):
    for index, (name, number) in enumerate(zip(("a", "b", "c"), (1, 2, 3), strict=True)):
        if number == stack[0].a:
            return index, name
    return None


@tried_with({"a": 1}, {"a": 9})
def a_while_loop_whose_end_is_known(op, keyset, stack):
    left = 3
    while left:
        left -= 1
        if left == stack[0].a:
            break
        note(left)
    return left


@tried_with(*A)
def loops_in_loops(op, keyset, stack):
    pairs = []
    for i in range(3):
        for j in range(3):
            if i == j:
                continue
            if j > i + 1:
                break
            pairs.append((i, j, stack[0].a))
    return pairs


@tried_with(*A)
def comprehensions(op, keyset, stack):
    x = stack[0]
    i = 7
    squares = [i * i for i in range(3)]
    pairs = tuple((i, j, x.a) for i in range(3) for j in range(i) if i != j + 1)
    named = dict.fromkeys(("a", "b"), x.a)
    return i, squares, pairs, named


# Expressions ----------------------------------------------------------------------------------------------------------


@tried_with(*AB, {"a": [], "b": 7}, {"a": [1], "b": None})
def and_and_or_give_one_of_their_operands(op, keyset, stack):
    x = stack[0]
    return (x.a and x.b), (x.a or x.b), not x.a, (x.a and x.b or x.a), x.a and (x.b or 5)


@tried_with(*AB)
def the_right_side_of_a_short_circuit_runs_only_if_it_must(op, keyset, stack):
    x = stack[0]
    first = x.a and note("and")
    second = x.a or note("or")
    third = note(x.a) and note(x.b) and note("three")
    fourth = x.a and (note("x") or note("y"))
    if x.a and note("if") and x.b:
        return first, second, third, fourth, "inside"
    return first, second, third, fourth


@tried_with({"a": [1], "b": 0}, {"a": [], "b": 0}, {"a": 0, "b": 3})
def any_and_all_give_bools(op, keyset, stack):
    x = stack[0]
    return any([x.a, x.b]), all([x.a, x.b]), any([]), all([]), any([x.a, True]), all([False, x.b])


@tried_with(*AB, handled=False)
def any_all_and_next_stop_as_soon_as_they_can(op, keyset, stack):
    x = stack[0]
    found = any(note(value) for value in (x.a, x.b, 5))
    every = all(note(value) for value in (x.a, x.b, 5))
    first = next(note(value) for value in (x.a, x.b))
    return bool(found), bool(every), first


@tried_with(*AB)
def conditional_expressions(op, keyset, stack):
    x = stack[0]
    return (
        note(1) if x.a else note(2),
        1 if (x.a if x.b else x.b) else 2,
        (1 if x.a else 2) if x.b else 3,
        (x.a if note(x.b) else x.b) + x.a,
        not (x.a if x.b else 5),
    )


@tried_with({"a": 2}, {"a": 5})
def chains_of_comparisons(op, keyset, stack):
    x = stack[0]
    return 1 < note(x.a) < 3, 1 < x.a < note(9), 1 < 2 < 3, x.a in (2, 3), x.a is not None, x.a == 2 != 5


@tried_with({"a": 2, "b": "x"}, {"a": 3, "b": ""})
def arithmetic_keeps_its_precedence(op, keyset, stack):
    x = stack[0]
    minus = -2
    return minus**x.a, -(x.a**2), (x.a + 1) * 3, ("(" + x.b) * 2, -x.a % 3, ~x.a & 7, (x.a, 1)[0] << 2, not x.a == 2


class Spoken:
    def __format__(self, specification):
        return f"formatted {specification}"

    def __str__(self):
        return "text"

    def __repr__(self):
        return "shown ä"


@tried_with({"a": Spoken()}, {"a": 1.5})
def strings_with_values_in_them(op, keyset, stack):
    x = stack[0]
    return f"{x.a}|{x.a!r}|{x.a!s}|{x.a!a}|{1}{'{'}"


@tried_with({"a": 5, "b": "abc"})
def parts_of_lists_and_strings(op, keyset, stack):
    values = [stack[0].a, 2, 3]
    return values[1:], values[::-1], values[:-1], values[-1], (1, 2, 3)[1:], stack[0].b[1:2], stack[0].b[-1]


@tried_with({"a": 5})
def dicts_with_known_keys(op, keyset, stack):
    options = {"a": stack[0].a, "b": 2}
    return options, options["a"], list(options.items()), list(options), len(options)


@tried_with({"a": 5}, {"a": 1})
def a_value_named_inside_a_condition(op, keyset, stack):
    if (n := stack[0].a) > 3:
        return n
    return -n


@tried_with({"a": 1}, {"a": True}, {"a": None})
def identity_and_class_of_something_unknown(op, keyset, stack):
    a = stack[0].a
    return a is True, a == 1, isinstance(a, bool), isinstance(a, int), a is None, type(a) is int


# Order ----------------------------------------------------------------------------------------------------------------


@tried_with({"count": 1})
def a_read_comes_before_a_call_that_changes_it(op, keyset, stack):
    x = stack[0]
    first = x.count
    bump(x)
    return (first, x.count, bump(x), x.count, [x.count], bump(x)), x.count + bump(x), x.count == bump(x)


@tried_with({"count": 1})
def a_read_comes_before_a_call_inside_a_region_too(op, keyset, stack):
    x = stack[0]
    with within(STATE.get().with_grad(False)):
        pair = (x.count, bump(x), x.count, bump(x))
        total = x.count + bump(x) * x.count
        named = {"a": x.count, "b": bump(x)}
    return pair, total, named


@tried_with({"count": 1})
def arguments_are_worked_out_before_the_call(op, keyset, stack):
    x = stack[0]
    return after(x.count, x), twice_the(x.count), pair(x.count, second=bump(x)), after(bump(x), x)


@inline
def after(value, x):
    return bump(x) * 100 + value


@inline
def twice_the(value):
    return value + value


@inline
def pair(first, second):
    return [second, first]


class Counting:
    """An object whose attribute counts how often it is read."""

    @property
    def reads(self):
        note("read")
        return len(seen)


@tried_with(lambda: {"a": Counting()})
def an_attribute_is_read_as_often_as_it_is_written(op, keyset, stack):
    x = stack[0]
    return twice_the(x.a.reads), x.a.reads if x.a.reads else 0


@tried_with({"a": 1})
def an_attribute_that_is_missing_is_missed_though_nobody_uses_it(op, keyset, stack):
    unused = stack[0].missing  # noqa: F841
    return note(1)


@tried_with({"a": 1})
def writes_and_reads_of_attributes(op, keyset, stack):
    x = stack[0]
    old = x.a
    pair = (x.a, x.a + 1)
    x.a = 10
    new = x.a
    x.a += 1
    return old, new, x.a, pair


# Names and values -----------------------------------------------------------------------------------------------------


@tried_with({"a": 2, "b": 3})
def unpacking(op, keyset, stack):
    a, b = stack[0].a, stack[0].b
    a, b = b, a
    (c, *d), [e] = (a, b, 1), [5]
    f = g = note(6)
    return a, b, c, d, e, f, g


@tried_with({"a": (1, 2)}, {"a": (1, 2, 3)})
def unpacking_something_unknown(op, keyset, stack):
    one, two = stack[0].a
    return two, one


@tried_with({"a": 2})
def lists_have_all_their_names(op, keyset, stack):
    first = [1]
    second, held = first, (first, "held")
    second += [stack[0].a]
    second.append(3)
    first[0] = 7
    second[-1] = 8
    return first, second, held


@tried_with({"a": 2})
def two_names_of_a_list_are_one_list(op, keyset, stack):
    first = [stack[0].a]
    second = first
    return first is second


@tried_with({"a": 2})
def a_tuple_that_is_added_to_is_another_one(op, keyset, stack):
    first = (1,)
    second = first
    second += (stack[0].a,)
    return first, second


@tried_with(lambda: {"a": [0]})
def something_unknown_that_is_added_to(op, keyset, stack):
    first = stack[0].a
    second = first
    second += [1]
    return first, second, first is second


@tried_with({"a": 3})
def an_ordinary_function_may_change_a_list(op, keyset, stack):
    values = [1, stack[0].a]
    append(values, 9)
    return values, append([], 5)


@tried_with(*A)
def closures_see_what_their_names_are_when_they_are_called(op, keyset, stack):
    number = 1

    def ask():
        return number

    if stack[0].a:
        number = 2
    return ask(), [(lambda: number)() for number in (3, 4)]


@tried_with({"a": 5})
def arguments_of_all_sorts(op, keyset, stack):
    def taking(*args, key=1, **rest):
        return args, key, rest

    return (
        taking(1, *[stack[0].a, 2], key=3, other=4),
        taking(key=2),
        plain_function(1, *stack[0:0], c=stack[0].a),
    )


def plain_function(a, b=2, *, c=3):
    return a, b, c


@tried_with({"a": 5})
def a_builtin_under_another_meaning(op, keyset, stack):
    len = lambda value: "mine"
    return len(stack), bool(stack), max(1, stack[0].a), sorted((3, stack[0].a))


@tried_with({"a": 3})
def a_function_that_calls_itself_with_something_known(op, keyset, stack):
    return factorial(5), factorial(stack[0].a - stack[0].a if False else 0)


@inline
def factorial(n):
    return 1 if n == 0 else n * factorial(n - 1)


@tried_with({"a": 3}, {"a": 60})
def a_function_that_calls_itself_with_something_unknown(op, keyset, stack):
    return count_down(stack[0].a)


@inline
def count_down(n):
    if n == 0:
        return 0
    return 1 + count_down(n - 1)


@tried_with(*AB)
def a_value_that_is_given_back_is_not_overwritten(op, keyset, stack):
    x = stack[0]
    kept = x.b
    for value in (1, x.a, 3):
        note(helped(kept, value))
    return kept, isinstance(helped(1, x.b), int), isinstance(helped(1, x.b), list)


@inline
def helped(first, second):
    if first is None:
        return note(second)
    if second:
        return first
    return [first, second]


@tried_with(*A, limit="a name that a function assigns is another one before that, too")
def a_name_that_is_assigned_somewhere_is_local_from_the_start(op, keyset, stack):
    number = 1

    def ask():
        found = number  # noqa: F823
        number = 2
        return found, number

    return ask() if stack[0].a else 0


# What is known when code is made, and may change ----------------------------------------------------------------------

LIST: list = []
TABLE: dict = {}
COUNT = 0
FLAG = False


def start_anew():
    global COUNT, FLAG
    COUNT, FLAG = 0, False
    LIST.clear(), TABLE.clear()


def put(value):
    """Changes what is at large, out of the evaluator's sight."""
    global FLAG
    LIST.append(value)
    TABLE[value] = len(LIST)
    FLAG = not FLAG


@tried_with({"a": 1}, {"a": 2}, {"a": 3}, reset=start_anew)
def a_list_at_large_is_asked_each_time(op, keyset, stack):
    found = len(LIST), bool(LIST), stack[0].a in LIST, LIST == [1], not LIST
    put(stack[0].a)
    return found, len(LIST), 1 if LIST else 0


@tried_with({"a": 1}, {"a": 2}, {"a": 3}, reset=start_anew, handled=False)
def a_list_at_large_has_other_items_each_time(op, keyset, stack):
    for value in LIST:
        note(value)
    put(stack[0].a)
    return [value for value in LIST], LIST + [], [*LIST], list(LIST), tuple(LIST)


@tried_with({"a": 1}, {"a": 2}, {"a": 3}, reset=start_anew)
def a_dict_at_large_is_asked_each_time(op, keyset, stack):
    found = TABLE.get(1), 1 in TABLE, TABLE == {}, len(TABLE)
    put(stack[0].a)
    return found, TABLE.get(1), TABLE[stack[0].a]


@tried_with({"a": 1}, {"a": 2}, reset=start_anew, handled=False)
def a_global_that_is_counted_on(op, keyset, stack):
    global COUNT
    COUNT = 0 if stack[0].a == 1 else COUNT + 1
    return COUNT


@tried_with({"a": 1}, {"a": 2}, reset=start_anew, handled=False)
def a_list_that_is_a_default(op, keyset, stack, known=LIST):
    known.append(1)
    return len(known), known[-1]


def made_with(scale):
    def a_list_in_a_cell_is_asked_each_time(op, keyset, stack):
        append(scale, stack[0].a)
        return scale[0], len(scale), [2] == scale

    return a_list_in_a_cell_is_asked_each_time


tried_with({"a": 1}, {"a": 2}, reset=start_anew)(made_with(LIST))


def counting():
    number = 0

    def a_cell_that_is_counted_on(op, keyset, stack):
        nonlocal number
        number = stack[0].a if stack[0].a == 1 else number + 1
        return number

    return a_cell_that_is_counted_on


tried_with({"a": 1}, {"a": 2}, {"a": 2}, handled=False)(counting())


def wrapped(function):
    @functools.wraps(function)
    def inside(*args):
        note("wrapped")
        return "wrapped", function(*args)

    return inside


@tried_with({"a": 1})
@wrapped
def a_decorated_function_keeps_its_decorator(op, keyset, stack):
    return 1


@tried_with({"a": 1})
@wrapped
def another_decorated_function_is_not_the_first(op, keyset, stack):
    return 2


# Errors ---------------------------------------------------------------------------------------------------------------


@tried_with(*A, handled=False)
def an_error_on_a_road_that_is_not_taken(op, keyset, stack):
    zero = 0
    if stack[0].a:
        return 1 / zero
    return note(5)


@tried_with(*A, handled=False)
def an_index_that_is_out_of_range(op, keyset, stack):
    if stack[0].a:
        return (1, 2)[5]
    return note(5)


@tried_with(*A, handled=False)
def a_key_that_is_missing(op, keyset, stack):
    if stack[0].a:
        return {"a": 1}["b"]
    return note(5)


@tried_with(*A, handled=False)
def an_attribute_that_is_missing(op, keyset, stack):
    if stack[0].a:
        return op.schema.nothing
    return note(5)


@tried_with(*A, handled=False)
def a_call_that_does_not_fit(op, keyset, stack):
    if stack[0].a:
        return first_of(stack[0], 1)
    return note(5)


@tried_with(*A, handled=False)
def a_name_that_has_no_value_yet(op, keyset, stack):
    if stack[0].a:
        value = 1
    return value


@tried_with({"a": KeyError("k")}, {"a": IndexError}, {"a": StopIteration()}, {"a": AttributeError("x")})
def an_error_of_any_class_gets_out(op, keyset, stack):
    note(1)
    raise stack[0].a


@tried_with({"a": 1})
def an_error_from_another(op, keyset, stack):
    raise RuntimeError(f"{stack[0].a}") from KeyError("cause")


@tried_with({"a": 1})
def a_region_in_which_something_is_raised(op, keyset, stack):
    with within(STATE.get().with_grad(False)):
        note(STATE.get().grad_enabled)
        raise KeyError("inside")


# The dispatch state ---------------------------------------------------------------------------------------------------


def grad_enabled():
    return STATE.get().grad_enabled


def excluded():
    return bool(STATE.get().excluded & keyset("Python"))


@tried_with(*A)
def regions_inside_each_other(op, keyset, stack):
    found = [note(grad_enabled())]
    with within(STATE.get().with_grad(False)):
        note(grad_enabled())
        with within(STATE.get().excluding(PYTHON)):
            note((grad_enabled(), excluded()))
            if stack[0].a:
                return note("left early"), STATE.get().grad_enabled
        note((grad_enabled(), excluded()))
    note((grad_enabled(), excluded()))
    return found, STATE.get().grad_enabled


PYTHON = keyset("Python")


@tried_with(*A)
def a_loop_that_is_left_inside_a_region(op, keyset, stack):
    for number in range(3):
        with within(STATE.get().with_grad(False)):
            if number == stack[0].a:
                break
            note((number, grad_enabled()))
    return note(grad_enabled())


@tried_with(*A)
def a_state_that_is_kept_for_later(op, keyset, stack):
    state = STATE.get()
    inner = state.with_grad(False) if stack[0].a else state
    with within(inner):
        note(grad_enabled())
    with within(state):
        return note(grad_enabled())


@pytest.mark.parametrize("kernel, things, reset, handled", CASES)
def test_what_is_made_of_a_kernel_does_what_the_kernel_does(kernel, things, reset, handled):
    """Under "strict" a kernel that is not handled is an error, and runs boxed otherwise."""
    op = operator_of(kernel)
    boxed = outcomes(op, things, False, reset)
    assert outcomes(op, things, True, reset) == boxed
    strict = outcomes(op, things, "strict", reset)
    assert strict == boxed or (not handled and "SpecialisationError" in strict[0][0])
    assert STATE.get() == DEFAULT


def test_arguments_may_have_the_names_that_the_code_uses_itself():
    def kernel(op, keyset, stack):
        with within(STATE.get().with_grad(False)):
            note(grad_enabled())
        return [thing.a for thing in stack]

    names = "get_state set_state reset_state state token op result node"
    op = operator_of(kernel, f"({', '.join(f'Tensor {name}' for name in names.split())}) -> Tensor")
    things = [Thing(a=number) for number in range(8)]
    with specialize("strict"):
        assert op(*things) == list(range(8))


@pytest.mark.parametrize(
    "hint, text, name",
    [
        ("values", "other._offset", "other_offset"),
        ("value", "plan.into.get", "into_get"),
        ("value", "result_3._array", "result_array"),
        ("value", "tensors_0._array", "tensors_0_array"),
        ("value", "self._interned or metadata_of(self)", "self_interned"),
        ("kinds", "type(self)", "self_kind"),
        ("address", "address_of(self)", "self_address"),
        ("result", "gradient_edge(other)", "other_edge"),
        ("value", "metadata_of_2(other)", "other_metadata"),
        ("function", "function_2(self, other)", "result"),
        ("SavedTensor", "SavedTensor(result, 0)", "saved_tensor"),
        ("node", "self.node", "node"),  # the source has a name for it
        ("result", "add(self, other)", "result"),
        ("plan", "plan_of(facts)", "plan"),
    ],
)
def test_a_variable_is_called_after_what_it_reads(hint, text, name):
    writer = Writer()
    for parameter in ("self", "other", "tensors_0"):
        writer.parameter(parameter)
    assert writer.local(hint, text) == name
    assert writer.local(hint, text) == f"{name}_2"


def test_the_code_of_a_pointwise_operator_has_no_name_that_fits_anything():
    source = rd.ops.aten.add.Tensor.source(keyset("CPU", "ADInplaceOrView"))
    assert "self_offset = self._offset" in source and not re.findall(r"\bvalues?(?:_\d+)? = ", source)


# What is not handled --------------------------------------------------------------------------------------------------


def tries(op, keyset, stack):
    try:
        return note(stack[0].a)
    except ValueError:
        return None


def deletes(op, keyset, stack):
    value = note(stack[0].a)
    del stack
    return value


def asserts(op, keyset, stack):
    assert stack[0].a is not None
    return note(stack[0].a)


def loops_over_something_unknown(op, keyset, stack):
    return [note(value) for value in (stack[0].a,) * len(str(stack[0].a))]


def loops_without_a_known_end(op, keyset, stack):
    left = stack[0].a
    while left:
        left -= 1
        note(left)
    return left


def uses_another_context_manager(op, keyset, stack):
    with rd.no_grad():
        return note(grad_enabled()), stack[0].a


def imports(op, keyset, stack):
    import math

    return math.floor(note(stack[0].a))


a_lambda = lambda op, keyset, stack: note(stack[0].a)  # whose source is not that of a function
a_lambda.__name__ = "a_lambda"


class Callable:
    """No function at all."""

    __name__ = "callable"

    def __call__(self, op, keyset, stack):
        return note(stack[0].a)


UNHANDLED = [
    tries,
    deletes,
    asserts,
    loops_over_something_unknown,
    loops_without_a_known_end,
    uses_another_context_manager,
    imports,
    a_lambda,
    Callable(),
]


def layered(kernel, name="Above"):
    """An operator with this kernel, and a layer above it that is handled; (operator, thing, keys to undefine)."""
    key = define_key(name, above="Dense")
    mine, lower = key.bits, below(name)

    def handled_layer(op, keyset, stack):
        note("layer")
        with within(STATE.get().excluding(mine).with_grad(False)):
            result = run(op, keyset & lower, stack)
        note(("layer got", result))
        return result

    add_fallback(key, boxed_kernel(handled_layer))
    return operator_of(kernel), lambda: Thing(a=3, keys="CPU")


@pytest.mark.parametrize("kernel", UNHANDLED, ids=lambda kernel: kernel.__name__)
def test_what_is_not_handled_runs_boxed_inside_code_that_is(kernel):
    op, make = layered(kernel)
    with include(keyset("Above")):
        boxed = outcomes(op, [make], False, lambda: None)
        with specialize(True):
            assert outcomes(op, [make], True, lambda: None) == boxed
            (source,) = (code.source for code in codes_for(op) if "note('layer')" in code.source)
        assert "('layer got', result)" in source
        strict = outcomes(op, [make], "strict", lambda: None)
        assert strict == boxed or strict[0][0].startswith("raises SpecialisationError: evaluated.")


@pytest.mark.parametrize("kernel", [tries, asserts, loops_without_a_known_end], ids=lambda kernel: kernel.__name__)
def test_strict_names_the_layer_and_the_construct(kernel):
    op, make = operator_of(kernel), lambda: Thing(a=3)
    with specialize("strict"), pytest.raises(SpecialisationError) as raised:
        op(make())
    assert (
        kernel.__name__ in str(raised.value)
        and str(op) in str(raised.value)
        and "DispatchKeySet(CPU" in str(raised.value)
    )


@inline
def half_handled(x):
    note("first")
    try:
        return note("second"), x.a
    finally:
        note("third")


def calls_half_handled(op, keyset, stack):
    with within(STATE.get().with_grad(False)):
        note("before")
        result = half_handled(stack[0])
    note("after")
    return result


def test_a_function_that_is_handled_in_part_runs_once():
    op, things = operator_of(calls_half_handled), [lambda: Thing(a=1)]
    boxed = outcomes(op, things, False, lambda: None)
    assert outcomes(op, things, "strict", lambda: None) == outcomes(op, things, True, lambda: None) == boxed


# Marks ----------------------------------------------------------------------------------------------------------------


@pure
def asked_once(number):
    seen.append("asked")
    return number * 2


@leaf
def in_no_state(x):
    return x.a


@frozen
class Rule:
    """The facts that a layer knows of an operator."""

    def __init__(self, factor):
        self.factor = factor

    @inline
    def applied(self, value):
        return value * self.factor if self.factor != 1 else value

    @pure
    def __call__(self, name):
        seen.append(f"rule asked for {name}")
        return self.factor


DOUBLE, SAME = Rule(2), Rule(1)


def marked(op, keyset, stack):
    x = stack[0]
    with within(STATE.get().with_grad(False)):
        found = in_no_state(x)
    return asked_once(21), DOUBLE.applied(x.a), SAME.applied(x.a), DOUBLE("name"), found


def test_pure_functions_of_known_arguments_are_asked_when_code_is_made_and_frozen_attributes_are_read_then():
    op = operator_of(marked)
    with specialize("strict"):
        assert outcome(op, Thing(a=3))[:2] == (
            "gives (42, 6, 3, 2, 3)",
            ["'asked'", '"rule asked for name"'.replace('"', "'")],
        )
        assert outcome(op, Thing(a=4))[:2] == ("gives (42, 8, 4, 2, 4)", [])
        source = code_for(op).source
    assert "* 2" in source and "set_state" not in source and "asked_once" not in source


# Code as Python code --------------------------------------------------------------------------------------------------


def fails_inside(op, keyset, stack):
    note("before")
    with within(STATE.get().with_grad(False)):
        return divide(stack[0].a)


def divide(number):
    return 1 / number


def test_tracebacks_the_debugger_and_getsource_show_the_code(monkeypatch):
    monkeypatch.setattr(config, "full_tracebacks", True)
    op = operator_of(fails_inside)
    with specialize("strict"):
        with pytest.raises(ZeroDivisionError) as raised:
            op(Thing(a=0))
        code = code_for(op)
        shown = "".join(traceback.format_exception(raised.value))
        assert inspect.getsource(code).strip() == code.source[code.source.index("def ") :].strip()
        assert "".join(linecache.getlines(code.__code__.co_filename)) == code.source
    assert "divide(x.a)" in shown and code.__code__.co_filename in shown
    compile(code.source, "again", "exec")


def test_the_code_says_what_it_was_made_from():
    op = operator_of(fails_inside)
    with specialize("strict"):
        op(Thing(a=1))
        source = code_for(op).source
    head = source[: source.index("# CPU")]
    assert f"# {op.schema}" in head and "# DispatchKeySet(CPU, BackendSelect, ADInplaceOrView)" in head
    assert "# CPU: fails_inside (kernel), fails_inside of the test" in source


def test_source_is_forgotten_with_its_code():
    op = operator_of(fails_inside)
    with specialize("strict"):
        op(Thing(a=1))
        name = code_for(op).__code__.co_filename
        assert name in linecache.cache
        op.register("CPU", boxed_kernel(marked))
        assert name not in linecache.cache


def test_the_state_comes_back_where_a_call_raises():
    op = operator_of(fails_inside)
    with specialize("strict"):
        for before in (STATE.get(), STATE.get().with_grad(False)):
            with within(before):
                with pytest.raises(ZeroDivisionError):
                    op(Thing(a=0))
                assert STATE.get() is before


SOURCES = """
import redispatch as rd
from redispatch.dispatch import keyset
from redispatch.dispatch.config import config
config.specialize = "strict"
ops = rd.ops.aten
for op in (ops.add.Tensor, ops.add_.Tensor, ops.mm, ops.split.Tensor, ops.cat, ops.exp, ops.native_layer_norm):
    op = getattr(op, "default", op)
    for name in (), ("AutocastCPU",), ("Python", "PythonTLSSnapshot"):
        print(op.source(keyset("CPU", "AutogradCPU", *name)))
"""


def test_the_same_code_is_made_in_every_process():
    """Runs under several seeds of hashes, which order sets."""
    environments = [{**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "2")]
    processes = [
        subprocess.Popen([sys.executable, "-c", SOURCES], env=e, stdout=subprocess.PIPE, text=True)
        for e in environments
    ]
    first, second = (process.communicate()[0] for process in processes)
    assert len(re.findall("^def ", first, re.MULTILINE)) == 21 and first == second


def test_the_same_code_is_made_again():
    op = rd.ops.aten.add.Tensor
    with specialize("strict"):
        first = op.source("AutogradCPU")
        op.forget_entries()
        assert op.source("AutogradCPU") == first


# Threads --------------------------------------------------------------------------------------------------------------


def test_threads_make_code_while_another_registers():
    """Each call gives what one of the kernels gives: what was registered when the call began, or something newer."""
    lib = Library("t", "FRAGMENT")
    lib.define("raced(Tensor x) -> Tensor")
    lib.impl("raced", lambda x: Thing(number=0), "CPU")
    op, key = rd.ops.t.raced.default, "CPU"
    registered, problems, done = [0], [], threading.Event()

    def call():
        while not done.is_set():
            least = registered[0]
            try:
                found = op(Thing()).number
                if found < least:
                    problems.append(f"gave {found} after {least} had been registered")
            except Exception as error:
                problems.append(repr(error))

    with specialize("strict"):
        callers = [threading.Thread(target=call) for _ in range(2)]
        for caller in callers:
            caller.start()
        for number in range(1, 60):
            one = Library("t", "IMPL")
            one.impl(op, lambda x, number=number: Thing(number=number), key, allow_override=True)
            registered[0] = number
            libraries.append(one)
        done.set()
        for caller in callers:
            caller.join()
        assert op(Thing()).number == 59
    assert not problems, problems[:3]


libraries: list = []


def test_threads_that_make_the_same_code_agree():
    results, barrier = [], threading.Barrier(4)

    def call():
        barrier.wait()
        results.append(op(Thing(a=2))[0])

    def kernel(op, keyset, stack):
        return stack[0].a * 3, note(1)

    op = operator_of(kernel)
    with specialize("strict"):
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [6] * 4 and code_for(op)


# Programs that nobody thought of --------------------------------------------------------------------------------------

NAMES = st.sampled_from(["p", "q", "r"])
ATOMS = st.one_of(NAMES, st.sampled_from(["x.a", "x.b", "x.count", "1", "2", "0", "-1", "None", "'s'"]))


def combined(inner):
    return st.one_of(
        st.builds("({} + {})".format, st.builds("number({})".format, inner), st.builds("number({})".format, inner)),
        st.builds("({} * -{})".format, st.builds("number({})".format, inner), st.builds("number({})".format, inner)),
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("({} is None)".format, inner),
        st.builds("({} == {})".format, inner, inner),
        st.builds("note({})".format, inner),
        st.builds("helped({}, {})".format, inner, inner),
        st.sampled_from(["bump(x)", "(lambda: p)()", "(lambda r: (q, r))(p)", "l[0]", "(p, q)[-1]", "[*l, p]"]),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("({}, {})".format, inner, inner),
        st.builds("isinstance({}, int)".format, inner),
        st.builds("any([{}, {}])".format, inner, inner),
    )


EXPRESSIONS = st.recursive(ATOMS, combined, max_leaves=5)
SIMPLE = st.one_of(
    st.builds("{} = {}".format, NAMES, EXPRESSIONS),
    st.builds("{}".format, st.builds("note({})".format, EXPRESSIONS)),
    st.builds("x.a = {}".format, EXPRESSIONS),
    st.builds("return {}".format, EXPRESSIONS),
    st.sampled_from(
        ["bump(x)", "x.count += 1", "p, q = q, p", "l.append(p)", "l = [p, l]", "note(STATE.get().grad_enabled)"]
    ),
    st.sampled_from(["note(grad_enabled())", "raise ValueError(f'{p}|{x.a}')"]),
)


def indented(lines):
    return textwrap.indent("\n".join(lines), "    ")


def compound(inner):
    body = st.lists(inner, min_size=1, max_size=3).map(indented)
    return st.one_of(
        st.builds("if {}:\n{}".format, EXPRESSIONS, body),
        st.builds("if {}:\n{}\nelse:\n{}".format, EXPRESSIONS, body, body),
        st.builds("for {} in (1, x.b, 3):\n{}".format, NAMES, body),
        st.builds("for {} in range(2):\n{}\n    if {}: break".format, NAMES, body, EXPRESSIONS),
        st.builds("with within(STATE.get().with_grad({})):\n{}".format, st.sampled_from(["True", "False"]), body),
        st.builds("def local(p, q, r, l):\n{}\n{} = local({}, r, p, l)".format, body, NAMES, EXPRESSIONS),
    )


# (A name that a function assigns is its own from the start, which drawn functions would break: so all are parameters.)
BODIES = st.lists(st.recursive(SIMPLE, compound, max_leaves=6), min_size=1, max_size=5).map(indented)


def number(value):
    """A number for anything, so that sums do not fail more often than not."""
    return value if isinstance(value, int) else 5


def function_of(body):
    """The function of a drawn body, with source that can be read."""
    head = "def drawn(op, keyset, stack):\n    x = stack[0]\n    p, q, r, l = 1, None, x.b, []\n"
    source = f"{head}{body}\n    return p, q, r, l, x.a\n"
    name = f"<drawn {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope = dict(globals())
    exec(compile(source, name, "exec"), scope)
    return scope["drawn"], source


def compare_drawn(body):
    kernel, source = function_of(body)
    op = operator_of(kernel)
    things = [
        lambda: Thing(a=1, b=0, count=0),
        lambda: Thing(a=0, b="text", count=3),
        lambda: Thing(a=None, b=2, count=0),
    ]
    boxed = outcomes(op, things, False, lambda: None)
    with specialize(True):
        for table in [op.table(("T",))]:
            code = table.made(Thing()._keyset | STATE.get().included)
    assert outcomes(op, things, True, lambda: None) == boxed, f"{source}\n{code.source}"


@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # `1 is None`, and the like
@drawing.at_length(2000)
@given(BODIES)
def test_any_small_function_does_the_same(body):
    compare_drawn(body)
