"""Our threads: a kernel over a range is cut into chunks, and the chunks are shared out.

Why not numba's own `parallel=True`: called from several Python threads it aborts the process, and after a fork it
hangs. Kernels here are serial and take `(lo, hi)`, and those for large work release the GIL; this file is all there is
to running them on several cores. Between two chunks Python runs, so that Ctrl-C is answered even on one thread.

Small work pays one comparison. Read next: `elementwise.py`, the main user.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

GRAIN = 1 << 19  # no thread gets less work than this, about 40 us: to hand work to another one takes 25 us
SMALL = 1 << 17  # work below this is done at once by the calling thread
LARGEST = 1 << 20  # no chunk holds more work than this: 1M elements of a costly operation are about 20 ms

_threads = os.cpu_count() or 1
_executor: ThreadPoolExecutor | None = None
_size = 0  # how many threads the executor was made for


def get_num_threads() -> int:
    """How many threads a large kernel uses."""
    return _threads


def set_num_threads(n: int) -> None:
    """Use `n` threads for large kernels from now on. RuntimeError unless n >= 1."""
    global _threads
    if n < 1:
        raise RuntimeError(f"expected positive number of threads, got {n}")
    _threads = int(n)


def _forget_threads() -> None:
    """Threads do not survive a fork: the child starts its own when it needs them."""
    global _executor, _size
    _executor, _size = None, 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def _workers(n: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # here, because small programs never need it

    global _executor, _size
    if _executor is None or _size < n:
        if _executor is not None:
            _executor.shutdown(wait=False)
        _executor, _size = ThreadPoolExecutor(n, "redispatch"), n
    return _executor


def is_small(n: int, work: int) -> bool:
    """Whether so much work is done at once by the calling thread, in one call of the kernel."""
    return n * work < SMALL


def parallel_for(kernel: Callable[..., object], n: int, args: tuple, work: int = 1) -> None:
    """Call `kernel(lo, hi, *args)` on ranges that together cover `range(n)`; `work` is the cost of one index.

    The cost is counted in cheap element operations. The caller's own thread takes part. KeyboardInterrupt, and what a
    kernel raises when it runs as plain Python, reach the caller once no chunk runs any more.
    """
    if is_small(n, work):
        kernel(0, n, *args)
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
    futures: list[Future] = []
    try:
        executor = _workers(threads - 1)
        futures = [executor.submit(take_chunks) for _ in range(threads - 1)]
        take_chunks()
    except BaseException:
        stopped = True
        raise
    finally:
        for future in futures:
            if not future.cancel():  # one that never started is not needed: its chunks are done
                future.result()


def ready(kernel: Callable[..., object], n: int, leading: tuple, work: int = 1) -> Callable[..., object]:
    """`f(*args)` that does `parallel_for(kernel, n, (*leading, *args), work)`, with the size of the work asked now.

    For callers that remember it: then a small call is the kernel's entry itself, its first arguments filled in.
    """
    if n == 0:
        return _nothing_to_do
    if is_small(n, work):
        return partial(kernel, 0, n, *leading)
    return lambda *args: parallel_for(kernel, n, (*leading, *args), work)


def _nothing_to_do(*args: object) -> None:
    """A loop over no elements."""


def serial_for(kernel: Callable[..., object], n: int, args: tuple, work: int = 1) -> None:
    """Call `kernel(lo, hi, *args)` on ranges in order, on this thread: for kernels whose writes may meet."""
    size = max(1, LARGEST // work)
    for lo in range(0, n, size):
        kernel(lo, min(lo + size, n), *args)
