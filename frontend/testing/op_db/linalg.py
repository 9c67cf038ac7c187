"""Samples of kernels/ops/linalg.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample


def shapes(*cases: Any, **kwargs: Any) -> Any:
    """Tensors of the shapes of each case."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for case in cases:
            yield sample(*(make(*shape) for shape in case), **kwargs)

    return samples


def scaled(*cases: Any) -> Any:
    """The same, once more with beta and alpha, and once with a beta of zero, which forgets the first tensor."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        yield from shapes(*cases)(make)
        yield from shapes(cases[0], beta=2, alpha=3)(make)
        yield from shapes(cases[0], beta=0)(make)

    return samples


def wrong(text: str, *case: Any, error: type[Exception] = RuntimeError) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        yield ErrorInput(sample(*(make(*shape) for shape in case)), error, text)

    return errors


def plus(self: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    return beta * self + alpha * (a @ b)


def linears(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make(4, 3), make(4))
    yield sample(make(2, 3), make(4, 3))
    yield sample(make(3), make(4, 3), make(4))
    yield sample(make(2, 2, 3), make(4, 3), make(4))
    yield sample(make(0, 3), make(4, 3), make(4))


def linear(input: Any, weight: Any, bias: Any = 0) -> Any:
    return input @ weight.T + bias


MATRICES = "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"

LINALG = [
    OpInfo(
        "mm",
        shapes([(2, 3), (3, 4)], [(0, 3), (3, 2)], [(2, 0), (0, 3)]),
        np.matmul,
        NUMBERS,
        errors=wrong(MATRICES, (2, 3), (2, 3)),
    ),
    OpInfo(
        "bmm",
        shapes([(2, 2, 3), (2, 3, 2)], [(0, 2, 3), (0, 3, 2)]),
        np.matmul,
        NUMBERS,
        errors=wrong("batch1 must be a 3D tensor", (2, 3), (2, 3, 2)),
    ),
    OpInfo(
        "addmm",
        scaled([(2, 4), (2, 3), (3, 4)], [(4,), (2, 3), (3, 4)], [(), (2, 0), (0, 2)]),
        plus,
        NUMBERS,
        errors=wrong(MATRICES, (2, 3), (2, 3), (2, 3)),
    ),
    OpInfo("baddbmm", scaled([(2, 2, 2), (2, 2, 3), (2, 3, 2)], [(2,), (2, 2, 3), (2, 3, 2)]), plus, NUMBERS),
    OpInfo(
        "mv",
        shapes([(2, 3), (3,)], [(2, 0), (0,)]),
        np.matmul,
        NUMBERS,
        errors=wrong("size mismatch, got input (2), mat (2x3), vec (2)", (2, 3), (2,)),
    ),
    OpInfo("addmv", scaled([(2,), (2, 3), (3,)], [(1,), (2, 3), (3,)]), plus, NUMBERS),
    OpInfo(
        "dot",
        shapes([(3,), (3,)], [(0,), (0,)]),
        np.dot,
        NUMBERS,
        errors=wrong(
            "inconsistent tensor size, expected tensor [3] and src [2] to have the same number of elements,"
            " but got 3 and 2 elements respectively",
            (3,),
            (2,),
        ),
    ),
    OpInfo(
        "outer",
        shapes([(2,), (3,)], [(0,), (3,)]),
        np.outer,
        NUMBERS,
        errors=wrong("outer: Expected 1-D argument self, but got 2-D", (2, 3), (2,)),
    ),
    OpInfo(
        "matmul",
        shapes(
            [(3,), (3,)],
            [(2, 3), (3,)],
            [(3,), (3, 2)],
            [(2, 3), (3, 2)],
            [(2, 2, 3), (3, 2)],
            [(2, 1, 2, 3), (2, 3, 2)],
            [(3,), (2, 3, 2)],
            [(0, 3), (3, 2)],
        ),
        np.matmul,
        NUMBERS,
        errors=wrong("both arguments to matmul need to be at least 1D, but they are 0D and 1D", (), (3,)),
    ),
    OpInfo(
        "linear",
        linears,
        linear,
        FLOATS,
        function="nn.functional.linear",
        errors=wrong("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)", (2, 3), (4, 2)),
    ),
]
