"""multi_head_attention_forward: several attentions side by side, each on a share of the features.

Read next: attention.py, for the module.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from redispatch.kernels.declare.overridable import overridable_function
from redispatch.kernels.ops import attention, linalg
from redispatch.kernels.ops.creation import zeros, zeros_like
from redispatch.kernels.ops.shape import cat
from redispatch.kernels.ops.softmax import softmax

from .dropout import dropout


@overridable_function
def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """(the results, the weights of attention if `need_weights`)

    Shapes: query (length, batch, features), key and value (source length, batch, features), or all without a batch;
    attn_mask (length, source length), also one for each batch and head; key_padding_mask (batch, source length). True
    in a mask leaves a key out; a float is added to the score.
    """
    alone = check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if alone:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, features = query.shape
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    warn_of_mixed_masks(key_padding_mask, attn_mask)
    key_padding_mask = as_scores(key_padding_mask, "key_padding_mask", query.dtype)
    causal = is_causal and key_padding_mask is None and not need_weights
    attn_mask = None if causal else as_scores(attn_mask, "attn_mask", query.dtype)
    if features != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {features}")
    width = features // num_heads
    if width * num_heads != features:
        raise AssertionError(f"embed_dim {features} not divisible by num_heads {num_heads}")
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight.chunk(3)
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    q, k, v = (linalg.linear(*parts) for parts in zip((query, key, value), weights, biases, strict=True))
    more = 0  # keys behind those given
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key.")
        k, v = (cat([x, extra.repeat(1, batch, 1)]) for x, extra in ((k, bias_k), (v, bias_v)))
        more += 1
    heads = batch * num_heads
    q = q.view(length, heads, width).transpose(0, 1)
    k, v = (
        x.view(x.shape[0], heads, width).transpose(0, 1) if static is None else static
        for x, static in ((k, static_k), (v, static_v))
    )
    if add_zero_attn:
        k, v = (cat([x, zeros((heads, 1, width), dtype=x.dtype, device=x.device)], dim=1) for x in (k, v))
        more += 1
    attn_mask = with_shape(attn_mask, length, k.size(1) - more, heads)
    if more:
        attn_mask, key_padding_mask = (
            None if mask is None else cat([mask, mask.new_zeros((*mask.shape[:-1], more))], dim=-1)
            for mask in (attn_mask, key_padding_mask)
        )
    source = k.size(1)
    if key_padding_mask is not None:
        padding = for_heads(key_padding_mask, batch, source, num_heads)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    share = dropout_p if training else 0.0
    shares = None
    if need_weights:
        mixed, shares = attended_and_weights(q, k, v, attn_mask, share)
        mixed = mixed.transpose(0, 1).contiguous().view(length * batch, features)
        shares = shares.view(batch, num_heads, length, source)
        shares = shares.mean(dim=1) if average_attn_weights else shares
    else:
        mixed = attended(q, k, v, attn_mask, batch, share, causal)
        mixed = mixed.permute(2, 0, 1, 3).contiguous().view(batch * length, features)
    result = linalg.linear(mixed, out_proj_weight, out_proj_bias).view(length, batch, features)
    if not alone:
        return result, shares
    return result.squeeze(1), None if shares is None else shares.squeeze(0)


def for_heads(key_padding_mask: Any, batch: int, source: int, num_heads: int) -> Any:
    """A mask (batch, source) as (batch * heads, 1, source). AssertionError for another shape."""
    if tuple(key_padding_mask.shape) != (batch, source):
        raise AssertionError(f"expecting key_padding_mask shape of {(batch, source)}, but got {key_padding_mask.shape}")
    padding = key_padding_mask.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
    return padding.reshape(batch * num_heads, 1, source)


def attended_and_weights(q: Any, k: Any, v: Any, mask: Any, left_out: float) -> tuple[Any, Any]:
    """The values mixed, (batch * heads, length, width), and the weights, which only this form has in memory."""
    scores = (q * math.sqrt(1.0 / q.shape[-1])) @ k.transpose(-2, -1)
    shares = softmax(scores if mask is None else scores + mask, -1)
    shares = dropout(shares, p=left_out) if left_out > 0 else shares
    return shares @ v, shares


def attended(q: Any, k: Any, v: Any, mask: Any, batch: int, left_out: float, causal: bool) -> Any:
    """The values mixed by fused attention: (batch, heads, length, width)."""
    q, k, v = (x.view(batch, x.shape[0] // batch, *x.shape[1:]) for x in (q, k, v))
    if mask is not None:
        for_all = mask.size(0) == 1 and mask.dim() == 3
        mask = mask.unsqueeze(0) if for_all else mask.view(batch, q.shape[1], -1, k.shape[2])
    return attention.scaled_dot_product_attention(q, k, v, mask, left_out, causal)


def check_shapes(query: Any, key: Any, value: Any, key_padding_mask: Any, attn_mask: Any, num_heads: int) -> bool:
    """Whether there is no batch. AssertionError where dimensions do not belong together."""
    dims = query.dim()
    if dims not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor")
    kind, wanted = ("batched", 3) if dims == 3 else ("unbatched", 2)
    if key.dim() != wanted or value.dim() != wanted:
        raise AssertionError(
            f"For {kind} ({wanted}-D) `query`, expected `key` and `value` to be {wanted}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != wanted - 1:
        raise AssertionError(
            f"For {kind} ({wanted}-D) `query`, expected `key_padding_mask` to be `None` or {wanted - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise AssertionError(
            f"For {kind} ({wanted}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
            f"{attn_mask.dim()}-D tensor instead"
        )
    return dims == 2


def warn_of_mixed_masks(key_padding_mask: Any, attn_mask: Any) -> None:
    if key_padding_mask is not None and attn_mask is not None and key_padding_mask.dtype != attn_mask.dtype:
        warnings.warn(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead.",
            stacklevel=4,
        )


def as_scores(mask: Any, name: str, dtype: Any) -> Any:
    """A mask as what is added to the scores: -inf where a bool one is True. AssertionError for integers."""
    if mask is None or mask.is_floating_point():
        return mask
    if str(mask.dtype) != "torch.bool":
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)


def with_shape(mask: Any, length: int, source: int, heads: int) -> Any:
    """A mask with a first dimension for the heads, or for all of them."""
    if mask is None:
        return None
    wanted = (length, source) if mask.dim() == 2 else (heads, length, source)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {wanted}.")
    return mask.unsqueeze(0) if mask.dim() == 2 else mask
