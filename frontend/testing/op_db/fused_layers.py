"""Samples of kernels/ops/fused_layers.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .recurrent import lstm_step

# --- a product and its activation -------------------------------------------------------------------------------------


def products(make: Maker) -> Iterator[SampleInput]:
    for own, options in (((2, 4), {}), ((4,), {"use_gelu": True}), ((2, 1), {"beta": 2, "alpha": -1})):
        yield sample(make(*own), make(2, 3), make(3, 4), **options)


def activated(x: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False) -> Any:
    product = beta * x + alpha * (a @ b)
    return product * special.ndtr(product) if use_gelu else np.maximum(product, 0)


# --- attention --------------------------------------------------------------------------------------------------------

WIDTH, HEADS = 4, 2
MASKS = (
    (None, None),
    (0, [[False, True, False], [True, False, False], [False, False, False]]),
    (1, [[False, False, True], [False, True, False]]),
)


def attentions(make: Maker) -> Iterator[SampleInput]:
    parameters = make(3 * WIDTH, WIDTH), make(3 * WIDTH), make(WIDTH, WIDTH), make(WIDTH)
    for (kind, mask), average in zip(MASKS, (True, False, True), strict=True):
        bools = make.mask(1).dtype
        own = None if mask is None else make.values(mask, bools).detach()
        yield sample(*(make(2, 3, WIDTH, low=-1, high=1) for _ in range(3)), WIDTH, HEADS, *parameters, own, True,
                     average, kind)  # fmt: skip


def attended(
    query: Any, key: Any, value: Any, width: int, heads: int, weight: Any, bias: Any, into: Any, added: Any,
    mask: Any = None, need_weights: bool = True, average: bool = True, kind: Any = None,
) -> Any:  # fmt: skip
    batch, count, _ = query.shape
    three = zip((query, key, value), np.split(weight, 3), np.split(bias, 3), strict=True)
    q, k, v = ((x @ w.T + b).reshape(batch, count, heads, -1).swapaxes(1, 2) for x, w, b in three)
    scores = q @ k.swapaxes(2, 3) / np.sqrt(width / heads)
    if mask is not None:
        scores = np.where(mask if kind == 0 else mask[:, None, None], -np.inf, scores)
    weights = special.softmax(scores, -1)
    result = (weights @ v).swapaxes(1, 2).reshape(batch, count, width) @ into.T + added
    return result, weights.mean(1) if average else weights


def wrong_attentions(make: Maker) -> Iterator[ErrorInput]:
    x, weight, bias, into = make(2, 3, WIDTH), make(3 * WIDTH, WIDTH), make(3 * WIDTH), make(WIDTH, WIDTH)
    rest, hidden = (weight, bias, into, make(WIDTH)), make.mask(2, 3)
    for given, text in (
        ((make(3, 4), x, x, WIDTH, HEADS, *rest), "expected 3-D `query`, got 2-D tensor"),
        ((x, make(2, 2, 4), x, WIDTH, HEADS, *rest), "expected `query`/`key`/`value` shapes to match"),
        ((x, x, x, 8, HEADS, *rest), "passed-in embed_dim 8 didn't match last dim of query 4"),
        ((x, x, x, WIDTH, 3, *rest), "`embed_dim` must divide evenly by `num_heads`"),
        ((x, x, x, WIDTH, HEADS, into, *rest[1:]), "expected `qkv_weight` first dim to be 3x embed_dim"),
        ((x, x, x, WIDTH, HEADS, *rest, hidden), "Mask Type should be defined"),
        ((x, x, x, WIDTH, HEADS, *rest, hidden, True, True, 3), "Mask Type should be 0 (src_mask) or 1"),
        ((x, x, x, WIDTH, HEADS, *rest, hidden, True, True, 0), "For mask_type == 0 mask shape should be (L, L)"),
    ):
        yield ErrorInput(sample(*given), RuntimeError, text)


# --- one direction of one layer of an LSTM ----------------------------------------------------------------------------


def layers(make: Maker) -> Iterator[SampleInput]:
    hidden, features, small = 2, 3, {"low": -0.8, "high": 0.8}
    for reverse, biases in ((False, True), (True, False)):
        weights = [make(4 * hidden, size, **small) for size in (features, hidden)]
        weights += [make(4 * hidden, **small) for _ in range(2)]
        states = [make(1, 2, hidden) for _ in range(2)]
        yield sample(
            make(3, 2, features), *weights, *states, reverse, [], 2, hidden, 1, biases, False, False, make.requires_grad
        )


def layer(x: Any, w: Any, u: Any, b: Any, c: Any, h: Any, cell: Any, reverse: bool, *rest: Any) -> Any:
    state, results = (h[0], cell[0]), []
    biases = (b, c) if rest[4] else ()
    for one in x[::-1] if reverse else x:
        state = lstm_step(one, state, w, u, *biases)
        results.append(state[0])
    workspace = np.zeros(0, np.uint8)
    return np.stack(results[::-1] if reverse else results), state[0][None], state[1][None], workspace


def no_lstm(make: Maker) -> Iterator[ErrorInput]:
    given = next(layers(make))
    args = (*given.args[:8], 3, *given.args[9:])
    yield ErrorInput(SampleInput(given.input, args), RuntimeError, "only an LSTM (mode 2) has a fused layer on the CPU")


FUSED_LAYERS = [
    OpInfo("_addmm_activation", products, activated, FLOATS),
    OpInfo("_native_multi_head_attention", attentions, attended, FLOATS, errors=wrong_attentions),
    OpInfo("mkldnn_rnn_layer", layers, layer, FLOATS, errors=no_lstm),
]
