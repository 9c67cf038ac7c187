"""Samples of the layers of networks: convolution, attention, recurrence, normalisation."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from scipy import special

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, OpInfo
from .backward import backward_of, gradient_of
from .common import call, calls, first_result, fixed, made, per_axis, table, x

INF = float("inf")

# --- convolution: the reference adds up the products one by one -------------------------------------------------------


def convolved(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *cudnn):
    """Windows times weights; transposed, of an image with zeros between its elements, by the weights turned around."""
    x, weight, dims = np.asarray(x, np.float64), np.asarray(weight, np.float64), weight.ndim - 2
    axes = tuple(range(2, 2 + dims))
    s, p, d, extra = (per_axis(value, dims) for value in (stride, padding, dilation, output_padding))
    spans = [d[i] * (k - 1) + 1 for i, k in enumerate(weight.shape[2:])]
    pads = [(n, n) for n in p]
    if transposed:
        wide = np.zeros((*x.shape[:2], *((n - 1) * step + 1 for n, step in zip(x.shape[2:], s, strict=True))))
        every: Any = (..., *(slice(None, None, step) for step in s))
        wide[every] = x
        pads = [(span - 1 - n, span - 1 - n + more) for span, n, more in zip(spans, p, extra, strict=True)]
        turned = [part.swapaxes(0, 1) for part in np.split(weight, groups)]
        x, s, weight = wide, [1] * dims, np.flip(np.concatenate(turned), axes)
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    windows = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
    windows = windows[(slice(None), slice(None), *(slice(None, None, step) for step in (*s, *d)))]
    split = windows.reshape(len(x), groups, x.shape[1] // groups, *windows.shape[2:])
    out, window = "xyz"[:dims], "ijk"[:dims]
    parts = weight.reshape(groups, len(weight) // groups, *weight.shape[1:])
    found = np.einsum(f"ngc{out}{window},goc{window}->ngo{out}", split, parts)
    found = found.reshape(len(x), len(weight), *windows.shape[2 : 2 + dims])
    return found if bias is None else found + bias.reshape(-1, *[1] * dims)


# (input, weight, has a bias, stride, padding, dilation, transposed, output padding, groups)
CASES = [
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


def made_by(case):
    """The number of channels that come out."""
    weight, transposed, groups = case[1], case[6], case[8]
    return weight[1] * groups if transposed else weight[0]


def convolutions(*cudnn):
    def samples(make):
        for case in CASES if make.thorough else CASES[:3]:
            bias = make(made_by(case)) if case[2] else None  # is made first, before the image
            yield from call(*case[:2], bias, *case[3:], *cudnn)(make)

    return samples


def of_dims(dims, transposed):
    """Calls of `conv2d` or `conv_transpose2d`: of batches, and of a single image."""

    def samples(make):
        for case in CASES:
            if len(case[1]) - 2 == dims and case[6] is transposed:
                shape, weight, has_bias, stride, padding, dilation, _, output_padding, groups = case
                bias = make(made_by(case)) if has_bias else None
                order = (output_padding, groups, dilation) if transposed else (dilation, groups)
                for image in (shape, shape[1:])[: 1 + has_bias]:
                    yield from call(image, weight, bias, stride, padding, *order)(make)

    return samples


def in_words(dims):
    return calls(
        *(
            [(1, 2, *[4] * dims), (2, 2, *[window] * dims), (2,), [1], padding, [1], 1]
            for padding, window in product(("same", "valid"), (3, 1))
        )
    )


def plain(dims, transposed):
    def reference(input, weight, bias, stride, padding, *more):
        output_padding, groups, dilation = more if transposed else (0, more[1], more[0])
        if isinstance(padding, str):
            padding = [(k - 1) // 2 if padding == "same" else 0 for k in weight.shape[2:]]
        batch = input[None] if input.ndim == dims + 1 else input
        found = convolved(batch, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
        return found if batch is input else found[0]

    return reference


def of_any_dims(x, weight, *rest):
    return plain(weight.ndim - 2, False)(x, weight, *rest)


def over_time(x, weight, bias, pad=0):
    x = np.pad(x, [(pad, pad), (0, 0), (0, 0)])
    count = len(x) - len(weight) + 1
    return sum(x[k : k + count] @ w for k, w in enumerate(weight)) + bias


def sized(x, weight, kernel_size, bias=None, stride=1, padding=0):
    return convolved(x, weight, bias, stride, padding, 1, False, 0, 1)


def with_sizes(dims):
    shape, weight, kernel = (2, 3, *[5, 4, 4][:dims]), (4, 3, *[3, 2, 1][:dims]), [3, 2, 1][:dims]
    return calls([shape, weight, kernel], [shape, weight, kernel, (4,), [2] * dims, [1] * dims])


def other_kernels(dims):
    size, weight = [5] * dims, (4, 3, *[3] * dims)
    shape = [4, 3, *[2] * dims]
    return {
        f"Expected {dims + 2}D input tensor, but got: {[3, *size]}": [(3, *size), weight, [3] * dims],
        f"Expected a weight of shape {shape}, or one row for each output, but got: ": [
            *((2, 3, *size), weight, [2] * dims)
        ],
    }


def wrong(input=(1, 3, 4, 4), weight=(2, 3, 3, 3), bias=None, s=1, p=0, d=1, g=1):
    return [input, weight, bias, per_axis(s, 2), per_axis(p, 2), per_axis(d, 2), False, [0, 0], g]


def twice(input, weight, result, *how):
    """A call of `_convolution_double_backward` that asks for all."""
    bias = (result[1],)
    return [input, weight, bias, result, weight, input, *how, [True] * 3]


def convolved_twice(gg_input, gg_weight, gg_bias, grad, weight, input, *how_and_mask):
    """A convolution is linear in both: gradients are sums over what each single element would change."""
    how = how_and_mask[:-1]

    def change(shape, convolve):
        units = np.eye(math.prod(shape)).reshape(-1, *shape)
        return np.array([(grad * convolve(unit)).sum() for unit in units]).reshape(shape)

    return (
        convolved(gg_input, weight, None, *how) + convolved(input, gg_weight, gg_bias, *how),
        change(input.shape, lambda unit: convolved(unit, gg_weight, None, *how)),
        change(weight.shape, lambda unit: convolved(gg_input, unit, None, *how)),
    )


TWICE = [
    twice((2, 2, 5), (3, 2, 3), (2, 3, 3), [1], [0], [1], False, [0], 1),
    twice((1, 2, 4), (2, 1, 3), (1, 2, 8), [2], [1], [1], True, [1], 2),
]
OVER_TIME = (((5, 2, 3), (3, 3, 2), (2,), 0), ((4, 2, 3), (2, 3, 2), (2,), 1))
CONVOLUTIONS = [(dims, transposed) for dims in (1, 2, 3) for transposed in (False, True)]
CONVOLUTION = table(
    OpInfo("convolution", convolutions(), convolved, FLOATS),
    OpInfo("_convolution", convolutions(False, False, True, True), convolved, FLOATS),
    OpInfo("_convolution.deprecated", convolutions(False, False, True), convolved, FLOATS),
    OpInfo("_convolution_mode", calls(in_words(1), in_words(2)), of_any_dims, FLOATS),
    *(
        OpInfo(name, of_dims(dims, transposed), plain(dims, transposed), FLOATS)
        for dims, transposed in CONVOLUTIONS
        for base in [f"conv_transpose{dims}d" if transposed else f"conv{dims}d"]
        for name in [f"{base}.input" if transposed and dims > 1 else base]
    ),
    *(OpInfo(f"conv{dims}d.padding", in_words(dims), plain(dims, False), FLOATS) for dims in (1, 2, 3)),
    OpInfo("_convolution_double_backward", calls(*TWICE), convolved_twice, FLOATS),
    OpInfo("conv_tbc", calls(*map(list, OVER_TIME)), over_time, FLOATS),
    OpInfo("thnn_conv2d", with_sizes(2), sized, FLOATS),
    OpInfo("slow_conv3d", with_sizes(3), sized, FLOATS),
    errors={
        "convolution": {
            "expected input[1, 2, 4, 4] to have 3 channels, but got 2 channels instead": wrong((1, 2, 4, 4)),
            "Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 3).": wrong((1, 3, 2, 2)),
            "negative padding is not supported": wrong(p=-1),
            "non-positive stride is not supported": wrong(s=0),
            "dilation should be greater than zero": wrong(d=0),
            "non-positive groups is not supported": wrong(g=0),
            "expected stride to be a single integer value or a list of 2 values": wrong(s=[1, 1, 1]),
            "expected bias to be 1-dimensional with 2 elements, but got bias of size [5] instead": wrong(bias=(5,)),
            "expected weight to be divisible by 2 at dimension 0": wrong((1, 4, 4, 4), (5, 2, 3, 3), g=2),
            "NotImplementedError: \"slow_conv2d_cpu\" not implemented for 'Bool'": wrong(
                x(1, 3, 4, 4).gt(0), x(2, 3, 3, 3).gt(0)
            ),
        },
        "conv_tbc": {
            "Input must have 3 dims: time, batch, in_channel": [(5, 2), (3, 3, 4), (4,)],
            "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.": [(5, 2, 3), (3, 3), (4,)],
            "Bias must be 1-D": [(5, 2, 3), (3, 3, 4), (4, 1)],
            "Input dim 2 (input channels) is not == dim 1 in the weight tensor": [(5, 2, 3), (3, 2, 4), (4,)],
            "Bias size must equal dim 2 in the weight tensor (output channels).": [(5, 2, 3), (3, 3, 4), (3,)],
        },
        "thnn_conv2d": other_kernels(2),
        "slow_conv3d": other_kernels(3),
    },
    in_nn="conv1d conv2d conv3d conv_transpose1d conv_transpose2d.input conv_transpose3d.input conv1d.padding "
    "conv2d.padding conv3d.padding",
)

# --- attention: the reference is the definition, with all scores in memory --------------------------------------------

SIZES = [((1, 2), 3, 4, 2), ((2, 1), 4, 2, 3), ((1, 1), 1, 3, 1)]  # batch and heads, queries, keys, width


def softmax(scores):
    with np.errstate(all="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        shares = powers / powers.sum(-1, keepdims=True)
    return np.where((scores == -np.inf).all(-1, keepdims=True), np.zeros((), scores.dtype), shares)


def scores_of(query, key, mask, is_causal, scale):
    scores = query @ key.swapaxes(-1, -2) * query.dtype.type(query.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores + (np.where(mask, 0, -np.inf).astype(query.dtype) if mask.dtype == bool else mask)
    seen = np.tril(np.ones(scores.shape[-2:], bool)) if is_causal else True
    return np.where(seen, scores, query.dtype.type(-np.inf))


def attended(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, dropout_mask=None, scale=None, enable_gqa=False
):
    """(the result, the weights)"""
    if enable_gqa:
        key, value = (np.repeat(x, query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    weights = softmax(scores_of(query, key, attn_mask, is_causal, scale))
    return weights @ value, weights


def attended_by_kernel(query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    """(the result, the logarithm of the sum of exponentials)"""
    key, value = (np.repeat(x, query.shape[1] // x.shape[1], 1) for x in (key, value))
    scores = scores_of(query, key, attn_mask, is_causal, scale)
    with np.errstate(all="ignore"):
        logs = scores.max(-1) + np.log(np.exp(scores - scores.max(-1, keepdims=True)).sum(-1))
    logs = np.where((scores == -np.inf).all(-1), np.zeros((), query.dtype), logs)
    return softmax(scores) @ value, logs


def attended_with_bias(query, key, value, bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, *, scale=None):
    """(the result; logarithms, of 32 rows or a multiple; seed and offset, 0 without dropout)"""
    result, logs = attended_by_kernel(query, key, value, 0.0, is_causal, attn_mask=bias, scale=scale)
    more = -query.shape[2] % 32
    kept = np.pad(logs, [(0, 0), (0, 0), (0, more)]) if compute_log_sumexp else logs[..., :0]
    return result, kept, np.zeros((), np.int64), np.zeros((), np.int64)


def heads(outer, n, m, width):
    return [(*outer, n, width), (*outer, m, width), (*outer, m, width)]


FIRST = heads(*SIZES[0])
BLIND = x.values([[0.0, 1.0, 2.0, 3.0], [-INF] * 4, [-INF, 0.0, -INF, 1.0]]).detach()
SEEN = x.values([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]], dtypes.bool)


def transposed(*shape):
    return x(*shape).detach().transpose(1, 2).clone().transpose(1, 2)


def kernel_calls(make):
    for size in SIZES if make.thorough else SIZES[:1]:
        yield from calls(heads(*size), call(*heads(*size), 0.0, True, scale=0.5))(make)
    masks = made([(3, 4), (1, 2, 1, 4), (1, 4)] if make.thorough else [(3, 4)], make)
    for mask in [mask.detach() for mask in masks] + [BLIND]:
        yield from call(*FIRST, attn_mask=mask)(make)
    yield from call(*(transposed(*shape) for shape in heads((2, 3), 3, 4, 2)))(make)


def biased_calls(make):
    for size in SIZES if make.thorough else SIZES[:1]:
        yield from calls([*heads(*size), None, True], call(*heads(*size), None, True, 0.0, True, scale=0.5))(make)
    yield from calls(
        [*FIRST, (1, 2, 3, 4), True], [(1, 4, 3, 2), (1, 2, 5, 2), (1, 2, 5, 3), fixed(5), True], [*FIRST, BLIND, True]
    )(make)


def gradients_but_of_bias(*args, **kwargs):
    """The gradients but the bias's, which has the shape of the scores: what it was expanded by is summed afterwards."""
    return [*gradient_of(attended_with_bias, [0, 1, 2], one=False)(*args, **kwargs), None]


