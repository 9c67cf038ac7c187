"""max_unpool: elements put where `max_pool` found them, with zeros in all other places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels import numbers
from redispatch.kernels.cpu import pooling

from ..declare.operator import CPU_FP32
from ..declare.public import public
from ..declare.structured import Meta, Structured
from .convolution import dense, zeros
from .pooling import at_places, check_dtype, images_of
from .resampling import shaped_like

COUNTS = {2: "two elements (height, width)", 3: "three elements (depth, height, width)"}


def check(dims: int, self: Tensor, indices: Tensor, output_size: Sequence[int], *lists: Sequence[int]) -> None:
    """RuntimeError, in PyTorch's words, where these do not belong to each other."""
    if len(output_size) != dims:
        raise RuntimeError(
            f"There should be exactly {COUNTS[dims]} in output_size, but got {len(output_size)} elements."
        )
    for name, given in zip(("stride", "padding"), lists, strict=False):
        if len(given) != dims:
            raise RuntimeError(f"There should be exactly {COUNTS[dims]} in {name}, but got: {len(given)} elements.")
    if indices._dtype is not dtypes.int64:
        got = f" but got: {indices._dtype.tensor_name}" if dims == 2 else ""
        raise RuntimeError(f"elements in indices should be type int64{got}")
    ndim = len(self._shape)
    if ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with "
            f"{ndim} dimensions."
        )
    if tuple(self._shape) != tuple(indices._shape):
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(self._shape)}) but got indices "
            f"tensor with shape: {list(indices._shape)}"
        )
    for d in range(1, ndim):
        if self._shape[d] == 0:
            raise RuntimeError(
                f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size for non-batch "
                f"dimensions, but got {list(self._shape)} with dimension {d} being empty."
            )
    if lists and min(lists[0]) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(lists[0])}")
    check_dtype(f"max_unpool{dims}d", self)


def check_places(places: Any, output_size: Sequence[int]) -> None:
    elements = 1
    for size in output_size:
        elements *= size
    bad = (places < 0) | (places >= elements)
    if bad.any():
        raise RuntimeError(
            f"Found an invalid max index: {places[bad].flat[0]} (output volumes are of size "
            f"{'x'.join(map(str, output_size))})"
        )


def declare(dims: int) -> Any:
    """`max_unpool2d`, for two dimensions."""
    more = ", int[3] stride, int[3] padding" if dims == 3 else ""
    op = Structured(
        f"max_unpool{dims}d(Tensor self, Tensor indices, SymInt[{dims}] output_size{more}) -> Tensor",
        out="out",
        refuses="whole complex",
        autocast=CPU_FP32,
    )

    @op.meta
    def meta(self: Tensor, indices: Tensor, output_size: Sequence[int], *lists: Sequence[int]) -> Meta:
        check(dims, self, indices, output_size, *lists)
        look = shaped_like((*self._shape[:-dims], *output_size), self)
        return look if dims == 2 else look._replace(strides=None)

    @op.body
    def body(out: Tensor, self: Tensor, indices: Tensor, output_size: Sequence[int], *lists: Sequence[int]) -> None:
        places = dense(indices, dtypes.int64)._operand
        made = zeros(out._shape, out._dtype, out._device)
        if self._shape.numel() and made._shape.numel():
            check_places(numbers(places), output_size)
            pooling.put(made._operand, places, dense(self, self._dtype)._operand, images_of(self, dims))
        kernels.copy(out._operand, made._operand)

    op.derivative(self=at_places(dims))
    op.forward("linear")
    doc = f"Returns zeros with each element back where pooling over {dims} dimensions found it."
    return public(op, method=False, module="nn", doc=doc)


max_unpool2d, max_unpool3d = declare(2), declare(3)
