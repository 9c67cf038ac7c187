"""Forward mode: the tangent of a result, from the tangents of the arguments.

    op.forward("linear")                                     the operator itself, applied to the tangents
    op.forward("multilinear")                                linear in each argument: the product rule
    op.forward(lambda arguments, tangents, result: ...)      where a formula is known

An operator that says nothing has a tangent all the same, if it has a derivative:

- A view: the same view of the tangent.
- A pointwise operator: its derivative is one number per element, so what the backward formula does to a gradient is
  what happens to a tangent.
- Anything else: backward is a linear map of the gradient, and its transpose is the derivative (`transposed`).

So what can be differentiated twice backward can be differentiated forward. A declared rule is there for speed: the
transpose of a transpose takes several calls where the rule takes one.

Read next: jvp_level.py, forward_ad.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch import DispatchKey, OpOverload, RuleTable, TensorBase, call
from redispatch.dispatch.layers.autograd import DERIVATIVES
from redispatch.dispatch.tensor import dtypes
from redispatch.dispatch.tensor.wrapped import is_batched

from .derivative import OperatorDerivative
from .formulas import Need, conjugates, fact_of, one_complex
from .grad_level import GradLevel
from .node import ZEROS
from .operator_node import spread

# Forward mode out of reverse mode: backward is a linear map of the gradient, and its transpose is the derivative ------
#
# Backward of y = f(x) maps a gradient u of y to J^T u. Differentiating <J^T u, t> with respect to u gives J t: the
# tangent of y where x moves along t. So the backward formulas are run under a level of their own, on seeds u whose
# values do not matter, and differentiated once more. For complex numbers, too: a gradient is a vector of real and
# imaginary parts, and the real inner product is what backward transposes with respect to.
#
# Source: Jamie Townsend, "A new trick for calculating Jacobian vector products" (2017),
# https://j-towns.github.io/2017/06/12/A-new-trick.html


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


LINEAR, MULTILINEAR, PARTS = "linear", "multilinear", "parts"

# What operators declare: LINEAR, MULTILINEAR, or a function of (arguments, tangents, result). Or PARTS: the tangents
# are those of the operators that its one kernel for every backend calls.
FORWARD: RuleTable[Any] = RuleTable("forward derivative")


def composite_kernel(op: OpOverload) -> Any:
    """The kernel of an operator that is written in other operators and is differentiated through these; or None."""
    kernels = op.registrations.get(DispatchKey.CompositeImplicitAutograd)
    return kernels[-1] if kernels and op not in DERIVATIVES else None


def parts_kernel(op: OpOverload) -> Any:
    """The kernel that forward mode runs, because the operators that it calls say what the tangents are; or None."""
    if FORWARD.get(op) == PARTS:
        return op.registrations[DispatchKey.CompositeExplicitAutograd][-1]
    return composite_kernel(op)


def tangent_of_call(op: OpOverload, stack: list[Any], tangents: list[Any], run: Callable[[], Any]) -> tuple[Any, Any]:
    """(result, its tangent) of a call that `run` makes; None stands for zero, a list of them for several results.

    `tangents` is parallel to the stack. A view's tangent is a view of the tangent; a written argument's tangent is
    returned like any other, and is for the caller to put in its place.
    Errors: NotImplementedError for an operator that has no derivative from which its tangent would follow.
    """
    rule = DERIVATIVES.get(op)
    if not any(map(is_given, tangents)) or is_outside_of_graphs(op):
        return run(), None
    if op.schema.is_view:
        return run(), call(op, linear_arguments(op, stack, tangents))
    known: Any = FORWARD.get(op)
    if rule is None and known is None:
        raise no_forward(op)
    written = op.schema.mutable_positions
    if written:  # what the formulas ask for is what there was before
        stack = [value.clone() if p in written and is_tensor(value) else value for p, value in enumerate(stack)]
    result = run()
    if known == LINEAR:
        tangent = moving(call(op, linear_arguments(op, stack, tangents)))
    elif known == MULTILINEAR:
        tangent = multilinear_tangent(op, stack, tangents)
    elif known is not None:
        tangent = known(stack, tangents, result)
    else:
        try:
            if isinstance(rule, OperatorDerivative) and is_one_number(rule, stack, result):
                tangent = pointwise_tangent(rule, stack, tangents, result)
            else:
                tangent = transposed(op, rule, stack, tangents, result)
        except NotImplementedError as problem:  # of a formula that nobody has worked out
            raise no_forward(op) from problem
    return result, own(tangent, flat(tangents))


def is_outside_of_graphs(op: OpOverload) -> bool:
    """Whether an operator such as `detach` hands on no gradient and no tangent."""
    rule = DERIVATIVES.get(op)
    return isinstance(rule, OperatorDerivative) and not rule.covered


def own(tangent: Any, given: list[Any]) -> Any:
    """The tangent of a new tensor in memory of its own: a write of the tensor is to change no other one's tangent."""
    if isinstance(tangent, list | tuple):
        return [own(one, given) for one in tangent]
    if tangent is None:
        return None
    shared = tangent._view is not None or any(
        tangent is one or (one is not None and tangent._array is one._array is not None) for one in given
    )
    return tangent.clone() if shared else tangent


