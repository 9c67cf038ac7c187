"""Memory beside the allocator's: pinned memory of the CPU's, and memory that other libraries hold."""

import ctypes
import gc
from types import SimpleNamespace

import numpy as np
import pytest

import redispatch as rd
from redispatch.kernels import cuda
from redispatch.kernels.cuda.choose import found
from redispatch.kernels.cuda.runtime import dlpack
from redispatch.kernels.cuda.runtime.devices import started
from redispatch.kernels.cuda.simulated_driver import SimulatedDriver

from .conftest import devices_of


@pytest.fixture
def device():
    """The simulator, of which no kernel is asked here: copies need no compiler."""
    with devices_of(SimulatedDriver(1 << 20)) as driver:
        yield driver


# --- pinned memory ----------------------------------------------------------------------------------------------------


def test_without_a_device_nothing_can_be_pinned():
    former = cuda.use(None)
    try:
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
            rd.ones(2).pin_memory()
        for factory in (lambda: rd.empty(2, pin_memory=True), lambda: rd.tensor([1.0], pin_memory=True)):
            with pytest.raises(RuntimeError, match="pin_memory=True requires a CUDA or other accelerator backend"):
                factory()
        assert not rd.ones(2).is_pinned()
        with pytest.warns(UserWarning, match="no accelerator is found"):
            assert [x.item() for x in rd.utils.data.DataLoader([1, 2], pin_memory=True)] == [1, 2]
    finally:
        cuda.restore(former)


def test_pinned_tensors_are_the_cpus(device):
    x = rd.arange(6.0).reshape(2, 3).t()
    pinned = x.pin_memory()
    assert pinned.is_pinned() and not x.is_pinned() and pinned.device.type == "cpu" and pinned.pin_memory() is pinned
    assert pinned.tolist() == x.tolist() and pinned.is_contiguous() and pinned[1:].is_pinned()
    assert (pinned + 1).tolist() == (x + 1).tolist() and not (pinned + 1).is_pinned()
    for made in (
        rd.empty(3, pin_memory=True),
        rd.zeros(3, pin_memory=True),
        rd.tensor([1, 2], pin_memory=True),
        rd.full_like(x, 2, pin_memory=True),
        rd.empty_strided((2, 2), (1, 2), pin_memory=True),
        rd.arange(3, pin_memory=True),
        rd.randn(3, pin_memory=True),
    ):
        assert made.is_pinned()
    assert rd.tensor([1, 2], pin_memory=True).tolist() == [1, 2] and rd.zeros(3, pin_memory=True).tolist() == [0] * 3
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        rd.empty(2, device="cuda", pin_memory=True)
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        rd.empty(2, device="meta", pin_memory=True)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        rd.empty(2, device="cuda").pin_memory()
    assert not rd.empty(2, device="cuda").is_pinned()


def noted(device, monkeypatch):
    """The names of the driver's methods that move bytes, as they are called."""
    calls = []
    for name in ("send", "fetch", "read", "write", "synchronize"):
        method = getattr(device, name)
        monkeypatch.setattr(device, name, lambda *a, n=name, m=method: (calls.append(n), m(*a))[1])
    return calls


def test_copies_of_pinned_memory_do_not_wait_if_they_need_not(device, monkeypatch):
    pinned, pageable = rd.arange(4.0, pin_memory=True), rd.arange(4.0)
    here = rd.empty(4, device="cuda")
    calls = noted(device, monkeypatch)

    def called(call):
        calls.clear()
        call()
        return calls

    assert called(lambda: here.copy_(pinned, non_blocking=True)) == ["send"]
    assert here.tolist() == [0, 1, 2, 3]
    assert called(lambda: here.copy_(pinned)) == ["write"]
    assert called(lambda: here.copy_(pageable, non_blocking=True)) == ["write"]
    assert called(lambda: pinned.to("cuda", non_blocking=True)) == ["send"]
    assert called(lambda: pinned[1:].cuda(non_blocking=True)) == ["send"]
    back = rd.empty(4, pin_memory=True)
    assert called(lambda: back.copy_(here, non_blocking=True)) == ["fetch"]
    assert back.tolist() == [0, 1, 2, 3]
    assert called(lambda: back.copy_(here)) == ["read"]
    assert called(lambda: here.cpu()) == ["read"]
    assert called(lambda: here.to("cpu", non_blocking=True)) == ["fetch"]
    assert here.to("cpu", non_blocking=True).is_pinned() and not here.cpu().is_pinned()
    assert called(lambda: here.copy_(rd.arange(4, pin_memory=True), non_blocking=True)) == ["write"]  # another dtype


