"""`torch.Stream` and `torch.Event`: on the CPU all work is done when a call returns; a GPU has streams of its own."""

from __future__ import annotations

from typing import Any

from redispatch import cuda
from redispatch.dispatch.tensor import device


class _OfDevice:
    """A stream or an event, of the CPU by default."""

    _of_gpu: type

    def __new__(cls, device: Any = None, **options: Any) -> Any:
        place = _place(device)
        return super().__new__(cls) if place.type == "cpu" else cls._of_gpu(place, **options)

    def __init__(self, device: Any = None, **options: Any) -> None:
        self.device = _place(device)
        self.device_type, self.device_index = 0, -1

    def query(self) -> bool:
        """True: all is done."""
        return True

    def synchronize(self) -> None:
        """Waits for nothing: all is done."""

    def __repr__(self) -> str:
        return f"torch.{type(self).__name__} device_type={self.device}, device_index={self.device_index}"


def _place(given: Any) -> device:
    place = device("cpu" if given is None else given)
    if place.type not in ("cpu", "cuda"):
        raise RuntimeError(f"there are no streams of the device {place}: give a device of type cpu or cuda")
    return place


class Event(_OfDevice):
    """A point in the work of a stream."""

    _of_gpu = cuda.Event

    def record(self, stream: Any = None) -> None:
        """Marks the point: it is reached."""

    def wait(self, stream: Any = None) -> None:
        """Has a stream wait for the point, which is reached."""


class Stream(_OfDevice):
    """The order of work on a device."""

    _of_gpu = cuda.Stream
    stream_id = 0

    def record_event(self, event: Any = None) -> Any:
        """Returns an event that the stream has reached."""
        return Event() if event is None else event

    def wait_event(self, event: Any) -> None:
        """Has the stream wait for an event, which is reached."""

    def wait_stream(self, stream: Any) -> None:
        """Has the stream wait for another one, whose work is done."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *problem: Any) -> None:
        """Leaves the region, in which everything was as outside of it."""
