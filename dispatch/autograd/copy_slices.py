"""CopySlices: the node of a base that was written through one of its views.

    b[0].mul_(w)        # b's history now: CopySlices, with the node of mul_ inside

Of the gradient that reaches the base, the part which the view shows goes through the node of the write; everything
else passes unchanged, because that memory was not written.

Read next: history.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .node import Edge, Node
from .saved import FREED


class CopySlices(Node):
    """Sends the gradient of a base around, and that of the written view through, the node of the write."""

    __slots__ = ("function", "view_of", "stride")

    def __init__(self, base: Any, base_edge: Edge, view_of: Callable[[Any], Any], function: Node) -> None:
        """`function` is the node of the write, its first edge that of the view's former value."""
        super().__init__((base_edge, *function.next_edges[1:]))
        self.function: Node | None = function
        self.view_of = view_of
        self.stride = base._stride
        self.add_output(base)

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def apply(self, gradients: list[Any], wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        gradient = gradients[0]
        if gradient is None:
            return [None] * len(self.next_edges)
        if self.function is None:
            raise RuntimeError(FREED)
        around = gradient.new_empty_strided(gradient._shape, self.stride)
        around.copy_(gradient)
        part = self.view_of(around)
        # A copy, for the node may keep what it gets (to be differentiated again), and `part` is overwritten below.
        results = list(self.function.apply([part.clone()], wanted))
        if wanted is None or wanted[0]:
            if results[0] is None:
                part.zero_()
            else:
                part.copy_(results[0])
            results[0] = around
        return results

    def release(self) -> None:
        if self.function is not None:
            self.function.release()
            self.function = None
