"""Names of where a program finds a value: `LocalSource("x").name == "L['x']"`. Symbols are called by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["AttrSource", "ConstantSource", "GetItemSource", "GlobalSource", "LocalSource", "Source"]


@dataclass(frozen=True)
class Source:
    """Place of a value in a program. `name` is Python that finds it."""

    @property
    def name(self) -> str:
        raise NotImplementedError(f"{type(self).__name__} has no name")


@dataclass(frozen=True)
class ConstantSource(Source):
    source_name: str

    @property
    def name(self) -> str:
        return self.source_name


@dataclass(frozen=True)
class LocalSource(Source):
    local_name: str
    is_input: bool = False

    @property
    def name(self) -> str:
        return f"L[{self.local_name!r}]"


@dataclass(frozen=True)
class GlobalSource(Source):
    global_name: str

    @property
    def name(self) -> str:
        return f"G[{self.global_name!r}]"


@dataclass(frozen=True)
class AttrSource(Source):
    base: Source
    member: str

    @property
    def name(self) -> str:
        return f"{self.base.name}.{self.member}"


@dataclass(frozen=True)
class GetItemSource(Source):
    base: Source
    index: Any

    @property
    def name(self) -> str:
        return f"{self.base.name}[{self.index!r}]"
