"""Made by `python -m redispatch.stubs`."""

from . import fake_tensor as fake_tensor, fake_utils as fake_utils, functional_tensor as functional_tensor, schema_check_mode as schema_check_mode
from redispatch.modes.fake.cross_ref import CrossRefFakeMode as CrossRefFakeMode
from redispatch.modes.fake_tensor import DataDependentOutputException as DataDependentOutputException, DynamicOutputShapeException as DynamicOutputShapeException, FakeTensor as FakeTensor, FakeTensorDeviceMismatchError as FakeTensorDeviceMismatchError, FakeTensorMode as FakeTensorMode, UnsupportedFakeTensorException as UnsupportedFakeTensorException, UnsupportedOperatorException as UnsupportedOperatorException

