"""Decorators of functions that are written as operators: results into `out`, operands of one dtype."""

from __future__ import annotations

import functools
import inspect
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch.pytree import tree_leaves, tree_map_only
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.dtypes import dtype as Dtype

from . import ELEMENTWISE_TYPE_PROMOTION_KIND, can_safe_cast_to, dtype_to_type, elementwise_dtypes

__all__ = ["elementwise_type_promotion_wrapper", "out_wrapper"]


def _maybe_convert_to_dtype(value: Any, dtype: Dtype) -> Any:
    """Returns a tensor, a number, or each of a sequence, in a dtype; None stays None."""
    if isinstance(value, Tensor):
        return value.to(dtype)
    if isinstance(value, list | tuple):
        return tuple(_maybe_convert_to_dtype(one, dtype) for one in value)
    return value if value is None else dtype_to_type(dtype)(value)


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
            operands = tree_leaves(list(given.values()))
            computed, final = elementwise_dtypes(*operands, type_promotion_kind=type_promotion_kind)
            bound.arguments.update({name: _maybe_convert_to_dtype(one, computed) for name, one in given.items()})
            return tree_map_only(Tensor, lambda one: one.to(final), function(*bound.args, **bound.kwargs))

        return promoted

    return decorate


def out_wrapper(
    *out_names: str, exact_dtype: bool = False, pass_is_out: bool = False, preserve_memory_format: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gives a function `out`, into which its result is copied; a tuple where these names are of several results.

    Errors: RuntimeError where `out` has a dtype that does not hold the result's.
    """
    several = len(out_names) > 1

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        kind: Any = namedtuple(f"return_types_{function.__name__}", out_names) if several else Tensor
        taken: Any = tuple[(Tensor,) * len(out_names)] if several else Tensor  # type: ignore[misc]  # made when it runs

        @functools.wraps(function)
        def writing(*args: Any, out: Any = None, **kwargs: Any) -> Any:
            if pass_is_out:
                kwargs["is_out"] = out is not None
            result = function(*args, **kwargs)
            if several:
                result = kind(*result)
            if out is None:
                return result
            if several and not isinstance(out, tuple):
                raise AssertionError(f"out must be tuple, got {type(out)}")
            for to, one in zip(out, result, strict=True) if several else [(out, result)]:
                _copy_out(one, to, exact_dtype)
            return kind(*out) if several else out

        parameters = [one for one in signature.parameters.values() if one.name != "is_out"]
        rest = [parameters.pop()] if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD else []
        of_out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=taken)
        writing.__signature__ = inspect.Signature([*parameters, of_out, *rest], return_annotation=kind)  # type: ignore[attr-defined]  # functions have one
        return writing

    return decorate


def _copy_out(result: Tensor, out: Tensor, exact_dtype: bool) -> None:
    """Copies a result into a tensor of the caller, which gets its shape. RuntimeError where its dtype does not fit."""
    if exact_dtype and out.dtype is not result.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {result.dtype} but got {out.dtype} instead")
    if not can_safe_cast_to(cast_from=result.dtype, cast_to=out.dtype):
        raise RuntimeError(
            f"Attempting to cast from {result.dtype} to out tensor with dtype {out.dtype}, "
            "but this can't be cast because it is not safe!"
        )
    if out.shape != result.shape:
        out.resize_(result.shape)
    out.copy_(result)
