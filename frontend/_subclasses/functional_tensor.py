"""PyTorch's module path of modes/functional_tensor.py."""

from redispatch.modes.functional_tensor import FunctionalTensor, FunctionalTensorMode

__all__ = ["FunctionalTensor", "FunctionalTensorMode"]
