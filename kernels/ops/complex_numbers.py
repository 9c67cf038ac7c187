"""Complex tensors: conjugates, negatives and parts, all of them views; and what works a lazy view out.

`x.conj()` computes nothing: it is x with a bit that says "conjugated" (dispatch/layers/lazy_bit.py). A complex number
is two reals in memory, so its parts are views, too; the imaginary part of a conjugate view is one that says "negated".

    conj, _neg_view                 turn a bit over
    resolve_conj, resolve_neg       the tensor itself, or, where it has the bit, a copy without it
    conj_physical                   the conjugates in memory
    view_as_real, view_as_complex   complex numbers as pairs of reals, and back
    real, imag                      one of each pair
    complex, polar, angle           complex numbers from their parts, and by direction and distance

None of the last is holomorphic. The gradient of a complex number is dL/dx + i dL/dy (dispatch/autograd/formulas.py),
so a step dz changes the loss by the real part of conj(grad) dz, and each formula is what stands beside dz, dr, ...
"""

from __future__ import annotations

import math
from typing import Any

from redispatch import kernels
from redispatch.dispatch import call, shared
from redispatch.dispatch.layers.lazy_bit import CLONE, CONJUGATE, NEGATIVE, STORE
from redispatch.dispatch.specialiser.annotations import leaf
from redispatch.dispatch.tensor import Tensor, dtypes, metadata_of, overridable_property, view_over

from ..declare.operator import CPU_FP32, composite, kernel, leaf_kernel, pointwise
from ..declare.public import public
from ..declare.structured import Meta, not_implemented, resize_out
from .copying import (
    clone_kernel,
    clone_op,
    copy_inplace_kernel,
    copy_inplace_op,
    resize_inplace_op,
)
from .creation import ones_like_op
from .elementary import neg
from .functionalization import dense, inverse, through
from .views import select_op

# --- what the layers ask for ------------------------------------------------------------------------------------------


def cloned(tensor: Tensor) -> Tensor:
    return call(clone_op.functional, [tensor, None])


def store(target: Tensor, source: Tensor) -> None:
    """Writes through a lazy bit; an `out=` tensor takes the shape first that its copy was given."""
    if target._shape != source._shape:
        call(resize_inplace_op.functional, [target, list(source._shape), None])
    call(copy_inplace_op.functional, [target, source, False])


CLONE.fill(cloned)
STORE.fill(store)

# --- conjugates and negatives as views --------------------------------------------------------------------------------


def turned_over(base: Tensor, bit: int) -> Tensor:
    """A view of all of `base` which has the bit if that has it not, and has it not if that has it."""
    view = view_over(base, base._shape, base._stride, base._offset)
    view._keyset = shared(view._keyset ^ bit)
    return view


@kernel(
    "_conj(Tensor(a) self) -> Tensor(a)",
    derivative=lambda grad: grad.conj(),
    for_complex=True,
    batching="pointwise",
    refuses="whole floating",
)
@leaf
def conj_view_op(self):
    if not self._dtype.is_complex:
        raise RuntimeError(f"_conj: expected a complex tensor, but got {self._dtype.tensor_name}; conj() takes any")
    return turned_over(self, CONJUGATE)


@kernel("_neg_view(Tensor(a) self) -> Tensor(a)", derivative=lambda grad: grad.neg(), batching="pointwise")
@leaf
def neg_view_op(self):
    return turned_over(self, NEGATIVE)


@composite("conj(Tensor(a) self) -> Tensor(a)")
def conj(self):
    """Returns a view of the conjugates; a real tensor itself."""
    return conj_view_op.functional(self) if self._dtype.is_complex else self


@composite("resolve_conj(Tensor(a) self) -> Tensor(a)")
def resolve_conj(self):
    """Returns the tensor itself, or a copy with the conjugates in memory where it is a conjugate view."""
    return clone_op.functional(self) if self.is_conj() else self


@composite("resolve_neg(Tensor(a) self) -> Tensor(a)")
def resolve_neg(self):
    """Returns the tensor itself, or a copy with the negatives in memory where it is a negative view."""
    return clone_op.functional(self) if self.is_neg() else self


_conj = public(conj_view_op, doc="Returns a view of the conjugates.")
_neg_view = public(neg_view_op, doc="Returns a view of the negatives.")


# --- conjugates in memory ---------------------------------------------------------------------------------------------


@composite("conj_physical(Tensor self) -> Tensor", out="out", out_by=None, face=False)
def conj_physical_op(self):
    """Returns the conjugates, in memory of their own."""
    return conj_physical_copy_op.functional(self) if self._dtype.is_complex else self


@conj_physical_op.kernel_out("CPU", "Meta")
def conj_physical_out(self, out):
    if out._dtype is not self._dtype:
        raise RuntimeError(f"Found dtype {out._dtype.tensor_name} but expected {self._dtype.tensor_name}")
    resize_out(out, Meta(self._shape, self._dtype, self._device, self._stride))
    return copy_inplace_kernel(out, turned_over(self, CONJUGATE), False)


@kernel(
    "_conj_physical(Tensor self) -> Tensor",
    understands=("Conjugate",),
    derivative=lambda grad: grad.conj_physical(),
    for_complex=True,
    forward="linear",
    batching="pointwise",
)
def conj_physical_copy_op(self):
    """Returns a copy of the conjugate view."""
    return clone_kernel(turned_over(self, CONJUGATE), None)


