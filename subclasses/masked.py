"""MaskedTensor: values of which some do not count; sums and means go by those that do.

    x = rd.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    m = masked(x, rd.tensor([True, False, True]))
    m.mean()                    # 2: the NaN is not looked at
    m.mean().backward()
    x.grad                      # [0.5, 0, 0.5]: nor is it in backward

What it teaches: doors. The handler stands below autograd, whose formulas know nothing of masks: to them the gradient
of a sum is ones everywhere, and that of a mean is divided by all. So a mean is written above it, by way of sums; and
values enter through an `autograd.Function` (`masked`) and leave through one (`to_tensor`), where the way back puts
zeros for what does not count. Leaves are plain tensors, as users have them. And a tag (`pointwise`) names hundreds of
operators at once. How serious it is: useful for what it knows, which is pointwise operators, reductions and moves of
elements; the rest is refused, for guessing would be wrong.

Read next: jagged.py, the same doors where the lengths of rows differ.
"""

from __future__ import annotations

import functools
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import return_and_correct_aliasing

aten = rd.ops.aten


class MaskedTensor(rd.Tensor):
    """The values `data`, of which those count where the boolean `mask` of the same shape is True.

    Where it is False the value may be anything, NaN included. The constructor records nothing: `masked` does.
    Errors: TypeError where `mask` is not boolean; ValueError where its shape is another.
    """

    data_: rd.Tensor  # `data` is taken: every tensor has it
    mask: rd.Tensor

    @staticmethod
    def __new__(cls: type, data: rd.Tensor, mask: rd.Tensor) -> Any:
        if mask.dtype != rd.bool:
            raise TypeError(f"MaskedTensor: expected a boolean mask, but got {mask.dtype}; pass mask.bool()")
        if mask.shape != data.shape:
            raise ValueError(
                f"MaskedTensor: the mask has shape {list(mask.shape)}, but the data {list(data.shape)}; pass "
                "mask.expand_as(data)"
            )
        return rd.Tensor._make_wrapper_subclass(
            cls, data.size(), strides=data.stride(), dtype=data.dtype, device=data.device
        )

    def __init__(self, data: rd.Tensor, mask: rd.Tensor) -> None:
        self.data_, self.mask = data.detach(), mask

    def to_tensor(self, fill: float = 0) -> rd.Tensor:
        """The values as a plain tensor, with `fill` where they do not count. Gradients pass where they do."""
        return _Leave.apply(self, fill)

    def filled(self, fill: Any) -> rd.Tensor:
        """The same, with nothing recorded."""
        return self.data_.masked_fill(~self.mask, fill)

    def __repr__(self) -> str:
        def shown(values: Any, mask: Any) -> str:
            if isinstance(mask, list):
                return "[" + ", ".join(map(shown, values, mask)) + "]"
            return f"{values:.4g}" if mask else "--"

        return f"MaskedTensor({shown(self.data_.tolist(), self.mask.tolist())})"

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The names of the inner tensors, and what else it takes to build the wrapper again: nothing."""
        return ["data_", "mask"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, rd.Tensor], context: Any, size: Any, stride: Any) -> MaskedTensor:
        """The wrapper around other values and another mask."""
        return MaskedTensor(inner["data_"], inner["mask"])

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (rd.mean, rd.Tensor.mean):
            return mean(*args, **(kwargs or {}))
        with rd._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in MOVES:
            result = moved(func, args, kwargs)
        elif func in FILLS:
            result = MaskedTensor(func(args[0].data_, *args[1:], **kwargs), args[0].mask)
        elif func in REDUCTIONS:
            result = reduced(func, REDUCTIONS[func], args, kwargs)
        elif rd.Tag.pointwise in func.tags and func is not aten.equal.default:  # that one gives no tensor
            result = pointwise(func, args, kwargs)
        else:
            raise NotImplementedError(
                f"{func}: MaskedTensor does not know what a masked element means to it; say so with "
                "x.to_tensor(fill), and mask the result again"
            )
        return return_and_correct_aliasing(func, args, kwargs, result)


def masked(data: rd.Tensor, mask: rd.Tensor) -> Any:
    """A MaskedTensor of `data`, whose gradient arrives at `data`: plain, and exactly zero where `mask` is False.

    A parameter that meets masked values should come in by this door, too, with a mask of ones.
    """
    return _Enter.apply(data, mask)


class _Enter(rd.autograd.Function):
    @staticmethod
    def forward(ctx: Any, data: rd.Tensor, mask: rd.Tensor) -> Any:
        ctx.mask = mask
        return MaskedTensor(data, mask)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        plain = grad.filled(0) if isinstance(grad, MaskedTensor) else grad
        return plain.masked_fill(~ctx.mask, 0), None


class _Leave(rd.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, fill: float) -> rd.Tensor:
        ctx.mask = x.mask
        return x.filled(fill)

    @staticmethod
    def backward(ctx: Any, grad: rd.Tensor) -> Any:
        return MaskedTensor(grad, ctx.mask), None


# The rules ---------------------------------------------------------------------------------------------------------


def parts(tree: Any, name: str) -> Any:
    """A pytree of arguments with the values, or the masks, in the place of MaskedTensors."""
    return pytree.tree_map_only(MaskedTensor, lambda x: getattr(x, name), tree)


def pointwise(func: Any, args: Any, kwargs: Any) -> Any:
    """Runs on the values; an element of the result counts where all that it is made of do."""
    first, *others = [x.mask for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, MaskedTensor)]
    mask = functools.reduce(rd.logical_and, others, first)
    if not func._schema.is_mutable:
        data = func(*parts(args, "data_"), **parts(kwargs, "data_"))
        return pytree.tree_map_only(rd.Tensor, lambda x: MaskedTensor(x, mask.expand(x.shape)), data)
    target = kwargs.get("out", args[0])
    if not isinstance(target, MaskedTensor) or mask.shape != target.shape or not rd.equal(mask, target.mask):
        raise ValueError(
            f"{func}: the result counts elsewhere than the tensor that it is written to; take the form that is not "
            "in place"
        )
    func(*parts(args, "data_"), **parts(kwargs, "data_"))
    return target


def lowest(dtype: Any) -> Any:
    return float("-inf") if dtype.is_floating_point else False if dtype == rd.bool else rd.iinfo(dtype).min


def highest(dtype: Any) -> Any:
    return float("inf") if dtype.is_floating_point else True if dtype == rd.bool else rd.iinfo(dtype).max


def reduced(func: Any, neutral: Any, args: Any, kwargs: Any) -> Any:
    """Runs on the values with the reduction's neutral element where nothing counts.

    An element of the result counts where any that it is made of does.
    """
    x, *rest = args
    data = func(x.filled(neutral(x.dtype)), *rest, **kwargs)
    dims, keepdim = (rest[0] if rest else kwargs.get("dim")), (rest[1] if len(rest) > 1 else kwargs.get("keepdim"))
    everything = dims is None or dims == []
    some = rd.any(x.mask) if everything and not keepdim else rd.any(x.mask, dims or None, bool(keepdim))
    return MaskedTensor(data, some)


def mean(x: Any, *dims: Any, **options: Any) -> Any:
    """The sum over the number of those that count; of whole numbers, too.

    It is said above autograd, in operators that autograd records: its formula for a mean divides by all elements.
    """
    counts = rd.sum(x.mask, *dims, **{name: value for name, value in options.items() if name != "dtype"})
    return rd.sum(x, *dims, **options) / counts


def moved(func: Any, args: Any, kwargs: Any) -> Any:
    """Moves values and mask alike."""
    data = pytree.tree_flatten(func(*parts(args, "data_"), **parts(kwargs, "data_")))
    # A plain tensor among masked ones, as in `cat`, counts everywhere.
    masks = pytree.tree_map_only(
        rd.Tensor, lambda x: x.mask if isinstance(x, MaskedTensor) else rd.ones(x.shape, dtype=rd.bool), args
    )
    same_dtype = {name: value for name, value in kwargs.items() if name != "dtype"}
    mask = pytree.tree_leaves(func(*masks, **same_dtype))
    return pytree.tree_unflatten([MaskedTensor(d, m) for d, m in zip(data[0], mask, strict=True)], data[1])


# Whatever is neither pointwise, nor a reduction or a move of the tables below, is refused by name.
NOT_SUPPORTED = {"*": "what a masked element means to it is not known: say so with x.to_tensor(fill), and mask again"}

REDUCTIONS: dict[Any, Any] = {
    aten.sum.default: lambda dtype: 0,
    aten.sum.dim_IntList: lambda dtype: 0,
    aten.prod.default: lambda dtype: 1,
    aten.amax.default: lowest,
    aten.amin.default: highest,
    aten.max.default: lowest,
    aten.min.default: highest,
    aten.any.default: lambda dtype: 0,
    aten.all.default: lambda dtype: 1,
}
FILLS: set[Any] = {aten.ones_like.default, aten.zeros_like.default}
MOVES: set[Any] = {
    aten.alias.default,
    aten.cat.default,
    aten.clone.default,
    aten.detach.default,
    aten.expand.default,
    aten.permute.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.split.Tensor,
    aten.squeeze.dim,
    aten.stack.default,
    aten.t.default,
    aten.transpose.int,
    aten.unbind.int,
    aten.unsqueeze.default,
    aten.view.default,
}
