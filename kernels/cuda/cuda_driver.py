"""The driver of NVIDIA cards, through NVIDIA's own bindings (`cuda.core`, `cuda.bindings`).

A thin layer, and one that no machine of the project's tests can run: there is no card among them. What it stands on
(templates, PTX, allocator, streams) is tested on the simulator; this file is run there with bindings that check how
they are called, against the signatures of NVIDIA's (tests/cuda/test_cuda_driver.py), and no more is claimed.

Note [A context for each thread]
What CUDA is asked goes to the device that is current in the calling thread, and a thread begins without one. So each
method first makes its device current, if it is not. Streams name a device, too: the default one of device i is -i.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import blas, cufft
from .compiler import Source, cubin
from .driver import TAPES, Dim, Driver, OutOfDeviceMemory, Start, not_permitted, written_down
from .solver import solver_library

OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
PROPERTIES = {  # PyTorch's names: those of cuda.core
    "multi_processor_count": "multiprocessor_count",
    "warp_size": "warp_size",
    "max_threads_per_multi_processor": "max_threads_per_multiprocessor",
    "regs_per_multiprocessor": "max_registers_per_multiprocessor",
    "shared_memory_per_block": "max_shared_memory_per_block",
    "shared_memory_per_multiprocessor": "max_shared_memory_per_multiprocessor",
    "L2_cache_size": "l2_cache_size",
    "is_integrated": "integrated",
    "is_multi_gpu_board": "multi_gpu_board",
}
CAPTURING = 1  # CU_STREAM_CAPTURE_STATUS_ACTIVE
PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE: pinned for all devices
MODES = {
    "global": "CU_STREAM_CAPTURE_MODE_GLOBAL",
    "thread_local": "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL",
    "relaxed": "CU_STREAM_CAPTURE_MODE_RELAXED",
}


def cards() -> CardDriver | None:
    """The machine's cards; None where there are none, or no driver for them."""
    try:
        from cuda.core import Device  # here, because few have it

        found = Device.get_all_devices()
    except Exception:  # the bindings raise their own errors for a driver that is missing, too old or broken
        return None
    return CardDriver(found) if found else None


class Current(threading.local):
    """The device that is current in this thread."""

    device = -1


class Graph:
    """A recorded graph, and what the card made of it."""

    def __init__(self, api: Any, made: Any, ready: Any, steps: int) -> None:
        self.api, self.made, self.ready, self.steps = api, made, ready, steps

    def __del__(self) -> None:
        self.api.cuGraphExecDestroy(self.ready)
        self.api.cuGraphDestroy(self.made)


