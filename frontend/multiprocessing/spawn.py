"""`spawn(work, args, nprocs)`: runs a function in several processes, each with its number, and passes on an error."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any


class ProcessException(Exception):
    """A process ended by itself. error_index: its number. error_pid: its number for the system."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid, self.pid = msg, error_index, pid, pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised in a process; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """A process was ended by a signal, or by `exit`."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def work_of(fn: Callable[..., Any], index: int, args: Sequence[Any], errors: Any) -> None:
    """Runs the function in a process of its own; an error is sent as text, since its class may be unknown there."""
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # who interrupts sees it in the first process
    except Exception:
        errors.send(traceback.format_exc())
        raise SystemExit(1) from None


class ProcessContext:
    """The processes of one call, and how each says its error."""

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes, self._errors = processes, errors
        self._running = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Returns the processes' numbers for the system."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until one process has ended, and returns whether all have. timeout: in seconds; None waits.

        Where one has failed the others are ended, those that stay after `grace_period` seconds by force. Errors:
        ProcessRaisedException, or ProcessExitedException where no error was sent.
        """
        from multiprocessing.connection import wait  # here, because a browser has no processes

        failed = None
        for sentinel in wait([*self._running], timeout):
            index = self._running.pop(sentinel)
            self.processes[index].join()
            if failed is None and self.processes[index].exitcode != 0:
                failed = index
        if failed is None:
            return not self._running
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join(grace_period)
            if process.is_alive():
                process.kill()
                process.join()
        raise self._error_of(failed)

    def _error_of(self, index: int) -> ProcessException:
        process, said = self.processes[index], self._errors[index]
        with suppress(EOFError):  # it sent none
            text = f"\n\n-- Process {index} terminated with the following error:\n{said.recv()}"
            return ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        name = signal.Signals(-code).name if code < 0 else None
        how = f"signal {name}" if name else f"exit code {code}"
        return ProcessExitedException(f"process {index} terminated with {how}", index, process.pid, code, name)


SpawnContext = ProcessContext  # its name in PyTorch where the processes begin anew


def start_processes(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Calls `fn(index, *args)` in `nprocs` processes; waits for all if `join`, else returns what waits.

    Errors: as of `ProcessContext.join`; the others are ended.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for index in range(nprocs):
        heard, said = context.Pipe(duplex=False)
        process = context.Process(target=work_of, args=(fn, index, args, said), daemon=daemon)
        process.start()
        said.close()
        processes.append(process)
        errors.append(heard)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


spawn = start_processes  # which begins anew, unless asked otherwise
