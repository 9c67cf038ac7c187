"""embedding_bag: the rows of a table that each bag names, added up, averaged or maximised at once."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.overridable import overridable_function
from redispatch.kernels.ops.creation import arange

MODES = ("sum", "mean", "max")


@overridable_function
def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """For each bag of row numbers, the sum, mean or maximum of the rows of `weight`: [bags, columns].

    The bags are the rows of a 2-d `input`, or parts of a 1-d one that begin at `offsets`. The row `padding_idx` counts
    nowhere; `per_sample_weights` multiply the rows of a sum; with `max_norm`, the rows that are looked up are first
    scaled down, in `weight` itself.

    Errors: ValueError for shapes and modes that do not go together; NotImplementedError for weighted means.
    """
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        offsets = arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if not isinstance(offsets, Tensor):
            raise ValueError(f"offsets has to be a 1D Tensor but got {offsets}")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        ops.aten.embedding_renorm_.default(weight.detach(), input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}')."
        )
    options = (scale_grad_by_freq, MODES.index(mode), sparse, per_sample_weights, include_last_offset, padding_idx)
    return ops.aten.embedding_bag.padding_idx(weight, input, offsets, *options)[0]
