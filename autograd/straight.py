"""Straight-line code for the backward of one operator: the specialiser's work, where no operator is called.

What a node does when gradients reach it is one function for all operators (operator_node.py), which asks the operator's
rule at every step. All of that is known once the rule is. So a class of nodes gets a method of its own, made for its
rule, when some nodes of the class have run.

Read next: dispatch/specialiser/.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from redispatch.dispatch.config import ON_CHANGE, config
from redispatch.dispatch.specialiser.calls import Calls
from redispatch.dispatch.specialiser.evaluator import Road
from redispatch.dispatch.specialiser.residual import Block, Writer, compiled
from redispatch.dispatch.specialiser.specialise import BOXED_AT_FIRST, SpecialisationError, written
from redispatch.dispatch.specialiser.values import Code, Frame, StateCode, Static, Unsupported

# How often nodes of a class ran without such a method. Weak: the class goes with its operator.
_RUNS: WeakKeyDictionary[type, int] = WeakKeyDictionary()


def straighten(kind: type, method: Callable[..., Any], rule: Any) -> None:
    """Gives a class its own `apply`, if it is time: what `method(rule, self, gradients, wanted)` is for this rule."""
    _RUNS[kind] = _RUNS.get(kind, 0) + 1
    if not config.specialize or (config.specialize is True and _RUNS[kind] != BOXED_AT_FIRST):
        return
    try:
        kind.apply = code_for(kind.__name__, method, rule)  # type: ignore[attr-defined]  # a class of nodes
    except Unsupported as problem:
        if config.specialize == "strict":
            raise SpecialisationError(f"{method.__qualname__} for {kind.__name__}: {problem}") from None


def code_for(name: str, method: Callable[..., Any], rule: Any) -> Callable[..., Any]:
    """The method for one rule, its conditions decided and its loops unrolled."""
    writer = Writer()
    evaluator, body = Calls(writer), Block()
    road = Road(body, StateCode("", facts={}))
    road.frames.append(Frame({}, {}, {}))
    name = writer.variable(name)
    parameters = [writer.variable(parameter) for parameter in ("self", "gradients", "wanted")]
    for one, value in evaluator.inlined(method, [Static(rule, "rule"), *map(Code, parameters)], {}, road):
        one.block.add(f"return {evaluator.code(value, one)}")
    head = [f"# {rule}", f"def {name}({', '.join(parameters)}=None):"]
    source, used = written(head, body, writer)
    constants = {known: value for known, value in writer.constants.items() if known in used}
    code: Any = compiled(name, source, constants, f"<{name}.apply>")
    code.source = source
    return code


def forget(value: bool | str) -> None:
    """Takes back what was made under another setting of the switch."""
    for kind in list(_RUNS):
        if "apply" in vars(kind):
            del kind.apply  # type: ignore[attr-defined]  # see `straighten`
    _RUNS.clear()


ON_CHANGE.append(forget)
