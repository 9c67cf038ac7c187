"""FunctionalTensorMode: what a mode below it sees, and what the tensors show."""

import redispatch as rd
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.modes.functional_tensor import FunctionalTensor, FunctionalTensorMode
from redispatch.testing import assert_close
from redispatch.utils import _pytree as pytree


def writes(x):
    y = x * 2
    y[0].add_(1)
    y.t_()
    return y, rd.zeros(2).add_(3)


def under_the_mode(f):
    def run(*args):
        with FunctionalTensorMode():
            result = f(*(FunctionalTensor.to_functional(one) for one in args))
        return pytree.tree_map_only(FunctionalTensor, FunctionalTensor.from_functional, result)

    return run


def test_the_values_are_those_of_the_program():
    x = rd.randn(2, 3)
    assert_close(under_the_mode(writes)(x), writes(x))


def test_nothing_writes_below_the_mode():
    traced = make_fx(under_the_mode(writes))(rd.ones(2, 3))
    called = [node.target for node in traced.graph.find_nodes(op="call_function") if hasattr(node.target, "_schema")]
    assert called and not any(op._schema.is_mutable for op in called)
    x = rd.randn(2, 3)
    assert_close(traced(x), writes(x))


def test_gradients_flow_through_functional_tensors():
    def loss(x):
        y = x * 1
        y[0].mul_(3)
        return rd.autograd.grad(y.sum(), x)[0]

    x = rd.ones(2, requires_grad=True)
    assert under_the_mode(loss)(x).tolist() == [3, 1]


def test_a_region_functionalizes_by_hand():
    ones = rd.ones(2)
    rd._enable_functionalization(reapply_views=True)
    try:
        x = rd._to_functional_tensor(ones)
        view = x[:1]
        view.add_(1)
    finally:
        rd._disable_functionalization()
    rd._sync(x)
    assert rd._is_functional_tensor(x) and not rd._is_functional_tensor(rd.ones(1))
    assert rd._from_functional_tensor(x).tolist() == [2, 1]
