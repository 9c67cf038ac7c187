"""Normalisation, as functions and as modules: to mean 0 and variance 1, over a batch, an image, a sample or a group.

Channels are dimension 1. BatchNorm and InstanceNorm have running statistics, which follow those of the input in
training, and serve in evaluation, if there are any; the others are alike in training and evaluation.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any

from redispatch.dispatch.tensor import Size, Tensor, dtypes
from redispatch.kernels.declare.overridable import overridable_function
from redispatch.kernels.ops import arithmetic, creation, normalization
from redispatch.kernels.ops import batch_norm as batch_normalization
from redispatch.kernels.ops.from_data import tensor
from redispatch.kernels.ops.pooling import avg_pool2d, avg_pool3d

from . import init
from .derived import by_dims, functional, module_of, shows
from .images import pad
from .module import Module
from .parameter import empty_parameters

# --- functions -------------------------------------------------------------------------------------------------------


@overridable_function
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Computes (x - mean) / sqrt(variance + eps) * weight + bias over the last dimensions, `normalized_shape`.

    Shapes: (..., *normalized_shape) -> the same; weight and bias normalized_shape.
    """
    return normalization.layer_norm(input, list(normalized_shape), weight, bias, eps)


@overridable_function
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Computes (x - mean) / sqrt(variance + eps) * weight + bias for each channel, over all other dimensions.

    Without `training`, the running mean and variance are used; with it, they are moved by `momentum`.
    Errors: ValueError for training with one value per channel.
    """
    if training:
        _check_several(input.shape)
    return batch_normalization.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, False
    )


@overridable_function
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Computes `batch_norm` for each image by itself.

    Errors: ValueError where an image has one value per channel.
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {Size(input.shape)}")
    return batch_normalization.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False
    )


@overridable_function
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Computes (x - mean) / sqrt(variance + eps) over each group of channels; then weight and bias for each channel.

    Errors: RuntimeError for fewer than two dimensions; ValueError where a group has one value.
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    batch, channels, *image = input.shape
    _check_several([batch * channels // num_groups, num_groups, *image])
    return batch_normalization.group_norm(input, num_groups, weight, bias, eps, False)


@overridable_function
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Computes x / sqrt(mean(x²) + eps) * weight over the last dimensions, whose sizes are `normalized_shape`."""
    return batch_normalization.rms_norm(input, list(normalized_shape), weight, eps)


def _check_several(shape: Sequence[int]) -> None:
    """Raises ValueError where a channel has one value only: it has no variance."""
    if shape[0] * math.prod(shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {Size(shape)}")


@overridable_function
def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Computes x / max(norm of x along `dim`, eps). Shapes: any -> the same."""
    size = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / size if out is None else arithmetic.div(input, size, out=out)


@overridable_function
def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Computes x / (k + alpha * the mean of the squares of `size` channels around each) ** beta.

    Errors: ValueError for fewer than three dimensions.
    """
    ndim = input.dim()
    if ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {ndim} dimensions)")
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    widths = [size // 2, (size - 1) // 2]
    if ndim == 3:
        means = avg_pool2d(pad(squares.unsqueeze(1), [0, 0, *widths]), (size, 1), stride=1).squeeze(1)
    else:
        flat = squares.view(input.size(0), 1, input.size(1), input.size(2), -1)
        means = avg_pool3d(pad(flat, [0, 0, 0, 0, *widths]), (size, 1, 1), stride=1).squeeze(1).view(input.shape)
    return input / means.mul(alpha).add(k).pow(beta)


# --- what modules share ----------------------------------------------------------------------------------------------


class _Affine(Module):
    """A weight, which starts as ones, and a bias, which starts as zeros; neither, or no bias, where not wanted."""

    weight: Any
    bias: Any

    def _make(self, shape: Any, affine: bool, bias: bool, device: Any, dtype: Any) -> None:
        empty_parameters(self, device, dtype, weight=shape if affine else None, bias=shape if affine and bias else None)

    def reset_parameters(self) -> None:
        """Sets weights to ones and biases to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if getattr(self, "bias", None) is not None:
            init.zeros_(self.bias)


def as_shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, Integral) else tuple(shape)


# --- of one sample ---------------------------------------------------------------------------------------------------


class LayerNorm(_Affine):
    """Computes (x - mean) / sqrt(variance + eps) * weight + bias, where the mean is over the last dimensions.

    Shapes: (..., *normalized_shape) -> the same; `weight` and `bias` have the shape `normalized_shape` and start as
    ones and zeros. Without `elementwise_affine` there is neither, without `bias` no bias.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._make(self.normalized_shape, elementwise_affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Any) -> Any:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    extra_repr = shows("eps elementwise_affine bias", unnamed="normalized_shape")


class RMSNorm(_Affine):
    """Computes x over the root of the mean of its squares over the last dimensions, times a weight that starts as ones.

    eps: added to the mean; by default the dtype's smallest distance from 1. Shapes: as LayerNorm.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        empty_parameters(self, device, dtype, weight=self.normalized_shape if elementwise_affine else None)
        self.reset_parameters()

    def forward(self, input: Any) -> Any:
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    extra_repr = shows("eps elementwise_affine", unnamed="normalized_shape")


class GroupNorm(_Affine):
    """Gives each of `num_groups` groups of channels mean 0 and variance 1; then a weight and a bias for each channel.

    Shapes: (batch, num_channels, ...) -> the same. Errors: ValueError where the groups do not divide the channels.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._make(num_channels, affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Any) -> Any:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    extra_repr = shows("eps affine bias", unnamed="num_groups num_channels")


# --- with running statistics -----------------------------------------------------------------------------------------


class _NormBase(_Affine):
    """Weight and bias of each channel, which start as ones and zeros, and the running statistics."""

    _version = 2
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any
    allowed: tuple[int, ...] = ()  # dimensions of an input

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._make(num_features, affine, bias, device, dtype)
        statistics = {
            "running_mean": creation.zeros(num_features, device=device, dtype=dtype),
            "running_var": creation.ones(num_features, device=device, dtype=dtype),
            "num_batches_tracked": tensor(0, dtype=dtypes.int64, device=device),
        }
        for name, value in statistics.items():
            self.register_buffer(name, value if track_running_stats else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forgets what was seen so far."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Sets weights to ones, biases to zeros, and forgets the statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() not in self.allowed:
            wanted = " or ".join(f"{dims}D" for dims in self.allowed)
            raise ValueError(f"expected {wanted} input (got {input.dim()}D input)")

    extra_repr = shows("eps momentum affine bias track_running_stats", unnamed="num_features")

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], *rest: Any, **more: Any
    ) -> None:
        """Checkpoints of the first version have no count of batches."""
        key = prefix + "num_batches_tracked"
        old = (local_metadata.get("version") or 1) < 2
        if old and self.track_running_stats and key not in state_dict:
            known = self.num_batches_tracked is not None and not self.num_batches_tracked.is_meta
            state_dict[key] = self.num_batches_tracked if known else tensor(0, dtype=dtypes.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest, **more)


