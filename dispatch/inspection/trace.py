"""Traces: every hop that calls really took, as a tree.

    with trace() as hops:
        a + b
    print(hops)
    hops.html("add.html")       # one page in which the way can be stepped through
    hops.frames("slides")       # a picture of each step

A hop is one step of the interpreter: an operator, the key at which it stopped, who answered by which rule and where
that was registered. Where a mode or a class is asked in the place of a kernel, its handler is a hop, too. What a kernel
or handler calls in turn hangs below it. The present hop is part of the dispatch state, so that threads and tasks each
grow their own branch.

Read next: frontend/viz/, for pages and pictures.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from threading import get_ident
from typing import Any, NamedTuple

from ..core.base import VALUE_CLASSES, TensorBase
from ..core.operator import OpOverload
from ..core.state import AT_WORK, STATE, State, within
from ..core.table import Entry
from ..regions import Setting
from ..rules import Slot
from ..specialiser.specialise import Facts, facts_of
from ..swap import entry_at_work, notes_of_hop
from .missing import describe_value

# The records of a trace: facts of values and of the dispatch state, never the values themselves -----------------------
#
# A trace that held tensors would keep their memory, and would show what has become of them since. So each tensor has a
# number in the trace, by which it is known again, and its facts as they were at that moment. Equal facts are one
# object: a long trace sees few different ones.

OWN = __name__.partition(".")[0]  # the name of this package


class TensorFacts(NamedTuple):
    """One tensor at one moment. Its `number` stays with it: two arguments of one number are one tensor."""

    number: int
    summary: str  # as messages show it: `f32[2, 3]`
    kind: str  # its class
    keyset: int
    look: tuple[tuple[str, str], ...]  # (("dtype", "float32"), ...): what else its class tells


class Value(NamedTuple):
    """An argument or a result: its name in the schema (or empty), as text, and the tensors in it."""

    name: str
    text: str
    tensors: tuple[TensorFacts, ...]


class StateFacts(NamedTuple):
    """The dispatch state at one moment. Modes are named by their classes, the innermost last."""

    modes: tuple[str, ...]
    function_modes: tuple[str, ...]
    transforms: tuple[str, ...]
    included: int
    excluded: int
    grad_enabled: bool
    inference: bool
    own_policies: bool  # whether an autocast region says something of single operators
    autocast: tuple[str, ...]


class Seen:
    """The facts that one trace has met."""

    def __init__(self) -> None:
        self._facts: dict[Any, Any] = {}
        self._numbers: dict[
            int, tuple[weakref.ref[Any], int]
        ] = {}  # by the id of a tensor, which another may have later

    def value(self, value: Any, name: str = "") -> Value:
        """The facts of an argument or a result of an operator."""
        return self._shared(Value(name, describe_value(value), tuple(map(self._tensor, tensors_in(value)))))

    def anything(self, value: Any, name: str = "") -> Value:
        """The facts of what a function is given or returns, which may be anything."""
        return self._shared(Value(name, spoken(value), tuple(map(self._tensor, tensors_in(value)))))

    def state(self, state: State | None = None) -> StateFacts:
        """The facts of the present dispatch state, or of `state`."""
        state = state or STATE.get()
        return self._shared(
            StateFacts(
                modes=tuple(type(mode).__name__ for mode in state.modes),
                function_modes=tuple(type(mode).__name__ for mode in state.function_modes),
                transforms=tuple(type(level).__name__ for level in AT_WORK.get()[: len(state.levels)]),
                included=state.included,
                excluded=state.excluded,
                grad_enabled=state.grad_enabled,
                inference=state.inference,
                own_policies=state.own_policies,
                autocast=tuple(f"{device}: {dtype}" for device, dtype in state.autocast_dtypes.items()),
            )
        )

    def _tensor(self, tensor: TensorBase) -> TensorFacts:
        look = getattr(tensor, "_look", None)
        facts = TensorFacts(
            self._number(tensor),
            describe_value(tensor),
            type(tensor).__name__,
            tensor._keyset,
            look() if look is not None else (),
        )
        return self._shared(facts)

    def _number(self, tensor: TensorBase) -> int:
        known = self._numbers.get(id(tensor))
        if known is None or known[0]() is not tensor:
            count = self._facts.get("tensors", 0) + 1
            self._facts["tensors"] = count
            known = self._numbers[id(tensor)] = (weakref.ref(tensor), count)
        return known[1]

    def _shared(self, facts: Any) -> Any:
        return self._facts.setdefault(facts, facts)


def spoken(value: Any) -> str:
    """A value in short. Of what is no value of an operator the class alone: its `repr` might call operators."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(spoken, value))}]"
    if value is None or isinstance(value, TensorBase | int | float | complex | str | slice):
        return describe_value(value)
    if isinstance(value, tuple(VALUE_CLASSES.values())):
        return repr(value)
    return getattr(value, "__name__", None) or f"<{type(value).__name__}>"


