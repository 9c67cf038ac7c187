"""The partial evaluator: works a function out on values of which some are known, and writes down what is left.

It walks the function's own syntax tree. A statement whose outcome is known leaves nothing behind: an `if` on
a known condition is decided, a loop over known items is unrolled, a call of an `@inline` function is worked out in
its place, a `@pure` one with known arguments is asked at once. Everything else becomes a line of residual code.

Where a condition is unknown, the road forks: both branches are worked out to their ends, each with what it knows. Roads
that know the same come together again behind the `if`; roads that differ in something known (one has a node, the
other knows that there is none) stay apart, and each has its own continuation. So an early return of an inlined function
is no return of the whole: it is a value with which that road goes on.

What it does not handle raises `Unsupported`, and the nearest layer runs boxed (specialise.py).
Read next: calls.py (what is done about each kind of call).
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from types import CellType, FunctionType, MappingProxyType, ModuleType
from typing import Any

from ..core.state import AT_WORK, STATE, State, Steps, within
from .marks import FROZEN
from .reads import NOTHING, Reads, is_plain, unchanged
from .residual import Block, Writer, constant_name
from .values import (
    NONE,
    VARIABLE,
    Closure,
    Code,
    Frame,
    Items,
    Method,
    StateCode,
    Static,
    Unsupported,
    class_attribute,
    is_constant,
    is_static,
    known,
    truth_of,
)

ROADS = 24  # how many may be open at once in one function
ROADS_OUT = 16  # on how many a function may return: a layer above others returns on each of theirs
DEPTH = 25  # of functions worked out inside one another
CALLS = 2000  # worked out for one piece of code


class Road:
    """One way through the code: where it writes, and what it knows there."""

    __slots__ = ("block", "frames", "state", "facts", "loaded", "states")

    def __init__(self, block: Block, state: StateCode) -> None:
        self.block = block
        self.frames: list[Frame] = []
        self.state = state  # the dispatch state here
        self.facts: dict[str, Code] = {}  # name of a variable -> what conditions have told about it
        self.loaded = False  # whether a variable holds the state at entry
        self.states: dict[Any, str] = {}  # changes of it -> the variable that holds the state after them

    def fork(self, block: Block | None = None) -> Road:
        other = Road(block or self.block, self.state)
        # The frames of callers are shared until their turn comes again: see `returned`.
        other.frames = [*self.frames[:-1], self.frames[-1].copy()]
        other.facts, other.loaded, other.states = dict(self.facts), self.loaded, self.states
        return other

    def become(self, other: Road) -> None:
        """Goes on as `other`."""
        if other is not self:
            self.block, self.frames, self.state = other.block, other.frames, other.state
            self.facts, self.loaded, self.states = other.facts, other.loaded, other.states

    def mark(self) -> Road:
        """What `become` needs to go back to here, as long as nothing but called functions are worked out meanwhile."""
        other = Road(self.block, self.state)
        other.frames, other.facts, other.loaded = list(self.frames), dict(self.facts), self.loaded
        other.states = self.states
        return other

    def returned(self, shared: bool) -> None:
        """Leaves a function. Where several roads do, each needs the caller's frame for itself."""
        self.frames.pop()
        if shared and self.frames:
            self.frames[-1] = self.frames[-1].copy()

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    def replace(self, old: Items, new: Any) -> None:
        """A list has changed: under all its names."""
        for depth, frame in enumerate(self.frames):
            names = {name: replaced(value, old, new) for name, value in frame.names.items()}
            if any(value is not frame.names[name] for name, value in names.items()):
                self.frames[depth] = replace(frame, names=names)


def replaced(value: Any, old: Items, new: Any) -> Any:
    """`value` with `new` in the place of `old`, inside tuples and lists, too."""
    if value is old:
        return new
    if isinstance(value, Items):
        items = [replaced(item, old, new) for item in value.items]
        if any(one is not other for one, other in zip(items, value.items, strict=True)):
            return Items(value.kind, items, keys=value.keys, made=value.made)
    return value


Outcome = tuple[Road, str, Any]  # (road, "next" | "return" | "break" | "continue", value)


