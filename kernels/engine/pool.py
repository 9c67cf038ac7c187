"""Our threads: a kernel over a range is cut into chunks, and the chunks are shared out.

Why not numba's own `parallel=True`: called from several Python threads it aborts the process, and after a fork it
hangs. Kernels here are serial and take `(lo, hi)`, and those for large work release the GIL; this file is all there is
to running them on several cores. Between two chunks Python runs, so that Ctrl-C is answered even on one thread.

Small work pays one comparison. Read next: `elementwise.py`, the main user.

Note [No lock that Python holds]
Why not concurrent.futures: its semaphores and conditions are written in Python, and a KeyboardInterrupt that comes
between their lock's acquisition and the block it is for leaves the lock held, so that the next call waits for ever.
Here whatever threads share changes in one call into C, between which and the next an interrupt does no harm: a queue, a
lock that is taken once and never given back, an append.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from queue import SimpleQueue
from typing import Any

from redispatch.dispatch.tensor.operand import scratch

GRAIN = 1 << 19  # no thread gets less work than this, about 40 us: to hand work to another one takes 25 us
SMALL = 1 << 17  # work below this is done at once by the calling thread
LARGEST = 1 << 20  # no chunk holds more work than this: 1M elements of a costly operation are about 20 ms

LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")  # in the environment


def threads_at_start() -> int:
    """Returns as many as the process has processors, or fewer, where the environment limits those of a library."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = (os.environ.get(name, "") for name in LIMITS)
    return min([processors, *(int(text) for text in limits if text.isdigit() and int(text) > 0)])


_threads = threads_at_start()
_inbox: SimpleQueue[Errand] = SimpleQueue()  # where our threads wait for work
_started = 0  # how many there are


def get_num_threads() -> int:
    """The number of threads that a large kernel uses."""
    return _threads


def set_num_threads(n: int) -> None:
    """Use `n` threads for large kernels from now on. RuntimeError unless n >= 1."""
    global _threads
    if n < 1:
        raise RuntimeError(f"expected positive number of threads, got {n}")
    _threads = int(n)


def _forget_threads() -> None:
    """Threads do not survive a fork: the child starts its own when it needs them."""
    global _inbox, _started
    _inbox, _started = SimpleQueue(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


class Errand:
    """Work in which one more thread takes part, if it finds the time before the caller has done all of it."""

    __slots__ = ("work", "taken", "ended", "bell")

    def __init__(self, work: Callable[[], object]) -> None:
        self.work: Callable[[], object] | None = work
        self.taken = allocate_lock()  # by the thread that does it, or by the caller, who withdraws it
        self.ended: list[BaseException | None] = []  # with what it raised
        self.bell = allocate_lock()  # is released when it has ended
        self.bell.acquire()

    def run(self) -> None:
        """Does the part of one of our threads."""
        if self.taken.acquire(False):
            problem = None
            try:
                assert self.work is not None
                self.work()
            except BaseException as error:
                problem = error
            self.work = None
            self.ended.append(problem)
            self.bell.release()

    def end(self) -> BaseException | None:
        """Returns when no thread does it any more, what it raised or the interrupt that came meanwhile."""
        if self.taken.acquire(False):
            self.work = None
            return None
        interrupt: BaseException | None = None
        while not self.ended:
            try:
                self.bell.acquire()
            except KeyboardInterrupt as problem:
                interrupt = problem
        return self.ended[0] or interrupt


def _serve(inbox: SimpleQueue[Errand]) -> None:
    while True:
        inbox.get().run()


def _hand_out(errands: Sequence[Errand]) -> None:
    """Gives these to our threads, of which there are as many then, where the system has as many to give."""
    global _started
    try:
        while _started < len(errands):
            start_new_thread(_serve, (_inbox,))
            _started += 1
    except RuntimeError:
        pass  # none is to be had: the caller does all that nobody takes
    for errand in errands:
        _inbox.put(errand)


def is_small(n: int, work: int) -> bool:
    """Whether so much work is done at once by the calling thread, in one call of the kernel."""
    return n * work < SMALL


def parallel_for(kernel: Callable[..., object], n: int, args: tuple, work: int = 1) -> None:
    """Call `kernel(lo, hi, *args)` on ranges that together cover `range(n)`; `work` is the cost of one index.

    The cost is counted in cheap element operations. The caller's own thread takes part. KeyboardInterrupt, and what a
    kernel raises when it runs as plain Python, reach the caller once no chunk runs any more. A kernel with a method
    `whole(n, args, work)` is called by it, once: a device shares its work out itself.
    """
    if is_small(n, work):
        kernel(0, n, *args)
        return
    if hasattr(kernel, "whole"):
        kernel.whole(n, args, work)
        return
    total = n * work
    threads = min(_threads, max(1, total // GRAIN))
    if threads == 1 and total <= LARGEST:
        kernel(0, n, *args)
        return
    share = -(-n // threads)
    largest = max(1, LARGEST // work)
    pieces = -(-share // largest) * threads
    size = -(-n // pieces)
    tickets = count()  # next() on it is atomic: each chunk is taken once
    stopped = False

    def take_chunks() -> None:
        while not stopped:
            lo = next(tickets) * size
            if lo >= n:
                return
            kernel(lo, min(lo + size, n), *args)

    if threads == 1 or pieces == 1:
        take_chunks()
        return
    errands = [Errand(take_chunks) for _ in range(threads - 1)]
    try:
        _hand_out(errands)
        take_chunks()
    except BaseException:
        stopped = True
        raise
    finally:
        for problem in [errand.end() for errand in errands]:
            if problem is not None:
                raise problem


def ready(
    kernel: Callable[..., object], n: int, leading: tuple, work: int = 1, scratches: Sequence[tuple[int, Any]] = ()
) -> Callable[..., object]:
    """`f(*args)` that does `parallel_for(kernel, n, (*leading, *args), work)`, with the size of the work asked now.

    For callers that remember it: then a small call is the kernel's entry itself, its first arguments filled in.
    scratches: (count, dtype) of memory that each range has for itself; the kernel takes it last.
    """
    if n == 0:
        return nothing_to_do
    if scratches:
        kernel = in_scratch(kernel, scratches)
    if is_small(n, work):
        return partial(kernel, 0, n, *leading)
    return lambda *args: parallel_for(kernel, n, (*leading, *args), work)


def in_scratch(kernel: Callable[..., object], scratches: Sequence[tuple[int, Any]]) -> Callable[..., object]:
    """Returns the kernel with memory to work in, which each call of it has for itself."""
    if len(scratches) == 1:  # the usual case, in 0.3 us less
        ((size, dtype),) = scratches
        return lambda lo, hi, *args: kernel(lo, hi, *args, scratch(size, dtype))

    def run(lo: int, hi: int, *args: object) -> None:
        kernel(lo, hi, *args, *[scratch(size, dtype) for size, dtype in scratches])

    return run


def nothing_to_do(*args: object) -> None:
    """A loop over no elements."""


def serial_for(kernel: Callable[..., object], n: int, args: tuple, work: int = 1) -> None:
    """Call `kernel(lo, hi, *args)` on ranges in order, on this thread: for kernels whose writes may meet."""
    size = max(1, LARGEST // work)
    for lo in range(0, n, size):
        kernel(lo, min(lo + size, n), *args)
