"""Derivatives as operators declare them, and the nodes made from such a declaration.

    differentiable(mul, "MulBackward0", [(("self",), lambda grad, other: grad * other), (("other",), ...)], place=...)

A *formula* is a plain function that yields the gradients of one or more inputs. The names of its parameters say what
it needs, and therefore what is saved when the operator is called:

    grad, grads                 the gradient of output 0; those of all outputs (None: no gradient reached it)
    result, result0, result1    outputs
    self, other, dim, ...       arguments: tensors as SavedTensor, everything else as it is
    self_shape, self_dtype, ... facts about a tensor argument: nothing of it is kept alive
    needs                       one bool per gradient that the formula yields: does anyone wait for it?

Only what the formulas of inputs that require grad ask for is saved. An in-place operator has the formulas of the
functional one; where these ask for the argument that it overwrites, a copy is made before.

Read next: history.py (how results are tied to the node), engine.py.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from redispatch.dispatch import OpOverload, TensorBase, wants_gradient
from redispatch.dispatch.layers.autograd import DERIVATIVES
from redispatch.dispatch.registry import Undo

from .anomaly import ANOMALY, remember
from .history import check_writes, gradient_edge, refuse_out, tie_results
from .node import Node
from .saved import RELEASED, SavedTensor

Formulas = Iterable[tuple[Sequence[str], Callable[..., Any]]]
FACTS = ("shape", "dtype", "device", "stride", "offset", "requires_grad")


def differentiable(
    op: OpOverload,
    name: str,
    formulas: Formulas,
    *,
    nondifferentiable_outputs: Sequence[int] = (),
    place: str,
) -> Undo:
    """Declares the derivative of `op`; returns what takes it back.

    `name` is that of its nodes ("MulBackward0"). Each formula comes with the inputs whose gradients it yields: one
    value for one input (for a Tensor[], a list), a tuple for several. None stands for zero.
    Errors: TypeError where a formula asks for something that the schema does not have.
    """
    return DERIVATIVES.add(op, OperatorDerivative(op, name, formulas, nondifferentiable_outputs), place)


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a formula asks for. It lies in the node's slot `slot`, or comes with the gradients."""

    parameter: str
    slot: str = ""
    argument: int | None = None  # which argument is saved, or
    fact: str | None = None  # which fact about it
    output: int | None = None  # or which output

    def read(self, node: Any, gradients: list[Any], needs: tuple[bool, ...]) -> Any:
        """The value of the parameter when the node runs."""
        if self.slot:
            return unpacked(node, getattr(node, self.slot))
        if self.parameter == "grad":
            return gradients[0]
        return needs if self.parameter == "needs" else tuple(gradients)


@dataclass(frozen=True, slots=True)
class Formula:
    """A function, the arguments (positions in the schema) whose gradients it yields, and what its parameters mean."""

    inputs: tuple[int, ...]
    function: Callable[..., Any]
    needs: tuple[Need, ...]
    takes_grad: bool  # asks for `grad`, and so gives nothing where output 0 has no gradient