def test_pinned_memory_is_handed_out_again_when_streams_have_read_it(device, monkeypatch):
    done = []
    monkeypatch.setattr(device, "done", lambda event: bool(done))
    x = rd.ones(8, pin_memory=True)
    here = x.to("cuda", non_blocking=True)
    place = x.data_ptr()
    del x
    gc.collect()
    assert rd.empty(8, pin_memory=True).data_ptr() != place
    done.append(True)
    again = [rd.empty(8, pin_memory=True) for _ in range(3)]
    assert place in {one.data_ptr() for one in again}
    del again
    assert here.tolist() == [1] * 8
    started().pinned.empty()
    assert not any(started().pinned.free.values())


def test_a_data_loader_pins_its_batches(device):
    pairs = [(rd.tensor([float(i)]), i) for i in range(4)]
    for numbers, labels in rd.utils.data.DataLoader(pairs, batch_size=2, pin_memory=True):
        assert numbers.is_pinned() and labels.is_pinned()
    assert not next(iter(rd.utils.data.DataLoader(pairs)))[0].is_pinned()


def test_a_graph_reads_pinned_memory_anew_at_each_replay(device):
    numbers, here = rd.arange(3.0, pin_memory=True), rd.zeros(3).cuda()
    back = rd.zeros(3, pin_memory=True)
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        here.copy_(numbers, non_blocking=True)
        back.copy_(here, non_blocking=True)
    assert here.tolist() == back.tolist() == [0, 0, 0]
    graph.replay()
    assert here.tolist() == back.tolist() == [0, 1, 2]
    numbers.add_(5)
    graph.replay()
    assert back.tolist() == [5, 6, 7]


# --- other libraries --------------------------------------------------------------------------------------------------


class Other:
    """An array of another library's, on the same device."""

    def __init__(self, device, numbers, **told):
        self.numbers = np.asarray(numbers)
        self.address = device.allocate(0, self.numbers.nbytes)
        device.write(self.address, np.ascontiguousarray(self.numbers).reshape(-1).view(np.uint8))
        self.__cuda_array_interface__ = {
            "typestr": self.numbers.dtype.str,
            "shape": self.numbers.shape,
            "data": (self.address, False),
            "version": 3,
            **told,
        }


def test_what_says_where_it_lies_becomes_a_tensor(device):
    other = Other(device, np.arange(6, dtype=np.int32).reshape(2, 3))
    x = rd.as_tensor(other)
    assert x.is_cuda and x.dtype is rd.int32 and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.data_ptr() == other.address and rd.asarray(other).data_ptr() == other.address
    x.copy_(rd.zeros(2, 3))
    assert device.read(other.address, 24).sum() == 0
    assert rd.as_tensor(other, device="cpu").device.type == "cpu"
    stepped = Other(device, np.arange(6.0), shape=(2, 2), strides=(16, 8))
    assert rd.as_tensor(stepped).stride() == (2, 1) and rd.as_tensor(stepped).tolist() == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="strides must be multiples of the 8 bytes"):
        rd.as_tensor(Other(device, np.arange(6.0), shape=(2,), strides=(4,)))
    with pytest.raises(ValueError, match="mask"):
        rd.as_tensor(Other(device, np.arange(6.0), mask=other))
    with pytest.raises(TypeError, match="can't convert"):
        rd.as_tensor(Other(device, np.arange(6, dtype=np.longdouble)))


def test_tensor_copies_what_says_where_it_lies(null):
    other = Other(null, np.ones(4, np.float32))
    copy = rd.tensor(other)
    assert copy.is_cuda and null.launched[-1].arguments[1:3] == (copy.data_ptr(), other.address)


def test_a_tensor_over_foreign_memory_keeps_its_owner(device):
    other = Other(device, np.ones(3))
    gone = []
    other.token = SimpleNamespace(__del__=None)

    class Token:
        def __del__(self):
            gone.append(True)

    other.token = Token()
    x = rd.as_tensor(other)[1:]
    del other
    gc.collect()
    assert not gone and x.tolist() == [1, 1]
    del x
    gc.collect()
    assert gone


