"""Streams and events: the order of work on a device.

Work on one stream is done in order; on two, as it comes, unless one waits for an event of the other. The simulator does
everything at once, so that a program which forgets to wait is not found out there.
"""

from __future__ import annotations

from contextlib import nullcontext
from types import TracebackType
from typing import Any

from redispatch.dispatch.tensor import as_device, current_index, device, set_current_index
from redispatch.kernels.cuda import current_stream as number_of_current
from redispatch.kernels.cuda import set_current_stream

from .async_errors import late_errors
from .devices import start


def index_of(on: Any = None) -> int:
    """The index of a device: of the current one where none is given. ValueError for a device of another type."""
    start()
    if on is None:
        return current_index("cuda")
    if isinstance(on, int):
        return current_index("cuda") if on < 0 else on
    found = as_device(on)
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {found}")
    return current_index("cuda") if found.index is None else found.index


class Stream:
    """A queue of work on a device. `with stream(s):` has work go there."""

    def __init__(self, device: Any = None, priority: int = 0, *, _number: int | None = None) -> None:
        self.device_index, self.priority = index_of(device), priority
        driver = start().driver
        self.number = driver.create_stream(self.device_index, priority) if _number is None else _number
        self._before: list[tuple[int, int]] = []

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """(the least urgent priority, the most urgent one)"""
        return 0, -1

    @property
    def cuda_stream(self) -> int:
        """The number by which CUDA itself, and so other libraries, know it; 0 for the default one."""
        return start().driver.handle(self.number)

    @property
    def device(self) -> device:
        return device("cuda", self.device_index)

    def synchronize(self) -> None:
        """Waits until all its work is done."""
        driver = start().driver
        driver.synchronize(self.device_index, self.number)
        late_errors(driver).check(self.device_index)

    def query(self) -> bool:
        """Whether all its work is done."""
        return self.record_event().query()

    def record_event(self, event: Event | None = None) -> Event:
        """An event behind the work that it has now."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Has what comes next wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Has what comes next wait for all that another stream has now."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        self._before.append((current_index("cuda"), number_of_current(self.device_index)))
        set_current_index("cuda", self.device_index)
        set_current_stream(self.device_index, self.number)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        index, number = self._before.pop()
        set_current_stream(self.device_index, number)
        set_current_index("cuda", index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device_index, self.number) == (
            other.device_index,
            other.number,
        )

    def __hash__(self) -> int:
        return hash((self.device_index, self.number))

    def __repr__(self) -> str:
        return f"<redispatch.cuda.Stream device=cuda:{self.device_index} cuda_stream={self.number:#x}>"


class ExternalStream(Stream):
    """A stream of another library's, known by CUDA's own number."""

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        index = index_of(device)
        super().__init__(index, _number=start().driver.adopt_stream(index, stream_ptr))


class Event:
    """A place in a stream's work."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("events that other processes see are not supported")
        self.enable_timing = enable_timing
        self._made: Any = None
        self._stream = 0  # on which it was recorded

    def record(self, stream: Stream | None = None) -> None:
        """Puts it behind the work that a stream has now; by default the current one."""
        stream = current_stream() if stream is None else stream
        driver = start().driver
        if self._made is None:
            self._made = driver.create_event(stream.device_index, self.enable_timing)
        driver.record(self._made, stream.number)
        self._stream = stream.number

    def wait(self, stream: Stream | None = None) -> None:
        """Has what comes next on a stream wait for it."""
        if self._made is not None:
            stream = current_stream() if stream is None else stream
            running = start()
            running.driver.wait(stream.number, self._made)
            if running.allocator.recording and running.driver.captured(stream.number):
                running.allocator.follow(stream.device_index, stream.number, self._stream)

    def query(self) -> bool:
        """Whether all before it is done."""
        return self._made is None or start().driver.done(self._made)

    def synchronize(self) -> None:
        """Waits until it is."""
        if self._made is not None:
            start().driver.wait_for(self._made)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another. RuntimeError unless both were recorded, and measure time."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._made is None or end_event._made is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return start().driver.elapsed(self._made, end_event._made)


def current_stream(device: Any = None) -> Stream:
    """The stream on which this thread or task works."""
    index = index_of(device)
    return Stream(index, _number=number_of_current(index))


def default_stream(device: Any = None) -> Stream:
    """The stream on which work goes where none is chosen."""
    index = index_of(device)
    return Stream(index, _number=-index)


def set_stream(stream: Stream) -> None:
    """Has this thread or task work on a stream."""
    set_current_stream(stream.device_index, stream.number)


def stream(stream: Stream | None) -> Any:
    """`with stream(s):` has work go to a stream, and its device be the current one."""
    return nullcontext() if stream is None else stream


class StreamContext:
    """`stream(s)` as a class."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self.block = nullcontext() if stream is None else stream

    def __enter__(self) -> None:
        self.block.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.block.__exit__(*error)


def synchronize(device: Any = None) -> None:
    """Waits until all work on a device is done."""
    driver, index = start().driver, index_of(device)
    driver.synchronize(index)
    late_errors(driver).check(index)
