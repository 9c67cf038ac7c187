"""LazyConstant: a tensor whose elements are all one number, which takes the memory of one; ZeroTensor: of zeros.

    ones = LazyConstant(rd.tensor(1.0), (1000, 1000))
    (ones * 3).exp()            # still one number
    ZeroTensor((2, 3)) + x      # a copy of x: nothing is added
    ones.materialize()          # a tensor like any other

What it teaches: an operator can be answered without being run. Pointwise operators on constants run on one element;
moves of elements run on nothing but the shape (the device `meta`); whatever else comes gets the tensor in full. Zero is
the constant with more rules: it vanishes
in a sum and makes zero of a product, which skips the work of a gradient that is not there. How serious it is: useful
where whole tensors are constant, as in the gradients of branches that were not taken; frameworks keep such zeros
inside for that.

Read next: diag_tensor.py, for structure above autograd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree

from .schemas import is_elementwise, written_by

aten = rd.ops.aten


class LazyConstant(rd.Tensor):
    """A tensor of the given shape with the 0-d tensor `value` in every place; its dtype and device are the value's.

    Errors: ValueError where `value` has dimensions; TypeError from operators that write into it.
    """

    value: rd.Tensor

    @staticmethod
    def __new__(cls: type, value: rd.Tensor, shape: Sequence[int]) -> Any:
        if value.dim():
            raise ValueError(
                f"LazyConstant: expected one number as a tensor without dimensions, but got shape {list(value.shape)}"
            )
        # No operator is to believe that elements are far apart, so it has contiguous strides as a full tensor has.
        return rd.Tensor._make_wrapper_subclass(cls, shape, dtype=value.dtype, device=value.device)

    def __init__(self, value: rd.Tensor, shape: Sequence[int]) -> None:
        self.value = value.detach()

    def materialize(self) -> rd.Tensor:
        """A plain tensor with memory for every element."""
        return self.value.expand(self.shape).clone(memory_format=rd.contiguous_format)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value.item()}, shape={list(self.shape)})"

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The name of the inner tensor, which is the one element, and the shape."""
        return ["value"], tuple(self.shape)

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, rd.Tensor], shape: Any, size: Any, stride: Any) -> LazyConstant:
        """The constant of another value."""
        return constant(inner["value"], shape)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if any(isinstance(x, LazyConstant) for x in written_by(func, args, kwargs)):
            raise TypeError(f"{func}: a constant has no elements to write to; write to x.materialize()")
        if func is aten.as_strided.default:  # else `fill_diagonal_` and the like would write to a copy, unnoticed
            raise TypeError(f"{func}: a {cls.__name__} has no memory that goes by strides; use x.materialize()")
        for rule in (zero_rule, constant_rule):
            result = rule(func, args, kwargs)
            if result is not NotImplemented:
                return result
        args, kwargs = pytree.tree_map_only(LazyConstant, LazyConstant.materialize, (args, kwargs))
        return func(*args, **kwargs)


class ZeroTensor(LazyConstant):
    """The LazyConstant of zero. It vanishes in sums, and makes zero of every product, that with infinity included."""

    @staticmethod
    def __new__(cls: type, shape: Sequence[int], dtype: Any = None, device: Any = "cpu") -> Any:
        return LazyConstant.__new__(cls, rd.zeros((), dtype=dtype, device=device), shape)

    def __init__(self, shape: Sequence[int], dtype: Any = None, device: Any = "cpu") -> None:
        self.value = rd.zeros((), dtype=dtype, device=device)


def constant(value: rd.Tensor, shape: Sequence[int]) -> Any:
    """The constant of a 0-d value: a ZeroTensor where that is zero."""
    if (
        not value.is_complex() and value == 0 and not rd.signbit(value)
    ):  # minus zero is not the zero that vanishes: 1 / -0 is minus infinity
        return ZeroTensor(shape, value.dtype, value.device)
    return LazyConstant(value, shape)


