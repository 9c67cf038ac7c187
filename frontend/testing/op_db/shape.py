"""Samples of kernels/ops/shape.py and softmax.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, INTEGERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import bad_dim
from .views import PAST, calls, failing

# --- several tensors --------------------------------------------------------------------------------------------------


def lists(*cases: Any) -> Any:
    """([shapes of the tensors], arguments...) for each case."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for shapes, *args in cases:
            kwargs = args.pop() if args and isinstance(args[-1], dict) else {}
            yield sample([make(*shape) for shape in shapes], *args, **kwargs)

    return samples


def mixed(samples: Any) -> Any:
    """And once with tensors of two dtypes."""

    def more(make: Maker) -> Iterator[SampleInput]:
        yield from samples(make)
        yield sample([make(2, 3), make(2, 3, dtype=dtypes.float64)])

    return more


def list_errors(text: str, *shapes: Any) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        yield ErrorInput(sample([make(*shape) for shape in shapes]), RuntimeError, text)

    return errors


def joined(tensors: Any, dim: int = 0) -> Any:
    """numpy's concatenation, which knows no exception for an empty vector."""
    return np.concatenate([x for x in tensors if x.shape != (0,)] or tensors, dim)


CATS = lists(([(2, 3), (1, 3)],), ([(2, 3), (2, 1)], 1), ([(2, 3), (0, 3)],), ([(0,), (2, 3)],), ([(2,), (3,)], -1))
STACKS = lists(([(2, 3), (2, 3)],), ([(2, 3), (2, 3)], -1), ([(), ()],), ([(0, 3), (0, 3)], 1))
ROWS = lists(([(3,), (3,)],), ([(2, 3), (1, 3)],), ([(), ()],))
COLUMNS = lists(([(3,), (3,)],), ([(2, 3), (2, 1)],), ([(), ()],))
CAT_SIZES = (
    "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for tensor number 1 in the list."
)


def at_least(count: int) -> Any:
    function = (np.atleast_1d, np.atleast_2d, np.atleast_3d)[count - 1]
    return lambda self: function(self)


def each_at_least(count: int) -> Any:
    return lambda tensors: [at_least(count)(x) for x in tensors]


JOINING = [
    OpInfo("cat", mixed(CATS), joined, errors=list_errors(CAT_SIZES, (2, 3), (2, 2))),
    OpInfo("concat", CATS, joined),
    OpInfo("concatenate", CATS, joined),
    OpInfo(
        "stack",
        STACKS,
        lambda tensors, dim=0: np.stack(tensors, dim),
        errors=list_errors(
            "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1", (2,), (3,)
        ),
    ),
    OpInfo("hstack", COLUMNS, np.hstack),
    OpInfo("vstack", ROWS, np.vstack),
    OpInfo("row_stack", ROWS, np.vstack),
    OpInfo("dstack", lists(([(3,), (3,)],), ([(2, 3), (2, 3)],)), np.dstack),
    OpInfo("column_stack", COLUMNS, np.column_stack),
    *(
        OpInfo(f"atleast_{n}d{overload}", samples, reference)
        for n in (1, 2, 3)
        for overload, samples, reference in (
            ("", calls([(2, 3)], [(2,)], [()]), at_least(n)),
            (".Sequence", lists(([(2, 3), ()],)), each_at_least(n)),
        )
    ),
    OpInfo(
        "broadcast_tensors",
        lists(([(2, 1), (3,)],), ([(), (2,)],)),
        lambda tensors: list(np.broadcast_arrays(*tensors)),
    ),
    OpInfo("meshgrid", lists(([(2,), (3,)],)), lambda tensors: list(np.meshgrid(*tensors, indexing="ij"))),
    OpInfo(
        "meshgrid.indexing",
        lists(([(2,), (3,)], {"indexing": "xy"}), ([(2,), (3,)], {"indexing": "ij"})),
        lambda tensors, indexing: list(np.meshgrid(*tensors, indexing=indexing)),
    ),
]

# --- elements moved and repeated --------------------------------------------------------------------------------------


def counts(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3), make.values([1, 0, 2], dtypes.int64))
    yield sample(make(2, 3), make.values([2, 1], dtypes.int64), 0)


