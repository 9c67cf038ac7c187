"""Searching in sorted sequences, and the losses of sequences that are not aligned (CTC)."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, call, ops
from redispatch.dispatch.layers.transforms import BATCHING
from redispatch.kernels.ops.loss import ctc_backward_list_op, ctc_backward_tensor_op, ctc_list_op, ctc_tensor_op
from redispatch.kernels.ops.sorting import bucketize_op, bucketize_scalar_op, searchsorted_op, searchsorted_scalar_op

from ...dispatch.transforms.batched import Decomposition, front, is_tensor, rank, whole
from .fallback import one_by_one

aten = ops.aten
PLACE = "kernels/batching/sequences.py"

# searchsorted, bucketize ----------------------------------------------------------------------------------------------


def search_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """One sequence serves any number of values; a batch of sequences, as many rows of values."""
    sequence, sought, *how, sorter = values
    of_sequence, of_sought, *_, of_sorter = dims
    one_each = rank(sequence, of_sequence) == 1
    if one_each and of_sequence is None and of_sorter is None:
        return call(op, [sequence, front(sought, of_sought), *how, sorter]), 0
    rows = whole(sought, of_sought, size)
    given = rows.reshape(size, -1) if one_each else rows
    order = whole(sorter, of_sorter, size) if is_tensor(sorter) else sorter
    return call(op, [whole(sequence, of_sequence, size), given, *how, order]).view(rows.shape), 0


def search_number(op: OpOverload, stack: list[Any]) -> Any:
    sequence, sought, out_int32, right, side, sorter = stack
    places = sequence.new_full([1], sought)
    how = {"out_int32": out_int32, "right": right, "side": side, "sorter": sorter}
    return aten.searchsorted.Tensor(sequence, places, **how).squeeze(0)


def bucketize(op: OpOverload, stack: list[Any]) -> Any:
    sought, boundaries, out_int32, right = stack
    return aten.searchsorted.Tensor(boundaries, sought, out_int32=out_int32, right=right)


def bucketize_number(op: OpOverload, stack: list[Any]) -> Any:
    sought, boundaries, out_int32, right = stack
    return aten.searchsorted.Scalar(boundaries, sought, out_int32=out_int32, right=right)


# _ctc_loss ------------------------------------------------------------------------------------------------------------


def longer(value: Any, dim: int | None, size: int) -> Any:
    """A batch's [N, ...] as [size * N, ...]; a list of N numbers as often."""
    return whole(value, dim, size).flatten(0, 1) if is_tensor(value) else list(value) * size


def over_times(value: Any, dim: int | None, size: int) -> Any:
    """A batch's [T, N, C] as [T, size * N, C]."""
    return whole(value, dim, size).movedim(0, 1).flatten(1, 2)


def ctc_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """The sequences of all examples one after the other; they do not know of each other."""
    if rank(values[0], dims[0]) != 3:
        return one_by_one(op, values, dims, size)
    sequences = [longer(value, dim, size) for value, dim in zip(values[1:4], dims[1:4], strict=True)]
    loss, alpha = call(op, [over_times(values[0], dims[0], size), *sequences, *values[4:]])
    return (loss.unflatten(0, (size, -1)), alpha.unflatten(0, (size, -1))), [0, 0]


def ctc_backward_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    if rank(values[1], dims[1]) != 3:
        return one_by_one(op, values, dims, size)
    arguments = [
        (over_times if place == 1 else longer)(value, dim, size)
        for place, (value, dim) in enumerate(zip(values[:7], dims[:7], strict=True))
    ]
    return call(op, [*arguments, *values[7:]]).unflatten(1, (size, -1)), 1


for declared, rule in [
    (searchsorted_op, search_rule),
    (searchsorted_scalar_op, Decomposition(search_number, otherwise=one_by_one)),
    (bucketize_op, Decomposition(bucketize, otherwise=one_by_one)),
    (bucketize_scalar_op, Decomposition(bucketize_number, otherwise=one_by_one)),
    (ctc_list_op, ctc_rule),
    (ctc_tensor_op, ctc_rule),
    (ctc_backward_list_op, ctc_backward_rule),
    (ctc_backward_tensor_op, ctc_backward_rule),
]:
    BATCHING.add(declared.functional, rule, PLACE)