def test_tensors_say_where_they_lie(device):
    x = rd.arange(6.0).reshape(2, 3).cuda()
    assert x.__cuda_array_interface__ == {
        "typestr": "<f4",
        "shape": (2, 3),
        "strides": None,
        "data": (x.data_ptr(), False),
        "version": 2,
    }
    turned = x[:, 1:].t().__cuda_array_interface__
    assert turned["strides"] == (4, 12) and turned["data"][0] == x.data_ptr() + 4
    names = [x.to(d).__cuda_array_interface__["typestr"] for d in (rd.float32,)]
    names += [rd.empty(1, dtype=d, device="cuda").__cuda_array_interface__["typestr"] for d in KINDS]
    assert names == ["<f4", "|b1", "<i8", "<f2", "<V2", "<c8"]
    assert rd.empty(0, device="cuda").__cuda_array_interface__["data"] == (0, False)
    assert not hasattr(rd.ones(2), "__cuda_array_interface__")
    with pytest.raises(RuntimeError, match="on Variable that requires grad"):
        rd.empty(2, device="cuda", requires_grad=True).__cuda_array_interface__


KINDS = [rd.bool, rd.int64, rd.float16, rd.bfloat16, rd.complex64]


class Producer:
    """An object of another library's that speaks DLPack: it hands out what a tensor does."""

    def __init__(self, x, versioned=True):
        self.x, self.versioned, self.streams = x, versioned, []

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **more):
        if more and not self.versioned:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.streams.append(stream)
        return self.x.__dlpack__(stream=stream, **more)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("dtype", [rd.float32, *KINDS], ids=str)
def test_dlpack_there_and_back(device, dtype, versioned):
    x = rd.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype).cuda()
    producer = Producer(x[:, 1:], versioned)
    y = rd.from_dlpack(producer)
    assert producer.streams == [1]  # DLPack's name of the default stream
    assert y.dtype is dtype and y.shape == (2, 2) and y.stride() == (3, 1) and y.data_ptr() == x[:, 1:].data_ptr()
    assert y.tolist() == x[:, 1:].tolist() and x.__dlpack_device__() == (2, 0)
    held = rd.cuda.memory_allocated()
    del x, producer
    gc.collect()
    assert rd.cuda.memory_allocated() == held and len(dlpack._EXPORTED) == 1
    del y
    gc.collect()
    assert rd.cuda.memory_allocated() == 0 and not dlpack._EXPORTED


def test_a_capsule_is_used_once_and_one_that_nobody_uses_goes(device):
    x = rd.arange(3.0).cuda()
    capsule = rd.utils.dlpack.to_dlpack(x)
    assert rd.utils.dlpack.from_dlpack(capsule).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="can be consumed only once"):
        rd.from_dlpack(capsule)
    unused = x.__dlpack__(max_version=(1, 0))
    assert len(dlpack._EXPORTED) == 1
    del unused
    gc.collect()
    assert not dlpack._EXPORTED
    with pytest.raises(BufferError, match="require gradient"):
        rd.empty(2, device="cuda", requires_grad=True).__dlpack__()
    with pytest.raises(TypeError, match="stream must be"):
        x.__dlpack__(stream="1")
    with pytest.raises(BufferError, match="per-thread default stream"):
        x.__dlpack__(stream=2)
    assert x.__dlpack__(copy=True) is not None and np.from_dlpack(x.cpu()).tolist() == [0, 1, 2]


def test_a_capsule_has_the_layout_that_c_programs_read(device):
    x = rd.arange(6.0).reshape(2, 3).cuda().t()
    capsule = x.__dlpack__(max_version=(1, 0))
    address = dlpack.pointer_of(id(capsule), b"dltensor_versioned")
    words = (ctypes.c_uint64 * 10).from_address(address)
    assert words[0] == 1 and words[3] == 0  # version 1.0 (two numbers of four bytes), no flags
    assert words[4] == x.data_ptr() and words[5] == 2  # on a device of type 2, of index 0
    assert words[6] == 2 | 2 << 32 | 32 << 40 | 1 << 48  # 2 dimensions of floats of 32 bits, one a lane
    sizes, strides = ((ctypes.c_int64 * 2).from_address(words[k]) for k in (7, 8))
    assert list(sizes) == [3, 2] and list(strides) == [1, 3] and words[9] == 0
    assert ctypes.sizeof(dlpack.Managed) == 64 and ctypes.sizeof(dlpack.ManagedVersioned) == 80


