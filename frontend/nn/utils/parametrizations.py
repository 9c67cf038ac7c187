"""Parametrizations of weights: weight_norm, as a length and a direction; spectral_norm, with a largest singular value
of 1; orthogonal, which has a file of its own.

Sources: Salimans and Kingma, "Weight normalization" (2016); Miyato et al., "Spectral normalization for generative
adversarial networks" (2018).
"""

from __future__ import annotations

from typing import Any

from redispatch.autograd import no_grad
from redispatch.dispatch.tensor import Tensor

from .. import functional
from ..convolution import _Convolution
from ..module import Module
from . import parametrize
from .orthogonal import _Orthogonal, orthogonal

__all__ = ["_Orthogonal", "_SpectralNorm", "_WeightNorm", "orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """v times g / |v|, where |v| is the norm of each slice along `dim`, or of all of v for -1."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return weight_v * (weight_g / length(weight_v, self.dim))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return length(weight, self.dim), weight


def length(v: Any, dim: int) -> Any:
    """The norms of the slices along `dim`, the other dimensions left with size 1; of all of `v` for -1."""
    if dim == -1:
        return v.norm(2)
    return v.norm(2, [d for d in range(v.dim()) if d != dim % v.dim()], keepdim=True)


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Learns length and direction of a weight apart: `parametrizations.<name>.original0` and `original1`."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(module: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Checkpoints of the older function call them `<name>_g` and `<name>_v`."""
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for number, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{number}"] = state_dict.pop(key)

    module.register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """A weight over its largest singular value, which power iteration follows: a step in each training call."""

    _u: Any
    _v: Any

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got n_power_iterations=" + str(n_power_iterations)
            )
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._as_matrix(weight)
            for buffer, size in zip(("_u", "_v"), matrix.shape, strict=True):
                values = matrix.new_empty(size).normal_(0, 1)
                self.register_buffer(buffer, functional.normalize(values, dim=0, eps=eps).detach())
            self._iterate(matrix, 15)

    def _as_matrix(self, weight: Any) -> Any:
        return weight.movedim(self.dim, 0).flatten(1)

    def _iterate(self, matrix: Any, count: int) -> None:
        """Turns u and v towards the first singular vectors."""
        with no_grad():
            for _ in range(count):
                self._u.copy_(functional.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(functional.normalize(matrix.t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return functional.normalize(weight, dim=0, eps=self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # Copies: backward of this call must not see what the next one makes of them.
        u, v = self._u.clone(), self._v.clone()
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divides a weight by its largest singular value; `dim` is that of its outputs.

    Errors: ValueError for a name that is no tensor.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, _Convolution) and module.transposed else 0
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module
