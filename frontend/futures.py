"""`redispatch.futures`: values that come later, and what is to be done with them then.

`jit.fork` returns one. A thread may wait for a value that another one sets; callbacks run in the thread that sets it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

__all__ = ["Future", "collect_all", "wait_all"]


class Future(Generic[T]):
    """A value that is set once, by `set_result`, or an error, by `set_exception`. `devices`: PyTorch's, unused here."""

    def __init__(self, *, devices: Any = None) -> None:
        self.devices = devices or []
        self._set = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._value: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Returns whether there is a value, or an error."""
        return self._set.is_set()

    def wait(self) -> T:
        """Returns the value, as soon as it is there. Errors: the one that was set."""
        self._set.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def value(self) -> T:
        """Returns the value, which is there. Errors: RuntimeError before it is set; the error that was set."""
        if not self.done():
            raise RuntimeError("Future/Await is not completed: call wait()")
        return self.wait()

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """Returns the future of `callback(self)`, which is called when the value is there, at once if it is."""
        later: Future[Any] = Future(devices=self.devices)

        def run() -> None:
            try:
                later.set_result(callback(self))
            except Exception as error:
                text = f"Got the following error when running the callback: {type(error).__name__}: {error}"
                later.set_exception(RuntimeError(text))

        self._when_set(run)
        return later

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Calls `callback(self)` when the value is there, at once if it is; its result and errors are dropped."""
        self.then(callback)

    def set_result(self, result: T) -> None:
        """Sets the value. Errors: RuntimeError if there is one, or an error."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Sets an error, which `wait` raises. AssertionError for what is none; RuntimeError as above."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                    "completed once."
                )
            self._value, self._error = value, error
            self._set.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def _when_set(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback()


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """Returns the future of these futures, whose value, the same list, is there when all of theirs are."""
    together: Future[list[Future[Any]]] = Future()
    left, lock = [len(futures)], threading.Lock()

    def count(_: Any) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0  # asked here, else two threads may both find it so
        if last:
            together.set_result(futures)

    for each in futures:
        each.add_done_callback(count)
    if not futures:
        together.set_result(futures)
    return together


def wait_all(futures: list[Future[T]]) -> list[T]:
    """Returns the values of all, when they are there. Errors: the first that was set."""
    return [each.wait() for each in collect_all(futures).wait()]
