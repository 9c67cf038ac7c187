"""`redispatch.overrides`: PyTorch's public face of `__torch_function__` and function modes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from redispatch.dispatch import (
    STATE,
    OpOverload,
    OpOverloadPacket,
    Region,
    TorchFunctionMode,
    handle_torch_function,
    overrides,
    within,
)
from redispatch.dispatch.override import one_per_type
from redispatch.tensor import Tensor, overridable_property
from redispatch.tensor.tensor import nowrap_functions

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


class BaseTorchFunctionMode(TorchFunctionMode):
    """A function mode that hands every call on."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a function mode is active or one of these arguments overrides."""
    state = STATE.get()
    if state.function_modes and state.overrides != "none":
        return True
    return state.overrides == "all" and any(overrides(value) for value in relevant_args)


def has_torch_function_unary(argument: Any) -> bool:
    return has_torch_function((argument,))


def has_torch_function_variadic(*arguments: Any) -> bool:
    return has_torch_function(arguments)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Makes a Python function overridable; `dispatcher(*args)` gives the arguments that may override it."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        wrapped.__name__, wrapped.__doc__, wrapped.__module__ = function.__name__, function.__doc__, function.__module__
        return wrapped

    return decorate


def is_tensor_like(value: Any) -> bool:
    """Whether `value` is a tensor or its class has a `__torch_function__`."""
    return type(value) is Tensor or hasattr(value, "__torch_function__")


def get_default_nowrap_functions() -> set[Any]:
    """The functions whose results `Tensor.__torch_function__` does not convert to the subclass."""
    return set(nowrap_functions())


def is_tensor_method_or_property(function: Callable[..., Any]) -> bool:
    """Whether `function`, as a handler sees it, is a method or property of Tensor."""
    return _property_name(function) is not None or getattr(function, "__qualname__", "").startswith("Tensor.")


def resolve_name(function: Any) -> str | None:
    """A human's name for what a handler was given: `torch.add`, `torch.Tensor.sum`, `torch.Tensor.shape.__get__`."""
    name = _property_name(function)
    if name is not None:
        return f"torch.Tensor.{name}.{function.__name__}"
    if isinstance(function, OpOverload | OpOverloadPacket):
        return str(function)
    method = next((name for name, value in vars(Tensor).items() if value is function), None)
    if method is not None:
        return f"torch.Tensor.{method}"
    qualname = getattr(function, "__qualname__", None)
    return f"{function.__module__}.{qualname}" if qualname else None


def _property_name(function: Any) -> str | None:
    """The name of the property whose `__get__` or `__set__` this is."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, overridable_property):
        return next((name for name, value in vars(Tensor).items() if value is owner), None)
    return None


class enable_reentrant_dispatch(Region):
    """Inside a `__torch_dispatch__` handler: the state in which the user made the call, so that autograd works.

    Errors: RuntimeError outside of a handler.
    """

    def __enter__(self) -> None:
        entry = STATE.get().entry
        if entry is None:
            raise RuntimeError("Accessing torch dispatch state outside of '__torch_dispatch__' is not allowed.")
        self._region = within(entry)
        self._region.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._region.__exit__(*error)

    def clone(self) -> enable_reentrant_dispatch:
        return enable_reentrant_dispatch()


def _get_overloaded_args(relevant_args: Iterable[Any]) -> list[Any]:
    """One argument for each class that overrides, in the order in which they are asked."""
    return one_per_type(value for value in relevant_args if overrides(value))


def _get_current_function_mode_stack() -> list[Any]:
    return list(STATE.get().function_modes)


def _get_current_function_mode() -> Any:
    modes = STATE.get().function_modes
    return modes[-1] if modes else None
