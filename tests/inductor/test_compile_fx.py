"""Graphs that are compiled: their text, what they share with the interpreter, and when that runs in their place."""

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch._functorch.aot_autograd import aot_function
from redispatch._inductor import compile_fx_inner
from redispatch._inductor.lowering import Multiplying, Nesting
from redispatch.dispatch import pytree
from redispatch.dispatch.tensor import metadata_of
from redispatch.fx import Interpreter
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.testing import Maker, op_db
from redispatch.utils._python_dispatch import TorchDispatchMode
from tests import drawing
from tests.drawing import draw
from tests.inductor.programs import is_exact, same_bits


def compiled(function, *inputs):
    return compile_fx_inner(make_fx(function)(*inputs), inputs)


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def test_operators_on_rows_are_loops_over_each_row():
    graph = compiled(softmax, rd.randn(3, 1000))
    assert_expected_inline(
        graph.source(),
        """\
def run(x_1):
    div = empty_from(spec_div)
    fused_amax_sub_exp_sum_div_0(div._array, div._offset, x_1._array, x_1._offset)
    return div


def fused_amax_sub_exp_sum_div_0(lo, hi, div, div_at, x_1, x_1_at, kept0):
    for row in range(lo, hi):
        div_row = div_at + row * 1000
        x_1_row = x_1_at + row * 1000
        acc1 = start1
        for i in range(0, 1000):
            v0 = x_1[uint64(x_1_row + i)]
            acc1 = maximum(acc1, v0)
        r0 = to_float32(_keep(acc1, 1000))
        acc4 = start4
        for block in range(0, 1000, 512):
            part4 = to_float32(start4)
            for i in range(block, min(block + 512, 1000)):
                v0 = x_1[uint64(x_1_row + i)]
                v2 = to_float32(sub_plain(v0, r0))
                v3 = to_float32(exp(v2))
                kept0[uint64(i)] = v3
                part4 = _add(part4, v3)
            acc4 = _add(acc4, to_float64(part4))
        r1 = to_float32(_keep(acc4, 1000))
        for i in range(0, 1000):
            v3 = kept0[uint64(i)]
            v5 = to_float32(div_elements(v3, r1))
            div[uint64(div_row + i)] = v5
""",
    )


def test_what_is_returned_twice_or_viewed_is_what_the_graph_says():
    x = rd.randn(4, 5)
    graph = compiled(lambda x: ((y := x * 2), y.t(), y[1:], x, x.view(20), y), x)
    found = graph(x)
    assert all(map(rd.equal, found, Interpreter(graph.module).run(x)))
    assert found[0] is found[5] and found[3] is x
    assert found[1].data_ptr() == found[0].data_ptr() and found[4].data_ptr() == x.data_ptr()


def test_a_view_is_read_where_it_lies():
    graph = compiled(lambda x, y: (x.t() + y[::2, 1:3]).expand(2, 3, 2) * 2, rd.randn(2, 3), rd.randn(6, 3))
    assert [type(step) for step in graph.steps] == [
        Nesting,
        Nesting,
    ]  # the second reads thrice what the first made


def test_an_operator_that_waits_for_a_nest_does_not_join_it():
    """The product needs all of the first sum, and the second sum needs the product."""

    def program(x):
        a = x + 1
        return a + (a @ a)

    graph = compiled(program, rd.randn(4, 4))
    assert [type(step) for step in graph.steps] == [Nesting, Multiplying, Nesting]
    x = rd.randn(4, 4)
    assert rd.allclose(graph(x), program(x))


def test_writes_and_random_numbers_keep_their_order():
    def program(x, y):
        a = x * 2
        y.copy_(a)
        return a + rd.rand(4), y + x, rd.rand(4)

    x, y, z = rd.randn(4), rd.zeros(4), rd.zeros(4)
    graph = compiled(program, x, y.clone())
    rd.manual_seed(0)
    expected = program(x, y)
    rd.manual_seed(0)
    assert all(map(rd.equal, graph(x, z), expected)) and rd.equal(y, z)


