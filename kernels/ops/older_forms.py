"""Composite operators that PyTorch keeps for what was written before: graphs, checkpoints and training loops name them.

    norm_except_dim, _weight_norm                   what weight normalisation is made of
    flatten_dense_tensors, unflatten_dense_tensors  many tensors as one vector, and back
    thnn_conv2d, slow_conv3d                        convolutions that are told the size of their kernel

New programs write `norm`, `cat` and `conv2d`.
"""

from __future__ import annotations

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import contiguous_format, wrap_dim

from ..declare.declare import Operator
from ..declare.operator import composite


@composite("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", refuses="whole", method=False)
def norm_except_dim(v, pow, dim):
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
    return norm_except_dim.op.functional(v.transpose(0, dim), pow, 0).transpose(0, dim)


@composite("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", refuses="whole")
def weight_norm_op(v, g, dim):
    """`v` with the lengths `g` along `dim`: v g / |v|. (Salimans and Kingma, "Weight normalization", 2016.)"""
    return v * (g / norm_except_dim.op.functional(v, 2, dim))


@composite("flatten_dense_tensors(Tensor[] tensors) -> Tensor", face=False)
def flatten_op(tensors):
    """The elements of all, one tensor after the other."""
    return ops.aten.cat([tensor.contiguous(memory_format=contiguous_format).view(-1) for tensor in tensors])


@composite("unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]", face=False)
def unflatten_op(flat, tensors):
    """Views of parts of `flat` with the shapes of `tensors`. One without elements is new: there is nothing to view."""
    parts, offset = [], 0
    for tensor in tensors:
        count = tensor.numel()
        parts += [flat.narrow(0, offset, count).view(tensor.size()) if count else flat.new_empty(tensor.size())]
        offset += count
    return parts


def told_its_size(name: str, ndim: int) -> Operator:
    """A convolution of `ndim` dimensions whose kernel is given as rows, or whole, and in any case its size."""

    @composite(
        f"{name}(Tensor self, Tensor weight, SymInt[{ndim}] kernel_size, Tensor? bias=None, "
        f"SymInt[{ndim}] stride={[1] * ndim}, SymInt[{ndim}] padding={[0] * ndim}) -> Tensor",
        out="out",
        refuses="bool",
        face=False,
    )
    def op(self, weight, kernel_size, bias, stride, padding):
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

    return op


conv2d_op, conv3d_op = told_its_size("thnn_conv2d", 2), told_its_size("slow_conv3d", 3)
