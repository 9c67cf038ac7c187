"""Steps of a graph that run as one native function: products, memory, accumulators, indices, formulas."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch import nn
from redispatch._inductor import compile_fx_inner
from redispatch._inductor.compile_fx import CompiledFxGraph
from redispatch._inductor.lowering import Call
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.kernels.graphs import Routine, placed
from redispatch.nn import functional as F
from tests.drawing import at_length

INTEGERS = ["int64", "int32", "uint8"]
FLOATS = ["float32", "float64", "float16", "bfloat16"]


def compiled(program, *inputs) -> CompiledFxGraph:
    return compile_fx_inner(make_fx(program)(*inputs), inputs)


def calls(graph):
    """The names of the operators that Python calls."""
    return [str(step.node.target) for step in graph.steps if isinstance(step, Call)]


def check(program, *inputs, rtol=1e-5, atol=1e-6):
    """Compares a compiled program with itself run as it stands; returns its graph."""
    graph = compiled(program, *inputs)
    found, wanted = graph(*inputs), program(*inputs)
    assert graph.run is not None, "the graph ran by its interpreter"
    rd.testing.assert_close(found, wanted, rtol=rtol, atol=atol)
    return graph


# One function ---------------------------------------------------------------------------------------------------------


def a_training_step():
    layers = nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.GELU(), nn.Linear(5, 3))
    x, y = rd.randn(8, 6), rd.randint(3, (8,))
    names = [name for name, _ in layers.named_parameters()]

    def step(*values):
        leaves = [one.detach().requires_grad_() for one in values]
        loss = F.cross_entropy(rd.func.functional_call(layers, dict(zip(names, leaves, strict=True)), (x,)), y)
        gradients = rd.autograd.grad(loss, leaves)
        return [loss.detach(), *(one.detach() - 0.1 * g for one, g in zip(leaves, gradients, strict=True))]

    return step, [one.detach() for one in layers.parameters()]


def test_a_training_step_is_one_function():
    step, values = a_training_step()
    graph = check(step, *values)
    assert calls(graph) == []
    assert len(graph.groups) == 1 and [type(one) for one in graph.kernels()] == [Routine]
    assert "sgemm(" in graph.source()
    assert "redispatch.sgemm" in graph.assembly()


def test_results_do_not_share_memory_with_each_other_or_a_former_call():
    step, values = a_training_step()
    graph = compiled(step, *values)
    first = graph(*values)
    kept = [one.clone() for one in first]
    graph(*[one * 2 for one in values])
    assert all(map(rd.equal, first, kept))
    assert len({one.untyped_storage().data_ptr() for one in first}) == len(first)


def test_what_an_operator_of_python_takes_is_a_tensor():
    def program(x, w):
        return (rd.linalg.qr((x @ w).relu() * 2)[1] + 1) @ w

    graph = check(program, rd.randn(5, 5), rd.randn(5, 5))
    assert calls(graph)[0] == "aten.linalg_qr.default"
    assert len(graph.groups) == 1 + len(calls(graph)) + 1


# Memory ---------------------------------------------------------------------------------------------------------------

LIVES = st.tuples(
    st.sampled_from(["float32", "float16", "bool"]), st.integers(0, 300), st.integers(0, 9), st.integers(0, 9)
)


@at_length(300)
@given(st.lists(LIVES, max_size=12))
def test_what_is_there_at_the_same_time_lies_apart(lives):
    wanted = {str(k): (dtype, size, min(a, b), max(a, b)) for k, (dtype, size, a, b) in enumerate(lives)}
    places, memories = placed(wanted)
    assert places.keys() == wanted.keys()
    for name, (_, size, first, last) in wanted.items():
        place = places[name]
        assert place.offset + size <= memories[place.memory][1]
        for other, (_, size_, first_, last_) in wanted.items():
            together = first <= last_ and first_ <= last and place.memory == places[other].memory
            if name < other and together and size and size_:
                assert place.offset + size <= places[other].offset or places[other].offset + size_ <= place.offset


def test_a_place_is_used_again():
    def program(x):
        for _ in range(6):
            x = (x @ x).tanh()
        return x

    graph = check(program, rd.randn(32, 32) / 6)
    assert "scratch(2048, 'float32')" in graph.text  # two matrices, in turn


# Products -------------------------------------------------------------------------------------------------------------

MATRICES = {
    "dense": lambda n, m: rd.randn(n, m),
    "transposed": lambda n, m: rd.randn(m, n).t(),
    "rows apart": lambda n, m: rd.randn(n, m + 3)[:, 1 : m + 1],
    "columns apart": lambda n, m: rd.randn(m + 3, n).t()[:, 2 : m + 2],
    "every second": lambda n, m: rd.randn(n, 2 * m)[:, ::2],
    "expanded": lambda n, m: rd.randn(1, m).expand(n, m),
    "pairs": lambda n, m: rd.randn(3, n, m),
    "pairs, transposed": lambda n, m: rd.randn(3, m, n).transpose(1, 2),
    "one for all": lambda n, m: rd.randn(1, n, m).expand(3, n, m),
}
SIZES = st.sampled_from([1, 2, 5, 17])


@at_length(100)
@given(st.sampled_from([*MATRICES]), st.sampled_from([*MATRICES]), SIZES, SIZES, SIZES, st.sampled_from(FLOATS))
def test_products_of_matrices_that_lie_anyhow(first, second, n, k, m, dtype):
    rd.manual_seed(n + 10 * k + 100 * m)
    a, b = MATRICES[first](n, k).to(getattr(rd, dtype)), MATRICES[second](k, m).to(getattr(rd, dtype))
    if a.dim() != b.dim():
        return
    loose = {"float16": 1e-2, "bfloat16": 6e-2}.get(dtype, 1e-5)
    check(lambda a, b: (a + 0 if n == 1 else a).matmul(b).relu(), a, b, rtol=loose, atol=loose)


def test_a_large_product_is_a_call_of_its_operator():
    graph = check(lambda a, b: (a @ b) + 1, rd.randn(256, 300), rd.randn(300, 256), rtol=1e-4, atol=1e-4)
    assert calls(graph) == ["aten.mm.default"]


# Accumulators ---------------------------------------------------------------------------------------------------------

REDUCED = {
    "sum": lambda x, dims: x.sum(dims),
    "mean": lambda x, dims: x.double().mean(dims, keepdim=True),
    "amax": lambda x, dims: x.amax(dims),
    "sum and more": lambda x, dims: (x * x).sum(dims, keepdim=True) + x,
    "two": lambda x, dims: (x.sum(dims), (x + 1).sum(dims), x.sum(-1)),
}


@at_length(100)
@given(
    st.sampled_from([*REDUCED]),
    st.sampled_from([(0,), (1,), (0, 1), (0, 2), (-1,)]),
    st.sampled_from([(3, 4, 5), (600, 2, 7), (1, 3, 2), (2, 1, 1), (2, 700, 3)]),
    st.sampled_from([*FLOATS, *INTEGERS]),
    st.sampled_from([lambda x: x, lambda x: x.transpose(0, 2).contiguous().transpose(0, 2), lambda x: x[:, ::2]]),
)
def test_reductions_of_any_dimensions(name, dims, shape, dtype, layout):
    rd.manual_seed(len(name) + sum(shape))
    x = layout((rd.randn(shape) * 3).to(getattr(rd, dtype)))
    loose = {"float16": 1e-2, "bfloat16": 6e-2}.get(dtype, 1e-4)
    check(lambda x: REDUCED[name](x, dims), x, rtol=loose, atol=loose * 10)


def test_sums_of_columns_are_made_as_elements_are():
    graph = check(lambda x: (x.relu().sum(0) * 2, x.relu()), rd.randn(40, 30))
    first, _ = [one for one in graph.nests.values()]
    assert len(first.accumulates) == 1 and len(first.outputs) == 2


# Indices --------------------------------------------------------------------------------------------------------------


def test_elements_are_read_by_index():
    w, at = rd.randn(10, 6), rd.randint(10, (4, 3))
    assert calls(check(lambda w, at: F.embedding(at, w) * 2, w, at)) == []
    assert calls(check(lambda w, at: F.embedding(at, w.t()[:6].t()) * 2, w, at.t())) == []
    x, index = rd.randn(4, 5, 6), rd.randint(3, (3, 5, 6))
    for dim in (0, 1, -1):
        assert calls(check(lambda x, index, dim=dim: x.sin().gather(dim, index).exp(), x, index)) == []


def test_an_element_that_is_read_by_index_is_read_again_by_a_later_loop():
    x, at = rd.randn(1, 7), rd.randint(7, (1, 7))
    check(lambda x, at: [y := x.gather(1, at), y - y.amax(), x * 2], x, at)


# Operators that wait for who wants their value ------------------------------------------------------------------------


def nests(graph):
    """The loops, by the shape that they walk and the dimensions that their rows reduce."""
    return [(nest.sizes, nest.columns) for nest in graph.nests.values()]


def test_rows_and_what_is_computed_between_them_are_one_nest():
    """A factor for each row, of two reductions and a tensor of another shape, had a nest of its own."""
    x, scale = rd.randn(6, 50), rd.randn(6)

    def program(x, scale):
        factor = scale.exp() / x.logsumexp(1)
        return x.softmax(1) * factor.unsqueeze(1) - (x * scale.unsqueeze(1)).sum(1, keepdim=True)

    graph = check(program, x, scale)
    assert nests(graph) == [((6, 50), 1)] and graph.source().count("(exp(") == 2  # softmax and logsumexp have one
    at = rd.randint(50, (6,))
    loss = compiled(lambda x: rd.autograd.grad(F.cross_entropy(y := x.detach().requires_grad_(), at), y)[0], x)
    assert nests(loss).count(((6, 50), 1)) == 1 and loss(x).shape == x.shape


def test_what_has_no_place_in_a_row_has_a_nest_before_it():
    x, y = rd.randn(6, 50), rd.randn(50)
    assert ((6, 50), 1) in nests(check(lambda x, y: x.softmax(1) * (y.sum() + y.exp()), x, y))
    check(lambda x, y: [x.exp().t() @ x, x.exp().sum(0) * y, x.sum(), x.softmax(0)], x, y, rtol=1e-4)


def test_a_write_comes_behind_what_was_computed_before_it():
    def program(x):
        y = x * 2
        x.add_(1)
        return y + x.sum()

    x = rd.randn(5)
    wanted = program(x.clone())
    assert rd.allclose(compiled(program, x.clone())(x.clone()), wanted)


@pytest.mark.parametrize("index", [10, -1, 1 << 40, -(1 << 62)])
def test_an_index_out_of_range_reads_nothing_and_is_named(index):
    w, at = rd.randn(10, 6), rd.randint(10, (4,))
    graph = compiled(lambda w, at: F.embedding(at, w) * 2, w, at)
    wrong = at.clone()
    wrong[2] = index
    with pytest.raises(IndexError, match=rf"index {index} is out of bounds for dimension 0 with size 10\n *embedding"):
        graph(w, wrong)
    assert rd.equal(graph(w, at), F.embedding(at, w) * 2)


# Formulas -------------------------------------------------------------------------------------------------------------


def with_gradients(function, *inputs):
    """A program that returns a function's value and the gradients of its floating-point inputs."""

    def program(*given):
        leaves = [one.detach().requires_grad_() if one.is_floating_point() else one for one in given]
        result = function(*leaves)
        wanted = [one for one in leaves if one.requires_grad]
        return [result.detach(), *rd.autograd.grad(result.sin().sum(), wanted)]

    return program, inputs


