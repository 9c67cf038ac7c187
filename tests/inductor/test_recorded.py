"""Operators' own kernels as steps of a routine: what is noted of them, what they give, and what is refused."""

import math

import numpy as np
import pytest

import redispatch as rd
from redispatch._inductor import compile_fx_inner, operators
from redispatch._inductor.lowering import Call, Recording
from redispatch.dispatch.tensor.operand import Operand, as_ndarray, on_target
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.kernels.graphs import Recorder, Refused
from redispatch.kernels.graphs.recorded import Noted
from redispatch.nn import functional as F


@pytest.fixture(autouse=True)
def one_thread():
    before = rd.get_num_threads()
    rd.set_num_threads(1)
    yield
    rd.set_num_threads(before)


def compiled(program, *inputs):
    return compile_fx_inner(make_fx(program)(*inputs), inputs)


def calls(graph):
    """The names of the operators that Python calls."""
    return [str(step.node.target) for step in graph.steps if isinstance(step, Call)]


def check(program, *inputs, rtol=1e-5, atol=1e-5):
    """Compares a compiled program with its graph, twice, with other numbers; returns the compiled one."""
    graph = compiled(program, *inputs)
    assert any(isinstance(step, Recording) for step in graph.steps)
    for given in (inputs, [one * 2 if one.is_floating_point() else one for one in inputs]):
        rd.testing.assert_close(graph(*given), graph.interpreter.run(*given), rtol=rtol, atol=atol)
    assert graph.run is not None, "the graph ran by its interpreter"
    return graph


def and_gradients(function):
    """A program that gives the function's value, and the gradients of its square's sum."""

    def program(*inputs):
        leaves = [one.detach().requires_grad_() for one in inputs]
        value = function(*leaves)
        return [value.detach(), *rd.autograd.grad((value * value).sum(), leaves)]

    return program


# One function ---------------------------------------------------------------------------------------------------------


def test_a_step_of_a_cnn_is_one_function():
    x, y = rd.randn(4, 1, 12, 12), rd.randint(10, (4,))

    def step(*weights):
        a, b, c = leaves = [one.detach().requires_grad_() for one in weights]
        h = F.max_pool2d(F.relu(F.conv2d(x, a, padding=1)), 2)
        h = F.avg_pool2d(F.relu(F.conv2d(h, b, padding=1)), 2)
        gradients = rd.autograd.grad(F.cross_entropy(F.linear(h.flatten(1), c), y), leaves)
        return [leaf.detach() - 0.1 * gradient for leaf, gradient in zip(leaves, gradients, strict=True)]

    graph = check(step, rd.randn(4, 1, 3, 3) / 3, rd.randn(6, 4, 3, 3) / 6, rd.randn(10, 54) / 8)
    assert calls(graph) == [] and len(graph.groups) == 1
    assert "squares_of_2_loop(" in graph.source() and "sums_loop(" in graph.source()


