"""Whether gradients are recorded: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`.

Each is a region for `with` and a decorator, generators included (dispatch/core/state.py). `inference_mode` goes further
than `no_grad`: what is made in it has no version and can never be recorded, so that calls pass the layers Autograd and
ADInplaceOrView by.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from redispatch.dispatch import STATE, Region, Setting, State, keyset
from redispatch.dispatch.core.keyset import FUNCTIONALITY_MASK
from redispatch.dispatch.layers.autograd import AUTOGRAD
from redispatch.dispatch.protocols.override import ask_function_mode
from redispatch.dispatch.tensor import Tensor

from .accumulate import GRADIENTS_LIE_LIKE_LEAVES

_VIEWS = keyset("ADInplaceOrView")
_AUTOGRAD = AUTOGRAD & FUNCTIONALITY_MASK


def is_grad_enabled() -> bool:
    """Whether operators are recorded now."""
    return STATE.get().grad_enabled


def is_transformed() -> bool:
    """Whether a transform or forward mode is at work: then derivatives may be wanted of tensors that do not say so."""
    state = STATE.get()
    return bool(state.levels) or state.dual_level is not None


def is_inference_mode_enabled() -> bool:
    """Whether new tensors are inference tensors now."""
    return STATE.get().inference


class _Recording(Region):
    """A region in which recording is on or off. What else changes inside and is left so, stays."""

    _enabled: bool
    _entered: list[tuple[State, State]]  # the state before and inside, for each time that the region is active

    def __new__(cls, function: Any = None) -> Any:
        region = object.__new__(cls)
        region._entered = []
        return region if function is None else region(function)  # `@no_grad`, without parentheses

    def __enter__(self) -> None:
        before = STATE.get()
        if before.function_modes:
            _set_grad_enabled(self._enabled)
        inside = before.with_grad(self._enabled)
        self._entered.append((before, inside))
        STATE.set(inside)

    def __exit__(self, *error: Any) -> None:
        before, inside = self._entered.pop()
        state = STATE.get()
        if state.function_modes:
            _set_grad_enabled(before.grad_enabled)
        STATE.set(before if state is inside else state.with_grad(before.grad_enabled))

    def clone(self) -> Any:
        return type(self)()


class no_grad(_Recording):
    """A region in which nothing is recorded: results do not require grad, even where arguments do.

    >>> import redispatch as rd
    >>> x = rd.ones(2, requires_grad=True)
    >>> with rd.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    _enabled = False


class enable_grad(_Recording):
    """A region in which operators are recorded, inside `no_grad`, too."""

    _enabled = True


class set_grad_enabled(Region):
    """Turns recording on or off from here on; as a context manager or decorator, for a block or a function only."""

    def __init__(self, mode: bool) -> None:
        self.prev = is_grad_enabled()
        self.mode = mode
        _set_grad_enabled(mode)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        _set_grad_enabled(self.prev)  # it was meant for the function, not for what follows its definition
        return super().__call__(function)

    def __enter__(self) -> None:
        _set_grad_enabled(self.mode)

    def __exit__(self, *error: Any) -> None:
        _set_grad_enabled(self.prev)

    def clone(self) -> set_grad_enabled:
        return type(self)(self.mode)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"


def _set_grad_enabled(mode: bool) -> None:
    if not isinstance(mode, bool):
        raise TypeError(f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}")
    state = STATE.get()
    if state.function_modes and state.overrides == "all":
        ask_function_mode(_set_grad_enabled, state, (mode,))  # it sees the call; its own state ends with its answer
    STATE.set(state.with_grad(mode))


_set_grad_enabled.__module__ = "redispatch._C"  # where graphs call it


def tell_of_region(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Tells the innermost function mode that sees regions that one is entered or left, as by a call of `function`."""
    mode = next((one for one in reversed(STATE.get().function_modes) if getattr(one, "sees_regions", False)), None)
    if mode is not None:
        mode.__torch_function__(function, (), args, kwargs)


class _Switch(Region):
    """Sets a switch from here on; as a context manager or decorator, for a block or a function only."""

    _value: ContextVar[bool]

    def __init__(self, mode: bool = True) -> None:
        self.prev, self.mode = self._value.get(), mode
        self._value.set(mode)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self._value.set(self.prev)
        return super().__call__(function)

    def __enter__(self) -> None:
        self._value.set(self.mode)

    def __exit__(self, *error: Any) -> None:
        self._value.set(self.prev)

    def clone(self) -> Any:
        return type(self)(self.mode)


class set_multithreading_enabled(_Switch):
    """Whether backward may use threads of its own. The engine runs in the caller's thread either way, as PyTorch's does
    for the CPU; so this is kept, and told to those that ask, and changes nothing."""

    _value = ContextVar("multithreaded backward", default=True)


def is_multithreading_enabled() -> bool:
    """Returns the last value of `set_multithreading_enabled`."""
    return set_multithreading_enabled._value.get()


class enforce_grad_layout_policy(_Switch):
    """Whether a leaf's first gradient must lie in memory as the leaf does; else it may stay as it came."""

    _value = GRADIENTS_LIE_LIKE_LEAVES


class _unsafe_preserve_version_counter(Region):
    """A region whose writes of these tensors are not counted: a saved tensor does not notice them.

    For those who put back the value that a tensor had before backward looks at it.
    """

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
        self.versions = tuple(tensor._version for tensor in self.tensors)

    def __enter__(self) -> None:
        """The versions are known already."""

    def __exit__(self, *error: Any) -> None:
        for tensor, version in zip(self.tensors, self.versions, strict=True):
            tensor._counter[0] = version

    def clone(self) -> _unsafe_preserve_version_counter:
        return type(self)(self.tensors)


class inference_mode(Setting):
    """A region whose new tensors are inference tensors; with `mode=False`, a normal region inside such a one.

    >>> import redispatch as rd
    >>> with rd.inference_mode():
    ...     x = rd.ones(2)
    >>> x.is_inference()
    True
    """

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: Any = True) -> None:
        self.mode = bool(mode)
        super().__init__(
            inference=self.mode,
            grad_enabled=not self.mode,
            included=self._included,
            excluded=self._excluded,
        )

    def __enter__(self) -> None:
        tell_of_region(_enter_inference_mode, self.mode)
        super().__enter__()

    def __exit__(self, *error: Any) -> None:
        tell_of_region(_exit_inference_mode)
        super().__exit__(*error)

    def _included(self, state: State) -> int:
        return state.included & ~_VIEWS if self.mode else state.included | _VIEWS

    def _excluded(self, state: State) -> int:
        return state.excluded | _AUTOGRAD if self.mode else state.excluded & ~_AUTOGRAD

    def clone(self) -> inference_mode:
        return type(self)(self.mode)


def _enter_inference_mode(mode: bool) -> inference_mode:
    """A region that is entered by one call and left by another, as traced programs have it."""
    region = inference_mode(mode)
    region.__enter__()
    return region


def _exit_inference_mode(region: inference_mode) -> None:
    region.__exit__(None, None, None)
