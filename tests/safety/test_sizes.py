"""Tensors that are too large: an error at once that names the size, and everything works afterwards."""

import random
import subprocess
import sys
import time

import pytest

import redispatch as rd

from .counts import cases

MAKERS = [
    lambda size: rd.empty(size),
    lambda size: rd.zeros(size, dtype=rd.float64),
    lambda size: rd.ones(size, dtype=rd.uint8),
    lambda size: rd.full(size, 1.5),
    lambda size: rd.rand(size),
    lambda size: rd.zeros(2).repeat(*size),
    lambda size: rd.empty_strided(size, size),
    lambda size: rd.zeros(1).expand(*size).clone(),
    lambda size: rd.zeros(3).resize_(size),
]


@cases(1_000)
def test_what_cannot_be_held_is_refused_within_a_moment(count, seed):
    dice = random.Random(seed)
    for make in MAKERS:
        make([2, 1])  # what must be loaded and compiled is
    slowest = 0.0
    for _ in range(count):
        size = [dice.choice([1, 3, 2**31, 2**40, 2**62, 2**63 - 1]) for _ in range(dice.randint(1, 4))]
        if max(size) < 2**40:
            size[0] = 2**50
        start = time.perf_counter()
        with pytest.raises(RuntimeError, match="overflowed|can't allocate memory|overflow"):
            dice.choice(MAKERS)(size)
        slowest = max(slowest, time.perf_counter() - start)
    assert slowest < 0.25  # a millisecond on an idle machine
    assert (rd.ones(3) + 1).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("size", [(-1,), (2, -3), (0, -1)])
@pytest.mark.parametrize("make", [rd.empty, rd.zeros, rd.ones, rd.rand])
def test_negative_sizes_are_refused(make, size):
    with pytest.raises(RuntimeError, match="negative"):
        make(size)


LIMITED = """
import resource
import redispatch as rd

rd.ones(10) + 1  # what must be loaded is
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (256 << 20), resource.RLIM_INFINITY))
kept = []
try:
    while True:
        kept.append(rd.empty(4 << 20))  # 16 MB each
except RuntimeError as error:
    assert "you tried to allocate 16777216 bytes" in str(error), error
held = len(kept)
kept.clear()
for _ in range(held // 2):
    kept.append(rd.empty(4 << 20))
assert (rd.ones(10) + 1).sum().item() == 20
print("held", held)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a process's memory is Linux's")
def test_after_an_allocation_has_failed_and_memory_is_free_again_all_works():
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "held" in done.stdout, done.stderr
