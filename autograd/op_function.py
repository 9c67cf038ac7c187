"""A derivative for an operator, written as for an autograd.Function: `backward(ctx, *grads)` and `setup_context`.

It is how users give custom operators a derivative. The operators of this library declare formulas (derivative.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from redispatch.dispatch import STATE, OpOverload, TensorBase, wants_gradient, within
from redispatch.dispatch.layers.autograd import AUTOGRAD, DERIVATIVES
from redispatch.dispatch.registry import Undo

from .function import FunctionCtx, FunctionNode
from .history import refuse_out, tie_results


def register_function_derivative(
    op: OpOverload, backward: Callable[..., Any], setup_context: Callable[..., Any] | None, *, place: str
) -> Undo:
    """Gives `op`, which must not write its arguments, a derivative; returns what takes it back.

    `backward(ctx, *grads)` gives one gradient (or None) per argument that can be passed by position; a list for a list
    of tensors. `setup_context(ctx, inputs, output)` runs after each recorded call; where the schema has keyword-only
    arguments, it gets them as `keyword_only_inputs`.
    """
    return DERIVATIVES.add(op, FunctionDerivative(op, backward, setup_context), place)


class OperatorFunctionNode(FunctionNode):
    """The node of an operator call with such a derivative. Lists of tensors have a gradient list, in and out."""

    __slots__ = ("counts", "output_counts")
    counts: list[int | None]  # for each argument how many tensors it is, None for one that is no list
    output_counts: list[int | None]

    def apply(self, gradients: list[Any], wanted: Any = None) -> Any:
        grouped = list(regrouped(self.materialized(gradients), self.output_counts))
        results = type(self).backward(self.ctx, *grouped)
        results = list(results) if isinstance(results, tuple) else [results]
        while len(results) > len(self.counts) and results[-1] is None:
            results.pop()
        if len(results) != len(self.counts):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {len(self.counts)}, got "
                f"{len(results)})"
            )
        flat: list[Any] = []
        for result, count in zip(results, self.counts, strict=True):
            if count is None:
                flat.append(result)
            else:
                flat += [None] * count if result is None else list(result)
        return self.checked(flat)


def regrouped(values: list[Any], counts: list[int | None]) -> Iterator[Any]:
    """Values in groups again: a list of `count` of them for each count, one by itself for None."""
    remaining = iter(values)
    for count in counts:
        yield next(remaining) if count is None else [next(remaining) for _ in range(count)]


class FunctionDerivative:
    """The rule that the layer Autograd finds for such an operator."""

    def __init__(self, op: OpOverload, backward: Callable[..., Any], setup_context: Callable[..., Any] | None) -> None:
        self.setup_context = setup_context
        name = f"GeneratedBackwardFor_{op.namespace}_{op._opname}_{op._overloadname}Backward"
        self.node_class = type(name, (OperatorFunctionNode,), {"__slots__": (), "backward": staticmethod(backward)})

    def __str__(self) -> str:
        """As `explain` shows it."""
        return self.node_class.__name__

    def begin(self, op: OpOverload, stack: list[Any]) -> OperatorFunctionNode:
        refuse_out(op)
        positional = stack[: op.schema.kwarg_only_start]
        flat: list[Any] = []
        for value in positional:
            flat += value if is_tensor_list(value) else [value]
        node = self.node_class(FunctionCtx(tuple(map(wants, positional))), flat)
        node.counts = [len(value) if is_tensor_list(value) else None for value in positional]
        return node

    def finish(self, op: OpOverload, node: OperatorFunctionNode, stack: list[Any], result: Any) -> Any:
        ctx, schema = node.ctx, op.schema
        if self.setup_context is not None:
            inputs = tuple(stack[: schema.kwarg_only_start])
            keywords = {a.name: v for a, v in zip(schema.arguments, stack, strict=True) if a.kwarg_only}
            with within(STATE.get().excluding(AUTOGRAD).replace(grad_enabled=False)):
                if keywords:
                    self.setup_context(ctx=ctx, inputs=inputs, keyword_only_inputs=keywords, output=result)
                else:
                    self.setup_context(ctx=ctx, inputs=inputs, output=result)
        returns = list(result) if len(schema.returns) > 1 else [result]
        node.output_counts = [len(value) if is_tensor_list(value) else None for value in returns]
        skipped = frozenset(i for i, v in enumerate(returns) if any(v is one for one in ctx.non_differentiable))
        result, outputs = tie_results(op, node, stack, result, skipped)
        node.facts = [(output._shape, output._dtype, output._device) for output in outputs]
        ctx.non_differentiable = ()
        node.save(ctx.to_save)
        return result


def is_tensor_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(item, TensorBase) for item in value)


def wants(value: Any) -> bool:
    return any(map(wants_gradient, value)) if isinstance(value, list | tuple) else wants_gradient(value)