def test_a_step_of_a_transformer_is_one_function():
    ids, targets, width = rd.randint(11, (2, 6)), rd.randint(11, (12,)), 8

    def step(*weights):
        tokens, qkv, out = leaves = [one.detach().requires_grad_() for one in weights]
        x = F.embedding(ids, tokens)
        parts = F.linear(x, qkv).view(2, 6, 3, 2, width // 2)
        q, k, v = (parts[:, :, i].transpose(1, 2) for i in range(3))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.gelu(F.linear(mixed.transpose(1, 2).reshape(2, 6, width), out))
        gradients = rd.autograd.grad(F.cross_entropy(F.linear(x, tokens).view(12, 11), targets), leaves)
        return [leaf.detach() - 0.1 * gradient for leaf, gradient in zip(leaves, gradients, strict=True)]

    graph = check(step, rd.randn(11, width), rd.randn(3 * width, width) / 3, rd.randn(width, width) / 3)
    assert calls(graph) == [] and len(graph.groups) == 1
    assert "weigh_again(" in graph.source()


IMAGES = rd.randn(2, 4, 9, 9)
PROGRAMS = {
    "strides, a bias": (lambda x, w, b: F.conv2d(x, w, b, 2, 1), (IMAGES, rd.randn(8, 4, 3, 3), rd.randn(8))),
    "groups": (lambda x, w: F.conv2d(x, w, groups=2, dilation=2), (IMAGES, rd.randn(6, 2, 3, 3))),
    "each channel": (lambda x, w: F.conv2d(x, w, groups=4), (IMAGES, rd.randn(4, 1, 3, 3))),
    "many rows": (lambda x, w: F.conv2d(x, w), (IMAGES, rd.randn(70, 4, 2, 2))),
    "turned": (lambda x, w, b: F.conv_transpose2d(x, w, b, 2), (IMAGES, rd.randn(4, 6, 3, 3), rd.randn(6))),
    "channels last": (
        lambda x, w: F.conv2d(x, w, padding=1),
        (IMAGES.to(memory_format=rd.channels_last), rd.randn(5, 4, 3, 3)),
    ),
    "largest": (lambda x: F.max_pool2d(x, 3, 2, 1), (IMAGES,)),
    "means": (lambda x: F.adaptive_avg_pool2d(x, 4), (IMAGES,)),
    "long rows": (F.scaled_dot_product_attention, tuple(rd.randn(1, 2, n, 8) for n in (70, 600, 600))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_with_their_gradients(name):
    function, inputs = PROGRAMS[name]
    assert calls(check(and_gradients(function), *inputs, rtol=1e-4, atol=1e-4)) == []


ORDERED = {
    "sort": lambda x: (*rd.sort(x * 2, -1), rd.argsort(x, 0)),
    "topk": lambda x: (*rd.topk(x * 2, 3), (x + 1).argmax(1)),
    "scans": lambda x: ((x * 2).cumsum(0), x.cumprod(1), *x.cummax(1)),
    "rows": lambda x: rd.ops.aten.index_select(x + 1, 0, rd.ops.aten.argmax(x, 0)),
}


@pytest.mark.parametrize("name", ORDERED)
def test_orders_scans_and_rows(name):
    assert calls(check(ORDERED[name], rd.randn(8, 8))) == []


def test_views_of_inputs_are_read_where_they_begin():
    """Traced with tensors that have numbers, a graph knows where each view begins, too."""
    graph = check(lambda x: (x[2:, 1] * 2, x[1].sort()[0]), rd.randn(5, 7))
    x = rd.randn(6, 7)[1:]
    rd.testing.assert_close(graph(x), (x[2:, 1] * 2, x[1].sort()[0]))


# Numbers that decide --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [math.inf, math.nan])
def test_infinities_of_images_spread_no_further_than_their_windows(number):
    """The kernel multiplies places that are no windows with zero, which of infinity is NaN."""
    x, grad = rd.randn(2, 2, 6, 6), rd.randn(2, 3, 4, 4)

    def of_weight(grad, x):
        how = [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [False, True, False]
        return rd.ops.aten.convolution_backward(grad, x, rd.zeros(3, 2, 3, 3), None, *how)[1] * 1

    graph = compiled(of_weight, grad, x)
    assert calls(graph) == []
    x[1, 0, 5, 5] = number
    reached = rd.zeros(3, 2, 3, 3, dtype=rd.bool)
    reached[:, 0, 2, 2] = True
    for found in (graph(grad, x), of_weight(grad, x)):
        assert rd.equal(~found.isfinite(), reached)


def test_an_index_beyond_the_rows_is_an_error_that_names_the_operator():
    grad, ids = rd.randn(4, 3), rd.tensor([0, 2, 1, 4])
    graph = compiled(lambda grad, ids: rd.ops.aten.embedding_dense_backward(grad, ids, 5, -1, False) * 2, grad, ids)
    assert calls(graph) == []
    rd.testing.assert_close(graph(grad, ids), graph.interpreter.run(grad, ids))
    with pytest.raises(IndexError, match=r"index 7 is out of bounds for dimension 0 with size 5\n  embedding_dense"):
        graph(grad, rd.tensor([0, 2, 1, 7]))
    with pytest.raises(IndexError, match="index -3 is out of bounds"):
        graph(grad, rd.tensor([0, -3, 1, 7 - 6]))
    rd.testing.assert_close(graph(grad, ids), graph.interpreter.run(grad, ids))


def test_what_decides_by_numbers_is_called_and_the_reason_is_known():
    graph = compiled(lambda x: rd.linalg.qr(x * 2)[1] + 1, rd.randn(4, 4))
    (called, why), *_ = graph.through_python.items()
    assert called == "linalg_qr" and "Refused" in why
    x = rd.randn(4, 4)
    rd.testing.assert_close(graph(x), graph.interpreter.run(x))


def test_numpy_may_only_look_at_noted_memory():
    array = Recorder("x").block("x", 12, "float32")
    assert isinstance(array[2:].reshape(2, 5).swapaxes(0, 1), Noted)
    for look in (
        lambda: array + 1, lambda: np.add(array, 1, out=array), lambda: array.sum(), lambda: array[0], array.tolist,
        lambda: np.concatenate([array]), lambda: array.astype(int), lambda: float(array), lambda: list(array),
    ):  # fmt: skip
        with pytest.raises((Refused, TypeError)):
            look()
    with pytest.raises(Refused):
        array[:] = 0
    with pytest.raises(Refused), on_target(Recorder("x")):
        as_ndarray(Operand(array, "float32", (3,), (1,))).max()


# Threads --------------------------------------------------------------------------------------------------------------


def test_what_takes_long_is_a_call_where_threads_share_it():
    x, w = rd.randn(8, 16, 32, 32), rd.randn(16, 16, 3, 3)
    graph = compiled(lambda x, w: F.conv2d(x, w).relu(), x, w)
    assert calls(graph) == []
    alone = graph(x, w)
    rd.set_num_threads(2)
    shared = graph(x, w)
    assert calls(graph.otherwise()) == ["aten.convolution.default"] and graph.otherwise().otherwise() is graph
    assert rd.equal(alone, shared)


def test_what_takes_very_long_is_a_call_that_an_interrupt_can_end(monkeypatch):
    monkeypatch.setattr(operators, "AT_ONCE", 1000)
    graph = compiled(lambda x: F.max_pool2d(x, 2) * 2, rd.randn(1, 8, 32, 32))
    assert [one for one in calls(graph) if "max_pool2d" in one]
    assert any("Ctrl-C" in why for why in graph.through_python.values())
