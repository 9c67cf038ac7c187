"""Sizes as operators: sym_size, sym_stride, sym_numel, sym_storage_offset, sym_is_contiguous.

Programs of operators that were captured somewhere ask for shapes by these; a person asks the tensor.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor, wrap_dim

from ..declare.declare import Operator

sym_size_op = Operator("sym_size.int(Tensor self, int dim) -> SymInt", core=True)
sym_stride_op = Operator("sym_stride.int(Tensor self, int dim) -> SymInt", core=True)
sym_numel_op = Operator("sym_numel(Tensor self) -> SymInt", core=True)
sym_storage_offset_op = Operator("sym_storage_offset(Tensor self) -> SymInt", core=True)
sym_is_contiguous_op = Operator(
    "sym_is_contiguous(Tensor self, MemoryFormat memory_format=contiguous_format) -> SymBool", core=True
)


@sym_size_op.implicit
def sym_size_composite(self: Tensor, dim: int) -> int:
    return self._shape[wrap_dim(dim, len(self._shape))]


@sym_stride_op.implicit
def sym_stride_composite(self: Tensor, dim: int) -> int:
    return self._stride[wrap_dim(dim, len(self._shape))]


@sym_numel_op.implicit
def sym_numel_composite(self: Tensor) -> int:
    return self._shape.numel()


@sym_storage_offset_op.implicit
def sym_storage_offset_composite(self: Tensor) -> int:
    return self._offset


@sym_is_contiguous_op.implicit
def sym_is_contiguous_composite(self: Any, memory_format: Any) -> bool:
    return self.is_contiguous(memory_format=memory_format)
