"""Modes that replace tensors: by fakes without data, and by such as are never written."""

import pytest

import redispatch as rd
import redispatch.nn
import redispatch.utils._python_dispatch
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.library import Library
from redispatch.modes.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from redispatch.modes.functional_tensor import FunctionalTensor, FunctionalTensorMode
from redispatch.subclasses import TwoTensor
from redispatch.testing import assert_close
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import _get_current_dispatch_mode_stack as stack

# FakeTensorMode: what a program's results look like, without its data -------------------------------------------------


def test_results_look_as_they_would_and_are_on_their_device():
    with FakeTensorMode():
        x = rd.empty(64, 3, 8, 8, device="cuda")
        y = rd.nn.functional.conv2d(x, rd.empty(5, 3, 3, 3, device="cuda"))
        assert isinstance(y, FakeTensor) and y.shape == (64, 5, 6, 6) and y.device == rd.device("cuda:0")
        assert x.permute(3, 2, 1, 0).stride() == (1, 8, 64, 192)


def test_a_model_runs_and_is_differentiated_without_data():
    with FakeTensorMode():
        model = rd.nn.Sequential(rd.nn.Linear(10**6, 10**5), rd.nn.ReLU(), rd.nn.Linear(10**5, 1))
        loss = model(rd.empty(8, 10**6)).sum()
        loss.backward()
        assert model[0].weight.grad.shape == (10**5, 10**6)


def test_fakes_stay_fake_outside_of_the_region():
    mode = FakeTensorMode()
    x = mode.from_tensor(rd.ones(2, 3))
    y = (x + x).sum(0)
    assert isinstance(y, FakeTensor) and y.fake_mode is mode and y.shape == (3,)
    assert mode.from_tensor(x) is x
    assert (
        repr(mode.from_tensor(rd.nn.Parameter(rd.ones(2))))
        == "Parameter(FakeTensor(..., size=(2,), requires_grad=True))"
    )
    assert (
        FakeTensorMode(shape_env=None, static_shapes=True, export=False).from_tensor(x.meta, static_shapes=True).is_meta
    )


def test_the_fake_of_a_wrapper_is_a_wrapper_of_fakes():
    mode = FakeTensorMode()
    pair = TwoTensor(rd.ones(3, 2), rd.ones(3, 2)).requires_grad_()
    fake = mode.from_tensor(pair)
    assert type(fake) is TwoTensor and fake.requires_grad and fake.is_leaf and mode.from_tensor(pair) is fake
    assert all(isinstance(inner, FakeTensor) and inner.fake_mode is mode for inner in (fake.a, fake.b))
    (fake @ fake.t()).sum().backward()
    assert type(fake.grad) is TwoTensor and isinstance(fake.grad.a, FakeTensor)
    nested = mode.from_tensor(TwoTensor(pair.detach(), pair.detach()).t())
    assert isinstance(nested.b.a, FakeTensor) and nested.stride() == (1, 2)
    with mode:
        assert type(fake + rd.ones(3, 2)) is TwoTensor
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance((pair + 1).b, FakeTensor)


def test_views_and_writes_are_those_of_real_tensors():
    with FakeTensorMode():
        x = rd.zeros(2, 3)
        assert x.mul_(2) is x
        x.t_()
        assert x.shape == (3, 2) and x.stride() == (1, 3)
        assert x[1:].storage_offset() == 1


def test_constants_are_known_until_they_are_written():
    with FakeTensorMode():
        x = rd.tensor(3.0)
        assert x.item() == 3
        x.add_(1)
        y = x.view(1).mul_(2) + 1
        assert (x.item(), y.item(), bool(x == 8), rd.equal(y, rd.tensor([9.0]))) == (8, 9, True, True)
        assert rd.nonzero(y).shape == (1, 1) and range(rd.tensor(2)) == range(2)
        wide = y.expand(3)
        x.add_(rd.ones(()))
        for one in (x, x.view(1), y, wide[0], rd.rand_like(rd.tensor(1.0)), rd.tensor([1, 2])[0]):
            with pytest.raises(DataDependentOutputException):
                one.item()
        assert rd.tensor(4).tolist() == 4
        with pytest.raises(DataDependentOutputException):
            rd.ones(2).tolist()


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: rd.ones(3)[rd.ones(3) > 0], DynamicOutputShapeException, "aten.nonzero.default"),
        (lambda: rd.nonzero(rd.ones(3)), DynamicOutputShapeException, "aten.nonzero.default"),
        (lambda: rd.ones(()).item(), DataDependentOutputException, "aten._local_scalar_dense.default"),
        (lambda: REAL.sin(), AssertionError, "Please convert all Tensors to FakeTensors first"),
        (lambda: rd.ones(2) + rd.ones(2, device="cuda"), RuntimeError, "at least two devices, cpu and cuda:0!"),
        (lambda: rd.ones(2, 3) @ rd.ones(2, 3), RuntimeError, "cannot be multiplied"),
    ],
)
def test_what_is_refused(call, error, message):
    with FakeTensorMode(), pytest.raises(error, match=message):
        call()
    assert stack() == []


REAL = rd.ones(2)


def test_real_tensors_may_be_let_in():
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(REAL.sin(), FakeTensor)


def test_there_is_one_such_mode_at_a_time_below_all_others():
    class Above(rd.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            return op(*args, **(kwargs or {}))

    first, second, above = FakeTensorMode(), FakeTensorMode(), Above()
    with above, first, first:
        assert stack() == [first, above]
        with second:
            assert stack() == [second, above]
        assert stack() == [first, above]
    assert stack() == []


# FunctionalTensorMode: what a mode below it sees, and what the tensors show -------------------------------------------


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


def test_an_operator_that_says_nothing_of_fakes_is_unsupported():
    with Library("t", "FRAGMENT") as lib:
        lib.define("silent(Tensor x) -> Tensor")
        lib.impl("silent", lambda x: x.clone(), "CPU")
        with FakeTensorMode(), pytest.raises(UnsupportedOperatorException, match="^t.silent.default$") as error:
            rd.ops.t.silent(rd.ones(2))
    assert error.value.func.name() == "t::silent" and isinstance(error.value.__cause__, NotImplementedError)
