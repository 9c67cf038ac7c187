"""Operators that take or give indices. A batch of indices needs the number of the example as one more index."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, call, ops
from redispatch.kernels.ops.embedding import embedding_op
from redispatch.kernels.ops.index_functions import index_select_op, take_op
from redispatch.kernels.ops.indexing import index_op, index_put_op
from redispatch.kernels.ops.sorting import bucketize_op, bucketize_scalar_op, searchsorted_op, searchsorted_scalar_op

from ...dispatch.transforms.batched import front, is_tensor, padded, rank, shifted, whole
from .fallback import TEXTS, batches, one_by_one

aten = ops.aten
# x[i, :, j] -----------------------------------------------------------------------------------------------------------


def integers(indices: list[Any], dims: list[Any]) -> tuple[list[Any], list[Any]]:
    """The indices with masks made indices. RuntimeError for a mask that differs between examples."""
    found: list[Any] = []
    batched: list[Any] = []
    for index, dim in zip(indices, dims, strict=True):
        if index is None or index.dtype.is_floating_point or index.dtype.itemsize > 1:
            found.append(index)
            batched.append(dim)
        elif dim is not None:
            raise RuntimeError(TEXTS["index"])
        else:
            parts = index.nonzero().unbind(1)
            found += parts
            batched += [None] * len(parts)
    return found, batched


def laid_out(indices: list[Any], dims: list[Any], size: int, like: Any) -> tuple[list[Any], int, int, bool]:
    """(indices with the examples' numbers first, dimensions of the indices together, place of the first one, whether
    they stand side by side)."""
    count = max(rank(index, dim) for index, dim in zip(indices, dims, strict=True) if index is not None)
    numbers = aten.arange.default(size, device=like.device).view((size, *(1,) * count))
    placed = [numbers]
    for index, dim in zip(indices, dims, strict=True):
        if index is None:
            placed.append(None)
            continue
        moved = front(index, dim)
        for _ in range(count - rank(index, dim)):
            moved = moved.unsqueeze(0 if dim is None else 1)
        placed.append(moved)
    used = [place for place, index in enumerate(indices) if index is not None]
    side_by_side = used == list(range(used[0], used[-1] + 1))
    return placed, count, used[0], side_by_side


@batches("indices", index_op)
def index_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    self, indices = values
    indices, batched = integers(indices, dims[1])
    if dims[0] is not None and all(dim is None for dim in batched) and any(index is not None for index in indices):
        used = [place for place, index in enumerate(indices) if index is not None]
        if used == list(range(used[0], used[-1] + 1)):
            return aten.index.Tensor(front(self, dims[0]), [None, *indices]), 0
    placed, count, first, side_by_side = laid_out(indices, batched, size, self)
    result = aten.index.Tensor(whole(self, dims[0], size), placed)  # the indices' dimensions come first
    if side_by_side and first:  # where an example has them behind the dimensions that go before
        result = result.movedim(tuple(range(1, 1 + count)), tuple(range(1 + first, 1 + first + count)))
    return result, 0


@batches("indices", index_put_op, index_put_op.inplace)
def index_put_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    self, indices, new, accumulate = values[:4]
    indices, batched = integers(indices, dims[1])
    placed, count, first, side_by_side = laid_out(indices, batched, size, self)
    target = whole(self, dims[0], size)
    shape = shape_of(target, placed, count)
    logical = (
        shape
        if not (side_by_side and first)
        else (shape[0], *shape[1 + count : 1 + count + first], *shape[1 : 1 + count], *shape[1 + count + first :])
    )
    source = front(new, dims[2])
    if dims[2] is not None:
        for _ in range(len(logical) - source.dim()):
            source = source.unsqueeze(1)
    source = source.expand(logical)
    if side_by_side and first:
        source = source.movedim(tuple(range(1 + first, 1 + first + count)), tuple(range(1, 1 + count)))
    return call(op, [target, placed, source, accumulate, *values[4:]]), 0


def shape_of(target: Any, placed: list[Any], count: int) -> tuple[int, ...]:
    """The shape of `target[placed]`, whose indices' dimensions come first."""
    shapes = [tuple(index.shape) for index in placed if index is not None]
    columns = zip(*(aligned(shape, 1 + count) for shape in shapes), strict=True)
    together = tuple(0 if 0 in sizes else max(sizes) for sizes in columns)
    rest = [size for place, size in enumerate(target.shape) if place >= len(placed) or placed[place] is None]
    return (*together, *rest)


