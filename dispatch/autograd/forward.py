"""Forward mode: the tangent of a result, from the tangents of the arguments.

    op.forward("linear")                                     the operator itself, applied to the tangents
    op.forward("multilinear")                                linear in each argument: the product rule
    op.forward(lambda arguments, tangents, result: ...)      where a formula is known

An operator that says nothing has a tangent all the same, if it has a derivative:

- A view: the same view of the tangent.
- A pointwise operator: its derivative is one number per element, so what the backward formula does to a gradient is
  what happens to a tangent.
- Anything else: backward is a linear map of the gradient, u -> J^T u; and the transpose of that map is J. So the
  backward formulas are run under a level of their own, and differentiated with respect to u. (The trick is folklore;
  https://j-towns.github.io/2017/06/12/A-new-trick.html tells it.)

So what can be differentiated twice backward can be differentiated forward. A declared rule is there for speed: the
transpose of a transpose takes several calls where the rule takes one.

Read next: transposition.py, jvp_level.py, forward_ad.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import DispatchKey, OpOverload, RuleTable, call
from redispatch.dispatch.layers.autograd import DERIVATIVES
from redispatch.dispatch.tensor.wrapped import is_batched

from .derivative import OperatorDerivative
from .needs import ZEROS
from .transposition import flat, is_differentiable, is_given, is_tensor, transposed, value_of, zeros_like

LINEAR, MULTILINEAR = "linear", "multilinear"

# What operators declare: LINEAR, MULTILINEAR, or a function of (arguments, tangents, result)
FORWARD: RuleTable[Any] = RuleTable("forward derivative")


def composite_kernel(op: OpOverload) -> Any:
    """The kernel of an operator that is written in other operators and is differentiated through these; or None."""
    kernels = op.registrations.get(DispatchKey.CompositeImplicitAutograd)
    return kernels[-1] if kernels and op not in DERIVATIVES else None


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
    elif isinstance(rule, OperatorDerivative) and is_one_number(rule, stack, result):
        tangent = pointwise_tangent(rule, stack, tangents, result)
    else:
        tangent = transposed(op, rule, stack, tangents, result)
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

    So it is for real numbers. For complex ones the formula must be that of a holomorphic function (conjugate.py).
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
