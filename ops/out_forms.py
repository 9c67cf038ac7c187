"""out= forms of operators that compute their result in memory of its own: it is computed, and copied into `out`.

PyTorch generates such forms for operators whose kernel has no better way. `out` must have the result's dtype, and is
given its shape.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import call, impl, place_of
from redispatch.tensor import Tensor

from .copying import copy_inplace_op
from .declare import Operator
from .extremes import check_out_dtype
from .structured import Meta, check_can_cast, resize_out


def copy_into_out(op: Operator) -> None:
    """Gives `op`, which is declared with an out= form, the kernel of that form."""
    assert op.out is not None, f"{op.schema} is declared without an out= form"

    def into_out(*args: Any) -> Tensor:
        *inputs, out = args
        return filled(out, call(op.functional, inputs))

    impl(op.out, "CompositeExplicitAutograd", into_out, convention="positional", place=place_of(copy_into_out))


def filled(out: Tensor, result: Tensor) -> Tensor:
    """`out` with the shape and the values of a result."""
    check_out_dtype(out, result._dtype)
    resize_out(out, Meta(result._shape, result._dtype, result._device, result._stride))
    return copy_inplace_op.functional(out, result)


def resize_and_copy_into_out(op: Operator) -> None:
    """The same for an operator that is written in others, as its out= form is then: by `resize_` and `copy_`."""
    assert op.out is not None, f"{op.schema} is declared without an out= form"

    def into_out(*args: Any) -> Tensor:
        *inputs, out = args
        result = call(op.functional, inputs)
        check_can_cast(result._dtype, out._dtype)
        return out.resize_(result._shape).copy_(result)

    impl(op.out, "CompositeImplicitAutograd", into_out, convention="positional", place=place_of(copy_into_out))