LABELS = rd.tensor([1, 0, -100, 4, 2, 2])
FORMULAS = {
    "softmax": lambda: with_gradients(lambda x: F.softmax(x, 0), rd.randn(6, 5)),
    "log_softmax": lambda: with_gradients(lambda x: F.log_softmax(x, -1), rd.randn(2, 6, 5)),
    "log_softmax of halves": lambda: with_gradients(lambda x: F.log_softmax(x, 1), rd.randn(6, 5).bfloat16()),
    "cross entropy": lambda: with_gradients(lambda x: F.cross_entropy(x, LABELS), rd.randn(6, 5)),
    "cross entropy, sum": lambda: with_gradients(lambda x: F.cross_entropy(x, LABELS, reduction="sum"), rd.randn(6, 5)),
    "cross entropy, each": lambda: with_gradients(
        lambda x: F.cross_entropy(x, LABELS, reduction="none"), rd.randn(6, 5)
    ),
    "cross entropy, smooth": lambda: with_gradients(
        lambda x: F.cross_entropy(x, LABELS, label_smoothing=0.1), rd.randn(6, 5)
    ),
    "cross entropy, weights": lambda: with_gradients(
        lambda x: F.cross_entropy(x, LABELS, weight=rd.arange(5.0) + 1), rd.randn(6, 5)
    ),
    "layer norm": lambda: with_gradients(
        lambda x, w, b: F.layer_norm(x, (5,), w, b), rd.randn(3, 6, 5), rd.randn(5), rd.randn(5)
    ),
    "layer norm, plain": lambda: with_gradients(lambda x: F.layer_norm(x, (6, 5)), rd.randn(3, 6, 5)),
    "linear": lambda: with_gradients(F.linear, rd.randn(6, 5), rd.randn(4, 5), rd.randn(4)),
    "addmm, scaled": lambda: with_gradients(
        lambda b, x, y: rd.addmm(b, x, y, alpha=2, beta=0.5), rd.randn(4), rd.randn(6, 5), rd.randn(5, 4)
    ),
    "logsumexp": lambda: with_gradients(lambda x: x.logsumexp(1), rd.randn(6, 5)),
    "logsumexp of infinities": lambda: (
        lambda x: x.logsumexp((0, 1), keepdim=True),
        [rd.tensor([[-math.inf, -math.inf], [math.inf, 1.0]])],
    ),
    "numbers": lambda: (
        lambda x: (x.add(2, alpha=3), x.sub(1.5), x.mul(2), x.div(4), x.copysign(-1)),
        [rd.randn(6, 5)],
    ),
    "masked_fill": lambda: with_gradients(lambda x: x.masked_fill(x > 0, -2.5), rd.randn(6, 5)),
    "mse": lambda: with_gradients(F.mse_loss, rd.randn(6, 5), rd.randn(6, 5)),
    "smooth l1": lambda: with_gradients(F.smooth_l1_loss, rd.randn(6, 5), rd.randn(6, 5)),
    "ones_like": lambda: (lambda x: (rd.ones_like(x) + x, rd.full_like(x, 3).long()), [rd.randn(3, 4)]),
    "arange": lambda: (lambda x: (rd.arange(4) * x, rd.arange(4), rd.arange(1, 5) + x), [rd.randn(3, 4)]),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_their_operators(name):
    program, inputs = FORMULAS[name]()
    loose = 2e-2 if "halves" in name else 1e-5
    check(program, *inputs, rtol=loose, atol=loose)


def test_a_formulas_result_lies_as_its_operators():
    """A softmax of a transposed tensor is contiguous; the formula's lay as its input."""
    x = rd.randn(2, 3, 4)
    for program in (lambda x: x.t().softmax(1), lambda x: x.t().log_softmax(0), lambda x: x.t().logsumexp(1) * 2):
        graph = check(program, x[:, :, 0])
        assert graph(x[:, :, 0]).stride() == program(x[:, :, 0]).stride()


def test_the_graph_that_was_given_stays_as_it_is():
    module = make_fx(lambda b, x, y: rd.addmm(b, x, y))(rd.randn(4), rd.randn(6, 5), rd.randn(5, 4))
    before = str(module.graph)
    compile_fx_inner(module, [rd.randn(4), rd.randn(6, 5), rd.randn(5, 4)])
    assert str(module.graph) == before and "addmm" in before


def test_nests_that_are_alike_share_their_kernel():
    """The layers of a model are such."""

    def program(x):
        for _ in range(3):
            x = (x.t().contiguous().t() * 1.5).tanh().sum(0, keepdim=True) + rd.linalg.inv(x)
        return x

    graph = check(program, rd.eye(300) * 3, rtol=1e-4, atol=1e-4)
    kernels = [nest.kernel() for nest in graph.nests.values()]
    texts = {kernel.source() for kernel in kernels}
    assert len(texts) < len(kernels)
    entries = {id(kernel.entry(*nest.signature())) for nest, kernel in zip(graph.nests.values(), kernels, strict=True)}
    assert len(entries) == len(texts)
