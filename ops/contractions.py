"""Products over chosen dimensions: einsum, tensordot, inner, kron; and trace.

All are rearranged so that `bmm` or `mm` does the work. Read next: linalg.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from redispatch import kernels
from redispatch.dispatch import call_overridden, ops, overridden
from redispatch.dispatch import trace as call_trace
from redispatch.tensor import Tensor, dtypes, wrap_dim

from .declare import Operator
from .out_forms import copy_into_out, resize_and_copy_into_out
from .overridable import overridable_function
from .public import public
from .structured import Meta, Structured

# --- trace -----------------------------------------------------------------------------------------------------------

trace_op = Structured("trace(Tensor self) -> Tensor", out="out")


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
public(trace_op, function=False)


def trace(*args: Any, **kwargs: Any) -> Any:
    """`trace(matrix)`: the sum of the diagonal. `with trace() as hops:` records the calls of the dispatcher."""
    if not args and not kwargs:
        return call_trace()
    if overridden(args, kwargs):
        return call_overridden(trace, args, kwargs)
    return matrix_trace(*args, **kwargs)


matrix_trace = public(trace_op, method=False)

# --- tensordot, inner, kron ------------------------------------------------------------------------------------------

tensordot_op = Operator("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", out="out")
inner_op = Operator("inner(Tensor self, Tensor other) -> Tensor", out="out")
kron_op = Operator("kron(Tensor self, Tensor other) -> Tensor", out="out")


@tensordot_op.implicit
def tensordot_composite(self: Any, other: Any, dims_self: Sequence[int], dims_other: Sequence[int]) -> Any:
    """The sums of products over pairs of dimensions; the others stay, first those of `self`."""
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
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
    """The sum of products over the last dimensions."""
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
    """Every element of `self` times all of `other`, in its place."""
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
    """The sums of products over the last `dims` dimensions of `a` and the first of `b`; or over two lists of them."""
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        ours, theirs = list(range(-dims, 0)), list(range(dims))
    else:
        ours, theirs = ([dim] if isinstance(dim, int) else list(dim) for dim in dims)
    found = tensordot_op.functional(a, b, ours, theirs)
    return found if out is None else out.resize_(found.shape).copy_(found)


# --- einsum ----------------------------------------------------------------------------------------------------------

einsum_op = Operator("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor")
REST = "..."


@einsum_op.implicit
def einsum_composite(equation: str, tensors: Sequence[Any], path: Any) -> Any:
    """Products summed over the letters that the result does not have: "ij,jk->ik" is the product of matrices.

    The tensors are joined one after the other, from the left: letters that no later tensor and no result has are summed
    as soon as both that have them are joined.
    """
    terms, result = parsed(equation, tensors)
    left, names = diagonals(tensors[0], terms[0])
    for k in range(1, len(tensors)):
        right, more = diagonals(tensors[k], terms[k])
        needed = set(result).union(*terms[k + 1 :])
        left, names = joined(left, names, right, more, needed)
    gone = [d for d, name in enumerate(names) if name not in result]
    if gone:
        left = left.sum(gone)
        names = [name for name in names if name in result]
    order = [names.index(name) for name in result]
    return left if order == list(range(len(order))) else left.permute(order)


def parsed(equation: str, tensors: Sequence[Any]) -> tuple[list[list[str]], list[str]]:
    """The names of each tensor's dimensions, and of the result's. Dimensions under "..." are named by their place."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(tensors):
        more = "more" if len(parts) < len(tensors) else "fewer"
        raise RuntimeError(f"einsum(): {more} operands were provided than specified in the equation")
    widest = 0
    terms = []
    for number, (part, x) in enumerate(zip(parts, tensors, strict=True)):
        before, dots, behind = part.partition(REST)
        covered = x.dim() - len(before) - len(behind)
        if covered < 0 or (covered and not dots):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(before) + len(behind)}) "
                f"{'is more than' if covered < 0 else 'does not match'} the number of dimensions ({x.dim()}) for "
                f"operand {number}{'' if covered < 0 else ' and no ellipsis was given'}"
            )
        widest = max(widest, covered)
        terms.append([*before, *(f"{REST}{covered - d}" for d in range(covered)), *behind])
        for name in (*before, *behind):
            if not name.isalpha():
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {equation.index(name)} in the equation string, "
                    "subscripts must be in [a-zA-Z]"
                )
    hidden = [f"{REST}{widest - d}" for d in range(widest)]
    if arrow:
        before, dots, behind = right.partition(REST)
        result = [*before, *(hidden if dots else ()), *behind]
    else:
        letters = [name for term in terms for name in term if not name.startswith(REST)]
        result = hidden + sorted(name for name in set(letters) if letters.count(name) == 1)
    known = {name for term in terms for name in term}
    for name in result:
        if name not in known:
            raise RuntimeError(
                f"einsum(): output subscript {name} does not appear in the equation for any input operand"
            )
        if result.count(name) > 1:
            raise RuntimeError(f"einsum(): output subscript {name} appears more than once in the output")
    return terms, result


