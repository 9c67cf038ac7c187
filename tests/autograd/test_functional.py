"""autograd.functional under `strict`: what does not depend on the inputs is an error that says what it is."""

import pytest

import redispatch as rd
from redispatch.autograd.functional import hessian, hvp, jacobian, vhp, vjp

ONES = rd.ones(2)
LINEAR = "found that the jacobian of the user-provided function with respect to input 0 is independent of the input"


def constant(x):
    return rd.ones(2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vjp(constant, ONES, ONES, strict=True), "Output 0 of the user-provided function does not require"),
        (
            lambda: vjp(lambda x, y: x * 2, (ONES, ONES), ONES, strict=True),
            "The output of the user-provided function is independent of input 1. This is not allowed in strict mode.",
        ),
        (
            lambda: jacobian(lambda x, y: x * 2, (ONES, ONES), strict=True),
            "Output 0 of the user-provided function is independent of input 1. This is not allowed in strict mode.",
        ),
        (
            lambda: jacobian(lambda x: x, ONES, strict=True, create_graph=True),
            "The jacobian of the user-provided function is independent of input 0. This is not allowed in strict mode "
            "when create_graph=True.",
        ),
        (lambda: hessian(lambda x: x.sum(), ONES, strict=True), LINEAR),
        (lambda: hvp(lambda x: x.sum(), ONES, ONES, strict=True), LINEAR),
        (lambda: vhp(lambda x: x.sum(), ONES, ONES, strict=True), LINEAR),
        (
            lambda: (
                vhp(lambda x, y: (x * x).sum() + (y * y).sum(), (ONES, ONES), (ONES, ONES), strict=True)
                and vhp(lambda x: (x * x).sum(), ONES, ONES, strict=True, create_graph=True)
            ),
            "The hessian of the user-provided function is independent of input 0. This is not allowed in strict mode "
            "when create_graph=True.",
        ),
    ],
)
def test_what_is_independent_is_refused_where_asked_to(call, message):
    with pytest.raises(RuntimeError) as error:
        call()
    assert message in str(error.value)


def test_what_is_independent_is_zero_elsewhere():
    assert jacobian(lambda x, y: x * 2, (ONES, ONES))[1].tolist() == [[0, 0], [0, 0]]
    assert hvp(lambda x: x.sum(), ONES, ONES)[1].tolist() == [0, 0]
