"""A trace for others to show: tables for a browser, one HTML page, a tree in a notebook, a file for Perfetto."""

from __future__ import annotations

import inspect
import json
import linecache
import os
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from redispatch.dispatch import DispatchKey, Hop, OpOverload, describe
from redispatch.dispatch.core.key import BACKEND_BITS, backend_at, backends, functionalities, functionality_at
from redispatch.dispatch.core.state import INFERENCE, MODES, NO_GRAD, OWN_POLICIES
from redispatch.dispatch.inspection.explain import rows_of
from redispatch.dispatch.inspection.trace import StateFacts, TensorFacts, Value, name_of
from redispatch.dispatch.rules import is_own, short

# --- Plain tables, for a program in a browser: each fact once, hops by columns, everything else by its number --------
#
# A trace of a hundred thousand hops has a few dozen kernels, keysets and sources. So the tables that describe them are
# short, and a hop is a row of small integers. page.js reads them.

LONG = 400  # characters of an argument's text: a list of numbers can have a million
COLUMNS = (
    "parent", "op", "key", "kernel", "keyset", "call", "inputs", "output", "error", "state", "at", "start", "time",
    "thread",
    "backward",
)  # fmt: skip


class Shelf:
    """Things in the order in which they first came, each once: `number(thing)` says where it stands."""

    def __init__(self, make: Callable[[Any], Any] = lambda thing: thing) -> None:
        self.items: list[Any] = []
        self._make = make
        self._numbers: dict[Any, int] = {}

    def number(self, thing: Any) -> int:
        found = self._numbers.get(thing)
        if found is None:
            made = self._make(thing)  # first: it may put others before itself
            found = self._numbers[thing] = len(self.items)
            self.items.append(made)
        return found


