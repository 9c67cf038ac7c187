"""How tensors are tied to the graph: the edge that leads to a tensor's node, and the node that results are given.

A functional result simply points to its node. A tensor written in place gets a new node whose first edge leads to its
former one; if it is a view, it is the base that gets it (CopySlices).

Read next: derivative.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from redispatch.dispatch import OpOverload, TensorBase
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.tensor import AutogradRecord, dtypes, metadata_of

from .accumulate import accumulator
from .node import Edge, Node
from .saved import FREED, without_history
from .views import ViewHistory, check_write, current_grad_fn, strided_step

# CopySlices: the node of a base that was written through one of its views ---------------------------------------------
#
#     b[0].mul_(w)        # b's history now: CopySlices, with the node of mul_ inside
#
# Of the gradient that reaches the base, the part which the view shows goes through the node of the write; everything
# else passes unchanged, because that memory was not written.


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


@inline
def gradient_edge(tensor: Any) -> Edge:
    """The edge of a tensor's gradient: (its node, its number among the node's outputs); None if it wants none.

    Errors: RuntimeError for a view whose history cannot be made anew.
    """
    record, view = tensor._autograd, tensor._view
    return (
        None
        if record is None
        else (record.grad_fn, record.output_nr)
        if record.grad_fn is not None and (view is None or view.version == tensor._counter[0])
        else (record.accumulator, 0, tensor)  # accumulate.py, Note [Leaves keep their nodes]
        if view is None and record.accumulator is not None and record.requires_grad
        else other_gradient_edge(tensor)
    )


@inline
def gradient_edges(value: Any, is_list: bool) -> list[Edge]:
    """The edges of one argument: of each item, if it is a list."""
    if is_list:
        return [gradient_edge(item) if isinstance(item, TensorBase) else None for item in value or ()]
    return [gradient_edge(value) if isinstance(value, TensorBase) else None]


def other_gradient_edge(tensor: Any) -> Edge:
    """Returns the gradient edge in the slow cases: views that are out of date, and possible leaves."""
    record = tensor._autograd
    node = current_grad_fn(tensor)
    if node is not None:
        return node, record.output_nr
    # A view that requires grad only because its base does, but was made under no_grad, is cut off from it.
    asked = record.asked if isinstance(record, ViewHistory) else record.requires_grad
    return (accumulator(tensor), 0, tensor) if asked else None


def refuse_out(op: OpOverload) -> None:
    """Raises RuntimeError for a call with `out=` of which gradients are wanted."""
    if op.schema.is_out:
        raise RuntimeError(
            f"{op.schema.base_name}(): functions with out=... arguments don't support automatic differentiation, but "
            "one of the arguments requires grad."
        )


@inline
def check_writes(written: Any) -> None:
    """Raises RuntimeError where an argument that the call writes must not be: a tensor, None or a list."""
    if isinstance(written, TensorBase):
        record = written._autograd
        if record is not None and (record.grad_fn is None or written._view is not None):
            check_write(written)
    elif written is not None:
        check_each_write(written)


def check_each_write(written: Any) -> None:
    for tensor in tensors_of(written):
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


class ResultRecord(AutogradRecord):
    """The record of a result. It starts empty, and `result_record` fills it: an `__init__` takes twice as long."""

    __slots__ = ()

    __init__ = object.__init__


@inline
def tie_fresh(tensor: Any, node: Node) -> None:
    """Makes a tensor of which nothing was recorded so far the only output of `node`."""
    node.outputs = (tensor._interned or metadata_of(tensor)).alone
    tensor._autograd = result_record(node, 0)


@inline
def result_record(node: Node, number: int) -> AutogradRecord:
    """The record of the output of `node` with this number."""
    record = ResultRecord()
    record.requires_grad = True
    record.grad_fn = node
    record.output_nr = number
    record.grad = None
    record.accumulator = None
    record.hooks = None
    record.post_accumulate_hooks = None
    record.retains_grad = None
    return record


@inline
def tie_fresh_ones(tensors: Sequence[Any], node: Node, nondifferentiable: frozenset[int]) -> None:
    """Ties several outputs to the node, of which some have no gradient."""
    node.outputs = tuple(
        None if number in nondifferentiable or tensor._dtype.category < dtypes.FLOATING else metadata_of(tensor)
        for number, tensor in enumerate(tensors)
    )
    for number, tensor in enumerate(tensors):
        if number not in nondifferentiable and tensor._dtype.category >= dtypes.FLOATING:
            tensor._autograd = result_record(node, number)


@inline
def is_new_view(tensor: Any) -> bool:
    """Whether a tensor is a view that was just made, and whose history is still its base's."""
    record = tensor._autograd
    return record is not None and record is tensor._view and record.grad_fn is None and not record.asked


@inline
def tie_fresh_view(view: Any, node: Node) -> None:
    """Makes a view for which `is_new_view` holds the only output of `node`."""
    node.outputs = (view._interned or metadata_of(view)).alone
    record = view._autograd
    record.grad_fn = node
    record.asked = True


@inline
def can_be_retied(tensor: Any) -> bool:
    """Whether a tensor that was written, and can have a gradient, is simply to get another history."""
    record = tensor._autograd
    plain = record is None or (record.hooks is None and record.retains_grad is None)
    return plain and tensor._view is None and tensor._dtype.category >= dtypes.FLOATING


@inline
def retie(tensor: Any, node: Node) -> None:
    """Makes a tensor for which `can_be_retied` holds the only output of `node`."""
    record = tensor._autograd
    if record is None:
        tie_fresh(tensor, node)
    else:
        node.outputs = (tensor._interned or metadata_of(tensor)).alone
        record.grad_fn = node
        record.output_nr = 0
        record.requires_grad = True


def tie_new(op: OpOverload, node: Node, stack: list[Any], result: Any, nondifferentiable: frozenset[int]) -> bool:
    """Makes several new tensors the outputs of `node`; False, and nothing is done, where one is anything else."""
    values = result if isinstance(result, tuple | list) else (result,)
    for value in values:
        if not isinstance(value, TensorBase) or is_given(value, stack):
            return False
        if value._autograd is not None and not is_new_view(value):
            return False
    is_one_list = len(op.schema.returns) == 1
    outputs: list[Any] = []
    for number, value in enumerate(values):
        if (0 if is_one_list else number) in nondifferentiable or value._dtype.category < dtypes.FLOATING:
            outputs.append(None)
            continue
        outputs.append(metadata_of(value))
        if value._autograd is None:
            value._autograd = AutogradRecord(True, node, number)
        else:
            value._autograd.grad_fn, value._autograd.output_nr, value._autograd.asked = node, number, True
    node.outputs = tuple(outputs)
    return True


def is_given(value: Any, stack: list[Any]) -> bool:
    """Whether a result is one of the arguments, or an item of one."""
    for given in stack:
        if given is value or (isinstance(given, list) and any(item is value for item in given)):
            return True
    return False


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
    if record is None:
        return False
    return record.asked or record.grad_fn is not None if isinstance(record, ViewHistory) else record.requires_grad


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
    view_of = tensor._view.replay or strided_step(tensor, base)
    copy_slices = CopySlices(base, gradient_edge(base), view_of, node)
    set_edge(base, copy_slices, 0)
    current_grad_fn(tensor)  # out of date since the write; made anew, from the base
