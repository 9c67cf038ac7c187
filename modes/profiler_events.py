"""Events of a profile as PyTorch's programs read them: nested, averaged by name, in a table.

Times are in microseconds. `cpu_time_total` has in it the time of what runs inside an event, `self_cpu_time_total` has
not; so the sum of the second over all events is the time that was seen. Read next: the root's profiler.py, which makes
them.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from redispatch.utils.text import spoken_bytes, text_table

from .profiler import Event

COUNTED = ("count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "flops")
ORDERS = (
    "cpu_time", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "count", "flops",
    *(f"{own}{device}_{what}" for device in ("device", "cuda") for own, what in (
        ("", "time"), ("", "time_total"), ("self_", "time_total"), ("", "memory_usage"), ("self_", "memory_usage"))),
)  # fmt: skip
OF_DEVICES = ("cuda", "device")


class Interval(NamedTuple):
    """From when to when, in microseconds."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """The length of the event."""
        return self.end - self.start


@dataclass(eq=False)
class FunctionEvent:
    """A call or a label; or several of one key together, whose times, bytes and FLOPs are sums.

    thread: its number, in the order in which they appear. cpu_memory_usage: bytes of new results; `self_...` leaves out
    those of events inside. input_shapes: of the arguments, where recorded. details: what the trace's file says
    beside. What is asked of devices is 0.
    """

    name: str
    time_range: Interval
    thread: int
    self_cpu_memory_usage: int = 0
    flops: int = 0
    input_shapes: list[list[int]] = field(default_factory=list)
    is_user_annotation: bool = False
    details: dict[str, Any] = field(default_factory=dict, repr=False)
    count: int = 1
    cpu_parent: FunctionEvent | None = field(default=None, repr=False)
    cpu_children: list[FunctionEvent] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.cpu_time_total = self.self_cpu_time_total = self.time_range.elapsed_us()
        self.cpu_memory_usage = self.self_cpu_memory_usage

    def __getattr__(self, name: str) -> float:
        if name in ORDERS and any(device in name for device in OF_DEVICES):
            return 0
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key}: {self.count} times, {spoken_us(self.cpu_time_total)}>"

    @property
    def key(self) -> str:
        """The name, and one for all steps of a schedule."""
        return "ProfilerStep*" if self.is_user_annotation and self.name.startswith("ProfilerStep#") else self.name

    @property
    def cpu_time(self) -> float:
        """The mean over all calls."""
        return self.cpu_time_total / self.count if self.count else 0.0


def nested(events: Iterable[Event], spans: Iterable[Any], shapes: bool) -> list[FunctionEvent]:
    """The calls and labels of a profile in the order in which they began, each inside the label around it."""
    found = [of_call(event, shapes) for event in events]
    for span in spans:
        found.append(FunctionEvent(span.name, microseconds(span.start, span.end), span.thread, is_user_annotation=True))
    found.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
    around: dict[int, list[FunctionEvent]] = {}  # by thread: those that have begun, the innermost last
    for event in found:
        open_ones = around.setdefault(event.thread, [])
        while open_ones and open_ones[-1].time_range.end < event.time_range.end:
            open_ones.pop()
        if open_ones:
            event.cpu_parent = open_ones[-1]
            event.cpu_parent.cpu_children.append(event)
        open_ones.append(event)
    numbers = {thread: number for number, thread in enumerate(around)}
    for event in reversed(found):  # those inside come after the one around them
        event.thread = numbers[event.thread]
        event.self_cpu_time_total -= sum(child.cpu_time_total for child in event.cpu_children)
        event.cpu_memory_usage += sum(child.cpu_memory_usage for child in event.cpu_children)
    return found


def of_call(event: Event, shapes: bool) -> FunctionEvent:
    """A call of an operator, named as PyTorch's profiler does: `aten::add`, whichever overload it was."""
    packet = getattr(event.op, "overloadpacket", None)
    return FunctionEvent(
        str(packet).replace(".", "::", 1) if packet is not None else str(event.op),
        microseconds(event.start, event.start + event.seconds),
        event.thread,
        event.nbytes,
        event.flops,
        [list(shape) for shape in event.shapes] if shapes else [],
        details={
            "operator": str(event.op),
            "arguments": event.arguments,
            "result": event.result,
            "bytes": event.nbytes,
        },
    )


def microseconds(start: float, end: float) -> Interval:
    """An interval given in seconds."""
    return Interval(start * 1e6, end * 1e6)


