"""`__torch_function__` as users meet it: what handlers are given, and the names that `resolve_name` gives back."""

from __future__ import annotations

import pytest

import redispatch as rd
from redispatch.overrides import TorchFunctionMode, resolve_name


class Duck:
    """No tensor, but a `__torch_function__`."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, [kind.__name__ for kind in types], len(args), kwargs


def test_a_handler_gets_none_where_no_keyword_was_given():
    assert rd.add(Duck(), 1) == ("add", ["Duck"], 2, None)
    assert rd.mean(Duck(), dim=0) == ("mean", ["Duck"], 1, {"dim": 0})
    assert rd.cat([Duck(), rd.ones(1)]) == ("cat", ["Duck"], 1, None)


class Names(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(resolve_name(func))
        return func(*args, **(kwargs or {}))


def test_every_public_call_has_its_name():
    with Names() as mode:
        x = rd.ones(2)
        x + 1
        x.sum()
        x.shape  # noqa: B018  # reading the property is the call
        x[0]
        rd.ops.aten.add(x, 1)
        rd.ops.aten.add.Tensor(x, 1)
    assert mode.names == [
        "torch.ones",
        "torch.Tensor.add",
        "torch.Tensor.sum",
        "torch.Tensor.shape.__get__",
        "torch.Tensor.__getitem__",
        "aten.add",
        "aten.add.Tensor",
    ]


HANDLED = {}


class Total:
    """A number of equal values by their total: the pattern of PyTorch's "extending" page."""

    def __init__(self, count, total):
        self.count, self.total = count, total

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED:
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))


def test_public_functions_are_keys_for_a_table_of_handlers():
    HANDLED[rd.mean] = lambda input: input.total / input.count
    try:
        assert rd.mean(Total(4, 2)) == 0.5
        with pytest.raises(TypeError, match="no implementation found|Multiple dispatch failed"):
            rd.mul(Total(4, 2), 3)
    finally:
        HANDLED.clear()
