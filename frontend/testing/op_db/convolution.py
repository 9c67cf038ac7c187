"""Samples of kernels/ops/convolution.py. The reference adds up the products one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample


def each(value: Any, dims: int) -> list[int]:
    return [value] * dims if isinstance(value, int) else list(value) * (dims if len(value) == 1 else 1)


def convolved(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Any:
    """By its definition: element by element of the window, all places at once."""
    dims = weight.ndim - 2
    s, p, d, extra = (each(value, dims) for value in (stride, padding, dilation, output_padding))
    window, sizes = weight.shape[2:], input.shape[2:]
    taken, made = input.shape[1] // groups, (weight.shape[1] if transposed else weight.shape[0] // groups)
    spans = [d[i] * (window[i] - 1) + 1 for i in range(dims)]
    if transposed:
        out = [(sizes[i] - 1) * s[i] + spans[i] + extra[i] for i in range(dims)]
        whole = np.zeros((input.shape[0], made * groups, *out), input.dtype)
    else:
        out = [(sizes[i] + 2 * p[i] - spans[i]) // s[i] + 1 for i in range(dims)]
        whole = np.zeros((input.shape[0], made * groups, *out), input.dtype)
        input = np.pad(input, [(0, 0), (0, 0), *((n, n) for n in p)])
    for g, at in product(range(groups), np.ndindex(*window)):
        x, y = input[:, g * taken : (g + 1) * taken], whole[:, g * made : (g + 1) * made]
        counts = sizes if transposed else out
        starts = [at[i] * d[i] for i in range(dims)]
        places: Any = (..., *(slice(starts[i], starts[i] + (counts[i] - 1) * s[i] + 1, s[i]) for i in range(dims)))
        if transposed:
            y[places] += np.einsum("ni...,io->no...", x, weight[(slice(g * taken, (g + 1) * taken), slice(None), *at)])
        else:
            y += np.einsum("ni...,oi->no...", x[places], weight[(slice(g * made, (g + 1) * made), slice(None), *at)])
    if transposed:
        kept: Any = (..., *(slice(p[i], out[i] - p[i]) for i in range(dims)))
        whole = whole[kept]
    return whole if bias is None else whole + bias.reshape(-1, *[1] * dims)


# (input, weight, has a bias, stride, padding, dilation, transposed, output padding, groups)
CASES: list[tuple[Any, ...]] = [
    ((2, 2, 5), (3, 2, 3), True, [1], [0], [1], False, [0], 1),
    ((1, 2, 6), (4, 1, 2), False, [2], [1], [2], False, [0], 2),
    ((2, 2, 4, 5), (2, 2, 3, 2), True, [1, 1], [1, 0], [1, 1], False, [0, 0], 1),
    ((1, 2, 5, 5), (2, 1, 2, 2), False, [2, 1], [0, 1], [1, 2], False, [0, 0], 2),
    ((2, 3, 4, 4), (2, 3, 1, 1), True, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    ((1, 2, 3, 3, 4), (2, 2, 2, 2, 2), True, [1], [1], [1], False, [0], 1),
    ((2, 3, 4), (3, 2, 3), True, [2], [1], [1], True, [1], 1),
    ((1, 4, 3, 3), (4, 1, 2, 3), True, [2, 1], [1, 0], [1, 2], True, [1, 0], 2),
    ((1, 2, 2, 2, 2), (2, 2, 2, 1, 2), False, [1], [0], [1], True, [0], 1),
    ((0, 2, 4, 4), (3, 2, 3, 3), True, [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
]


def made_by(case: tuple[Any, ...]) -> int:
    weight, transposed, groups = case[1], case[6], case[8]
    return weight[1] * groups if transposed else weight[0]


def convolutions(make: Maker) -> Iterator[SampleInput]:
    for case in CASES if make.thorough else CASES[:3]:
        bias = make(made_by(case)) if case[2] else None
        yield sample(make(*case[0]), make(*case[1]), bias, *case[3:])


def gradients(make: Maker) -> Iterator[SampleInput]:
    for case in CASES[:-1] if make.thorough else CASES[:2]:
        empty = tuple(case[0]), tuple(case[1])
        result = convolved(np.zeros(empty[0]), np.zeros(empty[1]), None, *case[3:])
        sizes = [made_by(case)] if case[2] else None
        mask = [True, True, case[2]]
        yield sample(make(*result.shape), make(*case[0]), make(*case[1]), sizes, *case[3:], mask)


def calls(dims: int, transposed: bool) -> Any:
    """Calls of `conv2d` or `conv_transpose2d`."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for case in CASES:
            if len(case[1]) - 2 == dims and case[6] is transposed:
                shape, weight, has_bias, stride, padding, dilation, _, output_padding, groups = case
                bias = make(made_by(case)) if has_bias else None
                order = (output_padding, groups, dilation) if transposed else (dilation, groups)
                yield sample(make(*shape), make(*weight), bias, stride, padding, *order)
                if has_bias:
                    yield sample(make(*shape[1:]), make(*weight), bias, stride, padding, *order)  # a single image

    return samples


def words(dims: int) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for padding, window in product(("same", "valid"), (3, 1)):
            yield sample(make(1, 2, *[4] * dims), make(2, 2, *[window] * dims), make(2), [1], padding, [1], 1)

    return samples


