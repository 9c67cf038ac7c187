"""Segments: a function as pieces that are compiled, and what stands between them.

    segment            guards, a graph, and an end:
      Step             a call that is done as it stands; what it gives chooses the next segment
      Returned         the function's result
      Standing         Python goes on by itself

The tensors that a call has taken from outside, and those that its segments and steps gave, are *carried* in one list:
a segment takes them by their numbers in it, so does an end (`At`). Read next: capture.py, which walks the segments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from redispatch.autograd import is_grad_enabled
from redispatch.dispatch.pytree import tree_flatten, tree_map, tree_unflatten
from redispatch.dispatch.tensor import Tensor
from redispatch.fx.graph_module import GraphModule
from redispatch.fx.node import Node

from .known import PRIMITIVES

if TYPE_CHECKING:
    from .guards import Guards
    from .paths import Path

MAKING = RLock()  # while a segment is recorded or compiled


class At:
    """The place of a tensor: its number among those that are carried."""

    def __init__(self, number: int) -> None:
        self.number = number


class Call(NamedTuple):
    """A recorded call, and what it gave: nodes for tensors. again: whether a run that is fed does it again."""

    function: Any
    given: Any
    again: bool


class Returned(NamedTuple):
    """The function's result, with places in it."""

    leaves: list[Any]
    structure: Any

    def made(self, carried: Sequence[Tensor], numbers: Any = None) -> Any:
        """The result of a call. numbers: of the symbols, where sizes are such."""
        return tree_unflatten([carried[one.number] if type(one) is At else one for one in self.leaves], self.structure)


class Standing(NamedTuple):
    """Python goes on by itself, for a reason."""

    reason: str


class Reach:
    """The way to an object from outside."""

    def __init__(self, path: Path, constants: dict[str, Any]) -> None:
        self.find: Callable[[Any, Any], Any] = eval(f"lambda args, kwargs: {path}", dict(constants))


class Step:
    """A call that is done as it stands. children: by what it gave, the segments that may follow.

    effect: whether others see it: it is taken back, or not done again, where the function runs from its beginning.
    """

    def __init__(self, function: Any, inside: Any, reason: str, effect: bool) -> None:
        self.function, self.inside, self.reason, self.effect = function, inside, reason, effect
        self.children: dict[Any, list[Segment]] = {}
        self.full = False

    def done(self, carried: Sequence[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Does the call. args, kwargs: the function's."""

        def found(leaf: Any) -> Any:
            if type(leaf) is At:
                return carried[leaf.number]
            return leaf.find(args, kwargs) if type(leaf) is Reach else leaf

        given, named = tree_map(found, self.inside)
        return self.function(*given, **named)

    @staticmethod
    def tensors(result: Any) -> list[Tensor]:
        """The tensors that a step gave, which are carried."""
        return [one for one in tree_flatten(result)[0] if isinstance(one, Tensor)]


def is_told(value: Any) -> bool:
    """Whether a value is made of numbers and strings alone."""
    return all(type(one) in PRIMITIVES for one in tree_flatten(value)[0])


def key_of(result: Any) -> Any:
    """Returns what two results of a step must share for the same segment to follow: all but the tensors in them."""
    if type(result) is bool or result is None:
        return result
    leaves, structure = tree_flatten(result)
    return str(structure), tuple(type(one) if isinstance(one, Tensor) else (type(one), repr(one)) for one in leaves)


def containers(value: Any, seen: list[int]) -> None:
    """Notes the containers of a result that can be told apart; twice one that cannot be made anew."""
    if isinstance(value, list | dict):
        seen.append(id(value))
    if isinstance(value, dict) and not all(type(key) in PRIMITIVES for key in value):
        seen += [id(value)] * 2  # a key may be a tensor
    if isinstance(value, list | tuple | dict):
        for one in value.values() if isinstance(value, dict) else value:
            containers(one, seen)


class Segment:
    """A recorded graph, its guards, and its end.

    grad: whether autograd is to record when the graph runs; grad_behind: when its end is done. takes: numbers of the
    tensors that the graph is given. calls: what was recorded, for runs that are fed. number: of the nodes that are
    carried.
    """

    def __init__(self, recorder: Any, guards: Guards, takes: list[int], number: dict[Node, int], end: Any) -> None:
        self.guards, self.takes, self.number, self.end = guards, takes, number, end
        self.calls, self.grad, self.grad_behind = recorder.calls, recorder.grad, is_grad_enabled()
        self.backend, self.compiled = recorder.backend, None
        recorder.graph.lint()
        self.graph, self.sizes = GraphModule({}, recorder.graph), recorder.sizes
        self.graph.meta["dynamic"] = recorder.dynamic
        self.empty = all(node.op in ("placeholder", "output") for node in recorder.graph.nodes)
        if recorder.unrecorded:
            self.compiled = self.graph.forward  # views say so where nothing is recorded; no joint graph knows of it

    compiled: Callable[..., Any] | None

    def prepare(self, carried: Sequence[Tensor]) -> None:
        """Has the backend make its function, if there is anything to run."""
        if not self.empty:
            self.made(carried)

    def run(self, carried: Sequence[Tensor]) -> Sequence[Tensor]:
        """Returns the results of the graph."""
        if self.empty:
            return ()
        found: Sequence[Tensor] = (self.compiled or self.made(carried))(*[carried[one] for one in self.takes])
        return found

    def made(self, carried: Sequence[Tensor]) -> Callable[..., Any]:
        """Returns what the backend makes of the graph, once."""
        with MAKING:
            if self.compiled is None:
                self.compiled = self.backend(self.graph, [carried[one] for one in self.takes])
            return self.compiled
