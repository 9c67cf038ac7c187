"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from collections import OrderedDict

import pytest

import redispatch as rd
from redispatch import nn


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
