"""Reads: everything that the evaluator has looked at outside of itself, in order, such that it can be looked at again.

What the evaluator writes follows from its own source and from what it reads: a global of a layer, an attribute of a
kernel, the text of a function, what a `@pure` function answers. So code that an earlier process has made is the code
that would be made now if all of that reads the same again. `Reads` notes it while code is made; `read_again`, in
another process, goes through it step by step and compares, which takes a tenth of the time.

A step is (how, source, name, expected). The source is an object that an earlier step has found, by its number, and so
no object needs a name of its own: the derivative of an operator is "what `get`, of the table which is the global
DERIVATIVES of the fallback at AutogradCPU, answers for this operator". Expected is one of

    ("=", value)        a plain value, to be equal
    a number            that object, found before
    ("function", ...)   a new object: the next number. What it is told by is in `metadata_of`

At the end new objects must be so many different ones, since the evaluator asks whether one object `is` another.
Objects that the code refers to are found in the same way. A thing that cannot be noted is a `problem`: such code is
made anew in each process.

Read next: specialise.py (which asks here first).
"""

from __future__ import annotations

import builtins
import marshal
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache as once
from pathlib import Path
from types import BuiltinMethodType, CellType, CodeType, FunctionType, MethodType, ModuleType, UnionType
from typing import Any, cast

from ..core.base import TensorBase
from ..core.interpreter import call, hop, run
from ..core.key import DispatchKey, key_named
from ..core.keyset import runtime_keys, shared
from ..core.state import AT_WORK, STATE, State, Steps, within
from ..disk import digest, directory, read_sealed, write_sealed
from ..schema.convert import default_of, is_default
from ..schema.schema import NO_DEFAULT
from .annotations import FROZEN, code_of
from .residual import constant_name, defined
from .site import UNKNOWN, Memo, Site
from .values import VARIABLE, before, class_attribute, is_constant

# Objects that the evaluator knows by itself: they have the first numbers, `builtins` the very first
OWN: tuple[Any, ...] = (
    *(builtins, object, TensorBase, State, STATE, AT_WORK, Memo, Site, Steps, UNKNOWN, NO_DEFAULT, NotImplemented),
    *(run, call, hop, within, is_default, cast, Memo.part, Memo.key_source),
)

Step = tuple[str, Any, Any, Any]
STARTED = time.time()
PLAIN = (int, str, bool, type(None), float, complex, bytes, type(Ellipsis))
SEQUENCES = (tuple, frozenset)
SIMPLE = ("attribute", "has", "of the class", "own", "type", "item", "in", "varies", "cell varies", "name", "steps")


def is_plain(value: Any) -> bool:
    """Whether a value is told by itself alone, and can be written down."""
    kind = type(value)
    return kind in PLAIN and value == value or kind in SEQUENCES and all(map(is_plain, value))


def equal(value: Any, other: Any) -> bool:
    """Whether two plain values are the same in every respect: 1 and True are not, nor are 0.0 and -0.0."""
    if type(value) is not type(other):
        return False
    if type(value) is tuple:
        return len(value) == len(other) and all(map(equal, value, other))
    return value == other and (type(value) not in (float, complex, frozenset) or repr(value) == repr(other))


# Reading --------------------------------------------------------------------------------------------------------------

READ: dict[str, Callable[[Any, Any, list[Any]], Any]] = {
    "attribute": lambda source, name, objects: getattr(source, name),
    "attribute or": lambda source, name, objects: getattr(source, name[0], restored(name[1], objects)),
    "has": lambda source, name, objects: hasattr(source, name),
    "of the class": lambda source, name, objects: class_attribute(source, name),
    "own": lambda source, name, objects: vars(source).get(name),
    "type": lambda source, name, objects: type(source),
    "item": lambda source, name, objects: source[name],
    "in": lambda source, name, objects: name in source,
    "varies": lambda source, name, objects: isinstance(source[name], VARIABLE),
    "cell varies": lambda source, name, objects: isinstance(source.cell_contents, VARIABLE),
    "code": lambda source, name, objects: code_digest(code_of(source)),
    "name": lambda source, name, objects: constant_name(source),
    "schema": lambda source, name, objects: str(source.schema),
    "default": lambda source, name, objects: default_of(source.schema.arguments[name]),
    "keys": lambda source, name, objects: tuple(key.name for key in before(source.entry(name).key, runtime_keys(name))),
    "table": lambda source, name, objects: source.table(name),
    "site": lambda source, name, objects: Site(source),
    "steps": lambda source, name, objects: Steps(restored(name, objects)),
    "equal": lambda source, name, objects: bool(source == restored(name, objects)),
    "isinstance": lambda source, name, objects: isinstance(source, restored(name, objects)),
    "issubclass": lambda source, name, objects: issubclass(source, restored(name, objects)),
    "answer": lambda source, name, objects: source(
        *restored(name[0], objects), **{key: restored(value, objects) for key, value in name[1]}
    ),
}


