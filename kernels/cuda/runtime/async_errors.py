"""Mistakes that a kernel finds while the program has gone on: an index outside its dimension.

A kernel cannot raise. It writes the operator's number, the index and the size into a few words of the device's memory;
when the program next waits for the device (`synchronize`, `.item()`, `.cpu()`), these are read, if a kernel that may
write there was launched since, and the error is raised then. The words are empty again after that.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from redispatch.kernels.cuda import Driver, current_stream
from redispatch.kernels.cuda.indexing import WORDS

from .launch_recorder import constant


class LateIndexError(IndexError, RuntimeError):
    """An index out of bounds, noticed when the device was waited for. PyTorch's operators raise the one class or the
    other. Fields: `operator`, `index`, `dim`, `size`."""

    def __init__(self, operator: str, index: int, size: int, dim: int) -> None:
        self.operator, self.index, self.size, self.dim = operator, index, size, dim
        super().__init__(
            f"{operator}: index {index} is out of bounds for dimension {dim} with size {size}. It was found on the "
            "device, and is told of now that the program waits for it; the call came earlier. No memory was touched "
            "out of bounds, but what was computed from that call on is of no use. On the CPU the call itself raises"
        )


class LateErrors:
    """The error words of a driver's devices."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.words: dict[int, int] = {}  # addresses, by device
        # Devices on which a kernel was launched that may have written there. Plans add to it: it is never another set.
        self.asked: set[int] = set()
        self.operators: list[str] = []

    def number(self, operator: str) -> int:
        """The number of an operator, from 1 on."""
        if operator not in self.operators:
            self.operators.append(operator)
        return self.operators.index(operator) + 1

    def address(self, device: int) -> int:
        """The address that a kernel writes to; from now on it is to be looked at."""
        found: int = constant(lambda: self.known(device))
        self.asked.add(device)
        return found

    def known(self, device: int) -> int:
        found = self.words.get(device)
        if found is None:
            found = self.words[device] = self.driver.allocate(device, 8 * WORDS)
            self.clear(device)
        return found

    def clear(self, device: int) -> None:
        self.driver.write(self.words[device], np.zeros(8 * WORDS, np.uint8), current_stream(device))

    def check(self, device: int) -> None:
        """LateIndexError where a kernel has found an index out of bounds; called where the device is waited for."""
        if device in self.asked:
            self.asked.discard(device)
            told: Any = self.driver.read(self.words[device], 8 * WORDS, current_stream(device)).view(np.int64)
            number, index, size, dim = told.tolist()
            if number:
                self.clear(device)
                raise LateIndexError(self.operators[number - 1], index, size, dim)

    def exchanged(self, devices: set[int]) -> set[int]:
        """Has these be the devices to look at; which were before."""
        former = {*self.asked}
        self.asked.clear()
        self.asked |= devices
        return former

    def remove(self) -> None:
        """Gives the words back."""
        for device, address in self.words.items():
            self.driver.free(device, address)
        self.words.clear()
        self.asked.clear()


_KNOWN: WeakKeyDictionary[Driver, LateErrors] = WeakKeyDictionary()


def late_errors(driver: Driver) -> LateErrors:
    """Returns the late errors of a driver."""
    found = _KNOWN.get(driver)
    if found is None:
        found = _KNOWN[driver] = LateErrors(driver)
    return found
