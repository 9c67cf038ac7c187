"""PyTorch's private names for its own modes. The modes are in modes/."""

from .fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensor, FakeTensorMode

__all__ = ["DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode"]