def rows_of(x, dim, dtype=None):
    return np.moveaxis(softmax(np.moveaxis(x, dim, -1)), -1, dim)


ATTENTIONS = calls(
    *(
        part
        for outer, *size in SIZES
        for three in [heads(outer, *size)]
        for part in (three, [*three, None, 0.0, True], call(*heads(outer[1:], *size), scale=-0.5))
    ),
    [*FIRST, SEEN],
    [*FIRST, (3, 4)],  # learned, where gradients are asked for
    [*FIRST, fixed(1, 1, 3, 4)],
    [*heads((2,), 3, 4, 2), SEEN],
    [*heads((), 3, 4, 2), None, 0.0, True],
    call((1, 4, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2), enable_gqa=True),
    call((4, 3, 2), (2, 3, 2), (2, 3, 2), enable_gqa=True),
    [(1, 2, 3, 2), (1, 2, 4, 2), (1, 2, 4, 5)],  # values of another width
    [(2, 2, 3, 2), (1, 2, 4, 2), (1, 2, 4, 2)],  # one batch for all
)
DEFINITIONS = calls(FIRST, [*FIRST, (3, 4)], call(*FIRST, None, 0.0, True, scale=2.0))
CHOICES = calls(*([*(fixed(*shape) for shape in FIRST), *rest] for rest in ((), (None, 0.5))))
ROWS = calls([(2, 3), -1], [(2, 3, 2), 1], [x.values([[1.0, -INF], [-INF, -INF]]), 1])
Q, K, V = heads((2, 3), 4, 5, 8)
q, k, v = (x(*shape) for shape in (Q, K, V))
LATER_MASK = x(4, 5)
FLASH, EFFICIENT = "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_efficient_attention"
ATTENTION = table(
    OpInfo("scaled_dot_product_attention", ATTENTIONS, lambda *args, **how: attended(*args, **how)[0], FLOATS),
    OpInfo(FLASH, kernel_calls, attended_by_kernel, FLOATS),
    OpInfo(EFFICIENT, biased_calls, attended_with_bias, FLOATS),
    OpInfo("_fused_sdp_choice", CHOICES, lambda q, k, v, mask=None, p=0.0: int(p == 0), FLOATS, gradients=False),
    OpInfo("_scaled_dot_product_attention_math", DEFINITIONS, attended, FLOATS),
    OpInfo("_safe_softmax", ROWS, rows_of, FLOATS),
    references={f"{EFFICIENT}_backward": gradients_but_of_bias},
    errors={
        "scaled_dot_product_attention": {
            "to all be  at least 2 dimensional, but got query.dim: 1": [q[0, 0, 0], k[0, 0, 0], v[0, 0, 0]],
            "to have the same dtype, but got query.dtype: double key.dtype: float and value": [Q, k.float(), V],
            "or to match query dtype, but got attn_mask.dtype: long int and  query": [Q, K, V, LATER_MASK.long()],
            "The size of tensor a (5) must match the size of tensor b (6)": [Q, K, V, (4, 6)],
            "Expected size for first two dimensions of batch2 tensor to be: [6, 8]": [Q, k[..., :6], V],
            "Number of heads in key and value must divide": call(Q, k[:, :2], v[:, :2], enable_gqa=True),
            "dropout probability has to be between 0 and 1, but got 1.5": [Q, K, V, None, 1.5],
            "Explicit attn_mask should not be set when is_causal=True": [q[0], k[0], v[0], (4, 5), 0.0, True],
        },
        FLASH: {
            "Accept only 4 dims inputs shape of {B, H, T, K}": [q[0], k[0], v[0]],
            "Q/K/V should have the same head size": [Q, K, v[..., :4]],
            "Currently do not support dropout > 0": [Q, K, V, 0.5],
            "Expected data type in FP32, FP64, BF16, FP16, but got Long instead.": [q.long(), k.long(), v.long()],
            "Attention mask is the same data type as query": call(Q, K, V, attn_mask=LATER_MASK.long()),
            "Attention mask dim in {2, 4}": call(Q, K, V, attn_mask=(3, 4, 5)),
            "expected scalar type Double but found Float": [Q, k.float(), V],
        },
    },
    skips={
        "the fused kernel's backward has no derivative, as in PyTorch": (
            "second_gradients forward: scaled_dot_product_attention"
        ),
        "its backward has no derivative, as in PyTorch": f"second_gradients forward: {FLASH} {EFFICIENT}",
        "the result that was saved is rounded": "bfloat16: *_backward",
        "it has no derivative, as in PyTorch": "gradients second_gradients: *_backward",
        "the choice depends on the device, and on how tensors lie": "meta layouts: _fused_sdp_choice",
    },
    in_nn="scaled_dot_product_attention",
)

