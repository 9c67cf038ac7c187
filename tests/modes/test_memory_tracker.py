"""MemoryTrackerMode: storages counted once, freed when they die, the peak, by operator, the timeline."""

import gc
import threading
import weakref

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.modes.memory_tracker import GIVEN, MemoryTrackerMode
from redispatch.subclasses.two_tensor import TwoTensor

KIB = 256  # float32 numbers in a KiB


def test_what_dies_is_counted_no_more():
    with MemoryTrackerMode() as memory:
        x = rd.empty(KIB)
        assert memory.live == 1024
        y = rd.empty(KIB)
        assert memory.live == memory.peak == 2048
        del x
        assert memory.live == 1024
    del y
    assert memory.live == 0 and memory.peak == 2048


def test_views_share_and_keep_a_storage():
    with MemoryTrackerMode() as memory:
        x = rd.empty(KIB)
        view = x[1:2].expand(9)
        del x
        assert memory.live == memory.peak == 1024
        del view
        assert memory.live == 0


def test_the_peak_of_temporaries():
    with MemoryTrackerMode() as memory:
        x = rd.ones(KIB)
        y = x.exp().sin().cos()  # at most three at a time
    assert memory.peak == 3 * 1024 and memory.live == 2 * 1024
    assert memory.made == {"aten.ones.default": 1024, "aten.exp.default": 1024, "aten.sin.default": 1024} | {
        "aten.cos.default": 1024
    }
    assert memory.at_peak == {"aten.ones.default": 1024, "aten.exp.default": 1024, "aten.sin.default": 1024}
    assert y.shape == x.shape


def test_the_timeline_has_a_point_for_each_call():
    with MemoryTrackerMode() as memory:
        x = rd.ones(KIB)
        x = x.exp()
        x.add_(1)
    assert memory.timeline == [("aten.ones.default", 1024), ("aten.exp.default", 2048), ("aten.add_.Tensor", 1024)]


def test_what_was_there_before_counts_from_its_first_use():
    x = rd.ones(KIB)
    with MemoryTrackerMode() as memory:
        assert memory.live == 0
        x.t()
        assert memory.live == 1024 and memory.made == {GIVEN: 1024}


def test_what_autograd_saves_is_alive_until_backward():
    x = rd.ones(KIB, requires_grad=True)
    with MemoryTrackerMode() as memory:
        y = x.exp().sin().sum()
        assert memory.live == 2 * 1024 + 4  # x, exp(x), which both derivatives need, and the sum; sin(…) is gone
        y.backward()
        del y
        gc.collect()
    assert memory.live == 2 * 1024  # x and its gradient


def test_a_resized_storage_counts_as_what_it_is_now():
    with MemoryTrackerMode() as memory:
        x = rd.empty(KIB)
        x.resize_(4 * KIB)
        assert memory.live == 4096
    assert memory.peak == 4096 and x.shape == (1024,)


def test_meta_tensors_are_counted_without_memory():
    with MemoryTrackerMode() as memory:
        x = rd.empty(10**6, 10**6, device="meta")
        (x @ x).sum()
    assert memory.peak == 8 * 10**12 + 4


def test_a_wrapper_counts_as_the_tensors_inside_it():
    with MemoryTrackerMode() as memory:
        two = TwoTensor(rd.ones(KIB), rd.ones(KIB))
        two.exp()
    assert memory.peak == 4 * 1024


def test_storages_that_die_in_another_thread_are_counted():
    with MemoryTrackerMode() as memory:
        box = [rd.ones(KIB)]
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()
        assert memory.live == 0


def test_storages_may_outlive_the_mode():
    with MemoryTrackerMode() as memory:
        x = rd.ones(KIB)
    gone = weakref.ref(memory)
    del memory
    gc.collect()
    assert gone() is None  # the storage, which still tells of its end, does not keep the mode
    del x


def test_each_region_starts_from_nothing():
    memory = MemoryTrackerMode()
    kept = []
    for _ in range(2):
        with memory:
            kept.append(rd.ones(KIB))
        assert memory.live == memory.peak == 1024
    kept.clear()
    assert memory.live == 0


def test_an_error_leaves_the_counts_true():
    with MemoryTrackerMode() as memory:
        x = rd.ones(KIB)
        with pytest.raises(RuntimeError):
            x.view(7)
        assert memory.live == 1024 and len(memory.timeline) == 1


def test_the_table():
    with MemoryTrackerMode() as memory:
        x = rd.ones(KIB)
        x.exp().sin()
        rd.zeros(8)
    assert_expected_inline(
        str(memory),
        """\
made by             calls     made  at peak
-------------------------------------------
aten.exp.default        1  1.0 KiB  1.0 KiB
aten.ones.default       1  1.0 KiB  1.0 KiB
aten.sin.default        1  1.0 KiB  1.0 KiB
aten.zeros.default      1     32 B      0 B
-------------------------------------------
total                   4  3.0 KiB  3.0 KiB""",
    )
