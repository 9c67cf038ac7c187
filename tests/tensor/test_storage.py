"""Storages: their memory, who shares it, and tensors that swap it."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import redispatch as rd
from redispatch import nn
from redispatch.subclasses import TwoTensor
from redispatch.testing import assert_close
from redispatch.utils import swap_tensors

# Storages: resizing, and what becomes of the tensors that hold them ---------------------------------------------------

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


SECOND_HOLDERS = {
    "a view": lambda x: x[:4],
    "a view of a view": lambda x: x[:4][1:],
    "a view of another dtype": lambda x: x.view(rd.int32),
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
    "a parameter": lambda x: nn.Parameter(x, requires_grad=False),
    "a subclass": lambda x: x.as_subclass(nn.Buffer),
    "set_ to the tensor": lambda x: rd.empty(0).set_(x),
    "set_ to the storage": lambda x: rd.empty(0).set_(x.untyped_storage(), 0, (4,), (1,)),
    "a view of what was set": lambda x: rd.empty(0).set_(x)[1:],
}


@pytest.mark.parametrize("second", SECOND_HOLDERS.values(), ids=SECOND_HOLDERS)
@pytest.mark.parametrize("first_resizes", [True, False])
def test_resizing_reaches_the_second_holder_of_a_storage(second, first_resizes):
    x = rd.arange(4.0) + 0
    other = second(x)
    former, (resized, told) = x.data_ptr(), (x, other) if first_resizes else (other, x)
    resized.resize_(1000)
    assert x.data_ptr() != former
    resized[: 4 - resized.storage_offset()].fill_(7)
    assert (told.view(resized.dtype)[-2:] == 7).all()
    assert told.untyped_storage() is resized.untyped_storage()


@pytest.fixture
def no_search(monkeypatch):
    """Makes it an error to ask the garbage collector who holds a storage."""

    def refused(storage):
        raise AssertionError("the heap is searched")

    monkeypatch.setattr("gc.get_referrers", refused)


def test_resizing_the_only_holder_searches_no_heap(no_search):
    """A search takes .03 s, and `out=` of no elements is what programs write."""
    x = rd.empty(0)
    assert x.resize_(1000).shape == (1000,)
    assert rd.add(rd.ones(3), 1, out=rd.empty(0)).tolist() == [2, 2, 2]
    assert rd.empty(2, device="meta").resize_(5).untyped_storage().nbytes() == 20
    view = x[:10]
    with pytest.raises(AssertionError, match="searched"):
        x.resize_(2000)
    del view
    x.resize_(3000)


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


# Memory that processes share ------------------------------------------------------------------------------------------

# Children see what parents write, queues hand over the memory itself, nothing is left.


def forked(work):
    """Runs `work` in a child made by fork, and waits for it."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def test_a_child_writes_into_the_memory_of_its_parent():
    x = rd.zeros(3)
    assert not x.is_shared() and x.share_memory_() is x and x.is_shared() and not rd.zeros(3).is_shared()
    forked(lambda: x.add_(1))
    assert x.tolist() == [1, 1, 1]


def test_views_made_before_and_after_see_it_too():
    x = rd.arange(4.0)
    before = x[1:]
    before.share_memory_()
    after = x.view(2, 2)
    assert before.storage_offset() == 1 and after.is_shared() and x.tolist() == [0, 1, 2, 3]
    forked(lambda: before.mul_(2))
    assert x.tolist() == [0, 2, 4, 6] and after.tolist() == [[0, 2], [4, 6]]
    assert x.untyped_storage().is_shared() and x.share_memory_() is x


def test_the_parameters_of_a_module_are_shared():
    layer = nn.Linear(2, 2).share_memory()
    weight = layer.weight

    def train():
        layer(rd.ones(1, 2)).sum().backward()
        rd.optim.SGD(layer.parameters(), lr=1.0).step()

    before = weight.detach().clone()
    forked(train)
    assert layer.weight is weight and weight.is_shared() and rd.equal(weight.detach(), before - 1)


SPAWNED = """
import multiprocessing
import redispatch as rd

def add_in_child(received, answers):
    x = received.get()
    x.add_(1)
    answers.put(x.is_shared())
    received.get()  # the parent has looked

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    received, answers = context.Queue(), context.Queue()
    child = context.Process(target=add_in_child, args=(received, answers))
    child.start()
    x = rd.zeros(4).share_memory_()
    received.put(x[1:])
    print(answers.get(timeout=60), x.tolist())
    received.put(None)
    child.join(60)
    print(child.exitcode)
"""


