"""Module: attributes, walks, conversion, training mode, printing, its state as a dictionary; and containers."""

import copy
from collections import OrderedDict

import pytest

import redispatch as rd
from redispatch import nn

# Module: attributes, walks, conversion, training mode, printing, and its state as a dictionary ------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.scale = nn.Parameter(rd.ones(()))
        self.register_buffer("count", rd.zeros((), dtype=rd.int64))
        self.register_buffer("scratch", rd.zeros(2), persistent=False)

    def forward(self, x):
        return self.first(x).relu() * self.scale


def names(pairs):
    return [name for name, _ in pairs]


# Attributes -----------------------------------------------------------------------------------------------------------


def test_assigning_files_each_value_in_its_place():
    net = Net()
    assert names(net.named_parameters()) == ["scale", "first.weight", "first.bias"]
    assert names(net.named_buffers()) == ["count", "scratch"]
    assert names(net.named_children()) == ["first"]
    assert "scale" not in net.__dict__ and "scale" in dir(net)


def test_a_name_moves_when_it_gets_a_value_of_another_kind():
    net = nn.Module()
    net.x = 3
    net.x = nn.Parameter(rd.ones(1))
    assert "x" in net._parameters and "x" not in net.__dict__
    del net.x
    net.x = nn.Linear(1, 1)
    assert "x" in net._modules
    with pytest.raises(TypeError, match="cannot assign 'int' as child module 'x'"):
        net.x = 3
    net.x = nn.Parameter(rd.ones(1))
    assert "x" in net._parameters and "x" not in net._modules


def test_a_buffer_name_takes_plain_tensors_and_keeps_its_persistence():
    net = Net()
    net.scratch = rd.ones(3)
    net.count = None
    assert names(net.named_buffers()) == ["scratch"] and "scratch" not in net.state_dict()
    net.extra = nn.Buffer(rd.ones(1))
    assert "extra" in net.state_dict()


@pytest.mark.parametrize(
    ("value", "what"),
    [(lambda: nn.Linear(1, 1), "module"), (lambda: nn.Parameter(), "parameters"), (lambda: nn.Buffer(), "buffer")],
)
def test_nothing_is_filed_before_init(value, what):
    class Hasty(nn.Module):
        def __init__(self):
            self.x = value()

    with pytest.raises(AttributeError, match=rf"cannot assign {what} before Module.__init__\(\) call"):
        Hasty()


# Walks ----------------------------------------------------------------------------------------------------------------


def test_shared_members_come_once_unless_asked_for():
    shared = nn.Linear(1, 1)
    net = nn.Sequential(shared, nn.Sequential(shared))
    assert names(net.named_modules()) == ["", "0", "1"]
    assert names(net.named_modules(remove_duplicate=False)) == ["", "0", "1", "1.0"]
    assert names(net.named_parameters()) == ["0.weight", "0.bias"]
    assert names(net.named_parameters(remove_duplicate=False)) == ["0.weight", "0.bias", "1.0.weight", "1.0.bias"]
    assert list(net.parameters(recurse=False)) == []
    assert names(net.named_parameters(prefix="net"))[0] == "net.0.weight"


def test_dotted_names_find_modules_parameters_and_buffers():
    net = nn.Sequential(Net())
    assert net.get_submodule("0.first") is net[0].first and net.get_submodule("") is net
    assert net.get_parameter("0.first.weight") is net[0].first.weight
    assert net.get_buffer("0.count") is net[0].count
    with pytest.raises(AttributeError, match="Net has no attribute `second`"):
        net.get_submodule("0.second")
    with pytest.raises(AttributeError, match="`scale` is not an nn.Module"):
        net.get_submodule("0.scale")
    with pytest.raises(AttributeError, match="`count` is not an nn.Parameter"):
        net.get_parameter("0.count")
    with pytest.raises(AttributeError, match="`scale` is not a buffer"):
        net.get_buffer("0.scale")


def test_set_submodule_replaces_a_module():
    net = nn.Sequential(Net())
    new = nn.Identity()
    net.set_submodule("0.first", new)
    assert net[0].first is new
    with pytest.raises(AttributeError, match="Net has no attribute `other`"):
        net.set_submodule("0.other", new, strict=True)
    with pytest.raises(ValueError, match="Cannot set the submodule without a target name!"):
        net.set_submodule("", new)


# Calling --------------------------------------------------------------------------------------------------------------


