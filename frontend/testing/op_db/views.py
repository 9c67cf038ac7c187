"""Samples of kernels/ops/views.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import bad_dim, reductions
from .indexing import diagonal, sliced, strided, taken

# Whether a view exists at all may depend on the strides, and its own strides do.
ON_STRIDES = {"layouts": "which views there are depends on the strides"}
RESHAPED = {"inplace": "it has no in-place form"}


def calls(*cases: Any) -> Any:
    """(shape, arguments...) for each case."""
    return reductions(*((shape, tuple(args), {}) for shape, *args in cases))


def others(*cases: Any) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape, other in cases:
            yield sample(make(*shape), make(*other).detach())

    return samples


def failing(text: str, shape: Any, *args: Any, error: type[Exception] = RuntimeError) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        yield ErrorInput(sample(make(*shape), *args), error, text)

    return errors


def reshaped(self: Any, shape: Any) -> Any:
    return np.reshape(self, shape)


def flattened(self: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    if not self.ndim:
        return self.reshape(1)
    start, end = start_dim % self.ndim, end_dim % self.ndim
    return self.reshape(*self.shape[:start], -1, *self.shape[end + 1 :])


def unflattened(self: Any, dim: int, sizes: Any) -> Any:
    dim %= self.ndim
    return self.reshape(*self.shape[:dim], *sizes, *self.shape[dim + 1 :])


def swapped(self: Any, dim0: int, dim1: int) -> Any:
    return np.swapaxes(self, dim0, dim1) if self.ndim else self


def squeezed(self: Any, dim: Any = None) -> Any:
    dims = range(self.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    ones = tuple(d % self.ndim for d in dims if self.ndim and self.shape[d] == 1)
    return np.squeeze(self, ones) if ones else self


def expanded(self: Any, size: Any) -> Any:
    lead = len(size) - self.ndim
    return np.broadcast_to(self, [self.shape[i - lead] if n == -1 else n for i, n in enumerate(size)])


def windows(self: Any, dimension: int, size: int, step: int) -> Any:
    found = np.lib.stride_tricks.sliding_window_view(self, size, dimension)
    return sliced(found, dimension % self.ndim, None, None, step)


def in_chunks(self: Any, size: int, dim: int = 0) -> Any:
    return np.split(self, list(range(size, self.shape[dim], size)), dim)


def in_sizes(self: Any, sizes: Any, dim: int = 0) -> Any:
    return np.split(self, np.cumsum(sizes)[:-1], dim)


def chunked(self: Any, chunks: int, dim: int = 0) -> Any:
    return in_chunks(self, -(-self.shape[dim] // chunks), dim)


def narrows(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(4, 3), 0, make.values(1, dtypes.int64), 2)


TRANSPOSES = calls([(2, 3), 0, 1], [(2, 3, 2), -1, 0], [(), 0, -1], [(0, 3), 0, 1])
MATRICES = calls([(2, 3)], [(2, 2, 3)], [(0, 3)])
SIZES = calls([(2, 3), [3, 2]], [(2, 3), [-1]], [(), [1, 1]], [(0, 3), [3, 0]])
MOVES = calls([(2, 3, 4), [0, 1], [1, 2]], [(2, 3), [0], [-1]])
SINGLE_MOVES = calls([(2, 3, 4), 0, 2], [(2, 3), -1, 0])
ONES = [[(2, 1, 3, 1)], [(1, 1)], [()], [(0, 1)]]
ELEMENTS = "shape '[4]' is invalid for input of size 6"
PAST = "Dimension out of range (expected to be in range of [-2, 1], but got 2)"


def moved(self: Any, source: Any, destination: Any) -> Any:
    return np.moveaxis(self, source, destination)


VIEWS = [
    OpInfo("view", SIZES, reshaped, skips=ON_STRIDES, errors=failing(ELEMENTS, (2, 3), [4])),
    OpInfo(
        "view.dtype",
        calls([(2, 4), dtypes.int64], [(2, 4), dtypes.float64]),
        lambda self, dtype: self.view(dtype) if dtype.itemsize == self.itemsize else None,
        (dtypes.float64,),
        gradients=False,
        skips=ON_STRIDES,
    ),
    OpInfo("_unsafe_view", SIZES, reshaped, skips=ON_STRIDES),
    OpInfo("reshape", SIZES, reshaped, errors=failing(ELEMENTS, (2, 3), [4])),
    OpInfo("view_as", others([(2, 3), (3, 2)]), lambda self, other: self.reshape(other.shape), skips=ON_STRIDES),
    OpInfo("reshape_as", others([(2, 3), (3, 2)]), lambda self, other: self.reshape(other.shape)),
    OpInfo("ravel", calls([(2, 3)], [()], [(0, 3)]), np.ravel),
    OpInfo(
        "flatten.using_ints",
        calls([(2, 3)], [(2, 3, 4), 1], [(2, 3, 4), 0, 1], [()], [(0, 3)]),
        flattened,
        errors=failing("flatten() has invalid args: start_dim cannot come after end_dim", (2, 3), 1, 0),
    ),
    OpInfo("unflatten.int", calls([(2, 6), 1, [2, 3]], [(2, 6), -1, [-1, 2]]), unflattened),
    OpInfo(
        "permute",
        calls([(2, 3, 4), [2, 0, 1]], [(2, 3), [-1, 0]], [(), []], [(0, 3), [1, 0]]),
        np.transpose,
        errors=failing(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of "
            "the desired ordering of dimensions i.e. input.dim() = 2 is not equal to len(dims) = 1",
            (2, 3),
            [0],
        ),
    ),
    OpInfo("transpose.int", TRANSPOSES, swapped, errors=failing(PAST, (2, 3), 0, 2, error=IndexError)),
    OpInfo(
        "t",
        calls([(2, 3)], [(3,)], [()], [(0, 3)]),
        np.transpose,
        errors=failing("t() expects a tensor with <= 2 dimensions, but self is 3D", (2, 3, 4)),
    ),
    OpInfo("swapaxes", TRANSPOSES, swapped),
    OpInfo("swapdims", TRANSPOSES, swapped),
    OpInfo("movedim.intlist", MOVES, moved),
    OpInfo("movedim.int", SINGLE_MOVES, moved),
    OpInfo("moveaxis.intlist", MOVES, moved),
    OpInfo("moveaxis.int", SINGLE_MOVES, moved),
    OpInfo("numpy_T", calls([(2, 3)], [()], [(0, 3)]), np.transpose),
    OpInfo("mT", MATRICES, lambda self: np.swapaxes(self, -1, -2)),
    OpInfo("mH", MATRICES, lambda self: np.swapaxes(self, -1, -2)),
    OpInfo("matrix_H", calls([(2, 3)], [(0, 3)]), lambda self: np.swapaxes(self, -1, -2)),
    OpInfo("adjoint", MATRICES, lambda self: np.swapaxes(self, -1, -2)),
    OpInfo(
        "unsqueeze",
        calls([(2, 3), 0], [(2, 3), -1], [(), 0], [(0, 3), 1]),
        np.expand_dims,
        errors=failing(
            "Dimension out of range (expected to be in range of [-3, 2], but got 3)", (2, 3), 3, error=IndexError
        ),
    ),
    OpInfo("squeeze", calls(*ONES), squeezed),
    OpInfo("squeeze.dim", calls([(2, 1, 3), 1], [(2, 1, 3), 0], [(), 0], [(0, 1), -1]), squeezed, errors=bad_dim()),
    OpInfo("squeeze.dims", calls([(2, 1, 1), [1, 2]], [(2, 1, 3), [0, 1]]), squeezed),
    OpInfo(
        "expand",
        calls([(3,), [2, 3]], [(2, 1), [-1, 4]], [(), [2]], [(1, 3), [0, 3]]),
        expanded,
        errors=failing(
            "The expanded size of the tensor (4) must match the existing size (3) at non-singleton "
            "dimension 1.  Target sizes: [2, 4].  Tensor sizes: [3]",
            (3,),
            [2, 4],
        ),
    ),
    OpInfo("expand_as", others([(3,), (2, 3)], [(), (2,)]), lambda self, other: np.broadcast_to(self, other.shape)),
    OpInfo("broadcast_to", calls([(3,), [2, 3]], [(), [2]]), expanded),
    OpInfo(
        "select.int",
        calls([(2, 3), 0, 1], [(2, 3), -1, -1], [(3,), 0, 0], [(0, 3), 1, 1]),
        taken,
        errors=failing(
            "select(): index 3 out of range for tensor of size [2, 3] at dimension 0", (2, 3), 0, 3, error=IndexError
        ),
    ),
    OpInfo(
        "slice.Tensor",
        calls([(4, 3), 0, 1, 3], [(4, 3), 1, None, None, 2], [(4, 3), 0, -2], [(4,), 0, 3, 1], [(0, 3)]),
        sliced,
        errors=failing("slice step must be positive", (4,), 0, None, None, 0),
    ),
    OpInfo(
        "narrow",
        calls([(4, 3), 0, 1, 2], [(4, 3), -1, -2, 2], [(0, 3), 0, 0, 0]),
        lambda self, dim, start, length: sliced(
            self, dim, start % max(self.shape[dim], 1), start % max(self.shape[dim], 1) + length
        ),
        errors=failing("start (3) + length (2) exceeds dimension size (4).", (4,), 0, 3, 2),
    ),
    OpInfo(
        "narrow.Tensor",
        narrows,
        lambda self, dim, start, length: sliced(self, dim, start, start + length),
        skips={"meta": "the start is data"},
    ),
    OpInfo(
        "diagonal",
        calls([(3, 3)], [(2, 3), 1], [(2, 3, 3), -1, 1, 2], [(0, 3)]),
        diagonal,
        errors=failing("diagonal dimensions cannot be identical 0, 0", (2, 3), 0, 0, 0),
    ),
    OpInfo(
        "unfold",
        calls([(5,), 0, 3, 1], [(2, 5), 1, 2, 2], [(4, 2), -2, 2, 1]),
        windows,
        errors=failing("maximum size for tensor at dimension 0 is 3 but size is 4", (3,), 0, 4, 1),
    ),
    OpInfo(
        "as_strided",
        calls([(3, 3), [2, 2], [3, 1], 1], [(4,), [3, 2], [1, 1]], [(3,), [], [], 2]),
        strided,
        skips=ON_STRIDES,
        errors=failing("mismatch in length of strides and shape", (3,), [2], [1, 1]),
    ),
    OpInfo(
        "split.Tensor",
        calls([(5, 2), 2], [(2, 4), 2, 1], [(0, 3), 1]),
        in_chunks,
        errors=failing("split expects split_size be non-negative, but got split_size=-1", (5,), -1),
    ),
    OpInfo("split.sizes", calls([(5, 2), [2, 3]], [(2, 4), [1, 3], 1]), in_sizes),
    OpInfo(
        "split_with_sizes",
        calls([(5, 2), [2, 3]], [(2, 4), [1, 0, 3], 1]),
        in_sizes,
        errors=failing(
            "split_with_sizes expects split_sizes to sum exactly to 5 (input tensor's size at dimension "
            "0), but got split_sizes=[2, 2]",
            (5,),
            [2, 2],
        ),
    ),
    OpInfo(
        "chunk",
        calls([(5, 2), 2], [(2, 4), 3, 1]),
        chunked,
        errors=failing("chunk expects `chunks` to be greater than 0, got: 0", (5,), 0),
    ),
    OpInfo(
        "tensor_split.sections",
        calls([(5, 2), 2], [(2, 5), 3, 1]),
        np.array_split,
        errors=failing("number of sections must be larger than 0, got 0", (5,), 0),
    ),
    OpInfo("tensor_split.indices", calls([(5, 2), [1, 3]], [(2, 5), [2], 1]), np.array_split),
    OpInfo(
        "unbind.int",
        calls([(2, 3)], [(2, 3), 1], [(0, 3)]),
        lambda self, dim=0: list(np.moveaxis(self, dim, 0)),
        errors=failing("Dimension specified as 0 but tensor has no dimensions", (), error=IndexError),
    ),
]
