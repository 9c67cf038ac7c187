"""associative_scan: x0, x0∘x1, x0∘x1∘x2, ... for a function ∘ that may be grouped as one likes.

Neighbours are combined, all pairs at once; the scan of the half as many pairs gives every second result, and one more
step at once the others. So n elements take 2 log n calls of the function in the place of n.

Source: Blelloch, "Prefix sums and their applications" (1990). Read next: map.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.ops.shape import cat
from redispatch.utils._pytree import tree_flatten, tree_unflatten

from .body import BodyOperator, tensors_of

Combine = Callable[[list[Tensor], list[Tensor]], list[Tensor]]


def associative_scan_dense(
    combine_fn: Callable[..., Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """All prefixes. `combine_fn` gets slices of any length along `dim`."""
    leaves, spec = tree_flatten(xs)

    def combine(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        moved = [[x.movedim(0, dim) for x in side] for side in (left, right)]
        result, found = tree_flatten(combine_fn(*(tree_unflatten(side, spec) for side in moved)))
        if found != spec:
            raise ValueError(f"combine_fn must return a pytree of the structure of xs, {spec}, but got {found}")
        return [x.movedim(dim, 0) for x in result]

    front = [leaf.movedim(dim, 0) for leaf in leaves]
    if reverse:
        front = [leaf.flip(0) for leaf in front]
    prefixes = prefixes_of(combine, front)
    if reverse:
        prefixes = [leaf.flip(0) for leaf in prefixes]
    return tree_unflatten([leaf.movedim(0, dim) for leaf in prefixes], spec)


def prefixes_of(combine: Combine, xs: list[Tensor]) -> list[Tensor]:
    """The prefixes along the first dimension."""
    count = xs[0].size(0)
    if count < 2:
        return xs
    odd = prefixes_of(combine, combine([x[:-1:2] for x in xs], [x[1::2] for x in xs]))
    later = [x[2::2] for x in xs]
    even = combine([x[: len(y)] for x, y in zip(odd, later, strict=True)], later) if count > 2 else later
    return [interleaved(cat([x[:1], a]), b) for x, a, b in zip(xs, even, odd, strict=True)]


def interleaved(even: Tensor, odd: Tensor) -> Tensor:
    """even[0], odd[0], even[1], odd[1], ...; there may be one even more."""
    pairs = len(odd)
    both = cat([even[:pairs].unsqueeze(1), odd.unsqueeze(1)], 1).flatten(0, 1)
    return both if len(even) == pairs else cat([both, even[pairs:]])


associative_scan_op = BodyOperator("associative_scan", associative_scan_dense)


def associative_scan(
    combine_fn: Callable[..., Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """The inclusive scan of `xs`, a pytree of tensors, along `dim` with the associative `combine_fn(a, b)`.

    `combine_fn` is called with many elements at once. With `reverse` the scan runs from the end. combine_mode:
    "pointwise" or "generic", which here mean the same.
    Errors: ValueError for other arguments.
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError("Dim must be an int, but got " + str(type(dim)))
    if not isinstance(reverse, bool):
        raise RuntimeError("Reverse must be a bool, but got " + str(type(reverse)))
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, _ = tensors_of(xs, lambda found: ValueError(f"xs leaves must be a Tensor, but got {found}"))
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if len({leaf.size(dim) for leaf in leaves}) > 1 or not leaves[0].size(dim):
        raise ValueError(f"All xs leaves must have one length > 0 along dim {dim}, got {[x.shape for x in leaves]}")
    return associative_scan_op(combine_fn, xs, dim, reverse=reverse, combine_mode=combine_mode)
