"""Samples of views and of what arranges elements anew: shapes, parts, joining, repeating, packing; and softmax."""

from __future__ import annotations

import itertools

import numpy as np
from scipy import linalg, special

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, INTEGERS
from .common import BAD_DIM, by_numpy, call, calls, entries, fixed, table, whole, x

# --- shapes -----------------------------------------------------------------------------------------------------------


def flattened(self, start_dim=0, end_dim=-1):
    if not self.ndim:
        return self.reshape(1)
    start, end = start_dim % self.ndim, end_dim % self.ndim
    return self.reshape(*self.shape[:start], -1, *self.shape[end + 1 :])


def unflattened(self, dim, sizes):
    dim %= self.ndim
    return self.reshape(*self.shape[:dim], *sizes, *self.shape[dim + 1 :])


def squeezed(self, dim=None):
    dims = range(self.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    ones = tuple(d % self.ndim for d in dims if self.ndim and self.shape[d] == 1)
    return np.squeeze(self, ones) if ones else self


def expanded(self, size):
    lead = len(size) - self.ndim
    return np.broadcast_to(self, [self.shape[i - lead] if n == -1 else n for i, n in enumerate(size)])


MATRICES = calls([(2, 3)], [(2, 2, 3)], [(0, 3)])
UNSQUEEZED = "IndexError: Dimension out of range (expected to be in range of [-3, 2], but got 3)"
ORDERING = "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the"
TARGET = "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 1.  Target"
PAST = "IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 2)"
SHAPES = table(
    *entries("view _unsafe_view reshape", calls([(2, 3), [3, 2]], [(2, 3), [-1]], [(), [1, 1]], [(0, 3), [3, 0]])),
    *entries("view.dtype", calls([(2, 4), dtypes.int64], [(2, 4), dtypes.float64]), FLOATS[1:], gradients=False),
    *entries("view_as reshape_as", calls([(2, 3), fixed(3, 2)])),
    *by_numpy("ravel numpy_T:transpose", calls([(2, 3)], [()], [(0, 3)])),
    *entries("flatten.using_ints", calls([(2, 3)], [(2, 3, 4), 1], [(2, 3, 4), 0, 1], [()], [(0, 3)])),
    *entries("unflatten.int", calls([(2, 6), 1, [2, 3]], [(2, 6), -1, [-1, 2]])),
    *by_numpy("permute:transpose", calls([(2, 3, 4), [2, 0, 1]], [(2, 3), [-1, 0]], [(), []], [(0, 3), [1, 0]])),
    *entries("transpose.int swapaxes swapdims", calls([(2, 3), 0, 1], [(2, 3, 2), -1, 0], [(), 0, -1], [(0, 3), 0, 1])),
    *by_numpy("t:transpose", calls([(2, 3)], [(3,)], [()], [(0, 3)])),
    *by_numpy("movedim.intlist:moveaxis moveaxis.intlist", calls([(2, 3, 4), [0, 1], [1, 2]], [(2, 3), [0], [-1]])),
    *by_numpy("movedim.int:moveaxis moveaxis.int", calls([(2, 3, 4), 0, 2], [(2, 3), -1, 0])),
    *by_numpy("mT:matrix_transpose mH:matrix_transpose adjoint:matrix_transpose", MATRICES),
    *by_numpy("matrix_H:matrix_transpose", calls([(2, 3)], [(0, 3)])),
    *by_numpy("unsqueeze:expand_dims", calls([(2, 3), 0], [(2, 3), -1], [(), 0], [(0, 3), 1])),
    *entries("squeeze", calls([(2, 1, 3, 1)], [(1, 1)], [()], [(0, 1)])),
    *entries("squeeze.dim", calls([(2, 1, 3), 1], [(2, 1, 3), 0], [(), 0], [(0, 1), -1])),
    *entries("squeeze.dims", calls([(2, 1, 1), [1, 2]], [(2, 1, 3), [0, 1]])),
    *entries("expand", calls([(3,), [2, 3]], [(2, 1), [-1, 4]], [(), [2]], [(1, 3), [0, 3]])),
    *entries("expand_as", calls([(3,), fixed(2, 3)], [(), fixed(2)])),
    *entries("broadcast_to", calls([(3,), [2, 3]], [(), [2]])),
    references={
        "view _unsafe_view reshape": lambda self, shape: np.reshape(self, shape),
        "view.dtype": lambda self, dtype: self.view(dtype) if dtype.itemsize == self.itemsize else None,
        "view_as reshape_as": lambda self, other: self.reshape(other.shape),
        "flatten": flattened,
        "unflatten": unflattened,
        "transpose swapaxes swapdims": lambda self, dim0, dim1: np.swapaxes(self, dim0, dim1) if self.ndim else self,
        "squeeze": squeezed,
        "expand broadcast_to": expanded,
        "expand_as": lambda self, other: np.broadcast_to(self, other.shape),
    },
    errors={
        "view reshape": {"shape '[4]' is invalid for input of size 6": [(2, 3), [4]]},
        "flatten.using_ints": {
            "flatten() has invalid args: start_dim cannot come after end_dim": [(2, 3), 1, 0],
        },
        "permute": {
            f"{ORDERING} desired ordering of dimensions i.e. input.dim() = 2 is not equal to len(dims) = 1": [
                *((2, 3), [0])
            ]
        },
        "transpose.int": {PAST: [(2, 3), 0, 2]},
        "t": {"t() expects a tensor with <= 2 dimensions, but self is 3D": [(2, 3, 4)]},
        "unsqueeze": {UNSQUEEZED: [(2, 3), 3]},
        "squeeze.dim": BAD_DIM,
        "expand": {f"{TARGET} sizes: [2, 4].  Tensor sizes: [3]": [(3,), [2, 4]]},
    },
    skips={"which views there are depends on the strides": "layouts: view view.dtype _unsafe_view view_as"},
)

# --- parts, and putting them back -------------------------------------------------------------------------------------


def taken(x, dim, index):
    return np.moveaxis(x, dim, 0)[index, ...]


def sliced(x, dim=0, start=None, end=None, step=1):
    return np.moveaxis(np.moveaxis(x, dim, 0)[start:end:step], 0, dim)


def narrowed(self, dim, start, length):
    start %= max(self.shape[dim], 1)
    return sliced(self, dim, start, start + length)


def diagonal(x, offset=0, dim1=0, dim2=1):
    found = np.diagonal(x, offset, dim1, dim2)
    found.flags.writeable = x.flags.writeable
    return found


def strided(x, size, stride, storage_offset=None):
    flat = x.reshape(-1)[storage_offset or 0 :]
    return np.lib.stride_tricks.as_strided(flat, size, [s * x.itemsize for s in stride])


def windows(self, dimension, size, step):
    found = np.lib.stride_tricks.sliding_window_view(self, size, dimension)
    return sliced(found, dimension % self.ndim, None, None, step)


def windows_back(grad, input_sizes, dim, size, step):
    result = np.zeros(input_sizes, grad.dtype)
    target, source = np.moveaxis(result, dim, 0), np.moveaxis(grad, dim, 0)
    for i, window in enumerate(source):
        target[i * step : i * step + size] += np.moveaxis(window, -1, 0)
    return result


def put(view):
    """A copy of `self` whose part `view(self, ...)` is `src`."""

    def reference(self, src, *args):
        result = self.copy()
        view(result, *args)[...] = src
        return result

    return reference


def put_gradient(view):
    """Zeros of a shape, in whose part the gradient stands."""
    return lambda grad, input_sizes, *args: put(view)(np.zeros(input_sizes, grad.dtype), grad, *args)


def in_chunks(self, size, dim=0):
    return np.split(self, list(range(size, self.shape[dim], size)), dim)


def in_sizes(self, sizes, dim=0):
    return np.split(self, np.cumsum(sizes)[:-1], dim)


SLICED = calls([(4, 3), 0, 1, 3], [(4, 3), 1, None, None, 2], [(4, 3), 0, -2], [(4,), 0, 3, 1], [(0, 3)])
SPLIT, CHUNKS = calls([(5, 2), 2], [(2, 4), 2, 1]), calls([(5, 2), 2], [(2, 4), 3, 1])
EACH_AXIS = {"hsplit": (2, 4), "vsplit": (4, 2), "dsplit": (2, 2, 4)}
TO_5 = "split_with_sizes expects split_sizes to sum exactly to 5 (input tensor's size at dimension 0), but got"
PARTS = table(
    *entries("select.int", calls([(2, 3), 0, 1], [(2, 3), -1, -1], [(3,), 0, 0], [(0, 3), 1, 1])),
    *entries("slice.Tensor", SLICED),
    *entries("narrow", calls([(4, 3), 0, 1, 2], [(4, 3), -1, -2, 2], [(0, 3), 0, 0, 0])),
    *entries("narrow.Tensor", calls([(4, 3), 0, whole(1), 2])),
    *entries("diagonal", calls([(3, 3)], [(2, 3), 1], [(2, 3, 3), -1, 1, 2], [(0, 3)])),
    *entries("unfold", calls([(5,), 0, 3, 1], [(2, 5), 1, 2, 2], [(4, 2), -2, 2, 1])),
    *entries("as_strided", calls([(3, 3), [2, 2], [3, 1], 1], [(4,), [3, 2], [1, 1]], [(3,), [], [], 2])),
    *entries("_reshape_alias", calls([(4,), [2, 2], [2, 1]], [(2, 3), [3, 2], [2, 1]])),
    *entries("split.Tensor", calls(SPLIT, [(0, 3), 1])),
    *entries("split.sizes", calls([(5, 2), [2, 3]], [(2, 4), [1, 3], 1])),
    *entries("split_with_sizes unsafe_split_with_sizes", calls([(5, 2), [2, 3]], [(2, 4), [1, 0, 3], 1])),
    *entries("unsafe_split.Tensor", SPLIT),
    *entries("chunk unsafe_chunk", CHUNKS),
    *by_numpy("tensor_split.sections:array_split", calls([(5, 2), 2], [(2, 5), 3, 1])),
    *by_numpy("tensor_split.indices:array_split", calls([(5, 2), [1, 3]], [(2, 5), [2], 1])),
    *by_numpy(
        "tensor_split.tensor_indices_or_sections:array_split",
        calls([(5, 2), whole([1, 3])], [(2, 5), whole(2), 1]),
    ),
    *(info for name, shape in EACH_AXIS.items() for info in by_numpy(f"{name}.int", calls([shape, 2]))),
    *(info for name, shape in EACH_AXIS.items() for info in by_numpy(f"{name}.array", calls([shape, [1, 3]]))),
    *entries("unbind.int", calls([(2, 3)], [(2, 3), 1], [(0, 3)])),
    *entries("select_scatter", calls([(2, 3), (3,), 0, 1], [(2, 3), (2,), -1, -1])),
    *entries("slice_scatter", calls([(4, 3), (2, 3), 0, 1, 3], [(2, 4), (2, 2), 1, None, None, 2])),
    *entries("diagonal_scatter", calls([(3, 3), (3,)], [(2, 3), (2,), 1])),
    *entries("as_strided_scatter", calls([(3, 3), (2, 2), [2, 2], [3, 1], 1])),
    *entries("select_backward", calls([(3,), [2, 3], 0, 1], [(2,), [2, 3], -1, -1])),
    *entries("slice_backward", calls([(2, 3), [4, 3], 0, 1, 3, 1], [(2, 2), [2, 4], 1, 0, 4, 2])),
    *entries("diagonal_backward", calls([(3,), [3, 3], 0, 0, 1], [(2,), [2, 3], 1, 0, 1])),
    *entries("unfold_backward", calls([(3, 2), [4], 0, 2, 1], [(2, 2, 3), [2, 5], 1, 3, 2]), FLOATS),
    *entries("slice_inverse", calls([(2, 3), (2, 3)])),
    references={
        "select": taken,
        "slice": sliced,
        "narrow": narrowed,
        "diagonal": diagonal,
        "unfold": windows,
        "as_strided _reshape_alias": strided,
        "split.Tensor unsafe_split": in_chunks,
        "split.sizes split_with_sizes unsafe_split_with_sizes": in_sizes,
        "chunk unsafe_chunk": lambda self, chunks, dim=0: in_chunks(self, -(-self.shape[dim] // chunks), dim),
        "unbind": lambda self, dim=0: list(np.moveaxis(self, dim, 0)),
        "unfold_backward": windows_back,
        "slice_inverse": lambda self, src: self.reshape(src.shape),
        "select_scatter": put(taken),
        "slice_scatter": put(sliced),
        "diagonal_scatter": put(diagonal),
        "as_strided_scatter": put(strided),
        "select_backward": put_gradient(taken),
        "slice_backward": put_gradient(sliced),
        "diagonal_backward": put_gradient(diagonal),
    },
    errors={
        "select.int": {
            "IndexError: select(): index 3 out of range for tensor of size [2, 3] at dimension 0": [(2, 3), 0, 3]
        },
        "slice.Tensor": {"slice step must be positive": [(4,), 0, None, None, 0]},
        "narrow": {"start (3) + length (2) exceeds dimension size (4).": [(4,), 0, 3, 2]},
        "diagonal": {"diagonal dimensions cannot be identical 0, 0": [(2, 3), 0, 0, 0]},
        "unfold": {"maximum size for tensor at dimension 0 is 3 but size is 4": [(3,), 0, 4, 1]},
        "as_strided": {"mismatch in length of strides and shape": [(3,), [2], [1, 1]]},
        "split.Tensor": {"split expects split_size be non-negative, but got split_size=-1": [(5,), -1]},
        "split_with_sizes": {f"{TO_5} split_sizes=[2, 2]": [(5,), [2, 2]]},
        "chunk": {"chunk expects `chunks` to be greater than 0, got: 0": [(5,), 0]},
        "tensor_split.sections": {"number of sections must be larger than 0, got 0": [(5,), 0]},
        "tensor_split.tensor_indices_or_sections": {
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got Float": [
                *((5,), x(2, dtype=dtypes.float32).detach())
            ],
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            "got a tensor with 2 dims": [(5,), whole([[1, 2]])],
        },
        **{f"{name}.int": {f"torch.{name} requires a tensor with at least": [(), 1]} for name in EACH_AXIS},
        "unbind.int": {"IndexError: Dimension specified as 0 but tensor has no dimensions": [()]},
    },
    skips={
        "which views there are depends on the strides": "layouts: as_strided _reshape_alias",
        "the start is data": "meta: narrow.Tensor",
        "where it is split is data": "meta: tensor_split.tensor_indices_or_sections",
        "the parts lie as the whole does": "layouts: unsafe*",
        "its strides mean those of the memory": "layouts: as_strided_scatter",
        "it looks as `src` lies": "layouts: slice_inverse",
    },
)

# --- several tensors --------------------------------------------------------------------------------------------------


def joined(tensors, dim=0):
    """numpy's concatenation, which knows no exception for an empty vector."""
    return np.concatenate([x for x in tensors if x.shape != (0,)] or tensors, dim)


def products(tensors):
    if len(tensors) == 1:
        return tensors[0]
    return np.array(list(itertools.product(*tensors)), tensors[0].dtype).reshape(-1, len(tensors))


def combinations(self, r=2, with_replacement=False):
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(choose(self, r)), self.dtype).reshape(-1, r) if r else self[:0]


def unflattened_parts(flat, tensors):
    ends = np.cumsum([0, *(x.size for x in tensors)])
    return [flat[i:j].reshape(x.shape) for i, j, x in zip(ends, ends[1:], tensors, strict=False)]


def each(function):
    return lambda tensors: [function(x) for x in tensors]


def lists(*cases):
    return calls(*([list(shapes), *rest] for shapes, *rest in cases))


def spread(function):
    return lambda tensors, **options: list(function(*tensors, **options))


def meshgrid(*tensors, indexing="ij"):
    return np.meshgrid(*tensors, indexing=indexing)


CHUNKED = calls([[(4, 3), (4,)], 0, 2], [[(5, 2), (3, 4)], 0, 2], [[(2, 3), (2, 5)], 1, 2])


def chunks_joined(tensors, dim, num_chunks):
    """Each tensor as rows of its chunks along `dim`, zeros behind what does not fill the last."""

    def rows(x):
        widths = [(0, -n % num_chunks if d == dim else 0) for d, n in enumerate(x.shape)]
        return np.pad(x, widths).reshape(*x.shape[:dim], num_chunks, -1)

    return np.concatenate([rows(x) for x in tensors], dim + 1)


CATS = lists([[(2, 3), (1, 3)]], [[(2, 3), (2, 1)], 1], [[(2, 3), (0, 3)]], [[(0,), (2, 3)]], [[(2,), (3,)], -1])
COUNT = "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for tensor number 1 in the"
AXES = calls(call([(2,), (3,)], indexing="xy"), call([(2,), (3,)], indexing="ij"))
JOINING = table(
    *entries("cat", calls(CATS, [[(2, 3), x(2, 3, dtype=dtypes.float64)]])),
    *entries("stack", lists([[(2, 3), (2, 3)]], [[(2, 3), (2, 3)], -1], [[(), ()]], [[(0, 3), (0, 3)], 1])),
    *by_numpy("hstack column_stack", lists([[(3,), (3,)]], [[(2, 3), (2, 1)]], [[(), ()]])),
    *by_numpy("vstack row_stack:vstack", lists([[(3,), (3,)]], [[(2, 3), (1, 3)]], [[(), ()]])),
    *by_numpy("dstack", lists([[(3,), (3,)]], [[(2, 3), (2, 3)]])),
    *by_numpy("atleast_1d atleast_2d atleast_3d", calls([(2, 3)], [(2,)], [()])),
    *by_numpy("atleast_1d.Sequence atleast_2d.Sequence atleast_3d.Sequence", lists([[(2, 3), ()]]), wrap=each),
    *by_numpy("broadcast_tensors:broadcast_arrays", lists([[(2, 1), (3,)]], [[(), (2,)]]), wrap=spread),
    *entries("meshgrid", lists([[(2,), (3,)]]), reference=spread(meshgrid)),
    *entries("meshgrid.indexing", AXES, reference=spread(meshgrid)),
    *entries("block_diag", lists([[(2, 3), (2,), ()]], [[(1, 2)]], [[(0, 2), (1, 1)]])),
    *entries("_chunk_cat", CHUNKED),
    *entries("cartesian_prod", lists([[(2,), (3,)]], [[(2,)]])),
    *entries("combinations", calls([(4,)], [(3,), 3, True], [(3,), 0], [(2,), 3])),
    *entries("flatten_dense_tensors", lists([[(2, 3), (4,), (0,)]])),
    *entries("unflatten_dense_tensors", calls([(10,), [(2, 3), (0, 2), (4,)]], [(8,), [(2, 3)]])),
    references={
        "cat": joined,
        "stack": lambda tensors, dim=0: np.stack(tensors, dim),
        "block_diag": lambda tensors: linalg.block_diag(*tensors),
        "_chunk_cat": chunks_joined,
        "cartesian_prod": products,
        "combinations": combinations,
        "flatten_dense_tensors": lambda tensors: np.concatenate([x.ravel() for x in tensors]),
        "unflatten_dense_tensors": unflattened_parts,
    },
    errors={
        "_chunk_cat": {
            "_chunk_cat expects positive num_chunks": [[(2, 3)], 0, 0],
            "_chunk_cat expects non-empty tensor": [[(0, 3)], 0, 2],
            "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors": [[(2, 3), (3, 3)], 1, 2],
        },
        "cat": {f"{COUNT} list.": [[(2, 3), (2, 2)]]},
        "stack": {
            "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1": [[(2,), (3,)]]
        },
        "combinations": {"Expect a 1D vector, but got shape [2, 2]": [(2, 2)]},
        "unflatten_dense_tensors": {"start (6) + length (4) exceeds dimension size (9).": [(9,), [(2, 3), (4,)]]},
    },
)

# --- elements moved and repeated --------------------------------------------------------------------------------------


def triangle(function):
    return lambda self, diagonal=0: function(self, diagonal).astype(self.dtype)


def filled_diagonal(self, fill_value, wrap=False):
    made = self.copy()
    np.fill_diagonal(made, fill_value, wrap)
    return made


FEW = "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
MOVING = table(
    *by_numpy("repeat:tile tile", calls([(2, 3), [2, 1]], [(3,), [2, 2]], [(), [2]], [(0, 3), [1, 2]])),
    *by_numpy("repeat_interleave.self_int:repeat", calls([(2, 3), 2], [(2, 3), 2, 1])),
    *by_numpy("repeat_interleave.self_Tensor:repeat", calls([(3,), whole([1, 0, 2])], [(2, 3), whole([2, 1]), 0])),
    *entries("repeat_interleave.Tensor", calls([x(4, low=0, high=3)]), INTEGERS, gradients=False),
    *entries("flip", calls([(2, 3), [0]], [(2, 3), [0, -1]], [(), []], [(0, 3), [0]])),
    *by_numpy("fliplr flipud", calls([(2, 3)], [(0, 3)])),
    *entries("roll", calls([(2, 3), [1]], [(2, 3), [1, -1], [0, 1]], [(0, 3), [1], [0]])),
    *entries("rot90", calls([(2, 3)], [(2, 3), 2], [(2, 3, 2), -1, [0, 2]], [(2, 3), 4])),
    *by_numpy("tril triu", calls([(3, 3)], [(2, 3), 1], [(2, 3, 3), -1], [(0, 3)]), wrap=triangle),
    *entries("fill_diagonal_", calls([(3, 3), 1], [(5, 2), 1, True], [(2, 2, 2), 1], [(0, 3), 1])),
    references={
        "repeat_interleave.Tensor": lambda repeats: np.repeat(np.arange(len(repeats)), repeats),
        "flip": lambda self, dims: np.flip(self, tuple(dims)),
        "roll": lambda self, shifts, dims=(): np.roll(self, shifts, tuple(dims) or None) if self.ndim else self,
        "rot90": lambda self, k=1, dims=(0, 1): np.rot90(self, k, tuple(dims)),
        "fill_diagonal_": filled_diagonal,
    },
    errors={
        "repeat": {FEW: [(2, 3), [2]]},
        "flip": {PAST: [(2, 3), [2]]},
        "fliplr": {"Input must be >= 2-d.": [(3,)]},
        "rot90": {"expected total dims >= 2, but got total dims = 1": [(3,)]},
        "fill_diagonal_": {"dimensions must larger than 1": [(3,), 1]},
    },
    skips={"the result's size is data": "meta: repeat_interleave.*Tensor"},
)

# --- softmax ----------------------------------------------------------------------------------------------------------


def of_double(function):
    return lambda self, dim, *rest: function(np.asarray(self, np.float64), axis=dim if self.ndim else None)


RAW = calls([(2, 3), 1, False], [(2, 3, 2), 1, False], [(), 0, False], [(0, 3), 1, False])
COOKED = calls([(2, 3), 1], [(2, 3, 2), -2], [(), 0], [(0, 3), 1])
# The result that was saved, by which there is a gradient, too
SAVED = calls(*([(2, 3), x(2, 3, low=-2, high=-0.5), dim, x.dtype] for dim in (0, 1)))
SOFTMAX = table(
    *entries("_softmax _log_softmax", RAW, FLOATS),
    *entries("_softmax_backward_data _log_softmax_backward_data", SAVED, FLOATS),
    *entries("softmax.int log_softmax.int special_log_softmax", COOKED, FLOATS),
    references={
        "_softmax softmax": of_double(special.softmax),
        "_log_softmax log_softmax special_log_softmax": of_double(special.log_softmax),
        "_softmax_backward_data": lambda grad, output, dim, dtype: (
            output * (grad - (grad * output).sum(dim, keepdims=True))
        ),
        "_log_softmax_backward_data": lambda grad, output, dim, dtype: (
            grad - np.exp(output) * grad.sum(dim, keepdims=True)
        ),
    },
    errors={"softmax.int log_softmax.int special_log_softmax": BAD_DIM},
)

# --- packed sequences -------------------------------------------------------------------------------------------------


def side_by_side(sequences, batch_first=False, value=0.0, side="right"):
    longest = max(map(len, sequences))
    rows = []
    for one in sequences:
        free = longest - len(one)
        widths = [(0, free) if side == "right" else (free, 0)] + [(0, 0)] * (one.ndim - 1)
        rows.append(np.pad(one, widths, constant_values=value))
    return np.stack(rows, 0 if batch_first else 1)


def packed(input, lengths, batch_first):
    steps = np.swapaxes(input, 0, 1) if batch_first else input
    sizes = [int((lengths > step).sum()) for step in range(lengths.max())]
    return [np.concatenate([steps[step, :size] for step, size in enumerate(sizes)]), np.array(sizes)]


def unpacked(data, batch_sizes, batch_first, padding_value, total_length):
    steps = max(len(batch_sizes), total_length)
    made = np.full((steps, batch_sizes[0], *data.shape[1:]), padding_value, data.dtype)
    for step, part in enumerate(np.split(data, np.cumsum(batch_sizes)[:-1])):
        made[step, : len(part)] = part
    lengths = np.array([(batch_sizes > b).sum() for b in range(batch_sizes[0])])
    return [np.swapaxes(made, 0, 1) if batch_first else made, lengths]


SEQUENCES = calls(*([[(2,), (3,)]], [[(3, 2), (1, 2), (2, 2)], True, 1.0], [[(1,), (3,)], False, 0.0, "left"]))
PADDED = calls([(3, 2), whole([3, 1]), False], [(2, 3, 2), whole([2, 2]), True])
PACKED = calls([(4, 2), whole([2, 1, 1]), False, 1, 4], [(4,), whole([2, 2]), True, 1, 4])
UNSORTED = "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True."
NONE_LEFT = "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
PACKING = table(
    *entries("pad_sequence", SEQUENCES, reference=side_by_side),
    *entries("_pack_padded_sequence", PADDED, FLOATS, reference=packed),
    *entries("_pad_packed_sequence", PACKED, FLOATS, reference=unpacked),
    errors={
        "pad_sequence": {"Expected padding_side to be one of left or right, but got up.": [[(2,)], False, 0.0, "up"]},
        "_pack_padded_sequence": {
            UNSORTED: [(3, 2), whole([1, 3]), False],
            NONE_LEFT: [(3, 2), whole([3, 0]), False],
        },
    },
    skips={
        "a plain tensor is filled in place, as in PyTorch": "subclass: pad_sequence",
        "lengths are data": "meta vmap: _*",
        "of lengths laid out otherwise the sum is another one": "layouts: _*",
        "how many rows each step has is data, which a wrapper does not show": "subclass: _*",
    },
)

VIEWS = [*SHAPES, *PARTS, *JOINING, *MOVING, *SOFTMAX, *PACKING]
