"""Graphs that are compiled for a device: their kernels, beside the CPU's, on the simulator."""

import random

import numpy as np
import pytest

import redispatch as rd
from redispatch._inductor import compile_fx_inner
from redispatch._inductor.stages import stages_of, watched
from redispatch.fx import Interpreter
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.kernels.cuda import compiler
from redispatch.testing import assert_close
from redispatch.utils import _pytree as pytree

from ..drawing import draw as drawn
from ..inductor.test_nests import a_program, same
from .test_mutants import OUT, Bench, barrier, caught, load, shuffle, store, surviving

f = rd.nn.functional
pytestmark = pytest.mark.usefixtures("simulator")


def both(function, *inputs):
    """The graph's results on the CPU, on the device, and the function on the device. Both graphs are compiled."""
    there = pytree.tree_map(lambda x: x.cuda(), inputs)
    trace = make_fx(function, tracing_mode="fake")
    here, graph = (compile_fx_inner(trace(*given), given) for given in (inputs, there))
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


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "bool", "uint8", "complex64"])
def test_dense_operands_are_read_and_written_sixteen_bytes_at_once(dtype):
    """A thread has one element where addresses are not aligned, and the results are the same."""
    dtype = getattr(rd, dtype)
    x = (rd.randn(4, 32, dtype=rd.complex64) * 3).to(dtype) if dtype.is_complex else (rd.randn(4, 32) * 3).to(dtype)
    program = (lambda x: (x != 0, x.clone(), x == x)) if dtype is rd.bool else (lambda x: (x + x, x * x, x != 0))
    wanted, found, graph = both(program, x)
    assert all(map(rd.equal, found, wanted))
    text = graph.assembly()
    assert "ld.global.v" in text and "st.global.v" in text
    there = rd.cat([x.reshape(-1)[:1], x.reshape(-1)]).cuda()[1:].view(4, 32)
    assert all(map(rd.equal, (one.cpu() for one in graph(there)), wanted))


def test_rows_are_walked_by_vectors():
    x, mask = rd.randn(6, 256), rd.rand(256)
    wanted, found, graph = both(softmax, x, mask)
    assert_close(found, wanted)
    assert "ld.global.v4" in graph.assembly() and "st.shared.v4" in graph.assembly()
    wanted, found, graph = both(softmax, x.bfloat16(), mask.bfloat16())
    assert_close(found, wanted, atol=1e-2, rtol=1e-2)


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


# --- whole programs ---------------------------------------------------------------------------------------------------


def layer_norm(w, b, x, y):
    return (f.layer_norm(x, w.shape, w, b) * y).sum()


def cross_entropy(x, y):
    return f.cross_entropy(x, y) + 1e-4 * rd.logsumexp(x, 1).square().mean()


def perceptron(a, b, c, d, x, y):
    return f.cross_entropy(f.linear(f.relu(f.linear(x, a, b)), c, d), y)


def convolutions(a, b, c, d, x, y):
    h = f.max_pool2d(f.relu(f.conv2d(x, a, padding=1)), 2)
    h = f.max_pool2d(f.relu(f.conv2d(h, b, padding=1)), 2)
    return f.cross_entropy(f.linear(h.flatten(1), c, d), y)


