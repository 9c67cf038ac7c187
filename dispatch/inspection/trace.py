"""Traces: every hop that calls really took, as a tree.

    with trace() as hops:
        a + b
    print(hops)
    hops.html("add.html")       # one page in which the way can be stepped through

A hop is one step of the interpreter: an operator, the key at which it stopped, who answered by which rule and where
that was registered. Where a mode or a class is asked in the place of a kernel, its handler is a hop, too. What a kernel
or handler calls in turn hangs below it. The present hop is part of the dispatch state, so that threads and tasks each
grow their own branch.

Read next: seen.py, for what is remembered of arguments; frontend/viz/, for pages and pictures.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from threading import get_ident
from typing import Any

from ..core.operator import OpOverload
from ..core.state import STATE, within
from ..core.table import Entry
from ..regions import Setting
from ..rules import Slot
from ..specialiser.specialise import Facts, facts_of
from .seen import Seen, StateFacts, Value, line_within, users_line

# How traces become pages: an object with `page(hop)`, `chrome(hop)` and `notebook(hop)`; filled by the room that draws.
VIEWS: Slot[Any] = Slot("how traces are shown")


class Hop:
    """One hop, and those that it led to (`children`). `seconds` includes them; `error` is what it raised, if it did.

    A hop of an operator has an `entry`: who answered at `key`, by which rule. A handler's hop has none; its key is
    "__torch_dispatch__" or "__torch_function__", `op` is what the handler was given, and `answered` whose it is.
    `inputs`, `output` and `state` are facts of that moment (seen.py); `called_at` is the line that led here.
    """

    __slots__ = (
        "op", "entry", "keyset", "handler", "key", "inputs", "output", "error", "start", "seconds", "children", "notes",
        "parent", "seen", "state", "facts", "code", "called_at", "thread", "__weakref__",
    )  # fmt: skip

    def __init__(
        self,
        op: Any = None,
        entry: Entry | None = None,
        keyset: int = 0,
        parent: Hop | None = None,
        key: str = "",
        handler: str = "",
    ) -> None:
        self.op, self.entry, self.keyset, self.parent, self.handler = op, entry, keyset, parent, handler
        self.key = entry.key.name if entry is not None else key
        self.inputs: tuple[Value, ...] = ()
        self.output: Value | None = None
        self.error: BaseException | None = None
        self.start = self.seconds = 0.0
        self.children: list[Hop] = []
        self.notes: list[str] = []  # what the layer says of itself: the mode that it asks
        self.seen: Seen = parent.seen if parent is not None else Seen()
        self.state: StateFacts | None = None
        self.facts: Facts | None = None  # what specialised code is found by, where this hop begins a call
        self.code: Any = getattr(entry.kernel.function, "__code__", None) if entry is not None else None
        self.called_at = ""
        self.thread = 0

    # Recording --------------------------------------------------------------------------------------------------------

    def hop(self, op: OpOverload, entry: Entry, keyset: int, stack: list[Any]) -> Any:
        """Runs in the place of the kernel while this hop is the present one."""
        child = Hop(op, entry, keyset, self)
        child.inputs = tuple(
            self.seen.value(value, argument.name) for argument, value in zip(op.schema.arguments, stack, strict=True)
        )
        if child.begins:
            child.facts = facts_of(op, stack)[0]
        return self._record(child, lambda: entry.kernel.boxed(op, keyset, stack))

    def asked(
        self,
        who: str,
        method: str,
        code: Any,
        function: Any,
        arguments: Iterable[tuple[str, Any]],
        answer: Callable[[], Any],
    ) -> Any:
        """Records a handler's answer, `answer()`: whose it is, the method's name and code, its arguments."""
        child = Hop(function, parent=self, key=method, handler=who)
        child.code = getattr(code, "__code__", None)
        child.inputs = tuple(self.seen.anything(value, name) for name, value in arguments)
        return self._record(child, answer)

    def called(self, op: Any, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Records the answer of a higher-order operator's kernel."""
        child = Hop(op, entry, STATE.get().included, self)
        child.inputs = tuple(self.seen.anything(value, name) for name, value in named(args, kwargs))
        return self._record(child, lambda: entry.kernel.function(*args, **kwargs))

    def _record(self, child: Hop, answer: Callable[[], Any]) -> Any:
        state = STATE.get()
        child.state = self.seen.state(state)
        child.thread = get_ident()
        child.called_at = self._line()
        self.children.append(child)
        child.start = time.perf_counter()
        try:
            with within(state.replace(tracer=child)):
                result = answer()
        except BaseException as error:
            child.error = error
            raise
        finally:
            child.seconds = time.perf_counter() - child.start
        child.output = self.seen.anything(result)
        return result

    def _line(self) -> str:
        """The line that leads from this hop to the next: of the kernel or handler, or of the user's program."""
        if self.code is None:
            return users_line() if self.parent is None else ""
        line = line_within(self.code)
        return f"{self.code.co_filename}:{line}" if line else ""

    # Reading ----------------------------------------------------------------------------------------------------------

    @property
    def begins(self) -> bool:
        """Whether a call begins here. Otherwise a layer has let the same call run on with fewer keys."""
        above = self.parent
        return above is None or above.op is not self.op or not self.keyset < above.keyset == above.keyset | self.keyset

    @property
    def arguments(self) -> str:
        """Returns the arguments as text."""
        named = bool(self.handler) and any(value.name for value in self.inputs)
        return ", ".join(f"{v.name}={v.text}" if named and v.name else v.text for v in self.inputs)

    @property
    def result(self) -> str:
        """Returns the result as text; empty where the hop raised."""
        return self.output.text if self.output is not None else ""

    @property
    def answered(self) -> str:
        """Names the kernel that answered and the rule by which it was found; or the owner of the handler."""
        if self.entry is None:
            return self.handler
        notes = f", {', '.join(self.notes)}" if self.notes else ""
        return f"{self.entry.kernel.label} ({self.entry.rule}){notes}"

    @property
    def place(self) -> str:
        """Where the kernel was registered, or the handler was written, as "file:line"."""
        if self.entry is not None:
            return self.entry.kernel.place
        return f"{self.code.co_filename}:{self.code.co_firstlineno}" if self.code is not None else ""

    def walk(self) -> Iterator[tuple[int, Hop]]:
        """(depth, hop) for each hop below this one, handlers' included, in the order in which they were taken."""
        pending = [(0, child) for child in reversed(self.children)]
        while pending:
            depth, hop = pending.pop()
            yield depth, hop
            pending += [(depth + 1, child) for child in reversed(hop.children)]

    def __iter__(self) -> Iterator[Hop]:
        """The hops of operators below this one, in the order in which they were taken."""
        return (hop for _, hop in self.walk() if hop.entry is not None)

    # Showing ----------------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        """A hop shows its own line; the root, which is what `trace` hands out, the whole tree."""
        return self.text() if self.op is None else self._line_of_text(places=False, times=False)

    def text(self, places: bool = False, times: bool = False) -> str:
        """The tree as text: a line for each hop, indented by depth; with file:line and microseconds where asked.

        The layer Python says in its own line whom it asks; a handler of functions, which no layer asks, has a line.
        """
        lines = []
        pending = [(child, 0) for child in reversed(self.children)]
        while pending:
            hop, depth = pending.pop()
            if hop.key != "__torch_dispatch__":
                lines.append("  " * depth + hop._line_of_text(places, times))
                depth += 1
            pending += [(child, depth) for child in reversed(hop.children)]
        return "\n".join(lines)

    def _line_of_text(self, places: bool, times: bool) -> str:
        outcome = f"{type(self.error).__name__}" if self.error is not None else self.result
        line = f"{name_of(self.op)}  [{self.key}]  {self.answered}  ({self.arguments}) -> {outcome}"
        if places:
            line += f"  at {self.place}"
        return line + (f"  {self.seconds * 1e6:.0f} us" if times else "")

    def html(self, path: str | os.PathLike[str] | None = None) -> str:
        """A page in which the trace can be stepped through; it needs nothing but a browser. Written to `path`, if any.

        It holds the source of each kernel, the modes and keys at each hop, and the specialised code of each call.
        """
        return written(VIEWS().page(self), path)

    def chrome(self, path: str | os.PathLike[str] | None = None) -> str:
        """The trace in the JSON format that Perfetto and chrome://tracing open; written to `path`, if any."""
        return written(VIEWS().chrome(self), path)

    def _repr_html_(self) -> str:
        """How notebooks show it: the tree, to be unfolded."""
        return VIEWS().notebook(self)


def name_of(function: Any) -> str:
    """Returns the name of an operator, or of a public function that a handler is given."""
    if isinstance(function, OpOverload) or not hasattr(function, "__name__"):
        return str(function)
    return function.__name__


def named(args: Iterable[Any], kwargs: dict[str, Any] | None) -> list[tuple[str, Any]]:
    """The arguments of a call with their names, where they have any."""
    return [*(("", value) for value in args), *(kwargs or {}).items()]


def written(text: str, path: str | os.PathLike[str] | None) -> str:
    """`text`, which is written to a file if there is a path."""
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return text


class trace(Setting):
    """A region whose operator calls are recorded: `with trace() as hops:`; then `print(hops)`."""

    def __init__(self) -> None:
        self.root = Hop()
        super().__init__(tracer=self.root)

    def __enter__(self) -> Hop:
        super().__enter__()
        return self.root

    def clone(self) -> trace:
        return self  # every call of a decorated function grows the same tree
