"""Declared derivatives, on small operators of our own: what a formula may ask for, and what calls may look like."""

from contextlib import nullcontext

import pytest

import redispatch as rd
from redispatch.autograd import differentiable, register_function_derivative
from redispatch.dispatch import define, impl, ops
from redispatch.dispatch.layers.ad_inplace_or_view import register_alias_tracking
from redispatch.utils import _pytree as pytree

from ..seeing import Seen


def leaf(*values):
    return rd.tensor(list(values), requires_grad=True)


def operator(schema, kernel, formulas=None, name="TestBackward0", **options):
    """An operator of the namespace `t`, with a derivative if formulas are given. The fixtures remove it."""
    op, _ = define(f"t::{schema}")
    impl(op, "CompositeExplicitAutograd", kernel, convention="positional", place="here")
    register_alias_tracking(op)
    if formulas is not None:
        differentiable(op, name, formulas, place="here", **options)
    return op


def test_parameters_say_what_is_saved():
    seen = {}

    def formula(grad, self, k, result, self_shape, self_dtype):
        seen.update(k=k, result=result.tolist(), shape=tuple(self_shape), dtype=self_dtype)
        return grad * k * self

    op = operator("f(Tensor self, int k) -> Tensor", lambda self, k: self * k, [(("self",), formula)])
    x = leaf(2.0)
    y = op(x, 3)
    assert (y.grad_fn._saved_k, y.grad_fn._saved_self is x, y.grad_fn.name()) == (3, True, "TestBackward0")
    y.backward()
    assert seen == {"k": 3, "result": [6.0], "shape": (1,), "dtype": rd.float32} and x.grad.item() == 6


def test_one_formula_may_yield_several_inputs_and_is_told_which_are_needed():
    seen = []

    def formula(grad, needs, self, other):
        seen.append(needs)
        return grad * other if needs[0] else None, grad * self if needs[1] else None

    op = operator(
        "f(Tensor self, Tensor other) -> Tensor", lambda self, other: self * other, [(("self", "other"), formula)]
    )
    x, y = leaf(2.0), leaf(3.0)
    op(x, y).backward()
    op(x, rd.ones(1)).backward()
    assert seen == [(True, True), (True, False)] and x.grad.item() == 4 and y.grad.item() == 2


def test_a_list_of_tensors_has_a_list_of_gradients():
    op = operator(
        "f(Tensor[] tensors, int k) -> Tensor",
        lambda tensors, k: sum(tensors[1:], tensors[0]) * k,
        [(("tensors",), lambda grad, k, tensors_shape: [grad * k * shape[0] for shape in tensors_shape])],
    )
    x, y, z = leaf(1.0), rd.ones(1), leaf(2.0)
    out = op([x, y, z], 5)
    assert out.grad_fn.next_functions[1] == (None, 0) and len(out.grad_fn.next_functions) == 3
    out.backward()
    assert x.grad.item() == 5 and z.grad.item() == 5 and y.grad is None


def test_several_outputs_have_their_gradients_in_a_tuple():
    seen = []

    def formula(grads):
        seen.append([None if g is None else g.item() for g in grads])
        return grads[0]

    op = operator(
        "f(Tensor self) -> (Tensor, Tensor, Tensor)",
        lambda self: (self * 2, self * 3, self.to(rd.int64)),
        [(("self",), formula)],
        nondifferentiable_outputs=[1],
    )
    first, second, third = op(leaf(1.0))
    assert (first.requires_grad, second.requires_grad, third.requires_grad) == (True, False, False)
    first.backward()
    assert seen == [[1, None, None]]


def test_an_in_place_operator_keeps_a_copy_of_what_it_overwrites():
    def times(self, other):
        with rd.no_grad():
            return self.mul_(other)

    op = operator(
        "f_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        times,
        [(("self",), lambda grad, other: grad * other), (("other",), lambda grad, self: grad * self)],
    )
    x, y = leaf(2.0), leaf(3.0)
    z = x * 1
    assert op(z, y) is z
    z.backward()
    assert x.grad.item() == 3 and y.grad.item() == 2
    with pytest.raises(
        RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation."
    ):
        op(x, y)


def test_a_written_argument_without_formula_has_no_gradient():
    op = operator("f_(Tensor(a!) self) -> Tensor(a!)", lambda self: self.zero_(), [])
    x = leaf(2.0)
    z = x * 1
    op(z)
    z.backward()
    assert z.requires_grad and x.grad is None


def test_an_undeclared_input_that_requires_grad_is_refused():
    op = operator(
        "f(Tensor self, Tensor weight) -> Tensor",
        lambda self, weight: self * weight,
        [(("self",), lambda grad: grad)],
    )
    with pytest.raises(RuntimeError) as error:
        op(leaf(1.0), leaf(1.0))
    assert str(error.value) == (
        "The function 'f' is not differentiable with respect to argument 'weight'. This input cannot have "
        "requires_grad "
        "True."
    )


def test_a_kernel_may_return_its_input():
    op = operator("f(Tensor self) -> Tensor", lambda self: self, [(("self",), lambda grad: grad * 2)])
    x = leaf(1.0)
    y = op(x)
    assert y is not x and x.is_leaf
    y.backward()
    assert x.grad.item() == 2


