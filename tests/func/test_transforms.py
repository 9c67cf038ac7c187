"""grad, vjp, jvp and vmap: what they give, how they nest, and what they refuse."""

import random
import warnings

import pytest

import redispatch as rd
from redispatch import func, nn
from redispatch._C import _functorch
from redispatch._functorch import api, make_functional
from redispatch.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from redispatch.functorch import experimental as functorch_experimental
from redispatch.testing import assert_close

X = rd.tensor([1.0, 2.0, 3.0], dtype=rd.float64)
T = rd.tensor([1.0, 0.0, 2.0], dtype=rd.float64)


def wave(x):
    return (x.sin() * x).sum()


def slope(x):
    return x.cos() * x + x.sin()


# Derivatives ----------------------------------------------------------------------------------------------------------


def test_grad_is_the_gradient():
    assert_close(grad(wave)(X), slope(X))
    found, value = grad_and_value(wave)(X)
    assert_close(found, slope(X))
    assert_close(value, wave(X))


def test_grad_nests():
    assert_close(grad(lambda x: grad(wave)(x).sum())(X), 2 * X.cos() - X * X.sin())


def test_forward_over_reverse_and_reverse_over_forward_agree():
    second = (2 * X.cos() - X * X.sin()) * T
    assert_close(jvp(grad(wave), (X,), (T,))[1], second)
    assert_close(grad(lambda x: jvp(wave, (x,), (T,))[1])(X), second)


def test_vjp_may_be_called_several_times():
    output, pull = vjp(lambda x: (x * 2, x.exp()), X)
    assert_close(output, (X * 2, X.exp()))
    for _ in range(2):
        assert_close(pull((T, T)), (2 * T + X.exp() * T,))


def test_a_linearized_function_runs_once():
    calls = []

    def counted(x):
        calls.append(1)
        return x.exp()

    _, push = linearize(counted, X)
    assert_close(push(T), X.exp() * T)
    assert_close(push(X), X.exp() * X)
    assert len(calls) == 1


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobians_have_the_structure_of_outputs_and_inputs(jacobian):
    found = jacobian(lambda x, y: {"product": x * y, "sum": x.sum()}, argnums=(0, 1))(X, T)
    assert_close(found["product"], (rd.diag(T), rd.diag(X)))
    assert_close(found["sum"], (rd.ones_like(X), rd.zeros_like(X)))


def test_hessian_of_a_cube():
    assert_close(hessian(lambda x: (x**3).sum())(X), rd.diag(6 * X))


def test_no_grad_inside_holds_for_all_levels_outside():
    def partly(x):
        with rd.no_grad():
            fixed = x * x
        return (x * fixed).sum()

    assert_close(grad(partly)(X), X * X)
    assert_close(grad(lambda x: grad(partly)(x).sum())(X), 0 * X)

    def nothing(x):
        with rd.no_grad():
            return grad(wave)(x).sum()

    assert_close(grad(nothing)(X), 0 * X)
    with rd.no_grad():  # outside, it is not the transform's affair
        assert_close(grad(lambda x: grad(wave)(x).sum())(X), 2 * X.cos() - X * X.sin())


def test_detach_leaves_no_tangent():
    assert_close(jvp(lambda x: x.sin() + x.detach(), (X,), (T,))[1], X.cos() * T)
    assert_close(jacfwd(lambda x: x.sin() + x.clone().detach()[1:].sum())(X), rd.diag(X.cos()))


def test_writes_are_differentiated_forward_over_reverse_and_in_a_batch():
    def written(x, outside):
        y = x.clone()
        y.mul_(1.5)
        y[0] = outside[1]
        y[1].add_(1)
        return y * x

    def sums(x):
        return written(x, x).sum()

    assert_close(jacfwd(grad(sums))(X), jacrev(grad(sums))(X))
    batch = rd.stack([X, -X])
    for transform in (jacfwd, jacrev, lambda f: jacfwd(grad(lambda z: f(z).sum()))):
        each = vmap(lambda x: transform(lambda z: written(z, x))(x))  # noqa: B023  (called in this round)  # run before the loop goes on
        assert_close(each(batch)[1], transform(lambda z: written(z, -X))(-X))  # run before the loop goes on