def metadata_of(value: Any) -> tuple[Any, ...]:
    """Returns the facts that distinguish an object for the evaluator; anything else it asks, it notes as reads."""
    if type(value) is FunctionType:
        returns = value.__annotations__.get("return") == "TensorBase"
        return ("function", value.__module__, value.__qualname__, value.__name__, marks_of(value), returns)
    if isinstance(value, type):
        made = [name in vars(base) for base in value.__mro__[:-1] for name in ("__init__", "__new__")]
        kind, frozen = type(value).__qualname__, value in FROZEN
        return ("class", value.__module__, value.__qualname__, kind, frozen, marks_of(value), tuple(made))
    if type(value) is BuiltinMethodType:
        return ("builtin", value.__name__)
    if isinstance(value, ModuleType):
        return ("module", value.__name__)
    if type(value) is tuple:
        return ("tuple", len(value))
    if type(value) in (dict, CellType):
        return (type(value).__name__,)
    asks = is_constant(value) and (hasattr(value, "__bool__") or hasattr(value, "__len__"))
    return ("object", callable(value) and marks_of(value), asks and bool(value))


def marks_of(value: Any) -> tuple[bool, ...]:
    """The marks of a thing that is called (annotations.py)."""
    return tuple([bool(getattr(value, mark, False)) for mark in ("__inline__", "__pure__", "__leaf__", "__frozen__")])


def parts_of(value: Any) -> Iterable[tuple[str, Any]]:
    """Returns the other reads of a new object, made at once: (how, name)."""
    if type(value) is tuple:
        return [("item", place) for place in range(len(value))]
    if isinstance(value, type):
        return [("attribute", "__mro__")]
    if type(value) is MethodType:
        return [("attribute", "__func__"), ("attribute", "__self__")]
    if type(value) is BuiltinMethodType:
        return [("attribute", "__self__")]
    if type(value) is UnionType:
        return [("attribute", "__args__")]
    return [] if isinstance(value, FunctionType | ModuleType) or type(value) in (dict, CellType) else [("type", None)]


def restored(written: Any, objects: Sequence[Any]) -> Any:
    """The value that `Reads.written` has written down."""
    if type(written) is int:
        return objects[written]
    how, value = written
    if how == "=":
        return value
    if how == "dict":
        return {name: restored(one, objects) for name, one in value}
    return (tuple if how == "tuple" else list)(restored(one, objects) for one in value)


_DIGESTS: dict[CodeType, bytes] = {}


def code_digest(code: CodeType) -> bytes:
    """Returns a digest of a function: its code, place and names, which is all that its syntax tree says."""
    import marshal  # version 2 writes the same code the same way: later ones count who refers to what

    found = _DIGESTS.get(code)
    if found is None:
        found = _DIGESTS[code] = digest(marshal.dumps(code, 2))
    return found


def read_again(steps: Iterable[Step], roots: Sequence[Any]) -> list[Any] | None:
    """All objects, if all reads give what they gave; else None."""
    objects = [*OWN, *roots]
    try:
        for how, source, name, expected in steps:
            found = READ[how](objects[source] if type(source) is int else restored(source, objects), name, objects)
            if type(expected) is int:
                if found is not objects[expected]:
                    return None
            elif expected[0] == "=":
                if not equal(found, expected[1]):
                    return None
            elif metadata_of(found) == expected:
                objects.append(found)
            else:
                return None
    except Exception:  # something is not there that was: this is another world
        return None
    return objects if len(set(map(id, objects))) == len(objects) else None


# Noting ---------------------------------------------------------------------------------------------------------------


