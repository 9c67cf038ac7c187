"""A derivative for an operator, written as for an autograd.Function: `backward(ctx, *grads)` and `setup_context`.

It is how users give custom operators a derivative. The operators of this library declare formulas (derivative.py).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from redispatch.dispatch import STATE, FunctionSchema, OpOverload, TensorBase, wants_gradient, within
from redispatch.dispatch.core.registry import Undo
from redispatch.dispatch.layers.autograd import AUTOGRAD, DERIVATIVES
from redispatch.dispatch.specialiser.annotations import frozen, inline
from redispatch.dispatch.tensor import metadata_of

from .anomaly_mode import ANOMALY, remember
from .derivative import is_new
from .function import FunctionCtx, FunctionNode
from .history import gradient_edge, refuse_out, tie_fresh, tie_results
from .hooks import WATCH
from .node import SEQUENCE


def register_function_derivative(
    op: OpOverload, backward: Callable[..., Any], setup_context: Callable[..., Any] | None, *, place: str
) -> Undo:
    """Gives `op`, which must not write its arguments, a derivative; returns what takes it back.

    `backward(ctx, *grads)` gives one gradient (or None) per argument that can be passed by position; a list for a list
    of tensors. `setup_context(ctx, inputs, output)` runs after each recorded call; where the schema has keyword-only
    arguments, it gets them as `keyword_only_inputs`.
    Errors: RuntimeError for an operator that writes an argument or returns a view of one.
    """
    if op.schema.is_mutable or op.schema.is_view:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {op} with schema {op.schema}. Please create "
            "a functional operator and register an autograd formula for that."
        )
    return DERIVATIVES.override(op, FunctionDerivative(op, backward, setup_context), place)


class OperatorFunctionNode(FunctionNode):
    """The node of an operator call with such a derivative. Lists of tensors have a gradient list, in and out."""

    __slots__ = ("counts", "output_counts")
    __init__ = object.__init__  # the rule fills the slots
    required = 0  # how many arguments are tensors or have no default, and what comes before them
    counts: list[int | None] | None  # for each argument how many tensors it is, None for one that is no list
    output_counts: list[int | None] | None  # either is None where there are no lists at all

    def apply(self, gradients: list[Any], wanted: Any = None) -> Any:
        gradients = self.materialized(gradients)
        if self.output_counts is not None:
            gradients = list(regrouped(gradients, self.output_counts))
        results = type(self).backward(self.ctx, *gradients)
        results = list(results) if isinstance(results, tuple) else [results]
        if len(results) < len(self.inputs) and self.counts is None and len(results) >= type(self).required:
            results += [None] * (len(self.inputs) - len(results))  # for arguments that calls may leave out
        return self.checked(results if self.counts is None else self.flattened(results, self.counts))

    def flattened(self, results: list[Any], counts: list[int | None]) -> list[Any]:
        """One gradient for each tensor. RuntimeError where `backward` gave another number than there are arguments."""
        while len(results) > len(counts) and results[-1] is None:
            results.pop()
        if len(results) != len(counts):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {len(counts)}, got "
                f"{len(results)})"
            )
        flat: list[Any] = []
        for result, count in zip(results, counts, strict=True):
            if count is None:
                flat.append(result)
            else:
                flat += [None] * count if result is None else list(result)
        return flat


NO_TENSOR = -1  # the count of a result that is neither a tensor nor a list of them


def regrouped(values: list[Any], counts: list[int | None]) -> Iterator[Any]:
    """Values in groups again: a list of `count` of them for each count, one by itself for None, None for no tensor."""
    remaining = iter(values)
    for count in counts:
        if count == NO_TENSOR:
            yield None
            continue
        yield next(remaining) if count is None else [next(remaining) for _ in range(count)]


@frozen
class FunctionDerivative:
    """The rule that the layer Autograd finds for such an operator."""

    def __init__(self, op: OpOverload, backward: Callable[..., Any], setup_context: Callable[..., Any] | None) -> None:
        schema = op.schema
        self.setup_context = setup_context
        self.positional = schema.kwarg_only_start
        self.keywords = tuple((i, argument.name) for i, argument in enumerate(schema.arguments) if argument.kwarg_only)
        self.takes_lists = any(position < self.positional for position in schema.tensor_list_positions)
        name = f"GeneratedBackwardFor_{op.namespace}_{op._opname}_{op._overloadname}Backward"
        needed = (i + 1 for i in range(self.positional) if i in schema.tensor_positions or not has_default(schema, i))
        facts = {"__slots__": (), "backward": staticmethod(backward), "required": max(needed, default=0)}
        self.node_class = type(name, (OperatorFunctionNode,), facts)

    def __str__(self) -> str:
        """Returns what `explain` shows."""
        return self.node_class.__name__

    @inline
    def begin(self, op: OpOverload, stack: list[Any]) -> OperatorFunctionNode:
        if op.schema.is_out:
            refuse_out(op)
        if self.takes_lists:
            return begin_with_lists(self, stack)
        arguments = stack[: self.positional]
        node = self.node_class()
        node.next_edges = tuple(gradient_edge(value) for value in arguments if isinstance(value, TensorBase))
        node.outputs = ()
        node.sequence = next(SEQUENCE)
        node.hooks = None
        node.inputs = tuple(isinstance(value, TensorBase) for value in arguments)
        node.counts = None
        begin_context(node, tuple(wants_gradient(value) for value in arguments))
        return node

    @inline
    def finish(self, op: OpOverload, node: OperatorFunctionNode, stack: list[Any], result: Any) -> Any:
        if self.setup_context is not None:
            inputs = tuple(stack[: self.positional])
            with within(STATE.get().excluding(AUTOGRAD).with_grad(False)):
                if self.keywords:
                    keywords = {name: stack[position] for position, name in self.keywords}
                    self.setup_context(ctx=node.ctx, inputs=inputs, keyword_only_inputs=keywords, output=result)
                else:
                    self.setup_context(ctx=node.ctx, inputs=inputs, output=result)
        if isinstance(result, TensorBase):
            if is_new(op, stack, result) and not node.ctx.non_differentiable:
                tie_fresh(result, node)
                finish_context(node)
                return result
        return finish_slow(op, node, stack, result)


def has_default(schema: FunctionSchema, position: int) -> bool:
    return schema.arguments[position].has_default_value()


def begin_with_lists(rule: FunctionDerivative, stack: list[Any]) -> OperatorFunctionNode:
    """`begin` where some argument is a list of tensors."""
    arguments = stack[: rule.positional]
    flat = [item for value in arguments for item in (value if is_tensor_list(value) else [value])]
    node = rule.node_class()
    node.next_edges = tuple(gradient_edge(value) for value in flat if isinstance(value, TensorBase))
    node.outputs = ()
    node.sequence = next(SEQUENCE)
    node.hooks = None
    node.inputs = tuple(isinstance(value, TensorBase) for value in flat)
    node.counts = [len(value) if is_tensor_list(value) else None for value in arguments]
    begin_context(node, tuple(map(wants, arguments)))
    return node


def begin_context(node: OperatorFunctionNode, wanted: tuple[bool, ...]) -> None:
    """Gives a node its context."""
    node.ctx = FunctionCtx(wanted)
    node.ctx._node = weakref.ref(node)
    node.saved = node.facts = ()
    if WATCH.on and ANOMALY.get()[0]:
        remember(node)


def finish_context(node: OperatorFunctionNode) -> None:
    """Notes what the one output looks like, and keeps what the context was asked to save."""
    node.output_counts, node.facts = None, node.outputs
    if node.ctx.to_save:
        node.save(node.ctx.to_save)


def finish_slow(op: OpOverload, node: OperatorFunctionNode, stack: list[Any], result: Any) -> Any:
    """`finish` for other results: several of them, lists, those that have no gradient."""
    ctx = node.ctx
    returns = list(result) if len(op.schema.returns) > 1 else [result]
    node.output_counts = [
        len(value) if is_tensor_list(value) else None if isinstance(value, TensorBase) else NO_TENSOR
        for value in returns
    ]
    marked = set(map(id, ctx.non_differentiable))
    skipped = frozenset(
        i for i, v in enumerate(returns) if marked.issuperset(map(id, v if is_tensor_list(v) and v else [v]))
    )
    result, outputs = tie_results(op, node, stack, result, skipped)
    node.facts = [metadata_of(output) for output in outputs]
    ctx.non_differentiable = ()
    if ctx.to_save:
        node.save(ctx.to_save)
    return result


def is_tensor_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(item, TensorBase) for item in value)


def wants(value: Any) -> bool:
    return any(map(wants_gradient, value)) if isinstance(value, list | tuple) else wants_gradient(value)
