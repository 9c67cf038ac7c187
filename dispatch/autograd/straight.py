"""Straight-line code for the backward of one operator: the specialiser's work, where no operator is called.

What a node does when gradients reach it is one function for all operators (operator_node.py), which asks the operator's
rule at every step. All of that is known once the rule is. So a class of nodes gets a method of its own, made for its
rule, when some nodes of the class have run.

Read next: dispatch/specialiser/.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from redispatch.dispatch.config import ON_CHANGE, config
from redispatch.dispatch.specialiser.calls import Calls
from redispatch.dispatch.specialiser.evaluator import Path
from redispatch.dispatch.specialiser.residual import Block, Writer, compiled
from redispatch.dispatch.specialiser.specialise import BOXED_AT_FIRST, SpecialisationError, written
from redispatch.dispatch.specialiser.values import Code, Frame, StateCode, Static, Unsupported

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
