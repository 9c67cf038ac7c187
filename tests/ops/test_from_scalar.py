"""One decorator makes a whole operator of a function of one element: kernels, forms, gradients of any order, rules."""

import ast
import copy
import inspect
import math
import os
import pickle
import subprocess
import sys
import textwrap

import pytest

import redispatch as rd
from redispatch import modes
from redispatch.kernels.declare.scalar_functions import COUNT, ScalarFunctionError, cost_of, slope
from redispatch.library import _scoped_library, elementwise, opcheck
from redispatch.testing import assert_close, check_operator, info_of
from redispatch.testing.check_operator import CHECKS

from .. import drawing


def square(t):
    return t * t


@pytest.fixture
def lib():
    with _scoped_library("scalars", "FRAGMENT") as library:
        yield library


def doubles(*numbers):
    return rd.tensor(numbers, dtype=rd.float64, requires_grad=True)


@pytest.fixture
def bump(lib):
    @elementwise("scalars::bump(Tensor x) -> Tensor", lib=lib, autocast="fp32")
    def bump(x):
        """A smooth hill."""
        return 1 / (1 + square(x))

    return bump


@pytest.fixture
def smooth_relu(lib):
    @elementwise("scalars::smooth_relu(Tensor x, float beta=1.0) -> Tensor", lib=lib)
    def smooth_relu(x, beta):
        t = beta * x
        if t > 20.0:
            return x
        return math.log1p(math.exp(t)) / beta

    return smooth_relu


def test_an_operator_in_five_lines_passes_every_generic_check(bump):
    assert check_operator(info_of(bump)) == list(CHECKS)
    assert set(opcheck(bump.op, (rd.rand(3, requires_grad=True),)).values()) == {"SUCCESS"}
    assert bump.__doc__ == "A smooth hill."


def checked(made):
    """Each generic check passes: for one in three of those that are called so, as many kernels are compiled for it."""
    if drawing.one_in(3, "generic checks", made.op):
        assert check_operator(info_of(made)) == list(CHECKS)


def test_so_does_one_with_a_number_and_a_branch(smooth_relu):
    checked(smooth_relu)
    x = doubles(-1.0, 0.5, 3.0)
    assert_close(smooth_relu(x, beta=2.0), rd.nn.functional.softplus(x, beta=2.0))
    assert rd.autograd.gradgradcheck(lambda x: smooth_relu(x, 2.0), x)


def test_several_tensors_are_broadcast_and_each_has_its_gradient(lib):
    @elementwise("scalars::length(Tensor x, Tensor y) -> Tensor", lib=lib)
    def length(x, y):
        return math.sqrt(x**2 + y**2 + 1.0)

    checked(length)
    x, y = doubles(3.0, -1.0, 2.0), doubles(4.0, 1.0).detach()[:, None].requires_grad_()
    assert rd.autograd.gradcheck(length, (x, y)) and rd.autograd.gradgradcheck(length, (x, y))


def test_it_is_differentiable_as_often_as_one_likes(bump):
    x = doubles(0.5)
    value = bump(x)
    for expected in (-0.64, -0.256, 3.6864):  # of 1 / (1 + x²) at 1/2, by hand
        (value,) = rd.autograd.grad(value.sum(), x, create_graph=True)
        assert_close(value.detach(), rd.tensor([expected], dtype=rd.float64))


@pytest.mark.parametrize(
    "derivative",
    [
        pytest.param(lambda grad, x, result: grad * (-2 * x * result * result), id="formula"),
        pytest.param("scalar", id="scalar"),
    ],
)
def test_the_derivative_may_be_given(lib, derivative):
    def bump_slope(x, result):
        return -2 * x * result * result

    @elementwise(
        "scalars::given(Tensor x) -> Tensor", derivative=bump_slope if derivative == "scalar" else derivative, lib=lib
    )
    def given(x):
        return 1 / (1 + x * x)

    assert rd.autograd.gradcheck(given, doubles(0.5, -2.0)) and rd.autograd.gradgradcheck(given, doubles(0.5, -2.0))


