"""Derivatives as operators declare them, and the nodes made from such a declaration.

    differentiable(mul, "MulBackward0", [(("self",), lambda grad, other: grad * other), (("other",), ...)], place=...)

A *formula* is a plain function that yields the gradients of one or more inputs. The names of its parameters say what
it needs, and therefore what is saved when the operator is called:

    grad, grads                 the gradient of output 0; those of all outputs (None: no gradient reached it)
    result, result0, result1    outputs
    self, other, dim, ...       arguments: of tensors, the version, too; everything else as it is
    self_shape, self_dtype, ... facts about a tensor argument: nothing of it is kept alive
    needs                       one bool per gradient that the formula yields: does anyone wait for it?

Only what the formulas of inputs that require grad ask for is saved. An in-place operator has the formulas of the
functional one; where these ask for the argument that it overwrites, a copy is made before.

`OperatorDerivative` is made once for each operator. What it decides then stands in tuples, so that what is left for the
call, in `begin` and `finish`, and for the backward pass, in `all_gradients`, becomes a few straight lines when it is
specialised. What few operators or calls need is done by ordinary functions beside it.

Read next: formulas.py (what a formula's parameters mean), saving.py, operator_node.py (backward), engine.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch import ListType, OpOverload, TensorBase, describe_value, wants_gradient
from redispatch.dispatch.core.registry import Undo
from redispatch.dispatch.layers.autograd import DERIVATIVES, NO_DERIVATIVE
from redispatch.dispatch.specialiser.annotations import frozen, inline, leaf
from redispatch.dispatch.tensor import dtypes

from .formulas import Formulas, KeptResult, Reading, fact_of
from .history import (
    can_be_retied,
    check_each_write,
    check_writes,
    gradient_edge,
    gradient_edges,
    is_new_view,
    refuse_out,
    retie,
    tensors_of,
    tie_fresh,
    tie_fresh_ones,
    tie_fresh_view,
    tie_new,
    tie_results,
    written_tensors,
)
from .hooks import WATCH
from .node import SEQUENCE, Node
from .operator_node import OperatorNode
from .saved import kept_result
from .saving import (
    RELEASES,
    kept_arguments,
    kept_outputs,
    look_on,
    saved_fact,
    saved_object,
    saved_value,
    shown_name,
)


def differentiable(
    op: OpOverload,
    name: str,
    formulas: Formulas,
    *,
    nondifferentiable_outputs: Sequence[int] | None = (),
    for_complex: bool = True,
    place: str,
    later: bool = False,
    pointwise: bool = False,
) -> Undo:
    """Declares the derivative of `op`; returns what takes it back.

    `name` is that of its nodes ("MulBackward0"). Each formula comes with the inputs whose gradients it yields: one
    value for one input (for a Tensor[], a list), a tuple for several. None stands for zero.
    `nondifferentiable_outputs` None means all. Not `for_complex`: the formulas say what the gradients of real
    numbers are, and those of complex ones follow (formulas.py). With `later`, they are read when first needed.
    `pointwise`: each element of the result depends on one element of each argument alone (forward.py makes use of it).
    Errors: TypeError where a formula asks for something that the schema does not have.
    """

    def make() -> OperatorDerivative:
        every = range(len(op.schema.returns))
        none = every if nondifferentiable_outputs is None else nondifferentiable_outputs
        return OperatorDerivative(op, name, formulas, none, for_complex, pointwise)

    return DERIVATIVES.add_later(op, make, place) if later else DERIVATIVES.add(op, make(), place)


@frozen
class OperatorDerivative:
    """The rule of one operator: what the layer Autograd asks before and after the call."""

    def __init__(
        self,
        op: OpOverload,
        name: str,
        formulas: Formulas,
        nondifferentiable: Sequence[int] = (),
        for_complex: bool = True,
        pointwise: bool = False,
    ) -> None:
        schema = op.schema
        self.pointwise = pointwise
        reading = Reading(op, formulas)
        self.op = op
        self.formulas, self.inputs, self.covered = reading.formulas, reading.inputs, reading.covered
        self.kept, self.facts, self.results = reading.kept_arguments(), tuple(reading.facts), reading.kept_results()
        self.nondifferentiable = frozenset(nondifferentiable)
        self.for_complex = for_complex
        self.lists = frozenset(schema.tensor_list_positions)
        self.has_list = any(position in self.lists for position in self.inputs)
        self.has_one_output = len(schema.returns) == 1 and not any_list(schema.returns)
        self.all_take_grad = all(formula.takes_grad for formula in self.formulas)
        written = schema.mutable_positions
        self.undeclared = tuple(p for p in schema.tensor_positions if p not in self.covered and p not in written)
        self.may_be_idle = bool(self.undeclared) or not self.lists <= set(self.inputs)
        # The place of the tensor that an in-place operator writes and returns; of nothing else, it must have one place.
        self.written = written if (written,) == schema.return_aliases and not self.lists & set(written) else ()
        self.gives_tensors = (
            not (schema.is_mutable or schema.is_view) and len(schema.returns) > 1 and not any_list(schema.returns)
        )
        self.gives_one_tensor = not schema.is_mutable and len(schema.returns) == 1 and 0 not in self.nondifferentiable
        self.node_class = self._node_class(name)

    def _node_class(self, name: str) -> type[OperatorNode]:
        """The class of the nodes, which shows what is saved as PyTorch's do: `_saved_other`, `_raw_saved_other`."""
        members: dict[str, Any] = {"rule": self}
        slots = []
        arguments = {argument.name: argument for argument in self.op.schema.arguments}
        both: tuple[tuple[str, Sequence[Any]], ...] = (("kept", self.kept), ("results", self.results))
        for slot, saved in both:
            for index, one in enumerate(saved):
                number = one.output if isinstance(one, KeptResult) else None
                shown = one.parameter if number is None else self.op.schema.returns[number].name or one.parameter
                members[f"_saved_{shown}"] = saved_value(slot, index, number)
                members[f"_raw_saved_{shown}"] = saved_object(slot, index, number)
            if saved:
                slots.append(slot)
        for index, fact in enumerate(self.facts):
            members[shown_name(fact.parameter, arguments)] = saved_fact(index)
        if slots:
            members["release"] = RELEASES[tuple(slots)]
        members["__slots__"] = (*slots, *(("facts",) if self.facts else ()), *(("counts",) if self.has_list else ()))
        return type(name, (OperatorNode,), members)

    def __str__(self) -> str:
        """Returns what `explain` shows: the node, and the arguments that have a gradient."""
        names = [argument.name for argument in self.op.schema.arguments]
        return f"{self.node_class.__name__}({', '.join(names[position] for position in sorted(self.covered))})"

    # Before the call ----------------------------------------------------------------------------------------------

    @inline
    def begin(self, op: OpOverload, stack: list[Any]) -> Any:
        """A node with its edges and what it keeps of the arguments; None where no differentiable input wants any."""
        if op.schema.is_out:
            refuse_out(op)
        for position in op.schema.mutable_positions:
            if position in self.lists:
                check_each_write(stack[position])
            else:
                check_writes(stack[position])
        if not self.inputs or (self.may_be_idle and not self.wanted_of(stack)):
            return None
        node = self.node_class()
        node.sequence = next(SEQUENCE)
        node.hooks = None
        edges = [gradient_edges(stack[position], position in self.lists) for position in self.inputs]
        node.next_edges = tuple(edge for group in edges for edge in group)
        if self.has_list:
            node.counts = tuple(len(group) for group in edges)
        if self.kept:
            node.kept = kept_arguments(self, stack, edges)
        if self.facts:
            node.facts = tuple(fact_of(fact, stack[fact.argument]) for fact in self.facts)
        if WATCH.on:
            look_on(self, node)
        return node

    @inline
    def wanted_of(self, stack: list[Any]) -> bool:
        """Whether a gradient is wanted of some argument that can have one. RuntimeError for one that has no formula."""
        for position in self.undeclared if self.inputs else ():
            if self.wants(stack, position):
                raise self.without_formula(position)
        return any(self.wants(stack, position) for position in self.inputs)

    @inline
    def wants(self, stack: list[Any], position: int) -> bool:
        """Whether an argument requires grad, or one of its items."""
        if position in self.op.schema.tensor_positions:
            return wants_gradient(stack[position])
        return any_wants(stack[position])

    def without_formula(self, position: int) -> RuntimeError:
        """The error for an argument that has no formula, and requires grad."""
        schema = self.op.schema
        return RuntimeError(
            f"The function '{schema.base_name}' is not differentiable with respect to argument "
            f"'{schema.arguments[position].name}'. This input cannot have requires_grad True."
        )

    # After the call -----------------------------------------------------------------------------------------------

    @inline
    def finish(self, op: OpOverload, node: Any, stack: list[Any], result: Any) -> Any:
        """The result, tied to the node; then what the formulas need of it is saved."""
        if self.gives_one_tensor and isinstance(result, TensorBase):
            if is_new(op, stack, result):
                if op.schema.is_view:
                    tie_fresh_view(result, node)
                else:
                    tie_fresh(result, node)
                if self.results:
                    node.results = kept_result(result)
                return result
        elif self.gives_tensors:
            results = [result[number] for number in range(len(op.schema.returns))]
            if all(isinstance(one, TensorBase) and is_unknown(op, stack, one) for one in results):
                tie_fresh_ones(results, node, self.nondifferentiable)
                if self.results:
                    node.results = kept_outputs(self, node, results)
                return result
        elif self.written and not self.results:
            if result is stack[self.written[0]] and can_be_retied(result):
                retie(result, node)
                return result
        return finish_slow(self, op, node, stack, result)


