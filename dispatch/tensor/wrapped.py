"""Wrapped: a tensor as the function under a transform sees it, around a value of the level outside.

Under `grad` it looks like its value, and has a history of its own. Under `vmap` it looks like one of the many that its
value holds along the dimension `bdim`. Under `jvp` it has a tangent beside its value. It has no memory: every call on
it goes to its level (dispatch/layers/transforms.py).
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import LAZY_BITS, TensorBase, _disabled_torch_function_impl, keyset, shared
from redispatch.dispatch.layers.transforms import without_dead
from redispatch.dispatch.specialiser.annotations import leaf

from .devices import device_keyset
from .layouts import contiguous_format
from .metadata import Size, lay_out
from .tensor import Tensor

WATCHED = keyset("FuncTorchGradWrapper")
BATCHED = keyset("FuncTorchBatched")
ALL_BUT_FIRST = slice(1, None)
_KEYS: dict[tuple[str, int], int] = {}


class Wrapped(Tensor):
    """See above. `_value`: the tensor inside; `_level`: whose wrapper it is; `_bdim`: the batch dimension or None."""

    __torch_function__ = staticmethod(_disabled_torch_function_impl)
    _value: Any
    _level: Any
    _bdim: int | None
    _tangent: Any

    def untyped_storage(self) -> Any:
        """NotImplementedError: a wrapper has no memory."""
        kind = "TensorWrapper" if self._bdim is None else "BatchedTensorImpl"
        raise NotImplementedError(
            f"Cannot access storage of {kind}: under a transform (vmap, grad, jvp) a tensor is a part of a computation"
        )

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        """Whether an example lies densely. RuntimeError for formats of images: an example has lost its batch."""
        if self._bdim is not None and memory_format is not contiguous_format:
            raise RuntimeError(
                "NYI: querying is_contiguous inside of vmap for memory_format other than torch.contiguous_format"
            )
        return super().is_contiguous(memory_format)

    @property
    def data(self) -> Any:
        """Returns that of any tensor under grad and jvp. RuntimeError under vmap."""
        if self._bdim is not None:
            raise RuntimeError("accessing `data` under vmap transform is not allowed")
        return Tensor.data.fget(self)

    @data.setter
    def data(self, value: Any) -> None:
        if self._bdim is not None:
            raise RuntimeError("mutating directly with `.data` under vmap transform is not allowed.")
        Tensor.data.fset(self, value)

    def data_ptr(self) -> int:
        """RuntimeError: a wrapper has no memory."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage: it is under a transform")

    def __deepcopy__(self, memo: Any) -> Any:
        self.untyped_storage()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(
            "a tensor under a transform (vmap, grad, jvp) cannot be pickled: it is part of a computation"
        )


@leaf
def watched(value: Any, level: Any) -> TensorBase:
    """A wrapper of `level` that looks like `value`, as a level that differentiates has them.

    A level that is gone may have left a wrapper around one of this level: a `vjp` inside, whose backward runs now.
    """
    if type(value) is Wrapped:
        value = without_dead(value)
        if type(value) is Wrapped and value._level is level:
            return value
    t: Any = object.__new__(Wrapped)
    t._keyset = keys_of_wrapper(value, WATCHED)
    t._counter = [0]
    t._autograd = t._store = t._array = t._view = t._bdim = t._tangent = None
    t._shape, t._stride, t._offset = value._shape, value._stride, value._offset
    t._dtype, t._device, t._interned = value._dtype, value._device, value._interned
    t._value, t._level = value, level
    return t


@leaf
def wrapped(value: Tensor, level: Any, bdim: int | None = None, tangent: Any = None) -> Any:
    """A wrapper of `level`: like `value`; or, with `bdim`, like one of the tensors along that dimension of it."""
    t: Any = object.__new__(Wrapped)
    t._keyset = keys_of_wrapper(value, WATCHED if bdim is None else BATCHED)
    t._counter = [0]
    t._autograd = t._store = t._array = t._view = t._interned = None
    t._dtype, t._device, t._offset = value._dtype, value._device, value._offset
    t._value, t._level, t._bdim, t._tangent = value, level, bdim, tangent
    t._shape, t._stride = metadata_without(value, bdim)
    return t


def look_like_value(wrapper: Any) -> None:
    """Has a wrapper look as its value does now: an operator may have changed its shape in place."""
    value = wrapper._value
    lay_out(wrapper, *metadata_without(value, wrapper._bdim), value._offset)


def metadata_without(value: Any, bdim: int | None) -> tuple[Size, tuple[int, ...]]:
    """(shape, strides) of a tensor without its dimension `bdim`."""
    shape, stride = value._shape, value._stride
    if bdim is None:
        return shape, stride
    if bdim == 0:
        return tuple.__new__(Size, tuple.__getitem__(shape, ALL_BUT_FIRST)), stride[1:]
    return shape[:bdim] + shape[bdim + 1 :], stride[:bdim] + stride[bdim + 1 :]


def look_like_values(written: Any) -> None:
    """Has each wrapper that a call wrote show its value's metadata: a tensor, or a list."""
    for one in written if isinstance(written, list | tuple) else (written,):
        if level_of(one) is not None and (one._bdim is not None or one._value._shape != one._shape):
            look_like_value(one)


def keys_of_wrapper(value: Tensor, kind: int) -> int:
    """The keys of a dense tensor on the value's device, the wrapper's own, and the lazy bits of the value."""
    key = value._device.type, kind | value._keyset & LAZY_BITS
    found = _KEYS.get(key)
    if found is None:
        found = _KEYS[key] = shared(device_keyset(key[0]) | key[1])
    return found


def level_of(tensor: Any) -> Any:
    """The level whose wrapper a tensor is; None for a plain tensor, and where that level is gone."""
    level = getattr(tensor, "_level", None)
    return level if level is not None and level.alive else None


def is_wrapped(tensor: Any) -> bool:
    return type(tensor) is Wrapped


def is_batched(tensor: Any) -> bool:
    """Whether a tensor stands for others, of some vmap, on any level: then its values are not one thing."""
    while type(tensor) is Wrapped:
        if tensor._bdim is not None:
            return True
        tensor = tensor._value
    return False


__all__ = [
    "Wrapped",
    "is_batched",
    "is_wrapped",
    "level_of",
    "look_like_value",
    "look_like_values",
    "watched",
    "without_dead",
    "wrapped",
]


# debug_unwrap: the value behind a tensor of a transform, to look at while debugging -----------------------------------


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The value in a wrapper of `vmap`, `grad` or `jvp`, without all wrappers, or with `recurse=False` without the
    outermost; other tensors as they are.

    What is computed from it is not part of the computation that is transformed: gradients and batches end here.
    """
    while type(tensor) is Wrapped:
        tensor = tensor._value
        if not recurse:
            break
    return tensor