class Reads:
    """The inputs of one piece of code. `roots` are objects from which everything else is found."""

    def __init__(self, roots: Sequence[Any] = (), problem: str = "") -> None:
        self.problem = problem  # why the code cannot be kept
        self.steps: list[Step] = []
        self.objects: list[Any] = [*OWN, *roots]  # also so that no id is used twice
        self.numbers = {id(value): number for number, value in enumerate(self.objects)}
        self.noted: dict[Any, Any] = {}

    def note(self, found: Any, how: str, source: Any, name: Any = None) -> Any:
        """Notes that reading gave `found`, and returns it."""
        if not self.problem:
            number = self.numbers.get(id(source))
            self._note(found, how, self.written(source) if number is None else number, name)
        return found

    def _note(self, found: Any, how: str, source: Any, name: Any) -> None:
        key = how, source, name
        if how in SIMPLE:
            if self.noted.get(key, self) is found:
                return
            self.noted[key] = found
        if is_plain(found):
            self.steps.append((how, source, name, ("=", found)))
            return
        number = self.numbers.get(id(found))
        if number is not None:
            self.steps.append((how, source, name, number))
            return
        if isinstance(found, (*PLAIN, frozenset, range)) or isinstance(found, tuple) and type(found) is not tuple:
            self.fails(f"a {type(found).__name__}, which may equal another one")
            return
        number = self.numbers[id(found)] = len(self.objects)
        self.objects.append(found)
        self.steps.append((how, source, name, metadata_of(found)))
        for part_how, part_name in parts_of(found):
            self._note(READ[part_how](found, part_name, self.objects), part_how, number, part_name)

    def written(self, value: Any) -> Any:
        """A value as it stands in a step: (how, parts), or the number of an object. One without is a problem."""
        number = self.numbers.get(id(value))
        if number is not None:
            return number
        if is_plain(value):
            return ("=", value)
        name = value.__name__ if isinstance(value, type) else ""
        if name and getattr(builtins, name, None) is value:
            self._note(value, "attribute", 0, name)
            return self.numbers[id(value)]
        if type(value) in (tuple, list):
            return (type(value).__name__, tuple(map(self.written, value)))
        if type(value) is dict and all(type(name) is str for name in value):
            return ("dict", tuple((name, self.written(one)) for name, one in value.items()))
        self.fails(f"nothing says where {type(value).__name__} {constant_name(value)} comes from")
        return ("=", None)

    def fails(self, problem: str) -> None:
        """Says why the code cannot be kept."""
        self.problem = self.problem or problem

    def of_class(self, value: Any, name: str) -> Any:
        """An attribute as the class of `value` holds it."""
        kind = self.note(type(value), "type", value)
        return self.note(class_attribute(kind, name), "of the class", kind, name)

    def answer(self, found: Any, function: Any, arguments: Iterable[Any], keywords: dict[str, Any]) -> Any:
        """Notes what a function has answered."""
        if not self.problem:
            given = self.written(list(arguments)), tuple((name, self.written(v)) for name, v in keywords.items())
            self.note(found, "answer", function, given)
        return found

    def decided(self, answer: bool, how: str, value: Any, other: Any) -> bool:
        """Notes whether a value is of some classes, or equals another one. A plain one always will be, or never."""
        if not self.problem and not (is_plain(value) and (how != "equal" or is_plain(other))):
            self.note(answer, how, value, self.written(other))
        return answer

    def constant(self, value: Any) -> Any:
        """An object to which the code refers, as it stands in a step."""
        if isinstance(value, BuiltinMethodType | MethodType) and id(value) not in self.numbers:  # made anew each time
            owner, name = value.__self__, value.__name__
            if getattr(owner, name, None) == value:
                self.note(value, "attribute", owner, name)
        return self.written(value)

    def opened(self, function: Any, as_compiled: bool) -> None:
        """Notes that the text of a function was read. It must be the text that was compiled."""
        if self.problem:
            return
        if not as_compiled:
            self.fails(f"the text of {function.__qualname__} is in no file, or has changed")
            return
        self.note(code_digest(code_of(function)), "code", function)
        for name in ("__defaults__", "__kwdefaults__", "__closure__", "__globals__"):
            found = getattr(function, name)
            self.note(found, "attribute", function, name)
            if type(found) is dict and name == "__kwdefaults__":
                for key, default in found.items():
                    self.note(default, "item", found, key)


NOTHING = Reads(problem="nobody asks")


def unchanged(file: str) -> bool:
    """Whether a source file is as it was when this process began: what was compiled is then what is read."""
    try:
        facts = os.stat(file)
    except OSError:
        return False
    return max(facts.st_mtime, facts.st_ctime) < STARTED


