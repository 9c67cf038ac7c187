"""Memory that processes share: children see what parents write, queues hand over the memory itself, nothing is left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import redispatch as rd
from redispatch import nn


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
