"""Questions about tensors and dtypes as operators: is_complex, numel, is_leaf, result_type, is_set_to and their kin.

A person asks the tensor; programs of operators that were captured somewhere ask by these. Nearly all are composite
and compute nothing, so that modes do not see them, as they do not see `x.shape`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch.tensor import can_cast, owner_of, promote_types, result_type, wrap_dim
from redispatch.kernels import has_internal_overlap

from ..declare.declare import Operator
from ..declare.operator import kernel
from ..declare.public import public


def inquiry(schema: str, answer: Callable[..., Any], namespace: str = "aten", **facts: Any) -> Operator:
    """An operator that looks at its arguments and answers."""
    op = Operator(schema, namespace=namespace, **facts)
    op.implicit(answer)
    op.understands("Conjugate", "Negative", "ZeroTensor")
    return op


is_complex_op = inquiry("is_complex(Tensor self) -> bool", lambda self: self._dtype.is_complex)
is_floating_point_op = inquiry("is_floating_point(Tensor self) -> bool", lambda self: self._dtype.is_floating_point)
is_signed_op = inquiry("is_signed(Tensor self) -> bool", lambda self: self._dtype.is_signed)
is_conj_op = inquiry("is_conj(Tensor self) -> bool", lambda self: self.is_conj())
is_neg_op = inquiry("is_neg(Tensor self) -> bool", lambda self: self.is_neg())
is_inference_op = inquiry("is_inference(Tensor self) -> bool", lambda self: self._counter is None)
is_distributed_op = inquiry("is_distributed(Tensor self) -> bool", lambda self: False)
cudnn_is_acceptable_op = inquiry("cudnn_is_acceptable(Tensor self) -> bool", lambda self: False)

dim_op = inquiry("dim(Tensor self) -> int", lambda self: len(self._shape))
numel_op = inquiry("numel(Tensor self) -> int", lambda self: self._shape.numel())
size_op = inquiry("size.int(Tensor self, int dim) -> int", lambda self, dim: self._shape[wrap(self, dim)])
stride_op = inquiry("stride.int(Tensor self, int dim) -> int", lambda self, dim: self._stride[wrap(self, dim)])
storage_offset_op = inquiry("storage_offset(Tensor self) -> int", lambda self: self._offset)
get_device_op = inquiry("get_device(Tensor self) -> int", lambda self: self.get_device())
is_contiguous_op = inquiry("is_contiguous(Tensor self) -> bool", lambda self: self.is_contiguous())
is_contiguous_format_op = inquiry(
    "is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool",
    lambda self, memory_format: self.is_contiguous(memory_format=memory_format),
)
overlap_op = inquiry(
    "_debug_has_internal_overlap(Tensor self) -> int", lambda self: int(has_internal_overlap(self._shape, self._stride))
)


def wrap(self: Any, dim: int) -> int:
    if not self._shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, len(self._shape))


# --- autograd ---------------------------------------------------------------------------------------------------------

is_leaf_op = inquiry("is_leaf(Tensor self) -> bool", lambda self: self.is_leaf)
output_nr_op = inquiry("output_nr(Tensor self) -> int", lambda self: self.output_nr)
retains_grad_op = inquiry("retains_grad(Tensor self) -> bool", lambda self: self.retains_grad)
version_op = inquiry("_version(Tensor self) -> int", lambda self: self._version)
data_op = inquiry("data(Tensor self) -> Tensor", lambda self: self.data)
requires_grad_op = inquiry(
    "requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)",
    lambda self, requires_grad: self.requires_grad_(requires_grad),
    refuses="whole",
)


set_data_op = Operator("set_data(Tensor(a!) self, Tensor new_data) -> ()")
retain_grad_op = Operator("retain_grad(Tensor(a!) self) -> ()")
set_data_op.understands("Conjugate", "Negative", "ZeroTensor")
retain_grad_op.understands("Conjugate", "Negative", "ZeroTensor")


@set_data_op.implicit
def set_data(self, new_data):
    self.data = new_data


@retain_grad_op.implicit
def retain_grad(self):
    self.retain_grad()


get_device = public(get_device_op, method=False, doc="Returns the index of the tensor's device; -1 for the CPU.")
is_conj = public(is_conj_op, method=False, doc="Returns whether the tensor is a conjugate view.")
is_neg = public(is_neg_op, method=False, doc="Returns whether the tensor is a negative view.")
is_signed, is_inference = (
    public(is_signed_op, method=False, doc="Returns whether the dtype has negative numbers."),
    public(is_inference_op, method=False, doc="Returns whether the tensor was made in inference mode."),
)
is_distributed = public(is_distributed_op, method=False, doc="Returns whether the tensor is distributed; none is.")

# --- two tensors, dtypes ----------------------------------------------------------------------------------------------

is_same_size_op = Operator("is_same_size(Tensor self, Tensor other) -> bool")
is_same_size_op.explicit(lambda self, other: self._shape == other._shape)
is_same_size_op.not_differentiable()
is_same_size = public(is_same_size_op, doc="Returns whether both tensors have the same shape.")


@kernel("is_set_to(Tensor self, Tensor tensor) -> bool", derivative=False, function=False)
def is_set_to(self, tensor):
    """Returns whether both tensors show the same memory in the same way."""
    one, other = ((x._storage, x._offset, x._shape, x._stride) for x in (self, tensor))
    return one[0] is other[0] and one[1:] == other[1:]


can_cast_op = inquiry("can_cast(ScalarType from_, ScalarType to) -> bool", can_cast)
promote_types_op = inquiry("promote_types(ScalarType type1, ScalarType type2) -> ScalarType", promote_types)
for _overload, _arguments in (
    ("Tensor", "Tensor tensor, Tensor other"),
    ("Scalar", "Tensor tensor, Scalar other"),
    ("Scalar_Tensor", "Scalar scalar, Tensor tensor"),
    ("Scalar_Scalar", "Scalar scalar1, Scalar scalar2"),
):
    inquiry(f"result_type.{_overload}({_arguments}) -> ScalarType", result_type)

# --- where memory is, and layouts that are not there ------------------------------------------------------------------

is_pinned_op = Operator("is_pinned(Tensor self, Device? device=None) -> bool")
is_pinned_op.explicit(lambda self, device: owner_of(self) is not None)
is_pinned_op.not_differentiable()
is_pinned = public(is_pinned_op, function=False, doc="Returns whether the tensor's memory is pinned.")

to_dense_op = Operator("to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor")
to_dense_op.implicit(lambda self, dtype, masked_grad: self if dtype is None else self.to(dtype))
to_dense = public(
    to_dense_op, function=False, doc="Returns the tensor itself, which is dense, in another dtype if asked for."
)
