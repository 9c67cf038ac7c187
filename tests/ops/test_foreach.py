"""Operators on lists are seen as one call, differentiated as single calls are, and refuse lists that do not fit."""

import subprocess
import sys

import pytest

import redispatch as rd
from redispatch.autograd import forward_ad
from redispatch.func import jvp, vmap

from ..seeing import Seen


def test_a_mode_sees_one_call_also_where_gradients_are_wanted():
    x, number = rd.ones(2, requires_grad=True), rd.tensor(2.0)
    with Seen() as mode:
        rd._foreach_add([x, x], 1)
        rd._foreach_mul([x, x], number)
        rd._foreach_addcmul([x], [x], [x], [2.0])
        rd._foreach_zero_([x.detach()])
    seen = " ".join(name for name in mode.names if "detach" not in name)
    assert seen == "_foreach_add.Scalar _foreach_mul.Tensor _foreach_addcmul.ScalarList _foreach_zero_"


def test_in_place_functions_return_the_list_and_operators_nothing():
    xs = [rd.ones(2), rd.ones(())]
    assert rd._foreach_add_(xs, 1) is xs and xs[0].tolist() == [2.0, 2.0]
    assert rd._foreach_mul_(self=xs, scalars=[2, 3]) is xs and xs[1].item() == 6
    assert rd.ops.aten._foreach_add_.Scalar(xs, 1) is None
    assert type(rd._foreach_abs(xs)) is tuple and type(rd.ops.aten._foreach_abs(xs)) is list


def test_gradients_and_tangents_are_those_of_single_calls():
    def write(x):
        y, z = x * 1, x[0] * 1
        rd._foreach_mul_([y, z], [x, x[1]])
        return y * z

    def single(x):
        y, z = x * 1, x[0] * 1
        y.mul_(x)
        z.mul_(x[1])
        return y * z

    x, direction = rd.randn(3, 2), rd.randn(3, 2)
    assert rd.equal(rd.func.grad(lambda x: write(x).sum())(x), rd.func.grad(lambda x: single(x).sum())(x))
    tangent = jvp(single, (x,), (direction,))[1]
    assert rd.equal(jvp(write, (x,), (direction,))[1], tangent)
    with forward_ad.dual_level():
        assert rd.equal(forward_ad.unpack_dual(write(forward_ad.make_dual(x, direction))).tangent, tangent)
    batch = rd.randn(4, 3, 2)
    assert rd.equal(vmap(write)(batch), rd.stack([single(x) for x in batch]))


def test_all_results_are_of_the_graph_if_one_element_is():
    one, other = rd._foreach_exp([rd.ones(2, requires_grad=True), rd.ones(2)])
    assert one.requires_grad and other.requires_grad
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        rd._foreach_exp_([rd.ones(2), rd.ones(2, requires_grad=True)])


X = rd.ones(2)
NOT_ONE = "scalar tensor expected to be 0 dim but it has 1 dimensions and 2 elements."
WRONG = {
    "Tensor lists must have the same number of tensors, got 2 and 1": lambda: rd._foreach_add([X, X], [X]),
    "Tensor lists must have the same number of tensors, got 1 and 2": lambda: rd._foreach_lerp([X], [X], [X, X]),
    "Tensor list must have at least one tensor.": lambda: rd._foreach_abs([]),
    "Tensor list must have at least one tensor. ": lambda: rd._foreach_add_([], 1),
    "Tensor list must have same number of elements as scalar list.": lambda: rd._foreach_pow([X], [1, 2]),
    NOT_ONE: lambda: rd._foreach_mul([X], rd.ones(2)),
    "Expected packed scalar Tensor to be of dimension 1. Got 0 instead.": (
        lambda: rd._foreach_addcmul([X], [X], [X], rd.tensor(1.0))
    ),
    "Expected length of scalars to match input of length 1 but got 2 instead.": (
        lambda: rd._foreach_addcdiv([X], [X], [X], rd.ones(2))
    ),
    "_foreach_max cannot compute the maximum of an empty tensor": lambda: rd._foreach_max([X, rd.ones(0)]),
    "_foreach_norm cannot compute the infinity norm": lambda: rd._foreach_norm([rd.ones(0)], float("inf")),
    "_foreach_mm: self and mat2 must have the same number": lambda: rd._foreach_mm([X], [X, X]),
    "_foreach_mm requires non-empty tensor lists": lambda: rd._foreach_mm([], []),
    "\"powsum_cpu\" not implemented for 'Long'": lambda: rd._foreach_powsum([X.int()]),
}


@pytest.mark.parametrize("text", WRONG)
def test_lists_that_do_not_fit_are_refused_in_pytorchs_words(text):
    with pytest.raises(RuntimeError) as refused:
        WRONG[text]()
    assert text.strip() in str(refused.value)


def test_whole_numbers_have_a_powsum_in_another_dtype():
    assert rd._foreach_powsum([X.int() * 2], 3, rd.float64)[0].item() == 16


def test_an_item_that_is_no_tensor_is_a_type_error():
    with pytest.raises(TypeError, match="expected Tensor as element 1 in argument 0, but got NoneType"):
        rd.cat([X, None])
    with pytest.raises(TypeError, match="argument 'self' .position 1. must be tuple of Tensors, not str"):
        rd._foreach_abs("x")


def test_importing_the_library_declares_none():
    code = "import redispatch, sys; sys.exit('redispatch.kernels.ops.foreach' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_overloads_that_do_not_fit_write_out_no_tensors(monkeypatch):
    """Trying them took 350 µs, of which 340 went into messages that nobody reads."""

    def refuse(self, *args, **kwargs):
        raise AssertionError("a tensor was printed")

    monkeypatch.setattr(rd.Tensor, "__repr__", refuse)
    monkeypatch.setattr(rd.Tensor, "__format__", refuse)
    for _ in range(4):  # on the slow path, and by fast paths
        xs = [rd.ones(2), rd.ones(3)]
        rd._foreach_add_(xs, [rd.ones(2), rd.ones(3)], alpha=2)
        assert rd._foreach_mul(xs, xs)[1].sum().item() == 27


def test_functions_that_write_have_fast_paths_and_return_the_list():
    xs = [rd.ones(2)]
    for _ in range(4):
        assert rd._foreach_add_(xs, 1.0) is xs and rd._foreach_add_(xs, xs) is xs and rd._foreach_zero_(self=xs) is xs
        assert rd._foreach_add_(xs, other=[rd.ones(2)]) is xs
    assert rd._foreach_add_.__code__.co_filename == "<torch._foreach_add_>"
    for empty in ([], ()):
        with pytest.raises(RuntimeError, match="Tensor list must have at least one tensor"):
            rd._foreach_add_(empty, empty)


def test_an_operator_has_a_fast_path_for_an_empty_list(monkeypatch):
    """Adam without `amsgrad` gives one, and took 25 µs longer a step."""
    options = dict(lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False)
    tensors = *([rd.ones(2)] for _ in range(4)), [], [rd.ones(())]
    update = rd.ops.aten._fused_adam_.default
    for _ in range(4):
        update(*tensors, **options)
    monkeypatch.setattr("redispatch.dispatch.core.operator.bind", None)
    assert update(*tensors, **options) is None
