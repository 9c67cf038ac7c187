"""Regions as operators: a function called as it is, with gradients off, under autocast, or checkpointed.

A mode that takes higher-order operators sees the region and its function, and may do with it as it likes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.amp import autocast
from redispatch.autograd import set_grad_enabled
from redispatch.utils.checkpoint import checkpoint

from .body import BodyOperator


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def call_with_grad(enable_grad: bool, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with set_grad_enabled(enable_grad):
        return function(*args, **kwargs)


def call_with_autocast(
    device_type: str,
    dtype: Any,
    enabled: bool,
    cache_enabled: bool | None,
    function: Callable[..., Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    with autocast(device_type, dtype, enabled, cache_enabled):
        return function(*args, **kwargs)


def call_checkpointed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The function without keeping what it computes on the way: backward computes it again."""
    return checkpoint(function, *args, use_reentrant=False, **kwargs)


wrap = BodyOperator("wrap", call)
wrap_with_set_grad_enabled = BodyOperator("wrap_with_set_grad_enabled", call_with_grad)
wrap_with_autocast = BodyOperator("wrap_with_autocast", call_with_autocast)
tag_activation_checkpoint = BodyOperator("tag_activation_checkpoint", call_checkpointed)
wrap_activation_checkpoint = BodyOperator("wrap_activation_checkpoint", call_checkpointed)