def no_forward(op: OpOverload) -> NotImplementedError:
    return NotImplementedError(
        f"Trying to use forward AD with {op.schema.base_name} that does not support it because it has not been "
        "implemented yet: the operator has no derivative from which its tangent would follow. Register one."
    )


# Linear --------------------------------------------------------------------------------------------------------------


def linear_arguments(op: OpOverload, stack: list[Any], tangents: list[Any]) -> list[Any]:
    """The arguments with tangents in the place of all that can have one, zeros where there are none."""
    arguments = list(stack)
    for position in op.schema.tensor_positions:
        arguments[position] = filled(tangents[position], stack[position])
    for position in op.schema.mutable_positions:  # the tangent is written later, by whoever asked for its successor
        if not op.schema.is_view and is_differentiable(stack[position]):
            arguments[position] = to_write(tangents[position], stack[position], arguments)
    for position in op.schema.tensor_list_positions:
        if stack[position]:
            given = tangents[position] or [None] * len(stack[position])
            arguments[position] = [filled(t, x) for t, x in zip(given, stack[position], strict=True)]
    return arguments


def to_write(tangent: Any, like: Any, arguments: list[Any]) -> Any:
    """A copy of a tangent, zeros where there is none; a batch where an argument is one, which is written there."""
    copy = filled(None, like) if tangent is None else tangent.clone()
    for one in arguments:
        if is_tensor(one) and is_batched(one):
            copy = copy + one.new_zeros(like._shape, dtype=like._dtype, device=like._device)
    return copy


def filled(tangent: Any, like: Any) -> Any:
    """A tangent, or zeros where there is none, the same ones for a whole batch; for what can have none, the value."""
    if not is_differentiable(like):
        return like
    if tangent is None:
        return ZEROS()(like._shape, like._dtype, like._device) if is_batched(like) else zeros_like(like)
    return tangent


def moving(results: Any) -> Any:
    """The tangents among results: those of whole numbers are none."""
    if isinstance(results, list | tuple):
        return [moving(one) for one in results]
    return results if is_differentiable(results) else None


def multilinear_tangent(op: OpOverload, stack: list[Any], tangents: list[Any]) -> Any:
    """The product rule: the sum over the arguments of the call with a tangent in the place of that argument."""
    terms = [
        call(op, [*stack[:position], tangent, *stack[position + 1 :]])
        for position, tangent in enumerate(tangents)
        if tangent is not None
    ]
    return sum(terms[1:], terms[0])


# Pointwise -----------------------------------------------------------------------------------------------------------


def is_one_number(rule: OperatorDerivative, stack: list[Any], result: Any) -> bool:
    """Whether the derivative of an element is one number, which the formula multiplies by.

    So it is for real numbers. For complex ones the formula must be that of a holomorphic function (formulas.py).
    """
    kinds = {value._dtype.is_complex for value in (*stack, result) if is_differentiable(value)}
    return rule.pointwise and (kinds == {False} or (kinds == {True} and not rule.for_complex))


def pointwise_tangent(rule: OperatorDerivative, stack: list[Any], tangents: list[Any], result: Any) -> Any:
    """The sum over the arguments of derivative times tangent."""
    total = None
    for formula in rule.formulas:
        for place, number in enumerate(formula.inputs):
            tangent = tangents[rule.inputs[number]]
            if tangent is None:
                continue
            tangent = tangent.to(result._dtype).expand(result._shape)
            needs = tuple(i == place for i in range(len(formula.inputs)))
            part = formula.function(
                *[value_of(rule, need, stack, [result], [tangent], needs) for need in formula.needs]
            )
            if len(formula.inputs) > 1:
                part = None if part is None else part[place]
            if part is not None:
                part = part.to(result._dtype)
                total = part if total is None else total + part
    return total
