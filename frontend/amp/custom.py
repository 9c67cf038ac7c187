"""Autocast in an `autograd.Function` of one's own: what dtype its forward gets, and that its backward runs alike.

class Product(Function):
    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=float32)
    def forward(ctx, a, b): ...

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, grad): ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, dtypes

from .autocast_mode import autocast
from .functions import get_autocast_dtype, is_autocast_enabled

Method = Callable[..., Any]


def custom_fwd(fwd: Method | None = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """A decorator for `forward`: in a region, it is given its floating-point tensors in `cast_inputs` and runs without
    autocast. Without `cast_inputs` it runs as the region has it, and outside of regions nothing is changed.

    Errors: ValueError for a device type that is no string.
    """
    check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        ctx, inside = args[0], is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = inside and cast_inputs is None
        if cast_inputs is None or not inside:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*cast(args, device_type, cast_inputs), **cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd: Method | None = None, *, device_type: str) -> Any:
    """A decorator for `backward`: it runs with autocast as `forward` did, wherever the backward pass is started."""
    check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(*args, **kwargs)

    return backward


def check_device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def cast(value: Any, device_type: str, dtype: Any) -> Any:
    """The value with the floating-point tensors of a device in `dtype`, float64 excepted; inside containers, too."""
    if isinstance(value, Tensor):
        eligible = value.is_floating_point() and value.device.type == device_type and value.dtype is not dtypes.float64
        return value.to(dtype) if eligible else value
    if isinstance(value, str | bytes | np.ndarray):
        return value
    if isinstance(value, Mapping):
        return {cast(key, device_type, dtype): cast(item, device_type, dtype) for key, item in value.items()}
    if isinstance(value, Iterable):
        items = (cast(item, device_type, dtype) for item in value)
        return type(value)(items) if isinstance(value, list | tuple) else items
    return value
