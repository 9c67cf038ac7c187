"""Elementwise loops against numpy, on awkward layouts and special values."""

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redispatch.kernels import Elementwise, Operand, copy, fill

from .layouts import dense, filled, injective, layouts, values


def multiply_add(x, y):
    return x * y + 0.5


def integer_multiply_add(x, y):
    return x * y + 1


def choose(condition, x, y):
    return x if condition else y


def both(x, y):
    return x - y, x > y


def reciprocal(x):
    return 1 / x


MULTIPLY_ADD = Elementwise("multiply_add", {"float": multiply_add, "int": integer_multiply_add})
CHOOSE = Elementwise("choose", choose, keep=(0,))
BOTH = Elementwise("both", both, outputs=2)
RECIPROCAL = Elementwise("reciprocal", reciprocal)


@st.composite
def operands(draw):
    """Layouts of an output and of two inputs that broadcast to it."""
    out = draw(layouts())
    inputs = []
    for _ in range(2):
        shape = tuple(draw(st.sampled_from([n, 1])) for n in out[0])
        inputs.append(draw(layouts(shape[draw(st.integers(0, len(shape))) :])))
    return injective(out), *inputs


@given(operands(), st.sampled_from([("float32", 0.5), ("bfloat16", 0.5), ("int32", 1)]), st.integers(0, 99))
def test_any_layout_gives_what_numpy_gives(layout, dtype_and_constant, seed):
    dtype, constant = dtype_and_constant
    rng = np.random.default_rng(seed)
    out, x, y = (filled(one, dtype, rng) for one in layout)
    expected = values(x) * values(y) + constant
    before = out.array.copy()
    MULTIPLY_ADD.run(out, x, y)
    np.testing.assert_array_equal(values(out), np.broadcast_to(expected, out.shape))
    untouched = np.ones(len(before), bool)
    cells = Operand(np.arange(len(before)), "int64", *out[2:])
    untouched[values(cells).ravel()] = False
    np.testing.assert_array_equal(out.array[untouched], before[untouched])


@given(layouts(), st.integers(0, 99))
def test_an_operator_in_place_reads_through_its_output(layout, seed):
    x = filled(injective(layout), "float32", np.random.default_rng(seed))
    expected = values(x) * 3 + 0.5
    MULTIPLY_ADD.run(x, x, 3, dtype="float32")
    np.testing.assert_array_equal(values(x), expected)


def test_a_condition_keeps_its_dtype_while_the_others_are_converted():
    out = dense(np.zeros(3, np.float32))
    CHOOSE.run(out, dense(np.array([True, False, True])), dense(np.array([1, 2, 3])), 0.25, dtype="float32")
    assert out.array.tolist() == [1, 0.25, 3]


def test_a_body_may_have_several_results():
    difference, larger = dense(np.zeros((2, 2), np.float32)), dense(np.zeros((2, 2), bool))
    x = dense(np.array([[1, 2], [3, 4]], np.float32))
    BOTH.run((difference, larger), x, Operand(x.array, "float32", (2, 2), (1, 2)))
    np.testing.assert_array_equal(values(difference), [[0, -1], [1, 0]])
    np.testing.assert_array_equal(values(larger), [[False, False], [True, False]])


def test_division_by_zero_and_nan_follow_ieee():
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45], np.float32)
    out = dense(np.empty(6, np.float32))
    RECIPROCAL.run(out, dense(special))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out.array.view(np.int32), (np.float32(1) / special).view(np.int32))


def test_a_literal_in_a_float32_body_does_not_widen_it():
    source = MULTIPLY_ADD.source("flat", "aa", ("float32",), ("float32", "float32"))
    assert "x * y + float32(0.5)" in source


DTYPES = ["bool", "uint8", "int64", "bfloat16", "complex64"]


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("source", ["bool", "int64", "float16", "float32", "complex64"])
def test_every_dtype_converts_to_every_other(source, to):
    x = dense(np.array([0, 1, 2, 5, 0]), source)
    out = dense(np.zeros(5), to)
    copy(out, x)
    expected = values(x)
    if not to.startswith("complex") and to != "bool":
        expected = expected.real
    np.testing.assert_array_equal(values(out), expected.astype(values(out).dtype))


