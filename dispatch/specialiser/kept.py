"""Specialised code on disk: what one process has made, the next one takes over, in a tenth of the time.

A file holds the source, the compiled code, what it was made from (reads.py), and where the objects to which it refers
are found. Its name is a hash of the operator and schema, the facts and the keyset, the evaluator's own source and the
version of Python. It is taken only if all that the evaluator has read then reads the same now: a registration, a rule,
an edited layer, a redefined function make it a miss, and the file is written anew. Not kept is code that depends on
something that cannot be noted or whose text is in no file, as in a notebook; and code of which some layer runs boxed.

Damage is a miss, too, and where nothing can be written, nothing is kept: ../disk.py.
Read next: specialise.py (which asks here first).
"""

from __future__ import annotations

import marshal
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache as once
from pathlib import Path
from typing import Any

from ..core.key import DispatchKey, key_named
from ..core.keyset import shared
from ..disk import digest, directory, read_sealed, write_sealed
from .reads import Reads, read_again, restored, unchanged
from .residual import defined

PARTS = ("core", "schema", "entry", "protocols", "inspection")  # of the dispatcher, which the evaluator imports
FOLDER = "code"  # in the directory of all that is kept
OURS = re.compile(r"[0-9a-f]{64}\.code|tmp.+\.new")


def file_for(facts: Sequence[Any]) -> Path | None:
    """Where code is kept that is made for these facts; None where nothing can be kept."""
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
