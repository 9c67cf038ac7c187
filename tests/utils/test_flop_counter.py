"""The FLOP counter and the tracker of modules that it asks."""

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch import nn
from redispatch.nn import functional as F
from redispatch.utils.flop_counter import FlopCounterMode, conv_flop_count, register_flop_formula, sdpa_flop_count
from redispatch.utils.module_tracker import ModuleTracker

# `redispatch.utils.flop_counter` --------------------------------------------------------------------------------------

# PyTorch's counts by module; what they are of was compared with PyTorch 2.13.

aten = rd.ops.aten


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.deep = nn.Conv2d(8, 8, 3, groups=8)
        self.norm = nn.BatchNorm2d(8)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.line = nn.Conv1d(4, 4, 3)
        self.layer = nn.TransformerEncoderLayer(4, 2, 16, batch_first=True)
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        x = self.up(self.deep(self.norm(self.conv(x)).relu())).flatten(2)
        return self.fc(self.layer(self.line(x).transpose(1, 2)))


def counts(function):
    with FlopCounterMode(display=False) as counter:
        function()
    return {name: {str(op): n for op, n in by_op.items()} for name, by_op in counter.get_flop_counts().items()}


def test_a_step_of_a_model_counts_by_module_what_pytorch_counts():
    net = Net()
    found = counts(lambda: net(rd.ones(2, 3, 16, 16)).sum().backward())
    whole = {"convolution": 111360, "mm": 268096, "bmm": 1935744, "addmm": 93152, "convolution_backward": 240000}
    whole = {f"aten.{name}": n for name, n in whole.items()}
    assert found == {
        "Global": whole,
        "Net": whole,
        "Net.conv": {"aten.convolution": 55296, "aten.convolution_backward": 55296},
        "Net.deep": {"aten.convolution": 10368, "aten.convolution_backward": 93312},
        "Net.up": {"aten.convolution": 18432, "aten.convolution_backward": 36864},
        "Net.line": {"aten.convolution": 27264, "aten.convolution_backward": 54528},
        "Net.layer": {"aten.mm": 245376, "aten.bmm": 1935744, "aten.addmm": 81792},
        "Net.layer.self_attn": {"aten.mm": 99968, "aten.bmm": 1935744, "aten.addmm": 9088},
        "Net.layer.linear1": {"aten.addmm": 36352, "aten.mm": 72704},
        "Net.layer.linear2": {"aten.addmm": 36352, "aten.mm": 72704},
        "Net.fc": {"aten.addmm": 11360, "aten.mm": 22720},
    }


def convolution_backward_into(*outs):
    x, weight, grad = rd.ones(1, 2, 5), rd.ones(3, 2, 2), rd.ones(1, 3, 4)
    names = {f"out{number}": out for number, out in enumerate(outs)}
    rest = ([3], [1], [0], [1], False, [0], 1, [True, True, True])
    aten.convolution_backward.out(grad, x, weight, *rest, **names)


@pytest.mark.parametrize(
    "function, total",
    [
        (lambda: rd.baddbmm(rd.ones(2, 3, 4), rd.ones(2, 3, 5), rd.ones(2, 5, 4)), 240),
        (lambda: rd.einsum("ijk,ikl->ijl", rd.ones(2, 3, 4), rd.ones(2, 4, 5)), 240),
        (lambda: nn.Conv3d(2, 2, 2)(rd.ones(1, 2, 4, 4, 4)), 1728),
        (lambda: rd.func.vmap(lambda a: a @ a)(rd.ones(2, 3, 3)), 108),
        (lambda: rd.ones(3).exp().sum(), 0),
        (lambda: rd.mm(rd.ones(2, 3), rd.ones(3, 4), out=rd.empty(2, 4)), 48),
        (lambda: convolution_backward_into(rd.empty(0), rd.empty(0), rd.empty(0)), 2 * (2 * 3 * 4 * 2 * 2)),
    ],
)
def test_products_are_counted_and_nothing_else(function, total):
    assert sum(counts(function)["Global"].values() if counts(function) else [0]) == total


def test_fused_attention_counts_its_two_products_and_five_backward():
    q, k, v = (rd.ones(2, 4, n, 8, requires_grad=True) for n in (5, 6, 6))
    found = counts(lambda: F.scaled_dot_product_attention(q, k, v).sum().backward())["Global"]
    product = 2 * 2 * 4 * 5 * 6 * 8
    assert sorted(found.values()) == [2 * product, 5 * product] and sdpa_flop_count(q.shape, k.shape, v.shape) == 7680
    assert sdpa_flop_count((2, 4, 5, 8), (2, 4, 6, 8), (2, 4, 6, 8)) == 2 * product


def test_inference_mode_counts_the_same():
    net = Net().eval()
    with rd.inference_mode():
        inference = counts(lambda: net(rd.ones(2, 3, 16, 16)))
    assert sum(inference["Global"].values()) == 877024
    assert conv_flop_count((2, 3, 16, 16), (8, 3, 3, 3), (2, 8, 8, 8)) == inference["Net.conv"]["aten.convolution"]


def test_the_table_by_module():
    model = nn.Sequential(nn.Linear(20, 30), nn.Sequential(nn.ReLU(), nn.Linear(30, 10)))
    with FlopCounterMode(display=False, depth=None) as counter:
        model(rd.ones(5, 20))
    assert_expected_inline(
        counter.get_table(),
        """\
Module                FLOP  % Total
-----------------------------------
Sequential        9000.000  100.00%
 - aten.addmm     9000.000  100.00%
 Sequential.0     6000.000   66.67%
  - aten.addmm    6000.000   66.67%
 Sequential.1     3000.000   33.33%
  - aten.addmm    3000.000   33.33%
  Sequential.1.1  3000.000   33.33%
   - aten.addmm   3000.000   33.33%""",
    )
    assert len(counter.get_table(depth=1).splitlines()) == 4


