"""glu, where one half of the input is a gate for the other."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor, wrap_dim
from redispatch.kernels import Elementwise, output_strides, sigmoid

from ..declare.declare import through
from ..declare.pointwise import COMPLEX, NOT_FLOATING
from ..declare.public import public
from ..declare.structured import Meta, Structured
from .activations import floating_only
from .geometry import sliced
from .shape import cat_op

glu_op = Structured("glu(Tensor self, int dim=-1) -> Tensor", out="out", batching="dims", refuses=NOT_FLOATING)
glu_backward_op = Structured(
    "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
    batching="dims",
    late_out="grad_input",
    refuses={COMPLEX: ""},
)


def halves(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Views of the first and the second half."""
    size = x._shape[dim]
    return sliced(x, dim, 0, size // 2, 1).of(x), sliced(x, dim, size // 2, size, 1).of(x)


@glu_op.meta
def glu_meta(self: Tensor, dim: int) -> Meta:
    if not self._shape:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    axis = wrap_dim(dim, len(self._shape))
    size = self._shape[axis]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {size}")
    floating_only("glu_cpu")(self)
    shape = (*self._shape[:axis], size // 2, *self._shape[axis + 1 :])
    return Meta(shape, self._dtype, self._device, output_strides(shape, ((shape, self._stride),)))


def gated(x, gate):
    return x * sigmoid(gate)


def gated_slope(grad, gate):
    return grad * sigmoid(gate)


def gate_slope(grad, x, gate):
    share = sigmoid(gate)
    return grad * x * share * (1 - share)


GATED = Elementwise("glu", gated, cost=8)
GATED_SLOPE = Elementwise("glu_backward", gated_slope, cost=8)
GATE_SLOPE = Elementwise("glu_gate_backward", gate_slope, cost=8)


@glu_op.body
def glu_body(out: Tensor, self: Tensor, dim: int) -> None:
    """The first half times the sigmoid of the second."""
    first, second = halves(self, wrap_dim(dim, len(self._shape)))
    GATED.run(out._operand, first._operand, second._operand)


@glu_backward_op.meta
def glu_backward_meta(grad_output: Tensor, self: Tensor, dim: int) -> Meta:
    return Meta(self._shape, self._dtype, self._device)


@glu_backward_op.body
def glu_backward_body(out: Tensor, grad_output: Tensor, self: Tensor, dim: int) -> None:
    axis = wrap_dim(dim, len(self._shape))
    (x, gate), (to_x, to_gate) = halves(self, axis), halves(out, axis)
    GATED_SLOPE.run(to_x._operand, grad_output._operand, gate._operand)
    GATE_SLOPE.run(to_gate._operand, grad_output._operand, x._operand, gate._operand)


def two_parts(x: Any, dim: int) -> tuple[Any, Any]:
    size = x.shape[dim] // 2
    return x.narrow(dim, 0, size), x.narrow(dim, size, size)


def glu_second(grad: Any, grad_output: Any, self: Any, dim: int) -> Any:
    """With s = sigmoid(gate), s' = s (1 - s): the two slopes are grad s and grad x s'."""
    (x, gate), (of_x, of_gate) = two_parts(self, dim), two_parts(grad, dim)
    share = gate.sigmoid()
    slope = share * (1 - share)
    to_x = of_gate * grad_output * slope
    to_gate = of_x * grad_output * slope + of_gate * grad_output * x * slope * (1 - 2 * share)
    return cat_op.functional([to_x, to_gate], dim)


def glu_second_of_grad(grad: Any, self: Any, dim: int) -> Any:
    (x, gate), (of_x, of_gate) = two_parts(self, dim), two_parts(grad, dim)
    share = gate.sigmoid()
    return of_x * share + of_gate * x * share * (1 - share)


glu_backward_op.derivative(grad_output=glu_second_of_grad, self=glu_second)
glu_op.derivative(self=through(glu_backward_op, "grad", "self", "dim"))
glu = public(
    glu_op, method=False, module="nn", doc="Returns the first half along `dim` times the sigmoid of the second."
)
