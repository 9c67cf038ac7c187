"""Operators that are put together from others on a device: other orders, masks, losses.

On the CPU each is a function of numpy's or a loop of its own. Here it is a few launches: what its operator's meta
function says of the result, and then indices, scans and comparisons. Read next: compaction.py, searchsorted.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, wrap_dim
from redispatch.kernels import on_target
from redispatch.kernels.ops import rearrange
from redispatch.kernels.ops.matrix_functions import cross_meta

from .copies import copy_on_device
from .launch_recorder import constant
from .searchsorted import below_or_at

MOST_KEPT = 1 << 14  # numbers that are kept on a device for calls that look alike; more are sent each time

aten = ops.aten


def counted(n: int, like: Tensor) -> Any:
    """0, 1, ..., n - 1 on the device of a tensor, where nobody writes to them."""

    def made() -> Any:
        return aten.arange.default(n, dtype=dtypes.int64, device=like._device)

    return constant(made) if n <= MOST_KEPT else made()


# --- other orders -----------------------------------------------------------------------------------------------------


def flip(self: Any, dims: Sequence[int]) -> Tensor:
    """Each of the dimensions backwards."""
    result = rearrange.flip.op.meta_function(self, dims).allocate()
    turned = self
    for dim in dims:
        if self._shape:
            turned = turned.index_select(dim, (self._shape[dim] - 1) - counted(self._shape[dim], self))
    if result._shape.numel():
        copy_on_device(result, turned)
    return result


def roll(self: Any, shifts: Sequence[int], dims: Sequence[int]) -> Tensor:
    """What is pushed out at the end of a dimension comes in at its start; without dims, of the flattened tensor."""
    rearrange.roll_op.meta_function(self, shifts, dims)
    if not self._shape.numel():
        return self.clone()
    if not dims:
        return rolled(self.reshape([-1]), shifts[0], 0).reshape(list(self._shape))
    for shift, dim in zip(shifts, dims, strict=True):
        self = rolled(self, shift, dim) if self._shape else self
    return self.clone().contiguous()


def rolled(x: Any, shift: int, dim: int) -> Any:
    size = x._shape[dim]
    cut = -shift % size
    return aten.cat.default([x.narrow(dim, cut, size - cut), x.narrow(dim, 0, cut)], dim)


def cross(self: Any, other: Any, dim: int) -> Any:
    """(a1 b2 - a2 b1, a2 b0 - a0 b2, a0 b1 - a1 b0)"""
    shape = cross_meta(self, other, dim).shape
    axis = wrap_dim(dim, len(shape))
    a, b = self.expand(list(shape)), other.expand(list(shape))
    a1, a2, b1, b2 = a.roll([-1], [axis]), a.roll([-2], [axis]), b.roll([-1], [axis]), b.roll([-2], [axis])
    return a1 * b2 - a2 * b1


def triangle(above: bool) -> Callable[..., Any]:
    """What is `triu`, or `tril`."""

    def left_out(x: Any, diagonal: int) -> Any:
        distance = counted(x._shape[-1], x) - counted(x._shape[-2], x).unsqueeze(1)
        return distance < diagonal if above else distance > diagonal

    def kept(self: Any, diagonal: int) -> Any:
        return self.contiguous().masked_fill(left_out(self, diagonal), 0)

    return kept


# --- masks ------------------------------------------------------------------------------------------------------------


def masked_scatter_inplace(self: Any, mask: Any, source: Any) -> Any:
    """Puts the first elements of `source`, in order, where the mask is true."""
    if self._dtype is not source._dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{self._dtype.tensor_name} and "
            f"{source._dtype.tensor_name}"
        )
    if mask._dtype is not dtypes.bool:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask._dtype.tensor_name}"
        )
    flat = mask.expand(list(self._shape)).reshape([-1])
    upto = flat.cumsum(0)
    if flat._shape[0] and int(upto[-1].item()) > source._shape.numel():
        raise RuntimeError("Number of elements of source < number of ones in mask")
    if source._shape.numel() and flat._shape[0]:
        chosen = source.reshape([-1]).index_select(0, (upto - 1).clamp(0, source._shape.numel() - 1))
        self.copy_(aten.where.self(flat, chosen, self.reshape([-1])).reshape(list(self._shape)))
    return self


def masked_scatter(self: Any, mask: Any, source: Any) -> Any:
    x, _ = aten.broadcast_tensors.default([self, mask])
    return masked_scatter_inplace(x.clone().contiguous(), mask, source)


def repeat_interleave(repeats: Any, output_size: int | None) -> Any:
    """0 repeats[0] times, 1 repeats[1] times, ...: the indices that repeat by."""
    if repeats._dtype.name not in ("int32", "int64"):
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{repeats._dtype.tensor_name}'")
    if len(repeats._shape) != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats._shape[0] and int(repeats.min().item()) < 0:
        raise RuntimeError("repeats can not be negative")
    ends = repeats.cumsum(0)
    total = int(ends[-1].item()) if repeats._shape[0] else 0
    if output_size is not None and output_size != total:
        raise RuntimeError("allocated size does not match required size")
    return below_or_at(ends, counted(total, repeats), True).to(repeats._dtype)


# --- losses -----------------------------------------------------------------------------------------------------------


def reduced(losses: Any, reduction: int) -> Any:
    """Each loss, their mean, or their sum."""
    return losses if reduction == 0 else losses.mean() if reduction == 1 else losses.sum()


def mse_loss(self: Any, target: Any, reduction: int) -> Any:
    return reduced((self - target).square(), reduction)


def smooth_l1_loss(self: Any, target: Any, reduction: int, beta: float) -> Any:
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    distance = (self - target).abs()
    if beta == 0:
        return reduced(distance, reduction)
    near = distance * distance * (0.5 / beta)
    return reduced(aten.where.self(distance < beta, near, distance - 0.5 * beta), reduction)


def huber_loss(self: Any, target: Any, reduction: int, delta: float) -> Any:
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    distance = (self - target).abs()
    far = delta * (distance - 0.5 * delta)
    return reduced(aten.where.self(distance < delta, 0.5 * distance * distance, far), reduction)


def binary_cross_entropy(self: Any, target: Any, weight: Any, reduction: int) -> Any:
    """Logarithms are held above -100, as PyTorch does. Nobody looks whether the numbers are probabilities."""
    losses = -(target * self.log().clamp_min(-100) + (1 - target) * (-self).log1p().clamp_min(-100))
    return reduced(losses if weight is None else losses * weight, reduction)


def binary_cross_entropy_with_logits(self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    """log(1 + exp(-x)) as log(1 + exp(-|x|)) + max(-x, 0), where no exponential overflows."""
    rest = (-self.abs()).exp().log1p() + (-self).clamp_min(0)
    losses = (1 - target) * self + (rest if pos_weight is None else (1 + (pos_weight - 1) * target) * rest)
    return reduced(losses if weight is None else losses * weight, reduction)


PARTS: dict[str, Callable[..., Any]] = {
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_with_logits": binary_cross_entropy_with_logits,
    "mse_loss": mse_loss,
    "smooth_l1_loss": smooth_l1_loss,
    "huber_loss": huber_loss,
    "flip": flip,
    "roll": roll,
    "tril": triangle(above=False),
    "triu": triangle(above=True),
    "linalg_cross": cross,
    "masked_scatter_": masked_scatter_inplace,
    "masked_scatter": masked_scatter,
    "repeat_interleave.Tensor": repeat_interleave,
}


def apart_from_target(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as called by itself, where another operator's kernel calls it that runs on a device
    (device_target.py): the operators that it calls choose where they run."""

    def kernel(*args: Any) -> Any:
        with on_target(None):
            return function(*args)

    return kernel
