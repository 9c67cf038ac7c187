"""Dual tensors: what has a tangent, what happens to it, and when it is gone."""

import pytest

import redispatch as rd
from redispatch import func
from redispatch.autograd import forward_ad as fwAD
from redispatch.autograd import functional, grad
from redispatch.func import vmap
from redispatch.testing import assert_close

from ..seeing import seen

X = rd.tensor([1.0, 2.0, 3.0], dtype=rd.float64)
T = rd.tensor([1.0, 0.0, 2.0], dtype=rd.float64)


def tangent(x):
    return fwAD.unpack_dual(x).tangent


def test_tangents_follow_the_operators():
    with fwAD.dual_level():
        x = fwAD.make_dual(X, T)
        assert_close(tangent(x * x), 2 * X * T)
        assert_close(tangent(x.sum()), T.sum())
        assert_close(tangent(x.softmax(0)).sum(), rd.zeros((), dtype=rd.float64))
        assert tangent(x > 1) is None and tangent(x.detach()) is None


def test_tangents_do_not_outlive_their_level():
    with fwAD.dual_level():
        x = fwAD.make_dual(X, T)
    assert tangent(x) is None and fwAD.unpack_dual(x).primal is x


def test_views_share_their_bases_tangent():
    with fwAD.dual_level():
        base = rd.zeros(4, dtype=rd.float64)
        view, other = base[:3], base[2:]
        view.copy_(fwAD.make_dual(X, T))
        assert tangent(base).tolist() == [1, 0, 2, 0] and tangent(other).tolist() == [2, 0]
        other.mul_(3)
        assert tangent(view).tolist() == [1, 0, 6]
        base.zero_()
        assert tangent(view).tolist() == [0, 0, 0]


def test_a_write_changes_no_other_tensors_tangent():
    with fwAD.dual_level():
        x = fwAD.make_dual(X, T)
        x.clone().mul_(5)
        assert_close(tangent(x), T)
    assert T.tolist() == [1, 0, 2]


def test_forward_over_reverse():
    w = X.clone().requires_grad_()
    with fwAD.dual_level():
        moved = tangent((fwAD.make_dual(w, T) ** 3).sum())
        (second,) = grad(moved, w)
    assert_close(second, 6 * X * T)


def test_modes_see_the_tangents_being_computed():
    with fwAD.dual_level():
        x = fwAD.make_dual(X, T)
        names = seen(x.exp).split()
    assert names[0] == "exp" and "mul.Tensor" in names


def test_a_dual_tensor_shows_its_tangent():
    with fwAD.dual_level():
        assert repr(fwAD.make_dual(rd.ones(2), rd.zeros(2))) == "tensor([1., 1.], tangent=tensor([0., 0.]))"


# autograd.functional --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobians_of_several_inputs_and_outputs(strategy):
    found = functional.jacobian(lambda x, y: (x * y, x.sum()), (X, T), strategy=strategy)
    assert_close(found[0], (rd.diag(T), rd.diag(X)))
    assert_close(found[1], (rd.ones_like(X), rd.zeros_like(X)))


def test_hessians_and_products_with_them():
    def cubes(x):
        return (x**3).sum()

    assert_close(functional.hessian(cubes, X), rd.diag(6 * X))
    assert_close(functional.hvp(cubes, X, T)[1], 6 * X * T)
    assert_close(functional.vhp(cubes, X, T)[1], 6 * X * T)


def test_products_with_jacobians():
    def scaled(x):
        return x * x.sum()

    jacobian = functional.jacobian(scaled, X)
    assert_close(functional.jvp(scaled, X, T)[1], jacobian @ T)
    assert_close(functional.vjp(scaled, X, T)[1], T @ jacobian)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_vectorized_jacobians_and_hessians_are_the_same(strategy):
    def scaled(x, y):
        return x * y.sum(), x.exp().sum(), rd.ones_like(x)

    for whole, one in zip(
        functional.jacobian(scaled, (X, T), vectorize=True, strategy=strategy),
        functional.jacobian(scaled, (X, T)),
        strict=True,
    ):
        assert_close(whole, one)
    found = functional.hessian(lambda x: (x**3).sum(), X, vectorize=True, outer_jacobian_strategy=strategy)
    assert_close(found, rd.diag(6 * X))