def test_what_no_module_did_stands_under_global(capsys):
    with FlopCounterMode():
        nn.Linear(2, 3)(rd.ones(1, 2))
        rd.ones(2, 2) @ rd.ones(2, 2)
    with FlopCounterMode():
        pass
    assert_expected_inline(
        capsys.readouterr().out,
        """\
Module            FLOP  % Total
-------------------------------
Global          28.000  100.00%
 - aten.addmm   12.000   42.86%
 - aten.mm      16.000   57.14%
 Linear         12.000   42.86%
  - aten.addmm  12.000   42.86%
Module  FLOP  % Total
---------------------
Global     0       0%
""",
    )


def test_old_and_wrong_arguments():
    with pytest.warns(UserWarning, match="mods argument is not needed anymore"):
        FlopCounterMode(nn.Linear(1, 1), display=False)
    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        register_flop_formula(aten.mul.Tensor)(lambda *args, **kwargs: 1)


def test_a_formula_of_ones_own_for_one_region():
    with FlopCounterMode(display=False, custom_mapping={aten.exp: lambda shape, out_shape: 7 * shape[0]}) as counter:
        rd.ones(3).exp()
    assert counter.get_flop_counts() == {"Global": {aten.exp: 21}} and counter.get_total_flops() == 21


def test_a_module_that_is_called_twice_has_both_backwards_and_so_has_a_second_pass():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(self.layer(x))

    model, product = Twice(), 2 * 2 * 3 * 3
    found = counts(lambda: model(rd.ones(2, 3)).sum().backward())
    # by both weights, and by the inner result: the input needs no gradient
    assert found["Twice.layer"] == found["Global"] == {"aten.addmm": 2 * product, "aten.mm": 3 * product}

    def gradient_of_gradient():
        x = rd.ones(2, 3, requires_grad=True)
        (grad,) = rd.autograd.grad(model(x).square().sum(), x, create_graph=True)
        grad.sum().backward()

    assert counts(gradient_of_gradient)["Global"] == {"aten.addmm": 2 * product, "aten.mm": 10 * product}


# ModuleTracker: which modules run, forward and backward, by the names that `state_dict` has ---------------------------


class TwoLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))

    def forward(self, x):
        return self.layers(x)


class Says(nn.Module):
    """Calls `say` forward and backward."""

    def __init__(self, say):
        super().__init__()
        self.say = say

    def forward(self, x):
        self.say()
        y = x * 2
        if y.requires_grad:
            y.grad_fn.register_prehook(lambda grads: self.say())
        return y


def test_names_are_those_of_the_state_dict_below_the_class():
    net, seen = TwoLayers(), []
    with ModuleTracker() as tracker:
        net.layers[1].register_forward_pre_hook(lambda *args: seen.append(set(tracker.parents)))
        net(rd.ones(1, 2))
        assert tracker.parents == {"Global"}
    assert seen == [{"Global", "TwoLayers", "TwoLayers.layers", "TwoLayers.layers.1"}]


def test_a_module_that_was_called_alone_is_named_after_the_one_around_it_later():
    net, seen = TwoLayers(), []
    with ModuleTracker() as tracker:
        net.layers[1].register_forward_pre_hook(lambda *args: seen.append(set(tracker.parents)))
        net.layers[1](rd.ones(1, 3))
        net(rd.ones(1, 2))
    assert seen == [{"Global", "Linear"}, {"Global", "TwoLayers", "TwoLayers.layers", "TwoLayers.layers.1"}]


def test_backward_enters_and_leaves_the_modules_in_turn():
    seen = []
    model = nn.Sequential(*(Says(lambda: seen.append((sorted(tracker.parents), tracker.is_bw))) for _ in range(2)))
    x = rd.ones(2, requires_grad=True)
    with ModuleTracker() as tracker:
        model(x).sum().backward()
        assert tracker.parents == {"Global"} and not tracker.is_bw
    first, second = (["Global", "Sequential", f"Sequential.{number}"] for number in (0, 1))
    assert seen == [(first, False), (second, False), (second, True), (first, True)]


def test_a_module_whose_inputs_need_no_gradient_is_left_when_the_pass_ends():
    with ModuleTracker() as tracker:
        nn.Linear(2, 1)(rd.ones(1, 2)).sum().backward()
        assert tracker.parents == {"Global"}


def test_a_forward_that_raises_leaves_its_module():
    with ModuleTracker() as tracker:
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            TwoLayers()(rd.ones(1, 7))
        assert tracker.parents == {"Global"}


def test_a_module_that_is_called_within_itself_is_left_when_its_outermost_call_ends():
    class Again(nn.Module):
        def forward(self, n):
            inside = self(n - 1) if n else set()
            return inside | set(tracker.parents)

    with ModuleTracker() as tracker:
        assert Again()(2) == {"Global", "Again"}
        assert tracker.parents == {"Global"}


def test_its_hooks_end_with_its_region():
    net = TwoLayers()
    with ModuleTracker() as tracker:
        loss = net(rd.ones(1, 2, requires_grad=True)).sum()
    loss.backward()
    net(rd.ones(1, 2))
    assert tracker.parents == {"Global"}
