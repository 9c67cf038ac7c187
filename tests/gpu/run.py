"""What a card does: `make gpu`, or `python tests/gpu/run.py`. Prints, and writes `gpu.json`.

    1. versions: of the card, its driver, and the packages
    2. table (table.py): each operator of the table, on the device against the CPU and against the simulator
    3. speed (speed.py): bandwidth, matrix products, small operators, graphs, the allocator, beside the installed torch

    --only TEXT     only the operators and rows whose name contains TEXT
    --small         sizes at which nothing can be measured, and few samples: for the tests, on devices that are none
    --skip PART     leaves a part out: table, simulator, speed
    --out FILE      where to write, by default gpu.json

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
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from speed import bench
from table import compare_with_cpu, compare_with_simulator

import redispatch as rd
from redispatch.kernels import cuda

PACKAGES = "numpy numba numba-cuda cuda-core cuda-bindings nvidia-nvvm nvidia-nvjitlink nvmath-python torch".split()


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
        "redispatch": getattr(rd, "__version__", "of this checkout"),
        "packages": found,
    }


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--skip", action="append", default=[], choices=("table", "simulator", "speed"))
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
    for part, compare in (("table", compare_with_cpu), ("simulator", compare_with_simulator)):
        if part not in options.skip and rd.cuda.get_device_name() != cuda.NullDriver.title:
            found[part] = table = compare(options.only, options.small)
            wrong += len(table["wrong"])
            print_table("the CPU" if part == "table" else "the simulator", table)
    if "speed" not in options.skip:
        torch = torch_with_a_card()
        if isinstance(torch, str):
            print(f"  times without torch: {torch}")
        found["speed"] = bench(None if isinstance(torch, str) else torch, options.only, options.small)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"  written to {options.out}")
    return int(wrong > 0)


def print_table(other: str, table: dict[str, Any]) -> None:
    counts = f"{table['right']} operators right, {len(table['wrong'])} wrong, {len(table['without'])} without kernels"
    print(f"  against {other}: {counts}")
    for name, what in table["wrong"].items():
        print(f"    {name}: {what}")


if __name__ == "__main__":
    os.environ.setdefault("REDISPATCH_QUIET", "1")
    sys.exit(main(sys.argv[1:]))
