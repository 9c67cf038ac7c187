"""Formulas: what a declared derivative consists of, and what the names of a formula's parameters mean.

All of this is read once, when a derivative is declared. What an operator's formulas need falls into three lists:
arguments that are kept (tensors), facts (everything else about the arguments), and results that are kept. A `Need` says
in which list a parameter is found, and where; unless it comes with the gradients.

Read next: derivative.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from redispatch.dispatch import OpOverload, TensorBase, wants_gradient
from redispatch.dispatch.specialiser.annotations import frozen, inline

from ..records import dataclass

Formulas = Iterable[tuple[Sequence[str], Callable[..., Any]]]
FACTS = ("shape", "dtype", "device", "stride", "offset", "requires_grad")


@frozen
@dataclass(frozen=True, slots=True)
class Need:
    """The meaning of one parameter of a formula."""

    parameter: str
    source: str  # "kept", "facts" or "results", and then `index` says where in that list; "grad", "grads", "needs"
    index: int = 0


@frozen
@dataclass(frozen=True, slots=True)
class Formula:
    """A function, and the differentiable arguments (by their numbers among these) whose gradients it yields."""

    inputs: tuple[int, ...]
    function: Callable[..., Any]
    needs: tuple[Need, ...]
    takes_grad: bool  # asks for `grad`, and so gives nothing where output 0 has no gradient


@frozen
@dataclass(frozen=True, slots=True)
class KeptArgument:
    """An argument, a tensor or a list of them, that some formulas need as it was before the call."""

    parameter: str
    argument: int
    is_list: bool
    is_written: bool  # by the call itself: a copy is kept
    users: tuple[int, ...]  # the differentiable arguments whose gradients it serves; empty: all of them


@frozen
@dataclass(frozen=True, slots=True)
class Fact:
    """An argument that is no tensor, or what a tensor argument looks like."""

    parameter: str
    argument: int
    attribute: str | None  # the attribute of the tensor; None: the argument itself
    of_list: bool


@frozen
@dataclass(frozen=True, slots=True)
class KeptResult:
    """An output that some formulas need."""

    parameter: str
    output: int
    users: tuple[int, ...]


class Reading:
    """The formulas of one operator, read against its schema. TypeError where they ask for what the schema has not."""

    def __init__(self, op: OpOverload, formulas: Formulas) -> None:
        self.op = op
        self.schema = schema = op.schema
        self.names = [argument.name for argument in schema.arguments]
        self.kept: list[str] = []
        self.facts: list[Fact] = []
        self.results: list[str] = []
        # In PyTorch's order, by name: whoever follows backward sees it, and gradients are added up in it.
        by_name = sorted(formulas, key=lambda formula: ", ".join(formula[0]))
        declared = [(tuple(map(self.position, inputs)), function) for inputs, function in by_name]
        self.covered = frozenset(position for inputs, _ in declared for position in inputs)
        # A written argument always has an edge: without a formula for it, its former value gets no gradient.
        self.inputs = tuple(sorted(self.covered | set(schema.mutable_positions)))
        number = {position: i for i, position in enumerate(self.inputs)}
        self.formulas = tuple(self.formula([number[p] for p in inputs], function) for inputs, function in declared)

    def position(self, name: str) -> int:
        """The place of an argument that a formula differentiates."""
        if name in self.names:
            return self.names.index(name)
        raise TypeError(f"the derivative of {self.op} is declared for {name!r}, which is no argument of {self.schema}")

    def formula(self, inputs: Sequence[int], function: Callable[..., Any]) -> Formula:
        needs = tuple(map(self.need, parameter_names(function)))
        return Formula(tuple(inputs), function, needs, any(need.source == "grad" for need in needs))

    def need(self, parameter: str) -> Need:
        if parameter in ("grad", "grads", "needs"):
            return Need(parameter, parameter)
        if parameter in self.names:
            return self.argument(parameter, parameter)
        if parameter == "result" or (parameter.startswith("result") and parameter.removeprefix("result").isdecimal()):
            return Need(parameter, "results", number_in(self.results, parameter))
        for fact in FACTS:
            stem = parameter.removesuffix(f"_{fact}")
            if stem != parameter and stem in self.names:
                position = self.names.index(stem)
                is_list = position in self.schema.tensor_list_positions
                return Need(parameter, "facts", number_in(self.facts, Fact(parameter, position, f"_{fact}", is_list)))
        if parameter.rstrip("_") in self.names:  # `from_` for an argument whose name is a word of Python's
            return self.argument(parameter, parameter.rstrip("_"))
        raise TypeError(f"a formula of {self.op} asks for {parameter!r}, which means nothing for {self.schema}")

    def argument(self, parameter: str, name: str) -> Need:
        position = self.names.index(name)
        if position in self.schema.tensor_positions or position in self.schema.tensor_list_positions:
            return Need(parameter, "kept", number_in(self.kept, parameter))
        return Need(parameter, "facts", number_in(self.facts, Fact(parameter, position, None, False)))

    # What the formulas need, once all are read --------------------------------------------------------------------

    def kept_arguments(self) -> tuple[KeptArgument, ...]:
        found = []
        for parameter in self.kept:
            position = self.names.index(parameter if parameter in self.names else parameter.rstrip("_"))
            found.append(
                KeptArgument(
                    parameter,
                    position,
                    position in self.schema.tensor_list_positions,
                    position in self.schema.mutable_positions,
                    self.users(parameter),
                )
            )
        return tuple(found)

    def kept_results(self) -> tuple[KeptResult, ...]:
        return tuple(
            KeptResult(parameter, int(parameter.removeprefix("result") or 0), self.users(parameter))
            for parameter in self.results
        )

    def users(self, parameter: str) -> tuple[int, ...]:
        """The differentiable arguments for whose gradients a parameter is needed; empty where it is for all."""
        asking = [formula for formula in self.formulas if any(need.parameter == parameter for need in formula.needs)]
        users = sorted({number for formula in asking for number in formula.inputs})
        return () if len(users) == len(self.inputs) else tuple(users)


class Rule(Protocol):
    """The part of an `OperatorDerivative` (derivative.py) that nodes read: its formulas and their needs, in tuples."""

    formulas: Any
    inputs: Any  # the positions of differentiable arguments
    kept: Any  # of KeptArgument
    results: Any  # of KeptResult
    lists: Any
    has_list: bool
    has_one_output: bool
    all_take_grad: bool
    for_complex: bool


def number_in(items: list[Any], item: Any) -> int:
    """The place of an item, which is put at the end of the list if it is not there."""
    if item not in items:
        items.append(item)
    return items.index(item)


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a plain function's parameters. (`inspect.signature` is ten times slower; there are 300 formulas.)"""
    code = getattr(function, "__code__", None)
    return code.co_varnames[: code.co_argcount] if code else tuple(inspect.signature(function).parameters)


