"""Graphs ahead whose sizes are symbols (frontend/_functorch/sizes.py) do what is done untraced, for all sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch import nn
from redispatch._dynamo import mark_dynamic
from redispatch._functorch.aot_autograd import (
    aot_function,
    aot_module,
    default_partition,
    min_cut_rematerialization_partition,
    nop,
)
from redispatch.compiler import nested_compile_region
from redispatch.dispatch.pytree import tree_leaves
from redispatch.nn.attention.flex_attention import flex_attention
from redispatch.utils.checkpoint import checkpoint
from tests.drawing import at_length, draw, generator
from tests.fx.layers import LAYERS, NO_LAYERS, layer, of_size
from tests.fx.random_programs import define_operators, programs
from tests.fx.test_aot_autograd import check


@pytest.fixture(scope="module", autouse=True)
def operators():
    library = define_operators()
    yield
    library._destroy()


class Counting:
    """A compiler that counts its graphs."""

    def __init__(self):
        self.graphs = []

    def __call__(self, module, inputs):
        self.graphs.append(module)
        return module


def outcome(run, module, inputs):
    """(results, gradients), whose numbers are drawn from one seed."""
    rd.manual_seed(1)
    module.zero_grad()
    found = [one for one in tree_leaves(run(*inputs)) if isinstance(one, rd.Tensor)]
    wanting = [one for one in found if one.requires_grad]
    if wanting:
        sum((one * one).sum() for one in wanting).backward()
    gradients = [one.grad for one in [*inputs, *module.parameters()]]
    return [*found, *(one for one in gradients if one is not None and one.any())]


@pytest.mark.parametrize("name", draw(sorted(LAYERS), "layers of all sizes", count=25))
def test_a_layer_has_one_graph_for_one_example_and_one_for_all_other_numbers(name):
    (untraced, _), (traced, _) = layer(name), layer(name)
    compiler = Counting()
    partition = generator("partition", name).choice([default_partition, min_cut_rematerialization_partition])
    run = aot_module(traced, compiler, nop, partition_fn=partition, dynamic=True)
    sizes = draw(range(2, 65), "sizes", name, count=3)
    for size in [*generator("order", name).sample(sizes, len(sizes)), 1, sizes[0]]:
        try:
            wanted = outcome(untraced, untraced, of_size(name, size))
        except ValueError as refused:  # of one example there is no variance
            with pytest.raises(ValueError, match=str(refused)[:20]):
                outcome(run, traced, of_size(name, size))
            for one, other in zip(traced.buffers(), untraced.buffers(), strict=True):
                one.copy_(other)  # which a program that raised had written
            continue
        found = outcome(run, traced, of_size(name, size))
        assert len(found) == len(wanted)
        for one, other in zip([*found, *traced.buffers()], [*wanted, *untraced.buffers()], strict=True):
            rd.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert len(compiler.graphs) <= 2


def test_all_layers_are_among_these():
    classes = {name for name, one in vars(nn).items() if isinstance(one, type) and issubclass(one, nn.Module)}
    lazy = {name for name in classes if name.startswith("Lazy")}
    assert {name.removeprefix("Lazy") for name in lazy} <= LAYERS.keys()
    assert classes - lazy == LAYERS.keys() | NO_LAYERS.keys()


@at_length(1000)
@given(programs(), st.sampled_from([default_partition, min_cut_rematerialization_partition]))
def test_programs_do_what_they_do_untraced(program, partition):
    check(program, partition, dynamic=True)


def test_a_size_is_a_number_until_it_changes():
    compiler = Counting()
    f = aot_function(lambda x: (x * 2).sum(0), compiler, dynamic=None)
    shapes = [(5, 4), (7, 4), (9, 4), (9, 3), (2, 8), (5, 4)]
    count = []
    for shape in shapes:
        x = rd.randn(shape)
        assert f(x).tolist() == (x * 2).sum(0).tolist()
        count.append(len(compiler.graphs))
    assert count == [1, 2, 2, 3, 3, 3]


def test_a_dimension_that_is_marked_is_a_symbol_from_the_first():
    compiler = Counting()
    f = aot_function(lambda x: x.t() @ x, compiler, dynamic=None)
    marked = rd.randn(5, 4)
    mark_dynamic(marked, 0)
    for x in (marked, rd.randn(6, 4)):
        assert f(x).tolist() == (x.t() @ x).tolist()
    assert len(compiler.graphs) == 1


def test_guards_decide_which_graph_runs():
    def f(x):
        return x.sin() if x.shape[0] > 10 else x[: x.shape[0] // 2].cos()

    compiler = Counting()
    compiled = aot_function(f, compiler, dynamic=True)
    for size in (12, 4, 11, 10, 40, 6):
        x = rd.randn(size, 3)
        assert compiled(x).tolist() == f(x).tolist()
    assert len(compiler.graphs) == 2


def test_results_may_be_sizes_and_views_of_such():
    def f(x, y):
        y.mul_(2)
        return x.shape[0] * 2 + 1, x[1:], y.t(), (x.shape[1] / 2, x.sum())

    compiled = aot_function(f, nop, dynamic=True)
    for shape in ((3, 4), (6, 5)):
        (x, y), (a, b) = (
            [rd.randn(shape, generator=rd.Generator().manual_seed(i)) for i in range(2)] for _ in range(2)
        )
        found, wanted = compiled(x, y), f(a, b)
        assert found[0] == wanted[0] and type(found[0]) is int and found[3][0] == wanted[3][0]
        assert [one.untyped_storage()._cdata for one in found[1:3]] == [one.untyped_storage()._cdata for one in (x, y)]
        assert y.tolist() == b.tolist()
        assert [found[1].tolist(), found[2].tolist()] == [wanted[1].tolist(), wanted[2].tolist()]


def test_inputs_that_change_their_shape_do_so_in_all_sizes():
    def f(x):
        x.t_().mul_(3)
        return x + 1

    compiled = aot_function(f, nop, dynamic=True)
    for shape in ((3, 4), (6, 5)):
        x, y = rd.ones(shape), rd.ones(shape)
        assert compiled(x).tolist() == f(y).tolist()
        assert x.tolist() == y.tolist() and x.stride() == y.stride()


def test_inputs_of_one_memory_have_numbers_for_sizes():
    def f(x, y):
        x.mul_(2)
        return y.sum()

    compiler = Counting()
    compiled = aot_function(f, compiler, dynamic=True)
    for size in (3, 5, 3):
        x = rd.arange(2.0 * size)
        assert compiled(x, x[size:]).item() == (2 * rd.arange(2.0 * size)[size:]).sum().item()
    assert len(compiler.graphs) == 2


def test_a_number_that_depends_on_elements_is_no_result():
    with pytest.raises(RuntimeError, match="a result is u0, a number that depends on elements"):
        aot_function(lambda x: (x.sum().item(), x), nop, dynamic=True)(rd.arange(4))


def test_masks_give_sizes_that_depend_on_elements():
    compiler = Counting()
    compiled = aot_function(lambda x: x[x > 0].sin(), compiler, dynamic=True)
    for size in (5, 9):
        x = rd.randn(size, requires_grad=True)
        found, wanted = compiled(x), x[x > 0].sin()
        assert found.tolist() == wanted.tolist()
        gradients = [rd.autograd.grad(one.sum(), x)[0].tolist() for one in (found, wanted)]
        assert gradients[0] == gradients[1]
    assert len(compiler.graphs) == 2


@nested_compile_region
def mixed(x, w):
    return (x @ w).sin()


def attending(x, w):
    y = mixed(mixed(x, w), w)
    return flex_attention(y, y.cos(), y, score_mod=lambda score, b, h, q, k: score - (q - k)).sum(-1)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("in_checkpoint", [False, True])
def test_regions_and_functions_of_scores_stand_in_joint_graphs_as_their_operators(dynamic, in_checkpoint):
    def f(x, w):
        return checkpoint(attending, x, w, use_reentrant=False) if in_checkpoint else attending(x, w)

    compiler = Counting()
    compiled = aot_function(f, compiler, dynamic=dynamic)
    for count in (8, 12):
        x, w = rd.randn(2, 2, count, 4, requires_grad=True), rd.randn(4, 4, requires_grad=True)
        found, wanted = compiled(x, w), attending(x, w)
        gradients = [rd.autograd.grad(one.sum(), [x, w]) for one in (found, wanted)]
        rd.testing.assert_close([found, *gradients[0]], [wanted, *gradients[1]], rtol=1e-4, atol=1e-5)
    assert len(compiler.graphs) == (2 if dynamic else 4)
    products = [node for node in compiler.graphs[0].graph.nodes if node.name.startswith("mm")]
    assert len(products) == 2 and all("(x @ w).sin()" in node.stack_trace for node in products)


def test_a_size_that_a_result_has_first_is_no_size_of_its_tangent():
    def f(x):
        both = rd.cat([x, x])
        return both + rd.ones(both.shape)

    for partition in (default_partition, min_cut_rematerialization_partition):
        compiled = aot_function(f, nop, partition_fn=partition, dynamic=True)
        for size in (3, 5):
            x = rd.ones(size, 3, requires_grad=True)
            compiled(x).sum().backward()
            assert x.grad.tolist() == [[2.0] * 3] * size
