"""The simulator as slow as a card may be: what a stream is asked to do is done when somebody waits for it, no sooner.

A card works while the program goes on, and in what order its streams come to their work is not said, but for the events
that they wait for. A program that forgot to wait is right nearly always. Here it is wrong whenever it could be: each
stream rests until its work is needed, so that what it should have written is not there yet, which the simulator tells
as a read of what was never written. `REDISPATCH_CUDA=late`. Read simulated_driver.py and recording.py before.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from .recording import Mark, Recorded
from .simulated_driver import SimulatedDriver

Step = Callable[[], object]


class Turn:
    """One recording of an event, which may be recorded again before the stream has come to the first."""

    def __init__(self, stream: int) -> None:
        self.stream, self.over = stream, False


class LateMark(Mark):
    """An event. `turn`: what it stands for since it was recorded last; None until then."""

    turn: Turn | None = None


class LateDriver(SimulatedDriver):
    """One device, each of whose streams has a queue of steps."""

    name = "late"
    title = "late simulator"

    def __init__(self, memory: int | None = None) -> None:
        super().__init__(memory)
        self.queues: dict[int, deque[Step]] = defaultdict(deque)
        self.lock = threading.RLock()

    def do(self, stream: int, step: Step) -> None:
        """Puts it behind what the stream has to do."""
        if not self.noted(stream, step):
            self.queues[stream].append(step)

    def finish(self, stream: int | None = None) -> None:
        """Has a stream do its work, or all of them. Errors: those of kernels, whose step is not done again."""
        with self.lock:
            for queue in list(self.queues.values()) if stream is None else [self.queues[stream]]:
                while queue:
                    queue.popleft()()

    def reach(self, turn: Turn | None) -> None:
        """Has a stream do its work up to an event."""
        with self.lock:
            while turn is not None and not turn.over:
                self.queues[turn.stream].popleft()()

    # What has a turn in a stream --------------------------------------------------------------------------------------

    def hand_out(self, address: int, nbytes: int, stream: int = 0) -> None:
        if stream in self.captures:
            super().hand_out(address, nbytes, stream)
        else:
            self.queues[stream].append(lambda: self.mark(address, nbytes))

    def replay(self, graph: Recorded, stream: int) -> None:
        self.do(stream, lambda: super(LateDriver, self).replay(graph, stream))

    def record(self, event: Any, stream: int) -> None:
        super().record(event, stream)
        if stream in self.captures:
            return
        event.turn = turn = Turn(stream)

        def over() -> None:
            turn.over, event.time = True, time.perf_counter()

        self.queues[stream].append(over)

    def wait(self, stream: int, event: Any) -> None:
        super().wait(stream, event)
        if event.graph is None:
            turn = event.turn
            self.queues[stream].append(lambda: self.reach(turn))

    # What waits -------------------------------------------------------------------------------------------------------

    def read(self, address: int, nbytes: int, stream: int = 0) -> np.ndarray:
        self.check_free("read memory of the device", stream)
        self.finish(stream)
        return super().read(address, nbytes, stream)

    def write(self, address: int, data: np.ndarray, stream: int = 0) -> None:
        self.check_free("send memory that is not pinned", stream)
        self.finish(stream)
        super().write(address, data, stream)

    def free(self, device: int, address: int) -> None:
        self.finish()  # as CUDA does
        super().free(device, address)

    def synchronize(self, device: int, stream: int | None = None) -> None:
        super().synchronize(device, stream)
        self.finish(stream)

    def create_event(self, device: int, timing: bool) -> LateMark:
        return LateMark()

    def done(self, event: Any) -> bool:
        super().wait_for(event)
        return event.turn is None or event.turn.over

    def wait_for(self, event: Any) -> None:
        super().wait_for(event)
        self.reach(event.turn)

    def elapsed(self, start: Any, end: Any) -> float:
        self.wait_for(start)
        return super().elapsed(start, end)
