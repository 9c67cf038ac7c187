"""`redispatch._tensor`: PyTorch's path of Tensor, and what its subclasses import from there."""

from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.tensor import converted as _convert

from .serialization.names import rebuild_subclass as _rebuild_from_type_v2

__all__ = ["Tensor", "_convert", "_rebuild_from_type_v2"]
