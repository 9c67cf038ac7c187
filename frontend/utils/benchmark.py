"""`redispatch.utils.benchmark`: how long a statement takes, often enough to know how much that varies, side by side.

    results = [Timer("x.sort()", globals={"x": rd.rand(n)}, label="sort", description=str(n)).blocked_autorange()
               for n in (10, 1000)]
    Compare(results).print()

Statements run on one thread unless `num_threads` says otherwise. Instruction counts (`collect_callgrind`) and
statements in C++ are not here.
"""

from __future__ import annotations

import math
import sys
import textwrap
import timeit
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import Enum
from importlib import import_module
from itertools import groupby
from typing import Any

import numpy as np

from redispatch.kernels import get_num_threads, set_num_threads
from redispatch.kernels.first_use import RUNTIME

__all__ = [
    "Colorize",
    "Compare",
    "Language",
    "Measurement",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
__path__: list[str] = []  # PyTorch has these in modules of their own: _moved.py

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


@dataclass(repr=False, frozen=True)
class TaskSpec:
    """The facts that a timer was made with, but the globals."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement, and the label below it."""
        if self.label is None and "\n" in self.stmt:
            below = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{below}\n{textwrap.indent(self.stmt, '  ')}"
        title = self.stmt if self.label is None else self.label
        return f"{title}: {self.sub_label}" if self.sub_label else title

    def setup_str(self) -> str:
        """Returns the setup as a report has it; "" for none."""
        if self.setup in ("", "pass"):
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Returns the head of a report."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts if part)


@dataclass(repr=False)
class Measurement:
    """Times of a statement, each of `number_per_run` runs of it. Attributes of its task are its own, too."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in {field.name for field in fields(TaskSpec)}:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """The times of one run."""
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def median(self) -> float:
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        return float(np.mean(self.times)) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """The width of the half of the times that are in the middle."""
        return self._quantile(0.75) - self._quantile(0.25)

    def _quantile(self, share: float) -> float:
        return float(np.quantile(self.times, share)) if self.raw_times else -1.0

    @property
    def significant_figures(self) -> int:
        """The number of digits that mean something, about: from how far the times in the middle are apart."""
        count = len(self.raw_times)
        middle = np.sort(self.times)[count // 4 : math.ceil(3 * count / 4)]
        interval = max(1.645 * middle.std() / math.sqrt(len(middle)), 25e-9)
        return min(max(math.floor(math.log10(self.median / interval)), 1), 4)

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Returns whether the times are that close together."""
        return self.iqr / self.median < threshold

    @property
    def warnings(self) -> list[str]:
        """The lines of a report that doubt the times."""
        if not self.raw_times or self.meets_confidence():
            return []
        gross = "This suggests significant environmental influence."
        why = "This could indicate system fluctuation." if self.meets_confidence(0.25) else gross
        share = self.iqr / self.median * 100
        return [f"  WARNING: Interquartile range is {share:.1f}% of the median measurement.\n           {why}"]

    @property
    def has_warnings(self) -> bool:
        return bool(self.warnings)

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        count = len(self.raw_times)
        low, high = (self._quantile(share) / scale for share in (0.25, 0.75))
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {unit}")
        if count >= 4:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        runs = f"{self.number_per_run} runs {'per measurement,' if count > 1 else ','}"
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        lines.append(f"  {count} measurement{'s' if count > 1 else ''}, {runs} {threads}")
        return "\n".join([*lines, *self.warnings])

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Returns one measurement for each task, of all its times, each as of one run."""
        groups: dict[TaskSpec, list[float]] = {}
        for each in measurements:
            groups.setdefault(each.task_spec, []).extend(each.times)
        return [Measurement(1, times, task) for task, times in groups.items()]


def select_unit(t: float) -> tuple[str, float]:
    """Returns the unit in which a time is a number of few digits, and the seconds in it."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(math.log10(t) // 3), "s") if t > 0 else "s"
    return unit, UNITS[unit]


def unit_to_english(u: str) -> str:
    """Returns the name of a unit."""
    return ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """Returns a number rounded to n digits that are not leading zeros. AssertionError unless n is whole."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10.0 ** (math.ceil(math.log10(abs(x))) - n)
    return round(x / scale) * scale


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Returns the elements, each where it is first."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A region in which kernels run on n threads."""
    former = get_num_threads()
    set_num_threads(n)
    try:
        yield
    finally:
        set_num_threads(former)


def timer() -> float:
    """Returns the time, when all that a GPU was given to do is done."""
    devices = sys.modules.get(f"{RUNTIME}.devices")  # loaded by the first that asks for one
    if devices is not None and devices.started():
        import_module(f"{RUNTIME}.streams").synchronize()
    return timeit.default_timer()


class Language(Enum):
    """The language of a statement; there is one."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Measures a statement, given as text. `torch` is the library in it, and `globals` are its other names.

    Errors: ValueError for a statement that is no text, a setup outside of it, and for another language than Python.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        import redispatch  # here: it is what statements call `torch`

        stmt, setup = (textwrap.dedent(text).removeprefix("\n").rstrip() for text in (stmt, setup))
        self._globals = {"torch": redispatch, **(globals or {})}
        self._timer = timeit.Timer(stmt, setup, timer, self._globals)
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Returns the time of so many runs, after some to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> None:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Returns times of so many runs that the clock counts for nothing, for `min_run_time` seconds in all."""
        return self._measured(self._block_size(min_run_time), min_run_time, math.inf, lambda found: True, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Returns times until they are close together, or `max_run_time` is over."""
        return self._measured(
            self._block_size(0.05),
            min_run_time,
            max_run_time,
            lambda found: len(found.raw_times) > 3 and found.meets_confidence(threshold),
            callback,
        )

    def _block_size(self, min_run_time: float) -> int:
        """Returns how many runs are measured at once: so many that what is done around them takes a 10,000th."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(1)  # kernels are compiled by the first call
            overhead, number = sorted(self._timeit(0) for _ in range(5))[2], 1
            while number * 10 < 2**31:
                taken = self._timeit(number)
                if taken > min_run_time or (overhead / taken <= 1e-4 and taken >= min_run_time / 1000):
                    break
                number *= 10
        return number

    def _measured(
        self, number: int, at_least: float, at_most: float, enough: Callable[[Measurement], bool], callback: Any
    ) -> Measurement:
        found = Measurement(number, [], self._task_spec)
        with set_torch_threads(self._task_spec.num_threads):
            while not found.raw_times or sum(found.raw_times) < at_least or not enough(found):
                found.raw_times.append(self._timeit(number))
                if callback is not None:
                    callback(number, found.raw_times[-1])
                if sum(found.raw_times) > at_most:
                    break
        return found


# --- side by side -----------------------------------------------------------------------------------------------------


class Colorize(Enum):
    """The times that a colour compares: those of a column, or of a row."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


COLORS = (  # up to so many times the best one -> the colour; slower ones up to twice have none
    (1.01, "\033[92m\033[1m"), (1.1, "\033[34m\033[1m"), (2.0, ""), (5.0, "\033[2m\033[91m"),
    (math.inf, "\033[31m\033[1m"),
)  # fmt: skip


class Compare:
    """A table of measurements for each label: a row for what is below it, a column for each description."""

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim, self._warn, self._colorize = False, False, Colorize.NONE
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements. ValueError for what is none."""
        for each in results:
            if not isinstance(each, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(each)} instead.")
            self._results.append(each)

    def trim_significant_figures(self) -> None:
        """Has digits that mean nothing be left out."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Has the best and the worst of each column, or row, be coloured."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Has those marked whose times are far apart."""
        self._warn = True

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))

    def __str__(self) -> str:
        groups: dict[Any, list[Measurement]] = {}
        for each in Measurement.merge(self._results):
            groups.setdefault(each.label, []).append(each)
        return "\n".join(map(self._table, groups.values()))

    def _table(self, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(each.median for each in results))
        several = len({each.env for each in results}) > 1
        columns = ordered_unique(each.description for each in results)
        cells = {(each.num_threads, each.env, each.as_row_name, each.description): each for each in results}
        keys = sorted(ordered_unique(key[:3] for key in cells), key=lambda key: (key[0], key[1] or ""))
        number = {column: self._numbers([e for e in results if e.description == column], scale) for column in columns}
        width_env = max(len(str(each.env)) for each in results) if several else 0
        names = {
            key: f"  {(f'({key[1]})' if several else '').ljust(width_env + 4) if several else ' ' * 4}{key[2]}"
            for key in keys
        }
        texts = {(key, c): number[c](cells.get((*key, c))) for key in keys for c in columns}
        widths = {c: max(len(c or ""), *(len(texts[key, c]) for key in keys)) for c in columns}
        first = max(map(len, names.values()))
        head = "  |  ".join([" " * first, *((c or "").center(widths[c]) for c in columns)])
        lines = [f"[{f' {results[0].label or str()} '.center(len(head) - 2, '-')}]", head]
        for threads, group in groupby(keys, key=lambda key: key[0]):
            listed = list(group)
            lines.append(f"{threads} threads: ".ljust(len(head), "-"))
            for key in listed:
                row = [cells.get((*key, c)) for c in columns]
                shown = [names[key].ljust(first)]
                for c, each in zip(columns, row, strict=True):
                    rivals = row if self._colorize is Colorize.ROWWISE else [cells.get((*k, c)) for k in listed]
                    shown.append(self._coloured(texts[key, c].center(widths[c]), each, rivals))
                lines.append("  |  ".join(shown))
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._warn and any(each.has_warnings for each in results):
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join([*lines, ""])

    def _numbers(self, column: list[Measurement], scale: float) -> Callable[[Measurement | None], str]:
        """Returns what writes the times of a column, all with as many digits."""
        leading = [math.ceil(math.log10(each.median / scale)) for each in column]
        decimals = 1
        if self._trim:
            decimals = min(max(each.significant_figures - n, 0) for each, n in zip(column, leading, strict=True))
        length = max(leading) + decimals + (1 if decimals else 0)
        room = 7 if self._warn and any(each.has_warnings for each in column) else 0

        def written(each: Measurement | None) -> str:
            if each is None:
                return " " * (max(length, 1) + room)
            value = each.median / scale
            value = trim_sigfig(value, each.significant_figures) if self._trim else value
            spread = f" (! {each.iqr / each.median * 100:.0f}%)" if room and each.has_warnings else ""
            return f"{value:>{length}.{decimals}f}{spread:>{room}}"

        return written

    def _coloured(self, text: str, each: Measurement | None, rivals: list[Measurement | None]) -> str:
        if each is None or self._colorize is Colorize.NONE:
            return text
        best = min(one.median for one in rivals if one is not None)
        times = 1.0 if each.median <= best + 100e-9 else each.median / best
        color = next(color for limit, color in COLORS if times <= limit)
        return f"{color}{text}\033[0m\033[0m" if color else text
