"""Made by `python -m redispatch.stubs`."""

from .coverage import OperatorCoverageMode as OperatorCoverageMode
from .cross_check import CrossCheckMode as CrossCheckMode
from .determinism import DeterminismMode as DeterminismMode
from .device_context import DeviceContext as DeviceContext
from .dtype_check import DtypeCheckMode as DtypeCheckMode
from .fake_tensor import FakeTensorMode as FakeTensorMode
from .flop_counter import FlopCounterMode as FlopCounterMode
from .functional_rng import FunctionalRNGMode as FunctionalRNGMode
from .functional_tensor import FunctionalTensorMode as FunctionalTensorMode
from .logging_mode import LoggingMode as LoggingMode
from .memory_tracker import MemoryTrackerMode as MemoryTrackerMode
from .nan_detector import NanDetectorMode as NanDetectorMode
from .profiler import ProfilerMode as ProfilerMode
from .schema_check import SchemaCheckMode as SchemaCheckMode

