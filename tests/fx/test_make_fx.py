"""make_fx: the operators that run as a graph, on real and fake tensors, of functionalized programs and of gradients."""

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch import nn
from redispatch.func import functionalize, grad, vmap
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.testing import assert_close

MODES = pytest.mark.parametrize("mode", ["real", "fake"])


def writes(x):
    y = x.clone()
    y[0].mul_(2)
    y.view(-1)[1:].add_(x.sum())
    return y


def test_a_functionalized_program_is_purely_functional():
    traced = make_fx(functionalize(writes))(rd.ones(2, 2))
    assert not any(node.target._schema.is_mutable for node in traced.graph.find_nodes(op="call_function"))
    assert_close(traced(rd.full((2, 2), 3.0)), writes(rd.full((2, 2), 3.0)))
    assert_expected_inline(
        traced.code,
        """\



def forward(self, x_1):
    clone = torch.ops.aten.clone.default(x_1)
    select = torch.ops.aten.select.int(clone, 0, 0)
    mul = torch.ops.aten.mul.Tensor(select, 2);  select = None
    select_scatter = torch.ops.aten.select_scatter.default(clone, mul, 0, 0);  clone = mul = None
    view = torch.ops.aten.view.default(select_scatter, [-1])
    slice_1 = torch.ops.aten.slice.Tensor(view, 0, 1, 9223372036854775807);  view = None
    sum_1 = torch.ops.aten.sum.default(x_1);  x_1 = None
    add = torch.ops.aten.add.Tensor(slice_1, sum_1);  slice_1 = sum_1 = None
    view_1 = torch.ops.aten.view.default(select_scatter, [-1]);  select_scatter = None
    slice_scatter = torch.ops.aten.slice_scatter.default(view_1, add, 0, 1, 9223372036854775807);  view_1 = add = None
    view_2 = torch.ops.aten.view.default(slice_scatter, [2, 2]);  slice_scatter = None
    return view_2
    """,
    )


def test_what_is_written_to_an_input_is_copied_there_at_the_end():
    def f(x):
        x.t_()
        x[0] = 5
        return x + 1

    traced = make_fx(functionalize(f, remove="mutations_and_views"))(rd.ones(2, 3))
    written = [n.target.__name__ for n in traced.graph.find_nodes(op="call_function") if n.target._schema.is_mutable]
    assert written == ["copy_.default", "as_strided_.default"]
    assert not any(node.target._schema.is_view for node in traced.graph.find_nodes(op="call_function"))
    x, y = rd.ones(2, 3), rd.ones(2, 3)
    assert_close(traced(x), f(y))
    assert_close(x, y)
    assert x.stride() == y.stride()


@MODES
def test_a_traced_function_computes_the_same(mode):
    def f(x, pair):
        y = rd.ones(3) + x
        y.view(-1).add_(rd.tensor([1.0, 2.0, 3.0]))
        return {"parts": y.split(2), "other": pair[1].relu() * pair[0]}

    args = rd.randn(3), [rd.randn(2), rd.randn(2)]
    traced = make_fx(f, tracing_mode=mode)(*args)
    traced.graph.lint()
    assert_close(traced(*args), f(*args))
    assert_close(traced(*args), f(*args))  # constants are not written


@MODES
def test_gradients_are_traced(mode):
    def by_autograd(x):
        x = x.detach().requires_grad_()
        return rd.autograd.grad((x.exp() * x).sum(), x)[0]

    for f in (grad(lambda x: (x.exp() * x).sum()), by_autograd):
        traced = make_fx(f, tracing_mode=mode)(rd.zeros(3))
        assert not [name for name, _ in traced.named_buffers()]  # all is computed from the input
        x = rd.randn(3)
        assert_close(traced(x), x.exp() * x + x.exp())


def test_vmap_is_traced_as_what_it_does():
    traced = make_fx(vmap(lambda x: x.sum() * x))(rd.ones(2, 3))
    x = rd.randn(2, 3)
    assert_close(traced(x), x.sum(1, keepdim=True) * x)


def test_parameters_become_attributes():
    linear = nn.Linear(2, 2)
    traced = make_fx(lambda x: linear(x))(rd.ones(1, 2))
    assert traced._param_constant0 is linear.weight
    assert "torch.ops.aten.addmm.default" in traced.code


@MODES
def test_what_depends_on_values_is_refused(mode):
    with pytest.raises(RuntimeError, match="get value out of a tracing tensor with aten._local_scalar_dense.default"):
        make_fx(lambda x: x if x.sum() > 0 else -x, tracing_mode=mode)(rd.ones(1))
    traced = make_fx(lambda x: x * rd.tensor(2.0).item(), tracing_mode=mode)(rd.ones(1))  # a constant is known
    assert traced(rd.ones(1)).tolist() == [2]


def test_a_table_says_what_is_traced_in_the_place_of_an_operator():
    table = {rd.ops.aten.silu.default: lambda x: x * x.sigmoid()}
    traced = make_fx(nn.functional.silu, decomposition_table=table)(rd.ones(2))
    assert [node.name for node in traced.graph.nodes] == ["input_1", "sigmoid", "mul", "output"]


def test_readable_text_has_types_and_shapes():
    assert_expected_inline(
        make_fx(lambda x: x.sum(0))(rd.ones(2, 3)).print_readable(print_output=False).replace("<lambda>", "f"),
        """\
class GraphModule(torch.nn.Module):
    def forward(self, x_1: "f32[2, 3]"):
        sum_1: "f32[3]" = torch.ops.aten.sum.dim_IntList(x_1, [0]);  x_1 = None
        return sum_1""",
    )
