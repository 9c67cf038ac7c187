"""NVIDIA's bindings as `cuda_driver.py` sees them, over a simulated GPU: calls are checked against the signatures of
the real ones, need a device that is current in their thread, and fail as CUDA does where a stream is captured.

A kernel's "machine code" is its PTX here, which the simulator runs.
"""

import ctypes
import inspect
import sys
import threading
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np

from redispatch.kernels.cuda import compiler, cuda_driver
from redispatch.kernels.cuda.simulator import Device as GPU


class CUDAError(Exception):
    """As `cuda.core`'s, no RuntimeError."""


class World:
    """The state that all the fakes share: the GPU, who is current where, who is captured."""

    def __init__(self, real_api, real_core, devices, memory):
        self.api, self.core, self.devices = real_api, real_core, devices
        self.gpu, self.local = GPU(memory), threading.local()
        self.captures = {}  # stream's number -> steps
        self.mode = real_api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
        self.pinned, self.owner, self.calls = {}, {}, []

    def current(self):
        found = getattr(self.local, "device", None)
        if found is None:
            raise CUDAError("CUDA_ERROR_INVALID_CONTEXT")
        return found

    def do(self, stream, step):
        self.enqueue(stream.number, step)

    def enqueue(self, number, step):
        steps = self.captures.get(number)
        if steps is None:
            step()
        else:
            steps.append(step)


class Stream:
    def __init__(self, world, number, device):
        self.world, self.number, self.device = world, number, device

    @property
    def handle(self):
        return self.world.api.CUstream(self.number)

    def record(self, event=None, options=None):
        assert event.device == self.device, "an event of another device: CUDA_ERROR_INVALID_HANDLE"
        event.recorded = True
        return event

    def wait(self, event_or_stream):
        assert event_or_stream.recorded


class Event:
    def __init__(self, device, timing):
        self.device, self.timing, self.recorded = device, timing, False

    is_done = True

    def sync(self):
        """All is done."""

    def __sub__(self, other):
        if not (self.timing and other.timing):
            raise CUDAError("timing is disabled")
        return 1.5


class Kernel:
    def __init__(self, module, name):
        self.module, self.name = module, name


def like(real):
    """Checks the arguments of a method against those of NVIDIA's."""
    signature = inspect.signature(real)

    def wrap(function):
        def call(*args, **kwargs):
            signature.bind(*args, **kwargs)
            return function(*args, **kwargs)

        return call

    return wrap


def core_of(world):
    """The module `cuda.core`."""
    core = world.core

    class Device:
        def __init__(self, number):
            self.device_id, self.name = number, f"fake card {number}"
            self.compute_capability = (8, 0)
            self.default_stream = Stream(world, 1 if number == 0 else 1000 + number, number)

        @property
        def properties(self):
            from cuda.core._device import DeviceProperties

            return SimpleNamespace(**{name: len(name) for name in dir(DeviceProperties) if not name.startswith("_")})

        @like(core.Device.set_current)
        def set_current(self, ctx=None):
            world.local.device = self.device_id

        @like(core.Device.create_stream)
        def create_stream(self, obj=None, options=None):
            assert isinstance(options, core.StreamOptions) and world.current() == self.device_id
            world.made = getattr(world, "made", 16) + 16
            return Stream(world, world.made, self.device_id)

        @like(core.Device.create_event)
        def create_event(self, options=None):
            assert isinstance(options, core.EventOptions) and world.current() == self.device_id
            return Event(self.device_id, options.timing_enabled)

    class ObjectCode:
        @staticmethod
        @like(core.ObjectCode.from_cubin)
        def from_cubin(module, *, name="", symbol_mapping=None):
            assert module[:4] == b"\x7fELF"
            return ObjectCode(module[4:].decode())

        def __init__(self, text):
            self.loaded = world.gpu.load(text)

        def get_kernel(self, name):
            return Kernel(self.loaded, name)

    def launch(stream, config, kernel, *kernel_args):
        assert isinstance(config, core.LaunchConfig) and isinstance(stream, Stream) and isinstance(kernel, Kernel)
        assert all(type(one) in (int, float) for one in kernel_args), "these are packed as int64 and double"
        if world.current() != stream.device:
            raise CUDAError("CUDA_ERROR_INVALID_HANDLE")
        strict = not kernel.name.startswith("copy_")
        world.do(
            stream,
            lambda: world.gpu.launch(kernel.module, kernel.name, config.grid, config.block, kernel_args, strict),
        )

    made = ModuleType("cuda.core")
    streams = SimpleNamespace(from_handle=lambda handle: Stream(world, int(handle), world.current()))
    vars(made).update(
        Device=SimpleNamespace(get_all_devices=lambda: tuple(Device(i) for i in range(world.devices))),
        EventOptions=core.EventOptions,
        LaunchConfig=core.LaunchConfig,
        ObjectCode=ObjectCode,
        Stream=streams,
        StreamOptions=core.StreamOptions,
        launch=launch,
    )
    return made


