"""Feeding: how a run comes to the middle of a function whose first segments have run already.

A call whose last step gave something new has no segment to go on with. Python starts the function from its beginning,
in the same world (the guards held, and effects are taken back), and each call of the library's is answered by what it
gave, or by a stand-in where nobody can ask for that any more. Nothing runs twice. Behind the last answer the recorder
records again, or is asleep. Read next: capture.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from redispatch.dispatch.pytree import tree_map
from redispatch.dispatch.tensor import Tensor
from redispatch.fx.node import Node

from .effects import Undo
from .segments import Segment, Step

if TYPE_CHECKING:
    from .recorder import Recorder


class Feeder:
    """Answers to the calls of a function. chain: the segments that ran, each with what its step gave.

    carried: all tensors up to there.
    """

    def __init__(self, chain: Sequence[tuple[Segment, Any]], carried: list[Tensor]) -> None:
        self.chain, self.carried = chain, carried
        self.at = self.next = 0
        self.values: dict[Node, Tensor] = {}

    def answer(self, recorder: Recorder, function: Any, args: Any, kwargs: Any) -> Any:
        """Returns the result that a call had."""
        segment, result = self.chain[self.at]
        if self.next < len(segment.calls):
            call = segment.calls[self.next]
            self.next += 1
            assert call.function == function, f"{function} is called where {call.function} was"
            if call.again:
                return function(*args, **kwargs)
            return tree_map(self.value, call.given)
        step = segment.end
        if not isinstance(step, Step):  # Python goes on by itself
            self.end(recorder)
            return function(*args, **kwargs)
        assert step.function == function, f"{function} is called where {step.function} was"
        self.at, self.next = self.at + 1, 0
        if isinstance(result, Undo):
            function(*args, **kwargs)
        if self.at == len(self.chain):
            self.end(recorder)
        if step.effect:
            recorder.log.forget()
        return result

    def value(self, leaf: Any) -> Any:
        """The tensor of a node; other values stay."""
        if not isinstance(leaf, Node):
            return leaf
        if leaf not in self.values:
            number = self.chain[self.at][0].number.get(leaf)
            self.values[leaf] = Tensor() if number is None else self.carried[number]
        return self.values[leaf]

    def end(self, recorder: Recorder) -> None:
        """Has the recorder go on."""
        recorder.feeder = None
        recorder.log.guards.clear()
        recorder.asleep = bool(recorder.log.reason)
        recorder.carry(self.carried)
        recorder.begin()
