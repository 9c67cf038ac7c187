"""What memory without values holds while a program asks for determinism: NaN, or the largest integer, as in PyTorch.

`empty` and its kin are too short to ask each time. So kernels that do are put over theirs when a program asks for the
first time (`utils.settings`); there is no cost before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import OPERATORS, impl, key_named, place_of
from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels.settings import settings

from .from_data import new_memory

FILLING = "filling"  # the name of these kernels
MAKING = """
    empty.memory_format:CPU empty_strided:CPU empty.out:CompositeExplicitAutograd resize_:CPU
    empty_like:CompositeExplicitAutograd empty_permuted:CompositeExplicitAutograd new_empty:CompositeExplicitAutograd
    new_empty_strided:CompositeExplicitAutograd
"""


def filled(made: Tensor, begin: int = 0) -> Tensor:
    """The tensor, with all elements of its memory from `begin` on filled, where a program wants that."""
    wanted = settings()
    if wanted.deterministic > 0 and wanted.fill_uninitialized and getattr(made, "_array", None) is not None:
        element, whole = made._dtype, new_memory(made._storage, made._dtype)
        value: Any = float("nan")
        if not element.is_floating_point and not element.is_complex:
            value = True if element is dtypes.bool else int(np.iinfo(element.numpy).max)
        if begin < whole._shape[0]:
            kernels.fill(whole[begin:]._operand, value)
    return made


def put_over(name: str, key: str) -> None:
    """Has the operator's kernel fill what it makes, or adds in place."""
    op = OPERATORS[f"aten::{name}"]
    former = op.registrations[key_named(key)][-1]
    if former.name == FILLING:
        return

    def filling(op: Any, keyset: int, stack: list[Any]) -> Any:
        before = stack[0]._storage.nbytes() // stack[0]._dtype.itemsize if name == "resize_" else 0
        return filled(former.boxed(op, keyset, stack), before)

    impl(op, key, filling, convention="boxed", place=place_of(filled), name=FILLING)


def begin() -> None:
    """Has the kernels of this file answer from now on."""
    for row in MAKING.split():
        put_over(*row.split(":"))
