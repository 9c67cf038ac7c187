"""MemoryTrackerMode: how many bytes are alive after each operator, which of them made those, and when there were most.

    with MemoryTrackerMode() as memory:
        model(x).sum().backward()
    print(memory)                                   # by operator: made in all, and alive when the most was
    memory.peak, memory.timeline                    # bytes; a point for each call

What it teaches: memory belongs to storages, not to tensors. A view costs nothing, a tensor that is deleted costs as
long as a view or autograd keeps its storage. So the mode counts each storage once, keeps no storage alive (a weak
reference), and is called back when one dies: what is alive is exact without a look into the allocator. On the meta
device it is as exact, and needs no memory at all. How serious it is: for every day; it counts what tensors hold, not
what kernels need while they run.

Read next: profiler.py; `redispatch.viz.graph`, which shows what autograd saves.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter, deque
from functools import partial
from typing import Any, NamedTuple

from redispatch.testing.schema_check import plain_tensors
from redispatch.utils._python_dispatch import TorchDispatchMode
from redispatch.utils.text import spoken_bytes, text_table

GIVEN = "(given)"  # who made what was there before: parameters, inputs, arrays


class Point(NamedTuple):
    """The memory in use after one call, in bytes."""

    op: str
    live: int


class Holding(NamedTuple):
    """A storage that is alive: a weak reference, its size, and the operator that made it."""

    storage: weakref.ref[Any]
    nbytes: int
    maker: str


class MemoryTrackerMode(TorchDispatchMode):
    """A region in which the storages that operators make and use are counted.

    A storage counts from the call in which it is seen first, until nothing holds it; if it came as an argument, it is
    counted as "(given)". Results: `live` and `peak`, in bytes; `timeline`, a Point for each call; `made`, bytes in all
    by operator; `at_peak`, bytes alive then by operator; `get_table()`. After the region, `live` still falls as
    storages die. Each region starts from nothing.

    >>> import redispatch as rd
    >>> from redispatch.modes import MemoryTrackerMode
    >>> with MemoryTrackerMode() as memory:
    ...     x = rd.ones(1000)
    >>> memory.peak
    4000
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self.peak = 0
        self.timeline: list[Point] = []
        self.calls: Counter[str] = Counter()
        self.made: Counter[str] = Counter()
        self.at_peak: Counter[str] = Counter()
        self._alive: Counter[str] = Counter()  # by who made it
        self._total = 0
        self._holdings: dict[int, Holding] = {}  # by the storage's id
        # A storage may die in any thread, and within any line of this file. So its end is only noted, and counted when
        # somebody asks next. The weak reference holds the list, and not the mode.
        self._ended: deque[tuple[int, weakref.ref[Any]]] = deque()

    def __enter__(self) -> MemoryTrackerMode:
        with self._lock:
            self._clear()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with self._lock:
            self._see((args, kwargs), GIVEN)
        result = func(*args, **(kwargs or {}))
        name = str(func)
        with self._lock:
            self.calls[name] += 1
            self._see((args, kwargs, result), name)  # the arguments, too: they may have another size now
            self.timeline.append(Point(name, self._total))
        return result

    @property
    def live(self) -> int:
        """The bytes of all storages seen that are alive now."""
        with self._lock:
            self._count_the_ended()
            return self._total

    def _see(self, value: Any, maker: str) -> None:
        """Counts the storages in `value` that are new, or of another size than before."""
        self._count_the_ended()
        for tensor in plain_tensors(value):
            storage = tensor.untyped_storage()
            number, nbytes = id(storage), storage.nbytes()
            known = self._holdings.get(number)
            if known is not None and known.storage() is storage:
                if known.nbytes == nbytes:
                    continue
                reference = known.storage
            else:
                reference = weakref.ref(storage, partial(note_end, self._ended, number))
            if known is not None:  # of another size, or another one that stood at this address
                self._change(known.maker, -known.nbytes)
            self._holdings[number] = Holding(reference, nbytes, maker)
            self._change(maker, nbytes)

    def _count_the_ended(self) -> None:
        while self._ended:
            number, reference = self._ended.popleft()
            known = self._holdings.get(number)
            if known is not None and known.storage is reference:  # else another one stands at this address by now
                del self._holdings[number]
                self._change(known.maker, -known.nbytes)

    def _change(self, maker: str, nbytes: int) -> None:
        self._total += nbytes
        self._alive[maker] += nbytes
        if nbytes > 0:
            self.made[maker] += nbytes
        if self._total > self.peak:
            self.peak, self.at_peak = self._total, +self._alive  # + leaves out what is zero

    # What was found ------------------------------------------------------------------------------------------------

    def get_table(self) -> str:
        """A line for each operator that made storages: calls, bytes made, bytes alive at the peak; the total last."""
        rows = [("made by", "calls", "made", "at peak")]
        for name in sorted(self.made, key=lambda name: (-self.at_peak[name], -self.made[name], name)):
            calls = f"{self.calls[name]:,}" if name in self.calls else "-"
            rows.append((name, calls, spoken_bytes(self.made[name]), spoken_bytes(self.at_peak[name])))
        rows.append(("total", f"{self.calls.total():,}", spoken_bytes(self.made.total()), spoken_bytes(self.peak)))
        return text_table(rows)

    def __str__(self) -> str:
        return self.get_table()


def note_end(ended: deque[tuple[int, weakref.ref[Any]]], number: int, reference: weakref.ref[Any]) -> None:
    """Notes that a storage has died."""
    ended.append((number, reference))


NOT_SUPPORTED: dict[str, str] = {}
