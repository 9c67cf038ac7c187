"""Sizes as operators: sym_size, sym_stride, sym_numel, sym_storage_offset, sym_is_contiguous.

Programs of operators that were captured somewhere ask for shapes by these; a person asks the tensor.
"""

from __future__ import annotations

from redispatch.dispatch.tensor import wrap_dim

from ..declare.operator import composite


@composite("sym_size.int(Tensor self, int dim) -> SymInt", core=True)
def sym_size_op(self, dim):
    return self._shape[wrap_dim(dim, len(self._shape))]


@composite("sym_stride.int(Tensor self, int dim) -> SymInt", core=True)
def sym_stride_op(self, dim):
    return self._stride[wrap_dim(dim, len(self._shape))]


@composite("sym_numel(Tensor self) -> SymInt", face=False, core=True)
def sym_numel_op(self):
    return self._shape.numel()


@composite("sym_storage_offset(Tensor self) -> SymInt", face=False, core=True)
def sym_storage_offset_op(self):
    return self._offset


@composite(
    "sym_is_contiguous(Tensor self, MemoryFormat memory_format=contiguous_format) -> SymBool", face=False, core=True
)
def sym_is_contiguous_op(self, memory_format):
    return self.is_contiguous(memory_format=memory_format)
