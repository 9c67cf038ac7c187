"""The driver whose GPU is the simulator: it runs the very PTX that a card's machine code is made of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .compiler import Source, ptx
from .driver import CAPACITY, TAPES, Dim, OutOfDeviceMemory, Start, written_down
from .recording import Recording
from .simulator import Device, Loaded


class SimulatedDriver(Recording):
    """One device of `memory` bytes; by default of REDISPATCH_CUDA_MEMORY, or 256 MiB."""

    name = "sim"
    title = "simulator"

    def __init__(self, memory: int | None = None) -> None:
        super().__init__()
        self.memory = memory or int(os.environ.get("REDISPATCH_CUDA_MEMORY", CAPACITY))
        self.device = Device(self.memory)

    def allocate(self, device: int, nbytes: int) -> int:
        try:
            return self.device.allocate(nbytes)
        except MemoryError as problem:
            raise OutOfDeviceMemory(str(problem)) from None

    def free(self, device: int, address: int) -> None:
        self.device.free(address)

    def hand_out(self, address: int, nbytes: int, stream: int = 0) -> None:
        self.mark(address, nbytes)
        self.noted(stream, lambda: self.mark(address, nbytes))  # in a graph tensors have the same memory in turn

    def mark(self, address: int, nbytes: int) -> None:
        """From here on so many bytes of an allocation may be used, and none of them was written."""
        arena = self.device.arena
        arena.mark(address, nbytes)
        name = f"a tensor's memory of {nbytes} bytes" if nbytes else "memory that its tensor has given back"
        arena.allocations[address].name = name

    def read(self, address: int, nbytes: int, stream: int = 0) -> np.ndarray:
        self.check_free("read memory of the device", stream)
        return self.device.read(address, nbytes)

    def write(self, address: int, data: np.ndarray, stream: int = 0) -> None:
        self.check_free("send memory that is not pinned", stream)
        self.device.write(address, data)

    def allocate_pinned(self, nbytes: int) -> np.ndarray:
        return np.empty(nbytes, np.uint8)

    def free_pinned(self, array: np.ndarray) -> None:
        """It goes by itself."""

    def send(self, address: int, data: np.ndarray, stream: int) -> None:
        self.do(stream, lambda: self.device.write(address, data))

    def fetch(self, data: np.ndarray, address: int, stream: int) -> None:
        def fill() -> None:
            data[:] = self.device.read(address, len(data))

        self.do(stream, fill)

    def copy(self, to: int, source: int, nbytes: int, stream: int = 0) -> None:
        self.do(stream, lambda: self.device.arena.move(to, source, nbytes))

    def load(self, source: Source) -> tuple[Loaded, str]:
        return self.device.load(ptx(source, self.target)), source.name

    def prepared(self, kernel: Any, grid: Dim, block: Dim) -> Start:
        module, name = kernel
        parameters = module.program(name).kernel.parameters
        strict = not name.startswith("copy_")  # memory may be copied before all of it was written

        def start(arguments: tuple[int | float, ...], stream: int) -> None:
            check_kinds(name, parameters, arguments)
            if not (TAPES and written_down(start, arguments, stream)):
                self.do(stream, lambda: self.device.launch(module, name, grid, block, arguments, strict))

        return start

    def memory_info(self, device: int) -> tuple[int, int]:
        return self.memory - self.device.arena.used, self.memory


def check_kinds(name: str, parameters: Sequence[tuple[str, str]], arguments: Sequence[int | float]) -> None:
    """TypeError where a parameter is a float64 and its argument an integer, or the other way round. A card is given the
    bits of an argument, 64 of them, and does not convert."""
    for (_, kind), value in zip(parameters, arguments, strict=True):
        if type(value) is not (float if kind == "f64" else int):
            raise TypeError(f"{name}: {value!r} is a {type(value).__name__}, and the kernel takes a {kind}")
