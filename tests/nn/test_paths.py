"""PyTorch's other paths and former names of modules, initial values and hooks."""

import importlib
import math

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.nn.modules import PLACES
from redispatch.nn.modules.utils import _ntuple, _pair, _single, _triple
from redispatch.testing import assert_close

# PyTorch's file -> layers in it, among them those whose names are like those of another file
IN = {
    "activation": "MultiheadAttention ReLU Softmax2d", "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "batchnorm": "BatchNorm1d LazyBatchNorm3d SyncBatchNorm", "channelshuffle": "ChannelShuffle",
    "container": "Container ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "conv": "Conv1d ConvTranspose3d LazyConv2d LazyConvTranspose1d", "distance": "CosineSimilarity PairwiseDistance",
    "dropout": "AlphaDropout Dropout Dropout3d", "flatten": "Flatten Unflatten", "fold": "Fold Unfold",
    "instancenorm": "InstanceNorm1d LazyInstanceNorm3d", "linear": "Bilinear Identity LazyLinear Linear",
    "loss": "CTCLoss L1Loss LinearCrossEntropyLoss NLLLoss2d", "module": "Module",
    "normalization": "CrossMapLRN2d GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "padding": "CircularPad1d ConstantPad2d ReflectionPad3d ReplicationPad1d ZeroPad2d",
    "pixelshuffle": "PixelShuffle PixelUnshuffle", "pooling": "AdaptiveAvgPool1d LPPool2d MaxPool3d MaxUnpool1d",
    "rnn": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase", "sparse": "Embedding EmbeddingBag",
    "transformer": "Transformer TransformerDecoderLayer TransformerEncoder",
    "upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
}  # fmt: skip


@pytest.mark.parametrize("file", IN)
def test_a_layer_is_the_same_by_pytorchs_path(file):
    module = importlib.import_module(f"redispatch.nn.modules.{file}")
    assert module is getattr(nn.modules, file)
    for name in IN[file].split():
        assert getattr(module, name) is getattr(nn, name) is getattr(nn.modules, name)


def test_a_layer_has_one_path():
    assert IN.keys() == PLACES.keys()
    layers = [
        name
        for file in PLACES
        for name, kind in vars(getattr(nn.modules, file)).items()
        if is_layer(kind) and hasattr(nn, name)
    ]
    others = {"DataParallel"}  # which is in nn.parallel
    assert sorted(layers) == sorted({name for name, kind in vars(nn).items() if is_layer(kind)} - others)


def test_private_bases_are_found_by_pytorchs_path():
    """Programs ask whether a layer is one of them."""
    for path, layer in {
        "batchnorm._BatchNorm": "BatchNorm2d", "conv._ConvNd": "Conv1d", "conv._ConvTransposeNd": "ConvTranspose2d",
        "loss._Loss": "L1Loss", "loss._WeightedLoss": "NLLLoss", "pooling._MaxPoolNd": "MaxPool3d",
        "pooling._AdaptiveMaxPoolNd": "AdaptiveMaxPool1d", "padding._ConstantPadNd": "ConstantPad2d",
        "lazy.LazyModuleMixin": "LazyLinear", "dropout._DropoutNd": "Dropout",
    }.items():  # fmt: skip
        file, _, name = path.partition(".")
        assert issubclass(getattr(nn, layer), getattr(importlib.import_module(f"redispatch.nn.modules.{file}"), name))


def test_a_prefix_is_taken_off_a_state_dict():
    net = nn.Sequential(nn.Linear(1, 1))
    wrapped = nn.DataParallel(net).state_dict()
    nn.modules.utils.consume_prefix_in_state_dict_if_present(wrapped, "module.")
    assert list(wrapped) == list(net.state_dict()) and list(wrapped._metadata) == ["", "0"]


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_a_convolution_by_themselves(dims):
    x = rd.randn(2, 4, *[7] * dims, requires_grad=True)
    weight = rd.randn(4, 2, *[3] * dims, requires_grad=True)
    how = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
    result = getattr(nn.functional, f"conv{dims}d")(x, weight, **how)
    gradient = rd.randn(result.shape)
    result.backward(gradient)
    assert_close(getattr(nn.grad, f"conv{dims}d_input")(x.shape, weight, gradient, **how), x.grad)
    assert_close(getattr(nn.grad, f"conv{dims}d_weight")(x, weight.shape, gradient, **how), weight.grad)


