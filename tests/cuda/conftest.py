"""CUDA devices that are none: the simulator, and the driver that only notes what it is asked."""

import gc
from contextlib import contextmanager

import pytest

from redispatch.kernels import cuda
from redispatch.kernels.cuda.runtime.devices import start, started
from redispatch.kernels.cuda.simulated_driver import SimulatedDriver


@contextmanager
def devices_of(driver):
    """The library with the devices of a driver; afterwards as it was."""
    assert started() is None, "these tests take CUDA devices away when they end; run them without REDISPATCH_CUDA"
    former = cuda.use(driver)
    try:
        start()
        yield driver
        gc.collect()
        now = started()  # not what was started here, where the test has changed devices itself
        if now is not None:
            now.remove()
    finally:
        cuda.restore(former)


class Noting(SimulatedDriver):
    """A simulator that knows which kernels it was given: `loaded`, in order."""

    def __init__(self, memory):
        super().__init__(memory)
        self.loaded = []

    def load(self, source):
        self.loaded.append(source)
        return super().load(source)


@pytest.fixture(scope="module")
def simulator():
    with devices_of(Noting(1 << 26)) as driver:
        yield driver


@pytest.fixture
def null():
    with devices_of(cuda.NullDriver(capacity=1 << 24)) as driver:
        yield driver
