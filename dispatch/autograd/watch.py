"""Whether somebody may be looking on while operators are recorded: hooks on saved tensors, or anomaly mode.

Both are rare, and to ask for them takes as long as to make an edge. So it is asked only in a process in which one of
them has ever been used; `WATCH.on` is set at the first use, and stays.
"""

from __future__ import annotations


class Watch:
    """One switch. It is not part of the dispatch state, because a context copied elsewhere must not miss it."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False


WATCH = Watch()
