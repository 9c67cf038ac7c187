"""The lazy device, for the tests of this folder alone."""

import pytest

from redispatch._lazy import metrics
from redispatch.kernels.lazy import recorder, start, stop


@pytest.fixture(scope="module", autouse=True)
def lazy_device():
    start()
    yield
    stop()


@pytest.fixture(autouse=True)
def nothing_is_pending():
    recorder.flush()
    recorder.programs.known.clear()
    metrics.reset()
    yield
    recorder.flush()


@pytest.fixture
def as_it_stands(monkeypatch):
    """Programs run operator by operator."""
    monkeypatch.setattr(recorder.programs, "compile", None)
