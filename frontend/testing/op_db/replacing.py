"""Samples of kernels/ops/replacing.py and scatter_reduce.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample

WHOLE = dtypes.int64
META = "how many elements a mask chooses is not known there"

# --- scatter_reduce, index_reduce -------------------------------------------------------------------------------------


def reductions(names: tuple[str, ...], make: Maker) -> Iterator[tuple[str, dict[str, bool]]]:
    for name in names:
        yield name, {}
        yield name, {"include_self": False}


def scattered(make: Maker) -> Iterator[SampleInput]:
    for reduce, options in reductions(("sum", "prod", "mean", "amax", "amin"), make):
        yield sample(
            make.distinct(3, 2), 0, make.values([[0, 2], [0, 1]], WHOLE), make.distinct(2, 2), reduce, **options
        )
    yield sample(make(2, 3), 1, make.values([[1], [2]], WHOLE), make(2, 2), "sum")
    yield sample(make(2, 3), -1, make.values([[1, 1], [2, 1]], WHOLE), with_zero(make), "prod")
    yield sample(make(), 0, make.values(0, WHOLE), make(), "sum")
    yield sample(make(2, 3), 0, make.index(0, 3, below=1), make(0, 3), "sum")


def with_zero(make: Maker) -> Any:
    values = make(2, 2, low=1).detach()
    values[0, 1] = 0
    return values.requires_grad_(make.requires_grad)


def indexed(make: Maker) -> Iterator[SampleInput]:
    for reduce, options in reductions(("prod", "mean", "amax", "amin"), make):
        yield sample(make.distinct(3, 2), 0, make.values([0, 2, 0], WHOLE), make.distinct(3, 2), reduce, **options)
    yield sample(make(2, 3), 1, make.values([1, 2], WHOLE), make(2, 2), "prod")


def met(self: Any, places: Any, values: Any, reduce: str, include_self: bool) -> Any:
    """Places and values in pairs; each place gets what the values that meet there come to."""
    result = self.copy()
    found: dict[Any, list[Any]] = {}
    for place, value in zip(places, values, strict=True):
        found.setdefault(place, [self[place]] if include_self else []).append(value)
    whole = self.dtype.kind in "iu"
    for place, parts in found.items():
        ways: dict[str, Any] = {"sum": sum, "prod": np.prod, "amax": max, "amin": min, "mean": sum}
        total = ways[reduce](parts)
        if reduce == "mean":
            total = total // len(parts) if whole else total / len(parts)
        result[place] = total
    return result


def scatter_reduced(self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True) -> Any:
    if not self.ndim:
        return met(self.reshape(1), [(0,)], [src], reduce, include_self).reshape(())
    places, values = [], []
    for at in np.ndindex(*index.shape):
        place = list(at)
        place[dim] = index[at]
        places.append(tuple(place))
        values.append(src[at])
    return met(self, places, values, reduce, include_self)


def index_reduced(self: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True) -> Any:
    shape = [-1 if d == dim % self.ndim else 1 for d in range(self.ndim)]
    spread = np.broadcast_to(index.reshape(shape), source.shape)
    return scatter_reduced(self, dim, spread, source, reduce, include_self)


def scatter_reduce_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "reduce argument must be either sum, prod, mean, amax or amin, got median"
    yield ErrorInput(sample(make(2), 0, make.index(2, below=2), make(2), "median"), RuntimeError, text)


def index_reduce_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got sum."
    yield ErrorInput(sample(make(2), 0, make.index(2, below=2), make(2), "sum"), RuntimeError, text)
    text = "index out of range in self"
    yield ErrorInput(sample(make(2), 0, make.values([0, 2], WHOLE), make(2), "prod"), IndexError, text)


# --- masked_scatter, index_copy, index_fill, take, put ----------------------------------------------------------------


def masked(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make.mask(2, 3), make(7))
    yield sample(make(2, 3), make.mask(3), make(2, 4))
    yield sample(make(), make.mask(), make(2))
    yield sample(make(0, 3), make.mask(1, 3), make(1))


def masked_scattered(self: Any, mask: Any, source: Any) -> Any:
    result = self.copy()
    chosen = np.broadcast_to(mask, self.shape)
    result[chosen] = source.ravel()[: chosen.sum()]
    return result


def masked_errors(make: Maker) -> Iterator[ErrorInput]:
    everywhere = make(3).detach() == make(3).detach() + 0
    everywhere = everywhere | ~everywhere
    text = "Number of elements of source < number of ones in mask"
    yield ErrorInput(sample(make(3), everywhere, make(2)), RuntimeError, text)
    text = "masked_scatter_ only supports boolean masks, but got mask with dtype Long"
    yield ErrorInput(sample(make(3), make.index(3, below=2), make(3)), RuntimeError, text)


def masked_gradients(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make.mask(2, 3), [7])
    yield sample(make(3), make.mask(3), [2, 2])


def masked_gradient(grad: Any, mask: Any, sizes: Any) -> Any:
    chosen = grad[mask]
    return np.concatenate([chosen, np.zeros(int(np.prod(sizes)) - chosen.size, grad.dtype)]).reshape(sizes)


def copies(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 2), 0, make.values([2, 0], WHOLE), make(2, 2))
    yield sample(make(2, 3), -1, make.values([1], WHOLE), make(2, 1))
    yield sample(make(2, 3), 1, make.values([], WHOLE), make(2, 0))
    yield sample(make(), 0, make.values(0, WHOLE), make())


def index_copied(self: Any, dim: int, index: Any, source: Any) -> Any:
    if not self.ndim:
        return source
    result = self.copy()
    np.moveaxis(result, dim, 0)[index] = np.moveaxis(source, dim, 0)
    return result


def copy_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "index_copy_(): index 5 is out of bounds for dimension 0 with size 2"
    yield ErrorInput(sample(make(2, 3), 0, make.values([5], WHOLE), make(1, 3)), IndexError, text)
    text = "index_copy_(): Number of indices (1) should be equal to source.size(dim) (2)"
    yield ErrorInput(sample(make(2, 3), 0, make.values([0], WHOLE), make(2, 3)), IndexError, text)
    text = "index_copy_(): Expected a long tensor for index, but got Double"
    yield ErrorInput(sample(make(2, 3), 0, make(1), make(1, 3)), RuntimeError, text)


def fills(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 2), 0, make.values([2, -3], WHOLE), 2)
    yield sample(make(2, 3), -1, make.values([1], WHOLE), 1)
    yield sample(make(2, 3), 1, make.values([], WHOLE), 1)
    yield sample(make(), 0, make.values(0, WHOLE), 1)


def fills_by_tensor(make: Maker) -> Iterator[SampleInput]:
    for s in fills(make):
        yield sample(*s.arguments[:3], make())


def index_filled(self: Any, dim: int, index: Any, value: Any) -> Any:
    result = self.copy()
    if not self.ndim:
        result[...] = value
        return result
    np.moveaxis(result, dim, 0)[index] = value
    return result


def fill_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "index 5 is out of bounds for dimension 0 with size 2"
    yield ErrorInput(sample(make(2, 3), 0, make.values([5], WHOLE), 1), IndexError, text)
    text = "index_fill_(): Expected dtype int64 for index."
    yield ErrorInput(sample(make(2, 3), 0, make(1), 1), IndexError, text)


def takes(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make.values([[0, 5], [-1, 2]], WHOLE))
    yield sample(make(3, 2).t(), make.values([1, 1], WHOLE))
    yield sample(make(), make.values([0, 0], WHOLE))
    yield sample(make(2), make.values([], WHOLE))


def take_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "out of range: tried to access index 6 on a tensor of 6 elements."
    yield ErrorInput(sample(make(2, 3), make.values([6], WHOLE)), IndexError, text)
    yield ErrorInput(
        sample(make(2, 3), make(1)), RuntimeError, "take(): Expected a long tensor for index, but got Double"
    )


def puts(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make.values([[0, 5]], WHOLE), make(2))
    yield sample(make(2, 3), make.values([0, -1, 0], WHOLE), make(3), True)
    yield sample(make(3, 2).t(), make.values([1], WHOLE), make(1))
    yield sample(make(), make.values([0], WHOLE), make(1))
    yield sample(make(2), make.values([], WHOLE), make(0))


def put(self: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    result = self.ravel().copy()
    if accumulate:
        np.add.at(result, index.ravel(), source.ravel())
    else:
        result[index.ravel()] = source.ravel()
    return result.reshape(self.shape)


def put_errors(make: Maker) -> Iterator[ErrorInput]:
    text = (
        "put_(): Expected source and index to have the same number of elements, but got source.numel() = 1, "
        "index.numel() = 2"
    )
    yield ErrorInput(sample(make(2, 3), make.index(2, below=3), make(1)), IndexError, text)


REPLACING = [
    OpInfo("scatter_reduce.two", scattered, scatter_reduced, NUMBERS, errors=scatter_reduce_errors),
    OpInfo("index_reduce", indexed, index_reduced, NUMBERS, errors=index_reduce_errors),
    OpInfo("masked_scatter", masked, masked_scattered, errors=masked_errors),
    OpInfo("masked_scatter_backward", masked_gradients, masked_gradient, FLOATS, skips={"meta": META}),
    OpInfo("index_copy", copies, index_copied, errors=copy_errors),
    OpInfo("index_fill.int_Scalar", fills, index_filled, errors=fill_errors),
    OpInfo("index_fill.int_Tensor", fills_by_tensor, index_filled),
    OpInfo("take", takes, lambda self, index: np.take(self, index), errors=take_errors),
    OpInfo("put", puts, put, NUMBERS, errors=put_errors),
]