# What results are ----------------------------------------------------------------------------------------------------


@inline
def is_new(op: OpOverload, stack: list[Any], result: Any) -> bool:
    """Whether a result has no place in the graph yet, as nearly all have; and can have a gradient."""
    return is_unknown(op, stack, result) and result._dtype.category >= dtypes.FLOATING


@inline
def is_unknown(op: OpOverload, stack: list[Any], result: Any) -> bool:
    """Whether a result has no history yet, but for what a new view has, and is no argument."""
    return (
        (is_new_view(result) if op.schema.is_view else result._autograd is None)
        and not any(result is stack[position] for position in op.schema.tensor_positions)
        and not any(result is item for position in op.schema.tensor_list_positions for item in stack[position] or ())
    )


def finish_slow(rule: OperatorDerivative, op: OpOverload, node: OperatorNode, stack: list[Any], result: Any) -> Any:
    """`finish` for any result: several of them, lists, written arguments, results that have a history already."""
    outputs = result
    if op.schema.is_mutable or not tie_new(op, node, stack, result, rule.nondifferentiable):
        node.outputs = ()
        result, outputs = tie_results(op, node, stack, result, rule.nondifferentiable)
    if rule.results:
        node.results = kept_outputs(rule, node, outputs, stack if op.schema.is_mutable else ())
    return result


