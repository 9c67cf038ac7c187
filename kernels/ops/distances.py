"""Distances between the rows of matrices: cdist, pdist; between tensors: pairwise_distance, cosine_similarity.

A p-norm of differences. For p = 2 and many rows a distance follows from products of matrices, |x|^2 + |y|^2 - 2 x y,
which is faster and cancels; so it is done in float64. PyTorch takes that way beyond 25 rows, too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.autograd import no_grad
from redispatch.dispatch.tensor import Size, Tensor, as_numpy, dtypes, empty, result_type
from redispatch.kernels import Operand, broadcast_shapes, is_contiguous

from ..declare.declare import Operator, no_formula
from ..declare.operator import CUDA_FP32, FP32, composite, leaf_kernel
from ..declare.overridable import overridable_function
from ..declare.structured import common_device, not_implemented
from .arithmetic import add_scalar_op, clamp_min_tensor_op
from .convolution import dense
from .moments import linalg_vector_norm

MANY = 25  # rows from which on a Euclidean distance is made of matrix products

cdist_backward_op = Operator(
    "_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
    batching="leading",
    refuses="whole halves complex",
)
pdist_backward_op = Operator(
    "_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor",
    refuses="whole halves complex",
    relies="_pdist_forward",
)


# --- cdist -----------------------------------------------------------------------------------------------------------


def check_cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> None:
    for name, x in (("X1", x1), ("X2", x2)):
        if len(x._shape) < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {len(x._shape)}D")
        if not x._dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x._dtype.tensor_name}")
    if x1._shape[-1] != x2._shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1._shape[-1]} X2: {x2._shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if (compute_mode or 0) not in (0, 1, 2):
        raise RuntimeError(f"possible modes: 0, 1, 2, but was: {compute_mode}")
    if x1._dtype is not x2._dtype:
        raise RuntimeError(f"expected scalar type {x1._dtype.tensor_name} but found {x2._dtype.tensor_name}")


@leaf_kernel(
    "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    batching="leading",
    core=True,
    refuses="whole halves complex",
)
def cdist_forward_op(x1, x2, p, compute_mode):
    """[*batch, n, m]: the distances between n rows of `x1` [*batch, n, d] and m rows of `x2`. Batches broadcast.

    compute_mode: 1 to use matrix products for p = 2 in any case, 2 never to do so.
    """
    check_cdist(x1, x2, p, compute_mode)
    if x1._dtype.itemsize == 2:
        raise not_implemented("cdist", x1._dtype)
    rows, others = x1._shape[-2], x2._shape[-2]
    batch = broadcast_shapes(x1._shape[:-2], x2._shape[:-2])
    result = empty(Size((*batch, rows, others)), x1._dtype, common_device(x1, x2))
    if result._device.type == "meta" or not result._shape.numel():
        return result
    products = p == 2 and (compute_mode == 1 or (not compute_mode and (rows > MANY or others > MANY)))
    if products and result._array is not None:
        by_products(result, x1, x2)
    else:
        shape = result._operand._replace(shape=(math.prod(batch), rows, others))
        kernels.distances(shape, batched(x1, batch), batched(x2, batch), float(p))
    return result


def batched(x: Tensor, batch: tuple[int, ...]) -> Operand:
    """The matrices in a dense row, as many as the batch has."""
    made = x
    if tuple(x._shape[:-2]) != batch or not is_contiguous(x._shape, x._stride):
        made = empty(Size((*batch, *x._shape[-2:])), x._dtype, x._device)
        kernels.copy(made._operand, x._operand)
    return made._operand._replace(shape=(math.prod(batch), *x._shape[-2:]))


def by_products(result: Tensor, x1: Tensor, x2: Tensor) -> None:
    a, b = (as_numpy(x).astype(np.float64) for x in (x1, x2))
    squares = (a * a).sum(-1)[..., :, None] + (b * b).sum(-1)[..., None, :] - 2 * (a @ np.swapaxes(b, -1, -2))
    as_numpy(result)[...] = np.sqrt(np.maximum(squares, 0))


def slopes(difference: Any, distance: Any, p: float) -> Any:
    """d distance / d difference. Where the distance is 0 there is no slope, and 0 is taken."""
    if p == 0:
        return difference * 0
    if p == 1:
        return difference.sign()
    if math.isinf(p):
        return difference.sign() * (difference.abs() == distance)
    if p == 2:
        return (difference / distance).masked_fill(distance == 0, 0)
    sizes = difference.abs()
    share = difference.sign() * (sizes / distance) ** (p - 1)
    return share.masked_fill((distance == 0) | (sizes == 0), 0)


def check_wide(kernel_name: str, x: Tensor) -> None:
    """NotImplementedError for what is neither float32 nor float64."""
    if x._dtype is not dtypes.float32 and x._dtype is not dtypes.float64:
        raise not_implemented(kernel_name, x._dtype)


def gradient_of_rows(grad: Any, x1: Any, x2: Any, p: float, cdist: Any) -> Any:
    """The gradient of the first rows: for each, the sum over its distances."""
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return (grad.unsqueeze(-1) * slopes(difference, cdist.unsqueeze(-1), p)).sum(-2)


@cdist_backward_op.kernel("CPU", "Meta", dispatches=True)
def cdist_backward_kernel(grad, x1, x2, p, cdist):
    check_wide("cdist_backward", x1)
    return gradient_of_rows(grad, x1, x2, p, cdist).contiguous()


def cdist_first(grad: Any, x1: Any, x2: Any, p: float, result: Any) -> Any:
    return gradient_of_rows(grad, x1, x2, p, result)


def cdist_second(grad: Any, x1: Any, x2: Any, p: float, result: Any) -> Any:
    return gradient_of_rows(grad.transpose(-1, -2), x2, x1, p, result.transpose(-1, -2))


cdist_forward_op.derivative(x1=cdist_first, x2=cdist_second, node="CdistBackward0")
cdist_backward_op.derivative((("grad", "x1", "x2", "cdist"), no_formula("_cdist_backward")))


@composite(
    "cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor",
    autocast=FP32,
    face=False,
    refuses="whole halves complex",
)
def cdist_op(x1, x2, p, compute_mode):
    check_cdist(x1, x2, p, compute_mode)
    return cdist_forward_op.functional(x1, x2, p, compute_mode)


COMPUTE_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


@overridable_function
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """Returns the p-norm of the difference of each row of x1 (..., P, M) and each row of x2 (..., R, M): (..., P, R).

    compute_mode: whether distances for p = 2 may come from a matrix product, which is faster and less exact: for more
    than 25 rows, always, or never. ValueError for another one.
    """
    if compute_mode not in COMPUTE_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode; expected one of {[*COMPUTE_MODES]}")
    return cdist_op.functional(x1, x2, p, COMPUTE_MODES[compute_mode])


# --- pdist -----------------------------------------------------------------------------------------------------------


@leaf_kernel(
    "_pdist_forward(Tensor self, float p=2) -> Tensor",
    derivative=lambda grad, self, p, result: gradient_of_pairs(grad, self, p, result),
    node="PdistBackward0",
    core=True,
    refuses="whole halves complex",
    relies="self: n d",
)
def pdist_forward_op(self, p):
    """[n (n - 1) / 2]: the distances between all pairs of rows, (0, 1), (0, 2), ..., (1, 2), ..."""
    if self._dtype not in (dtypes.float32, dtypes.float64):
        raise not_implemented("pdist", self._dtype)
    rows = self._shape[0]
    result = empty(Size((rows * (rows - 1) // 2,)), self._dtype, self._device)
    if result._device.type == "meta" or not result._shape.numel():
        return result
    kernels.distances_of_pairs(result._operand, dense(self, self._dtype)._operand, float(p))
    return result


def pair_of_rows(rows: int, like: Any) -> tuple[Any, Any]:
    """The numbers of the first and of the second row of each pair."""
    pairs = np.triu_indices(rows, 1)
    made = []
    for numbers in pairs:
        index = empty(Size((len(numbers),)), dtypes.int64)
        as_numpy(index)[...] = numbers
        made.append(index.to(like.device))
    return made[0], made[1]


def gradient_of_pairs(grad: Any, self: Any, p: float, pdist: Any) -> Any:
    first, second = pair_of_rows(self.shape[0], self)
    difference = self.index_select(0, first) - self.index_select(0, second)
    share = grad.unsqueeze(-1) * slopes(difference, pdist.unsqueeze(-1), p)
    return self.new_zeros(self.shape).index_add(0, first, share).index_add(0, second, -share)


@pdist_backward_op.kernel("CPU", "Meta", dispatches=True)
def pdist_backward_kernel(grad, self, p, pdist):
    check_wide("pdist_backward", self)
    return gradient_of_pairs(grad, self, p, pdist)


pdist_backward_op.derivative((("grad", "self", "pdist"), no_formula("_pdist_backward")))


@composite("pdist(Tensor self, float p=2) -> Tensor", autocast=CUDA_FP32, method=False, refuses="whole halves complex")
def pdist(self, p):
    """Returns the p-norms of the differences of all pairs of rows."""
    if len(self._shape) != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {len(self._shape)}D")
    if not self._dtype.is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return pdist_forward_op.functional(self.contiguous(), p)


# --- pairwise_distance, cosine_similarity ----------------------------------------------------------------------------


@composite(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
    method=False,
    refuses="bool",
)
def pairwise_distance(x1, x2, p, eps, keepdim):
    """Returns the p-norm of x1 - x2 + eps along the last dimension; eps keeps its slope finite at 0."""
    last = max(x1.dim(), x2.dim()) - 1
    return ops.aten.norm.ScalarOpt_dim(add_scalar_op.functional(x1 - x2, eps), p, [last], keepdim)


@composite(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    autocast=CUDA_FP32,
    method=False,
    refuses="whole complex",
)
def cosine_similarity(x1, x2, dim, eps):
    """Returns x1 · x2 / (|x1| |x2|) along `dim`, where no length counts for less than eps."""
    common = result_type(x1, x2)
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common.tensor_name}")
    shape = broadcast_shapes(tuple(x1.shape), tuple(x2.shape))
    vectors = [x1.to(common), x2.to(common)]
    if x1.shape != x2.shape:
        vectors = [x.expand(shape) for x in vectors]
    lengths = [linalg_vector_norm.op.functional(x, 2, [dim], True).clone() for x in vectors]
    with no_grad():
        least = ops.aten.scalar_tensor.default(eps, dtype=common, device=lengths[0].device)
        for length in lengths:
            clamp_min_tensor_op.inplace(length, least)  # type: ignore[misc]  # it has an in-place form
    one, other = (x / length for x, length in zip(vectors, lengths, strict=True))
    return (one * other).sum([dim])
