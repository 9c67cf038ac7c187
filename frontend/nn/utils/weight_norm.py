"""The older weight_norm: a hook before forward makes the weight of a length and a direction, `<name>_g` and `<name>_v`.

New programs use `parametrizations.weight_norm`, whose weight is never out of date. Source: as there.
"""

from __future__ import annotations

import warnings
from typing import Any

from redispatch.autograd import no_grad

from .. import functional
from ..linear import _Convolution
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


# --- The older spectral_norm: a hook before forward divides the weight by its largest singular value ------------------
#
# The weight is `<name>_orig`; power iteration keeps its first singular vectors in the buffers `<name>_u` and
# `<name>_v`. New programs use `parametrizations.spectral_norm`, whose weight is never out of date. Source: as there.


class SpectralNorm:
    """The hook."""

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def reshape_weight_to_matrix(self, weight: Any) -> Any:
        """(outputs, everything else)"""
        return weight.movedim(self.dim, 0).flatten(1) if weight.dim() > 1 else weight.unsqueeze(1)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Any:
        """The weight over uᵀ W v, after steps of power iteration where they are asked for."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(self._unit(matrix.t().mv(u)))
                    u.copy_(self._unit(matrix.mv(v)))
                # Copies: backward of this call must not see what the next one makes of them.
                u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))

    def _unit(self, vector: Any) -> Any:
        return functional.normalize(vector, dim=0, eps=self.eps)

    def remove(self, module: Any) -> None:
        """Makes the weight a parameter again. The hook is not taken off."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_orig"]
        del module._buffers[f"{self.name}_u"], module._buffers[f"{self.name}_v"]
        module.register_parameter(self.name, Parameter(weight.detach()))


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divides a weight by its largest singular value; `dim` is that of its outputs. Returns the module.

    Errors: RuntimeError for a second one of the same name; ValueError for no iterations; KeyError for a name that is
    no parameter.
    """
    if installed(module, SpectralNorm, name)[1] is not None:
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    if dim is None:
        dim = 1 if isinstance(module, _Convolution) and module.transposed else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    with no_grad():
        matrix = hook.reshape_weight_to_matrix(weight)
        u, v = (hook._unit(matrix.new_empty(size).normal_(0, 1)) for size in matrix.shape)
    module.register_parameter(f"{name}_orig", weight)
    del module._parameters[name]
    # Until the first forward: an attribute that is no parameter.
    setattr(module, name, weight.data)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Makes the weight a parameter again, of the value that it has. ValueError where it is none of these."""
    return removed(module, SpectralNorm, name, "spectral_norm")
