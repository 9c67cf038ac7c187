"""The `_copy` of each view operator: the same elements in memory of their own.

    view_copy_op = copying(view_op)     # view_copy(Tensor self, SymInt[] size) -> Tensor

One rule makes them all of the views: the schema without its alias annotations, a dense copy of what the view shows, the
view's derivative. Functionalization puts them in the place of views, where nothing may share memory.

Read next: views.py, for the views; kernels/declare/out_forms.py.
"""

from __future__ import annotations

import re
from typing import Any

from redispatch.dispatch import call
from redispatch.dispatch.tensor import Tensor, contiguous_format
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator
from ..declare.public import public
from .complex_numbers import conj_view_op, neg_view_op, view_as_complex_op, view_as_real_op
from .copying import alias_op, copied, detach_op
from .views import (
    as_strided_op,
    diagonal_op,
    expand_op,
    permute_op,
    select_op,
    slice_op,
    split_op,
    split_with_sizes_op,
    squeeze_dim_op,
    squeeze_dims_op,
    squeeze_op,
    t_op,
    transpose_op,
    unbind_op,
    unfold_op,
    unsqueeze_op,
    view_dtype_op,
    view_op,
)

ALIAS = re.compile(r"\([a-z](?: -> \*)?\)")  # of `Tensor(a)` and `Tensor(a -> *)`
NAME = re.compile(r"^\w+::(\w+)")


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
    return copied(shown, None, None, contiguous_format)


conj_copy_op = copying(conj_view_op)
neg_view_copy_op = copying(neg_view_op)
view_as_real_copy_op = copying(view_as_real_op)
view_as_complex_copy_op = copying(view_as_complex_op)
alias_copy_op = copying(alias_op)
as_strided_copy_op = copying(as_strided_op)
detach_copy_op = copying(detach_op)
diagonal_copy_op = copying(diagonal_op)
expand_copy_op = copying(expand_op)
permute_copy_op = copying(permute_op)
select_copy_op = copying(select_op)
slice_copy_op = copying(slice_op)
split_copy_op = copying(split_op)
split_with_sizes_copy_op = copying(split_with_sizes_op)
squeeze_copy_op = copying(squeeze_op)
squeeze_copy_dim_op = copying(squeeze_dim_op)
squeeze_copy_dims_op = copying(squeeze_dims_op)
t_copy_op = copying(t_op)
transpose_copy_op = copying(transpose_op)
unbind_copy_op = copying(unbind_op)
unfold_copy_op = copying(unfold_op)
unsqueeze_copy_op = copying(unsqueeze_op)
view_copy_op = copying(view_op)
view_copy_dtype_op = copying(view_dtype_op)

_conj_copy = public(conj_copy_op, method=False)
_neg_view_copy = public(neg_view_copy_op, method=False)
view_as_real_copy = public(view_as_real_copy_op, method=False)
view_as_complex_copy = public(view_as_complex_copy_op, method=False)
alias_copy = public(alias_copy_op, method=False)
as_strided_copy = public(as_strided_copy_op, method=False)
detach_copy = public(detach_copy_op, method=False)
diagonal_copy = public(diagonal_copy_op, method=False)
expand_copy = public(expand_copy_op, method=False)
permute_copy = public(permute_copy_op, method=False)
select_copy = public(select_copy_op, method=False)
slice_copy = public(slice_copy_op, method=False)
split_copy = public(split_copy_op, method=False)
split_with_sizes_copy = public(split_with_sizes_copy_op, method=False)
squeeze_copy = public(squeeze_copy_op, squeeze_copy_dim_op, squeeze_copy_dims_op, method=False)
t_copy = public(t_copy_op, method=False)
transpose_copy = public(transpose_copy_op, method=False)
unbind_copy = public(unbind_copy_op, method=False)
unfold_copy = public(unfold_copy_op, method=False)
unsqueeze_copy = public(unsqueeze_copy_op, method=False)
view_copy = public(view_copy_dtype_op, view_copy_op, method=False)

# --- narrow_copy has a node of its own: `narrow` is written in other views --------------------------------------------

narrow_copy_op = Operator(
    "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", tags=("view_copy",), out="out"
)


@narrow_copy_op.explicit
def narrow_copy_kernel(self: Any, dim: int, start: int, length: int) -> Tensor:
    return dense(self.narrow(dim, start, length))


copy_into_out(narrow_copy_op)


def narrow_copy_backward(grad: Any, self_shape: Any, dim: int, start: int) -> Tensor:
    at = start + self_shape[dim] if start < 0 else start
    return grad.new_zeros(self_shape).slice_scatter(grad, dim, at, at + grad.shape[dim])


narrow_copy_op.derivative(self=narrow_copy_backward)
narrow_copy_op.forward("linear")
narrow_copy = public(narrow_copy_op, doc="Returns a copy of `length` elements of one dimension, from `start` on.")
