"""Compiled graphs of pointwise operators have the bits of the operators run one by one."""

import math

import pytest

import redispatch as rd
from redispatch._inductor import compile_fx_inner
from redispatch.fx import Graph, GraphModule, Interpreter
from redispatch.fx.experimental.proxy_tensor import make_fx
from tests.drawing import draw as drawn
from tests.inductor.programs import Program, is_exact, same_bits


def compared(module, *inputs):
    """Compares a compiled graph with the interpreter; returns the graph."""
    graph = compile_fx_inner(module, inputs[0])
    for one in inputs:
        wanted = Interpreter(module).run(*one)
        found = graph(*one)
        if is_exact(graph):
            for a, b in zip(found, wanted, strict=True):
                same_bits(a, b)
        else:
            rd.testing.assert_close(list(found), list(wanted), equal_nan=True)
    return graph


def made(function, *inputs):
    return compared(make_fx(function)(*inputs), inputs)


@pytest.mark.parametrize("seed", drawn(range(2000), "pointwise programs", count=30))
def test_programs_at_random(seed):
    program = Program(seed)
    if not program.steps:
        pytest.skip("nothing was possible with these inputs")
    compared(make_fx(program.function)(*program.inputs), program.inputs, program.fresh())


def test_a_view_begins_where_it_does():
    """Graphs of real tensors said that all views begin where their tensor does."""
    graph = made(lambda x: [x[1:] * 2, x[..., 2] + x[..., 1], x.select(0, 2).exp()], rd.randn(3, 4))
    assert graph.run is not None


def test_functions_in_one_loop_share_nothing_that_changes_their_bits():
    """LLVM contracted a product and a sum, unless another function shared the product."""
    x = rd.randn(3000) * 5
    for dtype in (rd.float32, rd.float64):
        ones = rd.log, rd.log2, rd.sin, rd.cos, rd.tan, rd.exp, rd.expm1, rd.erf, rd.erfc, rd.tanh, rd.sigmoid
        made(lambda x, ones=ones: [one(x) for one in ones], x.to(dtype))


def test_a_number_that_is_known_has_the_bits_of_one_that_is_not():
    """LLVM knew that the tangent's argument is 1, and computed it in another way than the machine."""
    made(lambda x: [x.ne(True).clamp(1, 3).tan(), rd.full_like(x, 1.3).tan() * x], rd.zeros(4))


def test_complex_functions_that_numba_compiles_are_calls():
    """In a loop with others they had other bits, and with a second loop beside it, no routine could be made."""
    x = rd.randn(5, dtype=rd.complex64)
    made(lambda x: [x.sinh(), rd.arange(3) * 2, x.log1p() ** 3, (x * x).abs() + x.real], x)


def test_nodes_may_have_the_names_of_helpers():
    graph = Graph()
    names = ["lo", "zeros", "i", "v0", "row", "status", "x", "x_at", "scratch", "spec_x", "float32", "routine_0"]
    nodes = [graph.placeholder(name) for name in names]
    total = nodes[0]
    for node in nodes[1:]:
        total = graph.call_function(rd.ops.aten.add.Tensor, (total, node))
    picked = graph.call_function(rd.ops.aten.embedding.default, (nodes[6], nodes[2]))
    whole = graph.call_function(rd.ops.aten.mul.Tensor, (picked, total))
    graph.output([total, whole])
    inputs = [rd.randn(3, 4) if name != "i" else rd.tensor([[1], [0], [2]]) for name in names]
    compared(GraphModule(rd.nn.Module(), graph), inputs)


def test_a_formula_is_used_where_its_result_lies_as_the_operators():
    x = rd.randn(3, 2)[:0, :1]
    made(lambda x: [rd.full_like(x, 2), rd.full_like(x.t(), 3) + 1], x)


def test_an_integer_that_a_dtype_does_not_hold_wraps():
    x = rd.randint(0, 250, (7,), dtype=rd.uint8)
    made(lambda x: [x * -1, x + 300, rd.full_like(x, -3) * x], x)


def test_zeros_without_memory_are_left_to_operators():
    made(lambda x: [rd._efficientzerotensor((3,)).clone() + x], rd.randn(3))


def test_a_constant_that_is_written_is_none_any_more():
    """`pad_sequence` and `stft` write into zeros."""

    def program(x):
        zeros, ones = rd.zeros(3, 4), rd.ones(4)
        row = zeros[1]
        before = zeros + x
        row.copy_(x[0])
        ones[1:3].mul_(5)
        return [zeros.clone(), before, row * 2, ones + x, rd.nn.utils.rnn.pad_sequence([x[0, :2], x[1]])]

    made(program, rd.randn(3, 4))


@pytest.mark.parametrize("dtype", [rd.float32, rd.float64, rd.bfloat16])
@pytest.mark.parametrize("strange", [[], [0], [511, 512], [1499], range(1500), [600, 601]])
def test_a_block_with_strange_elements_is_computed_again(dtype, strange):
    """Large angles, and arguments below 0, are computed in another way; alone, in chains, in rows that are reduced."""
    x = rd.randn(2, 1500).abs() + 0.5
    for number, at in enumerate(strange):
        x[number % 2, at] = [2e5, -3.5, math.nan, math.inf, -1e30][number % 5]
    x = x.to(dtype)

    def functions(x):
        waves = x.sin(), x.cos() * 2, x.tan(), x.lgamma(), x.digamma(), x.pow(2.5), (x.sin() + 1).pow(x).cos()
        rows = [one.amax(-1) for one in waves] + [(x.sin() - x.sin().amax(-1, keepdim=True)).cos()]
        return [*waves, *rows, x.cos().amax(0), x.t().sin().amin(1)]

    for one, other in zip(made_all(functions, x), functions(x), strict=True):
        same_bits(one, other)
    sums = lambda x: [x.sin().sum(-1), x.cos().sum(0), (x.sin() * x.sin().sum(-1, keepdim=True)).mean()]
    for one, other in zip(made_all(sums, x), sums(x), strict=True):
        rd.testing.assert_close(one, other, equal_nan=True)


def made_all(function, x):
    """The results of a compiled function."""
    return compile_fx_inner(make_fx(function)(x), [x])(x)
