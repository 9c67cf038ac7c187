"""Higher-order operators go down the keys, ask modes, subclasses and transforms, and say what is missing."""

import re

import pytest

import redispatch as rd
from redispatch._C import _AutoDispatchBelowAutograd
from redispatch._ops import DispatchKey, HigherOrderOperator, TransformType
from redispatch.dispatch.transforms.vmap_level import VmapLevel
from redispatch.modes.functional_tensor import FunctionalTensor, FunctionalTensorMode
from redispatch.subclasses.two_tensor import TwoTensor

from ..seeing import Seen

HERE = re.escape(__file__) + r":\d+"


@pytest.fixture
def make():
    """Makes operators."""

    def make(name="apply", **options):
        class Made(HigherOrderOperator):
            def __init__(self):
                super().__init__(name, **options)

            def __call__(self, *args, **kwargs):
                return super().__call__(*args, **kwargs)

        return Made()

    return make


@pytest.fixture
def apply(make):
    """An operator with kernels for backends and for autograd, which calls its function."""
    made = make()

    @made.py_impl(DispatchKey.CompositeExplicitAutograd)
    def dense(f, *args):
        return f(*args)

    @made.py_autograd_impl
    def recorded(f, *args):
        with _AutoDispatchBelowAutograd():
            result = made(f, *args)
        return result.requires_grad_()

    return made


class Watch(Seen):
    supports_higher_order_operators = False


class Interested(Watch):
    supports_higher_order_operators = True


def test_it_is_abstract_and_found_by_its_name(make):
    with pytest.raises(TypeError, match="abstract"):
        HigherOrderOperator("h")
    made = make("h")
    assert rd.ops.higher_order.h is made and "h" in dir(rd.ops.higher_order)
    assert (made.name(), made.namespace, str(made), made.__module__) == (
        "h",
        "higher_order",
        "h",
        "torch.ops.higher_order",
    )
    with pytest.raises(AttributeError, match="'torch.ops.higher_order' object has no attribute 'nothing'"):
        rd.ops.higher_order.nothing
    with pytest.raises(NotImplementedError, match="does not implement a gen_schema"):
        made.gen_schema()


def test_the_highest_key_of_the_tensors_in_any_container_answers(apply):
    assert apply(lambda x: x["x"] + 1, {"x": rd.ones(1)}).tolist() == [2]
    assert apply(lambda: 3) == 3
    assert apply(lambda x: x * 2, rd.ones(1, requires_grad=True)).requires_grad
    with rd.no_grad():
        assert not apply(lambda x: x * 2, rd.ones(1, requires_grad=True)).requires_grad


def test_a_key_without_kernel_says_which_and_what_there_is(make):
    made = make("h")
    made.py_impl(DispatchKey.CUDA)(lambda f: f())
    with pytest.raises(
        NotImplementedError,
        match=rf"HigherOrderOperator h at dispatch key DispatchKey.AutogradCPU(?s:.*)registered +CUDA \({HERE}\)",
    ):
        made(len, rd.ones(1))


def test_keys_that_are_passed_over_answer_once_they_have_a_kernel(apply):
    x = rd.ones(1)
    with rd.autocast("cpu"):
        assert apply(lambda x: x, x) is x
        apply.py_impl(DispatchKey.AutocastCPU)(lambda f, *args: "cast")
        assert apply(lambda x: x, x) == "cast"
    apply.fallthrough(DispatchKey.AutocastCPU)
    with rd.autocast("cpu"):
        assert apply(lambda x: x, x) is x


def test_what_cannot_be_registered_is_refused(apply):
    with pytest.raises(RuntimeError, match=f"override a python impl for DispatchKey.CompositeE(?s:.*)one is at {HERE}"):
        apply.py_impl(DispatchKey.CompositeExplicitAutograd)(len)
    with pytest.raises(AssertionError, match="expected DispatchKey, got <class 'str'>"):
        apply.py_impl("CPU")(len)
    with pytest.raises(AssertionError, match="register a mode for the DispatchKey.Python key"):
        apply.py_impl(DispatchKey.Python)(len)
    for key in (Watch, TransformType.Vmap):
        apply.py_impl(key)(len)
        with pytest.raises(AssertionError, match="already registered in"):
            apply.py_impl(key)(len)
    assert apply.has_kernel_for_dispatch_key("CompositeExplicitAutograd")
    assert DispatchKey.Autograd in apply.py_kernels


# Modes and subclasses -----------------------------------------------------------------------------------------------


def test_a_mode_without_a_rule_is_an_error_with_a_hint(apply):
    with Watch(), pytest.raises(NotImplementedError, match="no rule registered for HigherOrderOperator apply and mode"):
        apply(rd.sin, rd.ones(1))


def test_a_mode_that_supports_them_gets_the_operator_itself(apply):
    x = rd.ones(1)
    with Interested() as mode:
        apply(rd.sin, x)
    assert mode.names == ["apply"]


