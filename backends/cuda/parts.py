"""Operators that are put together from others on a device: other orders, masks, searches, counts.

On the CPU each is a function of numpy's or a loop of its own. Here it is a few launches: what its operator's meta
function says of the result, and then indices, scans and comparisons. Where a result's size depends on numbers
(`nonzero`, `unique`), the program waits for one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch import ops
from redispatch.kernels import on_target
from redispatch.ops import searching, shape
from redispatch.ops.matrix_functions import cross_meta
from redispatch.tensor import Tensor, dtypes, wrap_dim

from .copies import copy_on_device

aten = ops.aten


def counted(n: int, like: Tensor) -> Any:
    """0, 1, ..., n - 1 on the device of a tensor."""
    return aten.arange.default(n, dtype=dtypes.int64, device=like._device)


# --- other orders -----------------------------------------------------------------------------------------------------


def flip(self: Any, dims: Sequence[int]) -> Tensor:
    """Each of the dimensions backwards."""
    result = shape.flip_op.meta_function(self, dims).allocate()
    turned = self
    for dim in dims:
        if self._shape:
            turned = turned.index_select(dim, (self._shape[dim] - 1) - counted(self._shape[dim], self))
    if result._shape.numel():
        copy_on_device(result, turned)
    return result


def roll(self: Any, shifts: Sequence[int], dims: Sequence[int]) -> Tensor:
    """What is pushed out at the end of a dimension comes in at its start; without dims, of the flattened tensor."""
    shape.roll_op.meta_function(self, shifts, dims)
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


def places_of_true(mask: Any) -> Any:
    """The places of a flat mask's true elements, in order. Waits for their number."""
    upto = mask.cumsum(0)
    count = int(upto[-1].item()) if mask._shape[0] else 0
    found = aten.empty.memory_format([count + 1], dtype=dtypes.int64, device=mask._device)
    if mask._shape[0]:  # those that are not true all go to one place behind the end
        found.scatter_(0, (upto - 1).masked_fill(mask.logical_not(), count), counted(mask._shape[0], mask))
    return found.narrow(0, 0, count)


def nonzero(self: Any) -> Any:
    """The indices of the elements that are not zero, a row for each; they lie column by column."""
    places = places_of_true((self != 0).reshape([-1]))
    rows = aten.empty.memory_format([len(self._shape), places._shape[0]], dtype=dtypes.int64, device=self._device)
    for d in range(len(self._shape) - 1, -1, -1):
        rows[d].copy_(places.remainder(max(self._shape[d], 1)))
        places = places.div(max(self._shape[d], 1), rounding_mode="floor")
    return rows.t()


