"""`fx.traceback`: what is noted at nodes about where they come from, and how it goes along when a graph is run again.

with fx.traceback.preserve_node_meta(), fx.traceback.annotate({"stage": 1}):
    graph = make_fx(f)(x)                      # each node has meta["custom"] == {"stage": 1}
"""

from __future__ import annotations

import copy
import traceback
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from functools import wraps
from typing import Any

from redispatch.dispatch.inspection.frames import users_line

__all__ = [
    "NodeSource",
    "NodeSourceAction",
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "get_current_replay_node",
    "get_graph_provenance_json",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "reset_grad_fn_seq_nr",
    "set_current_meta",
    "set_current_replay_node",
    "set_grad_fn_seq_nr",
    "set_stack_trace",
]

FIELDS = (  # what a new node takes over
    "nn_module_stack torch_fn source_fn_stack original_aten recompute ac_graph_id has_backward_hook from_node custom "
    "partitioner_tag"
).split()
META: ContextVar[dict[str, Any]] = ContextVar("meta", default={})  # noqa: B039  # replaced, and never written to
PRESERVED: ContextVar[bool] = ContextVar("preserved", default=False)
REPLAYED: ContextVar[Any] = ContextVar("replayed", default=None)
LINE: ContextVar[str | None] = ContextVar("the line of the program that what runs belongs to", default=None)


class NodeSourceAction(Enum):
    """The way in which a node came from another one."""

    CREATE = "create"
    REPLACE = "replace"


@dataclass
class NodeInfo:
    """A node as it was: `graph_id` is the identity of its graph."""

    name: str
    target: str
    graph_id: int


@dataclass
class NodeSource:
    """The node that another one comes from, by which pass, and what that came from in turn."""

    node_info: NodeInfo | None
    pass_name: str = ""
    action: list[NodeSourceAction] = field(default_factory=list)
    from_node: list[NodeSource] = field(default_factory=list)

    def __init__(self, node: Any, pass_name: str = "", action: Any = None) -> None:
        self.pass_name = pass_name
        self.action = [] if action is None else [*action] if isinstance(action, list) else [action]
        self.node_info = NodeInfo(node.name, str(node.target), id(node.graph)) if node else None
        self.from_node = copy.deepcopy(node.meta.get("from_node", [])) if node else []

    @property
    def name(self) -> str:
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        return self.node_info.graph_id if self.node_info else -1

    def to_dict(self) -> dict[str, Any]:
        """Returns all that is known, in dictionaries and lists."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": "+".join(one.value for one in self.action),
            "from_node": [one.to_dict() for one in self.from_node],
        }

    def print_readable(self, indent: int = 0) -> str:
        """Returns a line for this node, and further in a line for each before it, ten at the most."""
        action = "+".join(one.value for one in self.action)
        line = f"(name={self.name}, pass_name={self.pass_name}, action={action}, graph_id={self.graph_id})\n"
        rest = "".join(one.print_readable(indent + 1) for one in self.from_node)
        return " " * 4 * indent + line + rest if indent < 10 else ""

    def __repr__(self) -> str:
        return self.print_readable()

    def __hash__(self) -> int:
        return hash(self.print_readable())


@contextmanager
def region(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Sets a variable for a block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A block in which new nodes take over what is noted."""
    with region(PRESERVED, enable), region(META, META.get()):
        yield


def has_preserved_node_meta() -> bool:
    """Returns whether new nodes take over what is noted."""
    return PRESERVED.get()


def get_current_meta() -> dict[str, Any]:
    """Returns what is noted."""
    return META.get()


@contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """A block in which what is noted is that of a node, which new ones come from."""
    if PRESERVED.get() and node.meta:
        source = NodeSource(node, pass_name, NodeSourceAction.CREATE)
        with region(META, {**node.meta, "from_node": [source]}):
            yield
    else:
        yield


def annotate(annotation_dict: dict[str, Any]) -> Any:
    """A block in which these are added to what is noted under "custom"."""
    meta = META.get()
    return region(META, {**meta, "custom": {**meta.get("custom", {}), **annotation_dict}})


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator for functions that run in such a block."""

    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return func(*args, **kwargs)

        return wrapper

    return decorator


def note(**changes: Any) -> None:
    """Changes what is noted, where it is taken over; None takes an entry away."""
    if PRESERVED.get():
        META.set({name: value for name, value in {**META.get(), **changes}.items() if value is not None})


def set_stack_trace(stack: list[str]) -> None:
    """Notes where a program is; nowhere, for an empty list."""
    note(stack_trace="".join(stack) or None)


def format_stack() -> list[str]:
    """Returns where a program is: what is noted, if it is taken over, or where Python is."""
    if PRESERVED.get():
        return [META.get().get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


def user_stack() -> str | None:
    """Returns the line of the user's program that runs, as a traceback shows it: the innermost outside of us.

    While backward is traced: the line whose gradient is computed.
    """
    return LINE.get() or users_line() or None


@contextmanager
def lines_of_forward(marks: list[tuple[int, str | None]], outputs: Iterable[Any]) -> Iterator[None]:
    """A block in which backward is traced, where `user_stack` is the line of the forward that a gradient belongs to.

    marks: (a number in the order in which autograd's nodes are made, the line) for each node of the graph. Autograd
    makes its node for an operator ahead of running it, so the first mark behind a node's own number is its line.
    """

    def line_for(sequence: int) -> Callable[[Any], None]:
        at = bisect(marks, sequence, key=lambda mark: mark[0])
        line = marks[at][1] if at < len(marks) else None

        def hook(gradients: Any) -> None:
            LINE.set(line)

        return hook

    token, handles, seen = LINE.set(LINE.get()), [], set()
    todo = [one.grad_fn for one in outputs if one.grad_fn is not None]
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            handles.append(node.register_prehook(line_for(node._sequence_nr())))
            todo += [one for one, _ in node.next_functions if one is not None]
    try:
        yield
    finally:
        LINE.reset(token)
        for handle in handles:
            handle.remove()


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Notes that backward has come to a node of this number."""
    numbers = [*META.get().get("grad_fn_seq_nr", []), seq_nr]
    note(grad_fn_seq_nr=numbers, in_grad_fn=len(numbers))


def reset_grad_fn_seq_nr() -> None:
    """Notes that backward has left it. AssertionError where it has come to none."""
    if PRESERVED.get():
        numbers = META.get().get("grad_fn_seq_nr", [])
        if not numbers:
            raise AssertionError("Expected current_level > 0, got 0")
        note(grad_fn_seq_nr=numbers[:-1] or None, in_grad_fn=len(numbers) - 1 or None)


def set_current_replay_node(node: Any) -> Any:
    """A block in which a node is made again."""
    return region(REPLAYED, node)


def get_current_replay_node() -> Any:
    """Returns the node that is made again, or None."""
    return REPLAYED.get()


def get_graph_provenance_json(graph: Any) -> dict[str, Any]:
    """Returns for each call of a function in a graph which nodes it comes from."""
    calls = (node for node in graph.nodes if node.op == "call_function")
    return {node.name: [source.to_dict() for source in node.meta.get("from_node", [])] for node in calls}


def taken_over(node: Any) -> Any:
    """Returns a new node, with what is noted, where that is taken over."""
    if PRESERVED.get():
        meta = META.get()
        if meta.get("stack_trace"):
            node.stack_trace = meta["stack_trace"]
        node.meta.update({name: copy.copy(meta[name]) for name in FIELDS if name in meta})
    return node
