"""Linear, Bilinear and Identity; Flatten and Unflatten; distances of vectors."""

from __future__ import annotations

import math
from typing import Any

from redispatch.kernels.ops import distances

from . import init
from .derived import functional, module_of, shows
from .module import Module
from .parameter import empty_parameters


class Identity(Module):
    """Its input, whatever the arguments it was made with: a place-holder for another module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """x Wᵀ + b: an affine map of the last dimension.

    Shapes: (..., in_features) -> (..., out_features); `weight` (out_features, in_features), `bias` (out_features,).
    Both start uniform in ±1/sqrt(in_features).

    >>> import redispatch as rd
    >>> rd.nn.Linear(4, 3)(rd.ones(2, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        weight, biases = (out_features, in_features), (out_features,) if bias else None
        empty_parameters(self, device, dtype, weight=weight, bias=biases)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        # With this slope the bound of kaiming_uniform_, gain * sqrt(3 / in_features), is 1/sqrt(in_features).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        return functional.linear(input, self.weight, self.bias)

    extra_repr = shows("in_features out_features bias")


class Bilinear(Module):
    """y[k] = sum over i, j of x1[i] W[k, i, j] x2[j], plus b[k]: linear in each of two inputs.

    Shapes: (..., in1_features), (..., in2_features) -> (..., out_features). Weight and bias start uniform in
    ±1/sqrt(in1_features). Errors: ValueError where in1_features is not positive.
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        weight, biases = (out_features, in1_features, in2_features), (out_features,) if bias else None
        empty_parameters(self, device, dtype, weight=weight, bias=biases)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        return functional.bilinear(input1, input2, self.weight, self.bias)

    extra_repr = shows("in1_features in2_features out_features bias")


class Flatten(Module):
    """Joins the dimensions from `start_dim` to `end_dim` into one; by default all but the first, the batch."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    extra_repr = shows("start_dim end_dim")


class Unflatten(Module):
    """Takes one dimension apart into several; one of their sizes may be -1.

    Errors: TypeError for sizes that are no tuple or list of ints.
    """

    def __init__(self, dim: int | str, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"Unflatten: dimensions have numbers here, no names; got {dim!r}")
        if not isinstance(unflattened_size, tuple | list):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for position, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos "
                    f"{position}"
                )
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Any) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)

    extra_repr = shows("dim unflattened_size")


class PairwiseDistance(Module):
    """Computes the p-norm of x1 - x2 + eps along the last dimension: (..., features) and the same -> (...)."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Any, x2: Any) -> Any:
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


CosineSimilarity = module_of(
    "CosineSimilarity",
    distances.cosine_similarity,
    inputs="x1 x2",
    doc="Computes the cosine of the angle between x1 and x2 along `dim`; no length counts for less than `eps`.",
    shown="",
    dim=1,
    eps=1e-8,
)
