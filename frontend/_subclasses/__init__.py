"""PyTorch's private names for its own modes. The modes are in modes/."""

from redispatch import _names

__all__ = _names.take(
    globals(),
    {
        "redispatch.modes.fake_tensor": """
            DataDependentOutputException DynamicOutputShapeException FakeTensor FakeTensorDeviceMismatchError
            FakeTensorMode
        """
    },
)
