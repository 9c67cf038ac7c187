"""The cache of what operators give for fakes: a call like one before takes its result's metadata from there.

An operator without data gives the same for arguments of the same metadata. So a call has a key: the operator, the
metadata of its fakes, its numbers with their types, and what else decides (inference mode, the default dtype). What the
key does not show is not cached, for a reason that `FakeTensorMode.cache_info()` counts. A result is kept as a recipe:
an argument itself, memory of its own, a view of an argument's memory.

A fake `add` takes 0.4 of the time by it. Read next: ../fake_tensor.py, which asks it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import redispatch as rd
from redispatch.dispatch import LAZY_BITS, STATE
from redispatch.dispatch.symbolic import Symbolic, SymInt
from redispatch.dispatch.tensor import UntypedStorage, current_index, empty_from, metadata_of, output_spec, view_over
from redispatch.utils import _pytree as pytree

from .tensor import FakeTensor

FakeTensorMode = Any  # the class in ../fake_tensor.py, which imports this file

LIMIT = 1 << 14  # entries; then the table starts afresh
PLAIN = {int, float, bool, complex, str, type(None), rd.dtype, rd.layout, rd.memory_format}
MASKS = (rd.bool, rd.uint8)


class DispatchCacheInfo(NamedTuple):
    """Calls that were answered from the cache, that filled it, that could do neither, by reason; and its entries."""

    hits: int
    misses: int
    bypasses: dict[str, int]
    size: int


class _BypassDispatchCache(Exception):
    """A call that has no key. `reason`: the one that is counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class _CacheKeyState:
    """The symbols that PyTorch's keys gather; a call with symbols has no key here."""

    shape_env: Any = None


class DispatchCache:
    """The entries and their counts."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.entries: dict[Any, Any] = {}
        self.bypasses: Counter[str] = Counter()
        self.hits = self.misses = 0

    def info(self) -> DispatchCacheInfo:
        return DispatchCacheInfo(self.hits, self.misses, dict(self.bypasses), len(self.entries))

    def enter(self, key: Any, fakes: list[FakeTensor], before: list[Any], result: Any) -> None:
        """Keeps the recipe of a result, or the reason why there is none."""
        recipe = recipe_of(fakes, before, result)
        if len(self.entries) >= LIMIT:
            self.entries.clear()
        self.entries[key] = recipe
        if type(recipe) is str:
            self.bypasses[recipe] += 1
        else:
            self.misses += 1


CACHE = DispatchCache()


# Keys -----------------------------------------------------------------------------------------------------------------

_REASONS: dict[Any, str] = {}  # operator -> why it is never cached; "" where it is


def reason_of(func: Any) -> str:
    """Returns the reason why an operator's results are not cached; "" where they are."""
    tags, name = func.tags, func._schema.name.partition("::")[2]
    if rd.Tag.data_dependent_output in tags:
        return "data dependent output"
    if rd.Tag.dynamic_output_shape in tags and name != "index":
        return "dynamic output shape"
    if rd.Tag.inplace_view in tags:
        return "inplace view"
    if name.startswith("lift"):
        return "lift"
    if name.startswith(("as_strided", "set_", "resize")):
        return "reaches into the storage"
    return "" if func.namespace in ("aten", "prims") else "non-builtin"


def key_of(mode: FakeTensorMode, func: Any, args: Any, kwargs: Any, fakes: list[FakeTensor]) -> Any:
    """Returns the key of a call, or as a str the reason why it has none. fakes: takes in those of the arguments."""
    reason = _REASONS.get(func)
    if reason is None:
        reason = _REASONS[func] = reason_of(func)
    if reason:
        return reason
    key = [func, func.generation, STATE.get().inference, rd.get_default_dtype()]
    reason = add(key, args, mode, fakes)
    if kwargs and not reason:
        key += kwargs
        reason = add(key, kwargs.values(), mode, fakes)
    if reason:
        return reason
    if func._schema.is_mutable and len(fakes) > 1:  # what may be written depends on what shares its memory
        stores = [one.meta._storage for one in fakes]
        key += map(stores.index, stores)
    return tuple(key)


def add(key: list[Any], values: Any, mode: FakeTensorMode, fakes: list[FakeTensor]) -> str:
    """Adds arguments to a key; returns "", or the reason why there can be none."""
    for one in values:
        kind = type(one)
        if kind is FakeTensor:
            if one.fake_mode is not mode:
                return "not our fake"
            if one.constant is not None:
                return "constant attribute"
            meta = one.meta
            if mode.shape_env is not None and any(type(n) is SymInt for n in (*meta._shape, *meta._stride)):
                return "symbolic shape"
            fakes.append(one)
            key += (one._interned or metadata_of(one), meta._offset, one._autograd is not None, one._counter is None)
            if meta._dtype in MASKS and key[0]._schema.name == "aten::index" and len(fakes) > 1:
                return "dynamic output shape"
        elif kind in PLAIN:
            key += (kind, one)
        elif isinstance(one, tuple | list):
            key += (kind, len(one))
            reason = add(key, one, mode, fakes)
            if reason:
                return reason
        elif kind is rd.device:
            key += (one, one.index is None and one.type not in ("cpu", "meta") and current_index(one.type))
        else:
            return unkeyed(one)
    return ""


def unkeyed(value: Any) -> str:
    if isinstance(value, rd.Tensor):
        return "non-fake tensor"
    return "symbolic shape" if isinstance(value, Symbolic) else f"{type(value).__name__} argument"


