"""Indexing by integers alone, which derivatives and compilers write where they know that every index is in bounds.

"Unsafe" is PyTorch's word: its other backends check nothing here. Here an index is checked as ever; the masked forms
clamp it first, so that a place that is masked out may be anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes

from ..declare.operator import kernel
from .indexing import index_op, index_put_op

Indices = Sequence[Tensor | None]


def check_integers(name: str, indices: Indices) -> None:
    for index in indices:
        if index is not None and index._dtype not in (dtypes.int64, dtypes.int32):
            raise RuntimeError(f"{name} found unexpected index type {index._dtype.tensor_name}")


@kernel(
    "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    dispatches=True,
    derivative=lambda grad, self_shape, indices: _unsafe_index_put.functional(
        grad.new_zeros(self_shape), indices, grad, True
    ),
    forward="linear",
)
def _unsafe_index(self: Any, indices: Indices) -> Tensor:
    """Returns the elements at the indices, as `x[i, j]` does."""
    check_integers("_unsafe_index", indices)
    return index_op.functional(self, indices)


@kernel(
    "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    dispatches=True,
    derivative=dict(index_put_op.rules),
    forward="linear",
)
def _unsafe_index_put(self: Any, indices: Indices, values: Any, accumulate: bool) -> Tensor:
    """Returns the tensor with `values` written, or added, at the indices."""
    check_integers("_unsafe_index_put", indices)
    return index_put_op.functional(self, indices, values, accumulate)


def clamped(name: str, self: Any, mask: Any, indices: Indices) -> list[Tensor | None]:
    """The indices, each moved into bounds. Errors: RuntimeError for other than int64 and int32."""
    check_integers(name, indices)
    sizes = self._shape
    return [None if x is None else x.clamp(-sizes[d], sizes[d] - 1) for d, x in enumerate(indices)]


@kernel(
    "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
    dispatches=True,
    derivative=lambda grad, self_shape, mask, indices: _unsafe_masked_index_put_accumulate.functional(
        grad.new_zeros(self_shape), mask, indices, grad
    ),
)
def _unsafe_masked_index(self: Any, mask: Any, indices: Indices, fill: Any) -> Tensor:
    """Returns the elements at the indices where the mask is True, and `fill` elsewhere."""
    check_integers("_unsafe_masked_index", indices)
    if not self._shape.numel():
        sizes = list(self._shape)
        if len(indices) > len(sizes):
            raise IndexError(f"too many indices for tensor of dimension {len(sizes)} (got {len(indices)})")
        for d, index in enumerate(indices):
            sizes[d] = sizes[d] if index is None else 1  # else an index would be out of bounds
        return self.new_full(index_op.functional(self.new_empty(sizes, device="meta"), indices).shape, fill)
    return index_op.functional(self, clamped("_unsafe_masked_index", self, mask, indices)).masked_fill(~mask, fill)


@kernel(
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
    dispatches=True,
    derivative={
        "self": lambda grad: grad,
        "values": lambda grad, mask, indices: _unsafe_masked_index.functional(grad, mask, indices, 0),
    },
    forward="linear",
)
def _unsafe_masked_index_put_accumulate(self: Any, mask: Any, indices: Indices, values: Any) -> Tensor:
    """Returns the tensor with the values added at the indices where the mask is True."""
    if not self._shape.numel():
        return self.clone()
    places = clamped("_unsafe_masked_index_put_accumulate", self, mask, indices)
    return index_put_op.functional(self, places, values.masked_fill(~mask, 0), True)
