"""Linear, Bilinear, convolutions and their transposes; Identity, Flatten and Unflatten; distances of vectors."""

from __future__ import annotations

import math
from typing import Any

from redispatch.kernels.ops import distances

from . import init
from .derived import by_dims, functional, module_of, shows, unusual
from .images import each
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
        if (bias := self.bias) is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(bias, -bound, bound)

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


# --- Convolutions of one, two and three dimensions, and their transposes ----------------------------------------------

PADDINGS = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """The common base of convolutions. A subclass says over how many dimensions, and whether it is transposed.

    Both parameters start uniform in ±1/sqrt(elements that one output element is computed from).
    """

    dims: int
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        *,
        output_padding: Any = 0,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
        if padding == "same" and not self.transposed and {*each(stride, self.dims)} != {1}:
            raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in PADDINGS:
            raise ValueError(f"padding_mode must be one of {set(PADDINGS)}, but got padding_mode='{padding_mode}'")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = each(kernel_size, self.dims), each(stride, self.dims)
        self.padding = padding if isinstance(padding, str) else each(padding, self.dims)
        self.dilation, self.output_padding = each(dilation, self.dims), each(output_padding, self.dims)
        self.padding_mode, self._reversed_padding_repeated_twice = padding_mode, self.widths()
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (first, second // groups, *self.kernel_size)
        empty_parameters(self, device, dtype, weight=shape, bias=(out_channels,) if bias else None)
        self.reset_parameters()

    def widths(self) -> list[int]:
        """The padding as `functional.pad` takes it: two widths for each dimension, the last one first."""
        if not isinstance(self.padding, str):
            return [width for width in reversed(self.padding) for _ in range(2)]
        if self.padding == "valid":
            return [0] * (2 * self.dims)
        totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        return [width for total in reversed(totals) for width in (total // 2, total - total // 2)]

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # the bound is 1/sqrt(fan_in), as in Linear
        if self.bias is not None:
            fan_in = self.weight.shape[1] * math.prod(self.kernel_size)
            bound = 1 / math.sqrt(fan_in) if fan_in else 0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        none, ones = (0,) * self.dims, (1,) * self.dims
        shown = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        shown += unusual(self, padding=none, dilation=ones, output_padding=none, groups=1)
        shown += ", bias=False" if self.bias is None else ""
        return shown + unusual(self, padding_mode="zeros")


class _Forward(_Convolution):
    def forward(self, input: Any) -> Any:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        """Computes the convolution with another weight and bias. Subclasses that change theirs override it."""
        convolve = getattr(functional, f"conv{self.dims}d")
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = functional.pad(input, self._reversed_padding_repeated_twice, self.padding_mode), 0
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)


Conv1d, Conv2d, Conv3d = by_dims(
    _Forward,
    """Computes the cross-correlation over {image}.

    Shapes: (n, in_channels, {size}) -> (n, out_channels, ...), n optional.
    """,
    name="Conv",
)


class _Transposed(_Convolution):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        how = (kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        super().__init__(in_channels, out_channels, *how, output_padding=output_padding)

    def forward(self, input: Any, output_size: Any = None) -> Any:
        """`output_size` chooses among the sizes that a convolution with this stride would shrink to the input's."""
        extra = self.output_padding if output_size is None else self.padding_for(input, list(output_size))
        convolve = getattr(functional, f"conv_transpose{self.dims}d")
        return convolve(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def padding_for(self, input: Any, output_size: list[int]) -> tuple[int, ...]:
        """The output padding that gives this size. ValueError where none does."""
        wanted = output_size[-self.dims :]
        sides: Any = (input.shape[-self.dims :], self.stride, self.padding, self.dilation, self.kernel_size)
        per = zip(*sides, strict=True)
        least = [(size - 1) * step - 2 * p + d * (k - 1) + 1 for size, step, p, d, k in per]
        most = [size + step - 1 for size, step in zip(least, self.stride, strict=True)]
        for size, low, high in zip(wanted, least, most, strict=True):
            if not low <= size <= high:
                raise ValueError(
                    f"requested an output size of {wanted}, but valid sizes range from {least} to {most} (for an input "
                    f"of {list(input.shape[2:])})"
                )
        return tuple(size - low for size, low in zip(wanted, least, strict=True))


ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = by_dims(
    _Transposed,
    """Computes the gradient of Conv{dims}d with respect to its input, as a layer: it makes {image} larger.

    Shapes: (n, in_channels, {size}) -> (n, out_channels, ...), n optional.
    """,
    name="ConvTranspose",
)
