"""PyTorch's operators `_test_*` and `_foobar`, which do little: programs test by them what a dispatcher can do.

Read next: ../declare/operator.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor

from ..declare.declare import no_formula
from ..declare.operator import composite, kernel
from ..declare.public import public
from .from_data import tensor
from .view_copies import copies

aten = ops.aten


def plus(values: Tensor, addends: Sequence[Any] | None) -> Tensor:
    """Returns the values plus numbers, if there are any: one for each."""
    if addends is None:
        return values
    if values.dim() != 1 or len(addends) != values.numel():
        raise RuntimeError(f"expected {len(addends)} values in one dimension, but got {list(values.shape)}")
    return values + tensor(addends, dtype=values.dtype, device=values.device)


for name, kind in ("intlist", "int[]?"), ("filled_intlist", "int[2]?"), ("floatlist", "float[]?"):
    composite(f"_test_optional_{name}(Tensor values, {kind} addends) -> Tensor", face=False)(plus)


@composite(r"""_test_string_default(Tensor dummy, str a="\"'\\", str b='"\'\\') -> Tensor""", face=False)
def string_default_op(dummy, a, b):
    for text in (a, b):
        if text != "\"'\\":
            raise RuntimeError(f"expected the text \"'\\, but got {text}")
    return dummy


@composite("_test_ambiguous_defaults.a(Tensor dummy, int a=1, int b=1) -> Tensor", face=False)
def ambiguous_ints_op(dummy, a, b):
    if (a, b) != (1, 1):
        raise RuntimeError(f"expected 1 and 1, but got {a} and {b}")
    return dummy


@composite('_test_ambiguous_defaults.b(Tensor dummy, int a=2, str b="2") -> Tensor', face=False)
def ambiguous_text_op(dummy, a, b):
    if (a, b) != (2, "2"):
        raise RuntimeError(f"expected 2 and '2', but got {a} and {b!r}")
    return dummy


@kernel(
    "_foobar(Tensor self, bool arg1=True, bool arg2=True, *, bool arg3=True) -> Tensor",
    derivative={"self": no_formula("_foobar")},
    face=True,
    method=False,
)
def _foobar(self, arg1, arg2, arg3):
    """Returns a copy: a handler sees which arguments a call has left to their defaults."""
    return self.clone()


_foobar.op.forward("linear")


@composite("_test_check_tensor(Tensor self) -> Tensor", face=True, method=False)
def _test_check_tensor(self):
    """Returns a copy. RuntimeError where an element is false: under vmap, one of any example."""
    if not bool(aten._is_all_true(self)):
        raise RuntimeError("Test message for TORCH_CHECK_TENSOR_ALL")
    return self.clone()


def warned(grad: Tensor) -> Tensor:
    warnings.warn("Warn from backward", UserWarning, stacklevel=2)
    return grad.clone()


@kernel("_test_warn_in_autograd(Tensor self) -> Tensor", derivative=warned, face=False)
def warn_in_autograd_op(self):
    return self.clone()


warn_in_autograd_op.forward("linear")


def by_device(grad: Tensor) -> Tensor:
    """A formula that differs between backends."""
    return grad * 2 if grad.is_cuda else grad + 1


dispatched = kernel(
    "_test_autograd_multiple_dispatch.fullcoverage(Tensor self) -> Tensor", derivative=by_device, face=False
)(lambda self: self.clone())
dispatched.forward("linear")
nested_only = composite("_test_autograd_multiple_dispatch.ntonly(Tensor self, bool b) -> Tensor", face=False)(
    lambda self, b: self.clone()
)
_test_autograd_multiple_dispatch = public(dispatched, nested_only, method=False, doc="Returns a copy of the tensor.")

view_op = kernel(
    "_test_autograd_multiple_dispatch_view(Tensor(a) self) -> Tensor(a)",
    derivative=lambda grad, self_shape: grad.reshape(self_shape) + (1 if grad.is_cuda else 0),
    face=False,
)(lambda self: self.view(-1))
_test_autograd_multiple_dispatch_view = public(view_op, method=False, doc="Returns a view in one dimension.")
_test_autograd_multiple_dispatch_view_copy = copies(view_op)
