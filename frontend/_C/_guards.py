"""PyTorch's guards: regions that begin when they are made, and end with their block or with the last reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import (
    STATE,
    DispatchKey,
    DispatchKeySet,
    Setting,
    as_keyset,
    exclude,
    force,
    has,
    include,
    keyset,
    layers,
)
from redispatch.dispatch.autograd import inference_mode
from redispatch.dispatch.core.state import AUTOCAST_KEYS, PRE_DISPATCH, TRANSFORM_FRONT
from redispatch.dispatch.regions import Region


class Guard:
    """A region that is in force as soon as the guard is made; a subclass says which."""

    region: Callable[..., Region]
    _region: Region | None = None

    def __init__(self, *given: Any) -> None:
        region = type(self).region(*given)
        region.__enter__()
        self._region = region

    def __enter__(self) -> None:
        """Does nothing: the region was entered when the guard was made."""

    def __exit__(self, *error: Any) -> None:
        region, self._region = self._region, None
        if region is not None:
            region.__exit__(*(error or (None, None, None)))

    def __del__(self) -> None:
        self.__exit__()


def guard(region: Callable[..., Region]) -> type[Guard]:
    """Makes the class of guards of a region."""
    return type(
        region.__name__,
        (Guard,),
        {"region": staticmethod(region), "__doc__": region.__doc__, "__module__": "redispatch._C"},
    )


@guard
def ExcludeDispatchKeyGuard(keys: Any) -> Region:
    """A region in which no call stops at `keys`."""
    return exclude(as_keyset(keys))


@guard
def _IncludeDispatchKeyGuard(keys: Any) -> Region:
    """A region in which `keys` belong to every call."""
    return include(as_keyset(keys))


@guard
def _SetExcludeDispatchKeyGuard(key: DispatchKey, excluded: bool) -> Region:
    """A region in which calls stop at a key or do not, whatever holds around it."""
    bits = as_keyset(key)
    return exclude(bits) if excluded else Setting(excluded=lambda state: state.excluded & ~bits)


@guard
def _ForceDispatchKeyGuard(included: DispatchKeySet, excluded: DispatchKeySet) -> Region:
    """A region with exactly these keysets included and excluded."""
    return force(included, excluded)


@guard
def _PreserveDispatchKeyGuard() -> Region:
    """A region after which the included and excluded keys are what they were before."""
    return Setting(included=lambda state: state.included, excluded=lambda state: state.excluded)


@guard
def _AutoDispatchBelowAutograd() -> Region:
    """A region in which nothing is recorded, though versions are counted."""
    return exclude(layers.autograd.AUTOGRAD)


@guard
def _AutoDispatchBelowADInplaceOrView() -> Region:
    """A region in which nothing is recorded, and neither writes nor views are noticed."""
    return exclude(layers.autograd.AUTOGRAD | keyset("ADInplaceOrView"))


@guard
def _DisableTorchDispatch() -> Region:
    """A region in which neither dispatch modes nor subclasses take calls."""
    return exclude(keyset("Python", "PythonTLSSnapshot", "PreDispatch"))


@guard
def _EnableTorchFunction() -> Region:
    """A region in which modes and classes override, whatever the state around it says."""
    return Setting(overrides="all")


@guard
def _DisableAutocast() -> Region:
    """A region in which autocast casts nothing."""
    return exclude(AUTOCAST_KEYS)


@guard
def _DisableFuncTorch() -> Region:
    """A region in which no transform takes a call."""
    return exclude(TRANSFORM_FRONT)


@guard
def _EnablePreDispatch() -> Region:
    """A region in which calls stop at the key PreDispatch."""
    return include(PRE_DISPATCH)


@guard
def _EnablePythonDispatcher() -> Region:
    """A region in which kernels written in Python are preferred. Here all are: calls note the key, and go on."""
    return include(keyset("PythonDispatcher"))


@guard
def _DisablePythonDispatcher() -> Region:
    """A region in which they are not, and calls do not note the key."""
    return Setting(included=lambda state: state.included & ~keyset("PythonDispatcher"))


@guard
def _InferenceMode(enabled: bool) -> Region:
    """A region of `inference_mode`."""
    return inference_mode(enabled)


def _is_python_dispatcher_enabled() -> bool:
    """Returns whether calls note the key PythonDispatcher."""
    return has(STATE.get().included, DispatchKey.PythonDispatcher)