def test_calling_without_a_forward_names_the_class():
    class Silent(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match=r'Module \[Silent\] is missing the required "forward" function'):
        Silent()(1)
    with pytest.raises(TypeError, match=r"Silent.__init__\(\) takes 1 positional argument but 2 were given"):
        Silent(1)
    with pytest.raises(TypeError, match=r"Silent.__init__\(\) got an unexpected keyword argument 'size'"):
        Silent(size=1)


# Conversion -----------------------------------------------------------------------------------------------------------


def test_conversion_keeps_the_parameter_and_its_gradient_the_same_objects():
    net = Net()
    weight = net.first.weight
    weight.grad = rd.ones_like(weight)
    gradient = weight.grad
    assert net.double() is net
    assert net.first.weight is weight and weight.dtype is rd.float64 and weight.requires_grad
    assert weight.grad is gradient and gradient.dtype is rd.float64
    assert net.count.dtype is rd.int64 and net.scratch.dtype is rd.float64


@pytest.mark.parametrize(
    ("convert", "dtype"),
    [
        (lambda m: m.half(), rd.float16),
        (lambda m: m.bfloat16(), rd.bfloat16),
        (lambda m: m.to(rd.float64), rd.float64),
        (lambda m: m.to("cpu", rd.float64), rd.float64),
        (lambda m: m.to(dtype=rd.float64), rd.float64),
        (lambda m: m.to(rd.ones(1, dtype=rd.float64)), rd.float64),
        (lambda m: m.to("cpu").double().float(), rd.float32),
    ],
)
def test_ways_to_say_what_to_convert_to(convert, dtype):
    net = convert(Net())
    assert net.scale.dtype is dtype and net.count.dtype is rd.int64


def test_meta_and_back():
    net = Net().to("meta")
    assert all(parameter.is_meta and isinstance(parameter, nn.Parameter) for parameter in net.parameters())
    with pytest.raises(NotImplementedError, match="Please use torch.nn.Module.to_empty"):
        net.to("cpu")
    assert not any(parameter.is_meta for parameter in net.to_empty(device="cpu").parameters())


# Training -------------------------------------------------------------------------------------------------------------


def test_training_mode_reaches_every_module():
    net = nn.Sequential(Net(), nn.Dropout())
    assert not any(module.training for module in net.eval().modules())
    assert all(module.training for module in net.train().modules())
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        net.train(1)


def test_gradients_flow_to_all_parameters_and_are_cleared():
    net = Net()
    net(rd.ones(4, 2)).sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())
    net.zero_grad(set_to_none=False)
    assert net.scale.grad.item() == 0
    net.zero_grad()
    assert net.scale.grad is None
    assert not any(parameter.requires_grad for parameter in net.requires_grad_(False).parameters())


def test_apply_sees_children_first():
    seen = []
    net = nn.Sequential(nn.Identity(), nn.Sequential())
    assert net.apply(seen.append) is net
    assert seen == [net[0], net[1], net]


def test_a_deep_copy_shares_nothing():
    net = Net()
    other = copy.deepcopy(net)
    with rd.no_grad():
        other.first.weight.fill_(7)
        other.count.fill_(7)
    assert net.count.item() == 0 and net.first.weight.max().item() < 7
    assert names(other.named_parameters()) == names(net.named_parameters())


# Printing -------------------------------------------------------------------------------------------------------------


def test_a_module_prints_its_tree():
    net = nn.Sequential(Net(), nn.ReLU(inplace=True), nn.Sequential())
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Net(\n"
        "    (first): Linear(in_features=2, out_features=3, bias=True)\n"
        "  )\n"
        "  (1): ReLU(inplace=True)\n"
        "  (2): Sequential()\n"
        ")"
    )


def test_an_extra_of_several_lines_stands_above_the_children():
    class Wordy(nn.Module):
        def extra_repr(self):
            return "a=1\nb=2"

    net = Wordy()
    net.child = nn.Identity()
    assert repr(net) == "Wordy(\n  a=1\n  b=2\n  (child): Identity()\n)"


# Saving and loading the tensors of a tree -----------------------------------------------------------------------------


def model():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1, bias=False))
    net.register_buffer("steps", rd.zeros(()))
    return net


def test_the_keys_are_dotted_names_and_the_tensors_share_memory():
    net = model()
    saved = net.state_dict()
    assert list(saved) == ["steps", "0.weight", "0.bias", "2.weight"]
    assert saved["0.weight"].data_ptr() == net[0].weight.data_ptr() and not saved["0.weight"].requires_grad
    assert net.state_dict(keep_vars=True)["0.weight"] is net[0].weight
    assert list(net[0].state_dict(prefix="x.")) == ["x.weight", "x.bias"]
    assert saved._metadata["0"] == {"version": 1}


