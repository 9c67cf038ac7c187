"""Switches that programs set and ask for: determinism, precision of products, threads between operators, warnings.

The kernels here give the same result each time, multiply in full precision and run one operator after another. So
nothing depends on these; they are kept, per thread, for whoever asks.
"""

from __future__ import annotations

import warnings
from typing import Any

from redispatch.dispatch.errors import WARNED
from redispatch.dispatch.tensor import Tensor, UntypedStorage, set_default_dtype
from redispatch.kernels.ops import legacy, storages
from redispatch.kernels.ops.uninitialized import begin
from redispatch.kernels.settings import change, settings

DEBUG_MODES = ("default", "warn", "error")
PRECISIONS = ("highest", "high", "medium")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Asks for kernels that give the same result each time. Those here do."""
    _set_deterministic_algorithms(mode, warn_only=warn_only)


def _set_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    for where, flag in (("mode' (position 1)", mode), ("warn_only'", warn_only)):
        if not isinstance(flag, bool):
            kind = type(flag).__name__
            raise TypeError(f"_set_deterministic_algorithms(): argument '{where} must be bool, not {kind}")
    _ask_for((1 if warn_only else 2) if mode else -1 if warn_only else 0)


def _ask_for(level: int) -> None:
    if level > 0:
        begin()
    change(deterministic=level)


def are_deterministic_algorithms_enabled() -> bool:
    return settings().deterministic > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    return abs(settings().deterministic) == 1


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Sets the mode by number or name: 0 "default", 1 "warn", 2 "error"."""
    if not isinstance(debug_mode, int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in DEBUG_MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = DEBUG_MODES.index(debug_mode)
    if not 0 <= debug_mode <= 2:
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    _ask_for(debug_mode)


def get_deterministic_debug_mode() -> int:
    return max(settings().deterministic, 0)


def set_float32_matmul_precision(precision: str) -> None:
    """Sets how exactly float32 products are computed: "highest", "high" or "medium". They are exact float32, but
    by cuBLAS on a card, where anything but "highest" lets factors be rounded to TF32."""
    if precision not in PRECISIONS:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call has "
            "no effect.",
            UserWarning,
            stacklevel=2,
        )
        return
    change(precision=precision)


def get_float32_matmul_precision() -> str:
    return settings().precision


def set_num_interop_threads(threads: int) -> None:
    """Sets how many operators may run at once: one does."""
    if threads <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    change(interop_threads=threads)


def get_num_interop_threads() -> int:
    return settings().interop_threads


def set_warn_always(b: bool) -> None:
    """Sets whether what warns once per process warns each time; then Python's own filters decide."""
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    change(warn_always=b)
    WARNED.always = b


def is_warn_always_enabled() -> bool:
    return settings().warn_always


def set_flush_denormal(mode: bool) -> bool:
    """Sets whether numbers too small for a full mantissa become zero: they never do, so False is what can be had."""
    return not mode


def set_default_tensor_type(t: Any) -> None:
    """The default dtype by a legacy class: FloatTensor, or "torch.DoubleTensor"."""
    kind = legacy.TYPES.get(t.removeprefix("torch.")) if isinstance(t, str) else t
    if not isinstance(kind, legacy.TensorType):
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    if not kind.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        UserWarning,
        stacklevel=2,
    )
    set_default_dtype(kind.dtype)


def is_vulkan_available() -> bool:
    return False


_nnpack_available = is_vulkan_available


def is_storage(obj: Any) -> bool:
    return isinstance(obj, UntypedStorage | storages.TypedStorage)


def set_module(obj: Any, mod: str) -> None:
    """Sets the module that an object says it is of. TypeError for a name that is no string."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def typename(obj: Any) -> str:
    """The name of an object's type, or of the object itself if it has one: "torch.FloatTensor" of a tensor."""
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None)
    return named.__qualname__ if module in (None, "builtins") else f"{module}.{named.__qualname__}"
