"""Reductions, scans and normalisations of the elements where a mask is True.

An element that is masked out takes no part: before the ordinary function runs, its identity (0 for a sum, -inf for a
maximum) stands in its place. What has no elements left is that identity, or NaN where there is none, as for a mean.
All of it is written in public functions, so gradients and transforms follow.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import redispatch as rd
from redispatch import Tensor
from redispatch.nn import functional as F


def _lowest(input: Tensor) -> Any:
    return -rd.inf if input.is_floating_point() else _bounds(input) and _bounds(input).min


def _highest(input: Tensor) -> Any:
    return rd.inf if input.is_floating_point() else _bounds(input) and _bounds(input).max


def _bounds(input: Tensor) -> Any:
    """The limits of an integer dtype; None, which is no identity, for complex and bool."""
    return None if input.is_complex() or input.dtype is rd.bool else rd.iinfo(input.dtype)


# Which number changes nothing -> the reductions of which that is said
_IDENTITIES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(["sum", "cumsum"], lambda input: 0),
    **dict.fromkeys(["prod", "cumprod"], lambda input: 1),
    **dict.fromkeys(["amax", "argmax", "logaddexp"], _lowest),
    **dict.fromkeys(["amin", "argmin"], _highest),
    "logsumexp": lambda input: complex(-rd.inf) if input.is_complex() else _lowest(input),
    "norm": lambda input, ord=2: rd.inf if ord == -rd.inf else 0,
    "median": lambda input: rd.nan,
}


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """Returns the element that changes nothing in a reduction, as a tensor; None for those that have none.

    Errors: NotImplementedError where the dtype has no such element.
    """
    if op_name in ("mean", "var", "std"):
        return None
    value = _IDENTITIES[op_name](input, *args) if op_name in _IDENTITIES else None
    if value is None:
        raise NotImplementedError(f"identity of {op_name} on {input.dtype} input")
    dtype = rd.float32 if op_name == "median" and not input.is_floating_point() else input.dtype
    return rd.tensor(value, dtype=dtype, device=input.device)


def _canonical_dim(dim: Any, ndim: int) -> tuple[int, ...]:
    """Returns the dimensions counted from the front and in order; None and () are all of them."""
    if dim is None or isinstance(dim, Sequence) and not dim:
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    dims: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in dims:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        dims.append(d % ndim)
    return tuple(sorted(dims))


def _input_mask(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Returns the mask in the shape of the input.

    Errors: ValueError where there is none, IndexError where it has more dimensions than the input.
    """
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.shape != input.shape:
        if mask.ndim > input.ndim:
            raise IndexError(
                "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
            )
        mask = rd.broadcast_to(mask.clone(), input.shape)
    return mask.to(dtype=rd.bool)


_KEEP_SHAPE = ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod")


