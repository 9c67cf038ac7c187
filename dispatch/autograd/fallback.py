"""What autograd does with an operator of a user that has no derivative: it runs as if nothing were there, and warns.

Its kernel may be written in other operators, which are recorded as ever; what it returns without a history of its own
gets a node that warns in the backward pass and gives no gradients. `FALLBACK.mode` says whether: "warn", "nothing", or
"error", by which such an operator is treated as one of the library's own (derivative.py).

Source: PyTorch's fallback kernel of the Autograd keys, whose modes `torch._C._set_autograd_fallback_mode` sets.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from redispatch.dispatch import OpOverload, TensorBase, run, wants_gradient
from redispatch.dispatch.layers.autograd import AUTOGRAD_FALLBACK, BELOW_AUTOGRAD

from .api import register_hook
from .history import gradient_edge, refuse_out, set_edge, tensors_of
from .node import Node

MODES = ("nothing", "warn", "error")


class Fallback:
    """The mode, which holds for all threads."""

    mode = "warn"

    def applies(self) -> bool:
        return self.mode != "error"

    def run(self, op: OpOverload, keyset: int, stack: list[Any]) -> Any:
        """Runs an operator whose arguments require grad. Returns its result."""
        if op.schema.is_out:
            refuse_out(op)
        if self.mode == "nothing":
            return run(op, keyset & BELOW_AUTOGRAD, stack)
        node = WarnNotImplementedNode(op, tuple(gradient_edge(tensor) for tensor in tensors_of(stack)))
        result = run(op, keyset & BELOW_AUTOGRAD, stack)
        returned = result if len(op.schema.returns) > 1 else (result,)
        for positions, value in zip(op.schema.return_aliases, returned or (), strict=False):
            written = any(op.schema.arguments[position].is_write for position in positions)
            for tensor in value if isinstance(value, list | tuple) else (value,):
                if isinstance(tensor, TensorBase) and tensor._dtype.category >= 2:
                    node.watch(tensor, written)
        return result


FALLBACK = Fallback()
AUTOGRAD_FALLBACK.fill(FALLBACK)


class WarnNotImplementedNode(Node):
    """The node of such an operator."""

    __slots__ = ("op",)

    def __init__(self, op: OpOverload, edges: tuple[Any, ...]) -> None:
        super().__init__(edges)
        self.op = op

    def watch(self, tensor: Any, written: bool) -> None:
        """Has the backward pass warn when it comes to a result; one that was written keeps the history that it has."""
        if wants_gradient(tensor):
            register_hook(tensor, self.warn)
            base = tensor._view and tensor._view.base
            if written and base is not None and wants_gradient(base):
                register_hook(base, self.warn)
        elif not written:
            set_edge(tensor, self, self.add_output(tensor))

    def name(self) -> str:
        return "WarnNotImplemented"

    def warn(self, gradient: Any = None) -> None:
        warnings.warn(
            f"{self.op.name()}: an autograd kernel was not registered to the Autograd key(s) but we are trying to "
            "backprop through it. This may lead to silently incorrect behavior. If your operator is differentiable, "
            "please ensure you have registered an autograd kernel to the correct Autograd key (e.g. "
            "DispatchKey::Autograd), or a derivative by torch.library.register_autograd. If your operator is not "
            "differentiable, or to squash this warning, please register a fallthrough to DispatchKey::Autograd.",
            UserWarning,
            stacklevel=2,
        )

    def apply(self, gradients: list[Any], wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        self.warn()
        return [None] * len(self.next_edges)


WarnNotImplementedNode.__name__ = "WarnNotImplemented"  # as tensors print it
