"""Samples of kernels/ops/fourier.py and embedding_bag.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample

# --- transforms -------------------------------------------------------------------------------------------------------

COMPLEX = (dtypes.complex64, dtypes.complex128)
NORMS: Any = ("backward", "ortho", "forward")
BACK: Any = ("forward", "ortho", "backward")  # of an inverse


def of_reals(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), [1], 0, True)
    yield sample(make(2, 4), [0, 1], 1, True)
    yield sample(make(5), [0], 2, False)
    yield sample(make(4, 3), [1, 0], 0, True)


def to_reals(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), [1], 2, 4)
    yield sample(make(3, 2), [0, 1], 1, 3)


def both_ways(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), [1], 0, True)
    yield sample(make(3, 2), [0, 1], 2, False)


def from_reals(self: Any, dim: Any, normalization: int, onesided: bool) -> Any:
    transform = np.fft.rfftn if onesided else np.fft.fftn
    return transform(self, axes=dim, norm=NORMS[normalization])


def back_to_reals(self: Any, dim: Any, normalization: int, last: int) -> Any:
    sizes = [self.shape[d] for d in dim[:-1]] + [last]
    return np.fft.irfftn(self, sizes, dim, BACK[normalization])


def complex_both(self: Any, dim: Any, normalization: int, forward: bool) -> Any:
    if forward:
        return np.fft.fftn(self, axes=dim, norm=NORMS[normalization])
    return np.fft.ifftn(self, axes=dim, norm=BACK[normalization])


def only_floats(make: Maker) -> Iterator[ErrorInput]:
    text = "Only supports floating-point dtypes, but found: Long"
    yield ErrorInput(sample(make.index(3, below=3), [0], 0, True), RuntimeError, text)


NARROW = {"bfloat16": "there are no complex numbers of 16 bits"}

# --- embedding_bag ----------------------------------------------------------------------------------------------------

SUM, MEAN, MAX = 0, 1, 2


def bags(make: Maker) -> Iterator[SampleInput]:
    indices, offsets = make.values([0, 2, 2, 1], dtypes.int64), make.values([0, 0, 2], dtypes.int64)
    for mode in (SUM, MEAN, MAX):
        yield sample(make.distinct(3, 2), indices, offsets, False, mode)
        yield sample(make.distinct(3, 2), indices, offsets, False, mode, False, None, False, 2)
    yield sample(make(3, 2), indices, offsets, False, SUM, False, make(4))
    yield sample(make(3, 2), indices, make.values([0, 1, 4], dtypes.int64), False, MEAN, False, None, True)
    yield sample(make(3, 2), indices, offsets, True, SUM).but_not(
        "gradients", "it is scaled by how often a row is used"
    )


def bags_without_padding(make: Maker) -> Iterator[SampleInput]:
    for given in bags(make):
        if len(given.arguments) < 9:
            yield given


def bags_with_all(make: Maker) -> Iterator[SampleInput]:
    """The same with all arguments given."""
    usual = (False, SUM, False, None, False, None)
    for given in bags(make):
        rest = given.args[2:]
        yield SampleInput(given.input, (*given.args[:2], *rest, *usual[len(rest) :]), skips=given.skips)


def bagged(
    weight: Any, indices: Any, offsets: Any, scale: bool = False, mode: int = SUM, sparse: bool = False,
    factors: Any = None, last: bool = False, padding: int | None = -1,
) -> Any:  # fmt: skip
    ends = [*offsets[1:], *([] if last else [len(indices)])]
    result = []
    for lo, hi in zip(offsets, ends, strict=False):
        kept = [k for k in range(lo, hi) if indices[k] != padding]
        rows = weight[indices[kept]] * (1 if factors is None else factors[kept][:, None])
        ways: dict[int, Any] = {SUM: np.sum, MEAN: np.mean, MAX: np.max}
        reduce = ways[mode]
        result.append(reduce(rows, 0) if len(kept) else np.zeros(weight.shape[1]))
    return np.array(result), None, None, None


def bag_errors(make: Maker) -> Iterator[ErrorInput]:
    one = make.values([0], dtypes.int64)
    text = "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be 5"
    yield ErrorInput(sample(make(2, 3), make.values([5], dtypes.int64), one), RuntimeError, text)
    text = "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0."
    yield ErrorInput(sample(make(2, 3), one, make.values([1], dtypes.int64)), RuntimeError, text)


FOURIER = [
    OpInfo("_fft_r2c", of_reals, from_reals, FLOATS, errors=only_floats, skips=NARROW),
    OpInfo("_fft_c2r", to_reals, back_to_reals, COMPLEX),
    OpInfo("_fft_c2c", both_ways, complex_both, COMPLEX),
]
EMBEDDING_BAG = [
    OpInfo("_embedding_bag", bags, bagged, FLOATS, errors=bag_errors),
    OpInfo("_embedding_bag_forward_only", bags, bagged, FLOATS, gradients=False),
    OpInfo("embedding_bag", bags_without_padding, bagged, FLOATS),
    OpInfo("embedding_bag.padding_idx", bags_with_all, bagged, FLOATS),
]
