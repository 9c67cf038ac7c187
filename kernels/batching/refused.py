"""Refusals of vmap: results whose shape differs between examples, and Python values that do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import OpOverload

ISSUES = "https://github.com/pytorch/pytorch/issues"
TEXTS = {
    "_local_scalar_dense": (
        "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a "
        "Tensor, please try to rewrite what you're doing with other operations. If error is occurring somewhere inside "
        "PyTorch internals, please file a bug report."
    ),
    "is_nonzero": (
        "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support "
        f"that yet, please file an issue at {ISSUES} ."
    ),
    "allclose": (
        f"vmap over torch.allclose isn't supported yet. Please file an issue at {ISSUES} if you need this feature."
    ),
    "equal": "Batching rule not implemented for aten::equal. We could not generate a fallback.",
    "masked_select": (
        "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for "
        f"each batch this would return a differently shaped Tensor. Please file an issue at {ISSUES} if you need this "
        "feature."
    ),
    "index": (
        "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing "
        "with a boolean mask."
    ),
}


def refuse(op: OpOverload, why: str) -> Callable[..., Any]:
    """A rule that raises RuntimeError."""
    name = op.schema.name
    if why == "dynamic":
        text = TEXTS.get(op._opname) or (
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
            f"{name}. Please file an issue at {ISSUES} if you need this feature."
        )
    else:
        text = (
            f"Batching rule not implemented for {op.qualified_name}; the fallback path doesn't work on out= or view "
            "ops."
        )

    def refused(*ignored: Any) -> Any:
        raise RuntimeError(text)

    return refused
