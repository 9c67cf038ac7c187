"""Sequences of several lengths for recurrent layers: padded, packed, and back again.

    packed = pack_padded_sequence(padded, lengths, enforce_sorted=False)
    padded, lengths = pad_packed_sequence(packed)

Read next: kernels/ops/packing.py, which says how a packed tensor lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels.ops import packing
from redispatch.kernels.ops.from_data import as_tensor


class _Fields(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


def _to(dtype: dtypes.dtype) -> Callable[[PackedSequence], PackedSequence]:
    """Returns the method that converts the data to a dtype."""

    def converted(self: PackedSequence) -> PackedSequence:
        return self.to(dtype=dtype)

    return converted


class PackedSequence(_Fields):
    """Sequences, longest first, step by step: `data` the rows, `batch_sizes` how many sequences have each step.

    sorted_indices: where each sequence, longest first, stood before; unsorted_indices: the way back. None for sequences
    that came in that order.
    """

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> PackedSequence:
        if batch_sizes is None:
            assert isinstance(data, list | tuple) and len(data) == 2, "Expected data to be a list or tuple of length 2"
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn. "
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with_data(self, change: Callable[[Any], Any]) -> PackedSequence:
        data = change(self.data)
        if data is self.data:
            return self
        indices = [x if x is None else x.to(data.device) for x in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Returns the sequence with its data in another dtype or on another device; itself where nothing changes."""
        return self._with_data(lambda data: data.to(*args, **kwargs))

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self._with_data(lambda data: data.cpu(*args, **kwargs))

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self._with_data(lambda data: data.cuda(*args, **kwargs))

    def pin_memory(self) -> PackedSequence:
        return self._with_data(lambda data: data.pin_memory())

    double, float, half = _to(dtypes.float64), _to(dtypes.float32), _to(dtypes.float16)
    long, int, short = _to(dtypes.int64), _to(dtypes.int32), _to(dtypes.int16)
    char, byte = _to(dtypes.int8), _to(dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        return self.data.is_pinned()


def invert_permutation(permutation: Any) -> Any:
    """The permutation that undoes this one; None for None."""
    return None if permutation is None else permutation.argsort()


def pack_padded_sequence(input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> Any:
    """The first `lengths[b]` steps of each sequence b of `input`, [steps, batch, ...] or [batch, steps, ...], packed.

    Errors: RuntimeError for lengths that do not fall, unless `enforce_sorted` is False, that are not positive or are
    more than there are steps.
    """
    given = isinstance(lengths, Tensor)
    lengths = lengths.to(dtypes.int64) if given else as_tensor(lengths, dtype=dtypes.int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = lengths.sort(descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    data, batch_sizes = packing.pack_op.functional(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices)


def pad_packed_sequence(
    sequence: Any, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """(the padded sequences in their old order, their lengths)

    Errors: ValueError for a `total_length` that is less than that of the longest sequence.
    """
    total = -1 if total_length is None else total_length
    padded, lengths = packing.unpack_op.functional(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, total
    )
    back = sequence.unsorted_indices
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Sequences [length, ...] side by side, filled up to the longest: [longest, count, ...], or batch first."""
    if not isinstance(sequences, Tensor | Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    listed = list(sequences.unbind(0) if isinstance(sequences, Tensor) else sequences)
    return packing.pad_sequence(listed, batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences of a padded tensor, each of its length."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(rows, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> Any:
    """Sequences [length, ...], packed."""
    lengths = as_tensor([x.shape[0] for x in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: Any) -> list[Any]:
    """The sequences of a packed one, in their old order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
