"""A table as text: the first column to the left, the others to the right, a total below a rule of its own."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(rows: Sequence[Sequence[str]], *, total: bool = True) -> str:
    """The rows as lines of equal columns: a heading, the body, and a total; at least a heading and a total.

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