@pytest.mark.parametrize("type_, number", [("Scalar", 2), ("Scalar", 0.5), ("int", 3), ("bool", True)])
def test_numbers_of_all_types(lib, type_, number):
    @elementwise(f"scalars::scaled(Tensor x, {type_} by) -> Tensor", lib=lib)
    def scaled(x, by):
        return x * x * by

    x = doubles(1.5, -2.0)
    assert scaled(x, number).tolist() == [2.25 * number, 4.0 * number]
    assert rd.autograd.gradgradcheck(lambda x: scaled(x, number), x)


def test_a_wrong_derivative_is_found(lib):
    @elementwise("scalars::wrong(Tensor x) -> Tensor", derivative=lambda grad, x: grad * x, lib=lib)
    def wrong(x):
        return x * x

    with pytest.raises(AssertionError, match="gradients does not hold"):
        check_operator(info_of(wrong))


def test_backward_is_one_compiled_operator(bump):
    x = doubles(0.5)
    loss = bump(x).sum()
    with rd.trace() as hops:
        loss.backward()
    assert "scalars::bump_backward" in {hop.op.qualified_name for hop in hops}
    assert "aten::mul.Tensor" not in {hop.op.qualified_name for hop in hops}


@pytest.mark.parametrize("mode", [m for m in modes.__all__ if m.endswith("Mode") and m != "FunctionalRNGMode"])
def test_it_runs_under_every_mode(bump, mode):
    """Forward, backward, backward of backward and in place; FunctionalRNGMode wants a key, for random operators."""
    with getattr(modes, mode)():
        x = rd.ones(3, requires_grad=True)
        y = bump(x)
        (grad,) = rd.autograd.grad(y.sum(), x, create_graph=True)
        grad.sum().backward()
        written = bump.inplace(y.detach().clone())
    assert x.grad.shape == written.shape == (3,)
    found = [grad, x.grad, written]
    if mode == "FunctionalTensorMode":
        found = [one.from_functional() for one in found]
    if mode != "FakeTensorMode":
        for one, wanted in zip(found, [-0.5, 0.5, 0.8], strict=True):
            assert_close(one.detach(), rd.full((3,), wanted))


EVERYTHING = """\
def everything(x, y):
    total = x
    total += y * x
    k = 0
    while k < 3:
        total = total * 0.5 + math.sin(x)
        k += 1
    for _ in range(2):
        total -= math.tanh(y) / (2 + x * x)
    total = max(total, -x) + min(x, y) - abs(y)
    big = total if x > 0 and not y > 2 else -total
    return big ** 3 + (x * x + 1) ** y + (x * x + 1) ** -1.5 + math.atan2(y, x * x + 1) + helper(x, total) % 5.0
"""


def helper(a, b):
    return math.exp(-a * a) * b + math.floor(b)


def test_slopes_of_all_that_a_function_may_hold(tmp_path):
    """Against central differences, in Python and without any tensor."""
    path = tmp_path / "everything.py"
    path.write_text(f"import math\nfrom {__name__} import helper\n\n{EVERYTHING}")
    scope = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    f = scope["everything"]
    h = 1e-6
    for x, y in [(0.7, 0.3), (-1.2, 0.4), (0.2, 2.5), (-0.5, -1.5)]:
        by_x, by_y = slope(f, "x")(x, y), slope(f, "y")(x, y)
        assert by_x == pytest.approx((f(x + h, y) - f(x - h, y)) / (2 * h), rel=1e-5, abs=1e-7)
        assert by_y == pytest.approx((f(x, y + h) - f(x, y - h)) / (2 * h), rel=1e-5, abs=1e-7)
        twice = slope(slope(f, "x"), "y")(x, y)
        assert twice == pytest.approx((slope(f, "x")(x, y + h) - slope(f, "x")(x, y - h)) / (2 * h), rel=1e-4, abs=1e-6)


def test_a_slope_reads_like_the_function(smooth_relu):
    assert inspect.getsource(slope(smooth_relu.function, "x")) == textwrap.dedent(
        """\
        def smooth_relu_slope_x(x, beta):
            d_t = beta
            t = beta * x
            if t > 20.0:
                return 1.0
            return log1p_slope(exp(t)) * (exp_slope(t) * d_t) / beta"""
    )


