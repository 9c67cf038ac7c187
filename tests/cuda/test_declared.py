"""Operators that one statement declares run on a device like the library's own, with their gradients."""

import math

import pytest

import redispatch as rd
from redispatch.library import _scoped_library, elementwise, reduction
from redispatch.testing import assert_close

from ..ops.test_from_scalar import all_of_math
from ..ops.test_one_file import family  # noqa: F401  # a fixture

pytestmark = pytest.mark.usefixtures("simulator")


# --- one file ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def on_device(family, simulator):  # noqa: F811  # the fixture; before the devices, which give each operator its kernels
    return family


def test_values_forms_and_gradient(on_device):
    x = rd.tensor([[0.5, -1.0], [2.0, 0.25]])
    there = x.cuda().requires_grad_()
    result = on_device.test_hill(there)
    assert_close(result.detach().cpu(), on_device.test_hill(x))
    assert_close(on_device.test_hill.inplace(x.cuda()).cpu(), on_device.test_hill(x))
    (grad,) = rd.autograd.grad(result.sum(), there)
    assert_close(grad.cpu(), -2 * x * (-x * x).exp())


# --- from scalar ------------------------------------------------------------------------------------------------------


SCHEMA = "(Tensor x, int[1]? dim=None, bool keepdim=False) -> Tensor"


def smooth_relu(x, beta):
    t = beta * x
    return x if t > 20.0 else math.log1p(math.exp(t)) / beta


def add(total, x):
    return total + x


def exponential(x):
    return math.exp(x)


def logarithm(total, count):
    return math.log(total)


def softmax(x, result):
    return math.exp(x - result)


@pytest.fixture
def lib():
    with _scoped_library("devices", "FRAGMENT") as library:
        yield library


def test_all_functions_of_math_are_compiled(lib):
    op = elementwise("devices::all_of_math(Tensor x, Tensor y) -> Tensor", all_of_math, derivative=False, lib=lib)
    x, y = rd.tensor([0.3, 0.9, 0.5], dtype=rd.float64), rd.tensor([1.25, -2.5, 0.75], dtype=rd.float64)
    assert_close(op(x.cuda(), y.cuda()).cpu(), op(x, y), rtol=1e-12, atol=0)


def test_an_elementwise_operator_and_its_gradient(lib):
    op = elementwise("devices::smooth_relu(Tensor x, float beta=1.0) -> Tensor", smooth_relu, lib=lib)
    x = rd.tensor([[0.5, -1.0], [2.0, 30.0]])
    there = x.cuda().requires_grad_()
    assert_close(op(there).detach().cpu(), op(x))
    (grad,) = rd.autograd.grad(op(there, 2.0).sum(), there)
    assert_close(grad.cpu(), (2 * x).sigmoid())
    assert_close(op.inplace(x.cuda()).cpu(), op(x))


def test_a_reduction_and_its_gradient(lib):
    op = reduction(
        f"devices::lse{SCHEMA}", add, identity=0.0, each=exponential, finish=logarithm, derivative=softmax, lib=lib
    )
    x = rd.linspace(-2, 2, 60).view(4, 15)
    there = x.cuda().requires_grad_()
    for dim, keepdim in ((None, False), ([1], False), ([0], True)):
        assert_close(op(there.detach(), dim, keepdim).cpu(), op(x, dim, keepdim))
    assert_close(op(there.detach().t(), [0], out=rd.empty(4, device="cuda")).cpu(), x.logsumexp(1))
    (grad,) = rd.autograd.grad(op(there, [1]).sum(), there)
    assert_close(grad.cpu(), x.softmax(1))
    with pytest.raises(NotImplementedError, match="\"lse\" not implemented for 'Long'"):
        op(rd.ones(3, dtype=rd.int64, device="cuda"))
