"""Guards as one function that can be read: whether a call finds what the recorded one found, and its tensors.

    def guard(args, kwargs, carried):
        v0 = args[0]
        if type(v0) is not c1: return 1
        v1 = v0.eps
        if type(v1) is not float or v1 != 1e-05: return 3
        ...
        return [v7, v9]

Nothing of a user's is asked: numbers and strings are compared when they are of the very type, everything else by
identity. Which guard does not hold is told by its number; -1 is an error in reading. Read next: capture.py.
"""

from __future__ import annotations

import itertools
import linecache
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from redispatch.dispatch.tensor import metadata_of
from redispatch.nn import Parameter

from .known import class_attribute
from .paths import Path, named

NUMBERS = itertools.count()


class Facts(NamedTuple):
    """Facts about a tensor that guards ask for, as it was before the segment."""

    metadata: Any
    offset: int
    keyset: Any
    recorded: bool
    requires_grad: bool
    is_leaf: bool
    fixed: bool

    @staticmethod
    def of(x: Any) -> Facts:
        """Returns the facts of a tensor. `fixed`: few programs change the sizes of parameters."""
        recorded = x._autograd is not None
        fixed = isinstance(x, Parameter)
        return Facts(metadata_of(x), x._offset, x._keyset, recorded, x.requires_grad, x.is_leaf, fixed)


