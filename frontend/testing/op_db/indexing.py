"""Samples of kernels/ops/scatter_gather.py, scattering.py and indexing.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, INTEGERS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import some_number

# --- gather and scatter -----------------------------------------------------------------------------------------------


def gathers(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 4), 1, make.index(3, 2, below=4))
    yield sample(make(3, 4), -2, make.index(2, 4, below=3))
    yield sample(make(), 0, make.index(below=1))
    yield sample(make(3, 4), 0, make.index(0, 4, below=3))


def gather_errors(make: Maker) -> Iterator[ErrorInput]:
    x = make(3, 4)
    text = "index 4 is out of bounds for dimension 1 with size 4"
    yield ErrorInput(sample(x, 1, make.values([[4]], make.index(1, below=2).dtype)), RuntimeError, text)
    text = "Index tensor must have the same number of dimensions as input tensor"
    yield ErrorInput(sample(x, 1, make.index(1, below=2)), RuntimeError, text)


def scatters(make: Maker) -> Iterator[SampleInput]:
    columns = make.values([[0, 2, 1], [3, 1, 0]], make.index(1, below=2).dtype)
    yield sample(make(3, 4), 1, columns, make(2, 3))
    yield sample(make(), 0, make.index(below=1), make())
    yield sample(make(3, 4), 0, make.index(0, 4, below=3), make(0, 4))


def scatter_numbers(make: Maker) -> Iterator[SampleInput]:
    yield from (sample(*s.arguments[:3], some_number(make)) for s in scatters(make))


def repeated(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 4), 0, make.index(3, 4, below=2), make(3, 4))
    yield sample(make(3), 0, make.index(2, below=1), make(2))


def reducing(samples: Any, *words: str) -> Any:
    def with_reduce(make: Maker) -> Iterator[SampleInput]:
        for word in words:
            yield from (sample(*s.arguments, reduce=word) for s in samples(make))

    return with_reduce


def at(dim: int, index: Any) -> tuple[Any, ...]:
    """The numpy index of every element that `index` names along `dim`."""
    where = list(np.indices(index.shape))
    if index.ndim:
        where[dim] = index
    return tuple(where)


def gathered(self: Any, dim: int, index: Any) -> Any:
    return self[at(dim, index)]


def scattered(self: Any, dim: int, index: Any, src: Any, reduce: str | None = None) -> Any:
    result = self.copy()
    part = np.broadcast_to(src, index.shape) if np.ndim(src) == 0 else src[tuple(slice(n) for n in index.shape)]
    if reduce == "add":
        np.add.at(result, at(dim, index), part)
    elif reduce == "multiply":
        np.multiply.at(result, at(dim, index), part)
    else:
        result[at(dim, index)] = part
    return result


def added(self: Any, dim: int, index: Any, src: Any) -> Any:
    return scattered(self, dim, index, src, "add")


def scatter_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "index 4 is out of bounds for dimension 0 with size 3"
    far = make.values([4], make.index(1, below=2).dtype)
    yield ErrorInput(sample(make(3), 0, far, make(1)), RuntimeError, text)


# --- whole rows -------------------------------------------------------------------------------------------------------


def selects(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 4), 0, make.index(5, below=3))
    yield sample(make(3, 4), -1, make.index(2, below=4))
    yield sample(make(3), 0, make.index(below=3))
    yield sample(make(), 0, make.index(1, below=1))
    yield sample(make(3, 4), 0, make.index(0, below=3))


def selected(self: Any, dim: int, index: Any) -> Any:
    if not self.ndim:
        return self
    return np.take(self, np.atleast_1d(index), axis=dim)


def select_errors(make: Maker) -> Iterator[ErrorInput]:
    integer = make.index(1, below=2).dtype
    yield ErrorInput(sample(make(3), 0, make.values([3], integer)), IndexError, "out of range in self")
    text = "index_select(): Index is supposed to be a vector"
    yield ErrorInput(sample(make(3), 0, make.index(1, 1, below=2)), IndexError, text)


def index_adds(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 4), 0, make.index(5, below=3), make(5, 4))
    if make.dtype.name != "bool":
        yield sample(make(3, 4), 1, make.index(2, below=4), make(3, 2), alpha=2)
    yield sample(make(3, 4), 0, make.index(0, below=3), make(0, 4))


def index_added(self: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    result = self.copy()
    np.add.at(np.moveaxis(result, dim, 0), index, alpha * np.moveaxis(source, dim, 0))
    return result


# --- masks ------------------------------------------------------------------------------------------------------------


def masked(value: Any) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape, mask in (((2, 3), (2, 3)), ((2, 3), (3,)), ((), ()), ((0, 3), (3,))):
            yield sample(make(*shape), make.mask(*mask), value(make))

    return samples


def masked_select_samples(make: Maker) -> Iterator[SampleInput]:
    for shape, mask in (((2, 3), (2, 3)), ((2, 3), (3,)), ((), ()), ((0, 3), (3,))):
        yield sample(make(*shape), make.mask(*mask))


def mask_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "masked_fill_ only supports boolean masks, but got mask with dtype long int"
    yield ErrorInput(sample(make(2), make.index(2, below=2), 1), RuntimeError, text)


def masked_filled(self: Any, mask: Any, value: Any) -> Any:
    return np.where(mask, np.asarray(value, self.dtype), self)


def masked_selected(self: Any, mask: Any) -> Any:
    return np.broadcast_to(self, np.broadcast_shapes(self.shape, mask.shape))[
        np.broadcast_to(mask, np.broadcast_shapes(self.shape, mask.shape))
    ]


# --- where something is -----------------------------------------------------------------------------------------------


def sparse(make: Maker) -> Iterator[SampleInput]:
    yield sample(make.values([[0, 1, 0], [2, 0, 3]]))
    yield sample(make(2, 3))
    yield sample(make(0, 3))


def takes(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 4), make.index(3, 1, below=4), 1)
    flat = sample(make(3, 4), make.index(5, below=12))
    yield flat.but_not("layouts", "without a dimension it is a view, as in PyTorch, which needs dense memory")


def embeddings(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(4, 3), make.index(2, 2, below=4))
    padded = sample(make(4, 3), make.index(5, below=4), padding_idx=1)
    yield padded.but_not("gradients", "the padding row gets none, though the result depends on it")
    yield sample(make(4, 3), make.index(below=4))
    yield sample(make(4, 3), make.index(0, below=4))


def embedding_errors(make: Maker) -> Iterator[ErrorInput]:
    integer = make.index(1, below=2).dtype
    yield ErrorInput(sample(make(4, 3), make.values([4], integer)), IndexError, "index out of range in self")


def embedding_gradients(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(5, 3), make.index(5, below=4), 4, -1, False)
    yield sample(make(5, 3), make.index(5, below=4), 4, 1, False)
    by_frequency = sample(make(5, 3), make.index(5, below=4), 4, -1, True)
    yield by_frequency.but_not("gradients", "PyTorch has no second derivative for it either")


def embedding_gradient(grad_output: Any, indices: Any, count: int, padding: int, by_frequency: bool) -> Any:
    result = np.zeros((count, grad_output.shape[-1]), grad_output.dtype)
    for row, index in zip(grad_output, indices, strict=True):
        if index != padding:
            result[index] += row / ((indices == index).sum() if by_frequency else 1)
    return result


def renorms(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(4, 3).detach(), make.index(3, below=4), 2.0, 2.0)
    yield sample(make(4, 3).detach(), make.index(0, below=4), 2.0, 1.0)


def renormed(self: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    result = self.copy()
    for index in np.unique(indices):
        norm = (np.abs(self[index]) ** norm_type).sum() ** (1 / norm_type)
        if norm > max_norm:
            result[index] *= max_norm / (norm + 1e-7)
    return result


def classes(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3, low=0, high=4))
    yield sample(make(3, low=0, high=4), 5)
    yield sample(make(0, low=0), 3)


def one_hot(self: Any, num_classes: int = -1) -> Any:
    return np.eye(num_classes if num_classes >= 0 else self.max() + 1, dtype=np.int64)[self]


def class_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make.values([3]), 2), RuntimeError, "Class values must be smaller than num_classes.")


# --- putting a part back ----------------------------------------------------------------------------------------------


def put(view: Any) -> Any:
    """A copy of `self` whose part `view(self, ...)` is `src`."""

    def reference(self: Any, src: Any, *args: Any, **kwargs: Any) -> Any:
        result = self.copy()
        view(result, *args, **kwargs)[...] = src
        return result

    return reference


def put_gradient(view: Any) -> Any:
    """Zeros of a shape, in whose part the gradient stands."""

    def reference(grad_output: Any, input_sizes: Any, *args: Any) -> Any:
        return put(view)(np.zeros(input_sizes, grad_output.dtype), grad_output, *args)

    return reference


def taken(x: Any, dim: int, index: int) -> Any:
    return np.moveaxis(x, dim, 0)[index, ...]


def sliced(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return np.moveaxis(np.moveaxis(x, dim, 0)[start:end:step], 0, dim)


def diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    found = np.diagonal(x, offset, dim1, dim2)
    found.flags.writeable = x.flags.writeable
    return found


def strided(x: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    flat = x.reshape(-1)[storage_offset or 0 :]
    return np.lib.stride_tricks.as_strided(flat, size, [s * x.itemsize for s in stride])


def shaped(*cases: Any) -> Any:
    """(shape of self, shape of src, arguments...) for each case."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape, src, *args in cases:
            yield sample(make(*shape), make(*src), *args)

    return samples


