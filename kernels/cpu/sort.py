"""Sorting along one dimension, and selecting by rank: sort, topk, kthvalue, median.

Elements are compared as unsigned integers: an order-preserving map turns each into a key (a float's bits, with the sign
turned round; one NaN above all, one zero), and inverting the keys' bits turns the order round. On keys

- a short line is sorted by insertion, a longer one digit by digit, the least significant first (radix sort): each pass
  moves every key, and its position, behind those with a smaller digit; passes in which all digits are equal are left
  out. That keeps equal elements in their order, so every sort is stable, and takes the same time for any data;
- an element of a given rank is found digit by digit, the most significant first: a count of digits says which digit it
  has, and only elements that begin so are looked at again.

What lies in the line is found again by its position, so values keep their very bits. Read next: `scan.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES, Operand

from ..engine.elementwise import offset_of
from ..engine.pool import nothing_to_do, ready
from ..engine.primitives import bits_of_double, bits_of_float
from ..engine.program import integral
from ..engine.template import Template, load_x
from .reduce import line_walk

FEW = 16  # so many of the best elements are kept in order while a line is walked
SHORT = 40  # lines up to this length are sorted by insertion, which then takes less time than counting digits
uint32, uint64, int64, float32, float64 = np.uint32, np.uint64, np.int64, np.float32, np.float64

# --- keys ------------------------------------------------------------------------------------------------------------


@integral
def key_of_float(x):
    """The order of float32 as that of integers: NaN is the largest, and the two zeros are one."""
    bits = uint32(bits_of_float(x + float32(0)))
    turned = bits ^ (uint32(0xFFFFFFFF) if bits >> uint32(31) else uint32(0x80000000))
    return uint32(turned) if x == x else uint32(0xFFFFFFFF)


@integral
def key_of_double(x):
    bits = uint64(bits_of_double(x + float64(0)))
    turned = bits ^ (uint64(0xFFFFFFFFFFFFFFFF) if bits >> uint64(63) else uint64(0x8000000000000000))
    return uint64(turned) if x == x else uint64(0xFFFFFFFFFFFFFFFF)


@integral
def key_of_small(x):
    """Integers of up to 32 bits."""
    return uint32(int64(x) + int64(0x80000000))


@integral
def key_of_long(x):
    return uint64(x) ^ uint64(0x8000000000000000)


@integral
def as_is(x):
    return x


KEYS: dict[str, tuple[Callable, str]] = {
    "uint32": (as_is, "uint32"),
    "uint64": (as_is, "uint64"),
    "float32": (key_of_float, "uint32"),
    "float64": (key_of_double, "uint64"),
    "int64": (key_of_long, "uint64"),
}  # by compute dtype; all others are small

# --- the loops. What follows stands for what `_ready_lines` gives them. -----------------------------------------------

key_of = key_of_float
BITS = 8  # of a digit
DIGITS = 4  # of a key


@integral
def sort_line(keys, order, counts, size, bits, digits):
    """Sorts keys[:size], and order[:size] with them. Returns where in the arrays, 0 or `size`, they are afterwards."""
    if size <= SHORT:
        for j in range(1, size):
            key, place, k = keys[uint64(j)], order[uint64(j)], j
            while k > 0 and keys[uint64(k - 1)] > key:
                keys[uint64(k)] = keys[uint64(k - 1)]
                order[uint64(k)] = order[uint64(k - 1)]
                k -= 1
            keys[uint64(k)] = key
            order[uint64(k)] = place
        return 0
    buckets = 1 << bits
    mask = uint64(buckets - 1)
    for b in range(digits * buckets):
        counts[uint64(b)] = 0
    in_order, last, least = True, keys[uint64(0)], keys[uint64(0)]
    for j in range(size):
        key = keys[uint64(j)]
        in_order &= last <= key
        last, least = key, min(key, least)
    if in_order:
        return 0
    for j in range(size):
        key = keys[uint64(j)] - least  # so that numbers of one size have the same high digits
        keys[uint64(j)] = key
        for digit in range(digits):
            counts[uint64(digit * buckets) + ((uint64(key) >> uint64(digit * bits)) & mask)] += 1
    last = keys[uint64(0)]
    source, target = 0, size
    for digit in range(digits):
        shift, table = uint64(digit * bits), uint64(digit * buckets)
        if counts[table + ((uint64(last) >> shift) & mask)] == size:
            continue  # all have this digit
        total = target
        for b in range(buckets):
            count = counts[table + uint64(b)]
            counts[table + uint64(b)] = total
            total += count
        for j in range(source, source + size):
            key = keys[uint64(j)]
            bucket = table + ((uint64(key) >> shift) & mask)
            at = counts[bucket]
            counts[bucket] = at + 1
            keys[uint64(at)] = key
            order[uint64(at)] = order[uint64(j)]
        source, target = target, source
    return source


def sort_loop(
    lo, hi, kept, values_to, places_to, from_, line, flip,
    values, values_at, places, places_at, x, x_at, keys, order, counts,
):  # fmt: skip
    """Lines lo <= i < hi. line: how many elements one has, and their steps in `values`, `places` and `x`."""
    size, step_values, step_places, step = line[0], line[1], line[2], line[3]
    for i in range(lo, hi):
        at = x_at + offset_of(i, len(kept), kept, from_, 0)
        for j in range(size):
            keys[uint64(j)] = key_of(load_x(x[uint64(at + j * step)])) ^ flip
            order[uint64(j)] = j
        first = sort_line(keys, order, counts, size, BITS, DIGITS)
        value_at = values_at + offset_of(i, len(kept), kept, values_to, 0)
        place_at = places_at + offset_of(i, len(kept), kept, places_to, 0)
        for j in range(size):
            place = order[uint64(first + j)]
            values[uint64(value_at + j * step_values)] = x[uint64(at + place * step)]
            places[uint64(place_at + j * step_places)] = place


@integral
def key_of_rank(keys, counts, size, rank, bits, digits):
    """The key that would stand at `rank` if keys[:size] were sorted."""
    buckets = 1 << bits
    mask = uint64(buckets - 1)
    least, most = uint64(keys[uint64(0)]), uint64(keys[uint64(0)])
    for j in range(size):
        key = uint64(keys[uint64(j)])
        least, most = min(least, key), max(most, key)
    found, left = uint64(0), rank  # `found` counts from the least, so that numbers of one size have no high digits
    for digit in range(digits - 1, -1, -1):
        shift = uint64(digit * bits)
        if (most - least) >> shift == uint64(0):
            continue
        above = shift + uint64(bits)
        for b in range(buckets):
            counts[uint64(b)] = 0
        if digit == digits - 1:
            for j in range(size):
                counts[((uint64(keys[uint64(j)]) - least) >> shift) & mask] += 1
        else:
            for j in range(size):
                key = uint64(keys[uint64(j)]) - least
                if key >> above == found >> above:
                    counts[(key >> shift) & mask] += 1
        bucket = 0
        while counts[uint64(bucket)] <= left:
            left -= counts[uint64(bucket)]
            bucket += 1
        found |= uint64(bucket) << shift
    return found + least


@integral
def take_first(keys, order, counts, size, wanted, bits, digits):
    """Moves the `wanted` least of keys[:size] to the front, in the order of the line, and their positions to `order`.

    Those below the key of the last one are taken, and as many equal to it as are wanted still.
    """
    last = key_of_rank(keys, counts, size, wanted - 1, bits, digits)
    equal, taken = wanted, 0
    for j in range(size):
        equal -= uint64(keys[uint64(j)]) < last
    for j in range(size):
        key = keys[uint64(j)]
        if uint64(key) <= last and (uint64(key) < last or equal > 0):
            equal -= uint64(key) == last
            keys[uint64(taken)] = key  # taken <= j: what is overwritten was read
            order[uint64(taken)] = j
            taken += 1


def top_loop(
    lo, hi, kept, values_to, places_to, from_, line, flip, wanted, in_order,
    values, values_at, places, places_at, x, x_at, keys, order, counts,
):  # fmt: skip
    """The first `wanted` elements of each line in the order of keys; of equal ones those that stand first.

    A few are kept in order while the line is walked once: of 1M numbers, hardly one is better than the best ten so far.
    """
    size, step_values, step_places, step = line[0], line[1], line[2], line[3]
    for i in range(lo, hi):
        at = x_at + offset_of(i, len(kept), kept, from_, 0)
        if wanted <= FEW or size <= SHORT:
            taken = 0
            for j in range(size):
                key = uint64(key_of(load_x(x[uint64(at + j * step)])) ^ flip)
                if taken < wanted or key < uint64(keys[uint64(taken - 1)]):
                    k = taken if taken < wanted else taken - 1
                    taken += taken < wanted
                    while k > 0 and uint64(keys[uint64(k - 1)]) > key:
                        keys[uint64(k)] = keys[uint64(k - 1)]
                        order[uint64(k)] = order[uint64(k - 1)]
                        k -= 1
                    keys[uint64(k)] = key
                    order[uint64(k)] = j
            first = 0
        else:
            for j in range(size):
                keys[uint64(j)] = key_of(load_x(x[uint64(at + j * step)])) ^ flip
            take_first(keys, order, counts, size, wanted, BITS, DIGITS)
            first = sort_line(keys, order, counts, wanted, BITS, DIGITS) if in_order else 0
        value_at = values_at + offset_of(i, len(kept), kept, values_to, 0)
        place_at = places_at + offset_of(i, len(kept), kept, places_to, 0)
        for j in range(wanted):
            place = order[uint64(first + j)]
            values[uint64(value_at + j * step_values)] = x[uint64(at + place * step)]
            places[uint64(place_at + j * step_places)] = place


def rank_loop(
    lo, hi, kept, values_to, places_to, from_, line, rank, skip_nan,
    values, values_at, places, places_at, x, x_at, keys, counts,
):  # fmt: skip
    """The element of `rank` in each line, and where the first equal to it stands; the middle one for rank -1.

    The middle of a line with NaNs is NaN, or, to `skip_nan`, the middle of the others. Keys are as those of an
    ascending order, so NaNs are at the end.
    """
    size, step = line[0], line[3]
    for i in range(lo, hi):
        at = x_at + offset_of(i, len(kept), kept, from_, 0)
        numbers = 0
        for j in range(size):
            value = load_x(x[uint64(at + j * step)])
            numbers += value == value
            keys[uint64(j)] = key_of(value)
        wanted = rank
        if rank < 0:
            wanted = (numbers - 1) // 2 if numbers > 0 and (skip_nan or numbers == size) else size - 1
        found = key_of_rank(keys, counts, size, wanted, BITS, DIGITS)
        place = 0
        while uint64(keys[uint64(place)]) != found:
            place += 1
        values[uint64(values_at + offset_of(i, len(kept), kept, values_to, 0))] = x[uint64(at + place * step)]
        places[uint64(places_at + offset_of(i, len(kept), kept, places_to, 0))] = place


def mode_loop(
    lo, hi, kept, values_to, places_to, from_, line,
    values, values_at, places, places_at, x, x_at, keys, order, counts,
):  # fmt: skip
    """The element that is most frequent in each line, the least of several, and where the last of them stands."""
    size, step = line[0], line[3]
    for i in range(lo, hi):
        at = x_at + offset_of(i, len(kept), kept, from_, 0)
        for j in range(size):
            keys[uint64(j)] = key_of(load_x(x[uint64(at + j * step)]))
            order[uint64(j)] = j
        first = sort_line(keys, order, counts, size, BITS, DIGITS)
        best, place, run = 0, int64(0), 0
        for j in range(first, first + size):
            here = order[uint64(j)]
            value = load_x(x[uint64(at + here * step)])
            same = j > first and keys[uint64(j)] == keys[uint64(j - 1)] and value == value  # each NaN stands alone
            run = run + 1 if same else 1
            if run > best:
                best, place = run, here
        values[uint64(values_at + offset_of(i, len(kept), kept, values_to, 0))] = x[uint64(at + place * step)]
        places[uint64(places_at + offset_of(i, len(kept), kept, places_to, 0))] = place


LINE = "int64[] kept values_to places_to from_ line places counts", "x[] values x", "key[] keys"
RANK = Template(rank_loop, *LINE, "bool skip_nan")
MODE = Template(mode_loop, *LINE, "place[] order")
SORT = Template(sort_loop, *LINE, "place[] order", "key flip")
TOP = Template(top_loop, *LINE, "place[] order", "key flip", "bool in_order")

# --- the front door --------------------------------------------------------------------------------------------------

LONG = 1 << 14  # from here on digits have 11 bits: fewer passes, whose tables of counts fit the first-level cache


def _key(dtype: str) -> tuple[Callable, str]:
    return KEYS.get(DTYPES[dtype].compute, (key_of_small, "uint32"))


def _flip(dtype: str, turned: bool) -> np.generic:
    """Returns the bits that keys are combined with by exclusive or: all of them, to turn the order round."""
    kind = np.dtype(_key(dtype)[1]).type
    return ~kind(0) if turned else kind(0)


def _ready_lines(
    loop: Template, values: Operand, places: Operand, x: Operand, dim: int, *told: Any, halves: int = 2, work: int = 8
) -> Callable[..., object]:
    """`f(values, values_at, places, places_at, x, x_at)` that does the loop for each line along `dim` of `x`.

    halves: how many arrays of the length of a line for keys it works in. work: of an element.
    """
    walk, line = line_walk(x, dim, values, places)
    (key_of, key), bits, count = _key(x.dtype), 11 if walk.elements >= LONG else 8, halves * walk.elements
    digits = -(-8 * np.dtype(key).itemsize // bits)
    place = "int32" if walk.elements < 1 << 31 else "int64"
    entry = loop(x=x.dtype, key=key, place=place, key_of=key_of, BITS=bits, DIGITS=digits)
    scratches = [(count, key), (count, place), (digits << bits, np.int64)]
    if halves == 1:  # keys alone are moved
        del scratches[1]
    leading = (walk.kept, *walk.kept_outs, walk.kept_in, line, *told)
    return ready(entry, walk.results if walk.elements else 0, leading, work * walk.elements, scratches)


def ready_sort(values: Operand, places: Operand, x: Operand, dim: int, *, descending: bool) -> Callable[..., object]:
    """Prepares a stable sort of each line along `dim`, into `values` and `places` (int64), of the shape of `x`.

    It is called as `f(values, values_at, places, places_at, x, x_at)`. NaN is larger than all.
    """
    return _ready_lines(SORT, values, places, x, dim, _flip(x.dtype, descending), work=32)


def ready_top(
    values: Operand, places: Operand, x: Operand, dim: int, *, largest: bool, in_order: bool
) -> Callable[..., object]:
    """Prepares a search for the largest or smallest elements, as many as `values` and `places` have along `dim`."""
    wanted = values.shape[dim] if values.shape else 1
    if not wanted:
        return nothing_to_do
    return _ready_lines(TOP, values, places, x, dim, _flip(x.dtype, largest), wanted, in_order, work=16)


def ready_rank(
    values: Operand, places: Operand, x: Operand, dim: int, rank: int | None, *, skip_nan: bool = False
) -> Callable[..., object]:
    """Prepares a search for the element at `rank` in ascending order: one for each line, whose dimension is 1 or gone.

    None is the middle, the lower one of two; NaN where there is a NaN, unless they are skipped.
    """
    return _ready_lines(RANK, values, places, x, dim, -1 if rank is None else rank, skip_nan, halves=1)


def ready_mode(values: Operand, places: Operand, x: Operand, dim: int) -> Callable[..., object]:
    """Prepares a search for the most frequent element of each line."""
    return _ready_lines(MODE, values, places, x, dim, work=32)
