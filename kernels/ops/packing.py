"""Sequences of several lengths as one tensor: padded to the longest, or packed step by step without padding; and
tensors of any shapes as one vector.

A packed tensor holds the first step of all sequences, then the second step of those that have one, and so on;
`batch_sizes` says how many that are at each step. The sequences go from the longest to the shortest. Read next:
frontend/nn/utils/rnn.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch.dispatch import STATE, ops
from redispatch.dispatch.tensor import Size, Tensor, as_numpy, contiguous_format, dtypes, empty, result_type, wrap_dim

from ..declare.operator import composite, kernel


@composite(
    'pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str padding_side="right") '
    "-> Tensor",
    module="nn",
)
def pad_sequence(sequences, batch_first, padding_value, padding_side):
    """Returns the sequences side by side, [longest, count, ...] or [count, longest, ...], filled up on one side."""
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not sequences[0].dim():
        raise RuntimeError("pad_sequence: expected sequences with at least one dimension")
    longest, rest = max(x.shape[0] for x in sequences), list(sequences[0].shape[1:])
    shape = [len(sequences), longest, *rest] if batch_first else [longest, len(sequences), *rest]
    if STATE.get().levels:  # each example may have its own sequences
        gaps = [longest - x.shape[0] for x in sequences]
        sides = [[0, gap] if padding_side == "right" else [gap, 0] for gap in gaps]
        pads = ([*(0, 0) * len(rest), *side] for side in sides)
        filled = [
            ops.aten.constant_pad_nd.default(x, pad, padding_value) for x, pad in zip(sequences, pads, strict=True)
        ]
        return ops.aten.stack.default(filled, 0 if batch_first else 1)
    kind, device = result_type(*sequences), sequences[0].device
    padded = ops.aten.full.default(shape, padding_value, dtype=kind, device=device)
    for number, x in enumerate(sequences):
        start = 0 if padding_side == "right" else longest - x.shape[0]
        if batch_first:
            place = padded.select(0, number).narrow(0, start, x.shape[0])
        else:
            place = padded.narrow(0, start, x.shape[0]).select(1, number)
        place.copy_(x)
    return padded


# torch.nn.utils.rnn.pad_sequence calls it


def whole_numbers(values: Any) -> Tensor:
    made = empty(Size(values.shape), dtypes.int64)
    as_numpy(made)[...] = values
    return made


def check_lengths(lengths: Tensor) -> None:
    if len(lengths._shape) != 1 or lengths._dtype is not dtypes.int64 or lengths._device.type != "cpu":
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {len(lengths._shape)}D {lengths._device} "
            f"{lengths._dtype.tensor_name} tensor"
        )


def places(batch_sizes: np.ndarray, batch: int) -> Tensor:
    """The place of each row of a packed tensor among the rows [steps * batch] of the padded one."""
    steps = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    first = np.repeat(np.cumsum(batch_sizes) - batch_sizes, batch_sizes)
    return whole_numbers(steps * batch + np.arange(len(steps)) - first)


@kernel(
    "_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
    derivative=lambda grad, input_shape, result1, batch_first: pack_backward_op.functional(
        grad, input_shape, result1, batch_first
    ),
    nondifferentiable=(1,),
    forward="linear",
)
def pack_op(input, lengths, batch_first):
    """(the packed rows, how many sequences have each step)"""
    check_lengths(lengths)
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    wrap_dim(1, len(input.shape))
    steps_first = input.transpose(0, 1) if batch_first else input
    longest, batch = steps_first.shape[:2]
    numbers = as_numpy(lengths)
    if len(numbers) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(numbers)} (batch_size={batch})"
        )
    if (numbers <= 0).any():
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (np.diff(numbers) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if numbers[0] > longest:
        raise RuntimeError(f"Expected lengths of at most {longest}, the number of steps, but got {numbers[0]}")
    sizes = (numbers[:, None] > np.arange(numbers[0])).sum(0)
    rows = steps_first.reshape([longest * batch, *steps_first.shape[2:]])
    return ops.aten.index_select.default(rows, 0, places(sizes, batch)), whole_numbers(sizes)


def padded_again(data: Any, batch_sizes: Any, shape: list[int], padding: Any) -> Any:
    """The padded tensor [steps, batch, ...] of a packed one."""
    check_lengths(batch_sizes)
    if len(shape) < 2:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    numbers = as_numpy(batch_sizes)
    if len(numbers) > shape[0] or (len(numbers) and numbers.max() > shape[1]) or numbers.sum() != data.shape[0]:
        raise RuntimeError(f"batch_sizes {numbers.tolist()} do not fit {data.shape[0]} rows in a batch of {shape[1]}")
    rows = data.new_full([shape[0] * shape[1], *shape[2:]], padding)
    return rows.index_copy(0, places(numbers, shape[1]), data).view(shape)


@composite(
    "_pack_padded_sequence_backward(Tensor grad, SymInt[] input_size, Tensor batch_sizes, bool batch_first) -> Tensor"
)
def pack_backward_op(grad, input_size, batch_sizes, batch_first):
    """The gradient of each packed row where the row stood, zeros elsewhere."""
    shape = list(input_size)
    if batch_first:
        shape[:2] = shape[1::-1]
    padded = padded_again(grad, batch_sizes, shape, 0)
    return padded.transpose(0, 1) if batch_first else padded


@composite(
    "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) "
    "-> (Tensor, Tensor)"
)
def unpack_op(data, batch_sizes, batch_first, padding_value, total_length):
    """(the padded sequences, their lengths)"""
    check_lengths(batch_sizes)
    if not batch_sizes.numel():
        raise RuntimeError("Expected batch_sizes of at least one step, but got none")
    numbers = as_numpy(batch_sizes)
    longest, batch = len(numbers), int(numbers[0])
    if total_length > 0:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    padded = padded_again(data, batch_sizes, [longest, batch, *data.shape[1:]], padding_value)
    lengths = (numbers[:, None] > np.arange(batch)).sum(0)
    return padded.transpose(0, 1) if batch_first else padded, whole_numbers(lengths)


# --- many tensors as one vector, and back -----------------------------------------------------------------------------


@composite("flatten_dense_tensors(Tensor[] tensors) -> Tensor", face=False)
def flatten_op(tensors):
    """The elements of all, one tensor after the other."""
    return ops.aten.cat([tensor.contiguous(memory_format=contiguous_format).view(-1) for tensor in tensors])


@composite("unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]", face=False)
def unflatten_op(flat, tensors):
    """Views of parts of `flat` with the shapes of `tensors`. One without elements is new: there is nothing to view."""
    parts, offset = [], 0
    for tensor in tensors:
        count = tensor.numel()
        parts += [flat.narrow(0, offset, count).view(tensor.size()) if count else flat.new_empty(tensor.size())]
        offset += count
    return parts