def test_ordinary_autograd_goes_through_a_transform():
    w = rd.ones(3, dtype=rd.float64, requires_grad=True)
    grad(lambda x: (x * x * w).sum())(X).sum().backward()
    assert_close(w.grad, 2 * X)
    with rd.no_grad():
        assert not grad(lambda x: (x * x * w).sum())(X).requires_grad


def test_writes_of_own_tensors_are_differentiated():
    def written(x):
        y = x.clone()
        y[0] = y[1] * 2
        y.mul_(x)
        return y.sum()

    assert_close(grad(written)(X), rd.tensor([4.0, 6.0, 6.0], dtype=rd.float64))
    assert_close(jvp(written, (X,), (T,))[1], (grad(written)(X) * T).sum())


def test_writing_a_captured_tensor_is_refused():
    captured = rd.zeros(3, dtype=rd.float64)
    with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
        grad(lambda x: captured.add_(x).sum())(X)
    assert captured.tolist() == [0, 0, 0]


def test_a_tensor_that_outlives_its_level_is_its_value():
    kept = []
    grad(lambda x: (kept.append(x * 2), x.sum())[1])(X)
    assert_close(kept[0] + 1, 2 * X + 1)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: grad(lambda x: x * 2)(X), "to return a scalar Tensor, got tensor with 1 dims"),
        (lambda: grad(lambda x: 1)(X), "to return a Tensor, got <class 'int'>"),
        (lambda: grad(lambda x: x.sum(), argnums=2)(X), "Got argnum=2, but only 1 positional inputs"),
        (lambda: grad(lambda x: x.requires_grad_().sum())(X), "attempting to call Tensor.requires_grad_"),
        (lambda: grad(lambda x: x.sum().backward())(X), "backward\\(\\) called inside a functorch transform"),
        (lambda: grad(lambda x: x.sum())(rd.ones(2).long()), "only Tensors of floating point dtype can require"),
        (lambda: vjp(lambda x: 3, X), "to return only tensors, got unsupported type"),
        (lambda: jvp(lambda x: x, (X,), (T[:2],)), "different size than that of the original Tensor"),
    ],
)
def test_what_cannot_be_differentiated_is_refused(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()
    assert not rd.dispatch.STATE.get().levels


# vmap -----------------------------------------------------------------------------------------------------------------


def test_vmap_maps_any_dimension_to_any():
    x = rd.arange(6.0).view(2, 3)
    assert_close(vmap(lambda row: row.cumsum(0))(x), x.cumsum(1))
    assert_close(vmap(lambda column: column.cumsum(0), in_dims=1, out_dims=1)(x), x.cumsum(0))


def test_vmap_nests_and_takes_pytrees():
    a, b = rd.randn(2, 3, 4), rd.randn(3, 4)
    assert_close(vmap(vmap(rd.dot), in_dims=(0, None))(a, b), (a * b).sum(2))
    found = vmap(lambda d: {"sum": d["x"] + d["y"]}, in_dims=({"x": 0, "y": None},))({"x": a, "y": b})
    assert_close(found["sum"], a + b)


def test_chunks_give_the_same():
    x = rd.randn(5, 3)
    assert_close(vmap(lambda row: row.softmax(0), chunk_size=2)(x), x.softmax(1))


def test_gradients_of_each_example():
    model = nn.Linear(3, 2)
    inputs, targets = rd.randn(4, 3), rd.tensor([0, 1, 1, 0])

    def loss(parameters, x, target):
        return nn.functional.cross_entropy(func.functional_call(model, parameters, (x,))[None], target[None])

    parameters = {name: value.detach() for name, value in model.named_parameters()}
    found = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, inputs, targets)
    for i in range(4):
        one = grad(loss)(parameters, inputs[i], targets[i])
        assert_close({name: value[i] for name, value in found.items()}, one)


def test_an_ensemble_is_a_stack_of_modules():
    models = [nn.Linear(3, 2) for _ in range(3)]
    parameters, buffers = func.stack_module_state(models)
    x = rd.randn(5, 3)
    found = vmap(lambda p, b: func.functional_call(models[0], (p, b), (x,)))(parameters, buffers)
    assert_close(found, rd.stack([model(x) for model in models]))


def test_promotion_is_that_of_an_example():
    narrow, wide = rd.ones(2, dtype=rd.float32), rd.ones(3, dtype=rd.float64)
    assert vmap(lambda number: number + narrow)(wide).dtype is rd.float32
    assert vmap(lambda a, b: a + b)(rd.ones(3), wide).dtype is rd.float64