def plain(dims: int, transposed: bool) -> Any:
    def reference(input: Any, weight: Any, bias: Any, stride: Any, padding: Any, *more: Any) -> Any:
        output_padding, groups, dilation = more if transposed else (0, more[1], more[0])
        if isinstance(padding, str):
            padding = [(k - 1) // 2 if padding == "same" else 0 for k in weight.shape[2:]]
        single = input.ndim == dims + 1
        batch = input[None] if single else input
        found = convolved(batch, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
        return found[0] if single else found

    return reference


def wrong(make: Maker) -> Iterator[ErrorInput]:
    x, w = make(1, 3, 4, 4), make(2, 3, 3, 3)

    def call(input: Any, weight: Any, bias: Any = None, s: Any = 1, p: Any = 0, d: Any = 1, g: int = 1) -> SampleInput:
        return sample(input, weight, bias, each(s, 2), each(p, 2), each(d, 2), False, [0, 0], g)

    cases = [
        (call(make(1, 2, 4, 4), w), "expected input[1, 2, 4, 4] to have 3 channels, but got 2 channels instead"),
        (call(make(1, 3, 2, 2), w), "Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 3)."),
        (call(x, w, p=-1), "negative padding is not supported"),
        (call(x, w, s=0), "non-positive stride is not supported"),
        (call(x, w, d=0), "dilation should be greater than zero"),
        (call(x, w, g=0), "non-positive groups is not supported"),
        (call(x, w, s=[1, 1, 1]), "expected stride to be a single integer value or a list of 2 values"),
        (call(x, w, make(5)), "expected bias to be 1-dimensional with 2 elements, but got bias of size [5] instead"),
        (call(make(1, 4, 4, 4), make(5, 2, 3, 3), g=2), "expected weight to be divisible by 2 at dimension 0"),
    ]
    for given, text in cases:
        yield ErrorInput(given, RuntimeError, text)
    text = "\"slow_conv2d_cpu\" not implemented for 'Bool'"
    yield ErrorInput(call(make(1, 3, 4, 4) > 0, make(2, 3, 3, 3) > 0), NotImplementedError, text)


# what it is told of cuDNN: benchmark, deterministic, enabled, allow_tf32
def told(count: int) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for given in convolutions(make):
            yield sample(given.input, *given.args, *[False, False, True, True][:count])

    return samples


def by_mode(make: Maker) -> Iterator[SampleInput]:
    for dims in (1, 2):
        yield from words(dims)(make)


def over_time(make: Maker) -> Iterator[SampleInput]:
    for time, kernel, pad in ((5, 3, 0), (4, 2, 1)):
        yield sample(make(time, 2, 3), make(kernel, 3, 2), make(2), pad)


def over_time_back(make: Maker) -> Iterator[SampleInput]:
    for given in over_time(make):
        weight, bias, pad = given.args
        time = given.input.shape[0] + 2 * pad - weight.shape[0] + 1
        yield sample(make(time, 2, 2), given.input, weight, bias, pad)


def convolved_over_time(x: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    x = np.pad(x, [(pad, pad), (0, 0), (0, 0)])
    count = len(x) - len(weight) + 1
    return sum(x[k : k + count] @ w for k, w in enumerate(weight)) + bias


def convolved_over_time_back(grad: Any, x: Any, weight: Any, bias: Any, pad: int) -> Any:
    x, count = np.pad(x, [(pad, pad), (0, 0), (0, 0)]), len(grad)
    of_input, of_weight = np.zeros_like(x), np.zeros_like(weight)
    for k, w in enumerate(weight):
        of_input[k : k + count] += grad @ w.T
        of_weight[k] = np.einsum("tbi,tbo->io", x[k : k + count], grad)
    return of_input[pad : len(x) - pad], of_weight, grad.sum((0, 1))


def wrong_over_time(make: Maker) -> Iterator[ErrorInput]:
    x, w, b = make(5, 2, 3), make(3, 3, 4), make(4)
    for given, text in (
        ((make(5, 2), w, b), "Input must have 3 dims: time, batch, in_channel"),
        ((x, make(3, 3), b), "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."),
        ((x, w, make(4, 1)), "Bias must be 1-D"),
        ((x, make(3, 2, 4), b), "Input dim 2 (input channels) is not == dim 1 in the weight tensor"),
        ((x, w, make(3)), "Bias size must equal dim 2 in the weight tensor (output channels)."),
    ):
        yield ErrorInput(sample(*given), RuntimeError, text)


CONVOLUTION = [
    OpInfo("_convolution", told(4), lambda *args: convolved(*args[:9]), dtypes=FLOATS),
    OpInfo("_convolution.deprecated", told(3), lambda *args: convolved(*args[:9]), dtypes=FLOATS),
    OpInfo("_convolution_mode", by_mode, lambda x, w, *rest: plain(w.ndim - 2, False)(x, w, *rest), dtypes=FLOATS),
    OpInfo("conv_tbc", over_time, convolved_over_time, dtypes=FLOATS, errors=wrong_over_time),
    OpInfo("conv_tbc_backward", over_time_back, convolved_over_time_back, dtypes=FLOATS),
    OpInfo("convolution", convolutions, convolved, dtypes=FLOATS, errors=wrong),
    OpInfo("convolution_backward", gradients, dtypes=FLOATS),
    *(
        OpInfo(name, calls(dims, transposed), plain(dims, transposed), dtypes=FLOATS, function=f"nn.functional.{base}")
        for dims in (1, 2, 3)
        for transposed in (False, True)
        for base in [f"conv_transpose{dims}d" if transposed else f"conv{dims}d"]
        for name in [f"{base}.input" if transposed and dims > 1 else base]
    ),
    *(
        OpInfo(
            f"conv{dims}d.padding",
            words(dims),
            plain(dims, False),
            dtypes=FLOATS,
            function=f"nn.functional.conv{dims}d",
        )
        for dims in (1, 2, 3)
    ),
]
