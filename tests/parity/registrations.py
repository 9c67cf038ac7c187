"""Compares the random programs of tests/dispatch/interleavings.py with PyTorch, and with what is recorded of it.

Run with a Python that has torch: `python tests/parity/registrations.py [--write] [first last]`. Exits non-zero where an
outcome differs from PyTorch's, or PyTorch's from the record; `--write` writes the record.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import redispatch  # after the path is set
import redispatch.library  # the same
from tests.dispatch.interleavings import RECORDED, STALE, digest, outcome  # the same


def differences(theirs, ours, path=""):
    """Yields where two outcomes differ."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in theirs:
            yield from differences(theirs[key], ours[key], f"{path}.{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif theirs != ours:
        yield f"{path}\n    torch {theirs}\n    ours  {ours}"


def main() -> int:
    warnings.simplefilter("ignore")
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    seeds = range(*(numbers or (0, 1200)))
    recorded = RECORDED.read_text().split() if RECORDED.exists() else []
    wrong, stale, lines = 0, 0, []
    for seed in seeds:
        theirs, ours = outcome(torch, seed), outcome(redispatch, seed)
        lines.append(digest(theirs))
        stale += lines[-1] == "-"
        found = [one for one in differences(theirs, ours) if STALE not in one]
        if seed < len(recorded) and recorded[seed] != lines[-1]:
            found.append("torch's outcome is not the one that is recorded")
        wrong += bool(found)
        for one in found[:3]:
            print(f"{seed}{one}")
    if "--write" in sys.argv:
        RECORDED.write_text("".join(" ".join(lines[at : at + 10]) + "\n" for at in range(0, len(lines), 10)))
    print(f"{len(seeds) - wrong} of {len(seeds)} programs end as torch's do; in {stale} its own check fails")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
