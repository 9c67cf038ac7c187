"""The driver of NVIDIA cards, through NVIDIA's own bindings (`cuda.core`, `cuda.bindings`).

A thin layer, and one that no machine of the project's tests can run: there is no card among them. What it stands on
(templates, PTX, allocator, streams) is tested on the simulator; this file is read with care, and no more is claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .compiler import Source, cubin
from .driver import Dim, Driver, OutOfDeviceMemory

OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY


def cards() -> CardDriver | None:
    """The machine's cards; None where there are none, or no driver for them."""
    try:
        from cuda.core import Device  # here, because few have it

        found = Device.get_all_devices()
    except Exception:  # the bindings raise their own errors for a driver that is missing, too old or broken
        return None
    return CardDriver(found) if found else None


class CardDriver(Driver):
    """Cards of one compute capability: kernels are compiled for that of the first."""

    name = "cuda"

    def __init__(self, devices: Sequence[Any]) -> None:
        from cuda.bindings import driver as api
        from cuda.core import EventOptions, LaunchConfig, ObjectCode, StreamOptions, launch

        self.api, self.devices = api, list(devices)
        self.EventOptions, self.LaunchConfig, self.ObjectCode = EventOptions, LaunchConfig, ObjectCode
        self.StreamOptions, self._launch = StreamOptions, launch
        for one in reversed(self.devices):  # the first one stays current
            one.set_current()
        first = self.devices[0]
        self.count, self.title = len(self.devices), first.name
        self.capability = tuple(first.compute_capability)
        self.target = f"sm_{self.capability[0]}{self.capability[1]}"
        self.streams: dict[int, tuple[int, Any]] = {}  # number -> (device, stream)
        self.configurations: dict[tuple[Dim, Dim], Any] = {}

    def checked(self, answer: tuple[Any, ...]) -> Any:
        """What a call of the driver's interface gave. RuntimeError, or OutOfDeviceMemory, for an error."""
        status, *values = answer
        if int(status) == OUT_OF_MEMORY:
            raise OutOfDeviceMemory(status.name)
        if int(status):
            raise RuntimeError(f"CUDA error: {status.name}")
        return values[0] if len(values) == 1 else tuple(values)

    def stream_of(self, number: int, device: int = 0) -> Any:
        return self.streams[number][1] if number else self.devices[device].default_stream

    def handle(self, number: int) -> Any:
        return self.stream_of(number).handle

    def allocate(self, device: int, nbytes: int) -> int:
        self.devices[device].set_current()
        return int(self.checked(self.api.cuMemAlloc(nbytes)))

    def free(self, device: int, address: int) -> None:
        self.checked(self.api.cuMemFree(address))

    def read(self, address: int, nbytes: int, stream: int = 0) -> np.ndarray:
        result = np.empty(nbytes, np.uint8)
        self.checked(self.api.cuMemcpyDtoHAsync(result.ctypes.data, address, nbytes, self.handle(stream)))
        self.stream_of(stream).sync()
        return result

    def write(self, address: int, data: np.ndarray, stream: int = 0) -> None:
        data = np.ascontiguousarray(data)
        self.checked(self.api.cuMemcpyHtoDAsync(address, data.ctypes.data, data.nbytes, self.handle(stream)))
        self.stream_of(stream).sync()  # the array may go, or change, when this returns

    def copy(self, to: int, source: int, nbytes: int, stream: int = 0) -> None:
        self.checked(self.api.cuMemcpyDtoDAsync(to, source, nbytes, self.handle(stream)))

    def load(self, source: Source) -> Any:
        return self.ObjectCode.from_cubin(cubin(source, self.target)).get_kernel(source.name)

    def launch(self, kernel: Any, grid: Dim, block: Dim, arguments: Sequence[int | float], stream: int = 0) -> None:
        configuration = self.configurations.get((grid, block))
        if configuration is None:
            configuration = self.configurations[grid, block] = self.LaunchConfig(grid=grid, block=block)
        self._launch(self.stream_of(stream), configuration, kernel, *arguments)

    def memory_info(self, device: int) -> tuple[int, int]:
        self.devices[device].set_current()
        free, total = self.checked(self.api.cuMemGetInfo())
        return int(free), int(total)

    def create_stream(self, device: int, priority: int = 0) -> int:
        self.devices[device].set_current()
        number = len(self.streams) + 1
        made = self.devices[device].create_stream(options=self.StreamOptions(nonblocking=True, priority=priority))
        self.streams[number] = device, made
        return number

    def synchronize(self, device: int, stream: int | None = None) -> None:
        if stream is None:
            self.devices[device].set_current()
            self.devices[device].sync()
        else:
            self.stream_of(stream, device).sync()

    def create_event(self, device: int, timing: bool) -> Any:
        self.devices[device].set_current()
        return self.devices[device].create_event(self.EventOptions(timing_enabled=timing))

    def record(self, event: Any, stream: int) -> None:
        self.stream_of(stream).record(event)

    def wait(self, stream: int, event: Any) -> None:
        self.stream_of(stream).wait(event)

    def done(self, event: Any) -> bool:
        return bool(event.is_done)

    def wait_for(self, event: Any) -> None:
        event.sync()

    def elapsed(self, start: Any, end: Any) -> float:
        return float(end - start)