class Guards:
    """The function for these guards; it gives the tensors at `inputs`, of these facts, or the number of a line.

    exact: whether tensors must have the very sizes and strides; those that are carried, too, whose facts are `before`.
    """

    def __init__(
        self,
        guards: Sequence[tuple[Path, str, Any]],
        inputs: Sequence[tuple[Any, Any]],
        constants: dict[str, Any],
        exact: bool,
        before: Sequence[Facts] = (),
    ) -> None:
        self.constants = constants
        self.given: dict[str, Any] = {"class_attribute": class_attribute, "metadata_of": metadata_of, **constants}
        self.words: dict[Path, str] = {Path(None, name): name for name in (*constants, "args", "kwargs", "carried")}
        self.lines: list[str] = []
        for path, kind, found in guards:
            self.lines.append(self.line(path, kind, found))
        for i, facts in enumerate(before if exact else ()):
            self.lines.append(f"if {' or '.join(self.laid_out(f'carried[{i}]', facts))}: return {len(self.lines)}")
        words = [self.word(path) for path, _ in inputs]
        for word, (_, facts) in zip(words, inputs, strict=True):
            self.lines.append(f"if {' or '.join(self.facts(word, facts, exact))}: return {len(self.lines)}")
        if len(words) > 1:
            different = f"{{{', '.join(f'id({word})' for word in words)}}}"
            self.lines.append(f"if len({different}) != {len(words)}: return {len(self.lines)}")
        self.lines.append(f"return [{', '.join(words)}]")
        text = "def guard(args, kwargs, carried):\n  try:\n" + "".join(f"    {line}\n" for line in self.lines)
        self.text = text + "  except Exception: return -1\n"
        name = f"<redispatch guards {next(NUMBERS)}>"
        linecache.cache[name] = (len(self.text), None, self.text.splitlines(True), name)
        exec(compile(self.text, name, "exec"), self.given)
        self.check: Callable[[Any, Any, Any], Any] = self.given["guard"]

    def said(self, failed: int) -> str:
        """The guard that did not hold, by what `check` returned."""
        line = next((one for one in self.lines if one.endswith(f": return {failed}")), "")
        paths = {word: path for path, word in self.words.items() if path.base is not None}
        places = [named(paths[word], self.constants) for word in re.findall(r"v\d+", line) if word in paths]
        return f"{places[0] if places else 'what is read'} is another" if line else "something could not be read"

    def constant(self, value: Any) -> str:
        name = f"c{len(self.given)}"
        self.given[name] = value
        return name

    def word(self, path: Path) -> str:
        """The variable that holds what lies at a path; the lines that read it come first."""
        found = self.words.get(path)
        if found is None:
            assert path.base is not None
            base = self.word(path.base)
            found = self.words[path] = f"v{len(self.words)}"
            self.lines.append(f"{found} = {base}{path.text}")
        return found

    def line(self, path: Path, kind: str, found: Any) -> str:
        """The line for one guard."""
        word = self.word(path)
        fails = f"return {len(self.lines)}"
        if kind == "type":
            return f"if type({word}) is not {self.constant(found)}: {fails}"
        if kind == "is":
            return f"if {word} is not {self.constant(found)}: {fails}"
        if kind == "equal":
            return f"if {self.differs(word, found)}: {fails}"
        if kind == "len":
            return f"if len({word}) != {found}: {fails}"
        if kind == "keys":
            if all(type(one) is str for one in found):
                return f"if tuple({word}) != {self.constant(found)}: {fails}"
            typed = self.constant([(type(one), one) for one in found])
            return f"if [(type(one), one) for one in {word}] != {typed}: {fails}"
        if kind == "lacks":
            return f"if hasattr({word}, {found!r}): {fails}"
        if kind == "lacks item":
            return f"if {found!r} in {word}: {fails}"
        if kind in ("same", "other"):
            return f"if {word} is {'not ' if kind == 'same' else ''}{self.word(found)}: {fails}"
        if kind == "gives":
            return f"if {word}() is not {self.constant(found)}: {fails}"
        if kind == "no hooks":
            return f"if {' or '.join(f'{word}.{name}' for name in found)}: {fails}"
        if kind == "no truth":
            test = " or ".join(f"class_attribute({word}, {name!r}) is not None" for name in ("__bool__", "__len__"))
            return f"if {test}: {fails}"
        what, name = kind.rsplit(" ", 1)
        if what == "item":
            return f"if {word}[{name!r}] is not {self.constant(found)}: {fails}"
        assert what == "class attribute"
        return f"if {word}.{name} is not {self.constant(found)}: {fails}"  # a function's or property's own

    def laid_out(self, word: str, facts: Facts) -> Iterator[str]:
        """The conditions that a tensor has other sizes or strides."""
        yield f"({word}._interned or metadata_of({word})) is not {self.constant(facts.metadata)}"
        yield f"{word}._offset != {facts.offset}"

    def facts(self, word: str, facts: Facts, exact: bool) -> Iterator[str]:
        """The conditions that an input is another than graphs depend on. `exact`: in sizes and strides, too."""
        if exact or facts.fixed:
            same, offset = self.laid_out(word, facts)
            yield from (same, offset) if exact else (same,)
        else:
            yield f"len({word}._shape) != {len(facts.metadata.shape)}"
            yield f"{word}._dtype is not {self.constant(facts.metadata.dtype)}"
            yield f"{word}._device != {self.constant(facts.metadata.device)}"
        yield f"{word}._keyset != {int(facts.keyset)}"
        if not facts.recorded:
            yield f"{word}._autograd is not None"
        else:
            yield f"{word}.requires_grad is not {facts.requires_grad}"
            yield f"{word}.is_leaf is not {facts.is_leaf}"

    def differs(self, word: str, found: Any) -> str:
        """The condition that a number, string or fact of a tensor is another than the one found."""
        kind = type(found)
        if found is None or found is Ellipsis or found is NotImplemented:
            return f"{word} is not {found!r}"
        if kind is bool:
            return f"{word} is not {found!r}"
        if kind is slice:
            parts = (self.differs(f"{word}.{name}", getattr(found, name)) for name in ("start", "stop", "step"))
            return f"type({word}) is not slice or {' or '.join(parts)}"
        if kind is float and (found != found or found == 0 or math.isinf(found)) or kind is complex:
            return f"type({word}) is not {kind.__name__} or repr({word}) != {repr(found)!r}"
        if kind in (int, str, float, bytes):
            return f"type({word}) is not {kind.__name__} or {word} != {found!r}"
        return f"type({word}) is not {self.constant(kind)} or {word} != {self.constant(found)}"
