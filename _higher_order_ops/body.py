"""BodyOperator: a higher-order operator that is nothing but its body. Read next: cond.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import DispatchKey
from redispatch.dispatch.higher_order import HigherOrderOperator
from redispatch.ops.shape import stack
from redispatch.tensor import Tensor
from redispatch.utils._pytree import tree_flatten, tree_unflatten


class BodyOperator(HigherOrderOperator):
    """A transparent operator: `body` is its kernel everywhere, written in other operators."""

    def __init__(self, name: str, body: Callable[..., Any]) -> None:
        super().__init__(name, transparent=True)
        self.py_impl(DispatchKey.CompositeImplicitAutograd)(body)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)


def tensors_of(tree: Any, error: Callable[[list[Any]], Exception]) -> tuple[list[Tensor], Any]:
    """(tensors, structure) of a pytree; raises what `error` makes of the leaves where one is no tensor."""
    leaves, spec = tree_flatten(tree)
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise error(leaves)
    return leaves, spec


def stacked(trees: list[Any]) -> Any:
    """Pytrees of one structure as one, whose tensors are stacked along a new first dimension; other leaves stay."""
    flat = [tree_flatten(tree) for tree in trees]
    spec = flat[0][1]
    if any(other != spec for _, other in flat):
        raise RuntimeError(f"expected results of one structure at every step, got {[other for _, other in flat]}")
    columns = zip(*(leaves for leaves, _ in flat), strict=True)
    joined = [stack(column) if isinstance(column[0], Tensor) else column[0] for column in columns]
    return tree_unflatten(joined, spec)
