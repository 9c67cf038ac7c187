"""Tensors that have nothing but bits are moved as whole numbers of the same size: `cat` of bits8 is `cat` of bytes.

No loop is compiled for int4 or bits16, and these operators need none: they read no number. Their kernels stand at the
key RareDtype, which such tensors bring (dispatch/layers/rare_dtypes.py).
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, impl, keyset, operator_named, run
from redispatch.dispatch.layers.ad_inplace_or_view import tensors_in
from redispatch.dispatch.tensor import Tensor, dtype, dtypes, view_over

from .rare_dtypes import check_dtypes, class_of

ON_CPU = keyset("CPU")
WHOLE = {1: dtypes.uint8, 2: dtypes.int16, 4: dtypes.int32}


def moving_bits(op: OpOverload) -> Any:
    """The kernel of an operator that only moves elements, on what lies in memory."""
    in_place = op.name().endswith("_")

    def moved(*args: Any) -> Any:
        kinds = {one._dtype for value in args for one in tensors_in(value)} - {dtypes.bool}
        element = next(iter(kinds))
        if class_of(element) != "b" or len(kinds) > 1:
            check_dtypes(op, list(args))
            return run(op, ON_CPU, list(args))
        result = run(op, ON_CPU, [as_whole(value, element) for value in args])
        return args[0] if in_place else view_over(result, result._shape, result._stride, result._offset, element)

    return moved


def as_whole(value: Any, element: dtype) -> Any:
    if isinstance(value, list | tuple):
        return [as_whole(one, element) for one in value]
    if not isinstance(value, Tensor) or value._dtype is not element:
        return value
    return view_over(value, value._shape, value._stride, value._offset, WHOLE[element.itemsize])


for _name in ("zero_", "cat", "stack", "where.self"):
    _op = operator_named(f"aten::{_name}")
    impl(_op, "RareDtype", moving_bits(_op), convention="positional", place=__file__, name=f"bits {_name}")