MATH = ["exp", "expm1", "exp2", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan",
        "sinh", "cosh", "tanh", "asinh", "atanh", "erf", "erfc", "fabs", "floor", "ceil", "trunc",
        "degrees", "radians"]  # fmt: skip


def function_of_math(tmp_path, name, parameters):
    """A function with a source that can be read."""
    path, scope = tmp_path / "f.py", {}
    path.write_text(f"import math\n\ndef f({parameters}):\n    return math.{name}({parameters})\n")
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope["f"]


@pytest.mark.parametrize("name", MATH)
def test_slopes_of_mathematical_functions(name, tmp_path):
    f, h = function_of_math(tmp_path, name, "x"), 1e-6
    for x in (0.3, 0.8):
        assert slope(f, "x")(x) == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("name", ["atan2", "copysign", "fmod", "hypot", "pow"])
def test_slopes_of_mathematical_functions_of_two_numbers(name, tmp_path):
    f, h = function_of_math(tmp_path, name, "x, y"), 1e-6
    for x, y in ((0.3, 0.7), (2.8, 0.8), (1.6, -0.5)):
        assert slope(f, "x")(x, y) == pytest.approx((f(x + h, y) - f(x - h, y)) / (2 * h), rel=1e-6, abs=1e-8)
        assert slope(f, "y")(x, y) == pytest.approx((f(x, y + h) - f(x, y - h)) / (2 * h), rel=1e-6, abs=1e-8)


def all_of_math(x, y):
    """Of one number and then of two, with weights, so that each counts."""
    n = int(y * 4.0)
    a = math.acos(x) + 2.0 * math.acosh(1.0 + x) + 3.0 * math.asin(x) + 4.0 * math.asinh(x) + 5.0 * math.atan(x)
    b = math.atanh(x) + 2.0 * math.ceil(x) + 3.0 * math.cos(x) + 4.0 * math.cosh(x) + 5.0 * math.degrees(x)
    c = math.erf(x) + 2.0 * math.erfc(x) + 3.0 * math.exp(x) + 4.0 * math.exp2(x) + 5.0 * math.expm1(x)
    d = math.fabs(x) + 2.0 * math.floor(x) + 3.0 * math.gamma(x) + 4.0 * math.lgamma(x) + 5.0 * math.log(x)
    e = math.log10(x) + 2.0 * math.log1p(x) + 3.0 * math.log2(x) + 4.0 * math.radians(x) + 5.0 * math.sin(x)
    f = math.sinh(x) + 2.0 * math.sqrt(x) + 3.0 * math.tan(x) + 4.0 * math.tanh(x) + 5.0 * math.trunc(x)
    g = 0.5 if math.isfinite(x) and not math.isinf(x) and not math.isnan(x) else 0.0
    h = math.atan2(x, y) + 2.0 * math.copysign(x, y) + 3.0 * math.fmod(y, x) + 4.0 * math.gcd(6 * n, 4)
    i = math.hypot(x, y) + 2.0 * math.ldexp(x, n) + 3.0 * math.nextafter(x, y) + 4.0 * math.pow(x, y)
    return a + b + c + d + e + f + g + h + i


def test_all_functions_of_math_are_compiled(lib):
    used = {
        node.attr for node in ast.walk(ast.parse(inspect.getsource(all_of_math))) if isinstance(node, ast.Attribute)
    }
    assert used == set(COUNT)
    op = elementwise("scalars::all_of_math(Tensor x, Tensor y) -> Tensor", all_of_math, derivative=False, lib=lib)
    pairs = [(0.3, 1.25), (0.9, -2.5), (0.5, 0.75)]
    found = op(*[rd.tensor(one, dtype=rd.float64) for one in zip(*pairs, strict=True)])
    assert found.tolist() == pytest.approx([all_of_math(*pair) for pair in pairs], rel=1e-12)


# --- options ----------------------------------------------------------------------------------------------------------


def test_promotion_says_what_integers_become(lib):
    @elementwise("scalars::twice(Tensor x) -> Tensor", promotion="same", lib=lib)
    def twice(x):
        return x + x

    @elementwise("scalars::large(Tensor x) -> Tensor", promotion="compare", lib=lib)
    def large(x):
        return x > 2

    assert twice(rd.tensor([1, 3])).tolist() == [2, 6] and twice(rd.tensor([1, 3])).dtype is rd.int64
    assert large(rd.tensor([1, 3])).tolist() == [False, True]
    assert not large(doubles(1.0)).requires_grad


