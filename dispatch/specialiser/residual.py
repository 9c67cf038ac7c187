"""Residual code: what is left of the interpreter and its layers when everything known has been worked out.

A `Block` is a list of lines and of compound statements, which are a header with a block below it. A `Writer` gives out
names: each variable is assigned once on every path through the code, and each object that the code refers to becomes
a constant with a name that a reader recognises. `compiled` makes a function of it, whose source `linecache` knows: so
tracebacks, `inspect.getsource` and the debugger show it.
"""

from __future__ import annotations

import builtins
import keyword
import linecache
import re
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

ENDS = ("return", "raise", "continue", "break")
CLOSES = ("else:", "finally:", "except")
WIDTH = 120  # of a line of code; longer statements are broken
HEAD = re.compile(r"(?:(?:if|else|or|and|return|raise|while) |[\w.\[\], ]+ = )?")
WORDS = (" or ", " and ", " if ", " else ")


class Block:
    """Statements in their order: lines of text, or (header, block)."""

    __slots__ = ("lines", "state")

    def __init__(self) -> None:
        self.lines: list[str | tuple[str, Block]] = []
        self.state = ""  # the dispatch state in which the block runs, where it sets one

    def add(self, line: str) -> None:
        self.lines.append(line)

    def open(self, header: str) -> Block:
        """A compound statement; returns the block below its header."""
        below = Block()
        self.lines.append((header, below))
        return below

    def last_assigned(self) -> str:
        """The variable that the last statement assigns; empty where it is no such."""
        last = self.lines[-1] if self.lines else ""
        if isinstance(last, str):
            name, equals, _ = last.partition(" = ")
            return name if equals and name.isidentifier() else ""
        if last[0] == "finally:":
            return self.lines[-2][1].last_assigned()  # type: ignore[union-attr]  # its try
        return ""

    def rename_last(self, name: str) -> None:
        """Has the last statement assign another variable."""
        last = self.lines[-1]
        if isinstance(last, str):
            self.lines[-1] = f"{name} = {last.partition(' = ')[2]}"
        else:
            self.lines[-2][1].rename_last(name)  # type: ignore[union-attr]  # its try

    def without(self, names: set[str]) -> None:
        """Drops the assignments of these variables, which nobody reads."""
        self.lines = [line for line in self.lines if not (isinstance(line, str) and line.partition(" = ")[0] in names)]
        for line in self.lines:
            if isinstance(line, tuple):
                line[1].without(names)

    @property
    def empty(self) -> bool:
        return all(isinstance(line, str) and line.startswith("#") for line in self.lines)

    @property
    def ends(self) -> bool:
        """Whether control never comes out at the bottom."""
        if not self.lines:
            return False
        last = self.lines[-1]
        if isinstance(last, str):
            return last.split(" ", 1)[0] in ENDS
        if last[0] == "finally:":
            return self.lines[-2][1].ends  # type: ignore[union-attr]  # its try
        if last[0] == "else:" and len(self.lines) > 1 and isinstance(self.lines[-2], tuple):
            return last[1].ends and self.lines[-2][1].ends
        return False

    def tidy(self) -> Block:
        """Rewrites the statements as a person would write them.

        No empty branches, no `else` after a branch that never comes out, no name for what is returned at once.
        """
        done = Block()
        done.state = self.state
        for line in self.lines:
            if isinstance(line, str):
                done._drop_idle()
                done.lines.append(line)
                continue
            header, below = line[0], line[1].tidy()
            former = done.lines[-1] if done.lines else None
            if header == "else:" and isinstance(former, tuple):
                if below.empty:
                    if former[1].empty:
                        done.lines.pop()
                elif former[1].empty:
                    done.lines[-1] = (negated(former[0]), below)
                elif former[1].ends:
                    done.lines += below.lines
                else:
                    done.lines.append((header, below))
                continue
            done._drop_idle()
            done.lines.append((header, below))
        done._drop_idle()
        done._merge_regions()
        done._return_at_once()
        return done

    def _merge_regions(self) -> None:
        """One region for calls which follow each other in the same dispatch state."""
        at = 0
        while at + 5 < len(self.lines):
            group = self.lines[at : at + 6]
            if _is_region(group[:3]) and _is_region(group[3:]) and group[1][1].state == group[4][1].state:  # type: ignore[union-attr]  # not None here
                group[1][1].lines += group[4][1].lines  # type: ignore[union-attr]  # the two `try`
                del self.lines[at + 3 : at + 6]
            else:
                at += 1

    def _drop_idle(self) -> None:
        """Takes off a last `if` that does nothing: conditions have no effects."""
        if self.lines and isinstance(self.lines[-1], tuple):
            header, below = self.lines[-1]
            if header.startswith("if ") and below.empty:
                self.lines.pop()

    def _return_at_once(self) -> None:
        if len(self.lines) > 2 and isinstance(self.lines[-2], tuple) and self.lines[-2][0] == "finally:":
            inside: Any = self.lines[-3][1]  # its try
            if self.lines[-1] == f"return {inside.last_assigned()}":
                inside.lines[-1] = f"return {inside.lines[-1].partition(' = ')[2]}"
                self.lines.pop()
            return
        if len(self.lines) < 2 or not all(isinstance(line, str) for line in self.lines[-2:]):
            return
        before, last = self.lines[-2:]
        word, _, name = last.partition(" ")  # type: ignore[union-attr]  # both are lines of text
        if word in ("return", "raise") and name.isidentifier() and before.startswith(f"{name} = "):  # type: ignore[union-attr]  # not None here
            self.lines[-2:] = [f"{word} {before[len(name) + 3 :]}"]

    def text(self, indent: str = "") -> Iterator[str]:
        """The lines of source."""
        for line in self.lines:
            if isinstance(line, str):
                yield from wrapped(line, indent)
            elif line[1].lines or not line[0].startswith(CLOSES):
                yield from wrapped(line[0], indent)
                yield from line[1].text(indent + "    ")
                if line[1].empty:
                    yield indent + "    pass"


