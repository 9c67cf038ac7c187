"""Reading and writing at indices along one dimension: gather, scatter, scatter_add and scatter_reduce.

The loops are those of `kernels/cpu/indexing.py`, which scan every index before they touch memory; here shapes and
dtypes are checked, and a bad index becomes the error that PyTorch raises for that operator.

Read next: index_functions.py, for whole entries along a dimension; indexing.py, for `x[...]`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, empty, wrap_dim
from redispatch.kernels import BadIndex, Elementwise, Operand

from ..declare.numbers import storable
from ..declare.operator import structured
from ..declare.structured import Meta, Structured, apart, check_no_internal_overlap, common_device, not_implemented
from .comparison import where_op
from .copying import move

# --- checks -----------------------------------------------------------------------------------------------------------


def is_index(x: Tensor) -> bool:
    return x._dtype.name in ("int32", "int64")


def raise_bad(bad: BadIndex | None, kind: type[Exception] = RuntimeError) -> None:
    """Raises PyTorch's error for an index outside its dimension."""
    if bad is not None:
        raise kind(f"index {bad.value} is out of bounds for dimension {bad.dim} with size {bad.size}")


def no_larger(a: Sequence[int], b: Sequence[int], but: int = -1) -> bool:
    return all(x <= y for d, (x, y) in enumerate(zip(a, b, strict=True)) if d != but)


def at_least_1d(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(shape) or (1,)


class WrittenInPlace(Structured):
    """A structured operator whose body changes its first argument, or a copy of it, at some places only."""

    def fill(self, target: Tensor, args: Any) -> None:
        check_no_internal_overlap(target)
        for value in args[1:]:
            if isinstance(value, Tensor):
                refuse_overlap(value, target)
        first = target if args[0] is target else apart(args[0], target, elementwise=True)
        self.body_function(target, first, *args[1:])


class ReadAtPlaces(Structured):
    """A structured operator that reads its first argument at places which indices decide: never what it writes."""

    def fill(self, target: Tensor, args: Any) -> None:
        check_no_internal_overlap(target)
        for value in args:
            if isinstance(value, Tensor) and value._storage is target._storage:
                if kernels.overlap(value._operand, target._operand) == "full":
                    refuse_overlap(value, target)
        super().fill(target, args)


reading = partial(structured, kind=ReadAtPlaces, out="out", forward="linear")


def refuse_overlap(value: Tensor, target: Tensor) -> None:
    """Raises RuntimeError where what is read shares memory with what is written, at places that indices decide."""
    if value._storage is target._storage and kernels.overlap(value._operand, target._operand) != "no":
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def start_from(out: Tensor, self: Tensor) -> None:
    """Fills `out` with what it is to be where nothing is written."""
    if out is not self:
        move(out, self)


def same_as_first(self: Tensor, *others: Tensor) -> Meta:
    return Meta(self._shape, self._dtype, common_device(self, *others))


def lined_up(x: Operand) -> Operand:
    """A tensor without dimensions as one with a single one."""
    return x if x.shape else x._replace(shape=(1,), strides=(1,))


# --- gather and scatter -----------------------------------------------------------------------------------------------


def gather_meta(self: Tensor, dim: int, index: Tensor, sparse_grad: bool) -> Meta:
    axis = wrap_dim(dim, len(self._shape))
    if index._shape.numel() == 0:
        return Meta(index._shape, self._dtype, common_device(self, index))
    if not is_index(index):
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    ours, theirs = at_least_1d(self._shape), at_least_1d(index._shape)
    if len(ours) != len(theirs):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for d, (size, wanted) in enumerate(zip(ours, theirs, strict=True)):
        if d != axis and wanted > size:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(index._shape)} to be no larger than self "
                f"{list(self._shape)} apart from dimension {axis}"
            )
    return Meta(index._shape, self._dtype, common_device(self, index))


