"""Metadata: one object for tensors whose metadata is equal, and never a stale one."""

import pickle

import pytest

import redispatch as rd
from redispatch.dispatch.tensor import metadata as module
from redispatch.dispatch.tensor import metadata_of
from redispatch.subclasses.two_tensor import TwoTensor
from redispatch.testing import assert_close


def said(tensor):
    """What a tensor's looks say of it."""
    metadata = metadata_of(tensor)
    return metadata.dtype, metadata.shape, metadata.stride, metadata.device


def true_of(tensor):
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.device


def test_tensors_of_equal_metadata_have_one_object_for_it():
    assert metadata_of(rd.ones(2, 3)) is metadata_of(rd.zeros(6).view(2, 3)) is metadata_of(rd.ones(2, 3) + 1)


@pytest.mark.parametrize(
    "other",
    [
        lambda: rd.ones(3, 2),
        lambda: rd.ones(3, 2).t(),
        lambda: rd.ones(2, 3, dtype=rd.float64),
        lambda: rd.ones(2, 3, device="meta"),
    ],
)
def test_tensors_that_look_different_have_different_ones(other):
    assert metadata_of(rd.ones(2, 3)) is not metadata_of(other())


CHANGES = {
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "squeeze_": lambda x: x.squeeze_(),
    "resize_": lambda x: x.resize_(4, 5),
    "resize_ smaller": lambda x: x.resize_(2),
    "set_": lambda x: x.set_(rd.arange(4.0)),
    "set_ storage": lambda x: x.set_(rd.arange(9.0).untyped_storage(), 1, (2, 2), (3, 1)),
    "data": lambda x: setattr(x, "data", rd.arange(4, dtype=rd.float64)),
    "out=": lambda x: rd.add(rd.ones(0), 1, out=x.resize_(0)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_tensor_changed_in_place_has_new_metadata(change):
    x = rd.arange(6.0).view(2, 1, 3).squeeze(1) if change is not CHANGES["squeeze_"] else rd.ones(2, 1, 3)
    before = said(x)
    assert_close(x + 1, x.clone().add(1))  # its metadata are in use
    change(x)
    assert said(x) == true_of(x) != before
    assert_close((x.fill_(2) * x).tolist(), rd.full(x.shape, 4.0).tolist())


def test_a_wrapper_that_follows_its_parts_has_new_metadata():
    x = TwoTensor(rd.ones(2, 3), rd.ones(2, 3))
    assert said(x) == true_of(x)
    x.t_()
    assert said(x) == true_of(x)
    assert x.shape == (3, 2)


def test_metadata_may_be_forgotten_and_made_again(monkeypatch):
    """As when the table of metadata has become too large: two objects say the same, and calls go on as before."""
    x = rd.ones(3, 7)
    first = metadata_of(x)
    monkeypatch.setattr(module, "LIMIT", 0)
    y = rd.ones(7, 3).t().contiguous()
    rd.ones(5, 3, 7)[0] + 1
    assert said(y) == said(x) and metadata_of(x) is first
    assert_close(x + y, rd.full((3, 7), 2.0))
    assert_close(y.add_(x), rd.full((3, 7), 2.0))


def test_the_table_of_metadata_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "LIMIT", 10)
    for n in range(100):
        metadata_of(rd.ones(1000 + n))
    assert len(module._INTERNED) <= 10


def test_there_is_one_object_for_each_device():
    assert rd.device("cuda", 1) is rd.device("cuda:1") is not rd.device("cuda")
    assert pickle.loads(pickle.dumps(rd.device("meta"))) is rd.device("meta")
    assert hash(rd.device("cpu")) == hash(rd.ones(1).device)