class API:
    """The module `cuda.bindings.driver`: each function returns a status, and what else it gives."""

    def __init__(self, world):
        self.world = world

    def __getattr__(self, name):
        real = getattr(self.world.api, name)
        if not name.startswith("cu"):
            return real  # an enumeration
        signature, emulated = inspect.signature(real), getattr(self, f"on_{name}")

        def call(*args, **kwargs):
            signature.bind(*args, **kwargs)
            self.world.calls.append(name)
            if name not in ("cuGraphExecDestroy", "cuGraphDestroy"):
                self.world.current()
            return emulated(*args, **kwargs)

        return call

    def ok(self, *values):
        return (self.world.api.CUresult.CUDA_SUCCESS, *values)

    def stream(self, handle):
        assert isinstance(handle, self.world.api.CUstream)
        return SimpleNamespace(number=int(handle))

    def on_cuMemAlloc(self, bytesize):
        relaxed = self.world.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        if self.world.captures and self.world.mode != relaxed:
            return (self.world.api.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,)
        try:
            address = self.world.gpu.allocate(bytesize)
        except MemoryError:
            return (self.world.api.CUresult.CUDA_ERROR_OUT_OF_MEMORY,)
        self.world.owner[address] = self.world.current()
        return self.ok(self.world.api.CUdeviceptr(address))

    def on_cuMemFree(self, dptr):
        assert self.world.owner.pop(int(dptr)) == self.world.current()
        self.world.gpu.free(int(dptr))
        return self.ok()

    def on_cuDriverGetVersion(self):
        return self.ok(13000)

    def on_cuMemGetInfo(self):
        arena = self.world.gpu.arena
        return self.ok(arena.capacity - arena.used, arena.capacity)

    def on_cuMemHostAlloc(self, bytesize, flags):
        array = np.empty(bytesize, np.uint8)
        self.world.pinned[array.ctypes.data] = array
        return self.ok(array.ctypes.data)

    def on_cuMemFreeHost(self, p):
        del self.world.pinned[p]
        return self.ok()

    def on_cuPointerGetAttribute(self, attribute, ptr):
        assert attribute == self.world.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return self.ok(self.world.owner.get(ptr, 0))

    def on_cuMemcpyHtoDAsync(self, dst, src, count, stream):
        def step():
            self.world.gpu.write(int(dst), np.frombuffer(ctypes.string_at(src, count), np.uint8))

        self.world.do(self.stream(stream), step)
        return self.ok()

    def on_cuMemcpyDtoHAsync(self, dst, src, count, stream):
        def step():
            ctypes.memmove(dst, self.world.gpu.read(int(src), count).tobytes(), count)

        self.world.do(self.stream(stream), step)
        return self.ok()

    def on_cuMemcpyDtoDAsync(self, dst, src, count, stream):
        self.world.do(self.stream(stream), lambda: self.world.gpu.arena.move(int(dst), int(src), count))
        return self.ok()

    def on_cuStreamSynchronize(self, stream):
        if self.stream(stream).number in self.world.captures:
            return (self.world.api.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,)
        return self.ok()

    def on_cuCtxSynchronize(self):
        if self.world.captures:
            return (self.world.api.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,)
        return self.ok()

    def on_cuThreadExchangeStreamCaptureMode(self, mode):
        former, self.world.mode = self.world.mode, mode
        return self.ok(former)

    def on_cuStreamBeginCapture(self, stream, mode):
        assert isinstance(mode, self.world.api.CUstreamCaptureMode)
        self.world.captures[self.stream(stream).number] = []
        return self.ok()

    def on_cuStreamEndCapture(self, stream):
        return self.ok(self.world.captures.pop(self.stream(stream).number))

    def on_cuStreamIsCapturing(self, stream):
        status = self.world.api.CUstreamCaptureStatus
        active = self.stream(stream).number in self.world.captures
        return self.ok(status.CU_STREAM_CAPTURE_STATUS_ACTIVE if active else status.CU_STREAM_CAPTURE_STATUS_NONE)

    def on_cuGraphGetNodes(self, graph, count):
        return self.ok([], len(graph))

    def on_cuGraphInstantiate(self, graph, flags):
        return self.ok(list(graph))

    def on_cuGraphLaunch(self, ready, stream):
        self.stream(stream)
        for step in ready:
            step()
        return self.ok()

    def on_cuGraphExecDestroy(self, ready):
        return self.ok()

    def on_cuGraphDestroy(self, graph):
        return self.ok()


@contextmanager
def fake_cards(monkeypatch, devices=1, memory=1 << 22):
    """The driver for cards that are simulated behind fake bindings, and the world behind them."""
    import cuda.core as real_core
    from cuda.bindings import driver as real_api

    world = World(real_api, real_core, devices, memory)
    bindings = ModuleType("cuda.bindings")
    bindings.driver = API(world)
    real = {name: sys.modules[name] for name in ("cuda.core", "cuda.bindings")}
    fake = {"cuda.core": core_of(world), "cuda.bindings": bindings}

    def machine_code(source, target):
        with monkeypatch.context() as patch:  # the compiler imports the bindings, too, and is to find the real ones
            for name, module in real.items():
                patch.setitem(sys.modules, name, module)
            return b"\x7fELF" + compiler.ptx(source, target).encode()

    with monkeypatch.context() as patch:
        for name, module in fake.items():
            patch.setitem(sys.modules, name, module)
        patch.setattr(cuda_driver, "cubin", machine_code)
        yield cuda_driver.cards(), world
