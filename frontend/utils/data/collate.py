"""default_collate: a list of samples as one batch. Numbers and arrays become tensors, tensors are stacked, containers
stay containers with a batch at each place. Read next: dataloader.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels.ops.from_data import as_tensor, tensor
from redispatch.kernels.ops.shape import stack

Collate = Callable[..., Any]


def collate(batch: Sequence[Any], *, collate_fn_map: Mapping[Any, Collate] | None = None) -> Any:
    """One batch of these samples; the table says what becomes of types, the first that fits.

    Errors: TypeError for a type that is neither in it nor a container; RuntimeError for sequences of different length.
    """
    first, table = batch[0], collate_fn_map or {}
    kinds = [type(first)] if type(first) in table else [kind for kind in table if isinstance(first, kind)]
    if kinds:
        return table[kinds[0]](batch, collate_fn_map=table)

    def each(samples: Sequence[Any]) -> Any:
        return collate(samples, collate_fn_map=table)

    if isinstance(first, Mapping):
        made: Any = {key: each([sample[key] for sample in batch]) for key in first}
        return like(first, made, MutableMapping)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(each, zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        made = [each(samples) for samples in zip(*batch, strict=True)]
        return made if isinstance(first, tuple) else like(first, made, MutableSequence)
    raise cannot_collate(type(first))


def cannot_collate(found: Any) -> TypeError:
    return TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {found}"
    )


def like(first: Any, made: Any, mutable: type) -> Any:
    """What was made, in a container of the first sample's class, if that can be had."""
    if type(first) in (dict, list):
        return made
    try:
        if not isinstance(first, mutable):
            return type(first)(made)
        clone: Any = copy.copy(first)
        for key, value in made.items() if isinstance(made, dict) else enumerate(made):
            clone[key] = value
        return clone
    except TypeError:
        return made


def collate_tensors(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    return stack(list(batch), 0)


def collate_arrays(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    if batch[0].dtype.kind in "SaUO":
        raise cannot_collate(batch[0].dtype)
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_numbers(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    return as_tensor(np.asarray(batch))


def collate_floats(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    return tensor(list(batch), dtype=dtypes.float64)


def collate_ints(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    return tensor(list(batch))


def as_they_are(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    return batch


# The first type that fits counts, so that what is more special stands before what is less.
default_collate_fn_map: dict[Any, Collate] = {
    Tensor: collate_tensors,
    np.ndarray: collate_arrays,
    (np.bool_, np.number): collate_numpy_numbers,
    float: collate_floats,
    int: collate_ints,
    str: as_they_are,
    bytes: as_they_are,
}


def default_collate(batch: Sequence[Any]) -> Any:
    """One batch of these samples, with a new first dimension."""
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """A sample as it is, but with tensors for arrays: what a loader without batches gives."""
    if isinstance(data, np.ndarray | np.generic):
        return data if data.dtype.kind in "SaUO" else as_tensor(data)
    if isinstance(data, Mapping):
        return like(data, {key: default_convert(value) for key, value in data.items()}, MutableMapping)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        made = [default_convert(value) for value in data]
        return made if isinstance(data, tuple) else like(data, made, MutableSequence)
    return data
