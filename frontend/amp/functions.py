"""What an autocast region does, one thing at a time: PyTorch's functions on the state of autocast.

The state is that of a thread or task. Users enter `autocast` (autocast_mode.py); these are for code that builds
regions of its own, or asks in which one it is.
"""

from __future__ import annotations

from typing import Any, overload

from redispatch.dispatch import STATE
from redispatch.dispatch.layers.autocast import KEY_OF_DEVICE, CastCache, autocast_key
from redispatch.dispatch.tensor import dtypes

# device type -> the dtypes that autocast can cast to there, the default one first; users' devices are added
SUPPORTED = {
    "cpu": (dtypes.bfloat16, dtypes.float16),
    "cuda": (dtypes.float16, dtypes.bfloat16),
}


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for this device type."""
    return device_type in KEY_OF_DEVICE


def key_of(device_type: str) -> int:
    """The keyset of a device type's Autocast key. RuntimeError for one without autocast, TypeError for no name."""
    if not isinstance(device_type, str):
        raise TypeError(f"argument 'device_type' (position 1) must be str, not {type(device_type).__name__}")
    if device_type not in KEY_OF_DEVICE:
        raise RuntimeError(
            f"unsupported device type for autocast: {device_type}; it is there for {', '.join(KEY_OF_DEVICE)}"
        )
    return autocast_key(device_type)


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is at work for this device."""
    return not STATE.get().excluded & key_of(device_type)


@overload
def set_autocast_enabled(device_type: bool) -> None: ...
@overload
def set_autocast_enabled(device_type: str, enabled: bool) -> None: ...


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Turns autocast for this device on or off; given nothing but a bool, that for CUDA."""
    if enabled is None and isinstance(device_type, bool):
        set_autocast_enabled("cuda", device_type)
        return
    if not isinstance(device_type, str) or not isinstance(enabled, bool):
        raise TypeError(
            "set_autocast_enabled(): expected (str device_type, bool enabled) or (bool enabled), but got "
            f"({type(device_type).__name__}, {type(enabled).__name__})"
        )
    key, state = key_of(device_type), STATE.get()
    dtypes_ = {**state.autocast_dtypes, device_type: get_autocast_dtype(device_type)}
    excluded = state.excluded & ~key if enabled else state.excluded | key
    STATE.set(state.replace(excluded=excluded, autocast_dtypes=dtypes_))


def get_autocast_dtype(device_type: str) -> Any:
    """What autocast would cast to on this device in the present state."""
    key_of(device_type)
    return STATE.get().autocast_dtypes.get(device_type) or SUPPORTED[device_type][0]


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Sets what autocast casts to on this device. TypeError for what is no dtype."""
    if not isinstance(dtype, dtypes.dtype):
        raise TypeError(
            f"set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not {type(dtype).__name__}"
        )
    key_of(device_type)
    state = STATE.get()
    STATE.set(state.replace(autocast_dtypes={**state.autocast_dtypes, device_type: dtype}))


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are kept."""
    return STATE.get().autocast_keeps


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Has casts of parameters kept, or not."""
    STATE.set(STATE.get().replace(autocast_keeps=bool(enabled)))


def clear_autocast_cache() -> None:
    """Forgets the casts that were kept."""
    cache = STATE.get().autocast_cache
    if cache is not None:
        cache.clear()


def autocast_increment_nesting() -> int:
    """Enters one more region, as far as the cache is concerned: how many there are now."""
    state = STATE.get()
    cache = CastCache() if state.autocast_cache is None else state.autocast_cache
    STATE.set(state.replace(autocast_nesting=state.autocast_nesting + 1, autocast_cache=cache))
    return state.autocast_nesting + 1


def autocast_decrement_nesting() -> int:
    """Leaves one; with the last, what was kept is gone: how many there are now."""
    state = STATE.get()
    left = state.autocast_nesting - 1
    STATE.set(state.replace(autocast_nesting=left, autocast_cache=state.autocast_cache if left else None))
    return left
