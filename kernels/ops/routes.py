"""Operators by which a tensor's handler is asked for sizes, strides, device and layout, where a wrapper wants that.

`x.shape` of such a wrapper calls `aten.sym_size` at the key Python; dispatch/tensor/routes.py says who wants that, and
why. Called by anybody else they answer by the tensor's face.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import keyset, run
from redispatch.dispatch.tensor import ROUTES, Route, Size, contiguous_format, device, item_of
from redispatch.kernels import is_dense

from ..declare.declare import Operator
from .inquiries import dim_op, inquiry, is_contiguous_format_op, is_contiguous_op, numel_op
from .sizes import sym_numel_op, sym_storage_offset_op

PYTHON = keyset("Python")

sizes_op = inquiry("sym_size(Tensor self) -> SymInt[]", lambda self: list(self._shape))
strides_op = inquiry("sym_stride(Tensor self) -> SymInt[]", lambda self: list(self._stride))
device_op = inquiry("device(Tensor a) -> Device", lambda a: a._device, namespace="prim")
dense_op = inquiry(
    "is_non_overlapping_and_dense(Tensor self) -> bool", lambda self: is_dense(self._shape, self._stride)
)
layout_op = inquiry("layout(Tensor a) -> Layout", lambda a: a._layout, namespace="prim")


def asked(op: Operator, x: Any, *args: Any) -> Any:
    """What modes and the class of `x` say, from the key Python on."""
    return run(op.functional, PYTHON, [x, *args])


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
def get_device(x: Any) -> Any:
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