@leaf_kernel(
    "conj_physical_(Tensor(a!) self) -> Tensor(a!)",
    tags=("inplace", "pointwise"),
    understands=("Conjugate",),
    derivative=lambda grad: grad.conj_physical(),
    node="ConjPhysicalBackward1",
    for_complex=True,
    forward="linear",
)
def conj_physical_(self):
    """Conjugates the elements, in place."""
    if self._dtype.is_complex and self._device.type == "cpu":
        kernels.copy(self._operand, self._operand, conj=True)
    return self


conj_physical, _conj_physical = public(conj_physical_op), public(conj_physical_copy_op)

# --- complex numbers as pairs of reals --------------------------------------------------------------------------------


@kernel(
    "view_as_real(Tensor(a) self) -> Tensor(a)",
    derivative=lambda grad: view_as_complex_op.functional(grad.contiguous()),
    for_complex=True,
    face=False,
    batching="pointwise",
    refuses="whole floating",
)
@leaf
def view_as_real_op(self):
    """Returns a view of complex numbers with one more dimension, of size 2: real and imaginary part."""
    if not self._dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if metadata_of(self).bits & CONJUGATE:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can "
            "view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the "
            "original."
        )
    steps = (*(2 * step for step in self._stride), 1)
    return view_over(self, (*self._shape, 2), steps, 2 * self._offset, self._dtype.to_real())


@kernel(
    "view_as_complex(Tensor(a) self) -> Tensor(a)",
    derivative=lambda grad: view_as_real_op.functional(grad.contiguous().resolve_conj()),
    for_complex=True,
    autocast=CPU_FP32,
    face=False,
    batching="leading",
    refuses="whole halves complex",
)
@leaf
def view_as_complex_op(self):
    """Returns a view of the last dimension, of size 2, as one complex number."""
    if self._dtype.name not in ("float16", "float32", "float64"):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{self._dtype.tensor_name}"
        )
    if not self._shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if self._shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    *steps, last = self._stride
    if last != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(step % 2 for step in steps):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if self._offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    halved = tuple(step // 2 for step in steps)
    return view_over(self, self._shape[:-1], halved, self._offset // 2, self._dtype.to_complex())


view_as_real, view_as_complex = public(view_as_real_op, method=False), public(view_as_complex_op, method=False)


def part(self: Tensor, index: int) -> Tensor:
    """The real parts (0) or the imaginary ones (1). Those of a conjugate view are of what it is the conjugate of."""
    is_conjugate = metadata_of(self).bits & CONJUGATE
    parts = view_as_real_op.functional(conj_view_op.functional(self) if is_conjugate else self)
    if is_conjugate and index == 1:
        parts = neg_view_op.functional(parts)
    return select_op.functional(parts, len(self._shape), index)


@composite("real(Tensor(a) self) -> Tensor(a)", method=False)
def real(self):
    """Returns a view of the real parts; a real tensor itself."""
    return part(self, 0) if self._dtype.is_complex else self


@composite("imag(Tensor(a) self) -> Tensor(a)", method=False, refuses="whole floating")
def imag(self):
    """Returns a view of the imaginary parts."""
    if not self._dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return part(self, 1)


real_op, imag_op = real.op, imag.op


def _set_real(self: Tensor, value: Any) -> None:
    set_part(real_op.functional(self), value)


def _set_imag(self: Tensor, value: Any) -> None:
    set_part(imag_op.functional(self), value)


def set_part(target: Any, value: Any) -> None:
    target.copy_(value) if isinstance(value, Tensor) else target.fill_(value)


Tensor.real = overridable_property(lambda self: real_op.functional(self), _set_real)  # type: ignore[attr-defined]  # attached here
Tensor.imag = overridable_property(lambda self: imag_op.functional(self), _set_imag)  # type: ignore[attr-defined]  # attached here

# --- complex numbers from their parts, and by direction and distance: complex, polar, angle ---------------------------

# --- from two reals ---------------------------------------------------------------------------------------------------

OF_ANOTHER_DTYPE = "Expected object of scalar type {1} but got scalar type {0} for argument 'out'"

complex_op = pointwise(
    "complex(Tensor real, Tensor imag) -> Tensor",
    out="out",
    promotion="complex",
    exact_out=OF_ANOTHER_DTYPE,
    refuses={"whole halves complex": ""},
)
polar_op = pointwise(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    out="out",
    promotion="complex",
    exact_out=OF_ANOTHER_DTYPE,
    cost=8,
    refuses={"whole halves complex": ""},
)


@complex_op.check
def check_parts(real, imag):
    check_alike(real, imag)


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


# --- The inverses of these views, for Functionalize -------------------------------------------------------------------


@inverse(view_as_real_op)
def view_as_real_inverse(base: Any, value: Any) -> Any:
    return through(view_as_complex_op, dense(value))


@inverse(view_as_complex_op)
def view_as_complex_inverse(base: Any, value: Any) -> Any:
    return through(view_as_real_op, value)


@inverse(conj_view_op)
def conj_inverse(base: Any, value: Any) -> Any:
    return conj_physical_op.functional(value)


@inverse(neg_view_op)
def neg_inverse(base: Any, value: Any) -> Any:
    return neg.op.functional(value)
