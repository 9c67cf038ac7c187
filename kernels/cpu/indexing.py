"""Reading and writing at computed positions: gather, scatter, index, index_put, embedding and their kin.

All of them are two loops. `take_loop` reads `x[... + index * scale]`, `put_loop` writes there; the index operand has
stride 0 along the dimensions that it does not index, and `x` has stride 0 along the one that it does, so that the
broadcast walk of `geometry.plan` serves here, too. Several index arrays are first folded into one of offsets.

Compiled loops check no bounds of arrays, so these check every index before they use it. Those that fill a
result do so as they go, and its content is of no use when there was a bad one; those that change what was there scan
all indices first. The functions return None, or a `BadIndex` for the caller to raise. Read next: `kernels/ops/loss.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor.geometry import (
    INT64_MAX,
    Ints,
    broadcast_shapes,
    broadcast_strides,
    contiguous_strides,
    is_contiguous,
    numel,
    plan,
)
from redispatch.dispatch.tensor.operand import DTYPES, TARGET, Operand, Place, arrays_of, as_ndarray, memory

from ..engine.convert import as_is
from ..engine.elementwise import offset_of
from ..engine.pool import parallel_for, ready, serial_for
from ..engine.template import Template, load_x, store_x
from .copy import copy, fill

uint64 = np.uint64


class BadIndex(NamedTuple):
    """An index outside its dimension: what it is, which dimension, and the size of that."""

    value: int
    dim: int
    size: int


# --- the scan ------------------------------------------------------------------------------------------------------


def outside_loop(lo, hi, index, at, low, size, found):
    """found[0] becomes 1 if an index is below `low` or not below `size`."""
    bad = False
    for i in range(lo, hi):
        value = index[uint64(at + i)]
        bad |= (value < low) | (value >= size)
    if bad:
        found[0] = 1


OUTSIDE = Template(outside_loop, "index[] index", "int64[] found")


def first_bad(index: Operand, size: int, *, wrap: bool, dim: int = 0) -> BadIndex | None:
    """The first index that is not in [0, size), or, where negative ones count from the end, not in [-size, size)."""
    if 0 in index.shape or TARGET.get() is not None:  # a device's kernels look at each index themselves
        return None
    low = -size if wrap else 0
    if is_contiguous(index.shape, index.strides):
        found = np.zeros(1, np.int64)
        parallel_for(OUTSIDE(index=index.dtype), numel(index.shape), (index.array, index.offset, low, size, found))
        if not found[0]:
            return None
    view = as_ndarray(index)
    bad = (view < low) | (view >= size)
    return BadIndex(int(view[bad].flat[0]), dim, size) if bad.any() else None


# --- the loops -----------------------------------------------------------------------------------------------------


def counted(position, size):
    """A position from the first element on, of an index which may count from the end."""
    return position


def from_the_end(position, size):
    return position + size if position < 0 else position


def take_loop(lo, hi, sizes, strides, out, out_at, index, index_at, x, x_at, scale, size, bad):
    """out[i] = x[i + index[i] * scale], each with its own strides.

    An index outside reads what 0 would read, and sets bad[0]. A test that leaves the loop would take 1.5 times as long.
    """
    ndim = len(sizes)
    inner, limit, outside = sizes[ndim - 1], uint64(size), False
    out_step, index_step, x_step = strides[ndim - 1], strides[2 * ndim - 1], strides[3 * ndim - 1]
    row = lo // inner
    first, left = lo - row * inner, hi - lo
    while left > 0:
        last = min(inner, first + left)
        out_row = out_at + offset_of(row, ndim - 1, sizes, strides, 0)
        index_row = index_at + offset_of(row, ndim - 1, sizes, strides, ndim)
        x_row = x_at + offset_of(row, ndim - 1, sizes, strides, 2 * ndim)
        if index_step == 0:  # a whole run at one index: rows of an embedding
            position = counted(index[uint64(index_row)], size)
            fits = uint64(position) < limit  # neither negative nor too large
            outside |= not fits
            x_row += (position if fits else 0) * scale
            if out_step == 1 and x_step == 1:
                for i in range(first, last):
                    out[uint64(out_row + i)] = x[uint64(x_row + i)]
            else:
                for i in range(first, last):
                    out[uint64(out_row + i * out_step)] = x[uint64(x_row + i * x_step)]
        elif out_step == 1 and index_step == 1 and x_step == 0 and scale == 1:
            for i in range(first, last):
                position = counted(index[uint64(index_row + i)], size)
                fits = uint64(position) < limit
                outside |= not fits
                out[uint64(out_row + i)] = x[uint64(x_row + (position if fits else 0))]
        else:
            for i in range(first, last):
                position = counted(index[uint64(index_row + i * index_step)], size)
                fits = uint64(position) < limit
                outside |= not fits
                at = x_row + i * x_step + (position if fits else 0) * scale
                out[uint64(out_row + i * out_step)] = x[uint64(at)]
        left -= last - first
        row += 1
        first = 0
    if outside:
        bad[0] = 1


def take_rows_loop(
    lo, hi, width, out_step, index_step, x_step, out, out_at, index, index_at, x, x_at, scale, size, bad
):  # fmt: skip
    """`take_loop` for dense rows that are taken whole, lo <= row < hi: what an embedding is. It walks two dimensions
    only, and divides nothing."""
    limit, outside = uint64(size), False
    for row in range(lo, hi):
        position = counted(index[uint64(index_at + row * index_step)], size)
        fits = uint64(position) < limit
        outside |= not fits
        to, from_ = out_at + row * out_step, x_at + row * x_step + (position if fits else 0) * scale
        for i in range(width):
            out[uint64(to + i)] = x[uint64(from_ + i)]
    if outside:
        bad[0] = 1


def fold_loop(lo, hi, sizes, strides, out, out_at, index, index_at, scale, size, bad):
    """out[i] += index[i] * scale, on the terms of `take_loop`: positions from several indices."""
    ndim = len(sizes)
    inner, limit, outside = sizes[ndim - 1], uint64(size), False
    out_step, index_step = strides[ndim - 1], strides[2 * ndim - 1]
    row = lo // inner
    first, left = lo - row * inner, hi - lo
    while left > 0:
        last = min(inner, first + left)
        out_row = out_at + offset_of(row, ndim - 1, sizes, strides, 0)
        index_row = index_at + offset_of(row, ndim - 1, sizes, strides, ndim)
        for i in range(first, last):
            position = from_the_end(index[uint64(index_row + i * index_step)], size)
            outside |= not uint64(position) < limit
            out[uint64(out_row + i * out_step)] += position * scale
        left -= last - first
        row += 1
        first = 0
    if outside:
        bad[0] = 1


def combine(old, new):
    return new


def put_loop(lo, hi, sizes, strides, source, source_at, index, index_at, x, x_at, scale, skip):
    """x[i + index[i] * scale] = combine(itself, source[i]), in order; nothing where the index is `skip`."""
    ndim = len(sizes)
    inner = sizes[ndim - 1]
    source_step, index_step, x_step = strides[ndim - 1], strides[2 * ndim - 1], strides[3 * ndim - 1]
    row = lo // inner
    first, left = lo - row * inner, hi - lo
    while left > 0:
        last = min(inner, first + left)
        source_row = source_at + offset_of(row, ndim - 1, sizes, strides, 0)
        index_row = index_at + offset_of(row, ndim - 1, sizes, strides, ndim)
        x_row = x_at + offset_of(row, ndim - 1, sizes, strides, 2 * ndim)
        if index_step == 0:  # a whole run at one index
            position = index[uint64(index_row)]
            x_row += position * scale
            if position == skip:
                pass
            elif source_step == 1 and x_step == 1:
                for i in range(first, last):
                    at = uint64(x_row + i)
                    x[at] = store_x(combine(load_x(x[at]), load_x(source[uint64(source_row + i)])))
            else:
                for i in range(first, last):
                    at = uint64(x_row + i * x_step)
                    x[at] = store_x(combine(load_x(x[at]), load_x(source[uint64(source_row + i * source_step)])))
        else:
            for i in range(first, last):
                position = index[uint64(index_row + i * index_step)]
                if position != skip:
                    at = uint64(x_row + i * x_step + position * scale)
                    x[at] = store_x(combine(load_x(x[at]), load_x(source[uint64(source_row + i * source_step)])))
        left -= last - first
        row += 1
        first = 0


def add_rows_loop(lo, hi, count, width, size, skip, nothing, out, out_at, index, index_at, source, source_at, bad):
    """out[index[row]] += source[row] for dense rows lo <= row < hi of `count`, in order, but where the index is `skip`.

    The first range begins with a scan of all indices: if one is outside, bad[0] becomes 1, and `out` stays as it is;
    else it is filled with zeros.
    """
    if lo == 0:
        limit, outside = uint64(size), False
        for row in range(count):
            outside |= not uint64(index[uint64(index_at + row)]) < limit
        if outside:
            bad[0] = 1
        else:
            for i in range(size * width):
                out[uint64(out_at + i)] = nothing
    if bad[0] == 0:
        for row in range(lo, hi):
            position = index[uint64(index_at + row)]
            if position != skip:
                to, from_ = out_at + position * width, source_at + row * width
                for i in range(width):
                    out[uint64(to + i)] += source[uint64(from_ + i)]


def replace(old, new):
    return new


def add(old, new):
    return old + new


def multiply(old, new):
    return old * new


def largest(old, new):
    return new if new != new or new > old else old


def smallest(old, new):
    return new if new != new or new < old else old


COMBINE: dict[str, Callable] = {
    "replace": replace,
    "sum": add,
    "prod": multiply,
    "amax": largest,
    "amin": smallest,
}

TAKE = Template(take_loop, "int64[] sizes strides bad", "x[] out x", "index[] index")
TAKE_ROWS = Template(take_rows_loop, "x[] out x", "index[] index", "int64[] bad")
ADD_ROWS = Template(add_rows_loop, "stored nothing", "x[] out source", "index[] index", "int64[] bad")
PUT = Template(put_loop, "int64[] sizes strides", "x[] source x", "index[] index")
FOLD = Template(fold_loop, "int64[] sizes strides out bad", "index[] index")
NEVER = -(1 << 63)  # an index to skip that no scanned index equals


def _take(out: Operand, index: Operand, x: Operand, scale: int, size: int, dim: int, *, wrap: bool = False) -> bool:
    """All three of one shape. False where an index is not in [0, size), or [-size, size) with `wrap`."""
    target = TARGET.get()
    if target is not None:
        target.take(out, x, [Place(index, scale, size, wrap, dim)])
        return True
    take = ready_take(out, index, x, scale, size, wrap=wrap)
    return take(out.array, out.offset, index.array, index.offset, x.array, x.offset)


def ready_take(
    out: Operand, index: Operand, x: Operand, scale: int, size: int, *, wrap: bool = False
) -> Callable[..., bool]:
    """Prepares `_take` for operands of such metadata: `f(out, out_at, index, index_at, x, x_at)`."""
    if 0 in out.shape or size == 0:
        return lambda *arrays: 0 in out.shape
    run = ready_to_take(out, index, x, size, wrap=wrap)

    def take(*arrays: Any) -> bool:
        bad = np.zeros(1, np.int64)
        run(*arrays, scale, size, bad)
        return not bad[0]

    return take


def ready_to_take(out: Operand, index: Operand, x: Operand, size: int, *, wrap: bool = False) -> Callable[..., object]:
    """The loop of `ready_take`: `f(out, out_at, index, index_at, x, x_at, scale, size, bad)`."""
    walk = plan(out.shape, (out.strides, index.strides, x.strides))
    how: dict[str, Any] = {"x": x.dtype, "index": index.dtype, "counted": from_the_end if wrap else counted}
    if len(walk.sizes) == 2 and walk.steps == (1, 0, 1):
        rows, width = (int(n) for n in walk.sizes)
        return ready(TAKE_ROWS(**how), rows, (width, *(int(step) for step in walk.strides[::2])), width)
    return ready(TAKE(**how), walk.numel, (walk.sizes, walk.strides))


def _ready_fold_in(offsets: Operand, index: Operand) -> Callable[..., object]:
    """`f(offsets, at, index, index_at, scale, size, bad)`, which adds where an index of that shape points to."""
    walk = plan(offsets.shape, (offsets.strides, index.strides))
    if walk.numel == 0:
        return lambda *arrays: None
    return ready(FOLD(index=index.dtype), walk.numel, (walk.sizes, walk.strides))


def _put(
    x: Operand, index: Operand, source: Operand, scale: int, how: str, size: int, dim: int = 0, skip: int = NEVER
) -> None:
    """All three of one shape; positions are in bounds. Serial and in order, since two positions may be equal."""
    target = TARGET.get()
    if target is not None:
        target.put(x, source, [Place(index, scale, size, False, dim)], how, skip)
        return
    put = ready_put(x, index, source, scale, how, skip)
    put(source.array, source.offset, index.array, index.offset, x.array, x.offset)


def ready_put(
    x: Operand, index: Operand, source: Operand, scale: int, how: str, skip: int = NEVER
) -> Callable[..., None]:
    """Prepares `_put` for operands of such metadata: `f(source, source_at, index, index_at, x, x_at)`."""
    # the walk must not follow x's order: with "replace", the last of equal positions wins in row-major order
    sizes, strides = _row_major(x.shape, (source.strides, index.strides, x.strides))
    moved = {"load_x": as_is, "store_x": as_is} if how == "replace" else {}
    entry = PUT(name=f"put_{how}", x=x.dtype, index=index.dtype, combine=COMBINE[how], **moved)
    elements = numel(x.shape)

    def put(*arrays: Any) -> None:
        serial_for(entry, elements, (sizes, strides, *arrays, scale, skip))

    return put


def _row_major(shape: Ints, all_strides: tuple[Ints, ...]) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.array(shape or (1,), np.int64)
    return sizes, np.array([step for strides in all_strides for step in (strides or (1,))], np.int64)


def _without(strides: Ints, dim: int) -> Ints:
    return (*strides[:dim], 0, *strides[dim + 1 :])


def _along(index: Operand, shape: Ints, dim: int) -> Operand:
    """A 1-d (or 0-d) index, repeated over all dimensions of `shape` but `dim`."""
    step = index.strides[0] if index.shape else 0
    return index._replace(shape=shape, strides=tuple(step if d == dim else 0 for d in range(len(shape))))


# --- one index along one dimension -----------------------------------------------------------------------------------


def gather(out: Operand, x: Operand, dim: int, index: Operand) -> BadIndex | None:
    """out[i, j, k] = x[index[i, j, k], j, k] for dim 0, and so on; 0-d operands count as 1-d.

    `out` and `index` have one shape, of which no dimension but `dim` is larger than that of `x`.
    """
    out, x, index = (_at_least_1d(one) for one in (out, x, index))
    picked, size = x._replace(shape=index.shape, strides=_without(x.strides, dim)), x.shape[dim]
    fits = _take(out, index, picked, x.strides[dim], size, dim)
    return None if fits else first_bad(index, size, wrap=False, dim=dim)


def index_select(out: Operand, x: Operand, dim: int, index: Operand) -> BadIndex | None:
    """out = x with the entries along `dim` picked by a 1-d `index`."""
    out, x = _at_least_1d(out), _at_least_1d(x)
    size = x.shape[dim]
    if 0 in out.shape:
        return first_bad(index, size, wrap=False, dim=dim)
    picked = x._replace(shape=out.shape, strides=_without(x.strides, dim))
    fits = _take(out, _along(index, out.shape, dim), picked, x.strides[dim], size, dim)
    return None if fits else first_bad(index, size, wrap=False, dim=dim)


def scatter(x: Operand, dim: int, index: Operand, source: Operand, how: str = "replace") -> BadIndex | None:
    """x[index[i, j, k], j, k] = source[i, j, k] for dim 0, and so on, in row-major order; `how` says how the new meets
    the old ("replace", "sum", "prod", "amax", "amin"). No dimension of `index` is larger than that of `source`."""
    x, index, source = (_at_least_1d(one) for one in (x, index, source))
    bad = first_bad(index, x.shape[dim], wrap=False, dim=dim)
    if bad is None:
        target = x._replace(shape=index.shape, strides=_without(x.strides, dim))
        _put(target, index, source._replace(shape=index.shape), x.strides[dim], how, x.shape[dim], dim)
    return bad


def index_add(x: Operand, dim: int, index: Operand, source: Operand) -> BadIndex | None:
    """Adds the entries of `source` along `dim` to those of `x` that a 1-d `index` names."""
    x, source = _at_least_1d(x), _at_least_1d(source)
    bad = first_bad(index, x.shape[dim], wrap=False, dim=dim)
    if bad is None:
        target = x._replace(shape=source.shape, strides=_without(x.strides, dim))
        _put(target, _along(index, source.shape, dim), source, x.strides[dim], "sum", x.shape[dim], dim)
    return bad


def _at_least_1d(x: Operand) -> Operand:
    return x if x.shape else x._replace(shape=(1,), strides=(1,))


# --- embeddings ----------------------------------------------------------------------------------------------------


def ready_embedding(out: Operand, weight: Operand, index: Operand) -> Callable[..., BadIndex | None]:
    """Prepares out[..., :] = weight[index[...], :]: `f(out, out_at, weight, weight_at, index, index_at)`.

    Shapes: weight [n, d], index any, out [*index, d].
    """
    size, metadata = weight.shape[0], index[1:4]
    if 0 in out.shape:
        return lambda out, out_at, x, x_at, array, at: first_bad(Operand(array, *metadata, at), size, wrap=False)
    rows = index._replace(shape=out.shape, strides=(*index.strides, 0))
    columns = weight._replace(shape=out.shape, strides=(0,) * len(index.shape) + weight.strides[1:])
    target = TARGET.get()
    if target is not None:
        return lambda *arrays: target.take(out, columns, [Place(rows, weight.strides[0], size, False, 0)])
    take = ready_take(out, rows, columns, weight.strides[0], size)

    def run(out: Any, out_at: int, x: Any, x_at: int, index: Any, at: int) -> BadIndex | None:
        fits = take(out, out_at, index, at, x, x_at)
        return None if fits else first_bad(Operand(index, *metadata, at), size, wrap=False)

    return run


def embedding_dense_backward(out: Operand, grad: Operand, index: Operand, padding_index: int = -1) -> BadIndex | None:
    """out [n, d] = the sum of the rows of `grad` [*index, d] that each row was used for; none for `padding_index`.

    16-bit floats are added in float32 and rounded once.
    """
    plain = DTYPES[out.dtype].compute == out.dtype and numel(grad.shape) > 0 and TARGET.get() is None
    if plain and all(is_contiguous(one.shape, one.strides) for one in (out, grad, index)):
        return _add_rows(out, grad, index, padding_index)
    bad = first_bad(index, out.shape[0], wrap=False)
    if bad is not None:
        return bad
    target = out
    if DTYPES[out.dtype].compute != out.dtype:
        compute = DTYPES[out.dtype].compute
        wide = [Operand(memory(numel(s), compute), compute, s, contiguous_strides(s)) for s in (out.shape, grad.shape)]
        copy(wide[1], grad)
        target, grad = wide
    fill(target, 0)
    rows = index._replace(shape=grad.shape, strides=(*index.strides, 0))
    columns = target._replace(shape=grad.shape, strides=(0,) * len(index.shape) + target.strides[1:])
    _put(columns, rows, grad, target.strides[0], "sum", out.shape[0], 0, padding_index)
    if target is not out:
        copy(out, target)
    return None


def _add_rows(out: Operand, grad: Operand, index: Operand, padding_index: int) -> BadIndex | None:
    """`embedding_dense_backward` of dense operands, in one pass."""
    (size, width), found, storage = out.shape, np.zeros(1, np.int64), DTYPES[out.dtype].storage
    entry = ADD_ROWS(x=out.dtype, index=index.dtype, stored=storage.name)
    arrays = (out.array, out.offset, index.array, index.offset, grad.array, grad.offset)
    count = numel(index.shape)
    serial_for(entry, count, (count, width, size, padding_index, storage.type(0), *arrays, found), max(1, width))
    return first_bad(index, size, wrap=False) if found[0] else None


# --- several indices at once -----------------------------------------------------------------------------------------


def index_shape(shape: Ints, index_shapes: Sequence[Ints | None]) -> tuple[Ints, int]:
    """The shape of `x[indices]`, and where in it the dimensions of the broadcast indices begin.

    `index_shapes` has None for a dimension that is not indexed; dimensions beyond its end are not, either. Indices that
    stand together put their dimensions there; otherwise these come first.
    """
    used = [d for d, s in enumerate(index_shapes) if s is not None]
    common = broadcast_shapes(*(s for s in index_shapes if s is not None))
    together = used[-1] - used[0] + 1 == len(used)
    start = used[0] if together else 0
    plain = [size for d, size in enumerate(shape) if d not in used]
    return (*plain[:start], *common, *plain[start:]), start


def _spread(x: Operand, indices: Mapping[int, Operand]) -> tuple[Ints, Operand, Callable[[Operand], Operand]]:
    """The result's shape, `x` with it along the dimensions that are not indexed, and what gives it to an index."""
    ndim = len(x.shape)
    shape, start = index_shape(x.shape, [indices[d].shape if d in indices else None for d in range(ndim)])
    plain = [x.strides[d] for d in range(ndim) if d not in indices]
    common = broadcast_shapes(*(one.shape for one in indices.values()))
    rest = (*plain[:start], *(0 for _ in common), *plain[start:])

    def widened(one: Operand) -> Operand:
        strides = broadcast_strides(one.shape, one.strides, common)
        return one._replace(shape=shape, strides=((0,) * start + strides + (0,) * len(plain[start:])))

    return shape, x._replace(shape=shape, strides=rest), widened