class Evaluator:
    """Works out one residual function."""

    def __init__(self, writer: Writer, reads: Reads = NOTHING) -> None:
        self.writer = writer
        self.reads = reads  # what is read outside
        writer.named = lambda value: reads.note(constant_name(value), "name", value)
        self.depth = 0
        self.layers: set[Any] = set()  # boxed kernels: worked out if that is possible, and else called
        self.state_name = writer.variable("state")
        writer.taken |= {"get_state", "set_state", "reset_state"}
        self.calls_left = CALLS
        self.problems: list[str] = []  # why a layer runs boxed
        self.left: list[str] = []  # why a function that is marked `inline` is called all the same
        self.asked: set[Any] = set()  # the runtime keys whose registrations the code depends on

    # Statements ---------------------------------------------------------------------------------------------------

    def run(self, statements: list[ast.stmt], road: Road) -> list[Outcome]:
        """Works statements out; every road that leads out of them, and how it leaves."""
        done: list[Outcome] = []
        roads = [road]
        for statement in statements:
            onward: list[Road] = []
            for one in roads:
                outcomes = self.statement(statement, one)
                done += [outcome for outcome in outcomes if outcome[1] != "next"]
                onward += [outcome[0] for outcome in outcomes if outcome[1] == "next"]
            roads = onward
            if len(roads) + len(done) > ROADS:
                raise Unsupported("too many ways through the code")
        return done + [(one, "next", None) for one in roads]

    def statement(self, node: ast.stmt, road: Road) -> list[Outcome]:
        handler = STATEMENTS.get(type(node))
        if handler is None:
            raise Unsupported(f"a {type(node).__name__} statement")
        return handler(self, node, road)

    def do_Pass(self, node: ast.Pass, road: Road) -> list[Outcome]:
        return [(road, "next", None)]

    def do_Break(self, node: ast.Break, road: Road) -> list[Outcome]:
        return [(road, "break", None)]

    def do_Continue(self, node: ast.Continue, road: Road) -> list[Outcome]:
        return [(road, "continue", None)]

    def do_Return(self, node: ast.Return, road: Road) -> list[Outcome]:
        if node.value is None:
            return [(road, "return", NONE)]
        return [(one, "return", value) for one, value in self.roads(node.value, road, "result")]

    def do_Expr(self, node: ast.Expr, road: Road) -> list[Outcome]:
        if isinstance(node.value, ast.Constant):
            return [(road, "next", None)]
        if isinstance(node.value, ast.GeneratorExp | ast.Yield | ast.YieldFrom | ast.Await):
            raise Unsupported(f"a {type(node.value).__name__} statement")
        return [(one, "next", None) for one, _ in self.roads(node.value, road, "")]

    def do_Raise(self, node: ast.Raise, road: Road) -> list[Outcome]:
        if node.exc is None:
            raise Unsupported("a bare raise")
        road.state = StateCode("", facts=road.state.facts)  # who makes the exception runs no operator
        raised = self.code(self.value(node.exc, road, "error"), road)
        cause = "" if node.cause is None else f" from {self.code(self.value(node.cause, road), road)}"
        road.block.add(f"raise {raised}{cause}")
        return []

    def do_Assign(self, node: ast.Assign, road: Road) -> list[Outcome]:
        if isinstance(node.value, ast.GeneratorExp):
            raise Unsupported("a generator that is kept")
        hint = next((t.id for t in node.targets if isinstance(t, ast.Name)), "value")
        plain = len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute | ast.Subscript)
        outcomes: list[Outcome] = []
        for one, value in self.roads(node.value, road, hint):
            if not plain:
                value = self.bound(value, one, hint)
            for target in node.targets:
                self.assign(target, value, one, at_once=plain and not isinstance(node.value, ast.Name))
            outcomes.append((one, "next", None))
        return self.together(outcomes, road)

    def do_AnnAssign(self, node: ast.AnnAssign, road: Road) -> list[Outcome]:
        if node.value is None:
            return [(road, "next", None)]
        return self.do_Assign(ast.Assign(targets=[node.target], value=node.value), road)

    def do_AugAssign(self, node: ast.AugAssign, road: Road) -> list[Outcome]:
        if isinstance(node.target, ast.Name):
            old, added = self.value(node.target, road), self.value(node.value, road)
            if isinstance(old, Items) and isinstance(added, Items) and isinstance(node.op, ast.Add):
                new = Items(old.kind, [*old.items, *added.items], made=old.made)
                if old.kind is list:
                    road.replace(old, new)
                else:
                    self.assign(node.target, new, road)
                return [(road, "next", None)]
            if foldable(old):
                load = ast.BinOp(left=ast.Name(node.target.id, ast.Load()), op=node.op, right=node.value)
                self.assign(node.target, self.bound(self.value(load, road), road, node.target.id), road)
                return [(road, "next", None)]
            variable, others = self.writer.local(node.target.id), self.code(added, road)
            road.block.add(f"{variable} = {self.code(old, road)}")
            road.block.add(f"{variable} {SYMBOLS[type(node.op)]}= {others}")
            self.assign(node.target, Code(variable), road)
            return [(road, "next", None)]
        target, added = self.operands([node.target, node.value], road)
        symbol = SYMBOLS[type(node.op)]
        road.block.add(f"{self.code(target, road)} {symbol}= {self.code(added, road)}")
        return [(road, "next", None)]

    def do_While(self, node: ast.While, road: Road) -> list[Outcome]:
        """A loop whose condition is known each time."""
        roads, done = [road], []
        for _ in range(1000):
            onward: list[Road] = []
            for one in roads:
                truth = truth_of(self.value(node.test, one))
                if truth is None or node.orelse:
                    raise Unsupported("a while loop whose condition is unknown")
                if not truth:
                    done.append((one, "next", None))
                    continue
                for leaving, how, value in self.run(node.body, one):
                    if how in ("next", "continue"):
                        onward.append(leaving)
                    else:
                        done.append((leaving, "next" if how == "break" else how, value))
            roads = onward
            if not roads:
                return done
        raise Unsupported("a while loop without end")

    def do_FunctionDef(self, node: ast.FunctionDef, road: Road) -> list[Outcome]:
        road.frame.names[node.name] = Closure(node, road.frame)
        return [(road, "next", None)]

    def do_If(self, node: ast.If, road: Road) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for one, condition in self.roads(node.test, road, "condition"):
            truth = truth_of(condition)
            if truth is not None:
                outcomes += self.run(node.body if truth else node.orelse, one)
                continue
            yes, no = self.branches(condition, node.test, one)
            outcomes += self.together(self.run(node.body, yes) + self.run(node.orelse, no), one)
        return outcomes

    def branches(self, condition: Any, test: ast.expr | None, road: Road) -> tuple[Road, Road]:
        """The two roads behind an unknown condition, each with what it tells."""
        text = bare(self.code(condition, road))
        yes = road.fork(road.block.open(f"if {text}:"))
        no = road.fork(road.block.open("else:"))
        if test is not None:
            self.learn(test, True, yes)
            self.learn(test, False, no)
        return yes, no

    def learn(self, test: ast.expr, truth: bool, road: Road) -> None:
        """Notes what a condition tells about a variable: `x is None`, `isinstance(x, C)`, `not ...`, `a and b`."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.learn(test.operand, not truth, road)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) == truth:
            for part in test.values:
                self.learn(part, truth, road)
            return None
        match test:
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as how], comparators=[ast.Name() as to]
            ):
                same = isinstance(how, ast.Is) == truth
                other = self.value(to, road)
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as how], comparators=[ast.Constant(value=None)]
            ):
                same = isinstance(how, ast.Is) == truth
                other = NONE
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), ast.Name() as kind]):
                value, of = road.frame.names.get(name), self.value(kind, road)
                if isinstance(value, Code) and value.atom and isinstance(of, Static) and isinstance(of.value, type):
                    facts = road.facts.get(value.text, value)
                    if not truth:
                        road.facts[value.text] = replace(facts, never=(*facts.never, of.value))
                    elif facts.kind is None or not issubclass(facts.kind, of.value):
                        road.facts[value.text] = replace(facts, kind=of.value, exact=False)
                return None
            case _:
                return None
        value = road.frame.names.get(name)
        if not (isinstance(value, Code) and value.atom and isinstance(other, Static)):
            return None
        if same:
            road.frame.names[name] = other
        else:
            facts = road.facts.get(value.text, value)
            road.facts[value.text] = replace(facts, differs=(*facts.differs, other.value))
        return None

    def together(self, outcomes: list[Outcome], before: Road) -> list[Outcome]:
        """Joins the roads that go on behind an `if` and know the same; their unknown values get one name."""
        onward = [road for road, how, _ in outcomes if how == "next"]
        if len(onward) < 2:
            return outcomes
        joined = self.joined(onward, before)
        if joined is None:
            return outcomes
        return [outcome for outcome in outcomes if outcome[1] != "next"] + [(joined, "next", None)]

    def joined(self, roads: list[Road], before: Road, values: list[Any] | None = None) -> Road | None:
        """One road for several, writing where `before` did; None where they know different things."""
        first = roads[0]
        changed: list[tuple[int, str]] = []
        if any((road.state.text, road.state.steps) != (first.state.text, first.state.steps) for road in roads):
            return None
        for depth, frame in enumerate(first.frames):
            others = [road.frames[depth].names for road in roads]
            for name in frame.names:
                found = [names.get(name) for names in others]
                if any(value is not found[0] and not _same(value, found[0]) for value in found):
                    if not all(isinstance(value, Code) and not isinstance(value, StateCode) for value in found):
                        return None
                    changed.append((depth, name))
            if any(names.keys() != frame.names.keys() for names in others):
                return None
        road = first.fork(before.block)
        road.loaded = all(one.loaded for one in roads)
        road.states = {s: name for s, name in first.states.items() if all(r.states.get(s) == name for r in roads)}
        road.facts = {text: fact for text, fact in first.facts.items() if all(r.facts.get(text) is fact for r in roads)}
        for depth, name in changed:
            found = [one.frames[depth].names.pop(name) for one in roads]
            road.frames[depth].names.pop(name, None)
            held = {text for one in (*roads, road) for text in texts_in(one.frames)}
            free = [self.code(value, one) not in held for value, one in zip(found, roads, strict=True)]
            road.frames[depth].names[name] = self.one_name(found, roads, road, name, free)
        return road

    def one_name(self, values: list[Any], roads: list[Road], road: Road, hint: str, free: list[bool]) -> Code:
        """One name for what roads that come together know as different values: that of one of them, if it is `free`.

        A name is free which nothing else on any road refers to, so that the other roads may assign it, too.
        """
        texts = [self.code(value, one) for value, one in zip(values, roads, strict=True)]
        own = [one.block.last_assigned() == text for one, text in zip(roads, texts, strict=True)]
        usable = [
            (new, text)
            for text, can, new in zip(texts, free, own, strict=True)
            if can and text in self.writer.variables
        ]
        variable = (
            min(usable)[1] if usable else self.writer.variable(hint or "value")
        )  # the oldest, if there are several
        self.writer.idle.discard(variable)  # on some road it may be the result of a call
        for text, one, new, can in zip(texts, roads, own, free, strict=True):
            if text == variable:
                continue
            if new and can:
                one.block.rename_last(variable)
            else:
                one.block.add(f"{variable} = {text}")
        kinds = {kind_of(value) for value in values}
        road.facts.pop(variable, None)
        return Code(variable, kind=kinds.pop() if len(kinds) == 1 else None)

    def do_For(self, node: ast.For, road: Road) -> list[Outcome]:
        if node.orelse:
            raise Unsupported("for ... else")
        items = self.items(self.value(node.iter, road), road)
        roads, done = [road], []
        for item in items:
            onward: list[Road] = []
            for one in roads:
                self.assign(node.target, item, one)
                for leaving, how, value in self.run(node.body, one):
                    if how in ("next", "continue"):
                        onward.append(leaving)
                    else:
                        done.append((leaving, "next" if how == "break" else how, value))
            roads = onward
        return done + [(one, "next", None) for one in roads]

    def do_With(self, node: ast.With, road: Road) -> list[Outcome]:
        """`with within(state):` leaves nothing behind: a call inside that may ask the state is made in this one."""
        if len(node.items) != 1 or node.items[0].optional_vars is not None:
            raise Unsupported("this form of with")
        region = node.items[0].context_expr
        if not (isinstance(region, ast.Call) and known_function(self.value(region.func, road)) is within):
            raise Unsupported("a with statement that is not `with within(state)`")
        (entered,) = self.operands(region.args, road)
        former = road.state
        road.state = (
            entered
            if isinstance(entered, StateCode)
            else StateCode(self.code(entered, road), facts={"tracer": None}, steps=None)
        )
        outcomes = self.run(node.body, road)
        for leaving, _, _ in outcomes:
            leaving.state = former
        return outcomes

    def in_state(self, line: str, road: Road) -> None:
        """Writes a call that may ask the dispatch state, in the state that holds on this road."""
        if road.state.steps == ():  # that at entry
            road.block.add(line)
            return
        state = self.code(road.state, road)  # by name, so that regions in the same state are seen to be
        self.writer.constants["set_state"], self.writer.constants["reset_state"] = STATE.set, STATE.reset
        token = self.writer.variable("token")
        road.block.add(f"{token} = set_state({state})")
        inside = road.block.open("try:")
        inside.state = state
        inside.add(line)
        road.block.open("finally:").add(f"reset_state({token})")

    # Assignments --------------------------------------------------------------------------------------------------

    def bound(self, value: Any, road: Road, hint: str) -> Any:
        """The value under a name of its own, so that what happens later does not change it."""
        if isinstance(value, StateCode):
            return value  # states are immutable, and one that nobody asks for need not be made
        if isinstance(value, Code) and not value.atom:
            return self.named(value, road, hint)
        if isinstance(value, Items) and not value.text:
            items = [self.bound(item, road, hint) for item in value.items]
            if any(one is not other for one, other in zip(items, value.items, strict=True)):
                return Items(value.kind, items, keys=value.keys, made=value.made)
        return value

    def named(self, value: Code, road: Road, hint: str, calls: bool = False) -> Code:
        """An expression under a name; `calls` says that working it out may do something."""
        variable = self.writer.local(hint)
        if not calls and HARMLESS.fullmatch(value.text):
            self.writer.idle.add(variable)
        road.block.add(f"{variable} = {value.text}")
        return Code(variable, True, value.kind, value.exact, value.never, value.differs, value.truth)

    def assign(self, target: ast.expr, value: Any, road: Road, at_once: bool = False) -> None:
        """Gives a target its value. `at_once`: nothing else has that value, so it needs no name on the way."""
        match target:
            case ast.Name(id=name):
                road.frame.names[name] = value
            case ast.Attribute(value=owner, attr=name):
                text = self.code(value, road)
                owned = self.text(self.value(owner, road), road)
                if at_once and road.block.last_assigned() == text and isinstance(road.block.lines[-1], str):
                    road.block.rename_last(f"{owned}.{name}")
                else:
                    road.block.add(f"{owned}.{name} = {text}")
            case ast.Subscript(value=owner, slice=index):
                held, at = self.operands([owner, index], road)
                if isinstance(held, Items) and is_static(at) and held.kind is list and isinstance(known(at), int):
                    new = list(held.items)
                    new[known(at)] = value
                    road.replace(held, Items(list, new, made=held.made))
                else:
                    road.block.add(f"{self.text(held, road)}[{self.code(at, road)}] = {self.code(value, road)}")
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                self.unpack(targets, value, road)
            case _:
                raise Unsupported("this target of an assignment")

    def unpack(self, targets: list[ast.expr], value: Any, road: Road) -> None:
        star = next((i for i, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
        if isinstance(value, Code):
            if star is not None or not all(isinstance(target, ast.Name) for target in targets):
                raise Unsupported("unpacking something unknown")
            names = [self.writer.variable(target.id) for target in targets]  # type: ignore[attr-defined]  # Names
            road.block.add(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {value.text}")
            for target, name in zip(targets, names, strict=True):
                self.assign(target, Code(name), road)
            return
        items = self.items(value, road)
        if star is None:
            if len(items) != len(targets):
                raise Unsupported("unpacking a wrong number of values")
            for target, item in zip(targets, items, strict=True):
                self.assign(target, item, road)
            return
        behind = len(targets) - star - 1
        for target, item in zip(targets[:star], items[:star], strict=True):
            self.assign(target, item, road)
        middle = items[star : len(items) - behind]
        self.assign(targets[star].value, Items(list, middle), road)  # type: ignore[attr-defined]  # a Starred
        for target, item in zip(targets[star + 1 :], items[len(items) - behind :], strict=True):
            self.assign(target, item, road)

    # Expressions --------------------------------------------------------------------------------------------------

    def roads(self, node: ast.expr, road: Road, hint: str) -> list[tuple[Road, Any]]:
        """Works an expression out that may fork the road; each road with the value there."""
        if type(node) not in FORKING:
            return [(road, self.expression(node, road))]
        if isinstance(node, ast.Call):
            return self.call(node, road, hint)
        if isinstance(node, ast.IfExp):
            found: list[tuple[Road, Any]] = []
            for one, condition in self.roads(node.test, road, "condition"):
                truth = truth_of(condition)
                if truth is not None:
                    found += self.roads(node.body if truth else node.orelse, one, hint)
                else:
                    found += self.choice(condition, node, one, hint)
            return found
        assert isinstance(node, ast.BoolOp)
        return self.both(node, road, hint)

    def choice(self, condition: Any, node: ast.IfExp, road: Road, hint: str) -> list[tuple[Road, Any]]:
        """`a if condition else b`: one expression if both are no more than that, else two roads."""
        arms = self.tried(node.body, road, node.test, True), self.tried(node.orelse, road, node.test, False)
        if arms[0] is not None and arms[1] is not None:
            (yes, calls), (no, also_calls) = arms[0], arms[1]
            texts = [f"({one.text})" if " if " in one.text else one.text for one in (yes, no)]
            kind = yes.kind if yes.kind is no.kind else None
            test = bare(self.code(condition, road))
            test = f"({test})" if " if " in test else test
            whole = Code(f"{texts[0]} if {test} else {texts[1]}", atom=False, kind=kind)
            return [(road, self.named(whole, road, hint or "value", calls=True) if calls or also_calls else whole)]
        first, second = self.branches(condition, node.test, road)
        return self.roads(node.body, first, hint) + self.roads(node.orelse, second, hint)

    def tried(self, node: ast.expr, road: Road, test: ast.expr, truth: bool) -> tuple[Code, bool] | None:
        """An expression that can stand inside another one, and whether it is a call; None if it leaves statements."""
        trial = road.fork(Block())
        self.learn(test, truth, trial)
        saved = self.writer.snapshot(), set(self.asked)
        found = self.roads(node, trial, "value")
        if len(found) == 1 and found[0][0].block is trial.block and trial.loaded == road.loaded:
            value = found[0][1]
            lines = trial.block.lines
            if not isinstance(value, Method | Closure | StateCode):
                kind = value.kind if isinstance(value, Code) else None
                text = self.code(value, trial)
                if not lines:
                    return Code(text, atom=False, kind=kind), False
                if len(lines) == 1 and isinstance(lines[0], str) and lines[0].startswith(f"{text} = "):
                    return Code(lines[0].removeprefix(f"{text} = "), atom=False, kind=kind), True
        self.writer.restore(saved[0])
        self.asked = saved[1]
        return None

    def value(self, node: ast.expr, road: Road, hint: str = "value") -> Any:
        """Works an expression out on one road; where it forks inside, its roads come together again."""
        if type(node) not in FORKING:
            return self.expression(node, road)
        found = self.roads(node, road, hint)
        if len(found) == 1:
            road.become(found[0][0])
            return found[0][1]
        if not found:
            raise Unsupported("an expression that always raises")
        return self.meet(found, road, hint)

    def meet(self, found: list[tuple[Road, Any]], road: Road, hint: str) -> Any:
        """Joins the roads of an expression behind it; its value gets one name."""
        roads = [one for one, _ in found]
        joined = self.joined(roads, road)
        if joined is None:
            raise Unsupported("an expression whose roads know different things")
        values = [value for _, value in found]
        if not all(_same(value, values[0]) for value in values):
            held = {text for one in (*roads, joined) for text in texts_in(one.frames)}
            texts = [self.code(value, one) for one, value in found]
            free = [t not in held and one.block.last_assigned() == t for t, one in zip(texts, roads, strict=True)]
            values = [self.one_name(values, roads, joined, hint, free)]
        road.become(joined)
        return values[0]

    def expression(self, node: ast.expr, road: Road) -> Any:
        handler = EXPRESSIONS.get(type(node))
        if handler is None:
            raise Unsupported(f"a {type(node).__name__} expression")
        value = handler(self, node, road)
        return road.facts.get(value.text, value) if type(value) is Code and value.atom else value

    def operands(self, nodes: Iterable[ast.expr], road: Road) -> list[Any]:
        """Works expressions out from left to right. What one of them does must not change what those before it read."""
        values: list[Any] = []
        for node in nodes:
            block, mark = road.block, len(road.block.lines)
            values.append(self.value(node, road, hint_of(node)))
            if road.block is not block or len(block.lines) != mark:
                later = block.lines[mark:]
                del block.lines[mark:]
                at = road.block
                road.block = block
                values[:-1] = [self.bound(value, road, "value") for value in values[:-1]]
                road.block = at
                block.lines += later
        return values

    def on_Constant(self, node: ast.Constant, road: Road) -> Any:
        return Static(node.value)

    def on_Name(self, node: ast.Name, road: Road) -> Any:
        frame = road.frame
        if node.id in frame.names:
            return frame.names[node.id]
        if node.id in frame.locals:
            raise Unsupported(f"the variable {node.id}, which has no value yet")
        if node.id in frame.cells:
            return self.cell(frame.cells[node.id], node.id)
        if node.id in frame.globals:
            found = frame.globals[node.id]
            if isinstance(found, VARIABLE) and node.id != node.id.upper():  # assigned anew now and then, it seems
                self.reads.note(True, "varies", frame.globals, node.id)
                return Code(f"{self.writer.constant(frame.globals, 'names')}[{node.id!r}]", atom=False)
            return Static(self.reads.note(found, "item", frame.globals, node.id), node.id)
        self.reads.note(False, "in", frame.globals, node.id)
        if hasattr(builtins, node.id):
            return Static(self.reads.note(getattr(builtins, node.id), "attribute", builtins, node.id), node.id)
        raise Unsupported(f"the name {node.id}, which has no value here")

    def cell(self, cell: Any, name: str) -> Any:
        """A variable of the function around the one that is worked out, which may still be assigned."""
        if not isinstance(cell, CellType):
            return cell  # a value: that function is being worked out, too
        try:
            found = cell.cell_contents
        except ValueError:
            raise Unsupported(f"{name}, which has no value yet") from None
        if isinstance(found, VARIABLE):
            self.reads.note(True, "cell varies", cell)
            return Code(f"{self.writer.constant(cell, f'{name}_cell')}.cell_contents", atom=False)
        return Static(self.reads.note(found, "attribute", cell, "cell_contents"), name)

    def on_Attribute(self, node: ast.Attribute, road: Road) -> Any:
        return self.attribute(self.value(node.value, road), node.attr, road)

    def attribute(self, owner: Any, name: str, road: Road) -> Any:
        if isinstance(owner, Static):
            return self.static_attribute(owner, name)
        if isinstance(owner, StateCode):
            return self.state_attribute(owner, name, road)
        if isinstance(owner, Items):
            if not hasattr(owner.kind, name):
                raise Unsupported(f"{name} of a {owner.kind.__name__}, which has none")
            return Method(getattr(owner.kind, name), owner)
        if isinstance(owner, Code):
            kind = owner.kind
            found = self.reads.note(class_attribute(kind, name), "of the class", kind, name) if kind else None
            if isinstance(found, FunctionType):
                return Method(found, owner)
            return Code(f"{self.text(owner, road)}.{name}", atom=False)
        raise Unsupported(f"the attribute {name} of {owner}")

    def static_attribute(self, owner: Static, name: str) -> Any:
        held, reads = owner.value, self.reads
        if not hasattr(held, name):
            raise Unsupported(f"{name} of {held!r}, which has none")
        if isinstance(held, ModuleType | type | Enum) or type(held) in FROZEN or isinstance(held, IMMUTABLE):
            if type(held) in FROZEN:
                found = reads.of_class(held, name)
                if isinstance(found, FunctionType):
                    return Method(found, owner)
            return Static(reads.note(getattr(held, name), "attribute", held, name), name)
        if held is STATE and name == "get":
            return Static(held.get)
        found = reads.of_class(held, name)
        if callable(found):
            return Method(found, owner)
        reads.note(True, "has", held, name)
        return Code(f"{self.writer.constant(held, owner.name)}.{name}", atom=False)

    def state_attribute(self, owner: StateCode, name: str, road: Road) -> Any:
        if name in owner.facts and name != "modes":
            return Static(owner.facts[name])
        if name == "innermost" and owner.facts.get("level"):
            at_work = self.writer.constant(AT_WORK.get, "at_work")
            text = f"{at_work}()[{self.text(owner, road)}.inner]"
            return Code(text, atom=False, kind=owner.facts["level"], exact=True)
        if callable(getattr(State, name, None)):
            return Method(getattr(State, name), owner)
        truth = owner.facts.get("modes") if name == "modes" else None
        return Code(f"{self.text(owner, road)}.{name}", atom=False, truth=truth)

    def on_Tuple(self, node: ast.Tuple, road: Road) -> Any:
        return self.sequence(tuple, node.elts, road)

    def on_List(self, node: ast.List, road: Road) -> Any:
        made = self.sequence(list, node.elts, road)
        made.made = True
        return made

    def sequence(self, kind: type, nodes: list[ast.expr], road: Road) -> Any:
        plain = [node.value if isinstance(node, ast.Starred) else node for node in nodes]
        items: list[Any] = []
        for node, value in zip(nodes, self.operands(plain, road), strict=True):
            if not isinstance(node, ast.Starred):
                items.append(value)
            elif isinstance(value, Code):
                raise Unsupported("a star before something unknown")
            else:
                items += self.items(value, road)
        return Items(kind, items)

    def on_Dict(self, node: ast.Dict, road: Road) -> Any:
        keys = tuple(k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str))
        if len(keys) != len(node.keys):
            raise Unsupported("a dict whose keys are not written out")
        return Items(dict, self.operands(node.values, road), keys=keys)

    def on_ListComp(self, node: ast.ListComp, road: Road) -> Any:
        return Items(list, self.generated(node, node.elt, road), made=True)

    def on_GeneratorExp(self, node: ast.GeneratorExp, road: Road) -> Any:
        return Items(tuple, self.generated(node, node.elt, road))

    def on_DictComp(self, node: ast.DictComp, road: Road) -> Any:
        pair = ast.Tuple(elts=[node.key, node.value], ctx=ast.Load())
        pairs = self.generated(node, pair, road)
        keys = tuple(known(pair.items[0]) for pair in pairs)
        return Items(dict, [pair.items[1] for pair in pairs], keys=keys)

    def generated(self, node: Any, element: ast.expr, road: Road) -> list[Any]:
        """The items of a comprehension over known things, of which conditions are known, too."""
        outer = dict(road.frame.names)
        values: list[Any] = []

        def loop(generators: list[ast.comprehension]) -> None:
            if not generators:
                (value,) = self.operands([element], road)
                values.append(value)
                return
            generator, *rest = generators
            for item in self.items(self.value(generator.iter, road), road):
                self.assign(generator.target, item, road)
                truths = [truth_of(self.value(test, road)) for test in generator.ifs]
                if None in truths:
                    raise Unsupported("a comprehension with an unknown condition")
                if all(truths):
                    loop(rest)

        loop(node.generators)
        for name in names_in([generator.target for generator in node.generators]):
            road.frame.names.pop(name, None)
            if name in outer:
                road.frame.names[name] = outer[name]
        return values

    def items(self, value: Any, road: Road) -> list[Any]:
        """The items of something whose length is known."""
        if isinstance(value, Items):
            return [Static(key) for key in value.keys] if value.kind is dict else value.items
        if isinstance(value, Static):
            if isinstance(value.value, tuple | frozenset | range | MappingProxyType):
                if not (isinstance(value.value, range) or type(value.value) is tuple or is_plain(value.value)):
                    self.reads.fails(f"the items of a {type(value.value).__name__}")
                return [Static(item) for item in value.value]
        raise Unsupported("iterating over something of unknown length")

    def on_JoinedStr(self, node: ast.JoinedStr, road: Road) -> Any:
        parts: list[ast.expr] = []
        pieces: list[str] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                if part.format_spec is not None:
                    raise Unsupported("a format specification")
                parts.append(part.value)
        values = iter(self.operands(parts, road))
        for part in node.values:
            if isinstance(part, ast.Constant):
                pieces.append(repr(part.value))
            else:
                text = self.code(next(values), road)
                how = {-1: "format", ord("s"): "str", ord("r"): "repr", ord("a"): "ascii"}
                pieces.append(f"{how[part.conversion]}({text})")  # type: ignore[attr-defined]  # a FormattedValue
        return Code("(" + " + ".join(pieces or ["''"]) + ")", atom=False, kind=str)

    def on_Subscript(self, node: ast.Subscript, road: Road) -> Any:
        if isinstance(node.slice, ast.Slice):
            held, *bounds = self.operands(
                [node.value, *(b or ast.Constant(None) for b in (node.slice.lower, node.slice.upper, node.slice.step))],
                road,
            )
            if all(map(is_static, bounds)):
                cut = slice(*map(known, bounds))
                if isinstance(held, Items):
                    return Items(held.kind, held.items[cut])
                if isinstance(held, Static):
                    return Static(held.value[cut])
            texts = ["" if is_static(b) and known(b) is None else self.code(b, road) for b in bounds]
            body = ":".join(texts[:2]) + (f":{texts[2]}" if texts[2] else "")
            return Code(f"{self.text(held, road)}[{body}]", atom=False)
        held, index = self.operands([node.value, node.slice], road)
        if is_static(index):
            at = known(index)
            if isinstance(held, Items):
                if held.kind is dict and at not in held.keys:
                    raise Unsupported(f"the key {at!r}, which a dict does not have")
                return answered(operator.getitem, held.items, held.keys.index(at) if held.kind is dict else at)
            if isinstance(held, Static) and isinstance(held.value, tuple | str | MappingProxyType):
                found = answered(operator.getitem, held.value, at)
                if type(held.value) is MappingProxyType:  # the items of the others were noted with them
                    self.reads.note(found, "item", held.value, at)
                return Static(found)
        return Code(f"{self.text(held, road)}[{self.code(index, road)}]", atom=False)

    def on_UnaryOp(self, node: ast.UnaryOp, road: Road) -> Any:
        value = self.value(node.operand, road)
        if isinstance(node.op, ast.Not):
            truth = truth_of(value)
            if truth is not None:
                return Static(not truth)
            return Code(f"not {self.text(value, road)}", atom=False, kind=bool)
        if foldable(value):
            self.folds([value])
            return Static(answered(UNARY[type(node.op)], known(value)))
        return Code(f"{SIGNS[type(node.op)]}{self.text(value, road)}", atom=False)

    def on_BinOp(self, node: ast.BinOp, road: Road) -> Any:
        left, right = self.operands([node.left, node.right], road)
        if foldable(left) and foldable(right):
            self.folds([left, right])
            return Static(answered(BINARY[type(node.op)], known(left), known(right)))
        if isinstance(left, Items) and isinstance(right, Items | Static) and isinstance(node.op, ast.Add):
            return Items(left.kind, [*left.items, *self.items(right, road)])
        if isinstance(right, Items) and isinstance(left, Static) and isinstance(node.op, ast.Add):
            return Items(right.kind, [*self.items(left, road), *right.items])
        if isinstance(left, Items) and foldable(right) and isinstance(node.op, ast.Mult):
            return Items(left.kind, left.items * known(right))
        if isinstance(node.op, ast.BitOr) and is_static(left) and isinstance(known(left), type):
            raise Unsupported("a union of types that is not known")
        return Code(f"{self.text(left, road)} {SYMBOLS[type(node.op)]} {self.text(right, road)}", atom=False)

    def folds(self, values: list[Any]) -> None:
        """Notes that an operator was worked out on known values: objects might answer it otherwise another time."""
        if not all(is_plain(known(value)) for value in values if is_static(value)):
            self.reads.fails("an operator on known objects")

    def on_Compare(self, node: ast.Compare, road: Road) -> Any:
        values = self.operands([node.left, *node.comparators], road)
        if len(values) == 2:
            answer = compared(node.ops[0], *values)
            if answer is not None:
                if isinstance(node.ops[0], ast.Eq | ast.NotEq) and all(map(is_static, values)):
                    equal = answer is isinstance(node.ops[0], ast.Eq)
                    self.reads.decided(equal, "equal", *map(known, values))
                elif not isinstance(node.ops[0], ast.Is | ast.IsNot):
                    self.folds(values)
                return Static(answer)
        elif all(map(foldable, values)):
            self.folds(values)
            pairs = zip(node.ops, values[:-1], values[1:], strict=True)
            return Static(all(COMPARE[type(op)](known(a), known(b)) for op, a, b in pairs))
        texts = [self.text(value, road) for value in values]
        rest = "".join(f" {COMPARISONS[type(op)]} {text}" for op, text in zip(node.ops, texts[1:], strict=True))
        return Code(texts[0] + rest, atom=False, kind=bool)

    def both(self, node: ast.BoolOp, road: Road, hint: str) -> list[tuple[Road, Any]]:
        """`a and b`, `a or b`: one expression if working out `b` leaves no statements, else two roads."""
        first, *rest = node.values
        left = self.value(first, road)
        if not rest:
            return [(road, left)]
        others: ast.expr = rest[0] if len(rest) == 1 else ast.BoolOp(op=node.op, values=rest)
        is_and = isinstance(node.op, ast.And)
        truth = truth_of(left)
        if truth is not None:
            return self.roads(others, road, hint) if truth == is_and else [(road, left)]
        tried = self.tried(others, road, first, is_and)
        if tried is not None:
            right, calls = tried
            whole = self.combined(is_and, left, right, road)
            return [(road, self.named(whole, road, hint or "value", calls=True) if calls else whole)]
        left = self.bound(left, road, "condition")
        yes, no = self.branches(left, first, road)
        go_on, stop = (yes, no) if is_and else (no, yes)
        return self.roads(others, go_on, hint) + [(stop, Static(False) if left.kind is bool and is_and else left)]

    def combined(self, is_and: bool, left: Any, right: Any, road: Road) -> Any:
        kind = bool if getattr(left, "kind", None) is bool and getattr(right, "kind", None) is bool else None
        if right.text == repr(is_and) and left.kind is bool:
            return left  # `x and True`
        symbol = "and" if is_and else "or"
        parts = [self.code(value, road) for value in (left, right)]
        other = "or" if is_and else "and"
        parts = [f"({part})" if f" {other} " in part or " if " in part else part for part in parts]
        return Code(f"{parts[0]} {symbol} {parts[1]}", atom=False, kind=kind)

    def on_Lambda(self, node: ast.Lambda, road: Road) -> Any:
        return Closure(node, road.frame)

    def on_NamedExpr(self, node: ast.NamedExpr, road: Road) -> Any:
        value = self.bound(self.value(node.value, road, node.target.id), road, node.target.id)
        self.assign(node.target, value, road)
        return value

    def on_Starred(self, node: ast.Starred, road: Road) -> Any:
        raise Unsupported("a star here")

    # Values as text -----------------------------------------------------------------------------------------------

    def text(self, value: Any, road: Road) -> str:
        """The value as an operand of something: in parentheses where it needs them."""
        text = self.code(value, road)
        loose = isinstance(value, Code) and not value.atom and not _simple(text)
        return f"({text})" if loose or text.startswith("-") else text

    def code(self, value: Any, road: Road) -> str:
        """The value as an expression of the residual code."""
        if isinstance(value, StateCode) and value.steps is not None:
            return self.state_after(value.steps, road)
        if isinstance(value, Code):
            return value.text
        if isinstance(value, Static):
            return self.writer.constant(value.value, value.name)
        if isinstance(value, Items):
            return value.text or self.literal(value, road)
        if isinstance(value, Method):
            return f"{self.text(value.owner, road)}.{value.function.__name__}"
        raise Unsupported("a function made inside another one, as a value")

    def state_after(self, steps: tuple[Any, ...], road: Road) -> str:
        """The state at entry, after some changes; it is asked for when it is first needed."""
        if not road.loaded:
            road.loaded = True
            self.writer.constants["get_state"] = STATE.get
            road.block.add(f"{self.state_name} = get_state()")
        if not steps:
            return self.state_name
        if steps in road.states:
            return road.states[steps]
        variable = self.writer.local("inner")
        self.writer.idle.add(variable)
        road.states = {**road.states, steps: variable}
        if len(steps) == 1:
            (name, arguments), *_ = steps
            given = ", ".join(self.writer.constant(*a) for a in arguments)
            road.block.add(f"{variable} = {self.state_name}.{name}({given})")
        else:
            spelled = "_".join([name, *(hint for _, hint in arguments)][-1] for name, arguments in steps)
            known_steps = Steps(tuple((name, tuple(a for a, _ in arguments)) for name, arguments in steps))
            constant = self.writer.shared(steps, known_steps, spelled.lower())
            self.reads.note(self.writer.constants[constant], "steps", STATE, self.reads.written(known_steps.steps))
            state = self.state_name
            road.block.add(f"{variable} = {state}.memo.get({constant}) or {state}.after({constant})")
        return variable

    def literal(self, value: Items, road: Road) -> str:
        parts = [self.code(item, road) for item in value.items]
        if value.kind is dict:
            pairs = zip(value.keys, parts, strict=True)
            return "{" + ", ".join(f"{key!r}: {part}" for key, part in pairs) + "}"
        if value.kind is list:
            return f"[{', '.join(parts)}]"
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    # Calls: see calls.py ------------------------------------------------------------------------------------------

    def call(self, node: ast.Call, road: Road, hint: str) -> list[tuple[Road, Any]]:
        raise NotImplementedError  # calls.py

    def inlined(
        self, function: Callable[..., Any] | Closure, arguments: list[Any], keywords: dict[str, Any], road: Road
    ) -> list[tuple[Road, Any]]:
        """Works a function out in place; each road on which it returns, with what it returns there."""
        self.calls_left -= 1
        if self.depth > DEPTH or self.calls_left < 0:
            raise Unsupported("functions that call each other without end")
        definition, frame = opened(function, road.frames)
        if not isinstance(function, Closure):
            self.reads.opened(function, getattr(definition, "as_compiled", False))
        values = parameters(definition, function, arguments, keywords)
        former = road.state
        if getattr(function, "__leaf__", False):
            road.state = StateCode("", facts=former.facts)  # nothing in a leaf asks for what layers have set
        values = {name: self.bound(value, road, name) for name, value in values.items()}
        frame.names.update(values)
        self.depth += 1
        road.frames.append(frame)
        if isinstance(definition, ast.Lambda):
            found = self.roads(definition.body, road, "value")
        else:
            outcomes = self.run(definition.body, road)
            found = [(one, value if how == "return" else NONE) for one, how, value in outcomes]
        if len(found) > ROADS_OUT:
            raise Unsupported("too many ways out of a function")
        for one, _ in found:
            one.returned(len(found) > 1)
            one.state = former
        self.depth -= 1
        return found


def handlers(prefix: str, base: type) -> dict[type, Callable[..., Any]]:
    """The methods of the evaluator that work a kind of node out, by its class."""
    return {
        getattr(ast, name.removeprefix(prefix)): method
        for name, method in vars(Evaluator).items()
        if name.startswith(prefix) and issubclass(getattr(ast, name.removeprefix(prefix)), base)
    }


STATEMENTS = handlers("do_", ast.stmt)
EXPRESSIONS = handlers("on_", ast.expr)
FORKING = (ast.Call, ast.IfExp, ast.BoolOp)  # expressions that may fork the road


def _same(a: Any, b: Any) -> bool:
    """Whether two roads know the same of a value."""
    if a is b:
        return True
    if isinstance(a, Static) and isinstance(b, Static):
        return a.value is b.value or (isinstance(a.value, PLAIN) and alike(a.value, b.value))
    if isinstance(a, StateCode) or isinstance(b, StateCode):
        return type(a) is type(b) and (a.text, a.steps) == (b.text, b.steps)
    if isinstance(a, Code) and isinstance(b, Code):
        return a.text == b.text
    if isinstance(a, Items) and isinstance(b, Items) and (a.kind, a.keys, a.text) == (b.kind, b.keys, b.text):
        return len(a.items) == len(b.items) and all(map(_same, a.items, b.items))
    if isinstance(a, Method) and isinstance(b, Method):
        return a.function is b.function and _same(a.owner, b.owner)
    return isinstance(a, Closure) and isinstance(b, Closure) and a.node is b.node


def kind_of(value: Any) -> type | None:
    """The class of a value, as far as it is known."""
    return type(value.value) if isinstance(value, Static) else getattr(value, "kind", None)


def texts_in(frames: Iterable[Frame]) -> Iterator[str]:
    """The expressions to which the variables of functions refer, those inside lists, tuples and methods, too."""
    pending = [value for frame in frames for value in frame.names.values()]
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue  # a closure finds itself among the variables around it
        seen.add(id(value))
        if isinstance(value, Code):
            yield value.text
        elif isinstance(value, Items):
            pending += value.items
        elif isinstance(value, Method):
            pending.append(value.owner)
        elif isinstance(value, Closure):
            pending += value.frame.names.values()


def alike(a: Any, b: Any) -> bool:
    """Whether two constants are the same in every respect: 1 and True are not, nor are 0.0 and -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    return a == b and (not isinstance(a, float | complex) or str(a) == str(b))


