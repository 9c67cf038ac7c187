"""PyTorch's private module of functions of neural networks: those of the operators, and how `Module.to` reads."""

from __future__ import annotations

from enum import Enum
from typing import Any

from redispatch.dispatch import ops
from redispatch.kernels.declare.public import FUNCTIONS
from redispatch.nn.module import destination
from redispatch.overrides import wrap_torch_function


@wrap_torch_function(lambda *args, **kwargs: args)
def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Returns device, dtype, non_blocking and memory format of the arguments of `Module.to`."""
    place, dtype, options = destination(*args, **kwargs)
    return place, dtype, options.get("non_blocking", False), options.get("memory_format")


def __getattr__(name: str) -> Any:
    if name in FUNCTIONS["nn"]:
        return FUNCTIONS["nn"][name]
    if hasattr(ops.aten, name):  # of those that `nn.functional` does not call
        return getattr(ops.aten, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# PyTorch's algorithms of a convolution on the CPU without libraries; the loops here are one for all of them
_ConvBackend = Enum(
    "_ConvBackend", "Empty Slow2d Slow3d SlowDilated2d SlowDilated3d SlowTranspose2d SlowTranspose3d Overrideable"
)


def _select_conv_backend(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, *rest: Any
) -> _ConvBackend:
    """Returns which of them PyTorch would run: for a length as for an image of one row."""
    if not input.shape[0] or not input.shape[1] or not weight.numel():
        return _ConvBackend.Empty
    dims = max(input.dim() - 2, 2)
    how = "Transpose" if transposed else "Dilated" if any(step > 1 for step in dilation) else ""
    return _ConvBackend[f"Slow{how}{dims}d"]