def test_autocast_follows_the_policy(bump):
    with rd.autocast("cpu", dtype=rd.bfloat16):
        assert bump(rd.ones(2, dtype=rd.bfloat16)).dtype is rd.float32


def test_integers_are_computed_as_floats_and_complex_numbers_refused(bump):
    assert bump(rd.tensor([0, 1])).tolist() == [1.0, 0.5]
    with pytest.raises(NotImplementedError, match='"bump" not implemented for'):
        bump(rd.ones(2, dtype=rd.complex64))


def test_no_gradient_where_none_is_wanted(lib):
    @elementwise("scalars::steps(Tensor x) -> Tensor", derivative=False, lib=lib)
    def steps(x):
        return math.gamma(x)

    assert not steps(doubles(1.5)).requires_grad


def product(x, y):
    return x * y


def slope_by_y(x):
    return x


def test_arguments_by_keyword_only_are_passed_so_by_the_generic_checks(lib):
    @elementwise("scalars::power(Tensor x, float by=2.0, *, bool flip=False) -> Tensor", lib=lib)
    def power(x, by, flip):
        size = (x * x + 1) ** by
        return -size if flip else size

    checked(power)
    assert power(rd.ones(1), 1.0, flip=True).tolist() == [-2.0]


def test_derivatives_in_the_order_of_the_tensors(lib):
    """A function, None for a derived one; a tensor that is left out of a dict may not require grad."""
    schema = "scalars::product(Tensor x, Tensor y) -> Tensor"
    x, y = doubles(2.0), doubles(3.0)
    for derivative in ((None, slope_by_y), {"x": None, "y": slope_by_y}):
        op = elementwise(schema, product, derivative=derivative, lib=lib)
        assert [grad.item() for grad in rd.autograd.grad(op(x, y).sum(), (x, y))] == [3.0, 2.0]
        op.remove()
    op = elementwise(schema, product, derivative={"y": slope_by_y}, lib=lib)
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'x'"):
        op(x, y)


def test_a_number_with_a_fraction_is_not_cut_off_beside_whole_tensors(lib):
    def scaled(x, by):
        return x * by

    def below(x, bound):
        return x < bound

    op = elementwise("scalars::scaled(Tensor x, float by) -> Tensor", scaled, promotion="same", lib=lib)
    assert op(rd.tensor([1, 2]), 3.0).tolist() == [3, 6] and op(rd.ones(1), 2.5).tolist() == [2.5]
    with pytest.raises(RuntimeError, match="argument 'by' is 2.5, and is computed with in torch.int64"):
        op(rd.tensor([1, 2]), 2.5)
    compare = elementwise("scalars::below(Tensor x, float bound) -> Tensor", below, promotion="compare", lib=lib)
    assert compare(rd.tensor([2, 3]), 2.5).tolist() == [True, False]


def test_a_complex_number_is_refused(lib):
    def scaled(x, by):
        return x * by

    op = elementwise("scalars::scaled(Tensor x, Scalar by) -> Tensor", scaled, lib=lib)
    with pytest.raises(TypeError, match=r"scaled\(\): argument 'by' must be a real number, got 2j"):
        op(rd.ones(2), 2j)


def test_annotated_variables_and_questions_about_numbers(lib):
    def cleaned(x):
        doubled: float = x * 2
        return doubled if math.isfinite(x) else 0.0 * math.isnan(x)

    op = elementwise("scalars::cleaned(Tensor x) -> Tensor", cleaned, lib=lib)
    x = doubles(1.0, math.inf)
    (grad,) = rd.autograd.grad(op(x).sum(), x)
    assert op(x).tolist() == [2.0, 0.0] and grad.tolist() == [2.0, 0.0]


def test_an_operator_is_copied_and_pickled_by_its_name(bump):
    assert pickle.loads(pickle.dumps(bump)) is bump and copy.deepcopy(bump) is bump
    data = pickle.dumps(bump)
    bump.remove()
    with pytest.raises(RuntimeError, match="there is no operator scalars::bump in this process"):
        pickle.loads(data)


