"""Text for people: tables, numbers with units, headings, and a progress line that draws over itself on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from textwrap import indent


def text_table(rows: Sequence[Sequence[str]], *, total: bool = True) -> str:
    """Returns rows as lines of columns, the first to the left, the others to the right: a heading, the body, a total.

    total: whether the last row is one, and stands below a rule of its own.
    """
    name, *numbers = (max(map(len, column)) for column in zip(*rows, strict=True))
    lines = [
        "  ".join([first.ljust(name), *(text.rjust(width) for text, width in zip(rest, numbers, strict=True))])
        for first, *rest in rows
    ]
    rule = "-" * len(lines[0])
    body = [*lines[1:-1], rule, lines[-1]] if total else lines[1:]
    return "\n".join(line.rstrip() for line in [lines[0], rule, *body])


def spoken_bytes(count: int) -> str:
    """A number of bytes as people say it: `512 B`, `1.5 KiB`, `2.0 GiB`."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def spoken_seconds(seconds: float) -> str:
    """A time as people say it: `12.0 µs`, `3.4 ms`, `1.2 s`."""
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if round(seconds * scale, 6) >= 1:  # else 0.001, read off a clock as 0.000999…, were 1000.0 µs
            return f"{seconds * scale:.1f} {unit}"
    return f"{seconds * 1e6:.1f} µs"


# --- For commands ----------------------------------------------------------------------------------------------------

BAR = 28  # characters of the progress bar


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def show(text: str) -> None:
    print(indent(text, "  "), flush=True)


class Progress:
    """A line that says how far something has come.

    On a terminal it draws over itself; in a file or pipe, where that would be noise, it prints about six lines in all.
    shown: whether to print anything; None means only on a terminal.
    """

    def __init__(self, total: int, shown: bool | None = True) -> None:
        self.total, self.done = total, 0
        self.live = sys.stdout.isatty()
        self.shown = self.live if shown is None else shown

    def advance(self, text: str) -> None:
        """One more of `total` is done; `text` stands beside the bar."""
        self.done += 1
        if not self.shown:
            return
        filled = BAR * self.done // self.total
        line = f"  {'█' * filled}{'░' * (BAR - filled)} {self.done:>{len(str(self.total))}}/{self.total}  {text}"
        last = self.done == self.total
        if self.live:
            print(f"\r{line}\x1b[K", end="\n" if last else "", flush=True)
        elif last or self.done == 1 or self.done % max(1, self.total // 5) == 0:
            print(line, flush=True)