# --- recurrence: every network, padded and packed, with one and two layers and directions -----------------------------

FEATURES, HIDDEN = 1, 2


def share(x, weight, bias):
    return x @ weight.T + (0 if bias is None else bias)


def tanh_step(x, state, w, u, b=None, c=None):
    return (np.tanh(share(x, w, b) + share(state[0], u, c)),)


def relu_step(x, state, w, u, b=None, c=None):
    return (np.maximum(share(x, w, b) + share(state[0], u, c), 0),)


def lstm_step(x, state, w, u, b=None, c=None):
    i, f, g, o = np.split(share(x, w, b) + share(state[0], u, c), 4, 1)
    cell = special.expit(f) * state[1] + special.expit(i) * np.tanh(g)
    return special.expit(o) * np.tanh(cell), cell


def gru_step(x, state, w, u, b=None, c=None):
    of_input, of_hidden = np.split(share(x, w, b), 3, 1), np.split(share(state[0], u, c), 3, 1)
    reset, stays = (special.expit(of_input[k] + of_hidden[k]) for k in (0, 1))
    new = np.tanh(of_input[2] + reset * of_hidden[2])
    return (new + stays * (state[0] - new),)


def through(step, sequence, states, params, biases, layers, directions):
    """One sequence [time, features] through all layers: the results and the last states."""
    each = 4 if biases else 2
    last = []
    for layer in range(layers):
        results = []
        for direction in range(directions):
            at = layer * directions + direction
            state, seen = tuple(part[at][None] for part in states), []
            for one in sequence[::-1] if direction else sequence:
                state = step(one[None], state, *params[each * at : each * (at + 1)])
                seen.append(state[0][0])
            results.append(np.stack(seen[::-1] if direction else seen))
            last.append([part[0] for part in state])
        sequence = np.concatenate(results, 1)
    return sequence, [np.stack(part) for part in zip(*last, strict=True)]


