"""What a graph costs as it grows: `python tests/bench/graph.py`, part of `make bench`.

For chains of 1 000 to 1 000 000 recorded products it prints the time of backward per node, and the bytes that are held
per node, beside torch's. Each side and length has a process of its own, so that what the process grows by is the
graph's. Writes `docs/graph.json`, from which the table in the docs is made.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
LIBRARIES = ("redispatch", "torch")


def resident() -> int:
    """Bytes of memory that the process occupies now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(name: str, length: int) -> tuple[float, float]:
    """(nanoseconds of backward per node in the best of three passes, bytes held per node)."""
    t = importlib.import_module(name)
    t.set_num_threads(1)
    w = t.ones(16)

    def chain(count: int):
        y = t.ones(16, requires_grad=True)
        for _ in range(count):
            y = y * w
        return y

    for _ in range(20):
        chain(50).sum().backward()
    gc.collect()
    gc.disable()
    before = resident()
    y = chain(length)
    held = (resident() - before) / length
    gradient = t.ones(16)
    best = float("inf")
    for _ in range(3):
        start = perf_counter()
        y.backward(gradient, retain_graph=True)
        best = min(best, perf_counter() - start)
    return best / length * 1e9, held


def main(arguments: list[str]) -> None:
    if arguments and arguments[0] == "--one":
        print(json.dumps(measure(arguments[1], int(arguments[2]))))
        return
    measured: dict[str, dict[str, dict[str, float]]] = {}
    for length in LENGTHS:
        found = {}
        for name in LIBRARIES:
            command = [sys.executable, __file__, "--one", name, str(length)]
            found[name] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        measured[str(length)] = {
            name: {"nanoseconds": round(ns), "bytes": round(held)} for name, (ns, held) in found.items()
        }
        (ours, our_bytes), (theirs, their_bytes) = (found[name] for name in LIBRARIES)
        print(
            f"  {length:>9,} nodes: backward {ours:7.0f} ns per node, torch {theirs:7.0f}, ratio {ours / theirs:.2f}; "
            f"bytes held per node {our_bytes:5.0f}, torch {their_bytes:5.0f}"
        )
    if "--dry" not in arguments:
        path = Path(__file__).resolve().parents[2] / "docs" / "graph.json"
        path.write_text(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