class OperatorNode(Node):
    """The node of an operator call. Each operator has a subclass, with slots for what its formulas may ask for."""

    __slots__ = ()
    rule: OperatorDerivative

    def apply(self, gradients: list[Any], wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        edges = self.next_edges
        if wanted is None:
            wanted = [edge is not None for edge in edges]
        results: list[Any] = [None] * len(edges)
        if all(gradient is None for gradient in gradients):
            return results
        spans = self.rule.spans(self)
        for formula in self.rule.formulas:
            places = [place for position in formula.inputs for place in spans[position]]
            needs = tuple(wanted[place] for place in places)
            if not any(needs) or (formula.takes_grad and gradients[0] is None):
                continue
            value = formula.function(*[need.read(self, gradients, needs) for need in formula.needs])
            self.rule.put(results, spans, formula, value)
        return results

    def release(self) -> None:
        for slot in self.rule.slots:
            value = getattr(self, slot, None)
            if isinstance(value, SavedTensor) or (slot in self.rule.tensor_slots and value is not None):
                setattr(self, slot, RELEASED)
            elif isinstance(value, list) and any(isinstance(item, SavedTensor) for item in value):
                setattr(self, slot, [RELEASED])


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a plain function's parameters. (`inspect.signature` is ten times slower; there are 300 formulas.)"""
    code = getattr(function, "__code__", None)
    return code.co_varnames[: code.co_argcount] if code else tuple(inspect.signature(function).parameters)


def saved(value: Any) -> Any:
    """An argument as a node keeps it: a tensor, or a list with tensors, as SavedTensor; anything else as it is."""
    if isinstance(value, TensorBase):
        return SavedTensor(value)
    if isinstance(value, list | tuple) and any(isinstance(item, TensorBase) for item in value):
        return [SavedTensor(item) if isinstance(item, TensorBase) else item for item in value]
    return value


def unpacked(node: Any, value: Any) -> Any:
    """The argument again."""
    if isinstance(value, SavedTensor):
        return value.unpack(node)
    if isinstance(value, list):
        return [item.unpack(node) if isinstance(item, SavedTensor) else item for item in value]
    return value


def saved_property(slot: str) -> property:
    """`node._saved_other`: what was saved of the argument `other`, unpacked."""
    return property(lambda node: unpacked(node, getattr(node, slot)))


def fact_of(value: Any, fact: str) -> Any:
    """A fact about a tensor argument (a list of them for a Tensor[]); None for what is no tensor."""
    if isinstance(value, list | tuple):
        return [fact_of(item, fact) for item in value]
    if not isinstance(value, TensorBase):
        return () if fact == "shape" else None  # a number stands where a tensor may
    return wants_gradient(value) if fact == "requires_grad" else getattr(value, f"_{fact}")


class OperatorDerivative:
    """The rule of one operator: what the layer Autograd asks before and after the call."""

    def __init__(self, op: OpOverload, name: str, formulas: Formulas, nondifferentiable: Sequence[int] = ()) -> None:
        self.op = op
        self.nondifferentiable = frozenset(nondifferentiable)
        self.formulas = tuple(self._formula(inputs, function) for inputs, function in formulas)
        schema = op.schema
        covered = {position for formula in self.formulas for position in formula.inputs}
        # A written argument always has an edge: without a formula for it, its former value gets no gradient.
        self.inputs = tuple(sorted(covered | set(schema.mutable_positions)))
        self.covered = covered
        self.lists = frozenset(schema.tensor_list_positions)
        self.has_list = any(position in self.lists for position in self.inputs)
        self.slots = tuple(dict.fromkeys(need.slot for formula in self.formulas for need in formula.needs if need.slot))
        # Where a tensor is kept, or a number in a tensor's place: either is gone after backward, as in PyTorch.
        self.tensor_slots = frozenset(
            need.slot
            for formula in self.formulas
            for need in formula.needs
            if need.argument in schema.tensor_positions and need.fact is None
        )
        members: dict[str, Any] = {slot.removeprefix("_raw"): saved_property(slot) for slot in self.slots}
        members["__slots__"] = (*self.slots, "counts") if self.has_list else self.slots
        self.node_class = type(name, (OperatorNode,), members | {"rule": self})
        self._needs: dict[tuple[bool, ...], tuple[list[Need], list[Need]]] = {}
        self._fixed_spans: dict[int, Sequence[int]] = (
            {} if self.has_list else {p: (i,) for i, p in enumerate(self.inputs)}
        )

    def __str__(self) -> str:
        """As `explain` shows it: the node, and the arguments that have a gradient."""
        names = [argument.name for argument in self.op.schema.arguments]
        return f"{self.node_class.__name__}({', '.join(names[position] for position in sorted(self.covered))})"

    # Reading the declaration --------------------------------------------------------------------------------------

    def _formula(self, inputs: Sequence[str], function: Callable[..., Any]) -> Formula:
        needs = tuple(self._need(parameter) for parameter in parameter_names(function))
        takes_grad = any(need.parameter == "grad" for need in needs)
        return Formula(tuple(map(self._position, inputs)), function, needs, takes_grad)

    def _position(self, name: str) -> int:
        for position, argument in enumerate(self.op.schema.arguments):
            if argument.name == name:
                return position
        raise TypeError(
            f"the derivative of {self.op} is declared for {name!r}, which is no argument of {self.op.schema}"
        )

    def _need(self, parameter: str) -> Need:
        names = [argument.name for argument in self.op.schema.arguments]
        slot = f"_raw_saved_{parameter}"
        if parameter in ("grad", "grads", "needs"):
            return Need(parameter)
        if parameter in names:
            return Need(parameter, slot, argument=names.index(parameter))
        if parameter.startswith("result") and parameter.removeprefix("result").isdecimal() or parameter == "result":
            return Need(parameter, slot, output=int(parameter.removeprefix("result") or 0))
        for fact in FACTS:
            stem = parameter.removesuffix(f"_{fact}")
            if stem != parameter and stem in names:
                return Need(parameter, slot, argument=names.index(stem), fact=fact)
        if parameter.rstrip("_") in names:  # `from_` for an argument whose name is a word of Python's
            return Need(parameter, slot, argument=names.index(parameter.rstrip("_")))
        raise TypeError(f"a formula of {self.op} asks for {parameter!r}, which means nothing for {self.op.schema}")

    # Before the call ----------------------------------------------------------------------------------------------

    def begin(self, op: OpOverload, stack: list[Any]) -> Any:
        """A node with its edges and what it keeps of the arguments; None where no differentiable input wants any."""
        refuse_out(op)
        if op.schema.is_mutable:
            check_writes(op, stack)
        active = tuple(any(wants(stack[position]) for position in formula.inputs) for formula in self.formulas)
        if not any(active) and not any(wants(stack[position]) for position in op.schema.mutable_positions):
            return None
        self._refuse_undeclared(stack)
        node = self.node_class(self._edges(stack))
        if self.has_list:
            node.counts = [len(stack[p] or ()) if p in self.lists else 1 for p in self.inputs]
        of_arguments, of_outputs = self._needs_of(active)
        for need in of_arguments:
            setattr(node, need.slot, self._take(need, stack))
        if ANOMALY.get()[0]:
            remember(node)
        return node, of_outputs  # what the call gives is saved when it is there, by `finish`

    def _needs_of(self, active: tuple[bool, ...]) -> tuple[list[Need], list[Need]]:
        """What the active formulas need of the arguments, and of the outputs: each thing once."""
        found = self._needs.get(active)
        if found is None:
            formulas = itertools.compress(self.formulas, active)
            needs = {need.slot: need for formula in formulas for need in formula.needs if need.slot}
            found = self._needs[active] = (
                [need for need in needs.values() if need.argument is not None],
                [need for need in needs.values() if need.output is not None],
            )
        return found

    def _take(self, need: Need, stack: list[Any]) -> Any:
        value = stack[need.argument]  # type: ignore[index]  # the caller has checked
        if need.fact is not None:
            return fact_of(value, need.fact)
        if need.argument in self.op.schema.mutable_positions:
            value = [item.clone() for item in value] if isinstance(value, list | tuple) else value.clone()
        return saved(value)

    def _edges(self, stack: list[Any]) -> tuple[Any, ...]:
        edges: list[Any] = []
        for position in self.inputs:
            value = stack[position]
            for item in (value or ()) if position in self.lists else (value,):
                edges.append(gradient_edge(item) if isinstance(item, TensorBase) else None)
        return tuple(edges)

    def _refuse_undeclared(self, stack: list[Any]) -> None:
        schema = self.op.schema
        for position in schema.tensor_positions:
            if position not in self.covered and position not in schema.mutable_positions and wants(stack[position]):
                raise RuntimeError(
                    f"The function '{schema.base_name}' is not differentiable with respect to argument "
                    f"'{schema.arguments[position].name}'. This input cannot have requires_grad True."
                )

    # After the call -----------------------------------------------------------------------------------------------

    def finish(self, op: OpOverload, begun: Any, stack: list[Any], result: Any) -> Any:
        """The result, tied to the node; then what the formulas need of it is saved."""
        node, needs = begun
        result, outputs = tie_results(op, node, stack, result, self.nondifferentiable)
        for need in needs:
            output = outputs[need.output]
            if wants_gradient(output):
                in_place = op.schema.is_mutable and any(output is value for value in stack)
                kept = SavedTensor(output, need.output, written_view=in_place and output._view is not None)
            else:
                kept = SavedTensor(output)
            setattr(node, need.slot, kept)
        return result

    # In the backward pass -----------------------------------------------------------------------------------------

    def spans(self, node: Any) -> dict[int, Sequence[int]]:
        """For each differentiable argument, the places of its gradients among those that a node gives."""
        if not self.has_list:
            return self._fixed_spans
        spans: dict[int, Sequence[int]] = {}
        start = 0
        for position, count in zip(self.inputs, node.counts, strict=True):
            spans[position] = range(start, start + count)
            start += count
        return spans

    def put(self, results: list[Any], spans: dict[int, Sequence[int]], formula: Formula, value: Any) -> None:
        """Puts what a formula gave in its places."""
        values = (value,) if len(formula.inputs) == 1 else value
        for position, gradient in zip(formula.inputs, values or [None] * len(formula.inputs), strict=True):
            if position not in self.lists:
                results[spans[position][0]] = gradient
            elif gradient is not None:
                for place, item in zip(spans[position], gradient, strict=True):
                    results[place] = item


def wants(value: Any) -> bool:
    """Whether an argument requires grad, or one of its items."""
    if isinstance(value, list | tuple):
        return any(wants_gradient(item) for item in value)
    return wants_gradient(value)