def _ready_fold(x: Operand, indices: Mapping[int, Operand]) -> tuple[Operand, Callable[..., np.ndarray | BadIndex]]:
    """Returns the metadata of the folded indices, and `f(index, at, ...)`, which says where they point to together.

    That is counted from the first element of `x`, and has the shape that the indices share.
    """
    common = broadcast_shapes(*(one.shape for one in indices.values()))
    count = numel(common)
    like = Operand(np.zeros(0, np.int64), "int64", common, contiguous_strides(common))
    steps = []
    for d, one in indices.items():
        wide = one._replace(strides=broadcast_strides(one.shape, one.strides, common), shape=common)
        steps.append((_ready_fold_in(like, wide), x.strides[d], x.shape[d], d, one[1:4]))

    def fold(*arrays: Any) -> np.ndarray | BadIndex:
        offsets, bad = np.zeros(count, np.int64), np.zeros(1, np.int64)
        for k, (fold_in, scale, size, d, metadata) in enumerate(steps):
            array, at = arrays[2 * k : 2 * k + 2]
            fold_in(offsets, 0, array, at, scale, size, bad)
            if bad[0]:
                found = first_bad(Operand(array, *metadata, at), size, wrap=True, dim=d)
                assert found is not None
                return found
        return offsets

    return like, fold


