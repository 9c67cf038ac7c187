"""OperatorNode: the node of an operator call, whose backward the formulas of its rule are.

The call has left in the node what the formulas need (saving.py). Where somebody waits behind every edge, as in nearly
all passes, what is to be done is known for each class of nodes, and `straighten` makes code of it.

Read next: saving.py, dispatch/specialiser/.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from redispatch.dispatch.config import ON_CHANGE, config
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.specialiser.calls import Calls
from redispatch.dispatch.specialiser.evaluator import Path
from redispatch.dispatch.specialiser.residual import Block, Writer, compiled
from redispatch.dispatch.specialiser.specialise import BOXED_AT_FIRST, SpecialisationError, written
from redispatch.dispatch.specialiser.values import Code, Frame, StateCode, Static, Unsupported

from .formulas import Formula, Need, Rule, any_complex, conjugates, one_complex
from .node import Node
from .saved import FREED, UNSAVED, kept_result_value, kept_value

# Straight-line code for the backward of one operator: the specialiser's work, where no operator is called -------------
#
# What a node does when gradients reach it is one function for all operators, which asks the operator's rule at every
# step. All of that is known once the rule is. So a class of nodes gets a method of its own, made for its rule, when
# some nodes of the class have run.

# class of nodes -> name of a method -> how often it ran as it stands. Weak: the class goes with its operator.
_RUNS: WeakKeyDictionary[type, dict[str, int]] = WeakKeyDictionary()


def straighten(kind: type, name: str, method: Callable[..., Any], rule: Any) -> None:
    """Gives a class its own method of this name, if it is time: what `method(rule, self, ...)` is for this rule."""
    runs = _RUNS.setdefault(kind, {})
    runs[name] = runs.get(name, 0) + 1
    if not config.specialize or (config.specialize is True and runs[name] != BOXED_AT_FIRST):
        return
    try:
        setattr(kind, name, code_for(kind.__name__, name, method, rule))
    except Unsupported as problem:
        if config.specialize == "strict":
            raise SpecialisationError(f"{method.__qualname__} for {kind.__name__}: {problem}") from None


def code_for(kind: str, name: str, method: Callable[..., Any], rule: Any) -> Callable[..., Any]:
    """The method for one rule, its conditions decided and its loops unrolled."""
    writer = Writer()
    evaluator, body = Calls(writer), Block()
    path = Path(body, StateCode("", facts={}))
    path.frames.append(Frame({}, {}, {}))
    name = writer.variable(name)
    _, *parameters = inspect.signature(method).parameters.values()
    names = [writer.variable("self"), *(writer.variable(one.name) for one in parameters[1:])]
    given = [Static(rule, "rule"), *map(Code, names)]
    for one, value in evaluator.inlined(method, given, {}, path):
        one.block.add(f"return {evaluator.code(value, one)}")
    defaults = ["" if one.default is one.empty else f"={one.default!r}" for one in parameters]
    head = [f"# {rule}", f"def {name}({', '.join(map(str.__add__, names, defaults))}):"]
    source, used = written(head, body, writer)
    constants = {known: value for known, value in writer.constants.items() if known in used}
    code: Any = compiled(name, source, constants, f"<{kind}.{name}>")
    code.source = source
    return code


def forget(value: bool | str) -> None:
    """Takes back what was made under another setting of the switch."""
    for kind, runs in _RUNS.items():
        for name in runs.keys() & vars(kind).keys():
            delattr(kind, name)
    _RUNS.clear()


ON_CHANGE.append(forget)


class OperatorNode(Node):
    """The node of an operator call. Each operator has a subclass, with the slots that its rule fills."""

    __slots__ = ()
    __init__ = object.__init__  # `begin` fills the slots, which takes half as long
    rule: Rule
    kept: Any  # arguments that are tensors, each with its version; None once they were let go
    facts: Any  # everything else about the arguments
    results: Any  # as `kept`
    counts: tuple[int, ...]  # for each differentiable argument how many edges it has, where one of them is a list

    def name(self) -> str:
        kind = type(self).__name__
        return kind if kind[-1].isdigit() else f"torch::autograd::{kind}"  # so PyTorch calls those it has no rule for

    def apply(self, gradients: list[Any], wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        if self.rule.has_list:
            return some_gradients(self.rule, self, gradients, wanted)
        straighten(type(self), "apply", all_gradients, self.rule)
        return all_gradients(self.rule, self, gradients, wanted)

    def spend(self, gradients: list[Any]) -> Sequence[Any]:
        if self.rule.has_list:
            return super().spend(gradients)
        straighten(type(self), "spend", last_gradients, self.rule)
        return last_gradients(self.rule, self, gradients)


# Backward -------------------------------------------------------------------------------------------------------------


@inline
def all_gradients(rule: Rule, node: Any, gradients: list[Any], wanted: Sequence[bool] | None = None) -> Sequence[Any]:
    """`some_gradients` for a rule without lists, where somebody waits behind every edge: that comes to a few lines."""
    if wanted is not None:
        return some_gradients(rule, node, gradients, wanted)
    kept = node.kept if rule.kept else UNSAVED
    results = node.results if rule.results else UNSAVED
    if kept is None or results is None:  # let go: who asks for it?
        return some_gradients(rule, node, gradients)
    grad = gradients[0]
    if grad is None and (rule.all_take_grad or no_gradient(gradients)):
        return [None for _ in rule.inputs]
    if not rule.for_complex and (grad._dtype.is_complex if rule.has_one_output else one_complex(gradients)):
        return some_gradients(rule, node, gradients)
    edges = node.next_edges
    found: list[Any] = [None for _ in rule.inputs]
    for formula in rule.formulas:
        needs = tuple(len(rule.inputs) == 1 or edges[number] is not None for number in formula.inputs)
        runs = any(needs) and (rule.all_take_grad or not formula.takes_grad or grad is not None)
        value = (
            formula.function(*[argument(rule, node, need, gradients, needs, kept, results) for need in formula.needs])
            if runs
            else None
        )
        if len(formula.inputs) == 1:
            found[formula.inputs[0]] = value
        else:
            parts = spread(value, len(formula.inputs))
            for index, number in enumerate(formula.inputs):
                found[number] = parts[index]
    return found


@inline
def last_gradients(rule: Rule, node: Any, gradients: list[Any]) -> Sequence[Any]:
    """`all_gradients`; then what was kept for them is let go."""
    found = all_gradients(rule, node, gradients)
    if rule.kept:
        node.kept = None
    if rule.results:
        node.results = None
    return found


def some_gradients(rule: Rule, node: Any, gradients: list[Any], wanted: Sequence[bool] | None = None) -> Sequence[Any]:
    """Returns the gradient for each edge. `wanted` says which edges need one; None: every edge."""
    if not rule.for_complex and any_complex(gradients):
        return conjugates(formulas_gradients(rule, node, conjugates(gradients), wanted))
    return formulas_gradients(rule, node, gradients, wanted)


def formulas_gradients(rule: Rule, node: Any, gradients: list[Any], wanted: Sequence[bool] | None) -> Sequence[Any]:
    """Returns the gradients by the node's formulas."""
    edges = node.next_edges
    if wanted is None:
        wanted = [edge is not None for edge in edges]
    found: list[Any] = [None] * len(edges)
    if no_gradient(gradients):
        return found
    spans = spans_of(rule, node)
    for formula in rule.formulas:
        places = [place for number in formula.inputs for place in spans[number]]
        needs = tuple(wanted[place] for place in places)
        if any(needs) and not (formula.takes_grad and gradients[0] is None):
            kept = node.kept if rule.kept else UNSAVED
            results = node.results if rule.results else UNSAVED
            for need in formula.needs:
                if (kept is None and need.source == "kept") or (results is None and need.source == "results"):
                    raise RuntimeError(FREED)
            value = formula.function(
                *[argument(rule, node, need, gradients, needs, kept, results) for need in formula.needs]
            )
            put(rule, found, spans, formula, value)
    return found


