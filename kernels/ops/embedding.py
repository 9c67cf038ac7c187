"""Rows of a table by their numbers: embedding, its sums by bags, and one_hot.

`offsets` says where in `indices` each bag of `embedding_bag` begins. Its gradient is made of other operators, once it
is known which bag each index is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import call, ops
from redispatch.dispatch.autograd import is_transformed
from redispatch.dispatch.tensor import Size, Tensor, as_numpy, dtypes, empty
from redispatch.dispatch.tensor.wrapped import is_batched

from ..declare.declare import no_formula
from ..declare.operator import composite, kernel, leaf_kernel, planned
from ..declare.overridable import overridable_function
from ..declare.plan import Run
from ..declare.structured import Meta, common_device
from .copying import item_op
from .creation import zeros_op
from .geometry import selected
from .ranges import arange_op
from .scatter_gather import is_index, raise_bad, scatter_value_op

# --- embedding --------------------------------------------------------------------------------------------------------


def check_index(indices: Tensor, asking: str) -> None:
    """RuntimeError for indices that are no integers."""
    if not is_index(indices):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{indices.type()} instead (while checking arguments for {asking})"
        )


def embedding_meta(weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Meta:
    """The rows of `weight` [n, d] that `indices` name: [*indices.shape, d]."""
    if len(weight._shape) != 2:
        raise RuntimeError("'weight' must be 2-D")
    check_index(indices, "embedding")
    return Meta((*indices._shape, weight._shape[1]), weight._dtype, common_device(weight, indices))


def embedding_backward(
    grad: Tensor, indices: Tensor, weight_shape: Sequence[int], padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Tensor:
    if sparse:
        raise NotImplementedError("embedding: sparse gradients are not supported; use sparse=False")
    return embedding_dense_backward_op.functional(grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq)


embedding = planned(
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) "
    "-> Tensor",
    derivative=embedding_backward,
    forward="linear",
    core=True,
    doc="Returns the rows of `weight` that `indices` name.",
)(embedding_meta)


@embedding.op.loop
def embedding_loop(out: Tensor, weight: Tensor, indices: Tensor, *how: Any) -> Run:
    find = kernels.ready_embedding(out._operand, weight._operand, indices._operand)

    def run(*arrays: Any) -> None:
        if find(*arrays) is not None:
            raise IndexError("index out of range in self")

    return run


def embedding_double_backward(grad: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    """The rows of the second gradient, as in the forward pass, but for the padding."""
    if scale_grad_by_freq:
        raise RuntimeError("embedding: the second derivative with scale_grad_by_freq=True is not supported")
    rows = grad.index_select(0, indices.reshape(-1)).reshape([*indices.shape, grad.shape[1]])
    return rows.masked_fill((indices == padding_idx).unsqueeze(-1), 0) if padding_idx >= 0 else rows


@leaf_kernel(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, "
    "bool scale_grad_by_freq) -> Tensor",
    dispatches=True,
    derivative=embedding_double_backward,
    forward="linear",
    face=False,
    core=True,
)
def embedding_dense_backward_op(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """The sum of the gradients of each row's uses; their mean with `scale_grad_by_freq`. Zero for `padding_idx`."""
    check_index(indices, "embedding_dense_backward")
    if grad_output._shape[:-1] != indices._shape or not grad_output._shape:
        raise RuntimeError(
            f"embedding_dense_backward: expected a gradient for each index, of shape {[*indices._shape, 'width']}, but "
            f"got shape {list(grad_output._shape)}"
        )
    width = grad_output._shape[-1]
    result = empty((num_weights, width), grad_output._dtype, grad_output._device)
    if result._device.type == "meta":
        return result
    bad = kernels.embedding_dense_backward(result._operand, grad_output._operand, indices._operand, padding_idx)
    raise_bad(bad, IndexError)
    if scale_grad_by_freq:
        uses = zeros_op.functional([num_weights], dtype=dtypes.float64, device=result._device)
        once = uses.new_ones([indices._shape.numel()])
        ops.aten.index_add_.default(uses, 0, indices.reshape([-1]), once)
        result.mul_(uses.clamp_min(1).reciprocal().unsqueeze(1).to(result._dtype))
    return result


