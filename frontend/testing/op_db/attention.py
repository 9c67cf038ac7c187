"""Samples of kernels/ops/attention.py. The reference is the definition, with all scores in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample

# (batch and heads, queries, keys, width)
SIZES = [((1, 2), 3, 4, 2), ((2, 1), 4, 2, 3), ((1, 1), 1, 3, 1)]


def softmax(scores: Any) -> Any:
    with np.errstate(all="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        shares = powers / powers.sum(-1, keepdims=True)
    return np.where((scores == -np.inf).all(-1, keepdims=True), np.zeros((), scores.dtype), shares)


def scores_of(query: Any, key: Any, mask: Any, is_causal: bool, scale: float | None) -> Any:
    scores = query @ key.swapaxes(-1, -2) * query.dtype.type(query.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None and mask.dtype == bool:
        mask = np.where(mask, 0, -np.inf).astype(query.dtype)
    if mask is not None:
        scores = scores + mask
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, query.dtype.type(-np.inf))
    return scores


def attended(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    dropout_mask: Any = None, *, scale: float | None = None, enable_gqa: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """(the result, the weights)"""
    if enable_gqa:
        key, value = (np.repeat(x, query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    weights = softmax(scores_of(query, key, attn_mask, is_causal, scale))
    return weights @ value, weights


def attended_by_kernel(
    query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False, *, attn_mask: Any = None,
    scale: float | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """(the result, the logarithm of the sum of exponentials)"""
    key, value = (np.repeat(x, query.shape[1] // x.shape[1], 1) for x in (key, value))
    scores = scores_of(query, key, attn_mask, is_causal, scale)
    with np.errstate(all="ignore"):
        logs = scores.max(-1) + np.log(np.exp(scores - scores.max(-1, keepdims=True)).sum(-1))
    logs = np.where((scores == -np.inf).all(-1), np.zeros((), query.dtype), logs)
    return softmax(scores) @ value, logs


def heads(make: Maker, outer: tuple[int, ...], n: int, m: int, width: int) -> list[Any]:
    return [make(*outer, n, width), make(*outer, m, width), make(*outer, m, width)]


def kernel_calls(make: Maker) -> Iterator[SampleInput]:
    for size in SIZES if make.thorough else SIZES[:1]:
        yield sample(*heads(make, *size))
        yield sample(*heads(make, *size), 0.0, True, scale=0.5)
    n, m = SIZES[0][1:3]
    masks = [make(n, m), make(1, 2, 1, m), make(1, m)] if make.thorough else [make(n, m)]
    for mask in masks:
        yield sample(*heads(make, *SIZES[0]), attn_mask=mask.detach())
    blind = make.values([[0.0, 1.0, 2.0, 3.0], [-np.inf] * 4, [-np.inf, 0.0, -np.inf, 1.0]]).detach()
    yield sample(*heads(make, *SIZES[0]), attn_mask=blind)
    yield sample(*(x.detach().transpose(1, 2).clone().transpose(1, 2) for x in heads(make, (2, 3), 3, 4, 2)))


def backward_calls(make: Maker) -> Iterator[SampleInput]:
    for size in SIZES if make.thorough else SIZES[:1]:
        for is_causal in (False, True):
            query, key, value = (x.detach() for x in heads(make, *size))
            out, logs = ops.aten._scaled_dot_product_flash_attention_for_cpu.default(query, key, value, 0.0, is_causal)
            yield sample(make(*out.shape).detach(), query, key, value, out, logs, 0.0, is_causal)


def attended_with_bias(
    query: Any, key: Any, value: Any, attn_bias: Any, compute_log_sumexp: bool, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """(the result; logarithms, of 32 rows or a multiple; seed and offset, 0 without dropout)"""
    options = {"attn_mask": attn_bias, "is_causal": is_causal, "scale": scale}
    result, logs = attended_by_kernel(query, key, value, 0.0, **options)
    rows = query.shape[2]
    kept = np.zeros((*query.shape[:2], -(-rows // 32) * 32 if compute_log_sumexp else 0), logs.dtype)
    if compute_log_sumexp:
        kept[:, :, :rows] = logs
    return result, kept, np.zeros((), np.int64), np.zeros((), np.int64)


def biased_calls(make: Maker) -> Iterator[SampleInput]:
    for size in SIZES if make.thorough else SIZES[:1]:
        yield sample(*heads(make, *size), None, True)
        yield sample(*heads(make, *size), None, True, 0.0, True, scale=0.5)
    n, m = SIZES[0][1:3]
    yield sample(*heads(make, *SIZES[0]), make(1, 2, n, m), True)
    yield sample(make(1, 4, 3, 2), make(1, 2, 5, 2), make(1, 2, 5, 3), make(5).detach(), True)
    blind = make.values([[0.0, 1.0, 2.0, 3.0], [-np.inf] * 4, [-np.inf, 0.0, -np.inf, 1.0]]).detach()
    yield sample(*heads(make, *SIZES[0]), blind, True)


def biased_backward_calls(make: Maker) -> Iterator[SampleInput]:
    for is_causal in (False, True):
        query, key, value = (x.detach() for x in heads(make, *SIZES[0]))
        bias = make(3, 4).detach() if is_causal else make(0).detach()  # of shape [0]: none
        given = (query, key, value, bias if is_causal else None, True, 0.0, is_causal)
        out, *rest = ops.aten._scaled_dot_product_efficient_attention.default(*given)
        mask = [True, is_causal, True, is_causal]
        yield sample(make(*out.shape).detach(), query, key, value, bias, out, *rest, 0.0, mask, is_causal)


def choice_calls(make: Maker) -> Iterator[SampleInput]:
    size = SIZES[0]
    yield sample(*(x.detach() for x in heads(make, *size)))
    yield sample(*(x.detach() for x in heads(make, *size)), None, 0.5)


def choice(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0) -> int:
    return int(dropout_p == 0)


def calls(make: Maker) -> Iterator[SampleInput]:
    for outer, n, m, width in SIZES:
        yield sample(*heads(make, outer, n, m, width))
        yield sample(*heads(make, outer, n, m, width), None, 0.0, True)
        yield sample(*heads(make, outer[1:], n, m, width), scale=-0.5)
    outer, n, m, width = SIZES[0]
    three = heads(make, outer, n, m, width)
    seen = make.values([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]], dtypes.bool)
    yield sample(*three, seen)
    yield sample(*three, make(n, m))  # learned, where gradients are asked for
    yield sample(*three, make(1, 1, n, m).detach())
    yield sample(*heads(make, outer[1:], n, m, width), seen)
    yield sample(*heads(make, (), n, m, width), None, 0.0, True)
    yield sample(make(1, 4, 3, 2), make(1, 2, 3, 2), make(1, 2, 3, 2), enable_gqa=True)
    yield sample(make(4, 3, 2), make(2, 3, 2), make(2, 3, 2), enable_gqa=True)
    yield sample(make(1, 2, 3, 2), make(1, 2, 4, 2), make(1, 2, 4, 5))  # values of another width
    yield sample(make(2, 2, 3, 2), make(1, 2, 4, 2), make(1, 2, 4, 2))  # one batch for all


def definitions(make: Maker) -> Iterator[SampleInput]:
    size = SIZES[0]
    yield sample(*heads(make, *size))
    yield sample(*heads(make, *size), make(*size[1:3]))
    yield sample(*heads(make, *size), None, 0.0, True, scale=2.0)


def rows(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), -1)
    yield sample(make(2, 3, 2), 1)
    yield sample(make.values([[1.0, -np.inf], [-np.inf, -np.inf]]), 1)


def rows_reference(x: Any, dim: int, dtype: Any = None) -> Any:
    return np.moveaxis(softmax(np.moveaxis(x, dim, -1)), -1, dim)


def wrong(make: Maker) -> Iterator[ErrorInput]:
    q, k, v = heads(make, (2, 3), 4, 5, 8)
    cases = [
        (sample(q[0, 0, 0], k[0, 0, 0], v[0, 0, 0]), "to all be  at least 2 dimensional, but got query.dim: 1"),
        (sample(q, k.float(), v), "to have the same dtype, but got query.dtype: double key.dtype: float and value"),
        (sample(q, k, v, make(4, 5).long()), "or to match query dtype, but got attn_mask.dtype: long int and  query"),
        (sample(q, k, v, make(4, 6)), "The size of tensor a (5) must match the size of tensor b (6)"),
        (sample(q, k[..., :6], v), "Expected size for first two dimensions of batch2 tensor to be: [6, 8]"),
        (sample(q, k[:, :2], v[:, :2], enable_gqa=True), "Number of heads in key and value must divide"),
        (sample(q, k, v, None, 1.5), "dropout probability has to be between 0 and 1, but got 1.5"),
        (sample(q[0], k[0], v[0], make(4, 5), 0.0, True), "Explicit attn_mask should not be set when is_causal=True"),
    ]
    for given, text in cases:
        yield ErrorInput(given, RuntimeError, text)


def kernel_wrong(make: Maker) -> Iterator[ErrorInput]:
    q, k, v = heads(make, (2, 3), 4, 5, 8)
    cases = [
        (sample(q[0], k[0], v[0]), "Accept only 4 dims inputs shape of {B, H, T, K}"),
        (sample(q, k, v[..., :4]), "Q/K/V should have the same head size"),
        (sample(q, k, v, 0.5), "Currently do not support dropout > 0"),
        (sample(q.long(), k.long(), v.long()), "Expected data type in FP32, FP64, BF16, FP16, but got Long instead."),
        (sample(q, k, v, attn_mask=make(4, 5).long()), "Attention mask is the same data type as query"),
        (sample(q, k, v, attn_mask=make(3, 4, 5)), "Attention mask dim in {2, 4}"),
        (sample(q, k.float(), v), "expected scalar type Double but found Float"),
    ]
    for given, text in cases:
        yield ErrorInput(given, RuntimeError, text)


ATTENTION = [
    OpInfo(
        "scaled_dot_product_attention",
        calls,
        lambda *args, **options: attended(*args, **options)[0],
        dtypes=FLOATS,
        function="nn.functional.scaled_dot_product_attention",
        errors=wrong,
        skips=dict.fromkeys(
            ["second_gradients", "forward"], "the fused kernel's backward has no derivative, as in PyTorch"
        ),
    ),
    OpInfo(
        "_scaled_dot_product_flash_attention_for_cpu",
        kernel_calls,
        attended_by_kernel,
        dtypes=FLOATS,
        errors=kernel_wrong,
        skips=dict.fromkeys(["second_gradients", "forward"], "its backward has no derivative, as in PyTorch"),
    ),
    OpInfo(
        "_scaled_dot_product_flash_attention_for_cpu_backward",
        backward_calls,
        dtypes=FLOATS,
        skips=dict.fromkeys(["gradients", "second_gradients"], "it has no derivative, as in PyTorch"),
    ),
    OpInfo(
        "_scaled_dot_product_efficient_attention",
        biased_calls,
        attended_with_bias,
        dtypes=FLOATS,
        skips=dict.fromkeys(["second_gradients", "forward"], "its backward has no derivative, as in PyTorch"),
    ),
    OpInfo(
        "_scaled_dot_product_efficient_attention_backward",
        biased_backward_calls,
        dtypes=FLOATS,
        skips=dict.fromkeys(["gradients", "second_gradients"], "it has no derivative, as in PyTorch"),
    ),
    OpInfo(
        "_fused_sdp_choice",
        choice_calls,
        choice,
        dtypes=FLOATS,
        gradients=False,
        skips=dict.fromkeys(["meta", "layouts"], "the choice depends on the device, and on how tensors lie"),
    ),
    OpInfo("_scaled_dot_product_attention_math", definitions, attended, dtypes=FLOATS),
    OpInfo("_safe_softmax", rows, rows_reference, dtypes=FLOATS),
]