def test_in_place_changes_of_shape_concern_the_example_alone():
    x = rd.randn(2, 3)
    assert vmap(lambda row: row.unsqueeze_(0).transpose_(0, 1))(x).shape == (2, 3, 1)
    assert x.shape == (2, 3)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: vmap(lambda x: x)(rd.tensor(1.0)), ValueError, "that input is a Tensor of dimensionality 0"),
        (lambda: vmap(lambda x, y: x + y)(rd.ones(2), rd.ones(3)), ValueError, "got sizes \\[2, 3\\]"),
        (lambda: vmap(lambda x: x, in_dims=(None,))(rd.ones(2)), ValueError, "at least one Tensor to vmap over"),
        (lambda: vmap(lambda x: 3)(rd.ones(2)), ValueError, "must only return Tensors"),
        (lambda: vmap(lambda x: x if x > 0 else -x)(rd.ones(2)), RuntimeError, "data-dependent control flow"),
        (lambda: vmap(lambda x: x.item())(rd.ones(2)), RuntimeError, "vmap over calling .item()"),
        (lambda: vmap(rd.nonzero)(rd.ones(2, 2)), RuntimeError, "output dynamic shape"),
        (lambda: vmap(lambda x: x[x > 0])(rd.ones(2, 2)), RuntimeError, "indexing with a boolean mask"),
        (lambda: vmap(lambda x: x + rd.rand(1))(rd.ones(2)), RuntimeError, "randomness error mode"),
    ],
)
def test_what_cannot_be_batched_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
    assert not rd.dispatch.STATE.get().levels


def test_what_vmap_kept_to_itself_has_no_meaning_outside():
    kept = []
    vmap(lambda x: (kept.append(x * 2), x)[1])(rd.ones(2))
    with pytest.raises(RuntimeError, match="may have escaped from inside a function being vmapped"):
        kept[0] + 1


def test_what_has_no_rule_is_called_for_each_example_with_a_warning():
    with pytest.warns(UserWarning, match="batching rule for"):
        found = vmap(lambda x: rd.histc(x, 3, 0, 1))(rd.tensor([[0.0, 0.5], [1.0, 1.0]]))
    assert found.tolist() == [[1, 1, 0], [0, 0, 2]]


# Random numbers -------------------------------------------------------------------------------------------------------


def test_random_numbers_are_the_same_or_different_as_asked():
    x = rd.zeros(3, 4)
    for draw in (rd.randn_like, lambda row: rd.randn(4), lambda row: row.new_empty(4).normal_()):
        same = vmap(lambda row, draw=draw: row + draw(row), randomness="same")(x)
        assert_close(same[0], same[1])
        assert_close(same[0], same[2])
        different = vmap(lambda row, draw=draw: row + draw(row), randomness="different")(x)
        assert not rd.equal(different[0], different[1])


def test_dropout_under_vmap():
    x = rd.ones(3, 1000)
    kept = vmap(lambda row: nn.functional.dropout(row, 0.5), randomness="different")(x)
    assert all(300 < (row != 0).sum().item() < 700 for row in kept)
    assert not rd.equal(kept[0], kept[1])


# Pictures -------------------------------------------------------------------------------------------------------------


def test_wrappers_say_what_they_are():
    seen = []
    vmap(grad(lambda x: (seen.append(repr(x)), x.sum())[1]))(rd.ones(2, 3))
    assert seen[0].startswith("GradTrackingTensor(lvl=2, value=\n    BatchedTensor(lvl=1, bdim=0, value=\n")


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "sqrt", "reciprocal"])
def test_what_keeps_its_result_has_derivatives_of_all_orders(name):
    """A result that is kept loses the history that it has under its level, and no other one."""
    function = getattr(rd, name)
    x = rd.tensor([0.4, 1.2], dtype=rd.float64, requires_grad=True)
    (first,) = rd.autograd.grad(function(x).sum(), x, create_graph=True)
    (second,) = rd.autograd.grad(first.sum(), x)
    assert_close(vmap(grad(grad(function)))(x.detach()), second)
    assert_close(rd.autograd.grad(grad(lambda x: function(x).sum())(x).sum(), x)[0], second)


