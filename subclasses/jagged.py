"""JaggedTensor: rows of different lengths under one face, kept end to end without padding.

    x = jagged([rd.tensor([1.0, 2.0]), rd.tensor([3.0])])
    x.sum(1)                    # [3, 3]
    x.to_padded(-1.0)           # [[1, 2], [3, -1]]

What it teaches: a layout of one's own, with one meaning that settles every rule: *the padded tensor, whose padding does
not exist*. The shape is that of the padded tensor, so autograd's formulas and broadcasting fit; a plain tensor that
meets a jagged one is read at the places that exist; a sum over the ragged dimension adds rows by an index. Linear
layers act on elements, so they are answered above autograd (`__torch_function__`), on the values. How serious it is:
useful for batches of sequences; the rest is refused by name, and what attention needs is not here.

Read next: masked.py, which keeps the padding and marks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import return_and_correct_aliasing

aten = rd.ops.aten


class JaggedTensor(rd.Tensor):
    """Rows of shape [length, *rest], end to end in `values`; row i is `values[offsets[i] : offsets[i + 1]]`.

    Its shape is [rows, longest, *rest]. The constructor records nothing: `jagged` and `from_values` do.
    Errors: ValueError where `offsets` are not whole numbers that rise from 0 to the length of `values`.
    """

    values_: rd.Tensor  # `values` is taken: every tensor has it
    offsets: rd.Tensor

    @staticmethod
    def __new__(cls: type, values: rd.Tensor, offsets: rd.Tensor) -> Any:
        rise = offsets.tolist() if offsets.dim() == 1 and offsets.dtype == rd.int64 else []
        if rise != sorted(rise) or not rise or rise[0] != 0 or not values.dim() or rise[-1] != values.shape[0]:
            raise ValueError(
                "JaggedTensor: expected int64 offsets that rise from 0 to the length of the values, the first of "
                f"{list(values.shape)}, but got {offsets.tolist()} of {offsets.dtype}; see jagged()"
            )
        longest = max((end - start for start, end in zip(rise, rise[1:], strict=False)), default=0)
        size = (len(rise) - 1, longest, *values.shape[1:])
        return rd.Tensor._make_wrapper_subclass(cls, size, dtype=values.dtype, device=values.device)

    def __init__(self, values: rd.Tensor, offsets: rd.Tensor) -> None:
        self.values_, self.offsets = values.detach(), offsets

    def lengths(self) -> rd.Tensor:
        """The length of each row: int64 [rows]."""
        return self.offsets.diff()

    def places(self) -> tuple[rd.Tensor, rd.Tensor]:
        """For each element of `values_` its row, and its place within that: where it is in the padded tensor."""
        row = rd.repeat_interleave(rd.arange(self.shape[0]), self.lengths())
        return row, rd.arange(self.values_.shape[0]) - self.offsets[row]

    def with_values(self, values: rd.Tensor) -> JaggedTensor:
        """Other values in rows of the same lengths."""
        return JaggedTensor(values, self.offsets)

    def to_values(self) -> rd.Tensor:
        """The rows end to end, as a plain tensor. Gradients pass."""
        return _Leave.apply(self)

    def to_padded(self, fill: float = 0) -> rd.Tensor:
        """The plain tensor of this one's shape, with `fill` behind the rows that are shorter. Gradients pass."""
        values = self.to_values()
        padded = rd.full(self.shape, fill, dtype=values.dtype, device=values.device)
        return padded.index_put(self.places(), values)

    def __repr__(self) -> str:
        ends = self.offsets.tolist()
        rows = [self.values_[start:end].tolist() for start, end in zip(ends, ends[1:], strict=False)]
        return f"JaggedTensor({rows})"

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The names of the inner tensors, and what else it takes to build the wrapper again: nothing."""
        return ["values_", "offsets"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, rd.Tensor], context: Any, size: Any, stride: Any) -> JaggedTensor:
        """The wrapper around other values and offsets."""
        return JaggedTensor(inner["values_"], inner["offsets"])

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is rd.nn.functional.linear and isinstance(args[0], JaggedTensor) and args[0].dim() > 2:
            x, *rest = args
            return from_values(func(x.to_values(), *rest, **kwargs), x.offsets)
        with rd._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in SAME_ROWS and isinstance(args[0], JaggedTensor):
            result = args[0].with_values(func(args[0].values_, *args[1:], **kwargs))
        elif rd.Tag.pointwise in func.tags and func is not aten.equal.default:  # that one gives no tensor
            result = pointwise(func, args, kwargs)
        elif func is aten.sum.default:
            result = func(args[0].values_, **kwargs)
        elif func is aten.sum.dim_IntList:
            result = summed(*args, **kwargs)
        else:
            result = BEHIND[func](*args, **kwargs) if func in BEHIND else NotImplemented
        if result is NotImplemented:
            raise NotImplementedError(
                f"{func}: JaggedTensor has no rule for it; run it on x.to_padded(fill), or on x.to_values() where it "
                "does not matter which row an element is in"
            )
        return return_and_correct_aliasing(func, args, kwargs, result)


def jagged(rows: Sequence[rd.Tensor]) -> Any:
    """The JaggedTensor of rows [length, *rest], whose gradients arrive at the rows.

    Errors: ValueError without rows; RuntimeError from `cat` where they differ in more than length.
    """
    if not rows:
        raise ValueError("jagged: expected at least one row; a row may have length 0, as rd.empty(0)")
    ends = rd.tensor([0, *(len(row) for row in rows)]).cumsum(0)
    return from_values(rd.cat(list(rows)), ends)


def from_values(values: rd.Tensor, offsets: rd.Tensor) -> Any:
    """The JaggedTensor of rows that are end to end already; its gradient arrives at `values`."""
    return _Enter.apply(values, offsets)


class _Enter(rd.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: rd.Tensor, offsets: rd.Tensor) -> Any:
        result = JaggedTensor(values, offsets)
        ctx.places = result.places()
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        # That of a sum comes as a plain tensor, expanded to the padded shape.
        return (grad.values_ if isinstance(grad, JaggedTensor) else grad[ctx.places]), None


class _Leave(rd.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> rd.Tensor:
        ctx.offsets = x.offsets
        return x.values_.clone()

    @staticmethod
    def backward(ctx: Any, grad: rd.Tensor) -> Any:
        return JaggedTensor(grad, ctx.offsets)


# The rules ---------------------------------------------------------------------------------------------------------


def pointwise(func: Any, args: Any, kwargs: Any) -> Any:
    """Runs on the values. A plain tensor is broadcast to the padded shape, and read where there are elements."""
    rows = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, JaggedTensor)]
    first = rows[0]
    for other in rows[1:]:
        if other.offsets is not first.offsets and not rd.equal(other.offsets, first.offsets):
            raise ValueError(
                f"{func}: rows have lengths {first.lengths().tolist()} in one JaggedTensor, but "
                f"{other.lengths().tolist()} in another; make them alike, or go by to_padded(fill)"
            )
    places = first.places()

    def values(x: rd.Tensor) -> rd.Tensor:
        if isinstance(x, JaggedTensor):
            return x.values_.reshape(len(places[0]), *[1] * (rank - x.dim()), *x.shape[2:])
        if not x.dim():
            return x
        # The two leading dimensions as they are in the padded tensor; those behind broadcast by themselves.
        whole = x.reshape([1] * (rank - x.dim()) + list(x.shape))
        return whole.expand(*first.shape[:2], *whole.shape[2:])[places]

    rank = first.dim()
    tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, rd.Tensor)]
    if any(x.dim() > rank for x in tensors) or any(x.dim() != rank for x in rows):
        raise ValueError(
            f"{func}: shapes {[list(x.shape) for x in tensors]} would move the ragged dimension, which is the second; "
            "add dimensions by view() to the plain tensors and to x.to_values()"
        )
    plain_args, plain_kwargs = pytree.tree_map_only(rd.Tensor, values, (args, kwargs))
    if not func._schema.is_mutable:
        return pytree.tree_map_only(rd.Tensor, first.with_values, func(*plain_args, **plain_kwargs))
    target = kwargs.get("out", args[0])
    if not isinstance(target, JaggedTensor):
        raise ValueError(
            f"{func}: a plain tensor cannot be written from rows of different lengths; use to_padded(fill)"
        )
    func(*plain_args, **plain_kwargs)
    return target


def summed(x: Any, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Over the ragged dimension, a plain tensor; over others behind it, a jagged one."""
    # The face of the result, made without touching elements, has its shape and dtype; or the error is PyTorch's.
    face = aten.sum.dim_IntList(rd.empty(x.shape, dtype=x.dtype, device="meta"), dim, keepdim, dtype=dtype)
    dims = sorted({d % x.dim() for d in dim or range(x.dim())})
    if dims[0] == 0 and 1 not in dims:
        raise NotImplementedError(
            f"aten.sum.dim_IntList: a sum over the rows, dimensions {dims}, is not known; use x.to_padded(0).sum(...)"
        )
    behind = [d - 1 for d in dims if d > 1]
    values = x.values_.to(face.dtype)
    if 1 not in dims:
        return x.with_values(values.sum(behind, keepdim))
    values = values.sum(behind, keepdim=True) if behind else values
    totals = rd.zeros((x.shape[0], *values.shape[1:]), dtype=face.dtype, device=x.device)
    totals = totals.index_add(0, x.places()[0], values)
    return (totals.sum(0) if dims[0] == 0 else totals).reshape(face.shape)


def unsqueezed(x: Any, dim: int) -> Any:
    at = dim if dim >= 0 else dim + x.dim() + 1
    return x.with_values(x.values_.unsqueeze(at - 1)) if at > 1 else NotImplemented


def expanded(x: Any, size: Any, *, implicit: bool = False) -> Any:
    if len(size) != x.dim() or any(n not in (-1, old) for n, old in zip(size[:2], x.shape[:2], strict=True)):
        return NotImplemented
    return x.with_values(x.values_.expand(-1, *size[2:]))


NOT_SUPPORTED = {"*": "where its elements go in rows of different lengths is not known: run it on x.to_padded(fill)"}

# Moves of elements that are answered where they stay in their rows.
BEHIND: dict[Any, Any] = {aten.unsqueeze.default: unsqueezed, aten.expand.default: expanded}

# What leaves the rows as they are, and elements where they are in them.
SAME_ROWS: set[Any] = {
    aten.alias.default,
    aten.clone.default,
    aten.detach.default,
    aten._to_copy.default,
    aten.ones_like.default,
    aten.zeros_like.default,
}
