"""The name by which error messages call a value: `int`, `torch.FloatTensor`, `package.module.Class`."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor


def typename(value: Any) -> str:
    """A tensor's legacy type name; of a class or function its own dotted name; of anything else that of its class."""
    if isinstance(value, Tensor):
        place = "" if value.device.type in ("cpu", "meta") else f"{value.device.type}."
        return f"torch.{place}{value.dtype.tensor_name}Tensor"
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None) or type(value).__name__
    return name if module in (None, "builtins") else f"{module}.{name}"
