"""Where new tensors go by default: `with device("meta"):` and `set_default_device`, as a function mode.

The mode adds `device=` to calls of functions that make tensors and were given none. A device in a `with` statement
puts such a mode on the stack; the default device is one at the bottom of it.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from redispatch.dispatch import STATE, TorchFunctionMode
from redispatch.dispatch.mode_stack import with_function_modes
from redispatch.tensor import CPU, DEVICE_CONTEXT, Tensor, as_device, device

CONSTRUCTORS = """
    arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided eye frombuffer full
    hamming_window hann_window kaiser_window linspace logspace normal ones rand randint randn randperm range
    scalar_tensor tensor tril_indices triu_indices zeros fft.fftfreq fft.rfftfreq
""".split()


@functools.cache
def constructors() -> frozenset[Any]:
    """The functions that take a device and make tensors, as far as the library has them."""
    library = sys.modules[__name__.partition(".")[0]]
    found = set()
    for name in CONSTRUCTORS:
        value: Any = library
        for part in name.split("."):
            value = getattr(value, part, None)
        found.add(value)
    return frozenset(found - {None})


class DeviceContext(TorchFunctionMode):
    """Has tensors made on `device` where a call names none."""

    def __init__(self, device: Any) -> None:
        super().__init__()
        self.device = as_device(device)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in constructors() and kwargs.get("device") is None and not (args and isinstance(args[0], Tensor)):
            kwargs = {**kwargs, "device": self.device}
        return func(*args, **kwargs)


def enter(on: device) -> None:
    """What `with device(...):` does at its start."""
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
        mode.is_default = True  # type: ignore[attr-defined]
        others = (mode, *others)
    STATE.set(with_function_modes(state, others))


def get_default_device() -> device:
    """Where tensors are made that are not told where."""
    for mode in reversed(STATE.get().function_modes):
        if isinstance(mode, DeviceContext):
            return mode.device
    return CPU
