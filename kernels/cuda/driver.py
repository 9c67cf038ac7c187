"""The interface to a GPU, and the choice of the GPU: a card, the simulator, or none.

    REDISPATCH_CUDA=sim     the simulator (simulated_driver.py), on any machine
    REDISPATCH_CUDA=late    the simulator, whose streams do their work as late as those of a card may (`LateDriver`)
    REDISPATCH_CUDA=null    a driver that notes launches and allocations, and runs nothing
    unset                   the machine's cards (cuda_driver.py), where there are any

A `Driver` has memory by address, streams and events by number, and kernels that it makes of a `Source`. Everything
above (templates, allocator, tensors) is the same for all three. Read next: `null_driver.py`, `launch.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from .compiler import Source

Dim = tuple[int, int, int]
Start = Callable[[tuple[int | float, ...], int], None]  # (arguments, stream)
CAPACITY = 1 << 28  # bytes of a device that is none


# Streams on which nothing happens: what is launched there is written down, as (what starts it, its arguments). See
# kernels/cuda/runtime/launch_recorder.py. Whoever starts a kernel asks `if TAPES and written_down(...)` first.
TAPES: dict[int, list[tuple[Start, tuple[int | float, ...]]]] = {}


def written_down(start: Start, arguments: tuple[int | float, ...], stream: int) -> bool:
    """Whether the stream is a tape; the launch is on it then."""
    tape = TAPES.get(stream)
    if tape is None:
        return False
    tape.append((start, arguments))
    return True


def calling(library: Callable[..., object]) -> Start:
    """`start(arguments, stream)` for what is no kernel: `library(stream, *arguments)`, whose errors become ours."""

    def start(arguments: tuple[int | float, ...], stream: int) -> None:
        if TAPES and written_down(start, arguments, stream):
            return
        try:
            library(stream, *arguments)
        except RuntimeError:
            raise
        except Exception as problem:
            raise RuntimeError(f"CUDA error: {problem}") from problem

    return start


def where_bound(find: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`find(driver)`, which imports bindings of NVIDIA's; None where these, or what they bind, are not installed."""

    def library(driver: Any) -> Any:
        try:
            return find(driver)
        except Exception:  # the bindings raise their own errors for a library that is missing
            return None

    return library


class OutOfDeviceMemory(MemoryError):
    """A device has not as many bytes as were asked for."""


