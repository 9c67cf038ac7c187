"""Choosing of a line by rank, on a GPU: the first few in order, the middle one, the most frequent one.

Of a line that `sort.py` has put in order, by keys, `rank_in_order` takes one element, and `longest_runs` the key that
occurs most often. A long line need not be put in order for its first elements: a block per line finds the key of the
last one digit by digit, the most significant first (`first_of_line`), and then takes what is below, and as many equal
ones as are wanted still, in the order of the line.

Each operator has a function that says by which launches lines are chosen from; its checks, and what the results look
like, are those of kernels/ops/sorting.py. Read next: compaction.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like key_of, key_kind are put there by `Written`.

from __future__ import annotations

from collections.abc import Callable
from functools import cache as once
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, dtypes, wrap_dim
from redispatch.dispatch.tensor.operand import DTYPES
from redispatch.kernels import is_dense
from redispatch.kernels.engine.program import integral
from redispatch.kernels.ops import sorting
from redispatch.kernels.ops.extremes import ELSEWHERE

from ..compiler import CUDA as cuda
from ..launch import Launch
from ..runtime.copies import laid
from ..runtime.structured import Task, Within, around, as_on_cpu, composite_of, filled_anyhow, launched
from ..templates import Written
from .argreduce import find_extremes
from .scan import add, keep_number, kept_number, number, scanning
from .sort import (
    DIGIT,
    DIGITS,
    KEYS,
    PLACES,
    ROOM,
    VALUES,
    Key,
    Sorting,
    X,
    aligned,
    in_order,
    start_of,
)
from .sort import planned as planned_sort

int32, int64 = np.int32, np.int64


@once
def first_at_least(kind: type) -> Callable:
    """Finds the first of keys[base : base + size], which are in order, that is not below a key."""

    @integral
    def search(keys, base, size, key):
        low, high = int64(0), size
        while low < high:
            middle = (low + high) >> 1
            if kind(keys[base + middle]) < key:
                low = middle + 1
            else:
                high = middle
        return low

    return search


# --- of lines in order ------------------------------------------------------------------------------------------------


def rank_in_order(values, places, keys, order, x, lines, size, inner, rank, skip_nan):
    """The element at `rank`, and where the first equal to it stands; the middle one for -1. A thread for each line.

    The middle of a line with NaNs, which are at its end, is NaN, or, to `skip_nan`, the middle of the others.
    """
    line = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if line < lines:
        wanted, base = rank, line * size
        if rank < 0:
            numbers = search(keys, base, size, highest) if IS_FLOAT else size
            wanted = (numbers - 1) >> 1 if numbers > 0 and (skip_nan == 1 or numbers == size) else size - 1
        place = int64(order[base + search(keys, base, wanted, key_kind(keys[base + wanted]))])
        values[line] = x[start_of(line, size, inner) + place * inner]
        places[line] = place


def longest_runs(values, places, bests, keys, order, x, size, inner, parts, piece):
    """The most frequent element of a line, the least of several, and where the last of them stands.

    A block for each piece of a line looks at the ends of runs of equal keys that are in it. The best is a number: its
    count, and below it how far it is from the end of the line in order. Where there are several pieces, `bests` are
    theirs. Each NaN stands alone.
    """
    best = cuda.shared.array(THREADS, int64)
    thread = int64(cuda.threadIdx.x)
    line = int64(cuda.blockIdx.x) // parts
    part = int64(cuda.blockIdx.x) - line * parts
    base, most = line * size, int64(0)
    j = part * piece + thread
    while j < min(size, (part + 1) * piece):
        key = key_kind(keys[base + j])
        alone = IS_FLOAT and key == highest
        if alone or j + 1 == size or key_kind(keys[base + j + 1]) != key:
            count = int64(1) if alone else j + 1 - search(keys, base, j, key)
            most = max(most, (count << 32) | (size - 1 - j))
        j += THREADS
    best[thread] = most
    step = THREADS >> 1
    while step > 0:
        cuda.syncthreads()
        if thread < step:
            best[thread] = max(best[thread], best[thread + step])
        step >>= 1
    if thread == 0:
        if parts > 1:
            bests[line * parts + part] = best[0]
        else:
            place = int64(order[base + size - 1 - (best[0] & 0xFFFFFFFF)])
            values[line] = x[start_of(line, size, inner) + place * inner]
            places[line] = place


def longest_of_pieces(values, places, bests, order, x, lines, size, inner, parts):
    """The best of those that `longest_runs` left. A thread for each line."""
    line = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if line < lines:
        best = int64(0)
        for part in range(parts):
            best = max(best, bests[line * parts + part])
        place = int64(order[line * size + size - 1 - (best & 0xFFFFFFFF)])
        values[line] = x[start_of(line, size, inner) + place * inner]
        places[line] = place


# --- of lines that are not --------------------------------------------------------------------------------------------


def first_of_line(values, places, x, size, inner, wanted, flip, sorts, rank, skip_nan):
    """The first `wanted` elements in the order of keys, of equal ones those that stand first: in that order if it
    `sorts`, else in that of the line. ONE: the one at `rank` alone, as `rank_in_order` has it. A block per line."""
    # One function: each step needs what the last one found, in shared memory that is declared once
    table, sums, standing = cuda.shared.array(DIGITS, int32), cuda.shared.array(WARPS, int64), 0
    keys, order = cuda.shared.array(SLOTS, key_kind), cuda.shared.array(SLOTS, int32)
    chosen = cuda.shared.array(2, int64)
    thread, line = int64(cuda.threadIdx.x), int64(cuda.blockIdx.x)
    base, left = start_of(line, size, inner), wanted - 1
    if ONE:
        left = rank
        if rank < 0:
            numbers, j = int64(0), thread
            while j < size:
                numbers += int64(not IS_FLOAT or key_of(x[base + j * inner]) != highest)
                j += THREADS
            _, numbers = scanned(numbers, sums, standing)
            left = (numbers - 1) >> 1 if numbers > 0 and (skip_nan == 1 or numbers == size) else size - 1
    found, shift = key_kind(0), int64(BITS - 8)
    while shift >= 0:
        if thread < DIGITS:
            table[thread] = 0
        cuda.syncthreads()
        j = thread
        while j < size:
            key = key_of(x[base + j * inner]) ^ key_kind(flip)
            if shift == BITS - 8 or key >> key_kind(shift + 8) == found >> key_kind(shift + 8):
                cuda.atomic.add(table, int64(key >> key_kind(shift)) & (DIGITS - 1), 1)
            j += THREADS
        cuda.syncthreads()
        count = int64(table[thread]) if thread < DIGITS else int64(0)
        before, _ = scanned(count, sums, standing)
        if before <= left and left < before + count:
            chosen[0] = thread
            chosen[1] = left - before
        cuda.syncthreads()
        found |= key_kind(chosen[0]) << key_kind(shift)
        left = chosen[1]
        shift -= 8
    if ONE:
        cuda.syncthreads()
        if thread == 0:
            chosen[0] = size
        cuda.syncthreads()
        j = thread
        while j < size:
            if key_of(x[base + j * inner]) ^ key_kind(flip) == found:
                cuda.atomic.min(chosen, 0, j)
                j = size
            j += THREADS
        cuda.syncthreads()
        if thread == 0:
            values[line] = x[base + chosen[0] * inner]
            places[line] = chosen[0]
        return
    smaller, same = int64(0), int64(0)  # how many were met that are below `found`, and equal to it
    for tile in range((size + THREADS - 1) // THREADS):
        j = tile * THREADS + thread
        flag, key = int64(0), key_kind(0)
        if j < size:
            key = key_of(x[base + j * inner]) ^ key_kind(flip)
            flag = int64(1) if key < found else (int64(key == found) << 32)
        before, total = scanned(flag, sums, standing)
        mine = same + (before >> 32)
        if flag == 1 or (flag > 1 and mine <= left):
            to = smaller + (before & 0xFFFFFFFF) + min(mine, left + 1)
            if sorts == 1:
                keys[to] = key
                order[to] = int32(j)
            else:
                at = start_of(line, wanted, inner) + to * inner
                values[at] = x[base + j * inner]
                places[at] = j
        smaller += total & 0xFFFFFFFF
        same += total >> 32
    if sorts == 1:
        span = int64(1)
        while span < wanted:
            span <<= 1
        j = wanted + thread
        while j < span:
            keys[j] = ~key_kind(0)
            order[j] = int32(2147483647)
            j += THREADS
        in_order(keys, order, span, span)
        j = thread
        while j < wanted:
            at, place = start_of(line, wanted, inner) + j * inner, int64(order[j])
            values[at] = x[base + place * inner]
            places[at] = place
            j += THREADS


RANK = Written(rank_in_order, ("values", "places", "keys", "order", "x"))
RUNS = Written(longest_runs, ("values", "places", "bests", "keys", "order", "x"))
OF_PIECES = Written(longest_of_pieces, ("values", "places", "bests", "order", "x"))
FIRST = Written(first_of_line, ("values", "places", "x"), at_once=512)

# --- launches ---------------------------------------------------------------------------------------------------------

MANY = 8  # lines from which on each has a block to itself, where it would else be sorted by all of them
LONG = 1 << 16  # a shorter line has one in any case


def takes_a_block(lines: int, size: int) -> bool:
    """Whether a block per line finds ranks sooner than all blocks sort the lines."""
    return size > ROOM.slots and (lines >= MANY or size < LONG)


def first_few(dtype: str, outer: int, size: int, inner: int, wanted: int, largest: bool, sorts: bool) -> Sorting:
    """The launches that give the first `wanted` elements of each line in the order of values."""
    lines = outer * inner
    if wanted > ROOM.slots and sorts or not takes_a_block(lines, size):
        return planned_sort(dtype, outer, size, inner, wanted, largest)
    rest = (size, inner, wanted, KEYS[dtype].flip(largest), int(sorts), 0, 0)
    return Sorting([Task(selecting(dtype, lines, one=False), (VALUES, PLACES, X), rest)])


def of_rank(dtype: str, outer: int, size: int, inner: int, rank: int, skip_nan: bool) -> Sorting:
    """The launches that give the element at `rank` of each line, the middle one for -1."""
    lines, key = outer * inner, KEYS[dtype]
    if takes_a_block(lines, size):
        rest = (size, inner, 1, 0, 0, rank, int(skip_nan))
        return Sorting([Task(selecting(dtype, lines, one=True), (VALUES, PLACES, X), rest)])
    done = planned_sort(dtype, outer, size, inner, size, False, by_keys=True)
    kinds, threads = (dtype, "int64", key.kind, "int32", dtype), ROOM.threads
    given = {"THREADS": threads, **searching(key)}
    launch = RANK.launch(DTYPES[dtype].compute, kinds, -(-lines // threads), threads, **given)
    told = (VALUES, PLACES, done.keys, done.order, X)
    return done._replace(tasks=[*done.tasks, Task(launch, told, (lines, size, inner, rank, int(skip_nan)))])


def most_frequent(dtype: str, outer: int, size: int, inner: int) -> Sorting:
    """The launches that give the most frequent element of each line."""
    lines, key, threads = outer * inner, KEYS[dtype], ROOM.threads
    done = planned_sort(dtype, outer, size, inner, size, False, by_keys=True)
    each = threads * ROOM.each
    parts = -(-size // each) if lines < ROOM.few else 1
    piece = each if parts > 1 else size
    bests = Within(aligned(done.scratch))
    given = {"THREADS": threads, **searching(key)}
    kinds = (dtype, "int64", "int64", key.kind, "int32", dtype)
    launch = RUNS.launch(DTYPES[dtype].compute, kinds, lines * parts, threads, **given)
    told = (VALUES, PLACES, bests, done.keys, done.order, X)
    tasks = [*done.tasks, Task(launch, told, (size, inner, parts, piece))]
    if parts > 1:
        fewer, blocks = (*kinds[:3], *kinds[4:]), -(-lines // threads)
        launch = OF_PIECES.launch(DTYPES[dtype].compute, fewer, blocks, threads, THREADS=threads)
        tasks.append(Task(launch, (*told[:3], *told[4:]), (lines, size, inner, parts)))
    return done._replace(tasks=tasks, scratch=bests.offset + 8 * lines * parts)


def searching(key: Key) -> dict[str, object]:
    given = key.given()
    kind = given["key_kind"]
    assert isinstance(kind, type)
    return {"search": first_at_least(kind), "IS_FLOAT": key.is_float, **given}


def selecting(dtype: str, lines: int, one: bool) -> Launch:
    """`first_of_line` with a block per line: a thread at least for each digit."""
    key = KEYS[dtype]
    threads = 256 if key.bits == 64 else 512  # 64-bit keys take twice the registers
    assert threads >= 1 << DIGIT
    return FIRST.launch(
        DTYPES[dtype].compute,
        (dtype, "int64", dtype),
        lines,
        threads,
        scanned=scanning(add, number("int64", 0), keep_number, kept_number, threads),
        THREADS=threads,
        WARPS=threads // 32,
        SLOTS=ROOM.slots,
        BITS=key.bits,
        DIGITS=DIGITS,
        ONE=one,
        IS_FLOAT=key.is_float,
        **key.given(),
    )


# --- operators --------------------------------------------------------------------------------------------------------

# By operator: the launches for a dtype, for how many elements lie before, along and behind a dimension, and for the
# arguments behind `self`.
OPERATORS: dict[Any, Callable[..., Sorting]] = {
    sorting.sort_op: lambda dtype, outer, size, inner, dim, descending: planned_sort(
        dtype, outer, size, inner, size, descending
    ),
    sorting.sort_stable_op: lambda dtype, outer, size, inner, stable, dim, descending: planned_sort(
        dtype, outer, size, inner, size, descending
    ),
    sorting.topk.op: lambda dtype, outer, size, inner, k, dim, largest, sorts: first_few(
        dtype, outer, size, inner, k, largest, sorts
    ),
    sorting.kthvalue.op: lambda dtype, outer, size, inner, k, *rest: of_rank(dtype, outer, size, inner, k - 1, False),
    sorting.median.ops[1]: lambda dtype, outer, size, inner, *rest: of_rank(dtype, outer, size, inner, -1, False),
    sorting.nanmedian.ops[1]: lambda dtype, outer, size, inner, *rest: of_rank(dtype, outer, size, inner, -1, True),
    sorting.mode.op: lambda dtype, outer, size, inner, *rest: most_frequent(dtype, outer, size, inner),
}


def choose(op: Any, args: tuple[Any, ...], values: Tensor, indices: Tensor) -> None:
    """Fills both results, which may lie anyhow."""
    if op not in OPERATORS:
        find_extremes(op, args, values, indices)
        return
    x = args[0]
    if not values._shape.numel():
        return
    dim = wrap_dim(args[op.names.index("dim")], len(x._shape))

    def tasks(x: Tensor, lines: tuple[int, int, int]) -> list[Task]:
        plan = OPERATORS[op](x._dtype.name, *lines, *args[1:])
        return [task._replace(scratch=plan.scratch) for task in plan.tasks]

    keeps_order = values._shape == x._shape and values._stride == indices._stride and is_dense(x._shape, values._stride)
    if not keeps_order:
        filled_anyhow((values, indices), x, lambda x, *_: tasks(x, around(x._shape, dim)))
        return
    x = laid(x, values._stride)  # the results of a sort lie as what is sorted, which may be turned
    size = x._shape[dim] if x._shape else 1
    inner = x._stride[dim] if size > 1 else 1
    launched(tasks(x, (x._shape.numel() // (size * inner), size, inner)), [values, indices, x])


def middle_of_all(skip_nan: bool) -> Callable[..., Tensor]:
    """The middle one of all elements."""

    def kernel(self: Any) -> Any:
        if not self._shape.numel():
            return self.new_full([], sorting.of_none(self._dtype), dtype=dtypes.float32).to(self._dtype)
        op = sorting.nanmedian.ops[1] if skip_nan else sorting.median.ops[1]
        return op.functional(self.reshape([-1]), 0, False)[0]

    return kernel


for _name, _skip_nan in (("median", False), ("nanmedian", True)):
    composite_of(_name)(middle_of_all(_skip_nan))
for _op in OPERATORS:
    as_on_cpu(f"on the device: {_op.base_name}", _op.functional, _op.out)
ELSEWHERE["cuda"] = choose
