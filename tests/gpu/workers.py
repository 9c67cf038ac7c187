"""Work shared out to processes, of which any may die: an access out of bounds on a card leaves its process no device.

A worker is told a list of names, and answers with what `job(names)` gave for each. One that dies, that hangs, or that
has lost its device is replaced; of the names that it had, each is tried once more by itself, so that the answer for the
one that did it says so, and the others have theirs.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any

Job = Callable[[list[str]], dict[str, Any]]
PATIENCE = 240.0  # seconds for one name


class Worker:
    """A process that runs a job for what it is sent."""

    def __init__(self, job: Job) -> None:
        context = multiprocessing.get_context("spawn")  # a card's context does not outlive a fork
        self.pipe, far = context.Pipe()
        self.process = context.Process(target=serve, args=(far, job), daemon=True)
        self.process.start()
        far.close()  # so that the pipe ends when the process does
        self.names: list[str] = []
        self.until = 0.0

    def send(self, names: list[str]) -> None:
        self.names, self.until = names, monotonic() + PATIENCE * len(names)
        self.pipe.send(names)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def serve(pipe: Connection, job: Job) -> None:
    """Does a worker's tasks until its parent is gone."""
    while True:
        try:
            names = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        pipe.send(job(names))


def shared_out(job: Job, names: list[str], workers: int, chunk: int) -> Iterator[tuple[str, Any]]:
    """(name, what the job gave) in the order in which they come; a string says how the process of a name ended."""
    todo = deque(names[i : i + chunk] for i in range(0, len(names), chunk))
    crew: list[Worker] = []
    try:
        while todo or crew:
            while todo and len(crew) < workers:
                crew.append(Worker(job))
                crew[-1].send(todo.popleft())
            ready = wait([one.pipe for one in crew], timeout=1.0)
            for one in list(crew):
                if one.pipe in ready:
                    try:
                        answer = one.pipe.recv()
                    except EOFError:
                        one.process.join()
                        answer = f"its process ended with {one.process.exitcode}"
                elif monotonic() > one.until:
                    answer = f"it took more than {PATIENCE:.0f} s"
                else:
                    continue
                if isinstance(answer, dict):
                    yield from answer.items()
                    rest = [name for name in one.names if name not in answer]
                    todo.extendleft([name] for name in rest)
                    if todo and not rest:
                        one.send(todo.popleft())
                        continue
                elif len(one.names) == 1:
                    yield one.names[0], answer
                else:
                    todo.extendleft([name] for name in one.names)
                crew.remove(one)
                one.stop()
    finally:
        for one in crew:
            one.stop()