@leaf
def any_wants(value: Any) -> bool:
    """Whether an argument requires grad, or one of its items."""
    return any(map(wants_gradient, value)) if isinstance(value, list | tuple) else wants_gradient(value)


def any_list(returns: Sequence[Any]) -> bool:
    return any(isinstance(returned.type, ListType) for returned in returns)


# The node of an operator without a derivative: it raises when backward reaches it -------------------------------------
#
# The error comes in backward, not in forward, because most results are never differentiated. Where it is known that no
# derivative can come, it does not wait: a custom operator that writes a tensor of the graph would cut it off from its
# history, and an operator that writes cannot be given a derivative. (PyTorch records nothing there, and backward gives
# the gradient of another program.)


class NotImplementedNode(Node):
    """The node of an operator of which nobody has declared the derivative."""

    __slots__ = ("op",)

    def __init__(self, op: OpOverload, edges: tuple[Any, ...]) -> None:
        super().__init__(edges)
        self.op = op

    def name(self) -> str:
        return "torch::autograd::NotImplemented"

    def apply(self, gradients: list[Any], wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        if self.op.namespace == "aten":
            raise RuntimeError(f"derivative for {self.op.schema.name} is not implemented")
        raise RuntimeError(
            f"Trying to backward through {self.op} but no autograd formula was registered. Please use "
            "register_autograd to add one."
        )


NotImplementedNode.__name__ = "NotImplemented"  # as tensors print it: grad_fn=<NotImplemented>


class NoDerivative:
    """The rule of every operator that has none."""

    def begin(self, op: OpOverload, stack: list[Any]) -> NotImplementedNode:
        refuse_out(op)
        for position in op.schema.mutable_positions:
            check_writes(stack[position])
            if op.namespace != "aten":
                refuse_graph_tensors(op, position, stack[position])
        # What is written comes first: its former value is what the node's first edge must lead to (history.py).
        written = written_tensors(op, stack)
        others = [tensor for tensor in tensors_of(stack) if all(tensor is not one for one in written)]
        return NotImplementedNode(op, tuple(gradient_edge(tensor) for tensor in (*written, *others)))

    def finish(self, op: OpOverload, node: NotImplementedNode, stack: list[Any], result: Any) -> Any:
        return tie_results(op, node, stack, result)[0]


def refuse_graph_tensors(op: OpOverload, position: int, written: Any) -> None:
    """RuntimeError where an argument to be written is the result of recorded calls."""
    if any(wants_gradient(tensor) for tensor in tensors_of(written)):
        name = op.schema.arguments[position].name
        raise RuntimeError(
            f"{op} writes its argument '{name}', which is part of a graph, and has no derivative: backward could not "
            "go past the write.\n"
            f"  you passed   {name}: {', '.join(map(describe_value, tensors_of(written)))}, requires grad\n"
            f"  to fix       call it under no_grad(), or on a clone that is detached; for gradients, write a "
            "functional operator, give it a derivative by register_autograd, and take its `inplace_form()`"
        )


NO_DERIVATIVE.fill(NoDerivative())
