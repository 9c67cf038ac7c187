"""scan: a function applied to one slice after the other, with something carried from each to the next.

    carry, ys = scan(lambda carry, x: (carry + x, carry * x), init, xs)

Read next: associative_scan.py, where the steps may be taken in any grouping; map.py, where nothing is carried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor
from redispatch.utils._pytree import tree_flatten, tree_leaves

from .body import BodyOperator, Flat, functionalize_functions, stacked, tensors_of


def scan_dense(
    combine_fn: Callable[..., Any], init: list[Tensor], xs: list[Tensor], additional_inputs: Sequence[Any] = ()
) -> list[Any]:
    """The loop itself, for a function of leaves that returns leaves.

    Returns what is carried in the end, and then the results of all steps, stacked.
    """
    carry, outputs = init, []
    for index in range(xs[0].size(0)):
        found = combine_fn(*carry, *(x.select(0, index) for x in xs), *additional_inputs)
        carry = found[: len(init)]
        outputs.append(found[len(init) :])
    return [*carry, *stacked(outputs)]


scan_op = BodyOperator("scan", scan_dense)
functionalize_functions(scan_op, 0)


def scan(combine_fn: Callable[..., Any], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> Any:
    """(carry, ys) after `carry, y = combine_fn(carry, x)` for each slice x of `xs` along `dim`, the last one first with
    `reverse`.

    init, xs: pytrees of tensors. ys: the results in the order of the slices, stacked along a new dimension: the same,
    `dim`, or the first of results that have no such dimension.
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
    carried, init_spec = tensors_of(
        init, lambda found: RuntimeError(f"All init leaves must be a Tensor but got {found}")
    )
    leaves, spec = tensors_of(xs, lambda found: RuntimeError(f"All xs leaves must be a Tensor but got {found}"))
    if not leaves:
        return init, xs
    lengths = [leaf.size(dim) for leaf in leaves]
    if len(set(lengths)) > 1 or lengths[0] == 0:
        raise RuntimeError(
            "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0, of one length; got "
            f"{lengths}"
        )
    front = [leaf.movedim(dim, 0) for leaf in leaves] if dim else leaves
    flat = Flat(checked_carry(combine_fn, init_spec), init_spec, spec)
    found = scan_op(flat, carried, [x.flip(0) for x in front] if reverse else front)
    carry, ys = found[: len(carried)], found[len(carried) :]
    return flat.restored([*carry, *(in_place(y, dim % leaves[0].dim(), reverse) for y in ys)])


def in_place(y: Any, dim: int, reverse: bool) -> Any:
    """The results of all steps in the order of the slices, and along the dimension along which these were taken."""
    if not isinstance(y, Tensor):
        return y
    y = y.flip(0) if reverse else y
    return y.movedim(0, dim) if 0 < dim < y.dim() else y


def checked_carry(combine_fn: Callable[..., Any], spec: Any) -> Callable[..., Any]:
    """`combine_fn` where what it carries keeps its structure, RuntimeError where not."""

    def combine(carry: Any, x: Any) -> Any:
        carried, y = combine_fn(carry, x)
        found = tree_flatten(carried)[1]
        if found != spec:
            raise RuntimeError(
                f"scan: combine_fn should carry on what has the structure of init, {spec}, but carried {found}"
            )
        return carried, y

    return combine
