"""ProfilerMode: how long each operator takes, how often it is called, and how many bytes it returns.

    with ProfilerMode() as profile:
        model(x).sum().backward()
    print(profile)                                  # a table, the most expensive operator first
    profile.export_chrome_trace("step.json")        # the calls on a time axis, for Perfetto and chrome://tracing

What it teaches: a mode is a place to hold a clock to. It stands below autograd and autocast, so what it times is the
kernels and what lies below the mode (subclasses, other modes); what the layers above cost is not in it, and neither is
its own work, since the clock runs only while the operator does. How serious it is: for every day. It adds some
microseconds to each call, so times of small tensors are good for comparing, not for adding up.

Source of the file's format: "Trace Event Format", the Chromium project; times are in microseconds. Read next:
memory_tracker.py; `redispatch.trace`, which records every hop, the layers above the mode included.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import TorchDispatchMode
from redispatch.utils.flop_counter import flop_registry
from redispatch.utils.text import spoken_bytes, spoken_seconds, text_table

from .logging_mode import arguments_text, summary

ORDERS = ("time", "calls", "bytes", "name")


class Event(NamedTuple):
    """One call. start, seconds: by the profiler's clock. nbytes: of what it made. arguments, result: summaries.

    shapes: of the positional arguments, () for what is no tensor. flops: where they were asked for, else 0.
    """

    op: Any
    start: float
    seconds: float
    nbytes: int
    arguments: str
    result: str
    thread: int
    shapes: tuple[tuple[int, ...], ...] = ()
    flops: int = 0


@dataclass
class Cost:
    """The cost of all calls of one operator together. path: the keys at which its first call stopped."""

    calls: int = 0
    seconds: float = 0.0
    nbytes: int = 0
    path: list[str] = field(default_factory=list)


class ProfilerMode(TorchDispatchMode):
    """A region in which each call of an operator is timed.

    paths: records at which dispatch keys the first call of each operator stops; that call runs under a trace, and its
    time includes the trace's. flops: counts floating-point operations of products (frontend/utils/flop_counter.py).
    clock: what tells the time, in seconds. Results: `events`, one for each call in their order; `costs`, by operator;
    `get_table()`, `print_table()`, `chrome()`, `export_chrome_trace(path)`. A call that raises is timed, too. Each
    region starts from nothing.
    """

    def __init__(
        self, *, paths: bool = False, flops: bool = False, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        super().__init__()
        self.paths, self.flops, self.clock = paths, flops, clock
        self.events: list[Event] = []
        self.costs: dict[Any, Cost] = {}

    def __enter__(self) -> ProfilerMode:
        self.events.clear()
        self.costs.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        first = func not in self.costs
        cost = self.costs.setdefault(func, Cost())
        # Before the call: an in-place operator may change what the summary shows.
        arguments = arguments_text(args, kwargs)
        shapes = tuple(tuple(x.shape) if isinstance(x, rd.Tensor) else () for x in args)
        result, outcome, nbytes, flops = None, "raised", 0, 0
        start = self.clock()
        try:
            if self.paths and first:
                with rd.trace() as hops:
                    result = func(*args, **kwargs)
                cost.path = way_down(hops)
            else:
                result = func(*args, **kwargs)
            seconds = self.clock() - start
            outcome, nbytes = summary(result), bytes_made(func, args, kwargs, result)
            flops = flops_of(func, args, kwargs, result) if self.flops else 0
        except Exception as error:
            seconds, outcome = self.clock() - start, f"raised {type(error).__name__}"
            raise
        finally:
            cost.calls, cost.seconds, cost.nbytes = cost.calls + 1, cost.seconds + seconds, cost.nbytes + nbytes
            thread = threading.get_ident()
            self.events.append(Event(func, start, seconds, nbytes, arguments, outcome, thread, shapes, flops))
        return result

    # What was found ------------------------------------------------------------------------------------------------

    def total_seconds(self) -> float:
        """The sum over all calls."""
        return sum(cost.seconds for cost in self.costs.values())

    def rows(self, sort_by: str = "time") -> list[tuple[str, ...]]:
        """The table's cells: a heading, a row for each operator, and the total.

        sort_by: "time", "calls" or "bytes", the largest first; or "name". Errors: ValueError for anything else.
        """
        if sort_by not in ORDERS:
            raise ValueError(f"ProfilerMode: sort_by should be one of {', '.join(ORDERS)}, got {sort_by!r}")
        measure = {
            "time": lambda cost: -cost.seconds,
            "calls": lambda cost: -cost.calls,
            "bytes": lambda cost: -cost.nbytes,
            "name": lambda cost: 0,
        }[sort_by]
        total = self.total_seconds()

        def row(name: str, cost: Cost) -> tuple[str, ...]:
            share = f"{cost.seconds / total:.1%}" if total else "-"
            mean = spoken_seconds(cost.seconds / cost.calls) if cost.calls else "-"
            cells = (name, f"{cost.calls:,}", spoken_seconds(cost.seconds), share, mean, spoken_bytes(cost.nbytes))
            return (*cells, " > ".join(cost.path)) if self.paths else cells

        costs = self.costs.values()
        everything = Cost(sum(cost.calls for cost in costs), total, sum(cost.nbytes for cost in costs))
        heading = ("operator", "calls", "time", "share", "mean", "bytes", *(["keys"] if self.paths else []))
        ordered = sorted(self.costs.items(), key=lambda item: (measure(item[1]), str(item[0])))
        return [heading, *(row(str(op), cost) for op, cost in ordered), row("total", everything)]

    def get_table(self, sort_by: str = "time") -> str:
        """A line for each operator: calls, time, share of the total, mean time, bytes of results; the total last."""
        return text_table(self.rows(sort_by))

    def __str__(self) -> str:
        return self.get_table()

    def print_table(self, sort_by: str = "time") -> None:
        """Prints the table: by `rich`, which is optional (`pip install rich`); without it, as plain text."""
        try:
            from rich.console import Console  # an extra
            from rich.table import Table
        except ImportError:
            print(self.get_table(sort_by))
            return
        heading, *body, total = self.rows(sort_by)
        table = Table(show_footer=True)
        for position, (name, end) in enumerate(zip(heading, total, strict=True)):
            table.add_column(name, end, justify="right" if position else "left")
        for cells in body:
            table.add_row(*cells)
        Console(file=sys.stdout).print(table)

    def chrome(self) -> str:
        """The calls in the Trace Event Format, as JSON: one complete event each, a row for each thread."""
        began = min((event.start for event in self.events), default=0.0)
        threads = {thread: number for number, thread in enumerate(dict.fromkeys(event.thread for event in self.events))}
        names = [
            {"ph": "M", "name": "process_name", "pid": os.getpid(), "args": {"name": "redispatch"}},
            *(
                {
                    "ph": "M",
                    "name": "thread_name",
                    "pid": os.getpid(),
                    "tid": number,
                    "args": {"name": f"thread {number}"},
                }
                for number in threads.values()
            ),
        ]
        calls = [
            {
                "ph": "X",
                "name": str(event.op),
                "cat": "operator",
                "ts": (event.start - began) * 1e6,
                "dur": event.seconds * 1e6,
                "pid": os.getpid(),
                "tid": threads[event.thread],
                "args": {"arguments": event.arguments, "result": event.result, "bytes": event.nbytes},
            }
            for event in self.events
        ]
        return json.dumps({"traceEvents": names + calls, "displayTimeUnit": "ns"})

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes `chrome()` into a file, which ui.perfetto.dev and chrome://tracing open."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.chrome())


def bytes_made(func: Any, args: Any, kwargs: Any, result: Any) -> int:
    """The bytes of the results that are new: a view makes none, and what was written was there before."""
    if func._schema.is_view:
        return 0
    given = {id(leaf) for leaf in pytree.tree_leaves((args, kwargs))}
    return sum(x.nbytes for x in pytree.tree_leaves(result) if isinstance(x, rd.Tensor) and id(x) not in given)


def flops_of(func: Any, args: Any, kwargs: Any, result: Any) -> int:
    """Returns the cost of an operator with a formula; 0 without one."""
    formula = flop_registry.get(getattr(func, "overloadpacket", func))
    return formula(*args, **kwargs, out_val=result) if formula else 0


def way_down(root: Any) -> list[str]:
    """The keys at which the first call in a trace stopped, from the highest down, what it called itself left out."""
    path, hop = [], root.children[0] if root.children else None
    while hop is not None:
        path.append(str(hop.key))
        hop = next((below for below in hop.children if below.op is hop.op), None)
    return path


NOT_SUPPORTED: dict[str, str] = {}
