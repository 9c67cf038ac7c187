"""BatchedTensor: `vmap` in a hundred lines.

    vmap(lambda row: row @ row)(rd.ones(5, 3))      # five products of vectors: tensor([3., 3., 3., 3., 3.])

What it teaches: how a transform that looks like magic is a wrapper with rules. A BatchedTensor shows the shape of one
example and holds all of them, stacked in front; a rule says how an operator on one is run on all at once. There are few
kinds: a pointwise operator needs dimensions that line up; one that takes dimension numbers gets them shifted by one;
a product becomes a batched product. Where no rule is known, the operator is run example by example and the results
are stacked: slow, and right. Nesting is free: what a wrapper holds may be a wrapper of the level outside. How serious
it is: a toy that computes what it should; `func.vmap` is the real one, as a dispatch key with rules for each operator.

Read next: docs/transforms.md, for the real one; two_tensor.py, for the wrapper's manners that are left out here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree

from .schemas import is_elementwise

aten = rd.ops.aten


class BatchedTensor(rd.Tensor):
    """All examples of a batch, stacked along dimension 0 of `value`, under the face of one of them.

    `level` says which `vmap` it belongs to: 1 for the outermost.
    """

    value: rd.Tensor
    level: int

    @staticmethod
    def __new__(cls: type, value: rd.Tensor, level: int) -> Any:
        return rd.Tensor._make_wrapper_subclass(
            cls, value.size()[1:], strides=value.stride()[1:], dtype=value.dtype, device=value.device
        )

    def __init__(self, value: rd.Tensor, level: int) -> None:
        self.value, self.level = value, level

    def __repr__(self) -> str:
        return f"BatchedTensor(level={self.level}, {self.value!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func._schema.is_mutable:
            raise NotImplementedError(f"{func}: write it without changing tensors in place, or use func.vmap")
        # The innermost level answers; wrappers of levels further out are constants to it, and are asked in its turn.
        level = max(x.level for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, BatchedTensor))
        rule = pointwise if is_elementwise(func) else RULES.get(func, by_example)
        result = rule(level, func, args, kwargs)
        return pytree.tree_map_only(rd.Tensor, lambda x: BatchedTensor(x, level), result)


def vmap(function: Callable[..., Any], in_dims: Any = 0, out_dims: int = 0) -> Callable[..., Any]:
    """`function` over examples: its arguments are split along `in_dims`, its results stacked along `out_dims`.

    in_dims: one dimension for all arguments, or a tuple of one for each, where None hands the argument over whole.
    Errors: ValueError where there is no argument to split, or they have different numbers of examples.
    """

    def batched(*args: Any) -> Any:
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        sizes = {x.shape[dim] for x, dim in zip(args, dims, strict=True) if dim is not None}
        if len(sizes) != 1:
            raise ValueError(f"vmap: expected arguments with one number of examples, but got {sorted(sizes) or 'none'}")
        level = depth.get() + 1
        token = depth.set(level)
        try:
            inputs = [
                x if dim is None else BatchedTensor(x.movedim(dim, 0), level) for x, dim in zip(args, dims, strict=True)
            ]
            results = function(*inputs)
        finally:
            depth.reset(token)
        (size,) = sizes

        def whole(x: rd.Tensor) -> rd.Tensor:
            return all_of(x, level, size).movedim(0, out_dims)

        return pytree.tree_map_only(rd.Tensor, whole, results)

    return batched


depth: ContextVar[int] = ContextVar("depth", default=0)  # how many `vmap` are running, in this thread or task


def is_batched(x: Any, level: int) -> bool:
    return isinstance(x, BatchedTensor) and x.level == level


def all_of(x: rd.Tensor, level: int, size: int) -> rd.Tensor:
    """All examples of `x`, stacked in front: of a constant, the same one `size` times."""
    return x.value if isinstance(x, BatchedTensor) and x.level == level else x.expand(size, *x.shape)


def size_of(level: int, args: Any) -> int:
    return next(x.value.shape[0] for x in pytree.tree_leaves(args) if is_batched(x, level))


# The rules ---------------------------------------------------------------------------------------------------------


def pointwise(level: int, func: Any, args: Any, kwargs: Any) -> Any:
    """Examples broadcast from the right, so that ones go between the batch and the dimensions of the smaller."""
    if kwargs.get("memory_format") not in (None, rd.preserve_format, rd.contiguous_format):
        return by_example(level, func, args, kwargs)  # an order of so many dimensions, and the batch is one more
    rank = max(x.dim() for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, rd.Tensor))

    def lined_up(x: Any) -> Any:
        if not is_batched(x, level):
            return x
        return x.value.reshape(x.value.shape[0], *[1] * (rank - x.dim()), *x.shape)

    args, kwargs = pytree.tree_map_only(rd.Tensor, lined_up, (args, kwargs))
    return func(*args, **kwargs)


def dims_shifted(level: int, func: Any, args: Any, kwargs: Any) -> Any:
    """The dimensions that it names are one further right; no dimensions mean all, but that of the batch."""
    x, *rest = args
    rank, count = x.dim(), DIMS[func]
    if rank == 0:  # it has no dimension, and yet 0 and -1 are allowed to name it
        return by_example(level, func, args, kwargs)

    def shifted(dims: Any) -> Any:
        if dims is None or isinstance(dims, list | tuple):
            return [shifted(dim) for dim in dims or range(rank)]
        if not -rank <= dims < rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dims})"
            )
        return dims % rank + 1

    # What stands at its default is not handed over: the first dimension for a slice, all of them for a maximum.
    dims = rest[:count] or [argument.default_value for argument in func._schema.arguments[1 : count + 1]]
    return func(x.value, *map(shifted, dims), *rest[count:], **kwargs)


def reduced(level: int, func: Any, args: Any, kwargs: Any) -> Any:
    """A reduction over all of an example: over every dimension but that of the batch."""
    x = args[0].value
    return func.overloadpacket(x.reshape(x.shape[0], -1), 1, **kwargs)


def resized(level: int, func: Any, args: Any, kwargs: Any) -> Any:
    """A shape, given for one example, has the batch put in front."""
    x, size, *rest = args
    if func is aten.expand.default:  # the dimensions that an example lacks come after the batch
        held = x.value.reshape(x.value.shape[0], *[1] * (len(size) - x.dim()), *x.shape)
        return held.expand(x.value.shape[0], *size)
    return x.value.reshape(x.value.shape[0], *size)


def product(level: int, func: Any, args: Any, kwargs: Any) -> Any:
    """Products of vectors and matrices: `matmul`, which knows batches, with a column made of a vector on the right."""
    size = size_of(level, args)
    a, b = (all_of(x, level, size) for x in args)
    if func is aten.dot.default:
        return (a * b).sum(1)
    return (a @ b[:, :, None])[:, :, 0] if func is aten.mv.default else a @ b


def by_example(level: int, func: Any, args: Any, kwargs: Any) -> Any:
    """Runs it on one example after another, and stacks the results; what is no tensor has to be the same for all."""

    def example(i: int) -> Any:
        pick = pytree.tree_map_only(BatchedTensor, lambda x: x.value[i] if x.level == level else x, (args, kwargs))
        return func(*pick[0], **pick[1])

    leaves, specs = zip(*(pytree.tree_flatten(example(i)) for i in range(size_of(level, (args, kwargs)))), strict=True)
    for column in zip(*leaves, strict=True):
        if not isinstance(column[0], rd.Tensor) and any(value != column[0] for value in column):
            raise NotImplementedError(f"{func}: examples of a BatchedTensor differ in what is no tensor; use func.vmap")
    stacked = [
        rd.stack(column) if isinstance(column[0], rd.Tensor) else column[0] for column in zip(*leaves, strict=True)
    ]
    return pytree.tree_unflatten(stacked, specs[0])


NOT_SUPPORTED = {
    "#writes": "nothing is changed in place: func.vmap does that",
    "#view/aliasing": "what has no rule goes example by example, and its results are stacked anew",
    "*/pickle": "it lives as long as its vmap runs, and is never kept",
    "(copy) (pickle) (optimizer)/attributes": "it lives as long as its vmap runs, and is never kept",
}

# How many dimension numbers come after the tensor.
DIMS: dict[Any, int] = {
    aten.sum.dim_IntList: 1,
    aten.mean.dim: 1,
    aten.amax.default: 1,
    aten.amin.default: 1,
    aten.cumsum.default: 1,
    aten._softmax.default: 1,
    aten._log_softmax.default: 1,
    aten.select.int: 1,
    aten.slice.Tensor: 1,
    aten.transpose.int: 2,
}
RULES: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(DIMS, dims_shifted),
    aten.sum.default: reduced,
    aten.mean.default: reduced,
    aten.view.default: resized,
    aten._unsafe_view.default: resized,
    aten.expand.default: resized,
    aten.dot.default: product,
    aten.mv.default: product,
    aten.mm.default: product,
    aten.bmm.default: product,
}
