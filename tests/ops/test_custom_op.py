"""Custom operators: what they take and return, what they may write, and how every layer learns of them."""

import re
from itertools import permutations
from typing import List, Tuple  # noqa: UP035  # as users write them

import numpy as np
import pytest

import redispatch as rd
from redispatch import library
from redispatch.dispatch import OPERATORS
from redispatch.dispatch.layers.autograd import DERIVATIVES
from redispatch.dispatch.layers.transforms import BATCHING
from redispatch.library import Library, PyTree, custom_op

from ..seeing import Seen


def doubling(name="t::double"):
    @custom_op(name, mutates_args=())
    def double(x: rd.Tensor) -> rd.Tensor:
        return x * 2

    return double


# Schemas ------------------------------------------------------------------------------------------------------------


def test_a_tuple_is_refused_with_what_to_write_instead():
    def f(x: Tuple[int, int]) -> rd.Tensor:  # noqa: UP006
        return rd.ones(x)

    with pytest.raises(ValueError, match="We do not support Tuple inputs in schema") as problem:
        custom_op("t::f", f, mutates_args=())
    assert "typing.List[int]" in str(problem.value) and "PyTree" in str(problem.value)


def test_written_arguments_are_numbered_by_their_place():
    def f(n: int, x: rd.Tensor, ys: List[rd.Tensor]) -> None:  # noqa: UP006
        pass

    made = library.infer_schema(f, mutates_args={"ys"})
    assert made == "(SymInt n, Tensor x, Tensor(a2!)[] ys) -> ()"
    assert library.infer_schema(f, mutates_args="unknown") == "(SymInt n, Tensor(a1!) x, Tensor(a2!)[] ys) -> ()"
    with pytest.raises(ValueError, match="mutates_args must either be a sequence .* or the string 'unknown'"):
        library.infer_schema(f, mutates_args="x")


def test_operators_tagged_inplace_or_out_return_what_they_write():
    @custom_op("t::scale_", mutates_args={"x"}, tags=rd.Tag.inplace)
    def scale_(x: rd.Tensor, by: float) -> rd.Tensor:
        return x.mul_(by)

    @custom_op("t::split", mutates_args={"low", "high"}, tags=[rd.Tag.out])
    def split(x: rd.Tensor, *, low: rd.Tensor, high: rd.Tensor) -> tuple[rd.Tensor, rd.Tensor]:
        return low.copy_(x.clamp(max=0)), high.copy_(x.clamp(min=0))

    assert str(scale_._opoverload.schema) == "t::scale_(Tensor(a0!) x, float by) -> Tensor(a0!)"
    written = "*, Tensor(a1!) low, Tensor(a2!) high"
    assert str(split._opoverload.schema) == f"t::split(Tensor x, {written}) -> (Tensor(a1!), Tensor(a2!))"
    x, low, high = rd.tensor([-1.0, 1.0]), rd.empty(2), rd.empty(2)
    assert scale_(x, 2.0) is x and x.tolist() == [-2, 2]
    results = split(x, low=low, high=high)
    assert results[0] is low and results[1] is high and high.tolist() == [0, 2]


def nothing(x: rd.Tensor) -> None: ...
def number(n: int) -> rd.Tensor: ...
def same(x: rd.Tensor) -> rd.Tensor: ...
def by_name(*, out: rd.Tensor) -> None: ...
def listed(*, out: List[rd.Tensor]) -> rd.Tensor: ...  # noqa: UP006


