"""Times redispatch against torch: `python tests/bench/run.py [group ...]`; without a group, all of them.

    --only TEXT     only the rows whose name contains TEXT; writes no files
    --ours NAME     another library in our place (`--ours torch` shows how much of a ratio is noise); writes no files
    --rounds N      rounds per row and side
    --dry           print, and write no files

The groups are files of rows beside this one; read `rows.py` for what a row is, `harness.py` for how it is timed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

# One thread each, said before anything loads a BLAS.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

from harness import Result, measure  # noqa: E402  (after the environment is set)  # after the path is set
from report import mean_text, print_header, print_result, save  # noqa: E402  # after the path is set
from rows import Group  # noqa: E402  # after the path is set

GROUPS = ["dispatch", "kernels", "train", "compiled"]
DOCS = Path(__file__).resolve().parents[2] / "docs"


def library(name: str) -> ModuleType | Exception:
    """The library, limited to one thread; or the exception that kept it from being imported."""
    try:
        module = importlib.import_module(name)
        module.set_num_threads(1)
    except Exception as error:  # reported in each row
        return error
    return module


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", metavar="group", help=", ".join(GROUPS))
    parser.add_argument("--only", default="")
    parser.add_argument("--ours", default="redispatch")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args(arguments)
    if unknown := set(options.groups) - set(GROUPS):
        parser.error(f"no such group: {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    return options


def main(arguments: list[str]) -> int:
    """Runs the groups asked for; exits with 1 when a row failed on either side."""
    options = parse(arguments)
    ours, torch = library(options.ours), library("torch")
    measured: dict[str, list[Result]] = {}
    for name in options.groups or GROUPS:
        rows: Group = importlib.import_module(name).GROUP
        print_header(name)
        results = measured[name] = measure([r for r in rows if options.only in r.name], ours, torch, options.rounds)
        for result in results:
            print_result(result)
        print(f"  {mean_text(results)}")
    if not (options.only or options.dry or options.ours != "redispatch"):
        save(measured, DOCS / "benchmarks.json", DOCS / "benchmarks.md")
    return int(any(r.ratio is None and not r.later for results in measured.values() for r in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
