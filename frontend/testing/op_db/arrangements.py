"""Samples of kernels/ops/arrangements.py."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import Maker, OpInfo, SampleInput, sample
from .shape import lists
from .views import calls, chunked, failing, in_chunks, in_sizes


def block_diag(tensors: Any) -> Any:
    blocks = [np.atleast_2d(x) for x in tensors]
    made = np.zeros(np.sum([x.shape for x in blocks], 0), blocks[0].dtype)
    row = column = 0
    for x in blocks:
        made[row : row + x.shape[0], column : column + x.shape[1]] = x
        row, column = row + x.shape[0], column + x.shape[1]
    return made


def products(tensors: Any) -> Any:
    if len(tensors) == 1:
        return tensors[0]
    return np.array(list(itertools.product(*tensors)), tensors[0].dtype).reshape(-1, len(tensors))


def combinations(self: Any, r: int = 2, with_replacement: bool = False) -> Any:
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(choose(self, r)), self.dtype).reshape(-1, r) if r else self[:0]


def parts(function: Any) -> Any:
    return lambda self, how: function(self, how)


def filled(self: Any, fill_value: Any, wrap: bool = False) -> Any:
    made = self.copy()
    np.fill_diagonal(made, fill_value, wrap)
    return made


def some(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), size=2)
    yield sample(make(2, 3), size=8, fill_value=5)
    yield sample(make(), size=2)
    yield sample(make(0, 3), size=1)


def first_nonzero(self: Any, size: int, fill_value: int = -1) -> Any:
    found = np.argwhere(self)[:size]
    return np.concatenate([found, np.full((size - len(found), self.ndim), fill_value)])


def wholes(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make(2, 3))


UNSAFE = {"layouts": "the parts lie as the whole does"}

ARRANGEMENTS = [
    OpInfo(
        "rot90",
        calls([(2, 3)], [(2, 3), 2], [(2, 3, 2), -1, [0, 2]], [(2, 3), 4]),
        lambda self, k=1, dims=(0, 1): np.rot90(self, k, tuple(dims)),
        errors=failing("expected total dims >= 2, but got total dims = 1", (3,)),
    ),
    OpInfo("block_diag", lists(([(2, 3), (2,), ()],), ([(1, 2)],), ([(0, 2), (1, 1)],)), block_diag),
    OpInfo("cartesian_prod", lists(([(2,), (3,)],), ([(2,)],)), products),
    OpInfo(
        "combinations",
        calls([(4,)], [(3,), 3, True], [(3,), 0], [(2,), 3]),
        combinations,
        errors=failing("Expect a 1D vector, but got shape [2, 2]", (2, 2)),
    ),
    *(
        OpInfo(f"{name}.{overload}", calls([shape, how]), parts(getattr(np, name)), errors=errors)
        for name, shape, sections in (("hsplit", (2, 4), 2), ("vsplit", (4, 2), 2), ("dsplit", (2, 2, 4), 2))
        for overload, how, errors in (
            ("int", sections, failing(f"torch.{name} requires a tensor with at least", (), 1)),
            ("array", [1, 3], None),
        )
    ),
    OpInfo("unsafe_split.Tensor", calls([(5, 2), 2], [(2, 4), 2, 1]), in_chunks, skips=UNSAFE),
    OpInfo("unsafe_split_with_sizes", calls([(5, 2), [2, 3]], [(2, 4), [1, 0, 3], 1]), in_sizes, skips=UNSAFE),
    OpInfo("unsafe_chunk", calls([(5, 2), 2], [(2, 4), 3, 1]), chunked, skips=UNSAFE),
    OpInfo(
        "slice_inverse", wholes, lambda self, src: self.reshape(src.shape), skips={"layouts": "it looks as `src` lies"}
    ),
    OpInfo(
        "fill_diagonal_",
        calls([(3, 3), 1], [(5, 2), 1, True], [(2, 2, 2), 1], [(0, 3), 1]),
        filled,
        errors=failing("dimensions must larger than 1", (3,), 1),
    ),
    OpInfo("nonzero_static", some, first_nonzero, gradients=False),
]