def test_the_cost_of_an_element_is_estimated_from_the_text():
    """In the unit in which the library declares its own: 1 for mul, 8 for sigmoid, 16 for softplus."""

    def sigmoid(x):
        return 1 / (1 + math.exp(-x))

    def by_result(result):
        return result * (1 - result)

    def series(x):
        total = 0.0
        for k in range(30):
            total += math.sin(k * x)
        return total

    assert [cost_of(f) for f in (product, by_result, square)] == [1, 1, 1]
    assert 8 <= cost_of(sigmoid) <= 10 and cost_of(series) > 50 and cost_of(helper) < cost_of(series)
    assert cost_of(slope(sigmoid, "x")) > cost_of(sigmoid)


def test_opcheck_takes_the_operator_itself(bump):
    assert set(opcheck(bump, (rd.rand(3, requires_grad=True),)).values()) == {"SUCCESS"}


# --- an end -----------------------------------------------------------------------------------------------------------


def test_removal_takes_everything_away(lib):
    before = set(rd.dispatch.operators())

    def declare():
        @elementwise("scalars::gone(Tensor x) -> Tensor", autocast="fp32")
        def gone(x):
            return x * x

        return gone

    gone = declare()
    gone(doubles(1.0)).sum().backward()
    assert len(rd.dispatch.operators()) > len(before)
    gone.remove()
    assert set(rd.dispatch.operators()) == before
    with pytest.raises(NotImplementedError, match="scalars::gone"):
        gone(rd.ones(1))
    again = declare()
    assert declare()(rd.ones(1)).tolist() == [1.0]  # the same definition once more replaces it
    again.remove()


def test_it_ends_with_its_library():
    before = set(rd.dispatch.operators())
    with _scoped_library("scalars", "FRAGMENT") as lib:
        elementwise("scalars::square(Tensor t) -> Tensor", square, lib=lib)(doubles(1.0)).sum().backward()
        assert set(rd.dispatch.operators()) != before
    assert set(rd.dispatch.operators()) == before


def test_a_name_that_is_taken_is_refused_and_leaves_nothing(lib, bump):
    before = set(rd.dispatch.operators())
    with pytest.raises(RuntimeError, match="scalars::bump"):
        elementwise("scalars::bump(Tensor t) -> Tensor", square, lib=lib)
    assert set(rd.dispatch.operators()) == before and bump(rd.zeros(1)).item() == 1.0


def test_nothing_is_compiled_before_the_first_call():
    script = """
        import sys, redispatch as rd
        from redispatch.library import elementwise
        @elementwise("scalars::bump(Tensor x) -> Tensor")
        def bump(x):
            return 1 / (1 + x * x)
        assert "numba" not in sys.modules
        bump(rd.ones(2, device="meta"))
        assert "numba" not in sys.modules
    """
    environment = {**os.environ, "REDISPATCH_QUIET": "1"}
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"scalar_{os.getpid()}.py")
    with open(path, "w") as file:
        file.write(textwrap.dedent(script))
    try:
        subprocess.run([sys.executable, path], check=True, env=environment)
    finally:
        os.unlink(path)


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema, text",
    [
        ("scalars::f(Tensor[] t) -> Tensor", "because of the argument `Tensor"),
        ("scalars::f(Tensor t, str mode) -> Tensor", "because of the argument `str mode`"),
        ("scalars::f(Tensor t) -> (Tensor, Tensor)", "its result is not one new tensor"),
        ("scalars::f(Tensor(a!) t) -> Tensor(a!)", "its result is not one new tensor"),
        ("scalars::f(float t) -> Tensor", "takes no tensor"),
        ("scalars::f(Tensor grad) -> Tensor", "formulas mean something else by 'grad'"),
        ("scalars::f(Tensor x) -> Tensor", r"its parameters are \(t\), the schema's arguments \(x\)"),
    ],
)
def test_a_schema_that_does_not_fit_says_why(schema, text):
    with pytest.raises(TypeError, match=text):
        elementwise(schema, square)


