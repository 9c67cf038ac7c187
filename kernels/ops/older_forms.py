"""Composite operators that PyTorch keeps for what was written before: graphs, checkpoints and training loops name them.

    norm_except_dim, _weight_norm                   what weight normalisation is made of
    flatten_dense_tensors, unflatten_dense_tensors  many tensors as one vector, and back
    thnn_conv2d, slow_conv3d                        convolutions that are told the size of their kernel

New programs write `norm`, `cat` and `conv2d`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, contiguous_format, wrap_dim
from redispatch.kernels.declare.out_forms import resize_and_copy_into_out

from ..declare.declare import Operator
from ..declare.operator import composite
from ..declare.public import public

norm_except_dim_op = Operator("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", refuses="whole")
conv2d_op = Operator(
    "thnn_conv2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], "
    "SymInt[2] padding=[0, 0]) -> Tensor",
    out="out",
    refuses="bool",
)
conv3d_op = Operator(
    "slow_conv3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], "
    "SymInt[3] padding=[0, 0, 0]) -> Tensor",
    out="out",
    refuses="bool",
)


@norm_except_dim_op.implicit
def norm_except_dim_composite(v: Any, pow: int, dim: int) -> Tensor:
    """Returns the norm over all dimensions but `dim`, which are left with size 1; over all of them for -1.

    Errors: IndexError for a dimension that there is not.
    """
    if dim == -1:
        return ops.aten.norm.Scalar(v, pow)
    dim = wrap_dim(dim, v.dim())
    ones = [1] * v.dim()
    if dim == 0:
        ones[0] = v.size(0)
        return ops.aten.norm.ScalarOpt_dim(v.contiguous().view(v.size(0), -1), pow, [1]).view(ones)
    if dim == v.dim() - 1:
        ones[-1] = v.size(-1)
        return ops.aten.norm.ScalarOpt_dim(v.contiguous().view(-1, v.size(-1)), pow, [0]).view(ones)
    return norm_except_dim_composite(v.transpose(0, dim), pow, 0).transpose(0, dim)


@composite("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", refuses="whole")
def weight_norm_op(v: Any, g: Any, dim: int) -> Tensor:
    """`v` with the lengths `g` along `dim`: v g / |v|. (Salimans and Kingma, "Weight normalization", 2016.)"""
    return v * (g / norm_except_dim_op.functional(v, 2, dim))


@composite("flatten_dense_tensors(Tensor[] tensors) -> Tensor", face=False)
def flatten_op(tensors: Sequence[Any]) -> Tensor:
    """The elements of all, one tensor after the other."""
    return ops.aten.cat([tensor.contiguous(memory_format=contiguous_format).view(-1) for tensor in tensors])


@composite("unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]", face=False)
def unflatten_op(flat: Any, tensors: Sequence[Any]) -> list[Tensor]:
    """Views of parts of `flat` with the shapes of `tensors`. One without elements is new: there is nothing to view."""
    parts, offset = [], 0
    for tensor in tensors:
        count = tensor.numel()
        parts += [flat.narrow(0, offset, count).view(tensor.size()) if count else flat.new_empty(tensor.size())]
        offset += count
    return parts


def convolution(op: Operator, ndim: int) -> None:
    """A convolution of `ndim` dimensions whose kernel is given as rows, or whole, and in any case its size."""

    @op.implicit
    def composite(self: Any, weight: Any, kernel_size: Any, bias: Any, stride: Any, padding: Any) -> Tensor:
        if self.dim() != ndim + 2:
            raise RuntimeError(f"Expected {ndim + 2}D input tensor, but got: {list(self.shape)}")
        shape = [weight.size(0), self.size(1), *kernel_size]
        rows = weight.dim() == 2
        if list(weight.shape) != (shape if not rows else [shape[0], weight.numel() // max(shape[0], 1)]):
            raise RuntimeError(
                f"Expected a weight of shape {shape}, or one row for each output, but got: {list(weight.shape)}"
            )
        weight = weight.view(shape) if rows else weight
        return ops.aten.convolution(self, weight, bias, stride, padding, [1] * ndim, False, [0] * ndim, 1)

    resize_and_copy_into_out(op)


convolution(conv2d_op, 2)
convolution(conv3d_op, 3)
norm_except_dim = public(norm_except_dim_op, method=False)
