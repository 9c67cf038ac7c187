"""Shapes, strides and offsets: pure integer functions, no memory touched.

Why it exists: a kernel should be a plain loop. What turns a broadcast, transposed, stepped operand into a plain
loop is decided here once per (shapes, strides) and remembered, so that a repeated call is a dictionary look-up.

Sizes, strides and offsets are Python integers here, which do not overflow; `check_view` proves that they lie inside
the storage before they reach a kernel. Read next: `operand.py`, for memory that operands share.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

Ints = tuple[int, ...]

INT64_MAX = 2**63 - 1


def numel(shape: Iterable[int]) -> int:
    """The number of elements of a shape; 1 for a 0-d shape."""
    return prod(shape)


@lru_cache(4096)
def contiguous_strides(shape: Ints) -> Ints:
    """Row-major strides. A dimension of size 0 counts as 1, as PyTorch has it: (2, 0, 3) gives (3, 3, 1)."""
    strides, step = [], 1
    size: Any
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1) if type(size) is int or size.node.has_hint() else size.__sym_max__(1)
    return tuple(reversed(strides))


@lru_cache(4096)
def is_contiguous(shape: Ints, strides: Ints) -> bool:
    """Whether the elements lie in row-major order without gaps; the stride of a dimension of size 1 is free."""
    if 0 in shape:
        return True
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True


def is_channels_last(shape: Ints, strides: Ints) -> bool:
    """Whether images lie pixel by pixel, without gaps; the stride of a dimension of size 1 is free."""
    step = 1
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[dim] != 1 and strides[dim] != step:
            return False
        step *= max(shape[dim], 1)
    return True


@lru_cache(4096)
def is_dense(shape: Ints, strides: Ints) -> bool:
    """Whether the elements fill a gapless block, each cell once, in whatever order of dimensions."""
    if 0 in shape:
        return True
    step = 1
    dims = [(stride, size) for size, stride in zip(shape, strides, strict=True) if size != 1]
    for stride, size in sorted(dims, key=lambda dim: dim[0]):  # two that share a stride are not dense, however great
        if stride != step:
            return False
        step *= size
    return True


def broadcast_shapes(*shapes: Sequence[int]) -> Ints:
    """The shape that all `shapes` expand to. RuntimeError, worded as PyTorch words it, where there is none."""
    result: list[int] = list(shapes[0]) if shapes else []
    for shape in shapes[1:]:
        if len(shape) > len(result):
            result = [1] * (len(shape) - len(result)) + result
        lead = len(result) - len(shape)
        for d in range(len(result) - 1, lead - 1, -1):  # the last mismatch is the one that PyTorch names
            size = shape[d - lead]
            if result[d] == 1:
                result[d] = size
            elif size != 1 and size != result[d]:
                raise RuntimeError(
                    f"The size of tensor a ({result[d]}) must match the size of tensor b ({size}) "
                    f"at non-singleton dimension {d}"
                )
    return tuple(result)


@lru_cache(4096)
def broadcast_strides(shape: Ints, strides: Ints, to: Ints) -> Ints:
    """The strides with which an operand of `shape` is read as if it had the shape `to`: 0 where it repeats.

    Errors: RuntimeError where it has not as many elements: a loop would read beyond them.
    """
    lead = len(to) - len(shape)
    if lead < 0 or any(size not in (1, target) for size, target in zip(shape, to[lead:], strict=True)):
        raise RuntimeError(f"a tensor of shape {list(shape)} cannot be broadcast to the shape {list(to)}")
    widened = (
        0 if size == 1 and target != 1 else stride
        for size, stride, target in zip(shape, strides, to[lead:], strict=True)
    )
    return (0,) * lead + tuple(widened)


# --- the order of the loops ------------------------------------------------------------------------------------


def compare(shape: Ints, all_strides: Sequence[Ints], a: int, b: int) -> int:
    """Below 0 when dimension `a` should run inside (faster than) `b`, above 0 when outside, 0 when all is tied."""
    for strides in all_strides:
        if strides[a] == 0 or strides[b] == 0:
            continue  # a broadcast operand has no opinion
        if strides[a] != strides[b]:
            return -1 if strides[a] < strides[b] else 1
        if shape[a] > shape[b]:
            return 1
    return 0


def loop_order(shape: Ints, all_strides: Sequence[Ints]) -> list[int]:
    """The dimensions, innermost first. The first operand that has an opinion decides; row-major breaks ties.

    An insertion sort, because `compare` is not transitive where operands abstain; PyTorch's iterator gives the
    same order, which users see in the strides of results.
    """
    order = list(range(len(shape) - 1, -1, -1))
    for i in range(1, len(order)):
        moving = i
        for j in range(i - 1, -1, -1):
            verdict = compare(shape, all_strides, order[j], order[moving])
            if verdict > 0:
                order[j], order[moving] = order[moving], order[j]
                moving = j
            elif verdict < 0:
                break
    return order


@lru_cache(4096)
def output_strides(shape: Ints, inputs: tuple[tuple[Ints, Ints], ...]) -> Ints:
    """The strides of a fresh elementwise result of `shape`: dense, in the order in which the inputs lie.

    `inputs` holds a (shape, strides) pair for each. `x = randn(3, 2).t()` has strides (1, 2), and so has `x + x`.
    """
    rank = len(shape)  # is asked first: whether (2,) is (u0, 2) is no question of what u0 is
    alike = all(len(s) == rank and s == shape for s, _ in inputs)
    if alike and all(is_contiguous(s, t) for s, t in inputs):
        return contiguous_strides(shape)
    if rank == 4 and alike and all(is_channels_last(s, t) for s, t in inputs):
        return _channels_last_strides(shape)  # differs from what follows where a size is 1
    if inputs and alike and all(t == inputs[0][1] for _, t in inputs) and is_dense(*inputs[0]):
        return inputs[0][1]
    order = loop_order(shape, [broadcast_strides(s, t, shape) for s, t in inputs])
    if order == list(range(len(shape) - 1, -1, -1)):
        return contiguous_strides(shape)  # differs from what follows where a size is 0
    result, step = [0] * len(shape), 1
    for d in order:
        result[d] = step
        step *= shape[d]
    return tuple(result)


def _channels_last_strides(shape: Ints) -> Ints:
    _, channels, height, width = shape
    return height * width * channels, 1, width * channels, channels


def coalesce(sizes: Sequence[int], all_strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Merge neighbouring dimensions (outermost first) that every operand walks as one; drop those of size 1."""
    out_sizes: list[int] = []
    out_strides: list[list[int]] = [[] for _ in all_strides]
    for d, size in enumerate(sizes):
        if size == 1:
            continue
        steps = [strides[d] for strides in all_strides]
        if out_sizes and all(kept[-1] == size * step for kept, step in zip(out_strides, steps, strict=True)):
            out_sizes[-1] *= size
            for kept, step in zip(out_strides, steps, strict=True):
                kept[-1] = step
        else:
            out_sizes.append(size)
            for kept, step in zip(out_strides, steps, strict=True):
                kept.append(step)
    if not out_sizes:  # one element: a loop of length 1 keeps kernels free of a special case
        out_sizes = [1]
        for kept in out_strides:
            kept.append(1)
    return out_sizes, out_strides


