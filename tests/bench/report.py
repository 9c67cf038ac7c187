"""What `make bench` leaves behind: `docs/benchmarks.json` with the numbers, and `docs/benchmarks.md` made from it.

A run of one group replaces that group in the JSON and leaves the others, so each group carries the machine, the
versions and the date that it was measured with.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness import Result, geometric_mean

INTRODUCTION = """\
# Benchmarks

Written by `make bench`, together with `docs/benchmarks.json`. Both libraries run the same lines in one process, one
thread each, in alternating rounds; a time is the best round's mean per call. The ratio is ours / torch: below 1 we are
faster. A row that a library cannot run yet shows its exception; the mean is over the rows that ran on both sides. Where
memory is the limit, `memcpy` is the time in which numpy copies as many bytes as the row has to read and write.
"""


def machine() -> dict[str, Any]:
    """The machine and versions that a group was measured with."""
    packages = ["redispatch", "torch", "numpy", "numba"]
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: found for name in packages if (found := installed(name))},
        "date": datetime.now(UTC).date().isoformat(),
    }


def cpu_name() -> str:
    """The processor's own name for itself, as far as the system tells."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def installed(name: str) -> str | None:
    """The version of an installed package, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def time_text(seconds: float | None, error: str | None) -> str:
    """`812 ns`, `4.70 us`, `1.31 ms`, or `failed: TypeError: ...`."""
    if seconds is None:
        return f"failed: {error}"
    for unit, scale in (("ns", 1e9), ("us", 1e6), ("ms", 1e3)):
        if seconds * scale < 1000:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def cells(result: Result) -> list[str]:
    """One row of the table as text: name, ours, torch, ratio, target."""
    ratio = "" if result.ratio is None else f"{result.ratio:.2f}"
    target = "" if result.target is None else f"{result.target:.2f}"
    ours = "to come" if result.later and result.ours is None else time_text(result.ours, result.ours_error)
    torch = time_text(result.torch, result.torch_error)
    return [result.name, ours, torch, ratio, target]


def mean_text(results: Sequence[Result]) -> str:
    """`geometric mean 0.61 over 24 rows, 2 failed`."""
    ratios = [r.ratio for r in results if r.ratio is not None]
    mean = geometric_mean(ratios)
    text = f"geometric mean {mean:.2f} over {len(ratios)} rows" if mean else "no row ran on both sides"
    later = sum(r.ratio is None and r.later for r in results)
    failed = len(results) - len(ratios) - later
    return text + (f", {later} to come" if later else "") + (f", {failed} failed" if failed else "")


def save(groups: Mapping[str, Sequence[Result]], json_path: Path, markdown_path: Path) -> None:
    """Puts the measured groups into the JSON file, and writes the page anew from all that it then holds."""
    known = json.loads(json_path.read_text()) if json_path.exists() else {}
    for name, results in groups.items():
        known[name] = {"machine": machine(), "rows": [r.as_dict() for r in results]}
    json_path.write_text(json.dumps(known, indent=1) + "\n")
    markdown_path.write_text(page(known))


def page(known: Mapping[str, Any]) -> str:
    """The Markdown page for everything in the JSON file."""
    sections = [INTRODUCTION]
    for name, group in known.items():
        results = [Result(**{k: v for k, v in row.items() if k != "ratio"}) for row in group["rows"]]
        sections.append(section(name, group["machine"], results))
    return "\n".join(sections)


def section(name: str, where: Mapping[str, Any], results: Sequence[Result]) -> str:
    """One group: what it ran on, the table, the mean."""
    versions = ", ".join(f"{package} {number}" for package, number in where["versions"].items())
    place = f"{where['cpu']}, {where['cores']} cores, {where['system']}, Python {where['python']}"
    header = ["row", "ours", "torch", "ours / torch", "target"]
    tables = [cells(r) for r in results]
    if any(r.memcpy for r in results):
        header.append("memcpy")
        for table, r in zip(tables, results, strict=True):
            table.append(time_text(r.memcpy, None) if r.memcpy else "")
    lines = [
        f"## {name}",
        "",
        f"{place}, {versions}; {where['date']}",
        "",
        "| " + " | ".join(header) + " |",
        "|---" + "|--:" * (len(header) - 1) + "|",
        *("| " + " | ".join(escape(cell) for cell in table) + " |" for table in tables),
        "",
        f"**{mean_text(results)}**",
        "",
    ]
    return "\n".join(lines)


def escape(cell: str) -> str:
    """A cell's text with what Markdown would take for markup defused: `*` and `_` in row names, `|` in messages."""
    for mark in "\\|*_<":
        cell = cell.replace(mark, "\\" + mark)
    return cell


def print_result(result: Result) -> None:
    """The row on the terminal, as soon as it is known."""
    name, *times, ratio, target = cells(result)
    ours, torch = ("failed" if time.startswith("failed") else time for time in times)
    goal = f"  target {target}" if target else ""
    goal += f"  memcpy {time_text(result.memcpy, None)}" if result.memcpy else ""
    print(f"  {name:<54} {ours:>12} {torch:>12} {ratio:>8}{goal}", flush=True)
    for side, error in (("ours", result.ours_error), ("torch", result.torch_error)):
        if error:
            print(f"      {side}: {error}", flush=True)


def print_header(group: str) -> None:
    """The line above a group's rows."""
    print(f"\n{group:<56} {'ours':>12} {'torch':>12} {'ratio':>8}", flush=True)
