"""Python modes, one idea per file, written with public names only.

Each is imported when it is asked for: `redispatch.modes.ProfilerMode`, or `from redispatch.modes.profiler import …`.
"""

from redispatch import _names

PLACES, __getattr__, __dir__ = _names.late(
    globals(),
    {
        ".coverage": "OperatorCoverageMode",
        ".cross_check": "CrossCheckMode",
        ".determinism": "DeterminismMode",
        ".device_context": "DeviceContext",
        ".dtype_check": "DtypeCheckMode",
        ".fake_tensor": "FakeTensorMode",
        ".flop_counter": "FlopCounterMode",
        ".functional_rng": "FunctionalRNGMode",
        ".functional_tensor": "FunctionalTensorMode",
        ".logging_mode": "LoggingMode",
        ".memory_tracker": "MemoryTrackerMode",
        ".nan_detector": "NanDetectorMode",
        ".profiler": "ProfilerMode",
        ".schema_check": "SchemaCheckMode",
    },
)
__all__ = sorted(PLACES)