def as_list(hx):
    return hx if isinstance(hx, list) else [hx]


def padded(step):
    def reference(x, hx, params, biases, layers, dropout, train, both, batch_first):
        x = x if batch_first else x.swapaxes(0, 1)
        parts = [
            through(step, one, [part[:, b] for part in as_list(hx)], params, biases, layers, 1 + both)
            for b, one in enumerate(x)
        ]
        result = np.stack([one for one, _ in parts], 0 if batch_first else 1)
        return result, *(np.stack(last, 1) for last in zip(*(last for _, last in parts), strict=True))

    return reference


def packed(step):
    def reference(data, sizes, hx, params, biases, layers, dropout, train, both):
        places = [[int(sizes[:t].sum()) + b for t in range(len(sizes)) if b < sizes[t]] for b in range(sizes[0])]
        result, lasts = np.zeros((len(data), HIDDEN * (1 + both)), data.dtype), []
        for b, place in enumerate(places):
            states = [part[:, b] for part in as_list(hx)]
            result[place], last = through(step, data[place], states, params, biases, layers, 1 + both)
            lasts.append(last)
        return result, *(np.stack(last, 1) for last in zip(*lasts, strict=True))

    return reference


def one_step(step):
    def reference(x, hx, *params):
        made = step(x, as_list(hx), *params)
        return made if len(made) == 2 else made[0]

    return reference


