"""cond: one of two functions, as a number says that may be in a tensor.

    cond(x.sum() > 0, torch.sin, torch.cos, (x,))

Eagerly it is an `if`. Under vmap the predicate may differ from example to example: both branches are computed for the
whole batch, and the results chosen from. Read next: while_loop.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch.higher_order import TransformType
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.ops.comparison import where
from redispatch.utils._pytree import tree_leaves, tree_map

from .body import BodyOperator, functionalize_functions


def branch(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    return true_fn(*operands) if pred else false_fn(*operands)


cond_op = BodyOperator("cond", branch)
functionalize_functions(cond_op, 1, 2)


@cond_op.py_impl(TransformType.Vmap)
def cond_of_a_batch(level: Any, pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """Both branches, where the predicate is batched."""
    if not isinstance(pred, Tensor) or level.dims_of(pred) is None:
        return NotImplemented
    return tree_map(lambda a, b: where(pred, a, b), true_fn(*operands), false_fn(*operands))


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """`true_fn(*operands)` or `false_fn(*operands)`.

    pred: a tensor with one element; where it is a number, there is nothing to decide, and no operator is called.
    operands: pytrees of tensors.
    Errors: RuntimeError for other arguments.
    """
    if isinstance(pred, bool | int | float):
        return branch(pred, true_fn, false_fn, operands)
    if not isinstance(pred, Tensor):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, tuple | list) or not all(isinstance(x, Tensor) for x in tree_leaves(operands)):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but "
            f"got {operands}."
        )
    return cond_op(pred, true_fn, false_fn, operands)
