"""An operator declared while a program runs gets the generic tests by one call, and they find what is wrong with it."""

import numpy as np
import pytest

import redispatch as rd
from redispatch.kernels.declare.pointwise import pointwise
from redispatch.kernels.declare.public import public
from redispatch.testing import OpInfo, check_operator
from redispatch.testing.check_operator import CHECKS
from redispatch.testing.op_db.common import unary

DERIVATIVE = {"self": lambda grad, self, result: grad * (-2 * self * result * result)}


def declare(name, derivative=DERIVATIVE):
    """1 / (1 + x * x), as CONTRIBUTING.md declares it."""
    op = pointwise(f"{name}(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", namespace="checked")

    @op.scalar
    def bump_element(self):
        return 1 / (1 + self * self)

    op.derivative(**derivative)
    public(op, method=False)
    return OpInfo(f"checked::{name}", unary(), lambda self: 1 / (1 + np.square(self)), dtypes=(rd.float32, rd.float64))


def test_an_operator_declared_at_run_time_passes_every_check():
    assert check_operator(declare("bump")) == list(CHECKS)


@pytest.mark.parametrize(
    "what, derivative, changes",
    [
        ("gradients", {"self": lambda grad, self, result: grad * (-2 * self * result)}, {}),
        ("second_gradients", {"self": lambda grad, self, result: grad * (-2 * self * result * result).detach()}, {}),
        ("reference", DERIVATIVE, {"reference": lambda self: 1 / (1 + self)}),
    ],
)
def test_what_is_wrong_is_named(what, derivative, changes):
    info = declare(f"wrong_{what}", derivative)
    with pytest.raises(AssertionError, match=f"checked::wrong_{what}: {what} does not hold for"):
        check_operator(info.but(info.name, **changes))


def test_a_meta_kernel_that_tells_another_shape_is_found():
    library = rd.library.Library("checked", "FRAGMENT")
    library.define("halves(Tensor self) -> Tensor")
    library.impl("halves", lambda self: self / 2, "CPU")
    library.impl("halves", lambda self: self.new_empty(3), "Meta")
    info = OpInfo("checked::halves", unary(), lambda self: self / 2, dtypes=(rd.float64,), gradients=False)
    with pytest.raises(AssertionError, match="meta does not hold"):
        check_operator(info)


def test_what_an_operator_cannot_do_is_skipped_where_it_says_so():
    skipping = declare("skipping").but("checked::skipping", skips={"vmap": "no batches", "out": "its own"})
    assert set(CHECKS) - set(check_operator(skipping)) == {"vmap", "out"}
