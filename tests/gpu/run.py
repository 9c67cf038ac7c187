"""What a card does: `make gpu`, or `python tests/gpu/run.py`. Prints, and writes `gpu.json`.

    1. versions: of the card, its driver, and the packages
    2. table (table.py): each operator of the table, on the device against the CPU and against the simulator
    3. speed (speed.py): bandwidth, matrix products, small operators, graphs, the allocator, beside the installed torch

    --only TEXT     only the operators and rows whose name contains TEXT
    --small         sizes at which nothing can be measured, and few samples: for the tests, on devices that are none
    --skip PART     leaves a part out: table, simulator, speed
    --jobs N        processes that share the table out, by default one for each core; 0 is this one alone
    --out FILE      where to write, by default gpu.json; what there is so far is written every few seconds

On a device that is none (REDISPATCH_CUDA=sim or null) it runs, too, and the file says `"card": false`: such times say
nothing about a GPU. The null device computes no numbers, so that the table is left out. Exits with 1 where an operator
is wrong, with 2 where there is no device.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from time import monotonic
from typing import Any

from speed import bench
from table import INFOS, WITHOUT, Verdict, with_cpu, with_simulator
from workers import shared_out

import redispatch as rd
from redispatch.kernels import cuda
from redispatch.utils.text import Progress

PACKAGES = "numpy numba numba-cuda cuda-core cuda-bindings nvidia-nvvm nvidia-nvjitlink nvmath-python torch".split()
OTHERS = {"table": ("the CPU", with_cpu, 4), "simulator": ("the simulator", with_simulator, 16)}  # job, names at once
EVERY = 5.0  # seconds from one writing to the next


def versions() -> dict[str, Any]:
    """Of all that a figure depends on."""
    driver = cuda.driver()
    assert driver is not None
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "card": driver.name == "cuda",
        "device": rd.cuda.get_device_name(),
        "capability": list(rd.cuda.get_device_capability()),
        "memory": rd.cuda.get_device_properties().total_memory,
        "driver": driver.version(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "redispatch": rd.__version__,
        "packages": found,
    }


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--skip", action="append", default=[], choices=("table", "simulator", "speed"))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=Path("gpu.json"))
    return parser.parse_args(arguments)


def torch_with_a_card() -> Any:
    """torch, where it is installed and sees a card; else why not, in words."""
    try:
        import torch
    except ImportError as problem:
        return str(problem)
    return torch if torch.cuda.is_available() else "this torch sees no card"


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if not rd.cuda.is_available():
        print(f"redispatch.cuda: {cuda.why_not()}", file=sys.stderr)
        return 2
    found: dict[str, Any] = {"versions": versions()}
    for name, value in found["versions"].items():
        print(f"  {name:<12}{value}")
    wrong = 0
    for part, (other, job, chunk) in OTHERS.items():
        if part in options.skip or rd.cuda.get_device_name() == cuda.NullDriver.title:
            continue
        names = [name for name in INFOS if options.only in name]
        found[part] = table = {"right": 0, "wrong": {}, "without": []}
        print(f"  {len(names)} operators against {other}", flush=True)
        answers = verdicts(partial(job, options.small), names, options.jobs, chunk)
        for name, verdict in written_between(answers, found, options.out):
            note(table, name, verdict)
        wrong += len(table["wrong"])
        print_table(other, table)
    if "speed" not in options.skip:
        torch = torch_with_a_card()
        if isinstance(torch, str):
            print(f"  times without torch: {torch}")
        found["speed"] = speed = {}
        rows = bench(None if isinstance(torch, str) else torch, options.only, options.small)
        for name, row in written_between(rows, found, options.out):
            speed[name] = row
    write(found, options.out)
    print(f"  written to {options.out}")
    return int(wrong > 0)


def verdicts(
    job: Callable[[list[str]], dict[str, Verdict]], names: list[str], jobs: int, chunk: int
) -> Iterator[tuple[str, Verdict]]:
    """The findings on each operator, with a line that says how far it is."""
    progress = Progress(len(names))
    answers: Iterator[tuple[str, Verdict]]
    if jobs:
        answers = shared_out(job, names, jobs, chunk)
    else:
        here = job(names)
        answers = ((name, here.get(name, "not run: the device was lost before")) for name in names)
    for name, verdict in answers:
        progress.advance(name)
        yield name, verdict


def written_between(answers: Iterator[Any], found: dict[str, Any], out: Path) -> Iterator[Any]:
    """The answers; what is found so far is written now and then, for a run that is cut off."""
    last = monotonic()
    for answer in answers:
        yield answer
        if monotonic() - last > EVERY:
            write(found, out)
            last = monotonic()


def write(found: dict[str, Any], out: Path) -> None:
    out.write_text(json.dumps(found, indent=1) + "\n")


def note(table: dict[str, Any], name: str, verdict: Verdict) -> None:
    """Adds an operator's verdict to the counts."""
    if verdict is None:
        table["right"] += 1
    elif verdict == WITHOUT:
        table["without"].append(name)
    else:
        table["wrong"][name] = verdict


def print_table(other: str, table: dict[str, Any]) -> None:
    """Prints how many are right, and what is wrong with the others."""
    counts = f"{table['right']} operators right, {len(table['wrong'])} wrong, {len(table['without'])} without kernels"
    print(f"  against {other}: {counts}")
    for name, what in table["wrong"].items():
        print(f"    {name}: {what}")


if __name__ == "__main__":
    os.environ.setdefault("REDISPATCH_QUIET", "1")
    sys.exit(main(sys.argv[1:]))