def test_options_that_do_not_exist_are_named():
    with pytest.raises(ValueError, match="of the form 'namespace::name'"):
        elementwise("f(Tensor t) -> Tensor", square)
    with pytest.raises(ValueError, match="promotion='wide': expected 'same', 'float' or 'compare'"):
        elementwise("scalars::f(Tensor t) -> Tensor", square, promotion="wide")
    with pytest.raises(ValueError, match="autocast='fp8'"):
        elementwise("scalars::f(Tensor t) -> Tensor", square, autocast="fp8")
    with pytest.raises(TypeError, match="derivative= names 'y'; scalars::f has the tensors t"):
        elementwise("scalars::f(Tensor t) -> Tensor", square, derivative={"y": square})
    with pytest.raises(TypeError, match="plain `def`"):
        elementwise("scalars::f(Tensor t) -> Tensor", math.exp)
    for derivative in ("grad * t", 3, (square, square), [2]):
        with pytest.raises(TypeError, match="scalars::f: (derivative= |a derivative is a scalar function)"):
            elementwise("scalars::f(Tensor t) -> Tensor", square, derivative=derivative)
    with pytest.raises(TypeError, match=r'@elementwise takes a schema: write @elementwise\("mylib::bump'):
        elementwise(square)
    with pytest.raises(ValueError, match="autocast's device='tpu': expected 'cpu' or 'cuda'"):
        elementwise("scalars::f(Tensor t) -> Tensor", square, autocast={"tpu": "fp32"})
    with pytest.raises(TypeError, match="cost='much': expected a whole number from 1"):
        elementwise("scalars::f(Tensor t) -> Tensor", square, cost="much")
    with pytest.raises(TypeError, match="has a parameter 'a'; it may have t, result"):
        elementwise("scalars::f(Tensor t) -> Tensor", square, derivative=helper)
    assert not [op for op in rd.dispatch.operators() if op.namespace == "scalars"]


def uses_a_list(t):
    values = [t, t]
    return values[0]


def uses_print(t):
    t = t + 1
    print(t)
    return t


def uses_a_tensor_function(t):
    return rd.exp(t)


def tries(t):
    try:
        return 1 / t
    except ZeroDivisionError:
        return 0.0


def returns_nothing(t):
    t = t + 1


def misspells(t):
    return math.sine(t)


def rounds(t):
    return round(t)


def counts_ways(t):
    return math.factorial(3) * t


def passes_too_much(t):
    return math.sin(t, t)


def calls_itself(t):
    return t * calls_itself(t - 1)


@pytest.mark.parametrize(
    "function, text, line",
    [
        (uses_a_list, r"`\[t, t\]` is not supported", 1),
        (uses_print, r"`print\(t\)` is not supported", 2),
        (uses_a_tensor_function, r"`rd.exp\(...\)` is not supported", 1),
        (tries, "`try:` is not supported", 1),
        (returns_nothing, "it returns nothing", 0),
        (misspells, r"`math.sine\(...\)` is not supported", 1),
        (rounds, "`round` is not supported: a scalar function may use", 1),
        (counts_ways, r"`math.factorial\(...\)` is not supported: of math there are acos,", 1),
        (passes_too_much, r"`math.sin\(t, t\)` passes 2 arguments; it takes 1", 1),
        (calls_itself, "cannot call itself", 1),
    ],
)
def test_python_that_has_no_meaning_for_one_element_is_refused_with_its_line(function, text, line):
    with pytest.raises(ScalarFunctionError, match=text) as caught:
        elementwise("scalars::f(Tensor t) -> Tensor", function)
    assert caught.value.place == f"{__file__}:{function.__code__.co_firstlineno + line}"


def gamma(t):
    return math.gamma(t)


def test_a_derivative_that_is_not_known_is_asked_for(lib):
    with pytest.raises(ScalarFunctionError, match="the derivative of `math.gamma` is not known here: pass derivative="):
        elementwise("scalars::f(Tensor t) -> Tensor", gamma, lib=lib)

    def slope_with_gamma(t):
        return math.lgamma(t)

    once = elementwise("scalars::once(Tensor t) -> Tensor", square, derivative=slope_with_gamma, lib=lib)
    x = doubles(3.0)
    (grad,) = rd.autograd.grad(once(x).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="once_backward cannot be differentiated again"):
        grad.sum().backward()