def diagonals(x: Any, names: list[str]) -> tuple[Any, list[str]]:
    """The tensor with one dimension for each name: a name that stands twice means the diagonal."""
    names = list(names)
    for name in list(dict.fromkeys(names)):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            if x.shape[first] != x.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {name} is repeated for operand but the sizes don't match, "
                    f"{x.shape[second]} != {x.shape[first]}"
                )
            x = x.diagonal(0, first, second)
            del names[second], names[first]
            names.append(name)
    return x, names


def joined(left: Any, ours: list[str], right: Any, theirs: list[str], needed: set[str]) -> tuple[Any, list[str]]:
    """The product of two tensors, summed over the names that both have and nobody needs: one batched matrix product."""
    for name in ours:
        if name in theirs:
            n, m = left.shape[ours.index(name)], right.shape[theirs.index(name)]
            if n != m and 1 not in (n, m):
                raise RuntimeError(
                    f"einsum(): operands do not broadcast with remapped shapes [original->remapped]: subscript {name} "
                    f"has size {n} and {m}"
                )
    left, ours = without(left, ours, set(theirs) | needed)
    right, theirs = without(right, theirs, set(ours) | needed)
    both = [name for name in ours if name in theirs]
    sizes = {
        name: max(left.shape[ours.index(name)], right.shape[theirs.index(name)])
        if 0 not in (left.shape[ours.index(name)], right.shape[theirs.index(name)])
        else 0
        for name in both
    }
    batch, summed = [name for name in both if name in needed], [name for name in both if name not in needed]
    rows, columns = [name for name in ours if name not in both], [name for name in theirs if name not in both]
    of_rows = [left.shape[ours.index(name)] for name in rows]
    of_columns = [right.shape[theirs.index(name)] for name in columns]
    of_batch, of_summed = ([sizes[name] for name in names] for names in (batch, summed))
    left = left.permute([ours.index(name) for name in (*batch, *rows, *summed)])
    left = left.expand([*of_batch, *of_rows, *of_summed])
    right = right.permute([theirs.index(name) for name in (*batch, *summed, *columns)])
    right = right.expand([*of_batch, *of_summed, *of_columns])
    b, n, k, m = (math.prod(numbers) for numbers in (of_batch, of_rows, of_summed, of_columns))
    product = left.reshape([b, n, k]).bmm(right.reshape([b, k, m]))
    return product.reshape([*of_batch, *of_rows, *of_columns]), [*batch, *rows, *columns]


def without(x: Any, names: list[str], kept: set[str]) -> tuple[Any, list[str]]:
    """The sum over the dimensions whose names nobody else has."""
    gone = [d for d, name in enumerate(names) if name not in kept]
    return (x.sum(gone), [name for name in names if name in kept]) if gone else (x, names)


@overridable_function
def einsum(equation: Any, *operands: Any) -> Tensor:
    """`einsum("ij,jk->ik", a, b)`: products summed over the letters that the result does not have."""
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    if not isinstance(equation, str):
        raise TypeError("einsum(): the equation must be a string; lists of subscripts are not supported")
    if not given:
        raise RuntimeError("einsum(): must provide at least one operand")
    return einsum_op.functional(equation, list(given))
