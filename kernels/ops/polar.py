"""Complex numbers from their parts, and by direction and distance: complex, polar, angle.

None of these functions is holomorphic. The gradient of a complex number is dL/dx + i dL/dy
(dispatch/autograd/conjugate.py), so a step dz changes the loss by the real part of conj(grad) dz, and each formula is
what stands beside dz, dr, ... there.
"""

from __future__ import annotations

import math
from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes

from ..declare.operator import pointwise
from ..declare.public import public
from ..declare.structured import not_implemented
from .creation import ones_like_op

# --- from two reals ---------------------------------------------------------------------------------------------------

complex_op = pointwise(
    "complex(Tensor real, Tensor imag) -> Tensor",
    out="out",
    promotion="complex",
    exact_out=True,
    refuses={"whole halves complex": ""},
)
polar_op = pointwise(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    out="out",
    promotion="complex",
    exact_out=True,
    cost=8,
    refuses={"whole halves complex": ""},
)


@complex_op.check
def check_parts(real, imag):
    check_alike(real, imag)
    if real._dtype is dtypes.float16:
        raise NotImplementedError("there are no complex numbers of 16-bit floats here: convert the parts to float32")


@polar_op.check
def check_polar(abs, angle):
    check_alike(abs, angle)
    if abs._dtype is dtypes.float16:
        raise not_implemented("polar_cpu", abs._dtype)


def check_alike(first: Tensor, second: Tensor) -> None:
    names = first._dtype.tensor_name, second._dtype.tensor_name
    if not {"Float", "Double", "Half"}.issuperset(names):
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and {names[1]}"
        )
    if names[0] != names[1]:
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second argument"
        )


@complex_op.scalar
def complex_element(real, imag):
    return complex(real, imag)


@polar_op.scalar
def polar_element(abs, angle):
    return complex(abs * math.cos(angle), abs * math.sin(angle))


def polar_gradients(grad: Any, abs: Any, angle: Any) -> tuple[Any, Any]:
    """With w = r exp(i a): dw = exp(i a) dr + i w da."""
    along = grad.conj() * polar_op.functional(ones_like_op.functional(angle), angle)
    return along.real, -(along * abs).imag


complex_op.derivative(real=lambda grad: grad.real, imag=lambda grad: grad.imag, for_complex=True)
polar_op.derivative((("abs", "angle"), polar_gradients), for_complex=True)
polar_op.autocast(cpu="fp32")
complex_ = public(
    complex_op, method=False, doc="Returns complex numbers of their real and imaginary parts."
)  # the scalar functions here need Python's `complex`
polar = public(polar_op, method=False, doc="Returns complex numbers of their magnitudes and angles.")

# --- direction --------------------------------------------------------------------------------------------------------

angle_op = pointwise(
    "angle(Tensor self) -> Tensor",
    out="out",
    promotion=lambda self: "real" if self._dtype.is_complex else "float",
    cost=8,
)


def angle_real(self):
    return self if self != self else math.pi if self < 0 else 0.0


def angle_complex(self):
    return math.atan2(self.imag, self.real)


def angle_gradient(grad: Any, self: Any) -> Any:
    """The angle grows by the part of dz / z that turns: grad * i z / |z|²; a real number only jumps from 0 to pi."""
    if not self.is_complex():
        return grad * 0
    squared = (self * self.conj()).real
    return (self * 1j / squared * grad).masked_fill(squared == 0, 0)


angle_op.scalar(int=angle_real, float=angle_real, complex=angle_complex)
angle_op.derivative(self=angle_gradient, for_complex=True)
angle = public(angle_op, doc="Returns the angle of each complex number; of a real one 0 or π.")
