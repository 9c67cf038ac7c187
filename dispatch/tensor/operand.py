"""The operand of a kernel: the flat array of a whole storage, and how to walk it.

A view never becomes a numpy view: every view of a storage shares the storage's one flat array, and differs in
`shape`, `strides` and `offset` only. This keeps a small operator call free of numpy's own view objects.
16-bit floats are stored as `uint16` and computed in `float32`, because numba's CPU target knows neither of them.

Read next: `geometry.py` (shapes and strides), then `kernels/engine/elementwise.py` (the first kernels).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from .dtypes import FLOAT8, dtype_named
from .geometry import Ints
from .storage import allocate


class DType(NamedTuple):
    """One element type: its kind, the numpy type that stores it, and the type that kernels compute in."""

    name: str
    kind: str  # "bool", "uint", "int", "float" or "complex"
    storage: np.dtype
    compute: str


def _dtype(name: str, kind: str, storage: type | None = None, compute: str | None = None) -> DType:
    return DType(name, kind, np.dtype(storage or name), compute or name)


class Computed(dict[str, DType]):
    """Element types by name. NotImplementedError for those in which no kernel computes."""

    def __missing__(self, name: str) -> DType:
        raise NotImplementedError(f"\"copy_\" not implemented for '{dtype_named(name).tensor_name}'")


DTYPES: dict[str, DType] = Computed(
    {
        "bool": _dtype("bool", "bool"),
        "uint8": _dtype("uint8", "uint"),
        "int8": _dtype("int8", "int"),
        "int16": _dtype("int16", "int"),
        "int32": _dtype("int32", "int"),
        "int64": _dtype("int64", "int"),
        "float16": _dtype("float16", "float", np.uint16, "float32"),
        "bfloat16": _dtype("bfloat16", "float", np.uint16, "float32"),
        "float32": _dtype("float32", "float"),
        "float64": _dtype("float64", "float"),
        "complex64": _dtype("complex64", "complex"),
        "complex128": _dtype("complex128", "complex"),
        "complex32": _dtype("complex32", "complex", np.uint32, "complex64"),
        **{name: _dtype(name, "uint") for name in ("uint16", "uint32", "uint64")},
        **{name: _dtype(name, "float", np.uint8, "float32") for name in (one.name for one in FLOAT8)},
    }
)


class Operand(NamedTuple):
    """A strided window onto a storage. Strides and offset count elements; strides are never negative.

    `array` is 1-D, C-contiguous, spans the whole storage and has the dtype `DTYPES[dtype].storage`.
    """

    array: np.ndarray
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


def arrays_of(*operands: Operand) -> list[Any]:
    """Returns what a loop takes of each operand: its array, and where in it the first element is."""
    return [part for one in operands for part in (one.array, one.offset)]


def as_ndarray(operand: Operand) -> np.ndarray:
    """The numpy view of an operand, for BLAS and for tests; 16-bit floats come as their `uint16` storage."""
    if 0 in operand.shape:  # its offset may lie behind the end of the memory, which numpy refuses
        return np.empty(operand.shape, operand.array.dtype)
    return window(operand.array, operand.shape, operand.strides, operand.offset)


def window(array: np.ndarray, shape: Sequence[int], strides: Sequence[int], offset: int) -> np.ndarray:
    """A view of a flat array; strides and offset count elements."""
    size = array.itemsize
    found = np.ndarray(shape, array.dtype, array, offset * size, [stride * size for stride in strides])
    return found if TARGET.get() is None else found.view(type(array))


# Where kernels run: on the CPU, or on a device whose `Target` stands in for it ----------------------------------------
#
# A loop that takes a range, `loop(lo, hi, ...)`, says nothing about who runs it. While a target is set, `Kernel.entry`
# gives what runs the loop on that device, a thread for each step of the range, and operands hold the device's memory in
# the place of arrays. So what decides a call (shapes, walks, tables) is written once, and serves both.
#
# Nothing here knows a device; `cuda/loops.py` is the one there is.


class Target:
    """The work of the CPU, done by another device."""

    def entry(self, kernel: Any, signature: tuple[str, ...]) -> Callable[..., Any]:
        """Returns the function that runs the loop of a `Kernel` (kernels/engine/compile.py): `f(lo, hi, *args)`."""
        raise NotImplementedError

    def memory(self, count: int, dtype: Any) -> Any:
        """Memory for so many elements, as long as it is held."""
        raise NotImplementedError

    def numbers(self, x: Operand) -> np.ndarray:
        """The operand's elements in the CPU's memory. Waits for the device."""
        raise NotImplementedError

    def elementwise(self, op: Any, outs: Sequence[Operand], inputs: Sequence[Any], dtype: str | None) -> None:
        """`Elementwise.run`."""
        raise NotImplementedError

    def reduce(self, reduction: Any, out: Operand, x: Operand, dims: Sequence[int]) -> None:
        """`Reduction.run`."""
        raise NotImplementedError

    def take(self, out: Operand, x: Operand, places: Sequence[Place]) -> None:
        """out[i] = x[i + the places' indices at i]; all have one shape. A bad index is told of later."""
        raise NotImplementedError

    def put(self, x: Operand, source: Operand, places: Sequence[Place], how: str, skip: int | None = None) -> None:
        """Writes source to places in x: "replace", "sum", "prod", "amax", "amin" says how the new meets the old."""
        raise NotImplementedError

    def multiply(self, out: np.ndarray, a: np.ndarray, b: np.ndarray, add: bool) -> None:
        """Writes a @ b to `out`, or adds it; of numpy's views, in the memory of a target that has such."""
        raise NotImplementedError

    def do_not_cache(self) -> None:
        """Told of a call that does more than its loops do, such as to warn: it is not to be remembered."""


class Place(NamedTuple):
    """An index among several: its operand, how far one step of it is, the size of its dimension, and whether negative
    ones count from the end."""

    positions: Operand
    scale: int
    size: int
    wrap: bool
    dim: int


class Scratch(NamedTuple):
    """Memory of its own for each step of a range, on a device; see `scratch`."""

    each: int
    dtype: str


TARGET: ContextVar[Target | None] = ContextVar("target", default=None)


def do_not_cache() -> None:
    """To be called by an operator's kernel where it does more than its loops do: a device is not to remember it."""
    target = TARGET.get()
    if target is not None:
        target.do_not_cache()


@contextmanager
def on_target(target: Target | None) -> Iterator[None]:
    """Has kernels run there; on the CPU for None."""
    token = TARGET.set(target)
    try:
        yield
    finally:
        TARGET.reset(token)


def memory(count: int, dtype: Any) -> Any:
    """Memory that a kernel's caller needs for a while: an array, or the device's."""
    target = TARGET.get()
    return allocate(count, dtype) if target is None else target.memory(count, dtype)


def numbers(x: Operand) -> np.ndarray:
    """An operand's elements, for what the CPU decides by them; they are not to be written to."""
    target = TARGET.get()
    return as_ndarray(x) if target is None else target.numbers(x)


def scratch(count: int, dtype: Any) -> Any:
    """Memory for a loop to work in. On the CPU one range after the other uses it; on a device each step has its own."""
    return allocate(count, dtype) if TARGET.get() is None else Scratch(count, np.dtype(dtype).name)


def cached_by_target(make: Callable[..., Any]) -> Callable[..., Any]:
    """`functools.cache` of a function that makes entries, those of each device apart."""
    made = ByTarget()

    def found(*key: Any) -> Any:
        entry = made.get(key)
        if entry is None:
            entry = made[key] = make(*key)
        return entry

    return found


class ByTarget(dict[Any, Any]):
    """Entries that are remembered, those of each device apart."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((type(TARGET.get()), key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__((type(TARGET.get()), key), value)


# Do two elements share a memory cell? An exact answer, found by a bounded search --------------------------------------
#
# Why it exists: writing through a view whose elements share cells, or into memory that an input still needs, gives
# silently wrong numbers. Callers raise for the first and copy the input for the second.
#
# Both questions are one: does `sum(coefficient * unknown) == target` have a solution with `0 <= unknown <= bound`?

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
    dims = [(stride, size - 1) for size, stride in zip(shape, strides, strict=True) if size > 1]
    if any(stride == 0 for stride, _ in dims):
        return True
    dims.sort(key=lambda dim: dim[0])  # by strides alone: which of two sizes is greater is nobody's affair
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