def nonzero_static(self: Any, size: int, fill_value: int) -> Any:
    """The indices of the first `size` elements that are not zero; rows of `fill_value` where there are fewer."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    made = self.new_full([size, len(self._shape)], fill_value, dtype=dtypes.int64)
    found = nonzero(self)
    count = min(size, found._shape[0])
    made.narrow(0, 0, count).copy_(found.narrow(0, 0, count))
    return made


def masked_select(self: Any, mask: Any) -> Any:
    """The elements where the mask is true, as one dimension. Both broadcast."""
    if mask._dtype is not dtypes.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    x, mask = aten.broadcast_tensors.default([self, mask])
    return x.reshape([-1]).index_select(0, places_of_true(mask.reshape([-1])))


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


# --- counts and searches ----------------------------------------------------------------------------------------------


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


def below_or_at(edges: Any, values: Any, right: bool) -> Any:
    """How many edges of the last dimension are below each value, or, with `right`, not above it; a search by halves."""
    count, lines = edges._shape[-1], len(edges._shape) > 1
    low = values.new_zeros(list(values._shape), dtype=dtypes.int64)
    high = low + count
    for _ in range(count.bit_length()):
        middle = (low + high).div(2, rounding_mode="floor")
        at = middle.clamp(0, count - 1)
        edge = edges.gather(-1, at) if lines else edges.take(at)
        further = aten.where.self(low < high, (edge <= values) if right else (edge < values), low > high)
        further = further | ((values != values) & (low < high))  # NaN is behind all
        low, high = aten.where.self(further, middle + 1, low), aten.where.self(further, high, middle.minimum(high))
    return low


def searchsorted(sorted_sequence: Any, self: Any, out_int32: bool, right: bool, side: str | None, sorter: Any) -> Any:
    meta = searching.searchsorted_meta(sorted_sequence, self, out_int32, right, side, sorter)
    edges = sorted_sequence if sorter is None else sorted_sequence.gather(-1, sorter)
    return below_or_at(edges, self, right or side == "right").to(meta.dtype)


def searchsorted_scalar(
    sorted_sequence: Any, self: Any, out_int32: bool, right: bool, side: str | None, sorter: Any
) -> Any:
    searching.searchsorted_scalar_meta(sorted_sequence, self, out_int32, right, side, sorter)
    value = aten.scalar_tensor.default(self, dtype=result_dtype(sorted_sequence, self), device=sorted_sequence._device)
    return searchsorted(sorted_sequence, value.reshape([1]), out_int32, right, side, sorter).reshape([])


def result_dtype(edges: Any, value: Any) -> Any:
    return dtypes.float64 if isinstance(value, float) else edges._dtype


def bucketize(self: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
    searching.bucketize_meta(self, boundaries, out_int32, right)
    return searchsorted(boundaries, self, out_int32, right, None, None)


def bucketize_scalar(self: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
    searching.bucketize_scalar_meta(self, boundaries, out_int32, right)
    return searchsorted_scalar(boundaries, self, out_int32, right, None, None)


def isin(elements: Any, test_elements: Any, assume_unique: bool, invert: bool) -> Any:
    """Whether each element is among the others, which are put in order and searched."""
    on = next(x._device for x in (elements, test_elements) if isinstance(x, Tensor))
    one, others = (
        x if isinstance(x, Tensor) else aten.scalar_tensor.default(x, dtype=y._dtype, device=on)
        for x, y in ((elements, test_elements), (test_elements, elements))
    )
    dtype = aten.result_type.Tensor(one, others)
    if not others._shape.numel():
        return aten.full.default(list(one._shape), invert, dtype=dtypes.bool, device=on)
    others, _ = others.to(dtype).reshape([-1]).sort()
    place = below_or_at(others, one.to(dtype), False).clamp(0, others._shape[0] - 1)
    found = others.take(place) == one
    return found.logical_not() if invert else found


def bincount(self: Any, weights: Any, minlength: int) -> Any:
    """How often each integer occurs, or the sum of its weights."""
    if len(self._shape) != 1 or self._dtype.category > dtypes.INTEGER or self._dtype is dtypes.bool:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is not None and weights._shape != self._shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if self._shape[0] and int(self.min().item()) < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    count = max(minlength, int(self.max().item()) + 1 if self._shape[0] else 0)
    if weights is None:
        weights = aten.ones.default(list(self._shape), dtype=dtypes.int64, device=self._device)
    elif weights._dtype is not dtypes.float32:
        weights = weights.to(dtypes.float64)
    zeros = aten.zeros.default([count], dtype=weights._dtype, device=self._device)
    return zeros.index_add(0, self.to(dtypes.int64), weights)


def unique(self: Any, return_inverse: bool, return_counts: bool) -> tuple[Any, Any, Any]:
    """The different elements in ascending order; where each is among them; how often each occurs."""
    flat = self.reshape([-1])
    inverse = flat.new_empty([0], dtype=dtypes.int64)
    counts = inverse
    if not flat._shape[0]:
        return flat.clone(), inverse.reshape(list(self._shape)) if return_inverse else inverse, counts
    values, order = flat.sort(stable=True)
    found, starts, group = runs(values)
    if return_inverse:
        inverse = flat.new_empty([flat._shape[0]], dtype=dtypes.int64).scatter_(0, order, group)
        inverse = inverse.reshape(list(self._shape))
    return found, inverse, lengths(starts, flat._shape[0]) if return_counts else counts


def runs(values: Any) -> tuple[Any, Any, Any]:
    """The first of each run of equal elements, where it stands, and each element's run by number."""
    first = aten.ones.default([values._shape[0]], dtype=dtypes.bool, device=values._device)
    rest = values._shape[0] - 1
    first.narrow(0, 1, rest).copy_(values.narrow(0, 1, rest) != values.narrow(0, 0, rest))
    starts = places_of_true(first)
    return values.index_select(0, starts), starts, first.cumsum(0) - 1


def lengths(starts: Any, count: int) -> Any:
    ends = aten.cat.default([starts.narrow(0, 1, starts._shape[0] - 1), starts.new_full([1], count)])
    return ends - starts


def unique2(self: Any, sorted: bool, return_inverse: bool, return_counts: bool) -> tuple[Any, Any, Any]:
    return unique(self, return_inverse, return_counts)


def unique1(self: Any, sorted: bool, return_inverse: bool) -> tuple[Any, Any]:
    return unique(self, return_inverse, False)[:2]


def unique_consecutive(self: Any, return_inverse: bool, return_counts: bool, dim: int | None) -> tuple[Any, Any, Any]:
    """The first of each run of equal elements."""
    if dim is not None and len(self._shape) != 1:
        return ops.aten.unique_dim_consecutive.default(self, dim, return_inverse, return_counts)
    none = self.new_empty([0], dtype=dtypes.int64)
    flat = self.reshape([-1])
    if not flat._shape[0]:
        return flat.clone(), none.reshape(list(self._shape)) if return_inverse else none, none
    found, starts, group = runs(flat)
    inverse = group.reshape(list(self._shape)) if return_inverse else none
    return found, inverse, lengths(starts, flat._shape[0]) if return_counts else none


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
    "nonzero": nonzero,
    "nonzero_static": nonzero_static,
    "masked_select": masked_select,
    "masked_scatter_": masked_scatter_inplace,
    "masked_scatter": masked_scatter,
    "repeat_interleave.Tensor": repeat_interleave,
    "searchsorted.Tensor": searchsorted,
    "searchsorted.Scalar": searchsorted_scalar,
    "bucketize.Tensor": bucketize,
    "bucketize.Scalar": bucketize_scalar,
    "isin.Tensor_Tensor": isin,
    "isin.Tensor_Scalar": isin,
    "isin.Scalar_Tensor": isin,
    "bincount": bincount,
    "_unique2": unique2,
    "_unique": unique1,
    "unique_consecutive": unique_consecutive,
}


def apart_from_target(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as called by itself, where another operator's kernel calls it that runs on a device (target.py):
    the operators that it calls choose where they run."""

    def kernel(*args: Any) -> Any:
        with on_target(None):
            return function(*args)

    return kernel
