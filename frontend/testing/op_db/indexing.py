"""Samples of what reads and writes at places: gather, scatter, index, take, put, masks, embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op_info import FLOATS, INTEGERS, NUMBERS, SampleInput
from .common import (
    NUMBER,
    but_not,
    by_numpy,
    call,
    calls,
    d,
    entries,
    fixed,
    later,
    only,
    table,
    whole,
    x,
)

# --- places along a dimension -----------------------------------------------------------------------------------------


def at(dim, index):
    """The numpy index of every element that `index` names along `dim`."""
    where = list(np.indices(index.shape))
    if index.ndim:
        where[dim] = index
    return tuple(where)


def along(index, dim, source):
    """The same for an index of whole slices of `source`."""
    shape = [-1 if i == dim % source.ndim else 1 for i in range(source.ndim)]
    return at(dim, np.broadcast_to(index.reshape(shape), source.shape))


UFUNCS = {"multiply": np.multiply, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def met(self, places, values, reduce, include_self=True):
    """Reduces the values that meet at a place."""
    result, counts = self.copy(), np.full(self.shape, int(include_self))
    if not include_self:
        limits = np.iinfo(self.dtype) if self.dtype.kind in "iu" else np.finfo(self.dtype)
        result[places] = {"prod": 1, "amax": limits.min, "amin": limits.max}.get(reduce, 0)
    UFUNCS.get(reduce, np.add).at(result, places, values)
    np.add.at(counts, places, 1)
    if reduce != "mean":
        return result
    counts = np.maximum(counts, 1)
    return result // counts if self.dtype.kind in "iu" else result / counts


def scattered(self, dim, index, src, reduce=None, include_self=True):
    part = np.broadcast_to(src, index.shape) if np.ndim(src) == 0 else src[tuple(slice(n) for n in index.shape)]
    return (
        written(self, at(dim, index), part) if reduce is None else met(self, at(dim, index), part, reduce, include_self)
    )


def written(self, places, values):
    result = self.copy()
    result[places] = values
    return result


def index_reduced(self, dim, index, source, reduce, include_self=True):
    return met(self, along(index, dim, source), source, reduce, include_self)


def index_added(self, dim, index, source, alpha=1):
    return met(self, along(index, dim, source), alpha * source, "add")


def index_copied(self, dim, index, source):
    return written(self, along(index, dim, source), source) if self.ndim else source


def index_filled(self, dim, index, value):
    return written(self, (*[slice(None)] * (dim % self.ndim), index) if self.ndim else ..., value)


def put(self, index, source, accumulate=False):
    flat, index, source = self.ravel(), index.ravel(), source.ravel()
    found = met(flat, index, source, "add") if accumulate else written(flat, index, source)
    return found.reshape(self.shape)


@later
def with_zero(make):
    values = make(2, 2, low=1).detach()
    values[0, 1] = 0
    return values.requires_grad_(make.requires_grad)


def reducing(samples, *words):
    """The same calls, each with each of the words."""
    return lambda make: (SampleInput(one.input, one.args, {"reduce": word}) for word in words for one in samples(make))


def reduced_by(names, index, source):
    """Each reduction, with and without what was there."""
    options: Any = ({}, {"include_self": False})
    return calls(*(call(d(3, 2), 0, whole(index), source, name, **how) for name in names.split() for how in options))


COLUMNS, EMPTY = whole([[0, 2, 1], [3, 1, 0]]), x.index(0, 4, below=3)
FAR = whole([4])
GATHERS = calls(
    *([(3, 4), 1, x.index(3, 2, below=4)], [(3, 4), -2, x.index(2, 4, below=3)], [(), 0, x.index(below=1)]),
    [(3, 4), 0, EMPTY],
)
SCATTERS = calls([(3, 4), 1, COLUMNS, (2, 3)], [(), 0, x.index(below=1), ()], [(3, 4), 0, EMPTY, (0, 4)])
OF_NUMBERS = calls([(3, 4), 1, COLUMNS, NUMBER], [(), 0, x.index(below=1), NUMBER], [(3, 4), 0, EMPTY, NUMBER])
REPEATED = calls([(3, 4), 0, x.index(3, 4, below=2), (3, 4)], [(3,), 0, x.index(2, below=1), (2,)])
SCATTERED = calls(
    reduced_by("sum prod mean amax amin", [[0, 2], [0, 1]], d(2, 2)),
    [(2, 3), 1, whole([[1], [2]]), (2, 2), "sum"],
    [(2, 3), -1, whole([[1, 1], [2, 1]]), with_zero(), "prod"],
    [(), 0, whole(0), (), "sum"],
    [(2, 3), 0, x.index(0, 3, below=1), (0, 3), "sum"],
)
INDEXED = calls(reduced_by("prod mean amax amin", [0, 2, 0], d(3, 2)), [(2, 3), 1, whole([1, 2]), (2, 2), "prod"])
SELECTED = calls(
    *([(3, 4), 0, x.index(5, below=3)], [(3, 4), -1, x.index(2, below=4)], [(3,), 0, x.index(below=3)]),
    *([(), 0, x.index(1, below=1)], [(3, 4), 0, x.index(0, below=3)]),
)
ADDED = calls(
    [(3, 4), 0, x.index(5, below=3), (5, 4)],
    only(lambda make: make.dtype.name != "bool", call((3, 4), 1, x.index(2, below=4), (3, 2), alpha=2)),
    [(3, 4), 0, x.index(0, below=3), (0, 4)],
)
COPIED = calls(
    *([(3, 2), 0, whole([2, 0]), (2, 2)], [(2, 3), -1, whole([1]), (2, 1)], [(2, 3), 1, whole([]), (2, 0)]),
    [(), 0, whole(0), ()],
)
TO_FILL = [((3, 2), 0, whole([2, -3])), ((2, 3), -1, whole([1])), ((2, 3), 1, whole([])), ((), 0, whole(0))]
FILLED = calls(*([*one, value] for one, value in zip(TO_FILL, (2, 1, 1, 1), strict=True)))
TAKEN = calls(
    *([(2, 3), whole([[0, 5], [-1, 2]])], [x(3, 2).t(), whole([1, 1])], [(), whole([0, 0])], [(2,), whole([])])
)
PUT = calls(
    *([(2, 3), whole([[0, 5]]), (2,)], [(2, 3), whole([0, -1, 0]), (3,), True], [x(3, 2).t(), whole([1]), (1,)]),
    *([(), whole([0]), (1,)], [(2,), whole([]), (0,)]),
)
IS_VIEW = "without a dimension it is a view, as in PyTorch, which needs dense memory"
TAKEN_ALONG = calls([(3, 4), x.index(3, 1, below=4), 1], but_not("layouts", IS_VIEW, [(3, 4), x.index(5, below=12)]))
LIMITS = "index_copy_(): Number of indices (1) should be equal to source.size(dim) (2)"
NUMELS = "put_(): Expected source and index to have the same number of elements, but got source.numel() = 1,"
REDUCTIONS = "reduce argument must be either sum, prod, mean, amax or amin, got median"
ALONG = table(
    *entries("gather", GATHERS),
    *entries("scatter.src", SCATTERS),
    *entries("scatter.value", OF_NUMBERS),
    *entries("scatter.reduce", reducing(REPEATED, "add", "multiply"), NUMBERS),
    *entries("scatter.value_reduce", reducing(OF_NUMBERS, "add", "multiply"), NUMBERS),
    *entries("scatter_add", REPEATED),
    *entries("scatter_reduce.two", SCATTERED, NUMBERS),
    *entries("index_reduce", INDEXED, NUMBERS),
    *entries("index_select", SELECTED),
    *entries("index_add", ADDED, NUMBERS),
    *entries("index_copy", COPIED),
    *entries("index_fill.int_Scalar", FILLED),
    *entries("index_fill.int_Tensor", calls(*([*one, ()] for one in TO_FILL))),
    *entries("put", PUT, NUMBERS),
    *by_numpy("take", TAKEN),
    *entries("take_along_dim", TAKEN_ALONG),
    references={
        "gather": lambda self, dim, index: self[at(dim, index)],
        "scatter scatter_reduce": scattered,
        "scatter_add": lambda self, dim, index, src: scattered(self, dim, index, src, "add"),
        "index_select": lambda self, dim, index: np.take(self, np.atleast_1d(index), axis=dim) if self.ndim else self,
        "index_add": index_added,
        "index_reduce": index_reduced,
        "index_copy": index_copied,
        "index_fill": index_filled,
        "put": put,
        "take_along_dim": lambda self, indices, dim=None: np.take_along_axis(self, indices, dim),
    },
    errors={
        "gather": {
            "index 4 is out of bounds for dimension 1 with size 4": [(3, 4), 1, whole([[4]])],
            "Index tensor must have the same number of dimensions as input tensor": [(3, 4), 1, x.index(1, below=2)],
        },
        "scatter.src scatter_add": {"index 4 is out of bounds for dimension 0 with size 3": [(3,), 0, FAR, (1,)]},
        "scatter_reduce.two": {REDUCTIONS: [(2,), 0, x.index(2, below=2), (2,), "median"]},
        "index_reduce": {
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got sum.": [
                *((2,), 0, x.index(2, below=2), (2,), "sum")
            ],
            "IndexError: index out of range in self": [(2,), 0, whole([0, 2]), (2,), "prod"],
        },
        "index_select": {
            "IndexError: out of range in self": [(3,), 0, whole([3])],
            "IndexError: index_select(): Index is supposed to be a vector": [(3,), 0, x.index(1, 1, below=2)],
        },
        "index_copy": {
            "IndexError: index_copy_(): index 5 is out of bounds for dimension 0 with size 2": [
                *((2, 3), 0, whole([5]), (1, 3))
            ],
            f"IndexError: {LIMITS}": [(2, 3), 0, whole([0]), (2, 3)],
            "index_copy_(): Expected a long tensor for index, but got Double": [(2, 3), 0, (1,), (1, 3)],
        },
        "index_fill.int_Scalar": {
            "IndexError: index 5 is out of bounds for dimension 0 with size 2": [(2, 3), 0, whole([5]), 1],
            "IndexError: index_fill_(): Expected dtype int64 for index.": [(2, 3), 0, (1,), 1],
        },
        "take": {
            "IndexError: out of range: tried to access index 6 on a tensor of 6 elements.": [(2, 3), whole([6])],
            "take(): Expected a long tensor for index, but got Double": [(2, 3), (1,)],
        },
        "put": {f"IndexError: {NUMELS} index.numel() = 2": [(2, 3), x.index(2, below=3), (1,)]},
    },
    skips={
        "it has no derivative, in PyTorch either": "gradients second_gradients: scatter.reduce scatter.value_reduce"
    },
)

# --- masks, x[...] ----------------------------------------------------------------------------------------------------


def masked(*value):
    sizes = (((2, 3), (2, 3)), ((2, 3), (3,)), ((), ()), ((0, 3), (3,)))
    return calls(*([shape, x.mask(*mask), *value] for shape, mask in sizes))


def masked_selected(self, mask):
    self, mask = np.broadcast_arrays(self, mask)
    return self[mask]


def masked_scattered(self, mask, source):
    chosen = np.broadcast_to(mask, self.shape)
    return written(self, chosen, source.ravel()[: chosen.sum()])


def masked_gradient(grad, mask, sizes):
    chosen = np.zeros(int(np.prod(sizes)), grad.dtype)
    chosen[: mask.sum()] = grad[mask]
    return chosen.reshape(sizes)


def numpy_index(indices):
    return tuple(slice(None) if index is None else index for index in indices)


def index_put(self, indices, values, accumulate=False):
    return met(self, numpy_index(indices), values, "add") if accumulate else written(self, numpy_index(indices), values)


def first_nonzero(self, size, fill_value=-1):
    found = np.argwhere(self)[:size]
    return np.concatenate([found, np.full((size - len(found), self.ndim), fill_value)])


ON_DATA = "its shape depends on the data"
INDICES = calls(
    [(3, 4), [x.index(2, below=3)]],
    [(3, 4), [None, x.index(2, 2, low=-4, below=4)]],
    [(3, 4), [x.index(2, 1, below=3), x.index(3, below=4)]],
    but_not("meta", ON_DATA, [(3, 4), [x.mask(3, 4)]]),
    [(2, 3, 2), [x.index(2, below=2), None, x.index(2, below=2)]],
    [(3, 4), [x.index(0, below=3)]],
)
PUT_AT = calls(
    [(3, 4), [whole([2, 0])], (2, 4)],
    [(3, 4), [whole([2, 0]), whole([1, 3])], ()],
    [(3, 4), [x.mask(3, 4)], ()],
    [(3, 4), [x.index(4, below=2)], (4, 4), True],
    [(3, 4), [x.index(0, below=3)], (4,)],
)
MASKED = calls(
    *([(2, 3), x.mask(2, 3), (7,)], [(2, 3), x.mask(3), (2, 4)], [(), x.mask(), (2,)], [(0, 3), x.mask(1, 3), (1,)])
)
NONZERO = calls([x.values([[0, 1, 0], [2, 0, 3]])], [(2, 3)], [(0, 3)])
FIRST = calls(call((2, 3), size=2), call((2, 3), size=8, fill_value=5), call((), size=2), call((0, 3), size=1))
MASKS = table(
    *entries("masked_fill.Scalar", masked(NUMBER)),
    *entries("masked_fill.Tensor", masked(())),
    *entries("masked_select", masked()),
    *entries("masked_scatter", MASKED),
    *entries("masked_scatter_backward", calls([(2, 3), x.mask(2, 3), [7]], [(3,), x.mask(3), [2, 2]]), FLOATS),
    *by_numpy("nonzero:argwhere nonzero_numpy:nonzero argwhere", NONZERO, gradients=False),
    *entries("nonzero_static", FIRST, gradients=False),
    *entries("index.Tensor", INDICES),
    *entries("index_put", PUT_AT),
    references={
        "masked_fill": lambda self, mask, value: np.where(mask, np.asarray(value, self.dtype), self),
        "masked_select": masked_selected,
        "masked_scatter": masked_scattered,
        "masked_scatter_backward": masked_gradient,
        "nonzero_static": first_nonzero,
        "index": lambda self, indices: self[numpy_index(indices)],
        "index_put": index_put,
    },
    errors={
        "masked_fill.Scalar": {
            "masked_fill_ only supports boolean masks, but got mask with dtype long int": [(2,), x.index(2, below=2), 1]
        },
        "masked_scatter": {
            "Number of elements of source < number of ones in mask": [(3,), x(3).eq(x(3)).ge(0), (2,)],
            "masked_scatter_ only supports boolean masks, but got mask with dtype Long": [
                *((3,), x.index(3, below=3), (3,))
            ],
        },
        "index.Tensor": {
            "IndexError: index 3 is out of bounds for dimension 0 with size 3": [(3,), [whole([3])]],
            "IndexError: too many indices for tensor of dimension 1": [(3,), [x.index(1, below=2)] * 2],
            "IndexError: tensors used as indices must be long, int, byte or bool tensors": [
                *((3,), [x(2, dtype=FLOATS[0])])
            ],
        },
    },
    skips={
        ON_DATA: "meta: masked_select nonzero nonzero_numpy argwhere",
        "how many elements a mask chooses is not known there": "meta: masked_scatter_backward",
    },
)

# --- embeddings -------------------------------------------------------------------------------------------------------

SUM, MEAN, MAX = 0, 1, 2


def embedding_gradient(grad_output, indices, count, padding, by_frequency):
    result = np.zeros((count, grad_output.shape[-1]), grad_output.dtype)
    for row, index in zip(grad_output, indices, strict=True):
        if index != padding:
            result[index] += row / ((indices == index).sum() if by_frequency else 1)
    return result


def renormed(self, indices, max_norm, norm_type):
    result = self.copy()
    for index in np.unique(indices):
        norm = (np.abs(self[index]) ** norm_type).sum() ** (1 / norm_type)
        if norm > max_norm:
            result[index] *= max_norm / (norm + 1e-7)
    return result


def one_hot(self, num_classes=-1):
    return np.eye(num_classes if num_classes >= 0 else self.max() + 1, dtype=np.int64)[self]


def bagged(weight, indices, offsets, scale=False, mode=SUM, sparse=False, factors=None, last=False, padding=-1):
    ends = [*offsets[1:], *([] if last else [len(indices)])]
    reduce, result = (np.sum, np.mean, np.max)[mode], []
    for lo, hi in zip(offsets, ends, strict=False):
        kept = [k for k in range(lo, hi) if indices[k] != padding]
        rows = weight[indices[kept]] * (1 if factors is None else factors[kept][:, None])
        result.append(reduce(rows, 0) if len(kept) else np.zeros(weight.shape[1]))
    return np.array(result), None, None, None


INDEX, OFFSETS = whole([0, 2, 2, 1]), whole([0, 0, 2])
BAGS = calls(
    *(
        [d(3, 2), INDEX, OFFSETS, False, mode, *rest]
        for mode in (SUM, MEAN, MAX)
        for rest in ((), (False, None, False, 2))
    ),
    [(3, 2), INDEX, OFFSETS, False, SUM, False, (4,)],
    [(3, 2), INDEX, whole([0, 1, 4]), False, MEAN, False, None, True],
    but_not("gradients", "it is scaled by how often a row is used", [(3, 2), INDEX, OFFSETS, True, SUM]),
)


def with_all(make):
    """The same with all arguments given."""
    usual = (False, SUM, False, None, False, None)
    for one in BAGS(make):
        yield SampleInput(one.input, (*one.args, *usual[len(one.args) - 2 :]), skips=one.skips)


EMBEDDINGS = calls(
    [(4, 3), x.index(2, 2, below=4)],
    but_not(
        "gradients",
        "the padding row gets none, though the result depends on it",
        call((4, 3), x.index(5, below=4), padding_idx=1),
    ),
    *([(4, 3), x.index(below=4)], [(4, 3), x.index(0, below=4)]),
)
EMBEDDED = calls(
    *([(5, 3), x.index(5, below=4), 4, padding, False] for padding in (-1, 1)),
    but_not("gradients", "PyTorch has no second derivative for it either", [(5, 3), x.index(5, below=4), 4, -1, True]),
)
RENORMED = calls([fixed(4, 3), x.index(3, below=4), 2.0, 2.0], [fixed(4, 3), x.index(0, below=4), 2.0, 1.0])
FOUND = "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be 5"
FIRST_OFFSET = "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0."
EMBEDDING = table(
    *entries("embedding", EMBEDDINGS, FLOATS),
    *entries("embedding_dense_backward", EMBEDDED, FLOATS),
    *entries("embedding_renorm_", RENORMED, FLOATS, gradients=False),
    *entries("one_hot", calls([x(2, 3, low=0)], [x(3, low=0), 5], [x(0, low=0), 3]), INTEGERS, gradients=False),
    *entries("_embedding_bag", BAGS, FLOATS),
    *entries("_embedding_bag_forward_only", BAGS, FLOATS, gradients=False),
    *entries("embedding_bag", lambda make: (one for one in BAGS(make) if len(one.args) < 8), FLOATS),
    *entries("embedding_bag.padding_idx", with_all, FLOATS),
    references={
        "embedding": lambda weight, indices, padding_idx=-1: weight[indices],
        "embedding_dense_backward": embedding_gradient,
        "embedding_renorm_": renormed,
        "one_hot": one_hot,
        "_embedding_bag _embedding_bag_forward_only embedding_bag": bagged,
    },
    errors={
        "embedding": {"IndexError: index out of range in self": [(4, 3), FAR]},
        "one_hot": {"Class values must be smaller than num_classes.": [x.values([3]), 2]},
        "_embedding_bag": {FOUND: [(2, 3), whole([5]), whole([0])], FIRST_OFFSET: [(2, 3), whole([0]), whole([1])]},
    },
    skips={
        "the number of classes depends on the data": "meta: one_hot",
        "it fills a plain tensor that it made itself, as in PyTorch": "subclass: one_hot",
    },
    in_nn="one_hot",
)

INDEXING = [*ALONG, *MASKS, *EMBEDDING]
