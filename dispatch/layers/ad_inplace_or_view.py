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

from ..core.base import TensorBase
from ..core.interpreter import run
from ..core.keyset import below, keyset
from ..core.operator import OpOverload
from ..core.registry import Undo
from ..core.state import STATE, within
from ..inspection.origins import telling_origin
from ..rules import Slot, place_of
from ..schema.schema import FunctionSchema, ListType
from ..specialiser.annotations import inline, pure
from .layer import boxed_kernel, skipped

ADINPLACEORVIEW = keyset("ADInplaceOrView")
BELOW_ADINPLACEORVIEW = below("ADInplaceOrView")

# (view, base, op, stack, position in the result): makes `view` a view of `base`, version counter included
AS_VIEW: Slot[Any] = Slot("how a tensor becomes a view of another")


def ad_inplace_or_view(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Runs `op` below, then bumps the version of each argument it wrote and makes views of results that alias one.

    Errors: RuntimeError where an inference tensor would be written outside inference mode.
    """
    state = STATE.get()
    schema = op.schema
    if schema.is_mutable and not state.inference:
        for position in schema.mutable_positions:
            if position in schema.tensor_list_positions:
                refuse_inference_tensors_in(stack[position])
            else:
                refuse_inference_tensors(stack[position])
    with within(state.excluding(ADINPLACEORVIEW)):
        result = run(op, keyset & BELOW_ADINPLACEORVIEW, stack)
    for position in schema.mutable_positions:
        if position in schema.tensor_list_positions:
            bump_each_version(stack[position])
        else:
            bump_versions(stack[position])
    if schema.is_view:
        tie_to_base(op, stack, result)
        return result
    return written_results(schema, stack, result)


# Views ----------------------------------------------------------------------------------------------------------


@inline
def tie_to_base(op: OpOverload, stack: list[Any], result: Any) -> None:
    """Makes what a view operator returned views of its base."""
    if isinstance(result, TensorBase):
        AS_VIEW()(result, stack[base_position(op.schema)], op, stack, 0)
    else:
        tie_each_to_base(op, stack, result)


def tie_each_to_base(op: OpOverload, stack: list[Any], result: Any) -> None:
    base, as_view = stack[base_position(op.schema)], AS_VIEW()
    for index, view in enumerate(tensors_in(result)):
        as_view(view, base, op, stack, index)


@pure
def base_position(schema: FunctionSchema) -> int:
    """The argument of a view operator that its results show."""
    (position, *_) = next(aliased for aliased in schema.return_aliases if aliased)
    return position


@pure
def returns_one_tensor(schema: FunctionSchema) -> bool:
    """Whether the result is one value and no list."""
    return len(schema.returns) == 1 and not isinstance(schema.returns[0].type, ListType)


# Writes ---------------------------------------------------------------------------------------------------------


def tensors_in(value: Any) -> list[Any]:
    """The tensors in an argument or result: itself, or the items of a list or tuple."""
    return [v for v in (value if isinstance(value, list | tuple) else (value,)) if isinstance(v, TensorBase)]


@inline
def refuse_inference_tensors(written: Any) -> None:
    """Raises RuntimeError where an argument to be written has no version: a saved tensor could not notice."""
    if isinstance(written, TensorBase):
        if written._counter is None:
            raise inference_tensor_written(written)
    elif written is not None:
        refuse_inference_tensors_in(written)


def refuse_inference_tensors_in(written: Any) -> None:
    for tensor in written if isinstance(written, list | tuple) else (written,):
        if isinstance(tensor, TensorBase) and tensor._counter is None:
            raise inference_tensor_written(tensor)


def inference_tensor_written(written: Any) -> RuntimeError:
    text = (
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
        "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more "
        "details."
    )
    return telling_origin(RuntimeError(text), tensor=written)


@inline
def bump_versions(written: Any) -> None:
    """Counts one write for an argument: a tensor, None or a list."""
    if isinstance(written, TensorBase):
        bump_version(written)
    elif written is not None:
        bump_each_version(written)


@inline
def bump_version(tensor: Any) -> None:
    """Counts one write. An inference tensor has no counter."""
    if tensor._counter is not None:
        tensor._counter[0] += 1


def bump_each_version(written: Any) -> None:
    for tensor in written if isinstance(written, list | tuple) else (written,):
        if isinstance(tensor, TensorBase):
            bump_version(tensor)


@inline
def written_results(schema: FunctionSchema, stack: list[Any], result: Any) -> Any:
    """`result` with each part that is a written argument replaced by that very argument, whatever was returned."""
    same = returned_arguments(schema)
    if all(position is None for position in same):
        return result
    if len(same) == 1:
        return the_same(stack[same[0]], result)  # type: ignore[index]  # it is not None
    return tuple(
        result[index] if position is None else the_same(stack[position], result[index])
        for index, position in enumerate(same)
    )


@inline
def the_same(written: Any, returned: Any) -> Any:
    """The written argument, if it was given."""
    return returned if written is None else written


@pure
def returned_arguments(schema: FunctionSchema) -> tuple[int | None, ...]:
    """For each return, the written argument that it is, or None."""
    return tuple(
        aliased[0] if aliased and returned.is_write else None
        for returned, aliased in zip(schema.returns, schema.return_aliases, strict=True)
    )


def register_alias_tracking(op: OpOverload) -> Undo | None:
    """Gives `op` this kernel if its schema writes an argument or returns a view of one."""
    return track_aliases(op) if op.schema.is_mutable or op.schema.is_view else None


def track_aliases(op: OpOverload) -> Undo:
    """Gives `op` this kernel."""
    return op.register("ADInplaceOrView", boxed_kernel(ad_inplace_or_view))


skipped(place_of(register_alias_tracking), "ADInplaceOrView")
