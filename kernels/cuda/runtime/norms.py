"""Layer, group and batch norm on a device (kernels/cuda/norms.py). What is not here is made of other operators:
rms_norm, instance_norm, and the backwards of group and batch norm."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes, empty
from redispatch.kernels import DTYPES, Operand, is_contiguous
from redispatch.kernels.cuda import Launch, norms
from redispatch.kernels.cuda.elementwise import as_argument
from redispatch.kernels.cuda.norms import Rows
from redispatch.kernels.cuda.templates import THREADS, WARP, threads_for
from redispatch.kernels.ops import batch_norm, normalization

from .copies import copy_on_device, on_cuda
from .operands import operand
from .structured import ByWork, Task, dense, launched


def name_of(x: Tensor | None, other: Tensor) -> str:
    """The dtype of a tensor that may be missing, as kernels call it."""
    return (other if x is None else x)._dtype.name


def normalizing(
    given: Sequence[int], tensors: Sequence[Any], count: int, rows: Rows, eps: float, keeps_total: bool = False
) -> list[Task]:
    """A launch for so many rows of out, mean, rstd, total, x, weight and bias; `given` are their numbers in a task."""
    out, mean, rstd, total, x, weight, bias = tensors
    if not count or not rows.size:
        return []
    compute = DTYPES[x._dtype.name].compute
    kinds = [name_of(one, x) for one in (out, mean, rstd)]
    kinds += [compute if total is None else total._dtype.name, *(name_of(one, x) for one in (x, weight, bias))]
    kernel = norms.NORMALIZED.kernel(compute, kinds, KEEPS_TOTAL=keeps_total)
    launch = Launch(kernel, (count, 1, 1), (threads_for(rows.size), 1, 1))
    rest = (*rows, as_argument(eps, compute), int(weight is not None), int(bias is not None))
    return [Task(launch, tuple(given), rest)]


# --- layer norm -------------------------------------------------------------------------------------------------------


def layer_norm_work(
    outs: tuple[Tensor, ...], input: Tensor, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float
) -> list[Task]:
    size = math.prod(normalized_shape)
    count = input._shape.numel() // size if size else 0
    tensors = (*outs, None, input, weight, bias)
    return normalizing((0, 1, 2, 2, 3, 4, 5), tensors, count, norms.of_last(size), eps)


def layer_norm_backward_work(
    outs: tuple[Tensor | None, ...],
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> list[Task]:
    size, compute = math.prod(normalized_shape), DTYPES[input._dtype.name].compute
    rows = input._shape.numel() // size if size else 0
    read = [x._dtype.name for x in (grad_out, input, mean, rstd)]
    tasks = []
    if outs[0] is not None and rows:
        kernel = norms.BACKWARD.kernel(compute, (outs[0]._dtype.name, *read, name_of(weight, input)))
        launch = Launch(kernel, (rows, 1, 1), (threads_for(size), 1, 1))
        tasks.append(Task(launch, (0, 3, 4, 5, 6, 7), (size, int(weight is not None))))
    wanted = [int(out is not None) for out in outs[1:]]
    if any(wanted) and size:
        kernel = norms.BACKWARD_OF_FACTORS.kernel(compute, (*(name_of(out, input) for out in outs[1:]), *read))
        launch = Launch(kernel, (-(-size // WARP), 1, 1), (THREADS, 1, 1))
        tasks.append(Task(launch, (1, 2, 3, 4, 5, 6), (rows, size, *wanted)))
    return tasks


OPERATORS = (
    ByWork(normalization.native_layer_norm.op, layer_norm_work, dense=("input", "weight", "bias")),
    ByWork(
        normalization.native_layer_norm_backward_op,
        layer_norm_backward_work,
        dense=("grad_out", "input", "mean", "rstd", "weight"),
    ),
)

# --- group norm, batch norm -------------------------------------------------------------------------------------------


def vectors(*tensors: Tensor | None) -> list[Tensor | None]:
    return [None if x is None else dense(x) for x in tensors]


def normalize(
    result: Tensor,
    mean: Tensor,
    rstd: Tensor,
    total: Tensor | None,
    input: Tensor,
    factors: Sequence[Tensor | None],
    count: int,
    rows: Rows,
    eps: float,
) -> None:
    """Fills `result`, `mean`, `rstd` and, where it is there, `total`; the result may lie in any order."""
    whole = is_contiguous(result._shape, result._stride)
    out = result if whole else empty(result._shape, result._dtype, result._device)
    tensors = [out, mean, rstd, total, dense(input), *vectors(*factors)]
    launched(normalizing(range(7), tensors, count, rows, eps, total is not None), tensors)
    if not whole:
        copy_on_device(result, out)


def group_norm_kernel(
    input: Tensor, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`native_group_norm`"""
    result, mean, rstd = batch_norm.group_norm_results(input, weight, bias, N, C, group)
    if result._shape.numel():
        rows = norms.of_groups(group, C // group, HxW)
        normalize(result, mean, rstd, None, input, (weight, bias), N * group, rows, eps)
    return result, mean, rstd


def per_channel(x: Tensor | None, ndim: int) -> Operand | float:
    found = None if x is None else batch_norm.per_channel(operand(x), ndim)
    return 1.0 if found is None else found


def batch_norm_kernel(
    input: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`native_batch_norm`: (result, mean, 1 / standard deviation), and the running statistics are moved."""
    result, saved = batch_norm.batch_norm_results(input, weight, mean, var, training)
    if not result._shape.numel():
        return result, saved[0], saved[1]
    wide = dtypes.float64 if input._dtype is dtypes.float64 else dtypes.float32
    channels, ndim, name = input._shape[1], len(input._shape), wide.name
    if not training:
        rstd = empty((channels,), wide, input._device)
        on_cuda(batch_norm.RECIPROCAL_ROOT_OF).launch([operand(rstd)], [operand(var), float(eps)], name)
        shift = 0.0 if bias is None else per_channel(bias, ndim)
        given = [operand(input), *(per_channel(x, ndim) for x in (mean, rstd, weight)), shift]
        on_cuda(batch_norm.NORMALIZED).launch([operand(result)], given, name)
        return result, saved[0], saved[1]
    count = input._shape.numel() // channels
    total = empty((channels,), wide, input._device)
    rows = norms.of_channels(input._shape[0], channels, count // input._shape[0])
    normalize(result, saved[0], saved[1], total, input, (weight, bias), channels, rows, eps)
    if mean is not None:
        on_cuda(batch_norm.MOVED).launch([operand(mean)], [operand(mean), operand(saved[0]), float(momentum)], name)
    if var is not None:
        given = [operand(var), operand(total), float(max(count - 1, 0)), float(momentum)]
        on_cuda(batch_norm.MOVED_BY_TOTAL).launch([operand(var)], given, name)
    return result, saved[0], saved[1]


def without_statistics(input: Tensor, weight: Any, bias: Any, training: bool, momentum: float, eps: float) -> Any:
    """`_native_batch_norm_legit.no_stats`"""
    return batch_norm_kernel(input, weight, bias, None, None, training, momentum, eps)


def without_training(
    input: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, momentum: float, eps: float
) -> Any:
    """`_native_batch_norm_legit_no_training`"""
    return batch_norm_kernel(input, weight, bias, mean, var, False, momentum, eps)


KERNELS: dict[str, Callable[..., Any]] = {
    "native_group_norm": group_norm_kernel,
    "native_batch_norm": batch_norm_kernel,
    "_native_batch_norm_legit": batch_norm_kernel,
    "_native_batch_norm_legit.no_stats": without_statistics,
    "_native_batch_norm_legit_no_training": without_training,
}