@pytest.mark.parametrize(
    ("function", "written", "tag", "text"),
    [
        (by_name, {"out"}, "inplace", "requires a positional Tensor argument"),
        (number, (), "inplace", "requires the first positional argument to be a Tensor"),
        (same, (), "inplace", r"mutates_args to contain exactly the first positional argument, got \(\)"),
        (nothing, {"x"}, "inplace", "requires the return annotation to be torch.Tensor"),
        (same, (), "out", "requires at least one mutable keyword-only Tensor argument"),
        (same, {"x"}, "out", "requires mutable arguments to be keyword-only"),
        (listed, {"out"}, "out", "only supports mutable keyword-only Tensor arguments"),
        (by_name, {"out"}, "out", r"match the mutable keyword-only Tensor arguments \('out',\)"),
    ],
)
def test_a_tag_that_does_not_fit_the_function_is_refused(function, written, tag, text):
    with pytest.raises(ValueError, match=text):
        library.infer_schema(function, mutates_args=written, tags=rd.Tag(tag))


# What operators take ------------------------------------------------------------------------------------------------


def test_a_pytree_travels_as_its_tensors_and_the_rest():
    @custom_op("t::affine", mutates_args=())
    def affine(x: rd.Tensor, params: dict[str, rd.Tensor], how: PyTree) -> rd.Tensor:
        scale, (offset, times) = how
        return x * params["weight"] * scale + offset * times

    schema = "t::affine(Tensor x, Tensor[] params, Any params_tree, Tensor[] how, Any how_tree) -> Tensor"
    assert str(affine._opoverload.schema) == schema
    x, weight, offset = rd.ones(2), rd.full((2,), 3.0), rd.ones(2)
    with Seen() as seen:
        assert affine(x, {"weight": weight}, (2, (offset, 5))).tolist() == [11, 11]
    func, _, args, _ = seen.calls[0]
    assert str(func) == "t.affine.default" and args[1][0] is weight and args[3][0] is offset
    assert affine(x, how=(1, (offset, 0)), params={"weight": weight}).tolist() == [3, 3]


def test_the_gradient_of_a_pytree_is_a_pytree():
    @custom_op("t::scaled", mutates_args=())
    def scaled(params: dict[str, rd.Tensor], n: int, *, pair: PyTree) -> rd.Tensor:
        return params["a"] * n + params["b"]

    def backward(ctx, grad):
        return {"a": grad * ctx.n, "b": None}, None

    def setup(ctx, inputs, keyword_only_inputs, output):
        assert inputs[0].keys() == {"a", "b"} and keyword_only_inputs == {"pair": (1, "one")}
        ctx.n = inputs[1]

    a, b = (rd.ones(2, requires_grad=True) for _ in range(2))
    scaled.register_autograd(backward, setup_context=setup)
    scaled({"a": a, "b": b}, 3, pair=(1, "one")).sum().backward()
    assert a.grad.tolist() == [3, 3] and b.grad is None


def test_a_pytree_has_no_default():
    def f(x: PyTree = ()) -> rd.Tensor:
        return rd.ones(1)

    with pytest.raises(ValueError, match="Parameter x is a pytree, which cannot have a default value"):
        custom_op("t::f", f, mutates_args=())


def test_a_gradient_of_another_structure_is_refused():
    @custom_op("t::first", mutates_args=())
    def first(params: dict[str, rd.Tensor]) -> rd.Tensor:
        return params["a"].clone()

    first.register_autograd(lambda ctx, grad: {"a": grad, "b": grad})
    with pytest.raises(RuntimeError, match="expected gradients of the structure of the argument"):
        first({"a": rd.ones(1, requires_grad=True)}).sum().backward()


def test_opaque_objects_reach_the_kernel_as_they_are():
    class Plan:
        factor = 3

    @custom_op("t::planned", mutates_args=())
    def planned(x: rd.Tensor, plan: object) -> rd.Tensor:
        return x * plan.factor

    assert planned(rd.ones(2), Plan()).tolist() == [3, 3]
    assert str(planned._opoverload.schema) == "t::planned(Tensor x, Any plan) -> Tensor"


def test_a_fake_that_does_not_take_the_arguments_is_refused_at_once():
    with pytest.raises(TypeError, match=r"does not take the arguments of t::double\(Tensor x\) -> Tensor: .*'y'"):
        doubling().register_fake(lambda x, y: x)
    with Library("t", "FRAGMENT") as lib:
        lib.define("g(Tensor x, *, int n) -> Tensor")
        with pytest.raises(TypeError, match="does not take the arguments of t::g"):
            library.register_fake("t::g", lambda x: x, lib=lib)


