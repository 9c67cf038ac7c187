"""MultiheadAttention: queries look at keys, and get a mixture of the values that belong to them.

`sdpa_kernel` says which kernels `scaled_dot_product_attention` may take (kernels/ops/fused_attention.py).
Source: Vaswani et al., "Attention is all you need" (2017). Read next: transformer.py.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator
from typing import Any

from redispatch.kernels.declare.overridable import overridable_function
from redispatch.kernels.ops import attention, creation, linalg
from redispatch.kernels.ops.fused_attention import ALLOWED, SDPBackend, allowing
from redispatch.kernels.ops.normalization import softmax
from redispatch.kernels.ops.shape import cat

from . import init
from .derived import functional
from .dropout import dropout
from .linear import Linear
from .module import Module
from .parameter import empty_parameters

__path__: list[str] = []  # PyTorch's package
SDPBackend.__module__ = "redispatch.nn.attention"  # where users find it
WARN_FOR_UNFUSED_KERNELS = False


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict[str, Any]]:
    """A region in which attention is computed in one of these ways alone; with `set_priority` asked for in this order.

    Errors: AssertionError for what is no way to compute attention, or a list of some. Where no way is left for a call,
    that is a RuntimeError, with the reasons as warnings.
    """
    if not isinstance(backends, list | SDPBackend):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    token = ALLOWED.set(allowing([backends] if isinstance(backends, SDPBackend) else backends, set_priority))
    try:
        yield {}
    finally:
        ALLOWED.reset(token)


# --- several heads, as a function ------------------------------------------------------------------------------------


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
    if use_separate_proj_weight:
        weights = q_proj_weight, k_proj_weight, v_proj_weight
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = (linalg.linear(*parts) for parts in zip((query, key, value), weights, biases, strict=True))
    else:
        q, k, v = projected(query, key, value, in_proj_weight, in_proj_bias)
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
        k, v = (cat([x, creation.zeros((heads, 1, width), dtype=x.dtype, device=x.device)], dim=1) for x in (k, v))
        more += 1
    attn_mask = whole_mask(attn_mask, key_padding_mask, (length, k.size(1)), more, batch, num_heads)
    share = dropout_p if training else 0.0
    shares = None
    if need_weights:
        mixed, shares = attended_and_weights(q, k, v, attn_mask, share)
        mixed = mixed.transpose(0, 1).reshape(length * batch, features)
    else:
        mixed = attended(q, k, v, attn_mask, batch, num_heads, share, causal)
        mixed = mixed.permute(2, 0, 1, 3).reshape(batch * length, features)
    result = linalg.linear(mixed, out_proj_weight, out_proj_bias).view(length, batch, features)
    if shares is not None:
        shares = shares.view(batch, num_heads, length, k.size(1))
        shares = shares.mean(dim=1) if average_attn_weights else shares
    if not alone:
        return result, shares
    return result.squeeze(1), None if shares is None else shares.squeeze(0)


def projected(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> list[Any]:
    """Query, key and value by their parts of one weight; those that are one tensor in one product."""
    if key is not value:
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        return [linalg.linear(*parts) for parts in zip((query, key, value), weight.chunk(3), biases, strict=True)]
    if query is key:
        return parts_of(linalg.linear(query, weight, bias), 3)
    width = query.size(-1)
    own, shared = weight.split([width, 2 * width])
    own_bias, shared_bias = (None, None) if bias is None else bias.split([width, 2 * width])
    q = linalg.linear(query, own, own_bias)
    return [q, *parts_of(linalg.linear(key, shared, shared_bias), 2)]


def parts_of(product: Any, count: int) -> list[Any]:
    """The parts that stand side by side in the last dimension, each in memory of its own."""
    parts = product.unflatten(-1, (count, -1)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
    return [parts[index] for index in range(count)]


def whole_mask(
    attn_mask: Any, key_padding_mask: Any, shape: tuple[int, int], more: int, batch: int, num_heads: int
) -> Any:
    """The sum of both masks of scores (length, source), whose last `more` keys were added behind those given."""
    length, source = shape
    attn_mask = with_shape(attn_mask, length, source - more, batch * num_heads)
    if more:
        attn_mask, key_padding_mask = (
            None if mask is None else cat([mask, mask.new_zeros((*mask.shape[:-1], more))], dim=-1)
            for mask in (attn_mask, key_padding_mask)
        )
    if key_padding_mask is None:
        return attn_mask
    padding = for_heads(key_padding_mask, batch, source, num_heads)
    return padding if attn_mask is None else attn_mask + padding


def for_heads(key_padding_mask: Any, batch: int, source: int, num_heads: int) -> Any:
    """A mask (batch, source) as (batch * heads, 1, source). AssertionError for another shape."""
    if tuple(key_padding_mask.shape) != (batch, source):
        raise AssertionError(f"expecting key_padding_mask shape of {(batch, source)}, but got {key_padding_mask.shape}")
    padding = key_padding_mask.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
    return padding.reshape(batch * num_heads, 1, source)


def attended_and_weights(q: Any, k: Any, v: Any, mask: Any, left_out: float) -> tuple[Any, Any]:
    """The values mixed, (batch * heads, length, width), and the weights, which only this form has in memory."""
    q, k = q * math.sqrt(1.0 / q.shape[-1]), k.transpose(-2, -1)
    shares = softmax(linalg.bmm(q, k) if mask is None else linalg.baddbmm(mask, q, k), -1)
    shares = dropout(shares, p=left_out) if left_out > 0 else shares
    return linalg.bmm(shares, v), shares


def attended(q: Any, k: Any, v: Any, mask: Any, batch: int, heads: int, left_out: float, causal: bool) -> Any:
    """The values mixed by fused attention: (batch, heads, length, width)."""
    q, k, v = (x.view(batch, x.shape[0] // batch if batch else heads, *x.shape[1:]) for x in (q, k, v))
    if mask is not None:
        for_all = mask.size(0) == 1 and mask.dim() == 3
        mask = mask.unsqueeze(0) if for_all else mask.view(batch, q.shape[1], -1, k.shape[2])
    return attention.scaled_dot_product_attention(q, k, v, mask, left_out, causal)


def check_shapes(query: Any, key: Any, value: Any, key_padding_mask: Any, attn_mask: Any, num_heads: int) -> bool:
    """Returns whether there is no batch. AssertionError where dimensions do not belong together."""
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
    return creation.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)


def with_shape(mask: Any, length: int, source: int, heads: int) -> Any:
    """A mask with a first dimension for the heads, or for all of them."""
    if mask is None:
        return None
    wanted = (length, source) if mask.dim() == 2 else (heads, length, source)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {wanted}.")
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


# --- several heads, as a module --------------------------------------------------------------------------------------


class NonDynamicallyQuantizableLinear(Linear):
    """Linear, under the name that PyTorch prints for the last layer of an attention."""


class MultiheadAttention(Module):
    """softmax(q kᵀ / sqrt(width)) v for each of `num_heads` heads, side by side, between linear layers.

    kdim, vdim: features of keys and values, by default `embed_dim`. add_bias_kv: one more key and value, learned;
    add_zero_attn: one more, of zeros. Shapes: (length, batch, features), or (batch, length, features) if `batch_first`.
    Errors: ValueError for sizes that are not positive; AssertionError where the heads do not divide `embed_dim`.
    """

    in_proj_weight: Any
    in_proj_bias: Any
    q_proj_weight: Any
    k_proj_weight: Any
    v_proj_weight: Any
    bias_k: Any
    bias_v: Any
    out_proj: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        one, separate = self._qkv_same_embed_dim, not self._qkv_same_embed_dim
        shapes = {
            "q_proj_weight": (embed_dim, embed_dim) if separate else None,
            "k_proj_weight": (embed_dim, self.kdim) if separate else None,
            "v_proj_weight": (embed_dim, self.vdim) if separate else None,
            "in_proj_weight": (3 * embed_dim, embed_dim) if one else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
        }
        empty_parameters(self, device, dtype, **shapes)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        more = (1, 1, embed_dim) if add_bias_kv else None
        empty_parameters(self, device, dtype, bias_k=more, bias_v=more)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Weights by Glorot's scheme, biases zero."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """(the results, the weights of attention or None); see functional.multi_head_attention_forward."""
        swapped = self.batch_first and query.dim() == 3
        if swapped:
            turned = {id(x): x.transpose(1, 0) for x in {id(x): x for x in (query, key, value)}.values()}
            query, key, value = (turned[id(x)] for x in (query, key, value))
        result, weights = functional.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return result.transpose(1, 0) if swapped else result, weights
