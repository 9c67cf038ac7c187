"""MultiheadAttention: queries look at keys, and get a mixture of the values that belong to them.

Source: Vaswani et al., "Attention is all you need" (2017). Read next: transformer.py.
"""

from __future__ import annotations

from typing import Any

from redispatch.kernels.ops import creation

from . import functional, init
from .attention_kernels import WARN_FOR_UNFUSED_KERNELS as WARN_FOR_UNFUSED_KERNELS
from .attention_kernels import SDPBackend as SDPBackend
from .attention_kernels import sdpa_kernel as sdpa_kernel
from .linear import Linear
from .module import Module
from .parameter import Parameter


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
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        one, separate = self._qkv_same_embed_dim, not self._qkv_same_embed_dim
        shapes = {
            "q_proj_weight": (embed_dim, embed_dim) if separate else None,
            "k_proj_weight": (embed_dim, self.kdim) if separate else None,
            "v_proj_weight": (embed_dim, self.vdim) if separate else None,
            "in_proj_weight": (3 * embed_dim, embed_dim) if one else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
        }
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else Parameter(creation.empty(shape, **made)))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **made)
        for name in ("bias_k", "bias_v"):
            values = Parameter(creation.empty((1, 1, embed_dim), **made)) if add_bias_kv else None
            self.register_parameter(name, values)
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
            query, key, value = (x.transpose(1, 0) for x in (query, key, value))
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
