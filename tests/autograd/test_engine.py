"""The engine: order, accumulation, partial passes, depth and width, errors, and what it leaves behind."""

import gc
import sys
import threading
import tracemalloc
import warnings
import weakref

import pytest

import redispatch as rd
from redispatch.autograd import Node, grad
from redispatch.dispatch.config import config
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.tensor import _OF_SHARED


def leaf(*values):
    return rd.tensor(list(values), requires_grad=True)


def live_tensors():
    return sum(issubclass(type(thing), Tensor) for thing in gc.get_objects())


@pytest.fixture
def without_gc():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_a_product_has_the_gradients_of_the_book():
    x, y = leaf(2.0, 3.0), leaf(5.0, 7.0)
    (x * y).sum().backward()
    assert x.grad.tolist() == [5, 7] and y.grad.tolist() == [2, 3]


def test_gradients_add_up_over_uses_and_over_passes():
    x = leaf(1.0, 2.0)
    for expected in ([5, 7], [10, 14]):
        (x * x + x * 3).sum().backward()
        assert x.grad.tolist() == expected


def test_later_calls_run_first():
    ran = []
    x = leaf(1.0)
    a, b = x * 2, x * 3
    for name, tensor in (("a", a), ("b", b)):
        tensor.grad_fn.register_hook(lambda gi, go, name=name: ran.append(name))
    (b + a).backward()
    assert ran == ["b", "a"]


def test_hooks_run_in_the_order_of_the_reference():
    ran = []
    x = leaf(1.0)
    x.register_hook(lambda g: ran.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda p: ran.append(f"accumulated {p.grad.item()}"))
    y = x * 2
    y.register_hook(lambda g: ran.append("tensor"))
    y.retain_grad()
    y.grad_fn.register_prehook(lambda g: ran.append(f"prehook, retained {y.grad.item()}"))
    y.grad_fn.register_hook(lambda gi, go: ran.append("hook"))
    y.sum().backward()
    assert ran == ["tensor", "prehook, retained 1.0", "hook", "leaf", "accumulated 2.0"]


def test_a_hook_may_replace_the_gradient():
    x = leaf(1.0, 1.0)
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    y.sum().backward(retain_graph=True)
    handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [22, 22]


def test_a_captured_gradient_is_the_one_after_the_tensors_hooks_whatever_else_is_asked_for():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    z = (y * 3).sum()
    assert grad(z, y, retain_graph=True)[0].item() == 30
    assert [g.item() for g in grad(z, [y, x])] == [30, 60]


def test_only_what_leads_to_the_inputs_runs():
    ran = []
    x, y = leaf(1.0), leaf(2.0)
    a, b = x * 2, y * 3
    a.grad_fn.register_hook(lambda gi, go: ran.append("a"))
    b.grad_fn.register_hook(lambda gi, go: ran.append("b"))
    (a * b).backward(inputs=[y])
    assert ran == ["b"] and x.grad is None and y.grad.item() == 6


def test_a_node_is_told_which_gradients_nobody_wants():
    x, y = leaf(1.0), leaf(2.0)
    product = x * y
    assert grad(product, x, retain_graph=True)[0].item() == 2
    results = product.grad_fn.apply([rd.ones(1)], [True, False])
    assert results[1] is None


def test_backward_inside_backward():
    x, y = leaf(3.0), leaf(4.0)

    def inner(gradient):
        with rd.enable_grad():
            (y * y).sum().backward()
        return gradient

    z = x * 2
    z.register_hook(inner)
    z.sum().backward()
    assert x.grad.item() == 2 and y.grad.item() == 8


def test_double_backward():
    x = leaf(2.0)
    (first,) = grad(x * x * x, x, create_graph=True)
    (second,) = grad(first, x, create_graph=True)
    (third,) = grad(second, x)
    assert (first.item(), second.item(), third.item()) == (12, 12, 6)