def _used(indices: Sequence[Operand | None]) -> dict[int, Operand]:
    return {d: one for d, one in enumerate(indices) if one is not None}


def _places(x: Operand, used: Mapping[int, Operand], widened: Callable[[Operand], Operand]) -> list[Place]:
    return [Place(widened(one), x.strides[d], x.shape[d], True, d) for d, one in used.items()]


def index(out: Operand, x: Operand, indices: Sequence[Operand | None]) -> BadIndex | None:
    """out = x[indices], with integer indices that broadcast together and None for a whole dimension.

    Negative indices count from the end. `out` has the shape that `index_shape` says.
    """
    return ready_index(out, x, indices)(*arrays_of(out, x, *_used(indices).values()))


def ready_index(out: Operand, x: Operand, indices: Sequence[Operand | None]) -> Callable[..., BadIndex | None]:
    """Prepares `index` for operands of such metadata: `f(out, out_at, x, x_at, ...)`, with
    the array and the offset of each index that is none."""
    used = _used(indices)
    _, rest, widened = _spread(x, used)
    target = TARGET.get()
    if target is not None:
        return lambda *arrays: target.take(out, rest, _places(x, used, widened))
    if len(used) == 1 and 0 not in out.shape:
        ((d, one),) = used.items()
        size, metadata = x.shape[d], one[1:4]
        take = ready_take(out, widened(one), rest, x.strides[d], size, wrap=True)

        def run_one(out: Any, out_at: int, x: Any, x_at: int, index: Any, at: int) -> BadIndex | None:
            fits = take(out, out_at, index, at, x, x_at)
            return None if fits else first_bad(Operand(index, *metadata, at), size, wrap=True, dim=d)

        return run_one
    like, fold = _ready_fold(x, used)
    take = ready_take(out, widened(like), rest, 1, INT64_MAX)

    def run(out: Any, out_at: int, x: Any, x_at: int, *arrays: Any) -> BadIndex | None:
        offsets = fold(*arrays)
        if isinstance(offsets, BadIndex):
            return offsets
        take(out, out_at, offsets, 0, x, x_at)
        return None

    return run


