"""Do two elements share a memory cell? An exact answer, found by a bounded search.

Why it exists: writing through a view whose elements share cells, or into memory that an input still needs, gives
silently wrong numbers. Callers raise for the first and copy the input for the second.

Both questions are one: does `sum(coefficient * unknown) == target` have a solution with `0 <= unknown <= bound`?
Read next: `kernels/engine/elementwise.py`.
"""

from functools import lru_cache
from math import gcd

from .geometry import Ints
from .operand import DTYPES, Operand

SEARCH_LIMIT = 20_000  # visited nodes; about 10 ms. Real layouts need a handful.


def solvable(terms: list[tuple[int, int]], target: int) -> bool:
    """Whether `terms`, pairs (coefficient > 0, bound >= 0), can sum to `target`. True when the search gives up."""
    merged: dict[int, int] = {}
    for coefficient, bound in terms:
        if bound > 0:
            merged[coefficient] = merged.get(coefficient, 0) + bound
    ordered = sorted(merged.items(), reverse=True)
    reach, common = [0], [0]  # of the terms from here to the end: the largest sum, and the common divisor
    for coefficient, bound in reversed(ordered):
        reach.append(reach[-1] + coefficient * bound)
        common.append(gcd(common[-1], coefficient))
    reach.reverse()
    common.reverse()

    visited = 0
    stack = [(0, target)]
    while stack:
        depth, rest = stack.pop()
        visited += 1
        if visited > SEARCH_LIMIT:
            return True
        if rest == 0:
            return True
        if not 0 < rest <= reach[depth] or rest % common[depth]:
            continue
        coefficient, bound = ordered[depth]
        least = max(0, -((reach[depth + 1] - rest) // coefficient))  # ceil((rest - reach) / coefficient)
        most = min(bound, rest // coefficient)
        if most - least > SEARCH_LIMIT:
            return True
        stack.extend((depth + 1, rest - coefficient * k) for k in range(least, most + 1))
    return False


@lru_cache(4096)
def has_internal_overlap(shape: Ints, strides: Ints) -> bool:
    """Whether two different indices of a view name the same cell. Exact, or True when too hard to tell."""
    if 0 in shape:
        return False
    dims = sorted((stride, size - 1) for size, stride in zip(shape, strides, strict=True) if size > 1)
    if any(stride == 0 for stride, _ in dims):
        return True
    reach, nested = 0, True
    for stride, bound in dims:
        nested = nested and stride > reach
        reach += stride * bound
    if nested:
        return False
    # Two indices with one cell differ by d with sum(d * stride) == 0. Let k be the first dimension with d > 0 and
    # all before it 0; the others range over [-bound, bound], shifted here to [0, 2 * bound].
    for k, (stride, bound) in enumerate(dims):
        others = dims[k + 1 :]
        shift = sum(step * limit for step, limit in others)
        # stride * (1 + u) + sum(step * (w - limit)) == 0 with 0 <= u < bound, 0 <= w <= 2 * limit
        terms = [(stride, bound - 1)] + [(step, 2 * limit) for step, limit in others]
        if shift - stride >= 0 and solvable(terms, shift - stride):
            return True
    return False


@lru_cache(4096)
def _windows_overlap(a: tuple[Ints, Ints, int], b: tuple[Ints, Ints, int], size_a: int, size_b: int, gap: int) -> bool:
    """Whether two windows (shape, strides, offset) share a byte; `gap` is where b's storage starts after a's."""
    (shape_a, strides_a, offset_a), (shape_b, strides_b, offset_b) = a, b
    if 0 in shape_a or 0 in shape_b:
        return False
    ours = [(stride * size_a, size - 1) for size, stride in zip(shape_a, strides_a, strict=True)] + [(1, size_a - 1)]
    theirs = [(stride * size_b, size - 1) for size, stride in zip(shape_b, strides_b, strict=True)] + [(1, size_b - 1)]
    # a + ours == b + theirs; replacing each unknown of `theirs` by (bound - unknown) makes all signs positive
    target = gap + offset_b * size_b - offset_a * size_a + sum(step * bound for step, bound in theirs)
    return solvable([(step, bound) for step, bound in ours + theirs if step], target)


def overlap(a: Operand, b: Operand) -> str:
    """ "no", "full" (the same cells in the same places) or "partial"; "partial" also when too hard to tell."""
    gap = 0
    if a.array is not b.array:
        gap = b.array.ctypes.data - a.array.ctypes.data
        if gap >= a.array.nbytes or -gap >= b.array.nbytes:
            return "no"
    size_a, size_b = DTYPES[a.dtype].storage.itemsize, DTYPES[b.dtype].storage.itemsize
    same = gap == 0 and a.offset == b.offset and a.shape == b.shape and size_a == size_b and 0 not in a.shape
    if same and all(s == t for n, s, t in zip(a.shape, a.strides, b.strides, strict=True) if n > 1):
        return "full"
    shares = _windows_overlap(a[2:], b[2:], size_a, size_b, gap)
    return "partial" if shares else "no"