def weights(gates, biases, layers, directions):
    shapes = [
        shape
        for layer in range(layers)
        for features in [FEATURES if layer == 0 else HIDDEN * directions] * directions
        for shape in ((gates * HIDDEN, features), (gates * HIDDEN, HIDDEN), *[(gates * HIDDEN,)] * (2 * biases))
    ]
    return [x(*shape, low=-0.8, high=0.8) for shape in shapes]


def sequences(gates, parts, pack):
    """Two sequences, padded to three times or packed; `parts` tensors are the state."""

    def samples(make):
        for biases, layers, both, first in ((True, 1, False, False), (False, 2, False, True), (True, 2, True, False)):
            state = made([(layers * (1 + both), 2, HIDDEN)] * parts, make)
            given = state if parts == 2 else state[0]
            params = made(weights(gates, biases, layers, 1 + both), make)
            how = (params, biases, layers, 0.0, True, both)
            if pack:
                yield from call((4, FEATURES), x.values([2, 1, 1], dtypes.int64), given, *how)(make)
            else:
                yield from call((2, 3, FEATURES) if first else (3, 2, FEATURES), given, *how, first)(make)

    return samples


def steps(gates: Any, parts: Any, shape=(2, FEATURES), hidden=(2, HIDDEN), biases=True):
    """A step of a cell; its state is made first, its parameters last."""

    def samples(make):
        state = made([hidden] * parts, make)
        yield from call(shape, state if parts == 2 else state[0], *weights(gates, biases, 1, 1))(make)

    return samples


def inconsistent(gates, parts):
    return {
        "input has inconsistent input_size: got 4 expected 1": steps(gates, parts, shape=(2, 4)),
        "Input batch size 2 doesn't match hidden0 batch size 3": steps(gates, parts, hidden=(3, HIDDEN)),
        "hidden0 has inconsistent hidden_size: got 5, expected 2": steps(gates, parts, hidden=(2, 5)),
    }