@overridable_function
def functional_embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` [n, d] that `input` names; the row `padding_idx` gets no gradient.

    With `max_norm`, the rows that are looked up are first scaled down, in `weight` itself, to at most that norm.
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        embedding_renorm_.op.functional(weight.detach(), input.contiguous(), max_norm, norm_type)
    return embedding.op.functional(weight, input, padding_idx, scale_grad_by_freq, sparse)


functional_embedding.__name__ = functional_embedding.__qualname__ = "embedding"


@leaf_kernel(
    "embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)",
    dispatches=True,
    tags=("inplace",),
    derivative=no_formula("embedding_renorm"),
    method=False,
    refuses="whole",
)
def embedding_renorm_(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scales the rows that are used and longer than `max_norm` down to that length, in place."""
    if self._device.type == "meta":
        return self
    if len(self._shape) != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {len(self._shape)}-dimensional tensor for argument "
            "#1 'self' (while checking arguments for embedding_renorm_)"
        )
    check_index(indices, "embedding_renorm_")
    raise_bad(kernels.first_bad(indices._operand, self._shape[0], wrap=False), IndexError)
    for row in np.unique(as_numpy(indices)):
        entry: Any = selected(self, 0, int(row)).of(self)
        norm = float(entry.to(dtypes.float64).norm(norm_type).item())
        if norm > max_norm:
            entry.mul_(max_norm / (norm + 1e-7))
    return self


# --- embedding_bag ----------------------------------------------------------------------------------------------------

SUM, MEAN, MAX = 0, 1, 2

_BAGS = "Tensor weight, Tensor indices, Tensor offsets"
_OPTIONS = (
    "bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, "
    "bool include_last_offset=False"
)
_RESULTS = "(Tensor, Tensor, Tensor, Tensor)"


def check_bags(weight: Tensor, indices: Tensor, offsets: Tensor, mode: int, factors: Any) -> None:
    for name, x in (("indices", indices), ("offsets", offsets)):
        if x._dtype.name not in ("int32", "int64"):
            raise RuntimeError(
                f"Expected tensor for argument #1 '{name}' to have one of the following scalar types: Long, Int; but "
                f"got {x.type()} instead (while checking arguments for embedding_bag)"
            )
    if len(indices._shape) != 1 or len(offsets._shape) != 1:
        raise RuntimeError("input has to be a 1D or 2D Tensor, and offsets a 1D Tensor")
    if len(weight._shape) != 2:
        raise RuntimeError("'weight' must be 2-D")
    if not weight._dtype.is_floating_point:
        found = weight.type().replace("torch.", "CPU").replace("Tensor", "Type")
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got {found} instead (while checking arguments for embedding_bag)"
        )
    if factors is not None:
        if mode != SUM:
            raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
        if factors._shape != indices._shape:
            raise RuntimeError("embedding_bag: per_sample_weights must have the same shape as indices")


def bag_of_each(offsets: np.ndarray, count: int, include_last_offset: bool) -> tuple[np.ndarray, int]:
    """(the bag that each index is in, how many bags there are)"""
    starts = offsets[:-1] if include_last_offset else offsets
    if len(offsets) and offsets[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {offsets[0]}"
        )
    if len(offsets) and offsets[-1] > count:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {offsets[-1]}"
        )
    sizes = np.diff(np.append(starts, count))
    if (sizes < 0).any():
        raise RuntimeError("embedding_bag: offsets must not decrease")
    return np.repeat(np.arange(len(starts)), sizes), len(starts)


def fresh(values: np.ndarray) -> Tensor:
    made = empty(Size(values.shape), dtypes.int64)
    as_numpy(made)[...] = values
    return made


def embedding_bag_kernel(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int, sparse: bool,
    factors: Any, include_last_offset: bool, padding_idx: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """(bags [n, d], the bag of each index, how many rows each bag has, which row gave each maximum).

    The row `padding_idx` counts nowhere. Only what the mode's gradient needs is filled in.
    """
    check_bags(weight, indices, offsets, mode, factors)
    rows, width = weight._shape
    chosen = as_numpy(indices)
    bag, bags = bag_of_each(as_numpy(offsets), len(chosen), include_last_offset)
    if len(bag) != len(chosen):
        raise RuntimeError(
            f"embedding_bag: Expected offsets of at least one bag for {len(chosen)} indices, but got none"
        )
    outside = np.flatnonzero((chosen < 0) | (chosen >= rows))
    if len(outside):
        place, value = outside[0], chosen[outside[0]]
        raise RuntimeError(
            f"Index {place} of input takes value {value} which is not in the valid range [0, {rows})"
            if needs_no_bags(weight, mode, padding_idx)
            else f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {value}"
        )
    counts = chosen != padding_idx % rows if padding_idx >= 0 else np.ones(len(chosen), bool)
    table = as_numpy(weight).astype(np.float64)
    taken = table[chosen]
    if factors is not None:
        taken = taken * as_numpy(factors).astype(np.float64)[:, None]
    sizes = np.bincount(bag[counts], minlength=bags)
    found, largest = np.zeros((bags, width)), np.zeros((bags, width), np.int64)
    if mode == MAX:
        for b in np.unique(bag[counts]):
            members = np.flatnonzero(counts & (bag == b))
            best = members[taken[members].argmax(0)]  # the first of equal ones
            found[b], largest[b] = taken[best, range(width)], chosen[best]
    else:
        np.add.at(found, bag[counts], taken[counts])
        if mode == MEAN:
            found /= np.maximum(sizes, 1)[:, None]
    result = empty(Size((bags, width)), weight._dtype)
    as_numpy(result)[...] = found
    nothing = np.zeros(bags, np.int64)
    return (
        result,
        fresh(bag[:0] if needs_no_bags(weight, mode, padding_idx) else bag),
        fresh(nothing if mode == SUM else sizes),
        fresh(largest if mode == MAX else nothing if mode == SUM else sizes),
    )


def needs_no_bags(weight: Tensor, mode: int, padding_idx: int) -> bool:
    """Whether PyTorch adds up without noting which bag an index is in: dtypes for which it has a faster way."""
    return mode == SUM and padding_idx < 0 and weight._dtype is not dtypes.float64 and weight._stride[1] == 1


def embedding_bag_meta(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int, sparse: bool,
    factors: Any, include_last_offset: bool, padding_idx: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    check_bags(weight, indices, offsets, mode, factors)
    bags, width = offsets._shape[0] - include_last_offset, weight._shape[1]
    noted = 0 if needs_no_bags(weight, mode, padding_idx) else indices._shape[0]
    shapes = (noted,), (bags,), (bags, width) if mode == MAX else (bags,)
    made = [empty(Size(shape), dtypes.int64, weight._device) for shape in shapes]
    return empty(Size((bags, width)), weight._dtype, weight._device), made[0], made[1], made[2]


def places(indices: Any, offsets: Any, include_last_offset: bool) -> Any:
    """The bag that each index is in, as a tensor."""
    if offsets._array is None:  # a wrapper, or on a device: by operators
        starts = offsets[:-1] if include_last_offset else offsets
        marks = starts.new_zeros([indices.shape[0] + 1]).index_add(0, starts, starts * 0 + 1)
        return marks.cumsum(0)[:-1] - 1
    bag, _ = bag_of_each(as_numpy(offsets), indices.shape[0], include_last_offset)
    return fresh(bag)


def rows_of_bags(grad: Any, indices: Any, bag: Any, mode: int, factors: Any, padding_idx: int) -> Any:
    """The gradient of each row that was looked up."""
    used = indices != padding_idx
    if mode == MEAN:
        counts = grad.new_zeros([grad.shape[0]]).index_add(0, bag, used.to(grad.dtype))
        grad = grad / counts.clamp(min=1).unsqueeze(1)
    rows = grad.index_select(0, bag)
    if factors is not None:
        rows = rows * factors.unsqueeze(1)
    return rows.masked_fill(~used.unsqueeze(1), 0)


def embedding_bag_backward(
    grad: Any, weight_shape: Any, indices: Any, offsets: Any, result3: Any, scale_grad_by_freq: bool, mode: int,
    sparse: bool, per_sample_weights: Any, include_last_offset: bool, padding_idx: int,
) -> Any:  # fmt: skip
    if sparse:
        raise NotImplementedError("embedding_bag: sparse gradients are not supported; use sparse=False")
    bag = places(indices, offsets, include_last_offset)
    if mode == MAX:
        filled = grad.new_zeros([grad.shape[0]]).index_add(0, bag, (indices != padding_idx).to(grad.dtype))
        kept = grad.masked_fill((filled == 0).unsqueeze(1), 0)
        return grad.new_zeros(weight_shape).scatter_add(0, result3, kept)
    rows = rows_of_bags(grad, indices, bag, mode, per_sample_weights, padding_idx)
    if scale_grad_by_freq:
        uses = grad.new_zeros([weight_shape[0]]).index_add(0, indices, grad.new_ones([indices.shape[0]]))
        rows = rows / uses.index_select(0, indices).unsqueeze(1)
    return grad.new_zeros(weight_shape).index_add(0, indices, rows)


def factors_backward(
    grad: Any, weight: Any, indices: Any, offsets: Any, mode: int, include_last_offset: bool, padding_idx: int
) -> Any:
    rows = rows_of_bags(grad, indices, places(indices, offsets, include_last_offset), mode, None, padding_idx)
    return (rows * weight.index_select(0, indices)).sum(1)


def bag_operator(name: str, **facts: Any) -> Any:
    op = kernel(
        f"{name}({_BAGS}, {_OPTIONS}, int padding_idx=-1) -> {_RESULTS}",
        "CPU",
        face=False,
        refuses="whole complex",
        **facts,
    )(embedding_bag_kernel)
    op.kernel("Meta")(embedding_bag_meta)
    return op


embedding_bag_op = bag_operator(
    "_embedding_bag",
    derivative={"weight": embedding_bag_backward, "per_sample_weights": factors_backward},
    nondifferentiable=(1, 2, 3),
    core=True,
)
forward_only_op = bag_operator("_embedding_bag_forward_only", derivative=False)


def embedding_bag_composite(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool, mode: int, sparse: bool,
    factors: Any, include_last_offset: bool, padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """Returns the sum, mean or maximum of the rows of each bag of indices, and what its gradient needs."""
    rows = weight.shape[0]
    if padding_idx is None:
        padding_idx = -1
    elif not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got {padding_idx}"
        )
    else:
        padding_idx %= rows
    trained = weight.requires_grad or (factors is not None and factors.requires_grad) or is_transformed()
    chosen = embedding_bag_op if trained else forward_only_op
    options = (scale_grad_by_freq, mode, sparse, factors, include_last_offset, padding_idx)
    return call(chosen.functional, [weight, indices, offsets, *options])


@composite(f"embedding_bag({_BAGS}, {_OPTIONS}) -> {_RESULTS}", face=False, refuses="whole complex")
def bag_op(*args: Any) -> Any:
    return embedding_bag_composite(*args)


embedding_bag = composite(
    f"embedding_bag.padding_idx({_BAGS}, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, "
    f"bool include_last_offset, int? padding_idx) -> {_RESULTS}",
    also=(bag_op,),
    method=False,
)(embedding_bag_composite)

# --- one_hot ----------------------------------------------------------------------------------------------------------


@composite(
    "one_hot(Tensor self, int num_classes=-1) -> Tensor",
    tags=("dynamic_output_shape",),
    module="nn",
    refuses="bool uint8 int8 int16 int32 floating complex",
)
def one_hot(self: Any, num_classes: int) -> Tensor:
    """Returns zeros with a one at each class: [*shape, num_classes], int64."""
    if self._dtype is not dtypes.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if self.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return self.new_empty([*self._shape, num_classes])
    if is_batched(self) and num_classes != -1:
        return among(self, num_classes)
    if num_classes == -1 or self._device.type != "cuda":  # there scatter finds them, and nothing is waited for
        low, high = ops.aten.aminmax.default(self)
        if item_op.functional(low) < 0:
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            num_classes = item_op.functional(high) + 1
        elif item_op.functional(high) >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    if num_classes < 1:
        raise RuntimeError("Class values must be smaller than num_classes.")
    if not self._storage.has_data:  # a wrapper: what is filled in place below would be a plain tensor
        return among(self, num_classes)
    result = zeros_op.functional(
        [*self._shape, num_classes], dtype=dtypes.int64, layout=self.layout, device=self.device
    )
    assert scatter_value_op.inplace is not None
    return scatter_value_op.inplace(result, -1, self.unsqueeze(-1), 1)


def among(self: Any, num_classes: int) -> Tensor:
    """The same by comparing, which asks no values."""
    classes = arange_op.functional(num_classes, dtype=dtypes.int64, device=self.device)
    return self.unsqueeze(-1).eq(classes).to(dtypes.int64)


embedding_op, embedding_renorm_op = embedding.op, embedding_renorm_.op
