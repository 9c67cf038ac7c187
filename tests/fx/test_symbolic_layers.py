"""Every layer of nn, traced with symbols for sizes, gives for other sizes what it gives untraced."""

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.testing import assert_close
from redispatch.utils import _pytree as pytree
from tests.drawing import draw
from tests.fx.layers import LAYERS

ALL = LAYERS | {
    "AdaptiveLogSoftmaxWithLoss": [(8, 20, [5, 10]), [(6, 8), lambda: rd.randint(0, 20, (6,))]],
    "CTCLoss": [
        (),
        [
            lambda: rd.randn(12, 4, 6).log_softmax(2),
            lambda: rd.randint(1, 6, (4, 5)),
            lambda: rd.full((4,), 12),
            lambda: rd.full((4,), 3),
        ],
    ],
    "CrossMapLRN2d": [(2,), [(2, 4, 5, 5)]],
    "Dropout1d": [(), [(2, 3, 4)]],
    "Dropout3d": [(), [(2, 3, 4, 4, 4)]],
    "FractionalMaxPool3d": [(2, 3), [(1, 2, 6, 6, 6)]],
    "GaussianNLLLoss": [(), [(3, 4), (3, 4), lambda: rd.rand(3, 4)]],
    "Identity": [(), [(3, 4)]],
    "InstanceNorm3d": [(2,), [(2, 2, 3, 3, 3)]],
    "LinearCrossEntropyLoss": [(4, 5), [(3, 4), lambda: rd.randint(0, 5, (3,))]],
    "MaxUnpool1d": [(2,), [(2, 3, 3), lambda: rd.tensor([0, 2, 5]).expand(2, 3, 3).clone()]],
    "MaxUnpool2d": [(2,), [(1, 2, 3, 3), lambda: (rd.arange(9) * 4).view(1, 1, 3, 3).expand(1, 2, 3, 3).clone()]],
    "Softmax2d": [(), [(2, 3, 4, 4)]],
    "UpsamplingBilinear2d": [(None, 2), [(1, 2, 3, 3)]],
    "UpsamplingNearest2d": [(None, 2), [(1, 2, 3, 3)]],
}
OTHERS = 2, 3, 5, 7, 8, 12
FIXED = {"Fold": "whose windows fill an image of one size"}  # layers that one size fits


def grown(x, size, other):
    """A tensor with another size wherever it has this one."""
    for dim in range(x.dim()):
        if x.shape[dim] == size:
            x = rd.cat([x] * (other // size + 1), dim).narrow(dim, 0, other)
    return x.detach().clone(memory_format=rd.contiguous_format)


def run(module, inputs):
    rd.manual_seed(3)
    return [one for one in pytree.tree_leaves(module(*inputs)) if isinstance(one, rd.Tensor)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", draw(ALL, "layers with symbols", count=24))
def test_a_layer_gives_for_other_sizes_what_it_gives_untraced(name):
    rd.manual_seed(0)
    arguments, makers = ALL[name]
    module = getattr(nn, name)(*arguments)
    inputs = [one() if callable(one) else rd.randn(one) for one in makers]
    traced = make_fx(lambda *x: module(*x), tracing_mode="symbolic", _allow_non_fake_inputs=True)(*inputs)
    placeholders = [node.meta["val"] for node in traced.graph.find_nodes(op="placeholder")]
    held = 0
    for size in sorted({size for one in inputs for size in one.shape} - {0, 1}):
        for other in OTHERS:
            given = [grown(one, size, other) for one in inputs]
            try:
                wanted = run(module, given)
            except (RuntimeError, ValueError, IndexError, AssertionError):
                continue  # not a size for this layer
            if size != other and traced.shape_env.evaluate_guards_for_args(placeholders, given):
                assert_close(run(traced, given), wanted)
                held += 1
    assert held or name in FIXED


def test_parameters_that_a_program_has_at_hand_are_no_symbols():
    """A parameter of 3 by 4 says nothing of a batch of three, and no symbol of its own is left in the guards."""
    layer = nn.Linear(4, 3)
    traced = make_fx(lambda x: layer(x), tracing_mode="symbolic", _allow_non_fake_inputs=True)(rd.randn(3, 4))
    assert [str(one) for one in traced.shape_env.guards] == ["s1 == 4"]
    assert traced(rd.randn(9, 4)).shape == (9, 3)


def test_what_a_layer_asks_of_elements_is_still_refused_untraced():
    with pytest.raises(ValueError, match="negative entry"):
        nn.GaussianNLLLoss()(rd.ones(2), rd.ones(2), -rd.ones(2))
    with pytest.raises(RuntimeError, match=r"in \[0, 19\], but values in range \[0, 20\]"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5])(rd.ones(2, 8), rd.tensor([0, 20]))