def test_loading_copies_into_the_same_parameters():
    source, target = model(), model()
    weight = target[0].weight
    result = target.load_state_dict(source.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    assert target[0].weight is weight and weight.tolist() == source[0].weight.tolist()
    assert weight.data_ptr() != source[0].weight.data_ptr()


def test_assigning_puts_the_given_tensors_in_place():
    source, target = model().double(), model().requires_grad_(False)
    saved = source.state_dict()
    target.load_state_dict(saved, assign=True)
    assert target[0].weight.dtype is rd.float64 and target[0].weight.data_ptr() == saved["0.weight"].data_ptr()
    assert isinstance(target[0].weight, nn.Parameter) and not target[0].weight.requires_grad


def test_loading_that_is_not_strict_returns_what_did_not_match():
    result = nn.Linear(1, 1).load_state_dict({"weight": rd.ones(1, 1), "extra": rd.ones(1)}, strict=False)
    assert result.missing_keys == ["bias"] and result.unexpected_keys == ["extra"]
    assert repr(result) == "_IncompatibleKeys(missing_keys=['bias'], unexpected_keys=['extra'])"


def test_extra_state_travels_with_the_tensors():
    class Counting(nn.Module):
        calls = 0

        def get_extra_state(self):
            return self.calls

        def set_extra_state(self, state):
            self.calls = state

    net = nn.Sequential(Counting())
    net[0].calls = 5
    saved = net.state_dict()
    assert saved == {"0._extra_state": 5}
    other = nn.Sequential(Counting())
    other.load_state_dict(saved)
    assert other[0].calls == 5
    with pytest.raises(RuntimeError, match="Unexpected key"):
        nn.Sequential(nn.Identity()).load_state_dict(saved)


def test_hooks_see_saving_and_loading():
    net, seen = nn.Linear(1, 1), []
    net.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append("before saving"))
    net.register_state_dict_post_hook(lambda module, saved, prefix, metadata: saved.pop("bias") and None)
    saved = net.state_dict()
    assert list(saved) == ["weight"]
    before = net.register_load_state_dict_pre_hook(
        lambda module, saved, *rest: saved.setdefault("bias", rd.ones(1)) and None
    )
    net.register_load_state_dict_post_hook(lambda module, keys: seen.append(keys.missing_keys))
    net.load_state_dict(saved)
    assert seen == ["before saving", []] and net.bias.item() == 1
    before.remove()
    with pytest.raises(RuntimeError, match="Missing key"):
        net.load_state_dict(saved)


# Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict -----------------------------------------------------


def test_a_sequential_runs_its_modules_in_order():
    net = nn.Sequential(OrderedDict(first=nn.Linear(2, 3), second=nn.ReLU()))
    x = rd.ones(1, 2)
    assert net(x).tolist() == net.first(x).relu().tolist()
    assert list(net.state_dict()) == ["first.weight", "first.bias"]


def test_a_sequential_is_edited_like_a_list():
    a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    net = nn.Sequential(a, b)
    assert net.append(c) is net and list(net) == [a, b, c] and len(net) == 3
    assert net[-1] is c and list(net[1:]) == [b, c] and type(net[1:]) is nn.Sequential
    net.insert(1, c)
    assert list(net) == [a, c, b, c]
    del net[0]
    assert list(net) == [c, b, c] and list(net._modules) == ["0", "1", "2"]
    assert net.pop(1) is b and list(net) == [c, c]
    net[0] = a
    assert list(net + nn.Sequential(b)) == [a, c, b] and list(net * 2) == [a, c, a, c]
    net += nn.Sequential(b)
    net *= 2
    assert list(net) == [a, c, b, a, c, b]


def test_a_module_list_is_edited_like_a_list_and_prints_runs_together():
    modules = nn.ModuleList([nn.ReLU(), nn.ReLU()])
    modules.append(nn.Tanh())
    modules.extend([nn.Tanh()])
    modules += [nn.Linear(1, 1)]
    assert len(modules) == 5 and isinstance(modules[2:], nn.ModuleList) and type(modules[0]) is nn.ReLU
    assert repr(modules) == (
        "ModuleList(\n  (0-1): 2 x ReLU()\n  (2-3): 2 x Tanh()\n"
        "  (4): Linear(in_features=1, out_features=1, bias=True)\n)"
    )
    modules.insert(0, nn.Sigmoid())
    assert type(modules[0]) is nn.Sigmoid and type(modules.pop(-1)) is nn.Linear
    assert repr(nn.ModuleList()) == "ModuleList()"
    with pytest.raises(IndexError, match="index 9 is out of range"):
        modules[9]
    with pytest.raises(TypeError, match="ModuleList.extend should be called with an iterable, but got int"):
        modules.extend(3)