def tensors_in(value: Any) -> list[TensorBase]:
    """The tensors that an argument is, or that it holds in lists and tuples."""
    if isinstance(value, TensorBase):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def line_within(code: Any) -> int:
    """The line at which the innermost running call of `code` is; 0 where it is not running."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back  # type: ignore[assignment]  # None at the end
    return frame.f_lineno if frame is not None else 0


def users_line() -> str:
    """Finds the user's own code, as "file:line": the innermost frame outside of this package."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name != OWN and not name.startswith(OWN + "."):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]  # None at the end
    return ""


# How traces become pages: an object with `page(hop)`, `chrome(hop)` and `notebook(hop)`; filled by the room that draws.
VIEWS: Slot[Any] = Slot("how traces are shown")
TASK: Slot[Callable[[], Any]] = Slot("which backward pass runs")  # filled by autograd's engine


class Hop:
    """One hop, and those that it led to (`children`). `seconds` includes them; `error` is what it raised, if it did.

    A hop of an operator has an `entry`: who answered at `key`, by which rule. A handler's hop has none; its key is
    "__torch_dispatch__" or "__torch_function__", `op` is what the handler was given, and `answered` whose it is.
    `inputs`, `output` and `state` are facts of that moment; `called_at` is the line that led here.
    """

    __slots__ = (
        "op", "entry", "keyset", "handler", "key", "inputs", "output", "error", "start", "seconds", "children", "notes",
        "parent", "seen", "state", "facts", "code", "called_at", "thread", "backward", "__weakref__",
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
        self.backward = False  # whether autograd's engine was at work

    # Recording --------------------------------------------------------------------------------------------------------

    def hop(self, op: OpOverload, entry: Entry, keyset: int, stack: list[Any]) -> Any:
        """Runs in the place of the kernel while this hop is the present one."""
        child = Hop(op, entry_at_work(entry), keyset, self)
        child.notes += notes_of_hop(child.begins)
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
        child.backward = TASK()() is not None
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
        """The line that registered the kernel, or the handler's, as "file:line"."""
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

    def svg(self, step: int | None = None, theme: str = "light") -> str:
        """A picture of one step, counted from 1 as on the page; by default of the one that reaches deepest.

        Errors: IndexError for a step that there is not, ValueError for a theme other than "light" and "dark".
        """
        return VIEWS().step(self, step).svg(theme)

    def frames(self, folder: str | os.PathLike[str], theme: str = "light") -> list[str]:
        """Writes a picture of each step into a folder, for slides, and returns their paths."""
        os.makedirs(folder, exist_ok=True)
        count = 2 * sum(1 for _ in self.walk())
        paths = [os.path.join(folder, f"step_{at:0{len(str(count))}}.svg") for at in range(1, count + 1)]
        for at, path in enumerate(paths, 1):
            written(self.svg(at, theme), path)
        return paths

    def chrome(self, path: str | os.PathLike[str] | None = None) -> str:
        """The trace in the JSON format that Perfetto and chrome://tracing open; written to `path`, if any."""
        return written(VIEWS().chrome(self), path)

    def _repr_html_(self) -> str:
        """Returns the tree for notebooks, to be unfolded."""
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
