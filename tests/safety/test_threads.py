"""Threads and interrupts leave everything whole."""

import multiprocessing
import random
import subprocess
import sys
import threading

import pytest

import redispatch as rd

from .counts import cases

# Many threads, and processes that were forked: what each computes is what one alone would -----------------------------

SMALL, LARGE = rd.linspace(-2, 2, 12).view(3, 4), rd.linspace(-1, 1, 200_000)
STEPS = [
    lambda: (SMALL + SMALL.t().contiguous().view(3, 4)).tolist(),
    lambda: rd.exp(SMALL).sum(1).tolist(),
    lambda: (SMALL @ SMALL.t()).tolist(),
    lambda: SMALL.sort(1)[0].tolist(),
    lambda: SMALL[rd.tensor([2, 0]), rd.tensor([1, 3])].tolist(),
    lambda: SMALL.clone().mul_(2).cumsum(0).tolist(),
    lambda: (LARGE * LARGE).sum().item(),
    lambda: rd.sin(LARGE)[::50_000].tolist(),
    lambda: SMALL.double().softmax(0).tolist(),
    lambda: SMALL.int().remainder(3).tolist(),
]


def with_a_gradient():
    x = SMALL.clone().requires_grad_()
    (x * x).sum().backward()
    assert rd.is_grad_enabled()
    return x.grad.tolist()


def without_gradients():
    with rd.no_grad():
        y = SMALL.clone().requires_grad_() * 2
    assert rd.is_grad_enabled()
    return y.requires_grad


STEPS += [with_a_gradient, without_gradients]


@cases(10_000)
def test_sixteen_threads_compute_what_one_does(count, seed):
    expected = [step() for step in STEPS]
    wrong, before = [], rd.get_num_threads()
    rd.set_num_threads(2)

    def work(number):
        dice = random.Random(seed + number)
        try:
            for _ in range(count):
                step = dice.randrange(len(STEPS))
                found = STEPS[step]()
                if found != expected[step]:
                    wrong.append((step, found))
        except BaseException as error:  # reported by the test, not by the thread
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(16)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
        assert not any(thread.is_alive() for thread in threads)
        assert wrong == []
    finally:
        rd.set_num_threads(before)


PROCESSES = """
import multiprocessing, sys
import redispatch as rd

def computed(number):
    rd.set_num_threads(2)
    return (rd.linspace(0, 1, 300_000) + number).sum().item()

if __name__ == "__main__":
    expected = [computed(0), computed(1)]
    for _ in range(int(sys.argv[2])):
        with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
            assert pool.map_async(computed, [0, 1]).get(120) == expected
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.parametrize("count", [1, pytest.param(70, marks=pytest.mark.long)])
def test_processes_compute_after_their_parent_has(method, count, tmp_path):
    program = tmp_path / "processes.py"  # a file: a process that is spawned imports what it is to run
    program.write_text(PROCESSES)
    done = subprocess.run([sys.executable, program, method, str(count)], capture_output=True, text=True, timeout=7200)
    assert done.returncode == 0, done.stderr


# Ctrl-C in the middle of long operators: it is answered soon, and everything is as it was -----------------------------

PROGRAM = """
import os, random, signal, sys, threading, time
import redispatch as rd
from redispatch.dispatch import DEFAULT, OPERATORS, STATE

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
count, seed = int(sys.argv[1]), int(sys.argv[2])
dice = random.Random(seed)
rd.set_num_threads(2)
x, square = rd.linspace(-1, 1, 2_000_000), rd.eye(400)
chain = {
    "add": lambda: x + x,
    "exp": lambda: rd.exp(x),
    "sum": lambda: x.sum(),
    "sin": lambda: rd.sin(x),
    "sort": lambda: x.sort(),
    "matmul": lambda: square @ square,
    "rand": lambda: rd.rand(1_000_000),
    "mean": lambda: (x * x).mean(),
}
expected = {name: call() for name, call in chain.items()}  # and all is compiled
registrations = {op: len(op.registrations) for op in OPERATORS.values()}
slowest = 0.0
for _ in range(count):
    sent = []
    def interrupt():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(dice.uniform(0.001, 0.05), interrupt)
    try:
        timer.start()
        with rd.no_grad():
            while True:
                for call in chain.values():
                    call()
    except KeyboardInterrupt:
        slowest = max(slowest, time.perf_counter() - sent[0])
    timer.join()
    assert STATE.get() == DEFAULT and rd.is_grad_enabled()
    assert {op: len(op.registrations) for op in OPERATORS.values()} == registrations
    for name in ("add", "exp", "sin", "sum", "matmul"):
        assert rd.equal(chain[name](), expected[name]), name
    rd.manual_seed(1)
    first = rd.rand(5)
    rd.manual_seed(1)
    assert rd.equal(rd.rand(5), first)
print(f"slowest {slowest:.3f}")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself Ctrl-C there")
@pytest.mark.parametrize("count", [10, pytest.param(500, marks=pytest.mark.long)])
def test_ctrl_c_ends_the_operator_and_nothing_else(count):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(count), "0"], capture_output=True, text=True, timeout=60 + count
    )
    assert done.returncode == 0, done.stderr[-2000:]
    slowest = float(done.stdout.split()[-1])
    assert slowest < 5  # s; 0.25 on an idle machine, 1.1 on a busy one
