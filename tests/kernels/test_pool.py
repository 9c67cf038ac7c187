"""Threads: ranges are covered once, results do not depend on their number, forks and Ctrl-C are survived."""

import gc
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

from redispatch.kernels import Elementwise, get_num_threads, normal, parallel_for, ready, set_num_threads
from redispatch.kernels.engine import pool

from .layouts import dense


@pytest.fixture(autouse=True)
def restore_threads():
    before = get_num_threads()
    yield
    set_num_threads(before)


def double(x):
    return x + x


DOUBLE = Elementwise("double", double)


@pytest.mark.parametrize("n,work", [(1, 1), (1 << 17, 1), ((1 << 21) + 7, 1), (3, 1 << 20), (1000, 4096)])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_index_is_covered_once(n, work, threads):
    set_num_threads(threads)
    seen = np.zeros(n, np.int64)

    def kernel(lo, hi, step):
        seen[lo:hi] += step

    parallel_for(kernel, n, (1,), work)
    assert (seen == 1).all()


@pytest.mark.parametrize("n,work", [(0, 1), (5, 1), (1 << 18, 1), (7, 1 << 20)])
def test_work_that_was_made_ready_covers_every_index_once(n, work):
    set_num_threads(2)
    seen = np.zeros(n, np.int64)

    def kernel(lo, hi, first, step):
        assert first == "first"
        seen[lo:hi] += step

    run = ready(kernel, n, ("first",), work)
    run(1)
    run(2)
    assert (seen == 3).all()


def test_random_numbers_are_the_same_on_one_thread_and_on_many():
    results = []
    for threads in (1, 4):
        set_num_threads(threads)
        out = dense(np.zeros(300_000, np.float32))
        normal(out, 3, 1)
        results.append(out.array)
    np.testing.assert_array_equal(*results)


def test_python_threads_may_run_large_kernels_at_once():
    set_num_threads(3)
    x = dense(np.arange(300_000, dtype=np.float32))
    outs = [dense(np.zeros(300_000, np.float32)) for _ in range(8)]
    threads = [threading.Thread(target=DOUBLE.run, args=(out, x)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert all((out.array == 2 * x.array).all() for out in outs)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_child_gets_threads_of_its_own():
    set_num_threads(3)
    x, out = dense(np.ones(300_000, np.float32)), dense(np.zeros(300_000, np.float32))
    DOUBLE.run(out, x)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        out.array[:] = 0
        DOUBLE.run(out, x)
        os._exit(0 if (out.array == 2).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.fixture
def interruptible():
    """SIGINT means KeyboardInterrupt, also where a shell started this in the background and had it ignored."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


def test_ctrl_c_is_answered_between_chunks(interruptible):
    set_num_threads(2)
    started = time.perf_counter()
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        parallel_for(lambda lo, hi: time.sleep(0.01), 1000, (), 1 << 20)
    assert time.perf_counter() - started < 2
    seen = []
    parallel_for(lambda lo, hi: seen.append((lo, hi)), 10, (), 1 << 20)
    assert sorted(seen) == [(i, i + 1) for i in range(10)]


def test_an_interrupt_anywhere_leaves_the_threads_at_work():
    """A KeyboardInterrupt behind each instruction of Python's that the caller executes, one after the other."""
    set_num_threads(3)
    seen = np.zeros(6, np.int64)

    def kernel(lo, hi):
        seen[lo:hi] += 1

    def interrupted(behind):
        """Whether the call had so many instructions."""
        left = [behind]

        def trace(frame, event, argument):
            frame.f_trace_opcodes = frame.f_code is not kernel.__code__
            if event == "opcode":
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
            return trace

        gc.disable()  # whoever listens to the collector would be interrupted, too, where nobody catches it
        sys.settrace(trace)
        try:
            parallel_for(kernel, 6, (), 1 << 20)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
            gc.enable()
        return left[0] <= 0

    parallel_for(kernel, 6, (), 1 << 20)  # what is imported at first may not be interrupted
    behind = 1
    while interrupted(behind):
        behind += 1
    assert behind > 100
    seen[:] = 0
    done = threading.Thread(target=parallel_for, args=(kernel, 6, (), 1 << 20), daemon=True)
    done.start()
    done.join(20)
    assert not done.is_alive() and (seen == 1).all()


def test_an_error_in_any_chunk_reaches_the_caller():
    set_num_threads(3)

    def kernel(lo, hi):
        if lo == 5:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        parallel_for(kernel, 10, (), 1 << 20)


def test_the_environment_limits_the_threads_at_start(monkeypatch):
    for name in pool.LIMITS:
        monkeypatch.delenv(name, raising=False)
    free = pool.threads_at_start()
    assert free >= 1
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", str(free + 5))
    assert pool.threads_at_start() == 1
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "all")  # no number: it says nothing
    assert pool.threads_at_start() == free
