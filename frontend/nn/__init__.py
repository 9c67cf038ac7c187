"""Modules, parameters and losses, built on public names.

Read in this order: parameter, tree, checkpoint, hooks, module, containers; derived, which makes modules of functions;
then the layers, a family a file. Each class of layers is here, under its name; __init__.pyi lists them, with types.
"""

from importlib import import_module

from redispatch import _moved, _names

from . import functional, grad, init, utils
from .derived import layers_of

FAMILIES = """
    module containers activation attention dropout images linear loss normalization pooling rnn sparse transformer lazy
    parallel
""".split()

__all__ = _names.take(
    globals(),
    {
        ".linear_cross_entropy": "LinearCrossEntropyOptions",
        ".parameter": "Buffer Parameter UninitializedBuffer UninitializedParameter factory_kwargs",
        **{f".{family}": layers_of(import_module(f".{family}", __name__)) for family in FAMILIES},
    },
)
__all__ += ["functional", "grad", "init", "utils"]


def __getattr__(name: str) -> object:
    """`modules`, PyTorch's paths to the layers: made of what is here, when first asked for."""
    if name == "modules":
        return import_module(".modules", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


_moved.join(__name__)
