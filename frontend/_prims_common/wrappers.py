"""Decorators of functions that are written as operators: results into `out`, operands of one dtype."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import redispatch as rd

from . import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

__all__ = ["elementwise_type_promotion_wrapper", "out_wrapper"]


def _maybe_convert_to_dtype(value: Any, dtype: rd.dtype) -> Any:
    """Returns a tensor, a number, or each of a sequence, in a dtype; None stays None."""
    if isinstance(value, rd.Tensor):
        return value.to(dtype)
    if isinstance(value, list | tuple):
        return tuple(_maybe_convert_to_dtype(one, dtype) for one in value)
    return value if value is None else rd._prims_common.dtype_to_type(dtype)(value)


def elementwise_type_promotion_wrapper(
    *, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND, type_promoting_args: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Has a function get these arguments in the dtype in which it computes, and gives its results their dtype."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def promoted(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            given = {name: bound.arguments[name] for name in type_promoting_args if name in bound.arguments}
            operands = rd.utils._pytree.tree_leaves(list(given.values()))
            computed, final = elementwise_dtypes(*operands, type_promotion_kind=type_promotion_kind)
            bound.arguments.update({name: _maybe_convert_to_dtype(one, computed) for name, one in given.items()})
            return rd.utils._pytree.tree_map_only(
                rd.Tensor, lambda one: one.to(final), function(*bound.args, **bound.kwargs)
            )

        return promoted

    return decorate


def out_wrapper(
    *out_names: str, exact_dtype: bool = False, pass_is_out: bool = False, preserve_memory_format: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gives a function `out`, or an argument for each of several results, into which the results are copied."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def writing(*args: Any, out: Any = None, **kwargs: Any) -> Any:
            if len(out_names) > 1 and out is None and all(name in kwargs for name in out_names):
                out = tuple(kwargs.pop(name) for name in out_names)
            if pass_is_out:
                kwargs["is_out"] = out is not None
            result = function(*args, **kwargs)
            if out is None:
                return result
            several = isinstance(out, tuple | list)
            for to, one in zip(out, result, strict=True) if several else [(out, result)]:
                if exact_dtype and to.dtype is not one.dtype:
                    raise RuntimeError(f"Expected out tensor to have dtype {one.dtype} but got {to.dtype} instead")
                if to.shape != one.shape:
                    to.resize_(one.shape)
                to.copy_(one)
            return out

        return writing

    return decorate
