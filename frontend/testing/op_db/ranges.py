"""Samples of kernels/ops/ranges.py and windows.py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .creation import FRESH, UNKNOWN


def lengths(*given: Any) -> Any:
    """Windows of several lengths, whole and empty, with these arguments behind the length."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for length in (5, 4, 1, 0):
            yield sample(length, *given, dtype=make.dtype)

    return samples


def no_length(name: str) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        text = f"{name} requires non-negative window_length, got window_length=-1"
        yield ErrorInput(sample(-1), RuntimeError, text)
        yield ErrorInput(sample(3, dtype=dtypes.int32), RuntimeError, f"{name} expects floating point dtypes, got: ")

    return errors


def hamming(length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46) -> Any:
    turn = 2 * math.pi * np.arange(length) / (length if periodic else length - 1)
    return np.ones(1) if length == 1 else alpha - beta * np.cos(turn)


def by_numpy(window: Any, *more: float) -> Any:
    """numpy's windows are those that are not periodic."""

    def reference(length: int, periodic: bool = True, *shape: float, dtype: Any = None) -> Any:
        if length < 2:
            return np.ones(length)
        return window(length + periodic, *(shape or more))[:length]

    return reference


def window(name: str, reference: Any, *overloads: tuple[str, tuple[Any, ...]]) -> list[OpInfo]:
    """A window's overloads. The first bits of a 0 that is not one are nobody's to predict: atol."""
    tolerance = {"float32": (1e-5, 1e-6), "float64": (1e-12, 1e-15)}
    shared: dict[str, Any] = {"gradients": False, "skips": FRESH, "tolerance": tolerance}
    return [
        OpInfo(name, lengths(), reference, FLOATS, errors=no_length(name), **shared),
        OpInfo(f"{name}.periodic", lengths(False), reference, FLOATS, **shared),
        *(OpInfo(f"{name}.{overload}", lengths(*given), reference, FLOATS, **shared) for overload, given in overloads),
    ]


def hamming_reference(*args: Any, dtype: Any = None) -> Any:
    return hamming(*args)


WINDOWS = [
    *window("hann_window", by_numpy(np.hanning)),
    *window(
        "hamming_window",
        hamming_reference,
        ("periodic_alpha", (True, 0.6)),
        ("periodic_alpha_beta", (False, 0.6, 0.3)),
    ),
    *window("blackman_window", by_numpy(np.blackman)),
    *window("bartlett_window", by_numpy(np.bartlett)),
    *window("kaiser_window", by_numpy(np.kaiser, 12.0), ("beta", (True, 5.0))),
]

# --- ranges -----------------------------------------------------------------------------------------------------------


def spaces(*more: Any) -> Any:
    """Both ends as numbers."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for steps in (4, 3, 1, 0):
            yield sample(0, 3, steps, *more, dtype=make.dtype)

    return samples


def between(start: bool, end: bool, *more: Any) -> Any:
    """One end or both as tensors."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for steps in (4, 1, 0):
            ends = [make.values(n).detach() if of_tensor else n for n, of_tensor in ((0, start), (3, end))]
            yield sample(*ends, steps, *more, dtype=make.dtype)

    return samples


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, dtype: Any = None) -> Any:
    return np.logspace(start, end, steps, base=base)


def linspace(start: Any, end: Any, steps: int, dtype: Any = None) -> Any:
    return np.linspace(start, end, steps)


def no_steps(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(0, 1, -1), RuntimeError, "number of steps must be non-negative")


def ends_with_dimensions(name: str) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        text = f"{name} only supports 0-dimensional start and end tensors, but got start with 1 dimension(s)."
        yield ErrorInput(sample(make(1), 2, 3), RuntimeError, text)

    return errors


def ranges(make: Maker) -> Iterator[SampleInput]:
    yield sample(0, 4, dtype=make.dtype)
    yield sample(-1.5, 2, dtype=make.dtype)


