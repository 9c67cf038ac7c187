"""Samples of kernels/ops/fake_quantize.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample

LOW, HIGH = -4, 7


def quantized(x: Any, scale: Any, zero_point: Any, low: int, high: int, into: Any = np.float32) -> Any:
    """(the result, where nothing was clamped), with scales in float32"""
    single = np.float32
    scale, zero_point = np.asarray(scale, single), np.trunc(np.asarray(zero_point, single))
    place = np.rint(x * (single(1) / scale).astype(x.dtype)) + zero_point
    kept = np.clip(np.nan_to_num(place, nan=low), low, high)
    return ((kept - zero_point).astype(into or x.dtype) * scale).astype(x.dtype), (place >= low) & (place <= high)


def by_channel(x: Any, scale: Any, zero_point: Any, axis: int, low: int, high: int) -> Any:
    shape = [1] * x.ndim
    shape[axis] = -1
    return quantized(x, scale.reshape(shape), zero_point.reshape(shape), low, high, x.dtype)


def switched(x: Any, scale: Any, zero_point: Any, enabled: Any, low: int, high: int) -> Any:
    return quantized(x, scale, zero_point, low, high) if enabled.item() else (x, np.ones(x.shape, bool))


def by_numbers(make: Maker) -> Iterator[SampleInput]:
    for shape in ((3, 4), (), (0,)):
        yield sample(make(*shape), 0.3, 1, LOW, HIGH)
    yield sample(make(3, 2), 1.5, -2, LOW, HIGH)
    if make.dtype.is_floating_point:
        yield sample(make.values([float("nan"), float("inf"), -float("inf"), 1e30]), 0.5, 1, LOW, HIGH).but_not(
            "bfloat16", "a large number is another there"
        )


def parameters(make: Maker, scale: Any, zero_point: Any) -> tuple[Any, Any]:
    from redispatch import float32, int32  # here: the library imports this room

    plain = Maker(float32)
    return plain.values(scale), plain.values(zero_point, int32)


def by_tensors(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 4), *parameters(make, [0.3], [1]), LOW, HIGH)
    yield sample(make(3), *parameters(make, 0.5, 0), LOW, HIGH)


def switches(make: Maker) -> Iterator[SampleInput]:
    for on in (1, 0):
        enabled = make.index(1, below=on + 1, low=on)
        yield sample(make(3, 4), *parameters(make, [0.3], [1]), enabled, LOW, HIGH)


def by_channels(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 4), *parameters(make, [0.3, 0.5, 1], [1, 0, -2]), 0, LOW, HIGH)
    yield sample(make(2, 3, 2), *parameters(make, [0.3, 0.5, 1], [1, 0, -2]), 1, LOW, HIGH)


def masked(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 4), make.mask(3, 4))


def wrong_numbers(make: Maker) -> Iterator[ErrorInput]:
    x = make(3)
    text = "`zero_point` must be between `quant_min` and `quant_max`."
    yield ErrorInput(sample(x, 0.5, 10, LOW, HIGH), RuntimeError, text)
    text = "`quant_min` should be less than or         equal to `quant_max`."
    yield ErrorInput(sample(x, 0.5, 1, HIGH, LOW), RuntimeError, text)


def wrong_channels(make: Maker) -> Iterator[ErrorInput]:
    x, (scale, zero_point) = make(2, 3), parameters(make, [0.3, 0.5], [1, 0])
    for given, text in (
        ((scale, zero_point, -2), "`axis` must be between 0 and number of dimensions of input"),
        ((scale, zero_point, 1), "dimensions of scale and zero-point are not consistent with input tensor"),
        ((scale.double(), zero_point, 0), "Scale must be Float or BFloat16, found Double"),
        ((scale, zero_point.long(), 0), "Zero-point must be Int32, Float or Half, found Long"),
        ((scale, zero_point[:1], 0), "scale and zero-point need to have the same dimensions"),
        ((scale.view(1, 2), zero_point, 0), "scale should be a 1-D tensor"),
        ((scale, zero_point + 100, 0), "`zero_point` must be between `quant_min` and `quant_max`."),
    ):
        yield ErrorInput(sample(x, *given, LOW, HIGH), RuntimeError, text)


STRAIGHT = dict.fromkeys(
    ["gradients", "second_gradients"], "its gradient is that of the identity, not that of a staircase"
)


CHECKED = {**STRAIGHT, "vmap": "whether zero points are within bounds is asked of their values"}


def first(function: Any) -> Any:
    return lambda *args: function(*args)[0]


TENSOR, CHANNEL = "fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine"
FAKE_QUANTIZE = [
    OpInfo(TENSOR, by_numbers, first(quantized), FLOATS, errors=wrong_numbers, skips=STRAIGHT),
    OpInfo(f"{TENSOR}.tensor_qparams", by_tensors, first(quantized), FLOATS, skips=STRAIGHT),
    OpInfo(CHANNEL, by_channels, first(by_channel), FLOATS, errors=wrong_channels, skips=CHECKED),
    OpInfo(f"{TENSOR}_cachemask", by_numbers, quantized, FLOATS, errors=wrong_numbers, skips=STRAIGHT),
    OpInfo(f"_{TENSOR}_cachemask_tensor_qparams", switches, switched, FLOATS, skips=STRAIGHT),
    OpInfo(f"{CHANNEL}_cachemask", by_channels, by_channel, FLOATS, errors=wrong_channels, skips=CHECKED),
    *(
        OpInfo(f"{name}_cachemask_backward", masked, lambda grad, mask: grad * mask, FLOATS)
        for name in (TENSOR, CHANNEL)
    ),
]
