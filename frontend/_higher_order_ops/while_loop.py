"""while_loop: a function applied to its own results as long as another says so.

    while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))

Read next: scan.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.utils._pytree import tree_flatten, tree_map

from .body import BodyOperator, functionalize_functions


def while_loop_dense(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any, additional_inputs: Any = ()
) -> Any:
    """The loop itself. RuntimeError where `cond_fn` gives no bool, or `body_fn` other tensors than it was given."""
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(f"carried_inputs must be a tuple or list but got {type(carried_inputs)}")
    carried: Any = tuple(carried_inputs)
    ran = False
    while checked_predicate(cond_fn(*carried, *additional_inputs)):
        result = body_fn(*carried, *additional_inputs)
        if not isinstance(result, tuple | list) or len(result) != len(carried):
            raise RuntimeError(
                f"body_fn should return the same number of elements as carried_inputs, {len(carried)}, as a tuple or "
                f"list, but got {result}"
            )
        check_alike(carried, tuple(result))
        carried, ran = tuple(result), True
    return carried if ran else tree_map(lambda x: x.clone() if isinstance(x, Tensor) else x, carried)


def checked_predicate(pred: Any) -> bool:
    if isinstance(pred, bool) or (isinstance(pred, Tensor) and pred.dim() == 0 and pred.dtype is dtypes.bool):
        return bool(pred)
    raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {pred}")


def check_alike(before: Any, after: Any) -> None:
    """RuntimeError where what is carried changes its structure, or a tensor its shape or dtype."""
    (old, spec), (new, new_spec) = tree_flatten(before), tree_flatten(after)
    if spec != new_spec:
        raise RuntimeError(f"body_fn should return what it was given: expected the structure {spec}, got {new_spec}")
    for x, y in zip(old, new, strict=True):
        if isinstance(x, Tensor) and (not isinstance(y, Tensor) or (x.shape, x.dtype) != (y.shape, y.dtype)):
            given = f"{y.dtype}{list(y.shape)}" if isinstance(y, Tensor) else repr(y)
            raise RuntimeError(
                "Expected carried_inputs and body_output to have same metadata but found: "
                f"{x.dtype}{list(x.shape)} became {given}"
            )


while_loop_op = BodyOperator("while_loop", while_loop_dense)
functionalize_functions(while_loop_op, 0, 1)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """What `body_fn(*carried)` gives in the end, called again with its own results while `cond_fn(*carried)` is true.

    Errors: RuntimeError where `cond_fn` gives no bool, or a tensor changes its shape or dtype from step to step.
    """
    if not callable(cond_fn):
        raise RuntimeError("Expect cond_fn to be callable.")
    if not callable(body_fn):
        raise RuntimeError("Expect body_fn to be callable.")
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(f"Expect carried_inputs to be a tuple or list but got {type(carried_inputs)}")
    return while_loop_op(cond_fn, body_fn, tuple(carried_inputs), ())