# Recipes --------------------------------------------------------------------------------------------------------------


class Fresh(NamedTuple):
    """A result with memory of its own."""

    spec: Any
    device: Any

    def made(self, mode: FakeTensorMode, fakes: list[FakeTensor]) -> FakeTensor:
        elem: Any = empty_from(self.spec)
        return FakeTensor(mode, elem, self.device)


class View(NamedTuple):
    """A result that shows the memory of an argument."""

    of: int
    shape: Any
    stride: Any
    offset: int
    dtype: Any
    device: Any

    def made(self, mode: FakeTensorMode, fakes: list[FakeTensor]) -> FakeTensor:
        seen: Any = view_over(fakes[self.of].meta, self.shape, self.stride, self.offset, self.dtype)
        return FakeTensor(mode, seen, self.device)


class Same(NamedTuple):
    """A result that is an argument."""

    of: int

    def made(self, mode: FakeTensorMode, fakes: list[FakeTensor]) -> FakeTensor:
        return fakes[self.of]


class Nothing(NamedTuple):
    """A result that is None."""

    def made(self, mode: FakeTensorMode, fakes: list[FakeTensor]) -> None:
        return None


class Several(NamedTuple):
    """A tuple or list of results."""

    kind: Any
    parts: list[Any]

    def made(self, mode: FakeTensorMode, fakes: list[FakeTensor]) -> Any:
        return self.kind([one.made(mode, fakes) for one in self.parts])


def face_of(fake: FakeTensor) -> Any:
    """Returns what an operator may change of an argument, to compare it with later."""
    meta = fake.meta
    return meta._shape, meta._stride, meta._offset, meta._dtype, meta._storage


def recipe_of(fakes: list[FakeTensor], before: list[Any], result: Any) -> Any:
    """Returns the recipe of a result, or as a str the reason why there is none."""
    if [face_of(one) for one in fakes] != before:
        return "argument laid out anew"
    if type(result) not in (tuple, list):
        return part_of(fakes, result, [])
    given: list[UntypedStorage] = []
    parts = [part_of(fakes, one, given) for one in result]
    return next((one for one in parts if type(one) is str), Several(type(result), parts))


def part_of(fakes: list[FakeTensor], result: Any, given: list[UntypedStorage]) -> Any:
    """Returns the recipe of one result. given: the memory of those before it."""
    if result is None:
        return Nothing()
    if type(result) is not FakeTensor:
        return "non-FakeTensor output"
    for place, one in enumerate(fakes):
        if one is result:
            return Same(place)
    meta = result.meta
    if result.constant is not None:
        return "constant attribute"
    if any(type(n) is SymInt for n in (*meta._shape, *meta._stride, meta._offset)):
        return "symbolic shape"
    if (meta._keyset | result._keyset) & LAZY_BITS:
        return "dispatch_key_set mismatch"
    if meta.layout is not rd.strided:
        return "sparse output"
    store = meta._storage
    for place, one in enumerate(fakes):
        if one.meta._storage is store:
            if one.meta._keyset & LAZY_BITS:  # a view over it would have them
                return "dispatch_key_set mismatch"
            return View(place, meta._shape, meta._stride, meta._offset, meta._dtype, result.device)
    if any(one is store for one in given):
        return "outputs that share memory"
    given.append(store)
    spec = output_spec(meta._shape, meta._dtype, meta._device, meta._stride)
    if meta._offset or store.nbytes() != spec.elements * meta._dtype.itemsize:
        return "part of a storage"
    return Fresh(spec, result.device)


# PyTorch's names ------------------------------------------------------------------------------------------------------


@dataclass
class TensorMetadata:
    """The facts about a tensor that tell one key from another."""

    dtype: rd.dtype
    shape: tuple[Any, ...]
    stride: tuple[Any, ...]
    device: rd.device
    layout: rd.layout
    memory_format: rd.memory_format | None
    storage_offset: Any
    storage_bytes: Any
    requires_grad: bool
    is_quantized: bool
    is_conj: bool
    is_neg: bool
    is_inference: bool
    is_sparse: bool
    is_coalesced: bool | None
    dense_dim: int | None
    sparse_dim: int | None


def extract_tensor_metadata(t: rd.Tensor) -> TensorMetadata:
    """Returns the facts about a tensor that tell one key from another."""
    strided = t.layout is rd.strided
    coo = t.is_sparse
    formats = (rd.contiguous_format, rd.channels_last, rd.channels_last_3d)
    fits = [one for one in formats if strided and dims_of(one) in (None, t.dim()) and dense(t, one)]
    return TensorMetadata(
        t.dtype, t.shape, t.stride() if strided else (), t.device, t.layout, fits[0] if fits else None,
        t.storage_offset(), t.untyped_storage().nbytes() if strided else None, t.requires_grad, t.is_quantized,
        t.is_conj(), t.is_neg(), t.is_inference(), coo, t.is_coalesced() if coo else None,
        None if strided else t.dense_dim(), None if strided else t.sparse_dim(),
    )  # fmt: skip


def dims_of(memory_format: rd.memory_format) -> int | None:
    return {rd.channels_last: 4, rd.channels_last_3d: 5}.get(memory_format)


def dense(t: rd.Tensor, memory_format: rd.memory_format) -> bool:
    symbolic = any(isinstance(one, Symbolic) for one in pytree.tree_leaves((tuple(t.shape), t.stride())))
    return not symbolic and t.is_contiguous(memory_format=memory_format)