def transformer(tokens, places, *given):
    *blocks, ids, targets = given
    batch, length, width, heads = *ids.shape, tokens.shape[1], 2
    x = f.embedding(ids, tokens) + places
    for layer in range(0, len(blocks), 8):
        g, h, qkv, out, g2, h2, up, down = blocks[layer : layer + 8]
        parts = f.linear(f.layer_norm(x, (width,), g, h), qkv).view(batch, length, 3, heads, width // heads)
        q, k, v = (parts[:, :, i].transpose(1, 2) for i in range(3))
        mixed = f.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + f.linear(mixed.transpose(1, 2).reshape(batch, length, width), out)
        x = x + f.linear(f.gelu(f.linear(f.layer_norm(x, (width,), g2, h2), up)), down)
    return f.cross_entropy(f.linear(x, tokens).view(targets.numel(), -1), targets)


# loss, the shapes of its weights, the other inputs, and what is called
PROGRAMS = [
    (layer_norm, [(24,), (24,), (12, 24)], lambda: [rd.randn(12, 24)], []),
    (cross_entropy, [(6, 70)], lambda: [rd.randint(70, (6,))], []),
    (perceptron, [(12, 8), (12,), (5, 12), (5,)], lambda: [rd.randn(9, 8), rd.randint(5, (9,))], ["mm"]),
    (
        convolutions,
        [(3, 1, 3, 3), (4, 3, 3, 3), (5, 16), (5,)],
        lambda: [rd.randn(2, 1, 8, 8), rd.randint(5, (2,))],
        ["convolution", "convolution_backward", "max_pool2d_with_indices", "max_pool2d_with_indices_backward", "mm"],
    ),
    (
        transformer,
        [(20, 8), (6, 8), *[(8,), (8,), (24, 8), (8, 8), (8,), (8,), (32, 8), (8, 32)] * 2],
        lambda: [rd.randint(20, (2, 6)), rd.randint(20, (12,))],
        None,
    ),
]


@pytest.mark.parametrize("loss, shapes, others, calls", PROGRAMS, ids=lambda one: getattr(one, "__name__", ""))
def test_steps_of_training_are_those_of_the_cpu(simulator, loss, shapes, others, calls):
    """Forward, backward and the new weights, in fused kernels; products, convolutions and attention are called. All of
    them run, and the simulator would raise for an access out of bounds, one to what nobody wrote, and a race."""
    weights, data = [rd.randn(shape) / 3 for shape in shapes], others()

    def step(*given):
        leaves, rest = [one.detach().requires_grad_() for one in given[: len(shapes)]], given[len(shapes) :]
        gradients = rd.autograd.grad(loss(*leaves, *rest), leaves)
        return [leaf.detach() - 0.1 * one for leaf, one in zip(leaves, gradients, strict=True)]

    before = len(simulator.loaded)
    wanted, found, graph = both(step, *weights, *data)
    assert_close(found, wanted)
    assert {nest.name for nest in graph.nests.values()} <= {one.name for one in simulator.loaded[before:]}
    called = {one.partition(" = aten.")[2].partition(".")[0] for one in graph.calls()}
    assert calls is None or called == set(calls)


FUSED = {
    "rows": (lambda x, i: x - x.amax(1, keepdim=True) + x.sum(1, keepdim=True), ("barrier", "store", "load")),
    "columns": (lambda x, i: (x * 2).sum(0), ("barrier", "store", "load")),
    "elements": (lambda x, which: x.gather(1, which) * 2, ("store", "load")),
}


@pytest.mark.parametrize("name", FUSED)
def test_every_change_of_a_fused_kernel_is_caught(name):  # 1 to 5 s: some ten kernels are run
    """So the steps above would not pass, were a kernel wrong."""
    program, kinds = FUSED[name]
    x = rd.arange(900.0).reshape(*(30, 30) if name == "columns" else (3, 300)) % 17
    index = rd.arange(21).reshape(3, 7) * 4
    there = [x.cuda(), index.cuda()]
    graph = compile_fx_inner(make_fx(program, tracing_mode="fake")(*there), there)
    nest = next(iter(graph.nests.values()))
    given = {"x_1": x.numpy(), "which_1": index.numpy()}
    out = program(x, index).numpy()

    def run(code):
        bench = Bench(code)
        told = [bench.given(given[array.name]) if array in nest.inputs else OUT for array in nest.arrays]
        if nest.picks:
            told += [bench.given(np.zeros(8, np.int64)), 1, 1]
        yield bench.run(nest.name, nest.blocks, nest.threads, out, *told), out

    code = compiler.ptx(nest.source_on_device())
    assert caught(run, code) is None
    survivors, found = surviving(name, run, code, (barrier, shuffle, store, load))
    # In front of the first reduction nothing is in the memory yet for which its barrier waits.
    assert [kind for kind, *_ in survivors] == ["barrier"] * (name == "rows")
    assert set(found) == set(kinds)


@pytest.mark.parametrize("seed", sorted({152, *drawn(range(300), "nests on a device", count=6)}))
@pytest.mark.parametrize("reduces", [False, True])
def test_random_programs_are_those_of_the_cpu(seed, reduces):
    program, inputs = a_program(random.Random(seed + 10_000 * reduces), reduces)
    wanted = Interpreter(make_fx(program)(*inputs)).run(*inputs)
    there = [laid_alike(x) for x in inputs]
    found = compile_fx_inner(make_fx(program, tracing_mode="fake")(*there), there)(*there)
    assert [one.stride() for one in found] == [one.stride() for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        same(flat(one.cpu()), flat(other), exact=not reduces)


def flat(x):
    """The numbers alone, however they lay."""
    return rd.empty(x.numel(), dtype=x.dtype).copy_(x.reshape(-1))


def laid_alike(x):
    """The tensor on the device, with the strides that it has."""
    numbers = rd.as_strided(x, (x.untyped_storage().nbytes() // x.dtype.itemsize,), (1,), 0)
    return numbers.cuda().as_strided(x.shape, x.stride(), x.storage_offset())


# --- graphs of CUDA ---------------------------------------------------------------------------------------------------


def test_a_recorded_function_replays_what_it_did():
    """It does so behind a product, which is a call, and with other numbers."""

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


def test_names_of_the_program_are_kept_apart_from_those_of_kernels():
    def program(cuda, j, at, error, warp, row, i_0, v0_0):
        located = (cuda + j * at - error).tanh()
        return located + warp, (located * row).sum(1), (located * i_0).sum(0) + v0_0

    wanted, found, graph = both(program, *[rd.randn(4, 8) for _ in range(7)], rd.randn(8))
    assert_close(found, wanted)
    assert not graph.calls()


def test_functions_of_complex_numbers_are_calls():
    """Those that the CPU computes by numpy's loops have no bits that a fused kernel could have, too."""
    wanted, found, graph = both(lambda z: (z * z + 1, (z * 2).exp()), rd.randn(5, dtype=rd.complex64))
    assert rd.equal(found[0], wanted[0]) and graph.calls() == ["exp = aten.exp.default"]
    assert_close(found[1], wanted[1])


@pytest.mark.parametrize("how", [{"mode": "reduce-overhead"}, {"options": {"triton.cudagraphs": True}}, {}], ids=str)
def test_compile_has_both_passes_recorded_where_that_is_asked_for(how):
    def loss(x, w):
        return ((x @ w).tanh() ** 2).mean()

    x, w = rd.randn(6, 5), rd.randn(5, 3)
    with watched() as graphs:
        there, step = w.cuda().requires_grad_(), rd.compile(loss, fullgraph=True, **how)
        for _ in range(4):
            rd.compiler.cudagraph_mark_step_begin()
            here = there.detach().cpu().requires_grad_()
            for one, call, given in ((there, step, x.cuda()), (here, loss, x)):
                one.grad = None
                call(given, one).backward()
            assert_close(there.grad.cpu(), here.grad)
            there = (there.detach() - there.grad).requires_grad_()
    assert [graph.not_recorded for graph in graphs] == ["" if how else "nobody asked for that"] * 2


def test_stages_of_a_graph_for_a_device_end_in_ptx():
    x = rd.randn(4, 8)
    with watched() as graphs:
        both(lambda x: (x - x.amax(1, keepdim=True)).exp(), x)
    stages = {one.name: one.text for one in stages_of(graphs[1:])}
    assert list(stages)[-3:] == [f"fused_amax_sub_exp_0: {one}" for one in ("loops", "LLVM", "assembly")]
    loops, ir, assembly = list(stages.values())[-3:]
    assert "cuda.blockIdx.x" in loops and "cuda.threadIdx.x" in loops
    assert "define ptx_kernel void @kernel(" in ir and "shfl.sync" in assembly