gather = reading(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    derivative=lambda grad, self_shape, dim, index: grad.new_zeros(self_shape).scatter_add(dim, index, grad),
    core=True,
    doc="Returns for each place the element of `self` that `index` names along `dim`.",
)(gather_meta)


@gather.op.body
def gather_body(out: Tensor, self: Tensor, dim: int, index: Tensor, sparse_grad: bool) -> None:
    if index._shape.numel():
        raise_bad(kernels.gather(out._operand, self._operand, wrap_dim(dim, len(self._shape)), index._operand))


def check_scatter(self: Tensor, dim: int, index: Tensor, src: Tensor | None) -> Meta:
    axis = wrap_dim(dim, len(self._shape))
    others = [index] if src is None else [index, src]
    if index._shape.numel() == 0:
        return same_as_first(self, *others)
    if not is_index(index):
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    if src is not None and src._dtype is not self._dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    ours, theirs = at_least_1d(self._shape), at_least_1d(index._shape)
    if len(ours) != len(theirs):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    fits = no_larger(theirs, ours, but=axis)
    if src is None:
        if not fits:
            raise RuntimeError(
                f"Expected index {list(index._shape)} to be no larger than self {list(self._shape)} apart from "
                f"dimension {axis}"
            )
        return same_as_first(self, index)
    if len(at_least_1d(src._shape)) != len(theirs):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    if not fits or not no_larger(theirs, at_least_1d(src._shape)):
        raise RuntimeError(
            f"Expected index {list(index._shape)} to be no larger than self {list(self._shape)} apart from dimension "
            f"{axis} and to be no larger size than src {list(src._shape)}"
        )
    return same_as_first(self, *others)


HOW = {"": "replace", "add": "sum", "multiply": "prod"}


def scatter_meta(self: Tensor, dim: int, index: Tensor, src: Any, reduce: str | None = None) -> Meta:
    """Returns the metadata of all kinds of scatter; `src` is a tensor, or one number for all indices."""
    if reduce is not None and reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if isinstance(src, Tensor):
        return check_scatter(self, dim, index, src)
    storable(src, self._dtype)
    return check_scatter(self, dim, index, None)


def scatter_body(out: Tensor, self: Tensor, dim: int, index: Tensor, src: Any, reduce: str = "") -> None:
    start_from(out, self)
    if index._shape.numel():
        axis = wrap_dim(dim, len(self._shape))
        if isinstance(src, Tensor):
            source = lined_up(src._operand)
        else:
            source = same_everywhere(storable(src, self._dtype), self, at_least_1d(index._shape))
        raise_bad(kernels.scatter(out._operand, axis, index._operand, source, HOW[reduce]))


def same_everywhere(value: Any, like: Tensor, shape: Sequence[int]) -> Operand:
    """A number as a source of this shape."""
    one = empty((), like._dtype, like._device)
    kernels.fill(one._operand, value)
    return one._operand._replace(shape=tuple(shape), strides=(0,) * len(shape))


def scatter_operator(name: str, source: str, **facts: Any) -> Any:
    """A kind of scatter, by what it takes for its source and behind that."""
    schema = f"{name}(Tensor self, int dim, Tensor index, {source}) -> Tensor"
    defaults: dict[str, Any] = {"body": scatter_body, "kind": WrittenInPlace, "inplace": True, "face": False}
    return structured(schema, **defaults | facts)(scatter_meta)


def without_written(grad: Any, dim: int, index: Any) -> Tensor:
    return scatter_value_op.functional(grad, dim, index, 0)


def of_source(grad: Any, dim: int, index: Any, src_shape: Sequence[int]) -> Tensor:
    return part_of_source(gather.op.functional(grad, dim, index), src_shape)


def part_of_source(gradient: Any, src_shape: Sequence[int]) -> Tensor:
    """The gradient of the part of a source that the index covers, with zeros for the rest of it."""
    if tuple(gradient.shape) == tuple(src_shape):
        return gradient
    result = gradient
    for d, size in enumerate(src_shape):
        shape = list(result.shape)
        shape[d] = size
        result = ops.aten.slice_scatter.default(result.new_zeros(shape), result, d, 0, result.shape[d])
    return result


