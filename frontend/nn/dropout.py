"""Dropout, as functions and as modules: `functional.dropout2d(input, 0.2)` and `Dropout2d(0.2)`.

p is the probability with which an element, or a channel, is left out; those that stay are scaled by 1 / (1 - p).
Without `training` nothing is left out; with `inplace` the input is written over. Errors: ValueError for a `p` outside
[0, 1].
"""

from __future__ import annotations

import warnings
from typing import Any

from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.overridable import overridable_function
from redispatch.kernels.ops import dropout as operators

from .derived import module_of, shows
from .module import Module


def _left_out(operator: Any, over: Any, input: Any, p: float, training: bool, inplace: bool) -> Any:
    _check(p)
    return over(input, p, training) if inplace else operator(input, p, training)


def _check(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _channels_left_out(input: Any, p: float, training: bool, inplace: bool) -> Any:
    return _left_out(operators.feature_dropout, operators.feature_dropout_, input, p, training, inplace)


def _as_batch_of_one(input: Any, p: float, training: bool, inplace: bool) -> Any:
    """Returns an input without a batch dimension, channels left out."""
    batch = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = _channels_left_out(batch, p, training, inplace)
    return result.squeeze_(0) if inplace else result.squeeze(0)


@overridable_function
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability `p` and scales the others by 1 / (1 - p). Shapes: any -> the same."""
    return _left_out(operators.dropout, operators.dropout_, input, p, training, inplace)


@overridable_function
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Leaves out elements of results of selu: they become its lowest value, and mean and variance stay.

    Shapes: any -> the same.
    """
    return _left_out(operators.alpha_dropout, operators.alpha_dropout_, input, p, training, inplace)


@overridable_function
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Leaves out whole channels as `alpha_dropout` does elements. Shapes: (batch, channels, ...) -> the same."""
    return _left_out(operators.feature_alpha_dropout, operators.feature_alpha_dropout_, input, p, training, inplace)


@overridable_function
def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of [batch, channels, length] or [channels, length].

    Errors: RuntimeError for any other number of dimensions.
    """
    _check(p)
    dims = input.dim()
    if dims not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {dims}D input. Note that dropout1d exists to provide "
            "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
            "dimension (i.e. 2D or 3D inputs)."
        )
    return (_channels_left_out if dims == 3 else _as_batch_of_one)(input, p, training, inplace)


@overridable_function
def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of [batch, channels, height, width]; any other number of dimensions brings a warning."""
    _check(p)
    dims = input.dim()
    if dims not in (3, 4):
        warnings.warn(_deprecated("dropout2d", dims, 2, "3D or 4D"), UserWarning, stacklevel=3)
    if dims == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
            UserWarning,
            stacklevel=3,
        )
    return _channels_left_out(input, p, training, inplace)


@overridable_function
def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of [batch, channels, depth, height, width], or of the same without a batch dimension.

    Any other number of dimensions brings a warning.
    """
    _check(p)
    dims = input.dim()
    if dims not in (4, 5):
        warnings.warn(_deprecated("dropout3d", dims, 3, "4D or 5D"), UserWarning, stacklevel=3)
    return (_channels_left_out if dims == 5 else _as_batch_of_one)(input, p, training, inplace)


def _deprecated(name: str, dims: int, spatial: int, wanted: str) -> str:
    return (
        f"{name}: Received a {dims}-D input to {name}, which is deprecated and will result in an error in a future "
        "release. To retain the behavior and silence this warning, please use dropout instead. Note that "
        f"{name} exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel "
        f"dimension, and an optional batch dimension (i.e. {wanted} inputs)."
    )


class _Dropout(Module):
    """The options that all have in common."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    extra_repr = shows("p inplace")


Dropout = module_of("Dropout", dropout, base=_Dropout, shown="")
Dropout1d = module_of("Dropout1d", dropout1d, base=_Dropout, shown="")
Dropout2d = module_of("Dropout2d", dropout2d, base=_Dropout, shown="")
Dropout3d = module_of("Dropout3d", dropout3d, base=_Dropout, shown="")
AlphaDropout = module_of("AlphaDropout", alpha_dropout, base=_Dropout, shown="")
FeatureAlphaDropout = module_of("FeatureAlphaDropout", feature_alpha_dropout, base=_Dropout, shown="")
