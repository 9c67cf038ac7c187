"""Samples of kernels/ops/view_copies.py: those of the views that they copy."""

from __future__ import annotations

from redispatch.dispatch import OPERATORS

from ..op_info import OpInfo
from .complex_numbers import COMPLEX_NUMBERS
from .copying import COPYING
from .views import VIEWS


def copy_of(info: OpInfo) -> str:
    """ "aten::slice_copy.Tensor" for slice.Tensor."""
    stem, dot, overload = info.name.partition(".")
    return f"{stem}_copy{dot}{overload}"


VIEW_COPIES = [
    info.but(copy_of(info), function=None)
    for info in (*VIEWS, *COPYING, *COMPLEX_NUMBERS)
    if info.op.schema.returns and copy_of(info) in OPERATORS and info.name != "aten::lift_fresh"
]
