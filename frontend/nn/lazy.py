"""Lazy modules: they learn how many features or channels their input has when they are first called.

Until then their parameters have no shape; behind the first call a module is of the usual class. A checkpoint that has
shapes gives them to a module that has none yet.
"""

from __future__ import annotations

from typing import Any

from redispatch.autograd import no_grad
from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.ops.from_data import tensor

from .linear import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Linear,
    _Convolution,
)
from .module import Module
from .normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _NormBase,
)
from .parameter import UninitializedBuffer, UninitializedParameter, is_lazy


class LazyModuleMixin(Module):
    """A module that finds the shapes of its parameters in its first input: a subclass gives `initialize_parameters`.

    `cls_to_become` is the class that it is of afterwards.
    """

    cls_to_become: type | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self.register_load_state_dict_pre_hook(take_shapes)
        self._initialize_hook = self.register_forward_pre_hook(find_shapes, with_kwargs=True)

    def has_uninitialized_params(self) -> bool:
        """Returns whether any parameter or buffer has no shape yet."""
        return any(is_lazy(one) for one in (*self._parameters.values(), *self._buffers.values()))

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives all parameters their shapes, from the arguments of the first call."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def _forget_shapes(self, device: Any, dtype: Any, *names: str) -> None:
        """Puts tensors without a shape in the places of those parameters and buffers that are there."""
        for name in names:
            if self._parameters.get(name) is not None:
                self._parameters[name] = UninitializedParameter(device=device, dtype=dtype)
            elif self._buffers.get(name) is not None:
                self._buffers[name] = UninitializedBuffer(device=device, dtype=dtype)

    def _materialize(self, **shapes: tuple[int, ...]) -> None:
        """Gives those that are there these shapes, and then their first values."""
        with no_grad():
            for name, shape in shapes.items():
                if getattr(self, name) is not None:
                    getattr(self, name).materialize(shape)
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the values anew, once the shapes are known."""
        if not self.has_uninitialized_params() and all(0 not in one.shape for one in self.parameters()):
            super().reset_parameters()  # type: ignore[misc]  # the class beside this one has it

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, one in self._own_tensors().items():
            destination[prefix + name] = one if keep_vars or is_lazy(one) else one.detach()


def take_shapes(module: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
    """Before loading: what has no shape yet takes that of what is loaded."""
    for name, one in (*module._parameters.items(), *module._buffers.items()):
        loaded = state_dict.get(prefix + name)
        if is_lazy(one) and loaded is not None and not is_lazy(loaded):
            one.materialize(loaded.shape)


def find_shapes(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Before the first call."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
    module._initialize_hook.remove()
    module._load_hook.remove()
    del module._initialize_hook, module._load_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


def lazy(base: type, *kinds: type) -> list[Any]:
    """Returns the lazy class of each of these, of which a module is after its first call."""
    return [
        type(
            f"Lazy{kind.__name__}",
            (base, kind),
            {
                "cls_to_become": kind,
                "__module__": __name__,
                "__doc__": f"{kind.__name__} that finds its number of channels in its first input.",
            },
        )
        for kind in kinds
    ]


class LazyLinear(LazyModuleMixin, Linear):
    """Linear, whose `in_features` are those of its first input."""

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, out_features, bias, device, dtype)
        self._forget_shapes(device, dtype, "weight", "bias")

    def initialize_parameters(self, input: Any) -> None:
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self._materialize(weight=(self.out_features, self.in_features), bias=(self.out_features,))
        self.in_features = self.weight.shape[-1]  # a checkpoint may have brought the shape


class _LazyConvolution(LazyModuleMixin, _Convolution):
    """A convolution, whose `in_channels` are those of its first input."""

    def __init__(self, *args: Any, device: Any = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(0, *args, device=device, dtype=dtype, **kwargs)
        self._forget_shapes(device, dtype, "weight", "bias")

    def initialize_parameters(self, input: Any, *args: Any, **kwargs: Any) -> None:
        channels = self._channels(input)
        if self.has_uninitialized_params():
            if channels % self.groups:
                raise ValueError("in_channels must be divisible by groups")
            outputs, each = self.out_channels, channels // self.groups
            shape = (channels, outputs // self.groups) if self.transposed else (outputs, each)
            self.in_channels = channels
            self._materialize(weight=(*shape, *self.kernel_size), bias=(outputs,))
        self.in_channels = channels

    def _channels(self, input: Any) -> int:
        alone = self.dims + 1
        if input.dim() not in (alone, alone + 1):
            raise RuntimeError(
                f"Expected {alone}D (unbatched) or {alone + 1}D (batched) input to {type(self).__name__}, but got "
                f"input of size: {input.shape}"
            )
        return input.shape[0 if input.dim() == alone else 1]


LazyConv1d, LazyConv2d, LazyConv3d = lazy(_LazyConvolution, Conv1d, Conv2d, Conv3d)
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = lazy(
    _LazyConvolution, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
)


class _LazyNorm(LazyModuleMixin, _NormBase):
    """A normalisation, whose `num_features` are the channels of its first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self._forget_shapes(device, dtype, "weight", "bias", "running_mean", "running_var")
        if self.track_running_stats:
            self.num_batches_tracked = tensor(0, dtype=dtypes.int64, device=device)

    def initialize_parameters(self, input: Any) -> None:
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            names = ("weight", "bias", "running_mean", "running_var")
            self._materialize(**dict.fromkeys(names, (self.num_features,)))
        self.num_features = input.shape[1]


LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = lazy(_LazyNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d)
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = lazy(
    _LazyNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
)