def test_new_memory_of_given_strides_is_that_of_each_example_in_turn():
    made = vmap(lambda x: x.new_empty_strided((2, 3), (1, 2)).fill_(1))(rd.ones(4, 5))
    assert made.shape == (4, 2, 3) and made.stride() == (6, 1, 2) and made.sum().item() == 24
    assert vmap(lambda x: x.new_empty_strided((2, 0), (1, 2)))(rd.ones(4, 5)).shape == (4, 2, 0)
    with pytest.raises(RuntimeError, match="dimensionality"):
        vmap(lambda x: x.new_empty_strided((2, 3), (1,)))(rd.ones(4, 5))
    with pytest.raises(RuntimeError, match="dimensionality of sizes .2. must match dimensionality of strides .1."):
        rd.ones(2).new_empty_strided((2, 3), (1,))


# What runs ------------------------------------------------------------------------------------------------------------


def code_under(transform, op, x):
    """The code that runs an operator under a transform."""
    found = []

    def look(x):
        found.append(op.source(x))
        return x.sin().sum()

    transform(look)(x)
    return found[0]


def test_code_is_made_for_a_kind_of_level_and_not_for_one_level():
    sin, x = rd.ops.aten.sin.default, rd.ones(2, 3)
    under_grad, under_vmap = code_under(grad, sin, x), code_under(vmap, sin, x)
    assert "under a GradLevel" in under_grad and "process" not in under_grad and "differentiating" in under_grad
    assert "under a VmapLevel" in under_vmap and "process(" not in under_vmap and "state.outer()" in under_vmap
    assert code_under(grad, sin, x) == under_grad
    assert "under a VmapLevel" in code_under(lambda f: vmap(grad(f)), sin, x).replace("GradLevel", "VmapLevel")


def test_rows_go_straight_and_all_else_as_well():
    x, y = rd.arange(6.0).view(2, 3), rd.arange(2.0)
    assert vmap(lambda a, b: (a * b).sum())(x, y).tolist() == [0.0, 12.0]  # examples with and without dimensions
    assert vmap(lambda a, b: a * b, in_dims=(1, None))(x, y).tolist() == (x.t() * y).tolist()
    assert vmap(lambda a: a + 1, in_dims=1, out_dims=1)(x).tolist() == (x + 1).tolist()
    assert vmap(lambda a: a.sum(), in_dims=0)(y).tolist() == [0.0, 1.0]
    assert vmap(lambda a: a.sum(dtype=rd.int64))(x).dtype is rd.int64
    whole = rd.arange(2)
    assert vmap(lambda a, b: a + b)(whole, y).dtype is rd.float32
    assert vmap(vmap(lambda a: (a * 2).mean()))(x[None]).tolist() == (x * 2).mean(1)[None].tolist()


def test_vmap_gives_back_what_it_was_given_where_nothing_was_computed():
    x = rd.ones(2, 3)
    same, again = vmap(lambda a: (a, a))(x)
    assert same is x and again is x
    assert vmap(lambda a: a.transpose(0, -1))(x[:, 0])._base is x


def test_constants_of_grad_are_wrapped_whatever_is_differentiated():
    def f(tree, c):
        seen.append("GradTrackingTensor" in repr(c))
        return (tree["a"] * c).sum() + tree["b"].sum()

    seen = []
    found = grad(f)({"a": rd.ones(2), "b": rd.ones(2)}, rd.full((2,), 3.0))
    assert found["a"].tolist() == [3.0, 3.0] and seen == [True]


@pytest.mark.parametrize("seed", range(6))
def test_transforms_nested_at_random_agree_with_loops(seed):
    """d/dx of sums of smooth functions, along a random choice of grad, jvp and vmap, one inside another."""
    rng = random.Random(seed)
    body = rng.choice([lambda x: (x.sin() * x).sum(), lambda x: (x**3).mean() + x.exp().sum()])
    function, numbers, x = body, body, rd.tensor([[0.3, -0.7], [1.1, 0.2]], dtype=rd.float64)
    for _ in range(3):
        kind = rng.choice(["grad", "jvp", "vmap"])
        inner, plain = function, numbers
        if kind == "grad":
            function = grad(lambda x, inner=inner: inner(x).sum())
            numbers = by_differences(plain)
        elif kind == "jvp":
            function = lambda x, inner=inner: jvp(inner, (x,), (rd.ones_like(x),))[1].sum()
            numbers = lambda x, plain=plain: by_differences(plain)(x).sum()
        else:
            function = lambda x, inner=inner: vmap(inner)(rd.stack([x, x * 2])).sum()
            numbers = lambda x, plain=plain: plain(x).sum() + plain(x * 2).sum()
    assert_close(function(x), numbers(x))