class Plan(NamedTuple):
    """A walk through several operands together. `sizes` and `strides` are int64 arrays, outermost dimension first.

    `steps` is the innermost stride of each operand. A plan is `flat` when one loop with steps of 0 and 1 does it.
    """

    numel: int
    flat: bool
    steps: Ints
    sizes: np.ndarray  # [ndim]
    strides: np.ndarray  # [operand * ndim + dimension]


@lru_cache(16384)
def plan(shape: Ints, all_strides: tuple[Ints, ...]) -> Plan:
    """The cheapest common walk over operands of one `shape` (see `broadcast_strides`); the first one leads."""
    order = loop_order(shape, all_strides)[::-1]
    sizes, strides = coalesce([shape[d] for d in order], [[s[d] for d in order] for s in all_strides])
    steps = tuple(s[-1] for s in strides)
    flat = len(sizes) == 1 and all(step in (0, 1) for step in steps)
    flat_strides = np.array([step for s in strides for step in s], np.int64)
    return Plan(numel(shape), flat, steps, np.array(sizes, np.int64), flat_strides)


# --- views ------------------------------------------------------------------------------------------------------


def lies_in_order(shape: Ints, strides: Ints) -> bool:
    """Returns whether strides are row-major for all values of symbols; nothing is asked that needs a guard."""
    return all((one == other) is True for one, other in zip(strides, contiguous_strides(shape), strict=True))


@lru_cache(4096)
def infer_view_strides(shape: Ints, strides: Ints, new_shape: Ints) -> Ints | None:
    """The strides of `view(new_shape)` (no -1 in it, same number of elements), or None where it needs a copy."""
    if numel(shape) == 0:
        return strides if shape == new_shape else contiguous_strides(new_shape)
    if any(type(size) is not int for size in (*shape, *new_shape)) and lies_in_order(shape, strides):
        return contiguous_strides(new_shape)
    if not shape:
        return (1,) * len(new_shape)
    result: list[int] = []
    left = len(new_shape)
    for size, step in _stretches(shape, strides):
        filled = 1
        while left and (filled < size or new_shape[left - 1] == 1):
            left -= 1
            result.append(filled * step)
            filled *= new_shape[left]
        if filled != size:
            return None  # a new dimension would straddle two stretches
    return tuple(reversed(result))


def _stretches(shape: Ints, strides: Ints) -> list[tuple[int, int]]:
    """(elements, step) of the stretches of memory that each have one step, innermost first.

    A dimension of size 1 joins the stretch inside it; the last one lends its stride, as in PyTorch.
    """
    found: list[tuple[int, int]] = []
    size, step = 1, strides[-1]
    for d in range(len(shape) - 1, -1, -1):
        size *= shape[d]
        if d == 0 or (shape[d - 1] != 1 and strides[d - 1] != size * step):
            found.append((size, step))
            size, step = 1, strides[d - 1]
    return found


def last_element(shape: Sequence[int], strides: Sequence[int], offset: int) -> int:
    """The distance of the last element from the start of the storage; -1 where there is no element."""
    return -1 if 0 in shape else offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))


def check_view(shape: Sequence[int], strides: Sequence[int], offset: int, storage_elements: int) -> None:
    """RuntimeError unless every element of the view lies inside its storage and every number fits 63 bits."""
    if len(shape) != len(strides):
        raise RuntimeError(
            f"mismatch in length of strides and shape: shape {tuple(shape)} has {len(shape)} dimensions, "
            f"strides {tuple(strides)} have {len(strides)}"
        )
    if any(size < 0 for size in shape):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    if any(stride < 0 for stride in strides):
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)}"
        )
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if offset > INT64_MAX or any(number > INT64_MAX for number in (*shape, *strides)) or numel(shape) > INT64_MAX:
        raise RuntimeError("Storage size calculation overflowed with sizes=" + str(list(shape)))
    last = last_element(shape, strides, offset)
    if last > INT64_MAX:
        raise RuntimeError("Storage size calculation overflowed with sizes=" + str(list(shape)))
    if last >= storage_elements:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset} require "
            f"{last + 1} elements, which are out of bounds for storage of {storage_elements} elements"
        )
