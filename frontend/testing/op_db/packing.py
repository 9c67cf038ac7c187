"""Samples of kernels/ops/packing.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample


def sequences(make: Maker) -> Iterator[SampleInput]:
    yield sample([make(2), make(3)])
    yield sample([make(3, 2), make(1, 2), make(2, 2)], True, 1.0)
    yield sample([make(1), make(3)], False, 0.0, "left")


def side_by_side(sequences: Any, batch_first: bool = False, value: float = 0.0, side: str = "right") -> Any:
    longest = max(map(len, sequences))
    rows = []
    for x in sequences:
        free = longest - len(x)
        widths = [(0, free) if side == "right" else (free, 0)] + [(0, 0)] * (x.ndim - 1)
        rows.append(np.pad(x, widths, constant_values=value))
    return np.stack(rows, 0 if batch_first else 1)


def padded(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 2), make.values([3, 1], dtypes.int64), False)
    yield sample(make(2, 3, 2), make.values([2, 2], dtypes.int64), True)


def packed(input: Any, lengths: Any, batch_first: bool) -> Any:
    steps = np.swapaxes(input, 0, 1) if batch_first else input
    sizes = [int((lengths > step).sum()) for step in range(lengths.max())]
    return [np.concatenate([steps[step, :size] for step, size in enumerate(sizes)]), np.array(sizes)]


def rows(*rest: Any) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        yield sample(make(4, 2), make.values([2, 1, 1], dtypes.int64), False, *rest)
        yield sample(make(4), make.values([2, 2], dtypes.int64), True, *rest)

    return samples


def unpacked(data: Any, batch_sizes: Any, batch_first: bool, padding_value: Any, total_length: int) -> Any:
    steps = max(len(batch_sizes), total_length)
    made = np.full((steps, batch_sizes[0], *data.shape[1:]), padding_value, data.dtype)
    start = 0
    for step, size in enumerate(batch_sizes):
        made[step, :size] = data[start : start + size]
        start += size
    lengths = np.array([(batch_sizes > b).sum() for b in range(batch_sizes[0])])
    return [np.swapaxes(made, 0, 1) if batch_first else made, lengths]


def gradients(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(4, 2), [3, 2, 2], make.values([2, 1, 1], dtypes.int64), False)
    yield sample(make(4, 2), [2, 3, 2], make.values([2, 2], dtypes.int64), True)


def gradient(grad: Any, input_size: Any, batch_sizes: Any, batch_first: bool) -> Any:
    return unpacked(grad, batch_sizes, batch_first, 0, input_size[1 if batch_first else 0])[0]


def rising(make: Maker) -> Iterator[ErrorInput]:
    text = "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True."
    yield ErrorInput(sample(make(3, 2), make.values([1, 3], dtypes.int64), False), RuntimeError, text)
    text = "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
    yield ErrorInput(sample(make(3, 2), make.values([3, 0], dtypes.int64), False), RuntimeError, text)


def no_sequences(make: Maker) -> Iterator[ErrorInput]:
    text = "Expected padding_side to be one of left or right, but got up."
    yield ErrorInput(sample([make(2)], False, 0.0, "up"), RuntimeError, text)


LENGTHS = {"meta": "lengths are data", "layouts": "of lengths laid out otherwise the sum is another one"}
COUNTS = {**LENGTHS, "subclass": "how many rows each step has is data, which a wrapper does not show"}
FILLED = {"subclass": "a plain tensor is filled in place, as in PyTorch"}
PACKING = [
    OpInfo("pad_sequence", sequences, side_by_side, errors=no_sequences, skips=FILLED),
    OpInfo("_pack_padded_sequence", padded, packed, FLOATS, errors=rising, skips=COUNTS),
    OpInfo("_pad_packed_sequence", rows(1, 4), unpacked, FLOATS, skips=COUNTS),
    OpInfo("_pack_padded_sequence_backward", gradients, gradient, FLOATS, skips=COUNTS),
]
