"""Node: one step of the backward graph; and Edge, by which a node points to where its gradients go on.

A node stands for one operator call. It takes one gradient per output of that call and gives one per input that can
have one, to be sent along `next_edges`. An edge is a pair (node, number of the node's output), or None where no
gradient is wanted; an edge to a leaf's node has the leaf as its third, because that node holds the leaf weakly.
`outputs` says what each output looked like (its shape, dtype and device are those that its gradient must have).

Tensors point to nodes and nodes to earlier nodes, never back: so a graph goes away with the last tensor that holds it,
without the garbage collector. A subclass keeps this up by holding its own results as `SavedTensor` does (saved.py).

Read next: accumulate.py (the nodes of leaves), saved.py, derivative.py (the nodes of operators), engine.py.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from redispatch.dispatch import Slot
from redispatch.dispatch.tensor import Tensor, empty, metadata_of
from redispatch.dispatch.tensor.metadata import Metadata

from .hooks import NodeHooks, RemovableHandle

Edge = tuple["Node", int] | tuple["Node", int, Tensor] | None

# Later calls have higher numbers; the engine runs them first. (One counter for all threads: it never goes back.)
SEQUENCE = itertools.count()


class Node:
    """One step of backward. A subclass gives `apply`, and `release` if it holds anything for it."""

    __slots__ = ("next_edges", "outputs", "sequence", "hooks", "__weakref__")
    next_edges: tuple[Edge, ...]
    outputs: tuple[Metadata | None, ...]
    sequence: int
    hooks: NodeHooks | None  # and whatever else few nodes have

    def __init__(self, next_edges: tuple[Edge, ...] = ()) -> None:
        self.next_edges = next_edges
        self.outputs = ()
        self.sequence = next(SEQUENCE)
        self.hooks = None

    def apply(self, gradients: list[Any], wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        """One gradient per edge, from one per output; None stands for zero.

        `wanted` says along which edges somebody waits for it (None: along all that exist).
        """
        raise NotImplementedError

    def release(self) -> None:
        """Lets go of what was kept for `apply`, which will not be called again."""

    def spend(self, gradients: list[Any]) -> Sequence[Any]:
        """`apply` for the last time, and then `release`."""
        results = self.apply(gradients)
        self.release()
        return results

    def add_output(self, tensor: Any) -> int:
        """Notes what the next output looks like (None: it has no gradient) and returns its number."""
        number = len(self.outputs)
        self.outputs += (None if tensor is None else metadata_of(tensor),)
        return number

    # What users see -------------------------------------------------------------------------------------------

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        return tuple((None, 0) if edge is None else edge[:2] for edge in self.next_edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own use."""
        return self._hooks().metadata

    @property
    def stack_trace(self) -> Any:
        """The lines that made the call, if anomaly mode was on."""
        return None if self.hooks is None else self.hooks.stack_trace

    @property
    def requires_grad(self) -> bool:
        return True

    @property
    def _input_metadata(self) -> tuple[InputMetadata | None, ...]:
        return tuple(None if o is None else InputMetadata(o.shape, o.dtype, o.device) for o in self.outputs)

    def _sequence_nr(self) -> int:
        return self.sequence

    def _set_sequence_nr(self, number: int) -> None:
        self.sequence = number

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Calls `fn(grad_inputs, grad_outputs)` after the node ran; a tuple that it returns replaces `grad_inputs`."""
        return self._hooks().after.register(fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Calls `fn(grad_outputs)` before the node runs; a tuple that it returns replaces `grad_outputs`."""
        return self._hooks().before.register(fn)

    def _hooks(self) -> NodeHooks:
        if self.hooks is None:
            self.hooks = NodeHooks()
        return self.hooks

    def __call__(self, *gradients: Any) -> Any:
        """Runs this node alone, hooks included. One gradient comes bare, several as a tuple."""
        results = evaluate(self, list(gradients), None)
        return results[0] if len(results) == 1 else tuple(results)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class InputMetadata(NamedTuple):
    """The metadata of one output of a node's call (the node's input is its gradient)."""

    shape: Any
    dtype: Any
    device: Any

    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False


