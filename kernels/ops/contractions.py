"""Products over chosen dimensions: tensordot, inner, kron; and trace.

All are rearranged so that `bmm` or `mm` does the work. Read next: einsum.py, linalg.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from redispatch import kernels
from redispatch.dispatch import asks, call_overridden, ops, overridden
from redispatch.dispatch import trace as call_trace
from redispatch.dispatch.tensor import Tensor, dtypes, wrap_dim
from redispatch.kernels.declare.out_forms import copy_into_out, resize_and_copy_into_out

from ..declare.declare import Operator
from ..declare.overridable import overridable_function
from ..declare.public import public
from ..declare.structured import Meta, Structured

# --- trace -----------------------------------------------------------------------------------------------------------

trace_op = Structured("trace(Tensor self) -> Tensor", out="out", refuses="bool", autocast={"cpu": "fp32"})


@trace_op.meta
def trace_meta(self: Tensor) -> Meta:
    if len(self._shape) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {len(self._shape)}")
    if self._dtype is dtypes.bool:
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    kind = dtypes.int64 if self._dtype.category <= dtypes.INTEGER else self._dtype
    return Meta((), kind, self._device)


@trace_op.body
def trace_body(out: Tensor, self: Tensor) -> None:
    (n, m), (down, right) = self._shape, self._stride
    count = min(n, m)
    line = self._operand._replace(shape=(count,), strides=(down + right,))
    kernels.SUM.run(out._operand, line, (0,))


def trace_gradient(grad: Any, self_shape: Sequence[int]) -> Any:
    """The gradient on the diagonal, zeros elsewhere."""
    return grad.new_zeros(self_shape).diagonal_scatter(grad.expand(min(self_shape)))


trace_op.derivative(self=trace_gradient)
trace_op.forward("linear")
public(trace_op, function=False, doc="Returns the sum of the diagonal of a matrix.")


def trace(*args: Any, **kwargs: Any) -> Any:
    """Returns the sum of the diagonal: `trace(matrix)`. `with trace() as hops:` records the calls of the dispatcher."""
    if not args and not kwargs:
        return call_trace()
    if overridden(args, kwargs):
        return call_overridden(trace, args, kwargs)
    return matrix_trace(*args, **kwargs)


asks(trace, "torch.trace")

matrix_trace = public(trace_op, method=False, doc="Returns the sum of the diagonal of a matrix.")

# --- tensordot, inner, kron ------------------------------------------------------------------------------------------

tensordot_op = Operator(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    out="out",
    refuses="bool",
    autocast={"cuda": "promote"},
)
inner_op = Operator("inner(Tensor self, Tensor other) -> Tensor", out="out", refuses="bool")
kron_op = Operator("kron(Tensor self, Tensor other) -> Tensor", out="out")


@tensordot_op.implicit
def tensordot_composite(self: Any, other: Any, dims_self: Sequence[int], dims_other: Sequence[int]) -> Any:
    """The sums of products over pairs of dimensions; the others stay, first those of `self`."""
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    if self.dtype is not other.dtype:
        raise RuntimeError(f"both inputs should have same dtype, but got {self.dtype} and {other.dtype}")
    ours, theirs = ([wrap_dim(d, x.dim()) for d in dims] for x, dims in ((self, dims_self), (other, dims_other)))
    count = 1
    for a, b in zip(ours, theirs, strict=True):
        n, m = self.shape[a], other.shape[b]
        if n == 1 or m == 1:
            self = self.sum(a, True) if n > m else self
            other = other.sum(b, True) if m > n else other
        elif n != m:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {n} in dim {a} and second has size {m} in "
                f"dim {b}"
            )
        count *= min(n, m)
    kept = [d for d in range(self.dim()) if d not in ours]
    rest = [d for d in range(other.dim()) if d not in theirs]
    shape = [self.shape[d] for d in kept] + [other.shape[d] for d in rest]
    rows, columns = math.prod(self.shape[d] for d in kept), math.prod(other.shape[d] for d in rest)
    if not kept and not rest:
        left, right = self.permute(ours), other.permute(theirs)
        return left.flatten().dot(right.flatten()).view([])
    left = self.permute([*kept, *ours]).reshape([rows, count])
    right = other.permute([*theirs, *rest]).reshape([count, columns])
    return left.mm(right).reshape(shape)


@inner_op.implicit
def inner_composite(self: Any, other: Any) -> Any:
    """Returns the sums of products over the last dimensions of both tensors."""
    if not self.dim() or not other.dim():
        return self * other
    if self.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(self.shape)} and "
            f"{list(other.shape)}"
        )
    return tensordot_op.functional(self, other, [-1], [-1])


@kron_op.implicit
def kron_composite(self: Any, other: Any) -> Any:
    """Returns the Kronecker product: every element of `self` times all of `other`, in its place."""
    ndim = max(self.dim(), other.dim())
    ours, theirs = ([1] * (ndim - x.dim()) + list(x.shape) for x in (self, other))
    wide = [size for n in ours for size in (n, 1)]
    narrow = [size for n in theirs for size in (1, n)]
    shown = ops.aten._unsafe_view.default
    product = shown(self.contiguous(), wide) * shown(other.contiguous(), narrow)
    return shown(product, [n * m for n, m in zip(ours, theirs, strict=True)])


resize_and_copy_into_out(inner_op)
resize_and_copy_into_out(kron_op)
copy_into_out(tensordot_op, casts=True)
inner = public(inner_op)
kron = public(kron_op)


@overridable_function
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Returns the sums of products over the last `dims` dimensions of `a` and the first of `b`; or over two lists of
    them."""
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        ours, theirs = list(range(-dims, 0)), list(range(dims))
    else:
        ours, theirs = ([dim] if isinstance(dim, int) else list(dim) for dim in dims)
    found = tensordot_op.functional(a, b, ours, theirs)
    return found if out is None else out.resize_(found.shape).copy_(found)
