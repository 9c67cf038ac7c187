"""Questions about tensors and dtypes as operators: is_complex, numel, is_leaf, result_type, is_set_to and their kin.

A person asks the tensor; programs of operators that were captured somewhere ask by these. Nearly all are composite
and compute nothing, so that modes do not see them, as they do not see `x.shape`.

`x.shape` of a wrapper that wants it asks its handler: it calls `aten.sym_size` at the key Python;
dispatch/tensor/routes.py says who wants that, and why. Called by anybody else these operators answer by the tensor's
face.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from redispatch.dispatch import keyset, run
from redispatch.dispatch.protocols.override import not_handled
from redispatch.dispatch.tensor import (
    ROUTES,
    Route,
    Size,
    can_cast,
    contiguous_format,
    device,
    dtypes,
    item_of,
    owner_of,
    pinned_copy,
    promote_types,
    result_type,
    wrap_dim,
)
from redispatch.kernels import is_dense

from ..declare.declare import Operator
from ..declare.operator import LAZY, composite, kernel
from ..declare.overridable import builtin_function
from . import from_data
from .copying import like_channels_last
from .masking import is_expanded


def inquiry(schema: str, answer: Callable[..., Any], doc: str = "", **facts: Any) -> Any:
    """An operator that looks at its arguments and answers; with a sentence about it, a public function."""
    return composite(schema, understands=LAZY, face=bool(doc), method=False, doc=doc, **facts)(answer)


is_complex_op = inquiry("is_complex(Tensor self) -> bool", lambda self: self._dtype.is_complex)
is_floating_point_op = inquiry("is_floating_point(Tensor self) -> bool", lambda self: self._dtype.is_floating_point)
is_signed = inquiry(
    "is_signed(Tensor self) -> bool",
    lambda self: self._dtype.is_signed,
    "Returns whether the dtype has negative numbers.",
)
is_conj = inquiry(
    "is_conj(Tensor self) -> bool", lambda self: self.is_conj(), "Returns whether the tensor is a conjugate view."
)
is_neg = inquiry(
    "is_neg(Tensor self) -> bool", lambda self: self.is_neg(), "Returns whether the tensor is a negative view."
)
is_inference = inquiry(
    "is_inference(Tensor self) -> bool",
    lambda self: self._counter is None,
    "Returns whether the tensor was made in inference mode.",
)
is_distributed = inquiry(
    "is_distributed(Tensor self) -> bool", lambda self: False, "Returns whether the tensor is distributed; none is."
)
cudnn_is_acceptable_op = inquiry("cudnn_is_acceptable(Tensor self) -> bool", lambda self: False)

dim_op = inquiry("dim(Tensor self) -> int", lambda self: len(self._shape))
numel_op = inquiry("numel(Tensor self) -> int", lambda self: self._shape.numel())
size_op = inquiry("size.int(Tensor self, int dim) -> int", lambda self, dim: self._shape[wrap(self, dim)])
stride_op = inquiry("stride.int(Tensor self, int dim) -> int", lambda self, dim: self._stride[wrap(self, dim)])
storage_offset_op = inquiry("storage_offset(Tensor self) -> int", lambda self: self._offset)
get_device = inquiry(
    "get_device(Tensor self) -> int",
    lambda self: self.get_device(),
    "Returns the index of the tensor's device; -1 for the CPU.",
)
is_contiguous_op = inquiry("is_contiguous(Tensor self) -> bool", lambda self: self.is_contiguous())
is_contiguous_format_op = inquiry(
    "is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool",
    lambda self, memory_format: self.is_contiguous(memory_format=memory_format),
)


@partial(inquiry, "_debug_has_internal_overlap(Tensor self) -> int")
def overlap_op(self):
    """Whether elements share memory: 0 for no, 1 for yes, 2 where PyTorch finds it too hard to say."""
    if is_dense(self._shape, self._stride):
        return 0
    return 1 if is_expanded(self) else 2


def wrap(self: Any, dim: int) -> int:
    return wrap_dim(dim, len(self._shape), wrap_scalar=False)


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


@composite("set_data(Tensor(a!) self, Tensor new_data) -> ()", understands=LAZY, face=False)
def set_data_op(self, new_data):
    self.data = new_data


@composite("retain_grad(Tensor(a!) self) -> ()", understands=LAZY, face=False)
def retain_grad_op(self):
    self.retain_grad()


# --- assertions -------------------------------------------------------------------------------------------------------


@kernel("_assert_async.msg(Tensor self, str assert_msg) -> ()", derivative=False)
def assert_async_op(self, assert_msg):
    if self._device.type != "meta" and not self:
        raise RuntimeError(assert_msg)


@kernel("_assert_async(Tensor self) -> ()", derivative=False, face=True, method=False, also=(assert_async_op,))
def _assert_async(self):
    """Raises RuntimeError unless the one value of a tensor is true."""
    assert_async_op.functional(self, "Expected Tensor with single nonzero value, but got zero")


# --- two tensors, dtypes ----------------------------------------------------------------------------------------------


@kernel("is_same_size(Tensor self, Tensor other) -> bool", derivative=False)
def is_same_size(self, other):
    """Returns whether both tensors have the same shape."""
    return self._shape == other._shape


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


@kernel("is_pinned(Tensor self, Device? device=None) -> bool", derivative=False, function=False)
def is_pinned(self, device):
    """Returns whether the tensor's memory is pinned."""
    return owner_of(self) is not None