class _BatchNorm(_NormBase):
    """Each channel with mean 0 and variance 1 over the batch, times its weight, plus its bias.

    momentum: how far the running statistics move to those of a batch; None for the mean over all batches.
    Errors: ValueError for an input with other dimensions, and in training for one value in a channel.
    """

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        share = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                share = 1.0 / float(self.num_batches_tracked)
        of_batch = self.training or (self.running_mean is None and self.running_var is None)
        moves = not self.training or self.track_running_stats
        return functional.batch_norm(
            input,
            self.running_mean if moves else None,
            self.running_var if moves else None,
            self.weight,
            self.bias,
            of_batch,
            share,
            self.eps,
        )


BatchNorm1d, BatchNorm2d, BatchNorm3d = by_dims(
    _BatchNorm,
    """Gives each channel mean 0 and variance 1 over the batch of {image}, then its weight and its bias.

    Shapes: (batch, num_features, {size}) -> the same; a length may be missing.
    momentum: how far the running statistics move to those of a batch; None for the mean over all batches.
    Errors: ValueError for an input with other dimensions, and in training for one value in a channel.
    """,
    allowed=[(2, 3), (4,), (5,)],
)


class SyncBatchNorm(_BatchNorm):
    """BatchNorm over the batches of all processes: of one, as this library has no others to synchronise with.

    Shapes: (batch, num_features, ...) -> the same. `process_group` changes nothing.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Returns the module with its BatchNorms replaced, over the same parameters and statistics."""
        converted = module
        if isinstance(module, _BatchNorm):
            how = (module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats)
            converted = SyncBatchNorm(*how, process_group, bias=module.bias is not None)
            converted._parameters.update(module._parameters)
            converted._buffers.update(module._buffers)
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted


class _InstanceNorm(_NormBase):
    """Each channel of each image with mean 0 and variance 1; with or without a batch.

    Errors: ValueError for an input with other dimensions, or another number of channels where they have weights.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self) -> int:
        return self.allowed[0]

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        alone = input.dim() == self._get_no_batch_dim()
        channels = 0 if alone else 1
        if input.size(channels) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channels} to match num_features ({self.num_features}), but got: "
                    f"{input.size(channels)}."
                )
            warnings.warn(
                f"input's size at dim={channels} does not match num_features. You can silence this warning by not "
                "passing in num_features, which is not used because affine=False",
                stacklevel=3,
            )
        result = functional.instance_norm(
            input.unsqueeze(0) if alone else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result.squeeze(0) if alone else result


InstanceNorm1d, InstanceNorm2d, InstanceNorm3d = by_dims(
    _InstanceNorm,
    """Gives each channel of {image} by itself mean 0 and variance 1, then its weight and its bias, if there are any.

    Shapes: (batch, num_features, {size}) -> the same, the batch optional.
    Errors: ValueError for an input with other dimensions, or another number of channels where they have weights.
    """,
    allowed=[(2, 3), (3, 4), (4, 5)],
)


# --- by the channels around one --------------------------------------------------------------------------------------


class _ResponseNorm(Module):
    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    extra_repr = shows("alpha beta k", unnamed="size")


LocalResponseNorm = module_of("LocalResponseNorm", local_response_norm, base=_ResponseNorm, shown="", inputs="input")


class CrossMapLRN2d(_ResponseNorm):
    """Computes the older form of LocalResponseNorm, for images (n, channels, height, width).

    Its windows reach as far forward as back, and the first channel, once in a window, is in all that follow. That is
    PyTorch's rule, which networks were trained with.
    Errors: ValueError for another number of dimensions.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Any) -> Any:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        channels = input.size(1)
        reach = int((self.size - 1) / 2 + 1)
        counted = creation.zeros((channels, channels), dtype=input.dtype, device=input.device)
        for c in range(channels):
            counted[c, max(c - reach + 1, 0) : c + reach] = 1
            counted[c, 0] = 1
        sums = counted.matmul((input * input).flatten(2)).view(input.shape)
        return input * (sums * (self.alpha / self.size) + self.k) ** -self.beta