class EventList(list[FunctionEvent]):
    """Events, or their sums, and the table of them. profile_memory, with_flops: whether it has such columns."""

    def __init__(
        self, events: Iterable[FunctionEvent] = (), *, profile_memory: bool = False, with_flops: bool = False
    ) -> None:
        super().__init__(events)
        self.profile_memory, self.with_flops, self.by_shapes = profile_memory, with_flops, False

    @property
    def self_cpu_time_total(self) -> float:
        """The time that was seen, in microseconds."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """The events of each key together, and of the same shapes, where that is asked for."""
        sums: dict[Any, FunctionEvent] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shape else ""
            total = sums.get((event.key, shapes))
            if total is None:
                total = sums[event.key, shapes] = empty_sum(event.key)
                total.input_shapes = event.input_shapes if group_by_input_shape else []
                total.is_user_annotation = event.is_user_annotation
            add_to(total, event)
        averages = EventList(sums.values(), profile_memory=self.profile_memory, with_flops=self.with_flops)
        averages.by_shapes = group_by_input_shape
        return averages

    def total_average(self) -> FunctionEvent:
        """All of them together."""
        total = empty_sum("Total")
        for event in self:
            add_to(total, event)
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """A line for each event, as text.

        sort_by: an attribute, such as "self_cpu_time_total", the largest first; None leaves the order. row_limit: of
        lines, -1: all. header: a line above. top_level_events_only: leaves out what stands inside another event.
        Errors: AttributeError for another attribute.
        """
        if sort_by is not None and sort_by not in ORDERS:
            raise AttributeError(f"table(sort_by={sort_by!r}): expected one of {', '.join(ORDERS)}")
        events = sorted(self, key=lambda event: -getattr(event, sort_by)) if sort_by else list(self)
        if top_level_events_only:
            events = [event for event in events if event.cpu_parent is None]
        total = self.self_cpu_time_total
        widths = (max_name_column_width, max_shapes_column_width)
        rows = [self._cells(event, total, *widths) for event in (events if row_limit < 0 else events[:row_limit])]
        text = text_table([self._headings(), *rows], total=False)
        rule = text.splitlines()[1]
        above = [header] if header else []
        return "\n".join([*above, text, rule, f"Self CPU time total: {spoken_us(total)}"]) + "\n"

    def _headings(self) -> list[str]:
        memory = ["CPU Mem", "Self CPU Mem"] if self.profile_memory else []
        shapes = ["Input Shapes"] if self.by_shapes else []
        flops = ["Total KFLOPs"] if self.with_flops else []
        times = ["Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        return ["Name", *times, *memory, "# of Calls", *shapes, *flops]

    def _cells(self, event: FunctionEvent, total: float, name_width: int, shapes_width: int) -> list[str]:
        own, whole = event.self_cpu_time_total, event.cpu_time_total
        times = [share(own, total), spoken_us(own), share(whole, total), spoken_us(whole), spoken_us(event.cpu_time)]
        memory = [spoken_bytes(event.cpu_memory_usage), spoken_bytes(event.self_cpu_memory_usage)]
        flops = f"{event.flops / 1000:.3f}" if event.flops else "--"
        return [
            cut(event.key, name_width),
            *times,
            *(memory if self.profile_memory else []),
            str(event.count),
            *([cut(str(event.input_shapes), shapes_width)] if self.by_shapes else []),
            *([flops] if self.with_flops else []),
        ]

    def chrome(self) -> dict[str, Any]:
        """The Trace Event Format: a complete event for each; times in microseconds since the first began."""
        began = min((event.time_range.start for event in self), default=0.0)
        events = [
            {
                "ph": "X",
                "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
                "name": event.name,
                "pid": os.getpid(),
                "tid": event.thread,
                "ts": event.time_range.start - began,
                "dur": event.time_range.elapsed_us(),
                "args": {**event.details, **({"Input Dims": event.input_shapes} if event.input_shapes else {})},
            }
            for event in self
        ]
        name = {"ph": "M", "name": "process_name", "pid": os.getpid(), "args": {"name": "redispatch"}}
        return {"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": [name, *events]}

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes `chrome()` into a file, for ui.perfetto.dev and chrome://tracing; compressed if it ends with .gz."""
        write_json(path, self.chrome())

    def __str__(self) -> str:
        return self.table()


def empty_sum(name: str) -> FunctionEvent:
    """Returns an empty sum, to which events are added."""
    return FunctionEvent(name, Interval(0.0, 0.0), 0, count=0)


def add_to(total: FunctionEvent, event: FunctionEvent) -> None:
    """Adds an event's numbers."""
    for name in COUNTED:
        setattr(total, name, getattr(total, name) + getattr(event, name))


def write_json(path: str | os.PathLike[str], content: Any) -> None:
    """Writes a file of JSON, compressed where its name ends with .gz."""
    opened = gzip.open if os.fspath(path).endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8") as file:
        json.dump(content, file)


def cut(text: str, width: int) -> str:
    """The text, shortened where it is wider."""
    return text if width < 0 or len(text) <= width else text[: width - 3] + "..."


def share(part: float, whole: float) -> str:
    return f"{part / whole:.2%}" if whole else "0.00%"


def spoken_us(time: float) -> str:
    """A time given in microseconds, as PyTorch's tables have it: `12.000us`, `3.400ms`, `1.200s`."""
    for scale, unit in ((1e6, "s"), (1e3, "ms")):
        if time >= scale:
            return f"{time / scale:.3f}{unit}"
    return f"{time:.3f}us"
