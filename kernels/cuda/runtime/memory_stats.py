"""The allocator's counts, and PyTorch's names for them: those of `memory_stats`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Statistics:
    """Bytes and numbers of a device since its beginning; what is now is the difference. The allocator writes them."""

    held: int = 0  # bytes of size classes, now
    requested: int = 0  # bytes that were asked for
    freed_requested: int = 0
    shelves: list[Any] = field(default_factory=list)  # which count how often their memory was taken (memory.py)
    reserved: int = 0  # bytes from the driver
    released: int = 0
    segments: int = 0
    released_segments: int = 0
    waiting: int = 0  # bytes that nobody holds, and another stream may still use
    retries: int = 0
    ooms: int = 0
    peak_allocated: int = 0
    peak_reserved: int = 0

    @property
    def allocated_now(self) -> int:
        return self.held

    @property
    def allocated(self) -> int:
        return sum(one.taken * one.room for one in self.shelves)

    @property
    def allocations(self) -> int:
        """The number of allocations; what has no bytes does not count."""
        return sum(one.taken for one in self.shelves if one.room)

    @property
    def tensors(self) -> int:
        """The number of tensors."""
        return sum(one.taken - one.returned for one in self.shelves if one.room)

    @property
    def reserved_now(self) -> int:
        return self.reserved - self.released

    def reserve(self, room: int) -> None:
        """A segment has come from the driver, or, where `room` is negative, has gone back."""
        if room > 0:
            self.reserved += room
            self.segments += 1
            self.peak_reserved = max(self.peak_reserved, self.reserved_now)
        else:
            self.released -= room
            self.released_segments += 1

    def reset_peaks(self) -> None:
        """Has the peaks be what there is now."""
        self.peak_allocated, self.peak_reserved = self.allocated_now, self.reserved_now

    def reset_totals(self) -> None:
        """Counts from what there is now."""
        for shelf in self.shelves:
            shelf.taken, shelf.returned = shelf.taken - shelf.returned, 0
        for whole, part in (
            ("requested", "freed_requested"),
            ("reserved", "released"),
            ("segments", "released_segments"),
        ):
            setattr(self, whole, getattr(self, whole) - getattr(self, part))
            setattr(self, part, 0)
        self.retries = self.ooms = 0

    def told(self) -> dict[str, int]:
        """Under PyTorch's names. Blocks are not split, so what is counted of them is what is counted of segments; of
        peaks, those of bytes are kept."""
        found: dict[str, int] = {}
        allocated, allocations = self.allocated, self.allocations
        freed = allocated - self.held
        for name, total, gone, peak in (
            ("allocated_bytes", allocated, freed, self.peak_allocated),
            ("reserved_bytes", self.reserved, self.released, self.peak_reserved),
            ("active_bytes", allocated, freed - self.waiting, None),
            ("requested_bytes", self.requested, self.freed_requested, None),
            ("allocation", allocations, allocations - self.tensors, None),
            ("segment", self.segments, self.released_segments, None),
        ):
            found |= {f"{name}.all.current": total - gone, f"{name}.all.allocated": total, f"{name}.all.freed": gone}
            if peak is not None:
                found[f"{name}.all.peak"] = peak
        return {**found, "num_alloc_retries": self.retries, "num_ooms": self.ooms}

    def nested(self) -> dict[str, Any]:
        """`told`, with a dictionary for each part of a name."""
        whole: dict[str, Any] = {}
        for name, number in self.told().items():
            *parts, last = name.split(".")
            inner = whole
            for part in parts:
                inner = inner.setdefault(part, {})
            inner[last] = number
        return whole

    def summary(self, index: int) -> str:
        """A table of a few lines."""
        stats = self.told()
        rows = [f"cuda:{index}        now        most       total"]
        for what in ("allocated", "active", "reserved", "requested"):
            name = f"{what}_bytes.all"
            shown = [stats[f"{name}.current"], stats.get(f"{name}.peak"), stats[f"{name}.allocated"]]
            rows.append(f"{what:<12}" + "".join(f"{'' if n is None else in_units(n):>12}" for n in shown))
        rows.append(
            f"tensors {stats['allocation.all.current']}, segments {stats['segment.all.current']}, "
            f"tried again {self.retries}, out of memory {self.ooms}"
        )
        return "\n".join(rows)


def in_units(nbytes: int) -> str:
    """Bytes as PyTorch's messages have them."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} bytes"
