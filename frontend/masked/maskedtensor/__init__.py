"""PyTorch's MaskedTensor: that of `subclasses.masked`, whose masks must match, and which may be a leaf of the graph.

    x = masked_tensor(data, mask, requires_grad=True)
    x.sum().backward()            # x.grad is a MaskedTensor with the same mask

What an operator does to values and masks is said there. Here is what PyTorch has in another way: its constructors and
their errors, reductions that go by `redispatch.masked` and so have their gradients, `where`, and the tables of names.
The modules `core`, `creation`, `unary`, `binary`, `reductions` and `passthrough` are this one.
"""

from __future__ import annotations

import warnings
from typing import Any

import redispatch as rd
from redispatch.masked import _ops as masked_ops
from redispatch.subclasses import masked as rules
from redispatch.subclasses.schemas import is_elementwise, overloads
from redispatch.utils import _pytree as pytree

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]


class MaskedTensor(rules.MaskedTensor):
    """The values `data`, of which those count where `mask` is True.

    Errors: TypeError and ValueError where the two do not look alike.
    """

    @staticmethod
    def __new__(cls: type, data: Any, mask: Any, requires_grad: bool = False) -> Any:
        for name, value in (("data", data), ("mask", mask)):
            if is_masked_tensor(value) or not isinstance(value, rd.Tensor):
                raise TypeError(f"{name} must be a Tensor")
        if data.layout != mask.layout:
            raise TypeError("data and mask must have the same layout.")
        if data.dim() != mask.dim():
            raise ValueError("data.dim() must equal mask.dim()")
        if data.size() != mask.size():
            raise ValueError("data.size() must equal mask.size()")
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you "
                "can use data.detach().clone()",
                UserWarning,
                stacklevel=2,
            )
        return rd.Tensor._make_wrapper_subclass(
            cls,
            data.size(),
            strides=data.stride(),
            storage_offset=data.storage_offset(),
            dtype=data.dtype,
            device=data.device,
            requires_grad=requires_grad,
        )

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        super().__init__(data.clone(), mask.clone())  # what is later written into the user's is not seen

    def get_data(self) -> rd.Tensor:
        """Returns the values, those that do not count among them. Gradients pass where they do."""
        return _Data.apply(self)

    def get_mask(self) -> rd.Tensor:
        return self.mask

    @property
    def _masked_data(self) -> rd.Tensor:
        return self.data_

    @property
    def _masked_mask(self) -> rd.Tensor:
        return self.mask

    def is_sparse_coo(self) -> bool:
        """False: values lie in memory one beside the other."""
        return False

    is_sparse_csr = is_sparse_coo

    def to_tensor(self, value: float = 0) -> rd.Tensor:
        """The values as a plain tensor, with `value` where they do not count."""
        return self.get_data().masked_fill(~self.mask, value)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if func in REDUCTIONS and isinstance(args[0], MaskedTensor):
            return reduced(REDUCTIONS[func], *args, **kwargs)
        if func in (rd.where, rd.Tensor.where):
            condition, first, second = args if name == "where" and func is rd.where else (args[1], args[0], args[2])
            return _Where.apply(condition, first, second)
        with rd._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [one for one in pytree.tree_leaves((args, kwargs)) if isinstance(one, MaskedTensor)]
        if is_elementwise(func) and not all(rd.equal(one.mask, given[0].mask) for one in given):
            raise ValueError("Input masks must match: give both the same mask, a.get_mask() & b.get_mask().")
        if func in ORDERED:
            return NotImplemented
        if func in FOLDED:
            return folded(func, args, kwargs or {})
        if func is rd.ops.aten._is_any_true.default:
            return any_true(args[0])
        try:
            result = super().__torch_dispatch__(func, types, args, kwargs)
        except NotImplementedError:
            warnings.warn(
                f"{func.__name__} is not implemented in __torch_dispatch__ for MaskedTensor.",
                UserWarning,
                stacklevel=2,
            )
            return NotImplemented
        return pytree.tree_map_only(rules.MaskedTensor, dressed, result)


def dressed(result: Any) -> MaskedTensor:
    """A result of the other class's rules in this class."""
    return result if isinstance(result, MaskedTensor) else MaskedTensor(result.data_, result.mask)


def is_masked_tensor(obj: Any, /) -> bool:
    return isinstance(obj, MaskedTensor)


