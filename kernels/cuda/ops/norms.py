"""Normalisation on a GPU: layer, group and batch norm, forward, and layer norm's backward.

All three subtract a mean and divide by a deviation, over the elements of a "row": the last dimensions, a group of
channels, or a channel of the whole batch. A row is a block's. It adds up the elements, then the squares of their
differences from the mean: one pass with sums of squares would cancel. Short rows are read once. The gradients of weight
and bias are sums over rows: a block has 32 neighbouring columns.

What is not here is made of other operators: rms_norm, instance_norm, and the backwards of group and batch norm.
Read next: windows.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined, assignment"
# Names like load_x, store_out, zero are put there by `Written`.

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor import Tensor, dtypes, empty
from redispatch.kernels import DTYPES, Operand, is_contiguous
from redispatch.kernels.engine.program import steps
from redispatch.kernels.ops import batch_norm, normalization

from ..compiler import CUDA as cuda
from ..elementwise import as_argument
from ..runtime.copies import copy_on_device, on_cuda
from ..runtime.operands import operand
from ..runtime.structured import Task, as_on_cpu, dense, launched, work_of
from ..templates import THREADS, WARP, Written, block_total, kept_by_thread, part, strip_total, threads_for

int64 = np.int64


class Rows(NamedTuple):
    """The places of the elements of rows in a dense tensor, and the weight that belongs to each.

    Element j of row r lies at `r * step + (j // inner) * stride + j % inner`, and has the weight number
    `(r % groups) * channels + j // run`.
    """

    size: int
    step: int
    inner: int
    stride: int
    groups: int
    channels: int
    run: int


def of_last(size: int) -> Rows:
    """Layer norm: rows of `size`, with a weight for each of their elements."""
    return Rows(size, size, size, 0, 1, 0, 1)


def of_groups(groups: int, channels: int, image: int) -> Rows:
    """Group norm: so many groups of so many channels."""
    size = channels * image
    return Rows(size, size, size, 0, groups, channels, image)


def of_channels(batch: int, channels: int, image: int) -> Rows:
    """Batch norm: a row is a channel of all images."""
    return Rows(batch * image, image, image, channels * image, channels, 1, batch * image)


@part
def place_of(j, base, inner, stride):
    """The place of element j of a row. PIECES: whether a row lies in several, which costs a division."""
    return base + (j // inner * stride + j % inner if PIECES else j)


@part
def weighed(value, j, weight, bias, first, run, weighted, shifted):
    """value * weight + bias of element j of a row. RUNS: whether several elements have one weight."""
    number = first + (j // run if RUNS else j)
    if weighted == 1:
        value *= load_weight(weight[number])
    if shifted == 1:
        value += load_bias(bias[number])
    return value


def normalized_rows(
    out, mean, rstd, total, x, weight, bias, size, step, inner, stride, groups, channels, run, eps, weighted, shifted
):  # fmt: skip
    """out = (x - mean) rstd weight + bias, with rstd = 1 / sqrt(total / size + eps); `total` is that of the squares."""
    parts = cuda.shared.array(THREADS, compute)
    thread, threads = int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    row = int64(cuda.blockIdx.x)
    base, first = row * step, row % groups * channels
    elements, squares = zero, zero
    for j in steps(thread, size, threads):
        elements += load_x(x[place_of(j, base, inner, stride)])
    middle = block_total(elements, parts) / compute(size)
    for j in steps(thread, size, threads):
        difference = load_x(x[place_of(j, base, inner, stride)]) - middle
        squares += difference * difference
    squares = block_total(squares, parts)
    scale = one / math.sqrt(squares / compute(size) + number(eps))
    if thread == 0:
        mean[row] = store_mean(middle)
        rstd[row] = store_rstd(scale)
        if KEEPS_TOTAL:
            total[row] = store_total(squares)
    for j in steps(thread, size, threads):
        at = place_of(j, base, inner, stride)
        value = (load_x(x[at]) - middle) * scale
        out[at] = store_out(weighed(value, j, weight, bias, first, run, weighted, shifted))


def normalized_short_rows(
    out, mean, rstd, total, x, weight, bias, size, step, inner, stride, groups, channels, run, eps, weighted, shifted
):  # fmt: skip
    """The same, of rows in one piece: a thread holds its KEPT elements in registers, and reads each but once."""
    parts = cuda.shared.array(THREADS, compute)
    held = cuda.local.array(KEPT, compute)
    thread, threads = int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    row = int64(cuda.blockIdx.x)
    base, first = row * step, row % groups * channels
    elements, squares = zero, zero
    for k in range(KEPT):
        j = thread + k * threads
        held[k] = load_x(x[base + j]) if j < size else zero
        elements += held[k]
    middle = block_total(elements, parts) / compute(size)
    for k in range(KEPT):
        held[k] -= middle
        if thread + k * threads < size:
            squares += held[k] * held[k]
    squares = block_total(squares, parts)
    scale = one / math.sqrt(squares / compute(size) + number(eps))
    if thread == 0:
        mean[row] = store_mean(middle)
        rstd[row] = store_rstd(scale)
        if KEEPS_TOTAL:
            total[row] = store_total(squares)
    for k in range(KEPT):
        j = thread + k * threads
        if j < size:
            out[base + j] = store_out(weighed(held[k] * scale, j, weight, bias, first, run, weighted, shifted))


def layer_norm_backward_rows(out, grad, x, mean, rstd, weight, size, weighted):
    """With y = (x - mean) rstd, of which g is the gradient: rstd (g - mean(g) - y mean(g y))."""
    parts = cuda.shared.array(THREADS, compute)
    thread, threads = int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    row = int64(cuda.blockIdx.x)
    base = row * size
    middle, scale = load_mean(mean[row]), load_rstd(rstd[row])
    total, slope = zero, zero
    for j in steps(thread, size, threads):
        g = load_grad(grad[base + j])
        if weighted == 1:
            g *= load_weight(weight[j])
        total += g
        slope += g * (load_x(x[base + j]) - middle) * scale
    total = block_total(total, parts) / compute(size)
    slope = block_total(slope, parts) / compute(size)
    for j in steps(thread, size, threads):
        g = load_grad(grad[base + j])
        if weighted == 1:
            g *= load_weight(weight[j])
        out[base + j] = store_out(scale * (g - total - (load_x(x[base + j]) - middle) * scale * slope))


def layer_norm_backward_columns(of_weight, of_bias, grad, x, mean, rstd, rows, size, wants_weight, wants_bias):
    """The sums over rows of grad y, and of grad."""
    parts = cuda.shared.array(THREADS, compute)
    thread, each = int64(cuda.threadIdx.x), int64(cuda.blockDim.x) >> 5
    column = int64(cuda.blockIdx.x) * 32 + (thread & 31)
    scales, shifts = zero, zero
    for row in steps(thread >> 5 if column < size else rows, rows, each):
        g = load_grad(grad[row * size + column])
        scales += g * (load_x(x[row * size + column]) - load_mean(mean[row])) * load_rstd(rstd[row])
        shifts += g
    scales = strip_total(scales, parts)
    shifts = strip_total(shifts, parts)
    if thread < 32 and column < size:
        if wants_weight == 1:
            of_weight[column] = store_of_weight(scales)
        if wants_bias == 1:
            of_bias[column] = store_of_bias(shifts)


NORMALIZED, NORMALIZED_SHORT = (
    Written(function, ("out", "mean", "rstd", "total", "x", "weight", "bias"))
    for function in (normalized_rows, normalized_short_rows)
)
BACKWARD = Written(layer_norm_backward_rows, ("out", "grad", "x", "mean", "rstd", "weight"))
BACKWARD_OF_FACTORS = Written(layer_norm_backward_columns, ("of_weight", "of_bias", "grad", "x", "mean", "rstd"))


def name_of(x: Tensor | None, other: Tensor) -> str:
    """The dtype of a tensor that may be missing, as kernels call it."""
    return (other if x is None else x)._dtype.name


def normalizing(
    places: Sequence[int], tensors: Sequence[Any], count: int, rows: Rows, eps: float, keeps_total: bool = False
) -> list[Task]:
    """A launch for so many rows of out, mean, rstd, total, x, weight and bias; `places` are their numbers in a task."""
    out, mean, rstd, total, x, weight, bias = tensors
    if not count or not rows.size:
        return []
    compute = DTYPES[x._dtype.name].compute
    kinds = [name_of(one, x) for one in (out, mean, rstd)]
    kinds += [compute if total is None else total._dtype.name, *(name_of(one, x) for one in (x, weight, bias))]
    given: dict[str, Any] = {"KEEPS_TOTAL": keeps_total, "RUNS": rows.run > 1}
    held = kept_by_thread(rows.size) if rows.inner == rows.size else 0
    written, version = (NORMALIZED_SHORT, {"KEPT": held}) if held else (NORMALIZED, {"PIECES": rows.inner < rows.size})
    launch = written.launch(compute, kinds, count, threads_for(rows.size), **given, **version)
    rest = (*rows, as_argument(eps, compute), int(weight is not None), int(bias is not None))
    return [Task(launch, tuple(places), rest)]


# --- layer norm -------------------------------------------------------------------------------------------------------


@work_of(normalization.native_layer_norm.op, dense=("input", "weight", "bias"))
def layer_norm_work(
    outs: tuple[Tensor, ...], input: Tensor, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float
) -> list[Task]:
    size = math.prod(normalized_shape)
    count = input._shape.numel() // size if size else 0
    tensors = (*outs, None, input, weight, bias)
    return normalizing((0, 1, 2, 2, 3, 4, 5), tensors, count, of_last(size), eps)


@work_of(normalization.native_layer_norm_backward_op, dense=("grad_out", "input", "mean", "rstd", "weight"))
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
        kinds = outs[0]._dtype.name, *read, name_of(weight, input)
        launch = BACKWARD.launch(compute, kinds, rows, threads_for(size))
        tasks.append(Task(launch, (0, 3, 4, 5, 6, 7), (size, int(weight is not None))))
    wanted = [int(out is not None) for out in outs[1:]]
    if any(wanted) and size:
        kinds = *(name_of(out, input) for out in outs[1:]), *read
        launch = BACKWARD_OF_FACTORS.launch(compute, kinds, -(-size // WARP))
        tasks.append(Task(launch, (1, 2, 3, 4, 5, 6), (rows, size, *wanted)))
    return tasks


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


def fill_group_norm(
    result: Tensor, mean: Tensor, rstd: Tensor, input: Tensor, weight: Any, bias: Any, N: int, C: int, HxW: int,
    group: int, eps: float,
) -> None:  # fmt: skip
    rows = of_groups(group, C // group, HxW)
    normalize(result, mean, rstd, None, input, (weight, bias), N * group, rows, eps)


def per_channel(x: Tensor | None, ndim: int) -> Operand | float:
    found = None if x is None else batch_norm.per_channel(operand(x), ndim)
    return 1.0 if found is None else found


def fill_batch_norm(
    result: Tensor, mean: Tensor, rstd: Tensor, input: Tensor, weight: Any, bias: Any, running_mean: Any,
    running_var: Any, training: bool, momentum: float, eps: float,
) -> None:  # fmt: skip
    """Moves the running statistics, too."""
    wide = dtypes.float64 if input._dtype is dtypes.float64 else dtypes.float32
    channels, ndim, name = input._shape[1], len(input._shape), wide.name
    if not training:
        root = empty((channels,), wide, input._device)
        on_cuda(batch_norm.RECIPROCAL_ROOT_OF).launch([operand(root)], [operand(running_var), float(eps)], name)
        shift = 0.0 if bias is None else per_channel(bias, ndim)
        given = [operand(input), *(per_channel(x, ndim) for x in (running_mean, root, weight)), shift]
        on_cuda(batch_norm.NORMALIZED).launch([operand(result)], given, name)
        return
    count = input._shape.numel() // channels
    total = empty((channels,), wide, input._device)
    rows = of_channels(input._shape[0], channels, count // input._shape[0])
    normalize(result, mean, rstd, total, input, (weight, bias), channels, rows, eps)
    if running_mean is not None:
        moved = operand(running_mean)
        on_cuda(batch_norm.MOVED).launch([moved], [moved, operand(mean), float(momentum)], name)
    if running_var is not None:
        moved = operand(running_var)
        given = [moved, operand(total), float(max(count - 1, 0)), float(momentum)]
        on_cuda(batch_norm.MOVED_BY_TOTAL).launch([moved], given, name)


batch_norm.ELSEWHERE["cuda"] = batch_norm.Fills(fill_batch_norm, fill_group_norm)
as_on_cpu(
    "norms",
    batch_norm.native_group_norm.op.functional,
    batch_norm.native_batch_norm.op.functional,
    batch_norm.batch_norm_legit_op.functional,
    batch_norm.batch_norm_no_stats_op.functional,
    batch_norm.batch_norm_no_training_op.functional,
)
