"""Samples of kernels/ops/complex_numbers.py, polar.py and zero_tensors.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import binary, unary

COMPLEX = (dtypes.complex64, dtypes.complex128)
EITHER = (*NUMBERS, *COMPLEX)


def pairs_of_reals(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 2))
    yield sample(make(2))
    yield sample(make(0, 2))


def as_complex(self: Any) -> Any:
    return self[..., 0] + 1j * self[..., 1]


def as_real(self: Any) -> Any:
    return np.stack([self.real, self.imag], -1)


def no_complex(make: Maker) -> Iterator[ErrorInput]:
    text = "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: Long"
    yield ErrorInput(sample(make.index(3, 2, below=3)), RuntimeError, text)
    yield ErrorInput(sample(make(3)), RuntimeError, "Tensor must have a last dimension of size 2")
    yield ErrorInput(sample(make()), RuntimeError, "Input tensor must have one or more dimensions")
    yield ErrorInput(sample(make(2, 2).t()), RuntimeError, "Tensor must have a last dimension with stride 1")
    text = "Tensor must have a stride divisible by 2 for all but last dimension"
    yield ErrorInput(sample(make(2, 3)[:, :2]), RuntimeError, text)


def no_real(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(
        sample(make(2, dtype=dtypes.float64)), RuntimeError, "view_as_real is only supported for complex tensors"
    )


def no_imag(make: Maker) -> Iterator[ErrorInput]:
    text = "imag is not implemented for tensors with non-complex dtypes."
    yield ErrorInput(sample(make(2, dtype=dtypes.float64)), RuntimeError, text)


def unlike_parts(make: Maker) -> Iterator[ErrorInput]:
    text = "Expected object of scalar type Double but got scalar type Float for second argument"
    yield ErrorInput(sample(make(2), make(2, dtype=dtypes.float32)), RuntimeError, text)
    text = "Expected both inputs to be Half, Float or Double tensors but got Long and Long"
    yield ErrorInput(sample(make.index(2, below=2), make.index(2, below=2)), RuntimeError, text)


def vectors(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(4), make(4))
    yield sample(make(0), make(0))


def unlike_vectors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(2, 2), make(2)), RuntimeError, "1D tensors expected, but got 2D and 1D tensors")


def away_from_zero(make: Maker) -> Iterator[SampleInput]:
    """Numbers where the function has a derivative."""
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape, low=1, high=4))


def zeros(make: Maker) -> Iterator[SampleInput]:
    yield SampleInput([2, 3], (), {"dtype": make.dtype})
    yield SampleInput([], (), {"dtype": make.dtype})


def angle(self: Any) -> Any:
    found = np.angle(self) if np.iscomplexobj(self) else np.where(np.isnan(self), self, np.where(self < 0, np.pi, 0.0))
    return found if found.dtype.itemsize == self.dtype.itemsize else found.astype(np.float32)


COMPLEX_NUMBERS = [
    OpInfo("_conj", unary(), np.conj, COMPLEX),
    OpInfo("_neg_view", unary(), np.negative, EITHER),
    OpInfo("conj", unary(), np.conj, EITHER),
    OpInfo("resolve_conj", unary(), lambda self: self, EITHER),
    OpInfo("resolve_neg", unary(), lambda self: self, EITHER),
    OpInfo("conj_physical", unary(), np.conj, EITHER),
    OpInfo("_conj_physical", unary(), np.conj, EITHER),
    OpInfo("view_as_real", unary(), as_real, COMPLEX, errors=no_real),
    OpInfo(
        "view_as_complex",
        pairs_of_reals,
        as_complex,
        FLOATS,
        errors=no_complex,
        skips={"layouts": "it wants the pairs to lie side by side"},
    ),
    OpInfo("real", unary(), np.real, EITHER),
    OpInfo("imag", unary(), np.imag, COMPLEX, errors=no_imag),
    OpInfo("complex", binary(), lambda real, imag: real + 1j * imag, FLOATS, errors=unlike_parts),
    OpInfo("polar", binary(), lambda abs, angle: abs * np.exp(1j * angle), FLOATS, errors=unlike_parts),
    OpInfo("angle", away_from_zero, angle, EITHER),
    OpInfo("vdot", vectors, np.vdot, EITHER, errors=unlike_vectors),
    OpInfo(
        "_efficientzerotensor",
        zeros,
        lambda self, dtype: np.zeros(self, dtype),
        EITHER,
        gradients=False,
        skips={"meta": "it has no data on any device", "subclass": "it takes no tensor"},
    ),
]