class CardDriver(Driver):
    """Cards of one compute capability: kernels are compiled for that of the first."""

    name = "cuda"

    def __init__(self, devices: Sequence[Any]) -> None:
        from cuda.bindings import driver as api  # here, because only who has a card has them
        from cuda.core import EventOptions, LaunchConfig, ObjectCode, Stream, StreamOptions, launch

        self.api, self.devices = api, list(devices)
        self.EventOptions, self.LaunchConfig, self.ObjectCode = EventOptions, LaunchConfig, ObjectCode
        self.Stream, self.StreamOptions, self._launch = Stream, StreamOptions, launch
        self.current = Current()
        first = self.devices[0]
        self.count, self.title = len(self.devices), first.name
        self.capability = tuple(first.compute_capability)
        self.target = f"sm_{self.capability[0]}{self.capability[1]}"
        # number -> (device, stream)
        self.streams: dict[int, tuple[int, Any]] = {-i: (i, one.default_stream) for i, one in enumerate(self.devices)}
        self.adopted: dict[tuple[int, int], int] = {}  # (device, CUDA's number of another library's stream) -> ours
        self.configurations: dict[tuple[Dim, Dim], Any] = {}
        self.captures: set[int] = set()  # the streams on which captures began
        self.blas, self.solver, self.fft = blas.library(self), solver_library(self), cufft.library(self)

    def checked(self, answer: tuple[Any, ...]) -> Any:
        """Unpacks the answer of the driver's interface. RuntimeError, or OutOfDeviceMemory, for an error."""
        status, *values = answer
        if int(status) == OUT_OF_MEMORY:
            raise OutOfDeviceMemory(status.name)
        if int(status):
            raise RuntimeError(f"CUDA error: {status.name}")
        return values[0] if len(values) == 1 else tuple(values)

    def asked(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Calls `cuda.core`, whose errors are not RuntimeErrors."""
        try:
            return call(*arguments)
        except Exception as problem:
            raise RuntimeError(f"CUDA error: {problem}") from problem

    def enter(self, device: int) -> Any:
        """The device, current in this thread: Note [A context for each thread]."""
        found = self.devices[device]
        if self.current.device != device:
            self.asked(found.set_current)
            self.current.device = device
        return found

    def stream_of(self, number: int) -> Any:
        """A stream, with its device current."""
        device, stream = self.streams[number]
        self.enter(device)
        return stream

    def raw(self, number: int) -> Any:
        """A stream as the driver's own interface takes it."""
        return self.stream_of(number).handle

    # Memory -----------------------------------------------------------------------------------------------------------

    def allocate(self, device: int, nbytes: int) -> int:
        self.enter(device)
        with self.relaxed():
            return int(self.checked(self.api.cuMemAlloc(nbytes)))

    @contextmanager
    def relaxed(self) -> Iterator[None]:
        """For what a capture forbids, since it might wait for other threads' work, and which depends on none."""
        if not self.captures:
            yield
            return
        relaxed = self.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        former = self.checked(self.api.cuThreadExchangeStreamCaptureMode(relaxed))
        try:
            yield
        finally:
            self.checked(self.api.cuThreadExchangeStreamCaptureMode(former))

    def free(self, device: int, address: int) -> None:
        self.enter(device)
        self.checked(self.api.cuMemFree(address))

    def allocate_pinned(self, nbytes: int) -> np.ndarray:
        self.enter(max(self.current.device, 0))
        address = int(self.checked(self.api.cuMemHostAlloc(nbytes, PORTABLE)))
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))

    def free_pinned(self, array: np.ndarray) -> None:
        self.enter(max(self.current.device, 0))
        self.checked(self.api.cuMemFreeHost(array.ctypes.data))

    def version(self) -> str:
        return str(self.checked(self.api.cuDriverGetVersion()))

    def memory_info(self, device: int) -> tuple[int, int]:
        self.enter(device)
        free, total = self.checked(self.api.cuMemGetInfo())
        return int(free), int(total)

    def properties(self, device: int) -> dict[str, int]:
        known = self.asked(lambda: self.devices[device].properties)
        return {ours: self.asked(getattr, known, theirs) for ours, theirs in PROPERTIES.items()}

    def device_of(self, address: int) -> int:
        self.enter(max(self.current.device, 0))
        ordinal = self.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return int(self.checked(self.api.cuPointerGetAttribute(ordinal, address)))

    # Copies -----------------------------------------------------------------------------------------------------------

    def read(self, address: int, nbytes: int, stream: int = 0) -> np.ndarray:
        self.check_free("read memory of the device", stream)
        result = np.empty(nbytes, np.uint8)
        self.fetch(result, address, stream)
        self.checked(self.api.cuStreamSynchronize(self.raw(stream)))
        return result

    def write(self, address: int, data: np.ndarray, stream: int = 0) -> None:
        self.check_free("send memory that is not pinned", stream)
        self.send(address, np.ascontiguousarray(data), stream)
        self.checked(self.api.cuStreamSynchronize(self.raw(stream)))  # the array may go, or change, when this returns

    def send(self, address: int, data: np.ndarray, stream: int) -> None:
        self.checked(self.api.cuMemcpyHtoDAsync(address, data.ctypes.data, data.nbytes, self.raw(stream)))

    def fetch(self, data: np.ndarray, address: int, stream: int) -> None:
        self.checked(self.api.cuMemcpyDtoHAsync(data.ctypes.data, address, data.nbytes, self.raw(stream)))

    def copy(self, to: int, source: int, nbytes: int, stream: int = 0) -> None:
        self.checked(self.api.cuMemcpyDtoDAsync(to, source, nbytes, self.raw(stream)))

    # Kernels ----------------------------------------------------------------------------------------------------------

    def load(self, source: Source) -> Any:
        code = cubin(source, self.target)
        return self.asked(lambda: self.ObjectCode.from_cubin(code, name=source.name).get_kernel(source.name))

    def prepared(self, kernel: Any, grid: Dim, block: Dim) -> Start:
        configuration = self.configurations.get((grid, block))
        if configuration is None:
            configuration = self.configurations[grid, block] = self.LaunchConfig(grid=grid, block=block)
        launch, streams, current, enter = self._launch, self.streams, self.current, self.enter

        def start(arguments: tuple[int | float, ...], stream: int) -> None:
            if TAPES and written_down(start, arguments, stream):
                return
            device, target = streams[stream]
            if current.device != device:
                enter(device)
            try:
                launch(target, configuration, kernel, *arguments)
            except Exception as problem:
                raise RuntimeError(f"CUDA error: {problem}") from problem

        return start

    # Streams and events -----------------------------------------------------------------------------------------------

    def create_stream(self, device: int, priority: int = 0) -> int:
        options = self.StreamOptions(nonblocking=True, priority=priority)
        return self._numbered(device, self.asked(self.enter(device).create_stream, None, options))

    def _numbered(self, device: int, made: Any) -> int:
        number = max(self.streams) + 1
        self.streams[number] = device, made
        return number

    def handle(self, stream: int) -> int:
        return int(self.streams[stream][1].handle) if stream > 0 else 0

    def adopt_stream(self, device: int, handle: int) -> int:
        if not handle:
            return -device
        known = self.adopted.get((device, handle))
        if known is None:
            self.enter(device)
            made = self.asked(self.Stream.from_handle, handle)
            known = self.adopted[device, handle] = self._numbered(device, made)
        return known

    def synchronize(self, device: int, stream: int | None = None) -> None:
        self.check_free("synchronize", stream)
        if stream is None:
            self.enter(device)
            self.checked(self.api.cuCtxSynchronize())
        else:
            self.checked(self.api.cuStreamSynchronize(self.raw(stream)))

    def create_event(self, device: int, timing: bool) -> Any:
        return self.asked(self.enter(device).create_event, self.EventOptions(timing_enabled=timing))

    def record(self, event: Any, stream: int) -> None:
        self.asked(self.stream_of(stream).record, event)

    def wait(self, stream: int, event: Any) -> None:
        self.asked(self.stream_of(stream).wait, event)

    def done(self, event: Any) -> bool:
        return bool(self.asked(lambda: event.is_done))

    def wait_for(self, event: Any) -> None:
        self.asked(event.sync)

    def elapsed(self, start: Any, end: Any) -> float:
        return float(self.asked(lambda: end - start))

    # Graphs -----------------------------------------------------------------------------------------------------------

    def check_free(self, what: str, stream: int | None) -> None:
        """RuntimeError while this stream, or any, is captured: CUDA would drop the capture, too."""
        if stream in TAPES or self.captures and (stream is None or self.captured(stream)):
            raise not_permitted(what)

    def begin_capture(self, stream: int, mode: str = "global") -> None:
        if self.captured(stream):
            raise RuntimeError(f"stream {stream} is being captured already")
        self.checked(
            self.api.cuStreamBeginCapture(self.raw(stream), getattr(self.api.CUstreamCaptureMode, MODES[mode]))
        )
        self.captures.add(stream)

    def end_capture(self, stream: int) -> Graph:
        self.captures.discard(stream)
        made = self.checked(self.api.cuStreamEndCapture(self.raw(stream)))
        _, steps = self.checked(self.api.cuGraphGetNodes(made, 0))
        return Graph(self.api, made, self.checked(self.api.cuGraphInstantiate(made, 0)), int(steps))

    def captured(self, stream: int) -> bool:
        if stream in TAPES:
            return True
        if not self.captures:
            return False
        return int(self.checked(self.api.cuStreamIsCapturing(self.raw(stream)))) == CAPTURING

    def steps(self, graph: Graph) -> int:
        return graph.steps

    def replay(self, graph: Graph, stream: int) -> None:
        self.checked(self.api.cuGraphLaunch(graph.ready, self.raw(stream)))
