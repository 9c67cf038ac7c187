"""BatchNorm and InstanceNorm for one to three dimensions: channels normalised over a batch, or in each image by itself.

Channels are dimension 1. In training the statistics are those of the input, and running ones follow them; in evaluation
the running ones serve, if there are any. Read next: normalization.py.
"""

from __future__ import annotations

import warnings
from typing import Any

from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.ops import creation
from redispatch.kernels.ops.from_data import tensor

from . import functional, init
from .module import Module
from .parameter import Parameter


class _NormBase(Module):
    """Weight and bias of each channel, which start as ones and zeros, and the running statistics."""

    _version = 2
    weight: Any
    bias: Any
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
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(creation.empty(num_features, **made)) if wanted else None)
        statistics = {
            "running_mean": creation.zeros(num_features, **made),
            "running_var": creation.ones(num_features, **made),
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
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() not in self.allowed:
            wanted = " or ".join(f"{dims}D" for dims in self.allowed)
            raise ValueError(f"expected {wanted} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

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
        if self.training and self.num_batches_tracked is not None:
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


class BatchNorm1d(_BatchNorm):
    """BatchNorm of (batch, channels) or (batch, channels, length)."""

    allowed = (2, 3)


class BatchNorm2d(_BatchNorm):
    """BatchNorm of (batch, channels, height, width)."""

    allowed = (4,)


class BatchNorm3d(_BatchNorm):
    """BatchNorm of (batch, channels, depth, height, width)."""

    allowed = (5,)


class SyncBatchNorm(_BatchNorm):
    """BatchNorm over the batches of several processes, which this library has not. NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("SyncBatchNorm: there are no processes to synchronise with; BatchNorm is for one")


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

    def forward(self, input: Any) -> Any:
        self._check_input_dim(input)
        alone = input.dim() == self.allowed[0]
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


class InstanceNorm1d(_InstanceNorm):
    """InstanceNorm of (batch, channels, length), the batch optional."""

    allowed = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """InstanceNorm of (batch, channels, height, width), the batch optional."""

    allowed = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """InstanceNorm of (batch, channels, depth, height, width), the batch optional."""

    allowed = (4, 5)
