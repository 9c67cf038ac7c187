"""map: a function of each slice along the first dimension, its results stacked.

Unlike vmap it runs the function once for each slice, one after the other: whatever the function does, it may.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor
from redispatch.utils._pytree import tree_flatten

from .body import BodyOperator, Flat, functionalize_functions, stacked, tensors_of


def not_tensors(leaves: list[Any]) -> RuntimeError:
    return RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")


def map_dense(f: Callable[..., Any], xs: list[Tensor], args: Sequence[Any] = ()) -> list[Any]:
    """The loop itself, for a function of leaves that returns leaves."""
    return stacked([f(*(x.select(0, index) for x in xs), *args) for index in range(xs[0].size(0))])


map_impl = BodyOperator("map_impl", map_dense)
functionalize_functions(map_impl, 0)


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f(x, *args)` for each slice x of `xs` along its first dimension, stacked.

    Errors: RuntimeError where `xs` is no pytree of tensors of one length, or there is no slice.
    """
    leaves, spec = tensors_of(xs, not_tensors)
    if not leaves or leaves[0].shape[0] == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    shapes = [leaf.shape for leaf in leaves]
    if any(shape[0] != shapes[0][0] for shape in shapes):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    arg_leaves, arg_spec = tree_flatten(args)
    flat = Flat(lambda x, args: f(x, *args), spec, arg_spec)
    return flat.restored(map_impl(flat, leaves, arg_leaves))
