"""PyTorch's checks, which raise the error that their names say: `_check(x.dim() == 2, lambda: f"got {x.dim()}")`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes

Message = Callable[[], Any] | None


def raised(error: type[Exception], message: Message, usual: str) -> Exception:
    """Returns the error, with what `message()` says. TypeError for a message that is no function."""
    if message is None:
        return error(usual)
    if not callable(message):
        return TypeError("message must be a callable")
    return error(str(message()))


def checking(name: str, error: type[Exception]) -> Callable[..., None]:
    """Returns the check that raises this error."""

    def check(cond: Any, message: Message = None) -> None:
        if not isinstance(cond, bool):
            raise TypeError(f"cond must be a bool, but got {type(cond)}")
        if not cond:
            raise raised(error, message, f"Expected cond to be True, but got False. {name} takes a message: a function")

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raises {error.__name__} with what `message()` says, unless the condition holds."
    return check


def _check_with(error_type: type[Exception], cond: Any, message: Message) -> None:
    """Raises an error of this type with what `message()` says, unless the condition holds."""
    checking("_check_with", error_type)(cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """Raises an error of this type unless every element of a bool tensor is True."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not dtypes.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, cond.all().item(), message)


def _check_tensor_all(cond: Any, message: Message = None) -> None:
    """Raises RuntimeError unless every element of a bool tensor is True."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_is_size(i: Any, message: Message = None, *, max: int | None = None) -> None:
    """Raises RuntimeError for a number that is no size: a negative one, or one above `max`."""
    checking("_check", RuntimeError)(i >= 0 and (max is None or i <= max), message)


def _assert(condition: Any, message: Any) -> None:
    """Raises AssertionError unless a condition, which may be a tensor of one element, holds."""
    assert condition, message


_check = checking("_check", RuntimeError)
_check_index = checking("_check_index", IndexError)
_check_not_implemented = checking("_check_not_implemented", NotImplementedError)
_check_type = checking("_check_type", TypeError)
_check_value = checking("_check_value", ValueError)
