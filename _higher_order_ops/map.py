"""map: a function of each slice along the first dimension, its results stacked.

Unlike vmap it runs the function once for each slice, one after the other: whatever the function does, it may.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.utils._pytree import tree_unflatten

from .body import BodyOperator, stacked, tensors_of


def not_tensors(leaves: list[Any]) -> RuntimeError:
    return RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")


def map_dense(f: Callable[..., Any], xs: Any, args: tuple[Any, ...] = ()) -> Any:
    """The loop itself."""
    leaves, spec = tensors_of(xs, not_tensors)
    slices = (tree_unflatten([leaf.select(0, index) for leaf in leaves], spec) for index in range(leaves[0].size(0)))
    return stacked([f(one, *args) for one in slices])


map_impl = BodyOperator("map_impl", map_dense)


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f(x, *args)` for each slice x of `xs` along its first dimension, stacked.

    Errors: RuntimeError where `xs` is no pytree of tensors of one length, or there is no slice.
    """
    leaves, _ = tensors_of(xs, not_tensors)
    if not leaves or leaves[0].shape[0] == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    shapes = [leaf.shape for leaf in leaves]
    if any(shape[0] != shapes[0][0] for shape in shapes):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    return map_impl(f, xs, args)