class Tables:
    """The tables of one trace."""

    def __init__(self, root: Hop) -> None:
        self.texts = Shelf()
        self.sources = Shelf(source_of)
        self.tensors = Shelf(self._tensor)
        self.values = Shelf(self._value)
        self.lists = Shelf(list)  # of numbers of values
        self.states = Shelf(self._state)
        self.keysets = Shelf(keys_in)
        self.kernels = Shelf(self._kernel)
        self.calls = Shelf(self._call)
        self.lines = Shelf(spoken_line)
        self.hops: dict[str, list[int]] = {column: [] for column in COLUMNS}
        self._numbers: dict[int, int] = {id(root): -1}
        self._began = min((hop.start for hop in root.children), default=0.0)
        for _, hop in root.walk():
            self._add(hop)
        files = dict.fromkeys(hop.called_at.rpartition(":")[0] for hop in root.children)
        self.program = {short_place(file): "".join(linecache.getlines(file)) for file in files if file}

    def made(self) -> dict[str, Any]:
        """Everything, of lists, dicts, strings and numbers."""
        shelves = ("texts", "lines", "sources", "tensors", "values", "lists", "states", "keysets", "kernels", "calls")
        return {
            **{name: getattr(self, name).items for name in shelves},
            "order": every_key(),
            "functionalities": {key.name: key.functionality for key in DispatchKey if key.functionality},
            "hops": self.hops,
            "program": self.program,
        }

    def _add(self, hop: Hop) -> None:
        self._numbers[id(hop)] = len(self.hops["parent"])
        hops = self.hops
        above = self._numbers[id(hop.parent)]
        hops["parent"].append(above)
        hops["op"].append(self.texts.number(name_of(hop.op)))
        hops["key"].append(self.texts.number(hop.key))
        hops["kernel"].append(self.kernels.number(Answer(hop)))
        hops["keyset"].append(self.keysets.number(hop.keyset))
        begun = isinstance(hop.op, OpOverload) and hop.entry is not None and hop.begins
        hops["call"].append(self.calls.number(Begun(hop)) if begun else -1)
        hops["inputs"].append(self.lists.number(tuple(self.values.number(value) for value in hop.inputs)))
        hops["output"].append(-1 if hop.output is None else self.values.number(hop.output))
        hops["error"].append(-1 if hop.error is None else self.texts.number(shortened(spoken(hop.error))))
        hops["state"].append(-1 if hop.state is None else self.states.number(hop.state))
        hops["at"].append(self.lines.number(hop.called_at))
        hops["start"].append(round((hop.start - self._began) * 1e9))
        hops["time"].append(round(hop.seconds * 1e9))
        hops["thread"].append(hop.thread)
        hops["backward"].append(int(hop.backward))

    # One thing of each table ------------------------------------------------------------------------------------------

    def _tensor(self, facts: TensorFacts) -> dict[str, Any]:
        return {
            "number": facts.number,
            "summary": facts.summary,
            "kind": facts.kind,
            "keys": self.keysets.number(facts.keyset),
            "look": facts.look,
        }

    def _value(self, value: Value) -> dict[str, Any]:
        tensors = [self.tensors.number(tensor) for tensor in value.tensors]
        return {"name": value.name, "text": shortened(value.text), "tensors": tensors}

    def _state(self, state: StateFacts) -> dict[str, Any]:
        return {
            **state._asdict(),
            "included": [name for name, _ in keys_in(state.included)["keys"]],
            "excluded": [name for name, _ in keys_in(state.excluded)["keys"]],
        }

    def _kernel(self, answer: Answer) -> dict[str, Any]:
        hop = answer.hop
        function = hop.entry.kernel.function if hop.entry is not None else None
        about = inspect.getdoc(function) if hasattr(function, "__code__") else None
        return {
            "name": hop.handler or (hop.entry.kernel.label if hop.entry is not None else ""),
            "rule": hop.entry.rule if hop.entry is not None else "",
            "notes": hop.notes,
            "place": short_place(hop.place),
            "about": (about or "").split("\n\n")[0].replace("\n", " ").replace("`", ""),
            "source": self.sources.number(hop.code) if hop.code is not None else -1,
            "handler": bool(hop.handler),
        }

    def _call(self, begun: Begun) -> dict[str, Any]:
        """One operator with one keyset: its schema, who answers at each key, and the code that usually runs."""
        hop, op = begun.hop, begun.hop.op
        rows = [{**row._asdict(), "place": short_place(row.place)} for row in rows_of(op, hop.keyset)]
        return {"op": str(op), "schema": str(op.schema), "rows": rows, "code": self.texts.number(code_of(begun))}


class Answer:
    """The answer at a hop, for comparison: equal for hops of one kernel that say the same of themselves."""

    def __init__(self, hop: Hop) -> None:
        self.hop = hop
        entry = hop.entry
        self._key = (
            (id(entry.kernel), entry.rule, tuple(hop.notes))
            if entry is not None
            else (hop.handler, hop.key, id(hop.code), ())
        )

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and self._key == other._key


class Begun:
    """A call of an operator, to be told apart by what specialised code is made for."""

    def __init__(self, hop: Hop) -> None:
        self.hop = hop
        state = hop.state
        flags = 0
        if state is not None:
            flags |= 0 if state.grad_enabled else NO_GRAD
            flags |= INFERENCE if state.inference else 0
            flags |= MODES if state.modes else 0
            flags |= OWN_POLICIES if state.own_policies else 0
        self.keys = hop.keyset | flags
        self._key = (hop.op, hop.facts, self.keys)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Begun) and self._key == other._key


def code_of(begun: Begun) -> str:
    """The specialised code of a call; a comment with the reason where there is none."""
    op, facts = begun.hop.op, begun.hop.facts
    try:
        return op.table(facts).made(begun.keys).source
    except Exception as problem:  # an operator that is gone, or, under "strict", what cannot be specialised
        return f"# {op} runs boxed: {problem}\n"


# Keys -----------------------------------------------------------------------------------------------------------------


