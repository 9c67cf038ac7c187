"""Batch normalisation on batches of batches: each example has channels of its own, so all of them stand side by side.

An input (batch, images, channels, ...) is one of (images, batch * channels, ...), whose statistics are those of each
example. Running statistics that all examples share cannot be written by each of them.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, call
from redispatch.dispatch.layers.transforms import BATCHING
from redispatch.kernels.ops.batch_norm import batch_norm_legit_op, native_batch_norm, native_batch_norm_backward_op

from ...dispatch.transforms.batched import is_tensor, whole
from .fallback import one_by_one

PLACE = "kernels/batching/batch_norm.py"


def side_by_side(x: Any, dim: int | None, size: int) -> Any:
    """(images, batch * channels, ...) of an input; (batch * channels,) of one number for each channel."""
    batch = whole(x, dim, size)
    return batch.flatten(0, 1) if batch.dim() == 2 else batch.movedim(0, 1).flatten(1, 2)


def parted(x: Any, size: int) -> Any:
    """The batch in front again."""
    return x.unflatten(0, (size, -1)) if x.dim() == 1 else x.unflatten(1, (size, -1)).movedim(1, 0)


def batch_norm_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """RuntimeError where examples would write running statistics that are not batched."""
    running, training = (3, 4), values[5]
    if training and dims[0] is not None and any(is_tensor(values[i]) and dims[i] is None for i in running):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched.\nIf you are using a module and do not need eval mode, please set "
            "`track_running_stats` to be False: func.replace_all_batch_norm_modules_(module) does."
        )
    if training and any(map(is_tensor, (values[i] for i in running))) or size == 0:
        return one_by_one(op, values, dims, size)  # each writes its own
    arguments = [side_by_side(v, d, size) if is_tensor(v) else v for v, d in zip(values, dims, strict=True)]
    output, mean, deviation = call(op, arguments)
    if not training:  # no statistics were taken
        return (parted(output, size), mean, deviation), [0, None, None]
    return (parted(output, size), parted(mean, size), parted(deviation, size)), [0, 0, 0]


def batch_norm_backward_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    arguments = [
        side_by_side(v, d, size) if is_tensor(v) and v.numel() else v for v, d in zip(values, dims, strict=True)
    ]
    found = tuple(parted(one, size) if is_tensor(one) else one for one in call(op, arguments))
    return found, [0 if is_tensor(one) else None for one in found]


BATCHING.add(native_batch_norm.op.functional, batch_norm_rule, PLACE)
BATCHING.add(batch_norm_legit_op.functional, batch_norm_rule, PLACE)
BATCHING.add(native_batch_norm_backward_op.functional, batch_norm_backward_rule, PLACE)
