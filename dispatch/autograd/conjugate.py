"""Gradients of complex numbers: what follows from a formula that was written for real ones.

The gradient of a real loss L by a complex z = x + iy is dL/dx + i dL/dy: the direction of steepest ascent, and what an
optimizer steps against. Let w = f(z) with f holomorphic, and f'(z) = a + ib. A step dz moves w by f'(z) dz, which are
the real equations

    du = a dx - b dy        dL/dx =  a dL/du + b dL/dv
    dv = b dx + a dy        dL/dy = -b dL/du + a dL/dv

or, in complex numbers again, grad_z = conj(f'(z)) grad_w = conj(f'(z) conj(grad_w)). So a formula for reals, here
`grad * f'(z)`, serves complex numbers, too, if it is given the conjugate of the gradient and what it yields is
conjugated. It may have any form that is linear in `grad`: a product of matrices, a sum over an index, a view.
Conjugates are lazy views (kernels/ops/complex_numbers.py), and two of them cancel: along a chain of such functions
nothing is conjugated but at its two ends.

For functions that are not holomorphic (conj, the parts of a number, its angle) there is nothing to follow from: their
formulas are written for complex numbers (`for_complex`), and so are those of linear algebra, as its books have them.
They get the gradient as it is. A real input of a complex function takes the real part of its gradient: `fit` in node.py
sees to that for all nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch.specialiser.annotations import inline


@inline
def any_complex(gradients: Sequence[Any]) -> bool:
    """Whether some gradient is complex. A node with one output, as most have, has but one to look at."""
    first = gradients[0]
    return first._dtype.is_complex if first is not None and len(gradients) == 1 else one_complex(gradients)


def one_complex(gradients: Sequence[Any]) -> bool:
    return any(gradient is not None and gradient._dtype.is_complex for gradient in gradients)


def conjugates(gradients: Sequence[Any]) -> list[Any]:
    """The conjugates of gradients, as views; None stays None."""
    return [gradient if gradient is None else gradient.conj() for gradient in gradients]


def resolved(gradient: Any) -> Any:
    """A gradient with its conjugates worked out: what a user gets to see."""
    return gradient.resolve_conj() if gradient is not None and gradient._dtype.is_complex else gradient
