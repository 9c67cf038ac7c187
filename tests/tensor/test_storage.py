"""Storages: resizing, and what becomes of the tensors that hold them."""

import copy
import pickle
import threading

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


# Note [Storages are made when they are asked for]


def test_a_result_has_no_storage_until_somebody_asks():
    x = rd.ones(2) + 1
    assert x._store is None
    storage = x.untyped_storage()
    assert storage is x.untyped_storage() is x._store
    assert (storage.nbytes(), storage.data_ptr()) == (8, x.data_ptr())


@pytest.mark.parametrize("view", [lambda x: x[1:], lambda x: x.detach(), lambda x: x.view(rd.int32), lambda x: x.data])
def test_a_view_shares_its_bases_storage_whichever_is_asked_first(view):
    base = rd.ones(4) + 0
    shown = view(base)
    assert shown.untyped_storage() is base.untyped_storage()
    shown.zero_()
    assert base[1:].tolist() == [0, 0, 0]


def test_threads_that_ask_at_once_get_one_storage():
    threads = 8
    for _ in range(50):
        x, barrier, found = rd.ones(4) + 0, threading.Barrier(threads), []

        def ask(x=x, barrier=barrier, found=found):
            barrier.wait()
            found.append(x.untyped_storage())

        running = [threading.Thread(target=ask) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        assert len({id(storage) for storage in found}) == 1


def test_resizing_reaches_the_tensor_whose_storage_was_made_for_it():
    x = rd.arange(4.0) + 0
    view = x[2:]
    x.resize_(1000)
    x[2:4] = rd.tensor([7.0, 8.0])
    assert view.tolist() == [7, 8]
    assert x.untyped_storage().nbytes() == 4000


@pytest.mark.parametrize("shape, stride, elements", [((2, 3), (3, 1), 6), ((2, 3), (1, 4), 10), ((0, 3), (3, 1), 0)])
def test_the_storage_of_a_tensor_without_data_has_its_size(shape, stride, elements):
    x = rd.empty_strided(shape, stride, device="meta")
    assert x.untyped_storage().nbytes() == 4 * elements
    assert x.untyped_storage().device == rd.device("meta")


def test_tensors_that_share_a_storage_share_it_when_pickled_or_copied():
    base = rd.ones(4) + 0
    for copied in (pickle.loads(pickle.dumps([base, base[1:]])), copy.deepcopy([base, base[1:]])):
        assert copied[0].untyped_storage() is copied[1].untyped_storage() is not base.untyped_storage()
        copied[1].zero_()
        assert copied[0].tolist() == [1, 0, 0, 0]


def test_set_takes_the_storage_of_a_tensor_that_had_none():
    source, x = rd.ones(3) + 0, rd.zeros(1)
    x.set_(source)
    assert x.untyped_storage() is source.untyped_storage()
    x.fill_(5)
    assert source.tolist() == [5, 5, 5]


class Passes(rd.autograd.Function):
    """Hands a gradient on, or a view of it, and keeps the gradient."""

    @staticmethod
    def forward(ctx, x, view, kept):
        ctx.view, ctx.kept = view, kept
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        grad = grad * 1  # new memory, which nobody else has
        ctx.kept.append(grad)
        return ctx.view(grad), None, None


@pytest.mark.parametrize("view", [lambda g: g, lambda g: g.view(3), lambda g: g.detach()])
def test_a_gradient_whose_memory_somebody_else_has_is_copied(view):
    x, kept = rd.ones(3, requires_grad=True), []
    Passes.apply(x, view, kept).sum().backward()
    kept[0].zero_()
    assert x.grad.tolist() == [1, 1, 1]
