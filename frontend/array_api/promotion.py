"""The standard's type promotion: by dtypes alone. PyTorch's looks at dimensions, too, and gives those without less say.

`together(x1, x2)` has both operands in their common dtype before a function of the library sees them. Each function of
the namespace starts here, and its signature is the standard's: operands by position, what modifies them by keyword.

Read next: elementwise.py.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import redispatch as rd
from redispatch import Tensor, dtype

Axes = int | tuple[int, ...] | None


def result_type(*arrays_and_dtypes: Any) -> dtype:
    """The dtype that these are computed in. Numbers of Python follow the arrays, as far as their kind allows.

    Errors: ValueError where there is neither an array nor a dtype.
    """
    kinds = [x if isinstance(x, dtype) else x.dtype for x in arrays_and_dtypes if isinstance(x, Tensor | dtype)]
    if not kinds:
        raise ValueError("result_type() needs at least one array or dtype")
    numbers = [x for x in arrays_and_dtypes if not isinstance(x, Tensor | dtype)]
    return reduce(with_number, numbers, reduce(rd.promote_types, kinds))


def with_number(kind: dtype, number: complex) -> dtype:
    return rd.result_type(rd.empty(1, dtype=kind, device="meta"), number)


def together(*operands: Any) -> list[Tensor]:
    """The operands as arrays of one dtype; numbers of Python become arrays, on the device of the others.

    Errors: TypeError where none of them is an array.
    """
    arrays = [x for x in operands if isinstance(x, Tensor)]
    if not arrays:
        raise TypeError(f"one operand must be an array, got {', '.join(type(x).__name__ for x in operands)}")
    kind = result_type(*operands)
    return [
        x.to(kind) if isinstance(x, Tensor) else rd.full((), x, dtype=kind, device=arrays[0].device) for x in operands
    ]


def axes_of(x: Tensor, axis: Axes) -> list[int]:
    """The axes that `axis` means: all for None. Errors: IndexError out of range, ValueError for one named twice."""
    given = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    for one in given:
        if not -x.ndim <= one < x.ndim:
            raise IndexError(f"axis {one} is out of range for an array of {x.ndim} dimensions")
    found = [one % x.ndim for one in given]
    if len(set(found)) < len(found):
        raise ValueError(f"an axis is named twice in {axis}")
    return found


def one_axis(x: Tensor, axis: int | None, function: str) -> int:
    """`axis`, which may be left out where there is only one. Errors: ValueError where there are several."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"{function}() needs an axis for an array of {x.ndim} dimensions")
    return 0 if axis is None else axis