def test_a_mode_may_have_a_rule_and_leave_it_to_others(apply):
    answers = ["by rule", NotImplemented]
    apply.py_impl(Watch)(lambda mode, f, *args: answers.pop(0))
    with Watch():
        assert apply(rd.sin, rd.ones(1)) == "by rule"
        with pytest.raises(TypeError, match="is not supported for the given input types"):
            apply(rd.sin, rd.ones(1))


def test_a_subclass_needs_a_rule(apply):
    two = TwoTensor(rd.ones(1), rd.ones(1))
    with pytest.raises(NotImplementedError, match="no rule registered for HOP apply and subclass .*TwoTensor"):
        apply(rd.sin, two)
    apply.py_impl(TwoTensor)(lambda f, x: TwoTensor(apply(f, x.a), apply(f, x.b)))
    assert apply(lambda x: x + 1, two).b.tolist() == [2]


def test_function_modes_and_classes_override_it(apply):
    class Overriding(rd.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    assert apply(rd.sin, rd.ones(1).as_subclass(Overriding)) is apply


def test_a_transparent_operator_shows_a_mode_what_its_body_calls(make):
    made = make("through", transparent=True)
    made.py_impl(DispatchKey.CompositeImplicitAutograd)(lambda f, x: f(x))
    x = rd.ones(1)
    with Watch() as mode:
        made(rd.sin, x)
    with Interested() as interested:
        made(rd.sin, x)
    assert (mode.names, interested.names) == (["sin"], ["through"])
    assert rd.vmap(lambda x: made(rd.sin, x))(rd.zeros(3)).tolist() == [0, 0, 0]
    assert made(rd.neg, TwoTensor(rd.ones(1), rd.ones(1))).b.tolist() == [-1]


# Transforms ---------------------------------------------------------------------------------------------------------


def test_a_transform_asks_its_rule(apply):
    with pytest.raises(KeyError, match=r"apply has no rule for .*VmapLevel.*py_impl\(TransformType.Vmap\)"):
        rd.vmap(lambda x: apply(rd.sin, x))(rd.ones(2))

    @apply.py_impl(TransformType.Vmap)
    def batched(level, f, x):
        assert isinstance(level, VmapLevel)
        return f(x)

    assert rd.vmap(lambda x: apply(lambda x: x + 1, x))(rd.ones(2)).tolist() == [2, 2]


def in_a_region(f, x):
    """`f` of a wrapper, at the key Functionalize, which no transform included."""
    wrapped = rd._to_functional_tensor(x)
    rd._enable_functionalization(reapply_views=True)
    try:
        return rd._from_functional_tensor(f(wrapped))
    finally:
        rd._disable_functionalization()


def under_the_mode(f, x):
    """`f` of a FunctionalTensor, under the mode."""
    with FunctionalTensorMode():
        return f(FunctionalTensor.to_functional(x)).from_functional()


def transformed(f, x):
    return rd.func.functionalize(f)(x)


@pytest.mark.parametrize("way", [transformed, in_a_region, under_the_mode])
def test_a_functionalization_rule_unwraps_goes_on_and_wraps(apply, way):
    @apply.py_functionalize_impl
    def rule(ctx, f, x):
        ctx.replace(x, ctx.unwrap_tensors(x) + 1)
        ctx.commit_update(x)
        ctx.sync(x)
        with ctx.redispatch_to_next():
            return ctx.wrap_tensors(ctx.functionalize(f)(ctx.unwrap_tensors(x)))

    def program(x):
        x = x.clone()
        y = apply(lambda x: x.clone().mul_(3), x)
        return y.add_(x)

    if way is under_the_mode:  # a mode of users stands above it, and sees the program
        assert way(program, rd.ones(2)).tolist() == [8, 8]
        return
    with Seen() as mode:
        assert way(program, rd.ones(2)).tolist() == [8, 8]
    assert not any(name.partition(".")[0].endswith("_") for name in mode.names) and "mul.Tensor" in mode.names


def test_a_rule_for_what_is_no_wrapper_says_so(apply):
    apply.py_functionalize_impl(lambda ctx, f, x: ctx.replace(rd.ones(1), x))
    with pytest.raises(ValueError, match="expected a wrapper of functionalization, got Tensor"):
        apply.dispatch(DispatchKey.Functionalize, rd.sin, rd.ones(1))


def test_a_transparent_operator_whose_rule_does_not_answer_runs_its_body(make):
    twice = make(transparent=True)
    twice.py_impl(DispatchKey.CompositeImplicitAutograd)(lambda f, x: f(f(x)))
    twice.py_functionalize_impl(lambda ctx, f, x: NotImplemented)
    for way in (transformed, in_a_region, under_the_mode):
        assert way(lambda x: twice(lambda x: x.clone().add_(1), x), rd.ones(1)).tolist() == [3]
