"""PyTorch's private module of functions of neural networks: those of the operators, and how `Module.to` reads."""

from __future__ import annotations

from typing import Any

from redispatch.kernels.declare.public import FUNCTIONS
from redispatch.nn.module import destination


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Returns device, dtype, non_blocking and memory format of the arguments of `Module.to`."""
    place, dtype, options = destination(*args, **kwargs)
    return place, dtype, options.get("non_blocking", False), options.get("memory_format")


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS["nn"]:
        return FUNCTIONS["nn"][name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
