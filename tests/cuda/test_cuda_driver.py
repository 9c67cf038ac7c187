"""The driver for NVIDIA's cards, with bindings that check how they are called. No card is needed, nor claimed."""

import gc
import sys
import threading

import pytest

import redispatch as rd
from redispatch.kernels import cuda
from redispatch.kernels.cuda import cuda_driver
from redispatch.kernels.cuda.runtime.devices import started

from .conftest import devices_of

pytest.importorskip("cuda.core", reason="NVIDIA's bindings, whose signatures are checked: install redispatch[cuda]")
pytestmark = pytest.mark.skipif(not cuda.available(), reason="kernels are compiled: install redispatch[cuda]")

from .fakes import fake_cards  # noqa: E402  # behind the skips


@pytest.fixture
def world(monkeypatch):
    with fake_cards(monkeypatch) as (driver, world), devices_of(driver):
        yield world


def test_where_there_is_no_driver_there_are_no_cards(monkeypatch):
    assert cuda_driver.cards() is None
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    assert cuda_driver.cards() is None


def test_operators_run_through_the_bindings(world):
    x = rd.arange(6.0).reshape(2, 3)
    here = x.cuda()
    assert rd.cuda.get_device_name() == "fake card 0" and rd.cuda.get_device_capability() == (8, 0)
    assert (here * 2 + here.t().contiguous().t()).tolist() == (x * 3).tolist()
    assert here.sum().item() == 15 and here.sum(0).tolist() == [3, 5, 7]
    here[:, 1:].add_(1)
    assert here.tolist() == [[0, 2, 3], [3, 5, 6]]
    assert here.half().cpu().tolist() == here.tolist()
    rd.cuda.synchronize()
    assert {"cuMemAlloc", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuStreamSynchronize"} <= set(world.calls)
    held = len(world.owner)
    del here
    gc.collect()
    rd.cuda.empty_cache()
    assert len(world.owner) < held and "cuMemFree" in world.calls


def test_streams_and_events(world):
    x = rd.ones(4).cuda()
    start, end = rd.cuda.Event(enable_timing=True), rd.cuda.Event(enable_timing=True)
    with rd.cuda.stream(rd.cuda.Stream(priority=-1)) as stream:
        start.record()
        y = x + 1
        end.record()
        x.record_stream(stream)
    rd.cuda.current_stream().wait_stream(stream)
    stream.synchronize()
    assert start.elapsed_time(end) == 1.5 and end.query() and stream.query() and y.tolist() == [2] * 4
    assert stream.cuda_stream >= 16 and rd.cuda.default_stream().cuda_stream == 0
    del x
    gc.collect()
    assert rd.ones(4).cuda().tolist() == [1] * 4


def test_each_thread_has_a_context(world):
    found = []

    def work():
        x = rd.arange(3.0).cuda()
        found.append((x + 1).tolist())
        del x
        gc.collect()

    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found == [[1, 2, 3]] * 2


def test_graphs_through_the_bindings(world):
    x, numbers = rd.ones(4).cuda(), rd.arange(4.0, pin_memory=True)
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        x.copy_(numbers, non_blocking=True)
        y = (x * 2).sum()
        with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
            y.item()
    assert x.tolist() == [1] * 4
    graph.replay()
    assert y.item() == 12 and x.tolist() == [0, 1, 2, 3]
    numbers.add_(1)
    graph.replay()
    assert y.item() == 20
    assert "cuThreadExchangeStreamCaptureMode" in world.calls and "cuGraphLaunch" in world.calls
    del graph
    gc.collect()
    assert world.calls.count("cuGraphDestroy") == 1
    with pytest.warns(UserWarning, match="empty"), rd.cuda.graph(rd.cuda.CUDAGraph(), capture_error_mode="relaxed"):
        pass


def test_pinned_and_foreign_memory(world):
    x = rd.arange(4.0).pin_memory().to("cuda", non_blocking=True)
    back = x.to("cpu", non_blocking=True)
    rd.cuda.synchronize()
    assert back.tolist() == [0, 1, 2, 3] and back.is_pinned() and world.pinned
    del back
    gc.collect()
    started().pinned.empty()
    assert not world.pinned
    assert rd.from_dlpack(x).tolist() == x.tolist()
    capsule = x.__dlpack__(stream=512)  # another library's stream
    assert rd.from_dlpack(capsule).data_ptr() == x.data_ptr()

    class Other:
        __cuda_array_interface__ = x.__cuda_array_interface__

    assert rd.as_tensor(Other()).tolist() == [0, 1, 2, 3]


def test_errors_are_runtime_errors(world):
    with pytest.raises(rd.cuda.OutOfMemoryError, match="CUDA out of memory. Tried to allocate 32.00 MiB"):
        rd.empty(1 << 23, device="cuda")
    x = rd.empty(3, device="cuda")
    with pytest.raises(RuntimeError, match="CUDA error: CUDA simulator: a read"):
        x + 1  # of memory that was never written
    events = rd.cuda.Event(), rd.cuda.Event(enable_timing=True)
    for event in events:
        event.record()
    with pytest.raises(RuntimeError, match="CUDA error: timing is disabled"):
        started().driver.elapsed(events[0]._made, events[1]._made)
    with pytest.raises(RuntimeError, match="CUDA error: CUDA_ERROR_INVALID_VALUE"):
        started().driver.checked((world.api.CUresult.CUDA_ERROR_INVALID_VALUE,))


def test_two_cards(monkeypatch):
    with fake_cards(monkeypatch, devices=2) as (driver, world), devices_of(driver):
        x, y = rd.ones(3).to("cuda:1"), rd.ones(3).to("cuda:0")
        assert (x + 1).device.index == 1 and (y + 1).device.index == 0
        assert (x + 1).tolist() == (y + 1).tolist() == [2] * 3
        assert x.to("cuda:0").device.index == 0
        with rd.cuda.device(1), rd.cuda.stream(rd.cuda.Stream()):
            assert (x * 3).sum().item() == 9
            rd.cuda.Event().record()
        assert sorted(set(world.owner.values())) == [0, 1]
        del x, y
        gc.collect()
        rd.cuda.empty_cache()


def test_what_a_card_has_is_told_under_pytorchs_names(world):
    found = rd.cuda.get_device_properties(0)
    assert found.name == "fake card 0" and (found.major, found.minor) == (8, 0)
    assert found.multi_processor_count == len("multiprocessor_count") and found.L2_cache_size == len("l2_cache_size")
    assert "multi_processor_count=20" in repr(found) and repr(found).startswith("_CudaDeviceProperties(name=")