def aligned(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    return (*(1,) * (count - len(shape)), *shape)


# Rows and elements ----------------------------------------------------------------------------------------------------


@batches("indices", index_select_op)
def index_select_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    (self, dim, index), (ds, _, di) = values, dims
    count = rank(self, ds)
    if di is None:
        x = front(self, ds)
        if count:
            return aten.index_select.default(x, shifted(dim, count), index), 0
        return aten.index_select.default(x.unsqueeze(1), 1, index).select(1, 0), 0
    x = whole(self, ds, size)
    if not count:
        return x, 0
    along = shifted(dim, count)
    chosen = front(index, di).reshape(size, -1)
    shape = list(x.shape)
    shape[along] = chosen.shape[1]
    chosen = chosen.view((size, *(1,) * (along - 1), chosen.shape[1], *(1,) * (x.dim() - along - 1))).expand(shape)
    return aten.gather.default(x, along, chosen), 0


@batches("indices", embedding_op)
def embedding_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    weight, indices, padding_idx, *rest = values
    dw, di = dims[:2]
    if dw is None:
        return aten.embedding.default(weight, front(indices, di), padding_idx, *rest), 0
    table = front(weight, dw)
    if di is None:
        flat = aten.index_select.default(table, 1, indices.reshape(-1))
        return flat.view((size, *indices.shape, table.shape[2])), 0
    count = table.shape[1]
    own = front(indices, di)
    numbers = aten.arange.default(size, device=own.device).view((size, *(1,) * (own.dim() - 1))) * count
    return aten.embedding.default(table.reshape(size * count, -1), own + numbers), 0


@batches("indices", take_op)
def take_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    (self, index), (ds, di) = values, dims
    if ds is None:
        return aten.take.default(self, front(index, di)), 0
    rows = front(self, ds).reshape(size, -1)
    chosen = whole(index, di, size)
    return aten.gather.default(rows, 1, chosen.reshape(size, -1) % max(rows.shape[1], 1)).view(chosen.shape), 0


INDEX_FORMS = {"add": ["default"], "copy": ["default"], "reduce": ["default"], "fill": ["int_Scalar", "int_Tensor"]}
ALONG = [
    getattr(getattr(aten, f"index_{name}{suffix}"), overload)
    for name, overloads in INDEX_FORMS.items()
    for overload in overloads
    for suffix in ("", "_")
]


@batches("indices", *ALONG)
def along_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Writes at the same indices in every example: those of the whole, along a dimension one further."""
    self, dim, index, source, *rest = values
    count = rank(self, dims[0])
    fills = op.schema.arguments[3].name == "value"
    if not count and fills:  # an example without dimensions has one that may be named
        own = list(values)
        own[0] = whole(self, dims[0], size).unsqueeze(1)
        filled, _ = along_rule(op, own, [0, *dims[1:]], size)
        return (whole(self, dims[0], size) if op.schema.mutable_positions else filled.squeeze(1)), 0
    if op._opname.startswith("index_reduce") and dims[2] is not None or not count:
        return one_by_one(op, values, dims, size)
    if dims[2] is not None or (fills and dims[3] is not None):
        return along_own(op, values, dims, size)
    source = source if fills else whole(source, dims[3], size)
    return call(op, [whole(self, dims[0], size), shifted(dim, count), index, source, *rest]), 0


def along_own(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Writes where each example has indices of its own, or a number: at the front, by `index_put`."""
    self, dim, index, source, *rest = values
    _, _, di, ds, *_ = dims
    adds, fills = op._opname.startswith("index_add"), op.schema.arguments[3].name == "value"
    along = shifted(dim, rank(self, dims[0]))
    target = whole(self, dims[0], size)
    index, of_index = (index.reshape(-1), None) if di is None else (padded(index, di, 1), 0)
    if fills:
        new = source if is_tensor(source) else aten.scalar_tensor.default(source, dtype=self.dtype, device=self.device)
    else:
        new, ds = whole(source, ds, size), 0
        new = new.movedim(along, 1) if new.dim() > 1 else new.unsqueeze(1)
        new = new * rest[0] if adds and rest[0] != 1 else new
    given, given_dims = [target.movedim(along, 1), [index], new, adds], [0, [of_index], ds, None]
    result, _ = index_put_rule(aten.index_put.default, given, given_dims, size)
    result = result.movedim(1, along)
    return (target.copy_(result) if op.schema.mutable_positions else result), 0


# searchsorted, bucketize ----------------------------------------------------------------------------------------------


@batches("leading", searchsorted_op)
def search_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """One sequence serves any number of values; a batch of sequences, as many rows of values."""
    sequence, sought, *how, sorter = values
    of_sequence, of_sought, *_, of_sorter = dims
    one_each = rank(sequence, of_sequence) == 1
    if one_each and of_sequence is None and of_sorter is None:
        return call(op, [sequence, front(sought, of_sought), *how, sorter]), 0
    rows = whole(sought, of_sought, size)
    given = rows.reshape(size, -1) if one_each else rows
    order = whole(sorter, of_sorter, size) if is_tensor(sorter) else sorter
    return call(op, [whole(sequence, of_sequence, size), given, *how, order]).view(rows.shape), 0


@batches("leading", searchsorted_scalar_op, otherwise=one_by_one)
def search_number(op: OpOverload, stack: list[Any]) -> Any:
    sequence, sought, out_int32, right, side, sorter = stack
    places = sequence.new_full([1], sought)
    how = {"out_int32": out_int32, "right": right, "side": side, "sorter": sorter}
    return aten.searchsorted.Tensor(sequence, places, **how).squeeze(0)


@batches("leading", bucketize_op, otherwise=one_by_one)
def bucketize(op: OpOverload, stack: list[Any]) -> Any:
    sought, boundaries, out_int32, right = stack
    return aten.searchsorted.Tensor(boundaries, sought, out_int32=out_int32, right=right)


@batches("leading", bucketize_scalar_op, otherwise=one_by_one)
def bucketize_number(op: OpOverload, stack: list[Any]) -> Any:
    sought, boundaries, out_int32, right = stack
    return aten.searchsorted.Scalar(boundaries, sought, out_int32=out_int32, right=right)