class Driver:
    """The interface."""

    name = ""
    title = ""  # of a device
    target = "sm_80"  # what kernels are compiled for
    capability = (8, 0)
    count = 1
    blas: Any = None  # NVIDIA's library of products, where there is one (blas.py)
    solver: Any = None  # and of factorisations (solver.py)
    fft: Any = None  # and of Fourier transforms (cufft.py)
    computes = True  # whether what is read is what kernels have computed

    def allocate(self, device: int, nbytes: int) -> int:
        """An address. OutOfDeviceMemory where there is too little."""
        raise NotImplementedError

    def free(self, device: int, address: int) -> None:
        """Takes back what `allocate` gave."""
        raise NotImplementedError

    def hand_out(self, address: int, nbytes: int, stream: int = 0) -> None:
        """Told when so many bytes of an allocation begin to be somebody's, for use on a stream: what lies there is of
        undefined value."""

    def read(self, address: int, nbytes: int, stream: int = 0) -> np.ndarray:
        """A copy of bytes in the host's memory, after what the stream has to do before."""
        raise NotImplementedError

    def write(self, address: int, data: np.ndarray, stream: int = 0) -> None:
        """Copies a flat array of uint8 to the device."""
        raise NotImplementedError

    def allocate_pinned(self, nbytes: int) -> np.ndarray:
        """Memory of the host's that the device reads and writes by itself, as a flat array of uint8. OutOfDeviceMemory
        where there is too little."""
        raise NotImplementedError

    def free_pinned(self, array: np.ndarray) -> None:
        """Takes back what `allocate_pinned` gave."""
        raise NotImplementedError

    def send(self, address: int, data: np.ndarray, stream: int) -> None:
        """Has a stream copy pinned memory to the device. Both are to be left alone until it has."""
        raise NotImplementedError

    def fetch(self, data: np.ndarray, address: int, stream: int) -> None:
        """Has a stream fill pinned memory from the device."""
        raise NotImplementedError

    def handle(self, stream: int) -> int:
        """The number by which CUDA itself, and so other libraries, know a stream."""
        return max(stream, 0)

    def adopt_stream(self, device: int, handle: int) -> int:
        """Our number for a stream that CUDA knows by that one; 0 is a device's default one."""
        return handle or -device

    def device_of(self, address: int) -> int:
        """The device on which memory lies that another library has."""
        return 0

    def copy(self, to: int, source: int, nbytes: int, stream: int = 0) -> None:
        """Copies bytes within the devices' memory."""
        raise NotImplementedError

    def load(self, source: Source) -> Any:
        """A kernel, ready to be launched: compiled, where it must be."""
        raise NotImplementedError

    def launch(self, kernel: Any, grid: Dim, block: Dim, arguments: Sequence[int | float], stream: int = 0) -> None:
        """Runs a kernel, or has a stream run it. Arguments are addresses, integers and float64 numbers."""
        self.prepared(kernel, grid, block)(tuple(arguments), stream)

    def prepared(self, kernel: Any, grid: Dim, block: Dim) -> Start:
        """`launch` of that kernel with that grid, for callers that keep it: `start(arguments, stream)`. It asks
        `written_down` first, as the stream may be a tape."""
        raise NotImplementedError

    def version(self) -> str:
        """Returns the version of the machine's own driver; "" where nothing but ours is between."""
        return ""

    def memory_info(self, device: int) -> tuple[int, int]:
        """(free bytes, all bytes)"""
        raise NotImplementedError

    def properties(self, device: int) -> dict[str, int]:
        """Returns a device's properties, by PyTorch's names: here those that kernels are written for."""
        return {
            "multi_processor_count": 1,
            "warp_size": 32,
            "max_threads_per_multi_processor": 2048,
            "regs_per_multiprocessor": 65536,
            "shared_memory_per_block": 48 << 10,
            "shared_memory_per_multiprocessor": 164 << 10,
            "L2_cache_size": 0,
            "is_integrated": False,
            "is_multi_gpu_board": False,
        }

    # Streams: numbers, -i being the default one of device i. Events: objects of the driver's. ----------------------

    def create_stream(self, device: int, priority: int = 0) -> int:
        self._streams = getattr(self, "_streams", 0) + 1
        return self._streams

    def synchronize(self, device: int, stream: int | None = None) -> None:
        """Waits for a stream, or for all of a device."""
        raise NotImplementedError

    def create_event(self, device: int, timing: bool) -> Any:
        raise NotImplementedError

    def record(self, event: Any, stream: int) -> None:
        """Puts an event behind what a stream has to do."""
        raise NotImplementedError

    def wait(self, stream: int, event: Any) -> None:
        """Has a stream wait for an event."""
        raise NotImplementedError

    def done(self, event: Any) -> bool:
        """Whether what was before the event is done."""
        raise NotImplementedError

    def wait_for(self, event: Any) -> None:
        """Waits until it is."""
        raise NotImplementedError

    def elapsed(self, start: Any, end: Any) -> float:
        """Milliseconds between two events that were recorded."""
        raise NotImplementedError

    # Graphs: null_driver.py -----------------------------------------------------------------------------------------

    def begin_capture(self, stream: int, mode: str = "global") -> None:
        """From here on, what a stream is asked to do is noted, and not done. `mode` is CUDA's, of what other threads
        may do meanwhile."""
        raise NotImplementedError

    def end_capture(self, stream: int) -> Any:
        """Ends the capture, and returns its graph. RuntimeError where something forbidden happened meanwhile."""
        raise NotImplementedError

    def captured(self, stream: int) -> bool:
        """Whether a stream is captured."""
        raise NotImplementedError

    def steps(self, graph: Any) -> int:
        """The number of steps that were noted."""
        raise NotImplementedError

    def replay(self, graph: Any, stream: int) -> None:
        """Does what was noted, in this stream's turn."""
        raise NotImplementedError


def not_permitted(what: str) -> RuntimeError:
    """The error for what would have to wait for work that a capture only notes."""
    return RuntimeError(
        f"CUDA error: operation not permitted when stream is capturing ({what}). A graph is recorded without being "
        "run: nothing can be read from the device, waited for, or sent from memory that is not pinned. Do it before or "
        "behind `with cuda.graph(...)`"
    )


# --- the stream on which work goes, by device -------------------------------------------------------------------------

NONE_CHOSEN: Mapping[int, int] = {}  # as long as a thread or task has chosen no stream
STREAMS: ContextVar[Mapping[int, int]] = ContextVar("CUDA streams", default=NONE_CHOSEN)


def current_stream(device: int) -> int:
    """The number of the stream on which this thread or task works on a device; -device for the default one."""
    return STREAMS.get().get(device, -device)


def set_current_stream(device: int, stream: int) -> None:
    STREAMS.set({**STREAMS.get(), device: stream})
