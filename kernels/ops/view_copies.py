"""The `_copy` of each view operator: the same elements in memory of their own.

    view_copy = copies(view_op)     # view_copy(Tensor self, SymInt[] size) -> Tensor

One rule makes them all of the views: the schema without its alias annotations, a dense copy of what the view shows, the
view's derivative. Functionalization puts them in the place of views, where nothing may share memory.

Read next: views.py, for the views; kernels/declare/out_forms.py.
"""

from __future__ import annotations

import re
from typing import Any

from redispatch.dispatch import call
from redispatch.dispatch.tensor import Tensor, contiguous_format, wrap_dim
from redispatch.dispatch.tensor.wrapped import is_wrapped
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator
from ..declare.operator import kernel
from ..declare.public import public
from . import views
from .complex_numbers import conj_view_op, neg_view_op, view_as_complex_op, view_as_real_op
from .copying import alias_op, clone_op, copied, detach_op

ALIAS = re.compile(r"\([a-z](?: -> \*)?\)")  # of `Tensor(a)` and `Tensor(a -> *)`
NAME = re.compile(r"^\w+::(\w+)")


def copies(*shown: Operator) -> Any:
    """The function, and its operators, that copy what these operators show."""
    return public(*map(copying, shown), method=False)


def copying(view: Operator) -> Operator:
    """The operator that copies what `view` shows."""
    text = NAME.sub(r"\1_copy", ALIAS.sub("", view.text.text))
    overload = view.text.overload_name
    several = view.text.returns.endswith("[]")
    out = f"{overload}_out" if overload else "out"
    doc = f"Returns a copy of what `{view.base_name}` shows."
    op = Operator(text, tags=("view_copy",), out=out, refuses=view.refuses, doc=doc)

    def copy_kernel(*args: Any) -> Any:
        shown = call(view.functional, list(args))
        return [dense(x) for x in shown] if several else dense(shown)

    copy_kernel.__name__ = f"{op.base_name}_kernel"
    op.explicit(copy_kernel)
    copy_into_out(op)
    if view.rules:
        op.derivative(*view.rules, node=f"{view.node}_copy", for_complex=view.for_complex)
        op.forward("linear")
    else:
        op.not_differentiable()
    return op


def dense(shown: Tensor) -> Tensor:
    if is_wrapped(shown):  # under vmap: the kernel is what the batch is taken apart by
        return clone_op.functional(shown, memory_format=contiguous_format)
    return copied(shown, None, None, contiguous_format)


_conj_copy = copies(conj_view_op)
_neg_view_copy = copies(neg_view_op)
view_as_real_copy = copies(view_as_real_op)
view_as_complex_copy = copies(view_as_complex_op)
alias_copy = copies(alias_op)
as_strided_copy = copies(views.as_strided_op)
detach_copy = copies(detach_op)
diagonal_copy = copies(views.diagonal_op)
expand_copy = copies(views.expand_op)
permute_copy = copies(views.permute_op)
_reshape_alias_copy = copies(views.reshape_alias_op)
select_copy = copies(views.select_op)
slice_copy = copies(views.slice_op)
split_copy = copies(views.split_op)
split_with_sizes_copy = copies(views.split_with_sizes_op)
squeeze_copy = copies(views.squeeze_op, views.squeeze_dim_op, views.squeeze_dims_op)
t_copy = copies(views.t_op)
transpose_copy = copies(views.transpose_op)
unbind_copy = copies(views.unbind_op)
unfold_copy = copies(views.unfold_op)
unsqueeze_copy = copies(views.unsqueeze_op)
view_copy = copies(views.view_dtype_op, views.view_op)
as_strided_copy_op, diagonal_copy_op = as_strided_copy.op, diagonal_copy.op
reshape_alias_copy_op = _reshape_alias_copy.op

# --- narrow_copy has a node of its own: `narrow` is written in other views --------------------------------------------


def narrow_copy_backward(grad: Any, self_shape: Any, dim: int, start: int) -> Tensor:
    at = start + self_shape[dim] if start < 0 else start
    return grad.new_zeros(self_shape).slice_scatter(grad, dim, at, at + grad.shape[dim])


@kernel(
    "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
    tags=("view_copy",),
    out="out",
    derivative=narrow_copy_backward,
    forward="linear",
)
def narrow_copy(self: Any, dim: int, start: int, length: int) -> Tensor:
    """Returns a copy of `length` elements of one dimension, from `start` on."""
    if self._shape and dim >= len(self._shape):
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.")
    size = self._shape[wrap_dim(dim, len(self._shape))] if self._shape else 0
    if self._shape and length < 0 and -size <= start <= size:
        raise RuntimeError(f"start ({start + size * (start < 0)}) + length ({length}) exceeds dimension size ({size}).")
    return dense(self.narrow(dim, start, length))
