"""Forward mode out of reverse mode: backward is a linear map of the gradient, and its transpose is the derivative.

Backward of y = f(x) maps a gradient u of y to J^T u. Differentiating <J^T u, t> with respect to u gives J t: the
tangent of y where x moves along t. So the backward formulas are run under a level of their own, on seeds u whose values
do not matter, and differentiated once more. For complex numbers, too: a gradient is a vector of real and imaginary
parts, and the real inner product is what backward transposes with respect to.

Source: Jamie Townsend, "A new trick for calculating Jacobian vector products" (2017). Read next: forward.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch import OpOverload, TensorBase, call
from redispatch.dispatch.tensor import dtypes

from .conjugate import conjugates, one_complex
from .derivative import OperatorDerivative
from .formulas import Need, fact_of
from .grad_level import GradLevel
from .operator_node import spread


def transposed(op: OpOverload, rule: Any, stack: list[Any], tangents: list[Any], result: Any) -> Any:
    """The tangents of the results of a call, from those of its arguments; None for zero."""
    outputs = list(result) if isinstance(result, tuple | list) else [result]
    with GradLevel() as level:
        seeds = [level.leaf(zeros_like(one)) if is_differentiable(one) else None for one in outputs]
        if isinstance(rule, OperatorDerivative):
            gradients = gradients_by_formulas(rule, stack, tangents, outputs, seeds)
        else:
            gradients = gradients_by_calling(op, stack, tangents, seeds)
        pairs = [(g, t) for g, t in zip(flat(gradients), flat(tangents), strict=True) if is_tensor(g) and is_tensor(t)]
        leaves = [seed for seed in seeds if seed is not None]
        directions = [t.to(g._dtype).expand(g._shape) for g, t in pairs]
        found = iter(level.gradients([g for g, _ in pairs], leaves, directions))
        answers = [None if seed is None else next(found) for seed in seeds]
    return answers if isinstance(result, tuple | list) else answers[0]


def gradients_by_formulas(
    rule: OperatorDerivative, stack: list[Any], tangents: list[Any], outputs: Sequence[Any], seeds: Sequence[Any]
) -> list[Any]:
    """The gradients of the arguments that have tangents, parallel to the stack, as the declared formulas give them."""
    twice = not rule.for_complex and one_complex(seeds)  # a formula of real numbers, between two conjugates
    seeds = conjugates(seeds) if twice else seeds
    found: list[Any] = [[None] * len(value) if isinstance(value, list) else None for value in stack]
    for formula in rule.formulas:
        positions = [rule.inputs[number] for number in formula.inputs]
        needs = tuple(
            need
            for position in positions
            for need in (
                [t is not None for t in given(tangents, position, stack)]
                if position in rule.lists
                else [tangents[position] is not None]
            )
        )
        if not any(needs):
            continue
        value = formula.function(*[value_of(rule, need, stack, outputs, seeds, needs) for need in formula.needs])
        for position, one in zip(
            positions, (value,) if len(positions) == 1 else spread(value, len(positions)), strict=True
        ):
            if one is not None:
                found[position] = list(one) if position in rule.lists else one
    if not twice:
        return found
    return [conjugates(one) if isinstance(one, list) else conjugates([one])[0] for one in found]


def given(tangents: list[Any], position: int, stack: list[Any]) -> list[Any]:
    return tangents[position] if tangents[position] is not None else [None] * len(stack[position] or ())


def gradients_by_calling(op: OpOverload, stack: list[Any], tangents: list[Any], seeds: Sequence[Any]) -> list[Any]:
    """Returns gradients of a derivative that only a recorded call can give: calls the operator again, recorded."""
    with GradLevel() as level:
        leaves: list[Any] = []

        def leaf(value: Any, tangent: Any) -> Any:
            if isinstance(value, list):
                return [leaf(item, one) for item, one in zip(value, tangent or [None] * len(value), strict=True)]
            if tangent is None:
                return value
            leaves.append(level.leaf(value))
            return leaves[-1]

        arguments = [leaf(value, tangent) for value, tangent in zip(stack, tangents, strict=True)]
        result = call(op, arguments)
        outputs = list(result) if isinstance(result, tuple | list) else [result]
        found = iter(level.gradients(outputs, leaves, seeds))

    def placed(tangent: Any) -> Any:
        if isinstance(tangent, list):
            return [placed(item) for item in tangent]
        return None if tangent is None else next(found)

    return [placed(tangent) for tangent in tangents]


def flat(values: Sequence[Any]) -> list[Any]:
    return [one for value in values for one in (flat(value) if isinstance(value, list) else [value])]


def is_given(tangent: Any) -> bool:
    return any(map(is_given, tangent)) if isinstance(tangent, list) else tangent is not None


def is_tensor(value: Any) -> bool:
    return isinstance(value, TensorBase)


def is_differentiable(value: Any) -> bool:
    return is_tensor(value) and value._dtype.category >= dtypes.FLOATING


def zeros_like(tensor: Any) -> Any:
    return tensor.new_zeros(tensor._shape)


def value_of(
    rule: OperatorDerivative,
    need: Need,
    stack: list[Any],
    results: Sequence[Any],
    gradients: Sequence[Any],
    needs: tuple[bool, ...],
) -> Any:
    """Returns the value of one parameter of a formula, taken from the call itself instead of a node."""
    if need.source == "grad":
        return gradients[0]
    if need.source == "grads":
        return tuple(g for g, result in zip(gradients, results, strict=True) if result is not None)
    if need.source == "needs":
        return needs
    if need.source == "facts":
        fact = rule.facts[need.index]
        return fact_of(fact, stack[fact.argument])
    if need.source == "kept":
        return stack[rule.kept[need.index].argument]
    return results[rule.results[need.index].output]
