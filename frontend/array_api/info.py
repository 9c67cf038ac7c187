"""What the namespace can do: devices, dtypes and capabilities, as the standard's inspection functions tell."""

from __future__ import annotations

from typing import Any

import redispatch as rd
from redispatch import dtype

from .data_types import KINDS

ATOMIC = ("bool", "signed integer", "unsigned integer", "real floating", "complex floating")


class Info:
    """What `__array_namespace_info__()` returns."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        return rd.get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, dtype]:
        real = rd.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": rd.complex128 if real is rd.float64 else rd.complex64,
            "integral": rd.int64,
            "indexing": rd.int64,
        }

    def devices(self) -> list[Any]:
        """Those that hold values."""
        return [rd.device("cpu")]

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, dtype]:
        """The dtypes of a kind, or of several, by name."""
        kinds = ATOMIC if kind is None else (kind,) if isinstance(kind, str) else kind
        return {one.name: one for kind in kinds for one in KINDS[kind]}


def __array_namespace_info__() -> Info:
    """Devices, dtypes and capabilities."""
    return Info()