# Specialised code on disk: what one process has made, the next one takes over, in a tenth of the time -----------------
#
# A file holds the source, the compiled code, what it was made from, and where the objects to which it refers
# are found. Its name is a hash of the operator and schema, the facts and the keyset, the evaluator's own source and the
# version of Python. It is taken only if all that the evaluator has read then reads the same now: a registration, a
# rule, an edited layer, a redefined function make it a miss, and the file is written anew. Not kept is code that
# depends on something that cannot be noted or whose text is in no file, as in a notebook; and code of which some layer
# runs boxed.
#
# Damage is a miss, too, and where nothing can be written, nothing is kept: ../disk.py.

PARTS = ("core", "schema", "entry", "protocols", "inspection")  # of the dispatcher, which the evaluator imports
FOLDER = "code"  # in the directory of all that is kept
OURS = re.compile(r"[0-9a-f]{64}\.code|tmp.+\.new")


def file_for(facts: Sequence[Any]) -> Path | None:
    """The file of code that is made for these facts; None where nothing can be kept."""
    path, engine = directory(warns=False), engine_digest()
    if path is None or engine is None:
        return None
    return path / FOLDER / f"{digest(engine, repr(facts).encode()).hex()}.code"


@once
def engine_digest() -> bytes | None:
    """Returns a digest of the evaluator: its source, and this Python. None where the source has changed since then."""
    room = Path(__file__).parent
    parts = [room, room.parent, *(room.parent / part for part in PARTS)]
    files = sorted(file for part in parts for file in part.glob("*.py"))
    try:
        texts = [file.read_bytes() for file in files]
    except OSError:
        return None
    if not texts or not all(unchanged(str(file)) for file in files):
        return None
    here = f"{sys.version}\0{sys.implementation.cache_tag}\0{sys.flags.optimize}\0{room}\0"
    return digest(here.encode(), *texts)


def load(file: Path, roots: Sequence[Any]) -> Callable[..., Any] | None:
    """The code in a file, if what it was made from reads the same now."""
    payload = read_sealed(file, file.stem)
    if payload is None:
        return None
    steps, name, filename, constants, asked, source, body = marshal.loads(payload)
    objects = read_again(steps, roots)
    if objects is None:
        return None
    scope = {known: renewed(written, objects) for known, written in constants}
    code: Any = defined(name, body, source, scope, filename)
    code.asked, code.source, code.left = frozenset(map(key_named, asked)), source, []
    return code


def renewed(written: Any, objects: Sequence[Any]) -> Any:
    """A constant of the code. Keysets are told apart by `is`: there is one object for equal ones."""
    value = restored(written, objects)
    return shared(value) if type(value) is int else value


def store(
    file: Path, code: Any, reads: Reads, constants: dict[str, Any], asked: Iterable[DispatchKey], body: Any
) -> None:
    """Keeps code, unless there is a problem with what it was made from. Failing to is no error."""
    written = tuple((known, reads.constant(value)) for known, value in constants.items())
    names = tuple(key.name for key in asked)
    if reads.problem or any(key_named(key.name) is not key for key in asked):
        return
    name, filename = code.__name__, code.__code__.co_filename
    try:
        payload = marshal.dumps((tuple(reads.steps), name, filename, written, names, code.source, body))
        file.parent.mkdir(mode=0o700, exist_ok=True)
        write_sealed(file, file.stem, payload)
    except (OSError, ValueError):  # ValueError: something that marshal cannot write
        return


def sizes() -> list[int]:
    """The bytes of each piece of code on disk."""
    found = []
    for file in files():
        try:
            found.append(file.stat().st_size)
        except OSError:
            continue  # another process has just removed it
    return found


def clear() -> tuple[int, int]:
    """Removes all code on disk, and nothing else that lies there: (how many, how many bytes)."""
    count = size = 0
    for file in files():
        try:
            size += file.stat().st_size
            file.unlink()
        except OSError:
            continue  # another process was faster, or it is not ours to remove
        count += file.suffix == ".code"
    return count, size


def files() -> list[Path]:
    """The files that `store` has made, those included that a process left half written."""
    path = directory(warns=False)
    folder = None if path is None else path / FOLDER
    if folder is None or not folder.is_dir():
        return []
    return [file for file in folder.iterdir() if OURS.fullmatch(file.name)]
