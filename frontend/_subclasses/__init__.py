"""PyTorch's private names for its own modes. The modes are in modes/."""

from redispatch import _names

__all__ = _names.take(
    globals(),
    {
        ".": "fake_tensor fake_utils functional_tensor schema_check_mode",
        "redispatch.modes.fake.cross_ref": "CrossRefFakeMode",
        "redispatch.modes.fake_tensor": """
            DataDependentOutputException DynamicOutputShapeException FakeTensor
            FakeTensorDeviceMismatchError FakeTensorMode UnsupportedFakeTensorException UnsupportedOperatorException
        """,
    },
)