@kernel("_pin_memory(Tensor self, Device? device=None) -> Tensor", derivative=lambda grad: grad)
def copied_where_devices_read(self, device):
    """Returns a copy in memory that an accelerator reads by itself.

    Errors: RuntimeError where there is no accelerator, and for tensors that are not the CPU's.
    """
    if self._device.type != "cpu":
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    found = pinned_copy(self.detach().clone(memory_format=contiguous_format))
    if found is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return found


@composite("pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)", function=False)
def pin_memory(self, device):
    """Returns the tensor in memory that an accelerator reads by itself: a copy, unless it is there already."""
    return self if self.is_pinned() else copied_where_devices_read.functional(self, device)


@composite("to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor", function=False)
def to_dense(self, dtype, masked_grad):
    """Returns the tensor itself, which is dense, in another dtype if asked for."""
    return self if dtype is None else self.to(dtype)


# --- which dtype a computation has: dispatch/tensor/dtypes.py, asked by modes and subclasses, too ------------------

result_type = builtin_function(dtypes.result_type)
promote_types = builtin_function(dtypes.promote_types)
can_cast = builtin_function(dtypes.can_cast)


@composite("_shape_as_tensor(Tensor self) -> Tensor", derivative=False)
def shape_as_tensor(self):
    """Returns the sizes as a tensor of int64, on the CPU."""
    return from_data.as_tensor(list(self.shape), dtype=dtypes.int64)


# --- sizes as operators, by which captured programs ask for shapes ----------------------------------------------------


@composite("sym_size.int(Tensor self, int dim) -> SymInt", core=True)
def sym_size_op(self, dim):
    return self._shape[dim]


@composite("sym_stride.int(Tensor self, int dim) -> SymInt", core=True)
def sym_stride_op(self, dim):
    return self._stride[wrap_dim(dim, len(self._shape), wrap_scalar=False)]


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


# --- what a wrapper is asked ------------------------------------------------------------------------------------------

PYTHON = keyset("Python")