def by_differences(function):
    """The gradient of the sum of a function's results, by ordinary autograd."""

    def gradient(x):
        leaf = x.detach().requires_grad_() if not x.requires_grad else x
        with rd.enable_grad():
            (found,) = rd.autograd.grad(function(leaf).sum(), leaf, create_graph=True)
        return found

    return gradient


def pulled(v):
    """v^2 cos(v), by a backward pass that runs when its own level is gone, and meets `v` in a wrapper of that level."""
    return vjp(lambda x: x.sin() * v, v)[1](v)[0]


def test_what_an_inner_level_that_is_gone_had_wrapped_is_a_tensor_of_the_level_outside():
    x = rd.tensor([0.1, 0.2, -0.7], dtype=rd.float64)
    batch = rd.stack([x, 2 * x])
    slope = 2 * x * x.cos() - x * x * x.sin()
    assert_close(grad(lambda v: pulled(v).sum())(x), slope)
    assert_close(jvp(pulled, (x,), (x,)), (x * x * x.cos(), slope * x))
    assert_close(vmap(pulled)(batch), batch * batch * batch.cos())
    assert_close(jacrev(pulled)(x), rd.diag(slope))
    assert_close(jacfwd(pulled)(x), rd.diag(slope))
    assert_close(vmap(grad(lambda v: pulled(v).sum()))(batch)[0], slope)


@pytest.mark.parametrize("module, shape", [(rd.nn.LayerNorm(5), (2, 5)), (rd.nn.GroupNorm(2, 4), (2, 4, 3))])
@pytest.mark.parametrize("in_dims", [(None, 0), (0, 0), (0, None)])
def test_what_a_norm_learns_has_a_gradient_for_each_example(module, shape, in_dims):
    rd.manual_seed(0)
    shapes = [tuple(value.shape) for value in module.parameters()] + [shape]
    given = [
        rd.randn(3, *one) if dim == 0 else rd.randn(one)
        for one, dim in zip(shapes, (in_dims[0], *in_dims), strict=True)
    ]

    def loss(weight, bias, x):
        return (func.functional_call(module, {"weight": weight, "bias": bias}, (x,)) ** 3).sum()

    places = (in_dims[0], *in_dims)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it has a rule
        found = vmap(grad(loss, (0, 1, 2)), places)(*given)
    examples = [[x if dim is None else x[i] for x, dim in zip(given, places, strict=True)] for i in range(3)]
    for whole, parts in zip(found, zip(*(grad(loss, (0, 1, 2))(*one) for one in examples), strict=True), strict=True):
        assert rd.allclose(whole, rd.stack(parts), atol=1e-4)


