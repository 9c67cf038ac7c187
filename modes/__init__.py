"""Python modes, one idea per file, written with public names only.

Each is imported when it is asked for: `redispatch.modes.ProfilerMode`, or `from redispatch.modes.profiler import …`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .coverage import OperatorCoverageMode
    from .cross_check import CrossCheckMode
    from .determinism import DeterminismMode
    from .dtype_check import DtypeCheckMode
    from .fake_tensor import FakeTensorMode
    from .flop_counter import FlopCounterMode
    from .functional_rng import FunctionalRNGMode
    from .functional_tensor import FunctionalTensorMode
    from .logging_mode import LoggingMode
    from .memory_tracker import MemoryTrackerMode
    from .nan_detector import NanDetectorMode
    from .profiler import ProfilerMode
    from .schema_check import SchemaCheckMode

_PLACES = {
    "CrossCheckMode": "cross_check",
    "DeterminismMode": "determinism",
    "DtypeCheckMode": "dtype_check",
    "FakeTensorMode": "fake_tensor",
    "FlopCounterMode": "flop_counter",
    "FunctionalRNGMode": "functional_rng",
    "FunctionalTensorMode": "functional_tensor",
    "LoggingMode": "logging_mode",
    "MemoryTrackerMode": "memory_tracker",
    "NanDetectorMode": "nan_detector",
    "OperatorCoverageMode": "coverage",
    "ProfilerMode": "profiler",
    "SchemaCheckMode": "schema_check",
}

__all__ = [
    "CrossCheckMode",
    "DeterminismMode",
    "DtypeCheckMode",
    "FakeTensorMode",
    "FlopCounterMode",
    "FunctionalRNGMode",
    "FunctionalTensorMode",
    "LoggingMode",
    "MemoryTrackerMode",
    "NanDetectorMode",
    "OperatorCoverageMode",
    "ProfilerMode",
    "SchemaCheckMode",
]


def __getattr__(name: str) -> Any:
    """A mode, which is imported late: fx and the names of PyTorch need one of them, and not the others."""
    if name in _PLACES:
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