@inline
def fact_of(fact: Fact, value: Any) -> Any:
    """The fact about an argument of a call."""
    if fact.attribute is None:
        return value
    if fact.of_list:
        return [tensor_fact(fact.attribute, item) for item in value]
    return tensor_fact(fact.attribute, value)


@inline
def tensor_fact(attribute: str, value: Any) -> Any:
    if not isinstance(value, TensorBase):
        return () if attribute == "_shape" else None  # a number stands where a tensor may
    return wants_gradient(value) if attribute == "_requires_grad" else getattr(value, attribute)


# Gradients of complex numbers: what follows from a formula that was written for real ones -----------------------------
#
# The gradient of a real loss L by a complex z = x + iy is dL/dx + i dL/dy: the direction of steepest ascent, and what
# an optimizer steps against. Let w = f(z) with f holomorphic, and f'(z) = a + ib. A step dz moves w by f'(z) dz, which
# are the real equations
#
#     du = a dx - b dy        dL/dx =  a dL/du + b dL/dv
#     dv = b dx + a dy        dL/dy = -b dL/du + a dL/dv
#
# or, in complex numbers again, grad_z = conj(f'(z)) grad_w = conj(f'(z) conj(grad_w)). So a formula for reals, here
# `grad * f'(z)`, serves complex numbers, too, if it is given the conjugate of the gradient and what it yields is
# conjugated. It may have any form that is linear in `grad`: a product of matrices, a sum over an index, a view.
# Conjugates are lazy views (kernels/ops/complex_numbers.py), and two of them cancel: along a chain of such functions
# nothing is conjugated but at its two ends.
#
# For functions that are not holomorphic (conj, the parts of a number, its angle) there is nothing to follow from: their
# formulas are written for complex numbers (`for_complex`), and so are those of linear algebra, as its books have them.
# They get the gradient as it is. A real input of a complex function takes the real part of its gradient: `fit` in
# node.py sees to that for all nodes.


@inline
def any_complex(gradients: Sequence[Any]) -> bool:
    """Whether some gradient is complex. A node with one output, as most have, has but one to look at."""
    first = gradients[0]
    return first._dtype.is_complex if first is not None and len(gradients) == 1 else one_complex(gradients)


def one_complex(gradients: Sequence[Any]) -> bool:
    return any(gradient is not None and gradient._dtype.is_complex for gradient in gradients)


def conjugates(gradients: Sequence[Any]) -> list[Any]:
    """The conjugates of gradients, as views; None stays None."""
    return [gradient if gradient is None else gradient.conj() for gradient in gradients]


def resolved(gradient: Any) -> Any:
    """A gradient with its conjugates worked out: what a user gets to see."""
    return gradient.resolve_conj() if gradient is not None and gradient._dtype.is_complex else gradient