def test_data_parallel_runs_on_one_device():
    layer = nn.Linear(2, 3)
    x = rd.ones(4, 2)
    for wrapped in (nn.DataParallel(layer), nn.DataParallel(layer, device_ids=["cpu"])):
        assert_close(wrapped(x), layer(x))
    assert_close(nn.parallel.data_parallel(layer, x), layer(x))
    with pytest.raises(RuntimeError, match="one device"):
        nn.DataParallel(layer, device_ids=[0, 1])
    with pytest.raises(NotImplementedError, match="processes are not coordinated"):
        nn.parallel.DistributedDataParallel(layer)
    assert importlib.import_module("redispatch.nn.parallel.data_parallel").DataParallel is nn.DataParallel
    assert nn.parallel.data_parallel.__name__ == "data_parallel"


def is_layer(kind):
    return isinstance(kind, type) and issubclass(kind, nn.Module)


def test_numbers_become_tuples():
    assert (_single(2), _pair(2), _triple([1, 2, 3]), _ntuple(2, "two")(5)) == ((2,), (2, 2), (1, 2, 3), (5, 5))


@pytest.mark.parametrize("name", ["xavier_uniform", "kaiming_normal", "normal", "eye", "orthogonal"])
def test_a_former_name_of_an_initialiser_works_and_says_so(name):
    rd.manual_seed(0)
    with pytest.warns(FutureWarning, match=f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`"):
        former = getattr(nn.init, name)(rd.empty(3, 3))
    rd.manual_seed(0)
    assert rd.equal(former, getattr(nn.init, f"{name}_")(rd.empty(3, 3)))


def test_the_older_backward_hook_sees_the_last_operator():
    seen = []
    layer = nn.Linear(2, 3)
    handle = layer.register_backward_hook(lambda *given: seen.append(given))
    x = rd.ones(4, 2, requires_grad=True)
    layer(x).sum().backward()
    ((module, gradients, given),) = seen
    assert module is layer
    assert [tuple(g.shape) for g in gradients] == [(3,), (4, 2), (2, 3)]  # of addmm: bias, input, transposed weight
    assert [tuple(g.shape) for g in given] == [(4, 3)]
    handle.remove()
    layer(x).sum().backward()
    assert len(seen) == 1


def test_what_an_older_hook_returns_replaces_the_gradients():
    layer = nn.Linear(2, 3, bias=False)
    layer.register_backward_hook(lambda module, gradients, given: tuple(g * 2 for g in gradients))
    x = rd.ones(4, 2, requires_grad=True)
    layer(x).sum().backward()
    assert_close(x.grad, 2 * layer.weight.detach().sum(0).expand(4, 2))


def test_backward_hooks_of_two_kinds_do_not_mix():
    older, full = nn.Linear(2, 3), nn.Linear(2, 3)
    older.register_backward_hook(print)
    full.register_full_backward_hook(print)
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
        older.register_full_backward_hook(print)
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
        full.register_backward_hook(print)


def test_constants():
    assert (rd.pi, rd.e, rd.inf, rd.newaxis) == (math.pi, math.e, math.inf, None) and math.isnan(rd.nan)


# What subclasses and wrappers of other packages call ------------------------------------------------------------------


def test_subclasses_change_a_part_of_a_layer():
    class Halved(nn.Conv2d):
        def _conv_forward(self, input, weight, bias):
            return super()._conv_forward(input, weight / 2, None)

    layer, x = Halved(1, 2, 3, padding=1, padding_mode="reflect"), rd.randn(1, 1, 4, 4)
    assert layer._reversed_padding_repeated_twice == [1, 1, 1, 1]
    whole = nn.functional.conv2d(nn.functional.pad(x, [1] * 4, "reflect"), layer.weight)
    assert_close(layer(x), whole / 2)

    class Deaf(nn.TransformerDecoderLayer):
        def _sa_block(self, x, *masks, **options):
            return rd.zeros_like(x)

        _mha_block, _ff_block = _sa_block, _sa_block

    x = rd.randn(3, 1, 4)
    deaf = Deaf(4, 2, 8, norm_first=True)
    assert rd.equal(deaf(x, x), x)


def test_recurrent_layers_check_by_names_that_subclasses_override():
    seen = []

    class Told(nn.LSTM):
        def check_forward_args(self, input, hidden, batch_sizes):
            seen.append([tuple(state.shape) for state in hidden])
            super().check_forward_args(input, hidden, batch_sizes)

    layer = Told(2, 3, proj_size=1)
    layer(rd.ones(4, 5, 2))
    assert seen == [[(1, 5, 1), (1, 5, 3)]]
    assert layer.get_expected_hidden_size(rd.ones(4, 5, 2), None) == (1, 5, 1)
    order = rd.tensor([1, 0])
    assert layer.permute_hidden((rd.tensor([[[1.0], [2.0]]]),) * 2, order)[1].flatten().tolist() == [2, 1]
    with pytest.raises(RuntimeError, match=r"Expected hidden\[1\] size \(1, 5, 3\), got \[1, 5, 1\]"):
        layer(rd.ones(4, 5, 2), (rd.zeros(1, 5, 1), rd.zeros(1, 5, 1)))


def test_modules_are_called_and_unpickled_by_pytorchs_private_names():
    layer = nn.Linear(2, 1)
    x = rd.ones(2)
    assert rd.equal(layer._call_impl(x), layer(x)) and rd.equal(layer._slow_forward(x), layer(x))
    layer.compile(backend="eager")
    old = nn.Linear.__new__(nn.Linear)
    old.__setstate__({"_parameters": dict(layer._parameters), "_modules": {}, "_buffers": {}})
    assert rd.equal(old(x), layer(x)) and old.state_dict().keys() == layer.state_dict().keys()
    with pytest.raises(RuntimeError, match="xpu|device"):
        layer.xpu()


def test_hooks_of_the_older_kind_are_not_told_the_module_and_may_replace_the_dict():
    layer, given = nn.Linear(2, 1), []
    layer._register_load_state_dict_pre_hook(lambda *args: given.append(args))
    layer._register_load_state_dict_pre_hook(lambda module, *args: given.append(module), with_module=True)
    layer._register_state_dict_hook(lambda module, state, prefix, metadata: {"other": state})
    state = layer.state_dict()["other"]
    layer.load_state_dict(state)
    assert len(given[0]) == 7 and given[1] is layer

    def hook(*args):
        return {}

    layer.register_state_dict_post_hook(hook)
    with pytest.raises(RuntimeError, match="must return None"):
        layer.state_dict()
    with pytest.raises(RuntimeError, match="Cannot register the same function"):
        layer._register_state_dict_hook(hook)


def test_sync_batch_norm_takes_the_place_of_batch_norms():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).eval()
    x, norm = rd.randn(4, 2), net[1]
    before = net(x)
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert type(net[1]) is nn.SyncBatchNorm and net[1].weight is norm.weight and synced is net
    assert_close(net(x), before)
    assert_close(net.train()(x), nn.Sequential(net[0], norm).train()(x))


# Tensors by dotted name -----------------------------------------------------------------------------------------------


def test_members_are_swapped_by_name_all_or_none():
    from redispatch.nn.utils._named_member_accessor import NamedMemberAccessor, swap_submodule, swap_tensor

    net = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
    members, weight, other = NamedMemberAccessor(net), net[0].weight, rd.zeros(1, 2)
    assert members.get_tensor("0.weight") is weight and members.swap_tensor("0.weight", other) is weight
    assert net[0].weight is other and members.check_keys(["0.weight", "2"])[1] == ["2"]
    former, missing = members.swap_tensors_dict({"0.weight": weight, "1.running_mean": rd.ones(1)})
    assert former["0.weight"] is other and not missing and net[1].running_mean.item() == 1
    with pytest.raises(RuntimeError, match="Missing key.*'1.none'"):
        members.swap_tensors_dict({"0.weight": other, "1.none": other})
    assert net[0].weight is weight and not hasattr(net[1], "none")
    members.del_tensor("0.bias")
    members.set_tensor("0.bias", rd.ones(1))
    assert members.get_tensors(["0.bias"])[0].item() == 1
    with pytest.raises(AttributeError, match="Linear has no attribute `0.none`"):
        members.get_tensor("0.none")
    with pytest.raises(TypeError, match="is not an instance of torch.Tensor"):
        swap_tensor(net[0], "in_features", other)
    with pytest.raises(KeyError, match="submodule 5 does not exist"):
        swap_submodule(net, "5", nn.ReLU())
    with pytest.raises(AssertionError, match="same length"):
        members.set_tensors(["0.weight"], [])
    assert isinstance(members.swap_submodule("1", nn.Identity()), nn.BatchNorm1d) and type(net[1]) is nn.Identity