def every_key() -> list[dict[str, Any]]:
    """All functionalities from the highest down, then all backends: what the bits of a keyset mean."""
    names = [("functionality", name) for name in reversed(functionalities())]
    names += [("backend", name) for name in reversed(backends())]
    return [{"name": name, "kind": kind} for kind, name in names]


def keys_in(bits: int) -> dict[str, Any]:
    """The names of the functionalities and backends of a keyset with their bits, from the highest down."""
    found = []
    for bit in range(int(bits).bit_length() - 1, -1, -1):
        if bits >> bit & 1:
            name = backend_at(bit) if bit < BACKEND_BITS else functionality_at(bit)
            if name is not None:
                found.append((name, bit))
    spoken = describe(bits).removeprefix("DispatchKeySet(").removesuffix(")")
    return {"hex": f"{int(bits):#x}", "keys": found, "spoken": spoken}


# Text -----------------------------------------------------------------------------------------------------------------


def source_of(code: Any) -> dict[str, Any]:
    """The source of a function and where it begins; without lines where Python does not know it."""
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError, IndexError):
        lines, first = [], code.co_firstlineno
    return {"file": short_place(code.co_filename), "first": first, "text": "".join(lines)}


def spoken_line(place: str) -> str:
    """A place and, after a tab, the line of source that stands there."""
    file, _, line = place.rpartition(":")
    return f"{short_place(place)}\t{linecache.getline(file, int(line)).strip()}" if file else ""


def short_place(place: str) -> str:
    """Returns a place for people to read: from the rooms, or from the working directory."""
    return f"redispatch/{short(place)}" if is_own(place) else place.removeprefix(os.getcwd() + os.sep)


