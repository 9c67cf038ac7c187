"""Type promotion over operands: tensors with dimensions, tensors without and Python numbers are three ranks.

A lower rank changes the result only if it is of a higher category: `int_tensor + 1.5` is floating, while
`float_tensor + double_scalar_tensor` stays float32.
"""

from __future__ import annotations

import builtins
from typing import Any

from redispatch.dispatch import TensorBase

from . import dtypes
from .dtypes import BOOL, dtype, get_default_dtype, promote_types


def number_dtype(value: Any) -> dtype:
    """The dtype that a Python number would have as a tensor."""
    if isinstance(value, builtins.bool):
        return dtypes.bool
    if isinstance(value, builtins.int):
        return dtypes.int64
    if isinstance(value, builtins.float):
        return get_default_dtype()
    if isinstance(value, complex):
        return get_default_dtype().to_complex()
    raise TypeError(f"expected a number or a tensor, but got {type(value).__name__}")


def result_type(*operands: Any) -> dtype:
    """The dtype in which these tensors and numbers are computed. TypeError for anything else.

    Source: PyTorch's `torch.result_type`.

    >>> import redispatch as rd
    >>> rd.result_type(rd.ones(2, dtype=rd.int8), 1.5)
    torch.float32
    """
    ranks: list[dtype | None] = [None, None, None]  # with dimensions, without, numbers
    for value in operands:
        if isinstance(value, TensorBase):
            tensor: Any = value
            rank, kind = (0 if tensor._shape else 1), tensor._dtype
        else:
            rank, kind = 2, number_dtype(value)
        former = ranks[rank]
        ranks[rank] = kind if former is None else promote_types(former, kind)
    return _over(ranks[0], _over(ranks[1], ranks[2]))


def _over(high: dtype | None, low: dtype | None) -> Any:
    """`high`, unless `low` is of a higher category."""
    if high is None or low is None:
        return high or low
    if low.category <= high.category:
        return high
    if low.is_complex and high.is_floating_point:
        return high.to_complex()
    return low if high.category == BOOL or low.category > high.category else high


def can_cast(from_: dtype, to: dtype) -> builtins.bool:
    """Whether an in-place operator may store a result of one dtype in a tensor of the other: never down a category.

    >>> import redispatch as rd
    >>> rd.can_cast(rd.float64, rd.int32)
    False
    """
    return from_.category <= to.category
