"""Where new tensors go by default: `with device("meta"):` and `set_default_device`, as a function mode.

The mode adds `device=` to calls of functions that make tensors and were given none. A device in a `with` statement
puts such a mode on the stack; the default device is one at the bottom of it.

Source: PyTorch's torch.utils._device. Read next: modes/device_context.py, for what it teaches.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from redispatch.dispatch import STATE, TorchFunctionMode
from redispatch.dispatch.protocols.mode_stack import with_function_modes
from redispatch.dispatch.tensor import CPU, DEVICE_CONTEXT, as_device, device
from redispatch.kernels.declare.public import FUNCTIONS


@functools.cache
def constructors() -> frozenset[Any]:
    """The functions that take a device and make tensors: operators that do, but for `normal`, which PyTorch's list has
    not, and those of any data."""
    library = sys.modules[__name__.partition(".")[0]]
    found = {
        getattr(library, name) if room == "" else function
        for room, functions in FUNCTIONS.items()
        for name, function in functions.items()
        if any(op.text.is_factory for op in getattr(function, "ops", ()))
        and name not in ("normal", "_efficientzerotensor")
    }
    return frozenset(found | {library.as_tensor, library.asarray, library.frombuffer, library.tensor})


class DeviceContext(TorchFunctionMode):
    """Has tensors made on `device` where a call names none.

    In a `with` statement of its own it stands at the bottom of the function modes, in the place of another one if there
    is one: so modes that are entered and left inside may begin and end a default device, too.
    """

    is_default = False  # whether it is that of set_default_device
    former: tuple[Any, ...] = ()

    def __init__(self, device: Any) -> None:
        super().__init__()
        self.device = as_device(device)

    def __enter__(self) -> DeviceContext:
        state = STATE.get()
        self.former = (*self.former, device_modes(state.function_modes))
        STATE.set(with_function_modes(state, (self, *other_modes(state.function_modes))))
        return self

    def __exit__(self, *error: Any) -> None:
        state = STATE.get()
        if not state.function_modes or state.function_modes[0] is not self:
            raise RuntimeError(f"{self!r} is not at the bottom of the function modes any more: {state.function_modes}")
        self.former, before = self.former[:-1], self.former[-1]
        STATE.set(with_function_modes(state, (*before, *other_modes(state.function_modes))))

    def __repr__(self) -> str:
        return f"DeviceContext({str(self.device)!r})"

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in constructors() and kwargs.get("device") is None:
            kwargs = {**kwargs, "device": self.device}
        return func(*args, **kwargs)


def device_modes(modes: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(mode for mode in modes if isinstance(mode, DeviceContext))


def other_modes(modes: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(mode for mode in modes if not isinstance(mode, DeviceContext))


def enter(on: device) -> None:
    """Enters `with device(...):`."""
    state = STATE.get()
    STATE.set(with_function_modes(state, (*state.function_modes, DeviceContext(on))))


def leave(on: device) -> None:
    """And at its end: RuntimeError where another mode has been left on the stack."""
    state = STATE.get()
    *rest, innermost = state.function_modes or [None]
    if not isinstance(innermost, DeviceContext) or innermost.device is not on:
        raise RuntimeError(f"the innermost function mode is {innermost!r}, and not that of {on!r}")
    STATE.set(with_function_modes(state, tuple(rest)))


DEVICE_CONTEXT.fill((enter, leave))


def set_default_device(device: Any) -> None:
    """Has tensors made on this device from now on, in this thread; None takes that back."""
    state = STATE.get()
    others = tuple(mode for mode in state.function_modes if not getattr(mode, "is_default", False))
    if device is not None:
        mode = DeviceContext(device)
        mode.is_default = True
        others = (mode, *others)
    STATE.set(with_function_modes(state, others))


def get_default_device() -> device:
    """Returns the device of tensors that are made without one."""
    for mode in reversed(STATE.get().function_modes):
        if isinstance(mode, DeviceContext):
            return mode.device
    return CPU


def set_device(on: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator for a function in which tensors are made on a device where a call names none."""
    where = as_device(on)

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def on_device(*args: Any, **kwargs: Any) -> Any:
            with where:
                return function(*args, **kwargs)

        return on_device

    return decorated
