"""Graphs of modules and functions as values of their own (frontend/_functorch/export.py)."""

import pytest

import redispatch as rd
from redispatch import nn
from redispatch._functorch.aot_autograd import aot_export_joint_simple, aot_export_module
from redispatch.testing import assert_close


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("count", rd.zeros(2))

    def forward(self, x, out=None):
        self.count.add_(1)
        y = self.linear(x) + self.count
        if out is not None:
            out.mul_(2)
        return y.sum(), y.detach()


def test_a_module_is_a_graph_of_its_state_and_arguments_and_a_signature_names_them():
    module, x = Counting(), rd.randn(3, 2)
    graph, signature = aot_export_module(module, [x, rd.ones(2)], trace_joint=False)
    assert signature.parameters == ["linear.weight", "linear.bias"] and signature.buffers == ["count"]
    assert list(signature.buffers_to_mutate.values()) == ["count"]
    assert list(signature.user_inputs_to_mutate.values()) == signature.user_inputs[1:]
    count, out, total, y = graph(*module.parameters(), *module.buffers(), x, rd.ones(2))
    assert module.count.tolist() == [0, 0] and count.tolist() == [1, 1] and out.tolist() == [2, 2]
    wanted = module(x)
    assert_close([total, y], list(wanted))


def test_with_a_loss_the_graph_returns_its_gradients_too():
    module, x = Counting(), rd.randn(3, 2)
    graph, signature = aot_export_module(module, [x], trace_joint=True, output_loss_index=0)
    backward = signature.backward_signature
    assert list(backward.gradients_to_parameters.values()) == signature.parameters
    *_, weight, bias = graph(*module.parameters(), *module.buffers(), x)
    module(x)[0].backward()
    assert_close([weight, bias], [module.linear.weight.grad, module.linear.bias.grad])
    with pytest.raises(RuntimeError, match="one of your forward outputs must be a scalar loss"):
        aot_export_module(module, [x], trace_joint=True)
    with pytest.raises(RuntimeError, match=r"at index 1\) to be a scalar tensor"):
        aot_export_module(module, [x], trace_joint=True, output_loss_index=1)


def test_a_graph_is_for_other_sizes_or_of_operators_as_they_are_called():
    linear = nn.Linear(2, 2)
    graph, _ = aot_export_module(linear, [rd.ones(3, 2)], trace_joint=False, dynamic_shapes=True)
    assert graph(*linear.parameters(), rd.ones(5, 2))[0].shape == (5, 2)
    graph, _ = aot_export_module(linear, [rd.ones(3, 2)], trace_joint=False, pre_dispatch=True)
    assert graph.graph.find_nodes(op="call_function", target=rd.ops.aten.linear.default)
    with pytest.raises(NotImplementedError, match=r"(?s)aten.add_.Tensor writes its argument.*test_export"):
        aot_export_module(Counting(), [rd.ones(3, 2)], trace_joint=False, pre_dispatch=True)


def test_a_function_and_its_gradients_are_one_graph():
    x, y = rd.rand(2, requires_grad=True), rd.rand(2)
    graph = aot_export_joint_simple(lambda x, y: [x * y], [x, y], trace_joint=True)
    results, gradients = graph([x.detach(), y], [rd.ones(2)])
    assert_close(results, [(x * y).detach()])
    assert_close(gradients[0], y)
    assert gradients[1] is None
    assert len(aot_export_joint_simple(lambda x, y: [x * y], [y, y + 1], trace_joint=False)(y, y)) == 1
    for careless, what in ((lambda x: [x.mul_(2)], "input mutations"), (lambda x: [x.view(-1)], "outputs that alias")):
        with pytest.raises(RuntimeError, match=f"does not support {what}"):
            aot_export_joint_simple(careless, [rd.ones(2)], trace_joint=False)
