"""The partial evaluator: works a function out on values of which some are known, and writes down what is left.

It walks the function's own syntax tree. A statement whose outcome is known leaves nothing behind: an `if` on
a known condition is decided, a loop over known items is unrolled, a call of an `@inline` function is worked out in
its place, a `@pure` one with known arguments is asked at once. Everything else becomes a line of residual code.

Where a condition is unknown, the path forks: both branches are worked out to their ends, each with what it knows. Paths
that know the same come together again behind the `if`; paths that differ in something known (one has a node, the
other knows that there is none) stay apart, and each has its own continuation. So an early return of an inlined function
is no return of the whole: it is a value with which that path goes on.

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
from .annotations import FROZEN, code_of
from .reads import NOTHING, Reads, equal, is_plain, unchanged
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
NEXT_TURN = ("next", "continue")  # outcomes of a loop's body after which the loop goes on


class Path:
    """One way through the code: where it writes, and what it knows there."""

    __slots__ = ("block", "frames", "state", "facts", "loaded", "states")

    def __init__(self, block: Block, state: StateCode) -> None:
        self.block = block
        self.frames: list[Frame] = []
        self.state = state  # the dispatch state here
        self.facts: dict[str, Code] = {}  # name of a variable -> what conditions have told about it
        self.loaded = False  # whether a variable holds the state at entry
        self.states: dict[Any, str] = {}  # changes of it -> the variable that holds the state after them

    def fork(self, block: Block | None = None) -> Path:
        other = Path(block or self.block, self.state)
        # The frames of callers are shared until their turn comes again: see `returned`.
        other.frames = [*self.frames[:-1], self.frames[-1].copy()]
        other.facts, other.loaded, other.states = dict(self.facts), self.loaded, self.states
        return other

    def become(self, other: Path) -> None:
        """Goes on as `other`."""
        if other is not self:
            self.block, self.frames, self.state = other.block, other.frames, other.state
            self.facts, self.loaded, self.states = other.facts, other.loaded, other.states

    def mark(self) -> Path:
        """Returns the point to which `become` goes back, while only called functions are worked out meanwhile."""
        other = Path(self.block, self.state)
        other.frames, other.facts, other.loaded = list(self.frames), dict(self.facts), self.loaded
        other.states = self.states
        return other

    def returned(self, shared: bool) -> None:
        """Leaves a function. Where several paths do, each needs the caller's frame for itself."""
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


