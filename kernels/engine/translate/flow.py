"""Where a function goes: blocks and jumps, and what names stand for on each way.

A name stands for a value with a type, which is known at each place. Where ways join, a name that has two values gets a
`phi`, of the type of both (`promote.unified`), when it is asked for: each way converts its value before it jumps.
Read next: `expressions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .instructions import NOTHING, UNDEFINED, VARIES, Unknown, Value
from .promote import Type, leaves, llvm, parts, unified
from .writer import Writer


class Way(NamedTuple):
    """A jump: from which block, what names stand for there, and lines in front of it, to which some can be added."""

    label: str
    names: dict[str, Any]
    lines: list[Any]


class Join:
    """A place to which ways lead, and the values that names have there."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.ways: list[Way] = []
        self.head: list[Any] = []  # lines at its beginning
        self.found: dict[str, Value] = {}


class Flow(Writer):
    """Writes a function's blocks."""

    def __init__(self, fast: str, require: Callable[[str, str], None]) -> None:
        super().__init__(fast, require)
        self.names: dict[str, Any] = {}  # what each stands for: a value, or the place of joining where it is decided
        self.label = "0"  # of the block that is being written
        self.alive = True  # whether anything leads here
        self.loops: list[tuple[Join, Join]] = []  # where `continue` and `break` lead to

    def join(self) -> Join:
        """A new place where ways may join."""
        self.count += 1
        return Join(f"b{self.count}")

    def leave(self, to: Join) -> None:
        """Jumps."""
        if self.alive:
            lines: list[Any] = []
            self.lines += [lines, f"  br label %{to.label}"]
            to.ways.append(Way(self.label, self.names, lines))
            self.alive = False

    def branch(self, condition: Value, yes: Join, no: Join) -> None:
        """Jumps by a condition."""
        if condition.known is not VARIES:
            return self.leave(yes if condition.known else no)
        lines: list[Any] = []
        self.lines += [lines, f"  br i1 {condition.text}, label %{yes.label}, label %{no.label}"]
        for to in (yes, no):
            to.ways.append(Way(self.label, self.names, lines))
        self.alive = False

    def enter(self, place: Join) -> None:
        """Goes on where ways join, if any leads there."""
        self.alive = bool(place.ways)
        if not self.alive:
            return
        self.lines += [f"{place.label}:", place.head]
        self.label = place.label
        known = [way.names for way in place.ways]
        self.names = {
            name: value if all(names.get(name) is value for names in known) else place
            for names in known for name, value in names.items()
        }  # fmt: skip

    def named(self, name: str, among: dict[str, Any] | None = None) -> Value:
        """What a name stands for."""
        names = self.names if among is None else among
        found = names[name]
        if isinstance(found, Join):
            found = names[name] = self.joined(found, name)
        return found

    def joined(self, place: Join, name: str) -> Value:
        """What a name stands for where ways join: each converts its value to one type."""
        if name not in place.found:
            values = [self.named(name, way.names) if name in way.names else None for way in place.ways]
            type: Type = None
            for value in values:
                if value is not None:
                    type = value.type if type is None else unified(type, value.type)
                    if type is None:
                        raise Unknown(f"{name or 'a result'} of several types")
            sources = [(way, value) for way, value in zip(place.ways, values, strict=True)]
            place.found[name] = self.phi(place, type, [(way, self.before(way, value, type)) for way, value in sources])
        return place.found[name]

    def before(self, way: Way, value: Value | None, type: Type) -> Value:
        """Converts a value before a jump."""
        if value is None:
            return undefined(type)
        here, self.lines = self.lines, way.lines
        found = self.cast(value, type)
        if parts(type):
            found = self._in_parts(found)
        self.lines = here
        return found

    def _in_parts(self, value: Value) -> Value:
        inside = self.parts(value) if parts(value.type) else None
        return Value(value.type, None, tuple(map(self._in_parts, inside))) if inside is not None else value

    def phi(self, place: Join, type: Type, sources: list[tuple[Way, Value]]) -> Value:
        """The value that each way brings along."""
        first = sources[0][1]
        if all(value == first for _, value in sources):
            return first
        inside = parts(type)
        if inside:
            return Value(type, None, tuple(
                self.phi(place, part, [(way, value.parts[k]) for way, value in sources if value.parts])
                for k, part in enumerate(inside)
            ))  # fmt: skip
        if type == "none":
            return NOTHING
        pairs = ", ".join(f"[{value.text}, %{way.label}]" for way, value in sources)
        return self.line(type, f"phi {llvm(type)} {pairs}", place.head)

    def loop(self, assigned: Iterable[str], turn: Callable[[Join, Join], None], body: Callable[[], None]) -> None:
        """A loop: `turn` branches to the body or out, and `body` writes what is in between.

        A name that is assigned within is a phi at the top, of the type with which it comes in. Where it comes back with
        another one, all is written again with the type of both.
        """
        types = {name: self.named(name).type for name in assigned if name in self.names}
        names, lines, label = self.names, len(self.lines), self.label
        while True:
            top, inside, again, out = (self.join() for _ in range(4))
            self.names = dict(names)
            self.leave(top)
            self.enter(top)
            phis: dict[str, list[Any]] = {name: [] for name in types}
            for name, type in types.items():
                self.names[name] = self._promised(type, top.head, phis[name])
            turn(inside, out)
            self.enter(inside)
            self.loops.append((again, out))
            if self.alive:
                body()
                self.leave(again)
            self.loops.pop()
            self.enter(again)
            if self.alive:  # else it runs once at most
                wider = {name: unified(type, self.named(name).type) for name, type in types.items()}
                if None in wider.values():
                    raise Unknown(f"a name of several types in a loop: {wider}")
                if wider != types:
                    types, self.names, self.label = wider, names, label
                    del self.lines[lines:]
                    continue
                self.leave(top)
            for name, type in types.items():
                self._kept(name, type, top, phis[name])
            self.enter(out)
            return

    def _promised(self, type: Type, head: list[Any], phis: list[Any]) -> Value:
        """A value that a phi will have, whose lines are finished when all ways to it are known."""
        inside = parts(type)
        if inside:
            return Value(type, None, tuple(self._promised(part, head, phis) for part in inside))
        name = self.name()
        line = [f"  {name} = phi {llvm(type)} "]
        head.append(line)
        phis.append(line)
        return Value(type, name)

    def _kept(self, name: str, type: Type, top: Join, phis: list[list[str]]) -> None:
        """Finishes the phis of a name, one of each of its parts."""
        ways = [self.before(way, self.named(name, way.names), type) for way in top.ways]
        for k, line in enumerate(phis):
            pairs = (f"[{_leaf(value, k)}, %{way.label}]" for way, value in zip(top.ways, ways, strict=True))
            line[0] += ", ".join(pairs)

    def choice(self, test: Callable[[Join, Join], None], yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
        """One of two values, of which the other is not computed."""
        this, that, end = self.join(), self.join(), self.join()
        name = f"{end.label}?"
        test(this, that)
        for place, value in ((this, yes), (that, no)):
            self.enter(place)
            if self.alive:
                self.names[name] = value()
                self.leave(end)
        self.enter(end)
        found = self.named(name)
        del self.names[name]
        return found


def undefined(type: Type) -> Value:
    """A value for where none was given."""
    inside = parts(type)
    return Value(type, None, tuple(map(undefined, inside))) if inside else Value(type, UNDEFINED)


def _leaf(value: Value, at: int) -> str | None:
    """The word of one of those of which a value consists in the end, by number."""
    for part in value.parts or ():
        count = len(leaves(part.type))
        if at < count:
            return _leaf(part, at)
        at -= count
    return value.text
