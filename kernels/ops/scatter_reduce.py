"""scatter_reduce and index_reduce: what meets at one place becomes a sum, product, mean, maximum or minimum.

`include_self` says whether what was there counts as well. Read next: replacing.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, empty, wrap_dim
from redispatch.kernels import Elementwise, Operand

from ..declare.public import public
from ..declare.structured import Meta, not_implemented
from .comparison import where_op
from .scatter_gather import (
    WrittenInPlace,
    at_least_1d,
    check_scatter,
    is_index,
    part_of_source,
    raise_bad,
    same_as_first,
    start_from,
)

REDUCE = ("sum", "prod", "mean", "amax", "amin")

scatter_reduce_two_op = WrittenInPlace(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) "
    "-> Tensor",
    inplace=True,
    out="two_out",
    core=True,
)
index_reduce_op = WrittenInPlace(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    inplace=True,
    out="out",
)


@scatter_reduce_two_op.meta
def scatter_reduce_meta(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Meta:
    if reduce not in REDUCE:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if self._dtype.is_complex and reduce in ("amax", "amin"):
        raise not_implemented(f"scatter_gather_tensor_cpu_reduce_{reduce}", self._dtype)
    return check_scatter(self, dim, index, src)


@index_reduce_op.meta
def index_reduce_meta(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool) -> Meta:
    axis = wrap_dim(dim, len(self._shape))
    if reduce not in REDUCE or reduce == "sum":
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    if self._dtype.is_complex and reduce in ("amax", "amin"):
        raise not_implemented("index_func_", self._dtype)
    if len(index._shape) > 1:
        raise IndexError(
            f"index_reduce_(): Index is supposed to be a vector, but got dim: {len(index._shape)} with type: "
            f"{index._dtype.tensor_name} and size: {list(index._shape)}"
        )
    if not is_index(index):
        raise RuntimeError(f"index_reduce_(): Expected dtype int32/int64 for index but got: {index._dtype.tensor_name}")
    if self._dtype is not source._dtype:
        raise RuntimeError(
            f"index_reduce_(): self ({self._dtype.tensor_name}) and source ({source._dtype.tensor_name}) must have the "
            "same scalar type"
        )
    length = source._shape[axis] if axis < len(source._shape) else 1
    if index._shape.numel() != length:
        raise RuntimeError(
            f"index_reduce_(): Number of indices ({index._shape.numel()}) should be equal to source.size(dim): "
            f"({length}), for dim: {axis}"
        )
    ours, theirs = list(self._shape), list(source._shape)
    if ours[:axis] != theirs[:axis] or ours[axis + 1 :] != theirs[axis + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{ours} source.shape = {theirs}"
        )
    return same_as_first(self, index, source)


def identity_of(reduce: str, self: Tensor) -> Any:
    """What changes nothing: a place that nothing has reached begins with it."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    kind = self._dtype
    if kind.is_floating_point:
        return -math.inf if reduce == "amax" else math.inf
    if kind is dtypes.bool:
        return reduce == "amin"
    bits = 8 * kind.itemsize - kind.is_signed
    low, high = -(1 << bits) if kind.is_signed else 0, (1 << bits) - 1
    return low if reduce == "amax" else high


def mean_of_floats(total, count):
    return total / count if count > 0 else total


def mean_of_integers(total, count):
    return total // count if count > 0 else total


def mean_of_complex(total, count):
    return total / count.real if count.real > 0 else total


MEAN = Elementwise(
    "mean_of_parts",
    {
        "complex": mean_of_complex,
        "float": mean_of_floats,
        "int": mean_of_integers,
        "uint": mean_of_integers,
        "bool": mean_of_floats,
    },
)


def reduce_into(
    out: Tensor, self: Tensor, axis: int, index: Operand, src: Operand, reduce: str, include_self: bool
) -> Any:
    """Fills `out`; `index` and `src` have the same number of dimensions as it. Returns a bad index, if there is one."""
    start_from(out, self)
    if 0 in index.shape:
        return None
    target = out._operand
    if not target.shape:
        target = target._replace(shape=(1,), strides=(1,))
    if not include_self:
        bad = kernels.scatter(target, axis, index, same_everywhere(identity_of(reduce, self), out, index), "replace")
        if bad is not None:
            return bad
    bad = kernels.scatter(target, axis, index, src, "sum" if reduce == "mean" else reduce)
    if bad is None and reduce == "mean":
        counts = empty(out._shape, dtypes.int64, out._device)
        kernels.fill(counts._operand, int(include_self))
        of_counts = counts._operand._replace(shape=target.shape, strides=kernels.contiguous_strides(target.shape))
        kernels.scatter(of_counts, axis, index, same_everywhere(1, counts, index), "sum")
        MEAN.run(target, target, of_counts, dtype=out._dtype.name)
    return bad