# Constructors, and the way into a graph and out of it ----------------------------------------------------------------


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """Returns a leaf of these values and this mask."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> Any:
    """Returns the values with a mask; gradients pass to `data`, as MaskedTensors."""
    return _Wrapped.apply(data, mask)


class _Wrapped(rd.autograd.Function):
    @staticmethod
    def forward(ctx: Any, data: Any, mask: Any) -> Any:
        return MaskedTensor(data.detach(), mask)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad, None


class _Result(_Wrapped):
    """The same for what was worked out of plain values, whose formulas know of no masks."""

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return plain(grad), None


class _Data(rd.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mask = x.mask
        return x.data_.detach()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad if is_masked_tensor(grad) else MaskedTensor(grad, ctx.mask)


class _Where(rd.autograd.Function):
    @staticmethod
    def forward(ctx: Any, condition: Any, first: Any, second: Any) -> Any:
        ctx.condition, ctx.masks = condition, [rules.mask_of(one) for one in (first, second)]
        return MaskedTensor(rd.where(condition, plain(first), plain(second)), rd.where(condition, *ctx.masks))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        values = plain(grad)
        chosen = rd.where(ctx.condition, values, 0), rd.where(ctx.condition, 0, values)
        return None, *(MaskedTensor(one, mask) for one, mask in zip(chosen, ctx.masks, strict=True))


def plain(value: Any) -> Any:
    return value.data_ if is_masked_tensor(value) else value


# Rules that are not those of the other class --------------------------------------------------------------------------


def reduced(name: str, x: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
    """Reduces the elements that count; a result counts where any of its elements does."""
    if name == "norm" and not args and "ord" not in kwargs:
        args = (kwargs.pop("p", 2.0),)
    order = ["ord", "dim", "keepdim"] if name == "norm" else ["dim", "keepdim"]
    given = {**dict(zip(order, args, strict=False)), **kwargs}
    dim, keepdim = given.get("dim"), bool(given.get("keepdim"))
    some = rd.any(x.mask) if dim is None else rd.any(x.mask, dim, keepdim)
    data = x.get_data()
    if name == "all":
        filled = data.masked_fill(~x.mask, True)
        return _Result.apply(rd.all(filled) if dim is None else rd.all(filled, dim, keepdim), some)
    return _Result.apply(getattr(masked_ops, name)(data, **given, mask=x.mask), some)


def folded(func: Any, args: Any, kwargs: Any) -> Any:
    """Runs on values and masks; what several elements come to counts where any of them does."""
    masks = pytree.tree_map_only(rd.Tensor, lambda one: rules.mask_of(one).to(rd.float32), args)
    return MaskedTensor(func(*rules.parts(args, "data_"), **kwargs), func(*masks, **kwargs) > 0)


def any_true(x: MaskedTensor) -> MaskedTensor:
    """Whether some element that counts is True. ValueError for another dtype than bool."""
    if x.dtype != rd.bool:
        raise ValueError("__torch_dispatch__, aten._is_any_true: expected a boolean tensor")
    return MaskedTensor((x.data_ & x.mask).any(), rd.tensor(True))


ORDERED = {*overloads("max max.dim min min.dim")}
FOLDED = {*overloads("unfold_backward im2col col2im")}
REDUCE_NAMES = "sum mean amin amax argmin argmax prod all norm var std".split()
REDUCTIONS = {
    getattr(place, name): name
    for name in REDUCE_NAMES
    for place in (rd, rd.Tensor, rd.ops.aten)
    if hasattr(place, name)
}

# Names as tables -----------------------------------------------------------------------------------------------------

UNARY_NAMES = """
    abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh bitwise_not ceil
    clamp clip conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10
    log1p log2 logit i0 isnan nan_to_num neg negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn
    signbit sin sinc sinh sqrt square tan tanh trunc
""".split()
BINARY_NAMES = """
    add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide floor_divide
    fmod logaddexp logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne le ge greater
    greater_equal gt less_equal lt less maximum minimum fmax fmin not_equal
""".split()


def _in_place(names: list[str]) -> list[str]:
    return [f"{name}_" for name in names if hasattr(rd.ops.aten, f"{name}_")]


INPLACE_UNARY_NAMES, INPLACE_BINARY_NAMES = _in_place(UNARY_NAMES), _in_place(BINARY_NAMES)
NATIVE_UNARY_FNS = [getattr(rd.ops.aten, name) for name in UNARY_NAMES]
NATIVE_INPLACE_UNARY_FNS = [getattr(rd.ops.aten, name) for name in INPLACE_UNARY_NAMES]
NATIVE_BINARY_FNS = [getattr(rd.ops.aten, name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [getattr(rd.ops.aten, name) for name in INPLACE_BINARY_NAMES]
PASSTHROUGH_FNS = [op.overloadpacket for op, rule in rules.RULES.items() if rule is rules.moved]


def _tensors_match(a: Any, b: Any, exact: bool = True, rtol: float = 1e-05, atol: float = 1e-08) -> bool:
    """Whether two plain tensors have the same values, or nearly. ValueError where they do not look alike."""
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout != b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    if not exact:
        b = b.type(a.dtype)
    return a.dim() == b.dim() and (rd.equal(a, b) if exact else rd.allclose(a, b, rtol, atol, equal_nan=True))


def _masks_match(a: Any, b: Any) -> bool:
    """Whether two have the same mask; a plain tensor has any."""
    return not (is_masked_tensor(a) and is_masked_tensor(b)) or _tensors_match(a.mask, b.mask)