CELLS = {"lstm": (4, 2, lstm_step), "gru": (3, 1, gru_step), "rnn_tanh": (1, 1, tanh_step)}
CELLS["rnn_relu"] = (1, 1, relu_step)
RECURRENT = table(
    *(OpInfo(f"{n}.input", sequences(g, k, False), padded(step), FLOATS) for n, (g, k, step) in CELLS.items()),
    *(OpInfo(f"{n}.data", sequences(g, k, True), packed(step), FLOATS) for n, (g, k, step) in CELLS.items()),
    *(
        OpInfo(f"{n}_cell", calls(steps(g, k), steps(g, k, biases=False)), one_step(step), FLOATS)
        for n, (g, k, step) in CELLS.items()
    ),
    errors={f"{name}_cell": inconsistent(*cell) for name, (*cell, _) in CELLS.items()},
    skips={
        "those of the cell, which is repeated; here they would take minutes": "second_gradients: *.data *.input",
        "how many sequences go on must not stay the same where the data is shorter": "expanded: *.data",
        "how many steps there are depends on the values of the sizes": "meta subclass: *.data",
    },
)

# --- fused layers -----------------------------------------------------------------------------------------------------

WIDTH, HEADS = 4, 2
MASKS = (
    (None, None),
    (0, [[False, True, False], [True, False, False], [False, False, False]]),
    (1, [[False, False, True], [False, True, False]]),
)


def activated(x, a, b, beta=1, alpha=1, use_gelu=False):
    product = beta * x + alpha * (a @ b)
    return product * special.ndtr(product) if use_gelu else np.maximum(product, 0)


def attentions(make):
    parameters = made([(3 * WIDTH, WIDTH), (3 * WIDTH,), (WIDTH, WIDTH), (WIDTH,)], make)
    for (kind, mask), average in zip(MASKS, (True, False, True), strict=True):
        own = None if mask is None else x.values(mask, dtypes.bool)
        three = [x(2, 3, WIDTH, low=-1, high=1) for _ in range(3)]
        yield from call(*three, WIDTH, HEADS, *parameters, own, True, average, kind)(make)


def attended_heads(
    query, key, value, width, heads, weight, bias, into, added, mask=None, need_weights=True, average=True, kind=None
):
    batch, count, _ = query.shape
    three = zip((query, key, value), np.split(weight, 3), np.split(bias, 3), strict=True)
    q, k, v = ((x @ w.T + b).reshape(batch, count, heads, -1).swapaxes(1, 2) for x, w, b in three)
    scores = q @ k.swapaxes(2, 3) / np.sqrt(width / heads)
    if mask is not None:
        scores = np.where(mask if kind == 0 else mask[:, None, None], -np.inf, scores)
    weights = special.softmax(scores, -1)
    result = (weights @ v).swapaxes(1, 2).reshape(batch, count, width) @ into.T + added
    return result, weights.mean(1) if average else weights


def lstm_layers(mode=2):
    """One direction of one layer of an LSTM."""

    def samples(make):
        hidden, features, small = 2, 3, {"low": -0.8, "high": 0.8}
        for reverse, biases in ((False, True), (True, False)):
            shapes = (4 * hidden, features), (4 * hidden, hidden), (4 * hidden,), (4 * hidden,)
            given = made([*(x(*shape, **small) for shape in shapes), (1, 2, hidden), (1, 2, hidden)], make)
            how = [reverse, [], mode, hidden, 1, biases, False, False, make.requires_grad]
            yield from call((3, 2, features), *given, *how)(make)

    return samples


def lstm_layer(x, w, u, b, c, h, cell, reverse, *rest):
    state, results = (h[0], cell[0]), []
    biases = (b, c) if rest[4] else ()
    for one in x[::-1] if reverse else x:
        state = lstm_step(one, state, w, u, *biases)
        results.append(state[0])
    return np.stack(results[::-1] if reverse else results), state[0][None], state[1][None], np.zeros(0, np.uint8)


def first_of(samples):
    return lambda make: [next(iter(samples(make)))]


X, INTO = (2, 3, WIDTH), (WIDTH, WIDTH)
REST = [(3 * WIDTH, WIDTH), (3 * WIDTH,), INTO, (WIDTH,)]
PRODUCTS = calls(
    *([(2, 4), (2, 3), (3, 4)], call((4,), (2, 3), (3, 4), use_gelu=True)),
    call((2, 1), (2, 3), (3, 4), beta=2, alpha=-1),
)
MASKED = [X, X, X, WIDTH, HEADS, *REST, x.mask(2, 3)]
FUSED_LAYERS = table(
    OpInfo("_addmm_activation", PRODUCTS, activated, FLOATS),
    OpInfo("_native_multi_head_attention", attentions, attended_heads, FLOATS),
    OpInfo("mkldnn_rnn_layer", lstm_layers(), lstm_layer, FLOATS),
    errors={
        "_native_multi_head_attention": {
            "expected 3-D `query`, got 2-D tensor": [(3, 4), X, X, WIDTH, HEADS, *REST],
            "expected `query`/`key`/`value` shapes to match": [X, (2, 2, 4), X, WIDTH, HEADS, *REST],
            "passed-in embed_dim 8 didn't match last dim of query 4": [X, X, X, 8, HEADS, *REST],
            "`embed_dim` must divide evenly by `num_heads`": [X, X, X, WIDTH, 3, *REST],
            "expected `qkv_weight` first dim to be 3x embed_dim": [X, X, X, WIDTH, HEADS, INTO, *REST[1:]],
            "Mask Type should be defined": MASKED,
            "Mask Type should be 0 (src_mask) or 1": [*MASKED, True, True, 3],
            "For mask_type == 0 mask shape should be (L, L)": [*MASKED, True, True, 0],
        },
        "mkldnn_rnn_layer": {"only an LSTM (mode 2) has a fused layer on the CPU": first_of(lstm_layers(3))},
    },
)

