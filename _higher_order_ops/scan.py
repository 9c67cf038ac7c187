"""scan: a function applied to one slice after the other, with something carried from each to the next.

    carry, ys = scan(lambda carry, x: (carry + x, carry * x), init, xs)

Read next: associative_scan.py, where the steps may be taken in any grouping; map.py, where nothing is carried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.utils._pytree import tree_leaves, tree_unflatten

from .body import BodyOperator, stacked, tensors_of


def scan_dense(combine_fn: Callable[..., Any], init: Any, xs: Any, dim: int = 0, reverse: bool = False) -> Any:
    """The loop itself: (what is carried in the end, the results of all steps, stacked)."""
    leaves, spec = tensors_of(xs, lambda found: RuntimeError(f"All xs leaves must be a Tensor but got {found}"))
    steps = range(leaves[0].size(dim))
    carry, outputs = init, []
    for index in reversed(steps) if reverse else steps:
        carry, output = combine_fn(carry, tree_unflatten([leaf.select(dim, index) for leaf in leaves], spec))
        outputs.append(output)
    return carry, stacked(outputs[::-1] if reverse else outputs)


scan_op = BodyOperator("scan", scan_dense)


def scan(combine_fn: Callable[..., Any], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> Any:
    """(carry, ys) after `carry, y = combine_fn(carry, x)` for each slice x of `xs` along `dim`, the last one first with
    `reverse`.

    init, xs: pytrees of tensors. ys: the results in the order of the slices, stacked along a new first dimension.
    Errors: RuntimeError for other arguments, and where there is nothing to scan.
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise RuntimeError("Dim must be an int, but got " + str(type(dim)))
    if not isinstance(reverse, bool):
        raise RuntimeError("Reverse must be a bool, but got " + str(type(reverse)))
    if not tree_leaves(init):
        raise RuntimeError("scan() operator requires init leaves.")
    tensors_of(init, lambda found: RuntimeError(f"All init leaves must be a Tensor but got {found}"))
    leaves, _ = tensors_of(xs, lambda found: RuntimeError(f"All xs leaves must be a Tensor but got {found}"))
    if not leaves:
        return init, xs
    lengths = [leaf.size(dim) for leaf in leaves]
    if len(set(lengths)) > 1 or lengths[0] == 0:
        raise RuntimeError(
            "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0, of one length; got "
            f"{lengths}"
        )
    return scan_op(combine_fn, init, xs, dim=dim, reverse=reverse)
