"""`redispatch.autograd.profiler`: PyTorch's older face of the profiler, in which the region itself has the results.

    with profile(record_shapes=True) as prof:
        model(x)
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))

It is the profile of `redispatch.profiler`, which has schedules; read that.
"""

from __future__ import annotations

from typing import Any

from redispatch import profiler
from redispatch._absent import NVIDIA, names_of
from redispatch.modes.profiler_events import EventList as Events
from redispatch.modes.profiler_events import FunctionEvent as Event
from redispatch.modes.profiler_events import Interval, add_to, nest
from redispatch.modes.profiler_events import spoken_us as _format_time
from redispatch.profiler import OPEN
from redispatch.profiler import kineto_available as kineto_available
from redispatch.profiler import record_function as record_function

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "_format_time",
    "kineto_available",
    "profile",
    "record_function",
]


class FunctionEvent(Event):
    """An event that is made by hand. start_us, end_us: from when to when, in microseconds."""

    def __init__(
        self, id: int, name: str, thread: int, start_us: float, end_us: float, *, node_id: int = -1, **details: Any
    ) -> None:
        super().__init__(name, Interval(start_us, end_us), thread, details=details)
        self.id, self.node_id = id, node_id


class FunctionEventAvg(Event):
    """The sums of events of one name, which `add` counts in."""

    def __init__(self) -> None:
        super().__init__("", Interval(0.0, 0.0), 0, count=0)

    def add(self, other: Event) -> FunctionEventAvg:
        """Adds an event, or the sums of several."""
        self.name = self.name or other.name
        add_to(self, other)
        return self

    __iadd__ = add


class EventList(Events):
    """Events that were made by hand, too."""

    def _populate_cpu_children(self) -> None:
        """Ties each event to the one around it."""
        nest(list(self))


def _profiler_enabled() -> bool:
    """Returns whether a profile is recorded here."""
    return bool(OPEN.get())


class profile(profiler.profile):  # a function's name, as PyTorch's
    """A region in which operators and labels are timed, unless it is not `enabled`.

    record_shapes, profile_memory, with_flops, with_stack, with_modules, acc_events: as of `redispatch.profiler`.
    What is said of devices and of the way in which PyTorch records (`use_cuda`, `use_kineto`, ...) changes nothing.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
    ) -> None:
        super().__init__(
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
            acc_events=acc_events,
        )
        self.enabled = enabled

    def __enter__(self) -> Any:
        return super().__enter__() if self.enabled else None

    def __exit__(self, *error: object) -> None:
        if self.enabled:
            super().__exit__(*error)

    @property
    def function_events(self) -> Events:
        """One event for each call and label. RuntimeError before the region has ended."""
        if self._events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.events()

    def table(self, *args: Any, **options: Any) -> str:
        """The events as text, as `EventList.table`."""
        return self.function_events.table(*args, **options)

    def total_average(self) -> Event:
        """All events together."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The time that was seen, in microseconds."""
        return self.function_events.self_cpu_time_total

    def __str__(self) -> str:
        return str(self.function_events) if self._events is not None else "<unfinished torch.autograd.profile>"


globals().update(names_of(__name__, NVIDIA))
