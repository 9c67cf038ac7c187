"""Made by `python -m redispatch.stubs`."""

from redispatch.modes.fake_tensor import DataDependentOutputException as DataDependentOutputException, DynamicOutputShapeException as DynamicOutputShapeException, FakeTensor as FakeTensor, FakeTensorDeviceMismatchError as FakeTensorDeviceMismatchError, FakeTensorMode as FakeTensorMode

