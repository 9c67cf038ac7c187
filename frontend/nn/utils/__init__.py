"""Gradient clipping, and parameters as one vector. Read next: parametrize.py, rnn.py."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from types import GeneratorType
from typing import Any

import redispatch
from redispatch import _moved, _names
from redispatch.autograd import no_grad
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.ops import from_data, shape
from redispatch.utils._foreach_utils import (
    _device_has_foreach_support,
    _group_tensors_by_device_and_dtype,
    _has_foreach_support,
    unseen,
)

from ..tree import typename
from . import fusion, parametrizations, parametrize, prune, rnn
from .fusion import (
    convert_conv2d_weight_memory_format,
    convert_conv3d_weight_memory_format,
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
    skip_init,
)
from .weight_norm import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "fusion",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Any:
    """The norm of all tensors taken together as one vector: a tensor without dimensions.

    foreach: whether it takes operators on lists, which it does by default for plain tensors.
    Errors: RuntimeError for an infinite norm or NaN, if `error_if_nonfinite`.
    """
    tensors = _listed(tensors)
    if not tensors:
        return from_data.tensor(0.0)
    norm_type = float(norm_type)
    with no_grad():
        found: list[Any] = []
        for together, alike in _of_devices(tensors, foreach):
            norms = redispatch._foreach_norm(alike, norm_type) if together else map(norm_of(norm_type), alike)
            found.extend(norms)
        total = norm_of(norm_type)(shape.stack([norm.to(tensors[0].device) for norm in found]))
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def norm_of(order: float) -> Any:
    """Returns the function (Σ |x|^order)^(1/order) of a tensor."""
    return lambda x: redispatch.linalg.vector_norm(x, order)


def _of_devices(tensors: list[Any], foreach: bool | None) -> list[tuple[bool, list[Any]]]:
    """(whether operators on lists take them, tensors of one device and dtype). RuntimeError where they cannot.

    By default they do, but where nobody sees it: single calls take less time.
    """
    groups = []
    for (device, _), ((alike,), _) in _group_tensors_by_device_and_dtype([tensors]).items():
        together = foreach is None and _has_foreach_support(alike, device) and not unseen(map(type, alike))
        together = together or bool(foreach) and _device_has_foreach_support(device)
        if foreach and not together:
            raise RuntimeError(f"foreach=True was passed, but can't use the foreach API on {device.type} tensors")
        groups.append((together, alike))
    return groups


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None) -> None:
    """Scales all gradients by max_norm / total_norm, where that is less than 1."""
    grads = _gradients(_listed(parameters))
    if not grads:
        return
    with no_grad():
        # Not asked whether it is less: on another device, the answer would be waited for.
        factor = redispatch.clamp(max_norm / (total_norm + 1e-6), max=1.0)
        for together, alike in _of_devices(grads, foreach):
            own = factor.to(alike[0].device)
            if together:
                redispatch._foreach_mul_(alike, own)
            else:
                for gradient in alike:
                    gradient.mul_(own)


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scales all gradients so that their norm, taken together, is at most `max_norm`. Returns the norm before.

    foreach, errors: as `get_total_norm`.
    """
    listed = _listed(parameters)
    if isinstance(parameters, GeneratorType) and not listed:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total_norm = get_total_norm(_gradients(listed), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(listed, float(max_norm), total_norm, foreach)
    return total_norm


def clip_grad_norm(*args: Any, **kwargs: Any) -> Any:
    """The former name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Limits every element of every gradient to ±clip_value."""
    limit = float(clip_value)
    with no_grad():
        for together, alike in _of_devices(_gradients(_listed(parameters)), foreach):
            if together:
                redispatch._foreach_clamp_min_(alike, -limit)
                redispatch._foreach_clamp_max_(alike, limit)
            else:
                for gradient in alike:
                    gradient.clamp_(min=-limit, max=limit)


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """The elements of all parameters, one after another, as one vector. TypeError where they are on several devices."""
    listed = list(parameters)
    _check_one_device(listed)
    return shape.cat([parameter.view(-1) for parameter in listed])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Gives each parameter its part of the vector, as a view: the inverse of `parameters_to_vector`."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    listed = list(parameters)
    _check_one_device(listed)
    start = 0
    for parameter in listed:
        stop = start + parameter.numel()
        parameter.data = vec[start:stop].view_as(parameter).data
        start = stop


def _listed(parameters: Any) -> list[Any]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _gradients(parameters: list[Any]) -> list[Any]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def _check_one_device(parameters: list[Any]) -> None:
    if len({parameter.device for parameter in parameters}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")


_moved.join(__name__)
_PLACES, __getattr__, __dir__ = _names.late(globals(), {".": "stateless"})
