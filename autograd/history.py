"""How tensors are tied to the graph: the edge that leads to a tensor's node, and the node that results are given.

A functional result simply points to its node. A tensor written in place gets a new node whose first edge leads to its
former one; if it is a view, it is the base that gets it (copy_slices.py).

Read next: derivative.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redispatch.dispatch import OpOverload, TensorBase, wants_gradient
from redispatch.tensor import AutogradRecord

from .accumulate import accumulator
from .copy_slices import CopySlices
from .node import Edge, Node
from .saved import without_history
from .views import ViewHistory, check_write, current_grad_fn, strided_step


def gradient_edge(tensor: Any) -> Edge:
    """Where the gradient of `tensor` goes: (its node, its number among the node's outputs); None if it wants none."""
    record = tensor._autograd
    if record is None:
        return None
    node = current_grad_fn(tensor)
    if node is not None:
        return node, record.output_nr
    # A view that requires grad only because its base does, but was made under no_grad, is cut off from it.
    asked = record.asked if isinstance(record, ViewHistory) else record.requires_grad
    return (accumulator(tensor), 0) if asked else None


def refuse_out(op: OpOverload) -> None:
    """Raises RuntimeError for a call with `out=` of which gradients are wanted."""
    if op.schema.is_out:
        raise RuntimeError(
            f"{op.schema.base_name}(): functions with out=... arguments don't support automatic differentiation, but "
            "one of the arguments requires grad."
        )


def check_writes(op: OpOverload, stack: list[Any]) -> None:
    """Raises RuntimeError where the call would write a tensor that must not be."""
    for tensor in written_tensors(op, stack):
        check_write(tensor)


def written_tensors(op: OpOverload, stack: list[Any]) -> list[Any]:
    """The tensors that a call writes."""
    return list(tensors_of([stack[position] for position in op.schema.mutable_positions]))


def tensors_of(value: Any) -> Iterator[Any]:
    """The tensors in a value, lists and tuples included."""
    if isinstance(value, TensorBase):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_of(item)


def tie_results(
    op: OpOverload, node: Node, stack: list[Any], result: Any, nondifferentiable: frozenset[int] = frozenset()
) -> tuple[Any, list[Any]]:
    """Makes the results of a call, and what it wrote, the outputs of `node`.

    Returns the result and all outputs in their order. `nondifferentiable` names returns of the schema.
    """
    schema = op.schema
    written = written_tensors(op, stack) if schema.is_mutable else []
    known = [*tensors_of(stack)]
    outputs: list[Any] = []
    if len(schema.returns) == 1:
        result = tie(node, result, 0 not in nondifferentiable, known, written, outputs)
    else:
        result = tuple(
            tie(node, value, index not in nondifferentiable, known, written, outputs)
            for index, value in enumerate(result or ())
        )
    for tensor in written:
        if not any(tensor is output for output in outputs):
            tie(node, tensor, True, known, written, outputs)
    return result if schema.returns else None, outputs


def tie(node: Node, value: Any, differentiable: bool, known: list[Any], written: list[Any], outputs: list[Any]) -> Any:
    """One result (a tensor, or a list of them) as the next output of `node`; entered in `outputs`."""
    if isinstance(value, list | tuple):
        return type(value)(tie(node, item, differentiable, known, written, outputs) for item in value)
    if not isinstance(value, TensorBase):
        return value
    in_place = any(value is tensor for tensor in written)
    if not in_place and (has_history(value) or any(value is tensor for tensor in known)):
        value = without_history(value)  # a kernel handed out a tensor that has a place in the graph already
    outputs.append(value)
    if not differentiable or value._dtype.category < 2:
        node.add_output(None)
    elif in_place:
        rebase(value, node)
    else:
        set_edge(value, node, node.add_output(value))
    return value


def has_history(tensor: Any) -> bool:
    """Whether a result requires grad before it was tied: it is an older tensor. (A new view does if its base does.)"""
    record = tensor._autograd
    if isinstance(record, ViewHistory):
        return record.asked or record.grad_fn is not None
    return wants_gradient(tensor)


def set_edge(tensor: Any, node: Node, number: int) -> None:
    """Makes `tensor` the output of `node` with this number."""
    record = tensor._autograd
    if record is None:
        tensor._autograd = AutogradRecord(True, node, number)
        return
    former, former_number = record.grad_fn, record.output_nr
    record.grad_fn, record.output_nr = node, number
    record.requires_grad = True
    if tensor._view is not None:
        tensor._view.version = tensor._counter[0]
    # The tensor's hooks stay with its former value; `retain_grad` is about the tensor, whatever it holds.
    record.hooks = None
    if record.retains_grad is not None and former is not None:
        former.hooks.retaining.pop(former_number, None)
        node._hooks().retaining[number] = record.retains_grad


def rebase(tensor: Any, node: Node) -> None:
    """Makes a tensor that was just written the output of the write's node."""
    if tensor._view is None:
        set_edge(tensor, node, node.add_output(tensor))
        return
    if node.outputs:
        raise RuntimeError("Functions which modify views in-place must return a single Variable")
    node.add_output(tensor)
    base = tensor._view.base
    view_of = tensor._view.replay or strided_step(tensor)
    copy_slices = CopySlices(base, gradient_edge(base), view_of, node)
    set_edge(base, copy_slices, 0)
    current_grad_fn(tensor)  # out of date since the write; made anew, from the base
