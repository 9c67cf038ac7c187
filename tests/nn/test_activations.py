"""Activation modules: each is the function of its name, with what it was made of, and shows that."""

import numpy as np
import pytest

import redispatch as rd
import redispatch.nn.functional as F
from redispatch import nn

MODULES = [
    (nn.ELU(0.5), "ELU(alpha=0.5)", lambda x: F.elu(x, 0.5)),
    (nn.CELU(0.5), "CELU(alpha=0.5)", lambda x: F.celu(x, 0.5)),
    (nn.SELU(), "SELU()", F.selu),
    (nn.LeakyReLU(0.2), "LeakyReLU(negative_slope=0.2)", lambda x: F.leaky_relu(x, 0.2)),
    (nn.RReLU(0.25, 0.75).eval(), "RReLU(lower=0.25, upper=0.75)", lambda x: F.leaky_relu(x, 0.5)),
    (nn.PReLU(3, 0.5), "PReLU(num_parameters=3)", lambda x: F.leaky_relu(x, 0.5)),
    (nn.Threshold(0.1, 20), "Threshold(threshold=0.1, value=20)", lambda x: F.threshold(x, 0.1, 20)),
    (nn.Hardtanh(-2, 0.5), "Hardtanh(min_val=-2, max_val=0.5)", lambda x: x.clamp(-2, 0.5)),
    (nn.ReLU6(), "ReLU6()", lambda x: x.clamp(0, 6)),
    (nn.Hardsigmoid(), "Hardsigmoid()", lambda x: (x + 3).clamp(0, 6) / 6),
    (nn.Hardswish(), "Hardswish()", lambda x: x * (x + 3).clamp(0, 6) / 6),
    (nn.Hardshrink(0.25), "Hardshrink(0.25)", lambda x: x * (x.abs() > 0.25)),
    (nn.Softshrink(0.25), "Softshrink(0.25)", lambda x: F.softshrink(x, 0.25)),
    (nn.Tanhshrink(), "Tanhshrink()", lambda x: x - x.tanh()),
    (nn.Softmin(1), "Softmin(dim=1)", lambda x: (-x).softmax(1)),
    (nn.Softmax2d(), "Softmax2d()", lambda x: x.softmax(-3)),
    (nn.Softplus(2, 10), "Softplus(beta=2, threshold=10)", lambda x: (1 + (2 * x).exp()).log() / 2),
    (nn.LogSigmoid(), "LogSigmoid()", lambda x: x.sigmoid().log()),
    (nn.Mish(), "Mish()", lambda x: x * F.softplus(x).tanh()),
    (nn.Softsign(), "Softsign()", lambda x: x / (1 + x.abs())),
    (nn.ReLU(), "ReLU()", lambda x: x.clamp(min=0)),
    (nn.SiLU(), "SiLU()", lambda x: x * x.sigmoid()),
    (nn.GELU(), "GELU(approximate='none')", lambda x: x * (1 + (x / 2**0.5).erf()) / 2),
    (nn.GELU(approximate="tanh"), "GELU(approximate='tanh')", lambda x: F.gelu(x, approximate="tanh")),
    (nn.Sigmoid(), "Sigmoid()", rd.sigmoid),
    (nn.Tanh(), "Tanh()", rd.tanh),
    (nn.Softmax(dim=1), "Softmax(dim=1)", lambda x: x.softmax(1)),
    (nn.LogSoftmax(dim=1), "LogSoftmax(dim=1)", lambda x: x.log_softmax(1)),
    (nn.GLU(2), "GLU(dim=2)", lambda x: x[:, :, :2] * x[:, :, 2:].sigmoid()),
]


@pytest.mark.parametrize("module, shown, function", MODULES, ids=[type(module).__name__ for module, *_ in MODULES])
def test_a_module_is_its_function(module, shown, function):
    x = rd.randn(2, 3, 4, 2)
    np.testing.assert_allclose(module(x).detach().numpy(), function(x).numpy(), rtol=2e-5, atol=1e-6)
    assert repr(module) == shown


@pytest.mark.parametrize(
    "kind",
    "ReLU ELU CELU SELU LeakyReLU RReLU Hardtanh ReLU6 Hardsigmoid Hardswish Mish Threshold".split(),
)
def test_inplace_writes_over_the_input(kind):
    args = (0.1, 20.0) if kind == "Threshold" else ()
    x = rd.randn(3, 4)
    expected = getattr(nn, kind)(*args).eval()(x)
    module = getattr(nn, kind)(*args, inplace=True).eval()
    assert module(x) is x and rd.equal(x, expected)
    assert ("inplace=True" in repr(module)) == (kind not in ("Hardsigmoid", "Hardswish"))


def test_prelu_learns_its_slopes():
    module = nn.PReLU(2)
    module(-rd.ones(3, 2)).sum().backward()
    assert module.weight.grad.tolist() == [-3.0, -3.0]


def test_modules_refuse_what_makes_no_sense():
    with pytest.raises(AssertionError, match=r"max_val \(1\) must be greater than min_val \(3\)"):
        nn.Hardtanh(3, 1)
    with pytest.warns(FutureWarning, match="keyword argument `min_value` is deprecated and renamed to `min_val`"):
        assert nn.Hardtanh(min_value=-2).min_val == -2
    with pytest.raises(ValueError, match="Softmax2d: expected input to be 3D or 4D, got 1D instead"):
        nn.Softmax2d()(rd.ones(2))
