"""`redispatch.special` comes when it is asked for, and is PyTorch's module in its names, faces and refusals."""

import math
import subprocess
import sys

import pytest

import redispatch as rd
from redispatch.dispatch import OPERATORS

from .. import drawing
from ..seeing import Seen

ASKING = [
    "rd.special.entr(rd.ones(1))",
    "rd.ops.aten.special_entr.default(rd.ones(1))",
    "rd.i0(rd.ones(1, requires_grad=True)).backward()",
    "rd.library.Library('aten', 'IMPL').impl('special_entr', lambda self: self, 'Meta', allow_override=True)",
]


@pytest.mark.parametrize("asking", drawing.draw(ASKING, "asking for special", count=2))
def test_its_operators_are_declared_when_one_is_asked_for(asking):
    program = f"""
import sys, redispatch as rd
from redispatch.dispatch import OPERATORS
assert 'redispatch.special' not in sys.modules
assert not any(name.startswith('aten::special_') for name in OPERATORS)
{asking}
assert 'aten::special_zeta.self_scalar' in OPERATORS
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_operator_has_its_face():
    special = {name.split("::special_")[1].split(".")[0] for name in OPERATORS if name.startswith("aten::special_")}
    assert special == set(rd.special.__all__)


def test_what_modes_see():
    x = rd.tensor([0.5, 1.5])
    with Seen() as mode:
        rd.special.expit(x)
        rd.special.xlogy(2, x)
        rd.special.zeta(2, x)
        rd.special.chebyshev_polynomial_t(x, 2)
        rd.special.ndtr(x)
        rd.special.round(x)
    assert (
        mode.names
        == (
            "sigmoid xlogy.Scalar_Self special_zeta.self_scalar special_chebyshev_polynomial_t.n_scalar "
            "mul.Scalar erf add.Scalar mul.Scalar round.decimals"
        ).split()
    )


def test_derivatives_that_nobody_has_are_refused_when_they_are_needed():
    a, x = rd.ones(2, requires_grad=True), rd.ones(2)
    for call, name in ((lambda: rd.igamma(a, x), "igamma: input"), (lambda: rd.special.zeta(a + 1, x), "zeta")):
        with pytest.raises(NotImplementedError, match=f"the derivative for '{name}' is not implemented."):
            call().sum().backward()
    assert not rd.special.bessel_j0(a).requires_grad


def test_trigamma_at_poles_is_what_the_rounded_sine_makes_of_it():
    x = rd.tensor([-1.0, 0.0, 1.0, float("inf")], dtype=rd.float64)
    first, *rest = rd.polygamma(1, x).tolist()
    assert 1e31 < first < float("inf") and rest == [float("inf"), pytest.approx(math.pi**2 / 6), 0.0]
    assert rd.polygamma(2, x[:2]).tolist() == [-float("inf")] * 2
