"""The older names: `redispatch.cuda.amp`, `redispatch.cpu.amp`, and functions with the device type in their names.

They warn, and do what those of `redispatch.amp` do.
"""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

from redispatch.dispatch.tensor import dtypes

from . import autocast_mode, grad_scaler

PACKAGE = __name__.rpartition(".amp.")[0]


def deprecated(text: str, category: type[Warning] = FutureWarning) -> None:
    warnings.warn(text, category, stacklevel=3)


def instead(device: str, name: str) -> str:
    other = f"torch.amp.{name}('{device}', args...)"
    return f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use `{other}` instead."


def classes(device: str, low: Any) -> tuple[type, type]:
    """(autocast, GradScaler) of a device type."""

    class autocast(autocast_mode.autocast):
        """`amp.autocast` of this device."""

        def __init__(self, enabled: bool = True, dtype: Any = low, cache_enabled: bool = True) -> None:
            deprecated(instead(device, "autocast"))
            super().__init__(device, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    class GradScaler(grad_scaler.GradScaler):
        """`amp.GradScaler` of this device."""

        def __init__(
            self,
            init_scale: float = 2.0**16,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            enabled: bool = True,
        ) -> None:
            deprecated(instead(device, "GradScaler"))
            super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    return autocast, GradScaler


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: Any = None) -> Any:
    """`amp.custom_fwd(device_type="cuda")`."""
    deprecated(
        "`torch.cuda.amp.custom_fwd(args...)` is deprecated. Please use `torch.amp.custom_fwd(args..., "
        "device_type='cuda')` instead."
    )
    return functools.partial(autocast_mode.custom_fwd, device_type="cuda")(fwd, cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """`amp.custom_bwd(device_type="cuda")`."""
    deprecated(
        "`torch.cuda.amp.custom_bwd(args...)` is deprecated. Please use `torch.amp.custom_bwd(args..., "
        "device_type='cuda')` instead."
    )
    return functools.partial(autocast_mode.custom_bwd, device_type="cuda")(bwd)


def amp_definitely_not_available() -> bool:
    """Returns whether there is no GPU to cast for."""
    cuda: Any = importlib.import_module(f"{PACKAGE}.cuda")  # here, since it imports this file
    return not cuda.is_available()


def module(name: str, **names: Any) -> ModuleType:
    """A module of this package without a file, which `import` finds."""
    made = ModuleType(f"{PACKAGE}.{name}", __doc__)
    vars(made).update(names, __all__=list(names), __path__=[])
    sys.modules[made.__name__] = made
    return made


cuda_autocast, cuda_scaler = classes("cuda", dtypes.float16)
cpu_autocast, cpu_scaler = classes("cpu", dtypes.bfloat16)
cuda_amp: ModuleType = module(
    "cuda.amp",
    autocast=cuda_autocast,
    GradScaler=cuda_scaler,
    custom_fwd=custom_fwd,
    custom_bwd=custom_bwd,
    amp_definitely_not_available=amp_definitely_not_available,
)
cpu_amp: ModuleType = module("cpu.amp", autocast=cpu_autocast, GradScaler=cpu_scaler)

# Functions of the package itself --------------------------------------------------------------------------------------


def of_device(function: Callable[..., Any], device: str, name: str, argument: str = "") -> Callable[..., Any]:
    """The older name of what `function` says of a device type, or has it be."""
    new = function.__name__

    @functools.wraps(function)
    def older(*args: Any) -> Any:
        more = f", {argument}" if argument else ""
        text = f"torch.{name}({argument}) is deprecated. Please use torch.{new}('{device}'{more}) instead."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return function(device, *args)

    older.__name__ = older.__qualname__ = name
    older.__doc__ = f"`{new}({device!r}{f', {argument}' if argument else ''})`."
    return older


is_autocast_cpu_enabled = of_device(autocast_mode.is_autocast_enabled, "cpu", "is_autocast_cpu_enabled")
set_autocast_cpu_enabled = of_device(autocast_mode.set_autocast_enabled, "cpu", "set_autocast_cpu_enabled", "enabled")
get_autocast_cpu_dtype = of_device(autocast_mode.get_autocast_dtype, "cpu", "get_autocast_cpu_dtype")
set_autocast_cpu_dtype = of_device(autocast_mode.set_autocast_dtype, "cpu", "set_autocast_cpu_dtype", "dtype")
get_autocast_gpu_dtype = of_device(autocast_mode.get_autocast_dtype, "cuda", "get_autocast_gpu_dtype")
set_autocast_gpu_dtype = of_device(autocast_mode.set_autocast_dtype, "cuda", "set_autocast_gpu_dtype", "dtype")
is_autocast_ipu_enabled = of_device(autocast_mode.is_autocast_enabled, "ipu", "is_autocast_ipu_enabled")
is_autocast_xla_enabled = of_device(autocast_mode.is_autocast_enabled, "xla", "is_autocast_xla_enabled")