Outcome = tuple[Path, str, Any]  # (path, "next" | "return" | "break" | "continue", value)


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

    def run(self, statements: list[ast.stmt], path: Path) -> list[Outcome]:
        """Works statements out; every path that leads out of them, and how it leaves."""
        done: list[Outcome] = []
        paths = [path]
        for statement in statements:
            onward: list[Path] = []
            for one in paths:
                outcomes = self.statement(statement, one)
                done += [outcome for outcome in outcomes if outcome[1] != "next"]
                onward += [outcome[0] for outcome in outcomes if outcome[1] == "next"]
            paths = onward
            if len(paths) + len(done) > ROADS:
                raise Unsupported("too many ways through the code")
        return done + [(one, "next", None) for one in paths]

    def statement(self, node: ast.stmt, path: Path) -> list[Outcome]:
        handler = STATEMENTS.get(type(node))
        if handler is None:
            raise Unsupported(f"a {type(node).__name__} statement")
        return handler(self, node, path)

    def do_Pass(self, node: ast.Pass, path: Path) -> list[Outcome]:
        return [(path, "next", None)]

    def do_Break(self, node: ast.Break, path: Path) -> list[Outcome]:
        return [(path, "break", None)]

    def do_Continue(self, node: ast.Continue, path: Path) -> list[Outcome]:
        return [(path, "continue", None)]

    def do_Return(self, node: ast.Return, path: Path) -> list[Outcome]:
        if node.value is None:
            return [(path, "return", NONE)]
        return [(one, "return", value) for one, value in self.paths(node.value, path, "result")]

    def do_Expr(self, node: ast.Expr, path: Path) -> list[Outcome]:
        if isinstance(node.value, ast.Constant):
            return [(path, "next", None)]
        if isinstance(node.value, ast.GeneratorExp | ast.Yield | ast.YieldFrom | ast.Await):
            raise Unsupported(f"a {type(node.value).__name__} statement")
        return [(one, "next", None) for one, _ in self.paths(node.value, path, "")]

    def do_Raise(self, node: ast.Raise, path: Path) -> list[Outcome]:
        if node.exc is None:
            raise Unsupported("a bare raise")
        path.state = StateCode("", facts=path.state.facts)  # who makes the exception runs no operator
        raised = self.code(self.value(node.exc, path, "error"), path)
        cause = "" if node.cause is None else f" from {self.code(self.value(node.cause, path), path)}"
        path.block.add(f"raise {raised}{cause}")
        return []

    def do_Assign(self, node: ast.Assign, path: Path) -> list[Outcome]:
        if isinstance(node.value, ast.GeneratorExp):
            raise Unsupported("a generator that is kept")
        hint = next((t.id for t in node.targets if isinstance(t, ast.Name)), "value")
        plain = len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute | ast.Subscript)
        outcomes: list[Outcome] = []
        for one, value in self.paths(node.value, path, hint):
            if not plain:
                value = self.bound(value, one, hint)
            for target in node.targets:
                self.assign(target, value, one, at_once=plain and not isinstance(node.value, ast.Name))
            outcomes.append((one, "next", None))
        return self.together(outcomes, path)

    def do_AnnAssign(self, node: ast.AnnAssign, path: Path) -> list[Outcome]:
        if node.value is None:
            return [(path, "next", None)]
        return self.do_Assign(ast.Assign(targets=[node.target], value=node.value), path)

    def do_AugAssign(self, node: ast.AugAssign, path: Path) -> list[Outcome]:
        if isinstance(node.target, ast.Name):
            old, added = self.value(node.target, path), self.value(node.value, path)
            if isinstance(old, Items) and isinstance(added, Items) and isinstance(node.op, ast.Add):
                new = Items(old.kind, [*old.items, *added.items], made=old.made)
                if old.kind is list:
                    path.replace(old, new)
                else:
                    self.assign(node.target, new, path)
                return [(path, "next", None)]
            if foldable(old):
                load = ast.BinOp(left=ast.Name(node.target.id, ast.Load()), op=node.op, right=node.value)
                self.assign(node.target, self.bound(self.value(load, path), path, node.target.id), path)
                return [(path, "next", None)]
            variable, others = self.writer.local(node.target.id), self.code(added, path)
            path.block.add(f"{variable} = {self.code(old, path)}")
            path.block.add(f"{variable} {SYMBOL[type(node.op)]}= {others}")
            self.assign(node.target, Code(variable), path)
            return [(path, "next", None)]
        target, added = self.operands([node.target, node.value], path)
        symbol = SYMBOL[type(node.op)]
        path.block.add(f"{self.code(target, path)} {symbol}= {self.code(added, path)}")
        return [(path, "next", None)]

    def do_While(self, node: ast.While, path: Path) -> list[Outcome]:
        """A loop whose condition is known each time."""
        paths, done = [path], list[Outcome]()
        for _ in range(1000):
            onward: list[Path] = []
            for one in paths:
                truth = truth_of(self.value(node.test, one))
                if truth is None or node.orelse:
                    raise Unsupported("a while loop whose condition is unknown")
                if not truth:
                    done.append((one, "next", None))
                    continue
                onward += self.turn(node.body, one, done)
            paths = onward
            if not paths:
                return done
        raise Unsupported("a while loop without end")

    def do_FunctionDef(self, node: ast.FunctionDef, path: Path) -> list[Outcome]:
        path.frame.names[node.name] = Closure(node, path.frame)
        return [(path, "next", None)]

    def do_If(self, node: ast.If, path: Path) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for one, condition in self.paths(node.test, path, "condition"):
            truth = truth_of(condition)
            if truth is not None:
                outcomes += self.run(node.body if truth else node.orelse, one)
                continue
            yes, no = self.branches(condition, node.test, one)
            outcomes += self.together(self.run(node.body, yes) + self.run(node.orelse, no), one)
        return outcomes

    def branches(self, condition: Any, test: ast.expr | None, path: Path) -> tuple[Path, Path]:
        """The two paths behind an unknown condition, each with what it tells."""
        text = bare(self.code(condition, path))
        yes = path.fork(path.block.open(f"if {text}:"))
        no = path.fork(path.block.open("else:"))
        if test is not None:
            self.learn(test, True, yes)
            self.learn(test, False, no)
        return yes, no

    def learn(self, test: ast.expr, truth: bool, path: Path) -> None:
        """Notes what a condition tells about a variable: `x is None`, `isinstance(x, C)`, `not ...`, `a and b`."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.learn(test.operand, not truth, path)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) == truth:
            for part in test.values:
                self.learn(part, truth, path)
            return None
        match test:
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as how], comparators=[ast.Name() as to]
            ):
                same = isinstance(how, ast.Is) == truth
                other = self.value(to, path)
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as how], comparators=[ast.Constant(value=None)]
            ):
                same = isinstance(how, ast.Is) == truth
                other = NONE
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), ast.Name() as kind]):
                value, of = path.frame.names.get(name), self.value(kind, path)
                if isinstance(value, Code) and value.atom and isinstance(of, Static) and isinstance(of.value, type):
                    facts = path.facts.get(value.text, value)
                    if not truth:
                        path.facts[value.text] = replace(facts, never=(*facts.never, of.value))
                    elif facts.kind is None or not issubclass(facts.kind, of.value):
                        path.facts[value.text] = replace(facts, kind=of.value, exact=False)
                return None
            case _:
                return None
        value = path.frame.names.get(name)
        if not (isinstance(value, Code) and value.atom and isinstance(other, Static)):
            return None
        if same:
            path.frame.names[name] = other
        else:
            facts = path.facts.get(value.text, value)
            path.facts[value.text] = replace(facts, differs=(*facts.differs, other.value))
        return None

    def together(self, outcomes: list[Outcome], before: Path) -> list[Outcome]:
        """Joins the paths that go on behind an `if` and know the same; their unknown values get one name."""
        onward = [path for path, how, _ in outcomes if how == "next"]
        if len(onward) < 2:
            return outcomes
        joined = self.joined(onward, before)
        if joined is None:
            return outcomes
        return [outcome for outcome in outcomes if outcome[1] != "next"] + [(joined, "next", None)]

    def joined(self, paths: list[Path], before: Path, values: list[Any] | None = None) -> Path | None:
        """One path for several, writing where `before` did; None where they know different things."""
        first = paths[0]
        changed: list[tuple[int, str]] = []
        if any((path.state.text, path.state.steps) != (first.state.text, first.state.steps) for path in paths):
            return None
        for depth, frame in enumerate(first.frames):
            others = [path.frames[depth].names for path in paths]
            for name in frame.names:
                found = [names.get(name) for names in others]
                if any(value is not found[0] and not _same(value, found[0]) for value in found):
                    if not all(isinstance(value, Code) and not isinstance(value, StateCode) for value in found):
                        return None
                    changed.append((depth, name))
            if any(names.keys() != frame.names.keys() for names in others):
                return None
        path = first.fork(before.block)
        path.loaded = all(one.loaded for one in paths)
        path.states = {s: name for s, name in first.states.items() if all(r.states.get(s) == name for r in paths)}
        path.facts = {text: fact for text, fact in first.facts.items() if all(r.facts.get(text) is fact for r in paths)}
        for depth, name in changed:
            found = [one.frames[depth].names.pop(name) for one in paths]
            path.frames[depth].names.pop(name, None)
            held = {text for one in (*paths, path) for text in texts_in(one.frames)}
            free = [self.code(value, one) not in held for value, one in zip(found, paths, strict=True)]
            path.frames[depth].names[name] = self.one_name(found, paths, path, name, free)
        return path

    def one_name(self, values: list[Any], paths: list[Path], path: Path, hint: str, free: list[bool]) -> Code:
        """One name for what paths that come together know as different values: that of one of them, if it is `free`.

        A name is free which nothing else on any path refers to, so that the other paths may assign it, too.
        """
        texts = [self.code(value, one) for value, one in zip(values, paths, strict=True)]
        own = [one.block.last_assigned() == text for one, text in zip(paths, texts, strict=True)]
        usable = [
            (new, text)
            for text, can, new in zip(texts, free, own, strict=True)
            if can and text in self.writer.variables
        ]
        variable = (
            min(usable)[1] if usable else self.writer.variable(hint or "value")
        )  # the oldest, if there are several
        self.writer.idle.discard(variable)  # on some path it may be the result of a call
        for text, one, new, can in zip(texts, paths, own, free, strict=True):
            if text == variable:
                continue
            if new and can:
                one.block.rename_last(variable)
            else:
                one.block.add(f"{variable} = {text}")
        kinds = {kind_of(value) for value in values}
        path.facts.pop(variable, None)
        return Code(variable, kind=kinds.pop() if len(kinds) == 1 else None)

    def do_For(self, node: ast.For, path: Path) -> list[Outcome]:
        if node.orelse:
            raise Unsupported("for ... else")
        items = self.items(self.value(node.iter, path), path)
        paths = [path]
        done: list[Outcome] = []
        for item in items:
            onward: list[Path] = []
            for one in paths:
                self.assign(node.target, item, one)
                onward += self.turn(node.body, one, done)
            paths = onward
        return done + [(one, "next", None) for one in paths]

    def turn(self, body: list[ast.stmt], path: Path, done: list[Outcome]) -> list[Path]:
        """Runs the body of a loop once; returns the paths that go on to its next turn, and enters others in `done`."""
        outcomes = self.run(body, path)
        done += [(one, "next" if how == "break" else how, v) for one, how, v in outcomes if how not in NEXT_TURN]
        return [one for one, how, _ in outcomes if how in NEXT_TURN]

    def do_With(self, node: ast.With, path: Path) -> list[Outcome]:
        """`with within(state):` leaves nothing behind: a call inside that may ask the state is made in this one."""
        if len(node.items) != 1 or node.items[0].optional_vars is not None:
            raise Unsupported("this form of with")
        region = node.items[0].context_expr
        if not (isinstance(region, ast.Call) and known_function(self.value(region.func, path)) is within):
            raise Unsupported("a with statement that is not `with within(state)`")
        (entered,) = self.operands(region.args, path)
        former = path.state
        path.state = (
            entered
            if isinstance(entered, StateCode)
            else StateCode(self.code(entered, path), facts={"tracer": None}, steps=None)
        )
        outcomes = self.run(node.body, path)
        for leaving, _, _ in outcomes:
            leaving.state = former
        return outcomes

    def in_state(self, line: str, path: Path) -> None:
        """Writes a call that may ask the dispatch state, in the state that holds on this path."""
        if path.state.steps == ():  # that at entry
            path.block.add(line)
            return
        state = self.code(path.state, path)  # by name, so that regions in the same state are seen to be
        self.writer.constants["set_state"], self.writer.constants["reset_state"] = STATE.set, STATE.reset
        token = self.writer.variable("token")
        path.block.add(f"{token} = set_state({state})")
        inside = path.block.open("try:")
        inside.state = state
        inside.add(line)
        path.block.open("finally:").add(f"reset_state({token})")

    # Assignments --------------------------------------------------------------------------------------------------

    def bound(self, value: Any, path: Path, hint: str) -> Any:
        """The value under a name of its own, so that what happens later does not change it."""
        if isinstance(value, StateCode):
            return value  # states are immutable, and one that nobody asks for need not be made
        if isinstance(value, Code) and not value.atom:
            return self.named(value, path, hint)
        if isinstance(value, Items) and not value.text:
            items = [self.bound(item, path, hint) for item in value.items]
            if any(one is not other for one, other in zip(items, value.items, strict=True)):
                return Items(value.kind, items, keys=value.keys, made=value.made)
        return value

    def named(self, value: Code, path: Path, hint: str, calls: bool = False) -> Code:
        """An expression under a name; `calls` says that working it out may do something."""
        variable = self.writer.local(hint, value.text)
        if not calls and HARMLESS.fullmatch(value.text):
            self.writer.idle.add(variable)
        path.block.add(f"{variable} = {value.text}")
        return Code(variable, True, value.kind, value.exact, value.never, value.differs, value.truth)

    def assign(self, target: ast.expr, value: Any, path: Path, at_once: bool = False) -> None:
        """Gives a target its value. `at_once`: nothing else has that value, so it needs no name on the way."""
        match target:
            case ast.Name(id=name):
                path.frame.names[name] = value
            case ast.Attribute(value=owner, attr=name):
                text = self.code(value, path)
                owned = self.text(self.value(owner, path), path)
                if at_once and path.block.last_assigned() == text and isinstance(path.block.lines[-1], str):
                    path.block.rename_last(f"{owned}.{name}")
                else:
                    path.block.add(f"{owned}.{name} = {text}")
            case ast.Subscript(value=owner, slice=index):
                held, at = self.operands([owner, index], path)
                if isinstance(held, Items) and is_static(at) and held.kind is list and isinstance(known(at), int):
                    new = list(held.items)
                    new[known(at)] = value
                    path.replace(held, Items(list, new, made=held.made))
                else:
                    path.block.add(f"{self.text(held, path)}[{self.code(at, path)}] = {self.code(value, path)}")
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                self.unpack(targets, value, path)
            case _:
                raise Unsupported("this target of an assignment")

    def unpack(self, targets: list[ast.expr], value: Any, path: Path) -> None:
        star = next((i for i, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
        if isinstance(value, Code):
            if star is not None or not all(isinstance(target, ast.Name) for target in targets):
                raise Unsupported("unpacking something unknown")
            names = [self.writer.variable(target.id) for target in targets]  # type: ignore[attr-defined]  # Names
            path.block.add(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {value.text}")
            for target, name in zip(targets, names, strict=True):
                self.assign(target, Code(name), path)
            return
        items = self.items(value, path)
        if star is None:
            if len(items) != len(targets):
                raise Unsupported("unpacking a wrong number of values")
            for target, item in zip(targets, items, strict=True):
                self.assign(target, item, path)
            return
        behind = len(targets) - star - 1
        for target, item in zip(targets[:star], items[:star], strict=True):
            self.assign(target, item, path)
        middle = items[star : len(items) - behind]
        self.assign(targets[star].value, Items(list, middle), path)  # type: ignore[attr-defined]  # a Starred
        for target, item in zip(targets[star + 1 :], items[len(items) - behind :], strict=True):
            self.assign(target, item, path)

    # Expressions --------------------------------------------------------------------------------------------------

    def paths(self, node: ast.expr, path: Path, hint: str) -> list[tuple[Path, Any]]:
        """Works an expression out that may fork the path; each path with the value there."""
        if type(node) not in FORKING:
            return [(path, self.expression(node, path))]
        if isinstance(node, ast.Call):
            return self.call(node, path, hint)
        if isinstance(node, ast.IfExp):
            found: list[tuple[Path, Any]] = []
            for one, condition in self.paths(node.test, path, "condition"):
                truth = truth_of(condition)
                if truth is not None:
                    found += self.paths(node.body if truth else node.orelse, one, hint)
                else:
                    found += self.choice(condition, node, one, hint)
            return found
        assert isinstance(node, ast.BoolOp)
        return self.both(node, path, hint)

    def choice(self, condition: Any, node: ast.IfExp, path: Path, hint: str) -> list[tuple[Path, Any]]:
        """`a if condition else b`: one expression if both are no more than that, else two paths."""
        arms = self.tried(node.body, path, node.test, True), self.tried(node.orelse, path, node.test, False)
        if arms[0] is not None and arms[1] is not None:
            (yes, calls), (no, also_calls) = arms[0], arms[1]
            texts = [f"({one.text})" if " if " in one.text else one.text for one in (yes, no)]
            kind = yes.kind if yes.kind is no.kind else None
            test = bare(self.code(condition, path))
            test = f"({test})" if " if " in test else test
            whole = Code(f"{texts[0]} if {test} else {texts[1]}", atom=False, kind=kind)
            return [(path, self.named(whole, path, hint or "value", calls=True) if calls or also_calls else whole)]
        first, second = self.branches(condition, node.test, path)
        return self.paths(node.body, first, hint) + self.paths(node.orelse, second, hint)

    def tried(self, node: ast.expr, path: Path, test: ast.expr, truth: bool) -> tuple[Code, bool] | None:
        """An expression that can stand inside another one, and whether it is a call; None if it leaves statements."""
        trial = path.fork(Block())
        self.learn(test, truth, trial)
        saved = self.writer.snapshot(), set(self.asked)
        found = self.paths(node, trial, "value")
        if len(found) == 1 and found[0][0].block is trial.block and trial.loaded == path.loaded:
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

    def value(self, node: ast.expr, path: Path, hint: str = "value") -> Any:
        """Works an expression out on one path; where it forks inside, its paths come together again."""
        if type(node) not in FORKING:
            return self.expression(node, path)
        found = self.paths(node, path, hint)
        if len(found) == 1:
            path.become(found[0][0])
            return found[0][1]
        if not found:
            raise Unsupported("an expression that always raises")
        return self.meet(found, path, hint)

    def meet(self, found: list[tuple[Path, Any]], path: Path, hint: str) -> Any:
        """Joins the paths of an expression behind it; its value gets one name."""
        paths = [one for one, _ in found]
        joined = self.joined(paths, path)
        if joined is None:
            raise Unsupported("an expression whose paths know different things")
        values = [value for _, value in found]
        if not all(_same(value, values[0]) for value in values):
            held = {text for one in (*paths, joined) for text in texts_in(one.frames)}
            texts = [self.code(value, one) for one, value in found]
            free = [t not in held and one.block.last_assigned() == t for t, one in zip(texts, paths, strict=True)]
            values = [self.one_name(values, paths, joined, hint, free)]
        path.become(joined)
        return values[0]

    def expression(self, node: ast.expr, path: Path) -> Any:
        handler = EXPRESSIONS.get(type(node))
        if handler is None:
            raise Unsupported(f"a {type(node).__name__} expression")
        value = handler(self, node, path)
        return path.facts.get(value.text, value) if type(value) is Code and value.atom else value

    def operands(self, nodes: Iterable[ast.expr], path: Path) -> list[Any]:
        """Works expressions out from left to right. What one of them does must not change what those before it read."""
        values: list[Any] = []
        for node in nodes:
            block, mark = path.block, len(path.block.lines)
            values.append(self.value(node, path, hint_of(node)))
            if path.block is not block or len(block.lines) != mark:
                later = block.lines[mark:]
                del block.lines[mark:]
                at = path.block
                path.block = block
                values[:-1] = [self.bound(value, path, "value") for value in values[:-1]]
                path.block = at
                block.lines += later
        return values

    def on_Constant(self, node: ast.Constant, path: Path) -> Any:
        return Static(node.value)

    def on_Name(self, node: ast.Name, path: Path) -> Any:
        frame = path.frame
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

    def on_Attribute(self, node: ast.Attribute, path: Path) -> Any:
        return self.attribute(self.value(node.value, path), node.attr, path)

    def attribute(self, owner: Any, name: str, path: Path) -> Any:
        if isinstance(owner, Static):
            return self.static_attribute(owner, name)
        if isinstance(owner, StateCode):
            return self.state_attribute(owner, name, path)
        if isinstance(owner, Items):
            if not hasattr(owner.kind, name):
                raise Unsupported(f"{name} of a {owner.kind.__name__}, which has none")
            return Method(getattr(owner.kind, name), owner)
        if isinstance(owner, Code):
            kind = owner.kind
            found = self.reads.note(class_attribute(kind, name), "of the class", kind, name) if kind else None
            if isinstance(found, FunctionType):
                return Method(found, owner)
            return Code(f"{self.text(owner, path)}.{name}", atom=False)
        raise Unsupported(f"the attribute {name} of {owner}")

    def static_attribute(self, owner: Static, name: str) -> Any:
        held, reads = owner.value, self.reads
        if not hasattr(held, name):
            raise Unsupported(f"{name} of {held!r}, which has none")
        kept = type(held) in FROZEN or type(held) is FunctionType and getattr(held, "__frozen__", False)
        if kept or isinstance(held, ModuleType | type | Enum) or isinstance(held, IMMUTABLE):
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

    def state_attribute(self, owner: StateCode, name: str, path: Path) -> Any:
        if name in owner.facts and name != "modes":
            return Static(owner.facts[name])
        if name == "innermost" and owner.facts.get("level"):
            at_work = self.writer.constant(AT_WORK.get, "at_work")
            text = f"{at_work}()[{self.text(owner, path)}.inner]"
            return Code(text, atom=False, kind=owner.facts["level"], exact=True)
        if callable(getattr(State, name, None)):
            return Method(getattr(State, name), owner)
        truth = owner.facts.get("modes") if name == "modes" else None
        return Code(f"{self.text(owner, path)}.{name}", atom=False, truth=truth)

    def on_Tuple(self, node: ast.Tuple, path: Path) -> Any:
        return self.sequence(tuple, node.elts, path)

    def on_List(self, node: ast.List, path: Path) -> Any:
        made = self.sequence(list, node.elts, path)
        made.made = True
        return made

    def sequence(self, kind: type, nodes: list[ast.expr], path: Path) -> Any:
        plain = [node.value if isinstance(node, ast.Starred) else node for node in nodes]
        items: list[Any] = []
        for node, value in zip(nodes, self.operands(plain, path), strict=True):
            if not isinstance(node, ast.Starred):
                items.append(value)
            elif isinstance(value, Code):
                raise Unsupported("a star before something unknown")
            else:
                items += self.items(value, path)
        return Items(kind, items)

    def on_Dict(self, node: ast.Dict, path: Path) -> Any:
        keys = tuple(k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str))
        if len(keys) != len(node.keys):
            raise Unsupported("a dict whose keys are not written out")
        return Items(dict, self.operands(node.values, path), keys=keys)

    def on_ListComp(self, node: ast.ListComp, path: Path) -> Any:
        return Items(list, self.generated(node, node.elt, path), made=True)

    def on_GeneratorExp(self, node: ast.GeneratorExp, path: Path) -> Any:
        return Items(tuple, self.generated(node, node.elt, path))

    def on_DictComp(self, node: ast.DictComp, path: Path) -> Any:
        pair = ast.Tuple(elts=[node.key, node.value], ctx=ast.Load())
        pairs = self.generated(node, pair, path)
        keys = tuple(known(pair.items[0]) for pair in pairs)
        return Items(dict, [pair.items[1] for pair in pairs], keys=keys)

    def generated(self, node: Any, element: ast.expr, path: Path) -> list[Any]:
        """The items of a comprehension over known things, of which conditions are known, too."""
        outer = dict(path.frame.names)
        values: list[Any] = []

        def loop(generators: list[ast.comprehension]) -> None:
            if not generators:
                (value,) = self.operands([element], path)
                values.append(value)
                return
            generator, *rest = generators
            for item in self.items(self.value(generator.iter, path), path):
                self.assign(generator.target, item, path)
                truths = [truth_of(self.value(test, path)) for test in generator.ifs]
                if None in truths:
                    raise Unsupported("a comprehension with an unknown condition")
                if all(truths):
                    loop(rest)

        loop(node.generators)
        for name in names_in([generator.target for generator in node.generators]):
            path.frame.names.pop(name, None)
            if name in outer:
                path.frame.names[name] = outer[name]
        return values

    def items(self, value: Any, path: Path) -> list[Any]:
        """The items of something whose length is known."""
        if isinstance(value, Items):
            return [Static(key) for key in value.keys] if value.kind is dict else value.items
        if isinstance(value, Static):
            if isinstance(value.value, tuple | frozenset | range | MappingProxyType):
                if not (isinstance(value.value, range) or type(value.value) is tuple or is_plain(value.value)):
                    self.reads.fails(f"the items of a {type(value.value).__name__}")
                return [Static(item) for item in value.value]
        raise Unsupported("iterating over something of unknown length")

    def on_JoinedStr(self, node: ast.JoinedStr, path: Path) -> Any:
        parts: list[ast.expr] = []
        pieces: list[str] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                if part.format_spec is not None:
                    raise Unsupported("a format specification")
                parts.append(part.value)
        values = iter(self.operands(parts, path))
        for part in node.values:
            if isinstance(part, ast.Constant):
                pieces.append(repr(part.value))
            else:
                text = self.code(next(values), path)
                how = {-1: "format", ord("s"): "str", ord("r"): "repr", ord("a"): "ascii"}
                pieces.append(f"{how[part.conversion]}({text})")  # type: ignore[attr-defined]  # a FormattedValue
        return Code("(" + " + ".join(pieces or ["''"]) + ")", atom=False, kind=str)

    def on_Subscript(self, node: ast.Subscript, path: Path) -> Any:
        if isinstance(node.slice, ast.Slice):
            held, *bounds = self.operands(
                [node.value, *(b or ast.Constant(None) for b in (node.slice.lower, node.slice.upper, node.slice.step))],
                path,
            )
            if all(map(is_static, bounds)):
                cut = slice(*map(known, bounds))
                if isinstance(held, Items):
                    return Items(held.kind, held.items[cut])
                if isinstance(held, Static):
                    return Static(held.value[cut])
            texts = ["" if is_static(b) and known(b) is None else self.code(b, path) for b in bounds]
            body = ":".join(texts[:2]) + (f":{texts[2]}" if texts[2] else "")
            return Code(f"{self.text(held, path)}[{body}]", atom=False)
        held, index = self.operands([node.value, node.slice], path)
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
        return Code(f"{self.text(held, path)}[{self.code(index, path)}]", atom=False)

    def on_UnaryOp(self, node: ast.UnaryOp, path: Path) -> Any:
        value = self.value(node.operand, path)
        if isinstance(node.op, ast.Not):
            truth = truth_of(value)
            if truth is not None:
                return Static(not truth)
            return Code(f"not {self.text(value, path)}", atom=False, kind=bool)
        if foldable(value):
            self.folds([value])
            return Static(answered(FUNCTION[type(node.op)], known(value)))
        return Code(f"{SYMBOL[type(node.op)]}{self.text(value, path)}", atom=False)

    def on_BinOp(self, node: ast.BinOp, path: Path) -> Any:
        left, right = self.operands([node.left, node.right], path)
        if foldable(left) and foldable(right):
            self.folds([left, right])
            return Static(answered(FUNCTION[type(node.op)], known(left), known(right)))
        if isinstance(left, Items) and isinstance(right, Items | Static) and isinstance(node.op, ast.Add):
            return Items(left.kind, [*left.items, *self.items(right, path)])
        if isinstance(right, Items) and isinstance(left, Static) and isinstance(node.op, ast.Add):
            return Items(right.kind, [*self.items(left, path), *right.items])
        if isinstance(left, Items) and foldable(right) and isinstance(node.op, ast.Mult):
            return Items(left.kind, left.items * known(right))
        if isinstance(node.op, ast.BitOr) and is_static(left) and isinstance(known(left), type):
            raise Unsupported("a union of types that is not known")
        return Code(f"{self.text(left, path)} {SYMBOL[type(node.op)]} {self.text(right, path)}", atom=False)

    def folds(self, values: list[Any]) -> None:
        """Notes that an operator was worked out on known values: objects might answer it otherwise another time."""
        if not all(is_plain(known(value)) for value in values if is_static(value)):
            self.reads.fails("an operator on known objects")

    def on_Compare(self, node: ast.Compare, path: Path) -> Any:
        values = self.operands([node.left, *node.comparators], path)
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
            return Static(all(FUNCTION[type(op)](known(a), known(b)) for op, a, b in pairs))
        texts = [self.text(value, path) for value in values]
        rest = "".join(f" {SYMBOL[type(op)]} {text}" for op, text in zip(node.ops, texts[1:], strict=True))
        return Code(texts[0] + rest, atom=False, kind=bool)

    def both(self, node: ast.BoolOp, path: Path, hint: str) -> list[tuple[Path, Any]]:
        """`a and b`, `a or b`: one expression if working out `b` leaves no statements, else two paths."""
        first, *rest = node.values
        left = self.value(first, path)
        if not rest:
            return [(path, left)]
        others: ast.expr = rest[0] if len(rest) == 1 else ast.BoolOp(op=node.op, values=rest)
        is_and = isinstance(node.op, ast.And)
        truth = truth_of(left)
        if truth is not None:
            return self.paths(others, path, hint) if truth == is_and else [(path, left)]
        tried = self.tried(others, path, first, is_and)
        if tried is not None:
            right, calls = tried
            whole = self.combined(is_and, left, right, path)
            return [(path, self.named(whole, path, hint or "value", calls=True) if calls else whole)]
        left = self.bound(left, path, "condition")
        yes, no = self.branches(left, first, path)
        go_on, stop = (yes, no) if is_and else (no, yes)
        return self.paths(others, go_on, hint) + [(stop, Static(False) if left.kind is bool and is_and else left)]

    def combined(self, is_and: bool, left: Any, right: Any, path: Path) -> Any:
        kind = bool if getattr(left, "kind", None) is bool and getattr(right, "kind", None) is bool else None
        if right.text == repr(is_and) and left.kind is bool:
            return left  # `x and True`
        symbol = "and" if is_and else "or"
        parts = [self.code(value, path) for value in (left, right)]
        other = "or" if is_and else "and"
        parts = [f"({part})" if f" {other} " in part or " if " in part else part for part in parts]
        return Code(f"{parts[0]} {symbol} {parts[1]}", atom=False, kind=kind)

    def on_Lambda(self, node: ast.Lambda, path: Path) -> Any:
        return Closure(node, path.frame)

    def on_NamedExpr(self, node: ast.NamedExpr, path: Path) -> Any:
        value = self.bound(self.value(node.value, path, node.target.id), path, node.target.id)
        self.assign(node.target, value, path)
        return value

    def on_Starred(self, node: ast.Starred, path: Path) -> Any:
        raise Unsupported("a star here")

    # Values as text -----------------------------------------------------------------------------------------------

    def text(self, value: Any, path: Path) -> str:
        """The value as an operand of something: in parentheses where it needs them."""
        text = self.code(value, path)
        loose = isinstance(value, Code) and not value.atom and not _simple(text)
        return f"({text})" if loose or text.startswith("-") else text

    def code(self, value: Any, path: Path) -> str:
        """The value as an expression of the residual code."""
        if isinstance(value, StateCode) and value.steps is not None:
            return self.state_after(value.steps, path)
        if isinstance(value, Code):
            return value.text
        if isinstance(value, Static):
            return self.writer.constant(value.value, value.name)
        if isinstance(value, Items):
            return value.text or self.literal(value, path)
        if isinstance(value, Method):
            return f"{self.text(value.owner, path)}.{value.function.__name__}"
        raise Unsupported("a function made inside another one, as a value")

    def state_after(self, steps: tuple[Any, ...], path: Path) -> str:
        """The state at entry, after some changes; it is asked for when it is first needed."""
        if not path.loaded:
            path.loaded = True
            self.writer.constants["get_state"] = STATE.get
            path.block.add(f"{self.state_name} = get_state()")
        if not steps:
            return self.state_name
        if steps in path.states:
            return path.states[steps]
        variable = self.writer.local("inner")
        self.writer.idle.add(variable)
        path.states = {**path.states, steps: variable}
        if len(steps) == 1:
            (name, arguments), *_ = steps
            given = ", ".join(self.writer.constant(*a) for a in arguments)
            path.block.add(f"{variable} = {self.state_name}.{name}({given})")
        else:
            spelled = "_".join([name, *(hint for _, hint in arguments)][-1] for name, arguments in steps)
            known_steps = Steps(tuple((name, tuple(a for a, _ in arguments)) for name, arguments in steps))
            constant = self.writer.shared(steps, known_steps, spelled.lower())
            self.reads.note(self.writer.constants[constant], "steps", STATE, self.reads.written(known_steps.steps))
            state = self.state_name
            path.block.add(f"{variable} = {state}.memo.get({constant}) or {state}.after({constant})")
        return variable

    def literal(self, value: Items, path: Path) -> str:
        parts = [self.code(item, path) for item in value.items]
        if value.kind is dict:
            pairs = zip(value.keys, parts, strict=True)
            return "{" + ", ".join(f"{key!r}: {part}" for key, part in pairs) + "}"
        if value.kind is list:
            return f"[{', '.join(parts)}]"
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    # Calls: see calls.py ------------------------------------------------------------------------------------------

    def call(self, node: ast.Call, path: Path, hint: str) -> list[tuple[Path, Any]]:
        raise NotImplementedError  # calls.py

    def inlined(
        self, function: Callable[..., Any] | Closure, arguments: list[Any], keywords: dict[str, Any], path: Path
    ) -> list[tuple[Path, Any]]:
        """Works a function out in place; each path on which it returns, with what it returns there."""
        self.calls_left -= 1
        if self.depth > DEPTH or self.calls_left < 0:
            raise Unsupported("functions that call each other without end")
        definition, frame = opened(function, path.frames)
        if not isinstance(function, Closure):
            self.reads.opened(function, getattr(definition, "as_compiled", False))
        values = parameters(definition, function, arguments, keywords)
        former = path.state
        if getattr(function, "__leaf__", False):
            path.state = StateCode("", facts=former.facts)  # nothing in a leaf asks for what layers have set
        values = {name: self.bound(value, path, name) for name, value in values.items()}
        frame.names.update(values)
        self.depth += 1
        path.frames.append(frame)
        if isinstance(definition, ast.Lambda):
            found = self.paths(definition.body, path, "value")
        else:
            outcomes = self.run(definition.body, path)
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
FORKING = (ast.Call, ast.IfExp, ast.BoolOp)  # expressions that may fork the path


def _same(a: Any, b: Any) -> bool:
    """Whether two paths know the same of a value."""
    if a is b:
        return True
    if isinstance(a, Static) and isinstance(b, Static):
        return a.value is b.value or (isinstance(a.value, PLAIN) and equal(a.value, b.value))
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


def foldable(value: Any) -> bool:
    """Whether a value is known and will never change, so that what follows from it may be worked out now."""
    if isinstance(value, Items):
        return all(map(foldable, value.items))
    return isinstance(value, Static) and is_constant(value.value)


def answered(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function for its answer. One that raises does so when the code runs: perhaps it is never reached."""
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
# class of a node -> (how it is written, the function that works it out)
OPERATORS: dict[type, tuple[str, Callable[..., Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
    ast.BitOr: ("|", operator.or_),
    ast.BitAnd: ("&", operator.and_),
    ast.BitXor: ("^", operator.xor),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
    ast.MatMult: ("@", operator.matmul),
    ast.USub: ("-", operator.neg),
    ast.UAdd: ("+", operator.pos),
    ast.Invert: ("~", operator.invert),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
    ast.In: ("in", lambda a, b: a in b),
    ast.NotIn: ("not in", lambda a, b: a not in b),
}
SYMBOL = {node: symbol for node, (symbol, _) in OPERATORS.items()}
FUNCTION = {node: function for node, (_, function) in OPERATORS.items()}


def compared(how: ast.cmpop, left: Any, right: Any) -> bool | None:
    """Returns the outcome of a comparison, where that is known."""
    if isinstance(how, ast.Is | ast.IsNot) and isinstance(left, Items) and isinstance(right, Items):
        return (left is right) is isinstance(how, ast.Is)
    if is_static(left) and is_static(right):
        identity = isinstance(how, ast.Is | ast.IsNot)
        if identity and (isinstance(left, Items) or isinstance(right, Items)):
            return (left is right) is isinstance(how, ast.Is)
        if identity or (foldable(left) and foldable(right)):
            return answered(FUNCTION[type(how)], known(left), known(right))
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
    """Returns a name for the value of an expression: after what it reads."""
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
    code = code_of(function)
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