# What operators return ----------------------------------------------------------------------------------------------


def test_an_undeclared_alias_is_refused_and_named():
    @custom_op("t::twice_the_same", mutates_args=())
    def twice_the_same(x: rd.Tensor) -> tuple[rd.Tensor, rd.Tensor]:
        y = x.clone()
        return y, y.view(-1)

    with pytest.raises(
        RuntimeError, match="may not alias any inputs.*(?s:.*)output 1, which shares memory with output 0"
    ):
        twice_the_same(rd.ones(2))
    same = custom_op("t::same", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")
    with rd.no_grad(), pytest.raises(RuntimeError, match="output 0, which shares memory with argument 'x'"):
        same(rd.ones(2))


def test_a_declared_alias_is_a_view():
    tail = custom_op("t::tail", lambda x: x[1:], mutates_args=(), schema="(Tensor(a) x) -> Tensor(a)")
    x = rd.zeros(3)
    tail(x).add_(1)
    assert x.tolist() == [0, 1, 1] and x._version == 1 and tail(x)._base is x


def test_a_declared_alias_may_be_the_argument_itself():
    same = custom_op("t::same", lambda x: x, mutates_args=(), schema="(Tensor(a) x) -> Tensor(a)")
    x = rd.zeros(3)
    view = same(x)
    assert view is not x and view._base is x and view.data_ptr() == x.data_ptr()


def test_a_written_argument_may_be_returned():
    increase = custom_op("t::increase", lambda x: x.add_(1), mutates_args={"x"}, schema="(Tensor(a!) x) -> Tensor(a!)")
    with pytest.raises(ValueError, match="the op mutates {'x'}, which is different"):
        custom_op("t::increases", lambda x: x.add_(1), mutates_args=(), schema="(Tensor(a!) x) -> Tensor(a!)")
    x = rd.zeros(2)
    assert increase(x) is x and x.tolist() == [1, 1]


# Writing, and gradients ---------------------------------------------------------------------------------------------


@pytest.fixture
def double_in_place():
    @custom_op("t::double_in_place", mutates_args={"x"})
    def double_in_place(x: rd.Tensor, by: rd.Tensor) -> None:
        x.mul_(by)

    return double_in_place


def test_a_leaf_that_requires_grad_is_not_written(double_in_place):
    leaf = rd.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        double_in_place(leaf, rd.ones(2))
    with rd.no_grad():
        double_in_place(leaf, rd.full((2,), 2.0))
    assert leaf.tolist() == [2, 2]


def test_a_tensor_of_a_graph_is_not_written_where_nothing_could_differentiate_that(double_in_place):
    """PyTorch records nothing, and its gradient is that of another program: 3 where 6 is right."""
    y = rd.ones(2, requires_grad=True) * 3
    with pytest.raises(RuntimeError, match=r"writes its argument 'x', which is part of a graph(?s:.*)to fix +call it"):
        double_in_place(y, rd.full((2,), 2.0))
    assert y.tolist() == [3, 3] and y._version == 0


def test_what_is_written_with_gradients_wanted_of_other_inputs_fails_in_backward(double_in_place):
    buffer = rd.ones(2)
    double_in_place(buffer, rd.ones(2, requires_grad=True))
    assert buffer.requires_grad
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        buffer.sum().backward()


def test_a_saved_tensor_notices_the_write(double_in_place):
    x, w = rd.ones(2), rd.ones(2, requires_grad=True)
    y = w * x
    double_in_place(x, rd.ones(2))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("schema", ["f(Tensor(a!) x) -> ()", "f(Tensor(a) x) -> Tensor(a)"])
def test_an_operator_that_writes_or_views_gets_no_derivative(schema):
    with Library("t", "FRAGMENT") as lib:
        lib.define(schema)
        with pytest.raises(
            RuntimeError, match="Cannot register autograd formula for non-functional operator t.f.default"
        ):
            library.register_autograd("t::f", lambda ctx, grad: grad, lib=lib)


# vmap ---------------------------------------------------------------------------------------------------------------


def test_a_batching_rule_is_told_where_the_batches_are():
    @custom_op("t::weighted", mutates_args=())
    def weighted(x: rd.Tensor, w: rd.Tensor, *, n: int = 1) -> tuple[rd.Tensor, rd.Tensor]:
        return x * w * n, x + w

    told = []

    @weighted.register_vmap
    def rule(info, in_dims, x, w, *, n=1):
        told.append((info.batch_size, info.randomness, in_dims, n))
        first, second = weighted(x, w.unsqueeze(-1), n=n)
        return (first, second), (1, 1)

    x, w = rd.ones(2, 5), rd.full((2,), 3.0)
    first, second = rd.vmap(lambda x: weighted(x, w, n=2), in_dims=1, randomness="same")(x)
    assert told == [(5, "same", (1, None), 2)]
    assert first.tolist() == [[6, 6]] * 5 and second.tolist() == [[4, 4]] * 5


def test_a_batching_rule_of_a_list_or_pytree_gets_their_structure():
    @custom_op("t::total", mutates_args=())
    def total(xs: list[rd.Tensor], params: PyTree) -> rd.Tensor:
        return xs[0] + xs[1] + params["b"] * params["n"]

    told = []

    @library.register_vmap("t::total")
    def rule(info, in_dims, xs, params):
        told.append((in_dims, params["n"]))
        return total(xs, params), 0

    batched, one = rd.ones(3), rd.ones(())
    result = rd.vmap(lambda x, b: total([x, one], {"b": b, "n": 4}))(batched, batched)
    assert result.tolist() == [6, 6, 6]
    assert told == [(([0, None], {"b": 0, "n": None}), 4)]


def test_a_batching_rule_must_give_dims_that_fit():
    double = doubling()
    double.register_vmap(lambda info, in_dims, x: x)
    with pytest.raises(RuntimeError, match="to have two returns, an output and out_dims"):
        rd.vmap(double)(rd.ones(2))
    double.register_vmap(lambda info, in_dims, x: (x + 5, in_dims[0]))  # the newest rule holds
    assert rd.vmap(double)(rd.ones(2)).tolist() == [6, 6]


def test_a_batching_rule_gives_a_dim_for_each_tensor_of_a_list():
    def spread(x: rd.Tensor, ys: list[rd.Tensor]) -> tuple[rd.Tensor, list[rd.Tensor]]:
        return x.sin(), [y * 2 for y in ys]

    op = library.custom_op("test_batched_lists::spread", spread, mutates_args=())
    op.register_vmap(lambda info, dims, x, ys: ((x.sin(), [y * 2 for y in ys]), (dims[0], dims[1])))
    out, (first, second) = rd.vmap(lambda x, y: op(x, [y, x]))(rd.zeros(3), rd.ones(3, 2))
    assert (out.shape, first.tolist(), second.tolist()) == ((3,), [[2, 2]] * 3, [0, 0, 0])


def test_the_newest_registration_of_each_kind_holds():
    double = doubling()
    x = rd.ones(2, requires_grad=True)
    for factor in (2, 3):
        double.register_kernel("cpu", lambda x, factor=factor: x * factor)
        double.register_autograd(lambda ctx, grad, factor=factor: grad * factor)
        double.register_fake(lambda x, factor=factor: x.new_empty(factor))
        double.register_autocast("cpu", [None, None, rd.float16, rd.bfloat16][factor])
        result = double(x)
        assert result.tolist() == [factor] * 2
        assert rd.autograd.grad(result.sum(), x)[0].tolist() == [factor] * 2
        assert double(rd.ones(1, device="meta")).shape == (factor,)
    with rd.autocast("cpu"):
        assert double(x).dtype == rd.bfloat16


def test_a_definition_takes_the_place_of_another_one_with_a_warning():
    def one(x: rd.Tensor) -> rd.Tensor:
        return x + 1

    def two(x: rd.Tensor) -> rd.Tensor:
        return x + 2

    library.custom_op("test_anew::f", one, mutates_args=()).register_autograd(lambda ctx, grad: grad)
    with pytest.warns(UserWarning, match="test_anew::f, defined at .*, is defined anew at .*"):
        anew = library.custom_op("test_anew::f", two, mutates_args=())
    assert rd.ops.test_anew.f(rd.zeros(1)).tolist() == [2] and anew(rd.zeros(1)).tolist() == [2]
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        anew(rd.zeros(1, requires_grad=True)).backward()


def test_results_that_are_no_tensors_must_be_what_the_schema_promises():
    def count(x: rd.Tensor) -> int:
        return "many" if x.numel() > 1 else 1

    op = library.custom_op("test_promises::count", count, mutates_args=())
    assert op(rd.ones(1)) == 1
    with pytest.raises(RuntimeError, match="Unable to cast 'many' to int"):
        op(rd.ones(2))


def test_a_kernel_is_disabled_in_a_region_and_from_its_beginning_on():
    @custom_op("t::answers", mutates_args=())
    def answers(x: rd.Tensor) -> rd.Tensor:
        return x + 1

    answers.register_kernel("cpu")(lambda x: x + 2)
    region, x = answers.set_kernel_enabled("cpu", False), rd.zeros(())
    assert answers(x) == 2
    with region:
        assert answers(x) == 1
    assert answers(x) == 2


def test_a_kernel_for_one_device_needs_an_argument_that_tells_the_device():
    def made(n: int) -> rd.Tensor:
        return rd.ones(n)

    with pytest.raises(ValueError, match="required to have a `device: torch.device` argument"):
        library.custom_op("test_no_device::made", made, mutates_args=(), device_types="cpu")


def test_gradients_of_batches_go_through_the_operators_that_a_rule_calls():
    double = doubling()
    double.register_autograd(lambda ctx, grad: grad * 2)
    double.register_vmap(lambda info, in_dims, x: (double(x), in_dims[0]))
    x = rd.ones(3, 2)
    assert rd.vmap(rd.func.grad(lambda x: double(x).sum()))(x).tolist() == [[2, 2]] * 3


def test_a_batching_rule_for_tensors_passed_by_name_is_refused():
    with Library("t", "FRAGMENT") as lib:
        lib.define("f(Tensor x, *, Tensor w) -> Tensor")
        with pytest.raises(NotImplementedError, match="register_vmap with kwarg-only Tensor args"):
            library.register_vmap("t::f", lambda info, in_dims, x, w: (x, 0), lib=lib)


def test_a_rule_goes_with_its_library():
    with Library("t", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x + 1, "CompositeExplicitAutograd")
        library.register_vmap("t::f", lambda info, in_dims, x: (x * 10, in_dims[0]), lib=lib)
        assert rd.vmap(rd.ops.t.f)(rd.ones(2)).tolist() == [10, 10]
        lib._undo.pop()()
        with pytest.warns(UserWarning, match=re.escape("register_vmap('t::f', rule)")):
            assert rd.vmap(rd.ops.t.f)(rd.ones(2)).tolist() == [2, 2]


def test_each_operator_without_a_rule_is_warned_of_even_under_the_same_name():
    for _ in range(2):
        with Library("t", "FRAGMENT") as lib:
            lib.define("f(Tensor x) -> Tensor")
            lib.impl("f", lambda x: x + 1, "CompositeExplicitAutograd")
            for _ in range(2):  # each call, as in PyTorch; Python shows a warning once for each place
                with pytest.warns(UserWarning, match=re.escape("register_vmap('t::f', rule)")):
                    rd.vmap(rd.ops.t.f)(rd.ones(2))


def test_a_kernel_that_reads_values_is_called_for_each_example():
    @custom_op("t::sine", mutates_args=())
    def sine(x: rd.Tensor) -> rd.Tensor:
        return rd.from_numpy(np.sin(x.numpy()))

    @custom_op("t::signed", mutates_args=())
    def signed(x: rd.Tensor) -> rd.Tensor:
        return x * 2 if x.sum() > 0 else -x

    x = rd.tensor([[1.0, 2.0], [-1.0, -2.0]])
    with pytest.warns(UserWarning, match="batching rule for t::sine"):
        assert rd.equal(rd.vmap(sine)(x), sine(x))
    with pytest.warns(UserWarning, match="batching rule for t::signed"):
        assert rd.vmap(signed)(x).tolist() == [[2, 4], [1, 2]]


# What there is not --------------------------------------------------------------------------------------------------


def test_sizes_that_depend_on_data_are_refused_with_what_to_do():
    @custom_op("t::found", mutates_args=())
    def found(x: rd.Tensor) -> rd.Tensor:
        return x.nonzero()

    @library.impl_abstract("t::found")
    def fake(x):
        return x.new_empty((library.get_ctx().new_dynamic_size(), x.dim()), dtype=rd.int64)

    with pytest.raises(RuntimeError, match="Meta Tensors don't support operators .* data-dependent shapes"):
        found(rd.ones(3, device="meta"))


# Forms derived from one definition ----------------------------------------------------------------------------------


def test_the_in_place_form_writes_its_first_argument_and_has_the_gradient():
    double = doubling()
    double.register_autograd(lambda ctx, grad: grad * 2)
    double_ = double.inplace_form()
    assert str(double_.schema) == "t::double_(Tensor(a!) x) -> Tensor(a!)"
    x = rd.ones(2)
    assert rd.ops.t.double_(x) is x and x.tolist() == [2, 2] and x._version == 1
    leaf = rd.ones(2, requires_grad=True)
    y = leaf * 3
    double_(y)
    (y * y).sum().backward()
    assert leaf.grad.tolist() == [72, 72]  # (2 * 3 * x)² has the slope 72 x
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        double_(leaf)
    double.register_vmap(lambda info, in_dims, x: (double(x), in_dims[0]))
    assert rd.vmap(double_)(rd.ones(3, 1)).tolist() == [[2]] * 3


def test_the_in_place_form_leaves_its_derivative_what_it_keeps():
    @custom_op("t::square", mutates_args=())
    def square(x: rd.Tensor) -> rd.Tensor:
        return x * x

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    square.register_autograd(lambda ctx, grad: grad * 2 * ctx.saved_tensors[0], setup_context=keep)
    square_ = square.inplace_form()
    leaf = rd.full((2,), 5.0, requires_grad=True)
    y = leaf * 1
    square_(y).sum().backward()
    assert y.tolist() == [25, 25] and leaf.grad.tolist() == [10, 10]
    assert rd.func.grad(lambda x: square_(x * 1).sum())(leaf.detach()).tolist() == [10, 10]


def test_the_out_form_writes_and_resizes_its_out():
    double = doubling()
    out_form = double.out_form()
    assert str(out_form.schema) == "t::double.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)"
    out = rd.empty(0)
    assert rd.ops.t.double(rd.ones(2), out=out) is out and out.tolist() == [2, 2] and out._version == 1
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        out_form(rd.ones(2, requires_grad=True), out=rd.empty(2))


def test_the_out_form_of_several_results_has_an_out_for_each():
    @custom_op("t::both", mutates_args=())
    def both(x: rd.Tensor) -> tuple[rd.Tensor, rd.Tensor]:
        return x + 1, x - 1

    form = both.out_form()
    outs = rd.empty(2), rd.empty(2)
    results = form(rd.ones(2), out0=outs[0], out1=outs[1])
    assert results[0] is outs[0] and results[1] is outs[1]
    assert [out.tolist() for out in outs] == [[2, 2], [0, 0]]


def test_the_functional_form_returns_what_would_have_been_written(double_in_place):
    made = double_in_place.functional_form()
    assert str(made._opoverload.schema) == "t::double_in_place_functional(Tensor x, Tensor by) -> Tensor x_out"
    x, by = rd.ones(2), rd.full((2,), 2.0)
    assert made(x, by).tolist() == [2, 2] and x.tolist() == [1, 1]
    assert made(rd.empty(2, device="meta"), rd.empty(2, device="meta")).shape == (2,)
    made.register_autograd(lambda ctx, grad: (grad * 2, None))
    x.requires_grad_()
    made(x, by).sum().backward()
    assert x.grad.tolist() == [2, 2]
    double_in_place._lib._destroy()
    assert not hasattr(rd.ops.t, "double_in_place_functional")


def test_what_has_no_such_form_says_what_would_have(double_in_place):
    with pytest.raises(ValueError, match=r"has no in-place form: expected \(Tensor x, ...\) -> Tensor"):
        double_in_place.inplace_form()
    with pytest.raises(ValueError, match="has no out form: expected an operator that returns new tensors"):
        double_in_place.out_form()
    with pytest.raises(ValueError, match="expected an operator that writes arguments"):
        doubling().functional_form()


# How it is undone ---------------------------------------------------------------------------------------------------


def counts():
    return len(OPERATORS), len(BATCHING), len(DERIVATIVES)


def test_a_definition_that_runs_again_replaces_all_that_came_of_the_first():
    def define():
        @custom_op("t::f", mutates_args=())
        def f(x: rd.Tensor) -> rd.Tensor:
            return x * 2

        f.register_fake(lambda x: rd.empty_like(x))
        f.register_autograd(lambda ctx, grad: grad * 2)
        f.register_vmap(lambda info, in_dims, x: (f(x), in_dims[0]))
        f.register_autocast("cpu", rd.float32)
        return f, f.inplace_form(), f.out_form()

    before = counts()
    for _ in range(2):
        made, in_place, out = define()
        assert counts() == (before[0] + 3, before[1] + 1, before[2] + 1)
    assert in_place.place == out.place == made._opoverload.place and "test_custom_op.py" in out.place
    made._lib._destroy()
    assert counts() == before and not hasattr(rd.ops.t, "f")


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_rules_of_several_libraries_go_in_any_order(order):
    before = counts()
    libraries = [Library("t", "FRAGMENT") for _ in range(3)]
    libraries[0].define("g(Tensor x) -> Tensor")
    libraries[0].impl("g", lambda x: x + 1, "CPU")
    library.register_vmap("t::g", lambda info, in_dims, x: (x, in_dims[0]), lib=libraries[1])
    library.register_autograd("t::g", lambda ctx, grad: grad, lib=libraries[2])
    library.register_fake("t::g", lambda x: x.clone(), lib=libraries[2])
    assert counts() != before
    for index in order:
        libraries[index]._destroy()
    assert counts() == before and not hasattr(rd.ops.t, "g")


def test_tensors_that_can_only_be_passed_by_name_are_refused():
    def both(x: rd.Tensor, *, y: rd.Tensor) -> rd.Tensor:
        return x + y

    words = r"with kwarg-only Tensor args\. .*lease make your tensors not kwarg-only\. Got: "
    with pytest.raises(NotImplementedError, match=rf"custom_op {words}both\(Tensor x, \*, Tensor y\)"):
        custom_op("t::both", both, mutates_args=())
    assert "t::both" not in OPERATORS
    with Library("t", "FRAGMENT") as lib:
        lib.define("named(Tensor x, *, Tensor y) -> Tensor")
        with pytest.raises(NotImplementedError, match=f"register_autograd {words}t::named"):
            library.register_autograd("t::named", lambda ctx, grad: grad, lib=lib)
