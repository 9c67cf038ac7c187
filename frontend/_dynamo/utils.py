"""`torch._dynamo.utils`: what of it programs use apart from the tracer."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor

__all__ = ["clone_input", "is_compile_supported"]


def clone_input(x: Tensor, *, dtype: Any = None) -> Tensor:
    """Returns a leaf with the values, layout and `requires_grad` of a tensor."""
    made = x.detach().clone() if dtype is None else x.detach().to(dtype, copy=True)
    return made.requires_grad_(x.requires_grad)


def is_compile_supported(device_type: Any) -> bool:
    """Whether `compile` makes loops for a device: for the CPU."""
    return str(device_type).partition(":")[0] == "cpu"