def foldable(value: Any) -> bool:
    """Whether a value is known and will never change, so that what follows from it may be worked out now."""
    if isinstance(value, Items):
        return all(map(foldable, value.items))
    return isinstance(value, Static) and is_constant(value.value)


def answered(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function answers. One that raises does so when the code runs: perhaps it is never reached."""
    try:
        return function(*arguments)
    except Exception as problem:
        raise Unsupported(f"{function.__name__} of {arguments} raises {problem!r}") from None


def bare(condition: str) -> str:
    """A condition without the `bool(...)` around it, which makes no difference to an `if`."""
    inner = condition[5:-1]
    return inner if condition.startswith("bool(") and condition.endswith(")") and balanced(inner) else condition


def balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _simple(text: str) -> bool:
    """Whether an expression binds closer than any operator: attributes, subscripts and calls of names."""
    if "'" in text or '"' in text:
        return " " not in text
    depth = 0
    for character in text:
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == " " and depth == 0:
            return False
    return not text.startswith(("-", "~", "+"))


HARMLESS = re.compile(r"type\(\w+\)|\w+|\w+ is (not )?\w+")  # expressions that never raise
PLAIN = (int, float, complex, str, bytes, bool, type(None), tuple, frozenset)
IMMUTABLE = (int, float, complex, str, bytes, tuple, frozenset, range)
SYMBOLS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitOr: "|",
    ast.BitAnd: "&",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.MatMult: "@",
}
BINARY: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
UNARY: dict[type, Callable[..., Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
SIGNS = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}
COMPARISONS = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
COMPARE: dict[type, Callable[..., Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def compared(how: ast.cmpop, left: Any, right: Any) -> bool | None:
    """What a comparison gives, where that is known."""
    if isinstance(how, ast.Is | ast.IsNot) and isinstance(left, Items) and isinstance(right, Items):
        return (left is right) is isinstance(how, ast.Is)
    if is_static(left) and is_static(right):
        identity = isinstance(how, ast.Is | ast.IsNot)
        if identity and (isinstance(left, Items) or isinstance(right, Items)):
            return (left is right) is isinstance(how, ast.Is)
        if identity or (foldable(left) and foldable(right)):
            return answered(COMPARE[type(how)], known(left), known(right))
        return None
    if isinstance(how, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        differ = _differ(left, right, isinstance(how, ast.Is | ast.IsNot)) or _differ(
            right, left, isinstance(how, ast.Is | ast.IsNot)
        )
        if differ:
            return isinstance(how, ast.IsNot | ast.NotEq)
        if isinstance(how, ast.Is | ast.IsNot) and isinstance(left, Code) and isinstance(right, Code):
            if left.atom and right.atom and left.text == right.text:
                return isinstance(how, ast.Is)
    return None


def _differ(value: Any, other: Any, identity: bool) -> bool:
    """Whether an unknown value is known to be another one than `other`."""
    if not isinstance(other, Static):
        return False
    if isinstance(value, Items | Method | Closure):
        return other.value is None or (
            identity and not isinstance(other.value, value.kind if isinstance(value, Items) else ())
        )
    if not isinstance(value, Code):
        return False
    if any(known_value is other.value for known_value in value.differs):
        return True
    if identity and value.kind is not None and not isinstance(other.value, value.kind):
        return True
    if isinstance(other.value, value.never) if value.never else False:
        return True
    return any(
        type(one) is type(other.value) and isinstance(one, PLAIN) and one == other.value for one in value.differs
    )


def hint_of(node: ast.expr) -> str:
    """What to call the value of an expression: after what it reads."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name.lstrip("_") or "value"
        case ast.Call(func=function):
            return hint_of(function)
        case (
            ast.IfExp(body=first)
            | ast.BoolOp(values=[first, *_])
            | ast.Subscript(value=first)
            | ast.Starred(value=first)
        ):
            return hint_of(first)
    return "value"


def known_function(value: Any) -> Any:
    """The function that a value is, if that is known."""
    return value.value if isinstance(value, Static) else None


_OPENED: dict[Any, ast.FunctionDef] = {}  # by code object


def opened(function: Any, frames: Sequence[Frame]) -> tuple[ast.FunctionDef | ast.Lambda, Frame]:
    """The syntax tree of a function, and a frame that finds the names which are not its own."""
    if isinstance(function, Closure):
        outer = next((frame for frame in frames if frame.number == function.frame.number), function.frame)
        return function.node, Frame({}, {**outer.cells, **outer.names}, outer.globals)
    code = getattr(function, "__code__", None)
    if code is None:
        raise Unsupported(f"{function!r}, which has no source")
    definition = _OPENED.get(code)
    if definition is None:
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(code)))  # not of what a decorator has wrapped
        except (OSError, TypeError, SyntaxError) as problem:
            raise Unsupported(f"the source of {function!r} cannot be read: {problem}") from None
        found = tree.body[0]
        if not isinstance(found, ast.FunctionDef):
            raise Unsupported(f"{function!r} is not written as a plain function")
        definition = _OPENED[code] = found
        found.as_compiled = unchanged(code.co_filename)  # type: ignore[attr-defined]  # ours, on Python's node
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    return definition, Frame({}, cells, function.__globals__, locals=frozenset(code.co_varnames + code.co_cellvars))