def test_sixteen_bit_floats_round_to_nearest_even_and_keep_special_values():
    import ml_dtypes

    x = np.concatenate([np.random.default_rng(0).normal(0, 1000, 4000), [0, -0.0, np.inf, -np.inf, np.nan, 1e-41, 1e9]])
    x = x.astype(np.float32)
    for dtype, reference in (("bfloat16", ml_dtypes.bfloat16), ("float16", np.float16)):
        out = dense(np.zeros(len(x)), dtype)
        copy(out, dense(x))
        with np.errstate(over="ignore"):
            expected = x.astype(reference)
        real = ~np.isnan(x)
        np.testing.assert_array_equal(out.array[real], expected.view(np.uint16)[real])
        assert np.isnan(values(out)[~real]).all()


def test_fill_writes_a_number_into_every_element_of_a_view():
    x = dense(np.zeros((3, 4), np.float32))
    fill(x._replace(shape=(3, 2), strides=(4, 2), offset=1), 7)
    assert values(x).tolist() == [[0, 7, 0, 7]] * 3


def test_a_scalar_functions_decorators_and_annotations_are_no_part_of_its_loop():
    def local_decorator(function):
        return function

    @local_decorator
    def plus_one(x: local_decorator) -> local_decorator:  # names that the loop could not look up
        return x + 1

    out = dense(np.zeros(3, np.float32))
    Elementwise("plus_one", plus_one).run(out, dense(np.arange(3, dtype=np.float32)))
    assert values(out).tolist() == [1, 2, 3]


def test_a_scalar_function_whose_file_was_edited_is_refused(tmp_path, monkeypatch):
    """Its source would be another function's by now, and compile without a word."""
    file = tmp_path / "edited_while_running.py"
    file.write_text("def double(x):\n    return x * 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("edited_while_running")
    file.write_text("import math\n\n\ndef double(x):\n    return x + 2\n")
    out, x = dense(np.zeros(3)), dense(np.ones(3))
    with pytest.raises(RuntimeError, match="source of double .* has changed since it was imported"):
        Elementwise("double", module.double).run(out, x)


def rowwise(x):
    """The operand as a column that is read again for each of four columns."""
    return Operand(x.array, x.dtype, (3, 4), (1, 0), 0)


@pytest.mark.parametrize("shape", [(12,), (3, 4), (0,), (1 << 18,)])
def test_a_remembered_loop_runs_on_all_operands_that_look_alike(shape):
    metadata = [dense(np.zeros(shape, np.float32)) for _ in range(3)]
    loop = MULTIPLY_ADD.loop((metadata[0],), metadata[1:], None)
    x, y = (dense(np.random.default_rng(seed).random(shape, np.float32)) for seed in (1, 2))
    ways = [loop.run] if loop.entry is None else [loop.run, lambda *args: loop.entry(0, loop.numel, *args)]
    assert (loop.entry is None) == (shape in [(0,), (1 << 18,)])
    for way in ways:
        out = dense(np.zeros(shape, np.float32))
        way(out.array, 0, x.array, 0, y.array, 0)
        np.testing.assert_allclose(values(out), values(x) * values(y) + 0.5, rtol=1e-6)


def test_a_remembered_loop_knows_how_its_operands_lie():
    out = dense(np.zeros((3, 4), np.float32))
    x, y = dense(np.arange(3, dtype=np.float32)), dense(np.ones((3, 4), np.float32))
    loop = MULTIPLY_ADD.loop((out,), (rowwise(x), y), None)
    assert loop.entry is None
    loop.run(out.array, 0, x.array, 0, y.array, 0)
    np.testing.assert_array_equal(values(out), np.arange(3)[:, None] + np.full((3, 4), 0.5))


def test_a_remembered_loop_passes_nothing_for_an_input_that_is_the_output():
    out = dense(np.full(3, 2, np.float32))
    loop = MULTIPLY_ADD.loop((out,), (out, 3.0), "float32")
    loop.run(out.array, 0, 3.0)
    np.testing.assert_array_equal(out.array, [6.5, 6.5, 6.5])


@given(st.integers(1, 40), st.integers(1, 600), st.integers(1, 3), st.integers(0, 9))
def test_operands_that_lie_across_each_other_are_walked_in_tiles(n, m, batch, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(-9, 9, (batch, m, n)).astype(np.float32), rng.integers(-9, 9, (batch, n, m)).astype(np.float32)
    across = dense(x)._replace(shape=(batch, n, m), strides=(n * m, 1, n))
    out, crossed = dense(np.zeros((batch, n, m), np.float32)), x.transpose(0, 2, 1)
    MULTIPLY_ADD.run(out, across, dense(y))
    np.testing.assert_array_equal(values(out), crossed * y + 0.5)
    MULTIPLY_ADD.run(out, across, out)
    np.testing.assert_array_equal(values(out), crossed * (crossed * y + 0.5) + 0.5)