def gradients_of(*cases: Any) -> Any:
    """(shape of the gradient, arguments...) for each case."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape, *args in cases:
            yield sample(make(*shape), *args)

    return samples


def windows(grad: Any, input_sizes: Any, dim: int, size: int, step: int) -> Any:
    result = np.zeros(input_sizes, grad.dtype)
    target, source = np.moveaxis(result, dim, 0), np.moveaxis(grad, dim, 0)
    for i, window in enumerate(source):
        target[i * step : i * step + size] += np.moveaxis(window, -1, 0)
    return result


# --- x[...] -----------------------------------------------------------------------------------------------------------


def indices(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 4), [make.index(2, below=3)])
    yield sample(make(3, 4), [None, make.index(2, 2, low=-4, below=4)])
    yield sample(make(3, 4), [make.index(2, 1, below=3), make.index(3, below=4)])
    yield sample(make(3, 4), [make.mask(3, 4)]).but_not("meta", "its shape depends on the data")
    yield sample(make(2, 3, 2), [make.index(2, below=2), None, make.index(2, below=2)])
    yield sample(make(3, 4), [make.index(0, below=3)])


def numpy_index(indices: Any) -> tuple[Any, ...]:
    return tuple(slice(None) if index is None else index for index in indices)


def index_errors(make: Maker) -> Iterator[ErrorInput]:
    integer = make.index(1, below=2).dtype
    text = "index 3 is out of bounds for dimension 0 with size 3"
    yield ErrorInput(sample(make(3), [make.values([3], integer)]), IndexError, text)
    text = "too many indices for tensor of dimension 1"
    yield ErrorInput(sample(make(3), [make.index(1, below=2)] * 2), IndexError, text)
    text = "tensors used as indices must be long, int, byte or bool tensors"
    yield ErrorInput(sample(make(3), [make(2, dtype=FLOATS[0])]), IndexError, text)


def index_puts(make: Maker) -> Iterator[SampleInput]:
    integer = make.index(1, below=2).dtype
    yield sample(make(3, 4), [make.values([2, 0], integer)], make(2, 4))
    yield sample(make(3, 4), [make.values([2, 0], integer), make.values([1, 3], integer)], make())
    yield sample(make(3, 4), [make.mask(3, 4)], make())
    yield sample(make(3, 4), [make.index(4, below=2)], make(4, 4), True)
    yield sample(make(3, 4), [make.index(0, below=3)], make(4))


def index_put(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    result = self.copy()
    if accumulate:
        np.add.at(result, numpy_index(indices), values)
    else:
        result[numpy_index(indices)] = values
    return result


NO_FORMULA = {name: "it has no derivative, in PyTorch either" for name in ("gradients", "second_gradients")}
ON_DATA = {"meta": "its shape depends on the data"}

INDEXING = [
    OpInfo("gather", gathers, gathered, errors=gather_errors),
    OpInfo("scatter.src", scatters, scattered, errors=scatter_errors),
    OpInfo("scatter.value", scatter_numbers, scattered),
    OpInfo("scatter.reduce", reducing(repeated, "add", "multiply"), scattered, NUMBERS, skips=NO_FORMULA),
    OpInfo("scatter.value_reduce", reducing(scatter_numbers, "add", "multiply"), scattered, NUMBERS, skips=NO_FORMULA),
    OpInfo("scatter_add", repeated, added, errors=scatter_errors),
    OpInfo("index_select", selects, selected, errors=select_errors),
    OpInfo("index_add", index_adds, index_added, NUMBERS),
    OpInfo("masked_fill.Scalar", masked(some_number), masked_filled, errors=mask_errors),
    OpInfo("masked_fill.Tensor", masked(lambda make: make()), masked_filled),
    OpInfo("masked_select", masked_select_samples, masked_selected, skips=ON_DATA),
    OpInfo("nonzero", sparse, lambda self: np.argwhere(self), gradients=False, skips=ON_DATA),
    OpInfo("nonzero_numpy", sparse, lambda self: np.nonzero(self), gradients=False, skips=ON_DATA),
    OpInfo("argwhere", sparse, np.argwhere, gradients=False, skips=ON_DATA),
    OpInfo("take_along_dim", takes, lambda self, indices, dim=None: np.take_along_axis(self, indices, dim)),
    OpInfo(
        "embedding",
        embeddings,
        lambda weight, indices, padding_idx=-1: weight[indices],
        FLOATS,
        errors=embedding_errors,
    ),
    OpInfo("embedding_dense_backward", embedding_gradients, embedding_gradient, FLOATS),
    OpInfo("embedding_renorm_", renorms, renormed, FLOATS, gradients=False),
    OpInfo(
        "one_hot",
        classes,
        one_hot,
        INTEGERS,
        gradients=False,
        function="nn.functional.one_hot",
        skips={
            "meta": "the number of classes depends on the data",
            "subclass": "it fills a plain tensor that it made itself, as in PyTorch",
        },
        errors=class_errors,
    ),
    OpInfo("select_scatter", shaped([(2, 3), (3,), 0, 1], [(2, 3), (2,), -1, -1]), put(taken)),
    OpInfo("slice_scatter", shaped([(4, 3), (2, 3), 0, 1, 3], [(2, 4), (2, 2), 1, None, None, 2]), put(sliced)),
    OpInfo("diagonal_scatter", shaped([(3, 3), (3,)], [(2, 3), (2,), 1]), put(diagonal)),
    OpInfo(
        "as_strided_scatter",
        shaped([(3, 3), (2, 2), [2, 2], [3, 1], 1]),
        put(strided),
        skips={"layouts": "its strides mean those of the memory"},
    ),
    OpInfo("select_backward", gradients_of([(3,), [2, 3], 0, 1], [(2,), [2, 3], -1, -1]), put_gradient(taken)),
    OpInfo(
        "slice_backward", gradients_of([(2, 3), [4, 3], 0, 1, 3, 1], [(2, 2), [2, 4], 1, 0, 4, 2]), put_gradient(sliced)
    ),
    OpInfo("diagonal_backward", gradients_of([(3,), [3, 3], 0, 0, 1], [(2,), [2, 3], 1, 0, 1]), put_gradient(diagonal)),
    OpInfo("unfold_backward", gradients_of([(3, 2), [4], 0, 2, 1], [(2, 2, 3), [2, 5], 1, 3, 2]), windows, FLOATS),
    OpInfo("index.Tensor", indices, lambda self, indices: self[numpy_index(indices)], errors=index_errors),
    OpInfo("index_put", index_puts, index_put),
]
