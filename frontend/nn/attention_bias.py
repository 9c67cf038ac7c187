"""`nn.attention.bias`: masks of causal attention that say which they are, and need not be there as tensors.

A query sees the keys up to its own place, counted from the beginning of both (upper left) or from their ends.
"""

from __future__ import annotations

import warnings
from enum import IntEnum
from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels.ops.attention import scaled_dot_product_attention
from redispatch.kernels.ops.creation import ones

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """The corner of the mask in which the diagonal begins, or ends."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A mask for `scaled_dot_product_attention`, of which it knows the shape and the corner."""

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2
            )

    def _materialize(self, device: Any = None) -> Tensor:
        """Returns the mask: True where a query sees a key."""
        offset = self.seq_len_kv - self.seq_len_q if self.variant == CausalVariant.LOWER_RIGHT else 0
        return ones(self.seq_len_q, self.seq_len_kv, dtype=dtypes.bool, device=device).tril(offset)

    @staticmethod
    def _dispatch(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        **options: Any,
    ) -> Any:
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        square = attn_mask.seq_len_q == attn_mask.seq_len_kv
        if square or attn_mask.variant == CausalVariant.UPPER_LEFT:
            return scaled_dot_product_attention(query, key, value, None, dropout_p, True, **options)
        mask = attn_mask._materialize(query.device)
        return scaled_dot_product_attention(query, key, value, mask, dropout_p, False, **options)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is scaled_dot_product_attention:
            return cls._dispatch(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """Returns the mask of this shape whose diagonal begins in its upper left corner."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """Returns the mask of this shape whose diagonal ends in its lower right corner."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
