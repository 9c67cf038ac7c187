"""`redispatch.linalg`: linear algebra under PyTorch's module path, as far as there are operators for it."""

from redispatch.ops.moments import vector_norm

__all__ = ["vector_norm"]