# --- normalisation ----------------------------------------------------------------------------------------------------

EPS = 1e-5


def stats(channels):
    return [fixed(channels), fixed(channels, low=0.5, high=2)]


def along_channels(x, ndim):
    return x.reshape([-1 if d == 1 else 1 for d in range(ndim)])


def scaled(standard, weight, bias):
    standard = standard if weight is None else standard * along_channels(weight, standard.ndim)
    return standard if bias is None else standard + along_channels(bias, standard.ndim)


def standard(x, axes, eps):
    """(x with a mean of 0 and a deviation of 1 along the axes, its mean, one by its deviation)"""
    mean, rstd = x.mean(axes, keepdims=True), 1 / np.sqrt(x.var(axes, keepdims=True) + eps)
    return (x - mean) * rstd, mean, rstd


def batch_normed(input, weight, bias, mean, var, training, momentum, eps):
    x, none = np.asarray(input, np.float64), np.zeros(0)
    if training:
        found, mean, rstd = standard(x, (0, *range(2, x.ndim)), eps)
        return scaled(found, weight, bias), mean.ravel(), rstd.ravel()
    mean, var = along_channels(mean, x.ndim), along_channels(var, x.ndim)
    return scaled((x - mean) / np.sqrt(var + eps), weight, bias), none, none


def with_reserve(training):
    """Batch norm, and the bytes that other backends keep of it."""
    return lambda x, w, b, mean, var, *how: (*batch_normed(x, w, b, mean, var, training, *how), np.zeros(0, np.uint8))


def instance_normed(input, weight, bias, mean, var, own, momentum, eps, cudnn):
    if not own:
        return batch_normed(input, weight, bias, mean, var, False, momentum, eps)[0]
    return scaled(standard(np.asarray(input, np.float64), tuple(range(2, input.ndim)), eps)[0], weight, bias)


