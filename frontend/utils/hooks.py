"""`redispatch.utils.hooks`: the handle of a registered hook, and what is said of hooks when tensors are saved."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from redispatch.autograd import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

Hook = TypeVar("Hook", bound=Callable[..., Any])


def unserializable_hook(f: Hook) -> Hook:
    """A decorator for a hook that is meant to be lost when its tensor is saved: no warning is given of it."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]  # functions take any attribute
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warns of each backward hook of a tensor, which would be lost when the tensor is saved."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )
