"""PyTorch's private names for its own modes. The modes are in modes/."""

from redispatch import _names

__all__ = _names.take(
    globals(),
    {
        ".": "fake_tensor functional_tensor schema_check_mode",
        "redispatch.modes.fake_tensor": """
            CrossRefFakeMode DataDependentOutputException DynamicOutputShapeException FakeTensor
            FakeTensorDeviceMismatchError FakeTensorMode UnsupportedFakeTensorException UnsupportedOperatorException
        """,
    },
)
