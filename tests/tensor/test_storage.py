"""Storages: resizing, and what becomes of the tensors that hold them."""

import numpy as np
import pytest

import redispatch as rd
from redispatch.testing import assert_close

OUTSIDE = "out of bounds for storage"


@pytest.fixture
def shrunk():
    """A tensor of six numbers whose storage has room for two, and a view of its last four."""
    x = rd.arange(6.0)
    view = x[2:]
    x.untyped_storage().resize_(8)
    return x, view


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t + 1,
        lambda t: t.sum(),
        lambda t: t.clone(),
        lambda t: t.add_(1),
        lambda t: t.fill_(0),
        lambda t: t.uniform_(),
        lambda t: rd.cat([t, t]),
        lambda t: t[-1].item(),
        lambda t: t.view(rd.int32).sum(),
        lambda t: t.numpy(),
        lambda t: t.tolist(),
    ],
)
def test_a_tensor_beyond_the_end_of_its_storage_is_an_error_to_use(shrunk, use):
    for tensor in shrunk:
        with pytest.raises(RuntimeError, match=OUTSIDE):
            use(tensor)


def test_a_tensor_beyond_the_end_of_its_storage_prints(shrunk):
    assert "size=(6,)" in repr(shrunk[0])


def test_a_tensor_that_still_fits_stays_usable():
    x = rd.arange(6.0)
    first = x[:2]
    x.untyped_storage().resize_(8)
    assert first.tolist() == x[:2].tolist() == [0.0, 1.0]


def test_a_storage_that_grows_again_serves_its_tensors_again(shrunk):
    x, view = shrunk
    x.untyped_storage().resize_(24)
    view.fill_(7)
    assert x.tolist() == [0.0, 1.0, 7.0, 7.0, 7.0, 7.0]


def test_a_tensor_resized_to_what_is_left_is_usable(shrunk):
    assert_close(shrunk[0].resize_(2) + 1, rd.tensor([1.0, 2.0]))


@pytest.mark.parametrize("share", [lambda: rd.from_numpy(np.arange(3.0)), lambda: shared_with_numpy(rd.arange(3.0))])
def test_memory_shared_with_numpy_is_not_resized(share):
    x = share()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(10)
    assert x.resize_(2).tolist() == [0.0, 1.0]


def shared_with_numpy(x):
    x.numpy()
    return x