scatter_value_op = scatter_operator(
    "scatter.value",
    "Scalar value",
    out="value_out",
    core=True,
    derivative=without_written,
    node="ScatterBackward1",
    forward=lambda arguments, tangents, result: without_written(tangents[0], *arguments[1:3]),
)
scatter_reduce_op = scatter_operator("scatter.reduce", "Tensor src, *, str reduce", out="reduce_out")
scatter_value_reduce_op = scatter_operator(
    "scatter.value_reduce", "Scalar value, *, str reduce", out="value_reduce_out"
)
scatter = scatter_operator(
    "scatter.src",
    "Tensor src",
    core=True,
    doc="Returns `self` with the elements of `src` written where `index` says along `dim`.",
    out="src_out",
    derivative={"self": without_written, "src": of_source},
    node="ScatterBackward0",
    forward="linear",
    also=(scatter_value_op, scatter_reduce_op, scatter_value_reduce_op),
    face=True,
)
scatter_add = scatter_operator(
    "scatter_add",
    "Tensor src",
    core=True,
    doc="Returns `self` with the elements of `src` added where `index` says along `dim`.",
    body=lambda out, self, dim, index, src: scatter_body(out, self, dim, index, src, "add"),
    out="out",
    derivative={"self": lambda grad: grad, "src": of_source},
    forward="linear",
    autocast={"cuda": "promote"},
    face=True,
)

# --- scatter_reduce: what meets at one place becomes a sum, product, mean, maximum or minimum -------------------------

REDUCE = ("sum", "prod", "mean", "amax", "amin")


def identity_of(reduce: str, self: Tensor) -> Any:
    """Returns the number that changes nothing: a place that nothing has reached begins with it."""
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
    target = lined_up(out._operand)
    if not include_self:
        bad = kernels.scatter(
            target, axis, index, same_everywhere(identity_of(reduce, self), out, index.shape), "replace"
        )
        if bad is not None:
            return bad
    bad = kernels.scatter(target, axis, index, src, "sum" if reduce == "mean" else reduce)
    if bad is None and reduce == "mean":
        counts = empty(out._shape, dtypes.int64, out._device)
        kernels.fill(counts._operand, int(include_self))
        of_counts = counts._operand._replace(shape=target.shape, strides=kernels.contiguous_strides(target.shape))
        kernels.scatter(of_counts, axis, index, same_everywhere(1, counts, index.shape), "sum")
        MEAN.run(target, target, of_counts, dtype=out._dtype.name)
    return bad


def gradients(
    grad: Any, self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool, result: Any
) -> tuple[Any, Any]:
    """Returns the gradients of `self` and `src`, where `src` has the shape of the index.

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


def scatter_reduce_meta(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Meta:
    if reduce not in REDUCE:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if self._dtype.is_complex and reduce in ("amax", "amin"):
        raise not_implemented(f"scatter_gather_tensor_cpu_reduce_{reduce}", self._dtype)
    return check_scatter(self, dim, index, src)


scatter_reduce = structured(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) "
    "-> Tensor",
    kind=WrittenInPlace,
    inplace=True,
    out="two_out",
    derivative={("self", "src"): scatter_reduce_backward},
    core=True,
    doc="Returns `self` with the elements of `src` reduced into the places that `index` names along `dim`.",
    face=True,
)(scatter_reduce_meta)


@scatter_reduce.op.body
def scatter_reduce_body(
    out: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool
) -> None:
    """`include_self` says whether what was there counts as well."""
    axis = wrap_dim(dim, len(self._shape))
    raise_bad(reduce_into(out, self, axis, lined_up(index._operand), lined_up(src._operand), reduce, include_self))


scatter_reduce_two_op = scatter_reduce.op