def test_streams_of_both_libraries_are_put_in_order(device, monkeypatch):
    waits = []
    monkeypatch.setattr(device, "wait", lambda stream, event: waits.append((stream, event.stream)))
    x = rd.arange(3.0).cuda()
    x.__dlpack__(stream=-1)
    x.__dlpack__(stream=1)
    x.__dlpack__(stream=None)
    assert not waits  # the default stream is the current one
    x.__dlpack__(stream=77)
    assert waits == [(77, 0)]
    with rd.cuda.stream(rd.cuda.Stream()) as stream:
        waits.clear()
        x.__dlpack__(stream=None)
        assert waits == [(0, stream.cuda_stream)]
        producer = Producer(x)
        rd.from_dlpack(producer)
        assert producer.streams == [stream.cuda_stream]
        waits.clear()
        rd.as_tensor(Other(device, np.ones(3), stream=99))
        assert waits == [(stream.cuda_stream, 99)]


def test_a_stream_of_another_library_is_worked_on(null):
    with rd.cuda.stream(rd.cuda.ExternalStream(4096)) as stream:
        rd.empty(3, device="cuda") + 1
        assert null.launched[-1].stream == stream.number and stream.cuda_stream == 4096


# --- errors where they belong -----------------------------------------------------------------------------------------


def test_launch_blocking_waits_for_each_launch(monkeypatch):
    monkeypatch.setenv("REDISPATCH_CUDA", "null")
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    driver = found()
    waited = []
    monkeypatch.setattr(driver, "synchronize", lambda device, stream=None: waited.append(stream))
    with devices_of(driver):
        x = rd.empty(3, device="cuda")
        x + 1
        assert waited == [0]
        x.add_(1)
        x.sum()
        assert waited == [0, 0, 0]
        with rd.cuda.stream(rd.cuda.Stream()) as stream:
            x * 2
            assert waited[-1] == stream.number
        with rd.cuda.graph(rd.cuda.CUDAGraph()):
            waited.clear()
            x + 1
            assert not waited


def test_devices_have_streams_and_memory_of_their_own():
    with devices_of(cuda.NullDriver(count=2)) as driver:
        with rd.cuda.device(1):
            x = rd.empty(3, device="cuda")
            assert x.device == rd.device("cuda:1") and rd.cuda.current_device() == 1
            assert rd.cuda.current_stream() == rd.cuda.default_stream() != rd.cuda.default_stream(0)
        y = rd.empty(3, device="cuda")
        assert y.device == rd.device("cuda:0") and rd.cuda.current_device() == 0
        x + 1
        y + 1
        assert [one.stream for one in driver.launched] == [-1, 0]
        assert rd.cuda.default_stream(1).cuda_stream == 0
        with pytest.raises(RuntimeError, match="on the same device"):
            x + y
        with rd.cuda.device_of(x):
            assert rd.cuda.current_device() == 1
        with rd.cuda.stream(rd.cuda.Stream(1)) as stream:
            assert rd.cuda.current_device() == 1
            assert (x + 1).device.index == 1 and driver.launched[-1].stream == stream.number
        assert rd.cuda.memory_allocated(0) == rd.cuda.memory_allocated(1) == 512
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            rd.cuda.set_device(2)


def test_the_snapshot_says_whose_memory_is_what(null):
    x, y = rd.empty(100, device="cuda"), rd.empty(1 << 20, device="cuda")
    null.done = lambda event: False
    z = rd.empty(100, device="cuda")
    z.record_stream(rd.cuda.Stream())
    del z
    w = rd.empty(700, device="cuda")
    del w
    gc.collect()
    states = {one["address"]: one["blocks"][0]["state"] for one in rd.cuda.memory_snapshot()}
    assert states[x.data_ptr()] == states[y.data_ptr()] == "active_allocated"
    assert sorted(states.values())[2:] == ["active_awaiting_free", "inactive"]
    nested = rd.cuda.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == rd.cuda.memory_allocated() == 512 + (4 << 20)
    assert nested["active_bytes"]["all"]["current"] == 1024 + (4 << 20)
    assert "segments 4" in rd.cuda.memory_summary()
    rd.cuda.reset_accumulated_memory_stats()
    after = rd.cuda.memory_stats()
    assert after["allocated_bytes.all.allocated"] == rd.cuda.memory_allocated() and after["allocation.all.freed"] == 0
    with pytest.warns(FutureWarning):
        rd.cuda.reset_max_memory_allocated()
    assert rd.cuda.max_memory_allocated() == rd.cuda.memory_allocated()