def names_in(targets: Iterable[ast.expr]) -> Iterator[str]:
    """The variables that targets of assignments set."""
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id
        elif isinstance(target, ast.Tuple | ast.List):
            yield from names_in(target.elts)
        elif isinstance(target, ast.Starred):
            yield from names_in([target.value])


def parameters(
    definition: ast.FunctionDef | ast.Lambda, function: Any, arguments: list[Any], keywords: dict[str, Any]
) -> dict[str, Any]:
    """The values of a function's parameters."""
    spec = definition.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    values: dict[str, Any] = {}
    if len(arguments) > len(names) and spec.vararg is None:
        raise Unsupported("a call with too many arguments")
    values.update(zip(names, arguments, strict=False))
    if spec.vararg is not None:
        values[spec.vararg.arg] = Items(tuple, list(arguments[len(names) :]))
    only = [a.arg for a in spec.kwonlyargs]
    extra = {name: value for name, value in keywords.items() if name not in names and name not in only}
    if extra and spec.kwarg is None:
        raise Unsupported("a call with an unknown keyword")
    if spec.kwarg is not None:
        values[spec.kwarg.arg] = Items(dict, list(extra.values()), keys=tuple(extra))
    values.update({name: value for name, value in keywords.items() if name not in extra})
    if not isinstance(function, Closure):
        given = function.__defaults__ or ()
        defaults = dict(zip(names[len(names) - len(given) :], given, strict=True)) | (function.__kwdefaults__ or {})
        for name, default in defaults.items():
            values.setdefault(name, Static(default))
    missing = [name for name in (*names, *only) if name not in values]
    if missing:
        raise Unsupported(f"a call without {missing[0]}")
    return values
