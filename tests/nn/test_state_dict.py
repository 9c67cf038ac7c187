"""Saving and loading the tensors of a tree."""

import pytest

import redispatch as rd
from redispatch import nn


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