def test_a_module_dict_is_a_dictionary_of_children():
    modules = nn.ModuleDict({"a": nn.ReLU()})
    modules["b"] = nn.Linear(1, 1)
    modules.update([("c", nn.Tanh())])
    assert list(modules) == ["a", "b", "c"] and "b" in modules and len(modules) == 3
    assert [name for name, _ in nn.Sequential(modules).named_parameters()] == ["0.b.weight", "0.b.bias"]
    assert type(modules.pop("c")) is nn.Tanh
    del modules["a"]
    assert list(modules.keys()) == ["b"]
    with pytest.raises(ValueError, match="ModuleDict update sequence element #0 has length 1; 2 is required"):
        modules.update([("x",)])
    with pytest.raises(TypeError, match="ModuleDict.update should be called with an iterable of key/value pairs"):
        modules.update(3)


def test_a_parameter_list_makes_parameters_of_tensors():
    values = nn.ParameterList([rd.ones(2, 3), nn.Parameter(rd.ones(1))])
    values.append("a string")
    assert all(isinstance(value, nn.Parameter) for value in values[:2]) and values[-1] == "a string"
    assert [name for name, _ in values.named_parameters()] == ["0", "1"]
    assert repr(values) == (
        "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2x3]\n"
        "    (1): Parameter containing: [torch.float32 of size 1]\n    (2): Object of type: str\n)"
    )
    with pytest.raises(IndexError, match="index 5 is out of range"):
        values[5]
    with pytest.raises(TypeError, match="ParameterList.extend should be called with an iterable, but got Tensor"):
        values.extend(rd.ones(2))
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        values()


def test_a_parameter_dict_makes_parameters_of_tensors():
    values = nn.ParameterDict({"b": rd.ones(2), "a": rd.ones(1)})
    assert list(values) == ["a", "b"]  # a plain dictionary's keys are sorted
    values["c"] = rd.ones(3)
    assert isinstance(values["c"], nn.Parameter) and values.get("z") is None and "c" in values
    assert values.popitem()[0] == "c" and values.pop("a").shape == (1,)
    assert list((values | nn.ParameterDict({"y": rd.ones(1)})).keys()) == ["b", "y"]
    assert repr(values) == "ParameterDict(  (b): Parameter containing: [torch.FloatTensor of size 2])"
    with pytest.raises(TypeError, match="Index given to ParameterDict cannot be used as a key as it is not a string"):
        values[3]


def test_a_mixin_behind_module_is_initialised_where_asked():
    class Mixin:
        def __init__(self, word="none", **kwargs):
            super().__init__(**kwargs)
            self.word = word

    class Net(nn.Module, Mixin):
        pass

    assert not hasattr(Net(), "word")
    Net.call_super_init = True
    assert Net(word="said").word == "said" and isinstance(Net()._parameters, dict)


def test_a_buffer_does_not_take_a_plain_attribute_s_name_and_goes_through_register_buffer():
    class Net(nn.Module):
        def register_buffer(self, name, value):
            super().register_buffer(name, value)
            self.seen = name

    net = Net()
    net.number = 5
    with pytest.raises(KeyError, match="attribute 'number' already exists"):
        net.number = nn.Buffer(rd.ones(1))
    net.bar = nn.Buffer(rd.ones(1))
    assert net.seen == "bar" and "bar" in net.state_dict()


def test_to_warns_of_complex_modules_and_refuses_copies():
    layer = nn.Linear(1, 1)
    with pytest.warns(UserWarning, match="Complex modules are a new feature"):
        layer.to(rd.complex64)
    with pytest.raises(RuntimeError, match="does not accept copy argument"):
        layer.to("cpu", copy=True)
    assert rd._C._nn._parse_to("cpu", rd.float64, memory_format=rd.channels_last) == (
        rd.device("cpu"), rd.float64, False, rd.channels_last,
    )  # fmt: skip
    assert rd._C._nn.gelu(rd.zeros(1)) == 0 and rd._C._nn.slow_conv3d is rd.ops.aten.slow_conv3d
    assert not hasattr(rd._C._nn, "nothing")


def test_a_replica_has_tables_of_its_own_over_the_same_buffers():
    norm = nn.BatchNorm1d(2)
    replica = norm._replicate_for_data_parallel()
    replica.weight = norm.weight * 2
    assert replica.running_mean is norm.running_mean and not list(replica.parameters())
    assert isinstance(norm.weight, nn.Parameter) and rd.equal(replica.weight, 2 * norm.weight)
