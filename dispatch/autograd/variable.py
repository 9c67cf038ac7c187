"""Variable: what a tensor with gradients was called before tensors could have them. Kept for old programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch.tensor import Tensor

from .engine import current_task


class ImperativeEngine:
    """The engine under its former name, as far as Python reaches it."""

    def queue_callback(self, callback: Callable[[], Any]) -> None:
        """Has a function called when the backward pass that runs here is over. RuntimeError where none runs."""
        task = current_task()
        if task is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        task.callbacks.append(callback)

    def is_checkpoint_valid(self) -> bool:
        """Returns whether a re-entrant checkpoint may be used: not where only some gradients were asked for."""
        task = current_task()
        return task is None or task.needed is None


class VariableMeta(type):
    """Every tensor is a Variable."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(tensor, requires_grad=True)` is a tensor over the same memory, without history."""

    _execution_engine = ImperativeEngine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Any:
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile and requires_grad:
            raise ValueError("Variable can't be volatile and require_grad at the same time!")
        return data.detach().requires_grad_(requires_grad)
