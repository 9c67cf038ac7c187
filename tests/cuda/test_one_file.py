"""A pointwise operator that one statement declares runs on a device, with its gradient."""

import pytest

import redispatch as rd
from redispatch.testing import assert_close

from ..ops.test_one_file import family  # noqa: F401  # a fixture


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
