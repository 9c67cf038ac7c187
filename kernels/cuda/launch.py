"""A kernel and how often it runs: what remains to be done when a call's metadata have been met before.

A `Kernel` is a source, compiled and loaded when a driver first needs it. `Launch(kernel, grid, block).start(...)` is
all that a planned call does. Read next: `elementwise.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from .compiler import Source
from .driver import Dim, Driver, Start, current_stream

Address = int
_LOCK = threading.RLock()


@dataclass(slots=True)
class Memory:
    """The place of a tensor's bytes on a device. It stands in an `Operand` where the CPU has an array."""

    address: Address
    nbytes: int
    device: int
    driver: Driver


class Kernel:
    """A kernel for all drivers."""

    def __init__(self, make: Callable[[], Source]) -> None:
        self.make = make
        self.loaded: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def on(self, driver: Driver) -> Any:
        """The kernel as a driver has it.

        Errors: NotImplementedError where its scalar function cannot be compiled for a GPU; ImportError where it must be
        compiled, and there is no compiler.
        """
        found = self.loaded.get(driver)
        if found is None:
            with _LOCK:
                found = self.loaded[driver] = driver.load(self.make())
        return found


class Kernels(dict[Any, Kernel]):
    """The kernels of forms, each of which `make(form)` is the source of."""

    def __init__(self, make: Callable[[Any], Source]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, form: Any) -> Kernel:
        found = self[form] = Kernel(lambda: self.make(form))
        return found


@dataclass(slots=True)
class Launch:
    """A kernel with its grid of blocks."""

    kernel: Kernel
    grid: Dim
    block: Dim

    def on(self, driver: Driver) -> Start:
        """Returns its launcher on a driver, for callers that keep it: `start(arguments, stream)`."""
        return driver.prepared(self.kernel.on(driver), self.grid, self.block)

    def start(self, memory: Memory, arguments: Sequence[int | float]) -> None:
        """Runs it on the device of this memory, in the current stream."""
        driver = memory.driver
        driver.launch(self.kernel.on(driver), self.grid, self.block, arguments, current_stream(memory.device))