@pytest.mark.parametrize(
    "inputs",
    [
        (rd.randn(5, 3),),
        (rd.randn(3, 5).t(),),
        (rd.randn(3, 5, dtype=rd.float64),),
        (rd.randn(3, 5, requires_grad=True),),
        (rd.empty(3, 5, device="meta"),),
    ],
)
def test_other_inputs_go_to_the_interpreter(inputs):
    graph = compiled(softmax, rd.randn(3, 5))
    found = graph(*inputs)
    expected = softmax(*inputs)
    assert graph.run is None and found.requires_grad == expected.requires_grad and found.shape == expected.shape
    if not expected.is_meta:
        assert rd.equal(found, expected)


def test_inputs_without_memory_are_refused_as_ever():
    x = rd.randn(3, 5)
    graph = compiled(softmax, x)
    graph(x)
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="out of bounds for storage of 0 elements"):
        graph(x)
    with pytest.raises(RuntimeError, match="positional"):
        graph()


def test_who_looks_sees_the_operators():
    x, seen = rd.randn(3, 5), []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    graph = compiled(softmax, x)
    with Log():
        graph(x)
    assert seen == ["amax", "sub", "exp", "sum", "div"]


@pytest.mark.parametrize("threads", [1, 2])
def test_large_ones_are_shared_out_among_threads(threads):
    x = rd.randn(700, 900)
    graph = compiled(lambda x: (softmax(x), (x.t() * 2).tanh()), x)
    before = rd.get_num_threads()
    rd.set_num_threads(threads)
    try:
        rows, turned = graph(x)
    finally:
        rd.set_num_threads(before)
    rd.testing.assert_close(rows, softmax(x))
    assert rd.equal(turned, (x.t() * 2).tanh())


def test_training_through_compiled_graphs_is_training():
    """Forward and backward, each in few loops."""
    weights = [rd.randn(16, 8) / 4, rd.randn(16), rd.randn(4, 16) / 4]
    x, y = rd.randn(32, 8), rd.randint(4, (32,))

    def loss(w, b, v, x, y):
        hidden = rd.nn.functional.gelu(rd.nn.functional.linear(x, w, b))
        return rd.nn.functional.cross_entropy(rd.nn.functional.linear(hidden, v), y) + (w * w).sum() * 0.1

    found = []
    for function in (loss, aot_function(loss, fw_compiler=compile_fx_inner, bw_compiler=compile_fx_inner)):
        leaves = [one.clone().requires_grad_() for one in weights]
        value = function(*leaves, x, y)
        value.backward()
        found.append([value.detach(), *(leaf.grad for leaf in leaves)])
    rd.testing.assert_close(found[0], found[1])


def parted(info, sample):
    """A program of a sample's operator between two that may share its loops, and the program's tensors."""
    call, tensors = sample.parted()

    def program(*tensors):
        given = call(*[one.neg() if one.dtype.is_floating_point else one.clone() for one in tensors])
        found = info.op(*given.arguments, **given.kwargs)
        return [one.clone() for one in pytree.tree_leaves(found) if isinstance(one, rd.Tensor)]

    return program, tensors


def compared(info, dtype, thorough):
    """Compares the samples of an operator, compiled, with the interpreter; returns how many have a graph."""
    count = 0
    for sample in info.samples(Maker(dtype, thorough=thorough)):
        program, tensors = parted(info, sample)
        rd.manual_seed(0)
        try:
            module = make_fx(program)(*tensors)
        except (RuntimeError, SyntaxError):  # a size that depends on numbers; `random_.from`, as Python's `from`
            continue
        graph = compile_fx_inner(module, tensors)
        found = []
        for run in (graph, Interpreter(module).run):
            rd.manual_seed(0)
            found.append(run(*tensors))
        if "empty" in info.name:  # whose numbers are any
            assert [metadata_of(one) for one in found[0]] == [metadata_of(one) for one in found[1]]
        elif is_exact(graph):
            for one, other in zip(*found, strict=True):
                same_bits(one, other)
        else:
            rd.testing.assert_close(*found, equal_nan=True)
        count += 1
    return count


@pytest.mark.parametrize("info", draw(op_db.op_db, "compiled operators", count=40), ids=str)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of arguments that are no probabilities any more
def test_each_operator_as_a_graph(info):
    dtypes = draw(info.dtypes, "dtypes of compiled operators", info)
    if not sum([compared(info, dtype, drawing.everything) for dtype in dict.fromkeys([info.main_dtype, *dtypes])]):
        pytest.skip("it cannot be traced")