def only_counts(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(4, low=0, high=3))


def rolled(self: Any, shifts: Any, dims: Any = ()) -> Any:
    return np.roll(self, shifts, tuple(dims) or None) if self.ndim else self


def triangle(function: Any) -> Any:
    return lambda self, diagonal=0: function(self, diagonal).astype(self.dtype)


TRIANGLES = calls([(3, 3)], [(2, 3), 1], [(2, 3, 3), -1], [(0, 3)])
TILES = calls([(2, 3), [2, 1]], [(3,), [2, 2]], [(), [2]], [(0, 3), [1, 2]])
DATA_SIZE = {"meta": "the result's size is data"}

MOVING = [
    OpInfo(
        "repeat",
        TILES,
        np.tile,
        errors=failing(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor", (2, 3), [2]
        ),
    ),
    OpInfo("tile", TILES, np.tile),
    OpInfo("repeat_interleave.self_int", calls([(2, 3), 2], [(2, 3), 2, 1]), np.repeat),
    OpInfo("repeat_interleave.self_Tensor", counts, np.repeat, skips=DATA_SIZE),
    OpInfo(
        "repeat_interleave.Tensor",
        only_counts,
        lambda repeats: np.repeat(np.arange(len(repeats)), repeats),
        INTEGERS,
        gradients=False,
        skips=DATA_SIZE,
    ),
    OpInfo(
        "flip",
        calls([(2, 3), [0]], [(2, 3), [0, -1]], [(), []], [(0, 3), [0]]),
        lambda self, dims: np.flip(self, tuple(dims)),
        errors=failing(PAST, (2, 3), [2], error=IndexError),
    ),
    OpInfo("fliplr", calls([(2, 3)], [(0, 3)]), np.fliplr, errors=failing("Input must be >= 2-d.", (3,))),
    OpInfo("flipud", calls([(2, 3)], [(0, 3)]), np.flipud),
    OpInfo("roll", calls([(2, 3), [1]], [(2, 3), [1, -1], [0, 1]], [(0, 3), [1], [0]]), rolled),
    OpInfo("tril", TRIANGLES, triangle(np.tril)),
    OpInfo("triu", TRIANGLES, triangle(np.triu)),
]

# --- softmax ----------------------------------------------------------------------------------------------------------


def softmax(self: Any, dim: int, *rest: Any) -> Any:
    if not self.ndim:
        return np.ones((), self.dtype)
    shifted = np.exp(np.asarray(self, np.float64) - self.max(dim, keepdims=True, initial=-np.inf))
    return shifted / shifted.sum(dim, keepdims=True)


def log_softmax(self: Any, dim: int, *rest: Any) -> Any:
    return np.log(softmax(self, dim))


def softmax_gradient(grad_output: Any, output: Any, dim: int, dtype: Any) -> Any:
    inner = grad_output * output
    return inner - output * inner.sum(dim, keepdims=True)


def log_softmax_gradient(grad_output: Any, output: Any, dim: int, dtype: Any) -> Any:
    return grad_output - np.exp(output) * grad_output.sum(dim, keepdims=True)


def softmax_outputs(make: Maker) -> Iterator[SampleInput]:
    for dim in (0, 1):
        yield sample(make(2, 3), make(2, 3, low=-2, high=-0.5), dim, make.dtype)


RAW = calls([(2, 3), 1, False], [(2, 3, 2), 1, False], [(), 0, False], [(0, 3), 1, False])
COOKED = calls([(2, 3), 1], [(2, 3, 2), -2], [(), 0], [(0, 3), 1])

SOFTMAX = [
    OpInfo("_softmax", RAW, softmax, FLOATS),
    OpInfo("_log_softmax", RAW, log_softmax, FLOATS),
    OpInfo("_softmax_backward_data", softmax_outputs, softmax_gradient, FLOATS),
    OpInfo("_log_softmax_backward_data", softmax_outputs, log_softmax_gradient, FLOATS),
    OpInfo("softmax.int", COOKED, softmax, FLOATS, errors=bad_dim()),
    OpInfo("log_softmax.int", COOKED, log_softmax, FLOATS, errors=bad_dim()),
]

SHAPE = [*JOINING, *MOVING, *SOFTMAX]