sizes_op = inquiry("sym_size(Tensor self) -> SymInt[]", lambda self: list(self._shape))
strides_op = inquiry("sym_stride(Tensor self) -> SymInt[]", lambda self: list(self._stride))
inquiry("size(Tensor self) -> int[]", lambda self: list(self._shape))
inquiry("stride(Tensor self) -> int[]", lambda self: list(self._stride))
device_op = inquiry("device(Tensor a) -> Device", lambda a: a._device, namespace="prim")
dense_op = inquiry(
    "is_non_overlapping_and_dense(Tensor self) -> bool", lambda self: is_dense(self._shape, self._stride)
)
inquiry(
    "is_strides_like_format(Tensor self, MemoryFormat memory_format) -> bool",
    lambda self, memory_format: (
        len(self._shape) == {"channels_last": 4, "channels_last_3d": 5}.get(memory_format.name)
        and like_channels_last(self._shape, self._stride)
    ),
)
layout_op = inquiry("layout(Tensor a) -> Layout", lambda a: a._layout, namespace="prim")


def asked(op: Operator, x: Any, *args: Any) -> Any:
    """Asks modes and the class of `x`, from the key Python on."""
    try:
        return run(op.functional, PYTHON, [x, *args])
    except TypeError as problem:
        if not hasattr(problem, "is_not_handled"):
            raise
        text = str(problem).replace(f"torch._ops.{op.functional}", f"torch.ops.{op.functional.overloadpacket}")
        raise not_handled(text) from None  # a question has PyTorch's name of the packet


def route(name: str, subject: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Has the decorated function answer the method or property `name` of tensors that ask about `subject`."""

    def put(ask: Callable[..., Any]) -> Callable[..., Any]:
        ROUTES[name] = Route(subject, ask)
        return ask

    return put


@route("shape", "sizes")
@route("size", "sizes")
def size(x: Any, dim: int | None = None) -> Any:
    if dim is None:
        sizes = asked(sizes_op, x)
        return None if sizes is None else Size(sizes)
    asked(dim_op, x)  # as PyTorch does, to see whether there is that dimension
    sizes = asked(sizes_op, x)
    return None if sizes is None else item_of("size", tuple(sizes), dim)


@route("stride", "strides")
def stride(x: Any, dim: int | None = None) -> Any:
    strides = asked(strides_op, x)
    if strides is None:
        return None
    return tuple(strides) if dim is None else item_of("stride", tuple(strides), dim)


@route("is_contiguous", "strides")
def is_contiguous(x: Any, memory_format: Any = contiguous_format) -> Any:
    if memory_format is contiguous_format:
        return asked(is_contiguous_op, x)
    return asked(is_contiguous_format_op, x, memory_format)


@route("dim", "sizes")
@route("ndim", "sizes")
def dim(x: Any) -> Any:
    return asked(dim_op, x)


@route("__len__", "sizes")
def length(x: Any) -> Any:
    if asked(dim_op, x) == 0:
        raise TypeError("len() of a 0-d tensor")
    sizes = asked(sizes_op, x)
    return None if sizes is None else sizes[0]


@route("numel", "sizes")
def numel(x: Any) -> Any:
    return asked(sym_numel_op, x)


@route("nbytes", "sizes")
def nbytes(x: Any) -> Any:
    count = asked(numel_op, x)
    return None if count is None else count * x.element_size()


@route("storage_offset", "sizes")
def storage_offset(x: Any) -> Any:
    return asked(sym_storage_offset_op, x)


@route("device", "device")
def device_of(x: Any) -> Any:
    found = asked(device_op, x)
    return None if found is None else device(found)


@route("get_device", "device")
def index_of_device(x: Any) -> Any:
    found = device_of(x)
    return None if found is None else -1 if found.type == "cpu" else found.index or 0


@route("is_cpu", "device")
def is_cpu(x: Any) -> Any:
    return is_on(x, "cpu")


@route("is_cuda", "device")
def is_cuda(x: Any) -> Any:
    return is_on(x, "cuda")


@route("is_meta", "device")
def is_meta(x: Any) -> Any:
    return is_on(x, "meta")


def is_on(x: Any, kind: str) -> Any:
    found = device_of(x)
    return None if found is None else found.type == kind


@route("layout", "layout")
def layout_of(x: Any) -> Any:
    return asked(layout_op, x)
