"""The older weight_norm: a hook before forward makes the weight of a length and a direction, `<name>_g` and `<name>_v`.

New programs use `parametrizations.weight_norm`, whose weight is never out of date. Source: as there.
"""

from __future__ import annotations

import warnings
from typing import Any

from ..parameter import Parameter
from .parametrizations import length


class WeightNorm:
    """The hook."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))

    def compute_weight(self, module: Any) -> Any:
        """g v / |v|"""
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / length(v, self.dim))

    def remove(self, module: Any) -> None:
        """Makes the weight a parameter again. The hook is not taken off."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"], module._parameters[f"{self.name}_v"]
        setattr(module, self.name, Parameter(weight.data))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Learns length and direction of a weight apart, along `dim`, or of all of it for None. Returns the module.

    Errors: RuntimeError for a second one of the same name; AttributeError for a name that is no attribute.
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    if installed(module, WeightNorm, name)[1] is not None:
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    module.register_parameter(f"{name}_g", Parameter(length(weight, hook.dim).data))
    module.register_parameter(f"{name}_v", Parameter(weight.data))
    del module._parameters[name]
    hook(module, ())
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Makes the weight a parameter again, of the value that it has. ValueError where it is none of these."""
    return removed(module, WeightNorm, name, "weight_norm")


def installed(module: Any, kind: type, name: str) -> tuple[Any, Any]:
    """The number and the hook of this kind that makes the attribute; (None, None) where there is none."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:  # type: ignore[attr-defined]  # both kinds have one
            return number, hook
    return None, None


def removed(module: Any, kind: type, name: str, function: str) -> Any:
    """The module without its hook of this kind. ValueError where it has none."""
    number, hook = installed(module, kind, name)
    if hook is None:
        raise ValueError(f"{function} of '{name}' not found in {module}")
    hook.remove(module)
    del module._forward_pre_hooks[number]
    return module
