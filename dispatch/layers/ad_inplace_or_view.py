"""ADInplaceOrView: counts writes and ties views to their bases.

It lies below Autograd, so that it also runs when nothing is recorded: a tensor saved for backward must notice a
write made under `no_grad`. Operators that neither write nor return a view pass it at no cost; those whose schema
says that they do get this kernel (`register_alias_tracking`).

Note [Views share one version counter]
A view, its base and all other views of that base hold the same counter, because a write through any of them changes
what the others show.
"""

from __future__ import annotations

from typing import Any

from ..base import TensorBase
from ..interpreter import run
from ..keyset import below, keyset
from ..operator import OpOverload
from ..registry import Undo, place_of
from ..rules import Slot
from ..state import STATE, within
from .layer import boxed_kernel, skipped

ADINPLACEORVIEW = keyset("ADInplaceOrView")
BELOW_ADINPLACEORVIEW = below("ADInplaceOrView")

# (view, base, op, stack, position in the result): makes `view` a view of `base`, version counter included
AS_VIEW: Slot[Any] = Slot("how a tensor becomes a view of another")


def ad_inplace_or_view(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Runs `op` below, then bumps the version of each argument it wrote and makes views of results that alias one.

    Errors: RuntimeError where an inference tensor would be written outside inference mode.
    """
    if op.schema.is_mutable and not STATE.get().inference:
        refuse_inference_tensors(op, stack)
    with within(STATE.get().excluding(ADINPLACEORVIEW)):
        result = run(op, keyset & BELOW_ADINPLACEORVIEW, stack)
    schema = op.schema
    for position in schema.mutable_positions:
        for written in tensors_in(stack[position]):
            bump_version(written)
    if schema.is_view:
        (base_position, *_) = next(aliased for aliased in schema.return_aliases if aliased)
        for index, view in enumerate(tensors_in(result)):
            AS_VIEW()(view, stack[base_position], op, stack, index)
        return result
    return written_results(op, stack, result)


def tensors_in(value: Any) -> list[Any]:
    """The tensors in an argument or result: itself, or the items of a list or tuple."""
    return [v for v in (value if isinstance(value, list | tuple) else (value,)) if isinstance(v, TensorBase)]


def refuse_inference_tensors(op: OpOverload, stack: list[Any]) -> None:
    """Raises RuntimeError where an argument to be written has no version: a saved tensor could not notice."""
    for position in op.schema.mutable_positions:
        if any(tensor._counter is None for tensor in tensors_in(stack[position])):
            raise RuntimeError(
                "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
                "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more "
                "details."
            )


def bump_version(tensor: Any) -> None:
    """Counts one write. An inference tensor has no counter."""
    if tensor._counter is not None:
        tensor._counter[0] += 1


def written_results(op: OpOverload, stack: list[Any], result: Any) -> Any:
    """`result` with each part that is a written argument replaced by that very argument, whatever was returned."""
    same = [
        stack[aliased[0]] if aliased and returned.is_write else None
        for returned, aliased in zip(op.schema.returns, op.schema.return_aliases, strict=True)
    ]
    if len(same) == 1:
        return result if same[0] is None else same[0]
    return (
        tuple(r if s is None else s for r, s in zip(result, same, strict=True))
        if any(s is not None for s in same)
        else result
    )


def register_alias_tracking(op: OpOverload) -> Undo | None:
    """Gives `op` this kernel if its schema writes an argument or returns a view of one."""
    if op.schema.is_mutable or op.schema.is_view:
        return op.register("ADInplaceOrView", boxed_kernel(ad_inplace_or_view))
    return None


skipped(place_of(register_alias_tracking), "ADInplaceOrView")