def test_a_queue_hands_over_the_memory_itself(tmp_path):
    """A program of its own: a spawned child imports the program that has spawned it."""
    (tmp_path / "program.py").write_text(SPAWNED)
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, timeout=120)
    assert done.stdout.split("\n") == ["True [0.0, 1.0, 1.0, 1.0]", "0", ""], done.stderr


def test_nothing_is_left_when_a_process_dies():
    before = set(Path("/dev/shm").iterdir()) if Path("/dev/shm").exists() else set()

    def die():
        rd.zeros(1000).share_memory_()
        os.kill(os.getpid(), signal.SIGKILL)

    forked(die)
    assert not Path("/dev/shm").exists() or set(Path("/dev/shm").iterdir()) <= before


def test_descriptors_are_given_back():
    def count():
        return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0

    rd.zeros(3).share_memory_()
    before = count()
    for _ in range(20):
        rd.zeros(3).share_memory_()
    assert count() <= before + 1


def test_storages_of_no_bytes_and_of_no_memory():
    assert rd.zeros(0).share_memory_().is_shared()
    assert rd.UntypedStorage._new_shared(5).tolist() == [0] * 5
    with pytest.raises(RuntimeError, match="only available on CPU"):
        rd.zeros(3, device="meta").share_memory_()
    with pytest.raises(RuntimeError, match="not resizable"):
        rd.zeros(3).share_memory_().resize_(100)


# swap_tensors: two tensors change places ------------------------------------------------------------------------------


def test_whoever_holds_the_one_has_the_other():
    a, b = rd.ones(2), rd.zeros(3, requires_grad=True)
    a.tag = "a"
    held = [a]
    swap_tensors(a, b)
    assert held[0] is a and a.tolist() == [0, 0, 0] and a.requires_grad and a.is_leaf
    assert b.tolist() == [1, 1] and not b.requires_grad and b.tag == "a" and not hasattr(a, "tag")
    (a * 2).sum().backward()
    assert a.grad.tolist() == [2, 2, 2]


def test_classes_change_places_too():
    plain, two = rd.nn.Parameter(rd.ones(2)), rd.nn.Parameter(TwoTensor(rd.zeros(2), rd.ones(2)))
    swap_tensors(plain, two)
    assert type(plain) is TwoTensor and isinstance(plain, rd.nn.Parameter) and type(two) is rd.nn.Parameter
    assert (plain + 1).a.tolist() == [1, 1] and two.tolist() == [1, 1]


def test_a_result_takes_its_history_along():
    x = rd.ones(2, requires_grad=True)
    y, z = x * 2, rd.zeros(2)
    swap_tensors(y, z)
    assert y.grad_fn is None and z.grad_fn is not None
    z.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_graph_that_was_recorded_before_is_not_run_with_the_wrong_tensor():
    x = rd.ones(2, requires_grad=True)
    y = x * 2
    swap_tensors(x, rd.zeros(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        y.sum().backward()
    a, b = rd.ones(2), rd.ones(2, requires_grad=True)
    y = a * b
    swap_tensors(a, rd.zeros(2))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_what_cannot_be_swapped_is_refused_and_left_as_it_was():
    a, b = rd.ones(2), rd.zeros(2)
    ref = weakref.ref(b)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref associated with it"):
        swap_tensors(a, b)
    assert ref() is b and a.tolist() == [1, 1]

    class Slotted(rd.Tensor):
        __slots__ = ("more",)

    with pytest.raises(RuntimeError, match="Cannot swap t1 and t2 if they have different slots"):
        swap_tensors(a, rd.ones(2).as_subclass(Slotted))
    with pytest.raises(TypeError, match="expected t2 to be a Tensor, but got int"):
        swap_tensors(a, 1)


class Named(rd.Tensor):
    """A subclass of which operators make plain tensors, as PyTorch's do where a function runs without overrides."""


class Renewed(rd.Tensor):
    def new_empty(self, size):
        return rd.empty(size).as_subclass(Renewed)


def test_deepcopy_asks_a_subclass_for_an_empty_tensor_of_its_class():
    with pytest.raises(RuntimeError, match=r"for non-wrapper subclasses only works .* implement new_empty\(\)"):
        copy.deepcopy(rd.ones(2).as_subclass(Named))
    x = rd.ones(2).as_subclass(Renewed)
    x.note = [3]
    other = copy.deepcopy(x)
    assert type(other) is Renewed and other.note == [3] and other.note is not x.note
    assert other.tolist() == [1, 1] and other.data_ptr() != x.data_ptr()
