"""`_check` and its kin: what PyTorch's decompositions, and packages, say of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch.symbolic import SymBool, SymInt, symbols_of
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.overridable import overridable_function


def _check_with(error_type: type[Exception], cond: Any, message: Any) -> None:
    """Raises an error unless the condition, a bool, is true. message: a function that returns it, or None."""
    if isinstance(cond, SymBool):
        cond = cond.node.expect_true()  # from now on it is known
    if not isinstance(cond, bool):
        if isinstance(cond, Tensor):
            raise TypeError(
                "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert "
                "that all elements are true."
            )
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        raise error_type(text_of(message))


def text_of(message: Any) -> str:
    """Returns what a message function says."""
    if message is None:
        return "Expected cond to be True, but got False. A check takes a message, too: a function that returns it"
    if not callable(message):
        raise TypeError("message must be a callable")
    return str(message())


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Any = None) -> None:
    """Raises an error unless all elements of a bool tensor are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype.name != "bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, cond.all().item(), message)


def checking(name: str, error_type: type[Exception], check: Callable[..., None]) -> Callable[..., None]:
    """Returns the function of that name, which raises one kind of error."""

    def checked(cond: Any, message: Any = None) -> None:
        check(error_type, cond, message)

    checked.__name__ = checked.__qualname__ = name
    checked.__doc__ = f"Raises {error_type.__name__} unless the condition is true. message: a function that returns it."
    return checked


_check = checking("_check", RuntimeError, _check_with)
_check_index = checking("_check_index", IndexError, _check_with)
_check_value = checking("_check_value", ValueError, _check_with)
_check_type = checking("_check_type", TypeError, _check_with)
_check_not_implemented = checking("_check_not_implemented", NotImplementedError, _check_with)
_check_tensor_all = checking("_check_tensor_all", RuntimeError, _check_tensor_all_with)


def _check_is_size(i: Any, message: Any = None, *, max: Any = None) -> None:
    """Raises RuntimeError unless a number is one that a size may have."""
    _check(i >= 0, message)
    if isinstance(i, SymInt):
        i.node.shape_env.size_like |= {one for one in i.node.expr.free_symbols if one[0] == "u"}
    if max is not None:
        _check(i <= max, message)


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Says between which numbers a number lies. RuntimeError for a plain one that does not."""
    if isinstance(size, SymInt):
        for symbol in symbols_of(size.node.expr):
            if size.node.expr == symbol:
                return size.node.shape_env.constrain_range(symbol, min, max)
        _check_within(size, min, max)
    elif (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")
    return None


def _check_within(size: Any, min: int | None, max: int | None) -> None:
    if min is not None:
        _check(size >= min)
    if max is not None:
        _check(size <= max)


def sym_constrain_range_for_size(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Says between which numbers a size lies. RuntimeError for a plain one that does not, and for a `max` below 3."""
    if max is not None and max <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {max}")
    if isinstance(size, SymInt):
        _check_is_size(size)
    sym_constrain_range(size, min=0 if min is None else min, max=max)


@overridable_function
def _assert(condition: Any, message: Any) -> None:
    """Raises AssertionError unless a condition, which may be a tensor of one element, holds."""
    assert condition, message
