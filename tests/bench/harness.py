"""Times a row on two libraries in one process, and says how they compare.

Both sides run interleaved, round by round, so that a noisy neighbour or a falling clock slows both alike. A side's time
is its best round: what the code costs when nothing interrupts it. A round repeats the call until it lasts long enough
for the clock. A side that raises is reported with its exception; a row is never dropped.
Read `report.py` next for what becomes of the numbers.
"""

from __future__ import annotations

import gc
import importlib
import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from itertools import repeat
from time import perf_counter
from types import ModuleType
from typing import Any

from rows import Row, Under

WARM_UP = 8  # calls: the first ones compile, and what compiles late may do so at the third


@dataclass(frozen=True, slots=True)
class Result:
    """Best seconds per call on each side, or the reason why there is none; those that memcpy takes for the bytes."""

    name: str
    ours: float | None
    torch: float | None
    ours_error: str | None = None
    torch_error: str | None = None
    target: float | None = None
    later: bool = False
    memcpy: float | None = None

    @property
    def ratio(self) -> float | None:
        """ours / torch: below 1 we are faster. None where a side failed."""
        return None if self.ours is None or self.torch is None else self.ours / self.torch

    def as_dict(self) -> dict[str, Any]:
        """The result as it is written to JSON."""
        return {**asdict(self), "ratio": self.ratio}


class Side:
    """One library's half of a row: built once, timed in rounds; after its first exception it stays silent."""

    def __init__(self, row: Row, library: ModuleType | Exception):
        self.best = math.inf
        self.error: str | None = None
        self.loops = 1
        self._work: Under | None = None
        if isinstance(library, Exception):
            self.error = describe(library)
        else:
            self._guarded(lambda: self._build(row, library))

    def calibrate(self, seconds: float) -> None:
        """Warms the call up and finds how many repetitions last `seconds`."""

        def grow() -> None:
            self._run(WARM_UP)
            self.loops = 1
            while (elapsed := self._run(self.loops)) < seconds:
                # Grow at most tenfold: a first, slow repetition says little about the next thousand.
                self.loops = min(10 * self.loops, math.ceil(1.2 * self.loops * seconds / max(elapsed, 1e-9)) + 1)

        self._guarded(grow)

    def round(self) -> None:
        """Times one round, and keeps it when it is the best so far."""

        def measure() -> None:
            self.best = min(self.best, self._run(self.loops) / self.loops)

        self._guarded(measure)

    @property
    def seconds(self) -> float | None:
        return None if self.error else self.best

    def _build(self, row: Row, library: ModuleType) -> None:
        made = row.build(library)
        self._work = made if isinstance(made, Under) else Under(nullcontext, made)

    def _run(self, loops: int) -> float:
        assert self._work is not None
        call = self._work.call
        with self._work.context():
            start = perf_counter()
            for _ in repeat(None, loops):
                call()
            return perf_counter() - start

    def _guarded(self, step: Callable[[], None]) -> None:
        if self.error is None:
            try:
                step()
            except Exception as error:  # any failure of a library is a result of the benchmark
                self.error = describe(error)


def memcpy_sides(row: Row) -> list[Side]:
    """A third side for a row that memory bounds: numpy copies as many bytes as it moves, half read and half written."""
    moves = row.moves
    if moves is None:
        return []

    def build(np: ModuleType) -> Callable[[], Any]:
        source, target = np.ones(moves // 2, np.uint8), np.ones(moves // 2, np.uint8)
        return lambda: np.copyto(target, source)

    return [Side(Row("memcpy", build), importlib.import_module("numpy"))]


def describe(error: BaseException) -> str:
    """An exception in one line: `TypeError: ...`."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}".removesuffix(": ")


def measure(
    rows: Iterable[Row],
    ours: ModuleType | Exception,
    torch: ModuleType | Exception,
    rounds: int = 9,
    seconds: float = 0.01,
) -> list[Result]:
    """Times rows on both libraries, `rounds` times each, in turn, `seconds` or more a round.

    All rows have their first round before any has its second: a machine that is slow for some seconds, as shared ones
    are, then slows a round of each row, and not all rounds of one.

    A library may be the exception that its import raised; its side of each row then reports that.
    """
    trials = [(row, Side(row, ours), Side(row, torch), *memcpy_sides(row)) for row in rows]
    for _, *sides in trials:
        for side in sides:
            side.calibrate(seconds)
    gc.collect()
    gc.disable()  # a collection would land on whichever side happens to run
    try:
        for i in range(rounds):
            for _, *sides in trials:
                for side in sides if i % 2 == 0 else reversed(sides):
                    side.round()
            gc.collect()
    finally:
        gc.enable()
    return [
        Result(row.name, a.seconds, b.seconds, a.error, b.error, row.target, row.later, *[c.seconds for c in copy])
        for row, a, b, *copy in trials
    ]


def geometric_mean(ratios: Iterable[float]) -> float | None:
    """The mean for ratios: 2 and 1/2 cancel. None of no ratios."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else None