def test_writes_at_indices_have_a_rule():
    x, index, source = rd.zeros(3, 4), rd.tensor([2, 0]), rd.randn(3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        added = vmap(lambda row, new: row.index_add(0, index, new, alpha=2))(x, source)
        filled = vmap(lambda row: row.index_fill(-1, index, 5.0))(x)
    assert added[:, [2, 0]].tolist() == (source * 2).tolist() and filled[1].tolist() == [5, 0, 5, 0]


def test_pairs_are_complex_numbers_for_each_example():
    pairs = rd.arange(12.0).view(3, 2, 2)
    for dim in (0, 1):
        found = vmap(rd.view_as_complex, in_dims=dim, out_dims=dim)(pairs.movedim(0, dim))
        assert_close(found.movedim(dim, 0), rd.view_as_complex(pairs))
    z = rd.tensor([1 + 1j, 2 - 3j])
    assert_close(vmap(grad(lambda t: (t.conj() * t).real))(z), 2 * z)
    assert_close(jacrev(wave, _preallocate_and_copy=True, chunk_size=1)(X), slope(X))


# What examples are held to, and what they draw ------------------------------------------------------------------------


def test_chunks_draw_the_same_numbers_where_asked():
    found = vmap(lambda x: x + rd.randn(2), randomness="same", chunk_size=2)(rd.zeros(5, 2))
    assert (found == found[:1]).all()
    assert functorch_experimental.chunk_vmap(lambda x: x * 2, chunks=3)(rd.arange(5)).tolist() == [0, 2, 4, 6, 8]


def test_dropout_draws_for_each_example_though_its_argument_is_the_same_for_all():
    def drop(x):
        return rd.nn.functional.dropout(rd.ones(64))

    found = vmap(drop, randomness="different")(rd.zeros(4))
    assert found.shape == (4, 64) and len({tuple(row.tolist()) for row in found}) == 4
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(drop)(rd.zeros(4))


def test_rows_of_examples_are_drawn_by_their_own_weights():
    weights = rd.eye(3).expand(2, 3, 3)
    found = vmap(lambda w: rd.multinomial(w, 4, replacement=True), randomness="different")(weights)
    assert found.tolist() == [[[row] * 4 for row in range(3)]] * 2


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: vmap(rd.mv, (0, None))(rd.ones(7, 2, 2), rd.ones(2, 2)), "incorrect dims for mv"),
        (lambda: vmap(rd.bmm, (0, None))(rd.ones(7, 2, 2), rd.ones(2, 2, 2)), "incorrect dims for bmm"),
        (lambda: vmap(lambda x: x.as_strided([2], [1], 3))(rd.ones(2, 4)), "can access memory outside of `tensor`"),
        (lambda: vmap(lambda x: x.data)(rd.ones(2)), "accessing `data` under vmap transform"),
        (lambda: vmap(lambda x: x.contiguous(memory_format=rd.channels_last))(rd.ones(2, 1, 2, 2, 2)), "NYI: querying"),
        (lambda: vmap(lambda x: x.clone(memory_format=rd.channels_last))(rd.ones(2)), "NYI: Tensor.clone"),
        (lambda: vmap(lambda x: rd.rand(2, out=x), randomness="same")(rd.ones(2, 2)), "calling out variants"),
    ],
)
def test_what_examples_cannot_do_is_refused(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


def test_a_batched_bias_alone_goes_through_a_convolution():
    x, w, b = rd.rand(2, 3, 5), rd.rand(4, 3, 2), rd.rand(6, 4)
    found = vmap(rd.conv1d, (None, None, 0))(x, w, b)
    assert_close(found, rd.stack([rd.conv1d(x, w, one) for one in b]))


def test_one_hot_of_examples_asks_no_values():
    assert vmap(lambda x: rd.nn.functional.one_hot(x, 3))(rd.arange(3)).tolist() == rd.eye(3).tolist()


# PyTorch's private names ----------------------------------------------------------------------------------------------


def test_levels_can_be_entered_by_hand():
    level = _functorch._vmap_increment_nesting(3, "error")
    x = _functorch._add_batch_dim(rd.arange(3), 0, level)
    doubled = x * 2
    interpreter = _functorch.peek_interpreter_stack()
    assert (interpreter.key(), interpreter.level(), interpreter.batchSize()) == (
        *(_functorch.TransformType.Vmap, level),
        3,
    )
    assert _functorch.is_batchedtensor(doubled) and _functorch.maybe_get_level(doubled) == level
    taken = _functorch.pop_dynamic_layer_stack()
    assert _functorch.maybe_current_level() is None
    assert _functorch.push_dynamic_layer_stack(taken) == level
    whole = _functorch._remove_batch_dim(doubled, level, 3, 0)
    assert _functorch._vmap_decrement_nesting() == level
    assert whole.tolist() == [0, 2, 4] and _functorch.get_unwrapped(doubled) is whole
    assert _functorch.maybe_get_level(doubled) == -2 and _functorch.maybe_get_level(whole) == -1
    with pytest.raises(RuntimeError, match="DynamicLayerStack is empty"):
        _functorch.current_level()
    assert _functorch._grad_increment_nesting() == 1
    with pytest.raises(RuntimeError, match="the innermost transform is a GradLevel"):
        _functorch._vmap_decrement_nesting()
    _functorch.pop_dynamic_layer_stack_and_undo_to_depth(0)


def test_a_paused_vmap_says_where_the_batch_stands():
    found, dims = api.restore_vmap(lambda x, y, z: (x + y, y, z), (0, None, None), 2, "error")(
        rd.ones(2, 3), rd.ones(3), 5
    )
    assert found[0].tolist() == [[2] * 3] * 2 and dims == (0, None, None) and found[2] == 5


def test_dimensions_are_merged_and_split():
    x = rd.arange(24).reshape(2, 3, 4)
    merged = _functorch.reshape_dim_into(0, 1, x)
    assert merged.shape == (3, 8)
    assert _functorch.reshape_dim_outof(1, 2, merged).movedim(1, 0).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="cannot be split"):
        _functorch.reshape_dim_outof(0, 2, merged)