def no_gradient(gradients: Sequence[Any]) -> bool:
    return all(gradient is None for gradient in gradients)


def spans_of(rule: Rule, node: Any) -> Sequence[Sequence[int]]:
    """For each differentiable argument, the places of its gradients among those that the node gives."""
    if not rule.has_list:
        return [(number,) for number in range(len(rule.inputs))]
    ends = list(itertools.accumulate(node.counts))
    return [range(end - count, end) for count, end in zip(node.counts, ends, strict=True)]


def put(rule: Rule, found: list[Any], spans: Sequence[Sequence[int]], formula: Formula, value: Any) -> None:
    """Puts what a formula gave in its places."""
    values = (value,) if len(formula.inputs) == 1 else spread(value, len(formula.inputs))
    for number, gradient in zip(formula.inputs, values, strict=True):
        if rule.inputs[number] not in rule.lists:
            found[spans[number][0]] = gradient
        elif gradient is not None:
            for place, item in zip(spans[number], gradient, strict=True):
                found[place] = item


def spread(value: Any, count: int) -> Sequence[Any]:
    """The gradients that a formula for several inputs gave; None stands for none at all."""
    if value is None:
        return (None,) * count
    if len(value) != count:
        raise ValueError(f"a formula for {count} inputs gave {len(value)} gradients")
    return value


# What formulas get ----------------------------------------------------------------------------------------------------


@inline
def argument(
    rule: Rule,
    node: Any,
    need: Need,
    gradients: Sequence[Any],
    needs: tuple[bool, ...],
    kept: Any,
    results: Any,
) -> Any:
    """Returns the value of one parameter of a formula, from the node's saved values. RuntimeError if written since."""
    if need.source == "grad":
        return gradients[0]
    if need.source == "grads":
        return tuple(gradients)
    if need.source == "needs":
        return needs
    if need.source == "facts":
        return node.facts[need.index]
    if need.source == "kept":
        return kept_value(node, kept[2 * need.index], kept[2 * need.index + 1])
    output = rule.results[need.index].output
    return kept_result_value(node, results[2 * need.index], results[2 * need.index + 1], output)