def evaluate(node: Node, gradients: list[Any], wanted: Sequence[bool] | None) -> list[Any]:
    """The gradients that `node` hands on, hooks called and shapes made right."""
    hooks = node.hooks
    if hooks is None:
        return fitted(node, node.apply(gradients, wanted))
    gradients = hooks.call_before(gradients)
    results = fitted(node, node.apply(gradients, wanted))
    return hooks.call_after(results, tuple(gradients)) if hooks.after else results


def fitted(node: Node, results: Sequence[Any]) -> list[Any]:
    """The results of `node` as the nodes behind its edges need them: of the shape and dtype of those outputs.

    Errors: RuntimeError for another number of results than there are edges, and as `fit`.
    """
    edges = node.next_edges
    if len(results) != len(edges):
        raise wrong_number(node, results)
    return [
        gradient if edge is None or gradient is None else fit(node, index, gradient, edge[0].outputs[edge[1]])
        for index, (edge, gradient) in enumerate(zip(edges, results, strict=True))
    ]


def wrong_number(node: Node, results: Sequence[Any]) -> RuntimeError:
    return RuntimeError(
        f"Function {node.name()} returned an invalid number of gradients: {len(results)} for {len(node.next_edges)} "
        "edges"
    )


def fits(gradient: Any, output: Metadata | None) -> bool:
    """Whether a gradient of any strides is as an output that looks so needs it, as far as a glance can tell."""
    return (
        output is not None
        and gradient._shape == output.shape
        and gradient._dtype is output.dtype
        and gradient._device is output.device
    )


def fit(node: Node, index: int, gradient: Any, output: Metadata | None) -> Any:
    """The result number `index` of `node` as an output that looks so needs it; one that was broadcast is summed back.

    Errors: RuntimeError for what is no tensor, or has a shape or device that cannot be made right.
    """
    if not isinstance(gradient, Tensor):
        raise RuntimeError(f"expected Variable or None (got {type(gradient).__name__})")
    if output is None:
        return gradient
    if gradient._shape != output.shape:
        gradient = summed_to(node, index, gradient, output.shape)
    if gradient._dtype is not output.dtype and output.dtype is not None:  # None: of a leaf that takes any
        if gradient._dtype.is_complex and not output.dtype.is_complex:
            gradient = gradient.real
        gradient = gradient.to(output.dtype)
    if gradient._device != output.device:
        if gradient._shape:
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {index} - expected device "
                f"{output.device} but got {gradient._device}"
            )
        gradient = gradient.to(output.device)
    return gradient


def summed_to(node: Node, index: int, gradient: Any, shape: Any) -> Any:
    """`gradient` summed over the dimensions along which a tensor of `shape` was broadcast to it."""
    if not is_broadcast(gradient._shape, shape):
        raise RuntimeError(
            f"Function {node.name()} returned an invalid gradient at index {index} - got {list(gradient._shape)} but "
            f"expected shape compatible with {list(shape)}"
        )
    return gradient.sum_to_size(shape)


@functools.lru_cache(1024)
def is_broadcast(shape: tuple[int, ...], original: tuple[int, ...]) -> bool:
    """Whether a tensor of the shape `original` may have been broadcast to `shape`."""
    behind = len(shape) - len(original)
    return behind >= 0 and all(have in (1, size) for have, size in zip(original, shape[behind:], strict=True))


# The operators that autograd needs and cannot name: the room `ops` fills these slots ----------------------------------
#
# Everything else is asked of tensors themselves, through their methods; and so are these, as long as nobody fills them.

# (tensor) -> ones of its shape, dtype and device: the gradient with which backward begins
ONES_LIKE: Slot[Callable[[Any], Any]] = Slot("ones like a tensor")
# (shape, dtype, device) -> zeros: what a Function's backward gets for an output without gradient
ZEROS: Slot[Callable[[Any, Any, Any], Any]] = Slot("zeros of a shape, dtype and device")

# (function of gradients, tuple of them) -> its results for a whole batch of gradients, batched along dimension 0
BATCHED: Slot[Callable[[Callable[..., Any], tuple[Any, ...]], Any]] = Slot("how a function is mapped over a batch")

ONES_LIKE.fill(lambda tensor: tensor.detach().new_ones(tensor._shape))
ZEROS.fill(lambda shape, dtype, device: empty(shape, dtype, device).zero_())
