"""Prints for commands: headings, indented text, and a progress line that draws over itself on a terminal.

Read next: frontend/demo/story.py, cache.py (both print with it).
"""

from __future__ import annotations

import sys
from textwrap import indent

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
