"""What an operator on CUDA costs the host: `python tests/bench/host.py`, part of `make bench`.

Dispatch, plan, memory for the result and launch, on the null driver: everything but what a GPU's own driver takes to
queue a kernel. It needs no GPU and no compiler. The goal is 2.5 us for a small operator. Writes `docs/host.json`.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any

os.environ["REDISPATCH_CUDA"] = "null"

import redispatch as rd  # noqa: E402  (after the environment is set)
from redispatch.kernels import cuda  # noqa: E402

ROUNDS, LOOPS = 60, 1000


def rows() -> dict[str, Callable[[], Any]]:
    x, y, matrix = (rd.empty(shape, device="cuda") for shape in ((64,), (64,), (64, 64)))
    half, weight = rd.empty(64, dtype=rd.float16, device="cuda"), rd.empty(64, device="cuda")
    images, filters = rd.empty(1, 4, 8, 8, device="cuda"), rd.empty(4, 4, 3, 3, device="cuda")
    F = rd.nn.functional
    return {
        "add(x, y)": lambda: x + y,
        "add_(x, y)": lambda: x.add_(y),
        "mul(x, 2.0)": lambda: x * 2.0,
        "relu(x)": lambda: rd.relu(x),
        "add(matrix, x)": lambda: matrix + x,
        "add(x, half)": lambda: x + half,
        "sum(x)": lambda: x.sum(),
        "sum(matrix, 1)": lambda: matrix.sum(1),
        "mm(matrix, matrix)": lambda: matrix.mm(matrix),
        "softmax(matrix)": lambda: matrix.softmax(1),
        "layer_norm(matrix)": lambda: F.layer_norm(matrix, (64,), weight, weight),
        "conv2d(images)": lambda: F.conv2d(images, filters),
        "max_pool2d(images)": lambda: F.max_pool2d(images, 2),
        "fill_(x, 1.0)": lambda: x.fill_(1.0),
        "copy_(x, y)": lambda: x.copy_(y),
        "clone(x)": lambda: x.clone(),
        "half(x)": lambda: x.half(),
        "empty(64)": lambda: rd.empty(64, device="cuda"),
        "view(x, 8, 8)": lambda: x.view(8, 8),
    }


def measure(rounds: int = ROUNDS, loops: int = LOOPS) -> dict[str, float]:
    """Call -> nanoseconds of the host's, in the best round. Each round takes all calls in turn."""
    driver, calls = cuda.driver(), rows()
    assert isinstance(driver, cuda.NullDriver)
    for call in calls.values():
        for _ in range(20):
            call()
    best = dict.fromkeys(calls, float("inf"))
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, call in calls.items():
                driver.launched.clear()
                start = perf_counter_ns()
                for _ in range(loops):
                    call()
                best[name] = min(best[name], (perf_counter_ns() - start) / loops)
    finally:
        gc.enable()
    return best


def main() -> None:
    best = measure()
    for name, nanoseconds in best.items():
        print(f"  {name:<20}{nanoseconds:8.0f} ns of the host's")
    if "--dry" not in sys.argv:
        path = Path(__file__).resolve().parents[2] / "docs" / "host.json"
        path.write_text(json.dumps({name: round(value) for name, value in best.items()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
