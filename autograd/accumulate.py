"""AccumulateGrad: the node at which a leaf's gradient arrives and is added to `.grad`.

A leaf has no call that made it, so its node is made when something first uses the leaf, and lives as long as some
graph holds it. The node holds the leaf, the leaf only a weak reference to the node.

Note [Gradients that nobody else holds]
A gradient may become `.grad` itself, or be added to in place, only where no one could notice: no other name for the
tensor, and no other tensor over its memory. Python's reference counts tell. Where they are higher than expected, for
whatever reason, a copy is made; so an error here can cost time, never a wrong value.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from sys import getrefcount
from typing import Any

from redispatch.dispatch import STATE
from redispatch.kernels import is_dense
from redispatch.tensor import Tensor, contiguous_format

from .hooks import NodeHooks
from .node import Node

_CREATING = threading.Lock()


class AccumulateGrad(Node):
    """Adds the gradient that arrives to `variable.grad`."""

    __slots__ = ("variable", "lock")

    def __init__(self, variable: Any) -> None:
        super().__init__()
        self.sequence = 2**64 - 1  # runs as soon as it is ready: the gradient is complete, and its buffer free sooner
        self.variable = variable
        self.lock = threading.Lock()
        self.add_output(variable)
        if variable._autograd.hooks is not None:
            self._hooks().of_tensors[0] = variable._autograd.hooks

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def apply(self, gradients: list[Any], wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        if gradients[0] is None:
            return ()
        record = self.variable._autograd
        with self.lock:  # backward may run in several threads
            if record.grad is None:
                record.grad = own_gradient(gradients, self.variable)
            elif STATE.get().grad_enabled:
                record.grad = record.grad + gradients[0]
            else:
                record.grad += gradients[0]
        for hook in list((record.post_accumulate_hooks or {}).values()):
            if hook(self.variable) is not None:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        return ()


def own_gradient(gradients: list[Any], variable: Any) -> Any:
    """The only item of `gradients` as a first `.grad`: itself if nobody else holds it, or else a copy."""
    if STATE.get().grad_enabled or not lies_like(gradients[0], variable):
        return copy_lying_like(gradients[0], variable)
    if held_by_list_alone(gradients, 0):
        return gradients[0]
    # A mode or a subclass is to see what becomes of the gradient: PyTorch's `detach`, where nobody else has the tensor.
    seen = STATE.get().modes or type(gradients[0]) is not Tensor
    return gradients[0].detach() if seen and getrefcount(gradients[0]) == _ALONE[0] else gradients[0].clone()


def lies_like(gradient: Any, variable: Any) -> bool:
    """Whether the elements of both lie in memory in the same order."""
    theirs = zip(gradient._shape, gradient._stride, variable._stride, strict=True)
    return all(size <= 1 or step == wanted for size, step, wanted in theirs)


def copy_lying_like(gradient: Any, variable: Any) -> Any:
    """A copy with the strides of `variable`, so that optimizers walk both in one order; row by row if it has gaps."""
    if lies_like(gradient, variable):
        return gradient.clone()
    if is_dense(variable._shape, variable._stride):
        return gradient.new_empty_strided(variable._shape, variable._stride).copy_(gradient)
    return gradient.clone(memory_format=contiguous_format)


def _references(tensors: list[Any], index: int) -> tuple[int, int]:
    return getrefcount(tensors[index]), getrefcount(tensors[index]._storage)


class _Probe:
    _storage: Any

    def __init__(self) -> None:
        self._storage = object()


# The counts for an object that only a list holds. Measured, since what a call itself adds depends on the interpreter.
_ALONE = _references([_Probe()], 0)


def held_by_list_alone(tensors: list[Any], index: int) -> bool:
    """Whether an item of a list may be overwritten: see Note [Gradients that nobody else holds]."""
    return (
        type(tensors[index]) is Tensor
        and tensors[index]._autograd is None
        and tensors[index]._counter is not None
        and not STATE.get().modes
        and _references(tensors, index) == _ALONE
    )


def accumulator(tensor: Any) -> AccumulateGrad:
    """The node that accumulates into a leaf."""
    record = tensor._autograd
    node = record.accumulator and record.accumulator()
    if node is None:
        with _CREATING:  # two threads that use a leaf at once must find one node
            node = record.accumulator and record.accumulator()
            if node is None:
                node = AccumulateGrad(tensor)
                record.accumulator = weakref.ref(node)
    return node


def hooks_of_leaf(tensor: Any) -> NodeHooks | None:
    """The hooks of a leaf's node, where it has one."""
    node = tensor._autograd.accumulator and tensor._autograd.accumulator()
    return node._hooks() if node else None
