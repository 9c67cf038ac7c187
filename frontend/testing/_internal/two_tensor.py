"""PyTorch's place for TwoTensor, where its tests and tutorials import it from."""

from redispatch.subclasses.two_tensor import TwoTensor

__all__ = ["TwoTensor"]