def stepped_ranges(make: Maker) -> Iterator[SampleInput]:
    yield sample(0, 4, 2, dtype=make.dtype)
    yield sample(3, -3, -3, dtype=make.dtype)


def ranged(start: Any, end: Any, step: Any = 1, dtype: Any = None) -> Any:
    if dtype is not None and np.issubdtype(dtype, np.integer):
        start, end, step = int(start), int(end), int(step)
    return start + step * np.arange(math.floor((end - start) / step) + 1)


def range_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(0, 3, 0), RuntimeError, "step must be nonzero")
    yield ErrorInput(sample(0, 3, -1), RuntimeError, "upper bound and lower bound inconsistent with step sign")


def triangles(make: Maker) -> Iterator[SampleInput]:
    for args in ((3, 3), (2, 3, 1), (3, 2, -1), (0, 3), (2, 2, 5)):
        yield sample(*args)


def negative_triangle(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(-1, 3), RuntimeError, "row must be non-negative, got-1")
    text = "not implemented for 'Float'"
    yield ErrorInput(sample(3, 3, dtype=dtypes.float32), NotImplementedError, text)


def permuted(make: Maker) -> Iterator[SampleInput]:
    yield sample([2, 3, 4], [0, 2, 1], dtype=make.dtype)
    yield sample([], [], dtype=make.dtype)
    yield sample([0, 3], [1, 0], dtype=make.dtype)


def bad_permutations(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample([2, 3], [0, 0]), RuntimeError, "Duplicate dim not allowed")
    text = "Number of dimensions in size does not match the length of the physical_layout"
    yield ErrorInput(sample([2, 3], [0]), RuntimeError, text)
    text = "Dimension out of range (expected to be between 0 and 1, but got 2 at index 1)."
    yield ErrorInput(sample([2, 3], [0, 2]), RuntimeError, text)


FLAT: Any = {"gradients": False}
READ: Any = {"gradients": False, "skips": {"meta": "the ends are read from their tensors"}}
BAD_LOGSPACE, BAD_LINSPACE = ({**READ, "errors": ends_with_dimensions(name)} for name in ("logspace", "linspace"))
RANGES = [
    OpInfo("logspace", spaces(), logspace, NUMBERS, skips=FRESH, errors=no_steps, **FLAT),
    OpInfo("logspace.Tensor_Tensor", between(True, True, 2.0), logspace, NUMBERS, **READ),
    OpInfo(
        "logspace.Tensor_Scalar",
        between(True, False),
        logspace,
        NUMBERS,
        errors=ends_with_dimensions("logspace"),
        **READ,
    ),
    OpInfo("logspace.Scalar_Tensor", between(False, True), logspace, NUMBERS, **READ),
    OpInfo("linspace.Tensor_Tensor", between(True, True), linspace, NUMBERS, **READ),
    OpInfo(
        "linspace.Tensor_Scalar",
        between(True, False),
        linspace,
        NUMBERS,
        errors=ends_with_dimensions("linspace"),
        **READ,
    ),
    OpInfo("linspace.Scalar_Tensor", between(False, True), linspace, NUMBERS, **READ),
    OpInfo("range", ranges, ranged, NUMBERS, skips=FRESH, **FLAT),
    OpInfo("range.step", stepped_ranges, ranged, NUMBERS, skips=FRESH, errors=range_errors, **FLAT),
    OpInfo(
        "tril_indices",
        triangles,
        lambda row, col, offset=0: np.stack(np.tril_indices(row, offset, col)),
        (dtypes.int64,),
        skips=FRESH,
        errors=negative_triangle,
        **FLAT,
    ),
    OpInfo(
        "triu_indices",
        triangles,
        lambda row, col, offset=0: np.stack(np.triu_indices(row, offset, col)),
        (dtypes.int64,),
        skips=FRESH,
        **FLAT,
    ),
    OpInfo("empty_permuted", permuted, None, skips=UNKNOWN, errors=bad_permutations, **FLAT),
]
