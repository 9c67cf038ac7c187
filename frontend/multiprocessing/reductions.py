"""`StorageWeakRef`: a weak reference to the memory of a tensor."""

from __future__ import annotations

import weakref
from typing import Any

__all__ = ["StorageWeakRef"]


class StorageWeakRef:
    """A weak reference to a storage, equal to others of the same storage; `cdata` tells storages apart."""

    __slots__ = ("_storage", "cdata")

    def __init__(self, storage: Any) -> None:
        storage = getattr(storage, "_untyped", storage)
        self._storage, self.cdata = weakref.ref(storage), storage._cdata

    def expired(self) -> bool:
        """Returns whether the storage is gone."""
        return self._storage() is None

    def __hash__(self) -> int:
        return hash(self.cdata)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, StorageWeakRef) and self.cdata == other.cdata)