def wrapped(line: str, indent: str) -> Iterator[str]:
    """Yields a statement, or a part of one, on several lines where it is longer than WIDTH.

    It is broken at the words between its operands; or, where it has none, within its last bracket.
    """
    if len(indent) + len(line) <= WIDTH or line.startswith(("#", "for ", "with ", "except ")):
        yield indent + line
        return
    head, tail = HEAD.match(line)[0], line[-1] if line[-1] in ":," else ""  # type: ignore[index]  # it matches nothing, too
    body = line[len(head) : len(line) - len(tail)]
    parts, opening, closing = cut(body, WORDS), "(", ")"
    if len(parts) == 1:
        at = last_bracket(body)
        opening, inner, closing = body[: at + 1], body[at + 1 : -1], body[-1:]
        parts = cut(inner, WORDS)
        listed = cut(inner, (", ",)) if at >= 0 and " for " not in inner and "lambda" not in inner else []
        if len(listed) > 1:
            parts = [f"{part.removesuffix(',')}," for part in listed]
    if not opening:
        yield indent + line
        return
    yield f"{indent}{head}{opening}"
    for part in parts:
        yield from wrapped(part, indent + "    ")
    yield f"{indent}{closing}{tail}"


def cut(text: str, words: tuple[str, ...]) -> list[str]:
    """Splits an expression before these words, behind a comma, where they stand outside of brackets and strings."""
    starts = [0, *(at + 1 for at, depth in depths(text) if not depth and text.startswith(words, at))]
    return [text[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)]


def last_bracket(text: str) -> int:
    """The place of the bracket that the last character closes; -1 where that closes none."""
    opened = [at for at, depth in depths(text) if depth == 1 and text[at] in "([{"]
    return opened[-1] if opened and text[-1:] in tuple(")]}") else -1


def depths(text: str) -> Iterator[tuple[int, int]]:
    """Yields (place, how many brackets are open there, itself counted) of each character outside of strings."""
    depth, quote, at = 0, "", 0
    while at < len(text):
        one = text[at]
        if quote:
            at += one == "\\"
            quote = "" if one == quote else quote
        elif one in "'\"":
            quote = one
        else:
            depth += one in "([{"
            yield at, depth
            depth -= one in ")]}"
        at += 1


def _is_region(lines: list[Any]) -> bool:
    """Whether these lines are: token = set_state(...), try, finally."""
    first, body, last = lines
    return isinstance(first, str) and isinstance(body, tuple) and isinstance(last, tuple) and bool(body[1].state)


def negated(header: str) -> str:
    condition = header.removeprefix("if ").removesuffix(":")
    if " if " in condition:
        return f"if not ({condition}):"
    if condition.startswith("not ") and " and " not in condition and " or " not in condition:
        return f"if {condition.removeprefix('not ')}:"
    if condition.endswith(" is None") and " and " not in condition and " or " not in condition:
        return f"if {condition.removesuffix(' is None')} is not None:"
    return f"if not {condition}:" if condition.isidentifier() else f"if not ({condition}):"