def _output_mask(op: Callable[..., Tensor], input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Returns where the result of a masked function has seen an element."""
    name = op.__name__ if callable(op) else type(op).__name__
    mask = _input_mask(input, *args, **kwargs)
    if name in _KEEP_SHAPE:
        return mask
    if op not in _REDUCTIONS:
        raise ValueError(f"_output_mask expected masked operation (got {name})")
    places = args[1:] if op is norm else args
    dims = _canonical_dim(places[0] if places else kwargs.get("dim"), input.ndim)
    for d in reversed(dims):
        mask = mask.any(dim=d, keepdim=builtins.bool(kwargs.get("keepdim", False)))
    return mask


def _combine_input_and_mask(op: Callable[..., Tensor], input: Tensor, mask: Tensor | None, *args: Any) -> Tensor:
    """Returns the input with the identity of the function `op` where the mask is False."""
    if mask is None:
        return input
    chosen = _input_mask(input, mask=mask)
    fill = _reduction_identity(op.__name__, input, *args)
    assert fill is not None, "reductions without an identity count their elements"
    return rd.where(chosen, input, fill)


def _at_least_int64(input: Tensor, dtype: Any) -> Any:
    """The dtype of sums and products."""
    small = (rd.uint8, rd.bool, rd.int8, rd.int16, rd.int32)
    return dtype if dtype is not None else rd.int64 if input.dtype in small else input.dtype


def sum(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the sum of the elements that the mask chooses, 0 of none."""
    dims = _canonical_dim(dim, input.ndim)
    x = _combine_input_and_mask(sum, input, mask)
    return rd.sum(x, dims, builtins.bool(keepdim), dtype=_at_least_int64(input, dtype))


def prod(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the product of the elements that the mask chooses, 1 of none."""
    dims = _canonical_dim(dim, input.ndim)
    result = _combine_input_and_mask(prod, input, mask).to(dtype=_at_least_int64(input, dtype))
    for d in reversed(dims):
        result = result.prod(dim=d, keepdim=builtins.bool(keepdim))
    return result


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Returns the sums up to each element, to which those that are masked out add nothing."""
    return _scanned(rd.cumsum, sum, input, dim, dtype, mask)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Returns the products up to each element, of which those that are masked out are 1."""
    return _scanned(rd.cumprod, prod, input, dim, dtype, mask)


def _scanned(scan: Any, kind: Any, input: Tensor, dim: int, dtype: Any, mask: Tensor | None) -> Tensor:
    dtype = input.dtype if dtype is None else dtype
    dim = _canonical_dim(dim, input.ndim)[0]
    return scan(_combine_input_and_mask(kind, input, mask), dim, dtype=dtype).to(dtype=dtype)


def amax(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the greatest of the elements that the mask chooses, the least number of all of none."""
    x = _combine_input_and_mask(amax, input, mask)
    return rd.amax(x, _canonical_dim(dim, x.ndim), builtins.bool(keepdim)).to(dtype=dtype or input.dtype)


def amin(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the least of the elements that the mask chooses, the greatest number of all of none."""
    x = _combine_input_and_mask(amin, input, mask)
    return rd.amin(x, _canonical_dim(dim, x.ndim), builtins.bool(keepdim)).to(dtype=dtype or input.dtype)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns where the greatest of the elements is that the mask chooses, in the dtype of the input."""
    x = _combine_input_and_mask(argmax, input, mask)
    return rd.argmax(x, dim, builtins.bool(keepdim)).to(dtype=dtype or input.dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns where the least of the elements is that the mask chooses, in the dtype of the input."""
    x = _combine_input_and_mask(argmin, input, mask)
    return rd.argmin(x, dim, builtins.bool(keepdim)).to(dtype=dtype or input.dtype)


def _counted(input: Tensor, dim: Any, keepdim: Any, mask: Tensor | None) -> Tensor:
    """Returns how many elements the mask chooses."""
    if mask is None:
        return sum(rd.ones(input.shape, dtype=rd.int64, device=input.device), dim, keepdim=keepdim)
    return mask.sum(dim=dim, keepdim=builtins.bool(keepdim))


def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the mean of the elements that the mask chooses, NaN of none.

    Errors: ValueError where the dtype of the result is neither floating nor complex.
    """
    source = "Input" if dtype is None else "Optional"
    dtype = input.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {dtype}"
        )
    mask = None if mask is None else _input_mask(input, mask=mask)
    count = _counted(input, dim, keepdim, mask)
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / count


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the median of the elements that the mask chooses, NaN of none.

    Errors: ValueError where it would be NaN and the dtype is not floating.
    """
    dtype = input.dtype if dtype is None else dtype
    dim = _canonical_dim(dim, input.ndim)[0]
    is_float = input.is_floating_point()
    x = input if is_float else input.to(dtype=rd.float32)
    result = rd.nanmedian(_combine_input_and_mask(median, x, mask), dim, keepdim).values
    if is_float:
        return result
    if rd.isnan(result).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return result.to(dtype=dtype)


def logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the logarithm of the sum of exponentials of the elements that the mask chooses."""
    dims = _canonical_dim(dim, input.ndim)
    x = _combine_input_and_mask(logsumexp, input, mask)
    return rd.logsumexp(x, dims, keepdim=keepdim).to(dtype=dtype or input.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Returns log(exp(input) + exp(other)), of which either may be masked out."""
    x, y = _combine_input_and_mask(logaddexp, input, input_mask), _combine_input_and_mask(logaddexp, other, other_mask)
    return rd.logaddexp(x, y).to(dtype=dtype or input.dtype)


def norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the vector norm of the elements that the mask chooses."""
    x = _combine_input_and_mask(norm, input, mask, ord)
    dims = _canonical_dim(dim, input.ndim)
    return rd.linalg.vector_norm(x, ord, dims, builtins.bool(keepdim), dtype=dtype or input.dtype)


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the variance of the elements that the mask chooses; `correction`, 1 if unbiased, leaves the count."""
    assert unbiased is None or correction is None, "Only one of unbiased and correction may be given"
    less = 1.0 if unbiased is None or unbiased else 0.0
    less = less if correction is None else float(correction)
    floats = input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else rd.float32
    dtype = floats if dtype is None else dtype
    wide = dtype if dtype.is_floating_point or dtype.is_complex else rd.float32
    mask = None if mask is None else _input_mask(input, mask=mask)
    count = _counted(input, dim, True, mask)
    centred = input - sum(input, dim, keepdim=True, dtype=dtype, mask=mask) / count
    total = sum(centred * centred.conj(), dim, keepdim=keepdim, dtype=wide, mask=mask)
    count = count if keepdim else count.reshape(total.shape)
    if less:
        count = count.to(wide.to_real()) - less
        count = rd.maximum(count, count.new_zeros([]))
    return (total / count).to(dtype=dtype)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: int | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the root of `var`."""
    return rd.sqrt(var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask))


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Returns the softmax of the elements that the mask chooses; the others are 0, or NaN where there are no others."""
    return _normalized(F.softmax, amax, input, dim, dtype, mask)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Returns the logarithm of `softmax`."""
    return _normalized(F.log_softmax, amax, input, dim, dtype, mask)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Returns the softmax of the negative."""
    return _normalized(F.softmin, amin, input, dim, dtype, mask)


def _normalized(function: Any, kind: Any, input: Tensor, dim: int, dtype: Any, mask: Tensor | None) -> Tensor:
    dim = _canonical_dim(dim, input.ndim)[0]
    return function(_combine_input_and_mask(kind, input, mask), dim, dtype=dtype or input.dtype)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the elements that the mask chooses over their norm, which is at least `eps`; the others are 0."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    x = _combine_input_and_mask(sum, input, mask)
    return x / rd.maximum(size, size.new_full([], eps))


_REDUCTIONS = (sum, prod, amax, amin, argmax, argmin, mean, median, norm, var, std, logsumexp)
