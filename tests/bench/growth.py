"""Whether the cost of a call grows: `python tests/bench/growth.py`, part of `make bench`.

It must not with the number of operators that are registered, and be linear in the modes on the stack. Both are asked
of `redispatch.add` on float32[16], specialised, in rounds that are taken in turn. Writes `docs/growth.json`, from which
the table in the docs is made.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from layers import HandOn

import redispatch as rd

ROUNDS, LOOPS = 40, 1000
OPERATORS = (10, 100, 1_000, 10_000)
MODES = (0, 1, 2, 4, 8, 16)


def round_of(a: Any, b: Any) -> float:
    """Nanoseconds of one call, as the mean of a round."""
    start = perf_counter_ns()
    for _ in range(LOOPS):
        rd.add(a, b)
    return (perf_counter_ns() - start) / LOOPS


def by_operators() -> dict[int, float]:
    """Number of operators defined besides the library's own -> nanoseconds of a call, in the best round.

    An operator is removed with its library, so each round can have each number.
    """
    a, b = rd.ones(16), rd.ones(16)
    best = dict.fromkeys(OPERATORS, float("inf"))
    for _ in range(5):
        for count in OPERATORS:
            with rd.library._scoped_library("growth", "DEF") as library:
                for i in range(count):
                    library.define(f"op{i}(Tensor x) -> Tensor")
                best[count] = min(best[count], *(round_of(a, b) for _ in range(ROUNDS // 5)))
    return best


def by_modes() -> dict[int, float]:
    """Number of dispatch modes that hand on -> nanoseconds of a call, in the best round."""
    a, b = rd.ones(16), rd.ones(16)
    best = dict.fromkeys(MODES, float("inf"))
    for _ in range(ROUNDS):
        for count in MODES:
            with ExitStack() as stack:
                for _ in range(count):
                    stack.enter_context(HandOn())
                best[count] = min(best[count], round_of(a, b))
    return best


def main() -> None:
    rd.set_num_threads(1)
    measured = {"operators": by_operators(), "modes": by_modes()}
    for what, best in measured.items():
        for count, value in best.items():
            print(f"  add with {count:>6} {what:<10} {value:8.0f} ns")
    if "--dry" not in sys.argv:
        path = Path(__file__).resolve().parents[2] / "docs" / "growth.json"
        rounded = {what: {count: round(value) for count, value in best.items()} for what, best in measured.items()}
        path.write_text(json.dumps(rounded, indent=1) + "\n")


if __name__ == "__main__":
    main()
