"""Sorting on a GPU, stably: elements become unsigned keys (`../sort.py`), which are put in order with their places.

- A line that fits into a block's shared memory is sorted there, beside others: a bitonic network of pairs (key, place),
  no two of which are equal, so that the sort is stable.
- A longer one is sorted digit by digit, the least significant first, eight bits each. Blocks count the digits of their
  tiles; a scan over counts, by digits and then by tiles, says where each tile's elements of a digit go; and the blocks
  move them there, a warp at a time, whose lanes know by votes how many before them have the same digit. As many lines
  as there are take part in each launch.

What comes out are values and places of the first `wanted` elements, or keys and places for another kernel
(`selection.py`). Operands are dense; an element of a line lies `inner` steps behind the one before. Read next:
`selection.py`.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like key_of, key_kind are put there by `Written`.

from __future__ import annotations

from collections.abc import Callable
from functools import cache as once
from typing import NamedTuple

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES
from redispatch.kernels.cpu.sort import key_of_double, key_of_float, key_of_long, key_of_small
from redispatch.kernels.engine.program import integral, steps

from ..compiler import CUDA as cuda
from ..elementwise import MOST
from ..runtime.structured import Task, Within
from ..templates import WARP, Written
from .scan import CUMSUM, Cut
from .scan import planned as planned_scan

DIGIT = 8  # bits
DIGITS = 1 << DIGIT
int32, int64, uint32, uint64 = np.int32, np.int64, np.uint32, np.uint64

# --- keys -------------------------------------------------------------------------------------------------------------


@integral
def key_of_byte(x):
    """uint8 and bool."""
    return uint32(x)


@integral
def key_of_signed_byte(x):
    return uint32(int64(x) + 128)


@integral
def key_of_short(x):
    return uint32(int64(x) + 32768)


@once
def key_of_narrow(infinity: int) -> Callable:
    """The key of a 16-bit float, of its bits; `infinity` are those of infinity. NaN is the largest; zeros are one."""

    @integral
    def key_of_bits(bits):
        size = int64(bits) & 0x7FFF
        turned = 0x8000 - size if int64(bits) >> 15 else 0x8000 + size
        return uint32(turned if size <= infinity else 0xFFFF)

    return key_of_bits


class Key(NamedTuple):
    """The keys of so many bits that elements of a dtype become, as they lie in memory."""

    function: Callable
    bits: int
    is_float: bool = False

    @property
    def kind(self) -> str:
        """The type in which a key lies in memory."""
        return "int64" if self.bits == 64 else "int32"

    def flip(self, descending: bool) -> int:
        """Returns the bits that turn the order of keys round by exclusive or."""
        return (-1 if self.bits == 64 else (1 << self.bits) - 1) if descending else 0

    def given(self) -> dict[str, object]:
        """The names by which kernels know it."""
        kind = np.uint64 if self.bits == 64 else np.uint32
        return {"key_of": self.function, "key_kind": kind, "highest": kind((1 << self.bits) - 1)}


KEYS = {
    "bool": Key(key_of_byte, 8),
    "uint8": Key(key_of_byte, 8),
    "int8": Key(key_of_signed_byte, 8),
    "int16": Key(key_of_short, 16),
    "int32": Key(key_of_small, 32),
    "int64": Key(key_of_long, 64),
    "float16": Key(key_of_narrow(0x7C00), 16, True),
    "bfloat16": Key(key_of_narrow(0x7F80), 16, True),
    "float32": Key(key_of_float, 32, True),
    "float64": Key(key_of_double, 64, True),
}


@integral
def start_of(line, size, inner):
    """The start of a line in a dense tensor."""
    outer = line // inner
    return outer * size * inner + (line - outer * inner)


# --- in a block -------------------------------------------------------------------------------------------------------


@integral
def in_order(keys, order, slots, span):
    """Sorts each `span` of keys[:slots] by (key, place), with order[:slots]: a bitonic network. All threads call it."""
    threads = int64(cuda.blockDim.x)
    run = int64(2)
    while run <= span:
        step = run >> 1
        while step > 0:
            cuda.syncthreads()
            i = int64(cuda.threadIdx.x)
            while i < slots >> 1:
                a = 2 * i - (i & (step - 1))
                b = a + step
                key_a, key_b, place_a, place_b = keys[a], keys[b], order[a], order[b]
                behind = key_a > key_b or (key_a == key_b and place_a > place_b)
                if behind == (a & run & (span - 1) == 0):
                    keys[a], keys[b] = key_b, key_a
                    order[a], order[b] = place_b, place_a
                i += threads
            step >>= 1
        run <<= 1
    cuda.syncthreads()


def sort_in_block(values, places, keys_out, order_out, x, lines, size, inner, wanted, flip, span, together):
    """`together` lines a block, with room for `span` elements each, a power of two. BY_KEYS: keys are wanted."""
    keys, order = cuda.shared.array(SLOTS, key_kind), cuda.shared.array(SLOTS, int32)
    thread, threads = int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    first, slots = int64(cuda.blockIdx.x) * together, span * together
    for i in steps(thread, slots, threads):  # neighbours in memory are neighbours of a warp, along a line or across
        own, j = (i // span, i % span) if inner == 1 else (i % together, i // together)
        key = ~key_kind(0)
        if first + own < lines and j < size:
            key = key_of(x[start_of(first + own, size, inner) + j * inner]) ^ key_kind(flip)
        keys[own * span + j] = key
        order[own * span + j] = int32(j)  # what is behind the end of a line stays there: its place is larger
    in_order(keys, order, slots, span)
    for i in steps(thread, slots, threads):
        own, j = (i // span, i % span) if inner == 1 else (i % together, i // together)
        line, slot = first + own, own * span + j
        if line < lines and j < wanted:
            if BY_KEYS:
                keys_out[line * size + j] = keys[slot]
                order_out[line * size + j] = order[slot]
            else:
                place = int64(order[slot])
                at = start_of(line, wanted, inner) + j * inner
                values[at] = x[start_of(line, size, inner) + place * inner]
                places[at] = place


# --- digit by digit ---------------------------------------------------------------------------------------------------


def count_digits(counts, keys, x, size, inner, tiles, shift, flip):
    """Counts each digit in each tile: counts[line, digit, tile]. FIRST: keys are made of `x`."""
    table = cuda.shared.array(DIGITS, int32)
    thread = int64(cuda.threadIdx.x)
    line = int64(cuda.blockIdx.x) // tiles
    tile = int64(cuda.blockIdx.x) - line * tiles
    base = start_of(line, size, inner) if FIRST else line * size
    for digit in steps(thread, DIGITS, THREADS):
        table[digit] = 0
    cuda.syncthreads()
    end = min(size, (tile + 1) * (THREADS * EACH))
    for j in steps(tile * (THREADS * EACH) + thread, end, THREADS):
        key = key_of(x[base + j * inner]) ^ key_kind(flip) if FIRST else key_kind(keys[base + j])
        cuda.atomic.add(table, int64(key >> key_kind(shift)) & (DIGITS - 1), 1)
    cuda.syncthreads()
    for digit in steps(thread, DIGITS, THREADS):
        counts[(line * DIGITS + digit) * tiles + tile] = table[digit]


@integral
def equals(digit, there):
    """The lanes of the warp that have this digit, as bits, of those that are `there`; all lanes take part."""
    peers = int64(uint32(cuda.ballot_sync(0xFFFFFFFF, there)))
    for bit in range(8):
        has = (digit >> bit) & 1
        votes = int64(uint32(cuda.ballot_sync(0xFFFFFFFF, has == 1)))
        peers &= votes if has == 1 else ~votes
    return peers


def move_by_digit(
    values, places, keys_out, order_out, keys, order, counts, x, size, inner, tiles, shift, flip, wanted,
):  # fmt: skip
    """Moves each element behind those of smaller digits, and those of its digit that stand before it. `counts` are
    running sums by now. LAST: values and places are written, as far as they are wanted."""
    table = cuda.shared.array(TABLES, int64)
    thread = int64(cuda.threadIdx.x)
    lane, warp = thread & 31, thread >> 5
    line = int64(cuda.blockIdx.x) // tiles
    tile = int64(cuda.blockIdx.x) - line * tiles
    base = start_of(line, size, inner) if FIRST else line * size
    for k in steps(thread, TABLES, THREADS):
        table[k] = 0
    cuda.syncthreads()
    begin, own = (tile * THREADS + warp * 32) * EACH + lane, warp * DIGITS
    for e in range(EACH):
        j, digit = begin + e * 32, int64(0)
        if j < size:
            key = key_of(x[base + j * inner]) ^ key_kind(flip) if FIRST else key_kind(keys[base + j])
            digit = int64(key >> key_kind(shift)) & (DIGITS - 1)
        peers = equals(digit, j < size)
        if j < size and peers & ((1 << lane) - 1) == 0:
            table[own + digit] += cuda.popc(peers)
        cuda.syncwarp()
    cuda.syncthreads()
    for digit in steps(thread, DIGITS, THREADS):
        at = int64(counts[(line * DIGITS + digit) * tiles + tile])
        for w in range(TABLES // DIGITS):
            at -= table[w * DIGITS + digit]
        for w in range(TABLES // DIGITS):
            count = table[w * DIGITS + digit]
            table[w * DIGITS + digit] = at
            at += count
    cuda.syncthreads()
    for e in range(EACH):
        j, digit, key = begin + e * 32, int64(0), key_kind(0)
        if j < size:
            key = key_of(x[base + j * inner]) ^ key_kind(flip) if FIRST else key_kind(keys[base + j])
            digit = int64(key >> key_kind(shift)) & (DIGITS - 1)
        peers = equals(digit, j < size)
        before = cuda.popc(peers & ((1 << lane) - 1))
        to = table[own + digit] + before
        cuda.syncwarp()
        if j < size and before == 0:
            table[own + digit] = to + cuda.popc(peers)
        cuda.syncwarp()
        if j < size:
            place = j if FIRST else int64(order[base + j])
            if LAST:
                if to < wanted:
                    at = start_of(line, wanted, inner) + to * inner
                    values[at] = x[start_of(line, size, inner) + place * inner]
                    places[at] = place
            else:
                keys_out[line * size + to] = key
                order_out[line * size + to] = int32(place)


BLOCK = Written(sort_in_block, ("values", "places", "keys_out", "order_out", "x"))
COUNT = Written(count_digits, ("counts", "keys", "x"))
MOVE = Written(move_by_digit, ("values", "places", "keys_out", "order_out", "keys", "order", "counts", "x"))

# --- launches ---------------------------------------------------------------------------------------------------------


class Room(NamedTuple):
    """The share of a block. slots: elements that it sorts in shared memory. few: with shorter lines it takes several,
    up to so many elements. each: elements of a thread in a tile. scan: how the counts are scanned."""

    slots: int = 2048
    few: int = 512
    threads: int = 256
    each: int = 8
    scan: Cut | None = None


ROOM = Room()
VALUES, PLACES, X = 0, 1, 2  # the tensors that a launch is told the addresses of, beside places in scratch memory


class Sorting(NamedTuple):
    """The launches, the bytes of scratch memory that they share, and where in them keys and places are afterwards."""

    tasks: list[Task]
    scratch: int = 0
    keys: Within = Within(0)
    order: Within = Within(0)


def planned(
    dtype: str, outer: int, size: int, inner: int, wanted: int, descending: bool, by_keys: bool = False
) -> Sorting:
    """The launches that sort `outer * inner` lines of `size` elements."""
    if size >= MOST:
        raise NotImplementedError(f"sort: {size} elements of a line are more than a CUDA kernel counts yet")
    return (
        in_block(dtype, outer * inner, size, inner, wanted, descending, by_keys)
        if size <= ROOM.slots
        else (by_digits(dtype, outer * inner, size, inner, wanted, descending, by_keys))
    )


def in_block(dtype: str, lines: int, size: int, inner: int, wanted: int, descending: bool, by_keys: bool) -> Sorting:
    key, room = KEYS[dtype], ROOM
    span = 1 << max(size - 1, 0).bit_length()
    together = min(max(1, min(room.few, room.slots) // span), lines)
    threads, blocks = min(room.threads, max(WARP, span * together // 2)), -(-lines // together)
    kinds, given = (dtype, "int64", key.kind, "int32", dtype), {"BY_KEYS": by_keys, "SLOTS": room.slots, **key.given()}
    launch = BLOCK.launch(DTYPES[dtype].compute, kinds, blocks, -(-threads // WARP) * WARP, **given)
    rest = (lines, size, inner, wanted, key.flip(descending), span, together)
    if not by_keys:
        return Sorting([Task(launch, (VALUES, PLACES, X, X, X), rest)])
    keys, order = Within(0), Within(aligned(lines * size * (8 if key.bits == 64 else 4)))
    return Sorting([Task(launch, (X, X, keys, order, X), rest)], order.offset + 4 * lines * size, keys, order)


def by_digits(dtype: str, lines: int, size: int, inner: int, wanted: int, descending: bool, by_keys: bool) -> Sorting:
    key, room, compute = KEYS[dtype], ROOM, DTYPES[dtype].compute
    tiles, passes, flip = -(-size // (room.threads * room.each)), key.bits // DIGIT, key.flip(descending)
    place = 0
    offsets = []
    for nbytes in (*[(8 if key.bits == 64 else 4) * lines * size, 4 * lines * size] * 2, 4 * lines * DIGITS * tiles):
        offsets.append(Within(place))
        place += aligned(nbytes)
    *halves, counts = offsets
    sums = planned_scan(CUMSUM, "int32", "int32", lines, DIGITS * tiles, 1, room.scan)
    given = {**key.given(), "THREADS": room.threads, "EACH": room.each, "DIGITS": DIGITS}
    size_of = (lines * tiles, room.threads)
    tasks = []
    for number in range(passes):
        first, last = number == 0, number == passes - 1 and not by_keys
        read, write = (halves[2:], halves[:2]) if number % 2 == 0 else (halves[:2], halves[2:])
        read_told = (X, X) if first else tuple(read)
        shift = number * DIGIT
        count = COUNT.launch(compute, ("int32", key.kind, dtype), *size_of, FIRST=first, **given)
        tasks.append(Task(count, (counts, read_told[0], X), (size, inner, tiles, shift, flip)))
        tasks += [Task(launch, (counts, counts, Within(place), counts), sums.rest) for launch in sums.launches]
        kinds = (dtype, "int64", key.kind, "int32", key.kind, "int32", "int32", dtype)
        tables = DIGITS * (room.threads // WARP)
        move = MOVE.launch(compute, kinds, *size_of, FIRST=first, LAST=last, TABLES=tables, **given)
        told = (*((VALUES, PLACES, X, X) if last else (X, X, *write)), *read_told, counts, X)
        tasks.append(Task(move, told, (size, inner, tiles, shift, flip, wanted)))
    keys, order = halves[:2] if passes % 2 else halves[2:]
    return Sorting(tasks, place + 8 * sums.carried, keys, order)


def aligned(nbytes: int) -> int:
    """Rounded up to whole vectors."""
    return -(-nbytes // 16) * 16