def same_everywhere(value: Any, like: Tensor, index: Operand) -> Operand:
    """A number as a source of the index's shape."""
    one = empty((), like._dtype, like._device)
    kernels.fill(one._operand, value)
    return one._operand._replace(shape=index.shape, strides=(0,) * len(index.shape))


@scatter_reduce_two_op.body
def scatter_reduce_body(
    out: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool
) -> None:
    """Returns `self` with the elements of `src` reduced into the places that `index` names along `dim`."""
    axis = wrap_dim(dim, len(self._shape))
    raise_bad(reduce_into(out, self, axis, lined_up(index._operand), lined_up(src._operand), reduce, include_self))


def lined_up(x: Operand) -> Operand:
    return x if x.shape else x._replace(shape=(1,), strides=(1,))


@index_reduce_op.body
def index_reduce_body(
    out: Tensor, self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool
) -> None:
    """The index is repeated over the other dimensions; then it is one of scatter_reduce."""
    axis = wrap_dim(dim, len(self._shape))
    shape = at_least_1d(source._shape)
    step = index._stride[0] if index._shape else 0
    steps = tuple(step if d == axis else 0 for d in range(len(shape)))
    spread = index._operand._replace(shape=shape, strides=steps)
    if reduce_into(out, self, axis, spread, lined_up(source._operand), reduce, include_self) is not None:
        raise IndexError("index out of range in self")


# --- derivatives -----------------------------------------------------------------------------------------------------


def gradients(
    grad: Any, self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool, result: Any
) -> tuple[Any, Any]:
    """Those of `self` and `src`, where `src` has the shape of the index.

    A sum hands its gradient on, a mean divides it. An extreme shares it among all that are equal to it. A product
    multiplies it with the others: the product over the factor, or with a 1 in the place of the only zero.
    """
    if reduce == "sum":
        to_self, to_src = grad, grad.gather(dim, index)
    elif reduce == "mean":
        start = grad.new_ones(grad.shape) if include_self else grad.new_zeros(grad.shape)
        counts = start.scatter_add(dim, index, src.new_ones(src.shape))
        to_self = grad / counts.masked_fill(counts == 0, 1)
        to_src = to_self.gather(dim, index)
    elif reduce in ("amax", "amin"):
        wins_self, wins_src = self == result, src == result.gather(dim, index)
        winners = wins_self.to(grad.dtype) if include_self else grad.new_zeros(grad.shape)
        winners = winners.scatter_add(dim, index, wins_src.to(grad.dtype))
        share = grad / winners.masked_fill(winners == 0, 1)
        to_self, to_src = wins_self * share, wins_src * share.gather(dim, index)
    else:
        others = self.masked_fill(self == 0, 1)
        product = scatter_reduce_two_op.functional(others, dim, index, src, "prod", include_self=include_self)
        to_self = grad * product / others
        zero = src == 0
        zeros = self.new_zeros(self.shape).scatter_add(dim, index, zero.to(self.dtype)).gather(dim, index)
        only = zero & (zeros == 1)
        filled = scatter_reduce_two_op.functional(
            self, dim, index, src.masked_fill(only, 1), "prod", include_self=include_self
        )
        at_zero = (grad * filled).gather(dim, index)
        elsewhere = (grad * result).gather(dim, index) / src.masked_fill(zero, 1)
        to_src = where_op.functional(only, at_zero, elsewhere)
    if not include_self:
        to_self = ops.aten.scatter.value(to_self, dim, index, 0)
    return to_self, to_src


def covered(src: Any, index_shape: Sequence[int]) -> Any:
    """The part of a source that the index covers."""
    for d, size in enumerate(index_shape):
        src = src.narrow(d, 0, size)
    return src


def scatter_reduce_backward(
    grad: Any, self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool, result: Any
) -> tuple[Any, Any]:
    part = covered(src, index.shape)
    to_self, to_src = gradients(grad, self, dim, index, part, reduce, include_self, result)
    return to_self, part_of_source(to_src, src.shape)


def index_reduce_backward(
    grad: Any, self: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool, result: Any
) -> tuple[Any, Any]:
    shape = [1] * source.dim()
    if shape:
        shape[dim] = -1
    spread = index.reshape(shape).expand(source.shape)
    return gradients(grad, self, dim, spread, source, reduce, include_self, result)


scatter_reduce_two_op.derivative((("self", "src"), scatter_reduce_backward))
index_reduce_op.derivative((("self", "source"), index_reduce_backward))
scatter_reduce = public(scatter_reduce_two_op)
index_reduce = public(
    index_reduce_op, doc="Returns `self` with entries of `source` reduced into those that `index` names."
)