def shape_only(func: Any, args: Any, kwargs: Any) -> Any:
    """The result of an operator on tensors with shapes, dtypes and no elements: it checks, and computes nothing."""

    def bare(x: rd.Tensor) -> rd.Tensor:
        return rd.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")

    args, kwargs = pytree.tree_map_only(rd.Tensor, bare, (args, kwargs))
    return func(*args, **kwargs)


def constant_rule(func: Any, args: Any, kwargs: Any) -> Any:
    """Constants of constants: pointwise operators, moves of elements, and sums over everything."""
    tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, rd.Tensor)]
    if func._schema.is_mutable or not all(isinstance(x, LazyConstant) for x in tensors):
        return NotImplemented
    if is_elementwise(func):
        # One element, but with as many dimensions as there are: the dtype of a result depends on whether it has any.
        one_args, one_kwargs = pytree.tree_map_only(
            LazyConstant, lambda x: x.value.reshape([1] * x.dim()), (args, kwargs)
        )
        shape = rd.broadcast_shapes(*(x.shape for x in tensors))
        one = func(*one_args, **one_kwargs)
        return pytree.tree_map_only(rd.Tensor, lambda x: constant(x.reshape(()), shape), one)
    if func in MOVES:
        result = shape_only(func, args, kwargs)
        return pytree.tree_map_only(rd.Tensor, lambda x: constant(tensors[0].value, x.shape), result)
    if func is aten.sum.default and not kwargs and tensors[0].is_floating_point():
        return tensors[0].value * tensors[0].numel()
    return NotImplemented


def zero_rule(func: Any, args: Any, kwargs: Any) -> Any:
    """Applies the algebra of zero: `zero + x` is x, `zero * x` and a matrix product with it are zero."""
    if func not in ZERO_RULES or not any(isinstance(x, ZeroTensor) for x in args):
        return NotImplemented
    return ZERO_RULES[func](func, *args, **kwargs)


def vanishes(func: Any, a: Any, b: Any, *, alpha: Any = 1) -> Any:
    if not isinstance(b, rd.Tensor) or func is aten.sub.Tensor and not isinstance(b, ZeroTensor):
        return NotImplemented
    other = a if isinstance(b, ZeroTensor) else b
    factor = alpha if other is b else 1
    result = shape_only(func, (a, b), {})
    if isinstance(other, LazyConstant) or other.shape != result.shape or other.dtype != result.dtype or factor != 1:
        return NotImplemented
    return other.clone()


def annihilates(func: Any, *args: Any, **kwargs: Any) -> Any:
    result = shape_only(func, args, kwargs)
    return ZeroTensor(result.shape, result.dtype, args[0].device)


WRITES = "a constant has no elements to write to: write to x.materialize()"
NOT_SUPPORTED = {
    "#writes (optimizer)": WRITES,
    "as_strided": "a constant has no memory that goes by strides: use x.materialize()",
    "as_strided_scatter/vmap": "a batch of constants is laid out as a whole tensor is",
    "#view/aliasing": "a view of a constant is a constant of its own, since neither can be written",
}
# What ZeroTensor does besides.
ZERO_NOT_SUPPORTED = {
    "rsqrt *cosh *gamma* *digamma *psi *zeta* logit_backward addcdiv hypot *entr *ndtri _weight_norm/autograd": "where "
    "PyTorch multiplies a gradient of zero with infinity, zero is zero",
    "gradient.tensorarray* _weight_norm/values,functionalization,vmap,mixed": "PyTorch has 0 * (1 / 0) there",
}

ZERO_RULES: dict[Any, Callable[..., Any]] = {
    aten.add.Tensor: vanishes,
    aten.sub.Tensor: vanishes,
    aten.mul.Tensor: annihilates,
    aten.mm.default: annihilates,
    aten.bmm.default: annihilates,
}
MOVES: set[Any] = {
    aten.alias.default,
    aten.clone.default,
    aten.detach.default,
    aten.expand.default,
    aten.flip.default,
    aten.permute.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.split.Tensor,
    aten.squeeze.dim,
    aten.t.default,
    aten.transpose.int,
    aten.unbind.int,
    aten.unsqueeze.default,
    aten.view.default,
    aten.amax.default,
    aten.amin.default,
}
