"""Python modes, one idea per file, written with public names only.

Each is imported when it is asked for: `redispatch.modes.ProfilerMode`, or `from redispatch.modes.profiler import …`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from redispatch.utils._late import late_names

if TYPE_CHECKING:
    from .coverage import OperatorCoverageMode
    from .cross_check import CrossCheckMode
    from .determinism import DeterminismMode
    from .device_context import DeviceContext
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
    "DeviceContext": "device_context",
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

__all__ = list(_PLACES)

__getattr__, __dir__ = late_names(__name__, _PLACES)