def spoken(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def shortened(text: str) -> str:
    return text if len(text) <= LONG else f"{text[: LONG - 20]} … {len(text)} characters"


# --- A trace as one HTML page that needs neither network nor server: tables, a style and a script in one file ---------
#
# The tables travel as JSON inside the page; page.html, page.css and page.js beside this file are the page. What the
# page shows of a hop is made when it is looked at, so a long trace opens as fast as a short one.


def page(root: Hop) -> str:
    """The page."""
    title = name_of_program(root)
    return filled(
        "page.html",
        title=escape(title if len(title) < 80 else f"{title[:79]}…"),
        tables=in_script(json.dumps(Tables(root).made(), separators=(",", ":"))),
    )


def name_of_program(root: Hop) -> str:
    """The file from which the first call came; where there is none, the operators."""
    file = os.path.basename(next((hop.called_at.rpartition(":")[0] for hop in root.children), ""))
    if file and not file.startswith("<"):
        return file
    return ", ".join(dict.fromkeys(name_of(hop.op) for hop in root.children[:50])) or "nothing was called"


def stages_page(title: str, stages: Sequence[dict[str, Any]], unchanged: Sequence[str] = (), path: Any = None) -> str:
    """Returns the page of the stages of a program, and writes it to a file where one is named.

    stages: of each its "name", "caption", picture ("svg"), and "lines", pairs of a mark ("+", "-", " ") and a text.
    """
    data = in_script(json.dumps({"stages": stages, "unchanged": unchanged}, separators=(",", ":")))
    page = filled("stages.html", title=escape(title), data=data)
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def filled(name: str, **parts: str) -> str:
    """Returns a page: a file beside this one, in which `{{x}}` stands for a part of that name, or else a file."""
    before, *rest = part(name).split("{{")
    pieces = (piece.partition("}}") for piece in rest)
    return before + "".join((parts[one] if one in parts else part(one)) + after for one, _, after in pieces)


@cache
def part(name: str) -> str:
    """A file of the page."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def in_script(text: str) -> str:
    """JSON that may stand in a script element: no text in it can end the element, or begin a comment."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


# --- What notebooks show of a trace: a tree to unfold. Without script: it is kept in the notebook's file --------------

MOST = 500  # hops; a notebook keeps every output
STYLE = """<style>
.redispatch-trace{font:13px/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-x:auto}
.redispatch-trace details,.redispatch-trace .hop{margin-left:1.1em;white-space:nowrap}
.redispatch-trace summary{margin-left:-1.1em;cursor:pointer}
.redispatch-trace b{font-weight:600}
.redispatch-trace i{font-style:normal;padding:0 .45em;border-radius:.6em;background:rgba(64,120,242,.16)}
.redispatch-trace s{text-decoration:none;opacity:.62}
</style>"""


def tree(root: Hop) -> str:
    """The hops below `root`, each unfoldable; the first `MOST` of a long trace."""
    parts = [STYLE, '<div class="redispatch-trace">']
    open_at: list[int] = []  # depths of the elements that are still open
    shown = 0
    total = sum(1 for _ in root.walk())
    for depth, hop in root.walk():
        while open_at and open_at[-1] >= depth:
            parts.append("</details>")
            open_at.pop()
        if shown == MOST:
            break
        shown += 1
        if hop.children:
            parts.append(f"<details{' open' if depth < 2 else ''}><summary>{line(hop)}</summary>")
            open_at.append(depth)
        else:
            parts.append(f'<div class="hop">{line(hop)}</div>')
    parts += ["</details>"] * len(open_at)
    if shown < total:
        parts.append(
            f'<div class="hop"><s>… {total - shown} hops more: hops.html("trace.html") writes them all</s></div>'
        )
    return "".join([*parts, "</div>"])


def line(hop: Hop) -> str:
    """One hop."""
    outcome = type(hop.error).__name__ if hop.error is not None else hop.result
    return (
        f"<b>{escape(name_of(hop.op))}</b> <i>{escape(hop.key)}</i> "
        f'<span title="{escape(short_place(hop.place))}">{escape(hop.answered)}</span> '
        f"({escape(shortened(hop.arguments))}) → {escape(shortened(outcome))} <s>{hop.seconds * 1e6:.0f} µs</s>"
    )


# --- A trace in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing open --------------------
#
# Each hop is one complete event: where it began, how long it took, what it was given. Hops inside it lie below it.
# Source: "Trace Event Format", the Chromium project; times are in microseconds.


def chrome(root: Hop) -> str:
    """The events as JSON."""
    began = min((hop.start for hop in root.children), default=0.0)
    events = [event(hop, began) for _, hop in root.walk()]
    names = [
        {"ph": "M", "name": "process_name", "pid": os.getpid(), "args": {"name": "redispatch"}},
        *(
            {"ph": "M", "name": "thread_name", "pid": os.getpid(), "tid": thread, "args": {"name": f"thread {index}"}}
            for index, thread in enumerate(dict.fromkeys(hop.thread for _, hop in root.walk()))
        ),
    ]
    return json.dumps({"traceEvents": names + events, "displayTimeUnit": "ns"})


def event(hop: Hop, began: float) -> dict[str, Any]:
    """One hop."""
    arguments = {
        "key": hop.key,
        "answered by": hop.answered,
        "registered at": short_place(hop.place),
        "called at": short_place(hop.called_at),
        "arguments": shortened(hop.arguments),
        "tensors": ", ".join(f"#{tensor.number} {tensor.summary}" for value in hop.inputs for tensor in value.tensors),
        "result": shortened(hop.result),
    }
    if hop.entry is not None:
        arguments["keyset"] = describe(hop.keyset)
    if hop.error is not None:
        arguments["error"] = shortened(spoken(hop.error))
    return {
        "ph": "X",
        "name": f"{name_of(hop.op)} [{hop.key}]",
        "cat": "handler" if hop.handler else "dispatch",
        "ts": (hop.start - began) * 1e6,
        "dur": hop.seconds * 1e6,
        "pid": os.getpid(),
        "tid": hop.thread,
        "args": arguments,
    }
