"""Channels that become pixels, pixels that become channels, and channels that change places.

Each is a copy between two views: both tensors with some of their dimensions split in two, one of them permuted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator
from ..declare.public import public
from .copying import move
from .geometry import permuted, viewed
from .resampling import shaped_like


def shuffled(shape: Sequence[int], x: Tensor, split: Sequence[int], order: Sequence[int]) -> Tensor:
    """A tensor of this shape, with the elements of `x` in the order in which its view of the shape `split` has them
    when its dimensions are permuted."""
    made = shaped_like(shape, x).allocate()
    source = viewed(x, split).of(x)
    source = permuted(source, order).of(source)
    target = viewed(made, source._shape).of(made)
    move(target, source)
    return made


def check_pixels(name: str, self: Tensor, factor: int, word: str) -> tuple[int, ...]:
    """The dimensions in front of the channels."""
    ndim = len(self._shape)
    if ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {word}, but got {factor}")
    return tuple(self._shape[:-3])


# --- pixels ----------------------------------------------------------------------------------------------------------

pixel_shuffle_op = Operator("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", out="out", batching="leading")
pixel_unshuffle_op = Operator(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", out="out", batching="leading"
)


@pixel_shuffle_op.kernel("CPU", "Meta")
def pixel_shuffle_kernel(self: Tensor, r: int) -> Tensor:
    """[..., channels r², height, width] -> [..., channels, height r, width r]: r² channels fill a square of pixels."""
    lead = check_pixels("pixel_shuffle", self, r, "upscale_factor")
    channels, height, width = self._shape[-3:]
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    n, made = len(lead), channels // (r * r)
    split, order = (*lead, made, r, r, height, width), (*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return shuffled((*lead, made, height * r, width * r), self, split, order)


@pixel_unshuffle_op.kernel("CPU", "Meta")
def pixel_unshuffle_kernel(self: Tensor, r: int) -> Tensor:
    """[..., channels, height r, width r] -> [..., channels r², height, width]: the way back."""
    lead = check_pixels("pixel_unshuffle", self, r, "downscale_factor")
    channels, height, width = self._shape[-3:]
    for name, d, size in (("height", -2, height), ("width", -1, width)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({d})={size} is "
                f"not divisible by {r}"
            )
    n = len(lead)
    split, order = (*lead, channels, height // r, r, width // r, r), (*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return shuffled((*lead, channels * r * r, height // r, width // r), self, split, order)


pixel_shuffle_op.derivative(self=lambda grad, upscale_factor: pixel_unshuffle_op.functional(grad, upscale_factor))
pixel_shuffle_op.forward("linear")
pixel_unshuffle_op.derivative(self=lambda grad, downscale_factor: pixel_shuffle_op.functional(grad, downscale_factor))
pixel_unshuffle_op.forward("linear")
copy_into_out(pixel_shuffle_op)
copy_into_out(pixel_unshuffle_op)
pixel_shuffle, pixel_unshuffle = (
    public(
        pixel_shuffle_op,
        method=False,
        doc="Returns images that are r times as high and wide, of r² times fewer channels.",
    ),
    public(
        pixel_unshuffle_op, method=False, doc="Returns images of r² times the channels, r times less high and wide."
    ),
)

# --- channels --------------------------------------------------------------------------------------------------------

channel_shuffle_op = Operator("channel_shuffle(Tensor self, SymInt groups) -> Tensor", out="out")
native_channel_shuffle_op = Operator("native_channel_shuffle(Tensor self, SymInt groups) -> Tensor", late_out=False)


@channel_shuffle_op.kernel("CPU", "Meta")
@native_channel_shuffle_op.kernel("CPU", "Meta")
def channel_shuffle_kernel(self: Tensor, groups: int) -> Tensor:
    """The channels, in groups one behind the other, so that the first of each group comes first, then the second."""
    shape = tuple(self._shape)
    if len(shape) <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    batch, channels, *space = shape
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    split = (batch, groups, channels // groups, *space)
    return shuffled(shape, self, split, (0, 2, 1, *range(3, len(split))))


def channels_back(grad: Any, self_shape: Any, groups: int) -> Any:
    """As many groups as one had members: they change places back."""
    return channel_shuffle_op.functional(grad, self_shape[1] // groups)


channel_shuffle_op.derivative(self=channels_back)
channel_shuffle_op.forward("linear")
native_channel_shuffle_op.derivative(self=channels_back)
native_channel_shuffle_op.forward("linear")
copy_into_out(channel_shuffle_op)
channel_shuffle = public(
    channel_shuffle_op, method=False, doc="Returns the channels of groups in turn: each first one, then each second."
)
native_channel_shuffle = public(
    native_channel_shuffle_op,
    method=False,
    doc="Returns the channels of groups in turn: each first one, then each second.",
)
