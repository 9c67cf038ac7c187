"""debug_unwrap: the value behind a tensor of a transform, to look at while debugging."""

from __future__ import annotations

from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.wrapped import Wrapped


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The value in a wrapper of `vmap`, `grad` or `jvp`, without all wrappers, or with `recurse=False` without the
    outermost; other tensors as they are.

    What is computed from it is not part of the computation that is transformed: gradients and batches end here.
    """
    while type(tensor) is Wrapped:
        tensor = tensor._value
        if not recurse:
            break
    return tensor
