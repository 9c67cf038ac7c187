"""Graphs that are compiled for a device: their kernels, beside the CPU's, on the simulator."""

import pytest

import redispatch as rd
from redispatch._inductor import compile_fx_inner
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.testing import assert_close
from redispatch.utils import _pytree as pytree

pytestmark = pytest.mark.usefixtures("simulator")


def both(function, *inputs):
    """The graph's results on the CPU, on the device, and the function on the device. Both graphs are compiled."""
    there = pytree.tree_map(lambda x: x.cuda(), inputs)
    here, graph = (compile_fx_inner(make_fx(function)(*given), given) for given in (inputs, there))
    return here(*inputs), pytree.tree_map(lambda x: x.cpu(), graph(*there)), graph


def chain(x):
    return ((x * 2 + 1).tanh() * x.exp()).relu() - x / 3


def softmax(x, mask):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True) * mask


@pytest.mark.parametrize("shape", [(1000,), (7, 33), (1,), (0,), ()], ids=str)
def test_pointwise_operators_are_one_kernel_with_the_cpus_bits(shape):
    wanted, found, graph = both(chain, rd.randn(shape))
    assert rd.equal(found, wanted) and len(graph.nests) == 1 and not graph.calls()


def test_views_are_read_where_they_lie():
    def program(x, y):
        return (x.t() + y[::2, 1:3]).expand(4, 3, 2).sin()

    wanted, found, graph = both(program, rd.randn(2, 3), rd.randn(6, 3))
    assert rd.equal(found, wanted)


@pytest.mark.parametrize("columns", [1, 5, 32, 100, 1000, 12000])
def test_rows_are_reduced_by_blocks(columns):
    wanted, found, graph = both(softmax, rd.randn(3, columns), rd.ones(3, columns))
    assert_close(found, wanted)
    assert len(graph.nests) == 1 and not graph.calls()


def test_columns_are_reduced_by_lanes():
    wanted, found, graph = both(lambda x: ((x * 2).sum(0), x.amax((0, 1)), x.tanh()), rd.randn(9, 11, 50))
    assert_close(found, wanted)
    assert not graph.calls()


def test_elements_are_picked_by_indices():
    wanted, found, graph = both(lambda x, i: x.gather(1, i).exp(), rd.randn(20, 50), rd.randint(50, (20, 7)))
    assert rd.equal(found, wanted) and len(graph.nests) == 1


def test_an_index_beyond_its_array_is_told_of_when_the_device_is_waited_for():
    x, index = rd.randn(4, 5).cuda(), rd.zeros(4, 1, dtype=rd.int64).cuda()
    graph = compile_fx_inner(make_fx(lambda x, i: x.gather(1, i) * 2)(x, index), [x, index])
    assert rd.equal(graph(x, index).cpu(), x.cpu()[:, :1] * 2)
    found = graph(x, rd.tensor([[1], [2], [5], [0]]).cuda())
    with pytest.raises(IndexError, match=r"(?s)gather = aten.gather.default.*index 5 .* dimension 1 with size 5"):
        found.cpu()


def test_a_recorded_function_replays_what_it_did():
    """Also behind a product, which is a call, and with other numbers."""

    def program(x, w):
        return (x @ w).relu().sum(1), (x * 2).exp()

    x, w = rd.randn(5, 4).cuda(), rd.randn(4, 6).cuda()
    graph = compile_fx_inner(make_fx(program)(x, w), [x, w], cudagraphs=True)
    assert graph.not_recorded == ""
    for _ in range(4):
        rd.compiler.cudagraph_mark_step_begin()
        x = rd.randn(5, 4).cuda()
        found = graph(x, w)
        assert_close([one.cpu() for one in found], [one.cpu() for one in program(x, w)])
        assert_close(found[0].cpu(), program(x, w)[0].cpu())
    rd.compiler.cudagraph_mark_step_begin()
    with pytest.raises(RuntimeError, match="in a step that is over"):
        found[0].cpu()


@pytest.mark.parametrize(
    "program, why",
    [
        (lambda x: x.add_(1), "may write to an input"),
        (lambda x: x.t().mul_(2), "may write to an input"),
        (lambda x: x.cpu() * 2, "on the CPU"),
        (lambda x: x.nonzero() * 2, "waits for numbers"),
    ],
)
def test_what_cannot_be_recorded_says_why(program, why):
    x = rd.randn(3, 3)
    there, again = x.cuda(), x.cuda()
    graph = compile_fx_inner(make_fx(program)(x.cuda()), [there], cudagraphs=True)
    assert why in graph.not_recorded
    for _ in range(3):
        assert_close(graph(there).cpu(), program(again).cpu())
