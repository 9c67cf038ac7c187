"""Names of `redispatch.cuda` that programs written for PyTorch use beside devices, streams, memory and graphs."""

import gc
import importlib

import pytest

import redispatch as rd
from redispatch.backends import cudnn
from redispatch.cuda import MODULES, NAMES
from redispatch.kernels import cuda
from redispatch.kernels.cuda.runtime.devices import start

from .conftest import devices_of


def test_every_name_is_there_also_in_modules_of_its_own(null):
    assert all(getattr(rd.cuda, name) is not None for name in NAMES)
    for module, rows in MODULES.items():
        names = " ".join(rows.values()).split()
        found = importlib.import_module(f"redispatch.cuda.{module}")
        assert found is getattr(rd.cuda, module) and set(names) <= NAMES.keys()
        assert all(getattr(found, name) is getattr(rd.cuda, name) for name in names)
        with pytest.raises(AttributeError, match=f"module 'redispatch.cuda.{module}' has no attribute 'colour'"):
            _ = found.colour


def test_tensors_of_a_pool_lie_apart(null):
    pool = rd.cuda.MemPool()
    before = rd.empty(1000, device="cuda")
    with rd.cuda.use_mem_pool(pool):
        inside = rd.empty(1000, device="cuda")
    behind = rd.empty(1000, device="cuda")
    owners = [x._storage.block.pool.owner for x in (before, inside, behind)]
    assert owners == [None, pool._pools, None]
    address = inside.data_ptr()
    del inside, owners
    gc.collect()
    other = rd.empty(1000, device="cuda")
    with rd.cuda.use_mem_pool(pool):
        again = rd.empty(1000, device="cuda")
    assert other.data_ptr() != address == again.data_ptr()
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph, pool=pool.id):
        before * 2
    assert graph.pool() == pool.id and pool.use_count() == 2
    graph.reset()
    assert pool.use_count() == 1
    with pytest.raises(NotImplementedError, match="memory from the driver"):
        rd.cuda.MemPool(object())
    del pool, again
    gc.collect()
    assert not start().allocator.private


def test_regions_for_profilers_are_counted_and_harmless():
    nvtx = rd.cuda.nvtx
    assert (nvtx.range_push("a"), nvtx.range_push("b")) == (0, 1)
    with nvtx.range("part {}", 3):
        nvtx.mark("here")
    assert (nvtx.range_pop(), nvtx.range_pop(), nvtx.range_pop()) == (1, 0, -1)
    assert nvtx.range_end(nvtx.range_start("c")) is None


def test_what_a_device_can_is_told(null):
    assert not rd.cuda.can_device_access_peer(0, 0)
    with pytest.raises(AssertionError, match="Invalid peer device id"):
        rd.cuda.can_device_access_peer(0, 7)
    assert rd.cuda.get_arch_list() == ["sm_80"] and not rd.cuda.is_tf32_supported()
    assert rd.cuda.get_gencode_flags() == "-gencode compute=compute_80,code=sm_80"
    assert rd.cuda.get_allocator_backend() == "native" and rd.cuda.get_sync_debug_mode() == 0
    rd.cuda.set_sync_debug_mode("default")
    with pytest.raises(NotImplementedError, match="debug_mode must be 0 or 'default'"):
        rd.cuda.set_sync_debug_mode("warn")
    with pytest.warns(FutureWarning, match="renamed to memory_reserved"):
        assert rd.cuda.memory_cached() == rd.cuda.memory_reserved()
    stream = rd.cuda.Stream()
    with rd.cuda.StreamContext(stream):
        assert rd.cuda.current_stream() == stream
    assert rd.cuda.current_stream() != stream and rd.cuda.Stream.priority_range() == (0, -1)
    graph = rd.cuda.CUDAGraph()
    graph.enable_debug_mode()
    with pytest.raises(NotImplementedError, match="cannot be written to a file"):
        graph.debug_dump("graph.dot")


def test_a_seed_holds_for_devices_that_start_later():
    rd.manual_seed(11)
    with devices_of(cuda.NullDriver(capacity=1 << 20)):
        assert rd.cuda.initial_seed() == 11


def test_switches_of_cudnn_are_kept():
    assert not cudnn.is_available() and cudnn.version() is None and not cudnn.is_acceptable(rd.ones(2))
    cudnn.benchmark = True
    with cudnn.flags(enabled=False, deterministic=True):
        assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (False, False, True)
    assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (True, True, False)
    cudnn.benchmark = False