def group_normed(input, weight, bias, n, channels, size, group, eps):
    rows = np.asarray(input, np.float64).reshape(n, group, input.size // max(n, 1) // group)
    found, mean, rstd = standard(rows, -1, eps)
    return scaled(found.reshape(input.shape), weight, bias), mean[..., 0], rstd[..., 0]


def group_norm(input, num_groups, weight=None, bias=None, eps=EPS):
    n, channels = input.shape[:2]
    return group_normed(input, weight, bias, n, channels, 0, num_groups, eps)[0]


def layer_normed(x, shape, weight, bias, eps):
    found, mean, rstd = standard(x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    return found * (1 if weight is None else weight) + (0 if bias is None else bias), mean, rstd


def rms_normed(input, normalized_shape, weight=None, eps=None):
    x = np.asarray(input, np.float64)
    eps = np.finfo(input.dtype).eps if eps is None else eps
    standard = x / np.sqrt((x * x).mean(tuple(range(-len(normalized_shape), 0)), keepdims=True) + eps)
    return standard if weight is None else standard * weight


def norm_except_dim(v, pow=2, dim=0):
    others = None if dim == -1 else tuple(d for d in range(v.ndim) if d != dim % v.ndim)
    return (np.abs(v) ** pow).sum(others, keepdims=dim != -1) ** (1 / pow)


def both(make_calls, *trained):
    return calls(*(part for training in trained for part in make_calls(training)))


def batches(training):
    none = [None, None]
    yield [(4, 3), (3,), (3,), *(none if training else stats(3)), training, 0.1, EPS]
    yield [(2, 2, 3, 2), None, None, *(none if training else stats(2)), training, 0.1, EPS]


def with_stats(*training):
    yield [(4, 3), (3,), (3,), *stats(3), *training, 0.1, EPS]
    yield [(2, 2, 3, 2), None, None, *stats(2), *training, 0.1, EPS]


IMAGES = calls(
    [(2, 3, 4), None, None, None, None, True, 0.1, EPS, False],
    [(2, 3, 2, 2), (3,), (3,), *stats(3), False, 0.1, EPS, False],
)
GROUPS = calls(
    [(2, 4, 3), (4,), (4,), 2, 4, 3, 2, EPS],
    [(2, 4, 2, 2), None, None, 2, 4, 4, 1, EPS],
    [(3, 2), (2,), None, 3, 2, 1, 1, 0.1],
)
LAYERS = calls(
    [(2, 3), [3], (3,), (3,), EPS],
    [(2, 2, 3), [2, 3], None, None, 1e-3],
    [(2, 3), [3], (3,), None, EPS],
    [(0, 3), [3], (3,), (3,), EPS],
)
NORM_EXCEPT = calls([(3, 2, 4)], [(3, 2, 4), 2, 1], [(3, 2, 4), 2, 2], [(3, 2, 4), 2, -1], [(3, 2), 1])
WEIGHT_NORM = calls([(3, 2, 2), (3, 1, 1)], [(3, 2, 2), (1, 2, 1), 1], [(3, 2), (), -1])
CHANNELS = "Expected number of channels in input to be divisible by num_groups, but got input of shape [2, 3] and"
BATCHES = OpInfo("native_batch_norm", both(batches, True, False), batch_normed, FLOATS)


def slope_of_batches():
    """The gradient of `native_batch_norm`; without training it has gradients in the input and weight, too."""
    slope = backward_of(BATCHES)
    assert slope is not None

    def samples(make):
        for one in slope.samples(make):
            yield one
            input, weight, *others = one.args
            if weight is not None and not others[4]:
                leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in (input, weight)]
                yield replace(one, args=(*leaves, *others))

    return slope.but(slope.name, samples=samples)


NORMALISATION = table(
    BATCHES,
    slope_of_batches(),
    OpInfo("_native_batch_norm_legit", both(with_stats, True, False), batch_normed, FLOATS),
    OpInfo(
        "_native_batch_norm_legit.no_stats",
        calls([(4, 3), (3,), (3,), True, 0.1, EPS], [(2, 2, 3, 2), None, None, True, 0.1, EPS]),
        lambda x, w, b, *rest: batch_normed(x, w, b, None, None, *rest),
        FLOATS,
    ),
    OpInfo(
        "_native_batch_norm_legit_no_training",
        calls(*with_stats()),
        lambda x, w, b, mean, var, *rest: batch_normed(x, w, b, mean, var, False, *rest),
        FLOATS,
    ),
    OpInfo("_batch_norm_with_update", calls(*with_stats()), with_reserve(True), FLOATS),
    OpInfo("_batch_norm_no_update", calls(*with_stats()), with_reserve(False), FLOATS),
    OpInfo(
        "batch_norm",
        calls(
            *([*given, False] for training in (True, False) for given in batches(training)),
            *([shape, (3,), (3,), *stats(3), True, 0.1, EPS, False] for shape in ((0, 3), (2, 3, 0))),
        ),
        lambda *args: batch_normed(*args[:-1])[0],
        FLOATS,
    ),
    OpInfo("instance_norm", IMAGES, instance_normed, FLOATS),
    OpInfo("native_group_norm", GROUPS, group_normed, FLOATS),
    OpInfo(
        "group_norm",
        calls([(2, 4, 3), 2, (4,), (4,), EPS], [(2, 4, 2, 2), 1], [(0, 4, 2), 2, (4,), (4,)]),
        group_norm,
        FLOATS,
    ),
    OpInfo("native_layer_norm", LAYERS, layer_normed, FLOATS),
    OpInfo("layer_norm", LAYERS, first_result(layer_normed), FLOATS),
    OpInfo("rms_norm", calls([x(2, 3, low=1), [3]], [(2, 3, 2), [3, 2], (3, 2), 0.1]), rms_normed, FLOATS),
    OpInfo("norm_except_dim", NORM_EXCEPT, norm_except_dim, FLOATS),
    OpInfo("_weight_norm", WEIGHT_NORM, lambda v, g, dim=0: v * (g / norm_except_dim(v, 2, dim)), FLOATS),
    errors={
        "group_norm": {
            f"{CHANNELS} num_groups=2": [(2, 3), 2],
            "IndexError: Dimension out of range (expected to be in range of [-1, 0], but got 1)": [(3,), 1],
        },
        "batch_norm": {
            "running_mean should contain 3 elements not 2": [*((4, 3), None, None, (2,), (3,), False, 0.1, EPS, False)],
            "running_mean must be defined in evaluation mode": [
                *((4, 3), None, None, None, None, False, 0.1, EPS, False)
            ],
        },
        "norm_except_dim": {
            "IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 2)": [(2, 3), 2, 2]
        },
    },
    skips={
        "PyTorch's kernel takes no complex numbers": "complex_gradients: native_batch_norm_backward",
        "each of its steps is rounded": "bfloat16: native_batch_norm_backward native_group_norm_backward",
        "PyTorch has no derivative of it, either": "gradients second_gradients: native_group_norm_backward",
    },
)

NETWORKS = [*CONVOLUTION, *ATTENTION, *RECURRENT, *FUSED_LAYERS, *NORMALISATION]