class Writer:
    """The names of one residual function: parameters, variables and constants."""

    def __init__(self) -> None:
        self.taken: set[str] = set(keyword.kwlist) | set(dir(builtins))
        self.idle: set[str] = set()  # variables which nobody misses if they are not read
        self.parameters: set[str] = set()
        self.variables: set[str] = set()  # those that are no parameters: one may be assigned on several paths
        self.constants: dict[str, Any] = {}
        self._name_of: dict[int, str] = {}
        self._held: list[Any] = []  # so that no id is used twice
        self.named = constant_name
        self._methods: dict[Any, Any] = {}  # Python makes a new object of a bound method each time

    def variable(self, hint: str) -> str:
        """A new name."""
        stem = re.sub(r"\W", "_", hint).rstrip("_") or "value"
        if stem[0].isdigit():
            stem = f"_{stem}"
        name, number = stem, 2
        while name in self.taken:
            name, number = f"{stem}_{number}", number + 1
        self.taken.add(name)
        return name

    def parameter(self, hint: str) -> str:
        """A new name for a parameter."""
        name = self.variable(hint)
        self.parameters.add(name)
        return name

    def local(self, hint: str, text: str = "") -> str:
        """A new name for a variable, whose value is `text`: what is read of a parameter is called after that."""
        name = self.variable(self.after_what_it_reads(hint, text))
        self.variables.add(name)
        return name

    def after_what_it_reads(self, hint: str, text: str) -> str:
        """`other_offset` for `other._offset`, where the hint says nothing; `other_kind` for `type(other)`."""
        if hint in VAGUE and (attribute := ATTRIBUTE.fullmatch(text)):
            owner, name = attribute.groups()
            return f"{owner if owner in self.parameters else NUMBER.sub('', owner)}_{name}"
        function, _, argument = text.removesuffix(")").partition("(")
        if hint == "function":
            return "result"  # of a function that a user gave, and that has no name
        if argument in self.parameters and function.isidentifier():
            known = NUMBER.sub("", function).removesuffix("_of").rpartition("_")[2]
            return f"{argument}_{known if hint in VAGUE else PLURAL.sub('', hint)}"
        return hint if hint.islower() else in_snake_case(hint)

    def snapshot(self) -> Any:
        return set(self.taken), set(self.variables), dict(self.constants), dict(self._name_of)

    def restore(self, snapshot: Any) -> None:
        """Forgets the names that were given out since."""
        self.taken, self.variables, self.constants, self._name_of = snapshot

    def method(self, owner: Any, name: str) -> Any:
        """The bound method `owner.name`, always the same object."""
        found = self._methods.get((id(owner), name))
        if found is None:
            self._held.append(owner)
            found = self._methods[id(owner), name] = getattr(owner, name)
        return found

    def shared(self, key: Any, value: Any, hint: str) -> str:
        """The name of a constant that is the same object for equal keys."""
        return self.constant(self._methods.setdefault(key, value), hint)

    def constant(self, value: Any, hint: str = "") -> str:
        """The name, or the literal, that stands for an object."""
        if value is None or value is True or value is False or value is Ellipsis or value is NotImplemented:
            return repr(value)
        if type(value) is str or (type(value) is int and abs(value) < 1 << 31):
            return repr(value)
        if type(value) is float and value == value and abs(value) != float("inf"):
            return repr(value)
        name = getattr(value, "__name__", "")
        if isinstance(name, str) and getattr(builtins, name, self) is value:
            return name
        if type(value) is tuple:
            parts = [self.constant(item) for item in value]
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        found = self._name_of.get(id(value))
        if found is None:
            found = self._name_of[id(value)] = self.variable(hint or self.named(value))
            self.constants[found] = value
            self._held.append(value)
        return found


def in_snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


VAGUE = ("result", "value", "values")  # names that fit anything
ATTRIBUTE = re.compile(r"(?:\w+\.)*(\w+)\._?(\w+)(?: or .*)?")
NUMBER, PLURAL = re.compile(r"_\d+$"), re.compile(r"(?<!s)s$")


def constant_name(value: Any) -> str:
    """Returns a name for an object that the source gives none: a function its own, a rule that of its class."""
    if type(value) is int:
        return "keyset"  # nothing else is that large
    name = getattr(value, "__name__", None) or getattr(value, "name", None)
    if not isinstance(name, str):
        name = in_snake_case(type(value).__name__)
    function = getattr(value, "__func__", value)
    qualified = getattr(function, "__qualname__", name)
    return "function" if "<lambda>" in qualified else str(name)


def compiled(name: str, source: str, constants: dict[str, Any], filename: str) -> Callable[..., Any]:
    """The function `name` that `source` defines."""
    return defined(name, compile(source, filename, "exec"), source, constants, filename)


def defined(name: str, body: CodeType, source: str, constants: dict[str, Any], filename: str) -> Callable[..., Any]:
    """The function `name` that `body` defines, which was compiled from `source`."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope = {"__name__": "redispatch.specialised", **constants}
    exec(body, scope)
    return scope[name]
