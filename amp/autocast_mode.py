"""autocast: a region in which operators run in the dtype that suits them.

    with redispatch.autocast("cpu", dtype=redispatch.bfloat16):
        loss = model(x)

Entering un-excludes the device's Autocast key and sets its dtype; what is cast, and how, is the layer's business
(dispatch/layers/autocast.py). The casts of parameters are kept for the outermost region and dropped at its end.
"""

from __future__ import annotations

import warnings
from typing import Any

from redispatch.dispatch import STATE, Region, keyset
from redispatch.dispatch.layers.autocast import KEY_OF_DEVICE, CastCache
from redispatch.tensor import dtypes

# device type -> the dtypes that autocast can cast to there, the default one first; users' devices are added
SUPPORTED = {
    "cpu": (dtypes.bfloat16, dtypes.float16),
    "cuda": (dtypes.float16, dtypes.bfloat16),
}


class autocast(Region):
    """`autocast(device_type, dtype=None, enabled=True, cache_enabled=None)`, a context manager and a decorator.

    A dtype that the device does not support warns and disables the region, as in PyTorch.
    Errors: RuntimeError for a device type without autocast.
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in KEY_OF_DEVICE:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device_type = device_type
        self.dtype = dtype or get_autocast_dtype(device_type)
        self.enabled = enabled
        self.cache_enabled = True if cache_enabled is None else cache_enabled
        if enabled and self.dtype not in SUPPORTED[device_type]:
            supported = ", ".join(map(str, SUPPORTED[device_type]))
            warnings.warn(
                f"In {device_type.upper()} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{device_type.upper()} Autocast only supports dtypes of {supported} currently.",
                UserWarning,
                stacklevel=2,
            )
            self.enabled = False
        self._former: list[tuple[Any, ...]] = []

    def __enter__(self) -> autocast:
        state = STATE.get()
        key = autocast_bit(self.device_type)
        self._former.append((state.excluded & key, state.autocast_dtypes, state.autocast_cache))
        cache = state.autocast_cache or CastCache()
        STATE.set(
            state.replace(
                excluded=state.excluded & ~key if self.enabled else state.excluded | key,
                autocast_dtypes=tuple({**dict(state.autocast_dtypes), self.device_type: self.dtype}.items()),
                autocast_cache=cache if self.cache_enabled else None,
            )
        )
        return self

    def __exit__(self, *error: Any) -> None:
        state = STATE.get()
        key = autocast_bit(self.device_type)
        excluded, dtypes_, cache = self._former.pop()
        STATE.set(
            state.replace(excluded=state.excluded & ~key | excluded, autocast_dtypes=dtypes_, autocast_cache=cache)
        )

    def clone(self) -> autocast:
        return autocast(self.device_type, self.dtype, self.enabled, self.cache_enabled)


def autocast_bit(device_type: str) -> int:
    """The keyset of this device's Autocast key."""
    return keyset(KEY_OF_DEVICE[device_type])


def get_autocast_dtype(device_type: str) -> Any:
    """What autocast would cast to on this device in the present state."""
    return dict(STATE.get().autocast_dtypes).get(device_type) or SUPPORTED[device_type][0]


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether an autocast region for this device is active."""
    return not STATE.get().excluded & autocast_bit(device_type)


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for this device type."""
    return device_type in KEY_OF_DEVICE