def index_put(
    x: Operand, indices: Sequence[Operand | None], source: Operand, *, accumulate: bool = False
) -> BadIndex | None:
    """x[indices] = source, or += with `accumulate`, where equal positions add up. `source` broadcasts."""
    arrays = arrays_of(x, source, *_used(indices).values())
    return ready_index_put(x, indices, source, accumulate=accumulate)(*arrays)


def ready_index_put(
    x: Operand, indices: Sequence[Operand | None], source: Operand, *, accumulate: bool = False
) -> Callable[..., BadIndex | None]:
    """Prepares `index_put` for operands of such metadata: `f(x, x_at, source, source_at, index, at, ...)`."""
    used = _used(indices)
    shape, rest, widened = _spread(x, used)
    spread = source._replace(shape=shape, strides=broadcast_strides(source.shape, source.strides, shape))
    target = TARGET.get()
    if target is not None:
        how = "sum" if accumulate else "replace"
        return lambda *arrays: target.put(rest, spread, _places(x, used, widened), how)
    like, fold = _ready_fold(x, used)
    put = ready_put(rest, widened(like), spread, 1, "sum" if accumulate else "replace")

    def run(x: Any, x_at: int, source: Any, source_at: int, *arrays: Any) -> BadIndex | None:
        offsets = fold(*arrays)
        if isinstance(offsets, BadIndex):
            return offsets
        put(source, source_at, offsets, 0, x, x_at)
        return None

    return run