def test_examples_without_dimensions_have_one_that_may_be_named():
    assert vmap(lambda x: x.transpose(0, -1))(X) is X
    assert vmap(lambda x: x.squeeze(0) + x.squeeze(dim=(-1,)))(X).tolist() == (2 * X).tolist()
    filled = vmap(lambda x, i: x.index_fill(0, i, 7.0))(X, rd.zeros(X.shape[0], 1, dtype=rd.int64))
    assert filled.tolist() == [7.0] * X.shape[0]
    written = X.clone()
    vmap(lambda x: x.index_fill_(0, rd.tensor([0]), 3.0))(written)
    assert written.tolist() == [3.0] * X.shape[0]


def test_what_is_asked_of_all_has_one_answer_for_all_examples():
    answers = vmap(lambda x: (rd._is_all_true(x > 1), rd._is_any_true(x > 1)), out_dims=None)(X)
    assert [answer.item() for answer in answers] == [(X > 1).all().item(), (X > 1).any().item()]
    assert vmap(lambda x: x * 2 if rd._is_all_true(x > 0) else x)(rd.ones(2)).tolist() == [2, 2]


def test_a_check_of_a_batch_holds_for_each_example():
    check = vmap(lambda x: rd._test_check_tensor(x > 0))
    assert check(X).all()
    with pytest.raises(RuntimeError, match="Test message for TORCH_CHECK_TENSOR_ALL"):
        check(X - 1)


def test_gradients_of_a_convolution_s_gradients():
    double = rd.ops.aten._convolution_double_backward
    x, w, b = rd.randn(2, 1, 4, dtype=rd.float64), rd.randn(2, 1, 2, dtype=rd.float64), rd.zeros(2, dtype=rd.float64)
    how = [1], [0], [1], False, [0], 1
    made = rd.randn(2, 2, 3, dtype=rd.float64)

    def gradients(made, x, w):
        return rd.ops.aten.convolution_backward(made, x, w, [2], *how, [True] * 3)

    given = rd.randn_like(x), rd.randn_like(w), rd.randn_like(b)
    wanted = rd.func.vjp(gradients, made, x, w)[1](given)
    for found, right in zip(double(*given, made, w, x, *how, [False] * 3), wanted, strict=True):
        assert_close(found, right)
    assert double(None, None, given[2], made, w, x, *how, [True] * 3)[1:] == (None, None)


def test_the_fallback_can_be_turned_off():
    x = rd.rand(2, 3)
    _functorch._set_vmap_fallback_enabled(False)
    try:
        with pytest.raises(RuntimeError, match="hit the vmap fallback which is currently disabled"):
            vmap(rd._test_functorch_fallback)(x, x)
    finally:
        _functorch._set_vmap_fallback_enabled(True)
    with pytest.warns(UserWarning, match="performance drop"):
        assert vmap(rd._test_functorch_fallback)(x, x).tolist() == x.tolist()


def test_functions_of_old_programs_warn_and_work():
    with pytest.warns(FutureWarning, match="functorch.grad.* is deprecated"):
        assert rd.functorch.grad(rd.sin)(rd.zeros(())).item() == 1
    models = [nn.BatchNorm1d(2).eval() for _ in range(3)]
    function, params, buffers = make_functional.combine_state_for_ensemble(models)
    assert vmap(function, (0, 0, None))(params, buffers, rd.ones(4, 2)).shape == (3, 4, 2)
    linear = nn.Linear(2, 1)
    function, params = make_functional.make_functional(linear, disable_autograd_tracking=True)
    assert function(params, rd.ones(2)).item() == linear(rd.ones(2)).item() and not params[0].requires_grad
    with pytest.raises(RuntimeError, match="Please use make_functional_with_buffers"):
        make_functional.make_functional(models[0])
    weights, buffers, function, *_ = make_functional.functional_init_with_buffers(nn.BatchNorm1d, (3,))(2)
    assert weights[0].shape == (3, 2) and buffers[0].shape == (3, 2)