def test_a_formula_that_asks_for_what_there_is_not_is_refused():
    with pytest.raises(TypeError, match="asks for 'nothing', which means nothing for t::f"):
        operator("f(Tensor self) -> Tensor", lambda self: self, [(("self",), lambda grad, nothing: grad)])
    with pytest.raises(TypeError, match="declared for 'x', which is no argument of"):
        operator("g(Tensor self) -> Tensor", lambda self: self, [(("x",), lambda grad: grad)])


@pytest.fixture
def fallback():
    """Sets what becomes of an operator without derivative, and puts the former setting back."""
    former = rd._C._get_autograd_fallback_mode()
    yield rd._C._set_autograd_fallback_mode
    rd._C._set_autograd_fallback_mode(former)


def test_no_derivative_is_an_error_in_backward_only(fallback):
    fallback("error")
    op = operator("f(Tensor self) -> Tensor", lambda self: self * 2)
    y = op(leaf(1.0))
    assert y.requires_grad
    with pytest.raises(RuntimeError, match="Trying to backward through t.f.default but no autograd formula was regist"):
        y.backward()
    to_int = operator("g(Tensor self) -> Tensor", lambda self: self.to(rd.int64))
    assert not to_int(leaf(1.0)).requires_grad
    with pytest.raises(RuntimeError, match="Unsupported AutogradFallbackMode: loud"):
        fallback("loud")


@pytest.mark.parametrize("mode", ["warn", "nothing"])
def test_a_users_operator_without_derivative_records_what_its_kernel_does(mode, fallback):
    fallback(mode)
    recorded = operator("f(Tensor self) -> Tensor", lambda self: self * 2)
    x = leaf(1.0)
    y = recorded(x)
    with pytest.warns(UserWarning, match="an autograd kernel was not registered") if mode == "warn" else nullcontext():
        y.backward()
    assert x.grad.item() == 2
    hidden = operator("g(Tensor self) -> Tensor", lambda self: self.detach() * 2)
    y = hidden(x)
    assert y.requires_grad == (mode == "warn")
    if mode == "warn":
        with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
            assert rd.autograd.grad(y, x, allow_unused=True) == (None,)


def test_an_operator_that_writes_without_derivative_cannot_spoil_gradients(fallback):
    fallback("error")
    op = operator("f(Tensor(a!) self) -> ()", lambda self: self.add_(1) and None)
    x = leaf(1.0)
    with pytest.raises(
        RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation."
    ):
        op(x)
    with pytest.raises(RuntimeError, match="writes its argument 'self', which is part of a graph"):
        op(x * 1)


def test_a_derivative_may_be_written_like_a_function():
    op = operator("f(Tensor[] xs, int k, *, float s=1.0) -> Tensor[]", lambda xs, k, s: [x * k * s for x in xs])

    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.factor = inputs[1] * keyword_only_inputs["s"]
        ctx.save_for_backward(*output)

    def backward(ctx, grads):
        assert len(ctx.saved_tensors) == 2
        return [g * ctx.factor for g in grads], None

    register_function_derivative(op, backward, setup, place="here")
    x, y = leaf(1.0), leaf(2.0)
    first, second = op([x, y], 3, s=2.0)
    assert first.grad_fn.name() == "GeneratedBackwardFor_t_f_defaultBackward"
    first.backward()
    assert x.grad.item() == 6 and y.grad.item() == 0


class Wrapper(rd.Tensor):
    """Holds a tensor and runs every operator on it."""

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        return rd.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, requires_grad=requires_grad
        )

    def __init__(self, inner, requires_grad=False):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def unwrap(value):
            return value.inner if isinstance(value, Wrapper) else value

        result = func(*pytree.tree_map(unwrap, args), **pytree.tree_map(unwrap, kwargs or {}))
        if func._schema.is_mutable:
            return args[0]
        return pytree.tree_map(lambda value: cls(value) if isinstance(value, rd.Tensor) else value, result)


def test_wrapper_subclasses_are_recorded_outside_and_computed_inside():
    x = Wrapper(rd.tensor([1.0, 2.0]), requires_grad=True)
    y = (x * x).exp()
    assert type(y) is Wrapper and y.grad_fn.name() == "ExpBackward0" and not y.inner.requires_grad
    y.sum().backward()
    assert type(x.grad) is Wrapper
    expected = leaf(1.0, 2.0)
    (expected * expected).exp().sum().backward()
    assert x.grad.inner.tolist() == expected.grad.tolist()


def test_a_view_of_a_wrapper_may_be_written():
    x = Wrapper(rd.tensor([1.0, 1.0, 1.0]), requires_grad=True)
    base = x * 1
    view = base.select(0, 0)
    view.mul_(3)
    assert base._version == 1 and base.grad_fn.name() == "torch::autograd::CopySlices"
    base.sum().backward()
    assert x.grad.inner.tolist() == [3, 1, 1]
    assert (
        view.grad_fn.name() == "SelectBackward0"
    )  # made again by the operator, since a wrapper has no strides to trust


def test_a_mode_stays_active_in_backward():
    x = leaf(1.0, 2.0)
    with Seen() as mode:
        (x * x).sum().backward()
    assert mode.names[:2] == ["mul.Tensor", "sum"] and "mul.Tensor" in mode.names[2:]
    assert x.grad.tolist() == [2, 4]


def test_the_namespace_of_the_test_is_empty_again():
    assert "f" not in dir(ops.t)