def test_an_exception_leaves_graph_and_state_usable():
    x = leaf(1.0)
    y = x * 2

    def fails(gradient):
        raise ValueError("from a hook")

    handle = y.register_hook(fails)
    z = (y * y).sum()
    with pytest.raises(ValueError, match="from a hook"):
        z.backward(retain_graph=True)
    assert rd.is_grad_enabled()
    handle.remove()
    z.backward()
    assert x.grad.item() == 8


def test_a_second_pass_needs_retain_graph():
    x = leaf(1.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_threads_may_run_backward_over_one_graph():
    x = leaf(*[1.0] * 50)
    y = (x * 2).sum()
    threads = [threading.Thread(target=y.backward, kwargs={"retain_graph": True}) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [16] * 50


def test_a_deep_chain_runs_and_is_freed_without_recursion(without_gc):
    before = sum(issubclass(type(thing), Node) for thing in gc.get_objects())
    limit = sys.getrecursionlimit()
    x = leaf(1.0)
    one = rd.ones(1)
    y = x
    for _ in range(100_000):
        y = y * one
    try:
        sys.setrecursionlimit(200)
        y.backward()
        del y
    finally:
        sys.setrecursionlimit(limit)
    assert x.grad.item() == 1
    del x  # and with it the node that accumulates its gradient
    assert sum(issubclass(type(thing), Node) for thing in gc.get_objects()) <= before  # earlier tests' may go, too


def test_a_wide_fan_in_adds_in_place():
    x = leaf(1.0)
    shared = x * 1
    parts = [shared * 2 for _ in range(2000)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    total.backward()
    assert x.grad.item() == 4000


def test_gradients_that_reach_two_leaves_are_not_one_memory():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x + y).backward(rd.ones(2))
    x.grad.add_(1)
    assert y.grad.tolist() == [1, 1]


def test_a_gradient_that_the_user_holds_is_copied():
    x, seed = leaf(1.0, 2.0), rd.ones(2)
    x.clone().backward(seed)
    x.clone().backward(seed)
    assert seed.tolist() == [1, 1] and x.grad.tolist() == [2, 2]


def test_a_gradient_that_is_a_view_nobody_else_sees_is_not_copied():
    weight, made = rd.ones(3, 2, requires_grad=True), []
    weight.register_hook(lambda g: made.append((g.data_ptr(), g._is_view())))
    (rd.ones(4, 2) @ weight.t()).sum().backward()
    assert made == [(weight.grad.data_ptr(), True)] and not weight.grad._is_view()


@pytest.mark.parametrize("held", ["view", "base", "part"])
def test_a_gradient_that_is_a_view_of_what_others_see_is_copied(held):
    kept = []

    class Turned(rd.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            base = rd.full((3, 2) if held == "part" else (2, 2), 5.0)
            view = base[:2] if held == "part" else base.t().t()
            kept.append({"view": view, "base": base, "part": None}[held])
            return view

    x = rd.ones(2, 2, requires_grad=True)
    Turned.apply(x).sum().backward()
    x.grad.add_(1)
    assert x.grad.eq(6).all() and not x.grad._is_view()
    assert kept[0] is None or kept[0].eq(5).all()
    assert x.grad.untyped_storage().nbytes() == 16


def test_a_gradient_that_numpy_shows_is_copied():
    shown = []
    x = leaf(1.0, 2.0)
    x.register_hook(lambda g: shown.append(g.numpy()))
    (x * 2).sum().backward()
    x.grad.add_(1)
    assert shown[0].tolist() == [2, 2] and x.grad.tolist() == [3, 3]


def test_a_graph_holds_its_leaves():
    seen = []
    x = leaf(1.0, 2.0)
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    y = (x + 1).sum()
    del x
    y.backward()
    assert seen == [[1, 1]]
    assert y.grad_fn.next_functions[0][0].next_functions[0][0].variable.grad.tolist() == [1, 1]


def test_a_leaf_and_its_node_go_without_the_garbage_collector(without_gc):
    x = leaf(1.0)
    (x * x).sum().backward()
    node = weakref.ref((x * 1).grad_fn.next_functions[0][0])
    assert node().variable is x
    del x
    assert node() is None


def test_a_leaf_with_other_data_gets_a_gradient_of_its_new_shape():
    x = leaf(1.0, 2.0, 3.0)
    for data in (rd.ones(3), rd.ones(1), rd.ones(2, 3), rd.ones(3, dtype=rd.float64)):
        x.grad, x.data = None, data
        (x * rd.ones(2, 3)).sum().backward()
        assert x.grad.shape == data.shape and x.grad.dtype is data.dtype and x.grad.sum().item() == 6


@pytest.mark.parametrize("how", [True, False, "strict"])
def test_a_node_gives_the_same_with_code_of_its_own_or_without(how):
    former, config.specialize = config.specialize, how
    try:
        for _ in range(4):  # such code is made when a few nodes have run
            x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
            loss = (x * y + x.exp() * 2 - rd.cat([x, y])[1:3] / y).sum()
            (slope,) = grad(loss, x, create_graph=True)
            slope.sum().backward()
            assert [f"{g:.3f}" for g in (*slope.tolist(), *x.grad.tolist(), *y.grad.tolist())] == [
                *("8.437", "18.445", "5.437", "14.778", "1.111", "1.000")
            ]
    finally:
        config.specialize = former


def test_a_gradient_lies_in_memory_as_its_leaf():
    x = rd.ones(2, 3).t().detach().requires_grad_()
    (x * rd.ones(3, 2)).sum().backward()
    assert x.grad.stride() == x.stride()


def test_training_leaves_nothing_behind_without_the_garbage_collector(without_gc):
    w, b = leaf(0.5, 0.5), leaf(0.1, 0.2)
    data = rd.tensor([1.0, 2.0])

    def step():
        hidden = (data * w + b).exp() * 2
        hidden.add_(1)
        loss = (hidden * hidden).sum()
        loss.backward()
        with rd.no_grad():
            for p in (w, b):
                p.sub_(p.grad * 0)
                p.grad = None

    step()
    counts = []
    for _ in range(4):
        for _ in range(50):
            step()
        counts.append(live_tensors())
    assert counts[-1] <= counts[0]  # what earlier tests left may go; nothing may come


def test_an_unused_input_may_be_allowed_or_materialized():
    x, y = leaf(1.0), leaf(2.0, 3.0)
    z = (x * 2).sum()
    assert grad(z, [x, y], allow_unused=True, retain_graph=True)[1] is None
    assert grad(z, [x, y], materialize_grads=True, retain_graph=True)[1].tolist() == [0, 0]
    assert set(grad(z, {"x": x})) == {"x"}


def test_a_batch_of_gradients_needs_gradients_and_gives_zeros_where_asked_to():
    x, unused = leaf(1.0, 2.0), leaf(3.0)
    with pytest.raises(ValueError, match="got no grad_outputs"):
        grad(x**3, x, is_grads_batched=True)
    batch, zeros = grad(x**3, [x, unused], rd.eye(2), is_grads_batched=True, materialize_grads=True)
    assert batch.tolist() == [[3, 0], [0, 12]] and zeros.tolist() == [0]


def test_gradients_that_are_too_many_are_ignored():
    x = leaf(1.0)
    rd.autograd.backward([x * 2], [rd.ones(1), rd.ones(1)])
    assert x.grad.item() == 2


def test_a_graph_in_grad_is_warned_of_once(monkeypatch):
    monkeypatch.setattr("redispatch.dispatch.autograd.api.WARNED.of_cycles", False)
    x = leaf(1.0)
    with pytest.warns(UserWarning, match="will create a reference cycle"):
        (x * x).backward(create_graph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rd.autograd.backward(x * x, create_graph=True)
    x.grad = None


def test_the_gradient_of_what_is_no_leaf_is_warned_of():
    y = leaf(1.0) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None


@pytest.mark.parametrize(
    ("register", "kind"),
    [
        (lambda y: y.grad_fn.register_hook(lambda results, gradients: results[0]), "Tensor"),
        (lambda y: y.grad_fn.register_prehook(lambda gradients: [gradients[0]]), "list"),
    ],
)
def test_the_hook_of_a_node_gives_a_tuple(register, kind):
    y = leaf(1.0).exp()
    register(y)
    with pytest.raises(TypeError, match=f"expected tuple, but hook returned '{kind}'"):
        y.backward()


def test_the_hooks_of_a_tensor_can_be_looked_at():
    x = leaf(1.0)
    assert x._backward_hooks is None
    handle = x.register_hook(lambda g: g)
    assert len(x._backward_hooks) == 1
    handle.remove()
    assert not x._backward_hooks


def test_nodes_of_copies_have_the_name_that_they_have_in_pytorch():
    copy = rd.zeros(1).copy_(leaf(1.0))
    assert copy.grad_fn.name() == "torch::autograd::CopyBackwards" and "grad_fn=<CopyBackwards>" in repr(copy)


def chain(length):
    """Runs a chain of `length` nodes forward and backward; bytes held per node, before and after backward."""
    x, one = leaf(1.0), rd.ones(1)
    gc.collect()
    tracemalloc.start()
    try:
        y = x
        for _ in range(length):
            y = y * one
        held = tracemalloc.get_traced_memory()[0] / length
        tracemalloc.reset_peak()
        y.backward()
        peak = tracemalloc.get_traced_memory()[1] / length
        assert x.grad.item() == 1
        del y
        x.grad = None
        gc.collect()
        return held, peak, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("length", [2_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_memory_is_linear_in_the_length_of_a_chain(length):
    chain(500)  # whatever is made once is there
    held, peak, left = chain(length)
    assert held < 2000 and peak < 2 * held + 200 and left < 20_000


def test_gradients_that_meet_are_added_once_each_and_nobody_elses_is_written():
    x = leaf(1.0, 2.0)
    seen = []
    parts = [x * 1 for _ in range(4)]
    for part in parts:
        part.register_hook(seen.append)
    total = parts[0] + parts[1] + parts[2] + parts[3]
    given = rd.ones(2)
    (total + x + x).backward(given, retain_graph=True)
    assert x.grad.tolist() == [6, 6] and given.tolist() == [1, 1]
    assert all(one.tolist() == [1, 1] for one in seen)
    kept = x.grad.clone()
    (first,) = grad(total.sum(), x, create_graph=True)
    assert first.tolist() == [4, 4] and x.grad.tolist() == kept.tolist()


def test_an_interrupt_in_backward_leaves_graph_and_state_usable():
    x = leaf(3.0)
    y = x * x

    def interrupt(gradient):
        raise KeyboardInterrupt

    handle = y.register_hook(interrupt)
    z = y.sum()
    with pytest.raises(KeyboardInterrupt):
        z.backward(retain_graph=True)
    handle.remove()
    assert rd.is_grad_enabled() and x.grad is None
    z.backward()
    assert x.grad.item() == 6


def test_backward_may_begin_in_backward_to_any_depth():
    @rd.enable_grad()
    def slope(depth):
        x = leaf(1.0)
        y = x * 2
        if depth:
            y.register_hook(lambda gradient: gradient * slope(depth - 1))
        y.sum().backward()
        return x.grad

    assert slope(20).item() == 2**21
    assert slope(126).item() == 2.0**127  # more passes inside passes than Python's stack has room for


def test_an_output_that_is_reached_through_two_edges_of_one_node():
    x = leaf(1.0, 5.0)
    values, indices = x.sort()
    assert indices.tolist() == [0, 1]
    low, high = (x * 2).unbind()
    (low * high + low + values.sum()).backward()
    assert x.grad.tolist() == [2 * 10 + 2 + 1, 2 * 2 + 1]


def test_a_view_of_a_fresh_tensor_takes_its_memory_without_looking_for_others():
    known = len(_OF_SHARED)
    views = [rd.ones(4)[1:] for _ in range(5)]
    assert len(_OF_SHARED) == known and all(view.tolist() == [1, 1, 1] for view in views)


def test_the_gradient_of_a_leaf_with_respect_to_itself_is_what_was_given():
    x = rd.ones(3, requires_grad=True)
    (found,) = rd.autograd.grad((x, x * 2), (x,), (rd.ones(3), rd.ones(3)))
    assert found.tolist() == [3, 3, 3] and x.grad is None
    (found,) = rd.autograd.grad(x, x, 2 * rd.ones(3))
    assert found.tolist() == [2, 2, 2] and x.grad is None


# The pass that runs ---------------------------------------------------------------------------------------------------


def test_the_pass_that_runs_tells_its_number_and_its_nodes():
    seen = []
    x = leaf(1.0)
    y = x.sin()
    z = y.exp()
    z.register_hook(lambda g: seen.append((rd._C._current_graph_task_id(), names(), will(y.grad_fn), keeps())))

    def names():
        return [node.name() for node in rd._C._current_graph_task_execution_order()]

    will, keeps = rd._C._will_engine_execute_node, rd._C._autograd._get_current_graph_task_keep_graph
    with rd.autograd.set_multithreading_enabled(False):
        z.sum().backward(retain_graph=True)
        grad(z.sum(), y)
    (first, every, runs, kept), (second, some, ends, freed) = seen
    assert second == first + 1 and runs and ends and kept and not freed
    assert every == ["SumBackward0", "ExpBackward0", "SinBackward0", "torch::autograd::AccumulateGrad"]
    assert some == every[:3]
    assert rd._C._current_graph_task_id() == -1
    for ask in (rd._C._current_graph_task_execution_order, lambda: will(z.grad_fn)):
        with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
            ask()
    with pytest.raises(RuntimeError, match="expects an grad_fn"):
        will(z)


def test_callbacks_are_called_when_the_pass_is_over():
    seen, queue = [], rd.autograd.Variable._execution_engine.queue_callback
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: queue(lambda: (seen.append(x.grad.item()), queue(lambda: seen.append("last")))))
    y.backward()
    assert seen == [2, "last"]
    with pytest.raises(RuntimeError, match="only be installed during backward pass"):
        queue(print)


def test_a_node_is_called_with_as_many_gradients_as_it_has_outputs():
    node = (leaf(1.0) * 2).grad_fn
    with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
        node(rd.ones(1), rd.ones(1))


def test_hooks_see_that_there_is_no_gradient():
    seen = []
    first, second = leaf(1.0, 2.0).unbind()
    first.register_hook(seen.append)
    second.backward()
    assert seen == [None]


def test_hooks_of_the_node_of_an_input_run_too():
    seen = []
    x = leaf(1.0)
    y = x * 1
    y.grad_fn.register_prehook(lambda g: seen.append("node"))
    y.register_hook(lambda g: seen.append("tensor"))
    y.sum().backward(inputs=(y,))
    assert seen == ["tensor", "node"] and y.grad.item() == 1 and x.grad is None


def test_hooks_after_accumulation_return_nothing():
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad)
    with pytest.raises(RuntimeError, match="hooks should return None"):
        x.sum().backward()


def test_hooks_can_be_replaced_as_a_dictionary():
    seen = []
    x = leaf(1.0)
    y = x * 1
    y.register_hook(lambda g: seen.append("former"))
    y._backward_hooks = {0: lambda g: seen.append("present")}
    y.backward()
    assert seen == ["present"] and list(y._backward_hooks) == [0]
    y._backward_hooks = None
    assert y._backward_hooks is None


def test_one_of_two_leaves_gets_the_gradient_that_both_were_given():
    places = []

    class Both(rd.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, g):
            g = g * 1
            places.append(g.data_ptr())
            return g, g

    a, b = leaf(1.0, 2.0), leaf(1.0, 2.0)
    Both.apply(a, b).sum().backward()
    assert a.grad.data_ptr() != b.grad.data_ptr() and places[0] in (a.grad.data_ptr(), b.grad.data_ptr())


def test_another_memory_is_another_leaf():
    x = leaf(1.0)
    edge = rd.autograd.graph.get_gradient_edge(x)
    out = x.clone()
    with rd.no_grad():
        x.set_(rd.ones(1))
    with pytest.raises(RuntimeError, match="to not have been used in the graph"):
        grad(out.sum(), x, retain_graph=True)
    assert grad(out.sum(), edge)[0].item() == 1
