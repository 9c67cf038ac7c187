"""Samples of kernels/ops/contractions.py and diagonals.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample

# --- contractions -----------------------------------------------------------------------------------------------------


def matrices(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (3, 3), (0, 3)):
        yield sample(make(*shape))


def sums_of_products(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make(3, 2), [1], [0])
    yield sample(make(2, 3, 2), make(3, 2, 2), [1, -1], [0, 1])
    yield sample(make(2), make(3), [], [])


def inners(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make(4, 3))
    yield sample(make(3), make(3))
    yield sample(make(2, 3), make())


def krons(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make(2, 2))
    yield sample(make(2), make(2, 2))


def equations(make: Maker) -> Iterator[SampleInput]:
    yield sample("ij,jk->ik", [make(2, 3), make(3, 2)])
    yield sample("ii->i", [make(3, 3)])
    yield sample("bij,bjk->kb", [make(2, 2, 3), make(2, 3, 2)])
    yield sample("...i,...i", [make(2, 3), make(3)])
    yield sample("i,ij,j->", [make(2), make(2, 3), make(3)])


def equation_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "einsum(): output subscript k does not appear in the equation for any input operand"
    yield ErrorInput(sample("ij->ik", [make(2, 3)]), RuntimeError, text)


def trace_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(2)), RuntimeError, "trace: expected a matrix, but got tensor with dim 1")


# --- diagonals --------------------------------------------------------------------------------------------------------


def lines(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3))
    yield sample(make(2, 3), 1)
    yield sample(make(2, 3), -1, 0, 2)


def embedded(self: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    rows = np.array([np.diag(row, offset) for row in self.reshape(-1, self.shape[-1])])
    square = rows.reshape(*self.shape[:-1], *rows.shape[1:])
    return np.moveaxis(square, (-2, -1), (dim1, dim2))


def with_offsets(*shapes: tuple[int, ...]) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in shapes:
            for offset in (0, 1, -1):
                yield sample(make(*shape), offset)

    return samples


def differences(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 4))
    yield sample(make(4, 2), 2, 0)
    yield sample(make(3), 1, -1, make(1), make(2))


def diff(self: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    more = {name: x for name, x in (("prepend", prepend), ("append", append)) if x is not None}
    return np.diff(self, n, dim, **more)


def diag_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(2, 2, 2)), RuntimeError, "diag(): Supports 1D or 2D tensors. Got 3D")


CONTRACTIONS = [
    OpInfo("trace", matrices, np.trace, NUMBERS, errors=trace_errors),
    OpInfo("tensordot", sums_of_products, lambda a, b, x, y: np.tensordot(a, b, (x, y)), FLOATS),
    OpInfo("inner", inners, np.inner, FLOATS),
    OpInfo("kron", krons, np.kron, NUMBERS),
    OpInfo(
        "einsum", equations, lambda equation, tensors: np.einsum(equation, *tensors), FLOATS, errors=equation_errors
    ),
]
DIAGONALS = [
    OpInfo("diag_embed", lines, embedded, NUMBERS),
    OpInfo("diag", with_offsets((3,), (2, 3)), np.diag, NUMBERS, errors=diag_errors),
    OpInfo("diagflat", with_offsets((2, 2), ()), np.diagflat, NUMBERS),
    OpInfo("diff", differences, diff, NUMBERS),
]
