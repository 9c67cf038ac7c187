"""One decorator makes a whole reduction of a few functions of numbers."""

import math

import pytest

import redispatch as rd
from redispatch.library import _scoped_library, opcheck, reduction
from redispatch.testing import assert_close, check_operator, info_of
from redispatch.testing.check_operator import CHECKS

from .. import drawing

SCHEMA = "(Tensor x, int[1]? dim=None, bool keepdim=False) -> Tensor"


def add(total, x):
    return total + x


def square(x):
    return x * x


def root(total, count):
    return math.sqrt(total)


def length_slope(x, result):
    return x / result


@pytest.fixture
def lib():
    with _scoped_library("folds", "FRAGMENT") as library:
        yield library


@pytest.fixture
def length(lib):
    options = {"identity": 0.0, "each": square, "finish": root, "derivative": length_slope}
    return reduction(f"folds::length{SCHEMA}", add, lib=lib, **options)


def test_a_reduction_passes_every_generic_check(length):
    info = info_of(length, low=1)
    assert check_operator(info) == [name for name in CHECKS if name != "inplace"]
    assert set(opcheck(length.op, (rd.rand(3, requires_grad=True),)).values()) == {"SUCCESS"}


@pytest.mark.parametrize(
    "shape, dtype",
    drawing.draw(
        [
            ((3, 5), rd.float32),
            ((4, 2000), rd.float32),
            ((2000, 4), rd.float32),
            ((300_000,), rd.float32),
            ((3, 70, 40), rd.bfloat16),
        ],
        "loops of a reduction",
        count=2,
    ),
)
def test_it_agrees_with_the_norm_in_all_loops(length, shape, dtype):
    x = rd.randn(shape).to(dtype)
    for dims in (None, [0], [-1]):
        assert_close(length(x, dims), rd.linalg.vector_norm(x, dim=dims))


def test_the_derivative_may_be_a_formula(lib):
    def largest(a, b):
        return a if a > b else b

    @reduction(
        f"folds::top{SCHEMA}", identity=-math.inf, derivative=lambda grad, x, result: grad * (x == result), lib=lib
    )
    def top(a, b):
        return largest(a, b)

    x = rd.tensor([[1.0, 4.0], [3.0, 2.0]], dtype=rd.float64, requires_grad=True)
    assert top(x, [1]).tolist() == [4.0, 3.0] and top(rd.empty(0)).item() == -math.inf
    assert rd.autograd.gradcheck(lambda x: top(x, [0]), x) and rd.autograd.gradcheck(top, x)


def test_vmap_reduces_the_examples_without_a_loop(length):
    x = rd.rand(4, 3, 5)
    with rd.trace() as hops:
        found = rd.func.vmap(lambda x: length(x, [0]), in_dims=1)(x)
    assert_close(found, length(x, [0]))
    kernels = [hop for hop in hops if hop.op is length.op and str(hop.key).rpartition(".")[2] == "CPU"]
    assert len(kernels) == 1
    assert_close(rd.func.vmap(length)(rd.tensor([-1.0, 2.0])), rd.tensor([1.0, 2.0]))


def test_integers_and_wrong_dimensions_are_refused(length):
    with pytest.raises(NotImplementedError, match="\"length\" not implemented for 'Long'"):
        length(rd.tensor([1, 2]))
    with pytest.raises(IndexError):
        length(rd.ones(2, 2), [2])


def test_it_can_be_removed():
    before = set(rd.dispatch.operators())
    made = reduction(f"folds::total{SCHEMA}", add, identity=0.0, derivative=lambda grad, x: grad.expand(x.shape))
    made(rd.ones(3, requires_grad=True)).backward()
    assert rd.ops.folds.total.default is made.op
    made.remove()
    assert set(rd.dispatch.operators()) == before


@pytest.mark.parametrize(
    "schema, options, text",
    [
        ("folds::f(Tensor x) -> Tensor", {}, "is not the schema of a reduction; write"),
        (f"folds::f{SCHEMA}", {"each": add}, r"it takes an element, but has the parameters \(total, x\)"),
        (f"folds::f{SCHEMA}", {"finish": square}, "it takes what was gathered, and the number of elements"),
        (f"folds::f{SCHEMA}", {"derivative": True}, "a reduction's derivative is not derived"),
        (f"folds::f{SCHEMA}", {"derivative": None}, "a reduction's derivative is not derived"),
        (f"folds::f{SCHEMA}", {"derivative": "grad"}, "a derivative is a scalar function that gives the slope"),
        (f"folds::f{SCHEMA}", {"identity": "0"}, "identity= is the number that combining starts from, got '0'"),
        (f"folds::f{SCHEMA}", {"derivative": root}, "has a parameter 'total'; it may have x, result"),
    ],
)
def test_what_does_not_fit_is_refused(schema, options, text):
    with pytest.raises(TypeError, match=text):
        reduction(schema, add, **{"identity": 0.0, "derivative": False, **options})
    assert not [op for op in rd.dispatch.operators() if op.namespace == "folds"]
