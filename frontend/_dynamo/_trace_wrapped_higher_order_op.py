"""A mode under which tensors are indices as they are: `x[i]` for a batched `i` of no dimensions, under `vmap`."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor
from redispatch.overrides import TorchFunctionMode

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(TorchFunctionMode):
    """Has `x[i, j, ...]` of tensors alone gather elements, and never ask one for its number."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if func is Tensor.__getitem__:
            x, index = args
            indices = index if isinstance(index, tuple) else (index,)
            if all(isinstance(one, Tensor) for one in indices):
                return ops.aten.index.Tensor(x, list(indices))
        return func(*args, **(kwargs or {}))
