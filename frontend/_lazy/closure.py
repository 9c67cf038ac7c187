"""Closures of a step: what is to see values, to print or log them, waits until they are there.

add_step_closure(lambda loss: print(loss.item()), args=(loss,))
mark_step()     # runs the step as one program, then the closure
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from queue import Queue
from typing import Any

from .device_context import DeviceContext, get_device_context


class ClosureHandler:
    """Runs closures, one after the other."""

    def run(self, closure: Callable[[], Any]) -> None:
        closure()

    def __call__(self, closures: Iterable[Callable[[], Any]]) -> None:
        for closure in closures:
            self.run(closure)


class AsyncClosureHandler(ClosureHandler):
    """Runs closures in a thread, in order. Where one has raised, the next call says so.

    max_queue_size: how many may wait; then who adds one waits. The environment's LTC_MAX_ASYNC_QUEUE goes first.
    """

    def __init__(self, max_queue_size: int = 100) -> None:
        self._queue: Queue[Callable[[], Any]] = Queue(int(os.environ.get("LTC_MAX_ASYNC_QUEUE", max_queue_size)))
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def _work(self) -> None:
        while True:
            closure = self._queue.get()
            try:
                closure()
            except Exception as problem:
                self._error = problem
            finally:
                self._queue.task_done()

    def run(self, closure: Callable[[], Any]) -> None:
        """Adds a closure. RuntimeError where an earlier one has raised."""
        with self._lock:
            error, self._error = self._error, None
            if error is not None:
                raise RuntimeError("Cannot run asynchronous closure due to previously raised exception") from error
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()
            self._queue.put(closure)


def add_step_closure(closure: Callable[..., Any], args: tuple[Any, ...] = (), run_async: bool = False) -> None:
    """Has `closure(*args)` run at the end of the step; in a thread of its own if `run_async`."""
    context = get_device_context()
    waiting = context.async_step_closures if run_async else context.step_closures
    waiting.append(lambda: closure(*args))


def run_step_closures() -> DeviceContext:
    """Runs the closures of the step, or hands them to their thread; returns the device's context."""
    context = get_device_context()
    later, context.async_step_closures = context.async_step_closures, []
    if later:
        context.async_closure_handler = context.async_closure_handler or AsyncClosureHandler()
        context.async_closure_handler(later)
    now, context.step_closures = context.step_closures, []
    if now:
        context.closure_handler = context.closure_handler or ClosureHandler()
        context.closure_handler(now)
    return context
