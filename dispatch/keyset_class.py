"""`DispatchKeySet`: a keyset as users hold it, with PyTorch's methods. core/keyset.py does the work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .core.key import DispatchKey, key_named
from .core.keyset import describe, has, highest, keyset, members, without


class DispatchKeySet(int):
    """A keyset with PyTorch's methods; still an int, so that it may stand wherever the library wants a keyset."""

    def __new__(cls, keys: DispatchKey | int | Iterable[DispatchKey] = 0) -> DispatchKeySet:
        if isinstance(keys, int):
            return super().__new__(cls, keys)
        return super().__new__(cls, keyset(keys) if isinstance(keys, DispatchKey | str) else keyset(*keys))

    @staticmethod
    def from_raw_repr(bits: int) -> DispatchKeySet:
        return DispatchKeySet(bits)

    def raw_repr(self) -> int:
        return int(self)

    def __or__(self, other: int) -> DispatchKeySet:
        return DispatchKeySet(int(self) | int(other))

    def __and__(self, other: int) -> DispatchKeySet:
        return DispatchKeySet(int(self) & int(other))

    def __sub__(self, other: int) -> DispatchKeySet:
        return DispatchKeySet(without(int(self), int(other)))

    def add(self, key: DispatchKey) -> DispatchKeySet:
        return DispatchKeySet(int(self) | key.bits)

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        return DispatchKeySet(without(int(self), key.bits))

    def has(self, key: DispatchKey) -> bool:
        return has(self, key)

    __contains__ = has

    def __iter__(self) -> Iterator[DispatchKey]:
        return members(self)

    def highestPriorityTypeId(self) -> DispatchKey:
        return highest(self)

    def __repr__(self) -> str:
        return describe(self)

    __str__ = __repr__


def as_keyset(value: Any) -> DispatchKeySet:
    """A keyset from what users pass for one: a keyset, a key, the name of one, several of them, or a tensor."""
    if isinstance(value, int):
        return DispatchKeySet(value)
    if isinstance(value, DispatchKey | str):
        return DispatchKeySet(key_named(value))
    if hasattr(value, "_keyset"):
        return DispatchKeySet(value._keyset)
    return DispatchKeySet(keys for keys in map(key_named, value))