# Under transforms -----------------------------------------------------------------------------------------------------


def slope(x, t):
    return tangent(fwAD.make_dual(x, t).exp())


def test_a_batch_of_tangents_under_vmap():
    with fwAD.dual_level():
        assert_close(vmap(slope, (None, 0))(X, rd.eye(3, dtype=rd.float64)), rd.diag(X.exp()))
        assert_close(vmap(slope)(X, T), X.exp() * T)
        assert_close(tangent(vmap(rd.exp)(fwAD.make_dual(X, T))), X.exp() * T)  # the transform is inside


def test_reverse_over_forward():
    with fwAD.dual_level():
        assert_close(func.grad(lambda x: slope(x, T).sum())(X), X.exp() * T)
        assert_close(tangent(func.grad(lambda x: x.exp().sum())(fwAD.make_dual(X, T))), X.exp() * T)


def test_detaching_takes_the_tangent_away():
    with fwAD.dual_level():
        x = fwAD.make_dual(X, T).clone()
        x.detach_()
        assert tangent(x) is None


def test_whole_numbers_have_no_tangent():
    with fwAD.dual_level():
        assert tangent(fwAD.make_dual(X, T).long()) is None


def test_a_tangent_lies_in_memory_as_its_primal_does():
    primal, tangent = rd.arange(5.0)[:4].detach(), rd.ones(4)
    with fwAD.dual_level():
        assert fwAD._current_level == 0
        dual = fwAD.make_dual(primal, tangent)
        fwAD.unpack_dual(dual).tangent.mul_(2)
        assert tangent.tolist() == [1] * 4
        assert fwAD.unpack_dual(dual.as_strided((5,), (1,), 0)).tangent.tolist() == [2, 2, 2, 2, 0]
        alike = rd.ones(4)
        assert fwAD.unpack_dual(fwAD.make_dual(rd.zeros(4), alike)).tangent is alike
    assert fwAD._current_level == -1


def test_forward_mode_can_be_turned_off():
    with fwAD.dual_level():
        dual = fwAD.make_dual(rd.ones(2), rd.ones(2))
        with fwAD._set_fwd_grad_enabled(False):
            assert not fwAD._is_fwd_grad_enabled()
            assert fwAD.unpack_dual(dual * 2).tangent is None
        assert fwAD.unpack_dual(dual * 2).tangent.tolist() == [2, 2]
        rd._C._set_fwd_grad_enabled(False)
        assert not fwAD._is_fwd_grad_enabled()
        rd._C._set_fwd_grad_enabled(True)


def test_an_operator_whose_formula_nobody_knows_has_no_tangent():
    with fwAD.dual_level():
        dual = fwAD.make_dual(rd.ones(2), rd.ones(2))
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with igamma that does not support it"):
            rd.igamma(dual, dual)


def test_functional_says_in_strict_mode_what_does_not_depend_on_what():
    def apart(x):
        return x.long().float().requires_grad_().clone().sum()

    x = rd.rand(3)
    for function in (functional.hvp, functional.vhp, functional.jvp):
        with pytest.raises(RuntimeError, match="The output of the user-provided function is independent of input 0"):
            function(apart, x, rd.ones(3), strict=True)
    for function, text in (
        (lambda x: x.detach().sum(), "Output 0 of the user-provided function does not require gradients"),
        (lambda x: (3 * x).sum(), "jacobian of the user-provided function with respect to input 0 is independent"),
    ):
        with pytest.raises(RuntimeError, match=text):
            functional.hessian(function, x, strict=True)
    with pytest.raises(RuntimeError, match="The output of the user-provided function is independent of input 1"):
        functional.jvp(lambda x, y: x * 2, (x, x), (x, x), strict=True)
    with pytest.raises(RuntimeError, match="jacobian of the user-provided function is independent of input 0"):
        functional.jvp(lambda x: x.clone(), x.requires_grad_(), rd.ones(3), create_graph=True, strict=True)
